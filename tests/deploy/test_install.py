"""install.sh prints each command, installs everything that the units need, and can be repeated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from survey.settings import Settings
from tests.deploy.test_failures import values, write_program
from tests.deploy.test_units import DAEMONS, DEPLOY, TIMERS, UNITS

ARGUMENTS = ["survey.whl", "polls.example.net", "staff.example.net", "operator@example.net"]
CHANGED = ("/etc", "/opt", "/var/lib", "/usr/local")
"""The places that the script changes; the test replaces them."""

CERTBOT = """
live={machine}/etc/letsencrypt/live/survey
if [ ! -e $live ]; then
    mkdir -p $live
    echo issued >$live/fullchain.pem
    echo key >$live/privkey.pem
    while [ "$1" != --deploy-hook ]; do shift; done
    sh -euc "$2"
fi
"""
"""A stand-in for certbot, which runs the hook only if it issues a certificate."""

INSTALL = f"""#!{sys.executable}
import os, sys
arguments = sys.argv[1:]
for option in ("-o", "-g"):
    if option in arguments:
        index = arguments.index(option)
        del arguments[index : index + 2]
os.execv("/usr/bin/install", ["install", *arguments])
"""
"""`install` without owners, because the users do not exist here."""


@pytest.fixture
def machine(tmp_path) -> Path:
    """Return the root of an empty machine, whose programs only write their arguments to a log."""
    for name in (
        "etc/nginx",
        "etc/systemd/system",
        "usr/local/bin",
        "usr/local/sbin",
        "var/lib",
        "bin",
    ):
        (tmp_path / name).mkdir(parents=True)
    log = f'echo "$(basename "$0") $@" >>{tmp_path}/log'
    for name in ("apt-get", "useradd", "systemctl", "nginx", "runuser"):
        write_program(tmp_path / "bin" / name, log)
    write_program(tmp_path / "bin/certbot", log + CERTBOT.format(machine=tmp_path))
    write_program(tmp_path / "bin/id", "exit 1")
    python = f'if [ "$1" = -m ]; then {log}; else exec {sys.executable} "$@"; fi'
    write_program(tmp_path / "bin/python3", python)
    (tmp_path / "opt/survey/bin").mkdir(parents=True)
    write_program(tmp_path / "opt/survey/bin/pip", log)
    (tmp_path / "bin/install").write_text(INSTALL)
    (tmp_path / "bin/install").chmod(0o755)
    return tmp_path


def install(machine: Path, *options: str, umask: int = 0o077) -> str:
    """Run the script and return what it prints."""
    process = run_script(machine, *options, umask=umask)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def run_script(
    machine: Path, *options: str, umask: int = 0o077
) -> subprocess.CompletedProcess[str]:
    """Run the script, and survey.sh, with other places."""
    deploy = machine / "deploy"
    if not deploy.exists():
        deploy.mkdir()
        for path in DEPLOY.iterdir():
            target = deploy / path.name
            if path.name in ("install.sh", "survey.sh"):
                text = path.read_text(encoding="utf-8")
                text = re.sub(rf"(?<![\w.])({'|'.join(CHANGED)})/", rf"{machine}\1/", text)
                target.write_text(text)
            else:
                target.symlink_to(path)
    return subprocess.run(
        ["sh", deploy / "install.sh", *options, *ARGUMENTS],
        env={"PATH": f"{machine}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        umask=umask,
    )


def test_a_dry_run_prints_all_commands_and_changes_nothing(machine):
    before = {path for path in machine.rglob("*") if path.name != "deploy"}
    dry = install(machine, "--dry-run")
    after = {path for path in machine.rglob("*") if "deploy" not in str(path.relative_to(machine))}
    assert after == before
    commands = [line for line in dry.splitlines() if line.startswith("+ ")]
    real = [line for line in install(machine).splitlines() if line.startswith("+ ")]
    assert commands == real


def test_the_units_find_their_programs_and_settings_and_are_started(machine):
    install(machine)
    units = machine / "etc/systemd/system"
    assert {path.name for path in units.glob("survey*.*") if path.is_file()} == {*UNITS, *TIMERS}
    assert (units / "survey-.service.d/hardened.conf").exists()
    programs = {program.split()[0] for unit in UNITS for program in values(unit, "ExecStart")}
    # The wheel brings the first one.
    for program in programs - {"/opt/survey/bin/survey"}:
        assert os.access(f"{machine}{program}", os.X_OK), program
    text = (machine / "etc/survey/environment").read_text(encoding="utf-8")
    environment = dict(re.findall(r'^(SURVEY_\w+)="?([^"\n]*)"?$', text, re.M))
    settings = Settings.from_environment(environment)
    assert settings.public_url == "https://polls.example.net"
    assert settings.research_url == "https://staff.example.net"
    nginx = (machine / "etc/nginx/nginx.conf").read_text(encoding="utf-8")
    assert "example.org" not in nginx
    log = (machine / "log").read_text().splitlines()
    (enabled,) = [line for line in log if line.startswith("systemctl enable --now ")]
    names = {unit.removesuffix(".service") for unit in DAEMONS} | set(TIMERS)
    assert set(enabled.split()[3:]) == names
    packages = [line for line in log if line.startswith("apt-get")]
    assert packages[0] == "apt-get update"
    assert packages[1].startswith("apt-get install -y certbot")
    # The mask of root's shell hides nothing from the users of the units.
    hidden = [
        path
        for folder in ("opt", "usr", "etc/systemd", "var/lib/survey-acme")
        for path in (machine / folder).rglob("*")
        if path.stat().st_mode & 0o004 == 0
    ]
    assert hidden == []
    assert log.index(enabled) > log.index(
        "runuser -u survey -- " + f"{machine}/opt/survey/bin/survey migrate"
    )
    (certbot,) = [line for line in log if line.startswith("certbot ")]
    assert "-d polls.example.net -d staff.example.net" in certbot
    assert not any(line.startswith("systemctl stop") for line in log)


def test_a_second_run_keeps_secret_settings_and_certificate(machine):
    install(machine, umask=0)
    assert (machine / "etc/nginx/tls/privkey.pem").stat().st_mode & 0o077 == 0
    kept = ("etc/survey/secret", "etc/survey/environment")
    contents = []
    for name in kept:
        file = machine / name
        assert file.stat().st_mode & 0o077 == 0, name
        file.write_bytes(file.read_bytes() + b"# changed\n")
        contents.append(file.read_bytes())
    certificate = machine / "etc/letsencrypt/live/survey/fullchain.pem"
    certificate.write_text("renewed\n")
    install(machine)
    assert [(machine / name).read_bytes() for name in kept] == contents
    assert certificate.read_text() == "renewed\n"


def test_a_second_run_stops_server_keeper_and_jobs_while_it_replaces_the_program(machine):
    install(machine)
    (machine / "log").unlink()
    # `survey migrate` refuses a database that a running server uses.
    install(machine)
    log = (machine / "log").read_text().splitlines()
    (stop,) = [line for line in log if line.startswith("systemctl stop ")]
    (start,) = [line for line in log if line.startswith("systemctl enable --now ")]
    assert set(stop.split()[2:]) == set(start.split()[3:])
    changes = [index for index, line in enumerate(log) if re.match(r"python3|pip|runuser", line)]
    assert len(changes) == 5
    assert log.index(stop) < changes[0]
    assert changes[-1] < log.index(start)


def test_nginx_gets_a_certificate_that_certbot_already_has(machine):
    live = machine / "etc/letsencrypt/live/survey"
    live.mkdir(parents=True)
    for name in ("fullchain.pem", "privkey.pem"):
        (live / name).write_text(f"restored {name}")
    install(machine)
    for path in live.iterdir():
        assert (machine / "etc/nginx/tls" / path.name).read_text() == path.read_text()
    assert (machine / "log").read_text().splitlines()[-1] == "systemctl reload nginx"


def test_the_option_of_an_archive_adds_steps_and_its_unit_is_sandboxed_as_a_job(machine):
    (machine / "etc/postgresql/15/main/conf.d").mkdir(parents=True)
    use_postgresql(machine)
    plain = install(machine, "--dry-run")
    assert "survey-archive" not in plain
    printed = install(machine, "--archive")
    assert f"{machine}/var/lib/survey-archive is not on another disk" in printed
    log = (machine / "log").read_text().splitlines()
    restart, first = (
        log.index("systemctl restart postgresql"),
        log.index("systemctl start survey-archive"),
    )
    assert "apt-get install -y postgresql" in log[:restart]
    assert restart < first
    for path in (
        "etc/postgresql/15/main/conf.d/survey-archive.conf",
        "usr/local/bin/survey-archive",
    ):
        assert (machine / path).exists(), path
    assert (machine / "var/lib/survey-archive/wal").stat().st_mode & 0o777 == 0o700
    # systemd adds survey-.service.d/hardened.conf to every unit with such a name.
    unit = (machine / "etc/systemd/system/survey-archive.service").read_text(encoding="utf-8")
    for line in (
        "User=postgres",
        "InaccessiblePaths=-/var/lib/survey-keys",
        "OnFailure=",
        "RequiresMountsFor=/var/lib/survey-archive",
    ):
        assert line in unit


def use_postgresql(machine: Path) -> None:
    """Set a database on PostgreSQL, as after the runbook's move."""
    (machine / "etc/survey").mkdir()
    text = 'SURVEY_DATABASE="postgresql://survey@localhost/survey"\n'
    (machine / "etc/survey/environment").write_text(text)


@pytest.mark.parametrize("is_installed", [False, True])
def test_an_archive_is_refused_before_any_step_if_the_database_is_not_postgresql(
    machine, is_installed
):
    if is_installed:
        install(machine)
    refused = run_script(machine, "--archive")
    # Every step prints its name.
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "SURVEY_DATABASE" in refused.stderr
    assert "Move to PostgreSQL" in refused.stderr


def test_invalid_arguments_are_reported_before_any_step_runs():
    for position, value in ((1, "https://a.example"), (2, "a;b"), (3, "nobody")):
        arguments = [*ARGUMENTS[:position], value, *ARGUMENTS[position + 1 :]]
        process = subprocess.run(
            ["sh", DEPLOY / "install.sh", "--dry-run", *arguments], capture_output=True, text=True
        )
        assert (process.returncode, process.stdout) == (2, "")
        assert value in process.stderr
