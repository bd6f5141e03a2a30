"""Dot-and-interval charts: Vega-Lite specifications of shares and of a mean, rendered to SVG."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import vl_convert

from survey.results.rows import Row
from survey.results.tables import QuestionResult
from survey.results.wording import in_words

VEGA_LITE = "5.20"
ROW_PIXELS = 40
"""Height of a table's row, so that side by side each dot stands beside its figures."""

PLOT_PIXELS = 240
LABEL_PIXELS = 176
MEASURED_LABEL_PIXELS = 144
"""Longest label as measured without the reader's font, which may be a fifth wider."""

FONT = "system-ui, sans-serif"
ACCENT = "#0b5c7a"
INK = "#1d2327"
RULE = "#c9d1d6"


OPTIONS = {
    "field": "option",
    "type": "nominal",
    "sort": None,
    "axis": {
        "title": None,
        "ticks": False,
        "domain": False,
        "labelPadding": 10,
        "labelLimit": MEASURED_LABEL_PIXELS,
        "minExtent": LABEL_PIXELS,
        "maxExtent": LABEL_PIXELS,
    },
}
"""The vertical axis: one row per option, in the survey's order."""

PERCENT_AXIS = {
    "scale": {"domain": [0, 1]},
    "axis": {"format": "%", "title": None, "values": [0, 0.25, 0.5, 0.75, 1]},
}


def chart_specification(result: QuestionResult) -> dict[str, Any]:
    """Estimated share and interval of each option, on an axis that is always 0 to 100%.

    Estimates outside the axis are drawn at its end as an open triangle: the table has them.
    """
    points = [
        _point(row, row.option_label, in_words(row), 0.0, 1.0)
        for row in result.shares
        if row.estimate is not None
    ]
    title = f"Estimated shares with 95% intervals: {result.question.text}"
    return _specification(title, points, PERCENT_AXIS)


def mean_specification(result: QuestionResult) -> dict[str, Any]:
    """The estimated mean and its interval, on an axis from the least to the largest answer."""
    row, grid = result.mean, result.question.grid
    if row is None or grid is None:
        raise ValueError(f"question {result.question.id} has no mean")
    low, high = grid.values[0], grid.values[-1]
    point = _point(row, "Mean", in_words(row, result.amounts), low, high)
    title = f"Estimated mean with 95% interval: {result.question.text}"
    return _specification(title, [point], _value_axis(result, low, high))


def _value_axis(result: QuestionResult, low: float, high: float) -> dict[str, Any]:
    """The two ends and the middle; dates by their years and months."""
    ends = [low, (low + high) / 2, high]
    axis: dict[str, Any] = {"title": result.amounts.unit or None, "values": ends}
    if result.amounts.is_date:
        # Vega counts dates in milliseconds, ours are days.
        axis |= {"labelExpr": "utcFormat(datum.value * 86400000, '%b %Y')"}
    return {"scale": {"domain": [low, high], "nice": False}, "axis": axis}


def _specification(
    title: str, points: list[dict[str, Any]], across: dict[str, Any]
) -> dict[str, Any]:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": title,
        "width": PLOT_PIXELS,
        "height": {"step": ROW_PIXELS},
        "background": None,
        "data": {"values": points},
        "encoding": {"y": OPTIONS},
        "layer": [_intervals(across), _dots(across)],
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "mark": {"color": ACCENT},
            "axis": {
                "labelFontSize": 13,
                "titleFontSize": 13,
                "titleFontWeight": "normal",
                "labelColor": INK,
                "titleColor": INK,
                "gridColor": RULE,
                "tickColor": RULE,
                "domainColor": RULE,
            },
        },
    }


def _intervals(across: dict[str, Any]) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "aria": False},
        "encoding": {"x": _axis("low", across), "x2": {"field": "high"}},
    }


def _dots(across: dict[str, Any]) -> dict[str, Any]:
    shapes = {
        "domain": ["no", "below", "above"],
        "range": ["circle", "triangle-left", "triangle-right"],
    }
    return {
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
        "encoding": {
            "x": _axis("dot", across),
            "shape": {"field": "outside", "type": "nominal", "legend": None, "scale": shapes},
            "description": {"field": "words"},
        },
    }


def _axis(field: str, across: dict[str, Any]) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", **across}


def _point(row: Row, label: str, words: str, low: float, high: float) -> dict[str, Any]:
    estimate = row.estimate or 0.0
    outside = "below" if estimate < low else "above" if estimate > high else "no"
    return {
        "option": label,
        "dot": min(max(estimate, low), high),
        "low": row.conf_low,
        "high": row.conf_high,
        "outside": outside,
        "words": f"{label}: {words}",
    }


def chart_svg(result: QuestionResult) -> str:
    """The chart of a question's shares as SVG text for the page; empty when there are none."""
    shown = [row for row in result.shares if row.estimate is not None]
    return _svg(json.dumps(chart_specification(result))) if shown else ""


def mean_svg(result: QuestionResult) -> str:
    """The chart of a question's mean as SVG text for the page; empty when it has none."""
    shown = result.mean is not None and result.mean.estimate is not None
    return _svg(json.dumps(mean_specification(result))) if shown else ""


@lru_cache(maxsize=256)
def _svg(specification: str) -> str:
    return str(vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE))
