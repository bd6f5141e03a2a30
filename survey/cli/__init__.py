"""The `survey` command. Exit status: 0 done, 1 rejected with a message, 2 wrong usage."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from survey.version import __version__

MODULES: Mapping[str, tuple[str, ...]] = {
    "surveys": ("check", "publish", "schedule", "close", "link", "invite"),
    "researchers": ("researcher",),
    "results": ("estimate", "export"),
    "planning": ("plan", "simulate"),
    "operation": (
        *("config", "migrate", "serve", "release", "retention"),
        *("backup", "restore", "check-store", "copy-store", "audit", "demo"),
    ),
}
"""The commands of each module of this package; a module is imported when its command runs."""

BROKEN_PIPE = 141
"""Exit status after a closed pipe, as for a process that the signal SIGPIPE ended."""


class CommandLine(click.Group):
    """The commands of `MODULES`, imported on first use: `survey --version` starts at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands in alphabetical order."""
        return sorted(name for names in MODULES.values() for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command by its name; return None if there is no such command."""
        for module, names in MODULES.items():
            if cmd_name in names:
                commands = importlib.import_module(f"survey.cli.{module}")
                command: click.Command = getattr(commands, cmd_name.replace("-", "_"))
                return command
        return None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reject NUL characters, which no file name, address or database accepts."""
        for argument in args:
            if "\0" in argument:
                raise click.UsageError(f"{argument!r} contains a NUL character; remove it")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command and flush its output; end silently if the reader closed the pipe."""
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
            ctx.exit(BROKEN_PIPE)


@click.group(cls=CommandLine)
@click.version_option(__version__)
def main() -> None:
    """Run surveys whose server never learns an answer."""
