"""Releases are reproducible and list their contents."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from readme_renderer import markdown

from survey import __version__
from survey.respond.client import Client
from tests.conftest import ROOT
from tests.deploy.test_image import pinned

CHANGES = (ROOT / "survey/handbook/changelog.md").read_text(encoding="utf-8")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "survey", "client_js", "deploy", "tests")
WITHOUT = shutil.ignore_patterns("node_modules", "__pycache__")


def build_wheel(directory: Path, timestamp: int) -> Path:
    """Build a wheel from a copy of the sources whose files have this modification time."""
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=WITHOUT)
        else:
            directory.mkdir(exist_ok=True)
            shutil.copy(source, directory)
    for path in directory.rglob("*"):
        os.utime(path, (timestamp, timestamp))
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"],
        cwd=directory,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"},
        check=True,
        capture_output=True,
    )
    (wheel,) = (directory / "out").glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), 1_600_000_000)


def test_a_wheel_contains_exactly_the_package_the_client_and_its_metadata(wheel):
    listed = subprocess.run(
        ["git", "ls-files", "survey", "client_js/src"], cwd=ROOT, capture_output=True, text=True
    )
    expected = {
        re.sub("^client_js/src", "survey/static/client", name)
        for name in listed.stdout.splitlines()
    }
    metadata = f"ldp_survey-{__version__}.dist-info"
    names = ("METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE", "RECORD")
    with ZipFile(wheel) as archive:
        assert set(archive.namelist()) == expected | {f"{metadata}/{name}" for name in names}


def test_the_readme_renders_on_pypi_with_links_that_leave_it(wheel):
    with ZipFile(wheel) as archive:
        metadata = archive.read(f"ldp_survey-{__version__}.dist-info/METADATA").decode()
    html = markdown.render(metadata.partition("\n\n")[2], variant="GFM")
    assert html is not None
    targets = re.findall(r'(?:href|src)="([^"]+)"', html)
    assert len(targets) > 15
    assert all(target.startswith(("https://", "#")) for target in targets), targets
    for extra in ("parquet", "postgresql", "scale"):
        assert f"Provides-Extra: {extra}\n" in metadata
    for version in ("3.11", "3.12", "3.13"):
        assert f"Classifier: Programming Language :: Python :: {version}\n" in metadata


def test_a_package_of_the_same_name_is_reported(wheel, tmp_path):
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "survey/__init__.py").write_text("__all__ = ()\n", encoding="utf-8")
    for command in (["-c", "import survey.mechanism"], ["-m", "survey.cli", "--version"]):
        process = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert process.returncode == 1
        assert "pip uninstall survey; pip install --force-reinstall" in process.stderr


@pytest.mark.web
def test_two_wheels_of_the_same_sources_are_identical(tmp_path):
    first = build_wheel(tmp_path / "first", 1_600_000_000)
    second = build_wheel(tmp_path / "elsewhere", 1_700_000_000)
    assert first.name == second.name == f"ldp_survey-{__version__}-py3-none-any.whl"
    assert first.read_bytes() == second.read_bytes()
    with ZipFile(first) as wheel:
        names = wheel.namelist()
    assert any(name.endswith("static/client/main.js") for name in names)
    assert not any("test" in name.split("/")[0] for name in names)


def test_the_changes_begin_with_the_current_version():
    versions = re.findall(r"^## \[(\S+)\] - ", CHANGES, re.M)
    assert versions[0] == __version__


AUDIT = "pip-audit --require-hashes -r deploy/requirements.txt"
RUN = "bash .ci/run"
PUBLISH = "publish --provenance --access public dist/ldp-survey-client-*.tgz"
WORKFLOWS = {"ci": [RUN, AUDIT], "release": [RUN, AUDIT, "bash .ci/release dist", PUBLISH]}
"""Commands of each workflow in this order: a release must pass all checks first."""


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_workflows_run_the_project_s_scripts_and_the_audit_with_pinned_actions(name):
    text = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    commands = [step.get("run", "") for step in steps]
    places = [
        [place for place, command in enumerate(commands) if expected in command]
        for expected in WORKFLOWS[name]
    ]
    assert [len(matches) for matches in places] == [1] * len(places)
    assert places == sorted(places)
    assert not any("continue-on-error" in step or "if" in step for step in steps)
    actions = [step["uses"] for step in steps if "uses" in step]
    assert all(re.search(r"@[0-9a-f]{40}$", action) for action in actions)
    for script in re.findall(r"\.ci/[\w.]+\w", text.partition("jobs:")[2]):
        assert (ROOT / script).exists()


@pytest.mark.long
def test_a_release_has_hashes_a_bill_of_materials_and_the_client_with_its_manifest(tmp_path):
    process = subprocess.run(
        ["bash", ROOT / ".ci/release", tmp_path], capture_output=True, text=True, cwd=tmp_path
    )
    assert process.returncode == 0, process.stderr
    for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
        sha256, name = line.split()
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == sha256
    (bom,) = tmp_path.glob("*.cdx.json")
    contents = json.loads(bom.read_text())
    names = {component["name"].lower().replace("_", "-") for component in contents["components"]}
    assert contents["metadata"]["component"]["name"] == "ldp-survey"
    assert names - {"ldp-survey"} == set(pinned("requirements.txt"))
    assert str(tmp_path) not in bom.read_text()
    notes = (tmp_path / "NOTES.md").read_text()
    client = Client.load()
    assert f"ldp-survey-client-{__version__}.tgz" in (tmp_path / "SHA256SUMS").read_text()
    with tarfile.open(tmp_path / f"ldp-survey-client-{__version__}.tgz") as package:
        assert {"package/types/npm/index.d.ts", "package/LICENSE"} <= set(package.getnames())
    assert (tmp_path / "client-manifest.json").read_bytes() == client.manifest_bytes
    config = json.loads((tmp_path / "webcat.config.json").read_text())
    assert config == client.webcat_config(config["app"])
    with tarfile.open(tmp_path / f"ldp_survey-{__version__}.client.tar.gz") as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        contents = {name.removeprefix("client/"): file.read() for name, file in files.items()}
    assert contents == {**client.served, "client-manifest.json": client.manifest_bytes}
    assert "survey bundle client" in notes
    changes = re.split(r"^## .*\n", CHANGES, flags=re.M)[1]
    assert changes.strip() in notes
