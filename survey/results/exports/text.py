"""Results as plain text for a terminal: the rows of the page and the CSV, in words."""

from __future__ import annotations

from collections.abc import Iterable

from survey.results.estimates.result import QuestionResult, SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.wording import row_label


def terminal_lines(result: SurveyResult) -> list[str]:
    """Return a result as lines: a heading, then the rows of each question."""
    survey = result.survey
    lines = [
        f"{survey.definition.title} ({survey.slug}, version {survey.version}): "
        f"{result.n:,} released reports, {result.options.description}"
    ]
    for question in result.questions:
        lines += ["", question.question.text, *_question_lines(question, survey.state != "open")]
    return lines


def _question_lines(question: QuestionResult, closed: bool) -> list[str]:
    """Return the question's notes, the rows that are shown, and its cautions and remarks."""
    lines = list(question.notes) if question.disclosure != "hide" else []
    if question.shares_part.is_listed:
        lines += _row_lines(question, question.shares, closed)
    if question.among_answered:
        lines += ["Of those who answered:", *_row_lines(question, question.answered, closed)]
    lines += question.share_caveats(closed=closed)
    lines += _row_lines(question, question.middles, closed)
    lines += question.middle_caveats(closed=closed)
    if question.spread_part.is_listed:
        lines += [f"{question.spread_title}:", *_row_lines(question, question.spread, closed)]
    lines += question.spread_caveats(closed=closed)
    return [f"  {line}" for line in [*lines, *question.remarks]]


def _row_lines(question: QuestionResult, rows: Iterable[EstimateRow], closed: bool) -> list[str]:
    """Return rows in words, aligned over the whole question."""
    width = max(len(row_label(row)) for row in question.rows)
    return [f"{row_label(row):<{width}}  {question.describe(row, closed=closed)}" for row in rows]
