"""Rows of a cross-tabulation: one per cell, and their arrangement on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from survey.estimator import Crosstab, Disclosure, Independence, Phi, reports_needed
from survey.estimator.core.arguments import LARGEST_N
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import FLAGS, SUPPRESSED, numbers_at
from survey.results.question_statistics import answer_columns, truth_labels
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
    def n_needed(self) -> int:
        """The number of reports from which the table is shown; 0 if no number suffices."""
        n_needed = reports_needed(self.table)
        return n_needed if n_needed <= LARGEST_N else 0

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
