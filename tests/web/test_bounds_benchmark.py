"""The benchmark of the largest definitions runs, and every page of each of them answers."""

from __future__ import annotations

import pytest

from tests.benchmarks import bounds

pytestmark = pytest.mark.web


def test_the_benchmark_of_the_largest_definitions_runs(tmp_path, capsys):
    cases = bounds.cases(2)
    bounds.measure(f"sqlite:///{tmp_path / 'bounds.db'}", cases)
    n_pages = len(bounds.DRAFT_PAGES) + len(bounds.RESULT_PAGES)
    assert len(capsys.readouterr().out.splitlines()) == 2 * n_pages * len(cases)
    bounds.check_refusals()
