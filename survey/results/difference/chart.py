"""Chart of the differences of shares between two groups."""

from __future__ import annotations

from typing import Any

from survey.results.charts import chart_point, dot_chart
from survey.results.difference.table import DifferenceResult

AXIS_ENDS = (0.1, 0.2, 0.4, 0.6, 1.0)
"""Possible ends of the axis; the chart uses the smallest that contains every interval."""


def chart_title(result: DifferenceResult) -> str:
    """Return the title of the chart."""
    first, second = result.groups
    return (
        f"{result.question.text} {first.label} minus {second.label}, "
        f"with {result.options.percent} intervals"
    )


def difference_chart(result: DifferenceResult) -> dict[str, Any]:
    """Return a Vega-Lite chart of differences and intervals; 0 is in the middle of the axis."""
    rows = result.share_rows
    ends = [abs(end) for row in rows for end in (row.conf_low, row.conf_high) if end is not None]
    axis_end = next(end for end in AXIS_ENDS if end >= max(ends, default=0.0))
    data = [
        chart_point(
            row,
            row.option_label,
            f"{row.option_label}: {100 * row.estimate:.0f} points",
            -axis_end,
            axis_end,
        )
        for row in rows
        if row.estimate is not None
    ]
    axis = {
        "title": "percentage points",
        "values": [-axis_end, -axis_end / 2, 0, axis_end / 2, axis_end],
        "labelExpr": "format(datum.value * 100, '~r')",
    }
    scale = {"scale": {"domain": [-axis_end, axis_end]}, "axis": axis}
    return dot_chart(chart_title(result), data, scale)
