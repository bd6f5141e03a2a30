"""How the counts of any channel are read: a number for each report whose mean is the share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError
from survey.estimator.core.arguments import (
    aligned,
    check_at_most,
    checked_n,
    reports_from,
    whole_counts,
)
from survey.estimator.core.intervals import Chances, wilson_hull
from survey.estimator.core.likelihood import require_two_options
from survey.estimator.core.moments import SecondMoments, binary_moments
from survey.estimator.core.pseudo_values import expected, left_inverse
from survey.estimator.shares.weight_table import score_interval
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class Tally:
    """Reports of each class (weight class, stratum, cell), by what is read from them.

    reports   shape (classes, kinds, options or 1): how many reports of this kind
    n         reports of each class, shape (classes,)
    """

    reports: Integers
    n: Integers


@dataclass(frozen=True, eq=False)
class Reading:
    """Values g of reports with E[g_j | truth i] = [i = j]: the mean of g_j is the share of j.

    values    g, shape (kinds of report, k). A channel known by p and q has two kinds for each
              option: it is not supported, -q/(p-q), or it is, (1-q)/(p-q)
    chances   p and q of each option where it has these, else none
    moments   second moments of g, for the interval
    """

    values: Floats
    chances: tuple[Chances, ...]
    moments: SecondMoments

    @property
    def k(self) -> int:
        """How many shares are estimated."""
        return int(self.values.shape[1])

    def interval(
        self, estimate: Floats, n_effective: Floats, level: float
    ) -> tuple[Floats, Floats]:
        """Wilson's hull on f = q + (p-q) pi of n_effective reports; the score interval of tables.

        Both ends in [0, 1], shape (k,), never of zero width.
        """
        if not self.chances:
            # The formulas of both intervals hold for any real n and count.
            return score_interval(estimate, cast(int, n_effective), self.moments, level)
        ends = [_hull(*one, level) for one in zip(estimate, n_effective, self.chances, strict=True)]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def reading(channel: AnyChannel) -> Reading:
    """The reading of a channel; ChannelError where shares cannot be learned from it."""
    if isinstance(channel, WeightTable):
        if channel.truths == channel.reports == 2:
            P = channel.matrix
            return _binary(np.diag(P), np.diag(P[::-1]))
        G = left_inverse(channel)
        squares = np.stack([expected(channel, g**2) for g in G])
        own = np.diag(squares).copy()
        np.fill_diagonal(squares, 0.0)
        return Reading(G.T, (), SecondMoments(own, squares.max(axis=1)))
    if isinstance(channel, SubsetSelection):
        require_two_options(channel)
    k = channel.m if isinstance(channel, BitVector) else channel.k
    return _binary(np.full(k, channel.p), np.full(k, channel.q))


def tally(counts: ArrayLike, channel: AnyChannel, n: ArrayLike | None = None) -> Tally:
    """Counts of shape (classes, counted), each row as `channel.count` makes it, checked.

    `n`, shape (classes,), is needed for bit vectors without sampled options only. A class without
    reports is a row of zeros.
    """
    table = aligned(counts, axes=(-1,)) if np.ndim(counts) == 2 else np.asarray(counts)
    if table.ndim != 2:
        raise CountsError(f"counts of shape {table.shape} must have a row for each class")
    flat = whole_counts(table.ravel(), table.size, "one row per class")
    c: Integers = np.reshape(flat, (len(table), -1)) if table.size else flat.reshape(0, 0)
    if c.shape[1] != channel.counted or not len(c):
        raise CountsError(f"counts of shape {c.shape} must have {channel.counted} columns")
    stated = None if n is None else whole_counts(n, len(c), "reports of each class")
    return _bit_tally(c, channel, stated) if isinstance(channel, BitVector) else _tally(
        c, channel, stated
    )  # fmt: skip


def _tally(c: Integers, channel: SubsetSelection | WeightTable, stated: Integers | None) -> Tally:
    each = channel.d if isinstance(channel, SubsetSelection) else 1
    n = _reports(c.sum(axis=1), each, stated)
    if isinstance(channel, WeightTable) and not channel.truths == channel.reports == 2:
        return Tally(c[:, :, None], n)
    return _two_kinds(c, np.broadcast_to(n[:, None], c.shape), n)


def _bit_tally(c: Integers, channel: BitVector, stated: Integers | None) -> Tally:
    if channel.sampled < channel.m:
        asked, ones = c[:, : channel.m], c[:, channel.m :]
        return _two_kinds(ones, asked, _reports(asked.sum(axis=1), channel.sampled, stated))
    if stated is None:
        raise CountsError("counts of ones do not tell n: state the number of reports of each class")
    checked_n(int(stated.sum()), None)
    return _two_kinds(c, np.broadcast_to(stated[:, None], c.shape), stated)


def _reports(totals: Integers, each: int, stated: Integers | None) -> Integers:
    """Reports of each class; at least one in all."""
    n = np.array([reports_from(int(t), each, None) if t else 0 for t in totals], dtype=np.int64)
    checked_n(int(n.sum()), None if stated is None else int(stated.sum()))
    if stated is not None and (n != stated).any():
        place = int(np.argmax(n != stated))
        raise CountsError(f"n[{place}] = {stated[place]} but its counts are those of {n[place]}")
    return n


def _two_kinds(ones: Integers, asked: Integers, n: Integers) -> Tally:
    for support, of in zip(ones, asked, strict=True):
        check_at_most(support, of, "reports support it")
    return Tally(np.stack([asked - ones, ones], axis=1), n)


def _binary(p: Floats, q: Floats) -> Reading:
    chances = tuple(Chances(*one) for one in zip(p.tolist(), q.tolist(), strict=True))
    return Reading(np.stack([-q, 1 - q]) / (p - q), chances, binary_moments(p, q))


def _hull(
    estimate: float, n_effective: float, chances: Chances, level: float
) -> tuple[float, float]:
    p, q = chances
    f = np.clip(np.array([q + (p - q) * estimate]), 0.0, 1.0)
    least, most = sorted((p, q))
    # The hull's formula holds for any real n and count.
    count, n = cast(Integers, f * n_effective), cast(int, n_effective)
    ends = np.concatenate(wilson_hull(count, n, least, most, level))
    low, high = np.clip(np.sort((ends - q) / (p - q)), 0.0, 1.0)
    return float(low), float(high)
