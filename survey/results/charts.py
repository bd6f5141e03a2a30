"""Shared base of all charts: colours, axes, dots with intervals, and rendering to SVG.

Charts are Vega-Lite specifications.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from survey.errors import NotFoundError
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import PublishedSurvey

VEGA_LITE = "5.20"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

ROW_PIXELS = 40
"""Height of a table's row, so that each dot is level with its figures."""

BAR_PIXELS = 24
PLOT_PIXELS = 240
LABEL_PIXELS = 176
MARGIN = {"left": 186, "top": 5, "right": 24, "bottom": 44}
"""Room on a page for labels on the left, and for the axis with its title below."""

CACHE_SIZE = 512
"""Rendered charts that are kept in memory: those of a long survey, light and dark."""

MEASURED_LABEL_PIXELS = 144
"""Longest label as measured without the reader's font, which may be a fifth wider."""

FONT = "system-ui, sans-serif"
ACCENT = "#0a5069"
INK = "#1d2327"
RULE = "#c9d1d6"


class ChartRow(Protocol):
    """A row with an estimate and its interval, each None if suppressed."""

    @property
    def estimate(self) -> float | None: ...
    @property
    def conf_low(self) -> float | None: ...
    @property
    def conf_high(self) -> float | None: ...


class Palette(NamedTuple):
    """The colours of a chart's marks, letters and lines; the same as in the stylesheet."""

    accent: str
    ink: str
    rule: str


PALETTES: Mapping[str, Palette] = {
    "light": Palette(ACCENT, INK, RULE),
    "dark": Palette("#7cc7e6", "#eef2f4", "#3b474e"),
}
"""Palettes by colour scheme; chart files always use the light one."""

OPTION_AXIS = {
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


def chart_point(
    row: ChartRow, label: str, description: str, low: float, high: float
) -> dict[str, Any]:
    """Return the data of a row; an estimate outside the axis is drawn at its end as a triangle."""
    estimate = row.estimate or 0.0
    outside = "below" if estimate < low else "above" if estimate > high else "no"
    return {
        "option": label,
        "dot": min(max(estimate, low), high),
        "low": row.conf_low,
        "high": row.conf_high,
        "outside": outside,
        "words": f"{label}: {description}",
    }


def dot_chart(title: str, data: list[dict[str, Any]], scale: dict[str, Any]) -> dict[str, Any]:
    """Return a chart with one line per option: a dot and its interval."""
    return {
        "$schema": SCHEMA,
        "description": title,
        "width": PLOT_PIXELS,
        "height": {"step": ROW_PIXELS},
        "background": None,
        "data": {"values": data},
        "encoding": {"y": OPTION_AXIS},
        "layer": [interval_layer(scale), dot_layer(scale)],
        "config": config(PALETTES["light"]),
    }


def bar_layer() -> dict[str, Any]:
    """Return a layer of bars behind the dots of a histogram."""
    return {
        "mark": {"type": "bar", "height": BAR_PIXELS, "opacity": 0.2, "aria": False},
        "encoding": {"x": _quantity("dot", PERCENT_AXIS)},
    }


def interval_layer(axis: dict[str, Any], direction: str = "x") -> dict[str, Any]:
    """Return a layer of intervals; estimates lie along the direction x or y."""
    return {
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "aria": False},
        "encoding": {direction: _quantity("low", axis), f"{direction}2": {"field": "high"}},
    }


def dot_layer(axis: dict[str, Any], direction: str = "x", size: int = 90) -> dict[str, Any]:
    """Return a layer of dots, with triangles for estimates outside the axis."""
    below, above = ("left", "right") if direction == "x" else ("down", "up")
    shapes = {
        "domain": ["no", "below", "above"],
        "range": ["circle", f"triangle-{below}", f"triangle-{above}"],
    }
    return {
        "mark": {"type": "point", "filled": True, "size": size, "opacity": 1},
        "encoding": {
            direction: _quantity("dot", axis),
            "shape": {"field": "outside", "type": "nominal", "legend": None, "scale": shapes},
            "description": {"field": "words"},
        },
    }


def _quantity(field: str, axis: dict[str, Any]) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", **axis}


def value_axis(question: PublishedQuestion, low: float, high: float) -> dict[str, Any]:
    """Return an axis of answers with both ends and the middle; dates by month and year."""
    values = [low, (low + high) / 2, high]
    unit = question.grid.unit if question.grid else ""
    axis: dict[str, Any] = {"title": unit or None, "values": values}
    if question.kind.is_date:
        # Vega measures dates in milliseconds, the grid in days.
        axis |= {"labelExpr": "utcFormat(datum.value * 86400000, '%b %Y')"}
    return {"scale": {"domain": [low, high], "nice": False}, "axis": axis}


def config(palette: Palette) -> dict[str, Any]:
    """Return the configuration of every chart in these colours."""
    return {
        "font": FONT,
        "view": {"stroke": None},
        "mark": {"color": palette.accent},
        "rule": {"color": palette.accent},
        "header": {"labelFontSize": 13, "labelColor": palette.ink, "titleColor": palette.ink},
        "axis": {
            "labelFontSize": 13,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
            "labelColor": palette.ink,
            "titleColor": palette.ink,
            "gridColor": palette.rule,
            "tickColor": palette.rule,
            "domainColor": palette.rule,
        },
    }


def has_numbers(rows: Iterable[ChartRow]) -> bool:
    """Return whether any of these rows is shown."""
    return any(row.estimate is not None for row in rows)


def is_clipped(rows: Sequence[ChartRow]) -> bool:
    """Return whether a share lies outside the axis and is drawn at its end."""
    return any(row.estimate is not None and not 0 <= row.estimate <= 1 for row in rows)


def has_intervals(rows: Iterable[ChartRow]) -> bool:
    """Return whether any of these rows has an interval, with or without an estimate."""
    return any(row.conf_low is not None for row in rows)


def chart_svg(specification: dict[str, Any], palette: str = "light") -> str:
    """Render a chart to SVG in the colours of a palette."""
    return render_svg(json.dumps({**specification, "config": config(PALETTES[palette])}))


def fixed_chart_svg(specification: dict[str, Any], palette: str = "light") -> str:
    """Render a chart with margins that do not depend on its labels: the page leaves room for it."""
    return chart_svg({**specification, "autosize": "none", "padding": MARGIN}, palette)


@lru_cache(maxsize=CACHE_SIZE)
def render_svg(specification: str) -> str:
    """Render a chart's JSON to SVG."""
    # vl_convert loads a JavaScript engine, which no other page needs.
    import vl_convert

    return str(vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE))


FORMATS: Mapping[str, str] = {
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}
"""File formats of a figure, with their media types; json is the Vega-Lite specification."""

PNG_SCALE = 3.0
TITLE_CHARACTERS = 62

TEST_SUBTITLE = "TEST: reports of a test run"


def chart_file(survey: PublishedSurvey, specification: dict[str, Any], file_format: str) -> bytes:
    """Return a chart as a file: with a title and a white background, and TEST for a test run.

    Raises NotFoundError for an unknown format.
    """
    if file_format not in FORMATS:
        raise NotFoundError(
            f"there is no figure .{file_format}; the formats are {', '.join(FORMATS)}"
        )
    lines = textwrap.wrap(specification["description"], TITLE_CHARACTERS)
    title = {"text": lines, "anchor": "start", "frame": "group", "fontSize": 14, "offset": 12}
    if survey.is_test_run:
        title |= {"subtitle": TEST_SUBTITLE, "subtitleFontSize": 13, "subtitleFontWeight": "bold"}
    titled = {**specification, "background": "#ffffff", "padding": 16, "title": title}
    return convert(titled, file_format)


def convert(specification: dict[str, Any], file_format: str, png_scale: float = PNG_SCALE) -> bytes:
    """Return a Vega-Lite specification in one of `FORMATS`."""
    text = json.dumps(specification, ensure_ascii=False, indent=2)
    if file_format == "json":
        return text.encode("utf-8")
    if file_format == "svg":
        return render_svg(text).encode("utf-8")
    import vl_convert

    if file_format == "png":
        png: bytes = vl_convert.vegalite_to_png(text, vl_version=VEGA_LITE, scale=png_scale)
        return png
    pdf: bytes = vl_convert.vegalite_to_pdf(text, vl_version=VEGA_LITE)
    return pdf
