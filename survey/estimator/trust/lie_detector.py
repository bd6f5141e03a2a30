"""The stochastic lie detector: how many people protect themselves with an untruthful "no"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError
from survey.estimator.core.arguments import (
    check_at_most,
    checked_arguments,
    checked_level,
    checked_n,
    whole_counts,
)
from survey.estimator.core.intervals import normal_quantile, wilson
from survey.estimator.core.result import Result
from survey.mechanism.channel import Floats, Integers

GROUPS = 2

ALL_ALIKE = "all said the same"
NOT_CLEAR = "share not clearly above 0"
OUTSIDE = "outside 0 to 1"


@dataclass(frozen=True, eq=False, repr=False)
class LieDetector(Result):
    """Two numbers, index 0 and 1: the share pi of carriers, and the fraction t of them who admit
    it.

    estimate     linear for pi, a ratio for t; may be outside [0, 1]. If pi <= 0, t does not exist:
                 it is 0 with an infinite error, and the flag says so
    std_error    by the delta method; 0 if all people of each group gave the same answer, which the
                 model allows (carriers who all answer no), and which the flag says
    conf_low     MOVER of Wilson's ends for pi, Fieller's interval for t, clipped to [0, 1] and
    conf_high    never of zero width
    yes_shares   of the two groups
    n            of the two groups together
    flag         "", "all said the same" (no error is observed; the interval still has a width),
                 "share not clearly above 0" (t has no meaning), "outside 0 to 1" (an estimate is
                 outside by more than `level` allows: the model is wrong), joined by commas
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    yes_shares: tuple[float, float]
    n: int
    level: float
    flag: str

    index_names = ("number",)


@checked_arguments
def lie_detector(
    yes: ArrayLike, n: ArrayLike, p: Sequence[object], *, level: float = 0.95
) -> LieDetector:
    """Estimate the share of carriers and how many of them answer honestly.

    For answers that people randomized BY HAND by Mangat's rule, in two groups with different p_1,
    p_2 and random assignment: carriers are asked to answer yes; everybody else draws, and answers
    no with probability p_g and yes with probability 1 - p_g. `yes[g]` of `n[g]` people answered
    yes. A carrier admits it with probability t and otherwise answers no:

        lambda_g = pi t + (1 - pi)(1 - p_g)

        pi = 1 - (lambda_1 - lambda_2)/(p_2 - p_1), t = (lambda_1 - (1 - pi)(1 - p_1))/pi

    Not for two groups of DEVICES with different p: people who protect themselves enter "no", the
    device randomizes this "no" correctly, both groups estimate pi t, and no choice of p separates
    the two.

    Standard errors by the delta method; coverage at .95 by simulation (pi .05 to .6, t .3 to 1, n
    200 to 2,000 per group): at least .94 for pi and .93 for t. Raises CountsError for impossible
    counts, ChannelError for probabilities outside [0, 1], equal ones, or a channel. Sources:
    Moshagen, Musch, Erdfelder 2012 (A stochastic lie detector); Mangat 1994; Newcombe 1998 (MOVER);
    Fieller 1954.

    >>> found = lie_detector([448, 336], [1000, 1000], [0.4, 0.6])
    >>> found.estimate.round(2).tolist()
    [0.44, 0.25]
    """
    p_1, p_2 = _checked_chances(p)
    checked_level(level)
    c, groups = whole_counts(yes, GROUPS, "yes per group"), whole_counts(n, GROUPS, "group sizes")
    for size in groups.tolist():
        checked_n(size, None)
    check_at_most(c, groups, "people said yes (option: group)")
    z = normal_quantile(level)
    share = c / groups
    # pi = a0 + a'lambda and pi t = b0 + b'lambda, with 1 - pi = (lambda_1 - lambda_2)/gap
    a = np.array([-1.0, 1.0]) / (p_2 - p_1)
    b = np.array([1.0, 0.0]) + (1 - p_1) * a
    pi, admitted = 1 + float(a @ share), float(b @ share)
    errors = share * (1 - share) / groups
    t = admitted / pi if pi > 0 else 0.0
    # dt = (d(pi t) - t d pi)/pi
    t_error = math.sqrt(float(((b - t * a) ** 2) @ errors)) / pi if pi > 0 else math.inf
    pi_ends = _mover(c, groups, a, level)
    ends = [_inside(pi, pi_ends), _inside(t, _fieller(c, groups, a, b, z))]
    low, high = np.array(ends).T
    std_error = np.array([math.sqrt(float(a**2 @ errors)), t_error])
    return LieDetector(
        estimate=np.array([pi, t]),
        std_error=std_error,
        conf_low=low,
        conf_high=high,
        yes_shares=(float(share[0]), float(share[1])),
        n=int(groups.sum()),
        level=level,
        flag=_flag(errors, pi_ends, pi, t, z * std_error),
    )


def _checked_chances(p: Sequence[object]) -> tuple[float, float]:
    """Return two different probabilities of people, not of devices."""
    if hasattr(p, "epsilon") or any(hasattr(chance, "epsilon") for chance in p):
        raise ChannelError(
            "devices randomize a protective answer correctly, so two groups of devices determine "
            "pi t only; use p for answers randomized by hand"
        )
    if not all(isinstance(chance, Real) for chance in p):
        raise ChannelError(f"p = {p!r} must be numbers")
    chances = np.array(p, dtype=np.float64)
    if chances.shape != (GROUPS,) or not ((chances >= 0) & (chances <= 1)).all():
        raise ChannelError(f"p = {p!r} must be the two groups' probabilities, each from 0 to 1")
    if chances[0] == chances[1]:
        raise ChannelError(f"p = {p!r}: groups with equal probabilities determine only pi t")
    return float(chances[0]), float(chances[1])


def _inside(estimate: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Return the ends in [0, 1]; around the clipped estimate if they would lose their width."""
    low, high = (min(max(end, 0.0), 1.0) for end in ends)
    if low < high:
        return low, high
    shift = min(max(estimate, 0.0), 1.0) - estimate
    return max(ends[0] + shift, 0.0), min(ends[1] + shift, 1.0)


def _mover(c: Integers, groups: Integers, a: Floats, level: float) -> tuple[float, float]:
    """Return ends of 1 + a'lambda from Wilson's ends of each group.

    estimate -+ sqrt(sum (a_g (f_g - end_g))^2), with the end_g that moves the estimate that way.
    """
    share, (low, high) = c / groups, wilson(c, groups, level)
    estimate = 1 + float(a @ share)
    down = np.where(a > 0, a * (share - low), a * (share - high))
    up = np.where(a > 0, a * (high - share), a * (low - share))
    return estimate - math.hypot(*down), estimate + math.hypot(*up)


def _fieller(c: Integers, groups: Integers, a: Floats, b: Floats, z: float) -> tuple[float, float]:
    """Return all t with (pi t - t pi)^2 <= z^2 Var, both linear in lambda; [0, 1] if pi may be 0.

    Numerator b'lambda, denominator 1 + a'lambda; variances from (c + z^2/2)/(n + z^2), which are
    never 0 (Agresti, Coull 1998).
    """
    shrunk = (c + z**2 / 2) / (groups + z**2)
    errors = shrunk * (1 - shrunk) / (groups + z**2)
    share = c / groups
    top, bottom = float(b @ share), 1 + float(a @ share)
    # (bottom^2 - z^2 Var bottom) t^2 - 2 (top bottom - z^2 Cov) t + top^2 - z^2 Var top <= 0
    square = bottom**2 - z**2 * float(a**2 @ errors)
    if bottom <= 0 or square <= 0:
        return 0.0, 1.0
    half = top * bottom - z**2 * float((a * b) @ errors)
    constant = top**2 - z**2 * float(b**2 @ errors)
    root = math.sqrt(max(half**2 - square * constant, 0.0))
    return (half - root) / square, (half + root) / square


def _flag(
    errors: Floats, pi_ends: tuple[float, float], pi: float, t: float, margins: Floats
) -> str:
    flags = [] if errors.any() else [ALL_ALIKE]
    if pi_ends[0] <= 0:
        return ", ".join([*flags, NOT_CLEAR])
    beyond = max(-pi - margins[0], pi - 1 - margins[0], -t - margins[1], t - 1 - margins[1])
    return ", ".join([*flags, OUTSIDE] if beyond > 0 else flags)
