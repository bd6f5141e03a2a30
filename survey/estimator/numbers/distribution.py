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
"""A cell is not resolved if its interval is wider than this number of equal shares, 1/cells."""

UNRESOLVED = "cells not resolved"

MIN_ERROR = 1e-9
"""Minimum of a standard error in a denominator."""

CURVE_POINTS = 64
"""Maximum number of places at which cumulative shares are estimated by default."""


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Result):
    """Estimated shares of the cells of a histogram, among those who answered; shape (cells,).

    low, high    ends of each cell, which contains low <= value < high; the last also value = high
    estimate     displayed shares, in [0, 1], sum 1, by expectation maximization (`method`); biased
    linear       unbiased, or of bounded bias: for sums and comparisons; may be outside [0, 1]
    std_error    of `linear`
    conf_low     ends of the interval of each cell's share alone, in [0, 1], never of zero width;
    conf_high    `estimate` is inside
    resolved     whether the reports can distinguish this cell: its interval is not wider than two
                 equal shares. Otherwise the estimate mostly shows the effect of smoothing
    n            reports, including those that are no answer
    level        nominal coverage of each interval
    method       "em" or "smoothed": the method of `estimate`
    flag         "", or "not converged", "cells not resolved" (use fewer cells, or wait)
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
        """Return the equivalent number of answers without randomization, pi(1-pi)/SE^2."""
        pi = np.clip(self.linear, *EFFECTIVE_RANGE)
        return np.asarray(pi * (1 - pi) / np.maximum(self.std_error, MIN_ERROR) ** 2)


@dataclass(frozen=True, eq=False, repr=False)
class Cumulative(Result):
    """Estimated shares of answers at or below each of some values, among those who answered.

    value      the places, ascending, shape (places,)
    The other fields are those of `Histogram`. The share is certain at the largest value (1) and
    below the smallest (0). Each interval covers its own place.
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
    must enclose all values. `method` is "em" (expectation maximization) or "smoothed" (with
    smoothing, Li et al. 2020). The default is "smoothed" for tables of 100 values or more,
    otherwise "em".

    The interval of a cell is that of the mean of its indicator (`mean`): Student's, or Fieller's if
    some truths are no answer. The end on the side to which reports are skewed moves outwards; the
    largest bias of the linear estimate is added, and the interval includes `estimate`. At level .95
    at least .944 of cells, cumulative shares and quantiles are covered from n = 200, by simulation
    over ten channels and eight distributions, including point masses and two modes
    (`tests/benchmarks/distribution.py`). The likelihood interval is half as wide, but its coverage
    falls to .72 if all people have one value. The coverage of a bootstrap of the counts falls to 0
    there, and to .88 for a smooth bell (`tests/benchmarks/distribution_refused.py`).

    Noise over the whole range (geometric, Laplace, Gaussian) leaves little information about a
    distribution unless epsilon is large or the grid has few points; the flag says so.

    Raises CountsError (NoBaseError if hardly anybody answered), ChannelError (one bit determines a
    mean only; d > 1) and ValueError for cells without a value or edges that exclude a value.

    >>> from survey.mechanism.numeric import square_wave
    >>> counts = square_wave(4, 3).matrix[1] * 40_000
    >>> histogram(counts.round(), square_wave(4, 3), range(4), 2).estimate.round(2).tolist()
    [1.0, 0.0]
    """
    grid = grid_shares(counts, channel, values, method, level)
    edges = _edges(bins, grid.values)
    cell = np.minimum(np.searchsorted(edges, grid.values, side="right") - 1, edges.size - 2)
    members = [cell == j for j in range(edges.size - 1)]
    for j, inside in enumerate(members):
        if not inside.any():
            raise ValueError(
                f"cell {j}, from {edges[j]:g} to {edges[j + 1]:g}, contains none of "
                f"the {grid.values.size} values: use fewer or wider cells"
            )
    columns = _columns(grid, members)
    resolved = columns["conf_high"] - columns["conf_low"] <= WIDE / len(members)
    flags = [grid.flag, "" if resolved.all() else UNRESOLVED]
    return Histogram(
        low=edges[:-1].copy(),
        high=edges[1:].copy(),
        **columns,
        resolved=resolved,
        n=grid.n,
        level=level,
        method=grid.method,
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

    The default of `at` is every value, or 64 evenly chosen values. All else is as in `histogram`.
    Intervals are for one place each, not for the whole curve, and their ends may fall.

    >>> from survey.mechanism import grr
    >>> cdf([400, 300, 300], grr(3, "0.6"), [1, 2, 3]).estimate.round(2).tolist()
    [0.5, 0.75, 1.0]
    """
    grid = grid_shares(counts, channel, values, method, level)
    places = _places(at, grid.values)
    columns = _columns(grid, [grid.values <= place for place in places])
    return Cumulative(
        value=places,
        **columns,
        n=grid.n,
        level=level,
        method=grid.method,
        flag=grid.flag,
    )


def _columns(grid: GridShares, members: list[Booleans]) -> dict[str, Floats]:
    """Return estimates and intervals of sets of values; those of all values or none are certain."""
    estimate = np.array([float(grid.shares[inside].sum()) for inside in members])
    # Sets of all values or none have known shares.
    linear, error, low, high = (estimate.round() * factor for factor in (1, 0, 1, 1))
    open_ones = [j for j, inside in enumerate(members) if inside.any() and not inside.all()]
    estimated = grid.shares_of([members[j] for j in open_ones]) if open_ones else []
    for j, share in zip(open_ones, estimated, strict=True):
        linear[j], error[j], low[j], high[j] = share
    return {
        "estimate": estimate,
        "linear": linear,
        "std_error": error,
        "conf_low": np.minimum(low, estimate),
        "conf_high": np.maximum(high, estimate),
    }


def _edges(bins: int | Sequence[float] | Floats, values: Floats) -> Floats:
    """Return the edges of the cells, ascending; at least two cells, enclosing all values."""
    minimum, maximum = float(values[0]), float(values[-1])
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if not 2 <= bins <= values.size:
            raise ValueError(f"bins = {bins} must be from 2 to the {values.size} different values")
        return np.linspace(minimum, maximum, int(bins) + 1)
    edges = np.array(bins, dtype=np.float64)
    if edges.ndim != 1 or edges.size < 3 or not _rises(edges):
        raise ValueError(
            "bins must be a number of cells or three or more rising edges, finite "
            f"and at most {LARGEST_NUMBER:g} in size"
        )
    if edges[0] > minimum or edges[-1] < maximum:
        raise ValueError(
            f"edges from {edges[0]:g} to {edges[-1]:g} exclude some of the values from "
            f"{minimum:g} to {maximum:g}"
        )
    return edges


def _rises(numbers: Floats) -> bool:
    return bool(within_reach(numbers).all() and (np.diff(numbers) > 0).all())


def _places(at: Sequence[float] | Floats | None, values: Floats) -> Floats:
    if at is None:
        positions = np.linspace(0, values.size - 1, min(values.size, CURVE_POINTS))
        return values[np.unique(positions.round().astype(np.int64))].copy()
    places = np.array(at, dtype=np.float64)
    if places.ndim != 1 or places.size == 0 or not within_reach(places).all():
        raise ValueError(f"at must be one or more finite numbers of at most {LARGEST_NUMBER:g}")
    if not _rises(places):
        raise ValueError("at must rise")
    return places


COARSE_PLACES = 16
"""Number of places to evaluate before the search between two of them."""

ROUNDING = 1e-9

NOT_BOUNDED = "not bounded"


@dataclass(frozen=True, eq=False, repr=False)
class Quantiles(Result):
    """Estimated quantiles among those who answered, in the unit of the values; shape (shares,).

    share        the requested shares
    estimate     the smallest value with at least that share of answers at or below it, in the
                 displayed distribution (`method`)
    std_error    of the share of answers at or below the estimate, or below it if that is all of
                 them
    conf_low     ends of the interval of each quantile alone, which are values of the grid;
                 `estimate`
    conf_high    is between them. They can be equal: a quantile is one of finitely many values
    bounded      whether the interval excludes at least one end of the values
    reach        width of each interval beyond one step between the values, which is the smallest
                 possible width, as a fraction of their range
    n            reports, including those that are no answer
    level        nominal coverage of each interval
    method       "em" or "smoothed"
    flag         "", or "not converged", "not bounded" (some interval includes all values)
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

    The true quantile of share s is the x with F(x) >= s > F(x-), where x- is the next smaller
    value. The interval contains every x for which neither condition is rejected: the interval of
    F(x), as given by `cdf`, reaches s, and that of F(x-) begins below s. So it misses a true
    quantile at most as often as two one-sided ends of intervals of `level`; for the measured
    coverage see `histogram`. Source: the inversion of tests, Thompson 1936.

    >>> from survey.mechanism import grr
    >>> found = quantiles([4000, 3000, 3000], grr(3, "0.6"), [1, 2, 3], [0.2, 0.6])
    >>> found.estimate.tolist(), found.conf_low.tolist(), found.conf_high.tolist()
    ([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])
    """
    requested = np.array(shares, dtype=np.float64)
    if requested.ndim != 1 or requested.size == 0 or not ((requested > 0) & (requested < 1)).all():
        raise ValueError("shares must be numbers between 0 and 1, for example 0.5 for the median")
    distribution = grid_shares(counts, channel, values, method, level)
    below = np.cumsum(distribution.shares)
    middle = np.array([int(np.argmax(below >= s - ROUNDING)) for s in requested])
    grid = np.arange(distribution.values.size)
    curve = Curve(
        grid.size - 1, lambda places: distribution.shares_of([grid <= at for at in places])
    )
    ends = np.array([curve.quantile_ends(float(s)) for s in requested])
    low, high = np.minimum(ends[:, 0], middle), np.maximum(ends[:, 1], middle)
    bounded = (low > 0) | (high < distribution.values.size - 1)
    flags = [distribution.flag, "" if bounded.all() else NOT_BOUNDED]
    return Quantiles(
        share=requested,
        estimate=distribution.values[middle],
        std_error=np.array([curve.error(int(at)) for at in middle]),
        conf_low=distribution.values[low],
        conf_high=distribution.values[high],
        bounded=bounded,
        reach=(distribution.values[high] - distribution.values[np.minimum(low + 1, high)])
        / (distribution.values[-1] - distribution.values[0]),
        n=distribution.n,
        level=level,
        method=distribution.method,
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
    """Estimate the median, the quantile of share 1/2: arrays of shape (1,).

    >>> from survey.mechanism import grr
    >>> median([4000, 3000, 3000], grr(3, "0.6"), [1, 2, 3]).conf_high.tolist()
    [2.0]
    """
    return quantiles(counts, channel, values, (0.5,), level=level, method=method)


class Curve:
    """Intervals of F at places of a grid, each computed once, on demand.

    `compute` returns the intervals of given places, in their order; `last` is the place of the
    largest value, where F is 1.
    """

    def __init__(self, last: int, compute: Callable[[list[int]], list[Share]]) -> None:
        self.last = last
        self.compute = compute
        self.intervals: dict[int, Share] = {}

    def quantile_ends(self, share: float) -> tuple[int, int]:
        """Return the places of the smallest and the largest accepted quantile."""
        places = np.unique(np.linspace(0, self.last - 1, min(COARSE_PLACES, self.last)).round())
        coarse: list[int] = places.astype(np.int64).tolist()
        self._compute_missing(coarse)
        low = self._first(coarse, lambda x: self._at(x).high >= share)
        # x is rejected if F(x-) is above; the largest accepted x follows the last such x-.
        mirrored = [self.last - 1 - x for x in reversed(coarse)]
        beyond = self._first(mirrored, lambda x: self._at(self.last - 1 - x).low < share)
        return low, self.last - beyond

    def error(self, place: int) -> float:
        """Return the standard error of F there, or at the value before the last, where F is 1."""
        return self._at(min(place, self.last - 1)).std_error

    def _compute_missing(self, places: list[int]) -> None:
        missing = [place for place in places if place not in self.intervals]
        if missing:
            self.intervals.update(zip(missing, self.compute(missing), strict=True))

    def _at(self, place: int) -> Share:
        self._compute_missing([place])
        return self.intervals[place]

    def _first(self, coarse: list[int], accepted: Callable[[int], bool]) -> int:
        """Return the first accepted place of 0 .. last - 1, or `last`: coarsely, then by bisection.

        Ends of F rise except for noise; the coarse places give the hull of the accepted ones.
        """
        rejected = -1
        for place in coarse:
            if accepted(place):
                break
            rejected = place
        else:
            return self.last
        while place - rejected > 1:
            halfway = (place + rejected) // 2
            if accepted(halfway):
                place = halfway
            else:
                rejected = halfway
        return place
