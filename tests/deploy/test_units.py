"""The systemd units are valid and sandboxed; the backup script works."""

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
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink

from survey.settings import VARIABLES, Settings
from survey.store import ReleaseNotice, open_store
from tests.archive.whole_store import contents
from tests.conftest import ROOT, SERVE, free_port, wait_until_up
from tests.faults.reports import new_report, send
from tests.store.reports import add, publish_pending, random_reports

DEPLOY = ROOT / "deploy"
UNITS = sorted(path.name for path in DEPLOY.glob("*.service"))
TIMERS = sorted(path.name for path in DEPLOY.glob("*.timer"))
FILES = {
    path.name: path
    for path in sorted(DEPLOY.rglob("survey*.*"))
    if path.suffix in (".service", ".timer")
}
"""All unit files, including those of the archive, which is optional."""
SERVICES = [name for name in FILES if name.endswith(".service")]
MAX_EXPOSURE = 2.0
MAX_JOB_EXPOSURE = 1.1

HARDENING = """
UMask=0077
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
"""Restrictions of every service. systemd's score alone would not notice if several were missing."""

KEYLESS = """
User=survey
Group=survey
StateDirectory=survey
StateDirectoryMode=2770
InaccessiblePaths=-/var/lib/survey-keys
"""
"""The database's directory belongs to the group that keeper and server share; the keys do not."""

JOB = f"{KEYLESS}MemoryDenyWriteExecute=yes"

UNIT_HARDENING = {
    "survey.service": f"{KEYLESS}AmbientCapabilities=\nPrivateMounts=yes",
    "survey-backup.service": JOB,
    "survey-retention.service": JOB,
    "survey-notify.service": JOB,
    "survey-keeper.service": """
User=survey-keeper
Group=survey
StateDirectory=survey-keys
StateDirectoryMode=0700
ReadWritePaths=-/var/lib/survey
AmbientCapabilities=
PrivateMounts=yes
MemoryDenyWriteExecute=yes
""",
    "survey-failure@.service": """
User=survey
Group=survey
InaccessiblePaths=-/var/lib/survey-keys -/var/lib/survey
MemoryDenyWriteExecute=yes
""",
    "survey-archive.service": """
User=postgres
Group=postgres
InaccessiblePaths=-/var/lib/survey-keys
ReadWritePaths=/var/lib/survey-archive
MemoryDenyWriteExecute=yes
""",
}

DAEMONS = ("survey.service", "survey-keeper.service")
JOBS = [unit for unit in UNITS if unit not in (*DAEMONS, "survey-failure@.service")]


PROGRAMS = (
    *("opt/survey/bin/survey", "opt/survey/bin/survey-backup", "opt/survey/bin/survey-failure"),
    *("bin/kill", "bin/sh"),
)
"""The programs that the units start."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Return a root directory with the units installed as in the runbook."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on the path (apt-get install systemd)")
    root = tmp_path_factory.mktemp("root")
    units = root / "etc/systemd/system"
    shutil.copytree("/lib/systemd/system", root / "lib/systemd/system", symlinks=True)
    units.mkdir(parents=True)
    for path in FILES.values():
        shutil.copy(path, units)
    shutil.copytree(DEPLOY / "survey-.service.d", units / "survey-.service.d")
    for program in PROGRAMS:
        (root / program).parent.mkdir(parents=True, exist_ok=True)
        (root / program).write_text("#!/bin/sh\n")
        (root / program).chmod(0o755)
    return root


def analyze(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", f"--root={root}", "--no-pager", *arguments],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("unit", FILES)
def test_systemd_accepts_every_unit_and_timer(installed, unit):
    process = analyze(installed, "verify", unit.replace("@", "@survey"))
    messages = [line for line in (process.stdout + process.stderr).splitlines() if "survey" in line]
    assert messages == []
    assert process.returncode == 0, process.stderr


@pytest.mark.security
@pytest.mark.parametrize("unit", SERVICES)
def test_every_service_has_a_low_exposure_score(installed, unit):
    process = analyze(installed, "security", "--offline=true", unit.replace("@", "@survey"))
    exposure = re.search(r"exposure level for \S+: ([\d.]+)", process.stdout)
    assert exposure, process.stdout + process.stderr
    runbook = (DEPLOY / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"`survey\.service`.*systemd-analyze security` ([\d.]+)", runbook)
    assert stated
    maximum = float(stated[1]) if unit == "survey.service" else MAX_JOB_EXPOSURE
    assert float(exposure[1]) <= maximum <= MAX_EXPOSURE


@pytest.mark.security
@pytest.mark.parametrize("unit", SERVICES)
def test_every_service_names_each_restriction(unit):
    lines = lines_of(unit)
    required = f"{HARDENING.strip()}\n{UNIT_HARDENING[unit].strip()}".splitlines()
    assert [line for line in required if line not in lines] == []
    # No other line may lift a restriction.
    names = {line.partition("=")[0] for line in required}
    assert [
        line for line in lines if line.partition("=")[0] in names and line not in required
    ] == []


def lines_of(unit: str) -> list[str]:
    """Return the lines of a service's own file and of the file that keeper and jobs share."""
    files = [FILES[unit]]
    if unit != "survey.service":
        files.append(DEPLOY / "survey-.service.d/hardened.conf")
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_job_has_a_timer_and_every_timer_a_job():
    assert {name.removesuffix(".timer") for name in TIMERS} == {
        name.removesuffix(".service") for name in JOBS
    }


def test_the_example_documents_every_setting_with_its_default_and_only_those():
    text = (DEPLOY / "environment.example").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^#?(SURVEY_\w+)=(.*)$", text, re.M))
    assert set(documented) == set(VARIABLES)
    defaults = Settings()
    for name, value in re.findall(r"^#(SURVEY_\w+)=(.*)$", text, re.M):
        variable = VARIABLES[name]
        holder = defaults.caps if variable.of_caps else defaults
        assert value == str(getattr(holder, variable.field))
    environment = dict(re.findall(r'^(SURVEY_\w+)="?([^"\n]*)"?$', text, re.M))
    assert Settings.from_environment(environment).trusted_proxies == 1


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a directory with the programs that the units run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(DEPLOY / "backup.sh", folder / "survey-backup")
    survey = folder / "survey"
    survey.write_text(f'#!/bin/sh\nexec {sys.executable} -m survey.cli "$@"\n')
    survey.chmod(0o755)
    return folder


@pytest.mark.web
def test_the_backup_script_writes_a_restorable_backup_and_deletes_old_ones(
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
        timestamp = (date.today() - timedelta(days=days)).strftime("%s")
        os.utime(directory / name, (int(timestamp), int(timestamp)))
    environment = {
        **os.environ,
        "SURVEY_DATABASE": settings.database,
        "SURVEY_KEYS": settings.keys,
        "PYTHONPATH": str(ROOT),
    }
    process = subprocess.run([program, directory], env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    names = {path.name for path in directory.iterdir()}
    backup, checksum = sorted(names - {"survey-2026-01-01T0200Z.backup", "notes.txt"})
    assert checksum == f"{backup}.sha256"
    verification = ["sha256sum", "--check", "--quiet", checksum]
    assert subprocess.run(verification, cwd=directory).returncode == 0
    assert (directory / backup).stat().st_mode & 0o777 == 0o640
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    for command in (["migrate"], ["restore", str(directory / backup)], ["check-store"]):
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
    """Return the system calls in systemd's sets, including nested sets."""
    calls, pending = set(), list(sets)
    while pending:
        lines = subprocess.run(
            ["systemd-analyze", "syscall-filter", pending.pop()], capture_output=True, text=True
        ).stdout.splitlines()[1:]
        for name in (line.strip() for line in lines):
            if name.startswith("@"):
                pending.append(name)
            elif name and not name.startswith("#"):
                calls.add(name)
    return calls


def sandbox(unit: str, log: Path) -> list[str]:
    """Return an strace command that fails the system calls which the unit's filter denies."""
    text = "\n".join(lines_of(unit))
    filters = re.findall(r"^SystemCallFilter=(~?)(.*)$", text, re.M)
    allowed = [name for sign, sets in filters if not sign for name in sets.split()]
    denied = [name for sign, sets in filters if sign for name in sets.split()]
    assert allowed
    assert denied
    calls = calls_of("@known") - calls_of(*allowed) | calls_of(*denied)
    # As root, SQLite changes the owner of its files; as the unit's user it does not.
    calls -= {"chown", "fchown", "fchownat", "lchown"} if os.geteuid() == 0 else set()
    error = re.search(r"^SystemCallErrorNumber=(\w+)$", text, re.M)
    effect = f"error={error[1]}" if error else "signal=SIGSYS"
    names = ",".join(f"?{name}" for name in sorted(calls))
    return ["strace", "-f", "-o", str(log), "-e", f"inject={names}:{effect}"]


@pytest.mark.web
def test_the_server_and_its_charts_work_without_the_system_calls_that_the_unit_denies(
    installed, settings, small, tmp_path
):
    port, log = free_port(), tmp_path / "calls"
    run = sandbox("survey.service", log)
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "SURVEY_SECRET": settings.secret,
        "SURVEY_DATABASE": settings.database,
        "SURVEY_PUBLIC_URL": url,
    }
    process = subprocess.Popen(
        [*run, *SERVE, "--port", str(port), "--without-keeper"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until_up(url, process)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            assert send(connection, small, new_report(small)).status == 201
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=90)
    plan = ["plan", "--epsilon", "1", "--margin", "0.03", "--chart", str(tmp_path / "plan.svg")]
    subprocess.run([*run, *SERVE[:3], *plan], check=True)
    assert (tmp_path / "plan.svg").stat().st_size > 1_000
    assert "(INJECTED)" in log.read_text(), "no call was denied, so the test is void"


@pytest.mark.web
@pytest.mark.parametrize("unit", JOBS)
def test_every_job_works_without_the_system_calls_that_its_unit_denies(
    installed, programs, settings, small, tmp_path, unit
):
    start = re.search(r"^ExecStart=(.*)$", (DEPLOY / unit).read_text(encoding="utf-8"), re.M)
    assert start
    log, directory = tmp_path / "calls", tmp_path / "backups"
    command = start[1].replace("/opt/survey/bin", str(programs))
    command = command.replace("/var/lib/survey/backups", str(directory))
    process = subprocess.run(
        [*sandbox(unit, log), *shlex.split(command)],
        env={**os.environ, "SURVEY_DATABASE": settings.database, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    # Not every job tries such a call on its own, but the sandbox must deny it to all.
    priority = "import os; os.setpriority(os.PRIO_PROCESS, 0, 5)"
    denied = subprocess.run(
        [*sandbox(unit, log), sys.executable, "-c", priority], capture_output=True, text=True
    )
    assert "PermissionError" in denied.stderr
    assert "(INJECTED)" in log.read_text(), "no call was denied, so the test is void"
    if "backup" in unit:
        names = sorted(path.name for path in directory.iterdir())
        assert names == [names[0], f"{names[0]}.sha256"]


@pytest.mark.web
def test_messages_are_sent_without_the_system_calls_that_the_unit_denies(
    installed, settings, store, small, tmp_path
):
    ada = store.add_researcher("ada@example.org", "hash").key
    store.set_role("small", ada, "owner")
    store.add_release_notice(ReleaseNotice("small", ada))
    add(store, small, random_reports(25))
    publish_pending(store, small)
    store.close_connections()
    controller = Controller(Sink(), hostname="127.0.0.1", port=free_port())
    controller.start()
    (tmp_path / "smtp").write_text(f"smtp://127.0.0.1:{controller.port}\n")
    try:
        process = subprocess.run(
            [*sandbox("survey-notify.service", tmp_path / "calls"), *SERVE[:3], "notify"],
            env={
                **os.environ,
                "SURVEY_DATABASE": settings.database,
                "SURVEY_SMTP_FILE": str(tmp_path / "smtp"),
                "SURVEY_MAIL_FROM": "surveys@example.org",
            },
            capture_output=True,
            text=True,
        )
    finally:
        controller.stop()
    assert (process.stdout, process.stderr) == ("sent 1 message\n", "")
