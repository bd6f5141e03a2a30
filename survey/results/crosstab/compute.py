"""Computation of a cross-tabulation from released reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, cast

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator import (
    Crosstab,
    Phi,
    Proportions,
    conditional,
    crosstab,
    disclosure,
    independence,
    phi,
)
from survey.estimator.core.arguments import CodeChannel
from survey.estimator.tables.conditional import options_with_base
from survey.estimator.tables.crosstab import PairDesign
from survey.estimator.trust.suppression import HIDDEN_MARGIN, decide
from survey.estimator.trust.worst_case import conditional_worst_case
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Integers
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.table import (
    GIVEN,
    CrosstabResult,
    GroupShares,
    PercentName,
    ask_probability_of,
)
from survey.results.display_status import SUPPRESSED, count_missing
from survey.results.joint_counts import find_variable, joint_channel, joint_variable_counts
from survey.results.number_format import not_enough
from survey.results.question_statistics import question_index, truth_labels
from survey.results.request import IntervalOptions, Request
from survey.store import PublishedSurvey, ReleasedReports

Method = Literal["linear", "em"]
METHODS: Mapping[Method, str] = {
    "linear": "unbiased (joint inversion)",
    "em": "most likely table (EM)",
}
"""The estimation methods of a table, with their names on pages."""


@dataclass(frozen=True)
class CrosstabRequest(Request):
    """Two questions, or options of multiple-choice questions, and an estimation method.

    `percent` names the shares that the page shows first: of each column or of each row.
    """

    required: ClassVar = ("first", "second")
    file_stem_format: ClassVar = "{first}-{second}"

    first: str = ""
    second: str = ""
    method: Method = "linear"
    percent: PercentName = "column"

    @classmethod
    def parse(cls, query: Any) -> Self:
        """Parse a link's query; DesignError for an unknown method or percentage."""
        chosen = {}
        for name, allowed in (("method", METHODS), ("percent", GIVEN)):
            chosen[name] = query.get(name, "") or next(iter(allowed))
            if chosen[name] not in allowed:
                raise DesignError(
                    f"{name} = {chosen[name][:40]!r} must be one of {', '.join(allowed)}"
                )
        return cls(
            query.get("first", ""),
            query.get("second", ""),
            cast(Method, chosen["method"]),
            cast(PercentName, chosen["percent"]),
        )


MAX_CELLS = 10_000
"""Largest number of cells of a table."""

MAX_PERCENT_CELLS = 1_000
"""Maximum number of cells for row and column percentages, which take 0.5 s each."""


def compute_crosstab(
    store: ReleasedReports,
    survey: PublishedSurvey,
    request: CrosstabRequest,
    options: IntervalOptions,
) -> CrosstabResult:
    """Cross-tabulate two variables over the released reports of a store.

    Raises NotFoundError for an unknown question, CountsError for a question with itself or if no
    report includes both, ChannelError for questions whose reports cannot be cross-tabulated.
    """
    first, second = (find_variable(survey, name) for name in (request.first, request.second))
    _check_different(first.place, second.place)
    questions = first.question, second.question

    def count() -> Integers:
        return joint_variable_counts(store, survey, first, second)

    return _compute(count, survey, questions, request, options)


def crosstab_from_counts(
    count: Callable[[int, int], Integers],
    survey: PublishedSurvey,
    request: CrosstabRequest,
    options: IntervalOptions,
) -> CrosstabResult:
    """Cross-tabulate two questions with joint counts from `count(first place, second place)`."""
    places = [question_index(survey, name) for name in (request.first, request.second)]
    _check_different(*places)
    first, second = (survey.definition.questions[place] for place in places)
    return _compute(lambda: count(*places), survey, (first, second), request, options)


def _check_different(first: int, second: int) -> None:
    if first == second:
        raise CountsError("Choose two different questions")


def _compute(
    count: Callable[[], Integers],
    survey: PublishedSurvey,
    questions: tuple[PublishedQuestion, PublishedQuestion],
    request: CrosstabRequest,
    options: IntervalOptions,
) -> CrosstabResult:
    channels = crosstab_channels(questions)
    counts = count()
    if not counts.any():
        ids = " and ".join(question.id for question in questions)
        raise CountsError(f"{not_enough(survey)}: no released report includes both {ids}")
    table = crosstab(counts, channels, level=options.level, method=request.method)
    decision = disclosure(table)
    # Pearson's test needs a table in which each report counts once and both questions vary.
    counts_once = all(getattr(channel, "d", 1) == 1 for channel in channels)
    varies = all((counts.sum(axis=axis) > 0).sum() > 1 for axis in (0, 1))
    is_tested = decision != SUPPRESSED and varies and counts_once
    test = independence(counts, joint_channel(questions)) if is_tested else None
    correlation = _phi(table, questions) if is_tested else None
    group_shares: dict[PercentName, GroupShares] = {}
    if decision != SUPPRESSED and table.estimate.size <= MAX_PERCENT_CELLS:
        asked = ask_probability_of(survey, questions)
        for name, given in GIVEN.items():
            group_shares[name] = _group_shares(table, given, asked)
    return CrosstabResult(survey, questions, table, decision, test, correlation, group_shares)


def _group_shares(table: Crosstab, given: int, asked: float) -> GroupShares:
    """Return the shares among people with each answer to question `given`, if precise enough."""
    of = 1 - given
    channels, _ = table.marginal_counts((of, given))
    sizes = table.estimate.shape[of], table.estimate.shape[given]
    try:
        case = conditional_worst_case(PairDesign(tuple(channels), sizes))
    except ChannelError:
        return GroupShares(SUPPRESSED)
    decision = decide(case, table.n)
    if decision == SUPPRESSED:
        missing = count_missing(case.required_n(HIDDEN_MARGIN), table.n, asked)
        return GroupShares(decision, missing)
    options = options_with_base(table, given)
    shares = conditional(table, given, options=options) if options else None
    # The margin of a single question consists of shares.
    totals = cast(Proportions, table.margin(of)), cast(Proportions, table.margin(given))
    return GroupShares(decision, 0, shares, totals)


def _phi(table: Crosstab, questions: Sequence[PublishedQuestion]) -> Phi | None:
    """Return the correlation of two questions with two answers each; None if it has no interval."""
    if any(len(truth_labels(question)) != 2 for question in questions):
        return None
    try:
        return phi(table)
    except ChannelError:
        return None


def crosstab_channels(questions: Sequence[PublishedQuestion]) -> list[CodeChannel]:
    """Return the channels of two questions that can be cross-tabulated; one if they share it.

    Raises ChannelError for questions reported option by option, CountsError for large tables.
    """
    channels: list[CodeChannel] = []
    for question in questions:
        if isinstance(question.channel, TickChannel):
            raise ChannelError(
                f"{question.id} is reported option by option: cross-tabulate one of its options"
            )
        channels.append(question.channel)
    cells = math.prod(len(truth_labels(question)) for question in questions)
    if cells > MAX_CELLS:
        raise CountsError(f"a table of {cells:,} cells is larger than {MAX_CELLS:,}")
    joint = joint_channel(questions)
    return [joint] if joint else channels


def pair_design(first: PublishedQuestion, second: PublishedQuestion) -> PairDesign:
    """Return the channels of two questions and their numbers of answers; errors as above."""
    sizes = len(truth_labels(first)), len(truth_labels(second))
    return PairDesign(tuple(crosstab_channels([first, second])), sizes)
