"""The benchmarks of storage run with few reports, so that they cannot rot."""

from __future__ import annotations

import pytest

from tests.benchmarks import open_survey

pytestmark = pytest.mark.web


def test_the_benchmark_of_an_open_survey_runs(capsys):
    open_survey.main(["--short"])
    assert "survey backup / backup API" in capsys.readouterr().out
