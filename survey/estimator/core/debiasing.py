"""Debiasing: pseudo-values of reports whose mean is unbiased for a target, and their variance.

For a table P, h is exact for a target x if P h = x, that is E[h(report) | truth i] = x_i.
Then the mean of h over all reports is unbiased for the mean of x over all people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.estimator.core.arguments import CodeChannel
from survey.estimator.core.intervals import MomentRange
from survey.estimator.core.maximum_likelihood import require_two_options
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import Floats, Integers
from survey.mechanism.weight_table import FirstOrOrder, Mixture, OneBit, Window

EXACT = 1e-9
"""A bias below this fraction of the target's size is a rounding error."""

CACHED_TABLES = 8
"""Number of tables whose factors are cached; the largest takes 40 MB."""

RIDGES = (0.0, *(10.0 ** (power / 2) for power in range(-28, 1)))
"""Candidate ridges, relative to the table's largest squared singular value."""

MAX_BIAS = 0.05
"""Maximum bias of a ridge solution for targets in [-1, 1], unless the exact one has more."""

MIN_GAIN = 1.1
"""A ridge solution must have an interval narrower by this factor to replace the exact one."""

TWO_ERRORS = 2.0
"""Approximate half width of an interval in standard errors, used to compare solutions."""


@dataclass(frozen=True, eq=False)
class PseudoValues:
    """One number per report, shape (reports,), and the largest |E[h | i] - x_i| of any truth."""

    values: Floats
    bias: float


def pseudo_values(channel: CodeChannel, target: Floats, n: int) -> PseudoValues:
    """Return pseudo-values for a target of shape (truths,), to be averaged over n reports.

    Generalized randomized response: h_j = (x_j - q sum x)/(p - q), the only exact solution.
    Windows, one bit and mixtures of them, for targets linear in the truth: the exact solution that
    is linear in the report's index, with a separate weight for each "no answer" report. Each part
    of a mixture is used separately and is unbiased for either side of the coin, as its authors do
    (Wang et al. 2019). Rankings: the exact solution of least variance if all rankings are equally
    frequent, if there is one. Other tables and targets: the exact solution of least variance, or a
    ridge solution if its interval, with its largest bias included, is much narrower.
    """
    exact = exact_values(channel, target)
    if exact is not None:
        return PseudoValues(exact, 0.0)
    values, bias = set_values(channel, target[None], n)
    return PseudoValues(values[0], float(bias[0]))


def exact_values(channel: CodeChannel, target: Floats) -> Floats | None:
    """Return pseudo-values that are exact for any n, shape (reports,); None if they depend on n."""
    if isinstance(channel, SubsetSelection):
        q = channel.q
        return np.asarray((target - q * target.sum()) / (channel.p - q))
    if isinstance(channel.shape, FirstOrOrder):
        exact = _exact_values(channel, target)
        if np.abs(channel.matrix @ exact - target).max() <= EXACT:
            return exact
    basis = _basis(channel)
    if basis is not None:
        # The h = basis theta with the smallest error in P h = target.
        P = channel.matrix
        h = basis @ np.linalg.lstsq(P @ basis, target, rcond=None)[0]
        if np.abs(P @ h - target).max() <= EXACT:
            return np.asarray(h)
    return None


def expected(channel: CodeChannel, values: Floats) -> Floats:
    """Return E[values(report) | truth], shape (truths,)."""
    if isinstance(channel, SubsetSelection):
        return np.asarray((channel.p - channel.q) * values + channel.q * values.sum())
    return np.asarray(channel.matrix @ values)


@lru_cache(maxsize=CACHED_TABLES)
def left_inverse(channel: WeightTable) -> Floats:
    """Return G = (P D P^T)^-1 P D, D = 1/(report shares at uniform truth), (truths, reports).

    Its rows are pseudo-values of the truths' indicators, E[g_j | i] = [i = j], with the least
    variance at uniform truth. Raises ChannelError if the rows of P are dependent.
    """
    from scipy.linalg import solve_triangular

    P = channel.matrix
    root = np.sqrt(P.mean(axis=0))
    dependent = P.shape[0] > P.shape[1] or np.linalg.matrix_rank(P / root) < P.shape[0]
    if not dependent:
        # With (P/root)^T = Q R: G = R^-1 Q^T / root.
        Q, R = np.linalg.qr((P / root).T)
        G = solve_triangular(R, Q.T) / root
        dependent = float(np.abs(P @ G.T - np.eye(len(P))).max()) > EXACT * len(P)
    if dependent:
        raise ChannelError(
            f"the shares of all {channel.truths} answers cannot be estimated from this "
            f"{channel.shape.name} table, because different shares give the same reports; "
            "`mean` can estimate the mean"
        )
    G.flags.writeable = False
    return np.asarray(G)


def _basis(channel: WeightTable) -> Floats | None:
    """Return columns for 1, the truth a report stands for, and each no-answer report.

    None for shapes without this structure.
    """
    shape = channel.shape
    if isinstance(shape, Mixture):
        first = shape.first.rows().shape[1]
        parts = [first, channel.reports - channel.no_answers - first]
    elif isinstance(shape, Window | OneBit):
        parts = [channel.reports - channel.no_answers]
    else:
        return None
    answers = sum(parts)
    columns = np.zeros((channel.reports, 2 + channel.no_answers))
    columns[:answers, 0] = 1
    columns[:answers, 1] = _positions(channel, parts)
    columns[answers:, 2:] = np.eye(channel.no_answers)
    return columns


def _positions(channel: WeightTable, parts: Sequence[int]) -> Floats:
    """Return h with E[h | truth i, part] = -1 + 2i/(k-1), linear in the index within each part.

    `parts` are the numbers of reports of each part, in order. Both parts are symmetric.
    """
    ends = channel.matrix[[0, channel.truths - channel.no_answers - 1]]
    positions = []
    for start, size in zip(np.cumsum([0, *parts]), parts, strict=False):
        index = np.linspace(-1, 1, size)
        low, high = (
            end[start : start + size] @ index / end[start : start + size].sum() for end in ends
        )
        positions.append(2 * index / (high - low))
    return np.concatenate(positions)


def _exact_values(channel: WeightTable, target: Floats) -> Floats:
    """Return h = R^-1/2 V diag(1/s) U' target, the solution of P h = target with the least E h^2.

    E assumes equally frequent truths. Rankings have more truths than reports, so only a few targets
    have a solution.
    """
    U, s, V, root = _factors(channel)
    nonzero = s > s[0] * np.finfo(np.float64).eps * max(len(U), len(root))
    coordinates = np.divide(U.T @ target, s, out=np.zeros_like(s), where=nonzero)
    return np.asarray(V @ coordinates / root)


@lru_cache(maxsize=CACHED_TABLES)
def _factors(channel: WeightTable) -> tuple[Floats, Floats, Floats, Floats]:
    """Return U, s, V with P R^-1/2 = U diag(s) V^T, and the root of R."""
    root = np.sqrt(channel.matrix.mean(axis=0))
    U, s, Vt = np.linalg.svd(channel.matrix / root, full_matrices=False)
    return U, s, Vt.T, root


def set_values(channel: CodeChannel, targets: Floats, n: int) -> tuple[Floats, Floats]:
    """Return pseudo-values of many targets, (sets, reports), and their largest biases, (sets,).

    `targets` has shape (sets, truths), with values in [-1, 1]. Of the ridge solutions each set
    takes the exact one, unless another one with little bias has an interval narrower by more than a
    tenth with that bias included.

    >>> from survey.mechanism import grr
    >>> set_values(grr(2, "3/4"), np.array([[1.0, -1.0]]), 100)
    (array([[ 2., -2.]]), array([0.]))
    """
    if isinstance(channel, SubsetSelection):
        exact = np.array([pseudo_values(channel, target, n).values for target in targets])
        return exact, np.zeros(len(targets))
    U, s, V, root = _factors(channel)
    nonzero = s > s[0] * np.finfo(np.float64).eps * max(len(U), len(root))
    ridges = np.array(RIDGES)[:, None]
    # h = V diag(shrunk/s) U'x / root, shrunk = s^2/(s^2 + ridge s_0^2)
    shrunk = np.where(nonzero, s**2 / (s**2 + ridges * s[0] ** 2), 0.0)
    projected = U.T @ targets.T
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=nonzero)
    factors = shrunk[_ridge_indices(U, shrunk, projected, inverse, targets, n)].T
    values = V @ (factors * projected * inverse[:, None]) / root[:, None]
    bias = np.abs(channel.matrix @ values - targets.T).max(axis=0)
    return values.T, np.where(bias > EXACT, bias, 0.0)


def _ridge_indices(
    U: Floats, shrunk: Floats, projected: Floats, inverse: Floats, targets: Floats, n: int
) -> NDArray[np.intp]:
    """Return the index of each set's ridge: the shortest interval, or the exact one if near it.

    The half length of an interval is 2 sqrt(E h^2/n) + bias.
    """
    bias = np.array(
        [np.abs(U @ (factor[:, None] * projected) - targets.T).max(axis=0) for factor in shrunk]
    )
    spread = np.sqrt((shrunk * inverse) ** 2 @ projected**2)
    half = TWO_ERRORS * spread / math.sqrt(n) + bias
    allowed = np.where(bias <= np.maximum(bias[0], MAX_BIAS), half, np.inf)
    best = allowed.argmin(axis=0)
    exact_is_near = half[0] <= MIN_GAIN * allowed.min(axis=0)
    return np.where(exact_is_near, 0, best)


EFFECTIVE_RANGE = (0.01, 0.99)
"""Shares are clipped to this range before the effective number of answers is computed."""


IDENTICAL = 1e-12
"""Reports are identical if their variance is at most this fraction of their mean square."""


def observed_variance(variance: Floats, square: Floats, minimum: Floats) -> Floats:
    """Return the observed variance of a value, or `minimum` where all reports are identical.

    Identical reports have no observed variance, although another survey would give another
    estimate. `square` is the mean square of the values, and `minimum` the variance that
    randomization alone causes at the possible share nearest to the estimate.

    >>> observed_variance(np.array([0.0, 0.1]), np.array([4.0, 4.0]), np.array([0.3, 0.3])).tolist()
    [0.3, 0.1]
    """
    # "<=" is false for nan, so options without reports keep nan.
    return np.asarray(np.where(variance <= IDENTICAL * square, np.maximum(minimum, 0.0), variance))


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Second moments of one report's pseudo-value g_j.

    at_truth   E[g_j^2 | the truth is j], shape (k,)
    elsewhere  the largest E[g_j^2 | the truth is i] over all i other than j, shape (k,)
    """

    at_truth: Floats
    elsewhere: Floats

    def variance(self, share: Floats) -> Floats:
        """Return x at_truth + (1-x) elsewhere - x^2 at share x, which Var g_j never exceeds."""
        return np.asarray(self.randomization(share) + self.sampling(share))

    def sampling(self, share: Floats) -> Floats:
        """Return x (1-x), the variance of the answers without randomization."""
        return np.asarray(share * (1 - share))

    def randomization(self, share: Floats) -> Floats:
        """Return E[Var(g_j | truth)] = x (at_truth-1) + (1-x) elsewhere.

        E[g_j | truth] is 1 for truth j and 0 otherwise.
        """
        return np.asarray(share * (self.at_truth - 1) + (1 - share) * self.elsewhere)


def binary_moments(p: Floats, q: Floats) -> SecondMoments:
    """Return the moments of g = (supported - q)/(p-q).

    A report supports its truth with probability p and any other option with q. If s is p or q,
        E[g^2] = (s (1-q)^2 + (1-s) q^2)/(p-q)^2.
    """
    squared = (p - q) ** 2
    return SecondMoments(
        at_truth=np.asarray((p * (1 - q) ** 2 + (1 - p) * q**2) / squared),
        elsewhere=np.asarray(q * (1 - q) / squared),
    )


def binary_error(f: Floats, reports: Integers, p: Floats, q: Floats) -> Floats:
    """Return sqrt(f(1-f)/n)/|p-q|, the standard error of the linear estimate.

    Where f is 0 or 1, return the error that randomization alone causes.
    """
    D2 = (p - q) ** 2
    x = np.clip((f - q) / (p - q), 0.0, 1.0)
    minimum = binary_moments(p, q).randomization(x)
    return np.asarray(np.sqrt(observed_variance(f * (1 - f) / D2, 1 / D2, minimum) / reports))


def effective_answers(estimate: Floats, reports: Integers, moments: SecondMoments) -> Floats:
    """Return pi(1-pi)/SE^2, with pi and the pi of SE clipped so that nothing divides by zero."""
    pi = np.clip(np.nan_to_num(estimate), *EFFECTIVE_RANGE)
    return np.asarray(reports * pi * (1 - pi) / moments.variance(pi))


@dataclass(frozen=True, eq=False)
class Axis:
    """Linear maps from counts along an axis to means, and second moments by truth.

    means        shape (truths, counts): sum over reports of g_a, per truth a
    squares      shape (truths, counts): sum over reports of g_a^2
    cubes        shape (truths, counts): sum over reports of g_a^3
    by_truth     shape (truths, truths): E[g_a^2 | truth i], row a, column i
    per_report   how much one report adds to the counts: d for sets of d options, otherwise 1
    """

    means: Floats
    squares: Floats
    cubes: Floats
    by_truth: Floats
    per_report: int


def axis(channel: CodeChannel) -> Axis:
    """Return the linear maps of this channel; ChannelError if its table has no inverse."""
    if isinstance(channel, WeightTable):
        G = left_inverse(channel)
        return Axis(G, G**2, G**3, G**2 @ channel.matrix.T, 1)
    require_two_options(channel)
    k, d, p, q = channel.k, channel.d, channel.p, channel.q
    D = p - q
    # g_a = (s_a - q)/D with s_a = 1 if the set contains a; 1 = sum_a s_a / d.
    means = (np.eye(k) - q / d) / D
    # g_a^m = (s_a ((1-q)^m - (-q)^m) + (-q)^m)/D^m, because s_a is 0 or 1.
    squares, cubes = (
        (((1 - q) ** m - (-q) ** m) * np.eye(k) + (-q) ** m / d) / D**m for m in (2, 3)
    )
    by_truth = np.full((k, k), q * (1 - q) / D**2)
    np.fill_diagonal(by_truth, (p * (1 - q) ** 2 + (1 - p) * q**2) / D**2)
    return Axis(means, squares, cubes, by_truth, d)


def report_classes(channel: CodeChannel, counts: Floats) -> tuple[Floats, Floats]:
    """Return the reports of each class along the first axis of counts, and the classes' values.

    Reports of a class have the same pseudo-value for one truth: reports with and without the
    option, or each report of a table. The reports have the shape (counts.shape[1:], truths or 1,
    classes), the values (truths, classes).
    """
    c = np.moveaxis(counts, 0, -1)
    if isinstance(channel, WeightTable):
        return c[..., None, :], left_inverse(channel)
    p, q = channel.p, channel.q
    without = c.sum(axis=-1, keepdims=True) / channel.d - c
    return np.stack([c, without], axis=-1), np.tile([[1 - q, -q]], (channel.k, 1)) / (p - q)


def along(table: Floats, maps: Sequence[Floats]) -> Floats:
    """Apply maps[0] along axis 0, maps[1] along axis 1, and so on.

    >>> along(np.ones((2, 3)), [np.ones((1, 2)), np.eye(3)]).tolist()
    [[2.0, 2.0, 2.0]]
    """
    for matrix in maps:
        # The first axis becomes the last one, so that all maps together restore the order.
        table = np.tensordot(table, matrix, axes=(0, 1))
    return table


def product_moment(axes: Sequence[Axis]) -> MomentRange:
    """Return E[(g_a h_b ...)^2] at the cell's own truth, and its range at the other truths.

    It is the product of the questions' E[g_a^2 | i], all positive, so the extremes over all other
    truths are products of the questions' extremes.
    """
    at_truth = [np.diagonal(question.by_truth) for question in axes]
    minima = [_with_diagonal(question.by_truth, np.inf).min(axis=1) for question in axes]
    maxima = [_with_diagonal(question.by_truth, 0.0).max(axis=1) for question in axes]
    return MomentRange(
        _outer(at_truth),
        _extreme(at_truth, minima, np.minimum),
        _extreme(at_truth, maxima, np.maximum),
    )


def _with_diagonal(by_truth: Floats, fill_value: float) -> Floats:
    moments = by_truth.copy()
    np.fill_diagonal(moments, fill_value)
    return moments


def _extreme(at_truth: list[Floats], elsewhere: list[Floats], choose: np.ufunc) -> Floats:
    """Return the extreme product with at least one factor from `elsewhere`."""
    extremes = [choose(a, b) for a, b in zip(at_truth, elsewhere, strict=True)]
    with_one = [
        _outer([*extremes[:place], elsewhere[place], *extremes[place + 1 :]])
        for place in range(len(at_truth))
    ]
    return np.asarray(reduce(choose, with_one))


def _outer(factors: Sequence[Floats]) -> Floats:
    return np.asarray(reduce(np.multiply.outer, factors))
