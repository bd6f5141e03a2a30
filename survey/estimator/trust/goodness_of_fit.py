"""Could these reports have come from this channel at all, and what no such test can see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.estimator.core.arguments import (
    bit_counts,
    check_at_most,
    checked_arguments,
    checked_level,
    reports_from,
    whole_counts,
)
from survey.estimator.core.likelihood import (
    most_likely_mixture,
    most_likely_of_supports,
    require_two_options,
    supports_tell_all,
)
from survey.estimator.core.result import Result
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers

CANNOT_SEE = (
    'fake reports that keep the shares possible, or a self-protective "no" given to the device'
)

CANNOT_SEE_OF_COUNTS = (
    f"{CANNOT_SEE}; nor which options came together: counts are per option, each is tested alone"
)
"""The same of sets of several options and of bits."""

FEWEST_EXPECTED = 5.0
"""Neighbouring reports are counted together until so many are expected (Cochran 1954)."""

MISFIT = "does not fit"
NOT_CONVERGED = "not converged"


@dataclass(frozen=True, eq=False, repr=False)
class ChannelFit(Result):
    """Whether reports fit their channel; arrays have one entry per report (option, bit).

    share_of_reports  f_j = c_j / n
    least, most  the smallest and largest chance of report j at any truth: no population gives
               it a share outside them
    z          how far f_j is inside, in standard errors of the nearer end: (f - q)/sqrt(q(1-q)/n);
               below 0 it is outside
    min_z      the smallest; z_p_value its exact binomial p-value, Bonferroni over all ends
    g_squared  2 sum c log(f/lambda), lambda of the most likely shares; 0 where all are possible;
               -1 where the counts do not determine it (bit vectors, sets of more than one and
               fewer than k-1 options)
    df         its degrees of freedom, reports (pooled to 5 expected) - 1, 0 without it
    g_p_value  conservative: the shares were fitted, and no degree is taken off for that
    p_value    of both tests together, Bonferroni
    doubtful   p_value < 1 - level
    flag       "", or "does not fit", "not converged" (no G^2)
    cannot_see what a good fit leaves possible
    """

    share_of_reports: Floats
    least: Floats
    most: Floats
    z: Floats
    n: int
    level: float
    min_z: float
    z_p_value: float
    g_squared: float
    df: int
    g_p_value: float
    p_value: float
    doubtful: bool
    flag: str
    cannot_see: str

    index_names = ("report",)


class _Counted(NamedTuple):
    """Binomial counts c_j of n_j reports and the ends of what their chances can be."""

    c: Integers
    n: Integers
    least: Floats
    most: Floats
    both_ends: bool


@checked_arguments
def channel_fit(
    counts: ArrayLike, channel: AnyChannel, *, n: int | None = None, level: float = 0.99
) -> ChannelFit:
    """Test whether counts can have come through the channel from any population.

    Two tests, together at 1 - level: G^2 = 2 sum c log(f/lambda_MLE) against chi-square(k - 1),
    and the count that is furthest outside what its report's chance can be, by exact binomial
    tails, Bonferroni over all of them: at both ends for tables, bits and sets of several options,
    at the lower one where the others then tell of the upper (d = 1). Neither ever takes a true
    population for a manipulated one with more than 1 - level, and much less often where all shares
    are well above 0. Arguments as in `proportions`. Of bits and of sets of 1 < d < k-1 options the
    counts have no likelihood, and the second test is all there is.

    What it cannot see: fake reports that leave the estimates between 0 and 1 (all in favour of
    one option are seen only when others fall below 0), respondents who protect themselves by
    saying "no" to their own device: that is a population with fewer "yes". Of bits and sets also
    nothing about which options came together: reports that no person gives, such as all bits 1,
    pass while each option's count is possible. A good fit is no proof of honesty.

    Sources: Wilks 1938 (G^2); Bonferroni; for what manipulation can do Cao, Jia, Gong 2021.

    >>> from survey.mechanism import grr
    >>> channel_fit([200, 800], grr(2, "3/4")).doubtful, channel_fit([260, 740], grr(2, "3/4")).flag
    (True, '')
    """
    checked_level(level)
    seen, reports = _counted(counts, channel, n)
    f = np.divide(seen.c, seen.n, out=np.full(seen.c.shape, np.nan), where=seen.n > 0)
    z, z_p = _furthest_outside(seen, f)
    g_squared, df, g_p = _likelihood_ratio(seen, channel)
    tests = [z_p] if df == 0 else [z_p, g_p]
    p_value = min(1.0, len(tests) * min(tests))
    doubtful = p_value < 1 - level
    has_likelihood = _has_likelihood(channel)
    unsettled = NOT_CONVERGED if g_squared < 0 and has_likelihood else ""
    return ChannelFit(
        share_of_reports=np.nan_to_num(f),
        least=seen.least,
        most=seen.most,
        z=z,
        n=reports,
        level=level,
        min_z=float(z.min()),
        z_p_value=z_p,
        g_squared=g_squared,
        df=df,
        g_p_value=g_p,
        p_value=p_value,
        doubtful=doubtful,
        flag=", ".join(filter(None, [MISFIT if doubtful else "", unsettled])),
        cannot_see=CANNOT_SEE if has_likelihood else CANNOT_SEE_OF_COUNTS,
    )


def _has_likelihood(channel: AnyChannel) -> bool:
    """Whether the counts tell how often each report came: they are one multinomial's."""
    return isinstance(channel, WeightTable) or (
        isinstance(channel, SubsetSelection) and supports_tell_all(channel)
    )


def _counted(counts: ArrayLike, channel: AnyChannel, n: int | None) -> tuple[_Counted, int]:
    if isinstance(channel, BitVector):
        return _counted_bits(counts, channel, n)
    if isinstance(channel, WeightTable):
        c = whole_counts(counts, channel.reports, "one per report")
        n = reports_from(int(c.sum()), 1, n)
        P = channel.matrix
        return _Counted(c, np.full(c.size, n), P.min(axis=0), P.max(axis=0), True), n
    require_two_options(channel)
    c = whole_counts(counts, channel.k, "one per option")
    n = reports_from(int(c.sum()), channel.d, n)
    check_at_most(c, np.full(c.size, n), "reports support it")
    ends = _ends(channel.p, channel.q, channel.k)
    # A share of reports above p leaves others below q: for d = 1 the lower ends say it all.
    return _Counted(c, np.full(c.size, n), *ends, channel.d > 1), n


def _counted_bits(counts: ArrayLike, channel: BitVector, n: int | None) -> tuple[_Counted, int]:
    ends = _ends(channel.p, channel.q, channel.m)
    ones, reports, n = bit_counts(counts, channel, n)
    return _Counted(ones, reports, *ends, True), n


def _ends(p: float, q: float, k: int) -> tuple[Floats, Floats]:
    return np.full(k, min(p, q)), np.full(k, max(p, q))


def _furthest_outside(seen: _Counted, f: Floats) -> tuple[Floats, float]:
    """z of the nearer end of each count, and the exact p-value of the worst, Bonferroni."""
    from scipy.special import bdtr

    n = np.maximum(seen.n, 1)
    # z = (f - q)/sqrt(q(1-q)/n), and the same towards the upper end
    z = (f - seen.least) / np.sqrt(seen.least * (1 - seen.least) / n)
    tails = [bdtr(seen.c, n, seen.least)]
    if seen.both_ends:
        above = (seen.most - f) / np.sqrt(seen.most * (1 - seen.most) / n)
        z = np.fmin(z, above)
        tails.append(bdtr(seen.n - seen.c, n, 1 - seen.most))
    # Nobody was asked: nothing is outside.
    z = np.where(seen.n > 0, z, 0.0)
    p = np.where(seen.n > 0, np.stack(tails), 1.0)
    return z, min(1.0, p.size * float(p.min()))


def _likelihood_ratio(seen: _Counted, channel: AnyChannel) -> tuple[float, int, float]:
    """G^2 on pooled reports, its degrees of freedom and its p-value; -1, 0, 1 without any."""
    from scipy.special import gammaincc

    counts, reported = _most_likely_reports(seen, channel)
    if np.isnan(reported).any():
        return -1.0, 0, 1.0
    c, expected = _pooled(counts, reported / reported.sum() * counts.sum())
    held = c > 0
    # G^2 = 2 sum c log(f/lambda), never below 0 but by rounding
    g = max(2 * float(np.sum(c[held] * np.log(c[held] / expected[held]))), 0.0)
    df = c.size - 1
    # P(chi-square(df) >= g), the upper regularized incomplete gamma function
    return g, df, float(gammaincc(df / 2, g / 2)) if df else 1.0


def _most_likely_reports(seen: _Counted, channel: AnyChannel) -> tuple[Integers, Floats]:
    """How often each report came, and its chance at the most likely shares; nan without any."""
    if isinstance(channel, BitVector):
        return seen.c, np.full(seen.c.shape, np.nan)
    if isinstance(channel, WeightTable):
        return seen.c, most_likely_mixture(seen.c, channel.matrix) @ channel.matrix
    # lambda = q + (p-q) pi, nan where supports do not tell
    D, n = channel.p - channel.q, int(seen.n[0])
    supported = channel.q + D * most_likely_of_supports(seen.c, n, channel)
    if channel.d == 1:
        return seen.c, supported
    # d = k-1: a report is the option that it does not hold.
    return seen.n - seen.c, 1 - supported


def _pooled(c: Integers, expected: Floats) -> tuple[Floats, Floats]:
    """Neighbours added together until each has enough expected; the rest joins the last."""
    starts, held = [0], 0.0
    for place, one in enumerate(expected.tolist()):
        if held >= FEWEST_EXPECTED:
            starts.append(place)
            held = 0.0
        held += one
    if held < FEWEST_EXPECTED and len(starts) > 1:
        starts.pop()
    return np.add.reduceat(c.astype(np.float64), starts), np.add.reduceat(expected, starts)
