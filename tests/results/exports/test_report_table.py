"""Tables of reports with labels, for SPSS, Stata and R, and their debiased columns."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import numpy as np
import pyreadstat
import pytest

from survey.collect.publication import publish
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.results.estimates.compute import estimate_question, question_mean
from survey.results.exports.formats import FORMATS
from survey.results.exports.report_table import code_variables, read_table
from survey.results.request import DEFAULT_OPTIONS
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import ROOT, SMALL, TODAY
from tests.surveys import EVERY_DESIGN, EVERY_TYPE, MATRIX, ROUTED_AND_DRAWN

DDI = {"d": "ddi:codebook:2_5"}
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def released(store, toml: str | bytes, n: int = 200):
    content = toml if isinstance(toml, bytes) else toml.encode()
    survey = publish(store, load(content, "s.toml", Caps()), TODAY)
    add_released(store, survey, n)
    return survey


def members_of(store, survey, form: str) -> dict[str, bytes]:
    file = io.BytesIO()
    FORMATS[form].write(file, store, survey)
    with ZipFile(file) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")))


def estimates_of(store, survey) -> dict[tuple[str, str, str], float]:
    """Return what the estimator says, also where pages suppress it."""
    tally, estimates = store.tally(survey.key), {}
    for question, n, counts in zip(
        survey.definition.questions, tally.n_asked, tally.counts, strict=True
    ):
        found = estimate_question(question, n, counts, DEFAULT_OPTIONS)
        if found.shares is not None:
            for option, share in zip(question.options, found.shares.estimate, strict=True):
                estimates[question.id, "share", option.id] = share
        if found.mean is not None:
            estimates[question.id, "mean", ""] = found.mean.estimate
        for option, mean in zip(question.options, found.mean_ranks, strict=False):
            estimates[question.id, "mean rank", option.id] = mean.estimate
    return estimates


@pytest.mark.parametrize("toml", [EVERY_TYPE, EVERY_DESIGN, ROUTED_AND_DRAWN, MATRIX])
def test_the_plain_average_of_each_debiased_column_is_the_published_estimate(store, toml):
    survey = released(store, toml)
    table = read_table(store, survey)
    averages = {
        (variable.question_id, variable.content, variable.option_id): np.nanmean(column)
        for variable, column in zip(table.variables, table.columns, strict=True)
        if variable.is_debiased
    }
    bases = [averages.pop(key) for key in list(averages) if key[1] == "base"]
    assert bases == pytest.approx([1] * len(bases))
    estimates = estimates_of(store, survey)
    assert averages.keys() == estimates.keys()
    for key, average in averages.items():
        assert f"{average:.6f}" == f"{estimates[key] + 0.0:.6f}", key


def test_the_mean_of_a_group_is_the_ratio_of_two_averages(store):
    survey = released(store, EVERY_TYPE)
    add_released(store, survey, 200, (0.1, 0.1, 0.5, 0.3), stratum="north")
    table = read_table(store, survey)
    columns = dict(zip((v.name for v in table.variables), table.columns, strict=True))
    north = columns["stratum"] == "north"
    ratio = columns["hours_mean"][north].mean() / columns["hours_base"][north].mean()
    place = [q.id for q in survey.definition.questions].index("hours")
    (tally,) = (t for (name, _), t in store.tallies(survey.key).items() if name == "north")
    question = survey.definition.questions[place]
    mean = question_mean(question, np.array(tally.counts[place]), DEFAULT_OPTIONS)
    assert ratio == pytest.approx(mean.estimate)


def test_the_codebook_of_the_csv_reproduces_the_published_mean(store):
    survey = released(store, EVERY_TYPE)
    members = members_of(store, survey, "csv")
    values = {
        (row["question_id"], row["code"]): float(row["plain_value"])
        for row in rows_of(members["values.csv"])
        if row["statistic"] == "mean"
    }
    estimates = estimates_of(store, survey)
    for question in ("hours", "since", "mood", "warmth"):
        codes = [row[question] for row in rows_of(members["reports.csv"])]
        average = np.mean([values[question, code] for code in codes])
        assert average == pytest.approx(estimates[question, "mean", ""], abs=1e-6)


@pytest.mark.parametrize("toml", [EVERY_TYPE.encode(), EVERY_DESIGN])
def test_the_codebook_of_codes_names_each_option_of_a_column_of_bits(toml):
    definition = freeze(load(toml, "s.toml", Caps()), 1)
    variables = list(code_variables(definition))
    for question in definition.questions:
        columns = [variable for variable in variables if variable.name == question.id]
        if question.channel.report_bits:
            options = [option.id for option in question.options]
            assert [variable.option_id for variable in columns] == options, question.id
        else:
            assert [variable.content for variable in columns] == ["code"], question.id


AWKWARD = """
slug = "awkward"
title = "Labels and ids that look like something else"
epsilon = 2

[[pages]]
[[pages.questions]]
id = "n_mean"
type = "single_choice"
text = "Which kind?"
prefer_not_to_say = false
options = [{id = "na", label = "NA"}, {id = "none", label = "None"}, {id = "new", label = "New"}]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours?"
low = 0
high = 10
"""


def examples(language: str) -> str:
    page = ROOT / "survey" / "handbook" / "how-to" / "spss-stata-r.md"
    (block,) = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    return str(block)


def test_the_example_for_pandas_keeps_labels_that_look_missing(
    store, tmp_path: Path, monkeypatch, capsys
):
    survey = released(store, AWKWARD)
    for name, content in members_of(store, survey, "labels").items():
        (tmp_path / Path(name).name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(examples("python"), names)
    counts = names["reports"]["n_mean"].value_counts()
    assert counts[["NA", "None", "New"]].tolist() == list(store.tally(survey.key).counts[0])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[:-1]] == [
        *(f"n_mean_share_{id_}" for id_ in ("na", "none", "new")),
        *("hours_share_prefer_not_to_say", "hours_mean"),
    ]


@pytest.mark.web
def test_the_example_for_r_averages_the_debiased_columns_only(store, tmp_path: Path):
    survey = released(store, AWKWARD)
    for name, content in members_of(store, survey, "stata").items():
        (tmp_path / Path(name).name).write_bytes(content)
    code = examples("r") + 'cat(names(colMeans(reports[debiased], na.rm = TRUE)), sep = "\\n")'
    output = subprocess.run(
        ["Rscript", "-e", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert output[-5:] == [
        *(f"n_mean_share_{id_}" for id_ in ("na", "none", "new")),
        *("hours_share_prefer_not_to_say", "hours_mean"),
    ]
    assert "n_mean" not in output


def test_the_channels_list_probabilities_that_add_up_to_one(store):
    survey = released(store, EVERY_DESIGN)
    totals: Counter[tuple[str, ...]] = Counter()
    for row in rows_of(members_of(store, survey, "labels")["channels.csv"]):
        key = (row["question_id"], row["per"], row["option_id"], row["truth"])
        totals[key] += float(row["probability"])
    assert {key[0] for key in totals} == {q.id for q in survey.definition.questions}
    assert np.allclose(list(totals.values()), 1)


@pytest.mark.parametrize("form", ["spss", "stata"])
def test_spss_and_stata_files_have_labels_in_unicode(store, tmp_path: Path, form):
    toml = MATRIX.replace("Working hours", "Arbeitszeit 早")
    survey = released(store, toml.replace('"Not at all"', '"Überhaupt nicht"'))
    suffix = {"spss": "sav", "stata": "dta"}[form]
    file = tmp_path / f"reports.{suffix}"
    file.write_bytes(members_of(store, survey, form)[file.name])
    frame, meta = getattr(pyreadstat, f"read_{suffix}")(str(file))
    assert len(frame) == 200
    labels = dict(zip(meta.column_names, meta.column_labels, strict=True))
    assert labels["old"] == "Randomized report: Have you worked here for more than a year?"
    assert "Arbeitszeit 早" in labels["work_hours"]
    assert meta.variable_value_labels["work_pay"][0] == "1 (Überhaupt nicht)"
    assert set(frame["old"]) <= {0, 1, 2}
    mean = estimates_of(store, survey)["work_pay", "mean", ""]
    assert frame["work_pay_mean"].mean() == pytest.approx(mean)


def test_long_names_and_labels_fit_each_program_and_the_readme_names_what_was_shortened(
    store, tmp_path
):
    long_id = "a_question_with_an_identifier_of_more_than_thirty_two"
    toml = SMALL.replace('"fell_asleep"', f'"{long_id}"').replace('"pressure"', f'"{long_id}_2"')
    text = "Did you ever " + "really " * 35 + "fall asleep?"
    label = "Ja – " + "sehr " * 40 + "oft"
    toml = toml.replace("Did you fall asleep at work?", text).replace('"Often"', f'"{label}"')
    survey = released(store, toml)
    for form, suffix in (("spss", "sav"), ("stata", "dta")):
        members = members_of(store, survey, form)
        file = tmp_path / f"reports.{suffix}"
        file.write_bytes(members[file.name])
        _, meta = getattr(pyreadstat, f"read_{suffix}")(str(file), metadataonly=True)
        names = meta.column_names
        assert len({name.lower() for name in names}) == len(names)
        assert all(re.fullmatch("[a-z][a-z0-9_]{0,30}", name) for name in names)
        limit = 256 if form == "spss" else 80
        sizes = [len(label.encode() if form == "spss" else label) for label in meta.column_labels]
        assert max(sizes) <= limit
        readme = " ".join(members["README.txt"].decode().split())
        assert "codebook.csv has the full labels of" in readme
        assert long_id[:31] in readme
        codebook = rows_of(members["codebook.csv"])
        assert any(row["label"].endswith(" fall asleep?") for row in codebook)
        assert any(row["code_label"] == label for row in codebook)


@pytest.mark.security
def test_the_table_has_a_new_random_order_and_nothing_that_identifies_a_report(store):
    survey = released(store, EVERY_TYPE)
    first, second = (members_of(store, survey, "labels")["reports.csv"] for _ in range(2))
    assert first != second
    assert Counter(first.splitlines()) == Counter(second.splitlines())
    about = {variable.question_id for variable in read_table(store, survey).variables}
    assert about == {"", *(question.id for question in survey.definition.questions)}


@pytest.mark.security
def test_a_label_that_looks_like_a_formula_is_text_in_the_labelled_csv(store):
    survey = released(store, SMALL.replace('label = "Never"', 'label = "=1+1"'))
    rows = rows_of(members_of(store, survey, "labels")["reports.csv"])
    assert "'=1+1" in {row["pressure"] for row in rows}
    assert "=1+1" not in {row["pressure"] for row in rows}


def test_the_ddi_codebook_has_all_variables_categories_and_languages(store):
    survey = released(store, MATRIX.replace('"Working hours"', '"Hours \\uFFFE< & >"'))
    members = members_of(store, survey, "stata")
    root = ElementTree.fromstring(members["codebook.xml"])
    assert root.tag == "{ddi:codebook:2_5}codeBook"
    assert root.get("version") == "2.5"
    assert [child.tag.partition("}")[2] for child in root] == [
        *("docDscr", "stdyDscr", "fileDscr", "dataDscr")
    ]
    variables = root.findall("d:dataDscr/d:var", DDI)
    names = [variable.get("name") for variable in variables]
    assert names == list(dict.fromkeys(row["variable"] for row in rows_of(members["codebook.csv"])))
    assert len({variable.get("ID") for variable in variables}) == len(names)
    pay = variables[names.index("work_pay")]
    asked = {text.get(LANGUAGE): text.text for text in pay.findall("d:qstn/d:qstnLit", DDI)}
    assert asked.keys() == {"en", "es"}
    assert "El sueldo" in asked["es"]
    categories = [
        (item.findtext("d:catValu", "", DDI), item.findtext("d:labl", "", DDI))
        for item in pay.findall("d:catgry", DDI)
    ]
    assert ("0", "1 (Not at all)") in categories
    assert "epsilon" in pay.findtext("d:txt", "", DDI)
    assert root.findtext("d:fileDscr/d:fileTxt/d:dimensns/d:caseQnty", "", DDI) == "200"
    title = root.find("d:stdyDscr/d:citation/d:titlStmt", DDI)
    assert title is not None
    assert title.findtext("d:titl", "", DDI) == "Work"
    assert title.findtext("d:parTitl", "", DDI) == "Trabajo"
    approach = root.findtext("d:stdyDscr/d:method/d:anlyInfo/d:dataAppr", "", DDI)
    assert "randomized every answer" in approach
