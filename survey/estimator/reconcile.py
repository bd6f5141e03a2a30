"""Cross-tables of true answers brought to agree with margins that are known from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator.axes import along, axis
from survey.estimator.counts import checked_level, reports_from, whole_counts
from survey.estimator.proportional_fitting import Margin, Margins, checked_margins, fitted
from survey.estimator.result import Result
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_TABLE = 2_000
"""Cells of a table whose covariance, of their number squared, is still computed (32 MB)."""

FLOOR = 1e-6
"""The least share from which the displayed table is fitted: a share of 0 could never grow."""


@dataclass(frozen=True, eq=False, repr=False)
class Reconciled(Result):
    """A table of shares with known margins; arrays have the shape of the table.

    estimate     constrained least squares: has the margins, linear in the counts, may be negative
    std_error    of `estimate`; never above that of the table alone, but for rounding
    conf_low     estimate -+ z std_error, within what the margins allow: from 0 to the smallest
    conf_high    margin the cell is in
    display      not negative and with the margins: proportional fitting of what is above 0
    covariance   of the estimates in C order, shape (cells, cells)
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    display: Floats
    covariance: Floats
    level: float

    @property
    def index_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """One name per question."""
        return tuple(f"question_{place}" for place in range(self.estimate.ndim))


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
    c = np.asarray(joint_counts)
    shape = tuple(G.shape[1] for G in inverses)
    if c.shape != shape:
        raise CountsError(f"joint counts of shape {c.shape} must have shape {shape}")
    counts = whole_counts(c.ravel(), c.size, "one per combination of reports").reshape(shape)
    n = reports_from(int(counts.sum()), 1, None)
    truths = tuple(G.shape[0] for G in inverses)
    if np.prod(truths) > LARGEST_TABLE:
        raise CountsError(f"a table of {np.prod(truths)} cells: the largest is {LARGEST_TABLE:,}")
    estimate = along(counts / n, inverses)
    # sum_y f_y g_ty g_uy: the rows G_t x G_u, along each axis, applied to f.
    pairs = [np.einsum("tr,ur->tur", G, G).reshape(-1, G.shape[1]) for G in inverses]
    seen = (counts + 1 / counts.size) / (n + 1)
    second = along(seen, pairs).reshape([k for k in truths for _ in (0, 1)])
    order = [*range(0, 2 * len(truths), 2), *range(1, 2 * len(truths), 2)]
    square = second.transpose(order).reshape(estimate.size, estimate.size)
    middle = along(seen, inverses).ravel()
    return estimate, (square - np.outer(middle, middle)) / n


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
    these errors: of cells with a share of .01 in 300 reports of epsilon 4 the simulated coverage
    at .95 was .89; for such cells take the intervals of `crosstab`.

    Raises DesignError for margins that contradict each other or that the errors rule out (cells
    without error that do not add up to them), and for what is no covariance.

    >>> from survey.mechanism import grr
    >>> P, cov = joint_shares([[40, 20], [15, 25]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> found = reconciled(P, cov, [[.6, .4], [.5, .5]])
    >>> found.estimate.round(3).tolist(), found.std_error.round(3).tolist()
    ([[0.584, 0.016], [-0.084, 0.484]], [[0.094, 0.094], [0.094, 0.094]])
    """
    checked_level(level)
    table = np.array(estimate, dtype=np.float64)
    if not np.isfinite(table).all():
        raise DesignError("estimates must be finite numbers: a table that was not estimated")
    V = _checked_covariance(covariance, table.size)
    known = checked_margins(margins, table.shape)
    A, b = _constraints(known, table.shape)
    gain = V @ A.T @ np.linalg.pinv(A @ V @ A.T, rcond=1e-10, hermitian=True)
    x = table.ravel() - gain @ (A @ table.ravel() - b)
    _check_met(A @ x, b)
    covariance_left = V - gain @ A @ V
    covariance_left = (covariance_left + covariance_left.T) / 2
    error = np.sqrt(np.maximum(np.diag(covariance_left), 0.0)).reshape(table.shape)
    return _result(x.reshape(table.shape), error, covariance_left, known, level)


def _result(x: Floats, error: Floats, covariance: Floats, known: list[Margin], level: float
) -> Reconciled:  # fmt: skip
    z = float(ndtri((1 + level) / 2))
    most = reduce(np.minimum, (np.broadcast_to(m.spread(m.totals, x.ndim), x.shape) for m in known))
    total = float(known[0].totals.sum())
    seed = np.maximum(x, FLOOR * total)
    inside = np.clip(x, 0.0, most)
    return Reconciled(
        estimate=x,
        std_error=error,
        conf_low=np.clip(inside - z * error, 0.0, most),
        conf_high=np.clip(inside + z * error, 0.0, most),
        display=fitted(seed, {m.axes: m.totals for m in known}),
        covariance=covariance,
        level=level,
    )


def _inverse(channel: SubsetSelection | WeightTable) -> Floats:
    """G with E[G_t(report) | truth u] = [t = u], for one answer at a time."""
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        raise ChannelError(f"d = {channel.d}: joint shares need one report at a time, d = 1")
    return axis(channel).means


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
    """A and b: a row for each category of each margin."""
    unit = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    rows = [np.stack([margin.of(one).ravel() for one in unit], axis=1) for margin in known]
    return np.concatenate(rows), np.concatenate([margin.totals.ravel() for margin in known])


def _check_met(found: Floats, b: Floats) -> None:
    missed = np.abs(found - b)
    if missed.max() > 1e-6 * np.abs(b).max():
        raise DesignError(
            f"the margins cannot be reached: one of {b[int(np.argmax(missed))]:g} is missed by "
            f"{missed.max():.3g}, because the estimates' errors do not allow it; are the estimates "
            "and the margins in the same unit?"
        )
