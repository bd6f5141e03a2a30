"""Goodness of fit: whether reports are consistent with their channel."""

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
from survey.estimator.core.maximum_likelihood import (
    most_likely_mixture,
    most_likely_of_supports,
    require_two_options,
    supports_are_sufficient,
)
from survey.estimator.core.result import Result
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Floats, Integers

CANNOT_SEE = (
    'fabricated reports that keep the shares possible, or a self-protective "no" given to the '
    "device"
)

CANNOT_SEE_OF_COUNTS = (
    f"{CANNOT_SEE}; nor wrong combinations of options: counts are per option, tested separately"
)
"""The limits for sets of several options and for bits."""

MIN_EXPECTED = 5.0
"""Neighbouring reports are pooled until their expected count is at least this (Cochran 1954)."""

MISFIT = "does not fit"
NOT_CONVERGED = "not converged"


@dataclass(frozen=True, eq=False, repr=False)
class ChannelFit(Result):
    """Consistency of reports with their channel; arrays have one entry per report (option, bit).

    share_of_reports  f_j = c_j / n
    least, most  smallest and largest probability of report j at any truth: no population gives it a
               share outside
    z          distance of f_j from the nearer end in standard errors, (f - q)/sqrt(q(1-q)/n); below
               0 outside
    min_z      the smallest z; z_p_value is its exact binomial p-value, Bonferroni over all ends
    g_squared  2 sum c log(f/lambda), lambda of the most likely shares; 0 if all shares are
               possible; -1 if the counts do not determine it (bit vectors, sets of more than one
               and fewer than k-1 options)
    df         its degrees of freedom, reports (pooled to 5 expected) - 1, 0 without it
    g_p_value  conservative: the shares are fitted, but the degrees of freedom are not reduced for
               it
    p_value    of both tests together, Bonferroni
    doubtful   p_value < 1 - level
    flag       "", or "does not fit", "not converged" (no G^2)
    cannot_see manipulation that a good fit cannot rule out
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


class _Tallies(NamedTuple):
    """Binomial counts c_j of n_j reports, and the range of their probabilities."""

    c: Integers
    n: Integers
    minimum: Floats
    maximum: Floats
    both_ends: bool


@checked_arguments
def channel_fit(
    counts: ArrayLike, channel: AnyChannel, *, n: int | None = None, level: float = 0.99
) -> ChannelFit:
    """Test whether counts can come through the channel from any population.

    Two tests, together at 1 - level: G^2 = 2 sum c log(f/lambda_MLE) against chi-square(k - 1), and
    the count that is furthest outside the range of its report's probability, by exact binomial
    tails, Bonferroni over all of them: at both ends for tables, bits and sets of several options,
    at the lower one if the others then determine the upper one (d = 1). Arguments as in
    `proportions`. For bits and sets of 1 < d < k-1 options the counts have no likelihood, and only
    the second test is used.

    The test cannot detect fabricated reports that leave the estimates between 0 and 1 (reports all
    in favor of one option are detected only if other shares fall below 0), or respondents who
    protect themselves by a "no" to their own device, because this is a population with fewer "yes".

    Sources: Wilks 1938 (G^2); Bonferroni; for the effect of manipulation Cao, Jia, Gong 2021.

    >>> from survey.mechanism import grr
    >>> channel_fit([200, 800], grr(2, "3/4")).doubtful, channel_fit([260, 740], grr(2, "3/4")).flag
    (True, '')
    """
    checked_level(level)
    tallied, reports = _tally(counts, channel, n)
    f = np.divide(tallied.c, tallied.n, out=np.full(tallied.c.shape, np.nan), where=tallied.n > 0)
    z, z_p = _furthest_outside(tallied, f)
    g_squared, df, g_p = _likelihood_ratio(tallied, channel)
    tests = [z_p] if df == 0 else [z_p, g_p]
    p_value = min(1.0, len(tests) * min(tests))
    doubtful = p_value < 1 - level
    has_likelihood = _has_likelihood(channel)
    unconverged = NOT_CONVERGED if g_squared < 0 and has_likelihood else ""
    return ChannelFit(
        share_of_reports=np.nan_to_num(f),
        least=tallied.minimum,
        most=tallied.maximum,
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
        flag=", ".join(filter(None, [MISFIT if doubtful else "", unconverged])),
        cannot_see=CANNOT_SEE if has_likelihood else CANNOT_SEE_OF_COUNTS,
    )


def _has_likelihood(channel: AnyChannel) -> bool:
    """Return whether the counts determine how often each report occurred (one multinomial)."""
    return isinstance(channel, WeightTable) or (
        isinstance(channel, SubsetSelection) and supports_are_sufficient(channel)
    )


def _tally(counts: ArrayLike, channel: AnyChannel, n: int | None) -> tuple[_Tallies, int]:
    if isinstance(channel, TickChannel):
        ends = _probability_range(channel.p, channel.q, channel.m)
        ones, reports, n = bit_counts(counts, channel, n)
        return _Tallies(ones, reports, *ends, True), n
    if isinstance(channel, WeightTable):
        c = whole_counts(counts, channel.reports, "one per report")
        n = reports_from(int(c.sum()), 1, n)
        P = channel.matrix
        return _Tallies(c, np.full(c.size, n), P.min(axis=0), P.max(axis=0), True), n
    require_two_options(channel)
    c = whole_counts(counts, channel.k, "one per option")
    n = reports_from(int(c.sum()), channel.d, n)
    check_at_most(c, np.full(c.size, n), "reports support it")
    ends = _probability_range(channel.p, channel.q, channel.k)
    # For d = 1 a share of reports above p makes others fall below q, so lower ends are enough.
    return _Tallies(c, np.full(c.size, n), *ends, channel.d > 1), n


def _probability_range(p: float, q: float, k: int) -> tuple[Floats, Floats]:
    """Return the lowest and the highest probability of each of k codes."""
    return np.full(k, min(p, q)), np.full(k, max(p, q))


def _furthest_outside(tallied: _Tallies, f: Floats) -> tuple[Floats, float]:
    """Return z of the nearer end of each count, and the exact p-value of the worst, Bonferroni."""
    from scipy.special import bdtr

    n = np.maximum(tallied.n, 1)
    # z = (f - q)/sqrt(q(1-q)/n), and the same towards the upper end
    z = (f - tallied.minimum) / np.sqrt(tallied.minimum * (1 - tallied.minimum) / n)
    tails = [bdtr(tallied.c, n, tallied.minimum)]
    if tallied.both_ends:
        above = (tallied.maximum - f) / np.sqrt(tallied.maximum * (1 - tallied.maximum) / n)
        z = np.fmin(z, above)
        tails.append(bdtr(tallied.n - tallied.c, n, 1 - tallied.maximum))
    # Without reports no count is outside.
    z = np.where(tallied.n > 0, z, 0.0)
    p = np.where(tallied.n > 0, np.stack(tails), 1.0)
    return z, min(1.0, p.size * float(p.min()))


def _likelihood_ratio(tallied: _Tallies, channel: AnyChannel) -> tuple[float, int, float]:
    """Return G^2 on pooled reports, its degrees of freedom and p-value; -1, 0, 1 without any."""
    from scipy.special import gammaincc

    counts, reported = _most_likely_reports(tallied, channel)
    if np.isnan(reported).any():
        return -1.0, 0, 1.0
    c, expected = _pooled(counts, reported / reported.sum() * counts.sum())
    occurs = c > 0
    # G^2 = 2 sum c log(f/lambda), below 0 only by rounding
    g = max(2 * float(np.sum(c[occurs] * np.log(c[occurs] / expected[occurs]))), 0.0)
    df = c.size - 1
    # P(chi-square(df) >= g), the upper regularized incomplete gamma function
    return g, df, float(gammaincc(df / 2, g / 2)) if df else 1.0


def _most_likely_reports(tallied: _Tallies, channel: AnyChannel) -> tuple[Integers, Floats]:
    """Return how often each report occurred, and its probability at the most likely shares.

    The probabilities are nan if the counts do not determine them.
    """
    if isinstance(channel, TickChannel):
        return tallied.c, np.full(tallied.c.shape, np.nan)
    if isinstance(channel, WeightTable):
        return tallied.c, most_likely_mixture(tallied.c, channel.matrix) @ channel.matrix
    # lambda = q + (p-q) pi, nan if supports do not determine pi
    D, n = channel.p - channel.q, int(tallied.n[0])
    supported = channel.q + D * most_likely_of_supports(tallied.c, n, channel)
    if channel.d == 1:
        return tallied.c, supported
    # d = k-1: a report is the option that it does not contain.
    return tallied.n - tallied.c, 1 - supported


def _pooled(c: Integers, expected: Floats) -> tuple[Floats, Floats]:
    """Pool neighbors until each pool has enough expected; the remainder joins the last pool."""
    starts, in_pool = [0], 0.0
    for place, expected_count in enumerate(expected.tolist()):
        if in_pool >= MIN_EXPECTED:
            starts.append(place)
            in_pool = 0.0
        in_pool += expected_count
    if in_pool < MIN_EXPECTED and len(starts) > 1:
        starts.pop()
    return np.add.reduceat(c.astype(np.float64), starts), np.add.reduceat(expected, starts)
