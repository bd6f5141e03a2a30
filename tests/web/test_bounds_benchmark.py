"""The benchmark of the largest definitions runs, and every page of each of them answers."""

from __future__ import annotations

import pytest

from tests.benchmarks import bounds

pytestmark = pytest.mark.web


def test_the_benchmark_of_the_largest_definitions_runs(tmp_path, capsys):
    all_cases = bounds.cases(2)
    cases = {name: all_cases[name] for name in ("choices", "matrices")}
    bounds.measure(f"sqlite:///{tmp_path / 'bounds.db'}", cases)
    n_pages = len(bounds.DRAFT_PAGES) + len(bounds.RESULT_PAGES)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("2 ") for line in lines) == 2 * n_pages * len(cases)
    bounds.check_refusals()
