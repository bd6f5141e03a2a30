"""Reports of nested strata made to add up: shares of a country, its states, their towns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from survey.estimator.arguments import checked_arguments
from survey.estimator.counts import checked_level
from survey.estimator.hierarchy import Consistent, checked_populations, consistent_shares
from survey.estimator.proportional_fitting import fitted
from survey.estimator.reading import AnyChannel, reading, tally
from survey.estimator.simplex import norm_sub
from survey.estimator.tree import Tree, least_squares
from survey.mechanism import BitVector

Floats = NDArray[np.float64]

ROUNDS = 2
"""How often the strata's errors are computed from the shares that they lead to."""

TOGETHER = 500
"""Strata whose influence on all others is computed at once."""

LEAST = 1e-9
"""The displayed shares are fitted from at least this: one of 0 could never grow."""


@checked_arguments
def consistent_proportions(
    counts: ArrayLike,
    channel: AnyChannel,
    parents: Sequence[int],
    populations: ArrayLike,
    *,
    n: ArrayLike | None = None,
    level: float = 0.95,
) -> Consistent:
    """`consistent_shares` from reports: every stratum has reports of its own, or none.

    `counts`, shape (strata, counted), has a row as `channel.count` makes it for each stratum, of
    zeros where it was not asked; `n`, shape (strata,), only where counts do not tell it.

    A stratum's error is that of its share as the whole tree fits it, x, drawn towards 1/2 by z^2
    reports: s^2 = Var((n x + z^2/2)/(n + z^2))/n. The fit is made with the strata's own shares
    first, then with the fitted ones, so that a stratum's weight hardly depends on its own noise.
    Answers of which each person has one are weighted alike, by the mean of their s^2, so that
    their shares go on adding up to 1, the displayed ones too; the error of each is that of the
    x = sum a_v y_v which these weights make, sqrt(sum a_v^2 s_v^2). For the coverage see
    `tests.benchmarks.coverage_tables`.

    Raises what `consistent_shares` and the counts of this channel raise.

    >>> from survey.mechanism import grr
    >>> counts = [[100, 100], [40, 60], [45, 15]]
    >>> found = consistent_proportions(counts, grr(2, "3/4"), [-1, 0, 0], [1000, 600, 400])
    >>> found.estimate[:, 0].round(3).tolist(), found.std_error[:, 0].round(3).tolist()
    ([0.538, 0.257, 0.959], [0.051, 0.08, 0.104])
    """
    z = float(ndtri((1 + checked_level(level)) / 2))
    read, sorted_reports = reading(channel), tally(counts, channel, n)
    # Reports that bear on each share, shape (strata, options or 1).
    bearing = sorted_reports.reports.sum(axis=1).astype(np.float64)
    asked = bearing > 0
    some = np.where(asked, bearing, 1.0)
    means = (sorted_reports.reports * read.values).sum(axis=1) / some
    y = np.where(asked, means, np.nan)
    is_one_of_all = not isinstance(channel, BitVector)
    x = np.where(asked, means, 0.5)
    for _ in range(ROUNDS):
        drawn = np.clip((some * np.clip(x, 0.0, 1.0) + z**2 / 2) / (some + z**2), 0.0, 1.0)
        variance = np.where(asked, read.moments.variance(drawn) / some, np.nan)
        weighing = variance.mean(axis=1, keepdims=True) if is_one_of_all else variance
        errors = np.sqrt(np.broadcast_to(weighing, y.shape))
        found = consistent_shares(y, errors, parents, populations, level=level)
        x = found.estimate
    if not is_one_of_all:
        return found
    tree = Tree.of(parents, len(y))
    people = checked_populations(populations, tree.parent)
    error = _errors(variance, weighing.ravel(), people, tree)
    inside = np.clip(x, 0.0, 1.0)
    return Consistent(
        estimate=x,
        std_error=error,
        conf_low=np.clip(inside - z * error, 0.0, 1.0),
        conf_high=np.clip(inside + z * error, 0.0, 1.0),
        display=_displayed(x, people, tree),
        level=level,
    )


def _errors(variance: Floats, weighing: Floats, people: Floats, tree: Tree) -> Floats:
    """sqrt(sum a_v^2 s_v^2) of each stratum and option, in shares; a are the weights' solution.

    Asked strata one by one are given 1 and all others 0: what comes out are their a.
    """
    asked = np.flatnonzero(~np.isnan(weighing))
    s2 = np.where(np.isnan(weighing), np.inf, weighing * people**2)
    found = np.zeros(variance.shape)
    for start in range(0, asked.size, TOGETHER):
        of = asked[start : start + TOGETHER]
        unit = np.zeros((people.size, of.size))
        unit[of, np.arange(of.size)] = people[of]
        a, _ = least_squares(unit, np.tile(s2[:, None], of.size), tree)
        found += (a / people[:, None]) ** 2 @ variance[of]
    return np.asarray(np.sqrt(found))


def _displayed(x: Floats, people: Floats, tree: Tree) -> Floats:
    """Shares that add up over the options and over the strata: each family fitted to both."""
    shown = np.zeros_like(x)
    for root in tree.depths[0]:
        shown[root] = norm_sub(x[root])
    for of in tree.depths[1:]:
        above = tree.parent[of]
        for parent in np.unique(above):
            parts = of[above == parent]
            seed = np.maximum(x[parts], LEAST) * people[parts, None]
            totals = shown[parent] * people[parts].sum()
            shown[parts] = fitted(seed, [people[parts], totals]) / people[parts, None]
    return shown
