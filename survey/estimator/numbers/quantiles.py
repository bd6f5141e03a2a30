"""Quantiles of numbers, with intervals from those of cumulative shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from survey.estimator.core.arguments import CodeChannel, NumberDesign, checked_arguments
from survey.estimator.core.result import Result
from survey.estimator.numbers.distribution import Share, grid_shares
from survey.mechanism.channel import Booleans, Floats

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
    design       the channel and the number of each truth
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
    design: NumberDesign

    index_names = ("quantile",)


@checked_arguments
def quantiles(
    counts: ArrayLike,
    channel: CodeChannel,
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
    quantile at most as often as two one-sided ends of intervals of `level`. F(x) and F(x-) differ
    by the share of x. Where the interval of that share excludes 0, only one of them can be near s,
    and both ends have the one-sided error 1 - level, those of intervals of the level
    2 level - 1. Sources: the inversion of tests, Thompson 1936; intervals for a number known to
    lie between two estimates, Imbens and Manski 2004.

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
    # The error of one end is that of both ends of this level.
    one_sided = 2 * level - 1
    curve = Curve(
        grid.size - 1,
        lambda places: distribution.shares_of([grid <= at for at in places]),
        lambda at: distribution.shares_of([grid == at])[0],
        (lambda at: replace(distribution, level=one_sided).shares_of([grid <= at])[0])
        if one_sided > 0
        else None,
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
        design=NumberDesign.of(channel, distribution.truths),
    )


@checked_arguments
def median(
    counts: ArrayLike,
    channel: CodeChannel,
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

    `last` is the place of the largest value, where F is 1. `compute` returns the intervals of F at
    given places, in their order, `value_share` that of the share of the value at a place, and
    `one_sided` that of F at a place whose ends have the one-sided error 1 - level.
    """

    def __init__(
        self,
        last: int,
        compute: Callable[[list[int]], list[Share]],
        value_share: Callable[[int], Share],
        one_sided: Callable[[int], Share] | None,
    ) -> None:
        self.last = last
        self.compute = compute
        self.value_share = value_share
        self.one_sided = one_sided
        self.intervals: dict[int, Share] = {}

    def quantile_ends(self, share: float) -> tuple[int, int]:
        """Return the places of the smallest and the largest accepted quantile."""
        places = np.unique(np.linspace(0, self.last - 1, min(COARSE_PLACES, self.last)).round())
        coarse: list[int] = places.astype(np.int64).tolist()
        self._compute_missing(coarse)
        low = self._first(coarse, lambda x: self._at(x).high >= share)
        # x is rejected if F(x-) is above; the largest accepted x follows the last such x-.
        mirrored = [self.last - 1 - x for x in reversed(coarse)]
        high = self.last - self._first(mirrored, lambda x: self._at(self.last - 1 - x).low < share)
        one_sided = self.one_sided
        if one_sided is None:
            return low, high
        while low < high and self.value_share(low).low > 0 and one_sided(low).high < share:
            low += 1
        while low < high and self.value_share(high).low > 0 and one_sided(high - 1).low >= share:
            high -= 1
        return low, high

    def error(self, place: int) -> float:
        """Return the standard error of F at a place, or just before the last one, where F is 1."""
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
