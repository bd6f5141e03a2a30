"""The replication package recomputes every published figure, in Python and in R."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from zipfile import ZipFile

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.results.exports import replicate
from survey.results.exports.formats import FORMATS
from survey.results.exports.replication import write_replication
from survey.settings import Caps
from survey.store import PublishedSurvey, Store
from tests.browser.research import add_released
from tests.conftest import TODAY, long_unless
from tests.surveys import EVERY_DESIGN, EVERY_TYPE, MATRIX

# Little privacy, so that few responses suffice for publishing.
TYPES = EVERY_TYPE.replace("epsilon = 0.5", "epsilon = 4")
DESIGNS = EVERY_DESIGN.replace(b"epsilon = 0.7", b"epsilon = 3").decode()
DRAWN = MATRIX.replace("2.7", "6").replace("epsilon = 1", "epsilon = 3")
DRAWN = f"questions_per_person = 1\n{DRAWN}"
SCRIPTS = {"replicate.py": [sys.executable], "replicate.R": ["Rscript"]}


def released(store: Store, toml: str, sizes: dict[str, int]) -> PublishedSurvey:
    caps = Caps(survey=Decimal(100))
    survey = publish(store, load(toml.encode(), "s.toml", caps), TODAY)
    for stratum, n in sizes.items():
        add_released(store, survey, n, stratum=stratum)
    return survey


def unpack(store: Store, survey: PublishedSurvey, folder: Path) -> Path:
    file = io.BytesIO()
    write_replication(file, store, survey)
    with ZipFile(file) as packed:
        packed.extractall(folder)
    return folder


def published_rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "published.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def alter_one_number(folder: Path, question: str) -> None:
    """Change the code of one report to another one."""
    file = folder / "reports.csv"
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    row = random.Random(1).choice([row for row in rows if row[question]])
    codes = {other[question] for other in rows} - {row[question], ""}
    row[question] = min(codes)
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def test_the_script_recomputes_every_figure_and_detects_one_altered_report(store, tmp_path, capsys):
    survey = released(store, DRAWN, {"": 900, "north": 300})
    folder = unpack(store, survey, tmp_path)
    assert replicate.main(folder) == 0
    output = capsys.readouterr().out
    rows = published_rows(folder)
    assert output.count("\nsame") + output.startswith("same") == sum(
        row["recomputed"] == "yes" for row in rows
    )
    assert {row["statistic"] for row in rows} == {"share", "mean", "median"}
    assert all(row["recomputed"] == "yes" for row in rows)
    assert {row["stratum"] for row in rows if row["scope"] == "stratum"} == {"", "north"}
    alter_one_number(folder, "old")
    assert replicate.main(folder) == 1
    output = capsys.readouterr()
    assert "DIFFERENT" in output.out
    assert "reports.csv is not the file that the manifest describes" in output.err


def test_the_script_detects_a_file_that_changes_no_figure(store, tmp_path, capsys):
    folder = unpack(store, released(store, DRAWN, {"": 900}), tmp_path)
    (folder / "codebook.txt").write_text("Another codebook")
    assert replicate.main(folder) == 1
    assert "codebook.txt is not the file" in capsys.readouterr().err


def test_a_displayed_distribution_that_does_not_fit_the_reports_counts_as_different(
    store, tmp_path, capsys
):
    folder = unpack(store, released(store, DRAWN, {"": 900}), tmp_path)
    file = folder / "displayed.csv"
    head, first, second, *others = file.read_text().splitlines()
    shares = [line.split(",") for line in (first, second)]
    shares[0][4], shares[1][4] = shares[1][4], shares[0][4]
    file.write_text("\n".join([head, *map(",".join, shares), *others]))
    assert replicate.main(folder) == 1
    different = [line for line in capsys.readouterr().out.splitlines() if "DIFFERENT" in line]
    assert len(different) == 1
    assert "work_pay median" in different[0]


def test_published_figures_are_those_of_the_results_page(store, tmp_path):
    survey = released(store, DRAWN, {"": 900})
    rows = [row for row in published_rows(unpack(store, survey, tmp_path)) if row["scope"] == "all"]
    shown = ResultCache(store).result(survey).rows
    assert len(rows) == len(shown)
    for row, figure in zip(rows, shown, strict=True):
        assert (row["question_id"], row["option_id"]) == (figure.question_id, figure.option_id)
        for name in ("estimate", "conf_low", "conf_high"):
            number = getattr(figure, name)
            assert (
                row[name] == ""
                if number is None
                else float(row[name])
                == pytest.approx(number, abs=0.51 * 10 ** -int(row["decimals"]))
            )


def test_the_manifest_has_the_hash_of_every_file(store, tmp_path):
    survey = released(store, DRAWN, {"": 100})
    folder = unpack(store, survey, tmp_path / "package")
    manifest = json.loads((folder / "manifest.json").read_text())
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert manifest["files"] == files
    assert manifest["definition_sha256"] == survey.sha256 == files["definition.json"]
    assert manifest["software"].startswith("survey ")


def test_suppressed_figures_are_named_and_have_no_numbers(store, tmp_path, capsys):
    survey = released(store, DRAWN, {"": 50})
    folder = unpack(store, survey, tmp_path)
    suppressed = [row for row in published_rows(folder) if row["flag"] == "suppressed"]
    assert suppressed
    assert not any(row["estimate"] or row["conf_low"] or row["displayed"] for row in suppressed)
    replicate.main(folder)
    assert "suppressed: there are not enough responses" in capsys.readouterr().out


@pytest.mark.web
@pytest.mark.parametrize("toml", long_unless([TYPES], [TYPES, DESIGNS]), ids=["types", "designs"])
def test_both_scripts_recompute_all_types_and_fail_for_one_altered_report(store, tmp_path, toml):
    survey = released(store, toml, {"": 1200})
    folder = unpack(store, survey, tmp_path / "a folder")
    n_recomputed = sum(row["recomputed"] == "yes" for row in published_rows(folder))
    statistics = {row["statistic"] for row in published_rows(folder) if row["recomputed"] == "yes"}
    assert statistics == {"share", "mean", "median"} | (
        {"mean_rank"} if "ranking" in toml else set()
    )

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = [*SCRIPTS[script], str(folder / script)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    outputs = {script: run(script) for script in SCRIPTS}
    for result in outputs.values():
        assert result.returncode == 0, result.stdout + result.stderr
        assert f"{n_recomputed} figures recomputed, 0 different" in result.stdout
    assert outputs["replicate.py"].stdout == outputs["replicate.R"].stdout
    original = (folder / "reports.csv").read_bytes()
    for question in ("mood", "places"):
        alter_one_number(folder, question)
        for script in SCRIPTS:
            result = run(script)
            assert result.returncode == 1, (script, question)
            assert "DIFFERENT" in result.stdout
        (folder / "reports.csv").write_bytes(original)


HAVEN = """
library(haven)
for (name in c("reports.sav", "reports.dta")) {
  data <- if (name == "reports.sav") read_sav(name) else read_dta(name)
  labels <- attr(data$work_pay, "labels")
  cat(nrow(data), attr(data$old, "label"), names(labels)[labels == 4],
      sprintf("%.6f", mean(data$work_pay_mean)), "\\n", sep = "|")
}
"""


@pytest.mark.web
def test_r_reads_labels_and_the_published_mean_from_spss_and_stata_files(store, tmp_path):
    survey = released(store, MATRIX.replace("2.7", "6").replace('"Very"', '"Très"'), {"": 500})
    for form in ("spss", "stata"):
        file = io.BytesIO()
        FORMATS[form].write(file, store, survey)
        with ZipFile(file) as packed:
            packed.extractall(tmp_path)
    (tmp_path / "read.R").write_text(HAVEN)
    result = subprocess.run(
        ["Rscript", "read.R"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert result.returncode == 0, result.stderr
    mean = ResultCache(store).result(survey).question("work_pay").mean
    assert mean is not None
    asked = "Randomized report: Have you worked here for more than a year?"
    assert result.stdout.splitlines() == [f"500|{asked}|5 (Très)|{mean.estimate:.6f}|"] * 2
