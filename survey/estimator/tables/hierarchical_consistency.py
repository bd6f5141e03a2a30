"""Hierarchical consistency: estimates of nested strata that add up to their parents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import DesignError
from survey.estimator.core.arguments import (
    LARGEST_NUMBER,
    checked_arguments,
    checked_level,
    whole_counts,
)
from survey.estimator.core.intervals import continuity, normal_quantile
from survey.estimator.core.maximum_likelihood import norm_sub
from survey.estimator.core.result import Result
from survey.estimator.shares.linear_estimator import linear_estimator, tally
from survey.estimator.tables.proportional_fitting import fitted
from survey.mechanism import AnyChannel
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats, Integers

ROOT = -1
"""The parent of a stratum that is not part of another one."""

AGREEMENT = 1e-6
"""Two exactly known totals of the same people may differ by this fraction, for rounding."""

HALVINGS = 100
MIN_PACE = 1e-9
"""Relative speed of exactly known totals when totals move until they add up."""


@dataclass(frozen=True, eq=False)
class Tree:
    """The parent of each stratum, and the strata of each depth, from the roots down."""

    parent: Integers
    depths: tuple[Integers, ...]

    @classmethod
    def of(cls, parents: Sequence[int], size: int) -> Tree:
        """Return the tree, or raise DesignError if these parents do not form one."""
        parent = np.asarray(parents)
        if parent.shape != (size,) or parent.dtype.kind not in "iu" or not size:
            raise DesignError(f"parents must be {size} whole numbers, one per stratum, -1 for none")
        if parent.min() < ROOT or parent.max() >= size:
            raise DesignError(f"parents must be from -1 to {size - 1}, the last stratum")
        # Children are in the order of their parents, so that no search is necessary.
        order = np.argsort(parent, kind="stable")
        start = np.searchsorted(parent[order], np.arange(ROOT, size + 1))
        depths, front = [], order[: start[1]]
        while front.size:
            depths.append(np.sort(front))
            front = np.concatenate([order[start[v + 1] : start[v + 2]] for v in front])
        if sum(map(len, depths)) != size:
            in_cycle = int(np.setdiff1d(np.arange(size), np.concatenate([[-1], *depths]))[0])
            raise DesignError(f"stratum {in_cycle} is part of itself: the parents form a cycle")
        return cls(parent.astype(np.int64), tuple(depths))


@dataclass(frozen=True, eq=False)
class _Upward:
    """Best estimate from below z, its variance t; sum, variance, missing ones of the children."""

    z: Floats
    t: Floats
    below: Floats
    spread: Floats
    missing: Floats


def least_squares(y: Floats, s2: Floats, tree: Tree) -> tuple[Floats, Floats]:
    """Return totals and their variances; y and s2 have shape (strata, options).

    s2 is infinite where a total is unknown. The formulas are in `consistent`.
    """
    up = _upwards(y, s2, tree)
    roots = tree.depths[0]
    _check_determined(
        np.isinf(up.t[roots]), roots, "neither it nor all of its parts have an estimate"
    )
    x, variance = up.z.copy(), up.t.copy()
    for strata in tree.depths[1:]:
        x[strata], variance[strata] = _downwards(up, x, variance, strata, tree.parent[strata])
    return x, np.maximum(variance, 0.0)


def _upwards(y: Floats, s2: Floats, tree: Tree) -> _Upward:
    z, t = y.copy(), s2.copy()
    below, spread, missing = np.zeros_like(y), np.zeros_like(y), np.zeros_like(y)
    inner = np.zeros(len(y), dtype=bool)
    inner[tree.parent[tree.parent != ROOT]] = True
    for strata in tree.depths[::-1]:
        parts = strata[inner[strata]]
        z[parts], t[parts] = _combined(
            y[parts], s2[parts], below[parts], spread[parts], missing[parts] == 0, parts
        )
        if tree.parent[strata[0]] != ROOT:
            is_known = np.isfinite(t[strata])
            for total, values in ((below, z[strata]), (spread, t[strata]), (missing, None)):
                added = ~is_known if values is None else np.where(is_known, values, 0.0)
                np.add.at(total, tree.parent[strata], added)
    return _Upward(z, t, below, spread, missing)


def _combined(
    y: Floats, s2: Floats, c: Floats, C: Floats, complete: Booleans, strata: Integers
) -> tuple[Floats, Floats]:
    """Return the mean of a stratum's estimate and the sum of its children, by precision."""
    has_estimate = np.isfinite(s2)
    has_both = has_estimate & complete
    variance = np.where(has_estimate, s2, 0.0)
    exact = has_both & (variance + C == 0)
    # Two exactly known totals need no weights, but they must be equal.
    contradict = exact & (np.abs(y - c) > AGREEMENT * np.maximum(np.abs(y), np.abs(c)))
    if contradict.any():
        stratum = strata[int(np.argmax(contradict.any(axis=1)))]
        raise DesignError(
            f"stratum {stratum} and its parts are exactly known, but their totals differ"
        )
    total = np.where(has_both & ~exact, variance + C, 1.0)
    z = np.where(has_both & ~exact, (y * C + c * variance) / total, np.where(has_estimate, y, c))
    single = np.where(has_estimate, variance, np.where(complete, C, np.inf))
    return z, np.where(has_both, np.where(exact, 0.0, variance * C / total), single)


def _downwards(
    up: _Upward, x: Floats, variance: Floats, strata: Integers, above: Integers
) -> tuple[Floats, Floats]:
    """Return totals and variances of the strata, all of one depth, from the strata above.

    If a single child is determined by nothing else, it is the remainder of the total above. Its
    siblings then stay as they are, because the total above contains no information about them.
    """
    unknown, missing = np.isinf(up.t[strata]), up.missing[above]
    _check_determined(
        unknown & (missing > 1), strata, "it is not the only part without an estimate"
    )
    t = np.where(unknown, 0.0, up.t[strata])
    C = up.spread[above]
    part = np.where(missing == 0, np.divide(t, C, out=np.zeros_like(t), where=C > 0), 0.0)
    adjusted = up.z[strata] + part * (x[above] - up.below[above])
    remainder = x[above] - up.below[above]
    return (
        np.where(unknown, remainder, adjusted),
        np.where(unknown, variance[above] + C, t + part**2 * (variance[above] - C)),
    )


def displayed(x: Floats, variance: Floats, tree: Tree, populations: Floats | None) -> Floats:
    """Return totals that add up, in [0, population], near to x; shape (strata, options).

    From the top down, children become x + theta Var x, clipped, with the theta at which they add
    up.
    """
    maximum = np.broadcast_to(np.inf if populations is None else populations[:, None], x.shape)
    display = np.clip(x, 0.0, maximum)
    for strata in tree.depths[1:]:
        parents, family = np.unique(tree.parent[strata], return_inverse=True)
        totals = display[parents]
        if len(parents) == len(strata):
            # Only children have the total of their parents.
            display[strata] = np.minimum(totals[family], maximum[strata])
            continue
        shifted = _shift_families(x[strata], variance[strata], maximum[strata], totals, family)
        # Halving is not exact: scale the last digits.
        sums = _family_sums(shifted, family, totals)
        scale = np.divide(totals, sums, out=np.ones_like(sums), where=sums > 0)
        display[strata] = np.minimum(shifted * scale[family], maximum[strata])
    return display


def _family_sums(values: Floats, family: Integers, totals: Floats) -> Floats:
    """Return the sums of the children's values by family, in the shape of the totals."""
    sums = np.zeros_like(totals)
    np.add.at(sums, family, values)
    return sums


def _shift_families(
    x: Floats, variance: Floats, maximum: Floats, totals: Floats, family: Integers
) -> Floats:
    """Return the children at the theta of their family, by halving for all families at once."""
    largest = np.zeros_like(totals)
    np.maximum.at(largest, family, variance)
    pace = np.divide(variance, largest[family], out=np.ones_like(x), where=largest[family] > 0)
    pace = np.maximum(pace, MIN_PACE)
    reach = (np.abs(x).max() + np.abs(totals).max() + 1.0) / MIN_PACE
    low, high = np.full_like(totals, -reach), np.full_like(totals, reach)
    for _ in range(HALVINGS):
        theta = (low + high) / 2
        values = np.clip(x + theta[family] * pace, 0.0, maximum)
        is_below = _family_sums(values, family, totals) < totals
        low, high = np.where(is_below, theta, low), np.where(is_below, high, theta)
    return np.asarray(np.clip(x + high[family] * pace, 0.0, maximum))


def _check_determined(wrong: Booleans, strata: Integers, reason: str) -> None:
    if wrong.any():
        stratum = strata[int(np.argmax(wrong.any(axis=1)))]
        raise DesignError(f"stratum {stratum} cannot be determined: {reason}")


POPULATION_AGREEMENT = 1e-6
"""Known populations of children may miss their parent's by this fraction, for rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Consistent(Result):
    """Estimates in which children add up to their parent; arrays have the shape of the input.

    estimate     weighted least squares: adds up exactly, linear in the input, may be negative
    std_error    of `estimate`, never above that of the input
    conf_low     estimate -+ z std_error, in [0, population] if the population is known
    conf_high
    display      adds up too, and is in [0, population]
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
    """Estimate totals over a tree of strata by weighted least squares.

    `estimates` and `std_errors` are totals of people, unclipped, shape (strata,) or (strata,
    options). `parents[v]` is the stratum that contains v, -1 for none; every stratum with children
    is the sum of them. A std_error of 0 means an exactly known total, and nan (with an estimate of
    nan) a stratum without an estimate. `populations`, shape (strata,), limit `display` and the
    intervals. Options are treated separately.

    Minimizes sum_v (x_v - y_v)^2 / s_v^2 subject to x_v = sum of x over v's children, in two
    passes. Upwards, with z the best estimate from below and t its variance,
        c = sum z_u, C = sum t_u (children u), z_v = (y_v C + c s_v^2)/(C + s_v^2),

        1/t_v = 1/s_v^2 + 1/C;
    downwards, x_u = z_u + (t_u/C)(x_v - c), Var x_u = t_u + (t_u/C)^2 (Var x_v - C). This extends
    Hay et al. 2010 (two passes, equal variances, complete trees) to unequal variances and any tree.

    Valid if the estimates of different strata come from different reports and are independent. The
    ends are those of a normal distribution with the given errors. If each stratum's error comes
    from its own reports, use `consistent_proportions`: such weights pull all strata towards the
    smallest estimates (shares of .03 in 50 reports of epsilon 8: covered .76 at .95).

    Raises DesignError for a tree with a cycle, missing or negative errors, two exactly known totals
    that contradict each other, and strata that cannot be determined.

    >>> found = consistent([100, 70, 40], [10, 5, 5], [-1, 0, 0])
    >>> found.estimate.round(2).tolist(), found.std_error.round(2).tolist()
    ([106.67, 68.33, 38.33], [5.77, 4.56, 4.56])
    """
    checked_level(level)
    y = _array(estimates, "estimates")
    s2 = _array(std_errors, "std_errors") ** 2
    tree = Tree.of(parents, len(y))
    y, s2 = _checked(y, s2)
    limits = None if populations is None else checked_populations(populations, tree.parent)
    x, variance = least_squares(y.reshape(len(y), -1), s2.reshape(len(s2), -1), tree)
    maximum = np.inf if limits is None else limits[:, None]
    display = displayed(x, variance, tree, limits)
    return _result(x, np.sqrt(variance), display, maximum, level, y.shape)


def _result(
    x: Floats,
    error: Floats,
    display: Floats,
    maximum: Floats | float,
    level: float,
    shape: tuple[int, ...],
    shift: Floats | float = 0.0,
) -> Consistent:
    """Return the result, with normal ends moved by `shift` around the possible estimates."""
    reach, inside = normal_quantile(level) * error + shift, np.clip(x, 0.0, maximum)
    low, high = np.clip(inside - reach, 0.0, maximum), np.clip(inside + reach, 0.0, maximum)
    x, error, low, high, display = (a.reshape(shape) for a in (x, error, low, high, display))
    return Consistent(x, error, low, high, display, level)


@checked_arguments
def consistent_shares(
    estimates: ArrayLike,
    std_errors: ArrayLike,
    parents: Sequence[int],
    populations: ArrayLike,
    *,
    n: ArrayLike | None = None,
    level: float = 0.95,
) -> Consistent:
    """Return `consistent` for shares: a parent's is the weighted mean of its children's.

    Arrays as in `consistent`, but in shares; `populations`, shape (strata,), are known and add up.
    `n`, shape (strata,), is the number of reports of each stratum, 0 where there is no estimate.

    Errors alone do not determine valid ends: those of few answers are too small where the estimate
    is near 0, and pull all strata towards it (normal ends covered .54 to .90 of shares of .03 to .1
    in 50 reports of epsilon 8). Without `n`, all intervals are therefore [0, 1]. With `n`, errors
    and ends are those of `consistent_proportions`, with
        s^2 = std_error^2 + (u (1-u) - y (1-y))/n, u = (n x + z^2/2)/(n + z^2),
    the error at the fitted share x drawn towards 1/2, and a jump of 1/n. Coverage at .95, simulated
    (400 to 1,000 surveys each; strata of 0 to 200 reports; epsilon 2 to 8; shares of .03 to .4): at
    least .948.

    Raises the errors of `consistent`, and CountsError for impossible `n`.

    >>> found = consistent_shares([.5, .4, .3], [.1, .02, .04], [-1, 0, 0], [100, 60, 40])
    >>> found.estimate.round(4).tolist()
    [0.3654, 0.4032, 0.3086]
    """
    share, error = _array(estimates, "estimates"), _array(std_errors, "std_errors")
    result = _of_shares(share, error, parents, populations, level)
    if n is None:
        return replace(result, conf_low=np.zeros(share.shape), conf_high=np.ones(share.shape))
    reports = whole_counts(n, len(share), "reports of each stratum").astype(np.float64)
    y, s2 = share.reshape(len(share), -1), error.reshape(len(share), -1) ** 2
    if ((reports[:, None] > 0) != np.isfinite(y)).any():
        raise DesignError("n must be above 0 where there is an estimate, and 0 elsewhere")
    divisor = np.where(reports > 0, reports, 1.0)[:, None]
    inside = np.clip(y, 0.0, 1.0)
    # The part of s^2 that is not sampling is the variance of randomization.
    randomization = np.maximum(s2 - inside * (1 - inside) / divisor, 0.0)

    def variance(x: Floats) -> Floats:
        return np.asarray(randomization + x * (1 - x) / divisor)

    jump = np.where(np.isfinite(y), 1 / divisor, 0.0)
    found = _from_reports(y, reports, variance, jump, parents, populations, level)
    names = ("estimate", "std_error", "conf_low", "conf_high", "display")
    return replace(found, **{name: getattr(found, name).reshape(share.shape) for name in names})


def _of_shares(
    share: Floats, error: Floats, parents: Sequence[int], populations: ArrayLike, level: float
) -> Consistent:
    parent = Tree.of(parents, len(share)).parent
    people = checked_populations(populations, parent).reshape(-1, *[1] * (share.ndim - 1))
    if error.shape != share.shape:
        raise DesignError(f"std_errors of shape {error.shape} for estimates of {share.shape}")
    totals = consistent(
        share * people, error * people, parents, populations=people.ravel(), level=level
    )
    names = ("estimate", "std_error", "conf_low", "conf_high", "display")
    return Consistent(**{name: getattr(totals, name) / people for name in names}, level=level)


def checked_populations(populations: ArrayLike, parent: Integers) -> Floats:
    """Return known populations, above 0, if those of children add up to their parent's."""
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
        raise DesignError(
            f"estimates and std_errors must have the same shape, with 1 or 2 dimensions (found "
            f"{y.shape} and {s2.shape})"
        )
    unknown = np.isnan(y) & (np.isnan(s2) | np.isinf(s2))
    wrong = ~unknown & ~(np.isfinite(y) & np.isfinite(s2))
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), y.shape)
        raise DesignError(
            f"stratum {int(place[0])} must have both an estimate and an error, or neither"
        )
    return np.where(unknown, 0.0, y), np.where(unknown, np.inf, s2)


def _array(values: ArrayLike, name: str) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.ndim == 0:
        raise DesignError(f"{name} must have one number for each stratum")
    if (np.abs(array[np.isfinite(array)]) > LARGEST_NUMBER).any():
        raise DesignError(f"{name} must be at most {LARGEST_NUMBER:g} in size")
    if name == "std_errors" and (array < 0).any():
        raise DesignError("std_errors must not be negative")
    return array


ROUNDS = 2
"""Number of rounds in which the errors are computed from the shares of the previous round."""

BATCH = 500
"""Number of strata whose influence on all others is computed at once."""

MIN_SHARE = 1e-9
"""Minimum share from which displayed shares are fitted, because a share of 0 cannot grow."""


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
    """Return `consistent_shares` from reports: every stratum has separate reports, or none.

    `counts`, shape (strata, counts), has a row for each stratum as returned by `channel.count`, and
    zeros for a stratum without reports; `n`, shape (strata,), is needed only if counts do not
    determine it.

    A stratum's error is that of the share x fitted by the whole tree, drawn towards 1/2 by z^2
    reports: s^2 = Var((n x + z^2/2)/(n + z^2))/n. If each person has one answer, all answers have
    the same weight, by the mean of their s^2, so that all shares still add up to 1. The error of
    each is then that of x = sum a_v y_v with these weights, sqrt(sum a_v^2 s_v^2), and its ends are
    x -+ (z error + C jump), where jump is the largest change by one report (`continuity`).
    Coverage: `tests.benchmarks.coverage_tables`.

    Raises the errors of `consistent_shares` and of the counts of this channel.

    >>> from survey.mechanism import grr
    >>> counts = [[100, 100], [40, 60], [45, 15]]
    >>> found = consistent_proportions(counts, grr(2, "3/4"), [-1, 0, 0], [1000, 600, 400])
    >>> found.estimate[:, 0].round(3).tolist(), found.std_error[:, 0].round(3).tolist()
    ([0.538, 0.257, 0.959], [0.051, 0.08, 0.104])
    """
    checked_level(level)
    linear, tallies = linear_estimator(channel), tally(counts, channel, n)
    # Reports about each share, shape (strata, options or 1).
    n_reports = tallies.reports.sum(axis=1).astype(np.float64)
    has_reports = n_reports > 0
    divisor = np.where(has_reports, n_reports, 1.0)
    means = (tallies.reports * linear.values).sum(axis=1) / divisor
    y = np.where(has_reports, means, np.nan)
    is_single_answer = not isinstance(channel, TickChannel)
    jump = np.where(has_reports, np.ptp(linear.values, axis=0) / divisor, 0.0)
    return _from_reports(
        y,
        n_reports,
        lambda x: np.where(has_reports, linear.moments.variance(x) / divisor, np.nan),
        jump,
        parents,
        populations,
        level,
        is_single_answer=is_single_answer,
    )


def _from_reports(
    y: Floats,
    reports: Floats,
    variance_at: Callable[[Floats], Floats],
    jump: Floats,
    parents: Sequence[int],
    populations: ArrayLike,
    level: float,
    *,
    is_single_answer: bool = False,
) -> Consistent:
    """Return consistent shares y with the errors that `variance_at` gives for drawn shares."""
    z = normal_quantile(level)
    n = np.broadcast_to(reports.reshape(len(y), -1), y.shape)
    x = np.where(np.isnan(y), 0.5, y)
    for _ in range(ROUNDS):
        smoothed = np.clip((n * np.clip(x, 0.0, 1.0) + z**2 / 2) / (n + z**2), 0.0, 1.0)
        variance = variance_at(smoothed)
        weighted_variance = variance.mean(axis=1, keepdims=True) if is_single_answer else variance
        errors = np.sqrt(np.broadcast_to(weighted_variance, y.shape))
        result = _of_shares(y, errors, parents, populations, level)
        x = result.estimate
    tree = Tree.of(parents, len(y))
    people = checked_populations(populations, tree.parent)
    # Options with common weights are computed together.
    options = range(y.shape[1])
    parts = [slice(None)] if is_single_answer else [slice(j, j + 1) for j in options]
    jump = np.broadcast_to(jump, variance.shape)
    computed = [
        _errors_and_jumps(
            variance[:, part], jump[:, part], weighted_variance[:, part].ravel(), people, tree
        )
        for part in parts
    ]
    error = np.concatenate([of_part[0] for of_part in computed], axis=1)
    shift = np.concatenate([of_part[1] for of_part in computed], axis=1)
    display = _displayed(x, people, tree) if is_single_answer else result.display
    return _result(x, error, display, 1.0, level, x.shape, continuity(level) * shift)


def _errors_and_jumps(
    variance: Floats, jump: Floats, weighted_variance: Floats, people: Floats, tree: Tree
) -> tuple[Floats, Floats]:
    """Return sqrt(sum a_v^2 s_v^2) and the largest |a_v| jump_v, (strata, options), in shares.

    The a are the coefficients of the weighted solution: with a total of 1 in one stratum and 0 in
    all others, the solution is the a of that stratum. `jump` is what one report can change.
    """
    estimated = np.flatnonzero(~np.isnan(weighted_variance))
    s2 = np.where(np.isnan(weighted_variance), np.inf, weighted_variance * people**2)
    squares, largest = np.zeros(variance.shape), np.zeros(variance.shape)
    for start in range(0, estimated.size, BATCH):
        batch = estimated[start : start + BATCH]
        unit = np.zeros((people.size, batch.size))
        unit[batch, np.arange(batch.size)] = people[batch]
        a, _ = least_squares(unit, np.tile(s2[:, None], batch.size), tree)
        a = np.abs(a / people[:, None])
        squares += a**2 @ variance[batch]
        steps = [(a * of_option).max(axis=1) for of_option in jump[batch].T]
        largest = np.maximum(largest, np.stack(steps, axis=1))
    return np.sqrt(squares), largest


def _displayed(x: Floats, people: Floats, tree: Tree) -> Floats:
    """Return shares that add up over the options and over the strata: each family fits both."""
    display = np.zeros_like(x)
    for root in tree.depths[0]:
        display[root] = norm_sub(x[root])
    for strata in tree.depths[1:]:
        above = tree.parent[strata]
        for parent in np.unique(above):
            parts = strata[above == parent]
            seed = np.maximum(x[parts], MIN_SHARE) * people[parts, None]
            totals = display[parent] * people[parts].sum()
            display[parts] = fitted(seed, [people[parts], totals]) / people[parts, None]
    return display
