"""The margins that a question will have, and the privacy that a given margin requires.

Both are computed from the channel that the question would run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from survey.errors import ChannelError
from survey.estimator import margin_of
from survey.estimator.core.intervals import Chances, normal_quantile
from survey.estimator.numbers.mean import worst_variance
from survey.mechanism import AnyChannel, WeightTable
from survey.questionnaire.canonical import question_form, read_question
from survey.questionnaire.designs import DESIGNS, PRIVACY, AnswerSpace
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion
from survey.questionnaire.privacy_loss import frequencies

LEVEL = 0.95
SHARES = (0.5, 0.1)
"""True shares whose margins are stated: the middle, and a rare answer."""

EPSILONS = tuple(Fraction(i, 100) for i in range(10, 100)) + tuple(
    Fraction(i, 10) for i in range(10, 81)
)
"""From 0.1 to 8 with two significant digits; a plan cannot be more precise than that."""

TRUTH_PROBABILITIES = tuple(Fraction(i, 100) for i in range(1, 100))

SIGMAS = tuple(Fraction(i, 50) for i in range(500, 4, -1))
"""Standard deviations as fractions of the range, from ten times the range to a tenth of it."""

MAX_GRID_POINTS = 25
"""Finer grids are planned with this many points; the margin of the mean is nearly the same."""

BASE_REPORTS = 10_000
"""Number of reports for which margins are cached; others follow from 1/sqrt(n)."""

CACHED_CHANNELS = 2_048
"""Channels whose margins are cached: a draft is planned again after every change."""


class RequiredDesign(NamedTuple):
    """The value of a design's parameter that gives a margin with the least privacy loss.

    If no value suffices, `value` is the one with the smallest margin and `possible` is False.
    """

    parameter: str
    value: Fraction
    epsilon: float
    margin: float
    possible: bool


@dataclass(frozen=True)
class _Family:
    """The channels of one question's design; `key` holds everything that they depend on."""

    question: PublishedQuestion = field(compare=False)
    inputs: AnswerSpace = field(compare=False)
    parameter: str
    design: str
    key: tuple[object, ...]


def to_published(question: BaseQuestion) -> PublishedQuestion:
    """Return the question as publication would freeze it, with the channel that would run."""
    return read_question(question_form(question), nullable=False)


def plans_mean(question: PublishedQuestion) -> bool:
    """Return whether the plan is for the mean (numbers and dates) rather than for shares."""
    return question.grid is not None and question.kind.is_numeric


def value_range(question: PublishedQuestion) -> float:
    """Return the largest minus the smallest value of the grid, in the answer's unit."""
    return question.grid.values[-1] - question.grid.values[0] if question.grid else math.nan


def relative_margin(question: PublishedQuestion, n: int) -> float:
    """Return the margin of a share, or of a mean as a fraction of the range."""
    if plans_mean(question):
        return mean_margin(question, n) / value_range(question)
    return share_margin(question, n)


def share_margin(question: PublishedQuestion, n: int, share: float = SHARES[0]) -> float:
    """Return the margin of an option's share with n reports, as a fraction."""
    channel = question.channel
    if isinstance(channel, WeightTable):
        return _table_margin(channel, n, share)
    p, q = frequencies(question) or (channel.p, channel.q)
    return margin_of(n, channel=Chances(float(p), float(q)), share=share, level=LEVEL).margin


def mean_margin(question: PublishedQuestion, n: int) -> float:
    """Return the margin of the mean in the answer's unit, for the answers of largest variance.

    margin = z range/2 sqrt(Var/n), Var on the scale from -1 to 1
    """
    channel = question.channel
    if not isinstance(channel, WeightTable):
        return math.nan
    return (
        normal_quantile(LEVEL) * value_range(question) / 2 * math.sqrt(_worst_variance(channel) / n)
    )


def required_design(
    question: BaseQuestion, published_question: PublishedQuestion, n: int, margin: float
) -> RequiredDesign | None:
    """Return what n reports require for a margin, as `relative_margin` measures it.

    The search bisects over channels that are built, from the most private one on. Returns None if
    no channel of the design can be built.
    """
    family = _family(question, published_question)
    values = _parameter_values(family)
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if _margin_at(family, values[middle], n) <= margin:
            high = middle
        else:
            low = middle + 1
    # The last values may have no channel with integer weights: use the nearest one that has.
    while low and math.isinf(_margin_at(family, values[low], n)):
        low -= 1
    epsilon, _ = _epsilon_and_scaled_margin(family, values[low])
    smallest = _margin_at(family, values[low], n)
    if math.isinf(smallest):
        return None
    return RequiredDesign(family.parameter, values[low], epsilon, smallest, smallest <= margin)


def _table_margin(channel: WeightTable, n: int, share: float) -> float:
    """Return z sqrt(Var/n), Var = sum_y lambda_y B_1y^2 - pi_1^2.

    B is the pseudo-inverse of P(report | truth), lambda = P pi, and pi is `share` for the first
    answer and equal for the others.
    """
    P = channel.matrix
    shares = np.full(channel.truths, (1 - share) / (channel.truths - 1))
    shares[0] = share
    first = np.linalg.pinv(P)[:, 0]
    variance = float(shares @ P @ first**2) - share**2
    return normal_quantile(LEVEL) * math.sqrt(max(variance, 0.0) / n)


# Two sentences of each plan use it, and a plan is made after every change of a draft.
_worst_variance = lru_cache(maxsize=64)(worst_variance)


def _family(question: BaseQuestion, published_question: PublishedQuestion) -> _Family:
    parameters = DESIGNS[question.design].ways
    parameter = "epsilon" if "epsilon" in parameters else next(iter(parameters))
    inputs = question.answer_space
    if plans_mean(published_question) and inputs.ordinary > MAX_GRID_POINTS:
        step = inputs.step * (inputs.ordinary - 1) / (MAX_GRID_POINTS - 1)
        inputs = replace(inputs, ordinary=MAX_GRID_POINTS, step=step)
    fixed = sorted(item for item in inputs.parameters.items() if item[0] != parameter)
    key = (
        published_question.type,
        *(inputs.ordinary, inputs.no_answers, inputs.ticks, inputs.alone, inputs.step),
        repr(fixed),
    )
    return _Family(published_question, inputs, parameter, question.design, key)


def _parameter_values(family: _Family) -> Sequence[Fraction]:
    """Return the values to search, the most private first."""
    if family.parameter in PRIVACY:
        return EPSILONS
    if family.parameter == "sigma":
        length = family.inputs.step * (family.inputs.ordinary - 1)
        return [fraction * length for fraction in SIGMAS]
    if family.parameter == "p":
        # Warner's design reveals nothing at 1/2; below it, reports state the opposite.
        return [p for p in TRUTH_PROBABILITIES if 2 * p > 1]
    return TRUTH_PROBABILITIES


def _margin_at(family: _Family, value: Fraction, n: int) -> float:
    return _epsilon_and_scaled_margin(family, value)[1] / math.sqrt(n)


@lru_cache(maxsize=CACHED_CHANNELS)
def _epsilon_and_scaled_margin(family: _Family, value: Fraction) -> tuple[float, float]:
    """Return epsilon and sqrt(n) times the margin; infinite if integers cannot make the channel."""
    try:
        channel: AnyChannel = DESIGNS[family.design].ways[family.parameter](family.inputs, value)
    except ChannelError:
        return math.inf, math.inf
    margin = relative_margin(replace(family.question, channel=channel), BASE_REPORTS)
    return channel.epsilon, margin * math.sqrt(BASE_REPORTS)
