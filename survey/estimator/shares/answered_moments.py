"""The variance of shares among those who answered, for every kind of channel.

The share is pi_j / A, where A is the share of all who answered. A report's pseudo-values are a,
with E[a | truth] = 1 at option j and 0 otherwise, and b, with E[b | truth] = 1 at every answer and
0 otherwise. At the true ratio r the mean of a - r b is 0. Its variance depends on the second
moments of three groups of people only: those with option j, with another answer, and with none.
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
    """Variance of the estimated top - r bottom, given the ratio and the share of people who
    answered.

    `ratio` and `answered` have options along the first of two axes, or one entry there.
    `bottom_if_nobody` is the variance of the estimated bottom if nobody answered, and `one_report`
    the most that one report moves a top, shape (options,).
    """

    def variance(self, ratio: Floats, answered: Floats) -> Floats: ...
    def bottom_if_nobody(self) -> float: ...
    def one_report(self) -> Floats: ...


class Squares(NamedTuple):
    """E[a^2], E[a b], E[b^2] of one group of people, each of shape (options, 1)."""

    aa: Floats
    ab: Floats
    bb: Floats

    def at(self, ratio: Floats) -> Floats:
        """Return E[(a - r b)^2]."""
        return np.asarray(self.aa - 2 * ratio * self.ab + ratio**2 * self.bb)


class GroupMoments(NamedTuple):
    """Second moments of n reports, each about every option, for the three groups of people."""

    own: Squares
    other: Squares
    silent: Squares
    reach: Floats
    """Largest minus smallest pseudo-value a, shape (options,)."""
    n: int
    sampled: bool = True
    """Whether people are a sample; otherwise the variance is that of randomization alone."""

    def variance(self, ratio: Floats, answered: Floats) -> Floats:
        """Return (A [r w_own(r) + (1-r) w_other(r)] + (1-A) w_silent(r)) / n.

        For these respondents alone, subtract E[E[a - r b | truth]^2] = A [r (1-r)^2 + (1-r) r^2]
        = A r (1-r).
        """
        answering = ratio * self.own.at(ratio) + (1 - ratio) * self.other.at(ratio)
        square = answered * answering + (1 - answered) * self.silent.at(ratio)
        if not self.sampled:
            square = square - answered * ratio * (1 - ratio)
        return np.asarray(square / self.n)

    def bottom_if_nobody(self) -> float:
        """Return E[b^2] of people without an answer, per report."""
        return float(self.silent.bb.max()) / self.n

    def one_report(self) -> Floats:
        """Return reach / n."""
        return self.reach / self.n


class Support(NamedTuple):
    """Probabilities that a report supports option j and how many of S no-answer options.

    if_chosen       P(supports j | j was chosen), shape (k,)
    if_not          P(supports j | j was not chosen), shape (k,)
    p, q            the same for one no-answer option
    with_one        P(supports two given options | one of them is the truth)
    with_none       P(supports two given options | neither is the truth)
    """

    if_chosen: Floats
    if_not: Floats
    p: float
    q: float
    with_one: float
    with_none: float
    S: int


def group_moments(support: Support, n: int) -> GroupMoments:
    """Return the moments of a = (s_j - if_not_j)/(p-q) and b = 1 - (N - S q)/(p-q).

    s_j is 1 where the report supports j, and N is the number of no-answer options that it supports.
    Averages are over two given options; S of them are no answer, one or none of those is the truth.
    """
    p, q, S = support.p, support.q, support.S
    with_one, with_none = support.with_one, support.with_none
    answered_N, silent_N = S * q, p + (S - 1) * q
    answered_NN = answered_N + S * (S - 1) * with_none
    silent_NN = silent_N + 2 * (S - 1) * with_one + (S - 1) * (S - 2) * with_none
    joint = (S * with_one, S * with_none, with_one + (S - 1) * with_none)
    return GroupMoments(
        _squares(support, support.if_chosen, joint[0], answered_N, answered_NN),
        _squares(support, support.if_not, joint[1], answered_N, answered_NN),
        _squares(support, support.if_not, joint[2], silent_N, silent_NN),
        np.full(support.if_chosen.shape, 1 / abs(p - q)),
        n,
    )


def _squares(support: Support, s: Floats, joint: float, N: float, NN: float) -> Squares:
    """Return the moments from E[s_j] = s, E[s_j N] = joint, E[N] = N, E[N^2] = NN."""
    if_not, D, base = support.if_not, support.p - support.q, support.S * support.q
    aa = (s * (1 - 2 * if_not) + if_not**2) / D**2
    # E[(s - if_not)(N - base)] / D^2
    together = (joint - base * s - if_not * N + if_not * base) / D**2
    bb = 1 - 2 * (N - base) / D + (NN - 2 * base * N + base**2) / D**2
    return Squares(*(part[:, None] for part in (aa, (s - if_not) / D - together, 0 * aa + bb)))


def set_support(channel: SubsetSelection, k: int, S: int) -> Support:
    """Return the supports of reported sets of d options (d = 1: one option), which are dependent.

    P(two given options | one is the truth) = p (d-1)/(k-1). If neither is the truth, it is
    (d-1)(d-2)/((k-1)(k-2)) given the truth in the set, and d(d-1)/((k-1)(k-2)) otherwise.
    """
    size, d, p = channel.k, channel.d, channel.p
    pairs = (size - 1) * max(size - 2, 1)
    return Support(
        if_chosen=np.full(k, p),
        if_not=np.full(k, channel.q),
        p=p,
        q=channel.q,
        with_one=p * (d - 1) / (size - 1),
        with_none=(p * (d - 1) * (d - 2) + (1 - p) * d * (d - 1)) / pairs,
        S=S,
    )


def pattern_support(channel: SubsetSelection, holding: Integers, S: int) -> Support:
    """Return the supports of one reported pattern, d = 1.

    The pattern contains options, or it is one of S patterns that are no answer. N_j = `holding` of
    the patterns contain option j; none of these is a no-answer pattern.
    """
    p, q = channel.p, channel.q
    N = np.asarray(holding, dtype=np.float64)
    return Support(p + (N - 1) * q, N * q, p, q, 0.0, 0.0, S)


def bit_support(channel: BitVector, k: int, S: int) -> Support:
    """Return the supports of bits, which are kept or flipped independently."""
    p, q = channel.p, channel.q
    return Support(np.full(k, p), np.full(k, q), p, q, p * q, q * q, S)


class SampledBits(NamedTuple):
    """Options with separate reports, some of them common to two options.

    at_truth        p(1-p)/(p-q)^2, the variance of randomization for people with the option
    elsewhere       q(1-q)/(p-q)^2, the variance of randomization for other people
    reach           1/|p-q|, the difference of the two pseudo-values
    reports         reports about option j, shape (k,)
    silent_reports  reports about each no-answer option, shape (S,)
    silent_parts    division of the people who did not answer, shape (S,), sum 1
    common          expected reports about two given options: n r (r-1)/(m (m-1))
    sampled         whether people are a sample; otherwise the variance is that of randomization
    """

    at_truth: float
    elsewhere: float
    reach: float
    reports: Floats
    silent_reports: Floats
    silent_parts: Floats
    common: float
    sampled: bool = True

    def variance(self, ratio: Floats, answered: Floats) -> Floats:
        """Return Var(pi_j) + r^2 Var(sum_s pi_s) - 2 r sum_s pi_j pi_s common/(n_j n_s).

        The bottom is 1 - sum. An estimated share x has the variance (noise + x(1-x))/n_j. For these
        respondents alone it is noise/n_j, and estimates are uncorrelated, because each bit is kept
        or flipped independently.
        """
        x, n = ratio * answered, self.reports[:, None]
        across = np.zeros(np.shape(x))
        for part, reports in self._pairs() if self.sampled else ():
            across = across + x * (1 - answered) * part / (n * reports)
        return np.asarray(
            self._share_variance(x, n)
            + ratio**2 * self._silent_variance(answered)
            - 2 * ratio * self.common * across
        )

    def bottom_if_nobody(self) -> float:
        """Return Var(sum_s pi_s) if these shares add up to one."""
        return float(self._silent_variance(np.zeros(1))[0])

    def one_report(self) -> Floats:
        """Return reach / n_j."""
        return self.reach / self.reports

    def _silent_variance(self, answered: Floats) -> Floats:
        """Return Var(sum_s pi_s) = sum_s Var(pi_s) - 2 sum_s<t pi_s pi_t common/(n_s n_t)."""
        total, pairs = np.zeros(np.shape(answered)), self._pairs()
        for i, (part, reports) in enumerate(pairs):
            y = (1 - answered) * part
            total = total + self._share_variance(y, np.asarray(reports))
            for next_part, next_reports in pairs[i + 1 :] if self.sampled else ():
                product = y * (1 - answered) * next_part
                total = total - 2 * product * self.common / (reports * next_reports)
        return total

    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.silent_parts.tolist(), self.silent_reports.tolist(), strict=True))

    def _share_variance(self, share: Floats, reports: Floats) -> Floats:
        noise = share * self.at_truth + (1 - share) * self.elsewhere
        sampling = share * (1 - share) if self.sampled else 0.0
        return np.asarray((noise + sampling) / reports)


def answered_scatter(
    channel: SubsetSelection | BitVector | WeightTable,
    shares: Proportions,
    answers: Integers,
    silent: Integers,
    patterns: Sequence[Sequence[int]] | None,
) -> GroupMoments | SampledBits:
    """Return the variance of the estimated shares of answers relative to their sum."""
    k, S = len(answers), len(silent)
    if isinstance(channel, WeightTable):
        return _table_moments(channel, shares, answers, silent)
    if isinstance(channel, BitVector):
        if channel.is_sampled:
            return _sampled_moments(channel, shares, answers, silent)
        return group_moments(bit_support(channel, k, S), shares.n)
    if patterns is not None:
        holding = membership(patterns, channel.k, k + S).sum(axis=1)[answers]
        return group_moments(pattern_support(channel, holding, S), shares.n)
    return group_moments(set_support(channel, k, S), shares.n)


def _table_moments(
    channel: WeightTable, shares: Proportions, answers: Integers, silent: Integers
) -> GroupMoments:
    """Return the moments of a = G_j and b = sum of G over answers, averaged over the estimates."""
    G = left_inverse(channel)
    a, b = G[answers], G[answers].sum(axis=0)
    # Second moments by truth, shape (answers, truths).
    P = channel.matrix
    moments = [product @ P.T for product in (a**2, a * b, np.tile(b**2, (len(answers), 1)))]
    weights = np.tile(norm_sub(shares.estimate), (len(answers), 1))
    truths = np.arange(channel.truths)
    is_own, is_silent = answers[:, None] == truths, np.isin(truths, silent)[None, :]
    of_own, of_other, of_none = (
        Squares(*(_weighted_means(moment, weights, kind) for moment in moments))
        for kind in (is_own, ~is_own & ~is_silent, is_silent)
    )
    return GroupMoments(of_own, of_other, of_none, np.ptp(a, axis=1), shares.n)


def _weighted_means(values: Floats, weights: Floats, among: Booleans) -> Floats:
    """Return weighted means of rows over some truths, shape (k, 1).

    Where all weights are 0, the means are not weighted.
    """
    inside = np.where(among, weights, 0.0)
    inside = np.where(inside.sum(axis=1, keepdims=True) > 0, inside, among)
    return np.asarray(
        (values * inside).sum(axis=1, keepdims=True) / inside.sum(axis=1, keepdims=True)
    )


def _sampled_moments(
    channel: BitVector, shares: Proportions, answers: Integers, silent: Integers
) -> SampledBits:
    if not shares.reports[silent].all():
        raise NoBaseError("a no-answer option has no reports, because nobody was asked about it")
    m, r, p, q = channel.m, channel.sampled, channel.p, channel.q
    return SampledBits(
        at_truth=p * (1 - p) / (p - q) ** 2,
        elsewhere=q * (1 - q) / (p - q) ** 2,
        reach=1 / abs(p - q),
        reports=np.maximum(shares.reports[answers], 1).astype(np.float64),
        silent_reports=shares.reports[silent].astype(np.float64),
        silent_parts=norm_sub(shares.estimate[silent]),
        common=shares.n * r * (r - 1) / (m * (m - 1)),
    )
