"""Differences of shares between two groups, with their intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import (
    LARGEST_N,
    bit_counts,
    check_at_most,
    checked_arguments,
    checked_level,
    checked_whole,
    reports_from,
    whole_counts,
)
from survey.estimator.core.debiasing import (
    axis,
    binary_error,
    binary_moments,
    observed_variance,
    product_moment,
)
from survey.estimator.core.intervals import (
    continuity,
    last_accepted,
    normal_quantile,
    score_ends,
)
from survey.estimator.core.maximum_likelihood import require_two_options
from survey.estimator.core.result import Result
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats, Integers

Ends = tuple[Floats, Floats]

DEFAULT_DIFFERENCE = "score"

SMOOTHING = 0.18
"""The correction for whole counts is reduced by this part of the other group's.

Two groups of the same size smooth each other: the whole correction would widen the interval of
their difference without need.
"""

HALVINGS = 48
"""Number of halvings, which find an end within 2/2^48."""


class Group(NamedTuple):
    """A group's linear estimates, their errors, and the moments of one report's pseudo-values.

    share       linear estimates, shape (options,) like all others
    error       their standard errors
    reports     reports about each option
    at_truth    E[g^2] of a report's pseudo-value g if the option is the truth
    elsewhere   E[g^2] if the option is not the truth
    reach       the largest g minus the smallest
    n           reports of all options
    """

    share: Floats
    error: Floats
    reports: Floats
    at_truth: Floats
    elsewhere: Floats
    reach: Floats
    n: int

    def variance(self, at: Floats) -> Floats:
        """Return the variance of the estimate at shares `at`.

        (x at_truth + (1-x) elsewhere - x^2)/reports.
        """
        variance = at * self.at_truth + (1 - at) * self.elsewhere - at**2
        return np.asarray(np.maximum(variance, 0.0) / self.reports)

    @property
    def precision(self) -> Floats:
        """Return reports / E[g^2] at its largest: the weight of the group in a common share."""
        return np.asarray(self.reports / np.maximum(self.at_truth, self.elsewhere))


def common_share(first: Group, second: Group, difference: Floats) -> Floats:
    """Return the first group's share, given the difference; x and x - d are in [0, 1].

    It is the mean of both groups' estimates of x, weighted by the precisions, clipped to the
    possible range. The weights do not depend on the estimates: with those of the estimated
    variances, or at the maximum of the likelihood, coverage falls to .91 near shares of 0 and 1.
    """
    a, b = first.precision, second.precision
    x = (a * first.share + b * (second.share + difference)) / (a + b)
    return np.clip(x, np.maximum(0.0, difference), np.minimum(1.0, 1.0 + difference))


def error_at(first: Group, second: Group, difference: Floats) -> Floats:
    """Return the standard error of the estimated difference if this is the true one."""
    x = common_share(first, second, difference)
    return np.asarray(np.sqrt(first.variance(x) + second.variance(x - difference)))


def whole_count_shift(first: Group, second: Group, level: float) -> Floats:
    """Return h, by how much the ends move out because counts are whole numbers.

    With the effect r of one report of each group and the correction C for one share (`continuity`),
    h = C (max(r_a, r_b) - .18 min(r_a, r_b)) (`SMOOTHING`): a group so large that its share is
    known does not smooth the estimate of the other. Source: Hauck and Anderson 1986 (a correction
    by one half of the effect of a person in the smaller group).
    """
    effects = first.reach / first.reports, second.reach / second.reports
    shift = continuity(level) * (np.maximum(*effects) - SMOOTHING * np.minimum(*effects))
    return np.asarray(shift)


def score_difference(first: Group, second: Group, level: float) -> Ends:
    """Return the ends of the d in [-1, 1] with |D - d| <= z SE(d) + h, each of shape (options,).

    D is the estimated difference clipped to [-1, 1], which only widens the interval. SE(d) is the
    standard error if d is true, at possible shares (`error_at`), and h the correction for whole
    counts (`whole_count_shift`). The width is never zero. Sources: Mee 1984, Miettinen and Nurminen
    1985 (the score of a difference at the possible shares); Wallenstein 1997 (without iteration).
    """
    z = normal_quantile(level)
    estimate = np.clip(first.share - second.share, -1.0, 1.0)
    shift = whole_count_shift(first, second, level)

    def accepted(difference: Floats) -> Booleans:
        allowed = z * error_at(first, second, difference) + shift
        return np.asarray(np.abs(estimate - difference) <= allowed)

    # Halving finds the only place where acceptance ends: enumeration of all outcomes (n to 60,
    # epsilon .5 to 4 and without randomization) showed no second one.
    low, high = (
        last_accepted(estimate, np.full(estimate.shape, side), accepted, HALVINGS)
        for side in (-1.0, 1.0)
    )
    return low, high


def equality_score(first: Group, second: Group, level: float) -> Floats:
    """Return the z of the test of equal shares that `score_difference` inverts.

    z = sign(D) max(|D| - h, 0)/SE(0): |z| exceeds the quantile of `level` where the interval
    excludes 0.
    """
    estimate = np.clip(first.share - second.share, -1.0, 1.0)
    distance = np.maximum(np.abs(estimate) - whole_count_shift(first, second, level), 0.0)
    error = error_at(first, second, np.zeros(estimate.shape))
    # Two groups without randomization, all alike, have neither error nor difference.
    z = np.divide(distance, error, out=np.zeros(estimate.shape), where=error > 0)
    return np.asarray(np.copysign(z, estimate))


def mover_wilson(first: Group, second: Group, level: float) -> Ends:
    """Return MOVER's interval from Wilson's ends, clipped to [-1, 1].

    Wilson's ends l, u of each group's share of reports f are mapped by (f-q)/D of the group's
    channel before they are combined. For d = a - b the interval goes from d - sqrt((a-l_a)^2 +
    (u_b-b)^2) to d + sqrt((u_a-a)^2 + (b-l_b)^2). If the estimate is at or
    beyond -1 or 1, the interval is joined with the one around the nearest possible shares, whose
    width is never 0. Sources: Newcombe 1998; Zou and Donner 2008.
    """
    x, y = first.share, second.share
    low, high = _combined(first, second, x, y, level)
    inner = _combined(first, second, np.clip(x, 0.0, 1.0), np.clip(y, 0.0, 1.0), level)
    outside = np.abs(x - y) >= 1
    low = np.where(outside, np.minimum(low, inner[0]), low)
    high = np.where(outside, np.maximum(high, inner[1]), high)
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)


def _combined(first: Group, second: Group, x: Floats, y: Floats, level: float) -> Ends:
    (low_x, high_x), (low_y, high_y) = (
        score_ends(at, group.reports, group.at_truth, group.elsewhere, level)
        for group, at in ((first, x), (second, y))
    )
    return (
        np.asarray(x - y - np.hypot(x - low_x, high_y - y)),
        np.asarray(x - y + np.hypot(high_x - x, y - low_y)),
    )


DIFFERENCE_INTERVALS: Mapping[str, Callable[[Group, Group, float], Ends]] = MappingProxyType(
    {DEFAULT_DIFFERENCE: score_difference, "mover-wilson": mover_wilson}
)
"""All intervals of a difference, by name."""


def difference_interval(first: Group, second: Group, level: float, interval: str) -> Ends:
    """Return both ends of the named interval; ValueError for an unknown name or a wrong level."""
    checked_level(level)
    if interval not in DIFFERENCE_INTERVALS:
        raise ValueError(
            f"unknown interval {interval!r} of a difference; "
            f"the names are {', '.join(DIFFERENCE_INTERVALS)}"
        )
    return DIFFERENCE_INTERVALS[interval](first, second, level)


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Result):
    """Share in group a minus share in group b, per option; arrays have shape (options,).

    estimate     difference of the linear estimates: unbiased, may be outside [-1, 1]
    std_error    of the estimate; 0 only if both groups answered without randomization and all
                 their answers are equal
    conf_low     ends of the interval, in [-1, 1], never of zero width
    conf_high
    z            of the test of equal shares (`equality_score`; `z_of_interval` for "mover-fieller")
    p_value      two-sided, for each option alone
    share_a      the two linear estimates
    share_b
    n_a, n_b     number of reports, for all options together
    level        nominal coverage of each interval
    method       the interval: "score" or "mover-wilson"
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    z: Floats
    p_value: Floats
    share_a: Floats
    share_b: Floats
    n_a: int
    n_b: int
    level: float
    method: str


@checked_arguments
def difference(
    a: ArrayLike,
    b: ArrayLike,
    channel: AnyChannel | None,
    channel_b: AnyChannel | Literal["same"] | None = "same",
    *,
    n_a: int | None = None,
    n_b: int | None = None,
    level: float = 0.95,
    interval: str = DEFAULT_DIFFERENCE,
    labels: Sequence[str] | None = None,
) -> Difference:
    """Estimate the difference of each option's share between group a and group b, a minus b.

    `a` and `b` are counts as in `proportions`, `channel` is the channel of group a's devices and
    `channel_b` that of group b's, by default the same. None means that the group answered without
    randomization; then pass one count per option. `n_a` and `n_b` are needed if counts do not
    determine the number of reports (bit vectors, and multiple choice without randomization). The
    groups must consist of different people, sampled independently. `labels` are as in
    `proportions`.

    `interval` is "score" (`score_difference`) or "mover-wilson" (`mover_wilson`). Both lie in [-1,
    1], unlike some estimates, and never have zero width. Coverage at .95 by enumeration of
    every outcome (2, 4 and 10 options, epsilon .5 to 12, one group without randomization, sizes
    from 43, one group up to ten times as large as the other, both shares from 0 to 1): "score" at
    least .945; "mover-wilson" falls to .90 where nearly everybody in one group and nearly nobody in
    the other has the answer. The test is that of the "score" interval: p is below 1 - `level`
    where this interval excludes 0 (`equality_score`).

    Raises CountsError for impossible counts or an empty group, ChannelError for a channel without
    an inverse or groups with different numbers of options, ValueError for a level outside (0, 1) or
    an unknown interval. Sources: Mee 1984; Miettinen and Nurminen 1985; Hauck and Anderson 1986;
    Newcombe 1998; Zou and Donner 2008.

    >>> from survey.mechanism import grr
    >>> found = difference([500, 500], [400, 600], grr(2, "3/4"))
    >>> found.estimate.round(4).tolist(), found.conf_low.round(4).tolist()
    ([0.2, -0.2], [0.112, -0.2872])
    >>> difference([500, 500], [30, 70], grr(2, "3/4"), None).estimate.round(4).tolist()
    [0.2, -0.2]
    """
    from scipy.special import erfc

    first = _group(a, channel, n_a, "a")
    second = _group(b, channel if isinstance(channel_b, str) else channel_b, n_b, "b")
    if first.share.shape != second.share.shape:
        raise ChannelError(
            f"group a has {first.share.size} options, group b has {second.share.size}: both must "
            "be equal"
        )
    estimate = first.share - second.share
    low, high = difference_interval(first, second, level, interval)
    z = equality_score(first, second, level)
    result = Difference(
        estimate=estimate,
        std_error=np.hypot(first.error, second.error),
        conf_low=low,
        conf_high=high,
        z=z,
        # P(|N(0, 1)| >= |z|)
        p_value=np.asarray(erfc(np.abs(z) / np.sqrt(2))),
        share_a=first.share,
        share_b=second.share,
        n_a=first.n,
        n_b=second.n,
        level=level,
        method=interval,
    )
    return result if labels is None else result.with_labels(labels)


def _group(counts: ArrayLike, channel: AnyChannel | None, n: int | None, name: str) -> Group:
    if channel is None:
        return _open_group(counts, n, name)
    if isinstance(channel, TickChannel):
        return _bit_group(counts, channel, n, name)
    if isinstance(channel, SubsetSelection):
        require_two_options(channel)
        c = whole_counts(counts, channel.k, f"one per option, group {name}")
        n_reports = _nonempty(reports_from(int(c.sum()), channel.d, n), name)
        check_at_most(c, np.full(c.size, n_reports), f"reports of group {name} support it")
        return _binary_group(c, np.full(c.size, n_reports), channel.p, channel.q, n_reports)
    return _table_group(counts, channel, n, name)


def _open_group(counts: ArrayLike, n: int | None, name: str) -> Group:
    values = np.asarray(counts)
    if values.ndim != 1 or values.size < 2:
        raise CountsError(
            f"group {name}: answers without randomization are counts of at least two options"
        )
    c = whole_counts(counts, values.size, f"one per option, group {name}")
    n_people = _nonempty(int(c.sum()) if n is None else checked_whole(n, f"n_{name}"), name)
    check_at_most(c, np.full(c.size, n_people), f"people of group {name} chose it")
    return _binary_group(c, np.full(c.size, n_people), 1.0, 0.0, n_people)


def _bit_group(counts: ArrayLike, channel: TickChannel, n: int | None, name: str) -> Group:
    if n is None and not channel.is_sampled:
        raise CountsError(f"counts of ones do not determine n: state n_{name}")
    try:
        ones, reports, n_reports = bit_counts(counts, channel, n)
    except CountsError as error:
        raise CountsError(f"group {name}: {error}") from None
    if (reports == 0).any():
        option = int(np.argmin(reports))
        raise CountsError(f"group {name}: nobody was asked about option {option}")
    return _binary_group(ones, reports, channel.p, channel.q, n_reports)


def _table_group(counts: ArrayLike, channel: WeightTable, n: int | None, name: str) -> Group:
    c = whole_counts(counts, channel.reports, f"one per report, group {name}")
    n_reports = reports_from(int(c.sum()), 1, n)
    linear = axis(channel)
    share, square = linear.means @ (c / n_reports), linear.squares @ (c / n_reports)
    moment = product_moment([linear])
    elsewhere = moment.of_others(share, square)
    x = np.clip(share, 0.0, 1.0)
    # E[Var(g | truth)] = x (E[g^2 | truth] - 1) + (1-x) E[g^2 | another]
    minimum = x * (moment.at_truth - 1) + (1 - x) * elsewhere
    error = np.sqrt(observed_variance(square - share**2, square, minimum) / n_reports)
    reach = np.ptp(linear.means, axis=1)
    return Group(
        share,
        error,
        np.full(share.size, float(n_reports)),
        moment.at_truth,
        elsewhere,
        reach,
        n_reports,
    )


def _binary_group(counts: Integers, reports: Integers, p: float, q: float, n: int) -> Group:
    moments = binary_moments(np.full(counts.size, p), np.full(counts.size, q))
    f = counts / reports
    share = (f - q) / (p - q)
    error = binary_error(f, reports, np.full(f.size, p), np.full(f.size, q))
    reach = np.full(counts.size, 1 / abs(p - q))
    return Group(
        share, error, reports.astype(np.float64), moments.at_truth, moments.elsewhere, reach, n
    )


def _nonempty(n: int, name: str) -> int:
    if n < 1:
        raise CountsError(f"group {name} is empty: a difference needs reports of both groups")
    if n > LARGEST_N:
        raise CountsError(f"group {name} has {n:,} reports: n must be at most {LARGEST_N:,}")
    return n
