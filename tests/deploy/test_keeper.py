"""The keeper as a separate unit: another user than the server's, and fail-over to a host."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from survey.archive import check
from survey.collect.publication import close
from survey.settings import Settings
from survey.store import PublishedSurvey, Store, StoredReport, find_survey, open_store
from tests.conftest import (
    ROOT,
    SECRET,
    SERVE,
    SMALL,
    TODAY,
    free_port,
    long_unless,
    wait_until,
    wait_until_up,
)
from tests.deploy.test_units import sandbox
from tests.faults.reports import new_report, send
from tests.store.databases import KINDS
from tests.store.reports import add, random_reports

pytestmark = pytest.mark.web

SURVEY = SERVE[:3]
RELEASE_SECONDS = 1


def environment(database: str, keys: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SURVEY_SECRET": SECRET,
        "SURVEY_DATABASE": database,
        "SURVEY_KEYS": str(keys),
        "SURVEY_RELEASE_EVERY": str(RELEASE_SECONDS),
    }


# -- two users


class Users(NamedTuple):
    """The user ids of the server and the keeper, and their common group."""

    server: int
    keeper: int
    group: int

    @property
    def are_distinct(self) -> bool:
        return self.server != self.keeper


def installed_users() -> Users:
    """Return ids that only this test uses; without root's rights, this user's own ones."""
    others_may_read = all(
        folder.stat().st_mode & stat.S_IXOTH
        for path in (ROOT, Path(sys.prefix), Path(sys.executable).resolve())
        for folder in (path, *path.parents)
    )
    if os.geteuid() == 0 and others_may_read:
        return Users(51_001, 51_002, 51_001)
    return Users(os.geteuid(), os.geteuid(), os.getegid())


class Installation:
    """The directories of an instance with an SQLite database, as the runbook creates them."""

    def __init__(self, directory: Path) -> None:
        self.users = installed_users()
        self.state, self.keys = directory / "survey", directory / "survey-keys"
        directory.chmod(0o755)
        for path, user, mode in (
            (self.state, self.users.server, 0o2770),
            (self.keys, self.users.keeper, 0o700),
        ):
            path.mkdir()
            os.chown(path, user, self.users.group)
            path.chmod(mode)
        self.database = f"sqlite:///{self.state / 'survey.db'}"

    @property
    def files(self) -> list[Path]:
        """The files of the database."""
        return list(self.state.glob("survey.db*"))

    def key_modes(self) -> set[int]:
        """Return the modes of all keys, at a moment when the keeper deletes none."""
        while True:
            with suppress(FileNotFoundError):
                return {mode_of(key) for key in self.keys.glob("*.key")}

    def start(
        self, user: int, command: list[str], variables: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        identity = {"user": user, "group": self.users.group, "extra_groups": []}
        return subprocess.Popen(
            command,
            env=environment(self.database, self.keys) | (variables or {}),
            cwd=self.state if user == self.users.server else self.keys,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            umask=0o077,
            start_new_session=True,
            **(identity if self.users.are_distinct else {}),
        )

    def run(self, user: int, *arguments: str) -> str:
        process = self.start(user, [*SURVEY, *arguments])
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        return output


@pytest.fixture
def installation() -> Iterator[Installation]:
    # Not in pytest's directories, which only their owner may enter.
    with TemporaryDirectory(prefix="survey-users-") as directory:
        yield Installation(Path(directory))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def stopped_at_end(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        # With strace, which ignores the signal; its child does not.
        os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output


@pytest.mark.security
def test_server_and_keeper_share_a_database_as_two_users_and_only_one_reads_the_keys(installation):
    users = installation.users
    installation.run(users.server, "migrate")
    definition = installation.state / "small.toml"
    definition.write_text(SMALL)
    definition.chmod(0o644)
    log = installation.keys / "calls"
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    keeper = installation.start(
        users.keeper, [*sandbox("survey-keeper.service", log), *SURVEY, "keeper"]
    )
    serve = [*SERVE, "--port", str(port), "--without-keeper"]
    store = open_store(installation.database)
    with stopped_at_end(keeper):
        wait_until(lambda: bool(store.sealing_keys()))
        installation.run(users.server, "publish", str(definition))
        server = installation.start(users.server, serve, {"SURVEY_PUBLIC_URL": url})
        with stopped_at_end(server):
            wait_until_up(url, server)
            survey = find_survey(store, "small")
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                for _ in range(60):
                    assert send(connection, survey, new_report(survey)).status == 201
            wait_until(lambda: store.n_released(survey.key) == 25)
            modes = {path.name: mode_of(path) for path in installation.files}
            assert set(modes.values()) == {0o660}, modes
            assert installation.key_modes() == {0o600}
            advice = installation.run(users.server, "config", "check", "--without-keeper")
            assert ("the server can read the private keys" in advice) is not users.are_distinct
            installation.run(users.server, "close", "small")
            wait_until(lambda: store.n_released(survey.key) == 60)
    store.close_connections()
    assert "(INJECTED)" in log.read_text(), "no call was denied, so the test is void"


# -- two hosts


class Host:
    """A machine with a directory of keys, on which a keeper runs."""

    def __init__(self, settings: Settings, keys: Path) -> None:
        self.keys = keys
        self._log = keys.with_name(f"{keys.name}.log")
        self._environment = environment(settings.database, keys)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the newest keeper has logged."""
        return self._log.read_text()

    def start(self) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*SURVEY, "keeper"], env=self._environment, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Kill the keeper as a power failure would."""
        assert self._process
        assert self._process.poll() is None
        self._process.kill()
        self._process.wait(timeout=60)

    def stop(self) -> None:
        """Kill the keeper if a test has failed while it runs."""
        if self._process and self._process.poll() is None:
            self.kill()

    def run(self, *arguments: str) -> str:
        command = [*SURVEY, *arguments]
        return subprocess.run(
            command, env=self._environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout


@pytest.fixture
def hosts(settings: Settings, tmp_path: Path) -> Iterator[list[Host]]:
    """Return two hosts; the first one has the private keys of the test's database."""
    pair = [Host(settings, keys) for keys in (Path(settings.keys), tmp_path / "other-keys")]
    yield pair
    for host in pair:
        host.stop()


def reports_in(store: Store, survey: PublishedSurvey) -> Counter[bytes]:
    """Return the released reports' codes."""
    codes: Counter[bytes] = Counter()
    for columns in store.block_columns(survey.key, [0, 1]):
        codes.update(bytes(pair) for pair in zip(*(c.data for c in columns), strict=True))
    return codes


def check_released_once(
    store: Store, survey: PublishedSurvey, sent: list[StoredReport], host: Host
) -> None:
    """Close the survey; check that a host's keeper releases each report once and keeps no key."""
    close(store, survey.slug, TODAY)
    host.start()
    wait_until(lambda: all(key.survey != survey.key for key in store.sealing_keys()))
    host.kill()
    assert host.log == ""
    assert store.n_released(survey.key) == len(sent)
    assert reports_in(store, survey) == Counter(report.codes for report in sent)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    # A keeper that was killed before it published a new key has left a file that opens nothing.
    assert host.run("keeper", "--take-over").startswith("deleted 0 pending reports")
    # A kill between the creation of a key and its publication leaves one that opens nothing.
    host.run("keeper", "--destroy-unused", "--yes")
    spare = {key.public_key.hex() for key in store.sealing_keys()}
    assert {path.stem for path in host.keys.glob("*.key")} <= spare


@pytest.mark.parametrize("settings", long_unless(KINDS[:1], KINDS), indirect=True)
def test_a_keeper_on_another_host_loses_nothing_if_the_keys_are_mirrored(store, small, hosts):
    """Five keepers in turn are killed at random moments, also while they rotate and release."""
    random, sent = Random(18), []
    for turn in range(5):
        host, other = hosts[turn % 2], hosts[1 - turn % 2]
        host.start()
        before = store.n_released(small.key)
        until = None
        while until is None or time.monotonic() < until:
            batch = random_reports(40)
            add(store, small, batch)
            sent += batch
            if until is None and store.n_released(small.key) > before:
                until = time.monotonic() + random.uniform(0, 1.5 * RELEASE_SECONDS)
            time.sleep(0.02)
        host.kill()
        assert host.log == ""
        # The volume is replicated synchronously: it holds what the killed host has written.
        shutil.rmtree(other.keys, ignore_errors=True)
        shutil.copytree(host.keys, other.keys)
        shutil.rmtree(host.keys)
    assert store.n_released(small.key) > 1_000
    check_released_once(store, small, sent, hosts[1])


@pytest.mark.parametrize("settings", KINDS, indirect=True)
def test_after_the_loss_of_the_keys_devices_send_again_and_nothing_is_doubled(store, small, hosts):
    first, second = hosts
    sent = random_reports(160)
    add(store, small, sent)
    first.start()
    wait_until(lambda: store.n_released(small.key) == 125)
    late = random_reports(20)
    add(store, small, late)
    first.kill()
    n_released, n_pending = store.n_released(small.key), store.n_pending(small.key)
    assert n_pending <= 49 + len(late)
    shutil.rmtree(first.keys)
    second.start()
    wait_until(lambda: "survey keeper --take-over" in second.log)
    assert store.n_released(small.key) == n_released
    second.kill()
    deleted = second.run("keeper", "--take-over", "--yes")
    assert deleted == f"deleted {n_pending} pending reports whose private key is lost\n"
    assert store.n_pending(small.key) == 0
    second.start()
    wait_until(lambda: any(key.survey == small.key for key in store.sealing_keys()))
    for _ in range(2):
        add(store, small, [*sent, *late])
    assert store.n_released(small.key) + store.n_pending(small.key) == 180
    second.kill()
    check_released_once(store, small, [*sent, *late], second)
