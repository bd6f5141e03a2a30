"""Figures of one question in several groups (links, periods or versions), and their chart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from survey.estimator import Disclosure
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.charts import (
    OPTION_AXIS,
    PALETTES,
    PERCENT_AXIS,
    PLOT_PIXELS,
    ROW_PIXELS,
    SCHEMA,
    chart_point,
    config,
    dot_layer,
    interval_layer,
    value_axis,
)
from survey.results.estimates.result import QuestionResult, ResultPart, SurveyResult
from survey.results.estimates.table import EstimateRow, row_label
from survey.results.groups import first_day
from survey.results.number_format import NOT_ENOUGH, NOT_ENOUGH_YET
from survey.results.request import IntervalOptions
from survey.results.trend.request import PART_LABELS, TrendRequest
from survey.store import PublishedSurvey


@dataclass(frozen=True)
class TrendGroup:
    """One group's name and figures.

    `result` has the texts and the channel of the version that the group answered, and `counts` the
    question's released counts. `period` is empty unless groups are periods. A `closed` group
    receives no more responses.
    """

    name: str
    result: QuestionResult
    counts: Sequence[int]
    part: ResultPart
    period: str
    closed: bool

    @property
    def rows(self) -> tuple[EstimateRow, ...]:
        """The group's rows, with numbers or without."""
        return self.part.rows

    @property
    def disclosure(self) -> Disclosure:
        """The decision about the group's numbers."""
        return self.part.disclosure

    @property
    def suppression_text(self) -> str:
        """The text that replaces suppressed numbers."""
        text = self.result.failure or self.part.caveat(closed=self.closed)
        return text or (NOT_ENOUGH if self.closed else NOT_ENOUGH_YET)


@dataclass(frozen=True)
class TrendResult:
    """A part of one question in several groups; each group is shown or suppressed independently.

    `total` is the result over all groups. `notes` say which versions are left out and why.
    `groups` is empty if the survey has no groups of this kind.
    """

    request: TrendRequest
    total: SurveyResult
    groups: tuple[TrendGroup, ...]
    notes: tuple[str, ...] = ()

    @property
    def survey(self) -> PublishedSurvey:
        """The version of the survey."""
        return self.total.survey

    @property
    def options(self) -> IntervalOptions:
        """The interval options."""
        return self.total.options

    @property
    def question(self) -> PublishedQuestion:
        """The question, as the first group answered it."""
        source = (
            self.groups[0].result if self.groups else self.total.question(self.request.question)
        )
        return source.question

    @property
    def rows(self) -> list[EstimateRow]:
        """All rows of all groups."""
        return [row for group in self.groups for row in group.rows]

    @property
    def columns(self) -> tuple[EstimateRow, ...]:
        """The rows of one group, whose labels are the column headings."""
        return self.groups[0].rows if self.groups else ()


def question_parts(result: QuestionResult) -> list[str]:
    """Return the names of a question's parts, the main part first."""
    parts = [name for name in PART_LABELS if result.parts[name].rows]
    if result.question.kind.is_numeric:
        parts.sort(key=lambda name: name == "shares")
    return parts


GROUP_PIXELS = 28
PANEL_PIXELS = 120
DOT_SIZE = 70
MAX_PANEL_WIDTH = 420
"""Width of the panels of a trend in pixels; a phone shows them smaller."""

ORDINAL_PERIODS = 6
"""Up to this many periods have equal distances on the axis, however far apart they are."""


def trend_chart(result: TrendResult) -> dict[str, Any]:
    """Return the chart; links are lines of a panel, periods and versions run from left to right.

    Suppressed groups have no dot.
    """
    panel = _line_panel(result) if result.request.over == "links" else _time_panel(result)
    level = 100 * result.options.level
    return {
        "$schema": SCHEMA,
        "description": f"{PART_LABELS[result.request.part]}, estimated, with {level:g}% intervals: "
        f"{result.question.text}",
        "background": None,
        "data": {"values": list(_points(result))},
        "facet": {
            "field": "option",
            "type": "nominal",
            "sort": [row_label(row) for row in result.columns],
            "header": {"title": None, "labelAnchor": "start", "labelFontWeight": "bold"},
        },
        "columns": 1,
        "spacing": 16,
        "spec": panel,
        "config": config(PALETTES["light"]),
    }


def _points(result: TrendResult) -> Iterator[dict[str, Any]]:
    low, high = _axis_range(result)
    for group in result.groups:
        for row in group.rows:
            if row.estimate is not None:
                description = f"{group.name}: {group.result.describe(row)}"
                yield {
                    **chart_point(row, row_label(row), description, low, high),
                    "group": group.name,
                    "when": _position(group),
                }


def _position(group: TrendGroup) -> str:
    """Return the first day of a period, or the name of another group."""
    return first_day(group.period).isoformat() if group.period else group.name


def _axis_range(result: TrendResult) -> tuple[float, float]:
    grid = result.question.grid
    if result.request.part in ("mean", "median") and grid is not None:
        return grid.values[0], grid.values[-1]
    return 0.0, 1.0


def _estimate_axis(result: TrendResult) -> dict[str, Any]:
    if result.request.part in ("mean", "median"):
        return value_axis(result.question, *_axis_range(result))
    return PERCENT_AXIS


def _line_panel(result: TrendResult) -> dict[str, Any]:
    groups = {
        "field": "group",
        "type": "nominal",
        # The domain lists every group, so that a suppressed group keeps its line.
        "scale": {"domain": [group.name for group in result.groups]},
        "axis": OPTION_AXIS["axis"],
    }
    return {
        "width": PLOT_PIXELS,
        "height": {"step": GROUP_PIXELS},
        "encoding": {"y": groups},
        "layer": [
            interval_layer(_estimate_axis(result)),
            dot_layer(_estimate_axis(result), size=DOT_SIZE),
        ],
    }


def _time_panel(result: TrendResult) -> dict[str, Any]:
    when: dict[str, Any] = {"field": "when", "axis": {"title": None, "labelOverlap": True}}
    positions = [_position(group) for group in result.groups]
    if result.request.over == "trend" and len(positions) > ORDINAL_PERIODS:
        when |= {"type": "temporal", "timeUnit": "utcyearmonthdate", "scale": {"type": "utc"}}
        when["axis"] |= {"format": "%-d %b %y", "tickCount": ORDINAL_PERIODS, "grid": False}
    else:
        when |= {"type": "ordinal", "scale": {"domain": positions}}
        when["axis"] |= {"labelAngle": 0, "labelExpr": _label_expression(result)}
    return {
        "width": min(MAX_PANEL_WIDTH, max(PLOT_PIXELS, 2 * ROW_PIXELS * len(positions))),
        "height": PANEL_PIXELS,
        "encoding": {"x": when},
        "layer": [
            interval_layer(_estimate_axis(result), "y"),
            dot_layer(_estimate_axis(result), "y", DOT_SIZE),
        ],
    }


def _label_expression(result: TrendResult) -> str:
    """Label each position with its group's name instead of its first day."""
    names = {_position(group): group.name for group in result.groups}
    return f"{json.dumps(names)}[datum.value]"
