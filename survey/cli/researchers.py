"""The operator's commands for researchers' accounts.

Each command imports what it needs when it runs.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, TextIO

import click

from survey.cli import configured_settings, configured_store, quantity
from survey.errors import SurveyError

if TYPE_CHECKING:
    from survey.research.credentials import Passwords
    from survey.settings import Settings
    from survey.store import Store


@click.group()
def researcher() -> None:
    """List, add and remove researchers, and reset their accounts."""


password_option = click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="The password; if omitted, the command asks for it.",
)


@researcher.command("add")
@click.argument("email")
@password_option
@click.option(
    "--admin",
    is_flag=True,
    help="Make the researcher an administrator, as the first one always is.",
)
def add_researcher(email: str, password: str, admin: bool) -> None:
    """Create an account for EMAIL."""
    if "@" not in email or len(email) > 254:
        raise SurveyError(f"{email!r} is not an email address")
    settings, store = configured_settings(), configured_store()
    password_hash = _passwords(store, settings).hash_new(email, password)
    store.add_researcher(email, password_hash, is_admin=admin)
    click.echo(f"{email} can sign in at {settings.researchers_url}/research/")


def _passwords(store: Store, settings: Settings) -> Passwords:
    from survey.research.credentials import Passwords, public_names

    return Passwords(settings.password_cost, partial(public_names, store, settings))


@researcher.command("reset")
@click.argument("email")
@password_option
def reset_researcher(email: str, password: str) -> None:
    """Set a new password for EMAIL; remove two-factor authentication, sessions and tokens."""
    store = configured_store()
    passwords = _passwords(store, configured_settings())
    store.set_password(email, passwords.hash_new(email, password))
    if account := store.researcher(email):
        store.set_second_factor(account.key, "", [])
    click.echo(
        f"{email} can sign in with the new password; two-factor authentication is switched off"
    )


@researcher.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the accounts as JSON.")
def list_researchers(as_json: bool) -> None:
    """List the accounts: roles, two-factor authentication, failed sign-ins since the last one."""
    store = configured_store()
    with_factor = {key for key, _ in store.second_factor_secrets()}
    failures = store.failed_sign_ins()
    rows = [
        {
            "email": account.email,
            "administrator": account.is_admin,
            "two_factor": account.key in with_factor,
            "failed_sign_ins": failures[account.key].n if account.key in failures else 0,
            "roles": store.roles(account.key),
        }
        for account in store.researchers()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row, account in zip(rows, store.researchers(), strict=True):
        parts = ["administrator"] if account.is_admin else []
        parts.append(f"two-factor authentication {'on' if row['two_factor'] else 'off'}")
        if account.key in failures:
            parts.append(quantity(failures[account.key].n, "failed sign-in"))
        roles = [f"{role} of {slug}" for slug, role in sorted(store.roles(account.key).items())]
        click.echo(f"{account.email}: {', '.join(parts + roles)}")


@researcher.command("remove")
@click.argument("email")
@click.option(
    "--successor",
    default="",
    metavar="EMAIL",
    help="The researcher who takes over the surveys and drafts that have no other owner.",
)
def remove_researcher(email: str, successor: str) -> None:
    """Delete the account of EMAIL.

    Its sessions, API tokens, comments and unused links are deleted as well. The log keeps what the
    researcher did.
    """
    result = configured_store().remove_researcher(email, successor)
    click.echo(f"removed {email}")
    if result.transferred_slugs:
        click.echo(f"{successor} is now an owner of {', '.join(result.transferred_slugs)}")
    if result.successor_is_new_admin:
        click.echo(f"{successor} is now the administrator")
    if result.n_deleted_comments or result.n_deleted_result_links:
        deleted = (
            quantity(result.n_deleted_comments, "comment"),
            quantity(result.n_deleted_result_links, "link") + " to results",
        )
        click.echo(f"deleted {' and '.join(deleted)}")


@researcher.command("reencrypt")
@click.argument("file", type=click.File(encoding="utf-8"))
def reencrypt(file: TextIO) -> None:
    """After the secret was rotated: keep the codes of authenticator apps valid.

    FILE contains the former secret; - is standard input. Run the command with the
    present one, then delete FILE.
    """
    from survey.research.two_factor import SecondFactors

    try:
        former = file.read().strip()
    except (OSError, ValueError):
        raise SurveyError(f"{file.name} cannot be read as text") from None
    settings = configured_settings().with_real_secret()
    n, n_lost = SecondFactors(configured_store(), settings.secret).reencrypt(former)
    click.echo(f"encrypted {quantity(n, 'secret')} of authenticator apps with the present secret")
    if n_lost:
        raise SurveyError(
            f"{quantity(n_lost, 'secret')} cannot be read with the secret in {file.name}; these "
            "researchers can sign in with a recovery code"
        )
