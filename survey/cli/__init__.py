"""The `survey` command: exit 0 done, 1 refused with one clear line, 2 wrong usage."""

from __future__ import annotations

import click

from survey import __version__
from survey.cli.inviting import invite, link
from survey.cli.operating import config, migrate, release, retention, serve
from survey.cli.planning import plan
from survey.cli.proving import audit
from survey.cli.publishing import check, close, publish
from survey.cli.reading import estimate, export
from survey.cli.researchers import researcher
from survey.cli.scheduling import schedule_survey
from survey.cli.simulating import simulate_survey
from survey.cli.stores import backup_store, check_store, copy_stores, restore_store
from survey.cli.trying import run_demo


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
