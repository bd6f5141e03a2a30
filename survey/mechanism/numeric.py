"""Channels for bounded numbers on a grid of k points, for a mean or for a distribution.

Truth i stands for low + i (high - low)/(k - 1). In the local model any two answers are neighbors,
so the sensitivity is high - low, which is k - 1 steps of the grid. Every epsilon is computed from
the integer weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.channel import WORD_TOTAL, Floats, check_grid
from survey.mechanism.exact_numbers import (
    MAX_EPSILON,
    Probability,
    exact_fraction,
    parse_epsilon,
    table_within,
    two_weights,
)
from survey.mechanism.weight_table import (
    MAX_REPORTS,
    ByDistance,
    Mixture,
    OneBit,
    WeightTable,
    Window,
)

HYBRID_FROM = 0.61
"""Above this epsilon the hybrid has a smaller variance than one bit (Wang et al. 2019)."""

PART_TOTAL = 2**14
"""Maximum T + L of each part of a hybrid: both parts and their own weights must fit in a word."""

COIN_TOLERANCE = 0.01
"""Maximum difference between a hybrid's probability of one bit and the best probability."""

LARGEST_PART_TOTAL = 2**18
"""Replaces PART_TOTAL for an epsilon up to 12, whose T alone exceeds 2^17."""

MOVEMENT = MAX_REPORTS // 4
"""Maximum number of reports by which a window for the mean moves from one end to the other."""


def one_bit(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """One bit for the mean: P(1 | x) = (xT + (R-x)L) / (R(T+L)) on the grid 0..R, R = k - 1.

    Guarantee: epsilon = ln(T/L). On [-1, 1] the pseudo-value of a bit is +-B,
    B = (e^eps+1)/(e^eps-1), with variance B^2 - t^2. Source: Duchi, Jordan, Wainwright 2018.

    >>> one_bit(11, 1).epsilon <= 1
    True
    """
    R = check_grid(k) - 1
    T, L = two_weights(epsilon, lambda T, L: R * (T + 3 * L))
    return WeightTable(OneBit(R, T, L), no_answers)


def square_wave(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """A window around the truth, for the distribution, which is estimated by EM.

    On [0, 1] the half width that carries the most information is
    b = (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)); on the grid round(b k).
    Guarantee: epsilon = ln(T/L). Source: Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric 2020.

    >>> square_wave(101, 1).shape.width
    53
    """
    check_grid(k)
    eps = float(parse_epsilon(epsilon))
    two_weights(epsilon, lambda T, L: k * (T + L))  # raises for a too small epsilon
    growth = math.exp(eps)
    half = round(k * (eps * growth - growth + 1) / (2 * growth * (growth - 1 - eps)))
    return WeightTable(_window(k, 2 * half + 1, 1, epsilon), no_answers)


def piecewise(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """A wide window that moves with the truth, for the mean.

    The width of the window is e^(-eps/2) times its movement from one end of the grid to the
    other. Its centre is linear in the truth, so the estimated mean is exactly unbiased.
    Guarantee: epsilon = ln(T/L). Source: Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu 2019.

    >>> piecewise(11, 1).ratio <= Fraction(math.exp(1))
    True
    """
    return WeightTable(_moving_window(k, epsilon, _papers_width(epsilon)), no_answers)


def optimal_piecewise(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """Piecewise mechanism whose window has the width with the smallest worst-case variance.

    Let r = e^eps and h = width/(width + movement). On [-1, 1] the pseudo-value of a truth x has the
    variance beta + gamma x^2, which is largest at the ends,

        beta = D (1 + (r-1) h^3) / (3 (r-1)^2 h^2 (1-h)^2),  gamma = 1/((r-1) h),  D = 1 + (r-1) h.

    The best h is near 1/(1 + e^(.27 eps)) from epsilon 1 to 4, and near (2/r)^(1/3) for a large
    epsilon; `piecewise` has 1/(1 + e^(eps/2)). Guarantee: epsilon = ln(T/L). Source: Zhao et al.
    2020 (their PM-OPT).

    >>> piecewise(11, 4).shape.width, optimal_piecewise(11, 4).shape.width
    (138, 330)
    """
    r = math.exp(float(parse_epsilon(epsilon)))
    width = np.arange(1, MOVEMENT + 1) / MOVEMENT  # as a fraction of the movement
    h = width / (1 + width)
    D = 1 + (r - 1) * h
    beta = D * (1 + (r - 1) * h**3) / (3 * ((r - 1) * h * (1 - h)) ** 2)
    best = width[(beta + 1 / ((r - 1) * h)).argmin()]
    return WeightTable(_moving_window(k, epsilon, float(best)), no_answers)


def hybrid(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """One bit up to epsilon .61; above it piecewise with probability 1 - e^(-eps/2), else one bit.

    The report shows which of the two was used, independently of the answer. Source: Wang et al.
    2019.

    >>> hybrid(11, "0.5") == one_bit(11, "0.5")
    True
    """
    eps = float(parse_epsilon(epsilon))
    if eps <= HYBRID_FROM:
        return one_bit(k, epsilon, no_answers)
    largest = PART_TOTAL if eps < math.log(PART_TOTAL) - 1 else LARGEST_PART_TOTAL
    window = _moving_window(k, epsilon, _papers_width(epsilon), largest)
    bit = OneBit(
        check_grid(k) - 1, *_small_weights(epsilon, lambda T, L: (k - 1) * (T + L), largest)
    )
    M1, M2 = (int(part.rows()[0].sum()) for part in (bit, window))
    # a M1 : b M2 = e^(-eps/2) : 1 - e^(-eps/2)
    one_bit_share = math.exp(-eps / 2)
    quotient = one_bit_share * M2 / ((1 - one_bit_share) * M1)
    # One quarter of 2^32, because each of two truths that are not an answer adds at most as much.
    room = WORD_TOTAL // 4
    weights = Fraction(quotient).limit_denominator(max(int(room / (quotient * M1 + M2)), 1))
    a, b = weights.numerator, weights.denominator
    # On fine grids at a large epsilon the coin needs more than a word; one bit is rare there.
    if abs(a * M1 / (a * M1 + b * M2) - one_bit_share) > COIN_TOLERANCE or not a:
        return piecewise(k, epsilon, no_answers)
    return WeightTable(Mixture(a, bit, b, window), no_answers)


def _small_weights(
    epsilon: Probability, total: Callable[[int, int], int], largest: int
) -> tuple[int, int]:
    """Like `two_weights`, with T + L at most `largest`, so that a second table also fits."""
    return two_weights(epsilon, lambda T, L: WORD_TOTAL + 1 if largest < T + L else total(T, L))


def _window(
    k: int, width: int, stride: int, epsilon: Probability, largest: int = WORD_TOTAL
) -> Window:
    # Leaves room for two truths that are not an answer, which add width L each.
    outside = (k - 1) * stride + 2 * width
    T, L = _small_weights(epsilon, lambda T, L: width * T + outside * L, largest)
    return Window(k, width, stride, T, L)


def _moving_window(k: int, epsilon: Probability, width: float, largest: int = WORD_TOTAL) -> Window:
    """Return a window whose width is this fraction of its movement from end to end of the grid."""
    steps = check_grid(k) - 1
    stride = max(MOVEMENT // steps, 1)
    return _window(k, max(round(stride * steps * width), 1), stride, epsilon, largest)


def _papers_width(epsilon: Probability) -> float:
    """Return the width that Wang et al. 2019 chose, as a fraction of the movement."""
    return math.exp(-float(parse_epsilon(epsilon)) / 2)


def geometric(k: int, epsilon: Probability, no_answers: int = 0) -> WeightTable:
    """Two-sided geometric noise, clamped to the grid: P(z) = (1-a)/(1+a) a^|z|, a = e^(-eps/(k-1)).

    Guarantee: at most epsilon over the whole range. Source: Ghosh, Roughgarden, Sundararajan 2012.

    >>> geometric(5, 2).epsilon <= 2
    True
    """
    steps = check_grid(k) - 1

    def noise(eps: float) -> Floats:
        a = math.exp(-eps / steps)
        cells: Floats = (1 - a) / (1 + a) * a ** np.arange(k, dtype=np.float64)
        cells[-1] = a**steps / (1 + a)  # includes the tail beyond the grid
        return cells

    return _noise_within(epsilon, noise, no_answers)


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

    return _noise_within(epsilon, noise, no_answers)


def gaussian(k: int, sigma: Probability, no_answers: int = 0) -> WeightTable:
    """Gaussian noise of standard deviation sigma (in steps of the grid), rounded and clamped.

    Its epsilon is computed from the integers and is finite, because every weight is at least one;
    `gaussian_delta` gives the usual (epsilon, delta) guarantee. Raises ChannelError for a sigma
    whose epsilon exceeds 12. Source: Dwork and Roth 2014, appendix A.

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
    """Return the delta of Gaussian noise at a given epsilon.

    Phi(s/2sigma - eps sigma/s) - e^eps Phi(-s/2sigma - eps sigma/s), where s is the sensitivity.
    Source: Balle and Wang 2018, theorem 8.

    >>> round(gaussian_delta(4.0, 1.0, 1.0), 7)
    2.9e-06
    """
    shift, slope = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return _normal(shift - slope) - math.exp(epsilon) * _normal(-shift - slope)


def _normal(x: float) -> float:
    """Return Phi(x), the standard normal distribution function."""
    return math.erfc(-x / math.sqrt(2)) / 2


def _cells(upper_tail: Floats, middle: float) -> Floats:
    """Return P(0), P(1), ...; the last cell includes the tail beyond the grid."""
    cells: Floats = upper_tail - np.append(upper_tail[1:], 0.0)
    cells[0] = middle
    return cells


def _by_distance(noise: Floats) -> ByDistance:
    """Return integer weights of symmetric noise, each at least 1."""
    # The grid gets a third of 2^32: each of up to two no-answer options adds at most as much.
    scale = (WORD_TOTAL // 3 - 4 * len(noise)) / (2 * noise.sum() - noise[0])
    return ByDistance(tuple(max(int(weight), 1) for weight in np.ceil(noise * scale)))


def _noise_within(
    epsilon: Probability, noise: Callable[[float], Floats], no_answers: int
) -> WeightTable:
    return table_within(epsilon, lambda eps: WeightTable(_by_distance(noise(eps)), no_answers))
