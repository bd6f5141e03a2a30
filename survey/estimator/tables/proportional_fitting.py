"""Iterative proportional fitting: the table nearest to a seed that has known margins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_NUMBER, checked_arguments, within_reach
from survey.mechanism.channel import Floats, Integers

Axes = int | tuple[int, ...]
Margins = Sequence[ArrayLike] | Mapping[Axes, ArrayLike]
"""One array per axis, or arrays by axis or by several axes: {0: [..], (1, 2): [[..], ..]}."""

TOLERANCE = 1e-10
"""Fitting ends when all margins are met within this fraction of the total."""

MAX_ROUNDS = 10_000
"""Maximum number of rounds over all margins; a dozen are usual."""

ROUNDS_ALONE = 100
"""After these rounds Newton steps help, if a few small cells connect large ones."""

HALVINGS = 40

MAX_CATEGORIES = 1_000
"""Maximum number of categories for Newton steps; each step solves that many equations."""

AGREEMENT = 1e-6
"""Totals of margins may differ by this fraction, because published figures are rounded."""


@dataclass(frozen=True, eq=False)
class Margin:
    """Known sums over all axes except `axes`; `totals` has one axis for each of them, rising."""

    axes: tuple[int, ...]
    totals: Floats

    def shares(self) -> Margin:
        """Return the margin as shares of its total."""
        return Margin(self.axes, self.totals / self.totals.sum())

    def of(self, table: Floats | Integers) -> Floats:
        """Return the table's margin over the same axes."""
        summed = tuple(axis for axis in range(table.ndim) if axis not in self.axes)
        return np.asarray(table.sum(axis=summed), dtype=np.float64)

    def places(self, shape: tuple[int, ...]) -> Integers:
        """Return the category, in C order, that each cell in C order is in."""
        numbers = np.arange(self.totals.size).reshape(self.totals.shape)
        return np.broadcast_to(self.spread(numbers, len(shape)), shape).ravel()

    def spread(self, margin: Floats | Integers, axes: int) -> Any:
        """Return a margin in the shape that multiplies a table with this number of axes."""
        shape = [1] * axes
        for axis, size in zip(self.axes, margin.shape, strict=True):
            shape[axis] = size
        return margin.reshape(shape)


@checked_arguments
def fitted(seed: ArrayLike, margins: Margins) -> Floats:
    """Return the table with these margins and the seed's odds ratios, in the seed's shape.

    Cells are scaled, margin by margin, by the known over the current total (Deming and Stephan
    1940) until all margins are met: x_i <- x_i m_a / sum_(i in a) x_i. The result minimizes sum x
    log(x/seed) among the tables with these margins. A cell of 0 stays 0.

    Raises DesignError for a seed or a margin that is negative or no number, margins whose totals
    differ, a positive margin over cells that are all 0, and margins that these cells cannot have
    together (fitting does not converge).

    >>> fitted([[1, 1], [1, 3]], [[40, 60], [50, 50]]).round(2).tolist()
    [[26.41, 13.59], [23.59, 36.41]]
    """
    table = _checked_seed(seed)
    known_margins = checked_margins(margins, table.shape)
    for margin in known_margins:
        unreachable = (margin.of(table) == 0) & (margin.totals > 0)
        if unreachable.any():
            place = np.unravel_index(int(np.argmax(unreachable)), unreachable.shape)
            raise DesignError(
                f"{_describe(margin)} is {margin.totals[place]:g} at {_place(place)}, where there "
                "are no reports: merge it with another category"
            )
    total = float(known_margins[0].totals.sum())
    # Scaling first keeps digits if the total is much larger or smaller than the seed.
    table = table * (total / table.sum())
    for completed in range(MAX_ROUNDS):
        for margin in known_margins:
            current = margin.of(table)
            factors = np.zeros_like(current)
            np.divide(margin.totals, current, out=factors, where=current > 0)
            table = np.asarray(table * margin.spread(factors, table.ndim))
        if _largest_gap(known_margins, table) <= TOLERANCE * total:
            return table
        if (
            completed >= ROUNDS_ALONE
            and sum(margin.totals.size for margin in known_margins) <= MAX_CATEGORIES
        ):
            table = stepped(known_margins, table)
    raise DesignError(
        f"fitting to the margins did not converge in {MAX_ROUNDS:,} rounds: they are missed by "
        f"{_largest_gap(known_margins, table):.3g}; if cells have no reports, no table may have "
        "these margins: merge categories"
    )


def stepped(known_margins: list[Margin], table: Floats) -> Floats:
    """Return the table after one step of Newton's method towards the fitted table.

    The fitted table is seed exp(sum of u_a), where a are the categories of a cell, with the u that
    maximize g(u) = sum m_a u_a - sum of cells. Its gradient is the gap to the margins, its Hessian
    minus the sums of cells that are in a and b. The step is halved until g grows.
    """
    places = [margin.places(table.shape) for margin in known_margins]
    starts = np.cumsum([0, *(margin.totals.size for margin in known_margins)])
    cells = table.ravel()
    gaps = np.concatenate([(m.totals - m.of(table)).ravel() for m in known_margins])
    totals = np.concatenate([margin.totals.ravel() for margin in known_margins])
    H = np.zeros((starts[-1], starts[-1]))
    for i, rows in enumerate(places):
        for j, columns in enumerate(places):
            shape = known_margins[i].totals.size, known_margins[j].totals.size
            joint = np.bincount(rows * shape[1] + columns, cells, shape[0] * shape[1])
            H[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = joint.reshape(shape)
    step = np.linalg.lstsq(H, gaps, rcond=1e-12)[0]
    change = np.zeros(cells.size)
    for start, rows in zip(starts, places, strict=False):
        change += step[start + rows]
    for fraction in 0.5 ** np.arange(HALVINGS):
        with np.errstate(over="ignore"):
            changed = cells * np.exp(fraction * change)
        if fraction * (totals @ step) > changed.sum() - cells.sum():
            return np.asarray(changed.reshape(table.shape))
    return table


def checked_margins(margins: Margins, shape: tuple[int, ...]) -> list[Margin]:
    """Return the margins as arrays with their axes and one total, or raise DesignError."""
    items = margins.items() if isinstance(margins, Mapping) else enumerate(margins)
    checked = [_margin(axes, totals, shape) for axes, totals in items]
    if not checked:
        raise DesignError("margins is empty: give at least one margin")
    total = float(checked[0].totals.sum())
    for margin in checked[1:]:
        total_of_margin = float(margin.totals.sum())
        if not math.isclose(total, total_of_margin, rel_tol=AGREEMENT):
            raise DesignError(
                f"margins contradict each other: {_describe(checked[0])} adds up to {total:g}, "
                f"{_describe(margin)} to {total_of_margin:g}"
            )
    return [Margin(m.axes, m.totals * (total / float(m.totals.sum()))) for m in checked]


def _margin(axes: Axes, totals: ArrayLike, shape: tuple[int, ...]) -> Margin:
    tidy = axes if isinstance(axes, tuple) else (axes,)
    if not all(isinstance(axis, int | np.integer) for axis in tidy):
        raise DesignError(
            f"a margin over axes {tidy!r}: axes must be whole numbers, 0 for the first"
        )
    if not tidy or list(tidy) != sorted(set(tidy)) or not 0 <= tidy[0] <= tidy[-1] < len(shape):
        raise DesignError(
            f"a margin over axes {tidy} of a table with {len(shape)}: axes must exist, "
            "in rising order"
        )
    margin = Margin(tidy, _floats(totals, f"the margin over axes {tidy}"))
    expected = tuple(shape[axis] for axis in tidy)
    if margin.totals.shape != expected:
        raise DesignError(f"{_describe(margin)} has shape {margin.totals.shape}, not {expected}")
    for wrong, reason in (
        (~within_reach(margin.totals), f"must be a finite number of at most {LARGEST_NUMBER:g}"),
        (margin.totals < 0, "must not be negative"),
    ):
        if wrong.any():
            place = np.unravel_index(int(np.argmax(wrong)), expected)
            raise DesignError(
                f"{_describe(margin)} at {_place(place)} = {margin.totals[place]} {reason}"
            )
    if not margin.totals.sum() > 0:
        raise DesignError(f"{_describe(margin)} is 0 throughout")
    return margin


def _checked_seed(seed: ArrayLike) -> Floats:
    table = _floats(seed, "the table")
    if table.ndim == 0 or table.size == 0:
        raise DesignError("the table needs at least one axis with a category")
    if not within_reach(table).all() or (table < 0).any():
        raise DesignError(
            f"cells of the table must be finite, not negative and at most {LARGEST_NUMBER:g}"
        )
    if not table.sum() > 0:
        raise DesignError("all cells of the table are 0; at least one must be positive")
    return table


def _floats(values: ArrayLike, name: str) -> Floats:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DesignError(f"{name} must be an array of numbers") from None


def _largest_gap(known_margins: list[Margin], table: Floats) -> float:
    return max(float(np.abs(margin.of(table) - margin.totals).max()) for margin in known_margins)


def _place(place: tuple[np.intp, ...]) -> str:
    return ", ".join(f"category {int(index)}" for index in place)


def _describe(margin: Margin) -> str:
    axes = " and ".join(str(axis) for axis in margin.axes)
    return f"the margin of axis {axes}"
