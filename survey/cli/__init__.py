"""The `survey` command: exit 0 done, 1 refused with one clear line, 2 wrong usage."""

from __future__ import annotations

import click

from survey.cli.operation import (
    audit,
    backup_store,
    check_store,
    config,
    copy_stores,
    migrate,
    release,
    restore_store,
    retention,
    run_demo,
    serve,
)
from survey.cli.planning import plan, simulate_survey
from survey.cli.researchers import researcher
from survey.cli.results import estimate, export
from survey.cli.surveys import check, close, invite, link, publish, schedule_survey
from survey.version import __version__


@click.group()
@click.version_option(__version__)
def main() -> None:
    """Surveys whose server never learns an answer."""


for command in (
    *(run_demo, plan, check, publish, schedule_survey, close, invite, link, researcher),
    *(estimate, export, simulate_survey, audit),
    *(config, migrate, serve, release, retention),
    *(backup_store, restore_store, check_store, copy_stores),
):
    main.add_command(command)
