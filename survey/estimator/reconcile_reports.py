"""Cross-tables of true answers with known margins, from the reports to several questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from survey.errors import ChannelError, CountsError
from survey.estimator.arguments import checked_arguments
from survey.estimator.axes import along, axis
from survey.estimator.counts import checked_level, reports_from, whole_counts
from survey.estimator.joint_expectation import reported
from survey.estimator.proportional_fitting import Margins, checked_margins
from survey.estimator.reconcile import Moved, Reconciled, error_of, moved_to
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_TABLE = 2_000
"""Cells of a table whose covariance, of their number squared, is still computed (32 MB)."""

ROUNDS = 2
"""How often the errors of a table are computed from the table that they lead to."""


@checked_arguments
def joint_shares(
    joint_counts: ArrayLike, channels: Sequence[SubsetSelection | WeightTable]
) -> tuple[Floats, Floats]:
    """Linear joint shares of the truths of several questions, and their covariance.

    `joint_counts` has shape (reports of question 1, of question 2, ...). Estimates have the shape
    of the truths; the covariance is square in their number, C order:
    P = (G_1 x G_2 x ...) f, cov = (G diag(f) G' - P P')/n, the inverses applied along each axis.
    In the covariance one report more, spread over all cells, keeps a combination that nobody
    reported from seeming certain.

    >>> from survey.mechanism import grr
    >>> P, cov = joint_shares([[40, 20], [15, 25]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> P.round(2).tolist(), np.sqrt(np.diag(cov)).round(3).tolist()
    ([[0.7, 0.0], [-0.1, 0.4]], [0.132, 0.118, 0.106, 0.115])
    """
    inverses = [_inverse(channel) for channel in channels]
    counts = _checked_table(joint_counts, inverses)
    n = int(counts.sum())
    seen = (counts + 1 / counts.size) / (n + 1)
    return along(counts / n, inverses), _covariance(seen, inverses) / n


@checked_arguments
def reconciled_crosstab(
    joint_counts: ArrayLike,
    channels: Sequence[SubsetSelection | WeightTable],
    margins: Margins,
    *,
    level: float = 0.95,
) -> Reconciled:
    """Joint shares of the truths of several questions that have known margins, from reports.

    `joint_counts` and `channels` as for `joint_shares`, `margins` as for `reconciled` but in any
    unit: shares, per cent, people. The table moves in the metric of the errors that the shown
    table would have with one report more for every cell: weights hardly depend on which rare
    combination happened to be reported. Errors are those of this estimate at the shown table,
    mixed with z^2 reports that are spread over all cells.

    Intervals are score intervals. The estimate of a cell is a mean over reports of w(report); if
    the cell's share is t, the most likely table with these margins is, in the metric of the
    errors, P(t) = P + (t - P_cell) K_cell/K_cell,cell with K the covariance and P the table that
    is shown; the ends are the t with n (x - t)^2 = z^2 Var w at the reports that P(t) gives,
    which is a quadratic in t. For the coverage see `tests.benchmarks.coverage_tables`.

    Raises what `joint_shares` and `reconciled` raise.

    >>> from survey.mechanism import grr
    >>> channels = [grr(2, "3/4"), grr(2, "3/4")]
    >>> found = reconciled_crosstab([[40, 20], [15, 25]], channels, [[.6, .4], [.5, .5]])
    >>> found.estimate.round(3).tolist(), found.conf_low.round(3).tolist()
    ([[0.594, 0.006], [-0.094, 0.494]], [[0.305, 0.1], [0.0, 0.205]])
    """
    z2 = float(ndtri((1 + checked_level(level)) / 2)) ** 2
    inverses = [_inverse(channel) for channel in channels]
    counts = _checked_table(joint_counts, inverses)
    n = int(counts.sum())
    linear = along(counts / n, inverses)
    known = [m.shares() for m in checked_margins(margins, linear.shape)]
    flat = reported(np.full(linear.shape, 1 / linear.size), channels)
    shares = counts / n
    for _ in range(ROUNDS):
        drawn = (n * shares + linear.size * flat) / (n + linear.size)
        V = _covariance(drawn, inverses) / n
        moved = moved_to(known, linear, V)
        shares = reported(moved.display, channels)
    # w(report), the coefficient of each report in each cell.
    w = _batched(moved.kept, linear.shape, [G.T for G in inverses])
    drawn = ((n * shares + z2 * flat) / (n + z2)).ravel()
    middle = w @ drawn
    K = ((w * drawn) @ w.T - np.outer(middle, middle)) / n
    error = error_of(K, V)
    found = replace(moved, covariance=K, error=error.reshape(linear.shape))
    # P(t)'s slope in t; none where the margins determine a cell.
    slope = np.divide(K, np.diag(K)[:, None], out=np.zeros_like(K), where=error[:, None] > 0)
    turned = _batched(slope, linear.shape, [channel.matrix for channel in channels])
    return found.result(*_score_ends(found, w, shares.ravel(), turned, n, z2), level)


def _score_ends(
    found: Moved, w: Floats, shares: Floats, turned: Floats, n: int, z2: float
) -> tuple[Floats, Floats]:
    """The t with n (x - t)^2 = z^2 Var w; w and turned have shape (cells, reports)."""
    at = found.display.ravel()
    # Var w = a + b u + c u^2 at t = at + u, where reports have the shares f + u turned.
    first, slope = w @ shares, (w * turned).sum(axis=1)
    a = w**2 @ shares - first**2
    b = (w**2 * turned).sum(axis=1) - 2 * first * slope
    c = -(slope**2)
    # (n - z^2 c) u^2 - (2 n e + z^2 b) u + n e^2 - z^2 a = 0, e = x - at, x the possible one
    e = found.inside.ravel() - at
    whole, half = n - z2 * c, n * e + z2 * b / 2
    square = half**2 - whole * (n * e**2 - z2 * a)
    # P(t) may leave what is possible; then the variance at the table shown has to do.
    plain = z2 * np.maximum(a, 0.0) * n
    whole, half = np.where(square > 0, whole, n), np.where(square > 0, half, n * e)
    root = np.sqrt(np.where(square > 0, square, plain))
    known = found.error.ravel() == 0
    low, high = (
        np.where(known, at + e, at + (half + side * root) / whole).reshape(found.x.shape)
        for side in (-1, 1)
    )
    return low, high


def _batched(rows: Floats, shape: tuple[int, ...], maps: Sequence[Floats]) -> Floats:
    """rows[i], a table of this shape, through maps[0].T, maps[1].T, ...; shape (rows, reports)."""
    return along(rows.T.reshape(*shape, -1), [m.T for m in maps]).reshape(len(rows), -1)


def _checked_table(joint_counts: ArrayLike, inverses: Sequence[Floats]) -> Integers:
    c = np.asarray(joint_counts)
    shape = tuple(G.shape[1] for G in inverses)
    if c.shape != shape:
        raise CountsError(f"joint counts of shape {c.shape} must have shape {shape}")
    counts = whole_counts(c.ravel(), c.size, "one per combination of reports").reshape(shape)
    reports_from(int(counts.sum()), 1, None)
    cells = int(np.prod([len(G) for G in inverses]))
    if cells > LARGEST_TABLE:
        raise CountsError(f"a table of {cells} cells: the largest is {LARGEST_TABLE:,}")
    return counts


def _covariance(shares: Floats, inverses: Sequence[Floats]) -> Floats:
    """G diag(f) G' - P P' for the inverses G = G_1 x G_2 ... and P = G f, in C order."""
    truths = [len(G) for G in inverses]
    # sum_y f_y g_ty g_uy: the rows G_t x G_u, along each axis, applied to f.
    pairs = [np.einsum("tr,ur->tur", G, G).reshape(-1, G.shape[1]) for G in inverses]
    second = along(shares, pairs).reshape([k for k in truths for _ in (0, 1)])
    order = [*range(0, 2 * len(truths), 2), *range(1, 2 * len(truths), 2)]
    middle = along(shares, inverses).ravel()
    square = second.transpose(order).reshape(middle.size, middle.size)
    return np.asarray(square - np.outer(middle, middle))


def _inverse(channel: SubsetSelection | WeightTable) -> Floats:
    """G with E[G_t(report) | truth u] = [t = u], for one answer at a time."""
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        raise ChannelError(f"d = {channel.d}: joint shares need one report at a time, d = 1")
    return axis(channel).means
