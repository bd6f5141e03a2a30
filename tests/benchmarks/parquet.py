"""Measure Parquet exports and query engines at 10^8 reports: `python -m tests.benchmarks.parquet`.

The benchmark generates reports block by block, as a store streams them. Times depend on the
machine; compare the ratio to the engine's plain statement in the same run. Use
`--reports 1000000 --engine pyspark` for the second engine, and `--directory` to keep the files.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from survey.collect.release import BLOCK_SIZE
from survey.parquet import export_reports, open_reports
from survey.parquet.counting import Reports
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import BlockColumn, PublishedSurvey
from survey.store.releases import BUCKET, STRATUM
from tests.benchmarks.short import benchmark_parser
from tests.parquet.reports import stored_codes

TURNS = 5
MAX_RATIO = 1.3
"""Maximum CPU time of a count, relative to the engine's plain statement."""

BY = (STRATUM, BUCKET)

MAX_GROWTH_MB = 200
"""Maximum growth of memory while writing, for any number of reports."""

SURVEY = """
slug = "large"
title = "Large"
epsilon = 1
[[pages]]
[[pages.questions]]
id = "first"
type = "single_choice"
text = "First?"
prefer_not_to_say = false
options = [{options}]
[[pages.questions]]
id = "second"
type = "single_choice"
text = "Second?"
prefer_not_to_say = false
options = [{options}]
[[pages.questions]]
id = "ticks"
type = "multiple_choice"
mechanism = "bits"
text = "Ticks?"
options = [{options}]
"""
OPTIONS = ", ".join(f'{{ id = "{letter}", label = "{letter}" }}' for letter in "abcde")


def survey() -> PublishedSurvey:
    text = SURVEY.replace("{options}", OPTIONS).encode()
    definition = freeze(load(text, "large.toml", Caps()), 1)
    canonical = definition.canonical
    return PublishedSurvey(1, "large", 1, definition.sha256, "open", date(2026, 11, 21), canonical)


class GeneratedStore:
    """The methods of a store that an export uses, over reports generated on demand."""

    def __init__(self, large: PublishedSurvey, n: int) -> None:
        self.large, self.n, self.seconds = large, n, 0.0

    def tally(self, key: int) -> Any:
        return SimpleNamespace(release=1, n=self.n)

    def tallies(self, key: int) -> dict[tuple[str, str], Any]:
        return {("", ""): self.tally(key)}

    def block_columns(self, key: int, questions: Sequence[int]) -> Iterator[list[BlockColumn]]:
        rng = np.random.default_rng(1)
        for number, start in enumerate(range(0, self.n, BLOCK_SIZE)):
            start_time = time.perf_counter()
            size = min(BLOCK_SIZE, self.n - start)
            block = [
                BlockColumn("", "", i, number, size, stored_codes(question, size, rng).tobytes())
                for i, question in enumerate(self.large.definition.questions)
            ]
            self.seconds += time.perf_counter() - start_time
            yield block


def megabytes() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def median_seconds(works: Sequence[Callable[[], object]]) -> list[float]:
    """Return the median CPU seconds of each work, in interleaved rounds.

    Spark runs in other processes, so its figure is the elapsed time.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(TURNS):
        for work, seconds in zip(works, times, strict=True):
            start, clock = time.process_time(), time.perf_counter()
            work()
            cpu, total = time.process_time() - start, time.perf_counter() - clock
            seconds.append(total if "pyspark" in sys.modules else cpu)
    return [statistics.median(seconds) for seconds in times]


def verdict(is_met: bool) -> str:
    return "reached" if is_met else "MISSED"


def write(directory: Path, n: int) -> None:
    """Generate and export reports; print the time, size and memory."""
    generated, before = GeneratedStore(survey(), n), 0.0

    def progress(rows: int) -> None:
        nonlocal before
        # Measuring from the first block leaves out the memory of the libraries.
        before = before or megabytes()

    start = time.perf_counter()
    export_reports(generated, generated.large, directory, progress)  # type: ignore[arg-type]
    total = time.perf_counter() - start
    size = sum(part.stat().st_size for part in directory.glob("*.parquet"))
    growth = megabytes() - before
    print(f"{n:,} reports of three questions")
    print(f"generated in {generated.seconds:.1f} s, written in {total - generated.seconds:.1f} s")
    print(f"{size / 1e6:.0f} MB, {size / n / 3:.2f} bytes per answer")
    print(
        f"memory growth of {growth:.0f} MB after the first block "
        f"(target <= {MAX_GROWTH_MB}: {verdict(growth <= MAX_GROWTH_MB)})"
    )


def count_question(reports: Reports, question: int, by: tuple[str, ...] = ()) -> None:
    group = ("",) * len(by)
    definition = reports.survey.definition.questions[question]
    reports._counts(definition, {group: reports.manifest.n}, by)


def count_reports(directory: Path, engine: str) -> None:
    """Print the times of our counts and of the engine's plain statements over the same files."""
    start = time.perf_counter()
    with open_reports(directory, engine) as reports:
        print(f"\n{engine}: opened in {time.perf_counter() - start:.2f} s")
        names = ", ".join(f"'{directory / part}'" for part in reports.manifest.parts)
        backend = reports.table.get_backend()

        def plain(columns: str) -> None:
            source = f"read_parquet([{names}])" if engine == "duckdb" else "reports"
            statement = f"SELECT {columns}, count(*) FROM {source} GROUP BY {columns}"
            result = backend.raw_sql(statement)
            rows = result.fetchall() if engine == "duckdb" else result.collect()
            if sum(row[-1] for row in rows) != reports.manifest.n:
                raise RuntimeError("the engine did not count all reports")

        worst = 0.0
        for name, ours, columns in (
            ("tally of one question", lambda: count_question(reports, 0), "first"),
            ("tally by stratum", lambda: count_question(reports, 0, BY), f"first, {', '.join(BY)}"),
            ("tally of bit strings", lambda: count_question(reports, 2), "ticks"),
            ("cross-tab", lambda: reports.joint_counts("first", "second"), "first, second"),
            ("cross-tab with bits", lambda: reports.joint_counts("first", "ticks"), "first, ticks"),
        ):
            our_time, plain_time = median_seconds([ours, partial(plain, columns)])
            ratio = our_time / plain_time
            worst = max(worst, ratio)
            print(f"{name:<24}{our_time:>8.2f} s{plain_time:>8.2f} s plain{ratio:>7.2f}")
        start = time.perf_counter()
        reports.tally()
        print(f"{'all counts':<24}{time.perf_counter() - start:>8.2f} s")
    print(f"slowest: {worst:.2f} (target <= {MAX_RATIO}: {verdict(worst <= MAX_RATIO)})")
    print(f"peak memory of this process: {megabytes():.0f} MB")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--reports", type=int, default=10**8)
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args(arguments)
    n = 10_000 if options.short else options.reports
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.directory or Path(scratch) / "export"
        if not directory.exists():
            write(directory, n)
        count_reports(directory, options.engine)


if __name__ == "__main__":
    main()
