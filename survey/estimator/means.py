"""The mean of the numbers that true answers stand for, among those who answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError
from survey.estimator.arguments import checked_arguments
from survey.estimator.counts import checked_level, checked_values, reports_from, whole_counts
from survey.estimator.pseudo_ratio import PseudoRatios, pseudo_ratios
from survey.estimator.pseudo_values import PseudoValues, pseudo_values
from survey.estimator.result import Result
from survey.estimator.shares import EFFECTIVE_RANGE
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]

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
