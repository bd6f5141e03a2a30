"""Weighted shares: known weights, post-stratification, raking to population margins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError, DesignError
from survey.estimator.core.arguments import (
    CodeChannel,
    checked_arguments,
    checked_level,
    whole_counts,
)
from survey.estimator.core.debiasing import SecondMoments, observed_variance
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.shares.linear_estimator import LinearEstimator, Tally, linear_estimator, tally
from survey.estimator.tables.crosstab import PairDesign
from survey.estimator.tables.proportional_fitting import Margin, Margins, checked_margins, fitted
from survey.mechanism import AnyChannel, SubsetSelection
from survey.mechanism.channel import Floats, Integers


class WeightedDesign(NamedTuple):
    """What determines the precision of weighted shares before there are answers.

    moments     second moments of a report's value
    n           number of reports of equal weight that would be as informative: (sum w)^2/sum w^2
                (Kish 1965); all reports for standardization
    pair        for standardization, the question and the one whose answers have known shares
    population  for standardization, the shares of the population with each of these answers
    """

    moments: SecondMoments
    n: float
    pair: PairDesign | None = None
    population: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class WeightedShares(Result):
    """Weighted shares of the k true answers; arrays have shape (k,).

    estimate       linear in the weights of the reports; may be outside [0, 1]
    std_error      of `estimate`: sampling, randomization and weights together; never 0
                   (`observed_variance`)
    conf_low       ends of the interval, in [0, 1]
    conf_high
    n_effective    number of reports of equal weight that would be as informative, used in the
                   interval
    n              reports
    level          nominal coverage of each interval
    method         kind of weights, "weights", "post-stratification" or "raking", and the interval
    design         what determines the precision before there are answers
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    n_effective: Floats
    n: int
    level: float
    method: str
    design: WeightedDesign


@checked_arguments
def weighted_shares(
    counts: ArrayLike,
    weights: ArrayLike,
    channel: AnyChannel,
    *,
    n: ArrayLike | None = None,
    level: float = 0.95,
) -> WeightedShares:
    """Estimate weighted shares from counts of the reports of each weight.

    `counts` has shape (classes, counts): a row for each class of reports of one weight (a stratum,
    or a single report with its membership), as returned by `channel.count`. `weights` has shape
    (classes,), in any unit. `n`, shape (classes,), is needed only if the counts do not determine
    it.

    With r_i = (1[y_i = j] - q)/(p-q), or the linear value of a table's report: estimate = sum w r /
    sum w, SE^2 = n/(n-1) sum w^2 (r - estimate)^2 / (sum w)^2 (R `survey` 4.1 svymean prints the
    same). The interval is Wilson's hull on the weighted f with the smallest of three n: (sum w)^2 /
    sum w^2 (Kish 1965); the n at which equal weights would have this SE; and the same with the
    shares of light and heavy reports drawn towards 1/2 (`_smoothed`). Both ends
    move outwards because counts are whole numbers (`lattice_shift`). Coverage at .95, simulated
    (weights 1, 2, 5, or 1, 5, 50, or log-normal; epsilon .8 to 8; n 25 to 1,000; shares 0 to .5):
    at least .950, also where the heaviest tenth alone has the answer (n 60 to 300); enumerated,
    where one to twelve reports of 2 to 50 times the weight of all others alone have it (epsilon 6
    and 8): at least .950. The mean width is .99 (log-normal weights: 1.14) of that of equal weights
    with (sum w)^2/sum w^2 reports. Answers of which a sample has no report are not covered: where
    two reports of 202 are expected to weigh ten times as much as the others and nine tenths of
    these people alone have the answer, coverage is .86.

    Valid if weights are known beforehand (inverse selection probabilities). Weights that were
    adjusted to margins have smaller errors: use `poststratified` or `raked`.

    Raises DesignError for weights that are zero, negative or no number, CountsError for counts that
    the channel cannot produce and for fewer than two reports.

    >>> from survey.mechanism import grr
    >>> found = weighted_shares([[60, 40], [30, 70]], [1, 2], grr(2, "3/4"))
    >>> found.estimate.round(3).tolist(), found.std_error.round(3).tolist()
    ([0.3, 0.7], [0.072, 0.072])
    >>> found.n_effective.round(1).tolist()
    [180.0, 180.0]
    """
    checked_level(level)
    linear, tallies = linear_estimator(channel), tally(counts, channel, n)
    w = checked_weights(weights, len(tallies.n))
    group, groups = _weight_groups(w)
    member = np.eye(groups)[:, group]
    sums = [np.tensordot(member * w**m, tallies.reports, axes=1) for m in range(3)]
    return _weighted(linear, _Sums(*sums), int(tallies.n.sum()), level)


@checked_arguments
def weighted_reports(
    reports: ArrayLike, weights: ArrayLike, channel: CodeChannel, *, level: float = 0.95
) -> WeightedShares:
    """Return `weighted_shares` from single reports: codes and weights, both of shape (n,).

    For channels whose reports are one code each (generalized randomized response, tables). For
    other channels use `weighted_shares` with a row of counts per report.

    >>> from survey.mechanism import grr
    >>> codes, weights = [0, 1, 1, 0, 1], [1, 1, 2, 2, 1]
    >>> weighted_reports(codes, weights, grr(2, "9/10")).estimate.round(3).tolist()
    [0.411, 0.589]
    """
    checked_level(level)
    kinds = channel.counted
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        raise CountsError("reports of sets: give `weighted_shares` a row of memberships for each")
    codes = np.asarray(reports)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise CountsError("reports must be whole numbers of shape (n,), one code for each report")
    if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < kinds:
        raise CountsError(f"reports must be from 0 to {kinds - 1}")
    w = checked_weights(weights, codes.size)
    if not codes.size:
        raise CountsError("0 reports: a weighted estimate needs at least 2")
    group, groups = _weight_groups(w)
    linear, place = linear_estimator(channel), group * kinds + codes
    sums_of_powers = [np.bincount(place, w**m, groups * kinds).astype(np.float64) for m in range(3)]
    sums = _Sums(*(_by_kind(power.reshape(groups, kinds), linear) for power in sums_of_powers))
    return _weighted(linear, sums, codes.size, level)


class _Sums(NamedTuple):
    """Sums over reports by weight group and kind; shape (groups, kinds, options or 1)."""

    reports: Floats
    w: Floats
    w2: Floats


def _weight_groups(w: Floats) -> tuple[Integers, int]:
    """Return the group of each weight (within a factor of two), and the number of groups."""
    doublings = np.floor(-np.log2(np.maximum(w, np.finfo(np.float64).tiny)))
    distinct, group = np.unique(doublings, return_inverse=True)
    return group, distinct.size


def _by_kind(sums: Floats, linear: LinearEstimator) -> Floats:
    """Return sums by kind of report.

    For set-valued channels, the kinds of each option are the reports that do not support it and
    those that do; for other channels, each code is a kind.
    """
    if linear.chances:
        return np.stack([sums.sum(axis=1, keepdims=True) - sums, sums], axis=1)
    return sums[:, :, None]


def checked_weights(weights: ArrayLike, size: int) -> Floats:
    """Return the weights in units of the largest, or raise DesignError with the reason."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (size,):
        raise DesignError(
            f"weights of shape {w.shape} must have shape ({size},), one for each report or class"
        )
    for wrong, reason in (
        (~np.isfinite(w), "must be a finite number"),
        (w <= 0, "must be above 0: leave out reports that do not count"),
    ):
        if wrong.any():
            place = int(np.argmax(wrong))
            raise DesignError(f"weights[{place}] = {w[place]} {reason}")
    return np.asarray(w / w.max()) if w.size else w


def _weighted(linear: LinearEstimator, sums: _Sums, n: int, level: float) -> WeightedShares:
    """Return estimate, error and interval from the sums of 1, w and w^2."""
    reports, first, second = (part.sum(axis=0) for part in sums)
    n_reports = reports.sum(axis=0)
    if n_reports.min() < 2:
        raise CountsError(f"{n_reports.min():g} reports: a weighted estimate needs at least 2")
    total = first.sum(axis=0)
    estimate = (first * linear.values).sum(axis=0) / total
    # E[(r - estimate)^2] and E[r^2] at weights w^2
    scatter = (second * (linear.values - estimate) ** 2).sum(axis=0) / second.sum(axis=0)
    square = (second * linear.values**2).sum(axis=0) / second.sum(axis=0)
    x = np.clip(estimate, 0.0, 1.0)
    variance = observed_variance(scatter, square, linear.moments.randomization(x))
    kish = np.broadcast_to(total**2 / second.sum(axis=0), estimate.shape)
    # SE^2 = n/(n-1) sum w^2 (r - estimate)^2 / (sum w)^2
    squared_error = n_reports / (n_reports - 1) * variance / kish
    n_effective = np.minimum(kish, linear.moments.variance(x) / squared_error)
    n_effective = np.minimum(n_effective, _smoothed(linear, sums, estimate, kish, level))
    shift = _lattice_shift(linear, sums, total, level)
    low, high = linear.interval(estimate, n_effective, level, shift)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(squared_error),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=n,
        level=level,
        method=f"weights, {'wilson-hull' if linear.chances else 'score'}",
        design=WeightedDesign(linear.moments, float(kish.min())),
    )


def _lattice_shift(linear: LinearEstimator, sums: _Sums, total: Floats, level: float) -> Floats:
    """Return the shift for reports with their group's mean weight, sum w^2 / sum w."""
    first, second = sums.w.sum(axis=1), sums.w2.sum(axis=1)
    weight = np.divide(second, first, out=np.zeros_like(first), where=first > 0)
    return linear.shift(weight / total, sums.reports, level)


def _cell_means(reports: Floats | Integers, values: Floats) -> tuple[Any, Floats]:
    """Return the reports of each cell or group, and the means of their values, 0 without any."""
    n, sums = reports.sum(axis=1), (reports * values).sum(axis=1)
    return n, np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)


def _smoothed(
    linear: LinearEstimator, sums: _Sums, estimate: Floats, kish: Floats, level: float
) -> Floats:
    """Return Kish's n, reduced by the effect of shares drawn towards 1/2 in each weight group.

    kish Var(x) / (sum w^2 [Var(x_g) + (pi_g - pi)^2] / sum w^2), with x_g = (n_g pi_g + z^2/4) /
    (n_g + z^2/2) and x = (kish pi + z^2/2) / (kish + z^2), the centre of Wilson's interval: a few
    identical heavy reports are not certain. Half as many reports are added to a group as to all,
    because the ends also move by the lattice of heavy reports.
    """
    z2 = normal_quantile(level) ** 2
    w2 = sums.w2.sum(axis=1)
    n, means = _cell_means(sums.reports, linear.values)
    x = np.clip((n * means + z2 / 4) / (n + z2 / 2), 0.0, 1.0)
    common = np.clip((kish * estimate + z2 / 2) / (kish + z2), 0.0, 1.0)
    deviation = np.where(n > 0, means - estimate, 0.0)
    variance = (w2 * (linear.moments.variance(x) + deviation**2)).sum(axis=0) / w2.sum(axis=0)
    return np.asarray(kish * linear.moments.variance(common) / variance)


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
    n/(n-1) sum_h (N_h/N)^2 s_h^2 / n_h with s_h^2 the mean of (r - pi_h)^2 in stratum h (R `survey`
    4.1 postStratify on a simple random sample prints the same).

    The interval is Wilson's hull with the n_eff at which equal weights would have the error of
    strata whose shares, and the total share, are drawn towards 1/2 (`_effective_n`). Coverage at
    .95, simulated (three strata; k 2, 4; epsilon .5 to 4; n 60, 500): at least .942; where ten
    reports represent more than a third of the people (epsilon 1 to 8, n 100) at least .935.

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
        tallies, channel, margins, _cell_weights(tallies.n, margins), level, "post-strata"
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
    table = np.asarray(counts)
    if table.ndim < 2 or not table.size:
        raise CountsError(
            f"counts of shape {table.shape} must have an axis per margin and a last one"
        )
    shape = table.shape[:-1]
    stated = None if n is None else np.asarray(n).ravel()
    cells = tally(table.reshape(-1, table.shape[-1]), channel, stated)
    checked = checked_margins(margins, shape)
    weights = _cell_weights(cells.n.reshape(shape), checked).ravel()
    return _calibrated(cells, channel, checked, weights, level, "raking", shape)


@checked_arguments
def raking_weights(reports: ArrayLike, margins: Margins) -> Floats:
    """Return the weight of one report of each cell, in the shape of `reports` (per cell).

    The weighted reports have the given margins; a cell without reports has weight 0.

    >>> raking_weights([[50, 50], [50, 50]], [[60, 40], [50, 50]]).tolist()
    [[0.6, 0.6], [0.4, 0.4]]
    """
    table = np.asarray(reports)
    cells = whole_counts(table.ravel(), table.size, "one per cell").reshape(table.shape)
    return _cell_weights(cells, checked_margins(margins, cells.shape))


def _cell_weights(n: Integers, margins: list[Margin]) -> Floats:
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
    # n/(n-1) sum (x - mean)^2 over reports
    x, n = w * (residual - between[:, None, :]), cells.reports.sum(axis=(0, 1))
    mean = (cells.reports * x).sum(axis=(0, 1)) / n
    squared = n / (n - 1) * (cells.reports * (x - mean) ** 2).sum(axis=(0, 1)) / total**2
    # n_h Var(g | truth) of each cell at its nearest possible share
    n_cell, means = _cell_means(cells.reports, linear.values)
    by_randomization = n_cell * linear.moments.randomization(np.clip(means, 0.0, 1.0))
    minimum = (by_randomization * (w[:, 0] / total) ** 2).sum(axis=0)
    squared = observed_variance(squared, linear.moments.at_truth / cells.n.sum(), minimum)
    n_effective = _effective_n(linear, cells, w[:, :, 0] / total, estimate, between, level)
    shift = linear.shift(w[:, 0] / total, cells.reports.astype(np.float64), level)
    low, high = linear.interval(estimate, n_effective, level, shift)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(squared),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=int(cells.n.sum()),
        level=level,
        method=f"{name}, {'wilson-hull' if linear.chances else 'score'}",
        # (sum w)^2/sum w^2 with the weights w of the reports about each option
        design=WeightedDesign(
            linear.moments,
            float(np.min(total**2 / (w[:, 0] ** 2 * cells.reports.sum(axis=1)).sum(axis=0))),
        ),
    )


def _fitted_by_margins(
    cells: Tally, residual: Floats, margins: list[Margin], shape: tuple[int, ...]
) -> Floats:
    """Return cell means of r - estimate regressed on the margins' categories, shape (cells, k)."""
    columns = _indicators(margins, shape)
    n, means = _cell_means(cells.reports, residual)
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
