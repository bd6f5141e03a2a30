"""A command's refusals: whatever refused, one clear line on stderr and exit 1."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from survey.errors import SurveyError

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
