"""Iterative proportional fitting: the table nearest to a seed that has the margins asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_NUMBER, checked_arguments, within_reach
from survey.mechanism.arrays import Floats, Integers

Axes = int | tuple[int, ...]
Margins = Sequence[ArrayLike] | Mapping[Axes, ArrayLike]
"""One array per axis, or arrays by axis or by several axes: {0: [..], (1, 2): [[..], ..]}."""

TOLERANCE = 1e-10
"""Margins are met to within this part of the total."""

MOST_ROUNDS = 10_000
"""Rounds over all margins after which fitting gives up; a dozen are usual."""

ROUNDS_ALONE = 100
"""Rounds after which Newton's steps help: where a few small cells tie strong ones together."""

HALVINGS = 40

MOST_CATEGORIES = 1_000
"""Categories of all margins up to which there are such steps; each solves that many equations."""

AGREEMENT = 1e-6
"""Totals of different margins may differ by this part: rounding of published figures."""


@dataclass(frozen=True, eq=False)
class Margin:
    """Known sums over all axes but these; `totals` has one axis for each of `axes`, rising."""

    axes: tuple[int, ...]
    totals: Floats

    def shares(self) -> Margin:
        """The same as shares of the total."""
        return Margin(self.axes, self.totals / self.totals.sum())

    def of(self, table: Floats | Integers) -> Floats:
        """The table's own margin over the same axes."""
        others = tuple(axis for axis in range(table.ndim) if axis not in self.axes)
        return np.asarray(table.sum(axis=others), dtype=np.float64)

    def places(self, shape: tuple[int, ...]) -> Integers:
        """Which of the margin's categories, in C order, each cell in C order is in."""
        numbers = np.arange(self.totals.size).reshape(self.totals.shape)
        return np.broadcast_to(self.spread(numbers, len(shape)), shape).ravel()

    def spread(self, margin: Floats | Integers, axes: int) -> Any:
        """A margin in the shape that multiplies a table of so many axes."""
        shape = [1] * axes
        for axis, size in zip(self.axes, margin.shape, strict=True):
            shape[axis] = size
        return margin.reshape(shape)


@checked_arguments
def fitted(seed: ArrayLike, margins: Margins) -> Floats:
    """The table with these margins and the seed's odds ratios, in the seed's shape.

    Cells are scaled, margin by margin, by what is known over what is there (Deming and Stephan
    1940) until all margins are met: x_i <- x_i m_a / sum_(i in a) x_i. It minimizes
    sum x log(x/seed) among the tables with these margins. A cell of 0 stays 0.

    Raises DesignError for a seed or a margin that is negative or no number, margins whose totals
    differ, a positive margin over cells that are all 0, and margins that these cells cannot have
    together (fitting does not converge).

    >>> fitted([[1, 1], [1, 3]], [[40, 60], [50, 50]]).round(2).tolist()
    [[26.41, 13.59], [23.59, 36.41]]
    """
    table = _checked_seed(seed)
    known = checked_margins(margins, table.shape)
    for margin in known:
        _check_reachable(margin, table)
    total = float(known[0].totals.sum())
    # A total of many powers of ten beside the seed would lose digits in the first round only.
    table = table * (total / table.sum())
    for done in range(MOST_ROUNDS):
        for margin in known:
            table = np.asarray(table * margin.spread(_factors(margin, table), table.ndim))
        if _farthest(known, table) <= TOLERANCE * total:
            return table
        if done >= ROUNDS_ALONE and sum(margin.totals.size for margin in known) <= MOST_CATEGORIES:
            table = stepped(known, table)
    raise DesignError(
        f"fitting to the margins did not converge in {MOST_ROUNDS:,} rounds: they are missed by "
        f"{_farthest(known, table):.3g}; cells without reports may leave no table with these "
        "margins: merge categories"
    )


def stepped(known: list[Margin], table: Floats) -> Floats:
    """One step of Newton's method towards the same table.

    The fitted table is seed exp(sum of u_a), a the categories a cell is in, with the u that
    maximize g(u) = sum m_a u_a - sum of cells. Its gradient is what the margins miss, its Hessian
    minus the sums of cells that lie in a and b. The step is halved until g grows.
    """
    places = [margin.places(table.shape) for margin in known]
    starts = np.cumsum([0, *(margin.totals.size for margin in known)])
    cells = table.ravel()
    missed = np.concatenate([(m.totals - m.of(table)).ravel() for m in known])
    totals = np.concatenate([margin.totals.ravel() for margin in known])
    H = np.zeros((starts[-1], starts[-1]))
    for i, rows in enumerate(places):
        for j, columns in enumerate(places):
            shape = known[i].totals.size, known[j].totals.size
            both = np.bincount(rows * shape[1] + columns, cells, shape[0] * shape[1])
            H[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = both.reshape(shape)
    step = np.linalg.lstsq(H, missed, rcond=1e-12)[0]
    change = np.zeros(cells.size)
    for start, rows in zip(starts, places, strict=False):
        change += step[start + rows]
    for halved in 0.5 ** np.arange(HALVINGS):
        with np.errstate(over="ignore"):
            moved = cells * np.exp(halved * change)
        if halved * (totals @ step) > moved.sum() - cells.sum():
            return np.asarray(moved.reshape(table.shape))
    return table


def checked_margins(margins: Margins, shape: tuple[int, ...]) -> list[Margin]:
    """The margins as arrays with their axes, all of one total, or the reason why they are none."""
    named = margins.items() if isinstance(margins, Mapping) else enumerate(margins)
    known = [_margin(axes, totals, shape) for axes, totals in named]
    if not known:
        raise DesignError("there are no margins to fit to: give at least one")
    total = float(known[0].totals.sum())
    for margin in known[1:]:
        other = float(margin.totals.sum())
        if not math.isclose(total, other, rel_tol=AGREEMENT):
            raise DesignError(
                f"margins contradict each other: {_named(known[0])} adds up to {total:g}, "
                f"{_named(margin)} to {other:g}"
            )
    return [Margin(m.axes, m.totals * (total / float(m.totals.sum()))) for m in known]


def _margin(axes: Axes, totals: ArrayLike, shape: tuple[int, ...]) -> Margin:
    tidy = axes if isinstance(axes, tuple) else (axes,)
    if not all(isinstance(one, int | np.integer) for one in tidy):
        raise DesignError(
            f"a margin over axes {tidy!r}: name them by their places, 0 for the first"
        )
    if not tidy or list(tidy) != sorted(set(tidy)) or not 0 <= tidy[0] <= tidy[-1] < len(shape):
        raise DesignError(f"a margin over axes {tidy} of a table of {len(shape)}: name them rising")
    known = Margin(tidy, _floats(totals, f"the margin over axes {tidy}"))
    expected = tuple(shape[axis] for axis in tidy)
    if known.totals.shape != expected:
        raise DesignError(f"{_named(known)} has shape {known.totals.shape}, not {expected}")
    for wrong, reason in (
        (~within_reach(known.totals), f"must be a finite number of at most {LARGEST_NUMBER:g}"),
        (known.totals < 0, "must not be negative"),
    ):
        if wrong.any():
            place = np.unravel_index(int(np.argmax(wrong)), expected)
            raise DesignError(
                f"{_named(known)} at {_place(place)} = {known.totals[place]} {reason}"
            )
    if not known.totals.sum() > 0:
        raise DesignError(f"{_named(known)} is 0 throughout")
    return known


def _checked_seed(seed: ArrayLike) -> Floats:
    table = _floats(seed, "the table")
    if table.ndim == 0 or table.size == 0:
        raise DesignError("a table to fit needs at least one axis with a category")
    if not within_reach(table).all() or (table < 0).any():
        raise DesignError(
            "a table to fit needs cells that are finite, not negative and at most "
            f"{LARGEST_NUMBER:g}"
        )
    if not table.sum() > 0:
        raise DesignError("all cells of the table are 0: there is nothing to fit")
    return table


def _floats(values: ArrayLike, what: str) -> Floats:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DesignError(f"{what} must be an array of numbers") from None


def _check_reachable(margin: Margin, table: Floats) -> None:
    empty = (margin.of(table) == 0) & (margin.totals > 0)
    if empty.any():
        place = np.unravel_index(int(np.argmax(empty)), empty.shape)
        raise DesignError(
            f"{_named(margin)} is {margin.totals[place]:g} at {_place(place)}, where there are no "
            "reports: merge it with another category"
        )


def _factors(margin: Margin, table: Floats) -> Floats:
    there = margin.of(table)
    return np.divide(margin.totals, there, out=np.zeros_like(there), where=there > 0)


def _farthest(known: list[Margin], table: Floats) -> float:
    return max(float(np.abs(margin.of(table) - margin.totals).max()) for margin in known)


def _place(place: tuple[np.intp, ...]) -> str:
    return ", ".join(f"category {int(index)}" for index in place)


def _named(margin: Margin) -> str:
    axes = " and ".join(str(axis) for axis in margin.axes)
    return f"the margin of axis {axes}"
