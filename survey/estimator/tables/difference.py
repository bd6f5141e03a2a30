"""Differences of shares between two groups, with their intervals and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from survey.estimator.core.intervals import normal_quantile, score_ends
from survey.estimator.core.likelihood import require_two_options
from survey.estimator.core.moments import binary_error, binary_moments, seen_variance
from survey.estimator.core.result import Result
from survey.estimator.tables.axes import axis, product_moment
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.mechanism.arrays import Booleans, Floats, Integers

Ends = tuple[Floats, Floats]

DEFAULT_DIFFERENCE = "score"

MOVED = 0.3
"""Part of a report by which score ends are moved out, for what counts being whole numbers costs.

With a quarter coverage falls to .939 at n = 50; a third costs width and does not raise the least.
"""

HALVINGS = 48
"""Steps that find an end within 2/2^48."""


class Group(NamedTuple):
    """A group's linear estimates, their errors, and how one report's pseudo-values scatter.

    share       linear estimates, shape (options,) like all others
    error       their standard errors
    reports     reports that bear on each option
    own, other  E[g^2] of a report's pseudo-value g if the option is the truth, and if it is not
    reach       the largest g minus the smallest
    n           reports of all options
    """

    share: Floats
    error: Floats
    reports: Floats
    own: Floats
    other: Floats
    reach: Floats
    n: int

    def variance(self, at: Floats) -> Floats:
        """Of the estimate, if the shares are `at`: (x own + (1-x) other - x^2)/reports."""
        one = at * self.own + (1 - at) * self.other - at**2
        return np.asarray(np.maximum(one, 0.0) / self.reports)

    @property
    def precision(self) -> Floats:
        """reports / E[g^2] at its largest: the weight of the group in a common share."""
        return np.asarray(self.reports / np.maximum(self.own, self.other))


def common_share(first: Group, second: Group, difference: Floats) -> Floats:
    """The first group's share if the second's is less by `difference`: x with x - d in [0, 1] too.

    The mean of what each group says of it, weighted by the precisions, moved to the nearest that
    is possible. Weights that do not depend on the estimates: with those of the estimated
    variances, or at the maximum of the likelihood, coverage falls to .91 near shares of 0 and 1.
    """
    a, b = first.precision, second.precision
    x = (a * first.share + b * (second.share + difference)) / (a + b)
    return np.clip(x, np.maximum(0.0, difference), np.minimum(1.0, 1.0 + difference))


def error_at(first: Group, second: Group, difference: Floats) -> Floats:
    """The standard error the estimated difference has if this is the true one."""
    x = common_share(first, second, difference)
    return np.asarray(np.sqrt(first.variance(x) + second.variance(x - difference)))


def score_difference(first: Group, second: Group, level: float) -> Ends:
    """The d in [-1, 1] with |D - d| <= z SE(d) + h, ends of shape (options,).

    D is the estimated difference clipped to [-1, 1], which only adds to the interval; SE(d) the
    standard error if d is true, at shares that are possible (`error_at`); h = .3 sqrt(r_a^2 +
    r_b^2), r what one report of each group is worth (`MOVED`). Never of zero width, and at a level
    the test of equal shares uses the same error. Sources: Mee 1984, Miettinen and Nurminen 1985
    (the score of a difference at the shares possible under it); Wallenstein 1997 (without
    iteration).
    """
    z = normal_quantile(level)
    estimate = np.clip(first.share - second.share, -1.0, 1.0)
    moved = MOVED * np.hypot(first.reach / first.reports, second.reach / second.reports)

    def accepted(difference: Floats) -> Booleans:
        allowed = z * error_at(first, second, difference) + moved
        return np.asarray(np.abs(estimate - difference) <= allowed)

    return _first_rejected(estimate, -1.0, accepted), _first_rejected(estimate, 1.0, accepted)


def _first_rejected(start: Floats, end: float, accepted: Callable[[Floats], Booleans]) -> Floats:
    """Where, on the way from an accepted start to the end, acceptance ends; by bisection.

    It ends once: enumeration of all outcomes (n to 60, epsilon .5 to 4 and open) found no second
    place.
    """
    outside = np.full(start.shape, end)
    inside = np.where(accepted(outside), outside, start)
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        fits = accepted(middle)
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    return outside


def mover_wilson(first: Group, second: Group, level: float) -> Ends:
    """MOVER's interval of Wilson's ends, clipped to [-1, 1].

    Wilson's ends l, u of each group's share of reports f are mapped by (f-q)/D of its own channel
    BEFORE they are combined, d = a - b: from d - sqrt((a-l_a)^2 + (u_b-b)^2) to
    d + sqrt((u_a-a)^2 + (b-l_b)^2). Where little or nothing of it is left in [-1, 1] it is joined
    with the one around the nearest shares that are possible, which always has a width.
    Sources: Newcombe 1998; Zou and Donner 2008.
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
        score_ends(at, group.reports, group.own, group.other, level)
        for group, at in ((first, x), (second, y))
    )
    return (
        np.asarray(x - y - np.hypot(x - low_x, high_y - y)),
        np.asarray(x - y + np.hypot(high_x - x, y - low_y)),
    )


DIFFERENCE_INTERVALS: Mapping[str, Callable[[Group, Group, float], Ends]] = MappingProxyType(
    {DEFAULT_DIFFERENCE: score_difference, "mover-wilson": mover_wilson}
)
"""Every interval offered for a difference."""


def difference_interval(first: Group, second: Group, level: float, interval: str) -> Ends:
    """Both ends by the interval of that name; ValueError for an unknown one or a wrong level."""
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

    estimate     difference of the linear estimates: unbiased, may lie outside [-1, 1]
    std_error    for the populations; 0 only where both groups answered openly and all alike
    conf_low     ends of the interval, in [-1, 1], never of zero width
    conf_high
    z            of the test that the shares are equal, with the error there would be if they were
    p_value      two-sided, of each option alone
    share_a      the two linear estimates
    share_b
    n_a, n_b     reports, of all options
    level        asked coverage of each interval
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
) -> Difference:
    """Estimate how much larger each option's share is in group a than in group b.

    `a` and `b` are counts as `proportions` takes them, `channel` what group a's devices ran,
    `channel_b` what group b's ran: the same unless given. None means that the group answered
    openly; its counts are then one per option. `n_a` and `n_b` are needed where counts do not
    tell the number of reports (bit vectors, and open questions with several ticks).

    The groups must be different people, drawn independently. `interval` is "score" (default):
    every d that the estimated difference does not contradict, by the error it has if d is true, at
    shares that are possible then (`score_difference`); or "mover-wilson" (`mover_wilson`). Both
    lie in [-1, 1], the estimate may not, and never have zero width. Tables of more than two
    options are read by their pseudo-values, which is the same idea.
    Coverage at .95 by enumeration of every outcome (2, 4 and 10 options, epsilon .5 to 4, one
    group possibly open, sizes 50 to 200, both shares from 0 to 1, corners included): "score" at
    least .943, at epsilon 8 .935, with a group of 20 or two open ones .936; "mover-wilson" falls to
    .90 where nearly everybody in one group and nearly nobody in the other has the answer. The
    score is wider on average, by .055 at n = 50, .04 at 100 and .03 at 200.
    The test's error is that of the interval at d = 0, so no count gives z = inf.

    Raises CountsError for counts such reports cannot have given or an empty group, ChannelError
    for a channel without an inverse or groups of different numbers of options, ValueError for a
    level outside (0, 1) or an unknown interval. Sources: Mee 1984; Miettinen and Nurminen 1985;
    Newcombe 1998; Zou and Donner 2008.

    >>> from survey.mechanism import grr
    >>> found = difference([500, 500], [400, 600], grr(2, "3/4"))
    >>> found.estimate.round(4).tolist(), found.conf_low.round(4).tolist()
    ([0.2, -0.2], [0.1121, -0.2871])
    >>> difference([500, 500], [30, 70], grr(2, "3/4"), None).estimate.round(4).tolist()
    [0.2, -0.2]
    """
    from scipy.special import erfc

    first = _group(a, channel, n_a, "a")
    second = _group(b, channel if isinstance(channel_b, str) else channel_b, n_b, "b")
    if first.share.shape != second.share.shape:
        raise ChannelError(
            f"group a has {first.share.size} options, group b {second.share.size}: not comparable"
        )
    estimate = first.share - second.share
    low, high = difference_interval(first, second, level, interval)
    z = _test(first, second)
    return Difference(
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


def _test(first: Group, second: Group) -> Floats:
    """z = d / SE if the shares are equal, at their common share; 0 if d = 0."""
    d = first.share - second.share
    error = error_at(first, second, np.zeros(d.shape))
    # Two open groups with nobody or everybody: no error, and no difference either.
    return np.divide(d, error, out=np.zeros(d.shape), where=error > 0)


def _group(counts: ArrayLike, channel: AnyChannel | None, n: int | None, name: str) -> Group:
    if channel is None:
        return _open_group(counts, n, name)
    if isinstance(channel, BitVector):
        return _bit_group(counts, channel, n, name)
    if isinstance(channel, SubsetSelection):
        require_two_options(channel)
        c = whole_counts(counts, channel.k, f"one per option, group {name}")
        found = _nonempty(reports_from(int(c.sum()), channel.d, n), name)
        check_at_most(c, np.full(c.size, found), f"reports of group {name} support it")
        return _binary_group(c, np.full(c.size, found), channel.p, channel.q, found)
    return _table_group(counts, channel, n, name)


def _open_group(counts: ArrayLike, n: int | None, name: str) -> Group:
    values = np.asarray(counts)
    if values.ndim != 1 or values.size < 2:
        raise CountsError(f"group {name}: open answers are counts of at least two options")
    c = whole_counts(counts, values.size, f"one per option, group {name}")
    found = _nonempty(int(c.sum()) if n is None else checked_whole(n, f"n_{name}"), name)
    check_at_most(c, np.full(c.size, found), f"people of group {name} chose it")
    return _binary_group(c, np.full(c.size, found), 1.0, 0.0, found)


def _bit_group(counts: ArrayLike, channel: BitVector, n: int | None, name: str) -> Group:
    if n is None and not channel.is_sampled:
        raise CountsError(f"counts of ones do not tell n: state n_{name}")
    try:
        ones, reports, found = bit_counts(counts, channel, n)
    except CountsError as error:
        raise CountsError(f"group {name}: {error}") from None
    if (reports == 0).any():
        option = int(np.argmin(reports))
        raise CountsError(f"group {name}: nobody was asked about option {option}")
    return _binary_group(ones, reports, channel.p, channel.q, found)


def _table_group(counts: ArrayLike, channel: WeightTable, n: int | None, name: str) -> Group:
    c = whole_counts(counts, channel.reports, f"one per report, group {name}")
    found = reports_from(int(c.sum()), 1, n)
    read = axis(channel)
    share, square = read.means @ (c / found), read.squares @ (c / found)
    moment = product_moment([read])
    other = moment.of_others(share, square)
    x = np.clip(share, 0.0, 1.0)
    # E[Var(g | truth)] = x (E[g^2 | it] - 1) + (1-x) E[g^2 | another]
    least = x * (moment.own - 1) + (1 - x) * other
    error = np.sqrt(seen_variance(square - share**2, square, least) / found)
    reach = np.ptp(read.means, axis=1)
    return Group(share, error, np.full(share.size, float(found)), moment.own, other, reach, found)


def _binary_group(counts: Integers, reports: Integers, p: float, q: float, n: int) -> Group:
    moments = binary_moments(np.full(counts.size, p), np.full(counts.size, q))
    f = counts / reports
    share = (f - q) / (p - q)
    error = binary_error(f, reports, np.full(f.size, p), np.full(f.size, q))
    reach = np.full(counts.size, 1 / abs(p - q))
    return Group(share, error, reports.astype(np.float64), moments.own, moments.other, reach, n)


def _nonempty(n: int, name: str) -> int:
    if not 1 <= n <= LARGEST_N:
        raise CountsError(f"group {name} is empty: n = {n}, a difference needs both groups")
    return n
