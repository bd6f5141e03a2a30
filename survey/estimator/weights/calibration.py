"""Reports adjusted to what is known of the population: post-stratification and raking."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError, DesignError
from survey.estimator.core.arguments import aligned, checked_arguments, checked_level, whole_counts
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.moments import seen_variance
from survey.estimator.shares.tally import Reading, Tally, reading, tally
from survey.estimator.tables.proportional_fitting import Margin, Margins, checked_margins, fitted
from survey.estimator.weights.weighting import WeightedShares
from survey.mechanism import AnyChannel
from survey.mechanism.arrays import Floats, Integers


@checked_arguments
def poststratified(
    counts: ArrayLike,
    population: ArrayLike,
    channel: AnyChannel,
    *,
    n: ArrayLike | None = None,
    level: float = 0.95,
) -> WeightedShares:
    """Estimate shares of a population whose strata have known sizes.

    `counts` has shape (strata, counted): a row, as `channel.count` makes it, for each openly
    known stratum; `population` has shape (strata,): people or shares. Every report of stratum h
    stands for N_h / n_h people: estimate = sum N_h pi_h / N,
    SE^2 = n/(n-1) sum_h (N_h/N)^2 s_h^2 / n_h with s_h^2 the mean of (r - pi_h)^2 in stratum h
    (residuals; R `survey` 4.1 postStratify on a simple random sample prints the same).

    The interval is Wilson's hull with the n_eff at which equal weights would have the error of
    strata whose shares, and the one of all, are drawn towards 1/2 (`_effective`): a small
    stratum in which all reports are alike is not certain. Coverage at .95, simulated (three strata,
    shares from 0 to 1; k 2, 4; epsilon .5 to 4; n 60, 500): at least .942; where ten reports stand
    for more than a third of the people (epsilon 1 to 8, n 100) at least .935. SE itself is too
    small where strata have a dozen reports (by a sixth to a third at n = 60, epsilon 4).

    Valid when, within each stratum, who answers does not depend on the answer.

    Raises DesignError for sizes that are negative or no number and for a stratum of positive size
    without reports or with a single one (merge it with another) or of size zero with reports;
    CountsError for counts
    that the channel cannot have given.

    >>> from survey.mechanism import grr
    >>> found = poststratified([[60, 40], [30, 70]], [800, 200], grr(2, "3/4"))
    >>> found.estimate.round(3).tolist(), found.std_error.round(3).tolist()
    ([0.58, 0.42], [0.081, 0.081])
    """
    checked_level(level)
    sorted_reports = tally(counts, channel, n)
    strata = len(sorted_reports.n)
    if (sorted_reports.n == 1).any() and sorted_reports.n.sum() > 1:
        raise DesignError(
            f"stratum {int(np.argmax(sorted_reports.n == 1))} has one report, which shows nothing "
            "of how its people differ: merge it with another"
        )
    known = checked_margins([population], (strata,))
    return _calibrated(
        sorted_reports, channel, known, _weights(sorted_reports.n, known), level, "post-strata"
    )


@checked_arguments
def raked(
    counts: ArrayLike,
    margins: Margins,
    channel: AnyChannel,
    *,
    n: ArrayLike | None = None,
    level: float = 0.95,
) -> WeightedShares:
    """Estimate shares of a population of which only margins are known, such as age and region.

    `counts` has shape (a, b, ..., counted): the counts of each cell of the openly known
    categories, as `channel.count` makes them; `margins` are people or shares, one array for each
    axis, or by axes ({(0, 1): ages by sexes, 2: regions}). All must have the same total. The
    numbers of reports in the cells are fitted to the margins (`fitted`), every report of a cell
    has the weight of its cell, and SE^2 = n/(n-1) sum (w e - mean)^2 / (sum w)^2 where e are the
    residuals of r - estimate after regression on the categories of all margins (as R `survey`
    4.1 rake has it). The interval is that of `poststratified`.

    Raises DesignError for margins that are negative, no numbers, of different totals, positive
    where there are no reports, or that these cells cannot have (raking does not converge).

    >>> from survey.mechanism import grr
    >>> counts = [[[30, 20], [10, 40]], [[25, 25], [20, 30]]]
    >>> found = raked(counts, [[.6, .4], [.5, .5]], grr(2, "3/4"))
    >>> found.estimate.round(3).tolist(), found.std_error.round(3).tolist()
    ([0.34, 0.66], [0.068, 0.068])
    """
    checked_level(level)
    table = aligned(counts)
    if table.ndim < 2 or not table.size:
        raise CountsError(f"counts of shape {table.shape} must have an axis per margin and a last")
    shape = table.shape[:-1]
    stated = None if n is None else np.asarray(n).ravel()
    cells = tally(table.reshape(-1, table.shape[-1]), channel, stated)
    known = checked_margins(margins, shape)
    weights = _weights(cells.n.reshape(shape), known).ravel()
    return _calibrated(cells, channel, known, weights, level, "raking", shape)


@checked_arguments
def raking_weights(reports: ArrayLike, margins: Margins) -> Floats:
    """The weight of one report of each cell, in the shape of `reports`, the reports per cell.

    Weighted, the reports have the margins given; a cell without reports has weight 0.

    >>> raking_weights([[50, 50], [50, 50]], [[60, 40], [50, 50]]).tolist()
    [[0.6, 0.6], [0.4, 0.4]]
    """
    table = aligned(reports)
    cells = whole_counts(table.ravel(), table.size, "one per cell").reshape(table.shape)
    return _weights(cells, checked_margins(margins, cells.shape))


def _weights(n: Integers, known: list[Margin]) -> Floats:
    for margin in known:
        lost = (margin.totals == 0) & (margin.of(n) > 0)
        if lost.any():
            raise DesignError(
                f"a margin of axis {margin.axes} is 0 at category {int(np.argmax(lost))}, which "
                "has reports: leave them out or correct the margin"
            )
    people = fitted(n, {margin.axes: margin.totals for margin in known})
    return np.asarray(np.divide(people, n, out=np.zeros_like(people), where=n > 0))


def _calibrated(
    cells: Tally,
    channel: AnyChannel,
    known: list[Margin],
    weights: Floats,
    level: float,
    name: str,
    shape: tuple[int, ...] | None = None,
) -> WeightedShares:
    """Shares at the weights of cells that were fitted to margins, with errors by residuals."""
    read = reading(channel)
    if cells.reports.sum(axis=(0, 1)).min() < 2:
        raise CountsError("an adjusted estimate needs at least 2 reports")
    w = (weights / weights.max())[:, None, None]
    total = (w * cells.reports).sum(axis=(0, 1))
    estimate = (w * cells.reports * read.values).sum(axis=(0, 1)) / total
    rest = read.values - estimate
    between = _fitted_by_margins(cells, rest, known, shape or cells.n.shape)
    squared = _squared_error(cells.reports, w * (rest - between[:, None, :])) / total**2
    least = (_by_randomization(read, cells) * (w[:, 0] / total) ** 2).sum(axis=0)
    squared = seen_variance(squared, read.moments.own / cells.n.sum(), least)
    n_effective = _effective(read, cells, w[:, :, 0] / total, estimate, between, level)
    low, high = read.interval(estimate, n_effective, level)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(squared),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=int(cells.n.sum()),
        level=level,
        method=f"{name}, {'wilson-hull' if read.chances else 'score'}",
    )


def _squared_error(reports: Integers, x: Floats) -> Floats:
    """n/(n-1) sum (x - mean)^2 over reports, x of shape (cells, kinds, k)."""
    n = reports.sum(axis=(0, 1))
    mean = (reports * x).sum(axis=(0, 1)) / n
    return np.asarray(n / (n - 1) * (reports * (x - mean) ** 2).sum(axis=(0, 1)))


def _by_randomization(read: Reading, cells: Tally) -> Floats:
    """n_h Var(g | truth) of each cell at its possible share nearest to the one seen; (cells, k)."""
    n = cells.reports.sum(axis=1)
    sums = (cells.reports * read.values).sum(axis=1)
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    return np.asarray(n * read.moments.randomization(np.clip(means, 0.0, 1.0)))


def _fitted_by_margins(
    cells: Tally, rest: Floats, known: list[Margin], shape: tuple[int, ...]
) -> Floats:
    """Fitted values of r - estimate on indicators of all categories of the margins; (cells, k).

    They depend on the cell alone, so cell means, counted n times each, give the same.
    """
    columns = _indicators(known, shape)
    n = cells.reports.sum(axis=1)
    sums = (cells.reports * rest).sum(axis=1)
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    found = np.empty(means.shape)
    for option in range(means.shape[1]):
        root = np.sqrt(n[:, min(option, n.shape[1] - 1)])
        beta = np.linalg.lstsq(root[:, None] * columns, root * means[:, option], rcond=None)[0]
        found[:, option] = columns @ beta
    return found


def _indicators(known: list[Margin], shape: tuple[int, ...]) -> Floats:
    """1 where a cell is in a category of a margin; shape (cells, categories of all margins)."""
    places = np.indices(shape).reshape(len(shape), -1)
    blocks: list[Floats] = []
    for margin in known:
        sizes = tuple(shape[axis] for axis in margin.axes)
        category = np.ravel_multi_index(tuple(places[list(margin.axes)]), sizes)
        blocks.append(np.eye(int(np.prod(sizes)))[category])
    return np.concatenate(blocks, axis=1)


def _effective(
    read: Reading, cells: Tally, share: Floats, estimate: Floats, between: Floats, level: float
) -> Floats:
    """The n at which equal weights have the error of these cells, all shares smoothed alike.

    Var(x)/V, V = sum_h (w_h/W)^2 n_h [Var(x_h) + (the mean of h - what margins fit)^2], with
    x_h = (n_h pi_h + z^2/2)/(n_h + z^2), and x the same of as many reports as Kish counts.
    """
    z2 = normal_quantile(level) ** 2
    n = cells.reports.sum(axis=1)
    sums = (cells.reports * read.values).sum(axis=1)
    smoothed = np.clip((sums + z2 / 2) / (n + z2), 0.0, 1.0)
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    apart = means - estimate - between
    variance = (share**2 * n * (read.moments.variance(smoothed) + apart**2)).sum(axis=0)
    kish = 1 / (share**2 * n).sum(axis=0)
    x = np.clip((kish * estimate + z2 / 2) / (kish + z2), 0.0, 1.0)
    return np.asarray(read.moments.variance(x) / variance)
