"""The linear estimator of any channel, and checked counts of reports by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError
from survey.estimator.core.arguments import (
    check_at_most,
    checked_n,
    reports_from,
    whole_counts,
)
from survey.estimator.core.debiasing import SecondMoments, binary_moments, left_inverse
from survey.estimator.core.intervals import Chances, lattice_shift, wilson_hull
from survey.estimator.core.maximum_likelihood import require_two_options
from survey.estimator.shares.proportions import score_interval, second_moments
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Floats, Integers


@dataclass(frozen=True, eq=False)
class Tally:
    """Reports of each class (weight class, stratum, cell), by kind of report.

    reports   shape (classes, kinds, options or 1): number of reports of this kind
    n         reports of each class, shape (classes,)
    """

    reports: Integers
    n: Integers


@dataclass(frozen=True, eq=False)
class LinearEstimator:
    """Values g of reports with E[g_j | truth i] = [i = j]: the mean of g_j is the share of j.

    values    g, shape (kinds of report, k). A channel given by p and q has two kinds for each
              option: not supported, -q/(p-q), and supported, (1-q)/(p-q)
    chances   p and q of each option; empty for other channels
    moments   second moments of g, for the interval
    """

    values: Floats
    chances: tuple[Chances, ...]
    moments: SecondMoments

    @property
    def k(self) -> int:
        """Return the number of shares."""
        return int(self.values.shape[1])

    def interval(
        self, estimate: Floats, n_effective: Floats, level: float, shift: Floats
    ) -> tuple[Floats, Floats]:
        """Return Wilson's hull on f = q + (p-q) pi, or the score interval of tables.

        For each end, the estimate moves outwards by `shift`. Both ends are in [0, 1], shape (k,),
        and never equal.
        """
        if not self.chances:
            # The formulas of both intervals are valid for any real n and count.
            return score_interval(estimate, cast(int, n_effective), self.moments, level, shift)
        options = list(zip(estimate, shift, n_effective, self.chances, strict=True))
        low, high = (
            np.array([_hull(x + side * s, n, p_q, level)[end] for x, s, n, p_q in options])
            for end, side in enumerate((-1, 1))
        )
        return low, high

    def shift(self, share: Floats, reports: Floats, level: float) -> Floats:
        """Return the `lattice_shift` of sums of `share` of a report, shape (k,).

        `share` has shape (groups, options or 1): the part that one report of each group has in the
        estimate. `reports` has shape (groups, kinds, options or 1).

        Of each kind of report but a group's most frequent one, one report less is counted: at the
        end of the interval a kind that was seen once may have no report, and then does not smooth
        the sum of the other groups.
        """
        n = reports.sum(axis=1, keepdims=True)
        mode = np.arange(reports.shape[1])[:, None] == reports.argmax(axis=1)[:, None]
        others = np.where(mode, 0.0, np.maximum(reports - 1, 0.0))
        counted = np.where(mode, n - others.sum(axis=1, keepdims=True), others)
        shares = np.divide(counted, n, out=np.zeros(reports.shape), where=n > 0)
        # Options first, then groups, then kinds of reports.
        values = np.moveaxis(share[:, None, :] * self.values, 2, 0)
        return lattice_shift(values, np.moveaxis(shares, 2, 0), n[:, 0].T, level)


def linear_estimator(channel: AnyChannel) -> LinearEstimator:
    """Return the linear estimator of a channel; ChannelError if shares cannot be estimated."""
    if isinstance(channel, WeightTable):
        if channel.truths == channel.reports == 2:
            P = channel.matrix
            return _binary(np.diag(P), np.diag(P[::-1]))
        G = left_inverse(channel)
        return LinearEstimator(G.T, (), second_moments(channel, G, range(channel.truths)))
    if isinstance(channel, SubsetSelection):
        require_two_options(channel)
    k = channel.m if isinstance(channel, TickChannel) else channel.k
    return _binary(np.full(k, channel.p), np.full(k, channel.q))


def tally(counts: ArrayLike, channel: AnyChannel, n: ArrayLike | None = None) -> Tally:
    """Check counts of shape (classes, counts), each row as returned by `channel.count`.

    `n`, shape (classes,), is needed only for bit vectors without sampled options. A class without
    reports is a row of zeros. The columns of labelled counts are put in the order of their codes.
    """
    table = np.asarray(counts)
    if table.ndim != 2:
        raise CountsError(f"counts of shape {table.shape} must have a row for each class")
    flat = whole_counts(table.ravel(), table.size, "one row per class")
    c: Integers = np.reshape(flat, (len(table), -1)) if table.size else flat.reshape(0, 0)
    if c.shape[1] != channel.counted or not len(c):
        raise CountsError(f"counts of shape {c.shape} must have {channel.counted} columns")
    stated = None if n is None else whole_counts(n, len(c), "reports of each class")
    if isinstance(channel, TickChannel):
        return _bit_tally(c, channel, stated)
    per_report = channel.d if isinstance(channel, SubsetSelection) else 1
    n = _reports(c.sum(axis=1), per_report, stated)
    if isinstance(channel, WeightTable) and not channel.truths == channel.reports == 2:
        return Tally(c[:, :, None], n)
    return _two_kinds(c, np.broadcast_to(n[:, None], c.shape), n)


def _bit_tally(c: Integers, channel: TickChannel, stated: Integers | None) -> Tally:
    if channel.is_sampled:
        times_asked, ones = c[:, : channel.m], c[:, channel.m :]
        return _two_kinds(
            ones, times_asked, _reports(times_asked.sum(axis=1), channel.sampled, stated)
        )
    if stated is None:
        raise CountsError(
            "counts of ones do not determine n: state the number of reports of each class"
        )
    checked_n(int(stated.sum()), None)
    return _two_kinds(c, np.broadcast_to(stated[:, None], c.shape), stated)


def _reports(totals: Integers, per_report: int, stated: Integers | None) -> Integers:
    """Return the reports of each class; together at least one."""
    n = np.array(
        [reports_from(int(total), per_report, None) if total else 0 for total in totals],
        dtype=np.int64,
    )
    checked_n(int(n.sum()), None if stated is None else int(stated.sum()))
    if stated is not None and (n != stated).any():
        row = int(np.argmax(n != stated))
        raise CountsError(f"n[{row}] = {stated[row]}, but its counts come from {n[row]} reports")
    return n


def _two_kinds(ones: Integers, times_asked: Integers, n: Integers) -> Tally:
    for support, row_asked in zip(ones, times_asked, strict=True):
        check_at_most(support, row_asked, "reports support it")
    return Tally(np.stack([times_asked - ones, ones], axis=1), n)


def _binary(p: Floats, q: Floats) -> LinearEstimator:
    chances = tuple(Chances(*pair) for pair in zip(p.tolist(), q.tolist(), strict=True))
    return LinearEstimator(np.stack([-q, 1 - q]) / (p - q), chances, binary_moments(p, q))


def _hull(
    estimate: float, n_effective: float, chances: Chances, level: float
) -> tuple[float, float]:
    p, q = chances
    f = np.clip(np.array([q + (p - q) * estimate]), 0.0, 1.0)
    floor, ceiling = sorted((p, q))
    # The hull's formula is valid for any real n and count.
    count, n = cast(Integers, f * n_effective), cast(int, n_effective)
    ends = np.concatenate(wilson_hull(count, n, floor, ceiling, level))
    low, high = np.clip(np.sort((ends - q) / (p - q)), 0.0, 1.0)
    return float(low), float(high)
