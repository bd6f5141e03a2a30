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
    CodeChannel,
    NumberDesign,
    checked_arguments,
    checked_level,
    checked_values,
    reports_from,
    whole_counts,
)
from survey.estimator.core.debiasing import EFFECTIVE_RANGE, PseudoValues, expected, pseudo_values
from survey.estimator.core.fieller import PseudoRatios, pseudo_ratios
from survey.estimator.core.intervals import normal_quantile, z_of_interval
from survey.estimator.core.result import Result
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import Floats, check_grid
from survey.mechanism.exact_numbers import Probability
from survey.mechanism.numeric import hybrid, one_bit, piecewise

CACHED_QUESTIONS = 64
"""Number of questions whose pseudo-values are cached, with at most 100 kB each."""


@dataclass(frozen=True, repr=False)
class Mean(Result):
    """An estimated mean, in the unit of the values; `low` and `high` are their minimum and maximum.

    estimate     linear in the counts, or a ratio of two such estimates; may be outside [low, high]
    std_error    of `estimate`, for the population; at least the error of randomization alone. For a
                 single report, it includes the largest possible sampling error
    conf_low     ends of the interval, in [low, high]; the whole range for a single report
    conf_high
    n            reports, including those that are no answer
    n_effective  number of answers without randomization, half `low` and half `high`, that would be
                 as informative: m(1-m)/SE^2 with the mean m and SE on the scale from 0 at low to 1
                 at high
    level        nominal coverage
    method       "t", or "fieller" if some truths are no answer; "with bias" if it includes the
                 largest bias of an estimate that is not exactly unbiased
    design       the channel and the number of each truth
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
    design: NumberDesign

    def __repr__(self) -> str:
        return (
            f"Mean({self.estimate:.4g}, std_error={self.std_error:.3g}, "
            f"{self.level:.0%} from {self.conf_low:.4g} to {self.conf_high:.4g}, n={self.n}, "
            f"n_effective={self.n_effective:.1f}, method={self.method!r})"
        )


@checked_arguments
def mean(
    counts: ArrayLike,
    channel: CodeChannel,
    values: Sequence[float | None] | ArrayLike,
    *,
    level: float = 0.95,
) -> Mean:
    """Estimate the mean of `values` over the people who answered.

    `counts` has one count per report. `values[i]` is the number that truth i stands for, None or
    nan where it is no answer ("prefer not to say"). Every report gets pseudo-values a and b with
    E[a | i] = x_i (0 for no answer) and E[b | i] = 1 if i is an answer, otherwise 0. The estimate
    is the mean of a divided by the mean of b. If all truths are answers, b = 1 and the interval is
    Student's; otherwise it is Fieller's for the ratio. It is clipped to the range of the values and
    never empty. If a and b are not exactly unbiased (see `pseudo_values`), it includes their
    largest bias.

    Valid if respondents answer truthfully and independently; approximate for small n. Coverage at
    .95, minimum over ten mechanisms, epsilon 1, 4 and 7, n 50 to 1,000, seven distributions with
    people at the ends, with and without a no-answer option: .948 (`tests/benchmarks/means.py`;
    20,000 rounds each). Raises NoBaseError if hardly anybody seems to have answered, ChannelError
    for d > 1, CountsError for counts that this channel cannot produce, DesignError for an
    impossible level, ValueError for impossible values. Sources: Duchi, Jordan, Wainwright 2018 (one
    bit); Wang et al. 2019 (piecewise, hybrid); Fieller 1954; Johnson 1978 (skewness).

    >>> from survey.mechanism.numeric import one_bit
    >>> mean([400, 600], one_bit(11, 2), range(11))
    Mean(6.313, std_error=0.204, 95% from 5.906 to 6.713, n=1000, n_effective=562.0, method='t')
    """
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        raise ChannelError(f"d = {channel.d}: the mean needs one count per report, not per option")
    checked_level(level)
    c = whole_counts(counts, channel.counted, "one per report")
    n = reports_from(int(c.sum()), 1, None)
    x = checked_values(values, channel.truths)
    design = NumberDesign.of(channel, x)
    ratios = mean_ratios(channel, design.values, n)
    result = ratios.of_survey(c, level)
    estimate, std_error, conf_low, conf_high = (float(column[0, 0]) for column in result)
    low, high = float(np.nanmin(x)), float(np.nanmax(x))
    middle, half = (low + high) / 2, (high - low) / 2
    # The mean on a scale from 0 to 1, clipped.
    m = min(max((estimate + 1) / 2, EFFECTIVE_RANGE[0]), EFFECTIVE_RANGE[1])
    method = "fieller" if ratios.some_silent else "t"
    return Mean(
        estimate=middle + half * estimate,
        std_error=half * std_error,
        conf_low=max(middle + half * conf_low, low),
        conf_high=min(middle + half * conf_high, high),
        n=n,
        n_effective=m * (1 - m) / (std_error / 2) ** 2,
        level=level,
        method=f"{method}, with bias" if ratios.bias[0] else method,
        low=low,
        high=high,
        design=design,
    )


@lru_cache(maxsize=CACHED_QUESTIONS)
def mean_ratios(channel: CodeChannel, values: tuple[float | None, ...], n: int) -> PseudoRatios:
    """Return the pseudo-values of n reports for the mean of `values`, scaled to [-1, 1].

    On this scale the bias of b has the smallest effect. Without no-answer truths b is 1.
    """
    x = np.array(values, dtype=np.float64)
    answered, target = ~np.isnan(x), mean_target(x)
    a = pseudo_values(channel, target, n)
    b = PseudoValues(np.ones(len(a.values)), 0.0)
    if not answered.all():
        b = pseudo_values(channel, answered.astype(np.float64), n)
    bias = np.array([a.bias + b.bias])
    return pseudo_ratios(channel, target[None], answered, a.values[None], b.values, bias)


def mean_target(x: Floats) -> Floats:
    """Return the values scaled to [-1, 1], with 0 for no answer (nan)."""
    low, high = np.nanmin(x), np.nanmax(x)
    return np.asarray(np.where(np.isnan(x), 0.0, (2 * x - low - high) / (high - low)))


@dataclass(frozen=True, repr=False)
class MeanDifference(Result):
    """Mean of group a minus mean of group b, in the unit of the values.

    estimate     difference of the linear estimates
    std_error    for the populations
    conf_low     ends of the interval
    conf_high
    z, p_value   of the two-sided test that the means are equal; p is below 1 - level where the
                 interval excludes 0
    mean_a       the two estimates
    mean_b
    level        nominal coverage
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
    """Estimate the difference between the means of two groups of different people, a minus b.

    With the ends l, u of each mean, the interval goes from d - sqrt((a-l)^2 + (u'-b)^2) to
    d + sqrt((u-a)^2 + (b-l')^2), with each mean clipped to its range. If both means are near ends
    of the range, each estimate can err in one direction only, and this interval is too short; so
    it also contains d -+ z SE of the estimates that are not clipped. Both means must have the same
    level. Each of the two intervals has a test (`z_of_interval`); the larger p-value counts, so p
    is below 1 - level where the interval excludes 0. Sources: Zou and Donner 2008; Altman and Bland
    2011.

    Coverage at .95, simulated (square wave and hybrid on 7 points; epsilon 4, 6 and 8; groups of
    30, 60 and 150 against 1,000; people at one end or both, equally spread, or skewed; 20,000
    surveys of each pair): at least .952.

    >>> from survey.estimator import mean
    >>> from survey.mechanism import grr
    >>> a, b = (mean(counts, grr(2, "3/4"), [0, 1]) for counts in ([300, 700], [500, 500]))
    >>> found = mean_difference(a, b)
    >>> round(found.estimate, 3), round(found.std_error, 3)
    (0.4, 0.043)
    """
    from scipy.special import erfc

    if a.level != b.level or (a.low, a.high) != (b.low, b.high):
        raise CountsError(
            "both means must have the same level, and values with the same minimum and maximum"
        )
    x, y = (min(max(group.estimate, group.low), group.high) for group in (a, b))
    d, error = a.estimate - b.estimate, math.hypot(a.std_error, b.std_error)
    to_low = math.hypot(x - a.conf_low, b.conf_high - y)
    to_high = math.hypot(a.conf_high - x, y - b.conf_low)
    reach, width = normal_quantile(a.level) * error, a.high - a.low
    # The joined interval excludes 0 where both intervals exclude it, so the smaller z decides.
    distances = np.array([to_low if x > y else to_high, reach])
    z = min(z_of_interval(np.array([x - y, d]), distances, a.level).tolist(), key=abs)
    return MeanDifference(
        estimate=d,
        std_error=error,
        conf_low=max(min(x - y - to_low, d - reach), -width),
        conf_high=min(max(x - y + to_high, d + reach), width),
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
"""Designs of which a question gets one if it names none, by name; the first one wins a tie.

Their estimates of a mean are unbiased. `optimal_piecewise` must be named: see `GridKind`.
"""

COMPARED_POINTS = 101
"""Maximum number of grid points to compare; on finer grids variances differ by at most 0.1%."""

CACHED_CHOICES = 1_024
"""Number of cached choices, because a file with many questions is checked repeatedly."""


@lru_cache(maxsize=CACHED_CHOICES)
def smallest_worst_variance(k: int, epsilon: Probability, no_answers: int = 0) -> str:
    """Return the name of the design on a grid of k points with the smallest `worst_variance`.

    It is one bit for two points and for a small epsilon, for more epsilons with no-answer options,
    and otherwise the hybrid. Source: Wang et al. 2019, who compare the same three designs by their
    worst case. Raises ChannelError as the designs do.

    >>> smallest_worst_variance(11, 1), smallest_worst_variance(2, 1)
    ('hybrid', 'one_bit')
    """
    points = min(check_grid(k), COMPARED_POINTS)
    worst = {
        name: worst_variance(make(points, epsilon, no_answers)) for name, make in DESIGNS.items()
    }
    return min(worst, key=lambda name: worst[name])


def worst_variance(channel: WeightTable) -> float:
    """Return n Var of the estimated mean on [-1, 1] at the answer with the largest variance.

    max_i E[(a - x_i b)^2 | i]: a and b are the pseudo-values that `mean` divides, x_i = -1 +
    2i/(k-1) the answers; the variance of a ratio by the delta method (Cochran 1977, 2.11). Without
    no-answer options b = 1, and it is max_i Var(a | i). If people's answers differ, their variance
    adds to it for every design.

    >>> round(worst_variance(one_bit(11, 1)), 3)  # B^2, B = (e+1)/(e-1)
    4.683
    """
    answers = channel.truths - channel.no_answers
    x = np.linspace(-1, 1, answers)
    silent = np.zeros(channel.no_answers)
    # The number of reports affects only tables without exact pseudo-values.
    a = pseudo_values(channel, np.append(x, silent), 1).values
    b = np.ones(len(a))
    if channel.no_answers:
        b = pseudo_values(channel, np.append(np.ones(answers), silent), 1).values
    aa, ab, bb = (expected(channel, product)[:answers] for product in (a * a, a * b, b * b))
    return float((aa - 2 * x * ab + x * x * bb).max())
