"""A hundred reports a second for an hour: `python -m tests.benchmarks.soak [--minutes 60]`.

The shipped server with two workers on SQLite, releases included, and a dashboard read every ten
seconds. Printed: how much memory its processes have more, and how many more files are open, in the
last tenth than in the second, medians of both (in the first one caches and pools fill), and every
answer that was not 201. `tests/faults/test_soak.py` holds the same to its targets.
"""

from __future__ import annotations

import argparse
import http.client
import secrets
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from survey.collect.publication import publish
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.server import THREADS
from survey.settings import Caps
from survey.store import PublishedSurvey, open_store
from tests.benchmarks.ingestion import DEFINITION
from tests.benchmarks.overload import WORKERS, all_there, shipped
from tests.conftest import EMAIL, hashed_password
from tests.faults.processes import children_of, workers_of
from tests.faults.reports import send
from tests.web.visits import Visit

PER_SECOND, SENDERS = 100, 4
MOST_GROWTH_MB, MOST_MORE_FILES = 20, 8
"""A file lost with every thousandth report would be 300 of them; threads that start and end, each
with a connection to the database, are a few more or less at any time."""

TENTH = 0.1
AWAKE_SECONDS = 120.0
DASHBOARD_SECONDS = 10.0


class Look(NamedTuple):
    """What the server's processes have at one moment."""

    memory_mb: float
    files: int
    dashboard: int
    """The status of the page that was read."""


@dataclass(frozen=True)
class Soaked:
    """What was seen of a server under a steady load, and what it answered."""

    seconds: float
    answers: Counter[str]
    looks: list[Look]
    stored: int

    @property
    def acknowledged(self) -> int:
        return self.answers["201"]

    @property
    def errors(self) -> int:
        """Answers other than those hoped for, connections that broke among them."""
        unread = sum(look.dashboard != HTTPStatus.OK for look in self.looks)
        return self.answers.total() - self.acknowledged + unread

    @property
    def growth_mb(self) -> float:
        return self._more(lambda look: look.memory_mb)

    @property
    def more_files(self) -> float:
        return self._more(lambda look: look.files)

    def _more(self, of: Callable[[Look], float]) -> float:
        tenth = max(round(TENTH * len(self.looks)), 1)
        early, late = self.looks[tenth : 2 * tenth], self.looks[-tenth:]
        return statistics.median(map(of, late)) - statistics.median(map(of, early))


def memory_mb(pids: list[int]) -> float:
    """Memory that the processes have for themselves alone (PSS would move with others)."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Private_Clean:", "Private_Dirty:")):
                total += int(line.split()[1])
    return total / 1024


def open_files(pids: list[int]) -> int:
    return sum(len(files_of(pid)) for pid in pids)


def files_of(pid: int) -> list[str]:
    """What a process has open: the paths of files, and what else is no file."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        # One may be closed while they are read.
        with suppress(FileNotFoundError):
            found.append(str(entry.readlink()))
    return found


def body_of(survey: PublishedSurvey) -> bytes:
    return report_body(
        survey.sha256,
        secrets.token_urlsafe(16),
        [0] * 10,
        length=survey.definition.report_bytes,
    )


def sender(
    port: int, survey: PublishedSurvey, stop: threading.Event, answers: Counter[str]
) -> None:
    """Reports at a steady pace, over connections of a hundred reports each."""
    due = time.monotonic()
    while not stop.is_set():
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            for _ in range(100):
                if stop.wait(max(due - time.monotonic(), 0)):
                    return
                due += SENDERS / PER_SECOND
                try:
                    answers[str(send(connection, survey, body_of(survey)).status)] += 1
                except (OSError, http.client.HTTPException) as error:
                    answers[type(error).__name__] += 1
                    break


def all_awake(server: int, port: int, survey: PublishedSurvey, database: Path) -> int:
    """Have every thread of the workers there, with its connection to the database.

    On a busy machine a worker may start late, and takes no part in the first rounds. The number
    of reports that this took.
    """
    answers: Counter[str] = Counter()
    deadline = time.monotonic() + AWAKE_SECONDS
    while sum(connections(pid, database) >= THREADS for pid in workers_of(server)) < WORKERS:
        assert time.monotonic() < deadline, answers
        answers += everybody_at_once(port, survey)
        answers += one_after_the_other(port, survey)
    assert set(answers) == {"201"}, answers
    return answers.total()


def connections(pid: int, database: Path) -> int:
    """How often a process has the database's file open: once for each of its threads."""
    return sum(path == str(database) for path in files_of(pid))


def everybody_at_once(port: int, survey: PublishedSurvey) -> Counter[str]:
    """Start all threads of both workers: a request whose body has not come keeps one.

    Then all bodies come, and the few that commit for all open their connections.
    """
    answers: Counter[str] = Counter()
    bodies = [body_of(survey) for _ in range(2 * WORKERS * THREADS)]
    with ExitStack() as stack:
        connections = [stack.enter_context(half_sent(port, survey, body)) for body in bodies]
        time.sleep(1)
        for connection, body in zip(connections, bodies, strict=True):
            connection.send(body[1:])
        for connection in connections:
            answers[str(connection.getresponse().status)] += 1
    return answers


@contextmanager
def half_sent(
    port: int, survey: PublishedSurvey, body: bytes
) -> Iterator[http.client.HTTPConnection]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.putrequest("POST", f"/s/{survey.slug}/reports")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:1])
        yield connection


def one_after_the_other(port: int, survey: PublishedSurvey) -> Counter[str]:
    """Reports that come alone: a worker's threads take turns, and each commits its own."""
    answers: Counter[str] = Counter()
    for _ in range(4 * WORKERS):
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            for _ in range(THREADS):
                answers[str(send(connection, survey, body_of(survey)).status)] += 1
    return answers


def dashboard_of(visit: Visit) -> int:
    """The status of the page, once it was read whole."""
    return visit.get("/research/surveys/load/1").status


def soak(seconds: float, directory: Path) -> Soaked:
    """Reports at their pace for so long, over a new database in a directory."""
    file = directory / "survey.db"
    database = f"sqlite:///{file}"
    store = open_store(database)
    store.migrate()
    store.add_researcher(EMAIL, hashed_password())
    today = datetime.now(UTC).date()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps()), today)
    answers: Counter[str] = Counter()
    looks = []
    with shipped(database) as (url, server), ExitStack() as stack:
        stop, port = threading.Event(), int(url.rpartition(":")[2])
        visit = Visit(lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=30))
        assert visit.sign_in().status == HTTPStatus.FOUND
        before = all_awake(server.pid, port, survey, file)
        for _ in range(SENDERS):
            thread = threading.Thread(target=sender, args=[port, survey, stop, answers])
            thread.start()
            stack.callback(thread.join)
        stack.callback(stop.set)
        pids = [server.pid, *children_of(server.pid)]
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            looks.append(Look(memory_mb(pids), open_files(pids), dashboard_of(visit)))
            time.sleep(min(DASHBOARD_SECONDS, seconds / 20))
    stored = all_there(store, survey, before + answers["201"]) - before
    return Soaked(seconds, answers, looks, stored)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    seconds = 60 * parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as scratch:
        found = soak(seconds, Path(scratch))
    pace = found.acknowledged / seconds
    print(f"{seconds / 60:g} minutes, {pace:.1f} reports a second: {dict(found.answers)}")
    print(f"acknowledged {found.acknowledged:,}, stored {found.stored:,}")
    print(f"{'':24}{'figure':>10}{'target':>10}{'ratio':>8}")
    for name, figure, target in (
        ("memory growth, MB", found.growth_mb, MOST_GROWTH_MB),
        ("open files, more", found.more_files, MOST_MORE_FILES),
    ):
        print(f"{name:24}{figure:>10.1f}{target:>10}{figure / target:>8.2f}")
    print(f"{'errors':24}{found.errors:>10}{0:>10}")
    print(f"memory at the end {found.looks[-1].memory_mb:.1f} MB, {len(found.looks)} dashboards")


if __name__ == "__main__":
    main()
