"""The microdata file contains every released report once, and everything needed to use it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from zipfile import ZipFile

import numpy as np
import pytest

from survey.collect.publication import publish
from survey.estimator import mean, proportions
from survey.mechanism import WeightTable, channel_from_json
from survey.mechanism.bit_vector import TickChannel
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.results.exports.microdata import readme, report_cells, write_microdata
from survey.settings import Caps
from survey.store import StoredReport
from tests.browser.research import add_released, stored_code
from tests.conftest import SMALL, TODAY
from tests.store.reports import publish_pending
from tests.surveys import EVERY_TYPE

ONE_QUESTION_EACH = SMALL.replace(
    'truth_probability = "3/4"', 'truth_probability = "3/4"\nquestions_per_person = 1'
)


@pytest.fixture
def every_type(store):
    survey = publish(store, load(EVERY_TYPE.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 200)
    return survey


def open_file(store, survey):
    """Return the members of the ZIP, and the rows of its reports."""
    file = io.BytesIO()
    n = write_microdata(file, store, survey)
    with ZipFile(file) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    rows = list(csv.DictReader(io.StringIO(members["reports.csv"].decode("utf-8"), newline="")))
    assert len(rows) == n
    return members, rows


def counts_of(question, cells) -> list[int]:
    """Return the counts that the estimator takes, computed from the file alone."""
    channel = channel_from_json(question["channel"])
    if question["code"] == "bits":
        return np.array([[int(bit) for bit in cell.split()] for cell in cells]).sum(0).tolist()
    return np.bincount([int(cell) for cell in cells], minlength=channel.counted).tolist()


def test_the_counts_of_the_file_equal_those_of_the_results_page(store, every_type):
    members, rows = open_file(store, every_type)
    tally = store.tally(every_type.key)
    described = json.loads(members["channels.json"])["questions"]
    for question, counts in zip(described, tally.counts, strict=True):
        assert counts_of(question, [row[question["id"]] for row in rows]) == list(counts)


def test_the_file_alone_gives_the_estimates_of_the_results_page(store, small):
    add_released(store, small, 3000)
    members, rows = open_file(store, small)
    question = json.loads(members["channels.json"])["questions"][0]
    counts = counts_of(question, [row[question["id"]] for row in rows])
    shares = proportions(counts, channel_from_json(question["channel"]))
    on_page = [row.estimate for row in ResultCache(store).result(small).questions[0].shares]
    assert shares.estimate.tolist() == pytest.approx(on_page)
    by_hand = (counts[0] / len(rows) - question["q"]) / (question["p"] - question["q"])
    assert by_hand == pytest.approx(on_page[0])


def test_the_weights_of_a_table_are_included_so_that_anybody_can_invert_it(store, every_type):
    members, _ = open_file(store, every_type)
    described = {item["id"]: item for item in json.loads(members["channels.json"])["questions"]}
    for question in every_type.definition.questions:
        name = described[question.id]["weights"]
        assert len(described[question.id]["answers"]) == question.channel.options or isinstance(
            question.channel, TickChannel
        )
        assert (name is not None) == isinstance(question.channel, WeightTable)
        if name is not None:
            rows = list(csv.reader(io.StringIO(members[name].decode())))[1:]
            weights = np.array([[int(weight) for weight in row[1:]] for row in rows])
            matrix = weights / weights.sum(axis=1, keepdims=True)
            assert np.allclose(matrix, question.channel.matrix)
    assert any(name.startswith("weights/") for name in members)


def test_the_file_alone_gives_the_mean(store, every_type):
    members, rows = open_file(store, every_type)
    (question,) = (q for q in every_type.definition.questions if q.id == "warmth")
    chances = list(csv.reader(io.StringIO(members["weights/warmth.csv"].decode())))[1:]
    weights = np.array([[int(weight) for weight in row[1:]] for row in chances], dtype=float)
    P = weights / weights.sum(axis=1, keepdims=True)
    g = np.linalg.lstsq(P, np.array(question.grid.values), rcond=None)[0]
    codes = [int(row["warmth"]) for row in rows if row["warmth"]]
    assert np.allclose(P @ g, question.grid.values, atol=1e-6)
    counts = np.bincount(codes, minlength=question.channel.reports)
    result = mean(counts, question.channel, question.grid.values)
    assert abs(g[codes].mean() - result.estimate) < 3 * result.std_error


def test_each_report_appears_once_with_all_its_answers(store, every_type):
    _, rows = open_file(store, every_type)
    questions = every_type.definition.questions
    stored_rows = Counter()
    for block in store.block_columns(every_type.key, range(len(questions))):
        cells = [
            report_cells(question, np.frombuffer(column.data, np.uint8))
            for question, column in zip(questions, block, strict=True)
        ]
        stored_rows.update(zip(*cells, strict=True))
    assert Counter(tuple(row[q.id] for q in questions) for row in rows) == stored_rows


@pytest.mark.security
def test_every_file_has_a_new_random_order(store, every_type):
    _, first = open_file(store, every_type)
    _, second = open_file(store, every_type)
    assert first != second
    assert Counter(map(str, first)) == Counter(map(str, second))


@pytest.mark.security
def test_the_file_contains_no_id_and_no_pending_report(store, small):
    add_released(store, small, 100)
    ids = [os.urandom(16) for _ in range(10)]
    pending = [(small.key, StoredReport(identity, "", bytes([0, 0]))) for identity in ids]
    store.add_reports(pending)
    members, rows = open_file(store, small)
    assert len(rows) == 100
    whole = b"".join(members.values())
    assert not any(identity in whole or identity.hex().encode() in whole for identity in ids)
    assert set(rows[0]) == {"_stratum", "_bucket", "fell_asleep", "pressure"}


@pytest.mark.security
def test_two_files_of_an_open_survey_never_isolate_a_few_reports_of_a_group(store, small):
    rng = np.random.default_rng(1)
    questions = small.definition.questions

    def arrive(sizes: dict[str, int]) -> Counter[str]:
        for stratum, n in sizes.items():
            codes = [
                b"".join(stored_code(q, (0.6, 0.3, 0.1), rng) for q in questions) for _ in range(n)
            ]
            store.add_reports(
                [(small.key, StoredReport(os.urandom(16), stratum, code)) for code in codes]
            )
        publish_pending(store, small, 25)
        return Counter(row["_stratum"] for row in open_file(store, small)[1])

    first = arrive({"north": 100, "west": 10, "east": 30})
    second = arrive({"centre": 25, "east": 5})
    third = arrive({"west": 16, "east": 20})
    assert first == {"north": 100, "east": 30}
    assert second == {**first, "centre": 25}
    assert third == {**second, "west": 26, "east": 55}


def test_a_question_that_was_not_asked_is_an_empty_cell(store):
    survey = publish(store, load(ONE_QUESTION_EACH.encode(), "s.toml", Caps()), TODAY)
    first, second = survey.definition.questions
    codes = [first.encode(1) + second.encode(None), first.encode(None) + second.encode(2)] * 25
    store.add_reports([(survey.key, StoredReport(os.urandom(16), "", code)) for code in codes])
    publish_pending(store, survey, 25)
    members, rows = open_file(store, survey)
    pairs = Counter((row[first.id], row[second.id]) for row in rows)
    assert pairs == {("1", ""): 25, ("", "2"): 25}
    assert "An empty cell" in members["README.txt"].decode()


def test_spreadsheets_read_bits_as_text(every_type):
    question = next(q for q in every_type.definition.questions if q.channel.report_bits)
    width = question.channel.code_bytes
    cell = report_cells(question, np.zeros(width, dtype=np.uint8))[0]
    assert set(cell.split(" ")) == {"0"}
    assert len(cell.split(" ")) == question.channel.report_bits


def test_the_readme_states_everything_a_user_must_know(store, every_type):
    members, _ = open_file(store, every_type)
    text = members["README.txt"].decode("utf-8")
    # Seven questions at epsilon 0.5, whose whole report is weak.
    assert "never proves an answer" not in text
    for statement in (
        "Weak protection: a row can make an observer almost certain of an answer.",
        "by a factor of at most 34.",
        "(f - q)/(p - q)",
        every_type.sha256,
        "200 rows",
        "biased",
    ):
        assert statement in text
    assert members["definition.json"] == every_type.canonical
    for question in every_type.definition.questions:
        assert f"\n{question.id}: {question.text}\n" in text
    moderate = SMALL.replace('"3/4"', '"3/5"').replace('"small"', '"moderate"')
    survey = publish(store, load(moderate.encode(), "s.toml", Caps()), TODAY)
    assert "never proves an answer" in readme(survey, 25, 1)


@pytest.mark.security
def test_csv_label_that_looks_like_a_formula_is_text_in_the_reports(store):
    hostile = SMALL.replace('label = "Never"', 'label = "=1+1"')
    survey = publish(store, load(hostile.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 30)
    members, rows = open_file(store, survey)
    assert all(
        value.replace(" ", "").isdigit() or not value for row in rows for value in row.values()
    )
    assert "=1+1" in members["README.txt"].decode()
