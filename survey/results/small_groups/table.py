"""Rows of model-based shares, each beside the direct share of its group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from survey.estimator import GroupShares
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import FLAGS, SUPPRESSED
from survey.results.estimates.table import EstimateRow, row_label
from survey.results.request import IntervalOptions
from survey.results.trend.request import TrendRequest
from survey.results.trend.table import TrendGroup, TrendResult
from survey.store import PublishedSurvey

METHODS = {"links": "normal hierarchical model", "trend": "normal hierarchical model, linear trend"}
"""The value of the column `method`, by the kind of comparison."""


@dataclass(frozen=True)
class SmallGroupsRow:
    """One share of one group: its direct and its model-based estimate.

    direct_estimate to direct_conf_high  as in the CSV of the groups; empty if suppressed
    direct_flag         caution, suppressed or empty, for the direct estimate
    model_estimate to model_conf_high  the model-based share; empty if suppressed
    expected            the share that the model predicts for the group
    shrinkage           weight of `expected` in model_estimate, 0 to 1
    residual            standardized difference of the direct estimate from `expected`
    between_sd to between_conf_high  standard deviation of the true shares around `expected`
    heterogeneity_q, heterogeneity_df, p_value  test that all groups have the expected share
    flag                suppressed, or empty
    """

    survey_id: str
    survey_version: int
    stratum: str
    bucket: str
    question_id: str
    question_text: str
    option_id: str
    option_label: str
    n_reports: int
    direct_estimate: float | None
    direct_std_error: float | None
    direct_conf_low: float | None
    direct_conf_high: float | None
    direct_flag: str
    model_estimate: float | None
    model_std_error: float | None
    model_conf_low: float | None
    model_conf_high: float | None
    conf_level: float
    expected: float | None
    shrinkage: float | None
    residual: float | None
    between_sd: float | None
    between_conf_low: float | None
    between_conf_high: float | None
    heterogeneity_q: float | None
    heterogeneity_df: float | None
    p_value: float | None
    method: str
    epsilon: float
    flag: str


@dataclass(frozen=True)
class SmallGroupsResult:
    """Model-based shares of the groups of a comparison, or the reason why there are none.

    `groups` are those of the comparison, without the row of totals. `shares` is None if the shares
    are suppressed or there are too few groups; `reason` then explains which.
    """

    trend: TrendResult
    groups: tuple[TrendGroup, ...]
    shares: GroupShares | None
    reason: str = ""

    @property
    def request(self) -> TrendRequest:
        """The request of the comparison."""
        return self.trend.request

    @property
    def survey(self) -> PublishedSurvey:
        """The version of the survey."""
        return self.trend.survey

    @property
    def question(self) -> PublishedQuestion:
        """The question."""
        return self.trend.question

    @property
    def options(self) -> IntervalOptions:
        """The interval options, of which only the level applies to model-based shares."""
        return self.trend.options

    @property
    def is_over_time(self) -> bool:
        """Whether groups are periods, whose estimates are pulled towards a straight line."""
        return self.request.over == "trend"

    @property
    def labels(self) -> list[str]:
        """The labels of the options."""
        return [row_label(row) for row in self.groups[0].rows]

    @property
    def file_stem(self) -> str:
        """The stem of the names of downloaded files."""
        return f"{self.request.file_stem}-model"

    @property
    def rows_by_group(self) -> list[tuple[TrendGroup, list[SmallGroupsRow]]]:
        """The rows of each group."""
        return [(group, list(self._group_rows(i))) for i, group in enumerate(self.groups)]

    @property
    def rows(self) -> list[SmallGroupsRow]:
        """All rows, group by group."""
        return [row for _, rows in self.rows_by_group for row in rows]

    def _group_rows(self, place: int) -> Iterator[SmallGroupsRow]:
        group = self.groups[place]
        for option, direct in enumerate(group.rows):
            yield SmallGroupsRow(
                **_identity(direct),
                n_reports=group.result.n_asked,
                direct_estimate=direct.estimate,
                direct_std_error=direct.std_error,
                direct_conf_low=direct.conf_low,
                direct_conf_high=direct.conf_high,
                direct_flag=direct.flag,
                **self._model_columns(place, option),
                conf_level=self.options.level,
                method=METHODS[self.request.over],
                epsilon=direct.epsilon,
                flag="" if self.shares is not None else FLAGS[SUPPRESSED],
            )

    def _model_columns(self, group: int, option: int) -> dict[str, Any]:
        def number(name: str) -> float | None:
            if self.shares is None:
                return None
            values = getattr(self.shares, name)
            value = float(values[option] if values.ndim == 1 else values[group, option])
            return value if np.isfinite(value) else None

        return {column: number(name) for column, name in MODEL_COLUMNS.items()}


MODEL_COLUMNS = {
    "model_estimate": "estimate",
    "model_std_error": "std_error",
    "model_conf_low": "conf_low",
    "model_conf_high": "conf_high",
    "expected": "expected",
    "shrinkage": "shrinkage",
    "residual": "residual",
    "between_sd": "between_sd",
    "between_conf_low": "between_low",
    "between_conf_high": "between_high",
    "heterogeneity_q": "q",
    "heterogeneity_df": "dof",
    "p_value": "p_value",
}
"""The fields of `GroupShares` by their column."""


def _identity(row: EstimateRow) -> dict[str, Any]:
    names = ("survey_id", "survey_version", "stratum", "bucket", "question_id", "question_text")
    return {name: getattr(row, name) for name in (*names, "option_id", "option_label")}
