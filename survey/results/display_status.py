"""Display status of a result: shown, shown with caution, or suppressed until more responses.

Decisions depend on numbers of reports and on the question, never on the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from survey.errors import ChannelError
from survey.estimator import Disclosure, rounded_up
from survey.estimator.core.arguments import LARGEST_N
from survey.estimator.trust.suppression import HIDDEN_MARGIN, decide
from survey.estimator.trust.worst_case import (
    WorstCase,
    answered_worst_case,
    channel_worst_case,
    histogram_worst_case,
    mean_worst_case,
    no_answers_worst_case,
    quantile_worst_case,
)
from survey.mechanism import WeightTable
from survey.mechanism.ranking import rank_values
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.compute import MAX_CHANNEL_SIZE, histogram_cells
from survey.results.estimates.histogram import edges
from survey.results.question_statistics import (
    channel_size,
    opt_outs,
    single_code_channel,
    substantive_options,
    truth_values,
)

SUPPRESSED: Disclosure = "hide"

FLAGS: Mapping[Disclosure, str] = {"show": "", "caution": "caution", "hide": "suppressed"}
"""The flag of a row in CSV and API for each decision."""

PARTS = ("shares", "answered", "spread", "mean", "median")
"""Parts of a question's result in the order of the CSV: shares among all, shares of those who
answered, histogram, mean and median. The rows of a part are shown or suppressed together."""

WITH_SHARES = ("answered", "median")
"""Parts that are shown only with the shares among all, if the design allows these: from the others
the shares could be computed, and a median tells where the shares add up to a half."""

NO_BASE = "hardly anybody answered"
"""The method of an interval that contains all possible values."""


def numbers_at(estimate: object | None, names: Iterable[str], place: Any) -> dict[str, Any]:
    """Return the numbers of an estimate at a place, by column; None for a suppressed estimate."""
    return {
        name: None if estimate is None else float(getattr(estimate, name)[place]) for name in names
    }


def decide_disclosures(question: PublishedQuestion, n_asked: int) -> dict[str, Disclosure]:
    """Decide for each part of a question from the number of reports that include the question.

    A part that the design does not allow is suppressed.
    """
    cases = worst_cases(question)
    decisions = {
        part: decide(cases[part], n_asked) if part in cases else SUPPRESSED for part in PARTS
    }
    if "shares" in cases and decisions["shares"] == SUPPRESSED:
        decisions |= dict.fromkeys(WITH_SHARES, SUPPRESSED)
    return decisions


def count_missing_responses(
    question: PublishedQuestion, n_asked: int, draw_factor: float
) -> dict[str, int]:
    """Return about how many more responses each part needs; 0 if no number suffices.

    A part is shown from a fixed number N of reports with the question. If each respondent is asked
    one in `draw_factor` questions, the expected number of further respondents is draw_factor
    (N - n_asked). It never grows while reports arrive, because N is fixed and n_asked never falls.
    """
    needed = {part: case.required_n(HIDDEN_MARGIN) for part, case in worst_cases(question).items()}
    for part in needed.keys() & WITH_SHARES:
        needed[part] = max(needed[part], needed.get("shares", 0))
    return dict.fromkeys(PARTS, 0) | {
        part: count_missing(n, n_asked, 1 / draw_factor) for part, n in needed.items()
    }


def count_missing(needed: float, n: float, asked: float = 1.0) -> int:
    """Return about how many more responses raise n to a needed number; 0 if no number suffices.

    `asked` is the probability that a respondent is asked, so that a response adds to n.

    >>> count_missing(1_000, 816), count_missing(1_000, 816, 1 / 2)
    (190, 370)
    """
    if needed > LARGEST_N or not asked:
        return 0
    return rounded_up(math.ceil(round(max(needed - n, 0) / asked, 6)))


def worst_cases(question: PublishedQuestion) -> Mapping[str, WorstCase]:
    """Return the worst case of each part that the question's design allows."""
    builders = _builders(question)
    return {part: case for part in builders if (case := _allowed(builders[part])) is not None}


def worst_case(question: PublishedQuestion, part: str) -> WorstCase | None:
    """Return the worst case of one part; None if the question's design does not allow it."""
    builder = _builders(question).get(part)
    return _allowed(builder) if builder else None


def _builders(question: PublishedQuestion) -> dict[str, Callable[[], WorstCase]]:
    channel, values = single_code_channel(question), truth_values(question)
    cases: dict[str, Callable[[], WorstCase]] = {}
    if question.kind.is_ranking and isinstance(question.channel, WeightTable):
        table, ranks = question.channel, rank_values(question.channel, 0)
        cases["mean"] = lambda: mean_worst_case(table, ranks)
    if question.options:
        cases["shares"] = lambda: _shares_worst_case(question)
    if channel is not None and values:
        cases["mean"] = lambda: mean_worst_case(channel, values)
        if channel_size(channel) <= MAX_CHANNEL_SIZE:
            cases["median"] = lambda: quantile_worst_case(channel, values)
            bins = histogram_cells(question)
            if question.grid is not None and bins:
                bounds = tuple(edges(question.grid, bins))
                cases["spread"] = lambda: histogram_worst_case(channel, values, bounds)
    if substantive_options(question):
        patterns = tuple(map(tuple, question.patterns)) if question.by_patterns else None
        cases["answered"] = lambda: answered_worst_case(
            question.kind.share_channel(question), opt_outs(question), patterns
        )
    return cases


def _allowed(build: Callable[[], WorstCase]) -> WorstCase | None:
    """Return a worst case; None if the design does not allow such an estimate."""
    try:
        return build()
    except ChannelError:
        return None


def _shares_worst_case(question: PublishedQuestion) -> WorstCase:
    if isinstance(question.channel, WeightTable) and question.kind.is_numeric:
        return no_answers_worst_case(question.channel)
    patterns = tuple(map(tuple, question.patterns)) if question.by_patterns else None
    return channel_worst_case(question.kind.share_channel(question), patterns)
