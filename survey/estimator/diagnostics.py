"""What an estimate is worth: whether a question may be shown yet, and how many reports it needs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.special import ndtri

from survey.estimator.proportions import EFFECTIVE_RANGE, Proportions
from survey.mechanism import PureChannel

Disclosure = Literal["show", "caution", "hide"]

SHOWN_WIDTH = 0.05
"""A question whose widest interval is at most this is shown without a caution."""

HIDDEN_WIDTH = 0.30
"""A question whose widest interval is at least this is hidden."""

FEWEST_EFFECTIVE = 30
"""A question with fewer effective answers than this for any option is hidden."""


def disclosure(result: Proportions) -> Disclosure:
    """Decide for a whole question: "show", "caution" (show, saying it is rough) or "hide".

    Never per option: a hidden option of a shown question could be computed from the others.
    The width is that of the widest interval, the effective answers those of the option with
    the fewest; hiding goes before showing.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> [disclosure(proportions([c, c], grr(2, "3/4"))) for c in (50, 500, 50_000)]
    ['hide', 'caution', 'show']
    """
    widest = _widest(result)
    if widest >= HIDDEN_WIDTH or result.n_effective.min() < FEWEST_EFFECTIVE:
        return "hide"
    return "show" if widest <= SHOWN_WIDTH else "caution"


def reports_needed(result: Proportions, channel: PureChannel) -> int:
    """About how many reports, all together, until the question is no longer hidden.

    Each share is taken at the middle of its interval: near 1/2 while little is known, near the
    estimate later. Rounded up to two significant digits. For a question that is hidden the
    answer is above its n; for any other it says nothing.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> reports_needed(proportions([50, 50], grr(2, "3/4")), grr(2, "3/4"))
    190
    """
    pi = np.clip((result.conf_low + result.conf_high) / 2, *EFFECTIVE_RANGE)
    share = channel.q + (channel.p - channel.q) * pi
    # One report's variance: SE^2 = variance / n.
    variance = share * (1 - share) / (channel.p - channel.q) ** 2
    z = float(ndtri((1 + result.level) / 2))
    enough = max(
        # 2 z SE = HIDDEN_WIDTH
        (2 * z / HIDDEN_WIDTH) ** 2 * float(variance.max()),
        # pi(1-pi)/SE^2 = FEWEST_EFFECTIVE
        FEWEST_EFFECTIVE * float((variance / (pi * (1 - pi))).max()),
        # Widths fall as 1/sqrt(n) at best; this counts intervals wider than the formula's.
        result.n * (_widest(result) / HIDDEN_WIDTH) ** 2,
        float(result.n),
    )
    return _round_up(math.floor(enough) + 1)


def _widest(result: Proportions) -> float:
    return float(np.max(result.conf_high - result.conf_low))


def _round_up(n: int) -> int:
    """Up to two significant digits: 184 is 190."""
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // unit) * unit
