"""Rows of a cross-tabulation, one per cell, and the sentences about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from survey.estimator import (
    Conditional,
    Crosstab,
    Disclosure,
    Independence,
    Phi,
    Proportions,
    reports_needed,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import FLAGS, SUPPRESSED, count_missing, numbers_at
from survey.results.joint_counts import ask_probability, joint_channel
from survey.results.number_format import (
    covers_everything,
    describe_share,
    format_p_value,
    not_enough,
    percent,
    percent_range,
)
from survey.results.question_statistics import answer_columns, truth_labels
from survey.results.significance import significance_limit
from survey.store import PublishedSurvey

PercentName = Literal["column", "row"]
"""Column percentages are shares among people with the same answer to the second question, row
percentages among people with the same answer to the first."""

GIVEN: Mapping[PercentName, int] = {"column": 1, "row": 0}
"""The place of the question whose answers define the groups; the default comes first."""

SHADES = 8
"""Shades of a cell on a page, from an empty cell to the largest share of the table."""


@dataclass(frozen=True)
class CrosstabRow:
    """One cell; the fields are the columns of the CSV. Suppressed cells have no numbers.

    column_share  share of the first answer among people with the second one, and its interval
    row_share     share of the second answer among people with the first one, and its interval
    """

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
    column_share: float | None
    column_conf_low: float | None
    column_conf_high: float | None
    row_share: float | None
    row_conf_low: float | None
    row_conf_high: float | None


class GroupShares(NamedTuple):
    """Column or row percentages of a table, shown or suppressed together.

    missing  about how many more responses they need; 0 if none, or if no number suffices
    shares   P(answer | answer that defines the group); groups that may be empty are left out
    totals   shares of all respondents: of the answers, and of those that define the groups
    """

    disclosure: Disclosure
    missing: int = 0
    shares: Conditional | None = None
    totals: tuple[Proportions, Proportions] | None = None

    @property
    def is_suppressed(self) -> bool:
        """Whether the shares are suppressed."""
        return self.disclosure == SUPPRESSED

    def cell(self, answer: int, group: int) -> tuple[float, float, float] | None:
        """Return a share with its interval; None without one."""
        if self.shares is None or group not in self.shares.options:
            return None
        at = answer, int(self.shares.options.searchsorted(group))
        shares = self.shares
        return (
            float(shares.estimate[at]),
            float(shares.conf_low[at]),
            float(shares.conf_high[at]),
        )


@dataclass(frozen=True)
class CrosstabResult:
    """The table of two questions, Pearson's test and phi; all cells are suppressed or none.

    `group_shares` is empty if the table is suppressed or too large for row and column percentages.
    """

    survey: PublishedSurvey
    questions: tuple[PublishedQuestion, PublishedQuestion]
    table: Crosstab
    disclosure: Disclosure
    test: Independence | None
    phi: Phi | None = None
    group_shares: Mapping[PercentName, GroupShares] = field(default_factory=dict)

    @property
    def is_suppressed(self) -> bool:
        """Whether the table is suppressed."""
        return self.disclosure == SUPPRESSED

    @property
    def missing(self) -> int:
        """About how many more responses the table needs; 0 if no number suffices."""
        asked = ask_probability_of(self.survey, self.questions)
        return count_missing(reports_needed(self.table), self.table.n, asked)

    @property
    def rows(self) -> list[CrosstabRow]:
        """One row per cell."""
        table, (first_question, second_question) = self.table, self.questions
        shown = None if self.is_suppressed else table
        return [
            CrosstabRow(
                survey_id=self.survey.slug,
                survey_version=self.survey.version,
                first_question_id=first_question.id,
                **answer_columns("first_option", first),
                second_question_id=second_question.id,
                **answer_columns("second_option", second),
                n_reports=table.n,
                **numbers_at(shown, ("estimate", "std_error", "conf_low", "conf_high"), (i, j)),
                conf_level=table.level,
                method=table.method,
                flag=FLAGS[self.disclosure],
                **self._percent_columns((i, j)),
            )
            for i, first in enumerate(truth_labels(first_question))
            for j, second in enumerate(truth_labels(second_question))
        ]

    def _percent_columns(self, place: tuple[int, int]) -> dict[str, Any]:
        """Return the columns of a cell's shares among the people with one of its two answers."""
        columns: dict[str, float | None] = {}
        for name, given in GIVEN.items():
            group_shares = self.group_shares.get(name)
            cell = group_shares.cell(place[1 - given], place[given]) if group_shares else None
            names = (f"{name}_share", f"{name}_conf_low", f"{name}_conf_high")
            columns |= zip(names, cell or (None, None, None), strict=True)
        return columns


def ask_probability_of(survey: PublishedSurvey, questions: Sequence[PublishedQuestion]) -> float:
    """Return the probability that a respondent is asked all these questions."""
    return ask_probability(survey, [question.id for question in questions])


class PercentCell(NamedTuple):
    """A cell of a table of percentages; its numbers are None in a group that may be empty.

    `shade` is None in the totals, because only the shares of groups are shaded.
    """

    estimate: float | None
    conf_low: float | None
    conf_high: float | None
    shade: int | None = None


class PercentTable(NamedTuple):
    """Row or column percentages; the shares of all respondents come first.

    Each line is a label with its cells, one per heading.
    """

    headings: tuple[str, ...]
    lines: tuple[tuple[str, tuple[PercentCell | None, ...]], ...]


ALL, BASE = "All respondents", "Share of all respondents"


def percent_table(result: CrosstabResult, name: PercentName) -> PercentTable | None:
    """Return the page's table of row or column percentages; None if it is suppressed.

    Rows are answers to the first question and columns answers to the second, as in the table of
    joint shares.
    """
    group_shares = result.group_shares.get(name)
    if group_shares is None or group_shares.totals is None:
        return None
    labels = [[label for _, label in truth_labels(question)] for question in result.questions]
    given = GIVEN[name]
    totals, bases = (_total_cells(total) for total in group_shares.totals)
    answers, groups = labels[1 - given], labels[given]
    cells = [
        [group_shares.cell(answer, group) for answer in range(len(answers))]
        for group in range(len(groups))
    ]
    largest = max((cell[0] for row in cells for cell in row if cell), default=0.0)
    # One list per group: its shares, and its own share of all respondents.
    by_group: list[list[PercentCell | None]] = [[*totals, None]]
    for row, base in zip(cells, bases, strict=True):
        by_group.append([*(_percent_cell(cell, largest) for cell in row), base])
    group_labels, answer_labels = (ALL, *groups), (*answers, BASE)
    if name == "row":
        lines = zip(group_labels, map(tuple, by_group), strict=True)
        return PercentTable(answer_labels, tuple(lines))
    lines = zip(answer_labels, zip(*by_group, strict=True), strict=True)
    return PercentTable(group_labels, tuple(lines))


def _total_cells(total: Proportions) -> list[PercentCell]:
    return [
        PercentCell(float(estimate), float(low), float(high))
        for estimate, low, high in zip(total.estimate, total.conf_low, total.conf_high, strict=True)
    ]


def _percent_cell(cell: tuple[float, float, float] | None, largest: float) -> PercentCell:
    return (
        PercentCell(None, None, None)
        if cell is None
        else PercentCell(*cell, _shade(cell[0], largest))
    )


def _shade(share: float, largest: float) -> int:
    return round(SHADES * max(share, 0.0) / largest) if largest > 0 else 0


def shades(result: CrosstabResult) -> list[int | None]:
    """Return the shade of each cell, 0 to `SHADES`; None for suppressed cells."""
    estimates = [row.estimate for row in result.rows]
    largest = max((estimate or 0.0 for estimate in estimates), default=0.0)
    return [None if estimate is None else _shade(estimate, largest) for estimate in estimates]


def page_rows(result: CrosstabResult) -> list[tuple[str, Sequence[tuple[CrosstabRow, int | None]]]]:
    """Return the lines of the page's table: the first answer, then its cells with shades."""
    cells = list(zip(result.rows, shades(result), strict=True))
    width = result.table.estimate.shape[1]
    return [
        (cells[start][0].first_option_label, cells[start : start + width])
        for start in range(0, len(cells), width)
    ]


METHOD_PHRASES = {
    "linear": "debiased by joint inversion",
    "em": "the most likely table by expectation maximization",
}


def paper_sentences(result: CrosstabResult) -> list[str]:
    """Return sentences for a paper; none while the table is suppressed."""
    if result.is_suppressed:
        return []
    largest = max(result.rows, key=lambda row: row.estimate or 0.0)
    is_limited = not covers_everything(largest.conf_low, largest.conf_high)
    sentences = [_share_sentence(result, largest)] if is_limited else []
    if result.test is not None and _is_related(result.test, result.table.level):
        sentences.append(independence_sentence(result, result.test))
    if result.phi is not None and not result.phi.conf_low <= 0 <= result.phi.conf_high:
        sentences.append(_phi_sentence(result, result.phi))
    return sentences


def null_statement(result: CrosstabResult) -> str:
    """State that no relation was shown; empty if one was, or if there is no test."""
    test = result.test
    if test is None or _is_related(test, result.table.level):
        return ""
    return (
        "These responses do not show that the answers to the two questions are related "
        f"(χ²({test.df}) = {test.statistic:.1f}, {format_p_value(test.p_value)}). This is no "
        "evidence that they are unrelated."
    )


def _is_related(test: Independence, level: float) -> bool:
    return test.p_value < significance_limit(level)


def caveats(result: CrosstabResult) -> list[str]:
    """Return the caveats that belong beside the table."""
    method = " (joint inversion)" if result.table.method == "linear" else ""
    texts = [
        f"Each cell is estimated from both randomized answers of all reports at once{method}. "
        "Counting only the reports with a certain answer would be biased."
    ]
    if joint_channel(result.questions):
        texts.append(
            "The two answers were randomized jointly. The table is therefore more precise than "
            "one of answers randomized separately with the same privacy loss."
        )
    if result.table.method == "em":
        texts.append(
            "The most likely table has no negative cells and is closer to the truth overall, but "
            "small cells are biased. Use unbiased estimates to add up, compare or publish."
        )
        if not result.table.converged:
            texts.append("The search for the most likely table did not converge: do not use it.")
    if result.disclosure == "caution":
        texts.append("The intervals are wide: treat the table as a first impression.")
    if result.test is not None and result.test.small_expected:
        texts.append("Some cells have few expected reports, so the test is unreliable.")
    if result.test is None and not result.is_suppressed:
        texts.append(
            "There is no test of independence: each report names several options, or all reports "
            "are the same."
        )
    return texts


def terminal_lines(result: CrosstabResult) -> list[str]:
    """Return the table for a terminal: the estimate of each cell in words, and the test."""
    first, second = (question.text for question in result.questions)
    lines = [f"{first} × {second}: {result.table.n:,} released reports include both questions"]
    if result.is_suppressed:
        return [*lines, f"  {not_enough(result.survey)}"]
    labels = [f"{row.first_option_label}, {row.second_option_label}" for row in result.rows]
    width = max(map(len, labels))
    for label, row in zip(labels, result.rows, strict=True):
        words = describe_share(row.estimate, row.conf_low, row.conf_high)
        lines.append(f"  {label:<{width}}  {words}")
    if result.disclosure == "caution":
        lines.append("  low precision: the intervals are wide")
    if result.test is not None:
        doubt = ", unreliable: some cells have few reports" if result.test.small_expected else ""
        lines.append(
            f"  test of independence: chi-square {result.test.statistic:.1f} with "
            f"{result.test.df} degrees of freedom, p = {result.test.p_value:.3f}{doubt}"
        )
    return lines


def independence_sentence(result: CrosstabResult, test: Independence) -> str:
    """Return the relation that the test of independence shows as a sentence for a paper."""
    first, second = (question.text for question in result.questions)
    return (
        f"The answers to “{first}” and “{second}” were related (Pearson’s test of the randomized "
        f"reports, χ²({test.df}) = {test.statistic:.1f}, {format_p_value(test.p_value)}; "
        f"likelihood ratio G² = {test.g_squared:.1f}, {format_p_value(test.g_p_value)})."
    )


def _phi_sentence(result: CrosstabResult, phi: Phi) -> str:
    """Return the correlation of two questions with two answers each as a sentence for a paper."""
    first, second = (
        f"“{truth_labels(question)[0][1]}” to “{question.text}”" for question in result.questions
    )
    estimate, low, high = (
        f"{number:.2f}".replace("-", "−") for number in (phi.estimate, phi.conf_low, phi.conf_high)
    )
    return (
        f"The estimated correlation between {first} and {second} was φ = {estimate} "
        f"({100 * phi.level:g}% confidence interval {low} to {high}; profile likelihood through "
        "the randomization)."
    )


def _share_sentence(result: CrosstabResult, row: CrosstabRow) -> str:
    first, second = (question.text for question in result.questions)
    return (
        f"An estimated {percent(row.estimate)} answered “{row.first_option_label}” to “{first}” "
        f"and “{row.second_option_label}” to “{second}” ({100 * row.conf_level:g}% confidence "
        f"interval {percent_range(row.conf_low, row.conf_high)}; {row.n_reports:,} reports, each "
        f"randomized on the respondent’s device, {METHOD_PHRASES[result.table.method]})."
    )
