"""Estimates of nested strata made to add up: country, states, municipalities, any tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from survey.errors import DesignError
from survey.estimator.arguments import checked_arguments
from survey.estimator.counts import LARGEST_NUMBER, checked_level
from survey.estimator.result import Result
from survey.estimator.tree import ROOT, Tree, displayed, least_squares

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

AGREEMENT = 1e-6
"""Known populations of children may miss their parent's by this part: rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Consistent(Result):
    """Estimates in which children add up to their parent; arrays have the shape given.

    estimate     weighted least squares: adds up exactly, linear in what was given, may be negative
    std_error    of `estimate`, never above the one given
    conf_low     estimate -+ z std_error, within 0 and the population where that is known
    conf_high
    display      adds up too and lies within 0 and the population
    """

    index_names = ("stratum", "option")

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    display: Floats
    level: float


@checked_arguments
def consistent(
    estimates: ArrayLike,
    std_errors: ArrayLike,
    parents: Sequence[int],
    *,
    populations: ArrayLike | None = None,
    level: float = 0.95,
) -> Consistent:
    """Weighted least squares of totals over a tree of strata.

    `estimates` and `std_errors` are totals of people, unclipped, shape (strata,) or
    (strata, options); `parents[v]` is the stratum that v is part of, -1 for none; every stratum
    with children is the sum of them. A std_error of 0 is an exactly known total, nan (with an
    estimate of nan) a stratum that was not asked. `populations`, shape (strata,), bound `display`
    and the intervals.

    Minimizes sum_v (x_v - y_v)^2 / s_v^2 subject to x_v = sum of x over v's children, in two
    passes, linear in the tree. Upwards, with z the best estimate from below and t its variance,
        c = sum z_u, C = sum t_u (children u),  z_v = (y_v C + c s_v^2)/(C + s_v^2),
        1/t_v = 1/s_v^2 + 1/C;
    downwards, x_u = z_u + (t_u/C)(x_v - c), Var x_u = t_u + (t_u/C)^2 (Var x_v - C).
    This is Hay et al. 2010 (two passes, equal variances, complete trees) for unequal variances
    and any tree; checked against the dense solution.

    Valid when the estimates of different strata come from different reports: independent. Where
    a country's estimate is computed from its states' reports there is nothing to reconcile, add
    the states up instead. Options are treated one by one; they keep adding up to the population
    only if all options of a stratum are given one std_error.

    The ends are those of a normal distribution with the errors given: they hold where each error
    is well known. From reports take `consistent_proportions`: errors that a stratum's own
    estimate gives are small where the estimate is small, and weights made of them draw all strata
    to where they are smallest (shares of .03 in 50 reports of epsilon 8: covered .76 at .95).

    Raises DesignError for a tree with a cycle, missing or negative errors, two exactly known
    totals that contradict each other, and strata that nothing determines.

    >>> found = consistent([100, 70, 40], [10, 5, 5], [-1, 0, 0])
    >>> found.estimate.round(2).tolist(), found.std_error.round(2).tolist()
    ([106.67, 68.33, 38.33], [5.77, 4.56, 4.56])
    """
    checked_level(level)
    y = _array(estimates, "estimates")
    s2 = _array(std_errors, "std_errors") ** 2
    tree = Tree.of(parents, len(y))
    y, s2 = _checked(y, s2)
    known = None if populations is None else checked_populations(populations, tree.parent)
    shape, y, s2 = y.shape, y.reshape(len(y), -1), s2.reshape(len(s2), -1)
    x, variance = least_squares(y, s2, tree)
    error, z = np.sqrt(variance), float(ndtri((1 + level) / 2))
    most = np.inf if known is None else known[:, None]
    inside = np.clip(x, 0.0, most)
    arrays = {
        "estimate": x,
        "std_error": error,
        "conf_low": np.clip(inside - z * error, 0.0, most),
        "conf_high": np.clip(inside + z * error, 0.0, most),
        "display": displayed(x, variance, tree, known),
    }
    return Consistent(**{name: value.reshape(shape) for name, value in arrays.items()}, level=level)


@checked_arguments
def consistent_shares(
    estimates: ArrayLike,
    std_errors: ArrayLike,
    parents: Sequence[int],
    populations: ArrayLike,
    *,
    level: float = 0.95,
) -> Consistent:
    """`consistent` for shares: a parent's is the mean of its children's, weighted by population.

    Arrays as there, but in shares; `populations`, shape (strata,), are known and add up.

    >>> found = consistent_shares([.5, .4, .3], [.1, .02, .04], [-1, 0, 0], [100, 60, 40])
    >>> found.estimate.round(4).tolist()
    [0.3654, 0.4032, 0.3086]
    """
    share = _array(estimates, "estimates")
    parent = Tree.of(parents, len(share)).parent
    people = checked_populations(populations, parent).reshape(-1, *[1] * (share.ndim - 1))
    error = _array(std_errors, "std_errors")
    if error.shape != share.shape:
        raise DesignError(f"std_errors of shape {error.shape} for estimates of {share.shape}")
    totals = consistent(
        share * people, error * people, parents, populations=people.ravel(), level=level
    )
    names = ("estimate", "std_error", "conf_low", "conf_high", "display")
    return Consistent(**{name: getattr(totals, name) / people for name in names}, level=level)


def checked_populations(populations: ArrayLike, parent: Integers) -> Floats:
    """Known populations, above 0, the children's adding up to their parent's."""
    people = _array(populations, "populations")
    if people.shape != parent.shape:
        raise DesignError(f"populations of shape {people.shape} for {parent.size} strata")
    if not (np.isfinite(people) & (people > 0)).all():
        place = int(np.argmin(np.isfinite(people) & (people > 0)))
        raise DesignError(f"populations[{place}] = {people[place]} must be a number above 0")
    inner = np.flatnonzero(parent != ROOT)
    sums = np.bincount(parent[inner], people[inner], minlength=parent.size)
    wrong = (sums > 0) & (np.abs(sums - people) > AGREEMENT * people)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise DesignError(
            f"populations[{place}] = {people[place]:g} but its parts add up to {sums[place]:g}"
        )
    return people


def _checked(y: Floats, s2: Floats) -> tuple[Floats, Floats]:
    if y.shape != s2.shape or y.ndim > 2:
        raise DesignError(f"estimates of shape {y.shape} and std_errors of shape {s2.shape}")
    unknown = np.isnan(y) & (np.isnan(s2) | np.isinf(s2))
    wrong = ~unknown & ~(np.isfinite(y) & np.isfinite(s2))
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), y.shape)
        raise DesignError(
            f"stratum {int(place[0])} has an estimate without an error, or an error without one"
        )
    return np.where(unknown, 0.0, y), np.where(unknown, np.inf, s2)


def _array(values: ArrayLike, what: str) -> Floats:
    found = np.array(values, dtype=np.float64)
    if found.ndim == 0:
        raise DesignError(f"{what} must have one number for each stratum")
    if (np.abs(found[np.isfinite(found)]) > LARGEST_NUMBER).any():
        raise DesignError(f"{what} must be at most {LARGEST_NUMBER:g} in size")
    if what == "std_errors" and (found < 0).any():
        raise DesignError("std_errors must not be negative")
    return found
