"""Commands and workers import heavy libraries only when they use them."""

from __future__ import annotations

import pytest

from tests.benchmarks import startup
from tests.startup import imported_by, serve_respondents

HEAVY = {
    *(
        "altair",
        "argon2",
        "granian",
        "ibis",
        "openpyxl",
        "pandas",
        "pyarrow",
        "pyotp",
        "scipy",
        "segno",
    ),
    *("sqlite_utils", "vl_convert", "weasyprint", "xlsxwriter"),
}
"""Libraries that respondents' requests never need."""

VERSION = """
from click.testing import CliRunner
from survey.cli import main
assert CliRunner().invoke(main, ["--version"]).exit_code == 0
"""


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def test_the_version_is_printed_without_numpy_flask_or_pydantic():
    modules = imported_by(VERSION)
    assert packages(modules) & {*HEAVY, "flask", "numpy", "pydantic", "sqlite3"} == set()
    assert {module for module in modules if module.startswith("survey.")} == {
        "survey.cli",
        "survey.errors",
        "survey.version",
    }


def test_the_mechanisms_need_numpy_and_no_other_library():
    modules = packages(imported_by("import survey.mechanism"))
    assert modules & {*HEAVY, "click", "flask", "pydantic", "sqlite3"} == set()


def test_the_estimators_load_the_libraries_of_notebooks_only_when_they_use_them():
    modules = packages(imported_by("import survey.estimator"))
    assert modules & {"altair", "flask", "pandas", "pyarrow"} == set()


@pytest.mark.web
def test_a_worker_that_serves_respondents_loads_no_heavy_library(tmp_path):
    modules = set(serve_respondents(tmp_path)["modules"])
    assert packages(modules) & HEAVY == set()


def test_the_server_that_starts_workers_loads_no_web_framework():
    modules = packages(imported_by("import survey.server"))
    assert modules & {*HEAVY, "flask", "werkzeug", "jinja2"} == set()


@pytest.mark.web
def test_the_benchmark_of_starts_runs_and_its_servers_stay_within_their_memory(capsys):
    startup.measure_servers(None, rounds=1)
    output = capsys.readouterr().out
    (memory,) = (line for line in output.splitlines() if line.startswith("MB with researchers"))
    assert memory.endswith("yes"), output
