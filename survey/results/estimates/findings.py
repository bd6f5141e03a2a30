"""Key findings: the most precise results of a survey, each in one line."""

from __future__ import annotations

from typing import NamedTuple

from survey.results.display_status import SUPPRESSED, worst_cases
from survey.results.estimates.result import QuestionResult, SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.number_format import share_texts
from survey.results.question_statistics import opt_outs

MAX_FINDINGS = 5


class Finding(NamedTuple):
    """One result: `value` is the estimate in words, or its interval if that is all there is.

    answer    the answer that has this share; empty for a mean
    interval  the interval in words; empty if `value` is the interval
    """

    question_id: str
    question_text: str
    answer: str
    value: str
    interval: str


def key_findings(result: SurveyResult) -> list[Finding]:
    """Return the findings of the most precise questions, in the order of the survey.

    Precision is the expected margin for the least favourable answers, as a fraction of the range.
    It depends on the design and the number of reports only: choosing by the estimates would
    exaggerate them. For the same reason a finding is about the mean, or else the first answer.
    """
    margins = {}
    for place, question in enumerate(result.questions):
        row = _row(question)
        if row is not None:
            margins[place] = (_planned_margin(question, row), question, row)
    chosen = sorted(margins, key=lambda place: margins[place][0])[:MAX_FINDINGS]
    return [_finding(*margins[place][1:]) for place in sorted(chosen)]


def _row(result: QuestionResult) -> EstimateRow | None:
    """Return the row of a question's finding if it has an estimate that is shown."""
    kind, excluded = result.question.kind, opt_outs(result.question)
    if kind.is_numeric or kind.is_ordered:
        part, rows = "mean", list(result.parts["mean"].rows)
    else:
        part = "shares"
        rows = [row for place, row in enumerate(result.shares) if place not in excluded]
    is_shown = bool(rows) and result.parts[part].disclosure != SUPPRESSED
    return rows[0] if is_shown and rows[0].estimate is not None else None


def _planned_margin(result: QuestionResult, row: EstimateRow) -> float:
    """Return the expected margin of a finding as a fraction of the range."""
    cases, grid = worst_cases(result.question), result.question.grid
    if row.statistic == "mean" and grid is not None:
        return cases["mean"].margin(result.n_asked) / (grid.values[-1] - grid.values[0])
    return cases["shares"].margin(result.n_asked)


def _finding(result: QuestionResult, row: EstimateRow) -> Finding:
    estimate, low, high = row.estimate or 0.0, row.conf_low or 0.0, row.conf_high or 0.0
    if row.statistic == "share":
        answer, (value, interval) = row.option_label, share_texts(estimate, low, high)
    else:
        formatter, answer = result.number_format(row), ""
        value = formatter.text(estimate)
        interval = f"{formatter.number(low)} to {formatter.number(high)}"
    if not value:
        value, interval = interval, ""
    question = result.question
    return Finding(question.id, question.text, answer, value, interval)
