"""Rows of a cross-tabulation, one per cell, and the sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from survey.estimator import Crosstab, Disclosure, Independence, Phi, reports_needed
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

SHADES = 8
"""Shades of a cell on a page, from an empty cell to the largest share of the table."""


@dataclass(frozen=True)
class CrosstabRow:
    """One cell; the fields are the columns of the CSV. Suppressed cells have no numbers."""

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
class CrosstabResult:
    """The table of two questions, Pearson's test and phi; all cells are shown or none."""

    survey: PublishedSurvey
    questions: tuple[PublishedQuestion, PublishedQuestion]
    table: Crosstab
    disclosure: Disclosure
    test: Independence | None
    phi: Phi | None = None

    @property
    def is_suppressed(self) -> bool:
        """Whether the table is suppressed."""
        return self.disclosure == SUPPRESSED

    @property
    def missing(self) -> int:
        """About how many more responses the table needs; 0 if no number suffices."""
        asked = ask_probability(self.survey, [question.id for question in self.questions])
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
            )
            for i, first in enumerate(truth_labels(first_question))
            for j, second in enumerate(truth_labels(second_question))
        ]


def shades(result: CrosstabResult) -> list[int | None]:
    """Return the shade of each cell, 0 to `SHADES`; None for suppressed cells."""
    estimates = [row.estimate for row in result.rows]
    largest = max((estimate or 0.0 for estimate in estimates), default=0.0) or 1.0
    return [
        None if estimate is None else round(SHADES * max(estimate, 0.0) / largest)
        for estimate in estimates
    ]


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
