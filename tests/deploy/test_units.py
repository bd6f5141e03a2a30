"""The units that systemd runs are right, and may do little; the backup script does what it says."""

from __future__ import annotations

import http.client
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest

from survey.settings import VARIABLES, Settings
from survey.store import open_store
from tests.archive.whole_store import contents
from tests.conftest import ROOT, SERVE, free_port, wait_until_up
from tests.faults.reports import new_body, send

DEPLOY = ROOT / "deploy"
UNITS = sorted(path.name for path in DEPLOY.glob("*.service"))
TIMERS = sorted(path.name for path in DEPLOY.glob("*.timer"))
MOST_EXPOSED = 2.0
JOBS_EXPOSED = 1.1

HARDENED = """
User=survey
Group=survey
UMask=0077
StateDirectory=survey
StateDirectoryMode=0700
LimitCORE=0
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectProc=invisible
ProcSubset=pid
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
IPAddressDeny=any
IPAddressAllow=localhost
"""
"""What every service says of its rights. Several of these together weigh little in the score."""

MORE_HARDENED = {
    "survey.service": "AmbientCapabilities=\nPrivateMounts=yes",
    "survey-backup.service": "MemoryDenyWriteExecute=yes",
    "survey-release.service": "MemoryDenyWriteExecute=yes",
    "survey-retention.service": "MemoryDenyWriteExecute=yes",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A root directory with the units where the runbook puts them."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on the path (apt-get install systemd)")
    root = tmp_path_factory.mktemp("root")
    units = root / "etc/systemd/system"
    shutil.copytree("/lib/systemd/system", root / "lib/systemd/system", symlinks=True)
    units.mkdir(parents=True)
    for path in (*DEPLOY.glob("*.service"), *DEPLOY.glob("*.timer")):
        shutil.copy(path, units)
    shutil.copytree(DEPLOY / "survey-.service.d", units / "survey-.service.d")
    for program in ("opt/survey/bin/survey", "opt/survey/bin/survey-backup", "bin/kill"):
        (root / program).parent.mkdir(parents=True, exist_ok=True)
        (root / program).write_text("#!/bin/sh\n")
        (root / program).chmod(0o755)
    return root


def analyzed(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", f"--root={root}", "--no-pager", *arguments],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("unit", [*UNITS, *TIMERS])
def test_every_unit_and_timer_is_verified(installed, unit):
    done = analyzed(installed, "verify", unit)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "survey" in line]
    assert ours == []
    assert done.returncode == 0, done.stderr


@pytest.mark.security
@pytest.mark.parametrize("unit", UNITS)
def test_every_service_is_exposed_little(installed, unit):
    done = analyzed(installed, "security", "--offline=true", unit)
    exposed = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposed, done.stdout + done.stderr
    runbook = (DEPLOY / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"`survey\.service`.*systemd-analyze security` ([\d.]+)", runbook)
    assert stated
    most = float(stated[1]) if unit == "survey.service" else JOBS_EXPOSED
    assert float(exposed[1]) <= most <= MOST_EXPOSED


@pytest.mark.security
@pytest.mark.parametrize("unit", UNITS)
def test_every_service_gives_up_each_right_by_name(unit):
    said = lines_of(unit)
    wanted = f"{HARDENED.strip()}\n{MORE_HARDENED[unit]}".splitlines()
    assert [line for line in wanted if line not in said] == []
    # And nothing that comes later gives one back.
    names = {line.partition("=")[0] for line in wanted}
    assert [line for line in said if line.partition("=")[0] in names and line not in wanted] == []


def lines_of(unit: str) -> list[str]:
    """All that is said of a service, in its own file and in the one that all jobs share."""
    files = [DEPLOY / unit]
    if unit != "survey.service":
        files.append(DEPLOY / "survey-.service.d/hardened.conf")
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_job_has_its_timer_and_every_timer_its_job():
    assert {name.removesuffix(".timer") for name in TIMERS} == {
        name.removesuffix(".service") for name in UNITS if name != "survey.service"
    }


def test_the_example_documents_every_setting_with_its_default_and_only_those():
    text = (DEPLOY / "environment.example").read_text(encoding="utf-8")
    said = dict(re.findall(r"^#?(SURVEY_\w+)=(.*)$", text, re.M))
    assert set(said) == set(VARIABLES)
    defaults = Settings()
    for name, value in re.findall(r"^#(SURVEY_\w+)=(.*)$", text, re.M):
        variable = VARIABLES[name]
        holder = defaults.caps if variable.of_caps else defaults
        assert value == str(getattr(holder, variable.field))
    given = dict(re.findall(r'^(SURVEY_\w+)="?([^"\n]*)"?$', text, re.M))
    assert Settings.from_environment(given).trusted_proxies == 1


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The folder that the units start from, with the server's program under test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(DEPLOY / "backup.sh", folder / "survey-backup")
    survey = folder / "survey"
    survey.write_text(f'#!/bin/sh\nexec {sys.executable} -m survey.cli "$@"\n')
    survey.chmod(0o755)
    return folder


def test_the_backup_script_makes_one_that_restores_and_deletes_what_is_too_old(
    programs, store, settings, small, tmp_path
):
    program, survey = programs / "survey-backup", programs / "survey"
    directory = tmp_path / "backups"
    directory.mkdir()
    ages = {
        "survey-2020-01-01T0200Z.backup": 40,
        "survey-2020-01-01T0200Z.backup.sha256": 40,
        "survey-2026-01-01T0200Z.backup": 10,
    }
    for name, days in {**ages, "notes.txt": 400}.items():
        (directory / name).touch()
        then = (date.today() - timedelta(days=days)).strftime("%s")
        os.utime(directory / name, (int(then), int(then)))
    environment = {**os.environ, "SURVEY_DATABASE": settings.database, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([program, directory], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in directory.iterdir()}
    made, written = sorted(names - {"survey-2026-01-01T0200Z.backup", "notes.txt"})
    assert written == f"{made}.sha256"
    whole = ["sha256sum", "--check", "--quiet", written]
    assert subprocess.run(whole, cwd=directory).returncode == 0
    assert (directory / made).stat().st_mode & 0o777 == 0o600
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    for command in (["migrate"], ["restore", str(directory / made)], ["check-store"]):
        run = subprocess.run(
            [survey, *command],
            env={**environment, "SURVEY_DATABASE": fresh},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
    restored = open_store(fresh)
    assert contents(restored) == contents(store)
    restored.close_connections()


def calls_of(*sets: str) -> set[str]:
    """System calls of systemd's sets, all sets in them taken apart."""
    found, pending = set(), list(sets)
    while pending:
        lines = subprocess.run(
            ["systemd-analyze", "syscall-filter", pending.pop()], capture_output=True, text=True
        ).stdout.splitlines()[1:]
        for name in (line.strip() for line in lines):
            if name.startswith("@"):
                pending.append(name)
            elif name and not name.startswith("#"):
                found.add(name)
    return found


def refusing(unit: str, log: Path) -> list[str]:
    """What runs a command as the unit lets it: calls outside its filter do what it says they do."""
    said = "\n".join(lines_of(unit))
    filters = re.findall(r"^SystemCallFilter=(~?)(.*)$", said, re.M)
    allowed = [name for sign, sets in filters if not sign for name in sets.split()]
    refused = [name for sign, sets in filters if sign for name in sets.split()]
    assert allowed
    assert refused
    calls = calls_of("@known") - calls_of(*allowed) | calls_of(*refused)
    # Only root's files are given to whom the database belongs; the unit's user is another.
    calls -= {"chown", "fchown", "fchownat", "lchown"} if os.geteuid() == 0 else set()
    error = re.search(r"^SystemCallErrorNumber=(\w+)$", said, re.M)
    does = f"error={error[1]}" if error else "signal=SIGSYS"
    named = ",".join(f"?{name}" for name in sorted(calls))
    return ["strace", "-f", "-o", str(log), "-e", f"inject={named}:{does}"]


@pytest.mark.web
def test_the_server_and_its_charts_work_without_the_calls_that_the_unit_refuses(
    installed, settings, small, tmp_path
):
    port, log = free_port(), tmp_path / "refused"
    run = refusing("survey.service", log)
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "SURVEY_SECRET": settings.secret,
        "SURVEY_DATABASE": settings.database,
        "SURVEY_PUBLIC_URL": url,
    }
    process = subprocess.Popen(
        [*run, *SERVE, "--port", str(port)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until_up(url, process)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            assert send(connection, small, new_body(small)).status == 201
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=90)
    plan = ["plan", "--epsilon", "1", "--margin", "0.03", "--chart", str(tmp_path / "plan.svg")]
    subprocess.run([*run, *SERVE[:3], *plan], check=True)
    assert (tmp_path / "plan.svg").stat().st_size > 1_000
    assert "(INJECTED)" in log.read_text(), "no call was refused: this showed nothing"


@pytest.mark.web
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "survey.service"])
def test_every_job_does_its_work_without_the_calls_that_its_unit_refuses(
    installed, programs, settings, small, tmp_path, unit
):
    said = re.search(r"^ExecStart=(.*)$", (DEPLOY / unit).read_text(encoding="utf-8"), re.M)
    assert said
    log, directory = tmp_path / "refused", tmp_path / "backups"
    command = said[1].replace("/opt/survey/bin", str(programs))
    command = command.replace("/var/lib/survey/backups", str(directory))
    done = subprocess.run(
        [*refusing(unit, log), *shlex.split(command)],
        env={**os.environ, "SURVEY_DATABASE": settings.database, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "(INJECTED)" in log.read_text(), "no call was refused: this showed nothing"
    if "backup" in unit:
        made = sorted(path.name for path in directory.iterdir())
        assert made == [made[0], f"{made[0]}.sha256"]
