"""Measure respondents while researchers read: `python -m tests.benchmarks.readers [--short]`.

`survey serve` runs with two workers on SQLite and receives 20 reports a second. Rounds without
researchers alternate with rounds in which three researchers read a PDF, a regression and a
cross-tab of 10 questions and 200,000 reports in a loop. Each time, they choose another confidence
level, so that the server has to compute the result. The figures are milliseconds until a report is
acknowledged, pooled over all rounds of a kind. The last lines give the seconds of each page, first
computed and then repeated.

The run fails on any unexpected status, and if the database does not contain exactly the
acknowledged reports. --short takes two seconds and a small survey, and shows only that the
benchmark works.
"""

from __future__ import annotations

import http.client
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.request import OpenerDirector

import numpy as np

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.research.credentials import Passwords
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, open_store
from tests.benchmarks import ingestion
from tests.benchmarks.dashboard import fill, sign_in
from tests.benchmarks.overload import run_server
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.soak import new_report
from tests.benchmarks.storage import today
from tests.conftest import EMAIL, PASSWORD
from tests.faults.reports import send

PER_SECOND = 20
WARM_UP_SECONDS = 1.0
SENDERS = 16
"""Number of concurrent reports, so that a slow response does not delay the next report."""

MAX_RATIO = 2.0
RELEASE_SECONDS = 3_600

DEFINITION = ingestion.DEFINITION.replace('slug = "load"', 'slug = "respondents"')


class Size(NamedTuple):
    """The size of a run: the survey that is read, and the rounds of each kind."""

    reports: int
    questions: int
    rounds: int
    seconds: float


FULL = Size(200_000, 10, 5, 3.0)
SHORT = Size(2_000, 3, 1, 1.0)

PAGES = {
    "PDF": "1/report.pdf?",
    "regression": "explore/regression?question=q0&predictor=q1&predictor=q2&",
    "cross-tab": "explore?first=q1&second=q2&",
}


class Respondents:
    """Devices that send reports at a steady pace to a server.

    `times` are the milliseconds until each report of a round was acknowledged.
    """

    def __init__(self, port: int, survey: PublishedSurvey) -> None:
        self._port, self._survey = port, survey
        self._local = threading.local()
        self.n_acknowledged = 0

    def send(self, seconds: float) -> list[float]:
        """Send reports for some seconds; return the time of each in milliseconds."""
        start = time.monotonic()
        with ThreadPoolExecutor(SENDERS) as senders:
            sent = []
            for number in range(round(seconds * PER_SECOND)):
                time.sleep(max(start + number / PER_SECOND - time.monotonic(), 0))
                sent.append(senders.submit(self._send_report))
            times = [future.result() for future in sent]
        self.n_acknowledged += len(times)
        return times

    def _send_report(self) -> float:
        # A new connection for each report, as from another device.
        start = time.perf_counter()
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            response = send(connection, self._survey, new_report(self._survey))
        if response.status != 201:
            raise RuntimeError(f"a report got {response.status}: {response.body[:200]!r}")
        return 1000 * (time.perf_counter() - start)


class Researchers:
    """Researchers who read pages in a loop; `times` are the seconds of each page."""

    def __init__(self, url: str) -> None:
        self._browsers = {name: sign_in(url) for name in PAGES}
        self._url = f"{url}/research/surveys/load/"
        self._levels = (f"level={0.8 + number / 10_000:.4f}" for number in count())
        self.times: dict[str, list[float]] = {name: [] for name in PAGES}
        self.repeated: dict[str, list[float]] = {name: [] for name in PAGES}

    def read(self, name: str) -> None:
        """Read a page with a new confidence level, and then read it again."""
        query = next(self._levels)
        for times in (self.times, self.repeated):
            times[name].append(open_page(self._browsers[name], f"{self._url}{PAGES[name]}{query}"))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read all pages in a loop while the context lasts."""
        stop = threading.Event()

        def read_in_a_loop(name: str) -> None:
            while not stop.is_set():
                self.read(name)

        with ThreadPoolExecutor(len(PAGES)) as readers:
            reading = [readers.submit(read_in_a_loop, name) for name in PAGES]
            try:
                yield
            finally:
                stop.set()
            for future in reading:
                future.result()


def open_page(browser: OpenerDirector, address: str) -> float:
    """Return the seconds that a page takes."""
    start = time.perf_counter()
    with browser.open(address) as response:
        if response.status != 200 or not response.read():
            raise RuntimeError(f"{address} got {response.status}")
    return time.perf_counter() - start


def prepare(database: str, size: Size) -> tuple[Store, PublishedSurvey]:
    """Publish the researchers' survey and the respondents' survey; return the latter."""
    store = open_store(database)
    store.migrate()
    store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
    fill(store, database, size.reports, size.questions)
    return store, publish(store, load(DEFINITION.encode(), "sent.toml", Caps()), today())


def measure(size: Size) -> tuple[list[float], list[float], Researchers]:
    """Return the milliseconds of reports without researchers and while researchers read."""
    undisturbed: list[float] = []
    disturbed: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        database = f"sqlite:///{Path(scratch) / 'survey.db'}"
        store, survey = prepare(database, size)
        with run_server(database, Path(scratch) / "keys", RELEASE_SECONDS) as (url, _):
            respondents = Respondents(int(url.rpartition(":")[2]), survey)
            researchers = Researchers(url)
            for name in PAGES:
                researchers.read(name)
            respondents.send(WARM_UP_SECONDS)
            for _ in range(size.rounds):
                undisturbed += respondents.send(size.seconds)
                with researchers.reading():
                    disturbed += respondents.send(size.seconds)
        stored = store.n_released(survey.key) + store.n_pending(survey.key)
        store.close_connections()
    if stored != respondents.n_acknowledged:
        raise RuntimeError(f"{respondents.n_acknowledged} acknowledged, {stored} stored")
    return undisturbed, disturbed, researchers


def p99(times: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return float(np.percentile(times, 99))


def print_figures(
    undisturbed: Sequence[float], disturbed: Sequence[float], researchers: Researchers
) -> None:
    """Print the milliseconds of reports with the target, and the seconds of pages."""
    print(f"{'ms of a report':<24}{'undisturbed':>12}{'reading':>10}{'ratio':>8}{'target':>8}")
    for label, figure in (("median", statistics.median), ("99th percentile", p99)):
        before, after = figure(undisturbed), figure(disturbed)
        target = f"{MAX_RATIO:>8}" if figure is p99 else ""
        print(f"{label:<24}{before:>12.1f}{after:>10.1f}{after / before:>8.2f}{target}")
    print(f"{'seconds of a page':<24}{'computed':>12}{'repeated':>10}{'pages':>8}")
    for name, times in researchers.times.items():
        repeated = statistics.median(researchers.repeated[name])
        print(f"{name:<24}{statistics.median(times):>12.2f}{repeated:>10.2f}{len(times):>8}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = benchmark_parser(__doc__)
    is_short = parser.parse_args(arguments).short
    print_figures(*measure(SHORT if is_short else FULL))


if __name__ == "__main__":
    main()
