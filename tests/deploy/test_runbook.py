"""The runbook's lists are complete and its commands work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyotp
import pytest
from click import Context

from survey.cli import main
from survey.research.two_factor import SecondFactors
from tests.conftest import ROOT, SECRET
from tests.deploy.test_failures import write_program
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


def test_the_documented_rotation_of_the_secret_keeps_the_codes_of_authenticator_apps(
    shell, tmp_path, settings, store
):
    text = (ROOT / "deploy/README.md").read_text(encoding="utf-8")
    block = re.search(r"\*\*Rotate the secret\.\*\*.*\n(?:.+\n)*\n((?: {4}.+\n)+)", text)
    assert block
    etc = tmp_path / "etc"
    former, app = SECRET[::-1], pyotp.random_base32()
    ada = store.add_researcher("ada@example.org", "hash")
    SecondFactors(store, former).set_up(ada.key, app, 0)
    (etc / "secret").write_text(f"{former}\n")
    (etc / "environment").write_text(f'SURVEY_DATABASE="{settings.database}"\n')
    write_program(tmp_path / "bin/systemctl", f"echo $@ >{tmp_path}/log")
    write_program(tmp_path / "bin/survey", f'exec sh {tmp_path}/survey "$@"')
    # The server's user cannot read root's directory.
    program = (
        f'shift 4; case "$*" in *{etc}*) exit 1; esac; exec {sys.executable} -m survey.cli "$@"'
    )
    write_program(tmp_path / "bin/runuser", program)
    process = subprocess.run(
        ["sh", "-euc", block[1].replace("/etc/survey", str(etc))],
        env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("encrypted 1 secret ")
    assert (tmp_path / "log").read_text() == "restart survey\n"
    assert sorted(path.name for path in etc.iterdir()) == ["environment", "secret"]
    assert (etc / "secret").stat().st_mode & 0o077 == 0
    now = time.time()
    present = SecondFactors(store, (etc / "secret").read_text().strip())
    assert present.use_code(ada, pyotp.TOTP(app).at(now), now)


@pytest.mark.security
def test_survey_sh_gives_private_keys_only_to_commands_that_need_them(shell):
    with_keys = {
        command
        for command in main.list_commands(Context(main))
        if shell(command).startswith("-u survey-keeper -- ")
    }
    assert with_keys == {"keeper", "release", "restore", "copy-store"}
