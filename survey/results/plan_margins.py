"""The margins a question will have, computed from the channel that would run."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from survey.estimator.intervals import Chances
from survey.estimator.number_design import worst_variance
from survey.estimator.planning import Plan, margin_of
from survey.mechanism import AnyChannel, WeightTable
from survey.questionnaire.label import frequencies
from survey.questionnaire.published import PublishedQuestion, published, question_form
from survey.questionnaire.question import BaseQuestion

LEVEL = 0.95
SHARES = (0.5, 0.1)
"""True shares that margins are told for: the middle, and something rare."""


def asked_so(question: BaseQuestion) -> PublishedQuestion:
    """The question as it would be published, which holds the channel that runs."""
    return published(question_form(question), nullable=False)


def with_channel(asked: PublishedQuestion, channel: AnyChannel) -> PublishedQuestion:
    """The same question through another channel."""
    return replace(asked, channel=channel)


def has_mean_alone(asked: PublishedQuestion) -> bool:
    """Whether the margin to plan for is that of the mean: of numbers and dates."""
    return asked.grid is not None and asked.type in ("number", "date")


def length(asked: PublishedQuestion) -> float:
    """From the least to the largest answer of a grid, in the answer's unit."""
    return asked.grid.values[-1] - asked.grid.values[0] if asked.grid else math.nan


def relative(asked: PublishedQuestion, n: int) -> float:
    """The margin of a share, or of a mean as a part of the range."""
    return of_mean(asked, n) / length(asked) if has_mean_alone(asked) else of_share(asked, n)


def of_share(asked: PublishedQuestion, n: int, share: float = SHARES[0]) -> float:
    """The margin of an option's share among n reports, in shares."""
    channel = asked.channel
    if isinstance(channel, WeightTable):
        return _of_table(channel, n, share)
    p, q = frequencies(asked) or (channel.p, channel.q)
    plan: Plan = margin_of(n, channel=Chances(float(p), float(q)), share=share, level=LEVEL)
    return plan.margin


def _of_table(channel: WeightTable, n: int, share: float) -> float:
    """z sqrt(Var/n), Var = sum_y lambda_y B_1y^2 - pi_1^2.

    B is the pseudo-inverse of P(report | truth), lambda = P pi, and pi has `share` for the first
    truth and the rest evenly.
    """
    P = channel.matrix
    shares = np.full(channel.truths, (1 - share) / (channel.truths - 1))
    shares[0] = share
    first = np.linalg.pinv(P)[:, 0]
    variance = float(shares @ P @ first**2) - share**2
    return _z() * math.sqrt(max(variance, 0.0) / n)


def of_mean(asked: PublishedQuestion, n: int) -> float:
    """z sqrt(Var/n) in the answer's unit, where everybody had the answer with the largest Var."""
    channel = asked.channel
    if not isinstance(channel, WeightTable):
        return math.nan
    return _z() * length(asked) / 2 * math.sqrt(_worst(channel) / n)


# A sentence about margins and one about reports are both made of it, with every word typed.
_worst = lru_cache(maxsize=64)(worst_variance)


def _z() -> float:
    return float(ndtri((1 + LEVEL) / 2))
