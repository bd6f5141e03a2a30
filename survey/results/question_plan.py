"""What a question that is being written will cost and give: its privacy and margins in words."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import ndtri

from survey.errors import ChannelError, DesignError
from survey.estimator.counts import LARGEST_N
from survey.estimator.intervals import Chances
from survey.estimator.number_design import worst_variance
from survey.estimator.planned import LARGEST_EPSILON, rounded
from survey.estimator.planning import Plan, margin_of, required_epsilon
from survey.estimator.tradeoff import tradeoff
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.accounting import shown_epsilon
from survey.mechanism.design import shown
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.label import frequencies, label
from survey.questionnaire.published import PublishedQuestion, published, question_form
from survey.questionnaire.question import BaseQuestion
from survey.results.plan_charts import built_specification, tradeoff_specification

LEVEL = 0.95
SHARES = (0.5, 0.1)
"""True shares that margins are told for: the middle, and something rare."""

LARGEST_RATIO_SAID = 1_000
"""Up to this numerator an epsilon is also written as the logarithm of a fraction."""

DRAWN_FROM, DRAWN_TO, DRAWN = 0.1, 8.0, 60
"""The epsilons that the trade-off is drawn over."""

BUILT = 20
"""Channels that are built for a chart without a formula."""


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
    asked = published(question_form(question), nullable=False)
    ratio = asked.channel.ratio
    return QuestionPlan(
        p=_p(asked.channel),
        epsilon=_epsilon(asked.channel),
        chance=_chance(asked),
        bounds=_bounds(asked, ratio),
        margins=_margins(asked, n),
        reports=_reports(asked, goal),
        needed_epsilon=_needed_epsilon(asked, n, goal),
    )


def tradeoff_chart(options: int, epsilon: float, n: int) -> dict[str, Any]:
    """Margin against epsilon for about n reports, with this epsilon as a dot: a specification."""
    sizes = sorted({max(n // 4, 10), n, min(4 * n, LARGEST_N)})
    dot = min(max(epsilon, DRAWN_FROM), LARGEST_EPSILON)
    epsilons = np.geomspace(DRAWN_FROM, max(DRAWN_TO, dot), DRAWN).tolist()
    epsilons[-1] = max(DRAWN_TO, dot)
    found = tradeoff(epsilons, sizes, k=options)
    return tradeoff_specification(found, margin_of(n, epsilon=dot, k=options))


def built_chart(question: BaseQuestion, n: int) -> dict[str, Any]:
    """The same for any design that is stated by epsilon: its channels are built, not a formula.

    Of a number or a date the margin of the mean, as a part of the range. Raises DesignError for a
    design that no epsilon states.
    """
    build = DESIGNS[question.design].ways.get("epsilon")
    if build is None:
        raise DesignError(
            f"{question.design} is not stated by an epsilon: there is nothing to draw"
        )
    asked = published(question_form(question), nullable=False)
    sizes = sorted({max(n // 4, 10), n, min(4 * n, LARGEST_N)})
    found = []
    for epsilon in np.geomspace(DRAWN_FROM, DRAWN_TO, BUILT).tolist():
        # Not every epsilon can be made of integers.
        with suppress(ChannelError):
            channel = build(question.asked, Fraction(round(1000 * epsilon), 1000))
            at = replace(asked, channel=channel)
            found += [(size, channel.epsilon, _relative(at, size)) for size in sizes]
    whole = asked.type in ("number", "date")
    about = "The mean, as a part of the range" if whole else f"A share of {100 * SHARES[0]:g}%"
    return built_specification(
        found, (asked.channel.epsilon, _relative(asked, n)), f"{about}, {100 * LEVEL:g}% intervals"
    )


def has_chart(question: BaseQuestion) -> bool:
    """Whether there is anything to draw: a design that an epsilon states."""
    return is_grr(question) or "epsilon" in DESIGNS[question.design].ways


def _relative(asked: PublishedQuestion, n: int) -> float:
    """The margin of a share, or of a mean as a part of the range."""
    if asked.grid is not None and asked.type in ("number", "date"):
        return _of_mean(asked, n) / (asked.grid.values[-1] - asked.grid.values[0])
    return _of_share(asked, n, SHARES[0])


def is_grr(question: BaseQuestion) -> bool:
    """Whether the question is asked by generalized randomized response, which plans are for."""
    channel = question.channel
    return isinstance(channel, SubsetSelection) and channel.d == 1 and question.ticks == 0


def _p(channel: AnyChannel) -> float | None:
    return None if isinstance(channel, WeightTable) else float(channel.p)


def _epsilon(channel: AnyChannel) -> str:
    ratio = channel.ratio
    exact = max(ratio.numerator, ratio.denominator) <= LARGEST_RATIO_SAID
    said = f" = ln({shown(ratio)})" if exact else ""
    return f"epsilon {shown_epsilon(channel.epsilon)}{said}"


def _chance(asked: PublishedQuestion) -> str:
    found = frequencies(asked)
    if found is None:
        return "A report says a number near the answer or far from it; every one can come of any."
    own, other = (f"{100 * float(chance):.3g}" for chance in found)
    what = "tick it" if asked.type == "multiple_choice" else "have an answer"
    return (
        f"Of 100 people who {what}, about {own} reports say so; of 100 who do not, about {other}."
    )


def _bounds(asked: PublishedQuestion, ratio: Fraction) -> str:
    told = label(asked, ratio)
    return (
        f"One report multiplies anyone’s odds by at most {told.odds}: a suspicion of 10% becomes "
        f"at most {told.from10}%, one of 50% at most {told.from50}%."
    )


def _margins(asked: PublishedQuestion, n: int) -> str:
    if asked.grid is not None and asked.type in ("number", "date"):
        return f"With {n:,} reports the mean is known to ±{_amount(asked, _of_mean(asked, n))}."
    first, second = (_of_share(asked, n, share) for share in SHARES)
    return (
        f"With {n:,} reports a share near 50% is known to ±{_points(first)} points, one near 10% "
        f"to ±{_points(second)}."
    )


def _reports(asked: PublishedQuestion, goal: float) -> str:
    """n grows with the square: n = n0 (margin of n0 / goal)^2."""
    base = 10_000
    if asked.grid is not None and asked.type in ("number", "date"):
        length = asked.grid.values[-1] - asked.grid.values[0]
        wanted, margin = goal * length, _of_mean(asked, base)
        what = f"±{_amount(asked, wanted)}"
    else:
        wanted, margin = goal, _of_share(asked, base, SHARES[0])
        what = f"±{_points(goal)} points"
    needed = math.ceil(base * (margin / wanted) ** 2)
    if needed > LARGEST_N:
        return f"No survey is large enough for {what} at this epsilon."
    return f"For {what} about {needed:,} reports are needed."


def _needed_epsilon(asked: PublishedQuestion, n: int, goal: float) -> str:
    channel = asked.channel
    if not (isinstance(channel, SubsetSelection) and channel.d == 1) or asked.by_patterns:
        return ""
    try:
        found = required_epsilon(n, goal, k=channel.k)
    except DesignError:
        return ""
    if not found.possible:
        least = _points(found.margin)
        return (
            f"With {n:,} reports ±{_points(goal)} points cannot be reached: ±{least} is the least."
        )
    return (
        f"With {n:,} reports ±{_points(goal)} points need epsilon {found.epsilon:.2f}, a truth "
        f"probability of {found.p:.3f}."
    )


def _of_share(asked: PublishedQuestion, n: int, share: float) -> float:
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


def _of_mean(asked: PublishedQuestion, n: int) -> float:
    """z sqrt(Var/n) in the answer's unit, where everybody had the answer with the largest Var."""
    channel, grid = asked.channel, asked.grid
    if not isinstance(channel, WeightTable) or grid is None:
        return math.nan
    half = (grid.values[-1] - grid.values[0]) / 2
    return _z() * half * math.sqrt(worst_variance(channel) / n)


def _amount(asked: PublishedQuestion, value: float) -> str:
    unit = asked.grid.unit if asked.grid else ""
    name = unit or ("days" if asked.type == "date" else "")
    return f"{rounded(value, decimals=1, digits=2)} {name}".strip()


def _points(margin: float) -> str:
    return rounded(100 * margin, decimals=1, digits=1)


def _z() -> float:
    return float(ndtri((1 + LEVEL) / 2))
