"""Raking and post-stratification: reports weighted to known population margins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError, DesignError
from survey.estimator.core.arguments import aligned, checked_arguments, checked_level, whole_counts
from survey.estimator.core.debiasing import observed_variance
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.shares.linear_estimator import LinearEstimator, Tally, linear_estimator, tally
from survey.estimator.tables.proportional_fitting import Margin, Margins, checked_margins, fitted
from survey.estimator.weights.weighted_shares import WeightedShares
from survey.mechanism import AnyChannel
from survey.mechanism.channel import Floats, Integers


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

    `counts` has shape (strata, counts): a row for each stratum, as returned by `channel.count`;
    strata are known without randomization. `population` has shape (strata,): people or shares.
    Every report of stratum h represents N_h / n_h people: estimate = sum N_h pi_h / N, SE^2 =
    n/(n-1) sum_h (N_h/N)^2 s_h^2 / n_h with s_h^2 the mean of (r - pi_h)^2 in stratum h (residuals;
    R `survey` 4.1 postStratify on a simple random sample prints the same).

    The interval is Wilson's hull with the n_eff at which equal weights would have the error of
    strata whose shares, and the total share, are drawn towards 1/2 (`_effective_n`), because a
    small stratum of identical reports is not certain. Coverage at .95, simulated (three strata,
    shares from 0 to 1; k 2, 4; epsilon .5 to 4; n 60, 500): at least .942; where ten reports
    represent more than a third of the people (epsilon 1 to 8, n 100) at least .935. SE itself is
    too small if strata have a dozen reports (by a sixth to a third at n = 60, epsilon 4).

    Valid if, within each stratum, participation does not depend on the answer.

    Raises DesignError for sizes that are negative or no number, for a stratum of positive size
    without reports or with a single one (merge it with another), or of size zero with reports;
    CountsError for counts that the channel cannot produce.

    >>> from survey.mechanism import grr
    >>> found = poststratified([[60, 40], [30, 70]], [800, 200], grr(2, "3/4"))
    >>> found.estimate.round(3).tolist(), found.std_error.round(3).tolist()
    ([0.58, 0.42], [0.081, 0.081])
    """
    checked_level(level)
    tallies = tally(counts, channel, n)
    strata = len(tallies.n)
    if (tallies.n == 1).any() and tallies.n.sum() > 1:
        raise DesignError(
            f"stratum {int(np.argmax(tallies.n == 1))} has one report, which is not enough "
            "for a variance: merge it with another"
        )
    margins = checked_margins([population], (strata,))
    return _calibrated(
        tallies, channel, margins, _weights(tallies.n, margins), level, "post-strata"
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

    `counts` has shape (a, b, ..., counts): the counts of each cell of the categories that are known
    without randomization, as returned by `channel.count`. `margins` are people or shares, one array
    for each axis, or by axes ({(0, 1): ages by sexes, 2: regions}). All must have the same total.
    The numbers of reports in the cells are fitted to the margins (`fitted`), and every report has
    the weight of its cell. SE^2 = n/(n-1) sum (w e - mean)^2 / (sum w)^2, where e are the residuals
    of r - estimate after regression on the categories of all margins (as in R `survey` 4.1 rake).
    The interval is that of `poststratified`.

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
        raise CountsError(
            f"counts of shape {table.shape} must have an axis per margin and a last one"
        )
    shape = table.shape[:-1]
    stated = None if n is None else np.asarray(n).ravel()
    cells = tally(table.reshape(-1, table.shape[-1]), channel, stated)
    checked = checked_margins(margins, shape)
    weights = _weights(cells.n.reshape(shape), checked).ravel()
    return _calibrated(cells, channel, checked, weights, level, "raking", shape)


@checked_arguments
def raking_weights(reports: ArrayLike, margins: Margins) -> Floats:
    """Return the weight of one report of each cell, in the shape of `reports` (per cell).

    The weighted reports have the given margins; a cell without reports has weight 0.

    >>> raking_weights([[50, 50], [50, 50]], [[60, 40], [50, 50]]).tolist()
    [[0.6, 0.6], [0.4, 0.4]]
    """
    table = aligned(reports)
    cells = whole_counts(table.ravel(), table.size, "one per cell").reshape(table.shape)
    return _weights(cells, checked_margins(margins, cells.shape))


def _weights(n: Integers, margins: list[Margin]) -> Floats:
    for margin in margins:
        contradicted = (margin.totals == 0) & (margin.of(n) > 0)
        if contradicted.any():
            raise DesignError(
                f"a margin of axis {margin.axes} is 0 at category {int(np.argmax(contradicted))}, "
                "which has reports: leave them out or correct the margin"
            )
    people = fitted(n, {margin.axes: margin.totals for margin in margins})
    return np.asarray(np.divide(people, n, out=np.zeros_like(people), where=n > 0))


def _calibrated(
    cells: Tally,
    channel: AnyChannel,
    margins: list[Margin],
    weights: Floats,
    level: float,
    name: str,
    shape: tuple[int, ...] | None = None,
) -> WeightedShares:
    """Return shares at the weights of cells fitted to margins, with errors from residuals."""
    linear = linear_estimator(channel)
    if cells.reports.sum(axis=(0, 1)).min() < 2:
        raise CountsError("an adjusted estimate needs at least 2 reports")
    w = (weights / weights.max())[:, None, None]
    total = (w * cells.reports).sum(axis=(0, 1))
    estimate = (w * cells.reports * linear.values).sum(axis=(0, 1)) / total
    residual = linear.values - estimate
    between = _fitted_by_margins(cells, residual, margins, shape or cells.n.shape)
    squared = _squared_error(cells.reports, w * (residual - between[:, None, :])) / total**2
    minimum = (_by_randomization(linear, cells) * (w[:, 0] / total) ** 2).sum(axis=0)
    squared = observed_variance(squared, linear.moments.own / cells.n.sum(), minimum)
    n_effective = _effective_n(linear, cells, w[:, :, 0] / total, estimate, between, level)
    low, high = linear.interval(estimate, n_effective, level)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(squared),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=int(cells.n.sum()),
        level=level,
        method=f"{name}, {'wilson-hull' if linear.chances else 'score'}",
    )


def _squared_error(reports: Integers, x: Floats) -> Floats:
    """Return n/(n-1) sum (x - mean)^2 over reports, x of shape (cells, kinds, k)."""
    n = reports.sum(axis=(0, 1))
    mean = (reports * x).sum(axis=(0, 1)) / n
    return np.asarray(n / (n - 1) * (reports * (x - mean) ** 2).sum(axis=(0, 1)))


def _by_randomization(linear: LinearEstimator, cells: Tally) -> Floats:
    """Return n_h Var(g | truth) of each cell at its nearest possible share; (cells, k)."""
    n = cells.reports.sum(axis=1)
    sums = (cells.reports * linear.values).sum(axis=1)
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    return np.asarray(n * linear.moments.randomization(np.clip(means, 0.0, 1.0)))


def _fitted_by_margins(
    cells: Tally, residual: Floats, margins: list[Margin], shape: tuple[int, ...]
) -> Floats:
    """Return r - estimate regressed on indicators of the margins' categories, (cells, k).

    They depend on the cell alone, so a regression of cell means with weights n gives the same
    values.
    """
    columns = _indicators(margins, shape)
    n = cells.reports.sum(axis=1)
    sums = (cells.reports * residual).sum(axis=1)
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    fitted_values = np.empty(means.shape)
    for option in range(means.shape[1]):
        root = np.sqrt(n[:, min(option, n.shape[1] - 1)])
        beta = np.linalg.lstsq(root[:, None] * columns, root * means[:, option], rcond=None)[0]
        fitted_values[:, option] = columns @ beta
    return fitted_values


def _indicators(margins: list[Margin], shape: tuple[int, ...]) -> Floats:
    """Return 1 where a cell is in a category of a margin; shape (cells, all categories)."""
    places = np.indices(shape).reshape(len(shape), -1)
    blocks: list[Floats] = []
    for margin in margins:
        sizes = tuple(shape[axis] for axis in margin.axes)
        category = np.ravel_multi_index(tuple(places[list(margin.axes)]), sizes)
        blocks.append(np.eye(int(np.prod(sizes)))[category])
    return np.concatenate(blocks, axis=1)


def _effective_n(
    linear: LinearEstimator,
    cells: Tally,
    share: Floats,
    estimate: Floats,
    between: Floats,
    level: float,
) -> Floats:
    """Return the n at which equal weights have the error of these cells, with all shares smoothed.

    Var(x)/V, V = sum_h (w_h/W)^2 n_h [Var(x_h) + (the mean of h - its fitted value)^2], with
    x_h = (n_h pi_h + z^2/2)/(n_h + z^2), and x the same for Kish's number of reports.
    """
    z2 = normal_quantile(level) ** 2
    n = cells.reports.sum(axis=1)
    sums = (cells.reports * linear.values).sum(axis=1)
    smoothed = np.clip((sums + z2 / 2) / (n + z2), 0.0, 1.0)
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    deviation = means - estimate - between
    variance = (share**2 * n * (linear.moments.variance(smoothed) + deviation**2)).sum(axis=0)
    kish = 1 / (share**2 * n).sum(axis=0)
    x = np.clip((kish * estimate + z2 / 2) / (kish + z2), 0.0, 1.0)
    return np.asarray(linear.moments.variance(x) / variance)
