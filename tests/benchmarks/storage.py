"""Reading and releasing 10^5 to 10^7 reports: `python -m tests.benchmarks.storage`.

Ten questions of eight options each, on SQLite and on PostgreSQL: the dashboard's page the first
time after a release, a cross-tab from the stored blocks beside chunked bincounts of the same
columns in memory, bytes per answer, all counts rebuilt, a backup; and how long a release of
65,536 reports holds the write lock. Blocks are written as a copy of a store writes them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from survey.app import create_app
from survey.archive import backup, check
from survey.collect.publication import publish
from survey.collect.release import BLOCK_SIZE, release
from survey.estimator.tables.crosstab import CHUNK
from survey.questionnaire.loading import load
from survey.research.credentials import Passwords
from survey.results.counts import joint_counts
from survey.settings import Caps, Settings
from survey.store import N_ASKED, PublishedSurvey, Store, StoredReport, open_store
from tests.benchmarks.ingestion import postgresql
from tests.conftest import EMAIL, PASSWORD, SECRET
from tests.store.databases import Outside
from tests.web.test_research import sign_in

QUESTIONS, OPTIONS = 10, 8
TURNS = 5
RELEASED = 65_536

SLOWER_DASHBOARD, SLOWER_CROSSTAB, MOST_BYTES, LONGEST_MS = 1.2, 1.3, 1.1, 150

DEFINITION = 'slug = "load"\ntitle = "Load"\nepsilon = 1\n' + "".join(
    f'[[questions]]\nid = "q{i}"\ntype = "single_choice"\ntext = "Q{i}?"\n'
    "prefer_not_to_say = false\noptions = ["
    + ", ".join(f'{{ id = "o{j}", label = "O{j}" }}' for j in range(OPTIONS))
    + "]\n"
    for i in range(QUESTIONS)
)

Column = NDArray[np.uint8]


def fill(store: Store, n: int, url: str) -> tuple[PublishedSurvey, list[Column]]:
    """A survey with n released reports, and the first two columns as they are stored."""
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps(survey=200)), today())
    rng = np.random.default_rng(n)
    columns = [rng.integers(0, OPTIONS, n, dtype=np.uint8) for _ in range(QUESTIONS)]

    def blocks() -> Iterator[tuple[int | str | bytes, ...]]:
        for question, column in enumerate(columns):
            for number, start in enumerate(range(0, n, BLOCK_SIZE)):
                part = column[start : start + BLOCK_SIZE]
                yield survey.key, "", "", question, number, len(part), part.tobytes()

    def counts() -> Iterator[tuple[int | str | bytes, ...]]:
        for question, column in enumerate(columns):
            yield survey.key, "", "", question, N_ASKED, n
            for option, count in enumerate(np.bincount(column, minlength=OPTIONS).tolist()):
                yield survey.key, "", "", question, option, count

    store.insert_rows("block", blocks())
    store.insert_rows("counts", sorted(counts()))
    Outside(url).run("UPDATE release SET number = 1, n = ? WHERE survey = ?", [n, survey.key])
    # Ids of a closed survey are forgotten; what is measured is what is released.
    store.close_survey(survey.slug, today())
    return survey, columns[:2]


def today() -> date:
    return datetime.now(UTC).date()


def seconds(work: Callable[[], object], turns: int = TURNS) -> float:
    taken = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def plain(a: Column, b: Column) -> NDArray[np.int64]:
    """The baseline: chunked bincount of a combined index, as one would write it."""
    counts = np.zeros(OPTIONS**2, dtype=np.int64)
    for start in range(0, len(a), CHUNK):
        index = a[start : start + CHUNK].astype(np.intp) * OPTIONS + b[start : start + CHUNK]
        counts += np.bincount(index, minlength=counts.size)
    return counts


def page(store: Store, database: str) -> float:
    """Seconds for the dashboard's page with nothing remembered, as after a release."""
    settings = Settings(secret=SECRET, database=database, password_cost=1)

    def first_look() -> float:
        client = create_app(settings, store).test_client()
        assert sign_in(client).status_code == 302
        start = time.perf_counter()
        assert client.get("/research/surveys/load/1").status_code == 200
        return time.perf_counter() - start

    return statistics.median(first_look() for _ in range(TURNS))


def crossed(store: Store, survey: PublishedSurvey, a: Column, b: Column) -> tuple[float, float]:
    """Seconds for a cross-tab from the store, and for the baseline; in turns, and equal."""
    pairs = []
    for _ in range(TURNS):
        stored = seconds(lambda: joint_counts(store, survey, 0, 1), 1)
        pairs.append((stored, seconds(lambda: plain(a, b), 1)))
    np.testing.assert_array_equal(joint_counts(store, survey, 0, 1).ravel(), plain(a, b))
    place = sorted(range(TURNS), key=lambda turn: pairs[turn][0] / pairs[turn][1])[TURNS // 2]
    return pairs[place]


def line(words: str, figure: float, unit: str, ratio: float | None, target: float | None) -> None:
    compared = "" if ratio is None or target is None else f"{ratio:>9.2f}{target:>8}"
    reached = "" if not compared else "  yes" if ratio <= target else "  MISSED"  # type: ignore[operator]
    print(f"{words:<58}{figure:>10.1f} {unit:<4}{compared}{reached}", flush=True)


def reading(kind: str, database: Callable[[int], str], sizes: list[int], scratch: Path) -> None:
    """The figures of each size; ratios are held against their targets at the largest."""
    first_page = 0.0
    for n in sizes:
        url, largest, of = database(n), n == sizes[-1], f"{kind}, n = {n:,}"
        store = open_store(url)
        store.migrate()
        store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD))
        survey, (a, b) = fill(store, n, url)
        taken = page(store, url)
        first_page = first_page or taken
        slower = taken / first_page if largest else None
        line(f"{of}: dashboard, ratio to the first n", 1000 * taken, "ms", slower, SLOWER_DASHBOARD)
        stored, memory = crossed(store, survey, a, b)
        slower = stored / memory if largest else None
        line(f"{of}: cross-tab, ratio to memory", 1000 * stored, "ms", slower, SLOWER_CROSSTAB)
        if kind == "SQLite":
            store.vacuum()
            size = Path(url.removeprefix("sqlite:///")).stat().st_size / (n * QUESTIONS)
            line(f"{of}: bytes per answer", size, "", size if largest else None, MOST_BYTES)
        rebuilt = 1000 * seconds(partial(check_all, store), 3)
        line(f"{of}: all counts rebuilt", rebuilt, "ms", None, None)
        file = scratch / f"{kind}-{n}.backup"
        line(f"{of}: backup", seconds(partial(backup, store, file, silent), 1), "s", None, None)
        store.close_connections()


def check_all(store: Store) -> None:
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


def releasing(kind: str, url: str) -> None:
    """The longest of the transactions that release what waits, half a block being there."""
    store = open_store(url)
    store.migrate()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps(survey=200)), today())
    rng = np.random.default_rng(1)
    wait(store, survey, rng, BLOCK_SIZE // 2)
    release(store, survey, 25)
    longest = []
    for _ in range(TURNS):
        wait(store, survey, rng, RELEASED)
        held: list[float] = []
        plainly = store.release

        def timed(*arguments, plainly=plainly, held=held, **others):
            start = time.perf_counter()
            n = plainly(*arguments, **others)
            held.append(time.perf_counter() - start)
            return n

        store.release = timed  # type: ignore[method-assign]
        start = time.perf_counter()
        assert release(store, survey, 25) == RELEASED
        whole = time.perf_counter() - start
        store.release = plainly  # type: ignore[method-assign]
        longest.append((max(held), len(held), whole))
    most, portions, whole = sorted(longest)[TURNS // 2]
    line(f"{kind}: release of {RELEASED:,} in {portions} parts, the longest", 1000 * most, "ms",
         1000 * most / LONGEST_MS, 1.0)  # fmt: skip
    line(f"{kind}: the whole release", 1000 * whole, "ms", None, None)
    store.close_connections()


def wait(store: Store, survey: PublishedSurvey, rng: np.random.Generator, n: int) -> None:
    codes = rng.integers(0, OPTIONS, (n, QUESTIONS), dtype=np.uint8)
    for start in range(0, n, 4096):
        rows = codes[start : start + 4096]
        reports = [(survey.key, StoredReport(os.urandom(16), "", row.tobytes())) for row in rows]
        assert not any(store.add_reports(reports))


def silent(done: int, total: int) -> None:
    """Nobody watches."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10**7)
    most = parser.parse_args().most
    sizes = [n for n in (10**5, 10**6, 10**7) if n <= most]
    print(f"{'':58}{'figure':>10}     {'ratio':>9}{'target':>8}")
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)

        def server(name: object) -> str:
            (own := scratch / f"pg{name}").mkdir()
            return str(stack.enter_context(postgresql(own)))

        releasing("SQLite", f"sqlite:///{scratch / 'release.db'}")
        releasing("PostgreSQL", server("release"))
        reading("SQLite", lambda n: f"sqlite:///{scratch / f'{n}.db'}", sizes, scratch)
        reading("PostgreSQL", server, sizes, scratch)


if __name__ == "__main__":
    main()
