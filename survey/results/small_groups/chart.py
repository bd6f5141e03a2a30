"""Chart of direct and model-based shares: a panel per answer, two dots per group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from survey.results.charts import (
    OPTION_AXIS,
    PALETTES,
    PERCENT_AXIS,
    PLOT_PIXELS,
    SCHEMA,
    config,
    dot_layer,
    interval_layer,
)
from survey.results.number_format import describe_share
from survey.results.small_groups.table import SmallGroupsResult

GROUP_PIXELS = 36
OFFSETS = {"direct": -7, "model": 7}
"""Vertical offset in pixels of each estimate from its group's line."""

DOT_SIZE = 60


def small_groups_chart(result: SmallGroupsResult) -> dict[str, Any]:
    """Return the chart: circles are direct estimates, dots below them model-based ones."""
    level = 100 * result.options.level
    return {
        "$schema": SCHEMA,
        "description": "Direct (circles) and model-based (dots) estimates of each group, with "
        f"{level:g}% intervals: {result.question.text}",
        "background": None,
        "data": {"values": list(_points(result))},
        "facet": {
            "field": "option",
            "type": "nominal",
            "sort": result.labels,
            "header": {"title": None, "labelAnchor": "start", "labelFontWeight": "bold"},
        },
        "columns": 1,
        "spacing": 16,
        "spec": {
            "width": PLOT_PIXELS,
            "height": {"step": GROUP_PIXELS},
            "encoding": {
                "y": {
                    "field": "group",
                    "type": "nominal",
                    "scale": {"domain": [group.name for group in result.groups]},
                    "axis": OPTION_AXIS["axis"],
                }
            },
            "layer": [layer for kind in OFFSETS for layer in _layers(kind)],
        },
        "config": config(PALETTES["light"]),
    }


def _layers(kind: str) -> Iterator[dict[str, Any]]:
    """Yield the intervals and the dots of one kind of estimate."""
    is_model = kind == "model"
    for layer, mark in (
        (interval_layer(PERCENT_AXIS), {}),
        (dot_layer(PERCENT_AXIS, size=DOT_SIZE), {"filled": is_model, "strokeWidth": 2}),
    ):
        yield {
            **layer,
            "transform": [{"filter": {"field": "kind", "equal": kind}}],
            "mark": {**layer["mark"], **mark, "yOffset": OFFSETS[kind]},
        }


def _points(result: SmallGroupsResult) -> Iterator[dict[str, Any]]:
    for group, rows in result.rows_by_group:
        for label, row in zip(result.labels, rows, strict=True):
            for kind, words in (("direct", "direct"), ("model", "model-based")):
                estimate, low, high = (
                    getattr(row, f"{kind}_{name}") for name in ("estimate", "conf_low", "conf_high")
                )
                if estimate is None:
                    continue
                yield {
                    "option": label,
                    "group": group.name,
                    "kind": kind,
                    "dot": min(max(estimate, 0.0), 1.0),
                    "low": low,
                    "high": high,
                    "outside": "below" if estimate < 0 else "above" if estimate > 1 else "no",
                    "words": f"{group.name}, {label}, {words}: "
                    f"{describe_share(estimate, low, high)}",
                }
