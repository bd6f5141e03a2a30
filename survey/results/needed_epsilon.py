"""The least privacy to give up for a margin: found among channels that are built, by halving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from survey.errors import ChannelError
from survey.mechanism import AnyChannel
from survey.questionnaire.designs import DESIGNS, PRIVACY, Asked
from survey.questionnaire.published import PublishedQuestion
from survey.questionnaire.question import BaseQuestion
from survey.results.plan_margins import has_mean_alone, relative, with_channel

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
