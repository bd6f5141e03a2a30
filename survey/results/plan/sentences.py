"""The plan of a question in sentences: its privacy and its margins before anyone answers."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from survey.errors import ChannelError
from survey.estimator.core.arguments import LARGEST_N
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.planning.expected_margin import PLANNED_NO_ANSWER
from survey.estimator.planning.sample_size import rounded
from survey.mechanism import WeightTable
from survey.mechanism.composition import format_epsilon
from survey.mechanism.exact_numbers import format_fraction
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion
from survey.questionnaire.privacy_loss import frequencies, label
from survey.results.plan.compute import (
    LEVEL,
    SHARES,
    mean_margin,
    planned_margin,
    plans_mean,
    required_design,
    required_responses,
    share_margin,
    to_published,
    value_range,
)
from survey.results.question_statistics import opt_outs

ALL = Fraction(1)
"""The share of respondents asked a question if the survey does not sample questions."""

WIDE_MARGIN, USELESS_MARGIN = 0.15, 0.4
"""Above the first, a margin says little about a share or a mean. Above the second, an interval
covers more than four fifths of all possible values: intervals end at 0 and 1, so that no margin
exceeds .5."""

LARGEST_NUMERATOR = 1_000
"""Up to this numerator, epsilon is also given as the logarithm of a fraction."""


@dataclass(frozen=True)
class QuestionPlan:
    """A question's plan, one sentence each; `p` is the truth probability if there is only one.

    `caution` is empty if the margin at the planned number of responses is useful.
    """

    p: float | None
    epsilon: str
    chance: str
    bounds: str
    margins: str
    caution: str
    reports: str
    needed_epsilon: str


@dataclass(frozen=True)
class Responses:
    """The responses to a survey, of which a share includes a given question."""

    n: int
    share: Fraction = ALL

    @property
    def to_question(self) -> int:
        """The expected number of responses to the question, at least 1."""
        return max(math.floor(self.n * self.share), 1)

    def __str__(self) -> str:
        """Return the number in words, and how many of the responses include the question."""
        if self.share == ALL:
            return f"{self.n:,} responses"
        return f"{self.n:,} responses, about {self.to_question:,} of them to this question"


def question_plan(
    question: BaseQuestion, n: int, margin: float, share: Fraction = ALL
) -> QuestionPlan:
    """Return the plan for n responses and a desired margin, a fraction of one or of the range.

    `share` is the share of respondents who are asked the question.
    """
    responses = Responses(n, share)
    published = to_published(question)
    ratio = published.device_channel.ratio
    is_short = max(ratio.numerator, ratio.denominator) <= LARGEST_NUMERATOR
    logarithm = f" = ln({format_fraction(ratio)})" if is_short else ""
    return QuestionPlan(
        p=published.channel.truth_probability,
        epsilon=f"epsilon {format_epsilon(published.device_channel.epsilon)}{logarithm}",
        chance=_chance(published),
        bounds=_bounds(published),
        margins=_margins(published, responses),
        caution=_caution(published, responses),
        reports=_required_reports(published, margin, share),
        needed_epsilon=_required_setting(question, published, responses, margin),
    )


def _chance(question: PublishedQuestion) -> str:
    """Return how often responses state an option, for people with and without that answer."""
    ranges = _support_ranges(question)
    if ranges is None:
        if question.kind.is_ranking:
            return (
                "A response states the first choice, or the order of a few answers drawn at "
                "random. Every response can result from every ranking."
            )
        unit = "point" if question.kind.is_ordered else "number"
        return (
            f"A response states a {unit} near the true answer or far from it. Every {unit} can "
            "result from every answer."
        )
    n_true, n_other = (_per_100(chances) for chances in ranges)
    option = question.options[0].label
    if question.kind.is_multiple:
        return (
            f"If 100 people select “{option}”, {n_true} responses include it; if 100 people do "
            f"not select it, {n_other} do."
        )
    low, high = ranges[0]
    if low != high:
        return (
            f"If 100 people have the same true answer, {n_true} responses state it, depending on "
            f"the answer. If 100 people have another answer, {n_other} do."
        )
    return (
        f"If the true answer of 100 people is “{option}”, {n_true} responses say “{option}”. If "
        f"100 people have another answer, {n_other} do."
    )


Range = tuple[Fraction, Fraction]


def _support_ranges(question: PublishedQuestion) -> tuple[Range, Range] | None:
    """Return the range over all answers of P(report states it | true) and of P(... | not true).

    Returns None if a report does not state a single answer.
    """
    channel = question.channel
    if not isinstance(channel, WeightTable) or question.kind.is_numeric:
        chances = frequencies(question)
        return chances and ((chances[0], chances[0]), (chances[1], chances[1]))
    if question.kind.is_ranking or channel.reports != channel.truths:
        return None
    diagonal = np.diag(channel.weights)
    off_diagonal = channel.weights[~np.eye(channel.truths, dtype=bool)]

    def chance(weight: np.integer[Any]) -> Fraction:
        return Fraction(int(weight), channel.total)

    return (
        (chance(diagonal.min()), chance(diagonal.max())),
        (chance(off_diagonal.min()), chance(off_diagonal.max())),
    )


def _per_100(chances: Range) -> str:
    low, high = (f"{100 * float(chance):.3g}" for chance in chances)
    return f"about {low}" if low == high else f"between {low} and {high}"


def _bounds(question: PublishedQuestion) -> str:
    bounds = label(question, question.device_channel.ratio)
    subject, knowledge = "This question alone changes", ""
    if question.joint:
        subject = "This question and those randomized jointly with it change"
        knowledge = ", even if somebody knows the other answers"
    return (
        f"{subject} the odds of a guess about someone by a factor of at most {bounds.odds}"
        f"{knowledge}: a suspicion of 10% becomes at most {bounds.from10}%, one of 50% at most "
        f"{bounds.from50}%."
    )


def _margins(question: PublishedQuestion, responses: Responses) -> str:
    n = responses.to_question
    condition = ""
    if opt_outs(question):
        subject = "These margins refer" if question.kind.is_ranking else "This margin refers"
        condition = (
            f" {subject} to the people who answer; the plan assumes that "
            f"{PLANNED_NO_ANSWER:.0%} do not."
        )
    if planned_margin(question, n) > USELESS_MARGIN:
        return ""
    if plans_mean(question):
        margin = _in_unit(question, mean_margin(question, n))
        return (
            f"With {responses}, the margin of error of the mean is ±{margin} if all values are "
            f"equally frequent.{condition}"
        )
    middle, rare = (_points(share_margin(question, n, share)) for share in SHARES)
    share, ranks = "share", ""
    if question.kind.is_ranking:
        share = "share of first places"
        ranks = (
            f" The margin of a mean rank is ±{_in_unit(question, mean_margin(question, n))} if all "
            "orders are equally frequent."
        )
    return (
        f"With {responses}, the margin of error is ±{middle} points for a {share} near 50% and "
        f"±{rare} points for one near 10%.{ranks}{condition}"
    )


def _caution(question: PublishedQuestion, responses: Responses) -> str:
    """Return a warning about a margin that is too wide at the planned number of responses."""
    margin = planned_margin(question, responses.to_question)
    more = "" if responses.share == ALL else ", ask each person more questions"
    remedy = f"Plan more responses{more} or choose a weaker privacy level."
    if margin > USELESS_MARGIN:
        return (
            f"Impossible to estimate with {responses}: an interval would cover more than four "
            f"fifths of all possible values. {remedy}"
        )
    unit = "% of the range" if plans_mean(question) else " points"
    wide = f"{100 * WIDE_MARGIN:.0f}{unit}"
    return f"Too wide: above ±{wide}. {remedy}" if margin > WIDE_MARGIN else ""


def matrix_sentence(row: BaseQuestion, rows: int, responses: Responses) -> str:
    """Return how much precision it costs to divide an epsilon among the rows of a matrix.

    `row` is one of them. Each of R rows has epsilon/R, so its margin is about R times that of a
    single question. If each person is asked only one row, the row has the whole epsilon and n/R
    responses, and its margin is only about sqrt(R) times that of a single question.
    """
    epsilon, n = (row.epsilon or ALL) * rows, responses.to_question
    published = to_published(row)

    def margin(share: Fraction, n_responses: int) -> str:
        channel = DESIGNS[row.design].ways["epsilon"](row.answer_space, share)
        value = planned_margin(replace(published, channel=channel), max(n_responses, 1))
        if value > USELESS_MARGIN:
            return "too wide to be useful"
        return _describe_margin(published, value)

    with suppress(ChannelError):
        fewer = (rows + 1) // 2
        half = f" With {fewer} rows, it would be {margin(epsilon / fewer, n)}." if fewer > 1 else ""
        return (
            f"Each of the {rows} rows gets epsilon {format_epsilon(float(epsilon / rows))}; its "
            f"margin with {responses} is {margin(epsilon / rows, n)}.{half} A single question with "
            f"the whole epsilon would have {margin(epsilon, n)}. Fewer rows narrow the margins. "
            f"For the narrowest margins, write the rows as {rows} separate scales and ask each "
            f"person one of them: {margin(epsilon, n // rows)} at the same privacy loss."
        )
    return ""


def is_imprecise(question: BaseQuestion, n: int) -> bool:
    """Return whether the margin at n responses to the question is too wide to be useful."""
    return planned_margin(to_published(question), n) > WIDE_MARGIN


def _required_reports(question: PublishedQuestion, margin: float, share: Fraction) -> str:
    goal = _describe_margin(question, margin)
    n = required_responses(question, margin)
    if n is None or n / share > LARGEST_N:
        return f"At this epsilon, no number of responses gives {goal}."
    cost = f"For {goal}, about {math.ceil(n / share):,} responses are needed"
    if plans_mean(question):
        return f"{cost}."
    plain = _required_without_randomization(question, margin)
    return f"{cost}; without randomization, {math.ceil(plain / share):,}."


def _required_without_randomization(question: PublishedQuestion, margin: float) -> int:
    """Return how many responses a share of 50% needs if nothing is randomized: (z/m)^2/4.

    If people may decline, only those who answer count: that many responses/(1 - declined).
    """
    n = (normal_quantile(LEVEL) / margin) ** 2 / 4
    return math.ceil(n / (1 - PLANNED_NO_ANSWER) if opt_outs(question) else n)


def _required_setting(
    question: BaseQuestion, published: PublishedQuestion, responses: Responses, margin: float
) -> str:
    """Return the setting that gives the margin; empty if the design has none.

    The margin of a joint response also depends on the settings of the other questions, which stay.
    """
    design = required_design(question, published, responses.to_question, margin)
    if design is None:
        return ""
    if not design.possible:
        return _out_of_reach(published, responses, margin, design.margin)
    setting = f"epsilon to about {float(design.value):g}"
    if design.parameter != "epsilon":
        value = f"{float(design.value):.3g}"
        setting = f"{design.parameter} to about {value} (epsilon {design.epsilon:.2g})"
    others = " if the questions randomized jointly with it stay" if published.joint else ""
    return f"For {_describe_margin(published, margin)} with {responses}, set {setting}{others}."


def _out_of_reach(
    question: PublishedQuestion, responses: Responses, margin: float, smallest: float
) -> str:
    return (
        f"With {responses}, {_describe_margin(question, margin)} is not possible; the smallest "
        f"margin is about {_describe_margin(question, smallest)}."
    )


def _describe_margin(question: PublishedQuestion, margin: float) -> str:
    """Return a margin in points, or a mean's margin (a fraction of the range) in its unit."""
    if plans_mean(question):
        return f"±{_in_unit(question, margin * value_range(question))}"
    return f"±{_points(margin)} points"


def _in_unit(question: PublishedQuestion, value: float) -> str:
    unit = question.grid.unit if question.grid else ""
    name = unit or ("days" if question.kind.is_date else "")
    return f"{rounded(value, decimals=1, digits=2)} {name}".strip()


def _points(margin: float) -> str:
    return rounded(100 * margin, decimals=1, digits=1)
