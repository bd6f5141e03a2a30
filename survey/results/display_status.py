"""Display status of a result: shown, shown with caution, or suppressed until more responses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from survey.errors import NoBaseError
from survey.estimator import Disclosure, disclosure, reports_needed, rounded_up
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.simulation import population
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.compute import QuestionEstimates, estimate_question
from survey.results.question_statistics import truth_values
from survey.results.request import DEFAULT_OPTIONS

SUPPRESSED: Disclosure = "hide"

FLAGS: Mapping[Disclosure, str] = {"show": "", "caution": "caution", "hide": "suppressed"}
"""The flag of a row in CSV and API for each decision."""

SIMULATED_N = (50, 200, 800, 3_200)
"""Numbers of simulated reports, tried in order until the estimates exist."""

SEED = 0
"""A fixed seed, so that a page shows the same number each time."""

PARTS = ("shares", "answered", "spread", "mean", "median")
"""Parts of a question's result in the order of the CSV: shares among all, shares of those who
answered, histogram, mean and median. The rows of a part are shown or suppressed together."""


def numbers_at(estimate: object | None, names: Iterable[str], place: Any) -> dict[str, Any]:
    """Return the numbers of an estimate at a place, by column; None for a suppressed estimate."""
    return {
        name: None if estimate is None else float(getattr(estimate, name)[place]) for name in names
    }


def decide_disclosures(estimates: QuestionEstimates) -> dict[str, Disclosure]:
    """Decide for each part of a question; a part without an estimate is suppressed.

    Shares among those who answered are shown only together with the shares among all.
    """
    decisions = dict.fromkeys(PARTS, SUPPRESSED)
    for part in PARTS:
        estimate = getattr(estimates, part)
        if estimate is not None:
            decisions[part] = disclosure(estimate)
    if decisions["shares"] == SUPPRESSED:
        decisions["answered"] = SUPPRESSED
    return decisions


def count_missing_responses(
    estimates: QuestionEstimates,
    n_asked: int,
    n: int,
    question: PublishedQuestion,
    draw_factor: float,
) -> dict[str, int]:
    """Estimate how many more responses each part needs, given n_asked of n with the question.

    0 if the number is unknown. If nobody was asked, it is computed from simulated respondents to
    whom all answers are equally common, and each respondent is assumed to be asked one in
    `draw_factor` questions. The simulation contains nobody's answers.
    """
    respondents_per_report = n / n_asked if n_asked else draw_factor

    # Cached and lazy: each simulation costs more than the estimates of the page.
    @cache
    def simulate(n: int) -> QuestionEstimates:
        return estimate_question(question, n, _simulate_counts(question, n), DEFAULT_OPTIONS)

    if not n_asked:
        simulated = map(simulate, SIMULATED_N)
        has_mean = (e for e in simulated if e.mean is not None or not truth_values(question))
        estimates = next(has_mean, None) or simulate(SIMULATED_N[-1])

    def count_missing(part: str) -> int:
        reports = _reports_needed(chain([estimates], map(simulate, SIMULATED_N)), part)
        if respondents_per_report != 1:
            reports = rounded_up(math.ceil(reports * respondents_per_report))
        return max(reports - n, 0) if reports else 0

    return {part: count_missing(part) for part in PARTS}


def _reports_needed(sources: Iterable[QuestionEstimates], part: str) -> int:
    """Return how many reports make a part precise enough; 0 if that is unknown.

    With sampled options it can happen that no report includes one of them. Nothing is known about
    its precision then, so the number comes from the next of the estimates.
    """
    for source in sources:
        estimate = getattr(source, part)
        if estimate is None:
            return 0
        try:
            return reports_needed(estimate)
        except NoBaseError:
            continue
    return 0


def _simulate_counts(question: PublishedQuestion, n: int) -> list[int]:
    channel = question.channel
    # Each respondent ticks one option of a multiple-choice question that is reported by bits.
    ticks = np.eye(channel.m, dtype=np.int64) if isinstance(channel, TickChannel) else None
    k = channel.truths if ticks is None else len(ticks)
    rng = np.random.default_rng(SEED)
    counts: list[int] = population(channel, [1 / k] * k, n, rng, ticks).tolist()
    return counts
