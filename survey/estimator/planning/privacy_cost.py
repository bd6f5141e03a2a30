"""The cost of privacy: margins over epsilon and n, the part of randomization, joint responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError, DesignError
from survey.estimator.core.arguments import (
    CodeChannel,
    checked_arguments,
    checked_level,
    checked_values,
    whole_counts,
)
from survey.estimator.core.debiasing import EXACT, axis, exact_values, pseudo_values
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.numbers.mean import Mean, mean
from survey.estimator.planning.sample_size import (
    check_question,
    checked_n,
    grr_chances,
    margin_of,
)
from survey.estimator.shares.proportions import Proportions
from survey.mechanism import SubsetSelection
from survey.mechanism.channel import Floats, Integers
from survey.mechanism.composition import total_ratio
from survey.mechanism.joint_response import joint_response, marginal_response

GRID_EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
GRID_SIZES = (100, 500, 2000)
"""The classical demonstration: epsilon .001 to 10 for 100, 500 and 2,000 people."""

MAX_SPLIT_CELLS = 250_000
"""Largest table for which the observed variance splits the margin of a mean.

The singular value decomposition of such a table takes a tenth of a second; that of a table with
1,000 answers takes a second.
"""

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


@dataclass(frozen=True, eq=False, repr=False)
class MarginSplit(Result):
    """Half the width of each interval, and its two parts, whose squares add up to its square.

    margin          (conf_high - conf_low)/2
    sampling        the margin without randomization; 0 for these respondents
    randomization   the margin if the whole population were asked
    randomized      the fraction of the variance that is due to randomization, from 0 to 1
    n, level        reports, and the level of the intervals
    at_most         whether `sampling` is only an upper bound, and `randomized` a lower one
    """

    margin: Floats
    sampling: Floats
    randomization: Floats
    randomized: Floats
    n: int
    level: float
    at_most: bool = False


@checked_arguments
def margin_split(result: Proportions) -> MarginSplit:
    """Split the margin of each share, shape (k,), into sampling and randomization.

    The variance of one report's pseudo-value is x(1-x), of the answer itself, plus that of the
    randomization, for generalized randomized response [x p(1-p) + (1-x) q(1-q)]/D^2, where x is the
    estimate clipped to [0, 1]. The square of the margin is divided like the variance, because
    variances add and margins do not. Tables use the largest randomization variance that the other
    answers could cause. Options that the device selects at random are part of the randomization:
    without it, all n people would answer about every option.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> margin_split(proportions([700, 1300], grr(2, "3/4")))
    MarginSplit(n=2000, level=0.9500, at_most=False)
    option  margin  sampling  randomization  randomized
         0  0.0420    0.0176         0.0382      0.8242
         1  0.0420    0.0176         0.0382      0.8242
    """
    x = np.clip(np.nan_to_num(result.estimate), 0.0, 1.0)
    sampling = result.moments.sampling(x)
    if result.target == "respondents":
        sampling = np.zeros_like(sampling)
    randomization = np.maximum(result.moments.randomization(x), 0.0)
    # SE^2 = [x(1-x) + randomization]/reports; without randomization it would be x(1-x)/n.
    asked = np.minimum(result.reports / result.n, 1.0)
    return _split(result, 1 - asked * sampling / (sampling + randomization))


@checked_arguments
def margin_split_of_mean(
    counts: ArrayLike,
    channel: CodeChannel,
    values: Sequence[float | None] | ArrayLike,
    *,
    level: float = 0.95,
) -> MarginSplit:
    """Split the margin of a mean among those who answered; arguments as in `mean`, shape (1,).

    Without randomization, as many people would give SE^2 = v/(n B), where v is the variance of the
    numbers of those who answer and B their share. The remainder of the estimate's SE^2 is due
    to randomization. v = E[x^2] - m^2 if the channel determines the mean of squares, limited to 0
    and (high - m)(m - low), which no variance exceeds (Bhatia, Davis 2000). Otherwise (one bit
    determines the mean only; the table has more than `MAX_SPLIT_CELLS` cells) v is this upper
    limit, and the result has `at_most`.

    Raises the errors of `mean`.

    >>> from survey.mechanism.numeric import one_bit
    >>> margin_split_of_mean([400, 600], one_bit(11, 2), range(11))
    MarginSplit(n=1000, level=0.9500, at_most=True)
    option  margin  sampling  randomization  randomized
         0  0.4034    0.3024         0.2670      0.4380
    """
    estimate = mean(counts, channel, values, level=level)
    sampling, at_most = _open_variance(estimate, counts, channel, values)
    randomized = max(1 - sampling / estimate.std_error**2, 0.0)
    return _split(estimate, np.array([randomized]), at_most=at_most)


def _open_variance(
    estimate: Mean,
    counts: ArrayLike,
    channel: CodeChannel,
    values: Sequence[float | None] | ArrayLike,
) -> tuple[float, bool]:
    """Return SE^2 of the mean without randomization, and whether it is only an upper bound."""
    x = checked_values(values, channel.truths)
    answered = ~np.isnan(x)
    # On the scale from -1 to 1, as in `mean`.
    middle, half = (estimate.low + estimate.high) / 2, (estimate.high - estimate.low) / 2
    m = min(max((estimate.estimate - middle) / half, -1.0), 1.0)
    b = pseudo_values(channel, answered.astype(np.float64), estimate.n).values
    f = whole_counts(counts, b.size, "one per report") / estimate.n
    B = min(float(f @ b), 1.0)
    maximum = 1 - m * m
    target = np.where(answered, ((x - middle) / half) ** 2, 0.0)
    if channel.truths * b.size > MAX_SPLIT_CELLS and exact_values(channel, target) is None:
        return half**2 * maximum / (estimate.n * B), True
    squares = pseudo_values(channel, target, estimate.n)
    at_most = squares.bias > EXACT
    v = maximum if at_most else min(max(float(f @ squares.values) / B - m * m, 0.0), maximum)
    return half**2 * v / (estimate.n * B), at_most


def _split(result: Proportions | Mean, randomized: Floats, *, at_most: bool = False) -> MarginSplit:
    """Divide the margins like the variances; `randomized` is the fraction of randomization."""
    margin = np.atleast_1d((result.conf_high - result.conf_low) / 2)
    return MarginSplit(
        margin=margin,
        sampling=margin * np.sqrt(1 - randomized),
        randomization=margin * np.sqrt(randomized),
        randomized=randomized,
        n=result.n,
        level=result.level,
        at_most=at_most,
    )


@dataclass(frozen=True, eq=False)
class JointPrecision:
    """Margins of error z SE at equal shares of all combinations, by each way of randomizing.

    shares_apart  of a share of each question, randomized separately; shape (questions,)
    shares_joint  of the same share if all questions are randomized jointly
    cell_apart    of a cell of their cross-tab
    cell_joint
    """

    shares_apart: Floats
    shares_joint: Floats
    cell_apart: float
    cell_joint: float

    @property
    def narrows_shares(self) -> bool:
        """Whether the joint response narrows the shares of every question."""
        return bool((self.shares_joint < self.shares_apart).all())


@checked_arguments
def joint_precision(
    channels: Sequence[SubsetSelection], n: int, *, level: float = 0.95
) -> JointPrecision:
    """Compare separate reports by these channels with a joint response of the same total epsilon.

    `channels` are generalized randomized responses (d = 1) of two or more questions, `n` the number
    of reports. At equal shares, with second moments m_i = E[g^2] of a cell's factors,
        n Var(share) = lambda (1 - lambda)/(p - q)^2,  n Var(cell) = m_1 m_2 ... - 1/K^2,
    and a cell of the joint response is a share of K options (`crosstab`).

    Raises CountsError unless n is above 0, ChannelError for channels that cannot be joined.

    >>> from survey.mechanism import from_epsilon
    >>> yes_no = joint_precision([from_epsilon(2, "0.8")] * 2, 2_000)
    >>> yes_no.shares_apart.round(4).tolist(), yes_no.shares_joint.round(4).tolist()
    ([0.0577, 0.0577], [0.0441, 0.0441])
    >>> round(yes_no.cell_apart, 4), round(yes_no.cell_joint, 4)
    (0.0862, 0.0382)
    """
    if n <= 0:
        raise CountsError(f"n = {n} must be above 0")
    z = normal_quantile(checked_level(level)) / math.sqrt(n)
    sizes = [channel.k for channel in channels]
    joint = joint_response(sizes, total_ratio(channel.ratio for channel in channels))
    moments = [float(np.mean(axis(channel).by_truth[0])) for channel in channels]
    return JointPrecision(
        shares_apart=np.array([z * _deviation(channel) for channel in channels]),
        shares_joint=np.array([z * _deviation(marginal_response(joint, k)) for k in sizes]),
        cell_apart=z * math.sqrt(math.prod(moments) - 1 / joint.k**2),
        cell_joint=z * _deviation(joint),
    )


def _deviation(channel: SubsetSelection) -> float:
    """Return the standard error of one report, sqrt(lambda (1-lambda))/(p-q) at lambda = 1/k."""
    return math.sqrt((channel.k - 1) / channel.k**2) / (channel.p - channel.q)
