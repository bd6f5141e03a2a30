"""Every benchmark runs with small numbers, and fails if the code that it measures fails."""

from __future__ import annotations

import ast
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from flask import Response, request

from tests.benchmarks import builder, coverage, estimate, explore
from tests.conftest import ROOT

pytestmark = pytest.mark.web

FIGURES = {
    "builder": "5 questions: feedback while writing",
    "coverage": "default: minimum coverage, simulated",
    "coverage_tables": "finite_shares",
    "crosstab": "slowest cross-tab against numpy",
    "designs": "recommended: 2 (target 2)",
    "distribution": "overall minimum",
    "distribution_alternatives": "width of ours",
    "estimate": "baseline: scipy's Wilson",
    "explore": "cross-tab, joint inversion",
    "joint": "type I error at .05 of the test of independence",
    "means": "overall minimum",
    "mechanism_peers": "multi-freq-ldpy",
    "mechanism_speed": "1,000,000 simulated GRR answers",
    "mechanism_variance": "worst ratio best / min(rivals)",
    "open_survey": "survey backup / backup API",
    "overload": "acknowledged",
    "parquet": "tally of one question",
    "peers_estimate": "multi-freq-ldpy",
    "phi": "least coverage",
    "planned_margins": "baseline: ",
    "regression": "least coverage",
    "shown_coverage": "respondents needed / announced",
    "sign_in_timing": "known / unknown, medians",
    "small_groups": "multilevel regression",
    "storage": "SQLite, n = 2,000: cross-tab",
    "suppressed_rows": "recommended: 2 of 8 questions",
    "weights": "Kish alone",
}
"""A figure that each benchmark prints."""

ELSEWHERE = {
    "bounds": "web/test_bounds_benchmark.py",
    "dashboard": "web/test_result_pages.py",
    "home": "web/test_home_benchmark.py",
    "ingestion": "collect/test_ingestion_benchmark.py",
    "readers": "test_research_process.py",
    "release": "collect/test_release_benchmark.py",
    "reload": "deploy/test_reload.py",
    "soak": "faults/test_soak.py",
    "startup": "test_startup.py",
}
"""Benchmarks that other tests run."""

TOO_LONG = ("lighthouse", "mutation")
"""Benchmarks that need Lighthouse or run other tests; here they only read arguments."""


def benchmark(name: str):
    return import_module(f"tests.benchmarks.{name}")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # called by Ibis 12
@pytest.mark.parametrize("name", FIGURES)
def test_a_benchmark_runs_with_small_numbers(name, capsys):
    benchmark(name).main(["--short"])
    assert FIGURES[name] in capsys.readouterr().out


@pytest.mark.parametrize("name", TOO_LONG)
def test_a_long_benchmark_reads_its_arguments(name, capsys):
    with pytest.raises(SystemExit) as end:
        benchmark(name).main(["--help"])
    assert end.value.code == 0
    assert "--short" in capsys.readouterr().out


def test_every_benchmark_is_run_by_a_test():
    files = (ROOT / "tests/benchmarks").glob("*.py")
    names = {file.stem for file in files if "def main(" in file.read_text(encoding="utf-8")}
    assert names == {*FIGURES, *ELSEWHERE, *TOO_LONG}
    for name, test in ELSEWHERE.items():
        assert name in imported_benchmarks(test), test


def imported_benchmarks(test: str) -> set[str]:
    """Return the benchmarks that a test file imports something from."""
    tree = ast.parse((ROOT / "tests" / test).read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = {node.module.rpartition(".")[2] for node in froms if node.module}
    packages = [node for node in froms if node.module == "tests.benchmarks"]
    return modules | {alias.name for node in packages for alias in node.names}


@pytest.mark.parametrize(
    ("module", "path"),
    [(builder, "/questions/"), (explore, "/explore")],
    ids=["builder", "explore"],
)
def test_a_benchmark_of_pages_fails_for_another_status(module, path, monkeypatch):
    original = module.create_app

    def create_failing_app(*arguments):
        app = original(*arguments)
        app.before_request(lambda: Response(status=500) if path in request.path else None)
        return app

    monkeypatch.setattr(module, "create_app", create_failing_app)
    with pytest.raises(RuntimeError, match="status 500"):
        module.main(["--short"])


def test_the_benchmark_of_estimates_fails_for_shares_that_do_not_add_up(monkeypatch):
    shares = SimpleNamespace(estimate=np.array([0.5, 0.4]))
    monkeypatch.setattr(estimate, "proportions", lambda *_: shares)
    with pytest.raises(RuntimeError, match="sum of the estimated shares"):
        estimate.main(["--short"])


def test_the_benchmark_of_coverage_fails_for_intervals_that_cover_nothing(monkeypatch):
    def no_interval(counts, *_):
        return np.ones(len(counts)), np.zeros(len(counts))

    monkeypatch.setattr(coverage, "confidence_interval", no_interval)
    with pytest.raises(RuntimeError, match="ratio to the target"):
        coverage.main(["--short", "shares"])
