"""Suppression: whether an estimate is expected to be precise enough to show, decided beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from survey.errors import ChannelError
from survey.estimator.core.arguments import checked_arguments
from survey.estimator.numbers.distribution import Histogram
from survey.estimator.numbers.mean import Mean
from survey.estimator.numbers.quantiles import Quantiles
from survey.estimator.shares.answered_shares import AnsweredShares
from survey.estimator.shares.proportions import Proportions
from survey.estimator.tables.conditional import Conditional
from survey.estimator.tables.crosstab import Crosstab
from survey.estimator.trust.worst_case import (
    ConstantVariance,
    WorstCase,
    answered_worst_case,
    conditional_worst_case,
    crosstab_worst_case,
    histogram_worst_case,
    mean_worst_case,
    quantile_worst_case,
    shares_worst_case,
    standardized_worst_case,
)
from survey.estimator.weights.weighting_and_raking import WeightedShares

Disclosure = Literal["show", "caution", "hide"]
Estimate = (
    Proportions
    | AnsweredShares
    | Mean
    | Histogram
    | Quantiles
    | Crosstab
    | Conditional
    | WeightedShares
)

SHOWN_MARGIN = 0.05
"""Maximum expected margin of error, for the least favorable answers, for showing estimates without
a caution: that of 385 answers without randomization."""

HIDDEN_MARGIN = 0.15
"""Expected margin of error, for the least favorable answers, above which estimates are hidden. It
is that of 43 answers without randomization. An interval of this width, 0.30, is the limit for
publication of the National Center for Health Statistics (Parker et al. 2017). Their other limits
look at the estimate, which would hide low shares more often than high ones."""

ORDER: tuple[Disclosure, ...] = ("show", "caution", "hide")

NEVER = ConstantVariance(1e30)
"""The worst case of estimates without an interval: no possible number of reports is enough."""


@checked_arguments
def disclosure(*results: Estimate) -> Disclosure:
    """Return one decision for all given estimates: "show", "caution" (mark as rough) or "hide".

    Pages and files call hidden estimates suppressed.

    The decision depends on the number of reports, the channel and the question alone: on the margin
    of error expected for the least favorable answers (`worst_case`), at level .95. It never
    depends on the estimates. If it did, surveys that show a figure would be a selection, in which
    intervals do not keep their coverage. A difference is decided like the less precise of its two
    groups: give both of their results.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> [disclosure(proportions([c, c], grr(2, "3/4"))) for c in (50, 500, 50_000)]
    ['hide', 'caution', 'show']
    >>> disclosure(proportions([29, 71], grr(2, "3/4")))
    'hide'
    """
    if not results:
        raise ValueError("no results: give at least one to decide about")
    return least_precise(
        decide(worst_case, n) for worst_case, n in (_with_reports(result) for result in results)
    )


@checked_arguments
def reports_needed(*results: Estimate) -> int:
    """Return how many reports, in total, are needed until these estimates are no longer hidden.

    The number depends on the channel and the question alone, so it is the same for all answers and
    does not change as reports arrive. For hidden estimates it is above their n. That of weighted
    shares also depends on the weights, and changes if these become more or less unequal.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> reports_needed(proportions([50, 50], grr(2, "3/4")))
    171
    """
    if not results:
        raise ValueError("no results: give at least one that is hidden")
    return max(_total_needed(result) for result in results)


def _total_needed(result: Estimate) -> int:
    worst_case, n = _with_reports(result)
    needed = worst_case.required_n(HIDDEN_MARGIN)
    # Weights stay as unequal as they are: n reports count like a smaller number of equal weight.
    return needed if n == result.n else math.ceil(needed * result.n / n)


def decide(worst_case: WorstCase, n: float) -> Disclosure:
    """Return the decision about an estimate from n reports with this worst case."""
    if n < worst_case.required_n(HIDDEN_MARGIN):
        return "hide"
    return "show" if n >= worst_case.required_n(SHOWN_MARGIN) else "caution"


def least_precise(decisions: Iterable[Disclosure]) -> Disclosure:
    """Return the strictest decision; "hide" without any.

    >>> least_precise(["show", "caution"])
    'caution'
    """
    return max(decisions, key=ORDER.index, default="hide")


def _with_reports(result: Estimate) -> tuple[WorstCase, float]:
    """Return the worst case of a result, and its number of reports."""
    if isinstance(result, Proportions):
        # Reports about sampled options have the same mean in every survey.
        asked = float(result.reports.mean()) / result.n
        return shares_worst_case(result.moments, asked), result.n
    if isinstance(result, AnsweredShares):
        return answered_worst_case(*result.design), result.n
    if isinstance(result, Mean):
        return mean_worst_case(*result.design), result.n
    if isinstance(result, Histogram):
        edges = tuple(np.append(result.low, result.high[-1]).tolist())
        return histogram_worst_case(*result.design, edges), result.n
    if isinstance(result, Quantiles):
        cases = [quantile_worst_case(*result.design, at) for at in result.share.tolist()]
        return max(cases, key=lambda case: case.required_n(HIDDEN_MARGIN)), result.n
    if isinstance(result, Conditional):
        return conditional_worst_case(result.design), result.n
    if isinstance(result, WeightedShares):
        moments, n, pair, population = result.design
        if pair is not None:
            return standardized_worst_case(pair, np.array(population)), n
        return shares_worst_case(moments), n
    try:
        return crosstab_worst_case(result.made_from.channels), result.n
    except ChannelError:
        # A table without an inverse has no interval.
        return NEVER, result.n


@checked_arguments
def rounded_up(n: int) -> int:
    """Round up to two significant digits.

    >>> rounded_up(184)
    190
    """
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // unit) * unit
