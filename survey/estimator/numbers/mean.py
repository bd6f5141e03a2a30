"""Means of numbers: estimates, differences between groups, and designs with the least variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import (
    checked_arguments,
    checked_level,
    checked_values,
    reports_from,
    whole_counts,
)
from survey.estimator.core.moments import EFFECTIVE_RANGE
from survey.estimator.core.pseudo_values import PseudoValues, expected, pseudo_values
from survey.estimator.core.ratio import PseudoRatios, pseudo_ratios
from survey.estimator.core.result import Result
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import check_grid
from survey.mechanism.design import Probability
from survey.mechanism.numeric import hybrid, one_bit, piecewise

CACHED_QUESTIONS = 64
"""Questions whose way of being read is remembered; one takes at most 100 kB."""


@dataclass(frozen=True, repr=False)
class Mean(Result):
    """An estimated mean, in the unit of the values; `low` and `high` are the least and largest.

    estimate     linear in the counts, or a ratio of two such; may lie outside [low, high]
    std_error    of `estimate`, for the population; never below what randomization alone gives. A
                 single report's is the largest that sampling can add to it
    conf_low     ends of the interval, in [low, high]; all of it for a single report
    conf_high
    n            reports, those that are no answer included
    n_effective  answers that would tell as much if half were `low`, half `high`, given openly:
                 m(1-m)/SE^2 with the mean m and SE on the scale from 0 at low to 1 at high
    level        asked coverage
    method       "t", or "fieller" where some truths are no answer; "with bias" when it includes
                 the largest bias of an estimate that is not exactly unbiased
    """

    estimate: float
    std_error: float
    conf_low: float
    conf_high: float
    n: int
    n_effective: float
    level: float
    method: str
    low: float
    high: float

    def __repr__(self) -> str:
        return (
            f"Mean({self.estimate:.4g}, std_error={self.std_error:.3g}, "
            f"{self.level:.0%} from {self.conf_low:.4g} to {self.conf_high:.4g}, n={self.n}, "
            f"n_effective={self.n_effective:.1f}, method={self.method!r})"
        )


@checked_arguments
def mean(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
    *,
    level: float = 0.95,
) -> Mean:
    """Estimate the mean of `values` over the people who answered.

    `counts` has one count per report. `values[i]` is the number that truth i stands for, None or
    nan where it is no answer ("prefer not to say"). Every report gets pseudo-values a and b with
    E[a | i] = x_i (0 for no answer) and E[b | i] = 1 when i is an answer, else 0; the mean is
    the mean of a divided by the mean of b. With answers only, b = 1 and the interval is Student's;
    else it is Fieller's for the ratio. It is clipped to the range of the values and never empty.
    Where a and b are not exactly unbiased (see `pseudo_values`) their largest bias is added.

    Valid when respondents answer truthfully and independently; approximate for small n. The end
    on the side to which reports lean lies further out (`ratio_interval`): without that coverage
    falls to .89 (randomized response, five points, n = 50, epsilon 7, one in ten at the far end).
    Coverage at .95, least over nine mechanisms, epsilon 1, 4 and 7, n 50 to 1,000, seven
    distributions with people at the ends, with and without an answer that is none: .948
    (`tests/benchmarks/means.py`; 20,000 rounds each).
    Raises NoBaseError where hardly anybody seems to have answered, ChannelError for d > 1,
    CountsError for counts this channel cannot have given, DesignError for a level that is none,
    ValueError for values that are none.
    Sources: Duchi, Jordan, Wainwright 2018 (one bit); Wang et al. 2019 (piecewise, hybrid);
    Fieller 1954; Johnson 1978 (leaning).

    >>> from survey.mechanism.numeric import one_bit
    >>> mean([400, 600], one_bit(11, 2), range(11))
    Mean(6.313, std_error=0.204, 95% from 5.906 to 6.713, n=1000, n_effective=562.0, method='t')
    """
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        raise ChannelError(f"d = {channel.d}: the mean needs one count per report, not per option")
    checked_level(level)
    reports, truths = _sizes(channel)
    c = whole_counts(counts, reports, "one per report")
    n = reports_from(int(c.sum()), 1, None)
    x = checked_values(values, truths)
    # nan never equals itself, so it would never be found in the cache.
    reading = _reading(channel, tuple(None if v != v else v for v in x.tolist()), n)
    found = reading.of_survey(c, level)
    estimate, std_error, conf_low, conf_high = (float(column[0, 0]) for column in found)
    low, high = float(np.nanmin(x)), float(np.nanmax(x))
    middle, half = (low + high) / 2, (high - low) / 2
    method = "fieller" if reading.some_silent else "t"
    return Mean(
        estimate=middle + half * estimate,
        std_error=half * std_error,
        conf_low=max(middle + half * conf_low, low),
        conf_high=min(middle + half * conf_high, high),
        n=n,
        n_effective=_effective(estimate, std_error),
        level=level,
        method=f"{method}, with bias" if reading.bias[0] else method,
        low=low,
        high=high,
    )


def _sizes(channel: SubsetSelection | WeightTable) -> tuple[int, int]:
    """Number of reports and of truths."""
    if isinstance(channel, SubsetSelection):
        return channel.k, channel.k
    return channel.reports, channel.truths


@lru_cache(maxsize=CACHED_QUESTIONS)
def _reading(
    channel: SubsetSelection | WeightTable, values: tuple[float, ...], n: int
) -> PseudoRatios:
    """How n reports are read; the values are scaled to [-1, 1], where the bias of b matters least.

    Without silent truths b is 1 for every report.
    """
    x = np.array(values, dtype=np.float64)
    answered = ~np.isnan(x)
    low, high = np.nanmin(x), np.nanmax(x)
    target = np.where(answered, (2 * x - low - high) / (high - low), 0.0)
    a = pseudo_values(channel, target, n)
    b = PseudoValues(np.ones(len(a.values)), 0.0)
    if not answered.all():
        b = pseudo_values(channel, answered.astype(np.float64), n)
    bias = np.array([a.bias + b.bias])
    return pseudo_ratios(channel, target[None], answered, a.values[None], b.values, bias)


def _effective(estimate: float, std_error: float) -> float:
    """m(1-m)/SE^2 on the scale from 0 to 1, m clipped."""
    m = min(max((estimate + 1) / 2, EFFECTIVE_RANGE[0]), EFFECTIVE_RANGE[1])
    return m * (1 - m) / (std_error / 2) ** 2


@dataclass(frozen=True, repr=False)
class MeanDifference(Result):
    """Mean of group a minus mean of group b, in the unit of the values.

    estimate     difference of the linear estimates
    std_error    for the populations
    conf_low     ends of the interval
    conf_high
    z, p_value   of the test that the means are equal, two-sided, of large samples
    mean_a       the two estimates
    mean_b
    level        asked coverage
    method       "mover"
    """

    estimate: float
    std_error: float
    conf_low: float
    conf_high: float
    z: float
    p_value: float
    mean_a: float
    mean_b: float
    level: float
    method: str


@checked_arguments
def mean_difference(a: Mean, b: Mean) -> MeanDifference:
    """How much larger the mean of group a is; the groups must be different people.

    With the ends l, u of each mean, from d - sqrt((a-l)^2 + (u'-b)^2) to
    d + sqrt((u-a)^2 + (b-l')^2), each mean taken at its possible value next to the estimate; both
    must have been asked for at one level. z = d/SE. Source: Zou and Donner 2008.

    >>> from survey.estimator import mean
    >>> from survey.mechanism import grr
    >>> a, b = (mean(counts, grr(2, "3/4"), [0, 1]) for counts in ([300, 700], [500, 500]))
    >>> found = mean_difference(a, b)
    >>> round(found.estimate, 3), round(found.std_error, 3)
    (0.4, 0.043)
    """
    from scipy.special import erfc

    if a.level != b.level or (a.low, a.high) != (b.low, b.high):
        raise CountsError("two means are compared at one level, of values with the same ends")
    x, y = (min(max(one.estimate, one.low), one.high) for one in (a, b))
    d, error = a.estimate - b.estimate, math.hypot(a.std_error, b.std_error)
    z = d / error if error > 0 else 0.0
    return MeanDifference(
        estimate=d,
        std_error=error,
        conf_low=x - y - math.hypot(x - a.conf_low, b.conf_high - y),
        conf_high=x - y + math.hypot(a.conf_high - x, y - b.conf_low),
        z=z,
        p_value=float(erfc(abs(z) / math.sqrt(2))),
        mean_a=a.estimate,
        mean_b=b.estimate,
        level=a.level,
        method="mover",
    )


DESIGNS: Mapping[str, Callable[[int, Probability, int], WeightTable]] = MappingProxyType(
    {"one_bit": one_bit, "hybrid": hybrid, "piecewise": piecewise}
)
"""Designs whose reports are unbiased for a mean, by their names; of equals the first is taken."""

COMPARED_POINTS = 101
"""Finer grids are compared at this many points, where the variances are the same but for 0.1%."""

REMEMBERED = 1_024
"""Choices that are remembered: every question of a file that is checked again and again."""


@lru_cache(maxsize=REMEMBERED)
def smallest_worst_variance(k: int, epsilon: Probability, no_answers: int = 0) -> str:
    """The name of the design on a grid of k points whose `worst_variance` is smallest.

    One bit for two points and for a small epsilon, the more so with options that are no answer;
    otherwise the hybrid. Source: Wang et al. 2019, who compare the same three at their worst.
    Raises ChannelError as the designs do.

    >>> smallest_worst_variance(11, 1), smallest_worst_variance(2, 1)
    ('hybrid', 'one_bit')
    """
    points = min(check_grid(k), COMPARED_POINTS)
    worst = {
        name: worst_variance(make(points, epsilon, no_answers)) for name, make in DESIGNS.items()
    }
    return min(worst, key=lambda name: worst[name])


def worst_variance(channel: WeightTable) -> float:
    """n Var of the estimated mean on [-1, 1], if all people had the answer where it is largest.

    max_i E[(a - x_i b)^2 | i]: a and b are the pseudo-values that `mean` divides, x_i = -1 +
    2i/(k-1) the answers; the variance of a ratio by the delta method (Cochran 1977, 2.11).
    Without options that are no answer b = 1, and it is max_i Var(a | i). People who do differ vary
    by as much as their answers do besides, whatever the design. Exact from the integers of the
    table, up to the rounding of floats; for designs with exact pseudo-values.

    >>> round(worst_variance(one_bit(11, 1)), 3)  # B^2, B = (e+1)/(e-1)
    4.683
    """
    answers = channel.truths - channel.no_answers
    x = np.linspace(-1, 1, answers)
    silent = np.zeros(channel.no_answers)
    # The number of reports matters to tables without exact pseudo-values only.
    a = pseudo_values(channel, np.append(x, silent), 1).values
    b = np.ones(len(a))
    if channel.no_answers:
        b = pseudo_values(channel, np.append(np.ones(answers), silent), 1).values
    aa, ab, bb = (expected(channel, product)[:answers] for product in (a * a, a * b, b * b))
    return float((aa - 2 * x * ab + x * x * bb).max())
