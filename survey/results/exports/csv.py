"""Results as CSV (RFC 4180) that no spreadsheet takes for formulas, as JSON and as plain lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

from survey.results.estimates.question import QuestionResult
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import Row
from survey.results.wording import row_label

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\x00", "＝", "＋", "－", "＠")


def to_csv(rows: Iterable[DataclassInstance], kind: type[DataclassInstance] = Row) -> str:
    """Rows of a kind with a header; numbers stay numbers, missing ones are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns(kind))
    writer.writerows([neutral(value) for value in astuple(row)] for row in rows)
    return text.getvalue()


@dataclass(frozen=True)
class InvitationRow:
    """One personal link, for whoever sends it."""

    number: int
    stratum: str
    link: str


def links_csv(links: Sequence[str], stratum: str) -> str:
    """Personal links of one stratum."""
    rows = (InvitationRow(number, stratum, link) for number, link in enumerate(links, 1))
    return to_csv(rows, InvitationRow)


def columns(kind: type[DataclassInstance] = Row) -> tuple[str, ...]:
    """The names of a row's fields, in order."""
    return tuple(column.name for column in fields(kind))


def neutral(value: Any) -> Any:
    """A cell that no spreadsheet obeys.

    Text that would start a formula gets an apostrophe before it (OWASP, CSV injection).
    """
    if isinstance(value, str) and value.lstrip("\ufeff\" '").startswith(FORMULA_STARTS):
        return "'" + value
    return "" if value is None else value


def to_json(rows: Iterable[DataclassInstance]) -> str:
    """The same rows for programs: a list of objects with the columns' names."""
    return json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False)


def to_lines(result: SurveyResult) -> list[str]:
    """A result as lines for a terminal: per question the same rows as page and CSV, in words."""
    survey = result.survey
    lines = [
        f"{survey.definition.title} ({survey.slug}, version {survey.version}): "
        f"{result.n:,} released reports, {result.wanted.words}"
    ]
    for question in result.questions:
        lines += ["", question.question.text, *_question_lines(question, survey.state != "open")]
    return lines


def _question_lines(question: QuestionResult, closed: bool) -> list[str]:
    """Notes, the rows that may be shown, and what to say of them below."""
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
    caveat = question.spread_part.caveat(closed=closed)
    return [f"  {line}" for line in [*lines, *([caveat] if caveat else []), *question.remarks]]


def _row_lines(question: QuestionResult, rows: Iterable[Row], closed: bool) -> list[str]:
    """Rows as words, aligned over the whole question."""
    width = max(len(row_label(row)) for row in question.rows)
    return [f"{row_label(row):<{width}}  {question.words(row, closed=closed)}" for row in rows]
