"""The forest plot of a regression: odds ratios and intervals on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from survey.results.charts import (
    INK,
    LABEL_LINE_PIXELS,
    OPTION_AXIS,
    PALETTES,
    PANEL_CHARACTERS,
    PLOT_PIXELS,
    SCHEMA,
    config,
    dot_layer,
    interval_layers,
    wrap_label,
)
from survey.results.regression.sentences import (
    ANY_VALUE,
    format_interval,
    format_odds_ratio,
    predictor_text,
    rows_by_outcome,
    rows_by_predictor,
)
from survey.results.regression.table import RegressionResult, RegressionRow

AXIS_LIMIT = 100.0
"""The axis never extends beyond this odds ratio or its inverse: longer intervals get an arrow."""

MIN_END = 2.0
"""The axis extends at least to this odds ratio and its inverse."""

MAX_TICKS = 7
"""Maximum number of labels on the axis; if there are more, only powers of ten have labels."""


class ForestRow(NamedTuple):
    """One coefficient; `dot`, `low` and `high` are percent of the axis.

    `dot` is None without an estimate on the axis, `low` and `high` if any value is possible.
    `is_open_low` and `is_open_high` are true if the interval extends beyond the axis.
    """

    label: str
    value: str
    interval: str
    dot: float | None
    low: float | None
    high: float | None
    is_open_low: bool
    is_open_high: bool

    @property
    def text(self) -> str:
        """The odds ratio and its interval."""
        return f"{self.value} ({self.interval})" if self.value else self.interval


class ForestGroup(NamedTuple):
    """The coefficients of one predictor."""

    predictor: str
    reference: str
    rows: tuple[ForestRow, ...]


class Forest(NamedTuple):
    """The coefficients of one answer; all answers have the same axis.

    `reference` is the place of an odds ratio of 1.
    """

    option: str
    against: str
    groups: tuple[ForestGroup, ...]
    ticks: tuple[tuple[float, str], ...]
    reference: float


def forests(result: RegressionResult) -> list[Forest]:
    """Return a forest plot for each answer but the baseline; none without coefficients."""
    if result.is_suppressed:
        return []
    low, high = _axis_range(result)
    ticks = tuple(
        (_place(value, low, high), format_odds_ratio(value)) for value in _ticks(low, high)
    )
    return [
        Forest(
            rows[0].option_label,
            rows[0].against_option_label,
            tuple(
                ForestGroup(
                    predictor_text(result, predictor),
                    members[0].reference_option_label,
                    tuple(_forest_row(row, low, high) for row in members),
                )
                for predictor, members in rows_by_predictor(rows)
                # The intercept is not an odds ratio.
                if predictor
            ),
            ticks,
            _place(1.0, low, high),
        )
        for rows in rows_by_outcome(result)
    ]


def _forest_row(row: RegressionRow, low: float, high: float) -> ForestRow:
    interval = format_interval(row.conf_low, row.conf_high)
    if interval == ANY_VALUE:
        return ForestRow(row.predictor_option_label, "", interval, None, None, None, True, True)
    ratio = row.odds_ratio
    on_axis = ratio is not None and low <= ratio <= high
    start = low if row.conf_low is None else row.conf_low
    end = high if row.conf_high is None else row.conf_high
    return ForestRow(
        row.predictor_option_label,
        format_odds_ratio(ratio) if ratio is not None else "",
        interval,
        _place(ratio, low, high) if ratio is not None and on_axis else None,
        _place(start, low, high),
        _place(end, low, high),
        row.conf_low is None or row.conf_low < low,
        row.conf_high is None or row.conf_high > high,
    )


def _place(value: float, low: float, high: float) -> float:
    """Return 100 (log x - log low) / (log high - log low), within 0 to 100."""
    within = min(max(value, low), high)
    return round(100 * math.log(within / low) / math.log(high / low), 2)


def _steps() -> list[float]:
    """Return the possible ends of the axis: 1, 2 and 5 times powers of ten."""
    decades = round(math.log10(AXIS_LIMIT))
    steps = [digit * 10.0**power for power in range(-decades, decades) for digit in (1, 2, 5)]
    return [*steps, AXIS_LIMIT]


def _axis_range(result: RegressionResult) -> tuple[float, float]:
    """Return the closest steps around all odds ratios and ends of intervals within the limit."""
    numbers = [
        number
        for row in result.rows
        if row.predictor_id
        for number in (
            row.conf_low,
            row.odds_ratio,
            row.conf_high,
            # Room for the arrow of an open end.
            2 * row.conf_low if row.conf_low and row.conf_high is None else None,
            row.conf_high / 2 if row.conf_high and row.conf_low is None else None,
        )
        if number is not None and 1 / AXIS_LIMIT <= number <= AXIS_LIMIT
    ]
    steps = _steps()
    smallest, largest = (edge([*numbers, 1.0]) for edge in (min, max))
    low = max(step for step in steps if step <= max(smallest, steps[0]))
    high = min(step for step in steps if step >= min(largest, steps[-1]))
    return min(low, 1 / MIN_END), max(high, MIN_END)


def _ticks(low: float, high: float) -> list[float]:
    ticks = [step for step in _steps() if low <= step <= high]
    if len(ticks) <= MAX_TICKS:
        return ticks
    return [step for step in ticks if math.log10(step).is_integer()]


ROW_PIXELS = 28


def forest_chart(result: RegressionResult) -> dict[str, Any]:
    """Return the chart for a file: a plot for each answer and predictor, with the same axis."""
    low, high = _axis_range(result)
    charts = [chart for forest in forests(result) for chart in _forest_panels(forest, low, high)]
    level = 100 * result.options.level
    return {
        "$schema": SCHEMA,
        "description": f"Estimated odds ratios with {level:g}% intervals, adjusted for the other "
        f"predictors: {result.question.text}",
        "background": None,
        "spacing": 12,
        "vconcat": charts,
        "config": config(PALETTES["light"]),
    }


def _forest_panels(forest: Forest, low: float, high: float) -> Iterator[dict[str, Any]]:
    for number, group in enumerate(forest.groups):
        is_last = number == len(forest.groups) - 1
        heading = [f"{group.predictor} (against “{group.reference}”)"]
        if not number:
            heading.insert(0, f"Odds of “{forest.option}” against “{forest.against}”")
        yield _panel(group.rows, heading, (low, high), is_last=is_last)


def _panel(
    rows: Sequence[ForestRow], heading: list[str], ends: tuple[float, float], *, is_last: bool
) -> dict[str, Any]:
    low, high = ends
    n_lines = max(wrap_label(row.label).count("\n") + 1 for row in rows)
    scale = {
        "scale": {"type": "log", "domain": [low, high]},
        "axis": {
            "title": "odds ratio" if is_last else None,
            "values": _ticks(low, high),
            "grid": True,
            "format": "~g",
            "labels": is_last,
            "ticks": is_last,
            "domain": is_last,
        },
    }
    x = {"type": "quantitative", **scale}
    reference = {
        "mark": {"type": "rule", "color": INK, "strokeDash": [3, 3], "aria": False},
        "encoding": {"x": {"datum": 1, **x}, "y": {"value": 0}, "y2": {"value": "height"}},
    }
    line, first_end, last_end = interval_layers(scale)
    values = {
        "mark": {"type": "text", "align": "left", "fontSize": 13, "color": INK, "aria": False},
        "encoding": {"x": {"value": PLOT_PIXELS + 12}, "text": {"field": "value"}},
    }
    return {
        "title": {
            "text": [
                part for text in heading for part in wrap_label(text, PANEL_CHARACTERS).split("\n")
            ],
            "anchor": "start",
            "fontSize": 13,
            "color": INK,
        },
        "data": {"values": [_point(row, low, high) for row in rows]},
        "width": PLOT_PIXELS,
        "height": {"step": max(ROW_PIXELS, LABEL_LINE_PIXELS * n_lines + 4)},
        "encoding": {"y": OPTION_AXIS},
        "layer": [
            reference,
            _where("datum.low !== null", line),
            _where("datum.low !== null && !datum.is_open_low", first_end),
            _where("datum.low !== null && !datum.is_open_high", last_end),
            _where("datum.low !== null && datum.is_open_low", _arrow("low", "left", x)),
            _where("datum.low !== null && datum.is_open_high", _arrow("high", "right", x)),
            _where("datum.dot !== null", dot_layer(scale)),
            values,
        ],
    }


def _where(condition: str, layer: dict[str, Any]) -> dict[str, Any]:
    return {"transform": [{"filter": condition}], **layer}


def _arrow(field: str, side: str, x: dict[str, Any]) -> dict[str, Any]:
    mark = {"type": "point", "shape": f"triangle-{side}", "filled": True, "opacity": 1}
    return {
        "mark": {**mark, "size": 80, "aria": False},
        "encoding": {"x": {"field": field, **x}},
    }


def _point(row: ForestRow, low: float, high: float) -> dict[str, Any]:
    def number(place: float | None) -> float | None:
        return None if place is None else low * (high / low) ** (place / 100)

    return {
        "option": wrap_label(row.label),
        "dot": number(row.dot),
        "low": number(row.low),
        "high": number(row.high),
        "is_open_low": row.is_open_low,
        "is_open_high": row.is_open_high,
        "outside": "no",
        "value": row.text,
        "words": f"{row.label}: {row.text}",
    }
