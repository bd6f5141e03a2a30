"""Released reports as a file: all of them, once each, with what it takes to read them."""

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
from survey.collect.release import release
from survey.disclosure import OTHER_GROUPS
from survey.estimator import mean, proportions
from survey.mechanism import BitVector, WeightTable, channel_from_json
from survey.questionnaire.loading import load
from survey.results.estimates.result import Results
from survey.results.exports.microdata import code_bits, report_cells, write_microdata
from survey.settings import Caps
from survey.store import StoredReport
from tests.browser.research import add_released, stored
from tests.browser.surveys import EVERY_TYPE
from tests.conftest import SMALL, TODAY

DRAWN = SMALL.replace(
    'truth_probability = "3/4"', 'truth_probability = "3/4"\nquestions_per_person = 1'
)


@pytest.fixture
def every(store):
    survey = publish(store, load(EVERY_TYPE.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 200)
    return survey


def opened(store, survey):
    """The members of the ZIP, with the rows of its reports."""
    file = io.BytesIO()
    n = write_microdata(file, store, survey)
    with ZipFile(file) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    rows = list(csv.DictReader(io.StringIO(members["reports.csv"].decode("utf-8"), newline="")))
    assert len(rows) == n
    return members, rows


def counts_of(question, cells) -> list[int]:
    """Counts as the channel's estimator takes them, made from the file alone."""
    channel = channel_from_json(question["channel"])
    if question["code"] == "bits":
        return np.array([[int(bit) for bit in cell.split()] for cell in cells]).sum(0).tolist()
    return np.bincount([int(cell) for cell in cells], minlength=channel.counted).tolist()


def test_the_counts_of_the_file_are_those_of_the_dashboard(store, every):
    members, rows = opened(store, every)
    tally = store.tally(every.key)
    described = json.loads(members["channels.json"])["questions"]
    for question, right in zip(described, tally.counts, strict=True):
        assert counts_of(question, [row[question["id"]] for row in rows]) == list(right)


def test_a_reader_of_the_file_alone_finds_the_estimates_of_the_dashboard(store, small):
    add_released(store, small, 3000)
    members, rows = opened(store, small)
    question = json.loads(members["channels.json"])["questions"][0]
    counts = counts_of(question, [row[question["id"]] for row in rows])
    found = proportions(counts, channel_from_json(question["channel"]))
    shown = [row.estimate for row in Results(store).of(small).questions[0].shares]
    assert found.estimate.tolist() == pytest.approx(shown)
    by_hand = (counts[0] / len(rows) - question["q"]) / (question["p"] - question["q"])
    assert by_hand == pytest.approx(shown[0])


def test_a_table_of_weights_is_written_out_so_that_anybody_can_invert_it(store, every):
    members, _ = opened(store, every)
    written = {one["id"]: one for one in json.loads(members["channels.json"])["questions"]}
    for question in every.definition.questions:
        name = written[question.id]["weights"]
        assert len(written[question.id]["answers"]) == question.channel.options or isinstance(
            question.channel, BitVector
        )
        assert (name is not None) == isinstance(question.channel, WeightTable)
        if name is not None:
            rows = list(csv.reader(io.StringIO(members[name].decode())))[1:]
            weights = np.array([[int(weight) for weight in row[1:]] for row in rows])
            matrix = weights / weights.sum(axis=1, keepdims=True)
            assert np.allclose(matrix, question.channel.matrix)
    assert any(name.startswith("weights/") for name in members)


def test_a_mean_can_be_computed_from_the_files_alone(store, every):
    members, rows = opened(store, every)
    (question,) = (q for q in every.definition.questions if q.id == "warmth")
    chances = list(csv.reader(io.StringIO(members["weights/warmth.csv"].decode())))[1:]
    weights = np.array([[int(weight) for weight in row[1:]] for row in chances], dtype=float)
    P = weights / weights.sum(axis=1, keepdims=True)
    g = np.linalg.lstsq(P, np.array(question.grid.values), rcond=None)[0]
    codes = [int(row["warmth"]) for row in rows if row["warmth"]]
    assert np.allclose(P @ g, question.grid.values, atol=1e-6)
    counts = np.bincount(codes, minlength=question.channel.reports)
    found = mean(counts, question.channel, question.grid.values)
    assert abs(g[codes].mean() - found.estimate) < 3 * found.std_error


def test_each_report_is_there_once_with_its_answers_together(store, every):
    _, rows = opened(store, every)
    questions = every.definition.questions
    kept = Counter()
    for block in store.block_columns(every.key, range(len(questions))):
        cells = [
            report_cells(question, np.frombuffer(column.data, np.uint8))
            for question, column in zip(questions, block, strict=True)
        ]
        kept.update(zip(*cells, strict=True))
    assert Counter(tuple(row[q.id] for q in questions) for row in rows) == kept


@pytest.mark.security
def test_the_order_is_drawn_anew_for_every_file_and_tells_nothing(store, every):
    _, one = opened(store, every)
    _, other = opened(store, every)
    assert one != other
    assert Counter(map(str, one)) == Counter(map(str, other))


@pytest.mark.security
def test_no_id_and_nothing_that_waits_is_in_the_file(store, small):
    add_released(store, small, 100)
    ids = [os.urandom(16) for _ in range(10)]
    waiting = [(small.key, StoredReport(each, "", bytes([0, 0]))) for each in ids]
    store.add_reports(waiting)
    members, rows = opened(store, small)
    assert len(rows) == 100
    whole = b"".join(members.values())
    assert not any(each in whole or each.hex().encode() in whole for each in ids)
    assert set(rows[0]) == {"_stratum", "_bucket", "fell_asleep", "pressure"}


@pytest.mark.security
def test_no_two_files_of_an_open_survey_single_out_few_of_a_stratum(store, small):
    rng = np.random.default_rng(1)
    questions = small.definition.questions

    def arrive(sizes: dict[str, int]) -> Counter[str]:
        for stratum, n in sizes.items():
            codes = [b"".join(stored(q, (0.6, 0.3, 0.1), rng) for q in questions) for _ in range(n)]
            store.add_reports(
                [(small.key, StoredReport(os.urandom(16), stratum, each)) for each in codes]
            )
        release(store, small, 25)
        return Counter(row["_stratum"] for row in opened(store, small)[1])

    first = arrive({"north": 100, "west": 10, "east": 30})
    second = arrive({"centre": 25, "east": 5})
    third = arrive({"west": 16, "east": 20})
    assert first == {"north": 100, "east": 30}
    assert second == {**first, "centre": 25}
    assert third == {**second, "west": 26, "east": 55}


@pytest.mark.security
def test_small_groups_strata_are_read_together(store, small):
    rng = np.random.default_rng(1)
    questions = small.definition.questions
    reports = [
        (small.key, StoredReport(os.urandom(16), stratum, codes))
        for stratum, n in (("north", 400), ("south", 60), ("east", 9), ("west", 3))
        for codes in (
            b"".join(stored(q, (0.6, 0.3, 0.1), rng) for q in questions) for _ in range(n)
        )
    ]
    store.add_reports(reports)
    release(store, small, 1)
    _, rows = opened(store, small)
    # Nine and three are too few, and so are they together: the next smallest joins them.
    assert Counter(row["_stratum"] for row in rows) == {"north": 400, OTHER_GROUPS: 72}


def test_a_question_that_somebody_was_not_asked_is_an_empty_cell(store):
    survey = publish(store, load(DRAWN.encode(), "s.toml", Caps()), TODAY)
    first, second = survey.definition.questions
    codes = [first.encode(1) + second.encode(None), first.encode(None) + second.encode(2)] * 20
    store.add_reports([(survey.key, StoredReport(os.urandom(16), "", each)) for each in codes])
    release(store, survey, 25)
    members, rows = opened(store, survey)
    pairs = Counter((row[first.id], row[second.id]) for row in rows)
    assert pairs == {("1", ""): 20, ("", "2"): 20}
    assert "An empty cell" in members["README.txt"].decode()


def test_bits_are_text_to_every_spreadsheet(every):
    question = next(q for q in every.definition.questions if code_bits(q))
    width = question.channel.code_bytes
    cell = report_cells(question, np.zeros(width, dtype=np.uint8))[0]
    assert set(cell.split(" ")) == {"0"}
    assert len(cell.split(" ")) == code_bits(question)


def test_the_text_says_what_a_reader_must_know(store, every):
    members, _ = opened(store, every)
    text = members["README.txt"].decode("utf-8")
    for wanted in ("never proves an answer", "(f - q)/(p - q)", every.sha256, "200 rows", "biased"):
        assert wanted in text
    assert members["definition.json"] == every.canonical
    for question in every.definition.questions:
        assert f"\n{question.id}: {question.text}\n" in text


@pytest.mark.security
def test_csv_label_that_begins_like_a_formula_starts_none_in_the_reports(store):
    hostile = SMALL.replace('label = "Never"', 'label = "=1+1"')
    survey = publish(store, load(hostile.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 30)
    members, rows = opened(store, survey)
    assert all(
        value.replace(" ", "").isdigit() or not value for row in rows for value in row.values()
    )
    assert "=1+1" in members["README.txt"].decode()
