"""The commands that manage the accounts of researchers."""

from __future__ import annotations

import click

from survey.cli.common import configured_settings, configured_store, exit_on_error
from survey.errors import SurveyError
from survey.research.credentials import Passwords


@click.group()
def researcher() -> None:
    """Add researchers and reset their passwords."""


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
    "--admin", is_flag=True, help="Make this an administrator; the first researcher always is one."
)
@exit_on_error
def add_researcher(email: str, password: str, admin: bool) -> None:
    """Create an account for EMAIL."""
    if "@" not in email or len(email) > 254:
        raise SurveyError(f"{email!r} is not an email address")
    settings = configured_settings()
    password_hash = Passwords(settings.password_cost).hash(password)
    configured_store().add_researcher(email, password_hash, is_admin=admin)
    click.echo(f"{email} can sign in at {settings.public_url}/research/")


@researcher.command("reset")
@click.argument("email")
@password_option
@exit_on_error
def reset_researcher(email: str, password: str) -> None:
    """Set a new password for EMAIL; remove two-factor authentication, sessions and tokens."""
    store = configured_store()
    store.set_password(email, Passwords(configured_settings().password_cost).hash(password))
    if account := store.researcher(email):
        store.set_second_factor(account.key, "", [])
    click.echo(
        f"{email} can sign in with the new password; two-factor authentication is switched off"
    )
