"""Dot-and-interval charts of shares, cells, mean and median: Vega-Lite, rendered to SVG."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import vl_convert

from survey.questionnaire.kinds import PublishedQuestion
from survey.results.difference.table import DifferenceRow
from survey.results.estimates.question import QuestionResult
from survey.results.estimates.table import Row
from survey.results.wording import row_label

VEGA_LITE = "5.20"
ROW_PIXELS = 40
"""Height of a table's row, so that side by side each dot stands beside its figures."""

BAR_PIXELS = 24
PLOT_PIXELS = 240
LABEL_PIXELS = 176
MARGIN = {"left": 186, "top": 5, "right": 24, "bottom": 44}
"""Room on a page for labels at the left, and for an axis below with its title."""

MOST_DRAWN = 512
"""Charts that are remembered: those of a long survey, in light and dark."""

MEASURED_LABEL_PIXELS = 144
"""Longest label as measured without the reader's font, which may be a fifth wider."""

FONT = "system-ui, sans-serif"
ACCENT = "#0a5069"
INK = "#1d2327"
RULE = "#c9d1d6"


class Palette(NamedTuple):
    """The colours of a chart: of marks, of letters, of lines; as in the pages' stylesheet."""

    accent: str
    ink: str
    rule: str


LOOKS: Mapping[str, Palette] = {
    "light": Palette(ACCENT, INK, RULE),
    "dark": Palette("#7cc7e6", "#eef2f4", "#3b474e"),
}
"""What a page stands on; charts that are kept as files are light."""


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


DIFFERENCE_ENDS = (0.1, 0.2, 0.4, 0.6, 1.0)
"""Where an axis of differences ends: at the first beyond which no interval reaches."""


def chart_specification(result: QuestionResult) -> dict[str, Any]:
    """Estimated share and interval of each option, on an axis that is always 0 to 100%.

    Estimates outside the axis are drawn at its end as a triangle: the table has them.
    """
    title = f"Estimated shares with {result.wanted.percent} intervals: {result.question.text}"
    return _specification(title, _share_points(result, result.shares), PERCENT_AXIS)


def spread_specification(result: QuestionResult) -> dict[str, Any]:
    """The histogram: a bar, its dot and interval for each cell, on the axis of shares."""
    title = f"Estimated shares of answers with {result.wanted.percent} intervals: "
    points = _share_points(result, result.spread)
    drawn = _specification(title + result.question.text, points, PERCENT_AXIS)
    return {**drawn, "layer": [_bars(), *drawn["layer"]]}


def middle_specification(result: QuestionResult) -> dict[str, Any]:
    """Mean and median with their intervals, on an axis from the least to the largest answer."""
    grid = result.question.grid
    if grid is None or not result.middles:
        raise ValueError(f"question {result.question.id} has no mean to show")
    low, high = grid.values[0], grid.values[-1]
    points = [
        point(row, row.statistic.capitalize(), result.words(row), low, high)
        for row in result.middles
        if row.estimate is not None
    ]
    names = " and ".join(row.statistic for row in result.middles)
    title = f"Estimated {names} with {result.wanted.percent} intervals: {result.question.text}"
    return _specification(title, points, value_axis(result.question, low, high))


def difference_specification(title: str, rows: Sequence[DifferenceRow]) -> dict[str, Any]:
    """Differences of shares and their intervals, on an axis that is the same on both sides of 0."""
    ends = [abs(end) for row in rows for end in (row.conf_low, row.conf_high) if end is not None]
    most = next(end for end in DIFFERENCE_ENDS if end >= max(ends, default=0.0))
    points = [
        point(
            row,
            row.option_label,
            f"{row.option_label}: {100 * row.estimate:.0f} points",
            -most,
            most,
        )
        for row in rows
        if row.estimate is not None
    ]
    axis = {
        "title": "percentage points",
        "values": [-most, -most / 2, 0, most / 2, most],
        "labelExpr": "format(datum.value * 100, '~r')",
    }
    return _specification(title, points, {"scale": {"domain": [-most, most]}, "axis": axis})


def _share_points(result: QuestionResult, rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        point(row, row.option_label, result.words(row), 0.0, 1.0)
        for row in rows
        if row.estimate is not None
    ]


def value_axis(question: PublishedQuestion, low: float, high: float) -> dict[str, Any]:
    """An axis of answers: the two ends and the middle; dates by their years and months."""
    ends = [low, (low + high) / 2, high]
    unit = question.grid.unit if question.grid else ""
    axis: dict[str, Any] = {"title": unit or None, "values": ends}
    if question.type == "date":
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
        "config": config(LOOKS["light"]),
    }


def config(colours: Palette) -> dict[str, Any]:
    """How every chart looks in these colours."""
    return {
        "font": FONT,
        "view": {"stroke": None},
        "mark": {"color": colours.accent},
        "rule": {"color": colours.accent},
        "header": {"labelFontSize": 13, "labelColor": colours.ink, "titleColor": colours.ink},
        "axis": {
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
            "labelColor": colours.ink,
            "titleColor": colours.ink,
            "gridColor": colours.rule,
            "tickColor": colours.rule,
            "domainColor": colours.rule,
        },
    }


def _bars() -> dict[str, Any]:
    return {
        "mark": {"type": "bar", "height": BAR_PIXELS, "opacity": 0.2, "aria": False},
        "encoding": {"x": _axis("dot", PERCENT_AXIS)},
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


def point(
    row: Row | DifferenceRow, label: str, words: str, low: float, high: float
) -> dict[str, Any]:
    """What is drawn of a row; an estimate beyond the axis stands at its end."""
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


def chart_svg(result: QuestionResult, look: str = "light") -> str:
    """The chart of a question's shares as SVG text for a page; empty when there are none."""
    return _svg(chart_specification(result), look) if has_numbers(result.shares) else ""


def spread_svg(result: QuestionResult, look: str = "light") -> str:
    """The chart of a question's cells as SVG text for a page; empty when there are none."""
    return _svg(spread_specification(result), look) if has_numbers(result.spread) else ""


def middle_svg(result: QuestionResult, look: str = "light") -> str:
    """The chart of mean and median as SVG text for a page; empty when there is neither."""
    return _svg(middle_specification(result), look) if has_numbers(result.middles) else ""


def difference_svg(title: str, rows: Sequence[DifferenceRow]) -> str:
    """The chart of differences as SVG text for the page; empty when there are none."""
    if not has_numbers(rows):
        return ""
    specification = difference_specification(title, rows)
    return drawn(json.dumps({**specification, "config": config(LOOKS["light"])}))


def is_clipped(rows: Sequence[Row]) -> bool:
    """Whether a share is drawn at the end of its axis because it lies beyond."""
    return any(row.estimate is not None and not 0 <= row.estimate <= 1 for row in rows)


def has_numbers(rows: Sequence[Row | DifferenceRow]) -> bool:
    """Whether anything of these rows may be shown."""
    return any(row.estimate is not None for row in rows)


def size(rows: Sequence[Row]) -> tuple[int, int]:
    """Width and height on a page of the chart of these rows, in pixels, without drawing it."""
    drawn = len({row_label(row) for row in rows if row.estimate is not None})
    return (
        MARGIN["left"] + PLOT_PIXELS + MARGIN["right"],
        MARGIN["top"] + drawn * ROW_PIXELS + MARGIN["bottom"],
    )


def _svg(specification: dict[str, Any], look: str) -> str:
    """Drawn with margins that do not depend on its texts: the page leaves room for it."""
    fixed = {"autosize": "none", "padding": MARGIN, "config": config(LOOKS[look])}
    return drawn(json.dumps({**specification, **fixed}))


@lru_cache(maxsize=MOST_DRAWN)
def drawn(specification: str) -> str:
    """A specification as SVG text."""
    return str(vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE))
