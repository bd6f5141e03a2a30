"""What the builder says of a question: true of every answer, and of every way of asking."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from pydantic import TypeAdapter

from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.questions import Question
from survey.results.plan.compute import asked_so, relative, with_channel
from survey.results.plan.sentences import question_plan
from survey.settings import Caps

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
STATED = {
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


def question(**said):
    form = {"id": "q", "text": "How?", **LABELS, **said}
    return TypeAdapter(Question).validate_python(form, context=Caps())


def test_how_many_reports_say_an_answer_is_true_of_every_answer():
    asked = question(**TYPES["geometric"], epsilon="1.098", prefer_not_to_say=False)
    told = question_plan(asked, 1_000, 0.05)
    matrix = asked.channel.matrix
    own, others = matrix.diagonal(), matrix[~(matrix == matrix.diagonal()[:, None])]
    low, high = 100 * own.min(), 100 * own.max()
    assert high > 4 * low
    assert (
        f"Of 100 people who have an answer, between {low:.3g} and {high:.3g} reports" in told.chance
    )
    ends = f"{100 * others.min():.3g} and {100 * others.max():.3g}."
    assert told.chance.endswith(f"of 100 who do not, between {ends}")


def test_a_table_whose_rows_differ_says_the_range_over_its_answers():
    asked = question(**TYPES["exponential"], epsilon=1)
    own = 100 * asked.channel.matrix.diagonal()
    told = question_plan(asked, 1_000, 0.05).chance
    assert f"between {own.min():.3g} and {own.max():.3g} reports say so, by which one" in told


def test_the_reports_of_a_square_wave_are_not_said_to_be_answers():
    told = question_plan(question(**TYPES["square wave"], epsilon=1), 1_000, 0.05)
    assert told.chance.startswith("A report says a point near the answer or far from it")


def test_designs_that_are_alike_for_every_answer_have_one_number():
    told = question_plan(question(type="yes_no", truth_probability="3/4"), 1_000, 0.05)
    assert "about 75 reports say so; of 100 who do not, about 12.5." in told.chance


@pytest.mark.parametrize("kind", TYPES)
def test_the_epsilon_a_goal_needs_is_told_of_every_type_and_suffices(kind):
    asked = question(**TYPES[kind], epsilon="1.5")
    goal = 0.12
    told = question_plan(asked, 1_000, goal).needed_epsilon
    found = re.search(r"need about epsilon ([\d.]+)\.", told)
    assert found, told
    form, build = asked_so(asked), DESIGNS[asked.design].ways["epsilon"]

    def margin(epsilon: Fraction) -> float:
        return relative(with_channel(form, build(asked.asked, epsilon)), 1_000)

    needed = Fraction(found[1])
    # Grids of many points are planned for at fewer, which changes a margin by some per mille.
    assert margin(needed) <= goal * 1.005
    assert margin(needed * Fraction(9, 10)) > goal * 0.995


@pytest.mark.parametrize("kind", STATED)
def test_what_is_stated_by_a_parameter_is_told_by_it_and_by_its_epsilon(kind):
    told = question_plan(question(**STATED[kind]), 1_000, 0.08).needed_epsilon
    way = next(iter(DESIGNS[STATED[kind]["mechanism"]].ways))
    assert re.search(rf"need about {way} = [\d.]+, which is epsilon [\d.]+\.$", told), told


def test_a_goal_that_no_epsilon_reaches_is_told_with_the_least_margin():
    told = question_plan(question(**TYPES["number"], epsilon=1), 20, 0.001).needed_epsilon
    assert re.fullmatch(
        r"With 20 reports ±0.040 hours cannot be reached: about ±[\d.]+ hours is the least.", told
    )
