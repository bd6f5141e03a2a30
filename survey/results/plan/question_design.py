"""The design of one question at an epsilon: the mechanism with the narrowest interval."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from survey.errors import ChannelError
from survey.estimator.core.debiasing import set_values
from survey.estimator.core.intervals import normal_quantile
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable, best, from_epsilon
from survey.mechanism.exact_numbers import GRID, format_fraction
from survey.mechanism.multiple_choice import support
from survey.mechanism.numeric import square_wave
from survey.questionnaire.designs import DESIGNS, AnswerSpace
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion
from survey.questionnaire.limits import is_too_weak
from survey.results.estimates.histogram import equal_parts
from survey.results.plan.compute import (
    LEVEL,
    MAX_GRID_POINTS,
    SHARES,
    planned_margin,
    plans_mean,
    to_published,
)
from survey.results.question_statistics import opt_outs
from survey.settings import Caps

MIN_GAIN = 1.05
"""A mechanism replaces the type's default if it narrows the interval by more than this factor."""

BASE_REPORTS = 10_000
"""Number of reports for which mechanisms for numbers are compared."""

CACHED_CHANNELS = 2_048
"""Number of cached channels: a draft is planned again after every change."""

BINS = 5
"""Number of ranges that are offered instead of a number."""

MAX_HISTOGRAM_POINTS = 101
"""Histograms of finer grids are planned with this many points, although they are less precise."""


@dataclass(frozen=True)
class QuestionDesign:
    """One question in a design of the survey.

    question   the question with its proposed channel
    epsilon    the stated epsilon; None if the question states another parameter
    responses  expected number of responses to it
    margin     of a share of one half, or of the mean as a fraction of the range
    typical    geometric mean of the margins of shares of one half and one tenth; for a mean, margin
    gain       factor by which this mechanism narrows the interval of the type's default
    """

    question: PublishedQuestion
    epsilon: Fraction | None
    responses: int
    margin: float
    typical: float
    gain: float = 1.0

    @classmethod
    def of(
        cls, question: PublishedQuestion, epsilon: Fraction | None, responses: int
    ) -> QuestionDesign:
        """Return the present design of a question."""
        return cls(question, epsilon, responses, *_margins(question, responses))

    @property
    def is_mean(self) -> bool:
        """Whether `margin` is that of a mean."""
        return plans_mean(self.question)

    def in_half_space(self, ids: Sequence[str]) -> bool:
        """Whether it is in a half-space of exactly these questions."""
        joint = self.question.joint
        if joint is None or joint.mechanism != "half_space":
            return False
        return joint.questions == tuple(ids)

    @cached_property
    def variance(self) -> float:
        """Return n Var of a share of one half, nan for a mean."""
        if self.is_mean:
            return math.nan
        return share_variance(self.question, self.question.channel, SHARES[0])


def question_design(
    question: BaseQuestion | Family, epsilon: Fraction, caps: Caps, responses: int
) -> QuestionDesign:
    """Return the design of a question, or of its family, with at most this epsilon.

    A question keeps the mechanism that it names if that mechanism takes an epsilon. Otherwise it
    gets the mechanism with the narrowest interval, or its type's default if the gain is at most 5%.
    If the channel may not be published, its epsilon is reduced to the largest that may.

    Raises ChannelError if no channel can be built.
    """
    family = question if isinstance(question, Family) else Family.of(question)
    mechanism, allowed, gain, margins = _proposal(family, epsilon, caps, responses)
    published = replace(
        family.published,
        channel=_build(family.space, mechanism, allowed),
        mechanism=mechanism,
        stated={"epsilon": format_fraction(allowed)},
    )
    return QuestionDesign(published, allowed, responses, *margins, gain)


def mechanism_gains(question: BaseQuestion, epsilon: Fraction) -> dict[str, float]:
    """Return the factors by which mechanisms narrow the interval of the type's default.

    The keys are the type's mechanisms that take this epsilon and no parameter. Choices are compared
    by the share of their least precise option: of single choices at equal shares, of multiple
    choices at one half. Numbers and dates are compared by the planned margin of their mean.
    """
    return dict(_gains(Family.of(question), epsilon))


@dataclass(frozen=True)
class BinsComparison:
    """The widest margins of a number asked by square wave, and of a choice of `BINS` ranges.

    histogram  of a cell, in a histogram with as many cells as there are ranges
    bins       of the share of a range
    """

    histogram: float
    bins: float

    @property
    def gain(self) -> float:
        """The factor by which the intervals of ranges are narrower."""
        return self.histogram / self.bins


def compare_bins(question: BaseQuestion, epsilon: Fraction, responses: int) -> BinsComparison:
    """Compare the histogram of a number with a choice of ranges, at equal shares of all cells.

    Raises ChannelError for a grid that is too small for a square wave.
    """
    space = question.answer_space
    points = min(space.ordinary, MAX_HISTOGRAM_POINTS)
    return _compare_bins(points, space.no_answers, epsilon, responses)


@lru_cache(maxsize=CACHED_CHANNELS)
def _compare_bins(
    points: int, no_answers: int, epsilon: Fraction, responses: int
) -> BinsComparison:
    channel = square_wave(points, epsilon, no_answers)
    answered = np.arange(channel.truths) < points
    cells = np.array([*equal_parts(points, BINS), *[-1] * no_answers])
    # 1 inside a cell, -1 in another one, 0 for no answer
    targets = np.where(answered, 2.0 * (cells == np.arange(BINS)[:, None]) - 1, 0.0)
    values, _ = set_values(channel, targets, responses)
    # n Var = Var(a)/4: a is the pseudo-value of a cell, on the scale from -1 to 1.
    reports = answered / points @ channel.matrix
    variances = (values**2 @ reports - (values @ reports) ** 2) / 4
    options = BINS + no_answers
    channels = from_epsilon(options, epsilon), best(options, epsilon)
    smallest = min(_variance(channel.p, channel.q, 1 / BINS) for channel in channels)
    z = normal_quantile(LEVEL) / math.sqrt(responses)
    return BinsComparison(z * math.sqrt(float(variances.max())), z * math.sqrt(smallest))


def share_variance(question: PublishedQuestion, channel: AnyChannel, share: float) -> float:
    """Return n Var of the least precise option's share; the others are equally frequent."""
    channel = question.kind.share_channel(replace(question, channel=channel))
    if isinstance(channel, WeightTable):
        return _table_variance(channel, channel.truths - len(opt_outs(question)), share)
    if isinstance(channel, BitVector):
        return _variance(channel.p, channel.q, share) * channel.m / channel.sampled
    if question.kind.is_multiple and isinstance(channel, SubsetSelection):
        p, q = support(channel, sum(0 in pattern for pattern in question.patterns))
        return _variance(float(p), float(q), share)
    return _variance(channel.p, channel.q, share)


def _variance(p: float, q: float, share: float) -> float:
    """Return n Var = lambda (1 - lambda)/(p - q)^2, lambda = q + (p - q) share."""
    rate = q + (p - q) * share
    return rate * (1 - rate) / (p - q) ** 2


def _table_variance(channel: WeightTable, answers: int, share: float) -> float:
    """Return n Var_j = sum_t pi_t E[B_yj^2 | t] - pi_j^2 of the least precise answer j.

    B is the pseudo-inverse of P(report y | truth t); pi_j is `share`, the others are equal.
    """
    P = channel.matrix
    second_moments = P @ np.linalg.pinv(P) ** 2
    own = second_moments.diagonal()
    others = (second_moments.sum(axis=0) - own) / (channel.truths - 1)
    variances = share * own + (1 - share) * others - share**2
    return float(variances[:answers].max())


@dataclass(frozen=True)
class Family:
    """The channels that a question may have. `key` holds everything that they depend on."""

    question: BaseQuestion = field(compare=False)
    published: PublishedQuestion = field(compare=False)
    key: tuple[object, ...]

    @classmethod
    def of(cls, question: BaseQuestion) -> Family:
        """Return the family of a question; this takes longer than computing one of its designs."""
        space = question.answer_space
        parameters = repr(sorted(space.parameters.items()))
        key = (
            question.type,
            *(space.ordinary, space.no_answers, space.ticks, space.alone, space.step),
            *(parameters, question.mechanism),
        )
        # Plan each question separately, even if it is randomized jointly now.
        return cls(question, replace(to_published(question), joint=None), key)

    @cached_property
    def space(self) -> AnswerSpace:
        """The answers, and the other properties on which a channel depends."""
        return self.question.answer_space

    @cached_property
    def planning_space(self) -> AnswerSpace:
        """The answers with at most `MAX_GRID_POINTS` numbers; their margins are nearly the same."""
        space = self.space
        if not plans_mean(self.published) or space.ordinary <= MAX_GRID_POINTS:
            return space
        step = space.step * (space.ordinary - 1) / (MAX_GRID_POINTS - 1)
        return replace(space, ordinary=MAX_GRID_POINTS, step=step)


@lru_cache(maxsize=CACHED_CHANNELS)
def _proposal(
    family: Family, epsilon: Fraction, caps: Caps, responses: int
) -> tuple[str, Fraction, float, tuple[float, float]]:
    """Return the mechanism, its epsilon, its gain and its margins."""
    gains = _gains(family, epsilon)
    mechanism = family.question.mechanism or ""
    if mechanism not in gains:
        mechanism = max(gains, key=lambda name: gains[name])
        if gains[mechanism] <= MIN_GAIN:
            mechanism = _default_mechanism(family, epsilon)
    allowed = _largest_allowed(family.space, mechanism, epsilon, caps)
    channel = _build(family.planning_space, mechanism, allowed)
    margins = _margins(replace(family.published, channel=channel), responses)
    return mechanism, allowed, gains[mechanism], margins


def _margins(question: PublishedQuestion, responses: int) -> tuple[float, float]:
    """Return the margin of a share of one half, and the geometric mean over the planned shares."""
    if plans_mean(question):
        margin = planned_margin(question, responses)
        return margin, margin
    margins = [planned_margin(question, responses, share) for share in SHARES]
    return margins[0], math.prod(margins) ** (1 / len(margins))


def _largest_allowed(space: AnswerSpace, mechanism: str, epsilon: Fraction, caps: Caps) -> Fraction:
    """Return this epsilon, or the largest in thousandths whose channel may be published."""

    def is_excessive(thousandths: int) -> bool:
        try:
            channel = _build(space, mechanism, Fraction(thousandths, GRID))
        except ChannelError:
            return False  # no integers make the channel of a very small epsilon
        return is_too_weak(channel, caps)

    steps = range(1, int(epsilon * GRID) + 1)
    if not is_excessive(steps[-1]):
        return epsilon
    return Fraction(bisect_left(steps, True, key=is_excessive), GRID)


@lru_cache(maxsize=CACHED_CHANNELS)
def _gains(family: Family, epsilon: Fraction) -> Mapping[str, float]:
    question, space = family.question, family.planning_space
    widths = {}
    for name in question.kind.mechanisms:
        design = DESIGNS[name]
        fits = not design.parameters or name == question.mechanism
        if "epsilon" not in design.ways or not fits or space.ordinary < design.minimum:
            continue
        with suppress(ChannelError):  # too many combinations, or no integers for the epsilon
            channel = _build(space, name, epsilon)
            widths[name] = _width(family.published, channel)
    own = _default_mechanism(family, epsilon)
    _build(space, own, epsilon)  # raises ChannelError if no integers fit
    return {name: widths[own] / width for name, width in widths.items()}


def _default_mechanism(family: Family, epsilon: Fraction) -> str:
    """Return the mechanism of a question that states only an epsilon."""
    return family.question.kind.recommend_mechanism(family.planning_space, epsilon)


def _build(space: AnswerSpace, mechanism: str, epsilon: Fraction) -> AnyChannel:
    return DESIGNS[mechanism].ways["epsilon"](space, epsilon)


def _width(question: PublishedQuestion, channel: AnyChannel) -> float:
    if question.kind.is_numeric:
        return planned_margin(replace(question, channel=channel), BASE_REPORTS)
    share = SHARES[0] if question.kind.is_multiple else 1 / channel.options
    return math.sqrt(share_variance(question, channel, share))
