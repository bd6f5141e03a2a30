"""Charts of one question in several groups: small multiples with one panel for each answer.

A page draws `GroupPanels` as lists and `LinePanels` as SVG; files are Vega-Lite charts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from survey.results.charts import (
    INK,
    LABEL_LINE_PIXELS,
    OPTION_AXIS,
    PALETTES,
    PERCENT_AXIS,
    PLOT_PIXELS,
    QUIET,
    SCHEMA,
    axis_end,
    chart_point,
    config,
    dot_layer,
    facets,
    interval_layers,
    value_axis,
    wrap_label,
)
from survey.results.estimates.chart import Bar, Bars, axis_position, percent_ticks, row_texts
from survey.results.estimates.table import EstimateRow, row_label
from survey.results.groups import first_day
from survey.results.number_format import number_format
from survey.results.trend.request import PART_LABELS
from survey.results.trend.table import DatedNote, TrendGroup, TrendResult


class GroupPanel(NamedTuple):
    """One answer or statistic: a bar for each group."""

    label: str
    bars: Bars


def group_panels(result: TrendResult) -> list[GroupPanel]:
    """Return a panel for each answer with a bar for each group, all on the same axis.

    The first group contains all respondents; its estimate is the reference line of each panel.
    A suppressed group keeps its row, with the reason why it has no bar.
    """
    low, high = _axis_range(result)

    def bar(group: TrendGroup, row: EstimateRow, *, is_total: bool) -> Bar:
        if row.conf_low is None or row.conf_high is None:
            return Bar(group.name, "", group.suppression_text, None, 0.0, 0.0, is_missing=True)
        value, interval = row_texts(group.result, row)
        return Bar(
            group.name,
            value,
            interval,
            None if row.estimate is None else axis_position(row.estimate, low, high),
            axis_position(row.conf_low, low, high),
            axis_position(row.conf_high, low, high),
            is_leading=is_total,
        )

    panels = []
    for place, column in enumerate(result.columns):
        bars = tuple(
            bar(group, group.rows[place], is_total=number == 0)
            for number, group in enumerate(result.groups)
        )
        panels.append(GroupPanel(row_label(column), Bars(bars, tuple(_ticks(result)), bars[0].dot)))
    return panels


class Point(NamedTuple):
    """An estimate in a line panel; positions are percent of the plot from its top left corner.

    `label` is the estimate in words if there is room for it, `text` the tooltip, `key` the index
    of the group's row in the table.
    """

    x: float
    y: float
    low: float
    high: float
    text: str
    label: str
    key: int


class Gap(NamedTuple):
    """A group without an estimate: its position, and the reason."""

    x: float
    text: str
    key: int


class LinePanel(NamedTuple):
    """One answer or statistic over time: runs of points without a gap between them."""

    label: str
    runs: tuple[tuple[Point, ...], ...]
    gaps: tuple[Gap, ...]
    summary: str

    @property
    def points(self) -> list[Point]:
        """The points of all runs."""
        return [point for run in self.runs for point in run]

    @property
    def bands(self) -> list[str]:
        """The corners of the area between the ends of the intervals, for each run."""
        return [
            _corners([*((p.x, p.high) for p in run), *((p.x, p.low) for p in reversed(run))])
            for run in self.runs
            if len(run) > 1
        ]

    @property
    def lines(self) -> list[str]:
        """The corners of the line through the points of each run."""
        return [_corners((p.x, p.y) for p in run) for run in self.runs if len(run) > 1]


class Mark(NamedTuple):
    """Notes on one day or on days close to each other: a line for each day, and one label.

    `x` is the position of the label, `width` its width in pixels, `text` the tooltip.
    """

    x: float
    label: str
    width: int
    lines: tuple[float, ...]
    text: str


class LinePanels(NamedTuple):
    """A panel for each answer, with common axes; ticks have a position and a label.

    `note_summary` describes the marks for screen readers.
    """

    panels: tuple[LinePanel, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    marks: tuple[Mark, ...]
    gaps: tuple[str, ...]
    note_summary: str


INSET = 4.0
"""Per cent of a plot's width to the left of its first point and to the right of its last."""

CHARACTER_WIDTH = 2.7
"""Per cent of a plot's width that a character needs where the plot is narrowest."""


MARK_DISTANCE = 7.0
"""Per cent of a plot's width below which two marks share a label."""


def line_panels(result: TrendResult) -> LinePanels:
    """Return a panel for each answer over time or versions, all on the same axes.

    Periods are placed by their first days, versions at equal distances. A group without an estimate
    interrupts the line. The axis extends to a note in the last period.
    """
    x = _scale(result)
    xs = [x(place) for place in _places(result)]
    # The label of several days that were released together is the first day.
    names = [group.name.partition("/")[0] for group in result.groups]
    panels = tuple(_line_panel(result, place, xs) for place in range(len(result.columns)))
    return LinePanels(
        panels,
        tuple(_spaced(list(zip(xs, names, strict=True)))),
        tuple((100 - place, text) for place, text in _ticks(result)),
        tuple(_mark(run) for run in _note_runs(result)),
        tuple(_gap_texts(result)),
        ", ".join(f"{note.number} on {note.day}" for note in result.marks),
    )


def _scale(result: TrendResult) -> Callable[[float], float]:
    """Return the function that places a day or a number on the page's plot, in percent."""
    places = _places(result)
    first = min(places)
    last = max([*places, *(note.day.toordinal() for note in result.marks)])
    return lambda place: round(INSET + axis_position(place, first, last) * (1 - 2 * INSET / 100), 2)


NoteRun = Sequence[tuple[float, DatedNote]]
"""Notes that share a label, with their positions."""


def _note_runs(result: TrendResult) -> Iterator[NoteRun]:
    """Yield the runs of notes that are too close together for separate labels."""
    x = _scale(result)
    notes = [(x(note.day.toordinal()), note) for note in result.marks]
    start = 0
    for end in range(1, len(notes) + 1):
        if end == len(notes) or notes[end][0] - notes[end - 1][0] >= MARK_DISTANCE:
            yield notes[start:end]
            start = end


def _run_label(run: NoteRun) -> str:
    first, last = run[0][1].number, run[-1][1].number
    return str(first) if first == last else f"{first}–{last}"


def _mark(run: NoteRun) -> Mark:
    places, label = [place for place, _ in run], _run_label(run)
    text = "; ".join(f"{note.number}. {note.day}: {note.text}" for _, note in run)
    middle = round((places[0] + places[-1]) / 2, 2)
    return Mark(middle, label, 10 + 8 * len(label), tuple(dict.fromkeys(places)), text)


def _places(result: TrendResult) -> list[float]:
    """Return the position of each group: days for periods, whole numbers for versions."""
    return [
        first_day(group.period).toordinal() if group.period else number
        for number, group in enumerate(result.groups)
    ]


def _line_panel(result: TrendResult, column: int, xs: Sequence[float]) -> LinePanel:
    low, high = _axis_range(result)
    rows = [group.rows[column] for group in result.groups]
    shown = [key for key, row in enumerate(rows) if row.estimate is not None]
    values = {key: row_texts(result.groups[key].result, rows[key]) for key in shown}
    words = {key: value or interval for key, (value, interval) in values.items()}
    labelled = dict(_spaced([(xs[key], words[key]) for key in shown]))

    def point(key: int) -> Point:
        row, (value, interval) = rows[key], values[key]
        figures = f"{value} ({interval})" if value else interval
        estimate, start, end = (
            100 - axis_position(number or 0.0, low, high)
            for number in (row.estimate, row.conf_low, row.conf_high)
        )
        text = f"{result.groups[key].name}: {figures}"
        return Point(xs[key], estimate, start, end, text, labelled.get(xs[key], ""), key)

    runs = tuple(
        tuple(point(key) for key in keys)
        for is_shown, keys in groupby(range(len(rows)), key=lambda key: key in values)
        if is_shown
    )
    gaps = tuple(
        Gap(xs[key], f"{group.name}: {group.suppression_text}", key)
        for key, group in enumerate(result.groups)
        if key not in values
    )
    ends = [f"{words[key]} ({result.groups[key].name})" for key in dict.fromkeys(shown)]
    summary = f"from {ends[0]} to {ends[-1]}" if len(ends) > 1 else "".join(ends)
    return LinePanel(row_label(result.columns[column]), runs, gaps, summary)


def _gap_texts(result: TrendResult) -> Iterator[str]:
    """Yield the reasons why groups have no point; consecutive groups share a reason."""
    suppressed = [
        (group.name, group.suppression_text)
        for group in result.groups
        if all(row.estimate is None for row in group.rows)
    ]
    for text, members in groupby(suppressed, key=lambda member: member[1]):
        names = [name for name, _ in members]
        listed = names if len(names) <= 3 else [names[0], "…", names[-1]]
        yield f"{', '.join(listed)}: {text[0].lower()}{text[1:]}"


def _spaced(labels: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the labels that fit; the last and the first have priority over the others."""
    chosen: list[tuple[float, str]] = []
    for place, text in [*labels[-1:], *labels[:-1]]:
        if all(
            abs(place - other) >= CHARACTER_WIDTH * (len(text) + len(other_text)) / 2 + 1
            for other, other_text in chosen
        ):
            chosen.append((place, text))
    return sorted(chosen)


def _corners(corners: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in corners)


def _axis_range(result: TrendResult) -> tuple[float, float]:
    """Return the ends of the axis; an axis of shares ends where the page's bars end."""
    grid = result.question.grid
    if result.request.part in ("mean", "median") and grid is not None:
        return grid.values[0], grid.values[-1]
    return 0.0, axis_end(result.rows)


def _ticks(result: TrendResult) -> list[tuple[float, str]]:
    """Return the places of the axis in percent, with their labels."""
    low, high = _axis_range(result)
    if result.request.part not in ("mean", "median"):
        return percent_ticks(high)
    formatter = number_format(result.question, "median")
    return [(place, formatter.number(low + place / 100 * (high - low))) for place in (0, 50, 100)]


GROUP_PIXELS = 28
PANEL_PIXELS = 120
PANEL_WIDTH = 420
"""Width of a file's panel over time in pixels."""

INSET_PIXELS = 16
"""Room beside the first and the last date of a file, so that values do not cover the axis."""

VALUE_PIXELS = 44
"""Room for the numbers of a file's vertical axis."""

MAX_LABELLED = 8
"""Maximum number of periods for which a file prints every value."""

ORDINAL_PERIODS = 6
"""Up to this many periods have equal distances on a file's axis, however far apart they are."""


def trend_chart(result: TrendResult) -> dict[str, Any]:
    """Return the chart for a file; groups are rows, periods and versions run from left to right.

    Suppressed groups have no dot and interrupt the line.
    """
    panel = _links_panel(result) if result.request.over == "links" else _time_panel(result)
    level = 100 * result.options.level
    return {
        "$schema": SCHEMA,
        "description": f"{PART_LABELS[result.request.part]}, estimated, with {level:g}% intervals: "
        f"{result.question.text}",
        "background": None,
        "data": {"values": list(_points(result))},
        "facet": facets([row_label(row) for row in result.columns]),
        "columns": 1,
        "spacing": 16,
        "spec": panel,
        "config": config(PALETTES["light"]),
    }


def _points(result: TrendResult) -> Iterator[dict[str, Any]]:
    low, high = _axis_range(result)
    labelled, run = _labelled_positions(result), 0
    for group in result.groups:
        # Each gap begins a new run, so that no line crosses it.
        run += all(row.estimate is None for row in group.rows)
        for row in group.rows:
            if row.estimate is not None:
                description = f"{group.name}: {group.result.describe(row)}"
                value, interval = row_texts(group.result, row)
                yield {
                    **chart_point(row, row_label(row), description, low, high),
                    "group": wrap_label(group.name),
                    "when": _position(group),
                    "run": run,
                    "value": f"{value} ({interval})" if value else interval,
                    "label": (value or interval) if _position(group) in labelled else "",
                }


def _position(group: TrendGroup) -> str:
    """Return the first day of a period, or the name of another group."""
    return first_day(group.period).isoformat() if group.period else group.name


def _estimate_axis(result: TrendResult) -> dict[str, Any]:
    low, high = _axis_range(result)
    if result.request.part in ("mean", "median"):
        return value_axis(result.question, low, high)
    values = [high * place / 100 for place, _ in _ticks(result)]
    axis = {**PERCENT_AXIS["axis"], "values": values}
    return {"scale": {"domain": [0, high]}, "axis": axis}


def _links_panel(result: TrendResult) -> dict[str, Any]:
    names = [wrap_label(group.name) for group in result.groups]
    n_lines = max(name.count("\n") + 1 for name in names)
    groups = {
        "field": "group",
        "type": "nominal",
        # The domain lists every group, so that a suppressed group keeps its row.
        "scale": {"domain": names},
        "axis": OPTION_AXIS["axis"],
    }
    mark = {"type": "text", "align": "left", "fontSize": 13, "aria": False}
    values = {
        "mark": mark,
        "encoding": {"x": {"value": PLOT_PIXELS + 12}, "text": {"field": "value"}},
    }
    return {
        "width": PLOT_PIXELS,
        "height": {"step": max(GROUP_PIXELS, LABEL_LINE_PIXELS * n_lines + 4)},
        "encoding": {"y": groups},
        "layer": [
            *interval_layers(_estimate_axis(result)),
            dot_layer(_estimate_axis(result)),
            values,
        ],
    }


def _time_panel(result: TrendResult) -> dict[str, Any]:
    when: dict[str, Any] = {"field": "when", "axis": {"title": None, "labelOverlap": True}}
    positions = [_position(group) for group in result.groups]
    is_long = result.request.over == "trend" and len(positions) > ORDINAL_PERIODS
    # Notes can lie between periods, so they need an axis of dates.
    if is_long or result.marks:
        when |= {"type": "temporal", "timeUnit": "utcyearmonthdate"}
        when["scale"] = {"type": "utc", "padding": INSET_PIXELS}
        when["axis"] |= {"format": "%-d %b %y", "tickCount": ORDINAL_PERIODS, "grid": False}
    else:
        when |= {"type": "ordinal", "scale": {"domain": positions}}
        when["axis"] |= {"labelAngle": 0, "labelExpr": _label_expression(result)}
    axis = _estimate_axis(result)
    # The room for the numbers is fixed, so that the text below the figure is aligned with them.
    axis = {**axis, "axis": {**axis["axis"], "minExtent": VALUE_PIXELS}}
    y = {"field": "dot", "type": "quantitative", **axis}
    line = {
        "mark": {"type": "line", "strokeWidth": 2, "aria": False},
        "encoding": {"y": y, "detail": {"field": "run"}},
    }
    values = {
        "mark": {"type": "text", "dy": -10, "fontSize": 13, "fontWeight": "bold", "aria": False},
        "encoding": {"y": {**y, "field": "high"}, "text": {"field": "label"}},
    }
    return {
        "width": PANEL_WIDTH,
        "height": PANEL_PIXELS,
        "encoding": {"x": when},
        "layer": [
            *_note_layers(result),
            line,
            *interval_layers(axis, "y"),
            dot_layer(axis, "y"),
            values,
        ],
    }


def _note_layers(result: TrendResult) -> list[dict[str, Any]]:
    """Return the layers that mark notes with numbered lines; the figure lists the notes below."""
    if not result.marks:
        return []
    lines = [
        {
            "when": note.day.isoformat(),
            "words": f"Note {note.number}, {note.day}: {note.text}",
        }
        for note in result.marks
    ]
    labels = [
        {"when": run[0][1].day.isoformat(), "number": _run_label(run)} for run in _note_runs(result)
    ]
    rule = {"type": "rule", "color": QUIET, "strokeDash": [4, 3], "strokeWidth": 1}
    text = {"type": "text", "color": INK, "fontSize": 11, "align": "left", "aria": False}
    return [
        {
            "data": {"values": lines},
            "mark": rule,
            "encoding": {"description": {"field": "words"}},
        },
        {
            "data": {"values": labels},
            "mark": {**text, "dx": 3, "baseline": "top"},
            "encoding": {"y": {"value": 0}, "text": {"field": "number"}},
        },
    ]


def note_lines(result: TrendResult) -> list[str]:
    """Return the list of the marked notes, for the lines below a file's chart."""
    return [f"{note.number}. {note.day}: {note.text}" for note in result.marks]


def _labelled_positions(result: TrendResult) -> list[str]:
    """Return the positions whose values a file prints: all if they are few, otherwise both ends."""
    positions = [
        _position(group)
        for group in result.groups
        if any(row.estimate is not None for row in group.rows)
    ]
    return positions if len(positions) <= MAX_LABELLED else [positions[0], positions[-1]]


def _label_expression(result: TrendResult) -> str:
    """Label each position with its group's name instead of its first day."""
    names = {_position(group): group.name for group in result.groups}
    return f"{json.dumps(names)}[datum.value]"
