"""Tables of estimates that are moved to known margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator.core.arguments import (
    aligned,
    checked_arguments,
    checked_level,
    reports_from,
    whole_counts,
)
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.tables.axes import along, axis, reported
from survey.estimator.tables.proportional_fitting import Margin, Margins, checked_margins, fitted
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers

ROUNDING = 1e-10
"""A variance below this part of what it was before, or of the largest, is rounding."""

FLOOR = 1e-6
"""The displayed table is fitted from at least this share: one of 0 could never grow."""

FLOOR_OF_ERROR = 0.1
"""And from at least this part of a cell's error: fitting from next to nothing takes for ever."""


@dataclass(frozen=True, eq=False, repr=False)
class Reconciled(Result):
    """A table of shares with known margins; arrays have the shape of the table.

    estimate     constrained least squares: has the margins, may be negative
    std_error    of `estimate`; from `reconciled` never above that of the table alone, but for
                 rounding
    conf_low     ends of the interval, within what the margins allow: at least 0 and what two
    conf_high    margins leave no other cell for, at most the smallest margin the cell is in
    display      not negative and with the margins: proportional fitting of what is above 0
    covariance   of the estimates in C order, shape (cells, cells)
    agreement    p-value of the chi-square test that the table before has these margins: where it
                 is tiny, the margins are those of other people, or the answers are not true
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    display: Floats
    covariance: Floats
    agreement: float
    level: float

    @property
    def index_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """One name per question."""
        return tuple(f"question_{place}" for place in range(self.estimate.ndim))


@checked_arguments
def reconciled(
    estimate: ArrayLike, covariance: ArrayLike, margins: Margins, *, level: float = 0.95
) -> Reconciled:
    """Move a table of linear estimates to known margins, as little as its errors allow.

    `estimate` has any shape, unclipped; `covariance` is that of its cells in C order (for
    estimates from reports: `joint_shares`); `margins` are exact, in the unit of the estimates,
    one array per axis or by axes. With the margins written A x = b, the nearest x in the metric
    of the covariance V is
        x* = x - V A' (A V A')^+ (A x - b),    cov* = V - V A' (A V A')^+ A V,
    generalized least squares under constraints: unbiased when the margins are right, and no cell
    has a larger variance than before. Margins are taken as exact: those of another survey are
    not, and errors are then larger than said. The ends are those of a normal distribution with
    the errors given, x* -+ z SE: of cells with a share of .01 in 100 reports of epsilon 4 the
    simulated coverage at .95 was .86. From reports take `reconciled_crosstab`.

    Raises DesignError for margins that contradict each other or that the errors rule out (cells
    without error that do not add up to them), and for what is no covariance.

    >>> from survey.estimator import joint_shares
    >>> from survey.mechanism import grr
    >>> P, cov = joint_shares([[40, 20], [15, 25]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> found = reconciled(P, cov, [[.6, .4], [.5, .5]])
    >>> found.estimate.round(3).tolist(), found.std_error.round(3).tolist()
    ([[0.584, 0.016], [-0.084, 0.484]], [[0.094, 0.094], [0.094, 0.094]])
    """
    z = normal_quantile(checked_level(level))
    table = np.array(estimate, dtype=np.float64)
    if not np.isfinite(table).all():
        raise DesignError("estimates must be finite numbers: a table that was not estimated")
    V = _checked_covariance(covariance, table.size)
    found = moved_to(checked_margins(margins, table.shape), table, V)
    return found.result(found.inside - z * found.error, found.inside + z * found.error, level)


@dataclass(frozen=True, eq=False)
class Moved:
    """A table x with its margins, x = kept table + constants; these allow `least` to `most`."""

    x: Floats
    error: Floats
    covariance: Floats
    agreement: float
    kept: Floats
    display: Floats
    least: Floats
    most: Floats

    @property
    def inside(self) -> Floats:
        """The possible table next to x, around which intervals are made: none has no width."""
        return np.asarray(np.clip(self.x, self.least, self.most))

    def result(self, low: Floats, high: Floats, level: float) -> Reconciled:
        """With these ends, clipped to what is possible."""
        low, high = (np.clip(end, self.least, self.most) for end in (low, high))
        return Reconciled(
            estimate=self.x,
            std_error=self.error,
            conf_low=low,
            conf_high=high,
            display=self.display,
            covariance=self.covariance,
            agreement=self.agreement,
            level=level,
        )


def moved_to(known: list[Margin], table: Floats, V: Floats) -> Moved:
    """The table nearest to this one, in the metric of V, that has the known margins."""
    from scipy.special import chdtrc

    A, b = _constraints(known, table.shape)
    missed = A @ table.ravel() - b
    values, vectors = np.linalg.eigh(A @ V @ A.T)
    free = values > ROUNDING * values[-1]
    along_free = vectors[:, free] / np.sqrt(values[free])
    gain = V @ A.T @ along_free @ along_free.T
    x = table.ravel() - gain @ missed
    _check_met(A @ x, b)
    covariance = V - gain @ A @ V
    x = x.reshape(table.shape)
    error = error_of((covariance + covariance.T) / 2, V).reshape(table.shape)
    floor = np.maximum(FLOOR * float(known[0].totals.sum()), FLOOR_OF_ERROR * error)
    return Moved(
        x=x,
        error=error,
        covariance=(covariance + covariance.T) / 2,
        agreement=float(chdtrc(max(int(free.sum()), 1), np.sum((along_free.T @ missed) ** 2))),
        kept=np.eye(table.size) - gain @ A,
        display=fitted(np.maximum(x, floor), {m.axes: m.totals for m in known}),
        least=_least(known, x.shape),
        most=reduce(
            np.minimum, [np.broadcast_to(m.spread(m.totals, x.ndim), x.shape) for m in known]
        ),
    )


def _least(known: list[Margin], shape: tuple[int, ...]) -> Floats:
    """Cells that are in both categories of two margins: at least m_a + m_b - total (Frechet)."""
    total = float(known[0].totals.sum())
    least = np.zeros(shape)
    for one, other in combinations(known, 2):
        if not set(one.axes) & set(other.axes):
            both = one.spread(one.totals, len(shape)) + other.spread(other.totals, len(shape))
            least = np.maximum(least, both - total)
    return np.where(least > ROUNDING * total, least, 0.0)


def error_of(covariance: Floats, before: Floats) -> Floats:
    """Standard errors of cells; 0 of those that the margins determine, but for rounding."""
    variance = np.diag(covariance)
    return np.asarray(np.sqrt(np.where(variance > ROUNDING * np.diag(before), variance, 0.0)))


def _checked_covariance(covariance: ArrayLike, cells: int) -> Floats:
    V = np.array(covariance, dtype=np.float64)
    if V.shape != (cells, cells):
        raise DesignError(f"a covariance of shape {V.shape} for {cells} cells")
    scale = float(np.abs(V).max())
    if not np.isfinite(scale) or np.abs(V - V.T).max() > 1e-8 * scale:
        raise DesignError("a covariance must be finite and symmetric")
    if np.linalg.eigvalsh(V)[0] < -1e-8 * scale:
        raise DesignError("a covariance must not make any combination's variance negative")
    return (V + V.T) / 2


def _constraints(known: list[Margin], shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """A and b: a row for each category of each margin, and for each cell that must be 0.

    Shares that are not negative and add up to 0 are all 0.
    """
    unit = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    rows = [np.stack([margin.of(one).ravel() for one in unit], axis=1) for margin in known]
    totals = [margin.totals.ravel() for margin in known]
    A, b = np.concatenate(rows), np.concatenate(totals)
    nobody = unit.reshape(len(unit), -1)[(A[b == 0] > 0).any(axis=0)]
    return np.concatenate([A, nobody]), np.concatenate([b, np.zeros(len(nobody))])


def _check_met(found: Floats, b: Floats) -> None:
    missed = np.abs(found - b)
    if missed.max() > 1e-6 * np.abs(b).max():
        raise DesignError(
            f"the margins cannot be reached: one of {b[int(np.argmax(missed))]:g} is missed by "
            f"{missed.max():.3g}, because the estimates' errors do not allow it; are the estimates "
            "and the margins in the same unit?"
        )


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
    z2 = normal_quantile(checked_level(level)) ** 2
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
    counts = whole_counts(
        aligned(joint_counts).ravel(), c.size, "one per combination of reports"
    ).reshape(shape)
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
