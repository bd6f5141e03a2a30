"""The `survey` command, and the settings and stores of its subcommands.

Exit status: 0 done, 1 rejected with a message, 2 wrong usage.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from survey.errors import DefinitionError, SurveyError
from survey.version import __version__

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from survey.settings import Settings
    from survey.store import Store

MODULES: Mapping[str, tuple[str, ...]] = {
    "surveys": (
        *("new", "import", "convert", "schema", "check", "publish", "list", "schedule", "close"),
        *("link", "invite", "import-tablet"),
    ),
    "results": ("estimate", "export", "simulate"),
    "debias": ("debias",),
    "plan": ("plan",),
    "client": ("bundle", "verify"),
    "server": (
        *("config", "migrate", "serve", "keeper", "release", "retention", "notify"),
        *("backup", "restore", "check-store", "copy-store", "audit", "demo"),
    ),
    "researchers": ("researcher",),
}
"""The commands of each module of this package; a module is imported when its command runs."""

BROKEN_PIPE = 141
"""Exit status after a closed pipe, as for a process that the signal SIGPIPE ended."""

AS_JSON = "survey.json"
"""The key under which a command's context says that errors are printed as JSON."""

PATH = click.Path(path_type=Path)
"""An argument that names a file or a directory."""


class CommandLine(click.Group):
    """The commands of `MODULES`, imported on first use so that `survey --version` starts at once.

    An expected error of a command prints one line, or JSON, and ends with exit status 1.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands in alphabetical order."""
        return sorted(name for names in MODULES.values() for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command by its name; return None if there is no such command."""
        for module, names in MODULES.items():
            if cmd_name in names:
                values = vars(importlib.import_module(f"survey.cli.{module}")).values()
                commands = (value for value in values if isinstance(value, click.Command))
                return next(command for command in commands if command.name == cmd_name)
        return None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reject NUL characters, which no file name, address or database accepts."""
        for argument in args:
            if "\0" in argument:
                raise click.UsageError(f"{argument!r} contains a NUL character; remove it")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, print an expected error, and end silently if the reader has gone."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes both streams once more on exit and would report the error there.
            null = os.open(os.devnull, os.O_WRONLY)
            for stream in (sys.stdout, sys.stderr):
                os.dup2(null, stream.fileno())
            raise click.exceptions.Exit(BROKEN_PIPE) from None
        except SurveyError as error:
            problem = error
        except OSError as error:
            name = error.filename
            problem = SurveyError(f"{name}: {error.strerror}" if name else str(error))
            problem.file = str(name or "")
        except UnicodeEncodeError:
            problem = SurveyError("an argument is not text in the encoding of this machine")
        if ctx.meta.get(AS_JSON):
            click.echo(json.dumps({"mistakes": list(mistakes_as_json(problem))}, indent=2))
        else:
            click.echo(f"survey: {problem}", err=True)
        raise click.exceptions.Exit(1)


@click.group(cls=CommandLine)
@click.version_option(__version__)
def main() -> None:
    """Run surveys whose server never learns an answer."""


def mistakes_as_json(error: SurveyError) -> Iterator[dict[str, object]]:
    """Yield each mistake for programs: its place in words, its path if it has one, and a message.

    All commands with `json_option` print errors in this form.
    """
    mistakes, places = [("", str(error))], []
    if isinstance(error, DefinitionError):
        mistakes, places = error.mistakes, [[*place] for place in error.places]
    for (place, message), path in zip_longest(mistakes, places):
        yield {
            "file": error.file or None,
            "line": error.line,
            "place": place,
            "path": path,
            "message": message,
        }


Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def combine(*options: Option) -> Option:
    """Return one decorator that adds several options to a command, in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def json_option(meaning: str) -> Option:
    """Return the option --json, with which errors are printed as JSON too."""

    def remember(ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:
        ctx.meta[AS_JSON] = value
        return value

    return click.option("--json", "as_json", is_flag=True, callback=remember, help=meaning)


def quantity(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> quantity(1, "file"), quantity(2_000, "file")
    ('1 file', '2,000 files')
    """
    return f"{n:,} {noun if n == 1 else f'{noun}s'}"


def progress_bar(label: str, length: int) -> ProgressBar[int]:
    """Return a progress bar on standard error, hidden unless that is a terminal."""
    return click.progressbar(
        length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    )


def configured_settings() -> Settings:
    """Read the settings from the environment."""
    from survey.settings import Settings

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
