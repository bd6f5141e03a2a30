"""The true values of a test run are those from which its simulated respondents are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from survey.collect.simulation import simulate_respondents, true_values
from tests import surveys

PEOPLE = 40_000


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


@pytest.mark.web
@pytest.mark.parametrize("text", [surveys.EVERY_TYPE, surveys.SKIPS, surveys.LINKED_TICKS])
def test_the_truth_is_what_simulated_respondents_answer(text):
    definition = surveys.publish(text)
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
    definition = surveys.publish(surveys.LINKED_TICKS)
    typed = {one.id: one.kind.default_shares(one) for one in definition.questions}
    assert set(true_values(definition, typed)) == {"where", "why"}
