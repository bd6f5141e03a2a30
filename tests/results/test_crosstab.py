"""Cross-tabulations of every kind of question with every other."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.errors import CountsError, NotFoundError
from survey.estimator import crosstab, independence, phi
from survey.parquet import export_reports
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.crosstab.table import paper_sentences
from survey.results.joint_counts import joint_counts
from survey.results.question_statistics import truth_labels
from survey.results.request import IntervalOptions
from survey.store import StoredReport
from tests.parquet.reports import fill, published
from tests.parquet.test_counting import supported
from tests.store.reports import publish_pending


def cross(store, survey, names, options=None):
    """Cross-tabulate two questions by their ids."""
    return compute_crosstab(store, survey, CrosstabRequest(*names), options or IntervalOptions())


KINDS = ["choice", "sets", "hours", "subsets", "fine", "mood"]


@pytest.mark.web
@pytest.mark.parametrize(
    "head",
    [
        pytest.param("", id="all", marks=pytest.mark.long),
        pytest.param("questions_per_person = 3\n", id="drawn"),
    ],
)
def test_joint_counts_of_every_pair_of_kinds_match_the_reports(store, head):
    survey = published(store, KINDS, head)
    for seed, stratum in enumerate(["north", "south", "north"]):
        fill(store, survey, 200, stratum, seed, drawn=0.5 if head else 1.0)
    questions = survey.definition.questions
    for a, b in combinations(range(len(KINDS)), 2):
        expected = sum(
            supported(questions[a], first.data).T @ supported(questions[b], second.data)
            for first, second in store.block_columns(survey.key, [a, b])
        )
        np.testing.assert_array_equal(joint_counts(store, survey, a, b), expected)
        np.testing.assert_array_equal(joint_counts(store, survey, b, a), expected.T)


def test_the_table_contains_the_estimates_of_the_released_reports(store):
    survey = published(store, KINDS)
    fill(store, survey, 5000)
    result = cross(store, survey, ["choice", "mood"], IntervalOptions(level=0.9))
    counts = joint_counts(store, survey, 0, KINDS.index("mood"))
    expected = crosstab(counts, [q.channel for q in result.questions], level=0.9)
    cells = zip(result.rows, expected.estimate.flat, expected.conf_high.flat, strict=True)
    for row, estimate, high in cells:
        assert (row.estimate, row.conf_high, row.n_reports) == (estimate, high, 5000)
    assert result.test.p_value == independence(counts).p_value


def test_questions_reported_as_sets_have_a_table_but_no_test(store):
    survey = published(store, KINDS)
    fill(store, survey, 2000)
    assert cross(store, survey, ["choice", "sets"]).test is None


def test_a_table_of_few_reports_is_suppressed_at_every_level(store):
    survey = published(store, KINDS)
    fill(store, survey, 60)
    for level in (0.95, 0.5):
        result = cross(store, survey, ["choice", "mood"], IntervalOptions(level=level))
        assert {(row.estimate, row.conf_low, row.flag) for row in result.rows} == {
            (None, None, "suppressed")
        }


def test_every_truth_has_its_own_label(store):
    survey = published(store, KINDS)
    for question in survey.definition.questions:
        answers = truth_labels(question)
        assert len(answers) == len(question.channel.matrix) or question.by_patterns
        assert len({label for _, label in answers}) == len(answers)


def test_labels_of_dates_are_days_and_labels_of_numbers_have_a_unit(store):
    survey = published(store, ["choice", "since", "hours"])
    _, since, hours = survey.definition.questions
    assert re.fullmatch(r"\d+ [A-Z][a-z]+ \d{4}", truth_labels(since)[0][1])
    assert truth_labels(hours)[0][1].endswith(hours.grid.unit)


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        (["choice", "choice"], CountsError, "two different questions"),
        (["choice", "none"], NotFoundError, 'no question "none" to cross: choose one of choice'),
        (["choice", "long_bits"], NotFoundError, 'no question "long_bits" to cross'),
        (["long_bits.o1", "long_bits.o2"], CountsError, "two different questions"),
        (["fine", "since"], CountsError, "cells is larger than 10,000"),
    ],
)
def test_invalid_pairs_are_rejected_with_a_reason(store, names, error, words):
    survey = published(store, [*KINDS, "since", "long_bits"])
    fill(store, survey, 60)
    with pytest.raises(error, match=words):
        cross(store, survey, names)


@pytest.mark.parametrize("kind", ["long_bits", "long_sampled"])
@pytest.mark.parametrize("head", ["", "questions_per_person = 1\n"], ids=["all", "drawn"])
def test_one_option_of_a_multiple_choice_is_cross_tabulated_as_ticked_or_not(store, kind, head):
    if head:
        head = "questions_per_person = 2\n"
    survey = published(store, ["choice", "mood", kind], head)
    fill(store, survey, 4000, drawn=0.8 if head else 1.0)
    result = cross(store, survey, ["choice", f"{kind}.o3"])
    expected = np.zeros((survey.definition.questions[0].channel.counted, 2), dtype=int)
    channel = survey.definition.questions[2].channel
    for first, second in store.block_columns(survey.key, [0, 2]):
        a = np.frombuffer(first.data, np.uint8).reshape(first.n, -1)
        b = np.frombuffer(second.data, np.uint8).reshape(second.n, -1)
        for code_a, code_b in zip(a, b, strict=True):
            if head and not (code_a[0] and code_b[0]):
                continue
            bits = np.unpackbits(code_b[1:] if head else code_b)
            if channel.is_sampled and not bits[3]:
                continue
            expected[code_a[-1], 1 - bits[3 + (channel.m if channel.is_sampled else 0)]] += 1
    np.testing.assert_array_equal(result.table.made_from.counts, expected)
    assert {row.second_option_label for row in result.rows} == {"Ticked", "Not ticked"}
    assert {row.second_question_id for row in result.rows} == {f"{kind}.o3"}
    ticked, error = result.table.estimate[:, 0].sum(), result.table.std_error[:, 0].sum()
    # Everybody ticked one of them.
    assert abs(ticked - 1 / channel.m) < 5 * error


def test_two_questions_of_two_answers_have_their_correlation(store, monkeypatch):
    # The correlation belongs to a table that is shown; these bits would need more reports.
    monkeypatch.setattr("survey.results.crosstab.compute.disclosure", lambda *_tables: "show")
    survey = published(store, ["bits", "long_bits"])
    fill(store, survey, 3000)
    names = [f"{question.id}.{question.options[0].id}" for question in survey.definition.questions]
    result = cross(store, survey, names)
    assert result.phi.estimate == phi(result.table).estimate
    is_zero_possible = result.phi.conf_low < 0 < result.phi.conf_high
    assert is_zero_possible
    assert not any("φ = " in sentence for sentence in paper_sentences(result))
    shown = replace(result, phi=replace(result.phi, conf_low=0.1, conf_high=0.3))
    assert "interval 0.10 to 0.30" in paper_sentences(shown)[-1]
    assert cross(store, survey, names, IntervalOptions(level=0.8)).phi.level == 0.8


def test_two_questions_without_reports_are_rejected_by_name(store):
    survey = published(store, KINDS)
    with pytest.raises(CountsError, match="no released report includes both choice and mood"):
        cross(store, survey, ["choice", "mood"])


@pytest.mark.parametrize("n", [30, 5000])
def test_identical_reports_have_a_table_but_no_test(store, n):
    survey = published(store, ["choice", "mood"])
    rows = [
        (survey.key, StoredReport(os.urandom(16), "", bytes([0, number % 3])))
        for number in range(n)
    ]
    store.add_reports(rows)
    publish_pending(store, survey, 25)
    result = cross(store, survey, ["choice", "mood"])
    assert result.test is None
    assert (result.is_suppressed) == (n == 30)


# Ibis 12 calls what newer engines call deprecated.
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_an_export_gives_the_same_table_as_its_store(store, settings, tmp_path):
    survey = published(store, KINDS)
    fill(store, survey, 5000)
    export_reports(store, survey, tmp_path / "out", lambda n: None)
    command = ["estimate", "--cross", "choice", "mood", "--csv"]
    stored = CliRunner(env={"SURVEY_DATABASE": settings.database}).invoke(main, [*command, "every"])
    exported = CliRunner().invoke(main, [*command, "--parquet", str(tmp_path / "out")])
    assert exported.exit_code == 0, exported.output
    assert exported.stdout == stored.stdout


def test_the_command_prints_words_csv_and_json(store, settings):
    survey = published(store, KINDS)
    fill(store, survey, 5000)

    def run(*arguments):
        command = ["estimate", "every", "--cross", "choice", "mood", *arguments]
        return CliRunner(env={"SURVEY_DATABASE": settings.database}).invoke(main, command)

    words = run()
    assert words.exit_code == 0, words.output
    assert "5,000 released reports include both questions" in words.output
    assert "test of independence: chi-square" in words.output
    rows = list(csv.DictReader(io.StringIO(run("--csv").stdout)))
    as_json = json.loads(run("--json").stdout)
    assert [float(row["estimate"]) for row in rows] == [row["estimate"] for row in as_json]
    assert len(rows) == len(cross(store, survey, ["choice", "mood"]).rows)
    assert run("--simultaneous").exit_code == 2
