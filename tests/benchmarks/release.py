"""Measure releases of many strata, reports and surveys: `python -m tests.benchmarks.release`.

On SQLite and on PostgreSQL, the benchmark measures how long a release of many strata takes, how
long a release of many pending reports keeps other writers waiting, how long the releases of many
surveys take, and how long a pass of the keeper takes if nothing is due. Figures are medians of
several rounds; the CPU time is that of the keeper's process. After each release, the benchmark
checks the number of rows that it left. `--short` runs each part once with small numbers.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from survey.collect.publication import publish
from survey.collect.release import Keeper
from survey.disclosure import MINIMUM_REPORTS, n_to_release
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PrivateKeys, PublishedSurvey, Store, StoredReport, open_store
from survey.store.transactions import Transaction
from tests.benchmarks.ingestion import postgresql
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.storage import DEFINITION, OPTIONS, QUESTIONS, today
from tests.store.databases import DirectAccess

COMMIT = 64
"""Number of reports of one commit under load, and therefore of one sealed box."""

MAX_STRATA_SECONDS, MAX_LOCK_MS, MAX_RELEASES_SECONDS, MAX_IDLE_MS = 2.0, 150.0, 1.5, 5.0


@dataclass(frozen=True)
class Load:
    """The numbers of strata, reports, surveys and rounds.

    A release of `pending` reports follows one of `block` reports: at first, its last block is half
    full.
    """

    strata: tuple[int, ...]
    pending: tuple[int, ...]
    block: int
    released_surveys: int
    surveys: int
    rounds: int


FULL = Load((1_000, 2_000), (65_536, 500_000, 10**6), 2**15, 100, 1_000, 5)
SHORT = Load((10,), (1_500,), 250, 3, 6, 1)


class Instance:
    """An empty store with a keeper whose clock advances by an hour before each release."""

    def __init__(self, url: str, keys: Path) -> None:
        self.url, self.store, self.access = url, open_store(url), DirectAccess(url)
        self.store.migrate()
        self._keys = PrivateKeys(keys)
        self._hour = 1
        self._keeper = Keeper(self.store, self._keys, 3600, clock=lambda: 3600.0 * self._hour)
        self._rng = np.random.default_rng(1)

    def publish(self, slug: str) -> PublishedSurvey:
        """Publish a copy of the survey with ten questions."""
        text = DEFINITION.replace('slug = "load"', f'slug = "{slug}"')
        return publish(self.store, load(text.encode(), "load.toml", Caps(survey=200)), today())

    def add_pending(self, survey: PublishedSurvey, n: int, stratum: str = "") -> None:
        """Store reports of one stratum, in commits of up to `COMMIT`."""
        codes = self._rng.integers(0, OPTIONS, (n, QUESTIONS), dtype=np.uint8)
        for start in range(0, n, COMMIT):
            rows = codes[start : start + COMMIT]
            add(self.store, survey, [(stratum, row.tobytes()) for row in rows])

    def work(self, hours: int = 0) -> int:
        """Run the keeper some hours later; return the number of released reports."""
        self._hour += hours
        with self._keys.lock():
            return self._keeper.work()

    def check(self, survey: PublishedSurvey, n_released: int, n_pending: int) -> None:
        """Require these numbers of released and of pending reports in all tables."""
        key, run = [survey.key], self.access.run
        found = (
            self.store.n_released(survey.key),
            *run("SELECT sum(length(ids)) / 7 FROM released_ids WHERE survey = ?", key)[0],
            *run("SELECT sum(n) FROM block WHERE survey = ? AND question = 0", key)[0],
            *run("SELECT sum(n) FROM counts WHERE survey = ? AND question = 0 "
                 "AND option = -1", key)[0],
            self.store.n_pending(survey.key),
            *run("SELECT count(*) FROM pending_id WHERE survey = ?", key)[0],
        )  # fmt: skip
        expected = (*[n_released] * 4, *[n_pending] * 2)
        if tuple(int(n or 0) for n in found) != expected:
            raise RuntimeError(f"{survey.slug}: {found} rows instead of {expected}")


def add(store: Store, survey: PublishedSurvey, reports: list[tuple[str, bytes]]) -> None:
    """Store reports, given their strata and codes, in one commit."""
    rows = [(survey.key, StoredReport(os.urandom(16), *report)) for report in reports]
    if any(store.add_reports(rows)):
        raise RuntimeError("the store rejects reports")


def measure_strata(kind: str, instance: Instance, n_strata: int, rounds: int) -> None:
    """Print the times of releases of 25 and of no reports per stratum, and of the closing."""
    survey, n = instance.publish(f"strata-{n_strata}"), MINIMUM_REPORTS
    instance.work()
    times: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds + 1):
        for stratum in range(n_strata):
            instance.add_pending(survey, n, f"group {stratum}")
        label = f"release of {n} in each" if number else "resealing"
        times.setdefault(label, []).append(timed(lambda: instance.work(hours=1)))
        instance.check(survey, number * n * n_strata, n * n_strata)
    instance.store.close_survey(survey.slug, today())
    times["closing"] = [timed(lambda: instance.work(hours=1))]
    instance.check(survey, (rounds + 1) * n * n_strata, 0)
    for label, pairs in times.items():
        cpu, total = (statistics.median(column) for column in zip(*pairs, strict=True))
        case = f"{kind}: {n_strata:,} strata, {label} ({total:.1f} s in all)"
        print_figure(case, cpu, "s", MAX_STRATA_SECONDS)


def measure_lock(kind: str, instance: Instance, n_pending: int, load: Load) -> None:
    """Print the longest write transaction of a release that starts with half a block.

    Reports of another survey arrive during this release, and when the survey closes.
    """
    survey, other = (instance.publish(f"{name}-{n_pending}") for name in ("lock", "other"))
    instance.work()
    instance.add_pending(survey, load.block)
    n_released, n_left = instance.work(hours=1), instance.store.n_pending(survey.key)
    releases = []
    for _ in range(load.rounds):
        instance.add_pending(survey, n_pending)
        with arrivals(instance.url, other) as waits, transactions(instance.store) as durations:
            _, total = timed(lambda: instance.work(hours=1))
        n_new = n_to_release(n_left + n_pending)
        n_released, n_left = n_released + n_new, n_left + n_pending - n_new
        instance.check(survey, n_released, n_left)
        releases.append((1000 * max(durations), 1000 * max(waits), total, len(durations)))
    longest, wait, total, n = map(statistics.median, zip(*releases, strict=True))
    case = f"{kind}: {n_pending:,} pending"
    label = f"{case}, longest of {n:.0f} transactions ({total:.1f} s in all)"
    print_figure(label, longest, "ms", MAX_LOCK_MS)
    print_figure(f"{case}, longest wait of another report", wait, "ms", MAX_LOCK_MS)
    for closed in (survey, other):
        instance.store.close_survey(closed.slug, today())
        instance.work(hours=1)
    instance.check(survey, n_released + n_left, 0)


def measure_surveys(kind: str, instance: Instance, load: Load) -> None:
    """Print the time of the releases of many surveys, and of a pass in which nothing is due."""
    surveys = [instance.publish(f"many-{number}") for number in range(load.surveys)]
    instance.work()
    released, times, n = surveys[: load.released_surveys], [], MINIMUM_REPORTS
    for number in range(load.rounds + 1):
        for survey in released:
            instance.add_pending(survey, n)
        # The first release only leaves 25 reports pending.
        times.append(timed(lambda: instance.work(hours=1)))
        for survey in released:
            instance.check(survey, number * n, n)
    cpu, total = map(statistics.median, zip(*times[1:], strict=True))
    label = f"{kind}: {len(surveys):,} surveys, {len(released):,} releases ({cpu:.2f} s of CPU)"
    print_figure(label, total, "s", MAX_RELEASES_SECONDS)
    idle = [timed(instance.work) for _ in range(5 * load.rounds)]
    cpu, total = (1000 * statistics.median(column) for column in zip(*idle, strict=True))
    label = f"{kind}: {len(surveys):,} surveys, nothing due ({cpu:.1f} ms of CPU)"
    print_figure(label, total, "ms", MAX_IDLE_MS)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds of this process and the elapsed seconds of some work."""
    cpu, start = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - start


@contextmanager
def transactions(store: Store) -> Iterator[list[float]]:
    """List the seconds for which each transaction of a store, with its commit, holds the lock."""
    durations: list[float] = []
    write = store._write

    @contextmanager
    def timed_write() -> Iterator[Transaction]:
        with write() as transaction:
            start = time.perf_counter()
            yield transaction
        durations.append(time.perf_counter() - start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_write", timed_write)
        yield durations


@contextmanager
def arrivals(url: str, survey: PublishedSurvey) -> Iterator[list[float]]:
    """Store reports one by one in another thread; list the seconds that each of them waits."""
    store, stop, waits = open_store(url), threading.Event(), [0.0]

    def add_reports() -> None:
        while not stop.wait(0.005):
            start = time.perf_counter()
            add(store, survey, [("", bytes(QUESTIONS))])
            waits.append(time.perf_counter() - start)

    thread = threading.Thread(target=add_reports)
    thread.start()
    try:
        yield waits
    finally:
        stop.set()
        thread.join()
        store.close_connections()


def print_figure(label: str, figure: float, unit: str, target: float) -> None:
    status = "yes" if figure <= target else "MISSED"
    ratio = figure / target
    print(f"{label:<72}{figure:>9.2f} {unit:<3}{target:>6.1f}{ratio:>8.2f}  {status}", flush=True)


PARTS = ("strata", "lock", "surveys")


def measure(kind: str, url: str, keys: Path, load: Load, parts: Sequence[str] = PARTS) -> None:
    """Print the figures of one database."""
    instance = Instance(url, keys)
    if "strata" in parts:
        for n_strata in load.strata:
            measure_strata(kind, instance, n_strata, load.rounds)
    if "lock" in parts:
        for n_pending in load.pending:
            measure_lock(kind, instance, n_pending, load)
    if "surveys" in parts:
        measure_surveys(kind, instance, load)
    instance.store.close_connections()


def main() -> None:
    """Measure both databases."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="measure only these parts")
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    options = parser.parse_args()
    load = SHORT if options.short else replace(FULL, rounds=options.rounds)
    print(f"{'':72}{'figure':>9}    {'target':>6}{'ratio':>8}")
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)
        (server := scratch / "pg").mkdir()
        urls = {
            "SQLite": f"sqlite:///{scratch / 'release.db'}",
            "PostgreSQL": stack.enter_context(postgresql(server)),
        }
        for kind, url in urls.items():
            measure(kind, url, scratch / f"keys-{kind}", load, options.part or PARTS)


if __name__ == "__main__":
    main()
