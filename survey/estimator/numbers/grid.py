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
from survey.estimator.core.ratio import PseudoRatios, nobody, pseudo_ratios
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Booleans, Floats, Integers

GridChannel = SubsetSelection | WeightTable

PLAIN, SMOOTHED = "em", "smoothed"
METHODS = (PLAIN, SMOOTHED)

SMOOTHED_FROM = 100
"""A table of at least so many values is smoothed unless its method is named: below, the plain
shares are nearer the truth (`tests/benchmarks/distribution.py`); above, they take long to settle
or do not."""

NOT_CONVERGED = "not converged"

MEAN_RANK = 2
"""Rows of this rank tell one number besides their sum: a mean."""

MIXED = 6
"""Columns that a table's rank is looked for in."""

SAME = 1e-9
"""Singular values below this are none, and so is a share of people who answered."""


class Share(NamedTuple):
    """An estimated share of a set of values; the ends lie in [0, 1], the estimate may not."""

    estimate: float
    std_error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class GridShares:
    """The reports of one question on a grid, read for those who answered.

    values     the different numbers, ascending, shape (v,)
    shares     their shown shares among those who answered, shape (v,), sum 1
    method     "em" or "smoothed": how the shares were found
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
        """Reports, those that are no answer included."""
        return int(self.counts.sum())

    def shares_of(self, sets: Sequence[Booleans]) -> list[Share]:
        """Estimate the share of each set, whose values are `values[inside]`, with its interval.

        As `mean` would of the set's indicator. No set may hold all values, or none.
        """
        found = set_ratios(self.channel, self.truths, sets, self.n).of_survey(
            self.counts, self.level
        )
        # The ratios are those of indicators moved to [-1, 1].
        columns = (
            (1 + found.estimate) / 2,
            found.std_error / 2,
            (1 + found.low) / 2,
            (1 + found.high) / 2,
        )
        return [Share(*map(float, one)) for one in np.concatenate(columns, axis=1)]


def set_ratios(
    channel: GridChannel, truths: Floats, sets: Sequence[Booleans], n: int
) -> PseudoRatios:
    """How n reports are read for the share of each set among those who answered.

    `truths` has shape (truths,), nan for no answer; a set marks some of the different values,
    ascending. Unbiased pseudo-values of least variance where the channel has any, else, or where
    those scatter too much, ones whose largest bias is added to the interval.
    """
    answered = ~np.isnan(truths)
    place = np.searchsorted(np.unique(truths[answered]), truths)
    inside = np.array([np.append(one, False)[place] for one in sets])
    # 1 for a value of the set, -1 for another, 0 for no answer
    targets = np.where(answered, 2.0 * inside - 1, 0.0)
    values, bias = set_values(channel, targets, n)
    b, b_bias = np.ones(values.shape[1]), 0.0
    if not answered.all():
        found = pseudo_values(channel, answered.astype(np.float64), n)
        b, b_bias = found.values, found.bias
    return pseudo_ratios(channel, targets, answered, values, b, bias + b_bias)


def grid_shares(
    counts: ArrayLike,
    channel: GridChannel,
    values: Sequence[float | None] | ArrayLike,
    method: str | None,
    level: float,
) -> GridShares:
    """Check everything and find the shown shares by the asked method, or the usual one."""
    c, truths = _checked(counts, channel, values)
    checked_level(level)
    if method is not None and method not in METHODS:
        raise ValueError(f"unknown method {method!r}; the names are {', '.join(METHODS)}")
    different = np.unique(truths[~np.isnan(truths)])
    many = isinstance(channel, WeightTable) and different.size >= SMOOTHED_FROM
    name = method or (SMOOTHED if many else PLAIN)
    pi, settled = _found(c, channel, truths, name)
    if not settled and name == PLAIN:
        # Spikes that did not settle are no estimate; the shares shown are the smoothed ones.
        pi, _ = _found(c, channel, truths, SMOOTHED)
        name = f"{SMOOTHED}, {PLAIN} did not converge"
    shares = np.array([pi[truths == value].sum() for value in different])
    if shares.sum() <= SAME:
        raise nobody()
    flag = "" if settled else NOT_CONVERGED
    return GridShares(different, shares / shares.sum(), name, flag, c, channel, truths, level)


def _checked(
    counts: ArrayLike, channel: GridChannel, values: Sequence[float | None] | ArrayLike
) -> tuple[Integers, Floats]:
    """Counts as integers and values as floats, nan for no answer; refuses what has no shares."""
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
    """Refuse one bit: with rows of rank two the reports tell one number about the answers."""
    if isinstance(channel, SubsetSelection) or answers.sum() <= MEAN_RANK:
        return
    rows = channel.matrix[answers]
    # A few columns mixed of all keep the rank up to their number, and a large table is quick.
    mixed = rows @ np.cos(np.outer(np.arange(1, rows.shape[1] + 1), np.arange(1, MIXED + 1)))
    if np.linalg.matrix_rank(mixed / np.abs(mixed).max(), SAME) <= MEAN_RANK:
        raise ChannelError(
            f"reports of this {channel.shape.name} table tell the mean of the answers and nothing "
            "else of their distribution: people all in the middle and half at either end give "
            "the same reports; use `mean`, or ask through a square wave"
        )


def _found(
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
