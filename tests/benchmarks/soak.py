"""Send a hundred reports a second for an hour: `python -m tests.benchmarks.soak [--minutes 60]`.

The server runs with two workers on SQLite and releases every five seconds; a researcher opens the
dashboard every ten seconds. The output gives the growth of memory and open files from the second to
the last tenth of the run, as medians of both (caches and pools fill in the first tenth), and the
number of failed requests. `tests/faults/test_soak.py` checks the targets.
"""

from __future__ import annotations

import http.client
import secrets
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from survey.collect.publication import publish
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, open_store
from tests.benchmarks.ingestion import DEFINITION
from tests.benchmarks.overload import WORKERS, count_stored, run_server
from tests.benchmarks.short import benchmark_parser
from tests.conftest import EMAIL, hashed_password, wait_until
from tests.faults.processes import child_pids, worker_pids
from tests.faults.reports import send
from tests.web.clients import WebClient

PER_SECOND, SENDERS = 100, 4
MAX_GROWTH_MB, MAX_NEW_FILES = 20, 8
"""A leak of a file per thousand reports would be 300 files. Threads that start and end, each with a
connection to the database, change the number by a few at any time."""

N_THREADS = 3
"""Number of threads of a worker with a connection to the database.

These are the first thread, the thread of commits, and a thread that reads a definition.
"""

TENTH = 0.1
SHORT_SECONDS = 2.0
WARM_UP_SECONDS = 120.0
DASHBOARD_SECONDS = 10.0


class Sample(NamedTuple):
    """The resources of the server's processes at one moment."""

    memory_mb: float
    files: int
    dashboard: int
    """The HTTP status of the dashboard."""


@dataclass(frozen=True)
class SoakResult:
    """Samples of a server under a steady load, and the number of responses by status."""

    seconds: float
    responses: Counter[str]
    samples: list[Sample]
    stored: int

    @property
    def acknowledged(self) -> int:
        return self.responses["201"]

    @property
    def errors(self) -> int:
        """Return the number of unexpected responses and broken connections."""
        failed_dashboards = sum(sample.dashboard != HTTPStatus.OK for sample in self.samples)
        return self.responses.total() - self.acknowledged + failed_dashboards

    @property
    def growth_mb(self) -> float:
        return self._growth(lambda sample: sample.memory_mb)

    @property
    def new_files(self) -> float:
        return self._growth(lambda sample: sample.files)

    def _growth(self, value: Callable[[Sample], float]) -> float:
        tenth = max(round(TENTH * len(self.samples)), 1)
        early, late = self.samples[tenth : 2 * tenth], self.samples[-tenth:]
        return statistics.median(map(value, late)) - statistics.median(map(value, early))


def memory_mb(pids: list[int]) -> float:
    """Return the private memory of processes (PSS would change with other processes)."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                total += int(line.split()[1])
    return total / 1024


def count_open_files(pids: list[int]) -> int:
    return sum(len(open_files(pid)) for pid in pids)


def open_files(pid: int) -> list[str]:
    """Return the targets of a process's file descriptors: paths, sockets and pipes."""
    paths = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        # The process may close a file during the loop.
        with suppress(FileNotFoundError):
            paths.append(str(entry.readlink()))
    return paths


def new_report(survey: PublishedSurvey) -> bytes:
    return report_body(
        survey.sha256,
        secrets.token_urlsafe(16),
        [0] * 10,
        length=survey.definition.report_bytes,
    )


def send_steadily(
    port: int, survey: PublishedSurvey, stop: threading.Event, responses: Counter[str]
) -> None:
    """Send reports at a steady pace, a hundred over each connection."""
    due = time.monotonic()
    while not stop.is_set():
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            for _ in range(100):
                if stop.wait(max(due - time.monotonic(), 0)):
                    return
                due += SENDERS / PER_SECOND
                try:
                    responses[str(send(connection, survey, new_report(survey)).status)] += 1
                except (OSError, http.client.HTTPException) as error:
                    responses[type(error).__name__] += 1
                    break


def warm_up(server: int, port: int, survey: PublishedSurvey, database: Path) -> int:
    """Send reports until the threads that every report needs have opened their connections.

    On a busy machine a worker may start late and miss the first rounds. Returns the number of
    reports sent.
    """
    responses: Counter[str] = Counter()
    deadline = time.monotonic() + WARM_UP_SECONDS
    while any(count_connections(pid, database) < N_THREADS for pid in worker_pids(server)):
        assert time.monotonic() < deadline, responses
        responses += send_in_sequence(port, survey)
    assert set(responses) == {"201"}, responses
    return responses.total()


def count_connections(pid: int, database: Path) -> int:
    """Return how often a process has the database file open: once per thread."""
    return sum(path == str(database) for path in open_files(pid))


def send_in_sequence(port: int, survey: PublishedSurvey) -> Counter[str]:
    """Send single reports over several connections, so that each worker accepts some."""
    responses: Counter[str] = Counter()
    for _ in range(4 * WORKERS):
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            for _ in range(100):
                responses[str(send(connection, survey, new_report(survey)).status)] += 1
    return responses


def dashboard_status(client: WebClient) -> int:
    """Read the dashboard completely; return its HTTP status."""
    return client.get("/research/surveys/load/1").status


def soak(seconds: float, directory: Path) -> SoakResult:
    """Run a server and its load for some seconds, over a new database in a directory."""
    file = directory / "survey.db"
    database = f"sqlite:///{file}"
    store = open_store(database)
    store.migrate()
    store.add_researcher(EMAIL, hashed_password())
    today = datetime.now(UTC).date()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps()), today)
    responses: Counter[str] = Counter()
    samples = []
    with run_server(database, directory / "keys") as (url, server), ExitStack() as stack:
        stop, port = threading.Event(), int(url.rpartition(":")[2])
        client = WebClient(lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=30))
        assert client.sign_in().status == HTTPStatus.FOUND
        n_warm_up = warm_up(server.pid, port, survey, file)
        # With released reports, a worker's first dashboard loads the estimators.
        wait_until(lambda: store.n_released(survey.key) > 0, WARM_UP_SECONDS)
        assert {dashboard_status(client) for _ in range(8 * WORKERS)} == {HTTPStatus.OK}
        for _ in range(SENDERS):
            thread = threading.Thread(target=send_steadily, args=[port, survey, stop, responses])
            thread.start()
            stack.callback(thread.join)
        stack.callback(stop.set)
        pids = [server.pid, *child_pids(server.pid)]
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            samples.append(
                Sample(memory_mb(pids), count_open_files(pids), dashboard_status(client))
            )
            time.sleep(min(DASHBOARD_SECONDS, seconds / 20))
    stored = count_stored(store, survey, n_warm_up + responses["201"]) - n_warm_up
    return SoakResult(seconds, responses, samples, stored)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args(arguments)
    seconds = SHORT_SECONDS if options.short else 60 * options.minutes
    with tempfile.TemporaryDirectory() as scratch:
        result = soak(seconds, Path(scratch))
    pace = result.acknowledged / seconds
    print(f"{seconds / 60:g} minutes, {pace:.1f} reports a second: {dict(result.responses)}")
    print(f"acknowledged {result.acknowledged:,}, stored {result.stored:,}")
    print(f"{'':24}{'figure':>10}{'target':>10}{'ratio':>8}")
    for name, figure, target in (
        ("memory growth, MB", result.growth_mb, MAX_GROWTH_MB),
        ("new open files", result.new_files, MAX_NEW_FILES),
    ):
        print(f"{name:24}{figure:>10.1f}{target:>10}{figure / target:>8.2f}")
    print(f"{'errors':24}{result.errors:>10}{0:>10}")
    print("baseline: the second tenth of the same run")
    print(
        f"memory at the end {result.samples[-1].memory_mb:.1f} MB, {len(result.samples)} dashboards"
    )


if __name__ == "__main__":
    main()
