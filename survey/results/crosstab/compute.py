"""Two questions of a survey crossed: joint shares of answers, and whether they are related."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal

from survey.errors import ChannelError, CountsError, NotFoundError
from survey.estimator import Crosstab, Disclosure, Independence, crosstab, disclosure, independence
from survey.estimator.tables.axes import Crossed
from survey.mechanism import BitVector
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.counts import Integers, item_counts
from survey.results.estimates.table import FLAGS
from survey.results.options import Wanted
from survey.results.variables import item_of
from survey.results.wording import amounts, not_enough, percent
from survey.store import PublishedSurvey, Store

Answer = tuple[str, str]
"""Id and label of an answer."""

Method = Literal["linear", "em"]
METHODS: Mapping[Method, str] = {
    "linear": "unbiased (joint inversion)",
    "em": "most likely table (EM)",
}
"""How the cells of a table are found, in words."""

MOST_ROWS = 10_000
"""Cells of a table up to which its rows are made: nobody reads more."""


@dataclass(frozen=True)
class CrossedRow:
    """One cell; the fields are the columns of the CSV. Without numbers while it is hidden."""

    survey_id: str
    survey_version: int
    first_question_id: str
    first_option_id: str
    first_option_label: str
    second_question_id: str
    second_option_id: str
    second_option_label: str
    n_reports: int
    estimate: float | None
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    conf_level: float
    method: str
    flag: str


@dataclass(frozen=True)
class CrossedQuestions:
    """The table of two questions, what of it may be shown, and Pearson's test where it holds."""

    survey: PublishedSurvey
    questions: tuple[PublishedQuestion, PublishedQuestion]
    table: Crosstab
    shown: Disclosure
    test: Independence | None

    @property
    def rows(self) -> list[CrossedRow]:
        """A row for each cell; a table is shown or hidden whole, never cell by cell."""
        first, second = (answers(question) for question in self.questions)
        return [
            self._row(one, other, (row, column))
            for (row, one), (column, other) in product(enumerate(first), enumerate(second))
        ]

    def _row(self, first: Answer, second: Answer, cell: tuple[int, int]) -> CrossedRow:
        table = self.table
        hidden = self.shown == "hide"
        estimate, std_error, low, high = (
            None if hidden else float(array[cell])
            for array in (table.estimate, table.std_error, table.conf_low, table.conf_high)
        )
        return CrossedRow(
            survey_id=self.survey.slug,
            survey_version=self.survey.version,
            first_question_id=self.questions[0].id,
            first_option_id=first[0],
            first_option_label=first[1],
            second_question_id=self.questions[1].id,
            second_option_id=second[0],
            second_option_label=second[1],
            n_reports=table.n,
            estimate=estimate,
            std_error=std_error,
            conf_low=low,
            conf_high=high,
            conf_level=table.level,
            method=table.method,
            flag=FLAGS[self.shown],
        )


def crossed(
    store: Store,
    survey: PublishedSurvey,
    names: Sequence[str],
    wanted: Wanted,
    method: Method = "linear",
) -> CrossedQuestions:
    """Cross two questions, named by their ids, over the released reports of a store.

    `method` is one of `METHODS`. Raises NotFoundError for an unknown question, CountsError for the
    same one twice or where nobody was asked both, ChannelError for questions whose reports cannot
    be crossed so.
    """
    first, second = (item_of(survey, name) for name in names)
    if first.place == second.place:
        raise CountsError(f"{names[0]} with itself: a cross-tab is of two questions")
    counted = partial(item_counts, store, survey, first, second)
    return _crossed(counted, survey, (first.question, second.question), wanted, method)


def crossed_by(
    counted: Callable[[int, int], Integers],
    survey: PublishedSurvey,
    names: Sequence[str],
    wanted: Wanted,
    method: Method = "linear",
) -> CrossedQuestions:
    """The same from whatever counts the reports to two questions, given by their places."""
    first, second = (place_of(survey, name) for name in names)
    if first == second:
        raise CountsError(f"{names[0]} with itself: a cross-tab is of two questions")
    questions = survey.definition.questions[first], survey.definition.questions[second]
    return _crossed(partial(counted, first, second), survey, questions, wanted, method)


def _crossed(
    counted: Callable[[], Integers],
    survey: PublishedSurvey,
    questions: tuple[PublishedQuestion, PublishedQuestion],
    wanted: Wanted,
    method: Method,
) -> CrossedQuestions:
    channels = crossable(questions)
    counts = counted()
    if not counts.any():
        names = " and ".join(question.id for question in questions)
        raise CountsError(f"{not_enough(survey)}: no released report holds both {names}")
    table = crosstab(counts, channels, level=wanted.level, method=method)
    # What may be shown is decided in the usual way: asking for another shows no more.
    usual = crosstab(counts, channels, level=Wanted().level)
    shown = disclosure(usual)
    # Reports of sets count once for each pair of options: no table for a chi-square. Nor is one
    # where all reports to a question are the same.
    several = any(getattr(channel, "d", 1) > 1 for channel in channels)
    varied = all((counts.sum(axis=axis) > 0).sum() > 1 for axis in (0, 1))
    tested = shown != "hide" and varied and not several
    return CrossedQuestions(
        survey, questions, table, shown, independence(counts) if tested else None
    )


def answers(question: PublishedQuestion) -> list[Answer]:
    """What each truth of the question's channel is called, in order."""
    options = [(option.id, option.label) for option in question.options]
    if question.by_patterns:
        return [
            (
                " ".join(options[place][0] for place in pattern),
                " and ".join(options[place][1] for place in pattern) or "nothing ticked",
            )
            for pattern in question.patterns
        ]
    if question.type in ("number", "date") and question.grid:
        written = amounts(question, "median")
        return [*((f"{value:g}", written.text(value)) for value in question.grid.values), *options]
    return options


def to_lines(found: CrossedQuestions) -> list[str]:
    """The table for a terminal: estimate and interval of each cell in words, and the test."""
    of = [question.text for question in found.questions]
    lines = [f"{of[0]} × {of[1]}: {found.table.n:,} released reports that hold both"]
    if found.shown == "hide":
        return [*lines, f"  {not_enough(found.survey)}"]
    rows = found.rows
    width = max(len(f"{row.first_option_label}, {row.second_option_label}") for row in rows)
    for row in rows:
        low, high = percent(row.conf_low)[:-1], percent(row.conf_high)
        label = f"{row.first_option_label}, {row.second_option_label}"
        words = f"estimated {percent(row.estimate)}, between {low} and {high}"
        lines.append(f"  {label:<{width}}  {words}")
    if found.shown == "caution":
        lines.append("  rough: intervals are wide")
    if found.test is not None:
        doubt = ", doubtful: few reports in some cells" if found.test.small_expected else ""
        lines.append(
            f"  are the answers related? chi-square {found.test.statistic:.1f} on "
            f"{found.test.df} degrees of freedom, p = {found.test.p_value:.3f}{doubt}"
        )
    return lines


def place_of(survey: PublishedSurvey, name: str) -> int:
    """The place of the question of this id; NotFoundError names those there are."""
    questions = survey.definition.questions
    for place, question in enumerate(questions):
        if question.id == name:
            return place
    there = ", ".join(question.id for question in questions)
    raise NotFoundError(f'{survey.slug} has no question "{name}"; there are {there}')


def crossable(questions: Sequence[PublishedQuestion]) -> list[Crossed]:
    """The channels of questions whose table can be made; refuses others by name."""
    found: list[Crossed] = []
    for question in questions:
        if isinstance(question.channel, BitVector):
            raise ChannelError(
                f"{question.id} is reported option by option, each with an error of its own: "
                "such reports cannot be crossed"
            )
        found.append(question.channel)
    cells = math.prod(len(answers(question)) for question in questions)
    if cells > MOST_ROWS:
        raise CountsError(f"a table of {cells:,} cells is above {MOST_ROWS:,}")
    return found
