"""Estimates of nested strata that add up: country, states, municipalities, any tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_NUMBER, checked_arguments, checked_level
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.likelihood import norm_sub
from survey.estimator.core.result import Result
from survey.estimator.shares.tally import reading, tally
from survey.estimator.tables.proportional_fitting import fitted
from survey.mechanism import AnyChannel, BitVector
from survey.mechanism.arrays import Booleans, Floats, Integers

ROOT = -1
"""The parent of a stratum that is part of no other."""

AGREEMENT = 1e-6
"""Two exactly known totals of the same people may differ by this part: rounding."""

HALVINGS = 100
SLOWEST = 1e-9
"""Where totals are moved to add up, an exactly known one moves this much slower than the rest."""


@dataclass(frozen=True, eq=False)
class Tree:
    """`parent` of each stratum, and the strata of each depth, from the roots down."""

    parent: Integers
    depths: tuple[Integers, ...]

    @classmethod
    def of(cls, parents: Sequence[int], size: int) -> Tree:
        """The tree, or the reason why these parents make none."""
        parent = np.asarray(parents)
        if parent.shape != (size,) or parent.dtype.kind not in "iu" or not size:
            raise DesignError(f"parents must be {size} whole numbers, one per stratum, -1 for none")
        if parent.min() < ROOT or parent.max() >= size:
            raise DesignError(f"parents must be from -1 to {size - 1}, the last stratum")
        # Children in the order of their parents: those of one are found without a search.
        order = np.argsort(parent, kind="stable")
        start = np.searchsorted(parent[order], np.arange(ROOT, size + 1))
        depths, front = [], order[: start[1]]
        while front.size:
            depths.append(np.sort(front))
            front = np.concatenate([order[start[v + 1] : start[v + 2]] for v in front])
        if sum(map(len, depths)) != size:
            lost = int(np.setdiff1d(np.arange(size), np.concatenate([[-1], *depths]))[0])
            raise DesignError(f"stratum {lost} is part of itself: the parents form a cycle")
        return cls(parent.astype(np.int64), tuple(depths))

    def add_to_parents(self, total: Floats, values: Floats | Booleans, of: Integers) -> None:
        """Add those of the strata `of`, (len(of), options), to their parents' totals."""
        np.add.at(total, self.parent[of], values)


@dataclass(frozen=True, eq=False)
class _Upward:
    """Best estimate from below z and variance t; of the children: sum, variance, number lost."""

    z: Floats
    t: Floats
    below: Floats
    spread: Floats
    lost: Floats


def least_squares(y: Floats, s2: Floats, tree: Tree) -> tuple[Floats, Floats]:
    """Totals and their variances; y and s2 have shape (strata, options), s2 infinite if unknown.

    The formulas are those of `hierarchy.consistent`.
    """
    up = _upwards(y, s2, tree)
    roots = tree.depths[0]
    _refuse(np.isinf(up.t[roots]), roots, "neither it nor all its parts were asked")
    x, variance = up.z.copy(), up.t.copy()
    for of in tree.depths[1:]:
        x[of], variance[of] = _downwards(up, x, variance, of, tree.parent[of])
    return x, np.maximum(variance, 0.0)


def _upwards(y: Floats, s2: Floats, tree: Tree) -> _Upward:
    z, t = y.copy(), s2.copy()
    below, spread, lost = np.zeros_like(y), np.zeros_like(y), np.zeros_like(y)
    inner = np.zeros(len(y), dtype=bool)
    inner[tree.parent[tree.parent != ROOT]] = True
    for of in tree.depths[::-1]:
        parts = of[inner[of]]
        z[parts], t[parts] = _combined(
            y[parts], s2[parts], below[parts], spread[parts], lost[parts] == 0, parts
        )
        if tree.parent[of[0]] != ROOT:
            known = np.isfinite(t[of])
            tree.add_to_parents(below, np.where(known, z[of], 0.0), of)
            tree.add_to_parents(spread, np.where(known, t[of], 0.0), of)
            tree.add_to_parents(lost, ~known, of)
    return _Upward(z, t, below, spread, lost)


def _combined(
    y: Floats, s2: Floats, c: Floats, C: Floats, complete: Booleans, strata: Integers
) -> tuple[Floats, Floats]:
    """The own estimate and the sum of the children, weighted by the other's variance."""
    own = np.isfinite(s2)
    both = own & complete
    variance = np.where(own, s2, 0.0)
    exact = both & (variance + C == 0)
    # Exactly known twice: nothing to weigh, but both must say the same.
    differ = exact & (np.abs(y - c) > AGREEMENT * np.maximum(np.abs(y), np.abs(c)))
    if differ.any():
        place = strata[int(np.argmax(differ.any(axis=1)))]
        raise DesignError(f"stratum {place} is exactly known and so are its parts, but they differ")
    total = np.where(both & ~exact, variance + C, 1.0)
    z = np.where(both & ~exact, (y * C + c * variance) / total, np.where(own, y, c))
    lone = np.where(own, variance, np.where(complete, C, np.inf))
    return z, np.where(both, np.where(exact, 0.0, variance * C / total), lone)


def _downwards(
    up: _Upward, x: Floats, variance: Floats, of: Integers, above: Integers
) -> tuple[Floats, Floats]:
    """The strata `of`, all of one depth, from those above.

    One child that nothing else determines is the rest its brothers leave; these keep what they
    have, for the total above tells nothing about them.
    """
    unknown, lost = np.isinf(up.t[of]), up.lost[above]
    _refuse(unknown & (lost > 1), of, "it is not the only part of another that was not asked")
    t = np.where(unknown, 0.0, up.t[of])
    C = up.spread[above]
    part = np.where(lost == 0, np.divide(t, C, out=np.zeros_like(t), where=C > 0), 0.0)
    moved = up.z[of] + part * (x[above] - up.below[above])
    rest = x[above] - up.below[above]
    return (
        np.where(unknown, rest, moved),
        np.where(unknown, variance[above] + C, t + part**2 * (variance[above] - C)),
    )


def displayed(x: Floats, variance: Floats, tree: Tree, known: Floats | None) -> Floats:
    """Totals that add up and lie within 0 and the population, near to x; shape (strata, options).

    From the top down: children become x + theta Var x, clipped, with the theta at which they add
    up to their parent's displayed total.
    """
    most = np.broadcast_to(np.inf if known is None else known[:, None], x.shape)
    shown = np.clip(x, 0.0, most)
    for of in tree.depths[1:]:
        parents, family = np.unique(tree.parent[of], return_inverse=True)
        wanted = shown[parents]
        if len(parents) == len(of):
            # Only children are their parents.
            shown[of] = np.minimum(wanted[family], most[of])
            continue
        shown[of] = _shared(x[of], variance[of], most[of], wanted, family)
        # Halving leaves the last digits: they are spread in proportion.
        sums = _of_families(shown[of], family, wanted)
        scale = np.divide(wanted, sums, out=np.ones_like(sums), where=sums > 0)
        shown[of] = np.minimum(shown[of] * scale[family], most[of])
    return shown


def _of_families(values: Floats, family: Integers, wanted: Floats) -> Floats:
    """Sums of the children's values by family, in the shape of what is wanted."""
    total = np.zeros_like(wanted)
    np.add.at(total, family, values)
    return total


def _shared(x: Floats, variance: Floats, most: Floats, wanted: Floats, family: Integers) -> Floats:
    """The children at the theta of their family, found by halving for all families at once."""
    largest = np.zeros_like(wanted)
    np.maximum.at(largest, family, variance)
    pace = np.divide(variance, largest[family], out=np.ones_like(x), where=largest[family] > 0)
    pace = np.maximum(pace, SLOWEST)
    reach = (np.abs(x).max() + np.abs(wanted).max() + 1.0) / SLOWEST
    low, high = np.full_like(wanted, -reach), np.full_like(wanted, reach)
    for _ in range(HALVINGS):
        theta = (low + high) / 2
        there = np.clip(x + theta[family] * pace, 0.0, most)
        short = _of_families(there, family, wanted) < wanted
        low, high = np.where(short, theta, low), np.where(short, high, theta)
    return np.asarray(np.clip(x + high[family] * pace, 0.0, most))


def _refuse(wrong: Booleans, strata: Integers, reason: str) -> None:
    if wrong.any():
        place = strata[int(np.argmax(wrong.any(axis=1)))]
        raise DesignError(f"nothing determines stratum {place}: {reason}")


POPULATION_AGREEMENT = 1e-6
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
    error, z = np.sqrt(variance), normal_quantile(level)
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
    wrong = (sums > 0) & (np.abs(sums - people) > POPULATION_AGREEMENT * people)
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
    z = normal_quantile(checked_level(level))
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
