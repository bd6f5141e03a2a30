"""Charts of one question: shares, histogram, and mean with median."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from survey.results.charts import (
    MARGIN,
    PERCENT_AXIS,
    PLOT_PIXELS,
    ROW_PIXELS,
    bar_layer,
    chart_point,
    dot_chart,
    fixed_chart_svg,
    has_numbers,
    value_axis,
)
from survey.results.estimates.result import QuestionResult
from survey.results.estimates.table import EstimateRow, row_label


def shares_chart(result: QuestionResult) -> dict[str, Any]:
    """Return the estimated share and interval of each option, on an axis from 0 to 100%."""
    title = f"Estimated shares with {result.options.percent} intervals: {result.question.text}"
    return dot_chart(title, _share_points(result, result.shares), PERCENT_AXIS)


def histogram_chart(result: QuestionResult) -> dict[str, Any]:
    """Return the histogram: a bar, a dot and an interval per cell, on an axis from 0 to 100%."""
    title = (
        f"Estimated shares of answers with {result.options.percent} intervals: "
        f"{result.question.text}"
    )
    chart = dot_chart(title, _share_points(result, result.spread), PERCENT_AXIS)
    return {**chart, "layer": [bar_layer(), *chart["layer"]]}


def middle_chart(result: QuestionResult) -> dict[str, Any]:
    """Return mean and median with intervals, on an axis from the smallest to the largest answer.

    Raises ValueError for a question that shows neither.
    """
    grid = result.question.grid
    if grid is None or not result.middles:
        raise ValueError(f"question {result.question.id} has no mean to show")
    low, high = grid.values[0], grid.values[-1]
    data = [
        chart_point(row, row.statistic.capitalize(), result.describe(row), low, high)
        for row in result.middles
        if row.estimate is not None
    ]
    names = " and ".join(row.statistic for row in result.middles)
    title = f"Estimated {names} with {result.options.percent} intervals: {result.question.text}"
    return dot_chart(title, data, value_axis(result.question, low, high))


def _share_points(result: QuestionResult, rows: Sequence[EstimateRow]) -> list[dict[str, Any]]:
    return [
        chart_point(row, row.option_label, result.describe(row), 0.0, 1.0)
        for row in rows
        if row.estimate is not None
    ]


PART_CHARTS: Mapping[str, Callable[[QuestionResult], dict[str, Any]]] = {
    "shares": shares_chart,
    "middle": middle_chart,
    "spread": histogram_chart,
}
"""The charts of a question by the name of their part in links."""


def has_chart(result: QuestionResult, part: str) -> bool:
    """Return whether a part has an estimate to show in a chart."""
    rows = {"shares": result.shares, "middle": result.middles, "spread": result.spread}
    return has_numbers(rows[part])


def part_svg(result: QuestionResult, part: str) -> str:
    """Return the chart of a part as SVG; empty if it has none."""
    return fixed_chart_svg(PART_CHARTS[part](result)) if has_chart(result, part) else ""


def page_charts(result: QuestionResult) -> dict[str, str]:
    """Return the charts of a question as SVG for a page, by part; empty strings if suppressed."""
    return {part: part_svg(result, part) for part in PART_CHARTS}


def chart_size(rows: Sequence[EstimateRow]) -> tuple[int, int]:
    """Return width and height in pixels of the chart of these rows on a page."""
    n_lines = len({row_label(row) for row in rows if row.estimate is not None})
    return (
        MARGIN["left"] + PLOT_PIXELS + MARGIN["right"],
        MARGIN["top"] + n_lines * ROW_PIXELS + MARGIN["bottom"],
    )
