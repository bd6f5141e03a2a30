"""The design for a number whose estimated mean varies least in the worst case, at one epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from survey.estimator.pseudo_values import expected, pseudo_values
from survey.mechanism import WeightTable
from survey.mechanism.design import Probability
from survey.mechanism.numeric import hybrid, one_bit, piecewise
from survey.mechanism.weights import check_grid

DESIGNS: Mapping[str, Callable[[int, Probability, int], WeightTable]] = MappingProxyType(
    {"one_bit": one_bit, "hybrid": hybrid, "piecewise": piecewise}
)
"""Designs whose reports are unbiased for a mean, by their names; of equals the first is taken."""

COMPARED_POINTS = 101
"""Finer grids are compared at this many points, where the variances are the same but for 0.1%."""

REMEMBERED = 1_024
"""Choices that are remembered: every question of a file that is checked again and again."""


@lru_cache(maxsize=REMEMBERED)
def smallest_worst_variance(k: int, epsilon: Probability, no_answers: int = 0) -> str:
    """The name of the design on a grid of k points whose `worst_variance` is smallest.

    One bit for two points and for a small epsilon, the more so with options that are no answer;
    otherwise the hybrid. Source: Wang et al. 2019, who compare the same three at their worst.
    Raises ChannelError as the designs do.

    >>> smallest_worst_variance(11, 1), smallest_worst_variance(2, 1)
    ('hybrid', 'one_bit')
    """
    points = min(check_grid(k), COMPARED_POINTS)
    worst = {
        name: worst_variance(make(points, epsilon, no_answers)) for name, make in DESIGNS.items()
    }
    return min(worst, key=lambda name: worst[name])


def worst_variance(channel: WeightTable) -> float:
    """n Var of the estimated mean on [-1, 1], if all people had the answer where it is largest.

    max_i E[(a - x_i b)^2 | i]: a and b are the pseudo-values that `mean` divides, x_i = -1 +
    2i/(k-1) the answers; the variance of a ratio by the delta method (Cochran 1977, 2.11).
    Without options that are no answer b = 1, and it is max_i Var(a | i). People who do differ vary
    by as much as their answers do besides, whatever the design. Exact from the integers of the
    table, up to the rounding of floats; for designs with exact pseudo-values.

    >>> round(worst_variance(one_bit(11, 1)), 3)  # B^2, B = (e+1)/(e-1)
    4.683
    """
    answers = channel.truths - channel.no_answers
    x = np.linspace(-1, 1, answers)
    silent = np.zeros(channel.no_answers)
    # The number of reports matters to tables without exact pseudo-values only.
    a = pseudo_values(channel, np.append(x, silent), 1).values
    b = np.ones(len(a))
    if channel.no_answers:
        b = pseudo_values(channel, np.append(np.ones(answers), silent), 1).values
    aa, ab, bb = (expected(channel, product)[:answers] for product in (a * a, a * b, b * b))
    return float((aa - 2 * x * ab + x * x * bb).max())
