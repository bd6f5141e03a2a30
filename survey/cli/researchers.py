"""The commands about the people who may sign in."""

from __future__ import annotations

import click

from survey.cli.common import configured_settings, configured_store, refusing
from survey.errors import SurveyError
from survey.research.credentials import Passwords


@click.group()
def researcher() -> None:
    """People who may sign in."""


asking_password = click.option(
    "--password",
    prompt=True,
    hide_input=True,
    confirmation_prompt=True,
    help="Asked for when not given.",
)


@researcher.command("add")
@click.argument("email")
@asking_password
@click.option("--admin", is_flag=True, help="May do everything; the first researcher may anyway.")
@refusing
def add_researcher(email: str, password: str, admin: bool) -> None:
    """Let EMAIL sign in."""
    if "@" not in email or len(email) > 254:
        raise SurveyError(f"{email!r} is not an email address")
    hashed = Passwords(configured_settings().password_cost).hash(password)
    configured_store().add_researcher(email, hashed, is_admin=admin)
    click.echo(f"{email} can sign in at {configured_settings().public_url}/research/")


@researcher.command("reset")
@click.argument("email")
@asking_password
@refusing
def reset_researcher(email: str, password: str) -> None:
    """Give EMAIL a new password, without a second step; their sessions and tokens end."""
    store = configured_store()
    store.set_password(email, Passwords(configured_settings().password_cost).hash(password))
    if found := store.researcher(email):
        store.set_second_factor(found.key, "", [])
    click.echo(f"{email} can sign in with the new password; there is no second step any more")
