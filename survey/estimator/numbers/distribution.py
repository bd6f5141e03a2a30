"""Distributions of numbers: histograms and cumulative shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.estimator.core.arguments import (
    LARGEST_NUMBER,
    CodeChannel,
    NumberDesign,
    checked_arguments,
    checked_level,
    checked_values,
    reports_from,
    whole_counts,
    within_reach,
)
from survey.estimator.core.debiasing import EFFECTIVE_RANGE, pseudo_values, set_values
from survey.estimator.core.fieller import PseudoRatios, no_answers_error, pseudo_ratios
from survey.estimator.core.maximum_likelihood import (
    most_likely_mixture,
    most_likely_shares,
    require_two_options,
    smoothed_shares,
)
from survey.estimator.core.result import Result
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import Booleans, Floats, Integers

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
    design       the channel and the number of each truth
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
    design: NumberDesign

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
    The other fields are those of `Histogram`, without `design`. The share is certain at the largest
    value (1) and below the smallest (0). Each interval covers one place.
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
    channel: CodeChannel,
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
    some truths are no answer. At level .95 at least .944 of cells, cumulative shares and quantiles
    are covered from n = 200, by simulation over ten channels and eight distributions, including
    point masses and two modes (`tests/benchmarks/distribution.py`).

    Raises CountsError (NoBaseError if hardly anybody answered), ChannelError (one bit determines a
    mean only; d > 1) and ValueError for cells without a value or edges that exclude a value.

    >>> from survey.mechanism.numeric import square_wave
    >>> counts = square_wave(4, 3).matrix[1] * 40_000
    >>> histogram(counts.round(), square_wave(4, 3), range(4), 2).estimate.round(2).tolist()
    [1.0, 0.0]
    """
    grid = grid_shares(counts, channel, values, method, level)
    edges = _edges(bins, grid.values)
    members = cell_members(edges, grid.values)
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
        design=NumberDesign.of(channel, grid.truths),
    )


def cell_members(edges: Floats, values: Floats) -> list[Booleans]:
    """Return which values are in each cell: low <= value < high, in the last also value = high."""
    cell = np.minimum(np.searchsorted(edges, values, side="right") - 1, edges.size - 2)
    return [cell == j for j in range(edges.size - 1)]


@checked_arguments
def cdf(
    counts: ArrayLike,
    channel: CodeChannel,
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
        value=places, **columns, n=grid.n, level=level, method=grid.method, flag=grid.flag
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
    is_rising = within_reach(edges).all() and (np.diff(edges) > 0).all()
    if edges.ndim != 1 or edges.size < 3 or not is_rising:
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


def _places(at: Sequence[float] | Floats | None, values: Floats) -> Floats:
    if at is None:
        positions = np.linspace(0, values.size - 1, min(values.size, CURVE_POINTS))
        return values[np.unique(positions.round().astype(np.int64))].copy()
    places = np.array(at, dtype=np.float64)
    if places.ndim != 1 or places.size == 0 or not within_reach(places).all():
        raise ValueError(f"at must be one or more finite numbers of at most {LARGEST_NUMBER:g}")
    if not (np.diff(places) > 0).all():
        raise ValueError("at must rise")
    return places


PLAIN, SMOOTHED = "em", "smoothed"
METHODS = (PLAIN, SMOOTHED)

SMOOTHED_FROM = 100
"""Tables of at least this many values are smoothed by default. Below, plain shares are nearer to
the truth (`tests/benchmarks/distribution.py`); above, they converge slowly or not at all."""

NOT_CONVERGED = "not converged"

MEAN_RANK = 2
"""Rows of this rank determine one number besides their sum: a mean."""

MIXED_COLUMNS = 6
"""Number of mixed columns from which the rank of a table is computed."""

ZERO = 1e-9
"""Singular values, and shares of people who answered, count as 0 up to this."""


class Share(NamedTuple):
    """An estimated share of a set of values; the ends are in [0, 1], the estimate may not be."""

    estimate: float
    std_error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class GridShares:
    """Shares of the values of one question on a grid, among those who answered.

    values     the different numbers, ascending, shape (v,)
    shares     their displayed shares among those who answered, shape (v,), sum 1
    method     "em" or "smoothed": the method of `shares`
    flag       "" or "not converged"
    pi         the displayed shares of all truths among all respondents, shape (truths,), sum 1
    """

    values: Floats
    shares: Floats
    method: str
    flag: str
    pi: Floats
    counts: Integers
    channel: CodeChannel
    truths: Floats
    level: float

    @property
    def n(self) -> int:
        """Return the number of reports, including those that are no answer."""
        return int(self.counts.sum())

    def shares_of(self, sets: Sequence[Booleans]) -> list[Share]:
        """Estimate the share of each set of values, `values[inside]`, with its interval.

        It is the `mean` of the set's indicator. No set may contain all values, or none.
        """
        ratios = set_ratios(self.channel, self.truths, sets, self.n).of_survey(
            self.counts, self.level
        )
        # The ratios are those of indicators on the scale [-1, 1].
        columns = (
            (1 + ratios.estimate) / 2,
            ratios.std_error / 2,
            (1 + ratios.low) / 2,
            (1 + ratios.high) / 2,
        )
        return [Share(*map(float, row)) for row in np.concatenate(columns, axis=1)]


def set_ratios(
    channel: CodeChannel, truths: Floats, sets: Sequence[Booleans], n: int
) -> PseudoRatios:
    """Return the pseudo-ratios of n reports for the share of each set among those who answered.

    `truths` has shape (truths,), with nan for no answer. Each set is a mask over the distinct
    values in ascending order.
    """
    answered, targets = ~np.isnan(truths), set_targets(truths, sets)
    values, bias = set_values(channel, targets, n)
    denominator, denominator_bias = np.ones(values.shape[1]), 0.0
    if not answered.all():
        answering = pseudo_values(channel, answered.astype(np.float64), n)
        denominator, denominator_bias = answering.values, answering.bias
    return pseudo_ratios(channel, targets, answered, values, denominator, bias + denominator_bias)


def set_targets(truths: Floats, sets: Sequence[Booleans]) -> Floats:
    """Return 1 for truths of a set, -1 for others, 0 for no answer (nan); shape (sets, truths)."""
    answered = ~np.isnan(truths)
    index = np.searchsorted(np.unique(truths[answered]), truths)
    inside = np.array([np.append(marked, False)[index] for marked in sets])
    return np.asarray(np.where(answered, 2.0 * inside - 1, 0.0))


def grid_shares(
    counts: ArrayLike,
    channel: CodeChannel,
    values: Sequence[float | None] | ArrayLike,
    method: str | None,
    level: float,
) -> GridShares:
    """Check all arguments and estimate the displayed shares by the given or the default method."""
    if isinstance(channel, SubsetSelection):
        if channel.d > 1:
            raise ChannelError(f"d = {channel.d}: a distribution needs one count per report")
        require_two_options(channel)
    c = whole_counts(counts, channel.counted, "one per report")
    reports_from(int(c.sum()), 1, None)
    truths = checked_values(values, channel.truths)
    require_more_than_a_mean(channel, ~np.isnan(truths))
    checked_level(level)
    if method is not None and method not in METHODS:
        raise ValueError(f"unknown method {method!r}; the names are {', '.join(METHODS)}")
    different = np.unique(truths[~np.isnan(truths)])
    is_large = isinstance(channel, WeightTable) and different.size >= SMOOTHED_FROM
    name = method or (SMOOTHED if is_large else PLAIN)
    pi, converged = _displayed_shares(c, channel, truths, name)
    if not converged and name == PLAIN:
        # Shares that did not converge are no estimate; display the smoothed ones.
        pi, _ = _displayed_shares(c, channel, truths, SMOOTHED)
        name = f"{SMOOTHED}, {PLAIN} did not converge"
    shares = np.array([pi[truths == value].sum() for value in different])
    if shares.sum() <= ZERO:
        raise no_answers_error()
    flag = "" if converged else NOT_CONVERGED
    return GridShares(different, shares / shares.sum(), name, flag, pi, c, channel, truths, level)


def require_more_than_a_mean(channel: CodeChannel, answers: Booleans) -> None:
    """Reject tables like one bit: with rows of rank two, reports determine one number only."""
    if isinstance(channel, SubsetSelection) or answers.sum() <= MEAN_RANK:
        return
    rows = channel.matrix[answers]
    # A few mixtures of all columns keep the rank up to their number, fast even for a large table.
    mixed = rows @ np.cos(
        np.outer(np.arange(1, rows.shape[1] + 1), np.arange(1, MIXED_COLUMNS + 1))
    )
    if np.linalg.matrix_rank(mixed / np.abs(mixed).max(), ZERO) <= MEAN_RANK:
        raise ChannelError(
            f"reports of this {channel.shape.name} table determine the mean of the answers and "
            "nothing else: all people in the middle give the same reports as half of them at each "
            "end; use `mean`, or ask with a square wave"
        )


def _displayed_shares(
    counts: Integers, channel: CodeChannel, truths: Floats, method: str
) -> tuple[Floats, bool]:
    if method == SMOOTHED:
        order = np.argsort(truths, kind="stable")  # nan last
        along = order[: int((~np.isnan(truths)).sum())]
        return smoothed_shares(counts, channel.matrix, along)
    if isinstance(channel, SubsetSelection):
        return most_likely_shares(counts, channel), True
    pi = most_likely_mixture(counts, channel.matrix)
    return pi, not bool(np.isnan(pi).any())
