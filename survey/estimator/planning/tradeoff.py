"""The cost of privacy: margins over epsilon and n, by formula and by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survey.errors import DesignError
from survey.estimator.core.arguments import checked_arguments
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.planning.sample_size import check_question, checked_n, grr_chances, margin_of
from survey.mechanism.arrays import Floats, Integers

GRID_EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
GRID_SIZES = (100, 500, 2000)
"""The classical demonstration: epsilon .001 to 10 for 100, 500 and 2,000 people."""

MAX_POINTS = 10**6


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(Result):
    """Margins of error; arrays have shape (sizes, epsilons)."""

    index_names = ("size", "step")

    n: Integers
    epsilon: Floats
    margin: Floats
    share: float
    options: int
    level: float


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedGrid(Result):
    """One simulated survey for each size and epsilon; arrays have shape (sizes, epsilons).

    estimate   linear, unclipped: far outside [0, 1] for a small epsilon
    margin     z times the estimated standard error of this simulated survey
    """

    index_names = ("size", "step")

    n: Integers
    epsilon: Floats
    estimate: Floats
    margin: Floats
    share: float
    options: int
    level: float


@checked_arguments
def tradeoff(
    epsilons: Sequence[float],
    sizes: Sequence[int],
    *,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    population: int | None = None,
) -> TradeOff:
    """Return the margin of error over epsilon for several numbers of reports, by `margin_of`.

    >>> tradeoff([.5, 1, 2], [1000, 4000]).margin.round(3).tolist()
    [[0.127, 0.067, 0.041], [0.063, 0.034, 0.02]]
    """
    check_question(k, share, level, population)
    n, epsilon = _grid(epsilons, sizes)
    question = {"k": k, "share": share, "level": level, "population": population}
    margin = [
        [margin_of(size, epsilon=e, **question).margin for e in epsilons]  # type: ignore[arg-type]
        for size in sizes
    ]
    return TradeOff(n, epsilon, np.array(margin), share, k, level)


@checked_arguments
def simulated_grid(
    rng: np.random.Generator,
    epsilons: Sequence[float] = GRID_EPSILONS,
    sizes: Sequence[int] = GRID_SIZES,
    *,
    k: int = 2,
    share: float = 0.5,
    level: float = 0.95,
) -> SimulatedGrid:
    """Simulate one survey at each point, to show an estimate and its margin.

    n people, each of whom has the answer with probability `share`, report through generalized
    randomized response, so n f ~ Binomial(n, q + (p-q) share). The estimate is (f-q)/(p-q), the
    margin z sqrt(f(1-f)/n)/(p-q). The same generator state gives the same grid.

    >>> grid = simulated_grid(np.random.default_rng(1), [.01, 1, 10], [2000])
    >>> grid.estimate.shape, bool(abs(grid.estimate[0, 2] - .5) < grid.margin[0, 2])
    ((1, 3), True)
    """
    check_question(k, share, level, None)
    n, epsilon = _grid(epsilons, sizes)
    chances = np.array([grr_chances(k, e) for e in epsilons])
    p, q = chances[:, 0], chances[:, 1]
    f = rng.binomial(n, np.broadcast_to(q + (p - q) * share, n.shape)) / n
    z = normal_quantile(level)
    # One more report of each kind gives identical reports a margin too.
    smoothed = (n * f + 1) / (n + 2)
    margin = z * np.sqrt(smoothed * (1 - smoothed) / n) / (p - q)
    return SimulatedGrid(n, epsilon, (f - q) / (p - q), margin, share, k, level)


def _grid(epsilons: Sequence[float], sizes: Sequence[int]) -> tuple[Integers, Floats]:
    if not 1 <= len(epsilons) * len(sizes) <= MAX_POINTS:
        raise DesignError(f"a grid needs 1 to {MAX_POINTS:,} points: sizes times epsilons")
    for size in sizes:
        checked_n(size)
    n, epsilon = np.meshgrid(np.array(sizes, dtype=np.int64), np.array(epsilons, dtype=float))
    return n.T.copy(), epsilon.T.copy()
