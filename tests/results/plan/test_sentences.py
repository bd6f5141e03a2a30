"""The planner's sentences are true for every answer and mechanism."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from pydantic import TypeAdapter

from survey.estimator.planning.sample_size import rounded
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.kinds import Question
from survey.questionnaire.loading import load
from survey.results.plan.compute import (
    mean_margin,
    planned_margin,
    required_design,
    required_responses,
    to_published,
)
from survey.results.plan.sentences import question_plan
from survey.settings import Caps
from tests.cases import each_case

ABC = [{"id": name, "label": name.upper()} for name in "abc"]
LABELS = {"does_not_apply": False, "prefer_not_to_say": "Prefer not to say"}

TYPES = {
    "number": {"type": "number", "low": "0", "high": "40", "unit": "hours"},
    "fine number": {"type": "number", "low": "0", "high": "90", "step": "0.1"},
    "date": {"type": "date", "low": "2020-01-01", "high": "2020-03-01"},
    "multiple choice": {"type": "multiple_choice", "options": ABC, "none_of_these": "None"},
    "geometric": {"type": "scale", "low": 1, "high": 5, "mechanism": "geometric"},
    "laplace": {"type": "scale", "low": 1, "high": 5, "mechanism": "laplace"},
    "square wave": {"type": "scale", "low": 1, "high": 9, "mechanism": "square_wave"},
    "piecewise": {"type": "number", "low": "0", "high": "40", "mechanism": "piecewise"},
    "exponential": {
        "type": "single_choice",
        "options": ABC,
        "mechanism": "exponential",
        "parameters": {"utility": [[1, 0.4, 0], [0.5, 1, 0], [0, 0.1, 1]]},
    },
}
WITH_PARAMETERS = {
    "warner": {"type": "yes_no", "mechanism": "warner", "parameters": {"p": "0.7"}},
    "two coins": {
        "type": "yes_no",
        "mechanism": "two_coins",
        "parameters": {"truth": "1/2", "yes": "1/2"},
    },
    "gaussian": {
        "type": "number",
        "low": "0",
        "high": "40",
        "mechanism": "gaussian",
        "parameters": {"sigma": "30"},
    },
}


def question(**fields):
    form = {"id": "q", "text": "How?", **LABELS, **fields}
    return TypeAdapter(Question).validate_python(form, context=Caps())


def test_the_chance_of_a_report_is_given_as_a_range_over_all_answers():
    scale = question(**TYPES["geometric"], epsilon="1.098", prefer_not_to_say=False)
    plan = question_plan(scale, 1_000, 0.05)
    matrix = scale.channel.matrix
    diagonal, off_diagonal = matrix.diagonal(), matrix[~(matrix == matrix.diagonal()[:, None])]
    low, high = 100 * diagonal.min(), 100 * diagonal.max()
    assert high > 4 * low
    assert f"true answer, between {low:.3g} and {high:.3g} responses state it" in plan.chance
    ends = f"between {100 * off_diagonal.min():.3g} and {100 * off_diagonal.max():.3g} do."
    assert plan.chance.endswith(f"If 100 people have another answer, {ends}")


def test_a_channel_with_different_rows_states_the_range_over_its_answers():
    choice = question(**TYPES["exponential"], epsilon=1)
    diagonal = 100 * choice.channel.matrix.diagonal()
    chance = question_plan(choice, 1_000, 0.05).chance
    share = f"between {diagonal.min():.3g} and {diagonal.max():.3g} responses state it"
    assert f"{share}, depending on the answer." in chance


def test_the_reports_of_a_square_wave_are_not_described_as_answers():
    plan = question_plan(question(**TYPES["square wave"], epsilon=1), 1_000, 0.05)
    assert plan.chance.startswith("A response states a point near the true answer or far from it")


def test_a_mechanism_that_treats_all_answers_alike_states_one_number():
    plan = question_plan(question(type="yes_no", truth_probability="3/4"), 1_000, 0.05)
    assert plan.chance == (
        "If the true answer of 100 people is “Yes”, about 75 responses say “Yes”. If 100 people "
        "have another answer, about 12.5 do."
    )


def test_a_multiple_choice_question_speaks_of_selected_options():
    plan = question_plan(question(**TYPES["multiple choice"], epsilon="1.5"), 1_000, 0.05)
    assert plan.chance.startswith("If 100 people select “A”, about ")


def test_margins_are_those_of_the_responses_to_one_of_the_sampled_questions():
    for fields in (TYPES["number"], {"type": "yes_no"}):
        planned = question(**fields, epsilon="1.5")
        sampled = question_plan(planned, 4_000, 0.05, Fraction(1, 4))
        alone = question_plan(planned, 1_000, 0.05)
        assert sampled.margins == alone.margins.replace(
            "1,000 responses", "4,000 responses, about 1,000 of them to this question"
        )
        needed, needed_alone = (
            int(re.search(r"about ([\d,]+) responses", plan.reports)[1].replace(",", ""))
            for plan in (sampled, alone)
        )
        assert needed == pytest.approx(4 * needed_alone, abs=4)


@each_case("kind", ["number", "multiple choice", "geometric"])
def test_the_required_responses_give_the_margin(kind):
    published, goal = to_published(question(**TYPES[kind], epsilon="1.5")), 0.11
    n = required_responses(published, goal)
    assert planned_margin(published, math.ceil(1.01 * n)) <= goal
    assert planned_margin(published, math.floor(0.99 * n)) > goal
    assert required_responses(published, 1e-9) is None
    assert required_responses(published, 10) == 1


def test_margins_among_those_who_answer_are_described_as_such():
    for opt_out, ending in (
        ("No", "This margin refers to the people who answer; the plan assumes that 10% do not."),
        (False, "points for one near 10%."),
    ):
        planned = question(type="yes_no", epsilon=1, prefer_not_to_say=opt_out)
        assert question_plan(planned, 1_000, 0.05).margins.endswith(ending)


def test_the_margins_of_a_ranking_include_those_of_mean_ranks():
    planned = question(type="ranking", options=ABC, epsilon=2, prefer_not_to_say=True)
    margin = mean_margin(to_published(planned), 1_000)
    # Without randomization, ranks from 1 to 3 have the variance 2/3; of 1,000 people, 900 answer.
    assert 1.96 * math.sqrt(2 / 3 / 900) < margin < 0.2
    assert question_plan(planned, 1_000, 0.05).margins.endswith(
        f"near 10%. The margin of a mean rank is ±{rounded(margin, decimals=1, digits=2)} if all "
        "orders are equally frequent. These margins refer to the people who answer; the plan "
        "assumes that 10% do not."
    )


@each_case("kind", TYPES)
def test_the_required_epsilon_is_stated_for_every_type_and_suffices(kind):
    planned = question(**TYPES[kind], epsilon="1.5")
    goal = 0.12
    sentence = question_plan(planned, 1_000, goal).needed_epsilon
    match = re.search(r"set epsilon to about ([\d.]+)\.$", sentence)
    assert match, sentence
    published, build = to_published(planned), DESIGNS[planned.design].ways["epsilon"]

    def margin(epsilon: Fraction) -> float:
        return planned_margin(
            replace(published, channel=build(planned.answer_space, epsilon)), 1_000
        )

    required = Fraction(match[1])
    # Fine grids are planned with fewer points, which changes a margin by a few per mille.
    assert margin(required) <= goal * 1.005
    assert margin(required * Fraction(9, 10)) > goal * 0.995


HALF_SPACE = 'mechanism = "half_space"\n'
ITEM = '[[questions]]\nid = "{0}"\ntype = "yes_no"\ntext = "?"\nepsilon = "{1}"\n'


def jointly_randomized(ids: str, more: str, epsilon: str):
    """Return the second of these questions, which states this epsilon; the others state 0.5."""
    items = "".join(ITEM.format(id_, epsilon if id_ == "b" else "0.5") for id_ in ids)
    declared = f"[[together]]\nquestions = {list(ids)}\njoint = true\n{more}"
    start = 'slug = "s"\ntitle = "S"\nprefer_not_to_say = false\n'
    return list(load(f"{start}{items}{declared}".encode(), "s.toml", Caps()).questions)[1]


@each_case(("ids", "more"), [("ab", ""), ("abc", ""), ("abc", HALF_SPACE), ("abcdef", HALF_SPACE)])
def test_the_required_epsilon_of_a_question_in_a_joint_response_leaves_the_others(ids, more):
    goal = 0.05
    sentence = question_plan(jointly_randomized(ids, more, "0.3"), 1_000, goal).needed_epsilon
    ending = r"set epsilon to about ([\d.]+) if the questions randomized jointly with it stay\.$"
    match = re.search(ending, sentence)
    assert match, sentence
    required = Fraction(match[1])
    margins = [
        planned_margin(to_published(jointly_randomized(ids, more, str(float(epsilon)))), 1_000)
        for epsilon in (required, required * Fraction(95, 100))
    ]
    assert margins[0] <= goal < margins[1]


def test_plans_of_a_question_in_joint_responses_of_equal_epsilon_are_not_confused():
    """The margins of both mechanisms are cached by what they depend on."""
    n = 10_000
    for more in ("", HALF_SPACE):
        question_ = jointly_randomized("abc", more, "0.3")
        design = required_design(question_, to_published(question_), n, 0.035)
        planned = to_published(jointly_randomized("abc", more, str(float(design.value))))
        assert design.margin == pytest.approx(planned_margin(planned, n), rel=1e-3)


@pytest.mark.parametrize("kind", WITH_PARAMETERS)
def test_a_design_with_a_parameter_is_planned_by_it_and_shows_its_epsilon(kind):
    sentence = question_plan(question(**WITH_PARAMETERS[kind]), 1_000, 0.08).needed_epsilon
    parameter = next(iter(DESIGNS[WITH_PARAMETERS[kind]["mechanism"]].ways))
    pattern = rf"set {parameter} to about [\d.]+ \(epsilon [\d.]+\)\.$"
    assert re.search(pattern, sentence), sentence


def test_a_margin_that_no_epsilon_gives_is_answered_with_the_smallest_margin():
    sentence = question_plan(question(**TYPES["number"], epsilon=1), 20, 0.001).needed_epsilon
    assert re.fullmatch(
        r"With 20 responses, ±0.040 hours is not possible; the smallest margin is about "
        r"±[\d.]+ hours\.",
        sentence,
    )
