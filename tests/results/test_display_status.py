"""Decisions about parts of questions, and how many more responses they need."""

from __future__ import annotations

import numpy as np
import pytest

from survey.estimator import disclosure
from survey.estimator.trust.worst_case import ConstantVariance
from survey.results import display_status
from survey.results.display_status import (
    PARTS,
    SUPPRESSED,
    WITH_SHARES,
    count_missing_responses,
    decide_disclosures,
    worst_cases,
)
from survey.results.estimates.compute import estimate_question
from survey.results.request import DEFAULT_OPTIONS
from tests.cases import each_case
from tests.results.test_every_type import QUESTIONS, counts_of, survey_of


@pytest.fixture(scope="module")
def questions():
    return survey_of(list(QUESTIONS)).definition.questions


def test_pages_decide_like_the_estimator(questions):
    """Pages decide from a question alone, before it has reports; `disclosure` from a result."""
    n = 2_000
    for question in questions:
        estimates = estimate_question(question, n, counts_of(question, n), DEFAULT_OPTIONS)
        decisions = decide_disclosures(question, n)
        for part in PARTS:
            estimate = getattr(estimates, part)
            waits = part in WITH_SHARES and estimates.shares is not None
            if estimate is not None and not (waits and decisions["shares"] == SUPPRESSED):
                assert decisions[part] == disclosure(estimate), (question.id, part)


def test_every_part_appears_exactly_when_the_missing_responses_have_arrived(questions):
    for question in questions:
        missing = count_missing_responses(question, 0, 1.0)
        for part in worst_cases(question):
            n = missing[part]
            assert n > 0, (question.id, part)
            assert decide_disclosures(question, n)[part] == "caution", (question.id, part)
            # The number is rounded up to two digits.
            assert decide_disclosures(question, int(n / 1.1))[part] == SUPPRESSED, question.id


def test_shares_among_those_who_answered_and_medians_wait_for_the_shares(questions, monkeypatch):
    """Medians of scales would be shown before; no design is known in which the others would."""
    cases = {part: ConstantVariance(0.5) for part in WITH_SHARES}
    cases["shares"] = ConstantVariance(1.0)
    monkeypatch.setattr(display_status, "worst_cases", lambda question: cases)
    assert set(decide_disclosures(questions[0], 100).values()) == {SUPPRESSED}
    missing = count_missing_responses(questions[0], 100, 1.0)
    assert [missing[part] for part in ("shares", *WITH_SHARES)] == [71, 71, 71]
    del cases["shares"]
    assert decide_disclosures(questions[0], 100)["median"] == "caution"


def test_no_question_shows_a_median_while_its_shares_are_suppressed(questions):
    for question in questions:
        for n in range(50, 6_000, 50):
            decisions = decide_disclosures(question, n)
            if "shares" in worst_cases(question) and decisions["shares"] == SUPPRESSED:
                assert decisions["median"] == SUPPRESSED, (question.id, n)


def test_parts_that_the_design_does_not_allow_promise_nothing(questions):
    for question in questions:
        missing = count_missing_responses(question, 0, 1.0)
        decisions = decide_disclosures(question, 10**12)
        for part in set(PARTS) - set(worst_cases(question)):
            assert (missing[part], decisions[part]) == (0, SUPPRESSED), (question.id, part)


@each_case("asked", [(2, 8), (1, 4), (3, 4), (1, 1)])
def test_missing_responses_are_right_within_a_tenth_and_never_grow(questions, asked):
    """Simulated respondents arrive, and some of them are asked, until the shares are shown."""
    (question,) = (question for question in questions if question.id == "choice")
    s, M = asked
    rng = np.random.default_rng(3)
    stated, needed = [], []
    for _ in range(60):
        n_asked, steps = 0, []
        while decide_disclosures(question, n_asked)["shares"] == SUPPRESSED:
            steps.append(count_missing_responses(question, n_asked, M / s)["shares"])
            n_asked += int(rng.binomial(25, s / M))
        assert steps == sorted(steps, reverse=True)
        stated.append(steps[0])
        needed.append(25 * len(steps))
    assert count_missing_responses(question, n_asked, M / s)["shares"] == 0
    # Responses arrive 25 at a time, so that on average half of the last ones were not needed.
    assert np.mean(needed) - 12.5 == pytest.approx(stated[0], rel=0.1)
    assert len(set(stated)) == 1
