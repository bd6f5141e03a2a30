"""The true values of a test run are those from which its simulated respondents are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from survey.collect.simulation import simulate_respondents, true_values
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.browser import surveys

PEOPLE = 40_000

TICKS = """
slug = "ticks"
title = "Ticks"
allow_skip_logic = true
epsilon = 1

[[pages]]
[[pages.questions]]
id = "where"
type = "multiple_choice"
text = "Where?"
max_ticks = 2
options = [{ id = "a", label = "A" }, { id = "b", label = "B" }, { id = "c", label = "C" }]

[[pages]]
[[pages.questions]]
id = "why"
type = "scale"
text = "How much?"
low = 1
high = 5
ask_if = { question = "where", options = ["b"] }

[[pages.questions]]
id = "both"
type = "yes_no"
text = "Both?"
ask_if = { question = "where", options = ["a", "b"] }
"""


def counted(question, answers) -> np.ndarray:
    """The share of people whose answer is each option, or a tick of it."""
    k = len(question.options)
    points = question.grid.points if question.type in ("number", "date") else 0
    found = np.zeros(k)
    for answer in answers:
        ticks = answer if isinstance(answer, tuple) else (answer - points,)
        for place in ticks:
            if place >= 0:
                found[place] += 1
    return found / len(answers)


@pytest.mark.parametrize("text", [surveys.EVERY_TYPE, surveys.SKIPS, TICKS])
def test_the_truth_is_what_simulated_respondents_answer(text):
    definition = freeze(load(text.encode(), "s.toml", Caps()), 1)
    typed = {one.id: one.kind.default_shares(one) for one in definition.questions}
    found = true_values(definition, typed)
    people = list(simulate_respondents(definition, PEOPLE, typed, np.random.default_rng(3)))
    assert found
    for place, question in enumerate(definition.questions):
        if question.id not in found:
            continue
        answers = [person[place] for person in people]
        told = [found[question.id].shares[option.id] for option in question.options]
        np.testing.assert_allclose(counted(question, answers), told, atol=0.012)
        if found[question.id].mean is not None:
            values = np.array(question.grid.values)
            numbers = [values[one] for one in answers if one < len(values)]
            wide = values[-1] - values[0]
            assert np.mean(numbers) == pytest.approx(found[question.id].mean, abs=0.02 * wide)


def test_what_ticks_that_tell_about_each_other_mean_is_not_told():
    definition = freeze(load(TICKS.encode(), "s.toml", Caps()), 1)
    typed = {one.id: one.kind.default_shares(one) for one in definition.questions}
    assert set(true_values(definition, typed)) == {"where", "why"}
