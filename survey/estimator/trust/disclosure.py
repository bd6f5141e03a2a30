"""What an estimate is worth: whether it may be shown yet, and how many reports that takes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from survey.errors import NoBaseError
from survey.estimator.core.arguments import checked_arguments
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.moments import EFFECTIVE_RANGE
from survey.estimator.numbers.distribution import Histogram, Quantiles
from survey.estimator.numbers.mean import Mean
from survey.estimator.shares.answered import AnsweredShares
from survey.estimator.shares.binomial import EACH_OPTION, Proportions
from survey.estimator.tables.conditional import Conditional
from survey.estimator.tables.crosstab import Crosstab
from survey.estimator.weights.weighting import WeightedShares

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

SHOWN_WIDTH = 0.05
"""Estimates whose widest interval is at most this are shown without a caution."""

HIDDEN_WIDTH = 0.30
"""Estimates whose widest interval is at least this are hidden."""

FEWEST_EFFECTIVE = 30
"""Estimates with fewer effective answers than this for any option are hidden."""

DENSITY = 4 / 3
"""How many more answers are taken to be near a quantile than if all values were equally frequent:
between those and a bell that fills the range, where it is about two."""


@checked_arguments
def disclosure(*results: Estimate) -> Disclosure:
    """Decide for all given estimates together: "show", "caution" (saying it is rough) or "hide".

    All shares of a question are decided together, never per option: a hidden option could be
    computed from the others. Its mean may be decided alone: from a mean nobody computes shares
    that are hidden, and it is often known long before they are. So may a quantile. The width is
    that of the widest interval (of a mean or quantile, as a part of the range its values have), the
    effective answers those of the option or cell with the fewest; hiding goes before showing.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> [disclosure(proportions([c, c], grr(2, "3/4"))) for c in (50, 500, 50_000)]
    ['hide', 'caution', 'show']
    """
    if not results:
        raise ValueError("no results: give at least one to decide about")
    widest = max(_widest(result) for result in results)
    fewest = min(_fewest(result) for result in results)
    if widest >= HIDDEN_WIDTH or fewest < FEWEST_EFFECTIVE:
        return "hide"
    return "show" if widest <= SHOWN_WIDTH else "caution"


@checked_arguments
def reports_needed(*results: Proportions | AnsweredShares | Mean | Histogram | Quantiles) -> int:
    """About how many reports, all together, until these estimates are no longer hidden.

    Each share or mean is taken at the middle of its interval, a share of k that add up to 1 at
    1/k at most: as if nothing were known while little is, near the estimate later. Where a share
    is far smaller, far more reports are needed than is said at first, and what is said rises. A
    quantile is taken as if somewhat more answers were near it than elsewhere, shares among those
    who answered as if as many went on answering. Rounded up to two significant digits. For
    estimates that are hidden the answer is above their n; for any other it says nothing.

    Raises NoBaseError for shares among those who answered of which one has no reports at all.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> reports_needed(proportions([50, 50], grr(2, "3/4")))
    190
    """
    if not results:
        raise ValueError("no results: give at least one that is hidden")
    return rounded_up(math.floor(max(_enough(result) for result in results)) + 1)


def _enough(result: Proportions | AnsweredShares | Mean | Histogram | Quantiles) -> float:
    # 2 z SE = HIDDEN_WIDTH
    reach = (2 * normal_quantile(result.level) / HIDDEN_WIDTH) ** 2
    if isinstance(result, Quantiles):
        # F rises by DENSITY times HIDDEN_WIDTH over so wide a part of the values.
        return result.n * max(reach * float(np.max(result.std_error / DENSITY)) ** 2, 1.0)
    if isinstance(result, AnsweredShares):
        if not result.n_effective.all():
            raise NoBaseError(
                f"option {result.option[int(np.argmin(result.n_effective))]} has no reports: how "
                "many more it needs cannot be estimated yet"
            )
        # Widths fall as 1/sqrt(n) at best, and effective answers grow as n.
        width = (_widest(result) / HIDDEN_WIDTH) ** 2
        return result.n * max(width, FEWEST_EFFECTIVE / _fewest(result), 1.0)
    pi = np.minimum(_middle(result), _most_of_the_least(result))
    if isinstance(result, Histogram):
        # Widths fall as 1/sqrt(n) at best, and effective answers grow as n.
        effective = float(np.max(FEWEST_EFFECTIVE * result.std_error**2 / (pi * (1 - pi))))
        return result.n * max((_widest(result) / HIDDEN_WIDTH) ** 2, effective, 1.0)
    variance = _one_report(result)
    return max(
        reach * float(np.max(variance)),
        # pi(1-pi)/SE^2 = FEWEST_EFFECTIVE
        FEWEST_EFFECTIVE * float(np.max(variance / (pi * (1 - pi)))),
        # Widths fall as 1/sqrt(n) at best; this counts intervals wider than the formula's.
        result.n * (_widest(result) / HIDDEN_WIDTH) ** 2,
        float(result.n),
    )


def _most_of_the_least(result: Proportions | Mean | Histogram) -> float:
    """What the smallest of its shares can be at most: 1/k of k that add up to 1."""
    if isinstance(result, Mean) or getattr(result, "mle_method", "") == EACH_OPTION:
        return 1.0
    return 1 / result.estimate.size


def _one_report(result: Proportions | Mean) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The variance one report brings, on the scale from 0 to 1: SE^2 = variance / n."""
    if isinstance(result, Proportions):
        asked = np.maximum(result.reports, 1)
        return np.asarray(result.moments.variance(_middle(result)) * result.n / asked)
    return np.asarray(result.n * (result.std_error / (result.high - result.low)) ** 2)


def _middle(
    result: Proportions | Mean | Histogram,
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The middle of each interval on the scale from 0 to 1, away from its ends."""
    middle = np.asarray(result.conf_low + result.conf_high) / 2
    if isinstance(result, Mean):
        middle = (middle - result.low) / (result.high - result.low)
    return np.asarray(np.clip(middle, *EFFECTIVE_RANGE))


def _fewest(result: Estimate) -> float:
    """The effective answers behind the least known part; a quantile has no share to ask of."""
    # What weighted shares call effective are reports of equal weight.
    if isinstance(result, Crosstab | Conditional | WeightedShares):
        pi = np.clip(result.estimate, *EFFECTIVE_RANGE)
        return float(np.min(pi * (1 - pi) / result.std_error**2))
    return math.inf if isinstance(result, Quantiles) else float(np.min(result.n_effective))


def _widest(result: Estimate) -> float:
    if isinstance(result, Quantiles):
        return float(np.max(result.reach))
    width = float(np.max(np.asarray(result.conf_high - result.conf_low)))
    return width / (result.high - result.low) if isinstance(result, Mean) else width


@checked_arguments
def rounded_up(n: int) -> int:
    """Up to two significant digits.

    >>> rounded_up(184)
    190
    """
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // unit) * unit
