"""The true values of a test run agree with the answers of its simulated respondents."""

from __future__ import annotations

import numpy as np
import pytest

from survey.collect.simulation import simulate_respondents, true_values
from tests import surveys

N_RESPONDENTS = 40_000


def observed_shares(question, answers) -> np.ndarray:
    """Return the share of respondents who chose each option."""
    k = len(question.options)
    points = question.grid.points if question.type in ("number", "date") else 0
    counts = np.zeros(k)
    for answer in answers:
        ticks = answer if isinstance(answer, tuple) else (answer - points,)
        for place in ticks:
            if place >= 0:
                counts[place] += 1
    return counts / len(answers)


@pytest.mark.web
@pytest.mark.parametrize("text", [surveys.EVERY_TYPE, surveys.SKIPS, surveys.LINKED_TICKS])
def test_the_truth_is_what_simulated_respondents_answer(text):
    definition = surveys.publish(text)
    typed = {
        question.id: question.kind.default_shares(question) for question in definition.questions
    }
    truths = true_values(definition, typed)
    rng = np.random.default_rng(3)
    respondents = list(simulate_respondents(definition, N_RESPONDENTS, typed, rng))
    assert truths
    for place, question in enumerate(definition.questions):
        if question.id not in truths:
            continue
        answers = [answers[place] for answers in respondents]
        expected = [truths[question.id].shares[option.id] for option in question.options]
        np.testing.assert_allclose(observed_shares(question, answers), expected, atol=0.012)
        if truths[question.id].mean is not None:
            values = np.array(question.grid.values)
            numbers = [values[answer] for answer in answers if answer < len(values)]
            width = values[-1] - values[0]
            assert np.mean(numbers) == pytest.approx(truths[question.id].mean, abs=0.02 * width)


def test_questions_that_depend_on_linked_ticks_have_no_true_values():
    definition = surveys.publish(surveys.LINKED_TICKS)
    typed = {
        question.id: question.kind.default_shares(question) for question in definition.questions
    }
    assert set(true_values(definition, typed)) == {"where", "why"}
