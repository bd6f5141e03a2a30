"""What of a question may be shown yet, and about how many more respondents the rest needs."""

from __future__ import annotations

import math
from typing import NamedTuple

from survey.estimator import (
    AnsweredShares,
    Disclosure,
    Histogram,
    Mean,
    Proportions,
    Quantiles,
    disclosure,
    reports_needed,
    rounded_up,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.compute import Estimates
from survey.results.from_nothing import imagined

Hidden = Proportions | AnsweredShares | Mean | Histogram | Quantiles
"""What can be said to need more reports."""


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
    answered: int
    spread: int
    mean: int
    median: int


def decisions(found: Estimates) -> Decisions:
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
        disclosure(spread) if spread else "hide",
        disclosure(found.mean) if found.mean else "hide",
        disclosure(middle) if middle else "hide",
    )


def needed(
    found: Estimates, asked: int, n: int, question: PublishedQuestion, one_in: float
) -> Needed:
    """About how many of all n respondents, of whom `asked` were asked, are still missing.

    While nobody was asked it is told from what a few simulated ones would say; then everybody is
    asked `one_in` so many questions.
    """
    of_all = n / asked if asked else one_in
    found = found if asked else imagined(question)

    def more(hidden: Hidden | None) -> int:
        if hidden is None:
            return 0
        reports = reports_needed(hidden)
        whole = reports if of_all == 1 else rounded_up(math.ceil(reports * of_all))
        return max(whole - n, 0)

    numbers = found.numbers
    return Needed(
        more(found.shares),
        more(found.answered),
        more(numbers.spread),
        more(found.mean),
        more(numbers.median),
    )
