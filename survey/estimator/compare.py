"""Differences of shares between two groups: strata, waves, or a stratum and an open question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc

from survey.errors import ChannelError, CountsError
from survey.estimator.arguments import checked_arguments
from survey.estimator.axes import axis, product_moment
from survey.estimator.counts import (
    LARGEST_N,
    bit_counts,
    check_at_most,
    checked_whole,
    reports_from,
    whole_counts,
)
from survey.estimator.difference_intervals import (
    DEFAULT_DIFFERENCE,
    Group,
    difference_interval,
    error_at,
)
from survey.estimator.likelihood import require_two_options
from survey.estimator.result import Result
from survey.estimator.shares import binary_error, binary_moments, seen_variance
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    c = whole_counts(values, values.size, f"one per option, group {name}")
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
