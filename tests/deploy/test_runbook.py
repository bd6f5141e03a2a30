"""The runbook's lists are complete and its commands work."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from click import Context

from survey.cli import main
from tests.conftest import ROOT
from tests.store.databases import DirectAccess

ROW = re.compile(r"^\|[^|]*\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", re.M)


SECTIONS = [
    "When something is wrong",
    "Install",
    "Two hosts",
    "Onion address",
    "Upgrade",
    "Alerts and messages",
    "Backup and restore drill",
    "The keeper and its keys",
    "Move to PostgreSQL",
    "Rotate keys",
    "Incidents",
    "What is and is not stored",
    "Data protection",
]
"""Sections that an operator needs."""


def test_the_runbook_has_a_section_for_every_task_of_the_operator():
    text = (ROOT / "deploy/README.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([^,\n]+).*\n((?:(?!## ).*\n)+)", text, re.M))
    assert [name for name in sections if name in SECTIONS] == SECTIONS
    assert all(len(sections[name].split()) > 50 for name in SECTIONS)


def test_the_runbook_lists_every_table_and_column_of_the_database(store, settings):
    text = (ROOT / "deploy/README.md").read_text(encoding="utf-8")
    documented = {table: re.findall(r"`(\w+)`", columns) for table, columns in ROW.findall(text)}
    outside = DirectAccess(settings.database)
    tables = outside.run("SELECT name FROM sqlite_master WHERE type = 'table'")
    actual = {
        name: [row[1] for row in outside.run(f"PRAGMA table_info('{name}')")] for (name,) in tables
    }
    assert documented == actual


@pytest.fixture
def shell(tmp_path: Path):
    """Return a function that runs survey.sh with other paths and a runuser that only prints."""
    etc, bin_ = tmp_path / "etc", tmp_path / "bin"
    etc.mkdir()
    bin_.mkdir()
    (etc / "environment").write_text(
        'SURVEY_DATABASE="sqlite:////x/y.db"\nSURVEY_KEYS="/x/keys"\n#SURVEY_SECRET=\n'
    )
    (etc / "secret").write_text("hidden\n")
    script = (ROOT / "deploy/survey.sh").read_text(encoding="utf-8")
    (tmp_path / "survey").write_text(script.replace("/etc/survey", str(etc)))
    runuser = bin_ / "runuser"
    runuser.write_text(
        '#!/bin/sh\necho "$@ in $SURVEY_DATABASE, $SURVEY_KEYS with ${SURVEY_SECRET-none}"\n'
    )
    runuser.chmod(0o755)

    def run(*arguments: str, **variables: str) -> str:
        return subprocess.run(
            ["sh", str(tmp_path / "survey"), *arguments],
            env={"PATH": f"{bin_}:{os.environ['PATH']}", **variables},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    return run


def test_survey_sh_runs_commands_as_the_server_and_on_another_database_for_a_drill(shell):
    as_server = "-u survey -- /opt/survey/bin/survey"
    assert shell("migrate") == f"{as_server} migrate in sqlite:////x/y.db, /x/keys with none"
    drill = shell("check-store", "a b", SURVEY_DATABASE="sqlite:////drill.db", SURVEY_KEYS="/d")
    assert drill == f"{as_server} check-store a b in sqlite:////drill.db, /d with none"
    assert shell("config", "check").endswith(
        "config check in sqlite:////x/y.db, /x/keys with hidden"
    )


@pytest.mark.security
def test_survey_sh_gives_private_keys_only_to_commands_that_need_them(shell):
    with_keys = {
        command
        for command in main.list_commands(Context(main))
        if shell(command).startswith("-u survey-keeper -- ")
    }
    assert with_keys == {"keeper", "release", "restore", "copy-store"}
