"""Suppression: whether an estimate is precise enough to show, and how many reports it needs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from survey.errors import NoBaseError
from survey.estimator.core.arguments import checked_arguments
from survey.estimator.core.debiasing import EFFECTIVE_RANGE
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.numbers.distribution import Histogram
from survey.estimator.numbers.mean import Mean
from survey.estimator.numbers.quantiles import Quantiles
from survey.estimator.shares.answered_shares import AnsweredShares
from survey.estimator.shares.proportions import EACH_OPTION, Proportions
from survey.estimator.tables.conditional import Conditional
from survey.estimator.tables.crosstab import Crosstab
from survey.estimator.weights.weighting_and_raking import WeightedShares
from survey.mechanism.channel import Floats

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
"""Maximum width of the widest interval for showing estimates without a caution."""

HIDDEN_WIDTH = 0.30
"""Minimum width of the widest interval for hiding estimates."""

MIN_EFFECTIVE = 30
"""Minimum effective number of answers of each option; with fewer, estimates are hidden."""

DENSITY = 4 / 3
"""Assumed density of answers near a quantile, relative to equally frequent values. It is between
1 and that of a bell curve that fills the range, about 2."""


@checked_arguments
def disclosure(*results: Estimate) -> Disclosure:
    """Return one decision for all given estimates: "show", "caution" (mark as rough) or "hide".

    All shares of a question get one decision, because a suppressed share could be computed from the
    others. A mean or quantile can get its own decision: it is often precise long before the shares
    are, and they cannot be computed from it. The width is that of the widest interval (for a mean
    or quantile, as a fraction of the range of its values), and the effective number of answers that
    of the option or cell with the fewest. If either requires "hide", the decision is "hide".

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> [disclosure(proportions([c, c], grr(2, "3/4"))) for c in (50, 500, 50_000)]
    ['hide', 'caution', 'show']
    """
    if not results:
        raise ValueError("no results: give at least one to decide about")
    widest = max(_widest(result) for result in results)
    fewest = min(_fewest(result) for result in results)
    if widest >= HIDDEN_WIDTH or fewest < MIN_EFFECTIVE:
        return "hide"
    return "show" if widest <= SHOWN_WIDTH else "caution"


@checked_arguments
def reports_needed(*results: Proportions | AnsweredShares | Mean | Histogram | Quantiles) -> int:
    """Estimate how many reports, in total, are needed until these estimates are no longer hidden.

    Each share or mean is taken at the middle of its interval, and a share of k that add up to 1 at
    1/k at most: this assumes little at first and approaches the estimate later. If a share is far
    smaller, the first numbers are too low, and they rise. Near a quantile, somewhat more answers
    are assumed than elsewhere; for shares among those who answered, that as many go on answering.
    Rounded up to two significant digits. For hidden estimates the result is above their n; for
    others it has no meaning.

    Raises NoBaseError for shares among those who answered if an option has no reports at all.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> reports_needed(proportions([50, 50], grr(2, "3/4")))
    190
    """
    if not results:
        raise ValueError("no results: give at least one that is hidden")
    return rounded_up(math.floor(max(_required(result) for result in results)) + 1)


def _required(result: Proportions | AnsweredShares | Mean | Histogram | Quantiles) -> float:
    """Return the number of reports, not rounded, from which a result is no longer hidden."""
    # 2 z SE = HIDDEN_WIDTH
    reach = (2 * normal_quantile(result.level) / HIDDEN_WIDTH) ** 2
    if isinstance(result, Quantiles):
        # F rises by DENSITY times HIDDEN_WIDTH over such a fraction of the values.
        return result.n * max(reach * float(np.max(result.std_error / DENSITY)) ** 2, 1.0)
    if isinstance(result, AnsweredShares):
        if not result.n_effective.all():
            raise NoBaseError(
                f"option {result.option[int(np.argmin(result.n_effective))]} has no reports: how "
                "many more it needs cannot be estimated yet"
            )
        # Widths fall at best like 1/sqrt(n), and effective answers grow like n.
        width = (_widest(result) / HIDDEN_WIDTH) ** 2
        return result.n * max(width, MIN_EFFECTIVE / _fewest(result), 1.0)
    pi = np.minimum(_middle(result), _largest_minimum(result))
    if isinstance(result, Histogram):
        effective = float(np.max(MIN_EFFECTIVE * result.std_error**2 / (pi * (1 - pi))))
        return result.n * max((_widest(result) / HIDDEN_WIDTH) ** 2, effective, 1.0)
    variance = _one_report(result)
    return max(
        reach * float(np.max(variance)),
        # pi(1-pi)/SE^2 = MIN_EFFECTIVE
        MIN_EFFECTIVE * float(np.max(variance / (pi * (1 - pi)))),
        # Widths fall at best like 1/sqrt(n), also for intervals wider than the formula's.
        result.n * (_widest(result) / HIDDEN_WIDTH) ** 2,
        float(result.n),
    )


def _largest_minimum(result: Proportions | Mean | Histogram) -> float:
    """Return the maximum of the smallest share: 1/k of k that add up to 1."""
    if isinstance(result, Mean) or getattr(result, "mle_method", "") == EACH_OPTION:
        return 1.0
    return 1 / result.estimate.size


def _one_report(result: Proportions | Mean) -> Floats:
    """Return the variance of one report on the scale from 0 to 1: SE^2 = variance / n."""
    if isinstance(result, Proportions):
        n_reports = np.maximum(result.reports, 1)
        return np.asarray(result.moments.variance(_middle(result)) * result.n / n_reports)
    return np.asarray(result.n * (result.std_error / (result.high - result.low)) ** 2)


def _middle(result: Proportions | Mean | Histogram) -> Floats:
    """Return the middle of each interval on the scale from 0 to 1, away from its ends."""
    middle = np.asarray(result.conf_low + result.conf_high) / 2
    if isinstance(result, Mean):
        middle = (middle - result.low) / (result.high - result.low)
    return np.asarray(np.clip(middle, *EFFECTIVE_RANGE))


def _fewest(result: Estimate) -> float:
    """Return the fewest effective answers; infinite for a quantile, which has no share."""
    # The n_effective of weighted shares is a number of reports, not of answers.
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
    """Round up to two significant digits.

    >>> rounded_up(184)
    190
    """
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // unit) * unit
