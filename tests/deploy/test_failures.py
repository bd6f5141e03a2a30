"""Units that fail are restarted and reported; a failed backup deletes nothing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from email import message_from_bytes
from pathlib import Path

import pytest
from aiosmtpd.controller import Controller

from tests.conftest import free_port
from tests.deploy.test_units import DAEMONS, DEPLOY, UNITS

REPORT = "survey-failure@.service"


def values(unit: str, name: str) -> list[str]:
    """Return the values of a setting in a unit's own file."""
    return re.findall(rf"^{name}=(.*)$", (DEPLOY / unit).read_text(encoding="utf-8"), re.M)


def write_program(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_every_unit_reports_its_failure_at_most_once_an_hour():
    for unit in UNITS:
        expected = [] if unit == REPORT else ["survey-failure@%N.service"]
        assert values(unit, "OnFailure") == expected, unit
    limit = [values(REPORT, f"StartLimit{name}") for name in ("IntervalSec", "Burst")]
    assert limit == [["1h"], ["1"]]


def test_server_and_keeper_are_always_restarted_and_each_failure_is_reported(tmp_path):
    log = tmp_path / "log"
    write_program(tmp_path / "bin/systemctl", f'echo "$@" >>{log}')
    for unit in DAEMONS:
        retries = [
            values(unit, name) for name in ("Restart", "RestartSec", "StartLimitIntervalSec")
        ]
        assert retries == [["always"], ["5"], ["0"]], unit
        (command,) = values(unit, "ExecStopPost")
        # systemd replaces %N and $$, and "+" keeps root's rights.
        name = unit.removesuffix(".service")
        arguments = shlex.split(command.removeprefix("+").replace("%N", name).replace("$$", "$"))
        for result in ("success", "exit-code", "oom-kill"):
            log.unlink(missing_ok=True)
            environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "SERVICE_RESULT": result}
            assert subprocess.run(arguments, env=environment).returncode == 0
            reports = log.read_text().splitlines() if log.exists() else []
            start = f"start --no-block survey-failure@{name}.service"
            assert reports == ([] if result == "success" else [start])


@pytest.mark.security
def test_the_secret_is_passed_to_the_programs_that_need_it_and_to_no_other():
    for unit in UNITS:
        is_needed = bool({"serve", "notify"} & set(values(unit, "ExecStart")[0].split()))
        credentials = ["secret:/etc/survey/secret"] if is_needed else []
        assert values(unit, "LoadCredential") == credentials, unit
        files = [value for value in values(unit, "Environment") if "SECRET" in value]
        assert files == (["SURVEY_SECRET_FILE=%d/secret"] if is_needed else []), unit


class Mailbox:
    """A mail server's handler that keeps all messages, and rejects bare line feeds as many do."""

    def __init__(self) -> None:
        self.messages: list[tuple[list[str], bytes]] = []

    async def handle_DATA(self, server, session, envelope) -> str:  # noqa: N802  the library's name
        if re.search(rb"(?<!\r)\n", envelope.original_content):
            return "550 bare line feeds are not allowed"
        self.messages.append((envelope.rcpt_tos, envelope.original_content))
        return "250 OK"


def test_a_failure_is_logged_and_sent_to_the_operator(tmp_path):
    command = ["sh", DEPLOY / "failure.sh", "survey-backup"]
    silent = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True)
    assert silent.returncode == 0, silent.stderr
    assert silent.stdout.startswith(b"<2>survey-backup failed")
    mailbox = Mailbox()
    controller = Controller(mailbox, hostname="127.0.0.1", port=free_port())
    controller.start()
    try:
        environment = {
            "PATH": os.environ["PATH"],
            "SURVEY_SMTP": f"smtp://127.0.0.1:{controller.port}",
            "SURVEY_MAIL_FROM": "surveys@example.org",
            "OPERATOR_MAIL": "operator@example.org",
        }
        sent = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (sent.returncode, sent.stderr) == (0, "")
        (tmp_path / "smtp").write_text(environment.pop("SURVEY_SMTP") + "\n")
        environment["SURVEY_SMTP_FILE"] = str(tmp_path / "smtp")
        assert subprocess.run(command, env=environment).returncode == 0
        del environment["SURVEY_SMTP_FILE"]
        (recipients, content), second = mailbox.messages
        assert second[0] == recipients
        # A server elsewhere must encrypt.
        environment["SURVEY_SMTP"] = f"smtp://0.0.0.0:{controller.port}"
        plain = subprocess.run(command, env=environment, capture_output=True, text=True)
    finally:
        controller.stop()
    message = message_from_bytes(content)
    assert recipients == ["operator@example.org"]
    assert message["Subject"].startswith("survey-backup failed on ")
    assert "journalctl -u survey-backup" in message.get_payload()
    assert plain.returncode != 0
    assert len(mailbox.messages) == 2


def test_no_part_of_a_message_is_sent_if_the_disk_is_full(tmp_path):
    write_program(tmp_path / "bin/cat", "echo half; exit 1")
    write_program(tmp_path / "bin/curl", f"touch {tmp_path}/sent")
    environment = {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "SURVEY_SMTP": "smtp://127.0.0.1:25",
        "SURVEY_MAIL_FROM": "surveys@example.org",
        "OPERATOR_MAIL": "operator@example.org",
    }
    process = subprocess.run(["sh", DEPLOY / "failure.sh", "survey-backup"], env=environment)
    assert process.returncode != 0
    assert not (tmp_path / "sent").exists()


@pytest.mark.parametrize("broken", ["survey", "sha256sum"])
def test_a_backup_that_fails_exits_with_an_error_and_deletes_no_old_one(tmp_path, broken):
    for name in ("survey", "sha256sum"):
        write_program(tmp_path / "bin" / name, "exit 1" if name == broken else 'touch "$2"')
    shutil.copy(DEPLOY / "backup.sh", tmp_path / "bin/survey-backup")
    backups = tmp_path / "backups"
    backups.mkdir()
    old = backups / "survey-2020-01-01T0200Z.backup"
    old.touch()
    os.utime(old, (time.time() - 400 * 86_400,) * 2)
    process = subprocess.run(
        [tmp_path / "bin/survey-backup", backups],
        env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
    )
    assert process.returncode != 0
    assert old.exists()
