"""How far the two sums of a share among those who answered scatter, for every kind of channel.

The share is pi_j / A, A the share of all who answered. A report's pseudo-values are a, with
E[a | truth] = 1 at option j and else 0, and b, with E[b | truth] = 1 at every answer and else 0.
At the true ratio r the mean of a - r b is 0, and its variance depends on the second moments of
three kinds of people only: those with option j, those with another answer, those with none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from survey.errors import NoBaseError
from survey.estimator.core.likelihood import norm_sub
from survey.estimator.core.pseudo_values import left_inverse
from survey.estimator.shares.binomial import Proportions
from survey.estimator.shares.proportions import membership
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.mechanism.arrays import Booleans, Floats, Integers


class Scatter(Protocol):
    """Variance of the estimated top - r bottom if the ratio is r and so many answered.

    `ratio` and `answered` have options along the first of two axes, or one entry there. The
    second method is the variance of the estimated bottom if nobody answered, the third how much
    one report moves a top at most, shape (options,).
    """

    def variance(self, ratio: Floats, answered: Floats) -> Floats: ...
    def bottom_if_nobody(self) -> float: ...
    def one_report(self) -> Floats: ...


class Squares(NamedTuple):
    """E[a^2], E[a b], E[b^2] of one kind of people, each of shape (options, 1)."""

    aa: Floats
    ab: Floats
    bb: Floats

    def at(self, ratio: Floats) -> Floats:
        """E[(a - r b)^2]."""
        return np.asarray(self.aa - 2 * ratio * self.ab + ratio**2 * self.bb)


class ThreeKinds(NamedTuple):
    """Second moments of reports that each tell about every option; n of them."""

    own: Squares
    other: Squares
    silent: Squares
    reach: Floats
    """Largest minus smallest pseudo-value a, shape (options,)."""
    n: int
    sampled: bool = True
    """Whether people are a sample of others; else only randomization scatters."""

    def variance(self, ratio: Floats, answered: Floats) -> Floats:
        """(A [r w_own(r) + (1-r) w_other(r)] + (1-A) w_silent(r)) / n.

        Of these people alone less E[E[a - r b | truth]^2] = A [r (1-r)^2 + (1-r) r^2] = A r (1-r).
        """
        answering = ratio * self.own.at(ratio) + (1 - ratio) * self.other.at(ratio)
        scatter = answered * answering + (1 - answered) * self.silent.at(ratio)
        if not self.sampled:
            scatter = scatter - answered * ratio * (1 - ratio)
        return np.asarray(scatter / self.n)

    def bottom_if_nobody(self) -> float:
        """E[b^2] of those without an answer, per report."""
        return float(self.silent.bb.max()) / self.n

    def one_report(self) -> Floats:
        """reach / n."""
        return self.reach / self.n


class Support(NamedTuple):
    """How often a report supports option j and how many of the S no-answer options.

    own, rest       P(supports j | ticked), and if it is not, shape (k,)
    p, q            the same of one no-answer option
    with_one        P(supports two given options | one of them is the truth)
    with_none       the same if neither is
    """

    own: Floats
    rest: Floats
    p: float
    q: float
    with_one: float
    with_none: float
    S: int


def three_kinds(support: Support, n: int) -> ThreeKinds:
    """Moments of a = (s_j - rest_j)/(p-q) and b = 1 - (N - S q)/(p-q).

    s_j is 1 where the report supports j, N the number of no-answer options that it supports.
    Averages over two given options; S of them are no answer, one or none of those is the truth.
    """
    p, q, S = support.p, support.q, support.S
    one, none = support.with_one, support.with_none
    answered_N, silent_N = S * q, p + (S - 1) * q
    answered_NN = answered_N + S * (S - 1) * none
    silent_NN = silent_N + 2 * (S - 1) * one + (S - 1) * (S - 2) * none
    both = (S * one, S * none, one + (S - 1) * none)
    return ThreeKinds(
        _squares(support, support.own, both[0], answered_N, answered_NN),
        _squares(support, support.rest, both[1], answered_N, answered_NN),
        _squares(support, support.rest, both[2], silent_N, silent_NN),
        np.full(support.own.shape, 1 / abs(p - q)),
        n,
    )


def _squares(support: Support, s: Floats, both: float, N: float, NN: float) -> Squares:
    """From E[s_j] = s, E[s_j N] = both, E[N] = N, E[N^2] = NN."""
    rest, D, base = support.rest, support.p - support.q, support.S * support.q
    aa = (s * (1 - 2 * rest) + rest**2) / D**2
    # E[(s - rest)(N - base)] / D^2
    together = (both - base * s - rest * N + rest * base) / D**2
    bb = 1 - 2 * (N - base) / D + (NN - 2 * base * N + base**2) / D**2
    return Squares(*(each[:, None] for each in (aa, (s - rest) / D - together, 0 * aa + bb)))


def of_sets(channel: SubsetSelection, k: int, S: int) -> Support:
    """Reported sets of d options (d = 1: one option): supports depend on each other.

    P(two given options | one is the truth) = p (d-1)/(k-1); if neither is, given the truth in
    the set (d-1)(d-2)/((k-1)(k-2)), given it is not d(d-1)/((k-1)(k-2)).
    """
    size, d, p = channel.k, channel.d, channel.p
    pairs = (size - 1) * max(size - 2, 1)
    return Support(
        own=np.full(k, p),
        rest=np.full(k, channel.q),
        p=p,
        q=channel.q,
        with_one=p * (d - 1) / (size - 1),
        with_none=(p * (d - 1) * (d - 2) + (1 - p) * d * (d - 1)) / pairs,
        S=S,
    )


def of_patterns(channel: SubsetSelection, holding: Integers, S: int) -> Support:
    """One reported pattern, d = 1: it holds an option, or it is one of S that are no answer.

    N_j = `holding` of the patterns hold option j; none of these is a no-answer pattern.
    """
    p, q = channel.p, channel.q
    N = np.asarray(holding, dtype=np.float64)
    return Support(p + (N - 1) * q, N * q, p, q, 0.0, 0.0, S)


def of_bits(channel: BitVector, k: int, S: int) -> Support:
    """Bits, which are kept or flipped independently."""
    p, q = channel.p, channel.q
    return Support(np.full(k, p), np.full(k, q), p, q, p * q, q * q, S)


class SampledBits(NamedTuple):
    """Options that each have reports of their own, some of them common to two options.

    own, rest       p(1-p)/(p-q)^2 and q(1-q)/(p-q)^2: what randomization adds
    reach           1/|p-q|, the difference of the two pseudo-values
    reports         that tell about option j, shape (k,)
    silent_reports  that tell about each no-answer option, shape (S,)
    silent_parts    how those who did not answer divide, shape (S,), sum 1
    common          reports that tell about two given options: n r (r-1)/(m (m-1)) are expected
    sampled         whether people are a sample of others; else only randomization scatters
    """

    own: float
    rest: float
    reach: float
    reports: Floats
    silent_reports: Floats
    silent_parts: Floats
    common: float
    sampled: bool = True

    def variance(self, ratio: Floats, answered: Floats) -> Floats:
        """Var(pi_j) + r^2 Var(sum_s pi_s) - 2 r sum_s pi_j pi_s common/(n_j n_s), bottom = 1 - sum.

        An estimated share x has the variance (noise + x(1-x))/n_j. Of these people alone it is
        noise/n_j, and estimates do not vary together: each bit is kept or flipped for itself.
        """
        x, n = ratio * answered, self.reports[:, None]
        across = np.zeros(np.shape(x))
        for part, reports in self._pairs() if self.sampled else ():
            across = across + x * (1 - answered) * part / (n * reports)
        return np.asarray(
            self._one(x, n) + ratio**2 * self._silent(answered) - 2 * ratio * self.common * across
        )

    def bottom_if_nobody(self) -> float:
        """Var(sum_s pi_s) where these add up to one."""
        return float(self._silent(np.zeros(1))[0])

    def one_report(self) -> Floats:
        """reach / n_j."""
        return self.reach / self.reports

    def _silent(self, answered: Floats) -> Floats:
        """Var(sum_s pi_s) = sum_s Var(pi_s) - 2 sum_s<t pi_s pi_t common/(n_s n_t)."""
        total, pairs = np.zeros(np.shape(answered)), self._pairs()
        for i, (part, reports) in enumerate(pairs):
            y = (1 - answered) * part
            total = total + self._one(y, np.asarray(reports))
            for next_part, next_reports in pairs[i + 1 :] if self.sampled else ():
                both = y * (1 - answered) * next_part
                total = total - 2 * both * self.common / (reports * next_reports)
        return total

    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.silent_parts.tolist(), self.silent_reports.tolist(), strict=True))

    def _one(self, share: Floats, reports: Floats) -> Floats:
        noise = share * self.own + (1 - share) * self.rest
        sampling = share * (1 - share) if self.sampled else 0.0
        return np.asarray((noise + sampling) / reports)


def scatter_of(
    channel: SubsetSelection | BitVector | WeightTable,
    shares: Proportions,
    answers: Integers,
    silent: Integers,
    patterns: Sequence[Sequence[int]] | None,
) -> ThreeKinds | SampledBits:
    """How the estimated shares of answers, and of all of them together, scatter."""
    k, S = len(answers), len(silent)
    if isinstance(channel, WeightTable):
        return _of_table(channel, shares, answers, silent)
    if isinstance(channel, BitVector):
        if channel.is_sampled:
            return _of_sampled(channel, shares, answers, silent)
        return three_kinds(of_bits(channel, k, S), shares.n)
    if patterns is not None:
        holding = membership(patterns, channel.k, k + S).sum(axis=1)[answers]
        return three_kinds(of_patterns(channel, holding, S), shares.n)
    return three_kinds(of_sets(channel, k, S), shares.n)


def _of_table(
    channel: WeightTable, shares: Proportions, answers: Integers, silent: Integers
) -> ThreeKinds:
    """Pseudo-values a = G_j, b = sum of G over answers; other people as the data say they are."""
    G = left_inverse(channel)
    a, b = G[answers], G[answers].sum(axis=0)
    # Second moments by truth, shape (answers, truths).
    P = channel.matrix
    moments = [part @ P.T for part in (a**2, a * b, np.tile(b**2, (len(answers), 1)))]
    weights = np.tile(norm_sub(shares.estimate), (len(answers), 1))
    truths = np.arange(channel.truths)
    is_own, is_silent = answers[:, None] == truths, np.isin(truths, silent)[None, :]
    own, other, none = (
        Squares(*(_averaged(each, weights, kind) for each in moments))
        for kind in (is_own, ~is_own & ~is_silent, is_silent)
    )
    return ThreeKinds(own, other, none, np.ptp(a, axis=1), shares.n)


def _averaged(values: Floats, weights: Floats, among: Booleans) -> Floats:
    """Weighted means of rows over some truths, plain ones where all weights are 0; shape (k, 1)."""
    inside = np.where(among, weights, 0.0)
    inside = np.where(inside.sum(axis=1, keepdims=True) > 0, inside, among)
    return np.asarray(
        (values * inside).sum(axis=1, keepdims=True) / inside.sum(axis=1, keepdims=True)
    )


def _of_sampled(
    channel: BitVector, shares: Proportions, answers: Integers, silent: Integers
) -> SampledBits:
    if not shares.reports[silent].all():
        raise NoBaseError("nobody was asked about an option that is no answer")
    m, r, p, q = channel.m, channel.sampled, channel.p, channel.q
    return SampledBits(
        own=p * (1 - p) / (p - q) ** 2,
        rest=q * (1 - q) / (p - q) ** 2,
        reach=1 / abs(p - q),
        reports=np.maximum(shares.reports[answers], 1).astype(np.float64),
        silent_reports=shares.reports[silent].astype(np.float64),
        silent_parts=norm_sub(shares.estimate[silent]),
        common=shares.n * r * (r - 1) / (m * (m - 1)),
    )
