"""The archive of PostgreSQL's log restores every acknowledged report, and has no private key."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from survey.archive import check
from survey.collect.publication import publish
from survey.errors import StoreError
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import Store, StoredReport, open_store
from tests.conftest import ROOT, TODAY, free_port, wait_until
from tests.deploy.test_failures import write_program
from tests.store.reports import add, keeper_at

pytestmark = pytest.mark.web

ARCHIVE = ROOT / "deploy/archive"
QUESTIONS = 32

DEFINITION = 'slug = "small"\ntitle = "Archived"\nepsilon = 0.5\n' + "".join(
    f'[[questions]]\nid = "q{number}"\ntype = "number"\ntext = "Hours?"\n'
    "low = 0\nhigh = 200\nstep = 1\n"
    for number in range(QUESTIONS)
)


class Cluster:
    """A PostgreSQL server with an archive, as the files in `deploy/archive` set it up."""

    def __init__(self, directory: Path, programs: Path) -> None:
        self.data, self.archive = directory / "data", directory / "archive"
        self._directory, self._programs, self._port = directory, programs, free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        (self.archive / "wal").mkdir(parents=True)
        self._own(directory, self.archive, self.archive / "wal")
        options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        self.run("initdb", "-D", str(self.data), *options)
        # The shipped settings, with other places of the script and of the archive.
        text = (ARCHIVE / "postgresql.conf").read_text(encoding="utf-8")
        for shipped, path in (
            ("/usr/local/bin/survey-archive", ARCHIVE / "archive.sh"),
            ("/var/lib/survey-archive", self.archive),
        ):
            assert shipped in text
            text = text.replace(shipped, str(path))
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"{text}\nunix_socket_directories = '{directory}'\n")

    @staticmethod
    def _own(*paths: Path) -> None:
        """Give files to the user that runs the server, which cannot be root."""
        for path in paths:
            shutil.chown(path, *(("nobody", "nogroup") if os.geteuid() == 0 else (os.geteuid(),)))

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        user = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
        # A file instead of a pipe: the server inherits it.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(
                command,
                **user,
                cwd=self._directory,
                stdout=output,
                stderr=output,
                text=True,
                env={
                    "PATH": f"{self._directory}/bin:{self._programs}:{os.environ['PATH']}",
                    "PGHOST": str(self._directory),
                    "PGPORT": str(self._port),
                    "PGUSER": "postgres",
                    "POSTGRES_PASSWORD": "it's a word",
                },
            )
            output.seek(0)
            text = output.read()
        assert not check or result.returncode == 0, text
        return subprocess.CompletedProcess(command, result.returncode, text)

    def script(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the shipped script."""
        return self.run("sh", str(ARCHIVE / "archive.sh"), *arguments, check=check)

    def start(self) -> None:
        """Start the server, and wait until it has recovered."""
        log = str(self._directory / "log")
        command = (
            "pg_ctl",
            "-D",
            str(self.data),
            "-l",
            log,
            "-o",
            f"-p {self._port}",
            "-w",
            "start",
        )
        assert self.run(*command, check=False).returncode == 0, Path(log).read_text()
        wait_until(lambda: "f" in self.query("SELECT pg_is_in_recovery()"), 60)

    def slow_down_base_backups(self) -> None:
        """Let every later base backup take a few seconds."""
        program = self._programs / "pg_basebackup"
        script = f'exec {program} --max-rate=8M "$@"'
        write_program(self._directory / "bin/pg_basebackup", script)

    def query(self, statement: str) -> str:
        return self.run("psql", "-d", "postgres", "-Atc", statement).stdout

    def finish_segment(self) -> None:
        """Let PostgreSQL archive its log up to now, as it does after a minute."""
        name = self.query("SELECT pg_walfile_name(pg_switch_wal())").strip()
        wait_until((self.archive / "wal" / f"{name}.gz").exists, 60)

    def destroy(self) -> None:
        """Lose the disk of the database."""
        # The server does not run if its start has failed.
        self.run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop", check=False)
        shutil.rmtree(self.data)

    def contents(self) -> bytes:
        """Return all bytes of the archive."""
        paths = [path for path in self.archive.rglob("*") if path.is_file()]
        return b"".join(
            gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            for path in paths
        )


@pytest.fixture(scope="module")
def programs() -> Path:
    """Return the directory of PostgreSQL's programs."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not candidates:
        pytest.skip("no PostgreSQL server (apt-get install postgresql)")
    return candidates[-1].parent


@pytest.fixture
def cluster(programs) -> Iterator[Cluster]:
    # Short, because the path of a socket is limited, and open to another user.
    with tempfile.TemporaryDirectory(prefix="archive-") as name:
        Path(name).chmod(0o755)
        cluster = Cluster(Path(name), programs)
        cluster.start()
        yield cluster
        cluster.destroy()


@contextmanager
def opened(cluster: Cluster, url: str = "") -> Iterator[Store]:
    """Open the store of a cluster; the server must have no connections when it is destroyed."""
    store = open_store(url or cluster.url)
    try:
        yield store
    finally:
        store.close_connections()


def planted(n: int) -> list[StoredReport]:
    """Return reports whose codes are a random sequence, which no other bytes contain."""
    codes = ([byte % 3 for byte in os.urandom(QUESTIONS)] for _ in range(n))
    return [StoredReport(os.urandom(16), "", bytes(row)) for row in codes]


def now() -> str:
    """Return a time after all earlier commits and before all later ones."""
    time.sleep(1.1)
    text = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    time.sleep(1.1)
    return text


@dataclass
class History:
    """What happened before the disk was lost: reports, times and private keys."""

    reports: list[StoredReport]
    before_release: str
    before_accident: str
    private_keys: set[bytes]
    current_keys: set[bytes]


def live(cluster: Cluster, settings: Settings) -> History:
    """Make a base backup, collect and release reports, and delete the survey by accident."""
    private_keys: set[bytes] = set()

    def keep_keys() -> set[bytes]:
        found = {path.read_bytes() for path in Path(settings.keys).glob("*.key")}
        private_keys.update(found)
        return found

    with opened(cluster) as store:
        store.migrate()
        keeper_at(store, settings).work()
        survey = publish(store, load(DEFINITION.encode(), "small.toml", Caps()), TODAY)
        keeper_at(store, settings).work()
        cluster.script("base", str(cluster.archive))
        keep_keys()
        add(store, survey, first := planted(100))
        before_release = now()
        assert keeper_at(store, settings, 1).work() == 75
        current = keep_keys()
        add(store, survey, later := planted(10))
        before_accident = now()
        store.close_survey("small", TODAY)
        store.delete_survey("small", TODAY)
        cluster.finish_segment()
    return History([*first, *later], before_release, before_accident, private_keys, current)


def test_an_archive_restores_all_acknowledged_reports_and_reveals_neither_keys_nor_answers(
    cluster, tmp_path
):
    settings = Settings(keys=str(tmp_path / "keys"))
    cluster.query("CREATE ROLE other PASSWORD 'word of a role'")
    cluster.query("CREATE DATABASE other")
    statement = "CREATE TABLE t AS SELECT 'row of another database' AS x"
    cluster.run("psql", "-d", "other", "-c", statement)
    history = live(cluster, settings)
    cluster.destroy()
    contents = cluster.contents()
    # The search finds what is there: ids of reports, as the runbook says.
    some = history.reports[::10]
    assert all(report.id in contents for report in some)
    assert not any(report.codes in contents for report in some)
    # So are another database and the verifier of a password, but not the password.
    assert b"row of another database" in contents
    assert b"SCRAM-SHA-256$4096:" in contents
    assert b"word of a role" not in contents
    assert len(history.private_keys) >= 2
    assert not any(
        key in contents or key.hex().encode() in contents for key in history.private_keys
    )

    cluster.script("restore", str(cluster.archive), str(cluster.data), history.before_accident)
    cluster.start()
    with opened(cluster) as store:
        (survey,) = store.versions("small")
        assert all(store.has_report(survey.key, report.id) for report in history.reports)
        assert (store.n_released(survey.key), store.n_pending(survey.key)) == (75, 35)
        with store.snapshot() as snapshot:
            assert check(snapshot).mistakes == ()
        # The keys of these pending reports were not on the lost disk.
        add(store, survey, planted(40))
        assert keeper_at(store, settings, 2).work() == 50


def test_a_restore_to_an_earlier_time_lists_the_reports_that_are_unreadable(cluster, tmp_path):
    settings = Settings(keys=str(tmp_path / "keys"))
    history = live(cluster, settings)
    cluster.destroy()
    cluster.script("restore", str(cluster.archive), str(cluster.data), history.before_release)
    cluster.start()
    with opened(cluster) as store:
        (survey,) = store.versions("small")
        assert (store.n_released(survey.key), store.n_pending(survey.key)) == (0, 100)
        with pytest.raises(StoreError, match="take-over"):
            keeper_at(store, settings, 3).work()
        assert keeper_at(store, settings, 3).take_over() == 100
        add(store, survey, planted(60))
        assert keeper_at(store, settings, 5).work() == 25


def test_the_archive_deletes_expired_base_backups_and_logs_before_the_oldest(cluster, tmp_path):
    archive = str(cluster.archive)
    cluster.script("base", archive)
    (first,) = (cluster.archive / "base").iterdir()
    cluster.finish_segment()
    first = first.rename(first.with_name("2020-01-01T000000Z"))
    refused = cluster.script("restore", archive, str(tmp_path), "2019-12-31T00:00:00Z", check=False)
    assert "no base backup before 2019-12-31" in refused.stdout
    segments = set((cluster.archive / "wal").iterdir())
    cluster.script("base", archive)
    (second,) = (cluster.archive / "base").iterdir()
    assert second.name > first.name
    assert segments - set((cluster.archive / "wal").iterdir())
    refused = cluster.script("restore", archive, str(cluster.data), check=False)
    assert "is not empty" in refused.stdout


def test_a_second_restore_ignores_the_target_of_the_first_and_recovers_all_rows(cluster):
    archive, data = str(cluster.archive), str(cluster.data)

    def restored(*time: str) -> set[str]:
        cluster.finish_segment()
        cluster.destroy()
        cluster.script("restore", archive, data, *time)
        cluster.start()
        return set(cluster.query("SELECT x FROM kept").split())

    cluster.query("CREATE TABLE kept AS SELECT 'first' AS x")
    cluster.script("base", archive)
    before_second = now()
    cluster.query("INSERT INTO kept VALUES ('second')")
    before_first_restore = now()
    # PostgreSQL stops only at a commit after the target.
    cluster.query("INSERT INTO kept VALUES ('last')")
    assert restored(before_second) == {"first"}
    settings = cluster.data / "postgresql.auto.conf"
    wait_until(lambda: "recovery_" not in settings.read_text())
    # The version before wrote these lines into every base backup of a restored server.
    with settings.open("a") as file:
        file.write(f"recovery_target_time = '{before_second[:-1]}+00'\n")
    cluster.script("base", archive)
    cluster.query("INSERT INTO kept VALUES ('third')")
    assert restored() == {"first", "third"}
    assert restored(before_first_restore) == {"first", "second"}


def test_a_restore_to_a_time_within_a_base_backup_starts_from_the_one_before(cluster):
    archive = str(cluster.archive)
    cluster.query("CREATE TABLE kept AS SELECT 'first' AS x")
    cluster.script("base", archive)
    cluster.query("INSERT INTO kept VALUES ('second')")
    cluster.slow_down_base_backups()
    with ThreadPoolExecutor() as pool:
        backup = pool.submit(cluster.script, "base", archive)
        during = now()
        cluster.query("INSERT INTO kept VALUES ('third')")
        assert not backup.done()
        backup.result()
    cluster.finish_segment()
    cluster.destroy()
    cluster.script("restore", archive, str(cluster.data), during)
    cluster.start()
    assert cluster.query("SELECT x FROM kept").split() == ["first", "second"]


def test_a_segment_is_archived_once_and_never_overwritten(cluster):
    (segment := cluster.archive / "segment").write_bytes(b"log")
    arguments = ("segment", str(segment), "0A", str(cluster.archive))
    cluster.script(*arguments)
    cluster.script(*arguments)
    segment.write_bytes(b"other")
    refused = cluster.script(*arguments, check=False)
    assert refused.returncode == 1
    assert "another 0A" in refused.stdout
    assert gzip.decompress((cluster.archive / "wal/0A.gz").read_bytes()) == b"log"


@pytest.mark.security
def test_the_role_that_the_containers_create_can_use_its_database_and_nothing_else(cluster):
    file = str(ROOT / "deploy/database.sql")
    cluster.run("psql", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "-qf", file)
    roles = cluster.query(
        "SELECT rolname, rolpassword IS NULL, rolsuper, rolcreatedb, rolcreaterole, rolreplication"
        " FROM pg_authid WHERE rolcanlogin ORDER BY 1"
    )
    assert roles.split() == ["postgres|t|t|t|t|t", "survey|f|f|f|f|f"]
    url = cluster.url.replace("postgres@", "survey@").replace("/postgres", "/survey")
    with opened(cluster, url) as store:
        store.migrate()
        store.check_complete()


def test_the_option_of_compose_changes_nothing_else_of_the_database():
    base, option = (
        yaml.safe_load((ROOT / "deploy" / name).read_text())
        for name in ("compose.yaml", "archive/compose.yaml")
    )
    database, changed = base["services"]["database"], option["services"]["database"]
    shipped = (ARCHIVE / "postgresql.conf").read_text().splitlines()
    settings = [line.replace(" = ", "=").replace("'", "") for line in shipped if line[0] != "#"]
    added = [word for word in changed["command"][len(database["command"]) :] if word != "-c"]
    assert changed["command"][: len(database["command"])] == database["command"]
    assert added == [*settings, "unix_socket_directories=/var/run/postgresql,/var/run/archive"]
    for name in ("archive", "archive-directory"):
        assert option["services"][name]["image"] == database["image"]
        assert not any("keys" in volume for volume in option["services"][name]["volumes"])
