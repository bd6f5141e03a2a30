"""Measure reading 10^5 to 10^7 released reports: `python -m tests.benchmarks.storage`.

The survey has ten questions of eight options, on SQLite and on PostgreSQL. The benchmark measures
the first dashboard after a release, a cross-tab from stored blocks and from chunked bincounts of
the same columns in memory, bytes per answer, a rebuild of all counts, and a backup. It inserts
blocks as restoring a backup does. `tests.benchmarks.release` measures releases.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import numpy as np

from survey.app import create_app
from survey.archive import backup, check
from survey.collect.publication import publish
from survey.collect.release import BLOCK_SIZE
from survey.mechanism.channel import CHUNK, Codes, Integers
from survey.questionnaire.loading import load
from survey.research.credentials import Passwords
from survey.results.joint_counts import joint_counts
from survey.settings import Caps, Settings
from survey.store import (
    N_ASKED,
    PublishedSurvey,
    Store,
    open_store,
)
from survey.store.digests import row_digest
from tests.benchmarks.ingestion import postgresql
from tests.benchmarks.short import benchmark_parser
from tests.conftest import EMAIL, PASSWORD, SECRET
from tests.store.databases import DirectAccess
from tests.web.researchers import sign_in

QUESTIONS, OPTIONS = 10, 8
TURNS = 5

MAX_DASHBOARD_RATIO, MAX_CROSSTAB_RATIO, MAX_BYTES = 1.2, 1.3, 1.1

DEFINITION = 'slug = "load"\ntitle = "Load"\nepsilon = 1\n' + "".join(
    f'[[questions]]\nid = "q{i}"\ntype = "single_choice"\ntext = "Q{i}?"\n'
    "prefer_not_to_say = false\noptions = ["
    + ", ".join(f'{{ id = "o{j}", label = "O{j}" }}' for j in range(OPTIONS))
    + "]\n"
    for i in range(QUESTIONS)
)


def fill(store: Store, n: int, url: str) -> tuple[PublishedSurvey, list[Codes]]:
    """Publish a survey and insert n released reports; return its first two stored columns, too."""
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps(survey=200)), today())
    rng = np.random.default_rng(n)
    columns = [rng.integers(0, OPTIONS, n, dtype=np.uint8) for _ in range(QUESTIONS)]

    def blocks() -> Iterator[tuple[int | str | bytes, ...]]:
        for question, column in enumerate(columns):
            for number, start in enumerate(range(0, n, BLOCK_SIZE)):
                part = column[start : start + BLOCK_SIZE]
                row = (survey.key, "", "", question, number, len(part), part.tobytes())
                yield *row, row_digest(row)

    def counts() -> Iterator[tuple[int | str | bytes, ...]]:
        for question, column in enumerate(columns):
            yield survey.key, "", "", question, N_ASKED, n
            for option, count in enumerate(np.bincount(column, minlength=OPTIONS).tolist()):
                yield survey.key, "", "", question, option, count

    store.insert_rows("block", blocks())
    store.insert_rows("counts", sorted(counts()))
    DirectAccess(url).run("UPDATE release SET number = 1, n = ? WHERE survey = ?", [n, survey.key])
    # Closing the survey deletes report ids, so that only released data is measured.
    store.close_survey(survey.slug, today())
    return survey, columns[:2]


def today() -> date:
    return datetime.now(UTC).date()


def seconds(
    work: Callable[[], object],
    turns: int = TURNS,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the median seconds of some work."""
    times = []
    for _ in range(turns):
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)


def baseline_counts(a: Codes, b: Codes) -> Integers:
    """Return the baseline: chunked bincounts of a combined index."""
    counts = np.zeros(OPTIONS**2, dtype=np.int64)
    for start in range(0, len(a), CHUNK):
        index = a[start : start + CHUNK].astype(np.intp) * OPTIONS + b[start : start + CHUNK]
        counts += np.bincount(index, minlength=counts.size)
    return counts


def dashboard_seconds(store: Store, database: str) -> float:
    """Return the seconds for a dashboard with empty caches, as after a release."""
    settings = Settings(secret=SECRET, database=database, password_cost=1)

    def first_response() -> float:
        client = create_app(settings, store).test_client()
        assert sign_in(client).status_code == 302
        start = time.perf_counter()
        assert client.get("/research/surveys/load/1").status_code == 200
        return time.perf_counter() - start

    return statistics.median(first_response() for _ in range(TURNS))


def crosstab_seconds(
    store: Store, survey: PublishedSurvey, a: Codes, b: Codes
) -> tuple[float, float]:
    """Return the CPU seconds for a cross-tab from the store and for the baseline, run in turns."""
    pairs = []
    for _ in range(TURNS):
        stored = seconds(lambda: joint_counts(store, survey, 0, 1), 1, time.process_time)
        pairs.append((stored, seconds(lambda: baseline_counts(a, b), 1, time.process_time)))
    np.testing.assert_array_equal(joint_counts(store, survey, 0, 1).ravel(), baseline_counts(a, b))
    place = sorted(range(TURNS), key=lambda turn: pairs[turn][0] / pairs[turn][1])[TURNS // 2]
    return pairs[place]


def print_line(
    label: str, figure: float, unit: str, ratio: float | None, target: float | None
) -> None:
    comparison = "" if ratio is None or target is None else f"{ratio:>9.2f}{target:>8}"
    status = "" if not comparison else "  yes" if ratio <= target else "  MISSED"  # type: ignore[operator]
    print(f"{label:<58}{figure:>10.1f} {unit:<4}{comparison}{status}", flush=True)


def measure_reading(
    kind: str, database: Callable[[int], str], sizes: list[int], scratch: Path
) -> None:
    """Print the figures of each size; compare the ratios with their targets at the largest."""
    first_time = 0.0
    for n in sizes:
        url, is_largest, case = database(n), n == sizes[-1], f"{kind}, n = {n:,}"
        store = open_store(url)
        store.migrate()
        store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
        survey, (a, b) = fill(store, n, url)
        dashboard_time = dashboard_seconds(store, url)
        first_time = first_time or dashboard_time
        ratio = dashboard_time / first_time if is_largest else None
        print_line(
            f"{case}: dashboard, ratio to the first n",
            1000 * dashboard_time,
            "ms",
            ratio,
            MAX_DASHBOARD_RATIO,
        )
        stored, memory = crosstab_seconds(store, survey, a, b)
        ratio = stored / memory if is_largest else None
        print_line(
            f"{case}: cross-tab, ratio to memory", 1000 * stored, "ms", ratio, MAX_CROSSTAB_RATIO
        )
        if kind == "SQLite":
            store.vacuum()
            size = Path(url.removeprefix("sqlite:///")).stat().st_size / (n * QUESTIONS)
            print_line(
                f"{case}: bytes per answer", size, "", size if is_largest else None, MAX_BYTES
            )
        rebuild_ms = 1000 * seconds(partial(check_all, store), 3)
        print_line(f"{case}: rebuild of all counts", rebuild_ms, "ms", None, None)
        file = scratch / f"{kind}-{n}.backup"
        print_line(
            f"{case}: backup",
            seconds(partial(backup, store, file, ignore_progress), 1),
            "s",
            None,
            None,
        )
        store.close_connections()


def check_all(store: Store) -> None:
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


def ignore_progress(n_done: int, total: int) -> None:
    """Ignore the progress of a backup."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--most", type=int, default=10**7)
    options = parser.parse_args(arguments)
    sizes = [n for n in (10**5, 10**6, 10**7) if n <= options.most]
    if options.short:
        sizes = [2_000]
    print(f"{'':58}{'figure':>10}     {'ratio':>9}{'target':>8}")
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)

        def server(name: object) -> str:
            (directory := scratch / f"pg{name}").mkdir()
            return str(stack.enter_context(postgresql(directory)))

        measure_reading("SQLite", lambda n: f"sqlite:///{scratch / f'{n}.db'}", sizes, scratch)
        if not options.short:
            measure_reading("PostgreSQL", server, sizes, scratch)


if __name__ == "__main__":
    main()
