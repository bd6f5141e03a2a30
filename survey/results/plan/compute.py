"""The margins a question will have, computed from the channel that would run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from survey.errors import ChannelError
from survey.estimator import Plan, margin_of
from survey.estimator.core.intervals import Chances
from survey.estimator.numbers.mean import worst_variance
from survey.mechanism import AnyChannel, WeightTable
from survey.questionnaire.designs import DESIGNS, PRIVACY, Asked
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


EPSILONS = tuple(Fraction(i, 100) for i in range(10, 100)) + tuple(
    Fraction(i, 10) for i in range(10, 81)
)
"""From 0.1 to 8 in steps of two digits: finer ones would promise more than is known beforehand."""

CHANCES = tuple(Fraction(i, 100) for i in range(1, 100))
"""Of designs that are stated by the chance of the truth."""

SIGMAS = tuple(Fraction(i, 50) for i in range(500, 4, -1))
"""From ten times the range to a tenth of it, as parts of the range: the widest hides the most."""

FINEST = 25
"""Finer grids are planned for at this many points, where a mean's margin is nearly the same."""

BASE = 10_000
"""Reports that margins are computed for."""

REMEMBERED = 2_048
"""Channels whose margins are kept: a draft is looked at again with every word of it."""


class Needed(NamedTuple):
    """What the design is stated by, the least value that suffices, its epsilon; and the margin.

    Where none suffices the value is the one with the smallest margin, and `possible` False.
    """

    way: str
    value: Fraction
    epsilon: float
    margin: float
    possible: bool


@dataclass(frozen=True)
class _Search:
    """A question whose design is stated by other values; `key` is all its channels depend on."""

    asked: PublishedQuestion = field(compare=False)
    offered: Asked = field(compare=False)
    way: str
    design: str
    key: tuple[object, ...]


def needed(question: BaseQuestion, asked: PublishedQuestion, n: int, goal: float) -> Needed | None:
    """What n reports need for a margin, of a share or of a mean as a part of the range.

    None where no channel of the design can be built.
    """
    search = _search(question, asked)
    values = _values(search)
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if _margin(search, values, middle, n) <= goal else (middle + 1, high)
        )
    # At the far end there may be no channel any more: the last one before it is meant.
    while low and math.isinf(_margin(search, values, low, n)):
        low -= 1
    epsilon, margin = _measured(search, values[low])
    margin /= math.sqrt(n)
    if math.isinf(margin):
        return None
    return Needed(search.way, values[low], epsilon, margin, margin <= goal)


def _search(question: BaseQuestion, asked: PublishedQuestion) -> _Search:
    ways = DESIGNS[question.design].ways
    way = "epsilon" if "epsilon" in ways else next(iter(ways))
    offered = question.asked
    if has_mean_alone(asked) and offered.ordinary > FINEST:
        step = offered.step * (offered.ordinary - 1) / (FINEST - 1)
        offered = replace(offered, ordinary=FINEST, step=step)
    key = (
        asked.type,
        *(offered.ordinary, offered.no_answers, offered.ticks, offered.alone, offered.step),
        repr(sorted((name, value) for name, value in offered.parameters.items() if name != way)),
    )
    return _Search(asked, offered, way, question.design, key)


def _values(search: _Search) -> Sequence[Fraction]:
    """From the most private on."""
    if search.way in PRIVACY:
        return EPSILONS
    if search.way == "sigma":
        length = search.offered.step * (search.offered.ordinary - 1)
        return [part * length for part in SIGMAS]
    # Warner's design says nothing at 1/2, and below it the opposite.
    return [each for each in CHANCES if search.way != "p" or 2 * each > 1]


def _margin(search: _Search, values: Sequence[Fraction], place: int, n: int) -> float:
    return _measured(search, values[place])[1] / math.sqrt(n)


@lru_cache(maxsize=REMEMBERED)
def _measured(search: _Search, value: Fraction) -> tuple[float, float]:
    """Epsilon, and sqrt(n) times the margin; infinite where integers cannot make the channel."""
    try:
        channel: AnyChannel = DESIGNS[search.design].ways[search.way](search.offered, value)
    except ChannelError:
        return math.inf, math.inf
    return channel.epsilon, relative(with_channel(search.asked, channel), BASE) * math.sqrt(BASE)
