"""Cross-tables of true answers brought to agree with margins that are known from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, ndtri

from survey.errors import DesignError
from survey.estimator.arguments import checked_arguments
from survey.estimator.counts import checked_level
from survey.estimator.proportional_fitting import Margin, Margins, checked_margins, fitted
from survey.estimator.result import Result

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
    z = float(ndtri((1 + checked_level(level)) / 2))
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
