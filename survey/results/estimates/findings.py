"""Key findings: the most precise results of a survey, each in one line."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from survey.estimator.trust.suppression import decide
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import SUPPRESSED, worst_case
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

    Precision is the expected margin for the least favorable answers, as a fraction of the range.
    It depends on the design and the number of reports only: choosing by the estimates would
    exaggerate them. For the same reason a finding is about the mean, or else the first answer.
    """
    margins = {}
    for place, question in enumerate(result.survey.definition.questions):
        margin = _planned_margin(question, result.tally.n_asked[place])
        if margin is not None:
            margins[place] = margin
    # Estimate only questions with findings, because all questions of a long survey take seconds.
    by_precision = sorted(margins, key=lambda place: margins[place])
    findings = ((place, _finding(result.at(place))) for place in by_precision)
    first = islice((item for item in findings if item[1]), MAX_FINDINGS)
    return [finding for _, finding in sorted(first) if finding]


def _part(question: PublishedQuestion) -> str:
    """Return the part of a question's result that contains its finding."""
    return "mean" if question.kind.is_numeric or question.kind.is_ordered else "shares"


def _planned_margin(question: PublishedQuestion, n_asked: int) -> float | None:
    """Return the expected margin of a finding as a fraction of the range; None if suppressed."""
    part, grid = _part(question), question.grid
    case = worst_case(question, part)
    if case is None or decide(case, n_asked) == SUPPRESSED:
        return None
    margin = case.margin(n_asked)
    return margin / (grid.values[-1] - grid.values[0]) if part == "mean" and grid else margin


def _row(result: QuestionResult) -> EstimateRow | None:
    """Return the row of a question's finding if it has an estimate."""
    part, excluded = _part(result.question), opt_outs(result.question)
    if part == "mean":
        rows = list(result.parts[part].rows)
    else:
        rows = [row for place, row in enumerate(result.shares) if place not in excluded]
    return rows[0] if rows and rows[0].estimate is not None else None


def _finding(result: QuestionResult) -> Finding | None:
    row = _row(result)
    if row is None:
        return None
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
