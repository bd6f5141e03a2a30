"""What all commands share: refusals as one clear line and exit 1, stores that are closed again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from survey.errors import SurveyError
from survey.settings import Settings
from survey.store import Store, open_store

PATH = click.Path(path_type=Path)
"""What an argument of a command names: a file or a directory."""

P = ParamSpec("P")
R = TypeVar("R")


def refusing(function: Callable[P, R]) -> Callable[P, R]:
    """The function of a command, its refusals said and not raised."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SurveyError as error:
            refusal = str(error)
        except OSError as error:
            refusal = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        except UnicodeEncodeError:
            refusal = "an argument is not text in this machine's encoding"
        click.echo(f"survey: {refusal}", err=True)
        sys.exit(1)

    return guarded


def configured_settings() -> Settings:
    """The settings of the environment."""
    return Settings.from_environment(os.environ)


def configured_store() -> Store:
    """The store that the settings name, until the command ends."""
    return opened(configured_settings().database)


def opened(url: str) -> Store:
    """A store until the command ends."""
    store = open_store(url)
    click.get_current_context().call_on_close(store.close_connections)
    return store
