"""Which moments belong to a channel, for shares among those who answered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from survey.errors import NoBaseError
from survey.estimator.answered_moments import (
    SampledBits,
    Squares,
    ThreeKinds,
    of_bits,
    of_patterns,
    of_sets,
    three_kinds,
)
from survey.estimator.proportions import membership
from survey.estimator.pseudo_values import left_inverse
from survey.estimator.shares import Proportions
from survey.estimator.simplex import norm_sub
from survey.mechanism import BitVector, SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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


def _averaged(values: Floats, weights: Floats, among: NDArray[np.bool_]) -> Floats:
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
