"""Multiple-choice questions: shares of options in reported patterns, and of pairs of options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import (
    checked_arguments,
    checked_level,
    checked_n,
    checked_whole,
    reports_from,
    whole_counts,
)
from survey.estimator.core.debiasing import SecondMoments, observed_variance
from survey.estimator.core.intervals import DEFAULT_INTERVAL, lattice_shift, skewness_of
from survey.estimator.core.maximum_likelihood import norm_sub, require_two_options
from survey.estimator.core.result import Result
from survey.estimator.shares.proportions import (
    POPULATION,
    SCORE,
    IntervalOptions,
    Proportions,
    binomial_shares,
    score_interval,
)
from survey.mechanism import BitVector, HalfSpace, SubsetSelection
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats, Integers


@checked_arguments
def subset_shares(
    counts: ArrayLike,
    channel: SubsetSelection,
    patterns: Sequence[Sequence[int]],
    options: int,
    *,
    level: float = 0.95,
    interval: str = DEFAULT_INTERVAL,
    simultaneous: bool = False,
    target: str = "population",
) -> Proportions:
    """Estimate the share of people who chose each option, from reports of whole patterns.

    Generalized randomized response over patterns: counts[i] reports of patterns[i], a set of option
    indices. Of the k patterns N_j contain option j. A reported pattern contains it with probability
    p + (N_j - 1) q if the person chose it, and N_j q otherwise. So the count c_j of reports that
    contain j is exactly binomial, and has the intervals of `proportions`.
    `mle` is that of each c_j alone. The shares of options do not add up to one.

    >>> from survey.mechanism import grr
    >>> subset_shares([60, 20, 20], grr(3, "0.6"), [[0], [1], [0, 1]], 2).estimate.round(2).tolist()
    [1.0, 0.0]
    """
    if channel.d > 1:
        raise ChannelError(f"d = {channel.d}: a report is a single pattern, so d must be 1")
    require_two_options(channel)
    c = whole_counts(counts, channel.k, "one per pattern")
    n = reports_from(int(c.sum()), 1, None)
    holds = membership(patterns, channel.k, options)
    number = holds.sum(axis=1)
    return binomial_shares(
        holds @ c,
        np.full(options, n),
        channel.p + (number - 1) * channel.q,
        number * channel.q,
        IntervalOptions.of(target, interval, level, simultaneous),
        n=n,
    )


def membership(patterns: Sequence[Sequence[int]], k: int, options: int) -> Integers:
    """Return 1 where option j is in pattern i, shape (options, k)."""
    if len(patterns) != k:
        raise ChannelError(f"{len(patterns)} patterns for a channel of {k}: one for each truth")
    options = checked_whole(options, "options", ChannelError)
    if not 1 <= options <= sum(map(len, patterns)):
        raise ChannelError(
            f"options = {options} must be from 1 to the number of options in the patterns"
        )
    holds = np.zeros((options, k), dtype=np.int64)
    for i, pattern in enumerate(patterns):
        for option in pattern:
            if not 0 <= checked_whole(option, f"an option of pattern {i}", ChannelError) < options:
                raise ChannelError(
                    f"pattern {i} contains option {option}, which is not below {options}"
                )
            holds[option, i] = 1
    for option, number in enumerate(holds.sum(axis=1)):
        if not 0 < number < k:
            raise ChannelError(
                f"option {option} is in {number} of {k} patterns, so its share cannot be estimated"
            )
    return holds


CELLS = ((1, 1), (1, 0), (0, 1), (0, 0))
"""Values of two bits, in the order of joint supports."""


@dataclass(frozen=True, eq=False, repr=False)
class OptionPairs(Result):
    """Estimated shares of people who chose both options of a pair, shape (pairs,).

    first, second   the options
    estimate        linear in the counts: unbiased, may be outside [0, 1]
    std_error       of `estimate`, for the population; never 0 (`observed_variance`)
    conf_low        ends of the interval, in [0, 1]
    conf_high
    reports         reports about both options
    n               all reports; 0 if options are sampled and it was not stated
    level, method   nominal coverage of each interval, and its name

    Pairs that the question does not allow together are left out.
    """

    index_names = ("pair",)

    first: Integers
    second: Integers
    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    reports: Integers
    n: int
    level: float
    method: str


@checked_arguments
def option_pairs(
    counts: ArrayLike,
    channel: SubsetSelection,
    patterns: Sequence[Sequence[int]],
    options: int,
    *,
    level: float = 0.95,
    interval: str = DEFAULT_INTERVAL,
    simultaneous: bool = False,
) -> OptionPairs:
    """Estimate how many people chose both of two options, from reports of whole patterns.

    As in `subset_shares`, the count of reports whose pattern contains both options is exactly
    binomial, with probability p + (N-1) q if the person chose both and N q otherwise, where N
    patterns contain both. So each pair has the intervals of `proportions`, with their coverage.
    Raises CountsError, ChannelError, ValueError as `subset_shares`.

    >>> from survey.mechanism import grr
    >>> option_pairs([60, 20, 20], grr(3, "0.6"), [[0], [1], [0, 1]], 2).estimate.round(4)
    array([0.])
    """
    if channel.d > 1:
        raise ChannelError(f"d = {channel.d}: patterns are reported one at a time, d = 1")
    c = whole_counts(counts, channel.k, "one per pattern")
    n = reports_from(int(c.sum()), 1, None)
    first, second, contains_both = pairs_in_patterns(patterns, channel.k, options)
    n_patterns = contains_both.sum(axis=1)
    interval_options = IntervalOptions.of(POPULATION, interval, level, simultaneous)
    p, q = channel.p + (n_patterns - 1) * channel.q, n_patterns * channel.q
    shares = binomial_shares(
        contains_both @ c, np.full(len(contains_both), n), p, q, interval_options, n=n
    )
    names = ("estimate", "std_error", "conf_low", "conf_high", "reports", "n", "level", "method")
    return OptionPairs(first, second, *(getattr(shares, name) for name in names))


def pairs_in_patterns(
    patterns: Sequence[Sequence[int]], k: int, options: int
) -> tuple[Integers, Integers, Booleans]:
    """Return the pairs of options that some of k patterns contain, and which patterns do."""
    holds = membership(patterns, k, options)
    first, second = np.array(list(combinations(range(options), 2))).T
    contains_both = holds[first] & holds[second]
    possible = contains_both.any(axis=1)
    if not possible.any():
        raise ChannelError("no pattern contains two options")
    return first[possible], second[possible], contains_both[possible]


@checked_arguments
def bit_pairs(
    supports: ArrayLike,
    channel: BitVector | HalfSpace,
    pairs: Sequence[tuple[int, int]],
    *,
    n: int | None = None,
    level: float = 0.95,
) -> OptionPairs:
    """Estimate how many people chose both of two options, from joint counts of reported bits.

    supports[i] = (n11, n10, n01, n00), shape (pairs, 4): reports whose bits of the two options of
    pairs[i] are both 1, only the first, only the second, none (`count_bit_pairs` counts them). If
    options are sampled, only reports about both options count, and `n` is the number of all
    reports. For independent bits (`BitVector`)

        P(both) = mean of g_a g_b, g = (bit - q)/(p - q),

    and for those of a `HalfSpace` the mean of the pseudo-values of `two_bit_values`,

    is unbiased, and std_error is its standard error from the counts. The interval is Wilson's
    score: x with n (est - x)^2 <= z^2 (x E[g^2 g^2 | both] + (1-x) M - x^2). M is the mean of E[g^2
    g^2 | truth] over those who did not choose both, divided as estimated (clipped by `norm_sub`).
    est moves outwards by up to C of a report (`lattice_shift`) and is clipped to [0, 1], so the
    width is never zero. Coverage at .95 by enumeration of every outcome (T/L 2 to 3,000, n 20,
    P(both) 0 to 1, six divisions of the others): at least .945. Source: Warner 1965 per bit,
    independent; Wilson 1927.

    Raises CountsError for impossible supports, ValueError for pairs that cannot be chosen together,
    ChannelError for a half-space that shows nothing about pairs (odd m, t = (m+1)/2).

    >>> bit_pairs([[300, 200, 200, 300]], BitVector(2, 2, 3, 1), [(0, 1)]).estimate.round(4)
    array([0.45])
    """
    checked_level(level)
    _check_pairs(pairs, channel)
    c = np.stack([whole_counts(row, 4, "n11, n10, n01, n00") for row in _rows(supports, pairs)])
    reports = np.array([reports_from(int(row.sum()), 1, None) for row in c])
    total = _all_reports(reports, channel, n)
    inverse, squares = two_bit_values(channel)
    shares = c @ inverse.T / reports[:, None]
    estimate, pair_values = shares[:, 0], inverse[0]
    ends = [_ends(row, inverse, squares, level) for row in c]
    low, high = np.concatenate(ends, axis=1)
    square, x = c @ pair_values**2 / reports, np.clip(estimate, 0.0, 1.0)
    # E[Var(g g | truth)], with the largest variance of the other truths.
    minimum = x * (squares[0] - 1) + (1 - x) * squares[1:].max()
    variance = observed_variance(square - estimate**2, square, minimum)
    first, second = np.array(pairs).T
    return OptionPairs(
        first=first,
        second=second,
        estimate=estimate,
        std_error=np.sqrt(variance / reports),
        conf_low=low,
        conf_high=high,
        reports=reports,
        n=total,
        level=level,
        method=SCORE,
    )


def _all_reports(reports: Integers, channel: TickChannel, n: int | None) -> int:
    """Return the number of reports: stated, or that of every pair; 0 if it is unknown."""
    if not channel.is_sampled:
        total = int(reports[0]) if n is None else n
        for n_pair in reports.tolist():
            checked_n(n_pair, total)
        return int(reports[0])
    if n is not None and checked_n(n, None) < reports.max():
        raise CountsError(f"n = {n} is below the {reports.max()} reports about one pair")
    return n or 0


def _check_pairs(pairs: Sequence[tuple[int, int]], channel: TickChannel) -> None:
    for a, b in pairs:
        a, b = checked_whole(a, "option", ValueError), checked_whole(b, "option", ValueError)
        if not 0 <= a < b < channel.m - channel.alone or channel.s < 2:
            raise ValueError(
                f"pair {(a, b)} must be two options in ascending order that may be chosen together"
            )


def _rows(supports: ArrayLike, pairs: Sequence[tuple[int, int]]) -> NDArray[np.generic]:
    rows = np.asarray(supports)
    if not len(pairs) or rows.shape != (len(pairs), 4):
        raise CountsError(f"supports of shape {rows.shape} must have shape ({len(pairs)}, 4)")
    return rows


def two_bit_values(channel: TickChannel) -> tuple[Floats, Floats]:
    """Return pseudo-values of the four truths, shape (truths, cells), and their second moments.

    The second moments are E[(values of the first truth)^2 | truth], in the order of `CELLS`. With
    signs s of a truth and z of a cell, +1 for a 1 and -1 for a 0, the pseudo-value is

        (1 + s_a z_a/b + s_b z_b/b + s_a s_b z_a z_b/b_2) / 4,
        b = E[s_a z_a] = 2p - 1,  b_2 = E[s_a s_b z_a z_b] = 2 P(both agree or neither does) - 1,

    because b and b_2 are the same for all truths. Independent bits have b_2 = b^2. Raises
    ChannelError if b_2 = 0: reports then show nothing about two options together.
    """
    unchanged, flipped = channel.pair_agreements
    product = 2 * (unchanged + flipped) - 1
    if product == 0:
        raise ChannelError(
            "the reports of this half-space show nothing about two options together: shares of "
            "pairs cannot be estimated"
        )
    one = float(channel.exact_p - unchanged)
    signs = 2 * np.array(CELLS) - 1
    agreements = signs[:, None, :] * signs[None, :, :]
    b = channel.p - channel.q
    both = agreements.prod(axis=2) / float(product)
    inverse = (1 + agreements.sum(axis=2) / b + both) / 4
    # By the number of bits that agree: 0, 1 or 2.
    transition = np.array([float(flipped), one, float(unchanged)])[(agreements > 0).sum(axis=2)]
    return np.asarray(inverse), np.asarray(transition @ inverse[0] ** 2)


def _ends(
    counts: Integers, inverse: Floats, squares: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return both ends for P(both), shape (1,); the other truths are divided as estimated."""
    n = int(counts.sum())
    shares = inverse @ counts / n
    other_shares = norm_sub(shares)[1:]
    weights = other_shares if other_shares.sum() > 0 else np.ones(3)
    other_moment = float(weights @ squares[1:]) / float(weights.sum())
    moments = SecondMoments(squares[:1], np.array([other_moment]))
    f, values, x = counts / n, inverse[0], shares[:1]
    shift = lattice_shift(values[None, :] / n, f[None, :], np.array([float(n)]), level)
    skewness = skewness_of(x, values**2 @ f, values**3 @ f, moments.variance(np.clip(x, 0.0, 1.0)))
    return score_interval(x, n, moments, level, shift, skewness)


@checked_arguments
def count_bit_pairs(
    reports: ArrayLike, channel: BitVector | HalfSpace, pairs: Sequence[tuple[int, int]]
) -> Integers:
    """Count joint supports of pairs, shape (pairs, 4), from bits of shape (n, bits of a code).

    If options are sampled, the first m bits show which were asked, and only reports about both
    options of a pair count for it.

    >>> count_bit_pairs([[1, 1], [1, 0], [0, 0]], BitVector(2, 2, 3, 1), [(0, 1)]).tolist()
    [[1, 1, 0, 1]]
    """
    _check_pairs(pairs, channel)
    bits = np.asarray(reports)
    if bits.ndim != 2 or bits.shape[1] != channel.bits or not np.isin(bits, (0, 1)).all():
        raise CountsError(f"reports must be bits, 0 or 1, of shape (n, {channel.bits})")
    ones = bits[:, -channel.m :].astype(bool)
    is_asked = bits[:, : channel.m].astype(bool) if channel.is_sampled else np.ones_like(ones)
    counts = np.empty((len(pairs), len(CELLS)), dtype=np.int64)
    for row, (a, b) in zip(counts, pairs, strict=True):
        both_asked = is_asked[:, a] & is_asked[:, b]
        row[:] = [
            np.count_nonzero(both_asked & (ones[:, a] == x) & (ones[:, b] == y)) for x, y in CELLS
        ]
    return counts
