"""The benchmarks of storage run with few reports, so that they cannot rot."""

from __future__ import annotations

import pytest

from tests.benchmarks import crosstab, open_survey, parquet, storage

pytestmark = pytest.mark.web

FIGURES = {
    open_survey: "survey backup / backup API",
    storage: "SQLite, n = 2,000: cross-tab",
    crosstab: "slowest cross-tab against numpy",
    parquet: "tally of one question",
}
"""A figure that each benchmark prints."""


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # called by Ibis 12
@pytest.mark.parametrize("benchmark", FIGURES, ids=lambda module: module.__name__)
def test_a_benchmark_runs_with_few_reports(benchmark, capsys):
    benchmark.main(["--short"])
    assert FIGURES[benchmark] in capsys.readouterr().out
