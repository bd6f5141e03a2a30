"""Every type of question from a device's code to the released counts."""

from __future__ import annotations

import json
import secrets

import numpy as np
import pytest

from survey.collect.incoming_reports import Intake
from survey.collect.publication import publish
from survey.errors import ReportError
from survey.mechanism import secure_uniform_below
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store
from tests.cases import each_case
from tests.conftest import TODAY
from tests.store.reports import publish_pending
from tests.surveys import EVERY_DESIGN

ANSWERS = {
    "works": 0,
    "coins": 1,
    "places": [0, 2],
    "hours": 24,
    "why": [4],
    "which": [0, 1, 2],
    "since": 52,
    "mood": 10,
    "group": 7,
    "order": (2, 0, 3, 1),
}
N = 40


@pytest.fixture
def every_type(store: Store) -> PublishedSurvey:
    return publish(store, load(EVERY_DESIGN, "every.toml", Caps()), TODAY)


@pytest.fixture
def sampled(store: Store) -> PublishedSurvey:
    """Publish the same survey with 3 of its 9 groups of questions for each respondent."""
    content = EVERY_DESIGN.replace(b"[[pages]]", b"questions_per_person = 3\n[[pages]]", 1)
    return publish(store, load(content, "every.toml", Caps()), TODAY)


def codes_of(survey: PublishedSurvey, question_ids: set[str] | None = None) -> list[object]:
    return [
        question.channel.perturb_one(question.truth(ANSWERS[question.id]), secure_uniform_below)
        if question_ids is None or question.id in question_ids
        else None
        for question in survey.definition.questions
    ]


def send(store: Store, survey: PublishedSurvey, codes: list[object]) -> None:
    length = survey.definition.report_bytes
    body = report_body(survey.sha256, secrets.token_urlsafe(16), codes, length=length)
    assert len(body) == length
    Intake(store).receive(survey.slug, body, TODAY)


def test_released_counts_are_those_of_the_reports_for_every_type(store, every_type):
    reports = [codes_of(every_type) for _ in range(N)]
    for codes in reports:
        send(store, every_type, codes)
    assert publish_pending(store, every_type, 25) == N
    tally = store.tally(every_type.key)
    assert tally.n_asked == [N] * len(every_type.definition.questions)
    for i, question in enumerate(every_type.definition.questions):
        stored = np.frombuffer(b"".join(question.encode(codes[i]) for codes in reports), np.uint8)
        _, expected = question.count(stored.reshape(N, -1))
        assert tally.counts[i] == expected.tolist(), question.id
        assert expected.sum() >= N


def test_a_block_contains_the_shuffled_codes_of_a_question(store, every_type):
    reports = [codes_of(every_type) for _ in range(N)]
    for codes in reports:
        send(store, every_type, codes)
    publish_pending(store, every_type, 25)
    for i, question in enumerate(every_type.definition.questions):
        ((block,),) = store.block_columns(every_type.key, [i])
        width = question.code_bytes
        codes_in_block = [block.data[i : i + width] for i in range(0, len(block.data), width)]
        assert sorted(codes_in_block) == sorted(question.encode(codes[i]) for codes in reports)


def test_a_second_release_adds_to_the_block_of_the_first_for_every_type(store, every_type):
    for _ in range(2):
        for _ in range(N):
            send(store, every_type, codes_of(every_type))
        publish_pending(store, every_type, 25)
    tally = store.tally(every_type.key)
    for i, question in enumerate(every_type.definition.questions):
        ((block,),) = store.block_columns(every_type.key, [i])
        rows = np.frombuffer(block.data, np.uint8).reshape(-1, question.code_bytes)
        assert len(rows) == 2 * N
        assert question.count(rows)[1].tolist() == tally.counts[i]


def test_questions_that_were_not_drawn_are_null_and_counted_apart(store, sampled):
    for i in range(2 * N):
        question_ids = {"works", "hours", "mood", "group" if i % 2 else "why"}
        send(store, sampled, codes_of(sampled, question_ids))
    publish_pending(store, sampled, 25)
    tally = store.tally(sampled.key)
    n_asked = dict(zip((q.id for q in sampled.definition.questions), tally.n_asked, strict=True))
    assert n_asked == {
        "works": 2 * N, "coins": 0, "places": 0, "hours": 2 * N, "why": N, "which": 0,
        "since": 0, "mood": 2 * N, "group": N, "order": 0,
    }  # fmt: skip
    for i, question in enumerate(sampled.definition.questions):
        assert (sum(tally.counts[i]) > 0) == (n_asked[question.id] > 0)


@pytest.mark.parametrize(
    "question_ids",
    [
        set(),
        {"works", "hours", "mood"},
        {"works", "mood", "group", "why"},
        {"hours", "mood", "group", "why"},
        {"works", "hours", "mood", "group", "why"},
    ],
    ids=["none", "too few", "without its dependent", "without what it depends on", "too many"],
)
def test_a_report_on_questions_that_are_never_drawn_together_is_refused(
    store, sampled, question_ids
):
    with pytest.raises(ReportError, match="null for all but 3 of the 9 questions"):
        send(store, sampled, codes_of(sampled, question_ids))
    assert store.n_pending(sampled.key) == 0


@each_case(
    ("question", "code", "words"),
    [
        ("works", 3, "from 0 to 2"),
        ("coins", True, "from 0 to 2"),
        ("places", 5, "5 bits in base64url"),
        ("places", "AAA", "5 bits"),
        ("places", "BA", "5 bits"),
        ("places", None, "5 bits"),
        ("hours", "7", "integer from 0 to"),
        ("hours", 10**6, "integer from 0 to"),
        ("why", "AAAA", "10 bits"),
        ("why", "__8", "10 bits"),
        ("why", "AAA", "must name 1 of 5 options"),
        ("why", "gQA", "must name 1 of 5 options and report only those"),
        ("which", 10, "from 0 to 9"),
        ("group", "gAA", "9 bits|must be a set of"),
    ],
)
def test_a_code_that_its_channel_never_produces_is_refused_by_name(
    store, every_type, question, code, words
):
    codes = codes_of(every_type)
    number = [q.id for q in every_type.definition.questions].index(question)
    codes[number] = code
    with pytest.raises(ReportError, match=rf"code {number + 1} \({question}\).*({words})"):
        send(store, every_type, codes)
    assert store.n_pending(every_type.key) == 0


def test_every_survey_of_the_definition_stays_below_the_largest_report(every_type, sampled):
    for survey in (every_type, sampled):
        codes = [question.channel.longest_code for question in survey.definition.questions]
        assert len(json.dumps(codes)) < survey.definition.report_bytes <= 8192
