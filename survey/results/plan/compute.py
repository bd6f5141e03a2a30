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

from survey.errors import ChannelError
from survey.estimator.core.arguments import LARGEST_N
from survey.estimator.core.intervals import Chances
from survey.estimator.planning import expected_margin as expected
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.joint_response import joint_channel, marginal_response
from survey.questionnaire.canonical import question_form, read_question
from survey.questionnaire.designs import DESIGNS, PRIVACY, AnswerSpace
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion
from survey.questionnaire.kinds.base import JointResponse
from survey.results.estimates.compute import histogram_cells
from survey.results.question_statistics import opt_outs, single_code_channel

LEVEL = 0.95
DEFAULT_N = 1_000
"""Number of responses that a survey without a plan is assumed to expect."""

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

N_TOLERANCE = 0.002
"""Relative error of a required number of responses."""

FIRST_GUESS = math.log(10_000)
"""Logarithm of the number of responses at which the search for a required one begins."""

UNKNOWN = 0.5
"""Margin of a share that the reports do not determine: its interval is from 0 to 1."""

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
    """The channels of one question's design; `key` holds everything that they depend on.

    `others` is e^epsilon that the other questions of its joint response state, if it is in one.
    """

    question: PublishedQuestion = field(compare=False)
    inputs: AnswerSpace = field(compare=False)
    parameter: str
    design: str
    key: tuple[object, ...]
    others: Fraction = Fraction(1)


def to_published(question: BaseQuestion) -> PublishedQuestion:
    """Return the question as publication would freeze it, with the channel that would run."""
    return read_question(question_form(question), nullable=False, channel=question.channel)


def plans_mean(question: PublishedQuestion) -> bool:
    """Return whether the plan is for the mean (numbers and dates) rather than for shares."""
    return question.grid is not None and question.kind.is_numeric


def value_range(question: PublishedQuestion) -> float:
    """Return the difference of the largest and smallest value or rank, in the answer's unit."""
    if question.kind.is_ranking:
        return question.kind.count_ranked(question) - 1.0
    return question.grid.range if question.grid else math.nan


def planned_margin(question: PublishedQuestion, n: int, share: float = SHARES[0]) -> float:
    """Return the margin of the figure that the results will show for a question with n reports.

    It is the expected half width of the interval: of the share with the widest one, or of the mean
    as a fraction of the range. If the question has opt-outs, the figure refers to the people who
    answer, and `PLANNED_NO_ANSWER` of all people do not. `share` is the true share; for a mean, all
    answers are equally frequent. n counts the reports to this question only, which are fewer than
    all reports if questions are sampled or the margin is that of one group.
    """
    if plans_mean(question):
        return mean_margin(question, n) / value_range(question)
    return share_margin(question, n, share)


def share_margin(question: PublishedQuestion, n: int, share: float) -> float:
    """Return the planned margin of an option's share, as a fraction."""
    in_patterns = None
    if question.by_patterns:
        in_patterns = sum(0 in pattern for pattern in question.patterns)
    no_answers = len(opt_outs(question))
    answers = len(question.options) - no_answers
    channel = question.kind.share_channel(question)
    return _share_margin(channel, answers, no_answers, in_patterns, n, share)


@lru_cache(maxsize=expected.CACHED_MARGINS)
def _share_margin(
    channel: AnyChannel,
    answers: int,
    no_answers: int,
    in_patterns: int | None,
    n: int,
    share: float,
) -> float:
    """Return the margin; `in_patterns` is the number of reported patterns with the option."""
    if isinstance(channel, WeightTable):
        places = range(channel.truths - no_answers, channel.truths)
        try:
            return expected.table_margin(channel, n, share, LEVEL, places)
        except ChannelError:
            # The table does not identify the shares, so their intervals will be from 0 to 1.
            return UNKNOWN
    if no_answers:
        return expected.answered_margin(
            channel,
            n,
            share,
            LEVEL,
            answers=answers,
            no_answers=no_answers,
            in_patterns=in_patterns,
        )
    # A pattern with the option is reported with p + (N-1) q or with N q.
    N = in_patterns or 1
    chances = Chances(channel.p + (N - 1) * channel.q, N * channel.q)
    if isinstance(channel, TickChannel):
        n = max(n * channel.sampled // channel.m, 1)
    return expected.binomial_margin(n, chances, share, LEVEL)


def mean_margin(question: PublishedQuestion, n: int) -> float:
    """Return the planned margin of the mean or a mean rank, in its unit; nan if there is none."""
    channel = single_code_channel(question)
    if channel is None or math.isnan(value_range(question)):
        return math.nan
    return value_range(question) * expected.mean_margin(channel, len(opt_outs(question)), n, LEVEL)


def histogram_margin(question: PublishedQuestion, n: int) -> float:
    """Return the planned margin of the histogram's widest cell, nan if there is no histogram.

    It is half of the interval of one cell's share, as a fraction, if all values are equally
    frequent.
    """
    channel, cells = single_code_channel(question), histogram_cells(question)
    if channel is None or question.grid is None or not cells:
        return math.nan
    values = question.grid.values
    masks = tuple(tuple(cell.first <= x <= cell.last for x in values) for cell in cells)
    return expected.cell_margin(channel, masks, len(opt_outs(question)), n, LEVEL)


def required_responses(question: PublishedQuestion, margin: float) -> int | None:
    """Return roughly how many reports to a question give a margin; None above `LARGEST_N`.

    The relative error is at most `N_TOLERANCE`, because a plan states only a few digits.
    """
    from scipy.optimize import brentq

    def excess(log_n: float) -> float:
        return math.log(planned_margin(question, round(math.exp(log_n))) / margin)

    # Margins fall like 1/sqrt(n), or faster where reports are few.
    low = high = FIRST_GUESS + 2 * excess(FIRST_GUESS)
    maximum = math.log(LARGEST_N)
    low, high = (min(max(end, 0.0), maximum) for end in (low, high))
    while high < maximum and excess(high) > 0:
        high = min(high + 1, maximum)
    while low > 0 and excess(low) <= 0:
        low = max(low - 1, 0.0)
    if excess(low) <= 0:
        return 1
    if excess(high) > 0:
        return None
    return math.ceil(math.exp(brentq(excess, low, high, xtol=N_TOLERANCE)))


def required_design(
    question: BaseQuestion, published_question: PublishedQuestion, n: int, margin: float
) -> RequiredDesign | None:
    """Return what n reports require for a margin, as `planned_margin` measures it.

    The search bisects over channels that are built, from the most private one on. Returns None if
    no channel of the design can be built.
    """
    family = _family(question, published_question)
    values = _parameter_values(family)
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if _epsilon_and_margin(family, values[middle], n)[1] <= margin:
            high = middle
        else:
            low = middle + 1
    # The last values may have no channel with integer weights: use the nearest one that has.
    while low and math.isinf(_epsilon_and_margin(family, values[low], n)[1]):
        low -= 1
    epsilon, smallest = _epsilon_and_margin(family, values[low], n)
    if math.isinf(smallest):
        return None
    return RequiredDesign(family.parameter, values[low], epsilon, smallest, smallest <= margin)


def _family(question: BaseQuestion, published_question: PublishedQuestion) -> _Family:
    parameters = DESIGNS[question.design].ways
    parameter = "epsilon" if "epsilon" in parameters else next(iter(parameters))
    inputs = question.answer_space
    if plans_mean(published_question) and inputs.ordinary > MAX_GRID_POINTS:
        step = inputs.step * (inputs.ordinary - 1) / (MAX_GRID_POINTS - 1)
        inputs = replace(inputs, ordinary=MAX_GRID_POINTS, step=step)
    fixed = sorted(item for item in inputs.parameters.items() if item[0] != parameter)
    joint = published_question.joint
    key = (
        published_question.type,
        *(inputs.ordinary, inputs.no_answers, inputs.ticks, inputs.alone, inputs.step),
        repr(fixed),
        joint and (joint.mechanism, joint.channel.options),
    )
    others = joint.channel.ratio / question.own_channel.ratio if joint else Fraction(1)
    return _Family(published_question, inputs, parameter, question.design, key, others)


def _part(joint: JointResponse, k: int, ratio: Fraction) -> SubsetSelection:
    """Return the part of a question with k options if the joint response has this e^epsilon."""
    K = joint.channel.options
    sizes = [2] * K if joint.mechanism == "half_space" else [k, K // k]
    return marginal_response(joint_channel(sizes, ratio, joint.mechanism), k)


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


@lru_cache(maxsize=CACHED_CHANNELS)
def _epsilon_and_margin(family: _Family, value: Fraction, n: int) -> tuple[float, float]:
    """Return epsilon and the margin; infinite if integers cannot make the channel."""
    try:
        channel: AnyChannel = DESIGNS[family.design].ways[family.parameter](family.inputs, value)
        if family.question.joint:
            channel = _part(family.question.joint, channel.options, channel.ratio * family.others)
    except ChannelError:
        return math.inf, math.inf
    return channel.epsilon, planned_margin(replace(family.question, channel=channel), n)
