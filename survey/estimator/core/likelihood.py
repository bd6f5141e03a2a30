"""Most likely shares: closed forms, expectation maximization, and projections on the simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import checked_arguments
from survey.mechanism import SubsetSelection
from survey.mechanism.arrays import Booleans, Floats, Integers


@checked_arguments
def norm_sub(estimate: ArrayLike) -> Floats:
    """The shares nearest to an estimate, by least squares: shape (k,), none negative, sum 1.

    max(pi_j - delta, 0) with the delta that makes the sum 1 ("norm-sub"). For display where there
    is no mle, as for reported sets (d > 1). Not a default: near the edges it is biased towards the
    inside, as every estimate that is a share must be, and its error is no longer known; what is
    added, differenced or exported is the linear estimate.
    Source: Wang, Lopuhaa-Zwakenberg, Li, Skoric, Li 2020, doi 10.14722/ndss.2020.24157.

    Raises ValueError unless all numbers are finite and there is at least one.

    >>> norm_sub([0.7, 0.4, -0.1]).round(4).tolist()
    [0.65, 0.35, 0.0]
    """
    pi = np.asarray(estimate, dtype=np.float64)
    if pi.ndim != 1 or not pi.size or not np.isfinite(pi).all():
        raise ValueError("an estimate must be finite numbers of shape (k,), k at least 1")
    largest_first: Floats = np.sort(pi)[::-1]
    # With the s largest kept, delta = (their sum - 1)/s.
    delta = (np.cumsum(largest_first) - 1) / np.arange(1, pi.size + 1)
    kept = max(int(np.count_nonzero(largest_first > delta)), 1)
    shares = np.asarray(np.maximum(pi - delta[kept - 1], 0.0))
    total = float(shares.sum())
    # Rounding takes the sum away where numbers are huge.
    return np.asarray(shares / total if total > 0 else np.eye(pi.size)[np.argmax(pi)])


def most_likely_shares(counts: Integers, channel: SubsetSelection) -> Floats:
    """Constrained maximum-likelihood shares: shape (k,), none negative, sum 1.

    For generalized randomized response, in closed form: maximizing sum c_j log lambda_j with
    lambda_j = q + (p-q) pi_j >= q and sum lambda = 1 gives lambda_j = max(q, c_j/tau), tau such
    that the sum is 1 (Karush, Kuhn, Tucker). It is where expectation maximization ends.
    Biased towards the inside of the simplex near its edges: for display, not for arithmetic.
    For d = 1 only: counts per option do not determine the likelihood of reported sets.

    >>> from survey.mechanism import grr
    >>> most_likely_shares(np.array([80, 15, 5]), grr(3, "3/4")).round(4).tolist()
    [0.9789, 0.0211, 0.0]
    """
    if channel.p > channel.q:
        return _rescaled_above_floor(counts, channel.p, channel.q)
    # Two options, p < q: reading each report as the other option restores p > q.
    return _rescaled_above_floor(counts[::-1], channel.q, channel.p)


def require_two_options(channel: SubsetSelection) -> None:
    """Refuse p < q for more than two options, which no design of the field has."""
    if channel.p < channel.q and channel.k > 2:
        raise ChannelError(
            f"T = {channel.T} below L = {channel.L} is read for two options only; "
            f"with k = {channel.k} a channel needs T above L"
        )


def _rescaled_above_floor(counts: Integers, p: float, q: float) -> Floats:
    """pi_j = (max(q, c_j/tau) - q) / (p-q), with p + (k-1)q = 1."""
    largest_first = np.sort(counts)[::-1]
    # The s largest stay above q and share what the others, at q each, leave: p + (s-1) q.
    left = p + q * np.arange(counts.size)
    tau = np.cumsum(largest_first) / left
    stay = np.count_nonzero(largest_first > q * tau)
    shares = np.maximum(counts / tau[stay - 1] - q, 0.0) / (p - q)
    return np.asarray(shares / shares.sum())


TOLERANCE = 1e-6
"""The likelihood found is within this, per report and in natural logs, of the largest there is."""

GOAL = 1e-8
"""It is searched until it is within this."""

MAX_ROUNDS = 20_000
"""Rounds after which a search gives up: of three steps each where it goes by expectation
maximization, where hundreds are usual; of one where it goes by Newton's, where 7 to 16 are."""

LARGEST_WORK = 2 * 10**10
"""Weights looked at after which expectation maximization gives up, so that large tables end too."""

MOST_PRODUCTS = 10**11
"""The same for Newton's steps, each of which multiplies truths x truths x reports."""

MOST_TRUTHS = 3_000
"""More are not tried: the second derivatives of so many take 72 MB."""

CENTRING = 0.1
"""Part of the mean of pi s that each Newton step aims at."""

SHORT = 0.99
"""Part of the way to the nearest wall that a step may go."""


def most_likely_mixture(counts: Integers, matrix: Floats) -> Floats:
    """Shares that maximize sum_j c_j log lambda_j, lambda = pi P; shape (truths,), sum 1.

    The step of expectation maximization, pi_i <- pi_i D_i with D_i = sum_j f_j P(j|i)/lambda_j,
    rests where every D_i <= 1, and = 1 where pi_i > 0. With the slack s = 1 - D that is
    pi, s >= 0, pi s = 0, which Newton's method solves for pi s = mu, mu falling to 0 (primal-dual
    interior point): with H = P diag(f/lambda^2) P'

        (H + diag(s/pi)) dpi = mu/pi - (1 - D),    ds = 1 - D - s + H dpi.

    The same place as by expectation maximization, in about ten rounds instead of thousands. The
    likelihood is concave, and by duality log L(best) - log L(pi) <= n (max_i D_i - 1): it ends
    when that gap is at most `GOAL`. Where it is above `TOLERANCE` when time is up the result is
    nan, never a wrong number.
    Where the rows of P are not independent the maximum may have several places; this is one.
    Sources: Agrawal and Aggarwal 2001 (expectation maximization); Koenker and Mizera 2014 (by
    interior points); Wright 1997 (primal-dual steps).

    >>> most_likely_mixture(np.array([60, 40]), np.array([[.75, .25], [.25, .75]])).round(4)
    array([0.7, 0.3])
    """
    seen = np.flatnonzero(counts)
    f, P = counts[seen] / counts.sum(), matrix[:, seen]
    pi = np.full(len(P), 1 / len(P))
    slack = np.maximum(1 - P @ (f / (pi @ P)), CENTRING)
    found, least = pi, np.inf
    for _ in range(_rounds(P)):
        shares = pi @ P
        D = P @ (f / shares)
        # Of pi scaled to the sum 1.
        gap = float(D.max() * pi.sum()) - 1
        if gap < least:
            found, least = pi / pi.sum(), gap
        if gap <= GOAL:
            break
        try:
            pi, slack = _newton(pi, slack, D, P * (np.sqrt(f) / shares))
        except np.linalg.LinAlgError:
            break
    return found if least <= TOLERANCE else np.full(len(P), np.nan)


def _rounds(P: Floats) -> int:
    """How many rounds a table of this size may take."""
    if len(P) > MOST_TRUTHS:
        return 0
    return min(MAX_ROUNDS, MOST_PRODUCTS // (P.size * len(P)) + 1)


def _newton(pi: Floats, slack: Floats, D: Floats, Q: Floats) -> tuple[Floats, Floats]:
    """pi and s after one step, H = Q Q'; LinAlgError where rounding leaves nothing to solve."""
    from scipy.linalg import cho_factor, cho_solve

    mu = CENTRING * float(pi @ slack) / pi.size
    H = Q @ Q.T
    factor = cho_factor(H + np.diag(slack / pi), lower=True, check_finite=False)
    dpi = cho_solve(factor, mu / pi - (1 - D), check_finite=False)
    ds = 1 - D - slack + H @ dpi
    return pi + _reach(pi, dpi) * dpi, slack + _reach(slack, ds) * ds


def _reach(at: Floats, step: Floats) -> float:
    """The part of a step that keeps all of `at` above 0."""
    falls = step < 0
    return min(1.0, SHORT * float(np.min(at[falls] / -step[falls], initial=np.inf)))


def extrapolated(pi: Floats, once: Floats, twice: Floats) -> Floats:
    """pi - 2 s r + s^2 v with r = F(pi) - pi, v = F(F(pi)) - F(pi) - r, s = -|r|/|v|."""
    r = once - pi
    v = twice - once - r
    curve = float(np.linalg.norm(v))
    if curve == 0:
        return twice
    s = min(-float(np.linalg.norm(r)) / curve, -1.0)
    further = pi - 2 * s * r + s**2 * v
    # A share at 0 could never grow again.
    further = np.where(further > 0, further, twice)
    return np.asarray(further / further.sum())


Members = Booleans


def supports_tell_all(channel: SubsetSelection) -> bool:
    """Whether counts per option determine the likelihood of the reported sets."""
    return channel.d in (1, channel.k - 1)


def most_likely_of_supports(counts: Integers, n: int, channel: SubsetSelection) -> Floats:
    """The most likely shares from supports of n reports, shape (k,); nan where they do not tell.

    >>> supports = np.array([80, 70, 50])
    >>> most_likely_of_supports(supports, 100, SubsetSelection(3, 2, 3, 1)).round(4).tolist()
    [0.7, 0.3, 0.0]
    """
    if channel.d == 1:
        return most_likely_shares(counts, channel)
    if channel.d == channel.k - 1:
        return _from_missing(n - counts, channel)
    return np.full(channel.k, np.nan)


def _from_missing(missing: Integers, channel: SubsetSelection) -> Floats:
    """From how often each option is the one that is missing, in closed form.

    lambda_j = P(j is missing) = (T - (T-L) pi_j)/W <= T/W with W = (k-1) T + L. Maximizing
    sum m_j log lambda_j gives lambda_j = min(T/W, m_j/tau), tau such that the sum is 1.
    """
    k, T, L = channel.k, channel.T, channel.L
    most = T / ((k - 1) * T + L)
    largest_first = np.sort(missing)[::-1].astype(np.float64)
    # The s largest are at the ceiling; the others share what that leaves.
    left = 1 - most * np.arange(k)
    rest = np.cumsum(largest_first[::-1])[::-1]
    s = int(np.count_nonzero(largest_first * left > most * rest))
    others = np.arange(k) >= s
    chances = np.full(k, most)
    # None of the others was ever missing: the likelihood is the same however they share.
    parts = largest_first / rest[s] if rest[s] > 0 else np.full(k, 1 / (k - s))
    chances[others] = (left[s] * parts)[others]
    shares = np.empty(k)
    shares[np.argsort(missing)[::-1]] = np.maximum(most - chances, 0.0)
    return np.asarray(shares / shares.sum())


def checked_sets(reports: ArrayLike, channel: SubsetSelection) -> Members:
    """Reported sets as membership of shape (n, k), or CountsError saying what they must be."""
    members = np.asarray(reports)
    if members.ndim != 2 or members.shape[1] != channel.k or not len(members):
        raise CountsError(f"reports of shape {members.shape} must have shape (n, {channel.k})")
    if not np.isin(members, (0, 1)).all():
        raise CountsError("reports must be 0 or 1: whether the set holds the option")
    sizes = members.astype(bool).sum(axis=1)
    if (wrong := sizes != channel.d).any():
        place = int(np.argmax(wrong))
        raise CountsError(f"report {place} holds {sizes[place]} options, not d = {channel.d}")
    return members.astype(bool)


def most_likely_of_sets(members: Members, channel: SubsetSelection) -> Floats:
    """The most likely shares from reported sets, shape (n, k), by expectation maximization.

    Equal sets are counted once, so time depends on how many different sets came. nan where the
    maximum was not found in time (see `most_likely_mixture`).

    >>> pairs = np.array([[1, 1, 0, 0]] * 3 + [[0, 0, 1, 1], [1, 0, 1, 0]], dtype=bool)
    >>> most_likely_of_sets(pairs, SubsetSelection(4, 2, 3, 1)).round(3).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    require_two_options(channel)
    # Bytes instead of rows of bits: sorting them is what takes the time.
    _, first, times = np.unique(
        np.packbits(members, axis=1), axis=0, return_index=True, return_counts=True
    )
    # P(set | truth) but for a factor that is common to all.
    chances = np.where(members[first].T, 1.0, channel.L / channel.T)
    return most_likely_mixture(times.astype(np.int64), chances)


LEAST_CHANGE = 1e-3
"""It ends when a round changes the log likelihood of all reports by less (Li et al. 2020)."""

MAX_SMOOTHING_ROUNDS = 10_000
"""Rounds after which it gives up; tens are usual."""


def smoothed_shares(counts: Integers, matrix: Floats, along: Integers) -> tuple[Floats, bool]:
    """Shares of all truths, shape (truths,), and whether the rounds settled.

    Every round is one of expectation maximization, pi_i <- pi_i sum_j f_j P(j|i)/lambda_j with
    lambda = pi P, and then one of smoothing with the weights 1/4, 1/2, 1/4 along the truths
    `along`, which are in the order of their values; an end counts as its own neighbour, so the
    sum of their shares stays. Truths that are not in `along` ("prefer not to say") are not
    smoothed. The shares are biased towards smooth ones: for display, where the rows of P are so
    much alike that the most likely shares are a few spikes. On a scale of a few options plain
    expectation maximization is better. Source: Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric 2020,
    section 5.5 (EMS); Silverman, Jones, Wilson, Nychka 1990.

    >>> P = np.array([[.6, .2, .2], [.2, .6, .2], [.2, .2, .6]])
    >>> smoothed_shares(np.array([60, 20, 20]), P, np.arange(3))[0].round(2).tolist()
    [0.51, 0.31, 0.18]
    """
    seen = np.flatnonzero(counts)
    n = int(counts.sum())
    f, P = counts[seen] / n, matrix[:, seen]
    pi, before = np.full(len(P), 1 / len(P)), -np.inf
    for _ in range(MAX_SMOOTHING_ROUNDS):
        reported = pi @ P
        level = n * float(f @ np.log(reported))
        if abs(level - before) < LEAST_CHANGE:
            return pi, True
        before = level
        pi = pi * (P @ (f / reported))
        pi[along] = smooth(pi[along])
        pi /= pi.sum()
    return pi, False


def smooth(shares: Floats) -> Floats:
    """Each share replaced by a quarter, a half and a quarter of it and its two neighbours.

    >>> smooth(np.array([0.0, 1.0, 0.0, 0.0])).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    padded = np.concatenate([shares[:1], shares, shares[-1:]])
    return np.asarray((padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4)
