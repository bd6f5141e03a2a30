"""What of a question may be shown yet, and about how many more respondents the rest needs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.estimator import (
    Disclosure,
    Histogram,
    Quantiles,
    disclosure,
    reports_needed,
    rounded_up,
)
from survey.estimator.diagnostics import FEWEST_EFFECTIVE, HIDDEN_WIDTH, SHOWN_WIDTH
from survey.estimator.shares import EFFECTIVE_RANGE
from survey.questionnaire.grid import Grid
from survey.results.estimates import Estimates


class Decisions(NamedTuple):
    """Whether each part of a question may be shown; a part that nothing is known of is hidden."""

    shares: Disclosure
    answered: Disclosure
    spread: Disclosure
    mean: Disclosure
    median: Disclosure


class Needed(NamedTuple):
    """About how many more respondents each hidden part needs; 0 for what is not known."""

    shares: int
    spread: int
    mean: int
    median: int


def decisions(found: Estimates, grid: Grid | None) -> Decisions:
    """Decide for each part; the shares of a question are shown or hidden all together.

    Shares among those who answered are never shown without those among all.
    """
    shares: Disclosure = disclosure(found.shares) if found.shares else "hide"
    answered: Disclosure = "hide"
    if found.answered and shares != "hide":
        answered = disclosure(found.answered)
    spread, middle = found.numbers.spread, found.numbers.median
    return Decisions(
        shares,
        answered,
        _decided(_widest(spread), float(effective_cells(spread).min())) if spread else "hide",
        disclosure(found.mean) if found.mean else "hide",
        _decided(_reach(middle, grid)) if middle and grid else "hide",
    )


def needed(found: Estimates, grid: Grid | None, asked: int, n: int) -> Needed:
    """About how many of all n respondents, of whom `asked` were asked, are still missing."""

    def more(reports: float) -> int:
        if asked == n:
            return rounded_up(math.ceil(reports)) - n
        return rounded_up(math.ceil(reports * n / asked)) - n

    spread, middle = found.numbers.spread, found.numbers.median
    enough = 0.0
    if spread:
        fewest = float(effective_cells(spread).min())
        enough = asked * max((_widest(spread) / HIDDEN_WIDTH) ** 2, FEWEST_EFFECTIVE / fewest)
    # Widths fall as 1/sqrt(n) at best.
    farther = asked * (_reach(middle, grid) / HIDDEN_WIDTH) ** 2 if middle and grid else 0.0
    return Needed(
        shares=more(reports_needed(found.shares)) if found.shares else 0,
        spread=more(max(enough, asked) + 1) if spread else 0,
        mean=more(reports_needed(found.mean)) if found.mean else 0,
        median=more(max(farther, asked) + 1) if middle else 0,
    )


def effective_cells(spread: Histogram) -> NDArray[np.float64]:
    """Answers given openly that would tell as much of each cell: pi(1-pi)/SE^2, pi clipped."""
    pi = np.clip(spread.linear, *EFFECTIVE_RANGE)
    return np.asarray(pi * (1 - pi) / np.maximum(spread.std_error, 1e-9) ** 2)


def _decided(widest: float, fewest: float = math.inf) -> Disclosure:
    """The rule of `disclosure`."""
    if widest >= HIDDEN_WIDTH or fewest < FEWEST_EFFECTIVE:
        return "hide"
    return "show" if widest <= SHOWN_WIDTH else "caution"


def _widest(spread: Histogram) -> float:
    return float((spread.conf_high - spread.conf_low).max())


def _reach(middle: Quantiles, grid: Grid) -> float:
    """Width of a median's interval as a part of the range, less one step.

    A median is one of the grid's values: nothing can tell it better than two neighbours.
    """
    step: float = grid.step / 10**grid.decimals
    width = float(middle.conf_high[0] - middle.conf_low[0]) - step
    return max(width, 0.0) / (grid.values[-1] - grid.values[0])
