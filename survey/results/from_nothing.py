"""What a few simulated reports would tell, where there is no real one to plan from."""

from __future__ import annotations

import numpy as np

from survey.mechanism import BitVector
from survey.mechanism.simulation import population
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.compute import Estimates, estimates, values
from survey.results.options import Wanted

TRIED = (50, 200, 800, 3_200)
"""As few as tell something; more where through the noise hardly anybody seems to answer."""

SEED = 0
"""The same every time: a page that is loaded again says the same."""


def imagined(question: PublishedQuestion) -> Estimates:
    """Estimates from a few people of whom each answer is as common as any other.

    Only for how many reports would be needed: nothing in it is anybody's answer.
    """
    for n in TRIED:
        found = estimates(question, n, _counts(question, n), Wanted())
        if found.mean is not None or not values(question):
            break
    return found


def _counts(question: PublishedQuestion, n: int) -> list[int]:
    channel = question.channel
    # Of a multiple choice by bits each ticks one.
    ticks = np.eye(channel.m, dtype=np.int64) if isinstance(channel, BitVector) else None
    k = channel.truths if ticks is None else len(ticks)
    rng = np.random.default_rng(SEED)
    counted: list[int] = population(channel, [1 / k] * k, n, rng, ticks).tolist()
    return counted
