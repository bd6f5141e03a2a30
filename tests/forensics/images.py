"""Plant 200 reports over HTTP in the shipped server, and take images of its disks on the way.

The disks are loop-mounted ext4 file systems, so that images contain free blocks and the journal.
PostgreSQL archives its log. The shipped keeper releases every few seconds. The images are taken
while all reports are pending, after releases with more reports pending, and after closing.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

from survey.disclosure import release_time
from survey.questionnaire.definition import report_body
from tests.conftest import ROOT, SECRET, free_port, wait_until, wait_until_up
from tests.faults.reports import JSON
from tests.forensics.mutants import SITE
from tests.forensics.search import Figures, Image, PlantedReport
from tests.store.databases import DirectAccess, PostgresqlServer

N, N_FIRST = 200, 150
"""Reports in total, and before the first release."""

PERIODS = range(28, 60)
"""Seconds between release times: enough to send 150 reports and to take an image in between."""

GROUPS = ("", "north", "", "south")
"""The groups of reports in turn; those with a name have invitations."""

QUESTION_BYTES = 8
"""Bytes of a code: chance finds one of 200 in a gigabyte with a probability below 1e-7."""

ADDRESSES = "\n".join(f'  {{ id = "o{n}", label = "Option {n}" }},' for n in range(63))
SURVEY = f"""
slug = "plan"
title = "Two long lists"
[[questions]]
id = "first"
type = "multiple_choice"
text = "Which of these did you see?"
mechanism = "bits"
prefer_not_to_say = false
epsilon = 1
options = [
{ADDRESSES}
]
[[questions]]
id = "second"
type = "multiple_choice"
text = "Which of these did you do?"
mechanism = "bits"
prefer_not_to_say = false
epsilon = 1
options = [
{ADDRESSES}
]
"""
"""A survey of two questions whose codes have 64 bits and are therefore unique."""


class KeyWatch:
    """A second eye on a directory of keys: a copy of each private key that ever existed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.keys: dict[str, bytes] = {}
        self.names: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> KeyWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            for path in self._directory.glob("*.key"):
                if path.name in self.keys:
                    continue
                self.names.add(path.name)
                try:
                    secret = path.read_bytes()
                except FileNotFoundError:
                    continue
                if len(secret) == 32 and any(secret):
                    self.keys[path.name] = secret


@dataclass
class Disk:
    """A file system in a file, or only a directory where loop mounts are not permitted."""

    image: Path
    directory: Path
    is_mounted: bool

    def read(self) -> bytes:
        """Return the raw bytes of the file system, or of all its files, as they are now."""
        subprocess.run(["sync", "-f", self.directory], check=True)
        if self.is_mounted:
            return self.image.read_bytes()
        files = sorted(path for path in self.directory.rglob("*") if path.is_file())
        return b"".join(path.read_bytes() for path in files)


@contextmanager
def mounted(directory: Path, name: str, megabytes: int) -> Iterator[Disk]:
    """Mount a new ext4 file system; where that is not permitted, use a directory and say so."""
    image, mount = directory / f"{name}.img", directory / name
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    is_mounted = not os.geteuid() and shutil.which("mkfs.ext4") is not None
    if is_mounted:
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        mounting = subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True)
        is_mounted = mounting.returncode == 0
    if not is_mounted:
        print("no loop mount (it needs root and e2fsprogs): files are read, not the raw disk")
    try:
        yield Disk(image, mount, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", mount], check=True)
        image.unlink()


class SqlitePlace:
    """A database file on a separate disk."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.url = f"sqlite:///{disk.directory / 'survey.db'}"
        # VACUUM writes the whole database to a temporary file.
        self.temporary = disk.directory

    def images(self) -> dict[str, bytes]:
        """Return the raw bytes of what a thief could copy."""
        return {"ext4 image": self._disk.read()}

    def wal(self) -> list[tuple[str, bytes]]:
        """Return no segments: this log has no transactions' times."""
        return []


class PostgresqlPlace:
    """A separate server that archives its log."""

    def __init__(self, server: PostgresqlServer) -> None:
        self._server = server
        self._data = Path(server.server.pgdata)
        self._archive = self._data.parent / "archive"
        self._archive.mkdir()
        shutil.copymode(self._data, self._archive)
        owner = self._data.stat()
        os.chown(self._archive, owner.st_uid, owner.st_gid)
        with server.administrator() as connection:
            connection.execute("ALTER SYSTEM SET archive_mode = on")
            connection.execute(f"ALTER SYSTEM SET archive_command = 'cp %p {self._archive}/%f'")
        server.stop_immediately()
        server.start()
        self.url = server.create("unmigrated")
        self.temporary = self._data.parent

    def images(self) -> dict[str, bytes]:
        """Return the raw bytes of what a thief could copy."""
        with self._server.administrator() as connection:
            segment, _ = connection.execute(
                "SELECT pg_walfile_name(pg_current_wal_lsn()), pg_switch_wal()"
            ).fetchone()
            connection.execute("CHECKPOINT")
        wait_until((self._archive / segment).exists)
        log = self._data / "pg_wal"
        return {
            "data directory": _join(path for path in _files(self._data) if log not in path.parents),
            "pg_wal": _join(_files(log)),
            "archived WAL": _join(_files(self._archive)),
        }

    def wal(self) -> list[tuple[str, bytes]]:
        """Return the segments of the log, archived or not."""
        paths = [*self._archive.iterdir(), *(self._data / "pg_wal").iterdir()]
        return [(path.name, path.read_bytes()) for path in paths if len(path.name) == 24]


Place = SqlitePlace | PostgresqlPlace


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _join(paths: Iterator[Path] | Sequence[Path]) -> bytes:
    """Return the files' bytes with gaps in which nothing has neighbors."""
    parts = []
    for path in paths:
        # PostgreSQL removes and renames files at any time.
        try:
            parts.append(path.read_bytes())
        except FileNotFoundError:
            continue
    return bytes(16_384).join(parts)


@dataclass
class Planting:
    """A running instance with planted reports and the images taken of it."""

    place: Place
    keys: Path
    directory: Path
    mutant: str = ""
    source: Path = ROOT
    every: int = 0
    reports: list[PlantedReport] = field(default_factory=list)
    images: dict[str, bytes] = field(default_factory=dict)
    wal: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port = free_port()
        self.log = self.directory / "server.log"
        self.database = DirectAccess(self.place.url)
        settings = {"SURVEY_KEYS": str(self.keys)}
        if not (self.source / "survey/store/sealed_reports.py").exists():
            # The version before sealing, for the figures in `__main__`.
            settings = {"SURVEY_RELEASE_SECONDS": "1"}
        self._environment = {
            **{name: text for name, text in os.environ.items() if name != "SURVEY_KEYS"},
            **settings,
            "PYTHONPATH": f"{SITE}:{self.source}" if self.mutant else str(self.source),
            "SURVEY_TEST_MUTANT": self.mutant,
            "SURVEY_SECRET": SECRET,
            "SURVEY_DATABASE": self.place.url,
            "SURVEY_PUBLIC_URL": f"http://127.0.0.1:{self.port}",
            "SURVEY_PASSWORD_COST": "1",
            "SURVEY_DISK_MINIMUM": "0",
            "SQLITE_TMPDIR": str(self.place.temporary),
            "TMPDIR": str(self.place.temporary),
        }

    def run(self, *arguments: str | Path) -> str:
        """Run a `survey` command; return its output."""
        process = subprocess.run(
            [sys.executable, "-m", "survey.cli", *arguments],
            env=self._environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    @contextmanager
    def server(self) -> Iterator[None]:
        """Run `survey serve` with its keeper, right after a release time."""
        now = time.time()
        self.every = min(PERIODS, key=lambda every: now - release_time(now, every))
        if self.source == ROOT:
            self._environment["SURVEY_RELEASE_EVERY"] = str(self.every)
        with self.log.open("ab") as log:
            process: subprocess.Popen[str] = subprocess.Popen(
                [
                    *(sys.executable, "-m", "survey.cli", "serve", "--workers", "1"),
                    *("--port", str(self.port)),
                ],
                env=self._environment,
                cwd=self.directory,
                stdout=log,
                stderr=log,
                text=True,
            )
        try:
            wait_until_up(f"http://127.0.0.1:{self.port}", process)
            yield
        finally:
            process.terminate()
            process.wait(90)

    def publish(self) -> None:
        """Publish the survey, issue the invitations and make up the reports."""
        file = self.directory / "plan.toml"
        file.write_text(SURVEY, encoding="utf-8")
        self.run("publish", file)
        tokens = {
            group: [
                parse_qs(urlsplit(link).fragment)["i"][0]
                for link in self.run(
                    *("invite", "plan", "--count", str(N // len(GROUPS)), "--stratum", group)
                ).split()
            ]
            for group in set(GROUPS)
            if group
        }
        for number in range(N):
            group = GROUPS[number % len(GROUPS)]
            token = tokens[group][number // len(GROUPS)] if group else ""
            codes = tuple(secrets.token_bytes(QUESTION_BYTES) for _ in range(2))
            self.reports.append(PlantedReport(number, secrets.token_bytes(16), group, codes, token))

    def send(self, reports: Sequence[PlantedReport]) -> None:
        """Send reports one after the other, each after the acknowledgement of the one before."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.port}/s/plan/definition.json"
        ) as answer:
            definition = hashlib.sha256(answer.read()).hexdigest()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for report in reports:
            body = report_body(
                definition,
                _base64(report.id),
                [_base64(code) for code in report.codes],
                stratum=report.stratum,
                invitation=report.token,
                length=512,
            )
            connection.request("POST", "/s/plan/reports", body, JSON)
            answer = connection.getresponse()
            while answer.status == 503:
                # The keeper has not yet given the survey a key.
                answer.read()
                time.sleep(0.1)
                connection.request("POST", "/s/plan/reports", body, JSON)
                answer = connection.getresponse()
            assert answer.status == 201, answer.read()
            answer.read()
        connection.close()

    def n_released(self) -> int:
        """Return the number of released reports."""
        ((n,),) = self.database.run("SELECT n FROM release")
        return int(n)

    def take_images(self, when: str) -> None:
        """Add images of every place where reports might be, and a new backup."""
        self.images |= {f"{name}, {when}": raw for name, raw in self.place.images().items()}
        self.wal = self.place.wal()
        self.images[f"server log, {when}"] = self.log.read_bytes()
        backup = self.directory / f"{when}.backup"
        self.run("backup", backup)
        self.images[f"backup, {when}"] = backup.read_bytes()

    def figures(self, private_keys: Sequence[bytes]) -> Iterator[Figures]:
        """Yield what each image reveals; the archived log is read beside the tables' files."""
        newest_log = next((name for name in reversed(self.images) if "archived WAL" in name), "")
        spenders: set[tuple[int, int]] = set()
        for name, content in self.images.items():
            image = Image(name, content, self.reports, private_keys)
            spenders |= image.spenders
            yield image.figures(self.wal if name == newest_log else (), spenders)


def _base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass
class Outcome:
    """What a whole run found: the figures of each image, and the number of keys that existed."""

    figures: list[Figures]
    n_destroyed: int

    @property
    def leaks(self) -> dict[str, dict[str, int]]:
        """The figures of each image that must be 0 and are not."""
        return {figure.image: figure.leaks for figure in self.figures if figure.leaks}


def plant(planting: Planting, until: str) -> None:
    """Plant the reports and take images until a state: "pending", "released" or "closed"."""
    planting.run("migrate")
    planting.publish()
    with planting.server():
        planting.send(planting.reports[:N_FIRST])
        planting.take_images("pending")
        if until == "pending":
            return
        if until == "closed" and planting.source == ROOT:
            assert planting.n_released() == 0, f"{PERIODS} seconds are too few here"
        wait_until(lambda: planting.n_released() > 0)
        # The keeper destroys the key in the same pass, and rewrites the files.
        time.sleep(2)
        planting.send(planting.reports[N_FIRST:])
        planting.take_images("released")
        if until == "released":
            return
        # Other reports are released, and all pending ones sealed again.
        due = release_time(time.time(), planting.every) + planting.every
        time.sleep(due + 2 - time.time())
        planting.run("close", "plan")
        wait_until(lambda: planting.n_released() == N)
        time.sleep(3)
    planting.take_images("closed")


@contextmanager
def sqlite_place(directory: Path) -> Iterator[SqlitePlace]:
    """Prepare an empty disk for a database file."""
    with mounted(directory, "database", 64) as disk:
        yield SqlitePlace(disk)


@contextmanager
def postgresql_place(directory: Path) -> Iterator[PostgresqlPlace]:
    """Start a PostgreSQL server that no other test uses."""
    # The server runs as a user who must reach its directory.
    with TemporaryDirectory(prefix="survey-forensics-") as root:
        server = PostgresqlServer(Path(root))
        try:
            yield PostgresqlPlace(server)
        finally:
            server.server.cleanup()


PLACES = {"sqlite": sqlite_place, "postgresql": postgresql_place}


def investigate(
    kind: str,
    directory: Path,
    *,
    until: str = "closed",
    mutant: str = "",
    source: Path = ROOT,
) -> Outcome:
    """Plant reports in a database of a kind, and return what its images reveal."""
    with ExitStack() as stack:
        volume = stack.enter_context(mounted(directory, "volume", 16))
        place = stack.enter_context(PLACES[kind](directory))
        keys = volume.directory / "keys"
        planting = Planting(place, keys, directory, mutant, source)
        with KeyWatch(keys) as watch:
            plant(planting, until)
        assert watch.names == set(watch.keys), "a private key was gone before it could be copied"
        current = set()
        if source == ROOT:
            rows = planting.database.run("SELECT public_key FROM sealing_key")
            current = {f"{bytes(public_key).hex()}.key" for (public_key,) in rows}
        destroyed = [secret for name, secret in watch.keys.items() if name not in current]
        figures = list(planting.figures(list(watch.keys.values())))
        # The volume of the keys contains the current ones by right.
        figures.append(Image("key volume", volume.read(), planting.reports, destroyed).figures())
        return Outcome(figures, len(destroyed))
