"""Weighted shares: what reports say when some stand for more people than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import CountsError, DesignError
from survey.estimator.reading import AnyChannel, Reading, checked_level, reading, tally
from survey.estimator.result import Result
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class WeightedShares(Result):
    """Weighted shares of the k true answers; arrays have shape (k,).

    estimate       linear in the weights of the reports; may lie outside [0, 1]
    std_error      of `estimate`, sampling, randomization and weights together
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
    alone covered .90 then. Coverage at .95, simulated (weights 1, 2, 5, also with shares .02, .05,
    .4 in their classes; k 2, 4; epsilon .5 to 4; n 100, 500): at least .936.

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
    # Sums of w and of w^2 over the reports of each kind: shape (kinds, options or 1).
    first = np.tensordot(w, sorted_reports.reports, axes=1)
    second = np.tensordot(w**2, sorted_reports.reports, axes=1)
    reports = sorted_reports.reports.sum(axis=(0, 1))
    return _weighted(read, first, second, reports, int(sorted_reports.n.sum()), level)


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
    ones = np.bincount(codes, minlength=kinds)
    read = reading(channel)
    first, second = (
        _by_kind(np.bincount(codes, each, kinds).astype(np.float64), read) for each in (w, w**2)
    )
    return _weighted(read, first, second, ones.sum(keepdims=True), codes.size, level)


def _by_kind(sums: Floats, read: Reading) -> Floats:
    """Sums by code as sums by kind of report: not supported and supported, or the codes."""
    return np.stack([sums.sum() - sums, sums]) if read.chances else sums[:, None]


def checked_weights(weights: ArrayLike, size: int) -> Floats:
    """The weights in units of the largest, or the reason why they are none."""
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DesignError("weights must be numbers") from None
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


def _weighted(
    read: Reading, first: Floats, second: Floats, reports: Integers, n: int, level: float
) -> WeightedShares:
    """From the sums of w and w^2 by kind of report; `reports` bear on each option."""
    if reports.min() < 2:
        raise CountsError(f"{reports.min()} reports: a weighted estimate needs at least 2")
    total = first.sum(axis=0)
    estimate = (first * read.values).sum(axis=0) / total
    scatter = (second * (read.values - estimate) ** 2).sum(axis=0)
    # SE^2 = n/(n-1) sum w^2 (r - estimate)^2 / (sum w)^2
    squared_error = reports / (reports - 1) * scatter / total**2
    kish = np.broadcast_to(total**2 / second.sum(axis=0), estimate.shape)
    one = read.moments.variance(np.clip(estimate, 0.0, 1.0))
    # All reports alike: no error is seen, and Kish's number decides.
    alike = np.divide(one, squared_error, out=np.full(one.shape, np.inf), where=squared_error > 0)
    n_effective = np.minimum(kish, alike)
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
