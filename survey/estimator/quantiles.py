"""Median and quantiles of the numbers that true answers stand for, by inverting shares below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.estimator.arguments import checked_arguments
from survey.estimator.grid_shares import Share, grid_shares
from survey.estimator.result import Result
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]

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
    bounded: NDArray[np.bool_]
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
