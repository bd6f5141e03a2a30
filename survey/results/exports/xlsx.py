"""Results as XLSX: estimates or a cross-tabulation, codebook and methods; no cell is a formula."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.trust.suppression import HIDDEN_MARGIN, SHOWN_MARGIN
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.table import (
    CrosstabResult,
    CrosstabRow,
    caveats,
    independence_sentence,
    null_statement,
)
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import MECHANISMS, EstimateRow
from survey.results.exports.csv import column_names, safe_cell
from survey.results.exports.methods import (
    describe_intervals,
    describe_mechanisms,
    question_methods,
    survey_facts,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

COLLECTION = (
    "The respondents’ devices randomized every answer once, using the mechanism named in the "
    "codebook. The server received and stored only the randomized reports."
)
SUPPRESSION = (
    "A result is suppressed until its expected margin of error, which depends on the mechanism and "
    f"the number of reports, is at most {HIDDEN_MARGIN:.2f} for the least favourable answers. The "
    f"column flag says caution until that margin is at most {SHOWN_MARGIN:.2f}. Neither depends on "
    "the estimates."
)
LIMITS = (
    "The results do not show whether respondents answered truthfully. Do not filter reports by a "
    "reported answer: the results would be biased."
)


@dataclass(frozen=True)
class CodebookRow:
    """One option of a question, or the range of values of a number or date question.

    is_no_answer  True for opt-outs: "prefer not to say", "does not apply"
    stated        the privacy settings that the researcher entered
    """

    question_id: str
    question_text: str
    question_type: str
    option_id: str
    option_label: str
    is_no_answer: bool
    asked_if: str
    mechanism: str
    stated: str
    epsilon: float


def codebook(questions: Iterable[PublishedQuestion]) -> list[CodebookRow]:
    """Return a row for each option of each question, in their order."""
    return [row for question in questions for row in _question_rows(question)]


def methods_sheet(result: SurveyResult) -> list[tuple[str, str]]:
    """Return how the results of an export were computed, as pairs of topic and text."""
    methods = question_methods(result)
    interval = result.options.interval
    default = " (the default)" if interval == DEFAULT_INTERVAL else ""
    return [
        *survey_facts(result.survey, result.n),
        ("Release", f"{result.release}"),
        ("Figures", f"{result.options.description}; interval of shares: {interval}{default}"),
        ("Collection", COLLECTION),
        ("Mechanisms", describe_mechanisms(methods)),
        (
            "Estimation",
            "Shares are estimated by inverting the randomization. The column estimate is unbiased "
            "and may lie outside 0 to 1; mle is the most likely share within 0 to 1. Intervals "
            "cover both sampling and randomization. "
            f"{describe_intervals(methods, result.options)}".strip(),
        ),
        ("Suppression", SUPPRESSION),
        ("Limits", LIMITS),
    ]


def crosstab_methods_sheet(result: CrosstabResult) -> list[tuple[str, str]]:
    """Return how a cross-tabulation was computed, as pairs of topic and text."""
    test = result.test
    return [
        *survey_facts(result.survey, result.table.n),
        ("Questions", " × ".join(question.text for question in result.questions)),
        ("Figures", f"{100 * result.table.level:.4g}% intervals, per cell"),
        ("Collection", COLLECTION),
        (
            "Estimation",
            "Joint inversion of both channels (P = A⁻¹ F B⁻ᵀ). The estimates are unbiased; a cell "
            "may lie outside 0 to 1. Wilson’s score intervals cover both sampling and "
            "randomization.",
        ),
        ("Suppression", SUPPRESSION),
        *(
            []
            if test is None
            else [("Test", null_statement(result) or independence_sentence(result, test))]
        ),
        ("Limits", " ".join([*caveats(result), LIMITS])),
    ]


def _question_rows(question: PublishedQuestion) -> Iterator[CodebookRow]:
    condition = question.ask_if

    def row(option_id: str, option_label: str) -> CodebookRow:
        return CodebookRow(
            question_id=question.id,
            question_text=question.text,
            question_type=question.type,
            option_id=option_id,
            option_label=option_label,
            is_no_answer=option_id in {question.opt_out, question.not_applicable} - {""},
            asked_if=f"{condition.question}: {', '.join(condition.options)}" if condition else "",
            mechanism=MECHANISMS[question.mechanism],
            stated=", ".join(f"{name} = {value}" for name, value in question.stated.items()),
            epsilon=question.channel.epsilon,
        )

    if question.kind.is_numeric and question.grid:
        values = question.grid.values
        label = f"{len(values)} values from {values[0]:g} to {values[-1]:g} {question.grid.unit}"
        yield row("", label.strip())
    for option in question.options:
        yield row(option.id, option.label)


XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

MAX_COLUMN_WIDTH = 60
"""Characters to which a column is widened for its content."""

WORKBOOK_OPTIONS = {
    "in_memory": True,
    "strings_to_numbers": False,
    "strings_to_urls": False,
    "strings_to_formulas": False,
    "nan_inf_to_errors": False,
}


def estimates_workbook(result: SurveyResult) -> bytes:
    """Return the estimates of a survey as a workbook; missing numbers are empty cells."""
    sheets = codebook(result.survey.definition.questions), methods_sheet(result)
    return _workbook("estimates", EstimateRow, result.rows, *sheets)


def crosstab_workbook(table: CrosstabResult) -> bytes:
    """Return a cross-tabulation as a workbook, with the codebook of its two questions."""
    sheets = codebook(table.questions), crosstab_methods_sheet(table)
    return _workbook("crosstab", CrosstabRow, table.rows, *sheets)


def _workbook(
    name: str,
    row_type: type[DataclassInstance],
    rows: Iterable[DataclassInstance],
    codebook_rows: Iterable[CodebookRow],
    methods: Sequence[tuple[str, str]],
) -> bytes:
    """Return a file of three sheets: the rows, the codebook and the methods."""
    import xlsxwriter

    file = io.BytesIO()
    with xlsxwriter.Workbook(file, WORKBOOK_OPTIONS) as book:
        bold, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True})
        wrapped.set_align("top")
        _write_rows(book.add_worksheet(name), row_type, rows, bold)
        _write_rows(book.add_worksheet("codebook"), CodebookRow, codebook_rows, bold)
        sheet = book.add_worksheet("methods")
        sheet.set_column(0, 0, 24)
        sheet.set_column(1, 1, 100)
        for row, (topic, text) in enumerate(methods):
            sheet.write_string(row, 0, topic, bold)
            sheet.write_string(row, 1, safe_cell(text), wrapped)
    return file.getvalue()


def _write_rows(
    sheet: Worksheet,
    row_type: type[DataclassInstance],
    rows: Iterable[DataclassInstance],
    head: Format,
) -> None:
    names = column_names(row_type)
    cells = [[safe_cell(value) for value in astuple(row)] for row in rows]
    for column, name in enumerate(names):
        sheet.write_string(0, column, name, head)
        longest = max([len(name), *(len(str(row[column])) for row in cells)])
        sheet.set_column(column, column, min(longest + 1, MAX_COLUMN_WIDTH))
    for line, row in enumerate(cells, 1):
        for column, value in enumerate(row):
            if isinstance(value, bool):
                sheet.write_boolean(line, column, value)
            elif not isinstance(value, str):
                sheet.write_number(line, column, value)
            elif value:
                sheet.write_string(line, column, value)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, max(len(cells), 1), len(names) - 1)
