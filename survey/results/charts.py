"""Shared base of all charts: colors, axes, dots with intervals, and rendering to SVG.

Charts are Vega-Lite specifications.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from survey.errors import DesignError, NotFoundError
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import PublishedSurvey

VEGA_LITE = "5.20"
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

ROW_PIXELS = 40
"""Height of a table's row, so that each dot is level with its figures."""

BAR_PIXELS = 16
DOT_SIZE, END_PIXELS = 50, 14
"""Area of a dot in square pixels, and the length of the line at each end of an interval."""

FILE_PLOT_PIXELS, FILE_ROW_PIXELS = 200, 26
"""Height of a file's plot that fits the figure's usual ratio, and the least height of its rows."""

PLOT_PIXELS = 240
LABEL_PIXELS = 176

CACHE_SIZE = 512
"""Rendered charts that are kept in memory: those of a long survey, light and dark."""

MEASURED_LABEL_PIXELS = 144
"""Longest line of a label as measured without the reader's font, which may be a fifth wider."""

LABEL_PADDING, LABEL_LINE_PIXELS = 10, 16
LABEL_CHARACTERS, PANEL_CHARACTERS = 20, 60
"""Characters in a line of a label, and in a line of a panel's heading."""

FONT = "system-ui, sans-serif"
ACCENT = "#0a5069"
INK = "#1d2327"
RULE = "#c9d1d6"
QUIET = "#4a555c"


class ChartRow(Protocol):
    """A row with an estimate and its interval, each None if suppressed."""

    @property
    def estimate(self) -> float | None: ...
    @property
    def conf_low(self) -> float | None: ...
    @property
    def conf_high(self) -> float | None: ...


class Palette(NamedTuple):
    """The colors of a chart's marks, letters and lines; the same as in the stylesheet."""

    accent: str
    ink: str
    rule: str


PALETTES: Mapping[str, Palette] = {
    "light": Palette(ACCENT, INK, RULE),
    "dark": Palette("#7cc7e6", "#eef2f4", "#3b474e"),
}
"""Palettes by color scheme; chart files always use the light one."""

SHADES = 5
"""Colors on each side of the middle of a scale."""

SCALE_COLORS: Mapping[str, str] = {
    "low-5": "#653201",
    "low-4": "#8c4f19",
    "low-3": "#b26f38",
    "low-2": "#d89058",
    "low-1": "#feb37b",
    "middle": "#e6e8ea",
    "high-1": "#80cfe9",
    "high-2": "#5babc5",
    "high-3": "#3389a1",
    "high-4": "#0c677d",
    "high-5": "#074656",
}
"""Colors of a scale from its lower to its upper end, as in the stylesheet's light colors.

Neighbours differ in lightness, so that readers can tell them apart in greyscale.
"""

OPTION_AXIS = {
    "field": "option",
    "type": "nominal",
    "sort": None,
    "axis": {
        "title": None,
        "ticks": False,
        "domain": False,
        "labelPadding": LABEL_PADDING,
        "labelLimit": MEASURED_LABEL_PIXELS,
        "labelExpr": "split(datum.label, '\\n')",
        "minExtent": LABEL_PIXELS,
        "maxExtent": LABEL_PIXELS,
    },
}
"""The vertical axis: one row per option, in the survey's order."""

PERCENT_AXIS: dict[str, Any] = {
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
        "option": wrap_label(label),
        "panel": wrap_label(label, PANEL_CHARACTERS),
        "dot": min(max(estimate, low), high),
        "low": row.conf_low,
        "high": row.conf_high,
        "outside": outside,
        "words": f"{label}: {description}",
    }


def dot_chart(title: str, data: list[dict[str, Any]], scale: dict[str, Any]) -> dict[str, Any]:
    """Return a chart with one line per option: a dot and its interval."""
    n_lines = max((point["option"].count("\n") + 1 for point in data), default=1)
    return {
        "$schema": SCHEMA,
        "description": title,
        "width": PLOT_PIXELS,
        "height": {"step": max(ROW_PIXELS, LABEL_LINE_PIXELS * n_lines + 2)},
        "background": None,
        "data": {"values": data},
        "encoding": {"y": OPTION_AXIS},
        "layer": [*interval_layers(scale), dot_layer(scale)],
        "config": config(PALETTES["light"]),
    }


def bar_layer(axis: dict[str, Any]) -> dict[str, Any]:
    """Return a layer of bars behind the dots of shares."""
    return {
        "mark": {"type": "bar", "height": BAR_PIXELS, "opacity": 0.2, "aria": False},
        "encoding": {"x": _quantity("dot", axis)},
    }


def with_values(chart: dict[str, Any]) -> dict[str, Any]:
    """Return a chart of dots for a file: lower rows, and values in words at the right edge."""
    labels = [point["option"] for point in chart["data"]["values"]]
    n_lines = max((label.count("\n") + 1 for label in labels), default=1)
    least = max(FILE_ROW_PIXELS, LABEL_LINE_PIXELS * n_lines + 2)
    step = max(min(FILE_PLOT_PIXELS // max(len(labels), 1), ROW_PIXELS), least)
    mark = {"type": "text", "align": "left", "fontSize": 13, "color": INK, "aria": False}
    place = {"value": PLOT_PIXELS + 12}
    layer = {"mark": mark, "encoding": {"x": place, "text": {"field": "value"}}}
    return {**chart, "height": {"step": step}, "layer": [*chart["layer"], layer]}


def interval_layers(axis: dict[str, Any], direction: str = "x") -> list[dict[str, Any]]:
    """Return the layers of intervals and of their ends; estimates lie along the direction x or y.

    The ends are longer than a dot is wide, so that a dot never hides a narrow interval.
    """
    orient = "vertical" if direction == "x" else "horizontal"
    end = {"type": "tick", "orient": orient, "thickness": 2, "size": END_PIXELS, "opacity": 1}
    return [
        {
            "mark": {"type": "rule", "strokeWidth": 2, "aria": False},
            "encoding": {direction: _quantity("low", axis), f"{direction}2": {"field": "high"}},
        },
        *(
            {"mark": {**end, "aria": False}, "encoding": {direction: _quantity(name, axis)}}
            for name in ("low", "high")
        ),
    ]


def dot_layer(axis: dict[str, Any], direction: str = "x", size: int = DOT_SIZE) -> dict[str, Any]:
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
    """Return the configuration of every chart in these colors."""
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


def facets(labels: Sequence[str]) -> dict[str, Any]:
    """Return the panels of a chart, one for each label; long labels wrap in full."""
    header = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold", "labelLimit": 0}
    return {
        "field": "panel",
        "type": "nominal",
        "sort": [wrap_label(label, PANEL_CHARACTERS) for label in labels],
        "header": {**header, "labelExpr": "split(datum.value, '\\n')"},
    }


def wrap_label(label: str, characters: int = LABEL_CHARACTERS) -> str:
    """Break a label into lines, because two labels that are cut off can look the same."""
    return "\n".join(textwrap.wrap(label, characters)) or label


def has_numbers(rows: Iterable[ChartRow]) -> bool:
    """Return whether any of these rows is shown."""
    return any(row.estimate is not None for row in rows)


def has_intervals(rows: Iterable[ChartRow]) -> bool:
    """Return whether any of these rows has an interval, with or without an estimate."""
    return any(row.conf_low is not None for row in rows)


AXIS_STEP = 0.25
"""Axes of shares end at a multiple of this share, so that small shares do not look like none."""


def axis_end(rows: Iterable[ChartRow]) -> float:
    """Return the largest upper end of an interval, rounded up to a multiple of `AXIS_STEP`."""
    end = max((row.conf_high or 0.0 for row in rows), default=1.0)
    return min(max(AXIS_STEP * math.ceil(end / AXIS_STEP - 1e-9), AXIS_STEP), 1.0)


def chart_svg(specification: dict[str, Any], palette: str = "light") -> str:
    """Render a chart to SVG in the colors of a palette."""
    return render_svg(_renderable({**specification, "config": config(PALETTES[palette])}))


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
FOOTER_CHARACTERS = 100
FOOTER_LINE_PIXELS = 15

TEST_SUBTITLE = "TEST: reports of a test run"


class FigureSize(NamedTuple):
    """Width in pixels, and how many dots of a PNG make up one of these pixels."""

    width: int
    png_scale: float


RATIO = 9 / 16
"""Height of a figure as a fraction of its width; figures of many answers are higher."""

FIGURE_SIZES: Mapping[str, FigureSize] = {
    "small": FigureSize(640, 1.0),
    "large": FigureSize(1200, 1.0),
    "print": FigureSize(643, 300 / 96),
}
"""Sizes of figures: 640 x 360, 1200 x 675, and 170 mm wide with 300 dots per inch."""


@dataclass(frozen=True)
class FigureOptions:
    """What a link can change about a figure: title, footnote, and size."""

    title: str = ""
    footnote: str = ""
    size: str = "large"

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> FigureOptions:
        """Parse a link's query. Raises DesignError for an unknown size or a text too long."""
        size = query.get("size", "") or cls.size
        texts = {name: query.get(name, "").strip() for name in ("title", "footnote")}
        if size not in FIGURE_SIZES:
            raise DesignError(f"size = {size[:40]!r} must be one of {', '.join(FIGURE_SIZES)}")
        for name, text in texts.items():
            if len(text) > MAX_FIGURE_TEXT:
                raise DesignError(
                    f"{name} must be at most {MAX_FIGURE_TEXT} characters long (found {len(text)})"
                )
        return cls(size=size, **texts)


MAX_FIGURE_TEXT = 300


def chart_file(
    survey: PublishedSurvey,
    specification: dict[str, Any],
    file_format: str,
    options: FigureOptions,
    source: str = "",
) -> bytes:
    """Return a chart as a file with title, subtitle and the lines of its source.

    The subtitle of a test run begins with TEST. A chart's description has the form "what it
    shows: question". The question is the title.
    Raises NotFoundError for an unknown format.
    """
    if file_format not in FORMATS:
        raise NotFoundError(
            f"there is no figure .{file_format}; the formats are {', '.join(FORMATS)}"
        )
    shown, _, question = specification["description"].partition(": ")
    subtitle = [*textwrap.wrap(shown, FOOTER_CHARACTERS)]
    if survey.is_test_run:
        subtitle.insert(0, TEST_SUBTITLE)
    footer = [
        line
        for text in (options.footnote, *source.splitlines())
        for line in textwrap.wrap(text, FOOTER_CHARACTERS)
    ]
    chart = {key: part for key, part in specification.items() if key not in ("$schema", "config")}
    framed = {
        "$schema": specification["$schema"],
        "description": specification["description"],
        "background": "#ffffff",
        "padding": 24,
        "spacing": 16,
        "title": {
            "text": textwrap.wrap(options.title or question or shown, TITLE_CHARACTERS),
            "subtitle": subtitle,
            "anchor": "start",
            "fontSize": 18,
            "subtitleFontSize": 13,
            "subtitlePadding": 6,
            "offset": 16,
            "color": INK,
            "subtitleColor": QUIET,
        },
        "vconcat": [chart, *([_footer(footer, _label_room(chart))] if footer else [])],
        "config": specification["config"],
    }
    if file_format == "json":
        return convert(framed, "json")
    size = FIGURE_SIZES[options.size]
    svg = fit_width(convert(framed, "svg").decode(), size.width)
    return convert_svg(svg, file_format, size.png_scale)


def _label_room(part: Any) -> int:
    """Return the pixels between the left edge of a chart and its plot."""
    if isinstance(part, Mapping):
        own = part["minExtent"] + part.get("labelPadding", 0) if "minExtent" in part else 0
        return max([own, *map(_label_room, part.values())])
    return max(map(_label_room, part), default=0) if isinstance(part, (list, tuple)) else 0


def _footer(lines: list[str], left: int) -> dict[str, Any]:
    """Return the lines below a chart, `left` pixels to the left of its axis."""
    mark = {"type": "text", "align": "left", "baseline": "top", "x": -left, "y": 0, "fontSize": 11}
    return {
        "data": {"values": [{"lines": lines}]},
        "mark": {**mark, "lineHeight": FOOTER_LINE_PIXELS, "color": QUIET},
        "encoding": {"text": {"field": "lines"}},
        "width": 1,
        "height": FOOTER_LINE_PIXELS * len(lines),
    }


SVG_WIDTH = re.compile(r'(?<=\s)width="([\d.]+)"')
SVG_HEIGHT = re.compile(r'(?<=\s)height="([\d.]+)"')


def fit_width(svg: str, width: int) -> str:
    """Return an SVG scaled to a width, at least as high as `RATIO` of it, on white."""
    natural_width, natural_height = (
        float(match[1]) for match in (SVG_WIDTH.search(svg), SVG_HEIGHT.search(svg)) if match
    )
    height = max(round(width * RATIO), math.ceil(natural_height * width / natural_width))
    inner = SVG_HEIGHT.sub(f'height="{height}"', SVG_WIDTH.sub(f'width="{width}"', svg, 1), 1)
    inner = inner.replace("<svg ", '<svg preserveAspectRatio="xMinYMin meet" ', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><rect width="100%" height="100%" fill="#ffffff"/>'
        f"{inner}</svg>"
    )


def convert_svg(svg: str, file_format: str, png_scale: float) -> bytes:
    """Return an SVG as svg, png or pdf."""
    if file_format == "svg":
        return svg.encode("utf-8")
    import vl_convert

    if file_format == "png":
        png: bytes = vl_convert.svg_to_png(svg, scale=png_scale)
        return png
    pdf: bytes = vl_convert.svg_to_pdf(svg)
    return pdf


def convert(specification: dict[str, Any], file_format: str, png_scale: float = PNG_SCALE) -> bytes:
    """Return a Vega-Lite specification in one of `FORMATS`."""
    if file_format == "json":
        return json.dumps(specification, ensure_ascii=False, indent=2).encode("utf-8")
    return convert_svg(render_svg(_renderable(specification)), file_format, png_scale)


NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot contain (XML 1.0, production 2)."""


def _renderable(specification: dict[str, Any]) -> str:
    """Return a specification as JSON that can be rendered.

    The renderer ends the whole process at a character that SVG cannot contain, and a link's title
    may have one.
    """

    def replaced(part: Any) -> Any:
        if isinstance(part, str):
            return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", part)
        if isinstance(part, Mapping):
            return {key: replaced(item) for key, item in part.items()}
        return [replaced(item) for item in part] if isinstance(part, (list, tuple)) else part

    return json.dumps(replaced(specification), ensure_ascii=False)
