"""Weighted shares: what reports say when some stand for more people than others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError, DesignError
from survey.estimator.core.arguments import checked_arguments, checked_level
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.moments import seen_variance
from survey.estimator.core.result import Result
from survey.estimator.shares.tally import Reading, reading, tally
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class WeightedShares(Result):
    """Weighted shares of the k true answers; arrays have shape (k,).

    estimate       linear in the weights of the reports; may lie outside [0, 1]
    std_error      of `estimate`, sampling, randomization and weights together; never 0
                   (`seen_variance`)
    conf_low       ends of the interval, in [0, 1]
    conf_high
    n_effective    reports of equal weight that would tell as much; what the interval is made of
    n              reports
    level          asked coverage of each interval
    method         what the weights are: "weights", "post-stratification" or "raking", and the
                   interval
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    n_effective: Floats
    n: int
    level: float
    method: str


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

    `counts` has shape (classes, counted): a row, as `channel.count` makes it, for each class of
    reports of one weight (a stratum, or a single report: its membership); `weights` has shape
    (classes,), in any unit. `n`, shape (classes,), only where the counts do not tell it.

    With r_i = (1[y_i = j] - q)/(p-q), or the linear value of a table's report:
    estimate = sum w r / sum w, SE^2 = n/(n-1) sum w^2 (r - estimate)^2 / (sum w)^2, which is what
    linearization gives for a ratio of totals under sampling with replacement (R `survey` 4.1
    svymean prints the same). The interval is Wilson's hull on the weighted f with
    n_eff = (sum w)^2 / sum w^2 (Kish 1965), or the n at which equal weights would have this
    SE where that is less: weights that go with the answer make errors larger than Kish's, whose n
    alone covered .90 then. The SE is also taken with the shares of light and heavy reports drawn
    towards 1/2 (`_smoothed`): a few heavy reports that are all alike are not certain. Coverage at
    .95, simulated (weights 1, 2, 5, also with shares .02, .05, .4 or 0, 0, .3 in their classes;
    k 2, 4; epsilon .5 to 4; n 100, 500): at least .936; with five reports of weight 20 among 50,
    epsilon 8 and a share of .02, .93.

    Valid when weights are known beforehand (inverse chances of selection). Weights that were
    adjusted to margins are less uncertain than this says: `poststratified`, `raked`.

    Raises DesignError for weights that are zero, negative or no number, CountsError for counts
    the channel cannot have given and for fewer than two reports.

    >>> from survey.mechanism import grr
    >>> found = weighted_shares([[60, 40], [30, 70]], [1, 2], grr(2, "3/4"))
    >>> found.estimate.round(3).tolist(), found.std_error.round(3).tolist()
    ([0.3, 0.7], [0.072, 0.072])
    >>> found.n_effective.round(1).tolist()
    [180.0, 180.0]
    """
    checked_level(level)
    read, sorted_reports = reading(channel), tally(counts, channel, n)
    w = checked_weights(weights, len(sorted_reports.n))
    group, groups = _alike(w)
    member = np.eye(groups)[:, group]
    sums = [np.tensordot(member * w**m, sorted_reports.reports, axes=1) for m in range(3)]
    return _weighted(read, _Sums(*sums), int(sorted_reports.n.sum()), level)


@checked_arguments
def weighted_reports(
    reports: ArrayLike,
    weights: ArrayLike,
    channel: SubsetSelection | WeightTable,
    *,
    level: float = 0.95,
) -> WeightedShares:
    """`weighted_shares` from single reports: codes and weights, both of shape (n,).

    For channels whose reports are one code each (generalized randomized response, tables);
    others have a row of counts per report, see `weighted_shares`.

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
    group, groups = _alike(w)
    read, place = reading(channel), group * kinds + codes
    found = [np.bincount(place, w**m, groups * kinds).astype(np.float64) for m in range(3)]
    sums = _Sums(*(_by_kind(one.reshape(groups, kinds), read) for one in found))
    return _weighted(read, sums, codes.size, level)


class _Sums(NamedTuple):
    """Sums over reports by group of weights and kind; shape (groups, kinds, options or 1)."""

    reports: Floats
    w: Floats
    w2: Floats


def _alike(w: Floats) -> tuple[Integers, int]:
    """Group of each weight, and their number: within a group the largest is below twice the least.

    `w` is in units of the largest.
    """
    doublings = np.floor(-np.log2(np.maximum(w, np.finfo(np.float64).tiny)))
    different, group = np.unique(doublings, return_inverse=True)
    return group, different.size


def _by_kind(sums: Floats, read: Reading) -> Floats:
    """Sums by code as sums by kind of report: not supported and supported, or the codes."""
    if read.chances:
        return np.stack([sums.sum(axis=1, keepdims=True) - sums, sums], axis=1)
    return sums[:, :, None]


def checked_weights(weights: ArrayLike, size: int) -> Floats:
    """The weights in units of the largest, or the reason why they are none."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (size,):
        raise DesignError(f"weights of shape {w.shape} for {size} reports or classes: one for each")
    for wrong, reason in (
        (~np.isfinite(w), "must be a finite number"),
        (w <= 0, "must be above 0: leave out what shall not count"),
    ):
        if wrong.any():
            place = int(np.argmax(wrong))
            raise DesignError(f"weights[{place}] = {w[place]} {reason}")
    return np.asarray(w / w.max()) if w.size else w


def _weighted(read: Reading, sums: _Sums, n: int, level: float) -> WeightedShares:
    """Estimate, error and interval from the sums of 1, w and w^2."""
    reports, first, second = (each.sum(axis=0) for each in sums)
    bearing = reports.sum(axis=0)
    if bearing.min() < 2:
        raise CountsError(f"{bearing.min():g} reports: a weighted estimate needs at least 2")
    total = first.sum(axis=0)
    estimate = (first * read.values).sum(axis=0) / total
    # E[(r - estimate)^2] and E[r^2] at weights w^2
    scatter = (second * (read.values - estimate) ** 2).sum(axis=0) / second.sum(axis=0)
    square = (second * read.values**2).sum(axis=0) / second.sum(axis=0)
    x = np.clip(estimate, 0.0, 1.0)
    seen = seen_variance(scatter, square, read.moments.randomization(x))
    kish = np.broadcast_to(total**2 / second.sum(axis=0), estimate.shape)
    # SE^2 = n/(n-1) sum w^2 (r - estimate)^2 / (sum w)^2
    squared_error = bearing / (bearing - 1) * seen / kish
    n_effective = np.minimum(kish, read.moments.variance(x) / squared_error)
    n_effective = np.minimum(n_effective, _smoothed(read, sums, estimate, kish, level))
    low, high = read.interval(estimate, n_effective, level)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(squared_error),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=n,
        level=level,
        method=f"weights, {'wilson-hull' if read.chances else 'score'}",
    )


def _smoothed(read: Reading, sums: _Sums, estimate: Floats, kish: Floats, level: float) -> Floats:
    """Kish's n less what shares drawn towards 1/2 in each group of weights make the error larger.

    kish Var(x) / (sum w^2 [Var(x_g) + (pi_g - pi)^2] / sum w^2), with x_g = (n_g pi_g + z^2/2) /
    (n_g + z^2) and x the same of kish reports: a few heavy reports that are all alike are not
    certain. With one group it is Kish's.
    """
    z2 = normal_quantile(level) ** 2
    n, w2 = sums.reports.sum(axis=1), sums.w2.sum(axis=1)
    means = (sums.reports * read.values).sum(axis=1)
    means = np.divide(means, n, out=np.zeros_like(means), where=n > 0)
    x = np.clip((n * means + z2 / 2) / (n + z2), 0.0, 1.0)
    one = np.clip((kish * estimate + z2 / 2) / (kish + z2), 0.0, 1.0)
    apart = np.where(n > 0, means - estimate, 0.0)
    variance = (w2 * (read.moments.variance(x) + apart**2)).sum(axis=0) / w2.sum(axis=0)
    return np.asarray(kish * read.moments.variance(one) / variance)
