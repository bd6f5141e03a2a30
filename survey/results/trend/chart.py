"""Charts of one question in several groups: a panel for each answer, a dot for each group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from survey.results.charts import (
    LOOKS,
    OPTIONS,
    PERCENT_AXIS,
    PLOT_PIXELS,
    ROW_PIXELS,
    config,
    drawn,
    has_numbers,
    point,
    value_axis,
)
from survey.results.grouped import first_day
from survey.results.trend.compute import PARTS, Compared, ComparedGroup
from survey.results.wording import row_label

GROUP_PIXELS = 28
PANEL_PIXELS = 120
WIDEST = 420
"""Width of the panels of a trend; a phone shows them smaller."""

FEW_TIMES = 6
"""Times up to which each has its own place on the axis, however far apart they lie."""


def compared_specification(found: Compared) -> dict[str, Any]:
    """Groups below each other in each panel, on an axis that is always 0 to 100%.

    Times and versions stand from left to right instead. Groups that are hidden have no dot.
    """
    if found.over == "links":
        return _panels(found, _beside(found))
    return _panels(found, _along(found))


def compared_svg(found: Compared, look: str) -> str:
    """The chart as SVG text for a page in one of the `LOOKS`; empty when nothing is shown."""
    if not has_numbers(found.rows):
        return ""
    return drawn(json.dumps({**compared_specification(found), "config": config(LOOKS[look])}))


def _panels(found: Compared, panel: dict[str, Any]) -> dict[str, Any]:
    level = 100 * found.groups[0].of.wanted.level
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": f"{PARTS[found.part]}, estimated, with {level:g}% intervals: "
        f"{found.question.text}",
        "background": None,
        "data": {"values": list(_points(found))},
        "facet": {
            "field": "option",
            "type": "nominal",
            "sort": [row_label(row) for row in found.columns],
            "header": {"title": None, "labelAnchor": "start", "labelFontWeight": "bold"},
        },
        "columns": 1,
        "spacing": 16,
        "spec": panel,
        "config": config(LOOKS["light"]),
    }


def _points(found: Compared) -> Iterator[dict[str, Any]]:
    low, high = _range(found)
    for group in found.groups:
        for row in group.rows:
            if row.estimate is not None:
                label = row_label(row)
                words = f"{group.name}: {group.of.words(row)}"
                yield {
                    **point(row, label, words, low, high),
                    "group": group.name,
                    "when": _when(group),
                }


def _when(group: ComparedGroup) -> str:
    """The first day of a time; other groups have their name."""
    return first_day(group.bucket).isoformat() if group.bucket else group.name


def _range(found: Compared) -> tuple[float, float]:
    grid = found.question.grid
    if found.part in ("mean", "median") and grid is not None:
        return grid.values[0], grid.values[-1]
    return 0.0, 1.0


def _values(found: Compared) -> dict[str, Any]:
    """The axis of estimates."""
    if found.part in ("mean", "median"):
        return value_axis(found.question, *_range(found))
    return PERCENT_AXIS


def _beside(found: Compared) -> dict[str, Any]:
    across = {"type": "quantitative", **_values(found)}
    groups = {
        "field": "group",
        "type": "nominal",
        # All of them: a group that is hidden keeps its place.
        "scale": {"domain": [group.name for group in found.groups]},
        "axis": OPTIONS["axis"],
    }
    shapes = ["circle", "triangle-left", "triangle-right"]
    return {
        "width": PLOT_PIXELS,
        "height": {"step": GROUP_PIXELS},
        "encoding": {"y": groups},
        "layer": [
            _rule({"x": {"field": "low", **across}, "x2": {"field": "high"}}),
            _dot({"x": {"field": "dot", **across}}, shapes),
        ],
    }


def _along(found: Compared) -> dict[str, Any]:
    up = {"type": "quantitative", **_values(found)}
    when: dict[str, Any] = {"field": "when", "axis": {"title": None, "labelOverlap": True}}
    times = [_when(group) for group in found.groups]
    if found.over == "time" and len(times) > FEW_TIMES:
        when |= {"type": "temporal", "timeUnit": "utcyearmonthdate", "scale": {"type": "utc"}}
        when["axis"] |= {"format": "%-d %b %y", "tickCount": FEW_TIMES, "grid": False}
    else:
        when |= {"type": "ordinal", "scale": {"domain": times}}
        when["axis"] |= {"labelAngle": 0, "labelExpr": _names(found)}
    shapes = ["circle", "triangle-down", "triangle-up"]
    return {
        "width": min(WIDEST, max(PLOT_PIXELS, 2 * ROW_PIXELS * len(times))),
        "height": PANEL_PIXELS,
        "encoding": {"x": when},
        "layer": [
            _rule({"y": {"field": "low", **up}, "y2": {"field": "high"}}),
            _dot({"y": {"field": "dot", **up}}, shapes),
        ],
    }


def _names(found: Compared) -> str:
    """The label of each time is the group's name, not its first day."""
    names = {_when(group): group.name for group in found.groups}
    return f"{json.dumps(names)}[datum.value]"


def _rule(place: dict[str, Any]) -> dict[str, Any]:
    mark = {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "aria": False}
    return {"mark": mark, "encoding": place}


def _dot(place: dict[str, Any], shapes: list[str]) -> dict[str, Any]:
    scale = {"domain": ["no", "below", "above"], "range": shapes}
    shape = {"field": "outside", "type": "nominal", "legend": None, "scale": scale}
    return {
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
        "encoding": {**place, "shape": shape, "description": {"field": "words"}},
    }
