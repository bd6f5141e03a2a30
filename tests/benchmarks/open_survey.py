"""Measure storage and copies of an open survey: `python -m tests.benchmarks.open_survey`.

The keeper releases reports of ten questions while the survey stays open, so that the database also
contains the ids by which it recognizes repeated reports. The benchmark prints the bytes per answer,
and then the CPU time of `survey backup` and of SQLite's own backup API, of a check, and of copies
between SQLite and PostgreSQL. A backup includes the check of all content. After each copy, the
benchmark compares the numbers of reports. `--short` runs it once with few reports.
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import numpy as np

from survey.archive import backup, check_store, copy_store, restore
from survey.collect.publication import publish
from survey.collect.release import Keeper, release_simulated
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PrivateKeys, PublishedSurvey, Store, StoredReport, open_store
from tests.benchmarks.ingestion import postgresql
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.storage import DEFINITION, OPTIONS, QUESTIONS, ignore_progress, today
from tests.store.databases import DirectAccess

PORTION = 65_536
"""Number of reports of one simulated release."""

N_PENDING = 40
"""Number of pending reports of the measured survey, as after a release."""

MAX_BYTES, MAX_BACKUP_RATIO, MAX_SECONDS = 2.0, 3.0, 60.0

SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
    "WHERE relname IN ('block', 'counts', 'released_ids', 'pending', 'pending_id')",
}


def fill(store: Store, n: int, keys: PrivateKeys) -> PublishedSurvey:
    """Publish a survey, release reports in portions, and leave some pending."""
    with keys.lock():
        Keeper(store, keys, 3600).work()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps(survey=200)), today())
    rng = np.random.default_rng(n)
    for start in range(0, n, PORTION):
        release_simulated(store, survey, reports(rng, min(PORTION, n - start)))
    if any(store.add_reports([(survey.key, item) for item in reports(rng, N_PENDING)])):
        raise RuntimeError("the store rejects reports")
    return survey


def reports(rng: np.random.Generator, n: int) -> list[StoredReport]:
    codes = rng.integers(0, OPTIONS, (n, QUESTIONS), dtype=np.uint8)
    return [StoredReport(os.urandom(16), "", row.tobytes()) for row in codes]


def bytes_per_answer(url: str, n: int) -> float:
    """Return the size of the database, or of its tables of reports, for each answer."""
    ((size,),) = DirectAccess(url).run(SIZE[url.partition(":")[0]])
    return float(size) / (n * QUESTIONS)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time that some work takes in this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def copy_with_backup_api(source: Path, target: Path) -> None:
    """Copy a database as SQLite's own backup API does: the baseline of a backup."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def require_equal(store: Store, url: str, n: int) -> None:
    """Require that a copy contains all reports."""
    copy = open_store(url)
    survey = copy.versions("load")[0]
    found = (copy.n_released(survey.key), copy.n_pending(survey.key), len(store.surveys()))
    copy.close_connections()
    if found != (n, N_PENDING, 1):
        raise RuntimeError(f"the copy has {found} instead of {(n, N_PENDING, 1)}")


class Rounds:
    """Interleaved rounds of several functions, each on new files."""

    def __init__(self, scratch: Path, rounds: int) -> None:
        self._scratch, self._rounds = scratch, rounds

    def medians(self, works: Sequence[Callable[[Path], object]]) -> list[float]:
        """Return the median CPU seconds of each function, which gets the path of a new file."""
        times: list[list[float]] = [[] for _ in works]
        for _ in range(self._rounds):
            for work, seconds in zip(works, times, strict=True):
                file = self._scratch / "round.db"
                seconds.append(cpu_seconds(partial(work, file)))
                file.unlink(missing_ok=True)
        return [statistics.median(seconds) for seconds in times]


def print_figure(label: str, figure: float, unit: str, target: float | None = None) -> None:
    end = ""
    if target is not None:
        end = f"{target:>8.1f}{figure / target:>8.2f}  {'yes' if figure <= target else 'MISSED'}"
    print(f"{label:<66}{figure:>9.3f} {unit:<3}{end}", flush=True)


def measure(n: int, scratch: Path, server: Callable[[], str], rounds: int) -> None:
    """Print all figures of one number of reports."""
    file, keys = scratch / "open.db", PrivateKeys(scratch / "keys")
    url = f"sqlite:///{file}"
    store = open_store(url)
    store.migrate()
    fill(store, n, keys)
    store.retry_clean_up()
    print_figure(f"SQLite, n = {n:,}: bytes per answer", bytes_per_answer(url, n), "", MAX_BYTES)

    def write_backup(target: Path) -> None:
        if backup(store, target, ignore_progress).reports != n:
            raise RuntimeError("the backup lacks reports")

    api, ours, checked = Rounds(scratch, rounds).medians(
        [
            partial(copy_with_backup_api, file),
            write_backup,
            lambda _: check_store(store),
        ]
    )
    print_figure("SQLite's backup API, CPU", api, "s")
    print_figure("survey backup with its check, CPU", ours, "s")
    print_figure("survey check-store, CPU", checked, "s")
    print_figure("survey backup / backup API", ours / api, "", MAX_BACKUP_RATIO)
    measure_copies(store, n, scratch, server, keys)
    store.close_connections()


def measure_copies(
    store: Store, n: int, scratch: Path, server: Callable[[], str], keys: PrivateKeys
) -> None:
    """Print the times of copies into new databases and back."""
    saved, restored = scratch / "saved.db", f"sqlite:///{scratch / 'restored.db'}"
    backup(store, saved, ignore_progress)
    for kind, url in (("SQLite", restored), ("PostgreSQL", server())):
        target = open_store(url)
        start = time.perf_counter()
        cpu = cpu_seconds(partial(restore, saved, target, keys, ignore_progress))
        label = f"survey restore into {kind} ({cpu:.2f} s of CPU)"
        print_figure(label, time.perf_counter() - start, "s", MAX_SECONDS)
        require_equal(store, url, n)
        target.close_connections()
    print_figure("PostgreSQL: bytes per answer", bytes_per_answer(url, n), "")
    source, copy = open_store(url), scratch / "copy.db"
    for kind, work, new in (
        ("backup of PostgreSQL", partial(backup, source, copy, ignore_progress), copy),
        (
            "copy-store from SQLite to PostgreSQL",
            partial(copy_store, store, other := open_store(server()), keys, ignore_progress),
            None,
        ),
    ):
        start = time.perf_counter()
        cpu = cpu_seconds(work)
        label = f"survey {kind} ({cpu:.2f} s of CPU)"
        print_figure(label, time.perf_counter() - start, "s", MAX_SECONDS)
        if new:
            require_equal(store, f"sqlite:///{new}", n)
    for used in (source, other):
        used.close_connections()


def new_server(stack: ExitStack, scratch: Path) -> str:
    """Start a PostgreSQL server that the stack stops; return its URL."""
    return stack.enter_context(postgresql(Path(tempfile.mkdtemp(dir=scratch))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each number of reports."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--reports", type=int, action="append", help="default: 10^6")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    sizes = [3_000] if options.short else options.reports or [10**6]
    print(f"{'':66}{'figure':>9}    {'target':>8}{'ratio':>8}")
    for n in sizes:
        with ExitStack() as stack:
            scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
            stack.callback(shutil.rmtree, scratch)
            server = partial(new_server, stack, scratch)
            measure(n, scratch, server, 1 if options.short else options.rounds)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
