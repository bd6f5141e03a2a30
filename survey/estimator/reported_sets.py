"""The most likely shares of options that are reported in sets, and when counts can tell them.

A report is a set R of d of the k options, P(R | truth i) = T/W if R holds i, else L/W, so

    P(R) = (L + (T-L) sum_{i in R} pi_i) / W.

The likelihood depends on which options came together. Supports, counts per option, determine it
in two cases only: d = 1, where the set is the option, and d = k-1, where it is all but one.
Source: Ye and Barg 2018 (the channel).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import CountsError
from survey.estimator.expectation import most_likely_mixture
from survey.estimator.likelihood import most_likely_shares, require_two_options
from survey.mechanism import SubsetSelection

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Members = NDArray[np.bool_]


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
