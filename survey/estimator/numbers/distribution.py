"""Distributions of numbers: histograms, cumulative shares, quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from survey.estimator.core.arguments import LARGEST_NUMBER, checked_arguments, within_reach
from survey.estimator.core.moments import EFFECTIVE_RANGE
from survey.estimator.core.result import Result
from survey.estimator.numbers.grid import GridShares, Share, grid_shares
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Booleans, Floats

WIDE = 2.0
"""A cell is not resolved when its interval is wider than so many even shares, 1/cells."""

UNRESOLVED = "cells not resolved"

LEAST_ERROR = 1e-9
"""Standard errors count as at least this where one divides by them."""

CURVE_POINTS = 64
"""Most places at which cumulative shares are estimated unless they are named."""


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Result):
    """Estimated shares of the cells of a histogram, among those who answered; shape (cells,).

    low, high    ends of each cell, which holds low <= value < high; the last also value = high
    estimate     shown shares, in [0, 1], sum 1: expectation maximization (`method`); biased
    linear       unbiased, or of bounded bias: for adding and comparing; may lie outside [0, 1]
    std_error    of `linear`
    conf_low     ends of the interval of each cell's share alone, in [0, 1], never of zero width;
    conf_high    `estimate` lies in it
    resolved     whether these reports can tell this cell from others: its interval is not wider
                 than two even shares. The estimate of a cell that is not is mostly smoothing
    n            reports, those that are no answer included
    level        asked coverage of each interval
    method       "em" or "smoothed": how `estimate` was found
    flag         "", or "not converged", "cells not resolved" (take fewer cells, or wait)
    """

    low: Floats
    high: Floats
    estimate: Floats
    linear: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    resolved: Booleans
    n: int
    level: float
    method: str
    flag: str

    index_names = ("cell",)

    @property
    def n_effective(self) -> Floats:
        """Answers given openly that would tell as much of each cell: pi(1-pi)/SE^2, pi clipped."""
        pi = np.clip(self.linear, *EFFECTIVE_RANGE)
        return np.asarray(pi * (1 - pi) / np.maximum(self.std_error, LEAST_ERROR) ** 2)


@dataclass(frozen=True, eq=False, repr=False)
class Cumulative(Result):
    """Estimated shares of answers at or below each of some values, among those who answered.

    value      the places, ascending, shape (places,)
    The other fields are those of `Histogram`. The largest value has share 1 with no error, and
    below the smallest there is nobody: both are certain. Each interval covers its own place.
    """

    value: Floats
    estimate: Floats
    linear: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    n: int
    level: float
    method: str
    flag: str

    index_names = ("place",)


@checked_arguments
def histogram(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
    bins: int | Sequence[float] | Floats = 5,
    *,
    level: float = 0.95,
    method: str | None = None,
) -> Histogram:
    """Estimate the shares of cells of values, among those who answered.

    `counts` has one count per report. `values[i]` is the number that truth i stands for, None or
    nan where it is no answer. `bins` is a number of cells of equal width, or their edges, which
    must enclose all values. `method` is "em" (expectation maximization) or "smoothed" (the same
    with smoothing, Li et al. 2020); unless named, smoothed for tables of 100 values or more.

    The interval of a cell is that of the mean of its indicator (`mean`): Student's, or Fieller's
    where some truths are no answer, with the end on the side to which reports lean further out,
    widened by the largest bias of the linear estimate and stretched to hold `estimate`. At level
    .95 at least .944 of cells, cumulative shares and quantiles are covered from n = 200, by
    simulation over ten channels and eight distributions, points of mass and two humps among them
    (`tests/benchmarks/distribution.py`). The likelihood interval is half as wide and was refused:
    where all people hold one value its coverage falls to .72. So was the bootstrap of the counts:
    there it falls to 0, on a smooth bell to .88 (`tests/benchmarks/distribution_refused.py`).

    Noise that reaches over the whole range (geometric, Laplace, Gaussian) leaves little to tell
    of a distribution unless epsilon is large or the grid has few points; the flag says so.

    Raises CountsError (NoBaseError where hardly anybody answered), ChannelError (one bit tells a
    mean only; d > 1) and ValueError for cells without a value or edges that leave one out.

    >>> from survey.mechanism.numeric import square_wave
    >>> counts = square_wave(4, 3).matrix[1] * 40_000
    >>> histogram(counts.round(), square_wave(4, 3), range(4), 2).estimate.round(2).tolist()
    [1.0, 0.0]
    """
    found = grid_shares(counts, channel, values, method, level)
    edges = _edges(bins, found.values)
    cell = np.minimum(np.searchsorted(edges, found.values, side="right") - 1, edges.size - 2)
    members = [cell == j for j in range(edges.size - 1)]
    for j, inside in enumerate(members):
        if not inside.any():
            raise ValueError(
                f"cell {j}, from {edges[j]:g} to {edges[j + 1]:g}, holds none of the "
                f"{found.values.size} values: take fewer or wider cells"
            )
    columns = _columns(found, members)
    resolved = columns["conf_high"] - columns["conf_low"] <= WIDE / len(members)
    flags = [found.flag, "" if resolved.all() else UNRESOLVED]
    return Histogram(
        low=edges[:-1].copy(),
        high=edges[1:].copy(),
        **columns,
        resolved=resolved,
        n=found.n,
        level=level,
        method=found.method,
        flag=", ".join(filter(None, flags)),
    )


@checked_arguments
def cdf(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
    *,
    at: Sequence[float] | Floats | None = None,
    level: float = 0.95,
    method: str | None = None,
) -> Cumulative:
    """Estimate the share of answers at or below each of the places `at`, ascending.

    Without `at`: every value, or 64 of them evenly chosen. Everything else is as in `histogram`;
    intervals hold for one place each, not for the whole curve, and their ends need not rise.

    >>> from survey.mechanism import grr
    >>> cdf([400, 300, 300], grr(3, "0.6"), [1, 2, 3]).estimate.round(2).tolist()
    [0.5, 0.75, 1.0]
    """
    found = grid_shares(counts, channel, values, method, level)
    places = _places(at, found.values)
    columns = _columns(found, [found.values <= place for place in places])
    return Cumulative(
        value=places,
        **columns,
        n=found.n,
        level=level,
        method=found.method,
        flag=found.flag,
    )


def _columns(found: GridShares, members: list[Booleans]) -> dict[str, Floats]:
    """Estimates and intervals of sets of values; those of all values or none are certain."""
    shown = np.array([float(found.shares[inside].sum()) for inside in members])
    # Of all values or none there is nothing to estimate.
    linear, error, low, high = (shown.round() * factor for factor in (1, 0, 1, 1))
    open_ones = [j for j, inside in enumerate(members) if inside.any() and not inside.all()]
    estimated = found.shares_of([members[j] for j in open_ones]) if open_ones else []
    for j, one in zip(open_ones, estimated, strict=True):
        linear[j], error[j], low[j], high[j] = one
    return {
        "estimate": shown,
        "linear": linear,
        "std_error": error,
        "conf_low": np.minimum(low, shown),
        "conf_high": np.maximum(high, shown),
    }


def _edges(bins: int | Sequence[float] | Floats, values: Floats) -> Floats:
    """Ends of the cells, ascending, at least two cells, enclosing all values."""
    least, most = float(values[0]), float(values[-1])
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if not 2 <= bins <= values.size:
            raise ValueError(f"bins = {bins} must be from 2 to the {values.size} different values")
        return np.linspace(least, most, int(bins) + 1)
    edges = np.array(bins, dtype=np.float64)
    if edges.ndim != 1 or edges.size < 3 or not _rises(edges):
        raise ValueError(
            "bins must be a number of cells or three or more rising edges, finite "
            f"and at most {LARGEST_NUMBER:g} in size"
        )
    if edges[0] > least or edges[-1] < most:
        raise ValueError(
            f"edges from {edges[0]:g} to {edges[-1]:g} leave out values from {least:g} to {most:g}"
        )
    return edges


def _rises(numbers: Floats) -> bool:
    return bool(within_reach(numbers).all() and (np.diff(numbers) > 0).all())


def _places(at: Sequence[float] | Floats | None, values: Floats) -> Floats:
    if at is None:
        chosen = np.linspace(0, values.size - 1, min(values.size, CURVE_POINTS))
        return values[np.unique(chosen.round().astype(np.int64))].copy()
    places = np.array(at, dtype=np.float64)
    if places.ndim != 1 or places.size == 0 or not within_reach(places).all():
        raise ValueError(f"at must be one or more finite numbers of at most {LARGEST_NUMBER:g}")
    if not _rises(places):
        raise ValueError("at must rise")
    return places


COARSE = 16
"""Places looked at before the search between two of them."""

ROUNDING = 1e-9

NOT_BOUNDED = "not bounded"


@dataclass(frozen=True, eq=False, repr=False)
class Quantiles(Result):
    """Estimated quantiles among those who answered, in the unit of the values; shape (shares,).

    share        the asked shares
    estimate     the least value with at least that share of answers at or below it, read from the
                 shown distribution (`method`)
    std_error    of the share of answers at or below the estimate, or below it where that is all
    conf_low     ends of the interval of each quantile alone, values of the grid; `estimate` lies
    conf_high    between them. They can be equal: a quantile is one of finitely many values
    bounded      whether the interval leaves out at least one end of the values
    reach        width of each interval beyond one step between the values, which nothing can go
                 below, as a part of their range
    n            reports, those that are no answer included
    level        asked coverage of each interval
    method       "em" or "smoothed"
    flag         "", or "not converged", "not bounded" (some interval is all of the values)
    """

    share: Floats
    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    bounded: Booleans
    reach: Floats
    n: int
    level: float
    method: str
    flag: str

    index_names = ("quantile",)


@checked_arguments
def quantiles(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
    shares: Sequence[float] | Floats = (0.25, 0.5, 0.75),
    *,
    level: float = 0.95,
    method: str | None = None,
) -> Quantiles:
    """Estimate quantiles of `values` over the people who answered; arguments as in `histogram`.

    The true quantile of share s is the x with F(x) >= s > F(x-), x- the next smaller value. The
    interval holds every x for which neither is refused: the interval of F(x), as `cdf` gives it,
    reaches s, and that of F(x-) begins below s. So a true quantile is missed at most as often as
    two one-sided ends of intervals of `level` are; for the measured coverage see `histogram`.
    Source: the inversion of tests, Thompson 1936.

    >>> from survey.mechanism import grr
    >>> found = quantiles([4000, 3000, 3000], grr(3, "0.6"), [1, 2, 3], [0.2, 0.6])
    >>> found.estimate.tolist(), found.conf_low.tolist(), found.conf_high.tolist()
    ([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])
    """
    asked = np.array(shares, dtype=np.float64)
    if asked.ndim != 1 or asked.size == 0 or not ((asked > 0) & (asked < 1)).all():
        raise ValueError("shares must be numbers between 0 and 1, for example 0.5 for the median")
    found = grid_shares(counts, channel, values, method, level)
    below = np.cumsum(found.shares)
    middle = np.array([int(np.argmax(below >= s - ROUNDING)) for s in asked])
    grid = np.arange(found.values.size)
    curve = Curve(grid.size - 1, lambda places: found.shares_of([grid <= at for at in places]))
    ends = np.array([curve.quantile_ends(float(s)) for s in asked])
    low, high = np.minimum(ends[:, 0], middle), np.maximum(ends[:, 1], middle)
    bounded = (low > 0) | (high < found.values.size - 1)
    flags = [found.flag, "" if bounded.all() else NOT_BOUNDED]
    return Quantiles(
        share=asked,
        estimate=found.values[middle],
        std_error=np.array([curve.error(int(at)) for at in middle]),
        conf_low=found.values[low],
        conf_high=found.values[high],
        bounded=bounded,
        reach=(found.values[high] - found.values[np.minimum(low + 1, high)])
        / (found.values[-1] - found.values[0]),
        n=found.n,
        level=level,
        method=found.method,
        flag=", ".join(filter(None, flags)),
    )


@checked_arguments
def median(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
    *,
    level: float = 0.95,
    method: str | None = None,
) -> Quantiles:
    """The quantile of share 1/2, as `quantiles` gives it: arrays of shape (1,).

    >>> from survey.mechanism import grr
    >>> median([4000, 3000, 3000], grr(3, "0.6"), [1, 2, 3]).conf_high.tolist()
    [2.0]
    """
    return quantiles(counts, channel, values, (0.5,), level=level, method=method)


class Curve:
    """Intervals of F at places of a grid, each asked for once, when it is needed.

    `look` gives those of some places, in their order; `last` is the place of the largest value,
    where F is 1.
    """

    def __init__(self, last: int, look: Callable[[list[int]], list[Share]]) -> None:
        self.last = last
        self.look = look
        self.known: dict[int, Share] = {}

    def quantile_ends(self, share: float) -> tuple[int, int]:
        """Places of the least and the largest value that is not refused as quantile."""
        places = np.unique(np.linspace(0, self.last - 1, min(COARSE, self.last)).round())
        coarse: list[int] = places.astype(np.int64).tolist()
        self._look(coarse)
        low = self._first(coarse, lambda x: self._at(x).high >= share)
        # x is refused when F(x-) lies above; the largest accepted follows the last such x-.
        mirrored = [self.last - 1 - x for x in reversed(coarse)]
        beyond = self._first(mirrored, lambda x: self._at(self.last - 1 - x).low < share)
        return low, self.last - beyond

    def error(self, place: int) -> float:
        """The standard error of F there; of the value before the last, where F is 1."""
        return self._at(min(place, self.last - 1)).std_error

    def _look(self, places: list[int]) -> None:
        new = [place for place in places if place not in self.known]
        if new:
            self.known.update(zip(new, self.look(new), strict=True))

    def _at(self, place: int) -> Share:
        self._look([place])
        return self.known[place]

    def _first(self, coarse: list[int], accepted: Callable[[int], bool]) -> int:
        """The first accepted place of 0 .. last - 1, or `last`: coarsely, then by bisection.

        Ends of F rise but for noise; the coarse places make it the hull of what is accepted.
        """
        refused = -1
        for place in coarse:
            if accepted(place):
                break
            refused = place
        else:
            return self.last
        while place - refused > 1:
            halfway = (place + refused) // 2
            if accepted(halfway):
                place = halfway
            else:
                refused = halfway
        return place
