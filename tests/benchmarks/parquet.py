"""Parquet and engines at 10^8 reports, with their targets: `python -m tests.benchmarks.parquet`.

Reports are generated block by block, as a store would stream them. Seconds are those of this
machine now; what counts is the ratio to the engine's own plain statement in the same run.
`--reports 1000000 --engine pyspark` runs the other engine; `--directory` says where the files lie.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
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
from survey.store.microdata import BUCKET, STRATUM
from tests.parquet.reports import stored_codes

TURNS = 3
SLOWEST = 2.0
"""Times the engine's own plain statement that a count may take."""

BY = (STRATUM, BUCKET)

MOST_MEGABYTES = 200
"""Memory that writing may add, however many reports there are."""

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


class Generated:
    """The methods of a store that an export reads, over reports made as they are asked for."""

    def __init__(self, large: PublishedSurvey, n: int) -> None:
        self.large, self.n, self.seconds = large, n, 0.0

    def tally(self, key: int) -> Any:
        return SimpleNamespace(release=1, n=self.n)

    def tallies(self, key: int) -> dict[tuple[str, str], Any]:
        return {("", ""): self.tally(key)}

    def block_columns(self, key: int, questions: Sequence[int]) -> Iterator[list[BlockColumn]]:
        rng = np.random.default_rng(1)
        for number, start in enumerate(range(0, self.n, BLOCK_SIZE)):
            began = time.perf_counter()
            size = min(BLOCK_SIZE, self.n - start)
            block = [
                BlockColumn("", "", i, number, size, stored_codes(question, size, rng).tobytes())
                for i, question in enumerate(self.large.definition.questions)
            ]
            self.seconds += time.perf_counter() - began
            yield block


def megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def median_seconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(TURNS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def write(directory: Path, n: int) -> None:
    """Generate and export, and print what it took."""
    generated, before = Generated(survey(), n), 0.0

    def told(rows: int) -> None:
        nonlocal before
        # After the first block: what the libraries take by themselves is not the reports'.
        before = before or megabytes()

    start = time.perf_counter()
    export_reports(generated, generated.large, directory, told)  # type: ignore[arg-type]
    whole = time.perf_counter() - start
    size = sum(part.stat().st_size for part in directory.glob("*.parquet"))
    grown = megabytes() - before
    print(f"{n:,} reports of three questions")
    print(f"generated in {generated.seconds:.1f} s, written in {whole - generated.seconds:.1f} s")
    print(f"{size / 1e6:.0f} MB, {size / n / 3:.2f} bytes per answer")
    print(
        f"memory grown by {grown:.0f} MB after the first block "
        f"(target <= {MOST_MEGABYTES}: {verdict(grown <= MOST_MEGABYTES)})"
    )


def one_tally(reports: Reports, question: int, by: tuple[str, ...] = ()) -> None:
    group = ("",) * len(by)
    asked = reports.survey.definition.questions[question]
    reports._told(asked, {group: reports.manifest.n}, by)


def read(directory: Path, engine: str) -> None:
    """Count by the engine, beside its own plain statements over the same files."""
    start = time.perf_counter()
    with open_reports(directory, engine) as reports:
        print(f"\n{engine}: opened in {time.perf_counter() - start:.2f} s")
        names = ", ".join(f"'{directory / part}'" for part in reports.manifest.parts)
        backend = reports.table.get_backend()

        def plain(columns: str) -> None:
            source = f"read_parquet([{names}])" if engine == "duckdb" else "reports"
            statement = f"SELECT {columns}, count(*) FROM {source} GROUP BY {columns}"
            found = backend.raw_sql(statement)
            found.fetchall() if engine == "duckdb" else found.collect()

        worst = 0.0
        for name, ours, columns in (
            ("tally of one question", lambda: one_tally(reports, 0), "first"),
            ("the same by stratum", lambda: one_tally(reports, 0, BY), f"first, {', '.join(BY)}"),
            ("tally of bit strings", lambda: one_tally(reports, 2), "ticks"),
            ("cross-tab", lambda: reports.joint_counts("first", "second"), "first, second"),
            ("cross-tab with bits", lambda: reports.joint_counts("first", "ticks"), "first, ticks"),
        ):
            own, other = median_seconds(ours), median_seconds(lambda of=columns: plain(of))
            worst = max(worst, own / other)
            print(f"{name:<24}{own:>8.2f} s{other:>8.2f} s plain{own / other:>7.2f}")
        start = time.perf_counter()
        reports.tally()
        print(f"{'all counts':<24}{time.perf_counter() - start:>8.2f} s")
    print(f"slowest: {worst:.2f} (target <= {SLOWEST}: {verdict(worst <= SLOWEST)})")
    print(f"most memory of this process: {megabytes():.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10**8)
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--directory", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as usual:
        directory = asked.directory or Path(usual) / "export"
        if not directory.exists():
            write(directory, asked.reports)
        read(directory, asked.engine)


if __name__ == "__main__":
    main()
