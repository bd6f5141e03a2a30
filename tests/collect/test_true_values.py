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
        if truths[question.id].means:
            values = np.array(question.grid.values)
            numbers = [values[answer] for answer in answers if answer < len(values)]
            width = values[-1] - values[0]
            assert np.mean(numbers) == pytest.approx(
                truths[question.id].means[""], abs=0.02 * width
            )


def test_true_mean_ranks_are_those_of_simulated_respondents():
    definition = surveys.publish(surveys.RANKING)
    ranking, _ = definition.questions
    ranks = [0.4, 0.3, 0.05, 0.0]
    typed = {ranking.id: [*ranks, 0.1, 0.15]}
    truth = true_values(definition, typed)[ranking.id]
    assert list(truth.means) == ["pay", "time", "team", "safe"]
    respondents = simulate_respondents(definition, N_RESPONDENTS, typed, np.random.default_rng(4))
    orders = np.array([answer for answer, _ in respondents if isinstance(answer, tuple)])
    observed = 1 + np.argsort(orders, axis=1).mean(axis=0)
    # Half the rank's largest possible standard deviation of 1.5 times 5 / sqrt(30,000).
    np.testing.assert_allclose(observed, list(truth.means.values()), atol=0.025)
    assert sum(truth.means.values()) == pytest.approx(10)


def test_rankings_that_no_respondent_gives_have_no_true_mean_ranks():
    definition = surveys.publish(surveys.RANKING)
    ranking, _ = definition.questions
    truth = true_values(definition, {ranking.id: [0, 0, 0, 0, 0.5, 0.5]})[ranking.id]
    assert not truth.means


def test_questions_that_depend_on_linked_ticks_have_no_true_values():
    definition = surveys.publish(surveys.LINKED_TICKS)
    typed = {
        question.id: question.kind.default_shares(question) for question in definition.questions
    }
    assert set(true_values(definition, typed)) == {"where", "why"}
