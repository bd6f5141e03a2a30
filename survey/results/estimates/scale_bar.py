"""The chart of a scale: one stacked bar that diverges from the middle of the scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from survey.results.charts import (
    AXIS_STEP,
    INK,
    LABEL_PADDING,
    LABEL_PIXELS,
    PALETTES,
    PLOT_PIXELS,
    SCALE_COLORS,
    SCHEMA,
    SHADES,
    config,
)
from survey.results.estimates.result import QuestionResult
from survey.results.number_format import percent, share_texts

MAX_POINTS = 11
"""Maximum number of points in one bar; longer scales have a bar for each point."""

LABEL_ROOM = 9.0
"""Minimum width of a segment, in percent of the axis, for its value above it on a phone."""

SIGNIFICANT = 0.005
"""Minimum difference between drawn and printed shares that the chart mentions."""


class Segment(NamedTuple):
    """One answer; its position and width are percentages of the axis.

    `shade` names its color in `SCALE_COLORS`; it is empty for answers outside the scale, which
    have no position. `truth` is the true share of a test run in words.
    """

    label: str
    value: str
    interval: str
    start: float
    width: float
    shade: str
    truth: str

    @property
    def text(self) -> str:
        """The estimate and its interval."""
        return f"{self.value} ({self.interval})" if self.value else self.interval

    @property
    def has_room(self) -> bool:
        """Whether the value fits above the segment."""
        return bool(self.value) and self.width >= LABEL_ROOM


class DivergingBar(NamedTuple):
    """Segments in the order of the scale, answers outside it, and an axis with its middle at 50.

    `is_adjusted` is true if the bar shows the most likely shares and these differ from the unbiased
    estimates in its labels. Unbiased estimates can be negative, but segments cannot.
    """

    segments: tuple[Segment, ...]
    apart: tuple[Segment, ...]
    ticks: tuple[tuple[float, str], ...]
    is_adjusted: bool


def has_diverging_bar(result: QuestionResult) -> bool:
    """Return whether a question's answers are a scale whose shares are shown."""
    question = result.question
    n_answers = len(question.options) - len(_opt_outs(result))
    is_shown = bool(result.details) and all(row.estimate is not None for row in result.shares)
    return question.kind.is_ordered and is_shown and 1 < n_answers <= MAX_POINTS


def diverging_bar(
    result: QuestionResult,
    true_shares: Mapping[str, float] = MappingProxyType({}),
    end: float = AXIS_STEP,
) -> DivergingBar:
    """Return the bar: lower answers to the left of the middle, higher ones to the right.

    The axis extends at least to `end` on each side, so that several bars can share an axis.
    With an odd number of answers, half of the middle answer is on each side. Shares are among all
    respondents, as in the table. Raises ValueError for a question without such a bar.
    """
    if not has_diverging_bar(result):
        raise ValueError(f"question {result.question.id} has no shares of a scale to show")
    opt_outs = _opt_outs(result)
    answers = [place for place, row in enumerate(result.shares) if row.option_id not in opt_outs]
    shares = {place: result.details[place].display for place in answers}
    half = len(answers) / 2
    below = sum(shares[place] * min(max(half - i, 0.0), 1.0) for i, place in enumerate(answers))
    above = sum(shares.values()) - below
    end = max(AXIS_STEP * math.ceil(max(below, above) / AXIS_STEP - 1e-9), end)

    def segment(place: int, start: float = 0.0, shade: str = "") -> Segment:
        row = result.shares[place]
        true_share = true_shares.get(row.option_id)
        return Segment(
            row.option_label,
            *share_texts(row.estimate, row.conf_low, row.conf_high),
            round(50 + 50 * start / end, 2),
            round(50 * shares.get(place, 0.0) / end, 2),
            shade,
            percent(true_share),
        )

    segments, start = [], -below
    for place, shade in zip(answers, shades(len(answers)), strict=True):
        segments.append(segment(place, start, shade))
        start += shares[place]
    apart = [segment(place) for place in range(len(result.shares)) if place not in answers]
    n_steps = round(end / AXIS_STEP)
    steps = range(-n_steps, n_steps + 1)
    ticks = tuple((50 + 50 * i / n_steps, percent(AXIS_STEP * abs(i))) for i in steps)
    gaps = [abs(shares[place] - (result.shares[place].estimate or 0.0)) for place in answers]
    return DivergingBar(tuple(segments), tuple(apart), ticks, max(gaps) > SIGNIFICANT)


def bars_on_one_axis(results: Sequence[QuestionResult]) -> list[DivergingBar | None]:
    """Return the bars of several scales on the same axis; None for scales without a bar."""
    can_show = [has_diverging_bar(result) for result in results]
    bars = [diverging_bar(r) for r, is_shown in zip(results, can_show, strict=True) if is_shown]
    end = max((AXIS_STEP * (len(bar.ticks) // 2) for bar in bars), default=AXIS_STEP)
    return [
        diverging_bar(result, end=end) if is_shown else None
        for result, is_shown in zip(results, can_show, strict=True)
    ]


def _opt_outs(result: QuestionResult) -> set[str]:
    return {result.question.opt_out, result.question.not_applicable} - {""}


def shades(n: int) -> list[str]:
    """Return the colors of a scale, which become stronger towards its ends.

    >>> shades(5)
    ['low-5', 'low-1', 'middle', 'high-1', 'high-5']
    >>> shades(4)
    ['low-5', 'low-1', 'high-1', 'high-5']
    """
    half = n // 2
    steps = (SHADES - 1) / max(half - 1, 1)
    strengths = [SHADES - round(i * steps) for i in range(half)]
    lower = [f"low-{strength}" for strength in strengths]
    upper = [f"high-{strength}" for strength in reversed(strengths)]
    return [*lower, *(["middle"] if n % 2 else []), *upper]


LEFT, RIGHT = LABEL_PIXELS + LABEL_PADDING, 100
"""Pixels by which the bar extends beyond the plot of the rows below it, to the left and right."""

FILE_LABEL_ROOM = 6.0
"""Minimum width of a segment, in percent of a file's axis, for its value above it."""

SQUARE_PIXELS = 9
BAR_PIXELS, TEXT_PIXELS = 28, 18
"""Heights of the bar in a file, and of the values above it."""


def diverging_chart(result: QuestionResult, rows: dict[str, Any], mean: str) -> dict[str, Any]:
    """Return the chart for a file: the bar, the mean in words, and the chart of rows below.

    The rows name the answers and show their intervals, in the colors of the bar.
    """
    bar = diverging_bar(result)
    axis = {
        "title": None,
        "values": [place for place, _ in bar.ticks],
        "labelExpr": "format(abs(datum.value - 50) * "
        f"{2 * AXIS_STEP * (len(bar.ticks) // 2) / 100:g}, '.0%')",
        "grid": True,
    }
    x = {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [0, 100], "nice": False, "range": [-LEFT, PLOT_PIXELS + RIGHT]},
        "axis": axis,
    }
    centre = {"y": TEXT_PIXELS - 4, "y2": TEXT_PIXELS + BAR_PIXELS + 4}
    names = [segment.shade for segment in bar.segments]
    color = {
        "field": "shade",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": names, "range": [SCALE_COLORS[name] for name in names]},
    }
    layers = [
        {
            "mark": {"type": "bar", "height": BAR_PIXELS, "stroke": "#ffffff", "aria": False},
            "encoding": {
                "x": x,
                "x2": {"field": "end"},
                "color": color,
                "description": {"field": "words"},
            },
        },
        {
            "transform": [{"filter": "datum.label != ''"}],
            "mark": {
                "type": "text",
                "dy": -BAR_PIXELS / 2 - TEXT_PIXELS / 2,
                "fontSize": 13,
                "fontWeight": "bold",
                "color": INK,
                "aria": False,
            },
            "encoding": {"x": {**x, "field": "centre"}, "text": {"field": "label"}},
        },
        {
            "data": {"values": [{"start": 50}]},
            "mark": {"type": "rule", "color": INK, "strokeWidth": 2, "aria": False},
            "encoding": {"x": x, **{name: {"value": place} for name, place in centre.items()}},
        },
    ]
    panel = {
        "data": {"values": list(_segment_points(bar.segments))},
        "width": PLOT_PIXELS,
        "height": BAR_PIXELS + 2 * TEXT_PIXELS,
        "layer": layers,
    }
    return {
        "$schema": SCHEMA,
        "description": rows["description"],
        "background": None,
        "vconcat": [panel, *([_sentence(mean)] if mean else []), _with_squares(rows, bar)],
        "config": config(PALETTES["light"]),
    }


def _segment_points(segments: Sequence[Segment]) -> Iterator[dict[str, Any]]:
    for segment in segments:
        yield {
            "start": segment.start,
            "end": round(segment.start + segment.width, 2),
            "centre": round(segment.start + segment.width / 2, 2),
            "shade": segment.shade,
            "label": segment.value if segment.width >= FILE_LABEL_ROOM else "",
            "words": f"{segment.label}: {segment.text}",
        }


def _sentence(text: str) -> dict[str, Any]:
    mark = {"type": "text", "align": "left", "x": -LEFT, "fontSize": 13, "color": INK}
    return {
        "data": {"values": [{"text": text}]},
        "mark": mark,
        "encoding": {"text": {"field": "text"}},
        "width": 1,
        "height": 16,
    }


def _with_squares(rows: dict[str, Any], bar: DivergingBar) -> dict[str, Any]:
    """Return the chart of rows with a square beside each answer, in the color of its segment."""
    chart = {key: part for key, part in rows.items() if key not in ("$schema", "config")}
    y = chart["encoding"]["y"]
    axis = {**y["axis"], "labelPadding": LABEL_PADDING + SQUARE_PIXELS}
    points = [
        {**point, "color": SCALE_COLORS[segment.shade]} if segment.shade else point
        for point, segment in zip(rows["data"]["values"], [*bar.segments, *bar.apart], strict=True)
    ]
    squares = {
        "transform": [{"filter": "isValid(datum.color)"}],
        "mark": {"type": "point", "shape": "square", "filled": True, "opacity": 1, "aria": False},
        "encoding": {
            "x": {"value": -SQUARE_PIXELS},
            "size": {"value": SQUARE_PIXELS**2},
            "color": {"field": "color", "type": "nominal", "scale": None},
        },
    }
    return {
        **chart,
        "encoding": {"y": {**y, "axis": axis}},
        "data": {"values": points},
        "layer": [*chart["layer"], squares],
    }
