"""Error messages, settings and stores of all commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from survey.errors import SurveyError
from survey.settings import Settings

if TYPE_CHECKING:
    from survey.store import Store

PATH = click.Path(path_type=Path)
"""An argument that names a file or a directory."""

VERSION = click.IntRange(1, 2**31 - 1)
"""The version of a survey."""

P = ParamSpec("P")
R = TypeVar("R")


def exit_on_error(command: Callable[P, R]) -> Callable[P, R]:
    """Wrap a command so that expected errors print one line and end with exit status 1."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except SurveyError as error:
            message = str(error)
        except BrokenPipeError:
            raise
        except OSError as error:
            message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        except UnicodeEncodeError:
            message = "an argument is not text in the encoding of this machine"
        click.echo(f"survey: {message}", err=True)
        sys.exit(1)

    return guarded


def configured_settings() -> Settings:
    """Read the settings from the environment."""
    return Settings.from_environment(os.environ)


def configured_store() -> Store:
    """Open the store named by the settings; it is closed when the command ends."""
    return open_until_exit(configured_settings().database)


def open_until_exit(url: str) -> Store:
    """Open the store at a URL; it is closed when the command ends."""
    from survey.store import open_store

    store = open_store(url)
    click.get_current_context().call_on_close(store.close_connections)
    return store
