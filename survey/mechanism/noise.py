"""The classical noises on a grid of k points, rounded and clamped, and the exponential mechanism.

Neighbours of the local model are any two answers, so the sensitivity is high - low, k - 1 steps of
the grid. Every epsilon is that of the integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.arrays import Floats
from survey.mechanism.design import MAX_EPSILON, Probability, asked_epsilon, exact_fraction
from survey.mechanism.shapes import ByDistance, Explicit
from survey.mechanism.weight_table import WeightTable
from survey.mechanism.weights import WORD_TOTAL, check_grid

LARGEST_UTILITY = 10**9

SHRINKING = (0.0, *(2.0**power for power in range(-40, -1)))
"""How much lower than asked an epsilon is aimed at, so that its integers stay within it."""


def geometric(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """Two-sided geometric noise, clamped to the grid: P(z) = (1-a)/(1+a) a^|z|, a = e^(-eps/(k-1)).

    Guarantee: at most epsilon over the whole range. Source: Ghosh, Roughgarden, Sundararajan 2012.

    >>> geometric(5, 2).epsilon <= 2
    True
    """
    steps = check_grid(k) - 1

    def noise(eps: float) -> Floats:
        a = math.exp(-eps / steps)
        inside: Floats = (1 - a) / (1 + a) * a ** np.arange(k, dtype=np.float64)
        inside[-1] = a**steps / (1 + a)  # with the tail beyond the grid
        return inside

    return _within(epsilon, noise, no_answers)


def laplace(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """Laplace noise of scale (high - low)/epsilon, rounded to the grid and clamped to it.

    P(z) is the probability of [z - 1/2, z + 1/2]. Guarantee: at most epsilon over the whole
    range. Source: Dwork, McSherry, Nissim, Smith 2006.

    >>> laplace(5, 2).epsilon <= 2
    True
    """
    steps = check_grid(k) - 1

    def noise(eps: float) -> Floats:
        upper_tail = np.exp(-(np.arange(k) - 0.5) * eps / steps) / 2
        return _cells(np.concatenate([[0.5], upper_tail[1:]]), middle=1 - 2 * upper_tail[1])

    return _within(epsilon, noise, no_answers)


def gaussian(k: int, sigma: Probability, no_answers: int = 0) -> WeightTable:
    """Gaussian noise of standard deviation sigma (in steps of the grid), rounded and clamped.

    Its epsilon is that of the integers: finite, because every weight is at least one. See
    `gaussian_delta` for the usual (epsilon, delta) reading. Refuses a sigma so small that epsilon
    is above 12. Source: Dwork and Roth 2014, appendix A.

    >>> round(gaussian(5, 4).epsilon, 1)
    1.1
    """
    check_grid(k)
    width = float(exact_fraction(sigma, "sigma"))
    if width <= 0:
        raise ChannelError(f"sigma = {width:g} must be above 0")
    upper_tail = np.array([_normal((0.5 - z) / width) for z in range(k)])
    cells = _cells(np.concatenate([[0.5], upper_tail[1:]]), middle=1 - 2 * upper_tail[1])
    table = WeightTable(_by_distance(cells), no_answers)
    if table.epsilon > MAX_EPSILON:
        raise ChannelError(
            f"sigma = {width:g} gives epsilon {table.epsilon:.3g}, above {MAX_EPSILON}; "
            "choose a larger sigma"
        )
    return table


def gaussian_delta(sigma: float, sensitivity: float, epsilon: float) -> float:
    """The delta of Gaussian noise at a given epsilon.

    Phi(s/2sigma - eps sigma/s) - e^eps Phi(-s/2sigma - eps sigma/s), s the sensitivity.
    Source: Balle and Wang 2018, theorem 8.

    >>> round(gaussian_delta(4.0, 1.0, 1.0), 7)
    2.9e-06
    """
    shift, slope = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return _normal(shift - slope) - math.exp(epsilon) * _normal(-shift - slope)


def _normal(x: float) -> float:
    """Phi(x), the standard normal distribution."""
    return math.erfc(-x / math.sqrt(2)) / 2


def exponential(
    utility: Sequence[Sequence[float]], epsilon: Probability, no_answers: int = 0
) -> WeightTable:
    """The exponential mechanism: P(j | i) proportional to exp(eps u[i][j] / (2 d)).

    `utility` has shape (truths, reports); d is the largest difference within a column.
    Guarantee: at most epsilon. Source: McSherry and Talwar 2007.

    >>> exponential([[1, 0], [0, 1]], 1).epsilon <= 1
    True
    """
    u = _utility_table(utility)
    difference = float(np.ptp(u, axis=0).max())
    if difference == 0:
        raise ChannelError("all rows of the utility table are alike: reports would say nothing")

    def table(eps: float) -> WeightTable:
        scores = np.exp(eps * (u - u.max(axis=1, keepdims=True)) / (2 * difference))
        rows = _equal_rows(scores / scores.sum(axis=1, keepdims=True))
        return WeightTable(Explicit(rows), no_answers)

    return _largest_below(epsilon, table)


def _utility_table(utility: Sequence[Sequence[float]]) -> Floats:
    try:
        u = np.asarray(utility, dtype=np.float64)
    except (TypeError, ValueError):
        u = np.empty(0)
    if u.ndim != 2 or not u.size or not (np.abs(u) <= LARGEST_UTILITY).all():
        raise ChannelError(
            "a utility table has one row per truth, of equal lengths, of finite numbers up to "
            f"{LARGEST_UTILITY:,}"
        )
    return u


def _cells(upper_tail: Floats, middle: float) -> Floats:
    """P(0), P(1), ..., and all that lies beyond the last point in the last."""
    cells: Floats = upper_tail - np.append(upper_tail[1:], 0.0)
    cells[0] = middle
    return cells


def _by_distance(noise: Floats) -> ByDistance:
    """Integer weights of a symmetric noise, none rounded down to nothing."""
    # A third of the room: two options that are no answer add at most one such sum each.
    scale = (WORD_TOTAL // 3 - 4 * len(noise)) / (2 * noise.sum() - noise[0])
    return ByDistance(tuple(max(int(weight), 1) for weight in np.ceil(noise * scale)))


def _within(epsilon: Probability, noise: Callable[[float], Floats], no_answers: int) -> WeightTable:
    return _largest_below(epsilon, lambda eps: WeightTable(_by_distance(noise(eps)), no_answers))


def _largest_below(epsilon: Probability, table: Callable[[float], WeightTable]) -> WeightTable:
    """The table for an epsilon so little below the asked one that its integers stay within it."""
    asked = float(asked_epsilon(epsilon))
    for less in SHRINKING:
        made = table(asked * (1 - less))
        if made.epsilon <= asked:
            return made
    raise ChannelError(f"epsilon = {asked:g} does not fit in exact integers on this grid")


def _equal_rows(rows: Floats) -> tuple[tuple[int, ...], ...]:
    """Integer rows of one sum: rounded up, then each row's peak is shaved to the common sum."""
    # A third of the room: two options that are no answer add at most one such sum each.
    total = WORD_TOTAL // 3
    weights = np.maximum(np.ceil(rows * total), 1).astype(np.int64)
    target = int(weights.sum(axis=1).min())
    weights[np.arange(len(weights)), weights.argmax(axis=1)] -= weights.sum(axis=1) - target
    return tuple(tuple(int(weight) for weight in row) for row in weights)
