"""From counts of reports to the shares of the true answers, with honest uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import CountsError
from survey.estimator.intervals import (
    DEFAULT_INTERVAL,
    SIMULTANEOUS_DEFAULT,
    confidence_interval,
)
from survey.estimator.likelihood import most_likely_shares, require_likelihood
from survey.mechanism import PureChannel, SubsetSelection

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EFFECTIVE_RANGE = (0.01, 0.99)
"""Shares are clipped to this range before a number of effective answers is computed."""

LARGEST_N = 10**10
"""More reports than there are people; the intervals are accurate up to here."""

SHOWN_ROWS = 12


@dataclass(frozen=True, eq=False, repr=False)
class Proportions:
    """Estimated shares of the k true answers; arrays have shape (k,) and cannot be written.

    estimate     (c/n - q)/(p-q): unbiased, sums to 1, may lie outside [0, 1]
    mle          the most likely shares: in [0, 1], sum 1; for display only
    std_error    of `estimate`, for the population the respondents are a sample of
    conf_low     ends of the interval, in [0, 1]; `estimate` may lie outside them
    conf_high
    n            reports
    n_effective  answers given openly that would tell as much: pi(1-pi)/std_error^2
    level        asked coverage: of each interval, or of all together when simultaneous
    method       the interval that was used
    """

    estimate: Floats
    mle: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    n: int
    n_effective: Floats
    level: float
    method: str

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __repr__(self) -> str:
        names = ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective")
        columns = [getattr(self, name)[:SHOWN_ROWS] for name in names]
        lines = [f"Proportions(n={self.n}, level={self.level:g}, method={self.method!r})"]
        lines.append("option" + "".join(f"{name:>12}" for name in names))
        for option, row in enumerate(zip(*columns, strict=True)):
            lines.append(
                f"{option:>6}" + "".join(f"{x:>12.4f}" for x in row[:-1]) + f"{row[-1]:>12.1f}"
            )
        if self.estimate.size > SHOWN_ROWS:
            lines.append(f"... and {self.estimate.size - SHOWN_ROWS:,} more")
        return "\n".join(lines)


def proportions(
    counts: ArrayLike,
    channel: SubsetSelection,
    *,
    level: float = 0.95,
    interval: str = DEFAULT_INTERVAL,
    simultaneous: bool = False,
) -> Proportions:
    """Estimate the share of each true answer from how often each option was reported.

    `counts` has shape (k,), whole numbers of reports; `channel` is the one every device ran,
    with d = 1. `level` is the coverage of each interval, or of all k together when
    `simultaneous` (Bonferroni: each at 1 - (1-level)/k, and Clopper-Pearson in place of the
    default). `interval` is one of feldman-cousins, wilson-hull, wilson, clopper-pearson.

    Valid when respondents answer truthfully and independently and their devices ran `channel`;
    the data cannot show whether they did. Feldman-Cousins and Clopper-Pearson cover with at
    least `level` at every n and every true share; the two Wilson intervals only nearly.
    Sources: Warner 1965; Kairouz, Oh, Viswanath 2016; Feldman and Cousins 1998.

    Raises CountsError for counts this channel cannot have given, ChannelError for a channel
    that counts per option are not enough for, ValueError for an unknown interval or a level
    outside (0, 1).

    >>> from survey.mechanism import grr
    >>> proportions([700, 1300], grr(2, "3/4"))
    Proportions(n=2000, level=0.95, method='feldman-cousins')
    option    estimate         mle   std_error    conf_low   conf_high n_effective
         0      0.2000      0.2000      0.0213      0.1583      0.2423       351.6
         1      0.8000      0.8000      0.0213      0.7577      0.8417       351.6
    """
    require_likelihood(channel)
    c = _checked_counts(counts, channel.k)
    n = int(c.sum())
    name, each, method = _interval_for(interval, level, simultaneous, channel.k)
    low, high = confidence_interval(c, n, channel, each, name)
    estimate = debias(c / n, channel)
    return Proportions(
        estimate=estimate,
        mle=most_likely_shares(c, channel),
        std_error=_standard_error(c / n, n, channel),
        conf_low=low,
        conf_high=high,
        n=n,
        n_effective=_effective_answers(estimate, n, channel),
        level=level,
        method=method,
    )


def debias(report_shares: ArrayLike, channel: PureChannel) -> Floats:
    """The linear estimate pi = (f - q)/(p - q) from shares f of reports, elementwise.

    Unbiased, and for d = 1 at the Cramér-Rao bound; not clipped, so it adds, averages and
    compares correctly.

    >>> from survey.mechanism import grr
    >>> debias([0.75, 0.25], grr(2, "3/4")).tolist()
    [1.0, 0.0]
    """
    return np.asarray(
        (np.asarray(report_shares, dtype=np.float64) - channel.q) / (channel.p - channel.q)
    )


def _checked_counts(counts: ArrayLike, k: int) -> Integers:
    """The counts as int64 of shape (k,), or the reason why they are none."""
    values = np.asarray(counts)
    if values.shape != (k,):
        raise CountsError(f"counts of shape {values.shape} must have shape ({k},): one per option")
    if values.dtype.kind not in "iuf":
        raise CountsError(f"counts must be whole numbers, not {values.dtype}")
    for wrong, reason in (
        (~np.isfinite(values) | (values != np.floor(values)), "must be a whole number"),
        (values < 0, "must not be negative"),
    ):
        if wrong.any():
            option = int(np.argmax(wrong))
            raise CountsError(f"counts[{option}] = {values[option]} {reason}")
    n = values.sum(dtype=np.float64)
    if not 1 <= n <= LARGEST_N:
        raise CountsError(f"n = {n:.0f}: an estimate needs 1 to {LARGEST_N:,} reports")
    return values.astype(np.int64)


def _interval_for(
    interval: str, level: float, simultaneous: bool, k: int
) -> tuple[str, float, str]:
    """The interval to compute, the level of each option's, and the name to report."""
    if not simultaneous:
        return interval, level, interval
    name = SIMULTANEOUS_DEFAULT if interval == DEFAULT_INTERVAL else interval
    # Bonferroni: P(any of k misses) <= k (1-level)/k. A wrong level is refused where it is used.
    each = 1 - (1 - level) / k if 0 < level < 1 else level
    return name, each, f"{name}, simultaneous"


def _standard_error(f: Floats, n: int, channel: PureChannel) -> Floats:
    """sqrt(f(1-f)/n) / |p-q|: sampling and randomization together."""
    return np.asarray(np.sqrt(f * (1 - f) / n) / abs(channel.p - channel.q))


def _effective_answers(estimate: Floats, n: int, channel: PureChannel) -> Floats:
    """pi(1-pi)/SE^2 with pi clipped; SE at the clipped pi, so that no count divides by zero."""
    pi = np.clip(estimate, *EFFECTIVE_RANGE)
    error = _standard_error(channel.q + (channel.p - channel.q) * pi, n, channel)
    return np.asarray(pi * (1 - pi) / error**2)
