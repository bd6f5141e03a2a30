"""One dot-and-interval chart per question: a Vega-Lite specification, rendered to SVG."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import vl_convert

from survey.results.tables import QuestionResult, Row

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


def chart_specification(result: QuestionResult) -> dict[str, Any]:
    """Estimated share and interval of each option, on an axis that is always 0 to 100%.

    Estimates outside the axis are drawn at its end as an open triangle: the table has them.
    """
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": f"Estimated shares with 95% intervals: {result.question.text}",
        "width": PLOT_PIXELS,
        "height": {"step": ROW_PIXELS},
        "background": None,
        "data": {"values": [_point(row) for row in result.rows]},
        "encoding": {"y": OPTIONS},
        "layer": [_intervals(), _dots()],
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "mark": {"color": ACCENT},
            "axis": {
                "labelFontSize": 13,
                "labelColor": INK,
                "gridColor": RULE,
                "tickColor": RULE,
                "domainColor": RULE,
            },
        },
    }


def _intervals() -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "aria": False},
        "encoding": {"x": _axis("low"), "x2": {"field": "high"}},
    }


def _dots() -> dict[str, Any]:
    shapes = {
        "domain": ["no", "below", "above"],
        "range": ["circle", "triangle-left", "triangle-right"],
    }
    return {
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
        "encoding": {
            "x": _axis("dot"),
            "shape": {"field": "outside", "type": "nominal", "legend": None, "scale": shapes},
            "description": {"field": "words"},
        },
    }


def _axis(field: str) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {"format": "%", "title": None, "values": [0, 0.25, 0.5, 0.75, 1]},
    }


def _point(row: Row) -> dict[str, Any]:
    estimate = row.estimate or 0.0
    outside = "below" if estimate < 0 else "above" if estimate > 1 else "no"
    return {
        "option": row.option_label,
        "dot": min(max(estimate, 0.0), 1.0),
        "low": row.conf_low,
        "high": row.conf_high,
        "outside": outside,
        "words": f"{row.option_label}: {in_words(row)}",
    }


def in_words(row: Row) -> str:
    """An estimate as people say it.

    The linear estimate is not clipped, so it may lie outside its interval.
    """
    if row.estimate is None or row.conf_low is None or row.conf_high is None:
        return "not enough responses yet"
    return (
        f"estimated {percent(row.estimate)}, "
        f"between {percent(row.conf_low)[:-1]} and {percent(row.conf_high)}"
    )


def percent(share: float) -> str:
    """A share as whole per cent with a real minus sign.

    >>> percent(0.234), percent(-0.012), percent(-0.001)
    ('23%', '−1%', '0%')
    """
    whole = round(share * 100)
    return f"{whole}%".replace("-", "−")


def chart_svg(result: QuestionResult) -> str:
    """The chart of a question as SVG text for the page."""
    return _svg(result)


@lru_cache(maxsize=256)
def _svg(result: QuestionResult) -> str:
    return str(vl_convert.vegalite_to_svg(chart_specification(result), vl_version=VEGA_LITE))
