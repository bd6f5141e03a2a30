"""Least squares over a tree whose parents are the sums of their children: two passes, by depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survey.errors import DesignError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

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

    def add_to_parents(self, total: Floats, values: Floats | Flags, of: Integers) -> None:
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
    y: Floats, s2: Floats, c: Floats, C: Floats, complete: Flags, strata: Integers
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


def _refuse(wrong: Flags, strata: Integers, reason: str) -> None:
    if wrong.any():
        place = strata[int(np.argmax(wrong.any(axis=1)))]
        raise DesignError(f"nothing determines stratum {place}: {reason}")
