"""What distributions of numbers are made of: shown shares of values, intervals of any set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.estimator.core.arguments import (
    checked_level,
    checked_values,
    reports_from,
    whole_counts,
)
from survey.estimator.core.likelihood import (
    most_likely_mixture,
    most_likely_shares,
    require_two_options,
    smoothed_shares,
)
from survey.estimator.core.pseudo_values import pseudo_values, set_values
from survey.estimator.core.ratio import PseudoRatios, no_answers_error, pseudo_ratios
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Booleans, Floats, Integers

GridChannel = SubsetSelection | WeightTable

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
    """

    values: Floats
    shares: Floats
    method: str
    flag: str
    counts: Integers
    channel: GridChannel
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
    channel: GridChannel, truths: Floats, sets: Sequence[Booleans], n: int
) -> PseudoRatios:
    """Return the pseudo-ratios of n reports for the share of each set among those who answered.

    `truths` has shape (truths,), nan for no answer; a set marks some of the different values,
    ascending. The pseudo-values are unbiased with least variance if the channel has any. Otherwise,
    or if their variance is too large, their largest bias is added to the interval.
    """
    answered = ~np.isnan(truths)
    index = np.searchsorted(np.unique(truths[answered]), truths)
    inside = np.array([np.append(marked, False)[index] for marked in sets])
    # 1 for a value of the set, -1 for another, 0 for no answer
    targets = np.where(answered, 2.0 * inside - 1, 0.0)
    values, bias = set_values(channel, targets, n)
    b, b_bias = np.ones(values.shape[1]), 0.0
    if not answered.all():
        answering = pseudo_values(channel, answered.astype(np.float64), n)
        b, b_bias = answering.values, answering.bias
    return pseudo_ratios(channel, targets, answered, values, b, bias + b_bias)


def grid_shares(
    counts: ArrayLike,
    channel: GridChannel,
    values: Sequence[float | None] | ArrayLike,
    method: str | None,
    level: float,
) -> GridShares:
    """Check all arguments and estimate the displayed shares by the given or the default method."""
    c, truths = _checked(counts, channel, values)
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
    return GridShares(different, shares / shares.sum(), name, flag, c, channel, truths, level)


def _checked(
    counts: ArrayLike, channel: GridChannel, values: Sequence[float | None] | ArrayLike
) -> tuple[Integers, Floats]:
    """Return counts as integers and values as floats, nan for no answer; reject other channels."""
    if isinstance(channel, SubsetSelection):
        if channel.d > 1:
            raise ChannelError(f"d = {channel.d}: a distribution needs one count per report")
        require_two_options(channel)
        reports, truths = channel.k, channel.k
    else:
        reports, truths = channel.reports, channel.truths
    c = whole_counts(counts, reports, "one per report")
    reports_from(int(c.sum()), 1, None)
    x = checked_values(values, truths)
    _require_more_than_a_mean(channel, ~np.isnan(x))
    return c, x


def _require_more_than_a_mean(channel: GridChannel, answers: Booleans) -> None:
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
            "nothing "
            "else: all people in the middle give the same reports as half of them at each end; "
            "use `mean`, or ask with a square wave"
        )


def _displayed_shares(
    counts: Integers, channel: GridChannel, truths: Floats, method: str
) -> tuple[Floats, bool]:
    if method == SMOOTHED:
        order = np.argsort(truths, kind="stable")  # nan last
        along = order[: int((~np.isnan(truths)).sum())]
        return smoothed_shares(counts, channel.matrix, along)
    if isinstance(channel, SubsetSelection):
        return most_likely_shares(counts, channel), True
    pi = most_likely_mixture(counts, channel.matrix)
    return pi, not bool(np.isnan(pi).any())
