"""Tables that notebooks show: the rows of a results page, and results of several groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from survey.errors import NotFoundError
from survey.estimator import Disclosure, Result
from survey.estimator.core.notebook_forms import (
    NUMBERS,
    HtmlTable,
    arrow_table,
    data_frame,
    interval_chart,
)
from survey.results.crosstab.table import CrosstabRow
from survey.results.estimates.table import EstimateRow, describe_estimate, row_label
from survey.results.number_format import describe_share

if TYPE_CHECKING:
    import altair
    import pandas as pd
    import pyarrow as pa

    from survey.api.openapi import PearsonTest

R = TypeVar("R", bound=Result)


@dataclass(frozen=True, repr=False)
class ResultTable:
    """The rows of a results page: the same columns and numbers as its CSV.

    A row whose `flag` is "suppressed" or "not_estimable" has no numbers.
    """

    slug: str
    version: int
    n: int
    rows: tuple[EstimateRow, ...]

    @property
    def description(self) -> str:
        """The survey, its version, and the number of released reports."""
        return f"{self.slug}, version {self.version}: {self.n:,} released reports"

    def question(self, question_id: str) -> ResultTable:
        """Return the rows of one question; NotFoundError lists the questions that exist."""
        rows = tuple(row for row in self.rows if row.question_id == question_id)
        if not rows:
            ids = ", ".join(dict.fromkeys(row.question_id for row in self.rows))
            raise NotFoundError(f'{self.slug} has no question "{question_id}": choose one of {ids}')
        return ResultTable(self.slug, self.version, self.n, rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with one row per estimate, indexed by question, option, statistic."""
        head = {"slug": self.slug, "version": self.version, "n": self.n}
        index = ("question_id", "option_id", "statistic", "base")
        return data_frame([asdict(row) for row in self.rows], index, head)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow Table with the columns of the CSV."""
        head = {"slug": self.slug, "version": self.version, "n": self.n}
        return arrow_table([asdict(row) for row in self.rows], head)

    def plot(self, question_id: str) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair chart of a question's shares; suppressed ones are left out.

        Raises NotFoundError for an unknown question, or if none of its shares can be shown.
        """
        rows = self.question(question_id).rows
        marks = [
            {"option": row_label(row), **{name: getattr(row, name) for name in NUMBERS}}
            for row in rows
            if (row.statistic, row.base) == ("share", rows[0].base) and row.estimate is not None
        ]
        if not marks:
            raise NotFoundError(f"{self.slug} has no shares of {question_id} that can be shown")
        title = f"{rows[0].question_text} ({100 * rows[0].conf_level:.4g}% intervals)"
        return interval_chart(marks, ("option",), title)

    def __repr__(self) -> str:
        lines = [f"  {row.question_id}  {row_label(row)}: {_estimate(row)}" for row in self.rows]
        return "\n".join([self.description, *lines])

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        rows = [[row.question_text, row_label(row), _estimate(row)] for row in self.rows]
        return HtmlTable(self.description, ("question", "answer", "estimate"), rows, 2).text()


@dataclass(frozen=True, repr=False)
class CrosstabTable:
    """A cross-tabulation from a server: the same columns and numbers as its CSV, a row per cell.

    n      number of released reports with both questions
    shown  show, caution or hide; if hide, no cell has numbers
    test   of independence; None for suppressed tables, reports of sets, and equal reports
    """

    slug: str
    version: int
    n: int
    shown: Disclosure
    test: PearsonTest | None
    rows: tuple[CrosstabRow, ...]

    @property
    def description(self) -> str:
        """The survey, its version, both questions, and the number of reports with both."""
        questions = " × ".join(self._questions)
        return f"{self.slug}, version {self.version}: {questions}, {self.n:,} released reports"

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame with one row per cell, indexed by the labels of both answers."""
        index = ("first_option_label", "second_option_label")
        return data_frame([asdict(row) for row in self.rows], index, self._head)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow Table with the columns of the CSV."""
        return arrow_table([asdict(row) for row in self.rows], self._head)

    def plot(self) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair chart with a panel per answer to the first question.

        Raises NotFoundError for a suppressed table.
        """
        # No question has a name with spaces, so these names differ from those of the numbers.
        names = [f"answer to {question}" for question in self._questions]
        marks = [
            {
                **dict(zip(names, _answers(row), strict=True)),
                **{name: getattr(row, name) for name in NUMBERS},
            }
            for row in self.rows
            if row.estimate is not None
        ]
        if not marks:
            raise NotFoundError(f"{self.description}: no cell can be shown")
        return interval_chart(marks, names, self.description)

    def __repr__(self) -> str:
        lines = [f"  {', '.join(_answers(row))}: {_cell(row)}" for row in self.rows]
        return "\n".join([self.description, *lines])

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        rows = [[*_answers(row), _cell(row)] for row in self.rows]
        return HtmlTable(self.description, (*self._questions, "estimate"), rows, 2).text()

    @property
    def _questions(self) -> tuple[str, ...]:
        row = self.rows[0]
        return (row.first_question_id, row.second_question_id)

    @property
    def _head(self) -> dict[str, Any]:
        return {"slug": self.slug, "version": self.version, "n": self.n, "shown": self.shown}


def _answers(row: CrosstabRow) -> tuple[str, str]:
    return (row.first_option_label, row.second_option_label)


def _cell(row: CrosstabRow) -> str:
    if row.estimate is None or row.conf_low is None or row.conf_high is None:
        return row.flag
    return describe_share(row.estimate, row.conf_low, row.conf_high)


def _estimate(row: EstimateRow) -> str:
    return describe_estimate(row, closed=True)


class GroupResults(Mapping[str, R], Generic[R]):
    """Results of the same question in several groups, by the name of the group.

    `by` is the name of the column that names the groups.
    """

    def __init__(self, by: str, results: Mapping[str, R]) -> None:
        self.by = by
        self._results = dict(results)

    def __getitem__(self, group: str) -> R:
        return self._results[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the rows of all groups, each with its group."""
        return [
            {self.by: group, **row}
            for group, result in self._results.items()
            for row in result.to_rows()
        ]

    def to_pandas(self) -> pd.DataFrame:
        """Return the DataFrames of all groups as one, with the group as first index level."""
        return data_frame(self.to_rows(), (self.by, *self._axes), {})

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow Table of the rows of all groups."""
        return arrow_table(self.to_rows(), {})

    def plot(self) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair chart with a panel per group, or one line per group for means."""
        names = (self.by, *self._axes)
        title = f"{self._first.description} By {self.by}."
        return interval_chart(self.to_rows(), names, title, self._first.limits)

    def __repr__(self) -> str:
        return "\n".join(f"{self.by} {group}: {result!r}" for group, result in self.items())

    def _repr_html_(self) -> str:
        """Return one HTML table per group, for notebooks."""
        rows = self.to_rows()
        names = (self.by, *self._axes)
        cells = [[_text(value) for value in row.values()] for row in rows]
        return HtmlTable(f"Results by {self.by}", tuple(rows[0]), cells, len(names)).text()

    @property
    def _axes(self) -> tuple[str, ...]:
        return self._first.axis_names or self._first.index_names[: len(self._first.axis_labels)]

    @property
    def _first(self) -> R:
        return next(iter(self._results.values()))


def _text(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
