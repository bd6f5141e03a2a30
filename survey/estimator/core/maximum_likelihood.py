"""Maximum-likelihood shares: closed forms, interior points, smoothing; projection (norm-sub)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import CodeChannel, checked_arguments
from survey.mechanism import SubsetSelection
from survey.mechanism.channel import Booleans, Floats, Integers


@checked_arguments
def norm_sub(estimate: ArrayLike) -> Floats:
    """Return the shares nearest to an estimate, by least squares: shape (k,), none negative, sum 1.

    max(pi_j - delta, 0) with the delta that makes the sum 1 ("norm-sub"). Use it for display where
    there is no mle, as for reported sets (d > 1). Source: Wang, Lopuhaa-Zwakenberg, Li, Skoric, Li
    2020, doi 10.14722/ndss.2020.24157.

    Raises ValueError unless all numbers are finite and there is at least one.

    >>> norm_sub([0.7, 0.4, -0.1]).round(4).tolist()
    [0.65, 0.35, 0.0]
    """
    pi = np.asarray(estimate, dtype=np.float64)
    if pi.ndim != 1 or not pi.size or not np.isfinite(pi).all():
        raise ValueError("an estimate must be finite numbers of shape (k,), k at least 1")
    largest_first: Floats = np.sort(pi)[::-1]
    # If the s largest stay positive, delta = (their sum - 1)/s.
    delta = (np.cumsum(largest_first) - 1) / np.arange(1, pi.size + 1)
    positive = max(int(np.count_nonzero(largest_first > delta)), 1)
    shares = np.asarray(np.maximum(pi - delta[positive - 1], 0.0))
    total = float(shares.sum())
    # Where numbers are huge, rounding can make all shares 0.
    return np.asarray(shares / total if total > 0 else np.eye(pi.size)[np.argmax(pi)])


def most_likely_shares(counts: Integers, channel: SubsetSelection) -> Floats:
    """Return the constrained maximum-likelihood shares: shape (k,), none negative, sum 1.

    For generalized randomized response (d = 1), in closed form: maximizing sum c_j log lambda_j
    with lambda_j = q + (p-q) pi_j >= q and sum lambda = 1 gives lambda_j = max(q, c_j/tau), with
    the tau that makes the sum 1 (Karush, Kuhn, Tucker). They are biased inwards near the edges of
    the simplex: for display, not for arithmetic.

    >>> from survey.mechanism import grr
    >>> most_likely_shares(np.array([80, 15, 5]), grr(3, "3/4")).round(4).tolist()
    [0.9789, 0.0211, 0.0]
    """
    if channel.p > channel.q:
        return _rescaled_above_floor(counts, channel.p, channel.q)
    # Two options, p < q: counting each report for the other option gives p > q.
    return _rescaled_above_floor(counts[::-1], channel.q, channel.p)


def require_two_options(channel: SubsetSelection) -> None:
    """Raise ChannelError for p < q with more than two options, which no known design uses."""
    if channel.p < channel.q and channel.k > 2:
        raise ChannelError(
            f"T = {channel.T} may be below L = {channel.L} for two options only; "
            f"with k = {channel.k} options T must be above L"
        )


def _rescaled_above_floor(counts: Integers, p: float, q: float) -> Floats:
    """Return pi_j = (max(q, c_j/tau) - q) / (p-q), with p + (k-1)q = 1."""
    largest_first = np.sort(counts)[::-1]
    # The s largest stay above q and share the remainder, 1 - (k-s) q = p + (s-1) q.
    remainder = p + q * np.arange(counts.size)
    tau = np.cumsum(largest_first) / remainder
    above_floor = np.count_nonzero(largest_first > q * tau)
    shares = np.maximum(counts / tau[above_floor - 1] - q, 0.0) / (p - q)
    return np.asarray(shares / shares.sum())


TOLERANCE = 1e-6
"""Maximum gap to the largest log likelihood, per report, for a result to be accepted."""

GOAL = 1e-8
"""The search ends at this gap."""

MAX_ROUNDS = 20_000
"""Maximum number of rounds. Expectation maximization, with three steps a round, usually takes
hundreds; Newton's method, with one step a round, takes 7 to 16."""

MAX_WORK = 2 * 10**10
"""Maximum number of weights that expectation maximization reads, which limits large tables."""

MAX_PRODUCTS = 10**11
"""Maximum number of products in Newton's method; a step takes truths x truths x reports."""

MAX_TRUTHS = 3_000
"""Maximum number of truths: their second derivatives take 72 MB."""

CENTRING = 0.1
"""Fraction of the mean of pi s that each Newton step aims at."""

SHORTENING = 0.99
"""Maximum fraction of the way to the nearest bound that a step may go."""


def most_likely_mixture(counts: Integers, matrix: Floats) -> Floats:
    """Return the shares that maximize sum_j c_j log lambda_j, lambda = pi P; shape (truths,).

    A step of expectation maximization is pi_i <- pi_i D_i with D_i = sum_j f_j P(j|i)/lambda_j. It
    is stationary where every D_i <= 1, and D_i = 1 where pi_i > 0. With the slack s = 1 - D this
    means pi, s >= 0, pi s = 0. Newton's method solves pi s = mu, with mu falling to 0 (primal-dual
    interior point): with H = P diag(f/lambda^2) P'

        (H + diag(s/pi)) dpi = mu/pi - (1 - D), ds = 1 - D - s + H dpi.

    The likelihood is concave, and by duality log L(best) - log L(pi) <= n (max_i D_i - 1): the
    search ends when this gap is at most `GOAL`. If it is still above `TOLERANCE` after the last
    round, the result is nan, never a wrong number. Sources: Agrawal and Aggarwal 2001 (expectation
    maximization); Koenker and Mizera 2014 (interior points); Wright 1997 (primal-dual steps).

    >>> most_likely_mixture(np.array([60, 40]), np.array([[.75, .25], [.25, .75]])).round(4)
    array([0.7, 0.3])
    """
    reported = np.flatnonzero(counts)
    f, P = counts[reported] / counts.sum(), matrix[:, reported]
    pi = np.full(len(P), 1 / len(P))
    slack = np.maximum(1 - P @ (f / (pi @ P)), CENTRING)
    best, best_gap = pi, np.inf
    rounds = min(MAX_ROUNDS, MAX_PRODUCTS // (P.size * len(P)) + 1)
    for _ in range(rounds if len(P) <= MAX_TRUTHS else 0):
        shares = pi @ P
        D = P @ (f / shares)
        # The gap of pi scaled to the sum 1.
        gap = float(D.max() * pi.sum()) - 1
        if gap < best_gap:
            best, best_gap = pi / pi.sum(), gap
        if gap <= GOAL:
            break
        try:
            pi, slack = _newton(pi, slack, D, P * (np.sqrt(f) / shares))
        except np.linalg.LinAlgError:
            break
    return best if best_gap <= TOLERANCE else np.full(len(P), np.nan)


def _newton(pi: Floats, slack: Floats, D: Floats, Q: Floats) -> tuple[Floats, Floats]:
    """Return pi and s after one step, H = Q Q'; LinAlgError if rounding makes H singular."""
    from scipy.linalg import cho_factor, cho_solve

    mu = CENTRING * float(pi @ slack) / pi.size
    H = Q @ Q.T
    factor = cho_factor(H + np.diag(slack / pi), lower=True, check_finite=False)
    dpi = cho_solve(factor, mu / pi - (1 - D), check_finite=False)
    ds = 1 - D - slack + H @ dpi
    return pi + _reach(pi, dpi) * dpi, slack + _reach(slack, ds) * ds


def _reach(at: Floats, step: Floats) -> float:
    """Return the largest fraction of a step that keeps all of `at` above 0."""
    falls = step < 0
    return min(1.0, SHORTENING * float(np.min(at[falls] / -step[falls], initial=np.inf)))


def squarem_step(pi: Floats, first_step: Floats, second_step: Floats) -> Floats:
    """Return pi - 2 s r + s^2 v, the accelerated step of SQUAREM.

    r = F(pi) - pi, v = F(F(pi)) - F(pi) - r, s = -|r|/|v|, where F is one step of the map.
    """
    r = first_step - pi
    v = second_step - first_step - r
    v_norm = float(np.linalg.norm(v))
    if v_norm == 0:
        return second_step
    s = min(-float(np.linalg.norm(r)) / v_norm, -1.0)
    accelerated = pi - 2 * s * r + s**2 * v
    # Steps multiply shares, so a share of 0 could never grow again.
    accelerated = np.where(accelerated > 0, accelerated, second_step)
    return np.asarray(accelerated / accelerated.sum())


def supports_are_sufficient(channel: SubsetSelection) -> bool:
    """Return whether counts per option determine the likelihood of the reported sets."""
    return channel.d in (1, channel.k - 1)


def most_likely_of_supports(counts: Integers, n: int, channel: SubsetSelection) -> Floats:
    """Return the most likely shares from supports of n reports, shape (k,).

    All are nan where the supports do not determine the likelihood.

    >>> supports = np.array([80, 70, 50])
    >>> most_likely_of_supports(supports, 100, SubsetSelection(3, 2, 3, 1)).round(4).tolist()
    [0.7, 0.3, 0.0]
    """
    if channel.d == 1:
        return most_likely_shares(counts, channel)
    if channel.d == channel.k - 1:
        return _most_likely_of_missing(n - counts, channel)
    return np.full(channel.k, np.nan)


def _most_likely_of_missing(missing: Integers, channel: SubsetSelection) -> Floats:
    """Return the most likely shares from how often each option is the missing one.

    In closed form: lambda_j = P(j is missing) = (T - (T-L) pi_j)/W <= T/W with W = (k-1) T + L.
    Maximizing sum m_j log lambda_j gives lambda_j = min(T/W, m_j/tau), with the tau that makes the
    sum 1.
    """
    k, T, L = channel.k, channel.T, channel.L
    ceiling = T / ((k - 1) * T + L)
    largest_first = np.sort(missing)[::-1].astype(np.float64)
    # The s largest are at the ceiling; the others share the remainder.
    remainder = 1 - ceiling * np.arange(k)
    tail = np.cumsum(largest_first[::-1])[::-1]
    s = int(np.count_nonzero(largest_first * remainder > ceiling * tail))
    below_ceiling = np.arange(k) >= s
    chances = np.full(k, ceiling)
    # If none of the others was ever missing, the likelihood is the same for every division.
    portions = largest_first / tail[s] if tail[s] > 0 else np.full(k, 1 / (k - s))
    chances[below_ceiling] = (remainder[s] * portions)[below_ceiling]
    shares = np.empty(k)
    shares[np.argsort(missing)[::-1]] = np.maximum(ceiling - chances, 0.0)
    return np.asarray(shares / shares.sum())


def checked_sets(reports: ArrayLike, channel: SubsetSelection) -> Booleans:
    """Return reported sets as membership of shape (n, k), or raise CountsError with the reason."""
    members = np.asarray(reports)
    if members.ndim != 2 or members.shape[1] != channel.k or not len(members):
        raise CountsError(f"reports of shape {members.shape} must have shape (n, {channel.k})")
    if not np.isin(members, (0, 1)).all():
        raise CountsError("reports must be 0 or 1: whether the set contains the option")
    sizes = members.astype(bool).sum(axis=1)
    if (wrong := sizes != channel.d).any():
        report = int(np.argmax(wrong))
        raise CountsError(f"report {report} contains {sizes[report]} options, not d = {channel.d}")
    return members.astype(bool)


def most_likely_of_sets(members: Booleans, channel: SubsetSelection) -> Floats:
    """Return the most likely shares from reported sets, shape (n, k); nan as `most_likely_mixture`.

    Equal sets are counted once, so the time depends on the number of different sets.

    >>> pairs = np.array([[1, 1, 0, 0]] * 3 + [[0, 0, 1, 1], [1, 0, 1, 0]], dtype=bool)
    >>> most_likely_of_sets(pairs, SubsetSelection(4, 2, 3, 1)).round(3).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    require_two_options(channel)
    # Bytes sort faster than rows of bits, and sorting takes most of the time.
    _, first, times = np.unique(
        np.packbits(members, axis=1), axis=0, return_index=True, return_counts=True
    )
    # P(set | truth), up to a factor common to all sets.
    chances = np.where(members[first].T, 1.0, channel.L / channel.T)
    return most_likely_mixture(times.astype(np.int64), chances)


MIN_CHANGE = 1e-3
"""Smoothing ends when a round changes the total log likelihood by less (Li et al. 2020)."""

MAX_SMOOTHING_ROUNDS = 10_000
"""Maximum number of rounds; tens are usual."""


def smoothed_shares(counts: Integers, matrix: Floats, along: Integers) -> tuple[Floats, bool]:
    """Return smoothed shares of all truths, shape (truths,), and whether they converged.

    Each round is one step of expectation maximization, pi_i <- pi_i sum_j f_j P(j|i)/lambda_j with
    lambda = pi P, followed by smoothing with the weights 1/4, 1/2, 1/4 along the truths `along`,
    which are in the order of their values. An end counts as a neighbor of itself, so the sum of
    these shares stays. Truths outside `along` ("prefer not to say") are not smoothed. Source: Li,
    Wang, Lopuhaa-Zwakenberg, Li, Skoric 2020, section 5.5 (EMS); Silverman, Jones, Wilson, Nychka
    1990.

    >>> P = np.array([[.6, .2, .2], [.2, .6, .2], [.2, .2, .6]])
    >>> smoothed_shares(np.array([60, 20, 20]), P, np.arange(3))[0].round(2).tolist()
    [0.51, 0.31, 0.18]
    """
    reported = np.flatnonzero(counts)
    n = int(counts.sum())
    f, P = counts[reported] / n, matrix[:, reported]
    pi, previous = np.full(len(P), 1 / len(P)), -np.inf
    for _ in range(MAX_SMOOTHING_ROUNDS):
        report_shares = pi @ P
        likelihood = n * float(f @ np.log(report_shares))
        if abs(likelihood - previous) < MIN_CHANGE:
            return pi, True
        previous = likelihood
        pi = pi * (P @ (f / report_shares))
        pi[along] = smooth(pi[along])
        pi /= pi.sum()
    return pi, False


def smooth(shares: Floats) -> Floats:
    """Replace each share by 1/4, 1/2 and 1/4 of its left neighbor, itself and its right one.

    >>> smooth(np.array([0.0, 1.0, 0.0, 0.0])).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    padded = np.concatenate([shares[:1], shares, shares[-1:]])
    return np.asarray((padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4)


MAX_TABLE_CELLS = 10**6
"""Maximum number of cells of the most likely table."""

SWEEP = 6
"""Time of a pass over a table without a matrix product, in weights per cell."""


def most_likely_table(
    counts: Integers, channels: Sequence[CodeChannel]
) -> tuple[Floats, float, bool]:
    """Return the joint shares that maximize sum c log lambda, the duality gap, and convergence.

    lambda = P through every channel along its axis. One step (iterative Bayesian update) is P <- P
    D, D = the channels' matrices applied backwards to f/lambda. Pairs of steps are squarem_step,
    and by duality log L(best) - log L(P) <= n (max D - 1), as in `most_likely_mixture`. The search
    ends at a gap of 1e-8 per report, and has converged if the gap is at most 1e-6. Raises
    ChannelError for reports of sets, CountsError above 10^6 cells. Sources: Agrawal and Aggarwal
    2001; Varadhan and Roland 2008.
    """
    for channel in channels:
        if isinstance(channel, SubsetSelection):
            require_two_options(channel)
            if channel.d > 1:
                raise ChannelError(
                    f"d = {channel.d}: counts per option do not determine the likelihood of "
                    'reported sets; use method="linear"'
                )
    shape = tuple(channel.truths for channel in channels)
    cells = math.prod(shape)
    if cells > MAX_TABLE_CELLS:
        raise CountsError(
            f"a table of {cells:,} cells is above the maximum of {MAX_TABLE_CELLS:,} for the most "
            'likely table; use method="linear" or fewer questions'
        )
    f = counts / counts.sum()
    P = np.full(shape, 1 / cells)
    gap = math.inf
    for _ in range(min(MAX_ROUNDS, MAX_WORK // (6 * _weights(channels, cells)) + 1)):
        once, gap, _ = _table_step(P, f, channels)
        if gap <= GOAL:
            break
        twice, _, likelihood = _table_step(once, f, channels)
        further = squarem_step(P, once, twice)
        # Compare the step from `further` with the step from `once`.
        ahead, _, ahead_likelihood = _table_step(further, f, channels)
        P = ahead if ahead_likelihood >= likelihood else twice
    return P, max(gap, 0.0), gap <= TOLERANCE


def _table_step(
    P: Floats, f: Floats, channels: Sequence[CodeChannel]
) -> tuple[Floats, float, float]:
    """Return the next table, and the duality gap and the log likelihood per report at P."""
    shares = report_shares(P, channels)
    # Reports that never occurred have f = 0 and add nothing.
    gradient = f / shares
    for channel in channels:
        gradient = _through(gradient, channel, 1)
    following = P * gradient
    return (
        following / following.sum(),
        float(gradient.max()) - 1,
        float(np.sum(f * np.log(shares))),
    )


def report_shares(P: Floats, channels: Sequence[CodeChannel]) -> Floats:
    """Return joint shares of reports, lambda, from joint shares of truths, shape (k1, k2, ...).

    >>> from survey.mechanism import grr
    >>> report_shares(np.array([[1.0, 0], [0, 0]]), [grr(2, "3/4"), grr(2, "3/4")]).tolist()
    [[0.5625, 0.1875], [0.1875, 0.0625]]
    """
    for channel in channels:
        P = _through(P, channel, 0)
    return P


def _through(table: Floats, channel: CodeChannel, contracted: int) -> Floats:
    """Apply the channel's matrix along the first axis, and move that axis to the end."""
    if isinstance(channel, SubsetSelection):
        # M = q J + (p - q) I needs no matrix product.
        mixed = (channel.p - channel.q) * table + channel.q * table.sum(axis=0)
        return np.moveaxis(mixed, 0, -1)
    return np.tensordot(table, channel.matrix, axes=(0, contracted))


def _weights(channels: Sequence[CodeChannel], cells: int) -> int:
    """Return about how many weights all channels apply to a table, as a unit of time."""
    return sum(
        SWEEP * cells if isinstance(channel, SubsetSelection) else cells * channel.reports
        for channel in channels
    )
