"""The most likely shares given the counts, among those that are shares at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism import SubsetSelection

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
