"""Charts of a plan: margin against epsilon for several n, and simulated surveys side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from survey.errors import ChannelError, DesignError
from survey.estimator import Plan, SimulatedGrid, TradeOff, margin_of, tradeoff
from survey.estimator.core.arguments import LARGEST_N
from survey.estimator.planning.sample_size import LARGEST_EPSILON, rounded
from survey.mechanism import SubsetSelection
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.question import BaseQuestion
from survey.results.charts import ACCENT, FONT, INK, RULE, VEGA_LITE
from survey.results.plan.compute import (
    LEVEL,
    SHARES,
    asked_so,
    has_mean_alone,
    relative,
    with_channel,
)

KINDS = (".svg", ".png")
PNG_SCALE = 2
"""Pixels per unit, so that a PNG is sharp on paper and on dense screens."""

SHADES = ("#6fb7d2", "#3d93b4", "#1c7596", ACCENT, "#0a4a63", "#06303f")
"""From few reports to many: darker is surer, and readable in grey."""

WIDEST = 0.5
"""Margins above this say nothing about a share; the axis ends here."""

SHOWN = (-0.5, 1.5)
"""Estimates beyond are drawn at the edge as triangles."""

DRAWN_FROM, DRAWN_TO, DRAWN = 0.1, 8.0, 60
"""The epsilons that the trade-off is drawn over."""

BUILT = 20
"""Channels that are built for a chart without a formula."""

CONFIG = {
    "font": FONT,
    "view": {"stroke": None},
    "title": {"anchor": "start", "fontSize": 15, "fontWeight": 600, "color": INK, "offset": 12,
              "subtitleColor": INK, "subtitleFontSize": 12, "subtitlePadding": 6},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": RULE,
        "gridOpacity": 0.6,
        "tickColor": RULE,
        "domainColor": RULE,
    },
    "header": {"labelFontSize": 13, "labelColor": INK, "title": None},
}  # fmt: skip


def tradeoff_chart(options: int, epsilon: float, n: int) -> dict[str, Any]:
    """Margin against epsilon for about n reports, with this epsilon as a dot: a specification."""
    sizes = sorted({max(n // 4, 10), n, min(4 * n, LARGEST_N)})
    dot = min(max(epsilon, DRAWN_FROM), LARGEST_EPSILON)
    epsilons = np.geomspace(DRAWN_FROM, max(DRAWN_TO, dot), DRAWN).tolist()
    epsilons[-1] = max(DRAWN_TO, dot)
    found = tradeoff(epsilons, sizes, k=options)
    return tradeoff_specification(found, margin_of(n, epsilon=dot, k=options))


def built_chart(question: BaseQuestion, n: int) -> dict[str, Any]:
    """The same for any design that is stated by epsilon: its channels are built, not a formula.

    Of a number or a date the margin of the mean, as a part of the range. Raises DesignError for a
    design that no epsilon states.
    """
    build = DESIGNS[question.design].ways.get("epsilon")
    if build is None:
        raise DesignError(
            f"{question.design} is not stated by an epsilon: there is nothing to draw"
        )
    asked = asked_so(question)
    sizes = sorted({max(n // 4, 10), n, min(4 * n, LARGEST_N)})
    found = []
    for epsilon in np.geomspace(DRAWN_FROM, DRAWN_TO, BUILT).tolist():
        # Not every epsilon can be made of integers.
        with suppress(ChannelError):
            channel = build(question.asked, Fraction(round(1000 * epsilon), 1000))
            at = with_channel(asked, channel)
            found += [(size, channel.epsilon, relative(at, size)) for size in sizes]
    about = (
        "The mean, as a part of the range"
        if has_mean_alone(asked)
        else f"A share of {100 * SHARES[0]:g}%"
    )
    return built_specification(
        found, (asked.channel.epsilon, relative(asked, n)), f"{about}, {100 * LEVEL:g}% intervals"
    )


def has_chart(question: BaseQuestion) -> bool:
    """Whether there is anything to draw: a design that an epsilon states."""
    return is_grr(question) or "epsilon" in DESIGNS[question.design].ways


def is_grr(question: BaseQuestion) -> bool:
    """Whether the question is asked by generalized randomized response, which plans are for."""
    channel = question.channel
    return isinstance(channel, SubsetSelection) and channel.d == 1 and question.ticks == 0


def tradeoff_specification(found: TradeOff, plan: Plan | None = None) -> dict[str, Any]:
    """Margin of error over epsilon, one line for each number of reports, both axes logarithmic.

    A plan is drawn as a dot, its margin as a dashed line across, and said in words above.
    """
    lines = [
        {"epsilon": e, "margin": m, "reports": _reports(n)}
        for n, e, m in zip(*(a.ravel().tolist() for a in (found.n, found.epsilon, found.margin)),
                           strict=True)
        if m <= WIDEST
    ]  # fmt: skip
    names = [_reports(n) for n in found.n[:, 0].tolist()]
    last = {row["reports"]: row for row in lines}
    about = _about(found.options, found.share, found.level)
    layers = [_lines(lines, names), _names_at_the_end(list(last.values()))]
    if plan is not None:
        layers += _planned(plan)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {
            "text": "What privacy costs: the margin of error against epsilon",
            "subtitle": [about, *([] if plan is None else [_in_words(plan)])],
        },
        "width": 560,
        "height": 340,
        "padding": 16,
        "background": "white",
        "layer": layers,
        "resolve": {"scale": {"color": "shared"}},
        "config": CONFIG,
    }


def built_specification(
    found: Sequence[tuple[int, float, float]], dot: tuple[float, float], about: str
) -> dict[str, Any]:
    """The same of channels that were built one by one: (n, epsilon, margin), and a design's dot."""
    lines = [
        {"epsilon": e, "margin": m, "reports": _reports(n)} for n, e, m in found if m <= WIDEST
    ]
    names = [_reports(n) for n in sorted({n for n, _, _ in found})]
    last = {row["reports"]: row for row in lines}
    point = {"data": {"values": [{"epsilon": dot[0], "margin": dot[1]}]}}
    drawn = {
        **point,
        "mark": {"type": "point", "filled": True, "size": 90, "color": INK, "opacity": 1},
        "encoding": {"x": _epsilon_axis(), "y": _margin_axis()},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {
            "text": "What privacy costs: the margin of error against epsilon",
            "subtitle": [about],
        },
        "width": 560,
        "height": 340,
        "padding": 16,
        "background": "white",
        "layer": [
            _lines(lines, names),
            _names_at_the_end(list(last.values())),
            *([drawn] if dot[1] <= WIDEST else []),
        ],
        "resolve": {"scale": {"color": "shared"}},
        "config": CONFIG,
    }


def _lines(values: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    return {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": _epsilon_axis(), "y": _margin_axis(), "color": _shades(names)},
    }


def _names_at_the_end(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Each line is named where it ends, which is quicker to read than a legend."""
    return {
        "data": {"values": values},
        "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 12, "color": INK},
        "encoding": {
            "x": _epsilon_axis(),
            "y": _margin_axis(),
            "text": {"field": "reports"},
        },
    }


def _planned(plan: Plan) -> list[dict[str, Any]]:
    point = {"data": {"values": [{"epsilon": plan.epsilon, "margin": plan.margin}]}}
    return [
        {
            **point,
            "mark": {"type": "rule", "strokeDash": [4, 4], "color": INK, "opacity": 0.6},
            "encoding": {"y": _margin_axis()},
        },
        {
            **point,
            "mark": {"type": "point", "filled": True, "size": 90, "color": INK, "opacity": 1},
            "encoding": {"x": _epsilon_axis(), "y": _margin_axis()},
        },
    ]


def grid_specification(found: SimulatedGrid) -> dict[str, Any]:
    """Estimate and margin of one simulated survey per epsilon, a panel for each n."""
    columns = (found.n, found.epsilon, found.estimate, found.margin)
    points = [_simulated(*row) for row in zip(*(c.ravel().tolist() for c in columns), strict=True)]
    names = [_reports(n) for n in found.n[:, 0].tolist()]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {
            "text": "Simulated surveys: estimate and margin of error",
            "subtitle": [
                _about(found.options, found.share, found.level),
                "Each dot is one survey; the dashed line is the truth; triangles lie beyond.",
            ],
        },
        "data": {"values": points},
        "padding": 16,
        "background": "white",
        "facet": {"column": {"field": "reports", "type": "nominal", "sort": names}},
        "spec": {"width": 220, "height": 260, "layer": _panel(found)},
        "config": CONFIG,
    }


def _panel(found: SimulatedGrid) -> list[dict[str, Any]]:
    epsilons = found.epsilon[0]
    x = _epsilon_axis([float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5])
    x["axis"]["values"] = [0.001, 0.01, 0.1, 1, 10]
    y = {
        "type": "quantitative",
        "scale": {"domain": list(SHOWN), "nice": False},
        "axis": {"format": "%", "title": "Estimated share", "values": [-0.5, 0, 0.5, 1, 1.5]},
    }
    shapes = {
        "domain": ["no", "below", "above"],
        "range": ["circle", "triangle-down", "triangle-up"],
    }
    return [
        {
            "mark": {"type": "rule", "strokeDash": [4, 4], "color": INK, "opacity": 0.7},
            "encoding": {"y": {"datum": found.share, **y}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.4, "color": ACCENT},
            "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": ACCENT},
            "encoding": {
                "x": x,
                "y": {"field": "dot", **y},
                "shape": {"field": "outside", "type": "nominal", "legend": None, "scale": shapes},
            },
        },
    ]


def _simulated(n: int, epsilon: float, estimate: float, margin: float) -> dict[str, Any]:
    low, high = SHOWN
    return {
        "reports": _reports(n),
        "epsilon": epsilon,
        "dot": min(max(estimate, low), high),
        "low": min(max(estimate - margin, low), high),
        "high": min(max(estimate + margin, low), high),
        "outside": "below" if estimate < low else "above" if estimate > high else "no",
    }


def write_chart(specification: dict[str, Any], file: Path) -> None:
    """Write a chart as SVG or PNG, by the file's ending; DesignError for any other."""
    check_ending(file)
    if file.suffix.lower() == ".svg":
        file.write_text(chart_svg_of(specification), encoding="utf-8", newline="")
    else:
        import vl_convert

        text = json.dumps(specification)
        file.write_bytes(vl_convert.vegalite_to_png(text, vl_version=VEGA_LITE, scale=PNG_SCALE))


def chart_svg_of(specification: dict[str, Any]) -> str:
    """A chart as SVG."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(json.dumps(specification), vl_version=VEGA_LITE))


def check_ending(file: Path) -> None:
    """Refuse a file that is neither .svg nor .png, before anything is computed."""
    if file.suffix.lower() not in KINDS:
        raise DesignError(f"{file.name} must end in .svg or .png; write {file.stem}.svg")


def _epsilon_axis(domain: list[float] | None = None) -> dict[str, Any]:
    scale: dict[str, Any] = {"type": "log", "nice": False}
    return {
        "field": "epsilon",
        "type": "quantitative",
        "scale": scale | ({"domain": domain} if domain else {}),
        "axis": {
            "title": "epsilon (smaller is more private)",
            "values": [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10],
            "format": "~g",
            "labelOverlap": True,
            "grid": False,
        },
    }


def _margin_axis() -> dict[str, Any]:
    return {
        "field": "margin",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "title": "Margin of error",
            "values": [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5],
            "labelExpr": "'±' + format(datum.value * 100, '~g') + ' points'",
        },
    }


def _shades(names: list[str]) -> dict[str, Any]:
    places = np.linspace(0, len(SHADES) - 1, len(names)).round().astype(int)
    return {
        "field": "reports",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": names, "range": [SHADES[place] for place in places]},
    }


def _about(options: int, share: float, level: float) -> str:
    return f"A share of {100 * share:.3g}%, {options} options, {100 * level:.3g}% intervals"


def _in_words(plan: Plan) -> str:
    points = f"±{rounded(100 * plan.margin, decimals=1, digits=1)} points"
    return f"The dot: {_reports(plan.n)}, {points} at epsilon {plan.epsilon:.3g}"


def _reports(n: int) -> str:
    return f"{n:,} reports"
