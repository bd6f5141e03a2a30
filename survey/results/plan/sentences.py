"""What a question that is being written will cost and give: its privacy and margins in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from survey.errors import DesignError
from survey.estimator import required_epsilon
from survey.estimator.core.arguments import LARGEST_N
from survey.estimator.planning.sample_size import rounded
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.accounting import format_epsilon
from survey.mechanism.design import format_fraction
from survey.questionnaire.label import frequencies, label
from survey.questionnaire.published import PublishedQuestion
from survey.questionnaire.question import BaseQuestion
from survey.results.plan.compute import (
    SHARES,
    asked_so,
    has_mean_alone,
    length,
    needed,
    of_mean,
    of_share,
    relative,
)

LARGEST_RATIO_SAID = 1_000
"""Up to this numerator an epsilon is also written as the logarithm of a fraction."""


@dataclass(frozen=True)
class QuestionPlan:
    """A question in words, each a sentence; `p` is the truth probability, None without one."""

    p: float | None
    epsilon: str
    chance: str
    bounds: str
    margins: str
    reports: str
    needed_epsilon: str


def question_plan(question: BaseQuestion, n: int, goal: float) -> QuestionPlan:
    """What to expect of n reports, and what a margin of `goal` (a share of the range) needs."""
    asked = asked_so(question)
    ratio = asked.channel.ratio
    return QuestionPlan(
        p=_p(asked.channel),
        epsilon=_epsilon(asked.channel),
        chance=_chance(asked),
        bounds=_bounds(asked, ratio),
        margins=_margins(asked, n),
        reports=_reports(asked, goal),
        needed_epsilon=_needed_epsilon(question, asked, n, goal),
    )


def _p(channel: AnyChannel) -> float | None:
    return None if isinstance(channel, WeightTable) else float(channel.p)


def _epsilon(channel: AnyChannel) -> str:
    ratio = channel.ratio
    exact = max(ratio.numerator, ratio.denominator) <= LARGEST_RATIO_SAID
    said = f" = ln({format_fraction(ratio)})" if exact else ""
    return f"epsilon {format_epsilon(channel.epsilon)}{said}"


def _chance(asked: PublishedQuestion) -> str:
    found = _frequencies(asked)
    if found is None and asked.type == "scale":
        return "A report says a point near the answer or far from it; every one can come of any."
    if found is None:
        return "A report says a number near the answer or far from it; every one can come of any."
    own, other = map(_of_100, found)
    what = "tick it" if asked.type == "multiple_choice" else "have an answer"
    which = ", by which one it is" if found[0][0] != found[0][1] else ""
    return f"Of 100 people who {what}, {own} reports say so{which}; of 100 who do not, {other}."


Range = tuple[Fraction, Fraction]


def _frequencies(asked: PublishedQuestion) -> tuple[Range, Range] | None:
    """P(a report says an answer | it is the true one), and if it is not, over all answers.

    None where a report does not say one answer.
    """
    channel = asked.channel
    if not isinstance(channel, WeightTable) or asked.type in ("number", "date"):
        found = frequencies(asked)
        return found and ((found[0], found[0]), (found[1], found[1]))
    if channel.reports != channel.truths:
        return None
    own = np.diag(channel.weights)
    others = channel.weights[~np.eye(channel.truths, dtype=bool)]

    def share(weight: np.integer[Any]) -> Fraction:
        return Fraction(int(weight), channel.total)

    return (share(own.min()), share(own.max())), (share(others.min()), share(others.max()))


def _of_100(ends: Range) -> str:
    low, high = (f"{100 * float(end):.3g}" for end in ends)
    return f"about {low}" if low == high else f"between {low} and {high}"


def _bounds(asked: PublishedQuestion, ratio: Fraction) -> str:
    told = label(asked, ratio)
    return (
        f"One report multiplies anyone’s odds by at most {told.odds}: a suspicion of 10% becomes "
        f"at most {told.from10}%, one of 50% at most {told.from50}%."
    )


def _margins(asked: PublishedQuestion, n: int) -> str:
    if has_mean_alone(asked):
        return f"With {n:,} reports the mean is known to ±{_amount(asked, of_mean(asked, n))}."
    first, second = (of_share(asked, n, share) for share in SHARES)
    return (
        f"With {n:,} reports a share near 50% is known to ±{_points(first)} points, one near 10% "
        f"to ±{_points(second)}."
    )


def _reports(asked: PublishedQuestion, goal: float) -> str:
    """n grows with the square: n = n0 (margin of n0 / goal)^2."""
    base = 10_000
    margin, what = relative(asked, base), _goal(asked, goal)
    reports = math.ceil(base * (margin / goal) ** 2)
    if reports > LARGEST_N:
        return f"No survey is large enough for {what} at this epsilon."
    return f"For {what} about {reports:,} reports are needed."


def _needed_epsilon(question: BaseQuestion, asked: PublishedQuestion, n: int, goal: float) -> str:
    """Of generalized randomized response by its formula, of all others by channels as they run."""
    channel = asked.channel
    what = _goal(asked, goal)
    if question.design != "grr" or not isinstance(channel, SubsetSelection):
        return _needed_of_built(question, asked, n, goal)
    try:
        found = required_epsilon(n, goal, k=channel.k)
    except DesignError:
        return ""
    if not found.possible:
        least = _goal(asked, found.margin)
        return f"With {n:,} reports {what} cannot be reached: {least} is the least."
    return (
        f"With {n:,} reports {what} need epsilon {found.epsilon:.2f}, a truth probability of "
        f"{found.p:.3f}."
    )


def _needed_of_built(question: BaseQuestion, asked: PublishedQuestion, n: int, goal: float) -> str:
    found = needed(question, asked, n, goal)
    if found is None:
        return ""
    what = _goal(asked, goal)
    if not found.possible:
        least = _goal(asked, found.margin)
        return f"With {n:,} reports {what} cannot be reached: about {least} is the least."
    if found.way == "epsilon":
        return f"With {n:,} reports {what} need about epsilon {float(found.value):g}."
    stated = f"{found.way} = {float(found.value):.3g}"
    return f"With {n:,} reports {what} need about {stated}, which is epsilon {found.epsilon:.2g}."


def _goal(asked: PublishedQuestion, goal: float) -> str:
    """A margin in points, or of a mean, of whose range it is a part, in the answer's unit."""
    if has_mean_alone(asked):
        return f"±{_amount(asked, goal * length(asked))}"
    return f"±{_points(goal)} points"


def _amount(asked: PublishedQuestion, value: float) -> str:
    unit = asked.grid.unit if asked.grid else ""
    name = unit or ("days" if asked.type == "date" else "")
    return f"{rounded(value, decimals=1, digits=2)} {name}".strip()


def _points(margin: float) -> str:
    return rounded(100 * margin, decimals=1, digits=1)
