"""Whole reports of every kind of survey, made by the shipped client."""

from __future__ import annotations

import json

import pytest

from survey.audit.node import Node
from survey.audit.respondents import answers_of, check_respondents, patterns, questions, truths
from survey.audit.summary import check_whole_reports
from survey.audit.whole_reports import LIMIT, check_question_sampling, pairs
from survey.questionnaire.canonical import canonical_json
from survey.respond.client import source_files
from tests import surveys
from tests.cases import each_case

FILES = source_files()


def form(name):
    return json.loads(surveys.publish(surveys.EVERY_CHANNEL[name]).canonical)


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize("name", surveys.EVERY_CHANNEL)
def test_only_the_codes_depend_on_answers_and_they_are_independent_and_exact(node, name):
    definition = surveys.publish(surveys.EVERY_CHANNEL[name])
    for check in check_whole_reports(FILES, definition, node):
        assert check.ok, check


@each_case("name", surveys.EVERY_CHANNEL)
def test_every_question_is_enumerated_in_first_and_in_second_place(name):
    id_pairs = [[q["id"] for q in questions(pair.form)] for pair in pairs(form(name))]
    ids = {question["id"] for question in questions(form(name))}
    assert {pair_ids[0] for pair_ids in id_pairs} == ids
    assert {pair_ids[1] for pair_ids in id_pairs} == ids


def test_a_question_is_enumerated_after_the_one_it_depends_on():
    conditions = {
        pair.name: questions(pair.form)[1]["ask_if"]["question"]
        for pair in pairs(form("routed"))
        if questions(pair.form)[1]["ask_if"]
    }
    assert conditions == {"works + nights": "works", "nights + how_many": "nights"}


def test_a_survey_of_one_question_is_enumerated_with_the_question_twice():
    alone = surveys.CHOICES[: surveys.CHOICES.index('[[questions]]\nid = "several"')]
    (pair,) = pairs(json.loads(surveys.publish(alone).canonical))
    assert pair.name == "plain + plain_again"
    assert pair.sizes == ("real", "real")


@pytest.mark.parametrize("name", ["ticks", "numbers"])
def test_large_questions_are_replaced_by_small_channels_of_the_same_kinds(name):
    for pair in pairs(form(name)):
        assert pair.sizes[0] != "real"
        originals = {question["id"]: question for question in questions(form(name))}
        for question in questions(pair.form):
            real = originals[question["id"]]
            assert question["channel"]["kind"] == real["channel"]["kind"]
            assert question["opt_out"] in ["", *(option["id"] for option in question["options"])]
            assert len(answers_of(question)) < LIMIT


@pytest.mark.security
def test_a_hidden_question_does_not_apply_even_if_it_was_answered_before():
    routed = form("routed")
    truth_values = truths(routed, {"works": 1, "nights": 0, "how_many": 3}, None)
    option_ids = [option["id"] for option in questions(routed)[2]["options"]]
    assert option_ids[truth_values["nights"]] == "does_not_apply"
    assert truth_values["how_many"] == 8  # the first truth after the eight points of the grid
    assert truths(routed, {"works": 0, "nights": 0, "how_many": 3}, None)["how_many"] == 3


def test_patterns_are_in_the_order_of_their_bitmasks():
    question = {"options": [{}] * 5, "alone": 2, "max_ticks": 2}
    assert patterns(question) == [(0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (3,), (4,)]


@pytest.mark.security
@pytest.mark.parametrize(
    ("survey", "summary"),
    [
        (surveys.DRAWN, "every draw of 2 of 5 groups: 10 choices, equally likely"),
        (surveys.SAMPLING["ten"], "every draw of 2 of 10 groups: 45 choices, equally likely"),
        (surveys.SAMPLING["twelve"], "6 of 12 groups: 6 of 6 draws through every"),
    ],
)
def test_every_choice_of_questions_is_equally_likely(node, survey, summary):
    definition = surveys.publish(survey)
    device = Node(FILES, node, definition.canonical)
    (check,) = check_question_sampling(device, json.loads(definition.canonical))
    assert check.ok, check
    assert summary in check.detail


@pytest.mark.web
def test_reports_of_the_unreduced_survey_equal_pythons_bytes(node):
    definition = surveys.publish(surveys.NUMBERS)
    check = check_respondents(Node(FILES, node, definition.canonical), definition, 1)
    assert check.ok, check
    assert "of all 4 questions" in check.detail


def test_a_client_that_names_another_survey_is_detected(node):
    definition = surveys.publish(surveys.TABLES)
    changed = FILES["report.js"].replace(b"definition: definition.id", b'definition: "0"')
    client = Node({**FILES, "report.js": changed}, node, definition.canonical)
    assert not check_respondents(client, definition, 1).ok


@pytest.mark.web
@each_case("name", surveys.EVERY_CHANNEL)
def test_devices_accept_the_enumerated_surveys(node, name):
    for pair in pairs(form(name)):
        label = Node(FILES, node, canonical_json(dict(pair.form))).ask(label=[{}])["label"][0]
        assert set(label["questions"]) == {question["id"] for question in questions(pair.form)}
