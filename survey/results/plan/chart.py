"""Charts of a plan as Vega-Lite specifications: margin against epsilon, and simulated surveys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
from survey.questionnaire.kinds import BaseQuestion
from survey.results.charts import (
    ACCENT,
    INK,
    PALETTES,
    SCHEMA,
    Palette,
    config,
    convert,
    dot_layer,
    interval_layers,
)
from survey.results.number_format import percent
from survey.results.plan.compute import LEVEL, SHARES, planned_margin, plans_mean, to_published
from survey.results.plan.survey_design import SurveyDesign, SurveyPlan

FORMATS = ("svg", "png")
PNG_SCALE = 2
"""Pixels per unit, so that a PNG is sharp on paper and on dense screens."""

SHADES: Mapping[str, Sequence[str]] = {
    "light": ("#6fb7d2", "#4d97b3", "#2b7896", "#0c5b78", "#083f53", "#04222e"),
    "dark": ("#1d5f78", "#387f9b", "#55a0bd", "#7abfd9", "#b0ddee", "#f2fcff"),
}
"""Colors from few reports to many by palette; they can be told apart in grey."""

LARGEST_MARGIN = 0.5
"""The axis ends here: larger margins say nothing about a share."""

ESTIMATE_RANGE = (-0.5, 1.5)
"""Estimates outside this range are drawn at its ends as triangles."""

LEAST_EPSILON, MOST_EPSILON = 0.1, 8.0
"""Range of the epsilon axis of a question's chart."""

FORMULA_POINTS = 60
CHANNEL_POINTS = 20
"""Points of a line, where margins come from a formula and where channels have to be built."""

CHART_CONFIG = config(PALETTES["light"])
CONFIG = {
    **CHART_CONFIG,
    "title": {"anchor": "start", "fontSize": 15, "fontWeight": 600, "color": INK, "offset": 12,
              "subtitleColor": INK, "subtitleFontSize": 12, "subtitlePadding": 6},
    "axis": {**CHART_CONFIG["axis"], "labelFontSize": 12, "titleFontSize": 12, "gridOpacity": 0.6},
    "header": {"labelFontSize": 13, "labelColor": INK, "title": None},
}  # fmt: skip

Specification = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""


def tradeoff_chart(options: int, epsilon: float, n: int, palette: str = "") -> Specification:
    """Return the margin against epsilon for about n reports, with a dot at this epsilon.

    With a palette, the chart is narrow and has no title, for use on a page.
    """
    dot = min(max(epsilon, LEAST_EPSILON), LARGEST_EPSILON)
    last = max(MOST_EPSILON, dot)
    epsilons = np.geomspace(LEAST_EPSILON, last, FORMULA_POINTS).tolist()
    epsilons[-1] = last
    margins = tradeoff(epsilons, _sizes_around(n), k=options)
    return tradeoff_specification(margins, margin_of(n, epsilon=dot, k=options), palette)


def design_chart(question: BaseQuestion, n: int, palette: str = "") -> Specification:
    """Return the margin against epsilon for a design without a formula, computed from its channels.

    For numbers and dates, it is the margin of the mean as a fraction of the range. `palette` is
    that of `tradeoff_chart`. Raises DesignError if the design has no parameter epsilon.
    """
    build = DESIGNS[question.design].ways.get("epsilon")
    if build is None:
        raise DesignError(f"{question.design} has no parameter epsilon, so there is no chart")
    published = to_published(question)
    points = []
    for epsilon in np.geomspace(LEAST_EPSILON, MOST_EPSILON, CHANNEL_POINTS).tolist():
        # For some values of epsilon no channel has integer weights.
        with suppress(ChannelError):
            channel = build(question.answer_space, Fraction(round(1000 * epsilon), 1000))
            variant = replace(published, channel=channel)
            points += [
                (size, channel.epsilon, planned_margin(variant, size)) for size in _sizes_around(n)
            ]
    quantity = (
        "The mean, as a fraction of the range"
        if plans_mean(published)
        else f"A share of {100 * SHARES[0]:g}%"
    )
    margin = planned_margin(published, n)
    colours = PALETTES[palette or "light"]
    dot = [_dot(published.channel.epsilon, margin, colours)] if margin <= LARGEST_MARGIN else []
    subtitle = [f"{quantity}, {100 * LEVEL:g}% intervals"]
    return _margin_specification(points, subtitle, dot, palette)


MAX_TICKS = 12
"""Maximum number of numbers of groups on the axis of a chart."""


def survey_design_chart(
    plan: SurveyPlan, present: SurveyDesign | None, palette: str = ""
) -> Specification:
    """Return the chart of every question's margin against the number of groups asked per person.

    The chart shows the designs that divide the questions into the same groups as the recommended
    one. A thick line is the typical margin, with a dot at the recommended design; a dashed line is
    the typical margin of the present design. With a palette, the chart is narrow and has no title,
    for use on a page.
    """
    best, colours = plan.recommended, PALETTES[palette or "light"]
    designs = [design for design in plan.designs if design.groups == best.groups]
    last = max(designs[-1].drawn, designs[0].drawn + 1)
    numbers = [design.drawn for design in designs]
    x = {
        "field": "drawn",
        "type": "quantitative",
        # Ticks at fractions would repeat a number when they are rounded.
        "axis": {"title": _group_name(best), "values": numbers[:: -(-len(numbers) // MAX_TICKS)]},
        "scale": {"domain": [designs[0].drawn, last], "nice": False},
    }
    y = {
        "field": "margin",
        "type": "quantitative",
        "axis": {"format": "%", "title": "Margin of error", "tickCount": 5},
    }

    def layer(values: list[dict[str, Any]], mark: Specification, **more: Any) -> Specification:
        shown = [value for value in values if value["margin"] <= LARGEST_MARGIN]
        return {"data": {"values": shown}, "mark": mark, "encoding": {"x": x, "y": y, **more}}

    margins = [
        {"drawn": design.drawn, "margin": item.margin, "question": item.question.id}
        for design in designs
        for item in design.questions
    ]
    typical = [{"drawn": design.drawn, "margin": design.typical_margin} for design in designs]
    dot = [{"drawn": best.drawn, "margin": best.typical_margin}]
    thin = {"type": "line", "color": colours.accent, "strokeWidth": 1, "opacity": 0.5}
    layers = [
        layer(margins, thin, detail={"field": "question", "type": "nominal"}),
        layer(typical, {"type": "line", "color": colours.accent, "strokeWidth": 3}),
        layer(dot, {"type": "point", "filled": True, "size": 110, "color": colours.ink}),
    ]
    if present is not None and present.typical_margin <= LARGEST_MARGIN:
        rule = {"type": "rule", "strokeDash": [4, 4], "color": colours.ink, "opacity": 0.7}
        values = [{"margin": present.typical_margin}]
        layers.append({"data": {"values": values}, "mark": rule, "encoding": {"y": y}})
    if palette:
        return {**_page_frame(palette), "width": 320, "height": 220, "layer": layers}
    subtitle = [
        "Thin lines: each question. Thick line: the typical margin (geometric mean).",
        f"Dot: the recommended design, {best.drawn} per person"
        + (". Dashed line: the present design" if present is not None else ""),
    ]
    title = "Margin of error against the number of questions per person"
    return {**_frame(title, subtitle), "width": 560, "height": 300, "layer": layers}


def _group_name(design: SurveyDesign) -> str:
    separate = len(design.groups) == len(design.questions)
    return f"{'Questions' if separate else 'Groups of questions'} per person"


def has_chart(question: BaseQuestion) -> bool:
    """Return whether the question's design has a chart: whether it is stated by an epsilon."""
    return uses_grr(question) or "epsilon" in DESIGNS[question.design].ways


def uses_grr(question: BaseQuestion) -> bool:
    """Return whether the question uses generalized randomized response, which has a formula."""
    channel = question.channel
    return isinstance(channel, SubsetSelection) and channel.d == 1 and question.ticks == 0


def tradeoff_specification(
    margins: TradeOff, plan: Plan | None = None, palette: str = ""
) -> Specification:
    """Return the margin against epsilon, with one line per number of reports and log axes.

    A plan is drawn as a dot with a dashed line at its margin, and described in the subtitle.
    `palette` is that of `tradeoff_chart`.
    """
    colours = PALETTES[palette or "light"]
    arrays = (margins.n, margins.epsilon, margins.margin)
    points = list(zip(*(array.ravel().tolist() for array in arrays), strict=True))
    subtitle = [_describe_share(margins.options, margins.share, margins.level)]
    layers = []
    if plan is not None:
        points_text = f"±{rounded(100 * plan.margin, decimals=1, digits=1)} points"
        subtitle.append(f"The dot: {_reports(plan.n)}, {points_text} at epsilon {plan.epsilon:.3g}")
        dot = _dot(plan.epsilon, plan.margin, colours)
        rule = {
            "data": dot["data"],
            "mark": {"type": "rule", "strokeDash": [4, 4], "color": colours.ink, "opacity": 0.6},
            "encoding": {"y": _margin_axis()},
        }
        layers = [rule, dot]
    return _margin_specification(points, subtitle, layers, palette)


def grid_specification(grid: SimulatedGrid) -> Specification:
    """Return the estimate and margin of one simulated survey per epsilon, one panel per n."""
    arrays = (grid.n, grid.epsilon, grid.estimate, grid.margin)
    surveys = zip(*(array.ravel().tolist() for array in arrays), strict=True)
    subtitle = [
        _describe_share(grid.options, grid.share, grid.level),
        "Each dot is one survey. Dashed line: true share. Triangles: beyond the axis.",
    ]
    return {
        **_frame("Simulated surveys: estimate and margin of error", subtitle),
        "data": {"values": [_simulated_survey(*survey) for survey in surveys]},
        "facet": {
            "column": {
                "field": "reports",
                "type": "nominal",
                "sort": [_reports(n) for n in grid.n[:, 0].tolist()],
            }
        },
        "spec": {"width": 220, "height": 260, "layer": _panel(grid)},
    }


def _frame(title: str, subtitle: Sequence[str]) -> Specification:
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "subtitle": list(subtitle)},
        "padding": 16,
        "background": "white",
        "config": CONFIG,
    }


def _page_frame(palette: str) -> Specification:
    return {"$schema": SCHEMA, "background": None, "config": config(PALETTES[palette])}


def write_chart(specification: Specification, file: Path) -> None:
    """Write a chart as SVG or PNG, by the file's suffix; raise DesignError for any other."""
    file.write_bytes(convert(specification, check_suffix(file), PNG_SCALE))


def check_suffix(file: Path) -> str:
    """Return the format that the file's suffix names; raise DesignError unless .svg or .png."""
    suffix = file.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise DesignError(f"{file.name} must end in .svg or .png; write {file.stem}.svg")
    return suffix


def _sizes_around(n: int) -> list[int]:
    return sorted({max(n // 4, 10), n, min(4 * n, LARGEST_N)})


def _margin_specification(
    points: Iterable[tuple[int, float, float]],
    subtitle: Sequence[str],
    layers: Sequence[Specification],
    palette: str,
) -> Specification:
    """Return lines of (n, epsilon, margin) with further layers above them."""
    name = palette or "light"
    points = list(points)
    lines = [
        {"epsilon": epsilon, "margin": margin, "reports": _reports(n)}
        for n, epsilon, margin in points
        if margin <= LARGEST_MARGIN
    ]
    ends = {point["reports"]: point for point in lines}
    names = [_reports(n) for n in sorted({n for n, _, _ in points})]
    labels = _line_labels(list(ends.values()), PALETTES[name])
    drawing = {
        "layer": [_lines(lines, names, SHADES[name]), labels, *layers],
        "resolve": {"scale": {"color": "shared"}},
    }
    if palette:
        # Browsers' letters are wider than those that the chart is measured with.
        space = {"left": 20, "right": 24, "top": 5, "bottom": 5}
        return {**_page_frame(palette), "padding": space, "width": 200, "height": 200, **drawing}
    frame = _frame("What privacy costs: the margin of error against epsilon", subtitle)
    return {**frame, "width": 560, "height": 340, **drawing}


def _lines(points: list[dict[str, Any]], names: list[str], colours: Sequence[str]) -> Specification:
    shades = np.linspace(0, len(colours) - 1, len(names)).round().astype(int)
    colour = {
        "field": "reports",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": names, "range": [colours[shade] for shade in shades]},
    }
    return _layer(points, {"type": "line", "strokeWidth": 2}, color=colour)


def _line_labels(ends: list[dict[str, Any]], colours: Palette) -> Specification:
    """Label each line at its end, which is quicker to read than a legend."""
    mark = {"type": "text", "align": "left", "dx": 6, "fontSize": 12, "color": colours.ink}
    return _layer(ends, mark, text={"field": "reports"})


def _dot(epsilon: float, margin: float, colours: Palette) -> Specification:
    mark = {"type": "point", "filled": True, "size": 90, "color": colours.ink, "opacity": 1}
    return _layer([{"epsilon": epsilon, "margin": margin}], mark)


def _layer(values: list[dict[str, Any]], mark: Specification, **encoding: Any) -> Specification:
    """Return a layer of marks at values of epsilon and margin."""
    axes = {"x": _epsilon_axis(), "y": _margin_axis()}
    return {"data": {"values": values}, "mark": mark, "encoding": {**axes, **encoding}}


def _panel(grid: SimulatedGrid) -> list[Specification]:
    epsilons = grid.epsilon[0]
    x = _epsilon_axis([float(epsilons.min()) / 1.5, float(epsilons.max()) * 1.5])
    x["axis"]["values"] = [0.001, 0.01, 0.1, 1, 10]
    y = {
        "scale": {"domain": list(ESTIMATE_RANGE), "nice": False},
        "axis": {"format": "%", "title": "Estimated share", "values": [-0.5, 0, 0.5, 1, 1.5]},
    }
    estimates = [*interval_layers(y, "y"), dot_layer(y, "y")]
    for layer in estimates:
        layer["mark"] |= {"color": ACCENT}
        layer["encoding"] |= {"x": x}
    true_share = {
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": INK, "opacity": 0.7},
        "encoding": {"y": {"datum": grid.share, "type": "quantitative", **y}},
    }
    return [true_share, *estimates]


def _simulated_survey(n: int, epsilon: float, estimate: float, margin: float) -> dict[str, Any]:
    low, high = ESTIMATE_RANGE
    return {
        "reports": _reports(n),
        "epsilon": epsilon,
        "dot": min(max(estimate, low), high),
        "low": min(max(estimate - margin, low), high),
        "high": min(max(estimate + margin, low), high),
        "outside": "below" if estimate < low else "above" if estimate > high else "no",
        "words": f"{_reports(n)}, epsilon {epsilon:.3g}: {percent(estimate)} ±{percent(margin)}",
    }


def _epsilon_axis(domain: list[float] | None = None) -> Specification:
    scale: Specification = {"type": "log", "nice": False}
    return {
        "field": "epsilon",
        "type": "quantitative",
        "scale": scale | ({"domain": domain} if domain else {}),
        "axis": {
            "title": "epsilon (smaller is more private)",
            "values": [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10],
            "format": "~g",
            "labelOverlap": True,
            "labelSeparation": 8,
            "grid": False,
        },
    }


def _margin_axis() -> Specification:
    return {
        "field": "margin",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {
            "title": None,  # the chart's title, or the text beside it, says what this is
            "values": [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5],
            "labelExpr": "'±' + format(datum.value * 100, '~g') + ' points'",
        },
    }


def _describe_share(options: int, share: float, level: float) -> str:
    return f"A share of {100 * share:.3g}%, {options} options, {100 * level:.3g}% intervals"


def _reports(n: int) -> str:
    return f"{n:,} reports"
