"""Charts of one question: shares, histogram, and mean with median.

A page draws `Bars` as a list of answers, so that labels wrap and screen readers read the figures.
Files are Vega-Lite charts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from survey.results.charts import (
    AXIS_STEP,
    PERCENT_AXIS,
    axis_end,
    bar_layer,
    chart_point,
    dot_chart,
    dot_layer,
    has_numbers,
    interval_layers,
    value_axis,
    with_values,
)
from survey.results.estimates.compute import mean_range
from survey.results.estimates.result import QuestionResult, SurveyResult
from survey.results.estimates.scale_bar import (
    DivergingBar,
    bars_on_one_axis,
    diverging_chart,
    has_diverging_bar,
)
from survey.results.estimates.table import EstimateRow, row_label
from survey.results.number_format import number_format, percent, share_texts


def shares_chart(result: QuestionResult) -> dict[str, Any]:
    """Return the estimated share and interval of each option, on an axis from 0 to 100%."""
    title = f"Estimated shares with {result.options.percent} intervals: {result.question.text}"
    return dot_chart(title, _share_points(result, result.shares), PERCENT_AXIS)


def histogram_chart(result: QuestionResult) -> dict[str, Any]:
    """Return the histogram: a bar, a dot and an interval per cell, on an axis from 0 to 100%."""
    title = (
        f"Estimated shares of answers with {result.options.percent} intervals: "
        f"{result.question.text}"
    )
    chart = dot_chart(title, _share_points(result, result.spread), PERCENT_AXIS)
    return {**chart, "layer": [bar_layer(PERCENT_AXIS), *chart["layer"]]}


def middle_chart(result: QuestionResult) -> dict[str, Any]:
    """Return mean and median with intervals, on an axis from the smallest to the largest answer.

    Raises ValueError for a question that shows neither.
    """
    if not result.middles:
        raise ValueError(f"question {result.question.id} has no mean to show")
    low, high = mean_range(result.question)
    is_ranking = result.question.kind.is_ranking
    data = [
        chart_point(
            row, row.option_label or row.statistic.capitalize(), result.describe(row), low, high
        )
        | {"value": f"{result.number_format(row).text(row.estimate)} ({_ends(result, row)})"}
        for row in result.middles
        if row.estimate is not None
    ]
    names = "mean ranks" if is_ranking else " and ".join(row.statistic for row in result.middles)
    title = f"Estimated {names} with {result.options.percent} intervals: {result.question.text}"
    return dot_chart(title, data, value_axis(result.question, low, high))


def _share_points(result: QuestionResult, rows: Sequence[EstimateRow]) -> list[dict[str, Any]]:
    return [
        chart_point(row, row.option_label, result.describe(row), 0.0, 1.0)
        | {"value": _value(*share_texts(row.estimate, row.conf_low, row.conf_high))}
        for row in rows
        if row.estimate is not None
    ]


def row_texts(result: QuestionResult, row: EstimateRow) -> tuple[str, str]:
    """Return the estimate of a row and its interval in words."""
    if row.statistic == "share":
        return share_texts(row.estimate, row.conf_low, row.conf_high)
    formatter = result.number_format(row)
    return "" if row.estimate is None else formatter.text(row.estimate), _ends(result, row)


def _value(value: str, interval: str) -> str:
    return f"{value} ({interval})" if value else interval


def _ends(result: QuestionResult, row: EstimateRow) -> str:
    """Return the interval of a mean or median in words."""
    formatter = result.number_format(row)
    low, high = (formatter.number(end or 0.0) for end in (row.conf_low, row.conf_high))
    return f"only {high}" if row.conf_low == row.conf_high else f"{low} to {high}"


PART_CHARTS: Mapping[str, Callable[[QuestionResult], dict[str, Any]]] = {
    "shares": shares_chart,
    "middle": middle_chart,
    "spread": histogram_chart,
}
"""The charts of a question by the name of their part in links."""


def file_chart(result: QuestionResult, part: str) -> dict[str, Any]:
    """Return the chart of a part for a file: like on its page, with the figures beside the dots."""
    if part == "middle":
        return with_values(middle_chart(result))
    rows = result.shares if part == "shares" else result.spread
    answers, opt_outs = _ordered(result, rows)
    chart, end = PART_CHARTS[part](result), axis_end(rows)
    n_steps = round(end / AXIS_STEP)
    axis = {**PERCENT_AXIS["axis"], "values": [AXIS_STEP * i for i in range(n_steps + 1)]}
    scale = {"scale": {"domain": [0, end]}, "axis": axis}
    points = _share_points(result, [*answers, *opt_outs])
    layers = [bar_layer(scale), *interval_layers(scale), dot_layer(scale)]
    chart = with_values({**chart, "data": {"values": points}, "layer": layers})
    if part == "shares" and has_diverging_bar(result):
        return diverging_chart(result, chart, mean_text(result))
    return chart


def mean_text(result: QuestionResult) -> str:
    """Return the mean and its interval in words; empty if it is not shown."""
    row = result.mean
    if row is None or row.estimate is None:
        return ""
    return f"Mean: {_value(*row_texts(result, row))}"


class MatrixSummary(NamedTuple):
    """A matrix on one card: its text, and the result, bar and mean of each row."""

    text: str
    rows: tuple[tuple[QuestionResult, DivergingBar | None, str], ...]


def matrix_summary(result: SurveyResult, first: QuestionResult) -> MatrixSummary | None:
    """Return the summary of a matrix if `first` is its first row, otherwise None."""
    matrix = first.question.matrix
    if matrix is None:
        return None
    questions = result.survey.definition.questions
    ids = [q.id for q in questions if q.matrix and q.matrix.id == matrix.id]
    if ids[0] != first.question.id:
        return None
    rows = [result.question(id_) for id_ in ids]
    bars = bars_on_one_axis(rows)
    return MatrixSummary(matrix.text, tuple(zip(rows, bars, map(mean_text, rows), strict=True)))


def has_chart(result: QuestionResult, part: str) -> bool:
    """Return whether a part has an estimate to show in a chart."""
    rows = {"shares": result.shares, "middle": result.middles, "spread": result.spread}
    return has_numbers(rows[part])


class Bar(NamedTuple):
    """One answer or statistic in a page's chart. Positions are percent of the axis.

    value        the estimate in words; empty if there is none
    interval     its interval in words
    dot          position of the estimate; None without one
    low, high    positions of the ends of the interval
    truth        position of the true value of a test run; None if unknown
    truth_value  the true value in words
    is_leading   whether it is the largest share of an answer
    is_opt_out   whether it stands for no answer, such as "prefer not to say"
    option_id    id of the answer; empty for a statistic
    is_missing   whether nothing is shown; `interval` then says why
    """

    label: str
    value: str
    interval: str
    dot: float | None
    low: float
    high: float
    truth: float | None = None
    truth_value: str = ""
    is_leading: bool = False
    is_opt_out: bool = False
    option_id: str = ""
    is_missing: bool = False


class Bars(NamedTuple):
    """A page's chart: bars and an axis with labels by position.

    `reference` is the position of a line with which the bars are compared; None without one.
    """

    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    reference: float | None = None


def share_bars(
    result: QuestionResult,
    rows: Sequence[EstimateRow],
    true_shares: Mapping[str, float] = MappingProxyType({}),
) -> Bars:
    """Return the chart of shares or histogram cells that are shown.

    Answers come before opt-outs.
    """
    answers, opt_outs = _ordered(result, rows)
    largest, end = max((row.estimate or 0.0 for row in answers), default=0.0), axis_end(rows)

    def bar(row: EstimateRow) -> Bar:
        true_share = true_shares.get(row.option_id)
        return Bar(
            row.option_label,
            *share_texts(row.estimate, row.conf_low, row.conf_high),
            None if row.estimate is None else axis_position(row.estimate, 0.0, end),
            axis_position(row.conf_low or 0.0, 0.0, end),
            axis_position(row.conf_high or 0.0, 0.0, end),
            None if true_share is None else axis_position(true_share, 0.0, end),
            percent(true_share),
            is_leading=rows is result.shares and row.estimate == largest and row in answers,
            is_opt_out=row in opt_outs,
            option_id=row.option_id,
        )

    return Bars(tuple(map(bar, [*answers, *opt_outs])), tuple(percent_ticks(end)))


def percent_ticks(end: float) -> list[tuple[float, str]]:
    """Return the places of an axis from 0 to a share, in percent of the axis, with labels."""
    n_steps = round(end / AXIS_STEP)
    return [(100 * i / n_steps, percent(AXIS_STEP * i)) for i in range(n_steps + 1)]


Rows = list[EstimateRow]


def _ordered(result: QuestionResult, rows: Sequence[EstimateRow]) -> tuple[Rows, Rows]:
    """Return the rows of answers and those of opt-outs, in the order of a chart.

    More than two answers without an order are sorted by their estimates.
    """
    question = result.question
    ids = {question.opt_out, question.not_applicable} - {""}
    answers = [row for row in rows if row.option_id not in ids]
    if rows is result.shares and not question.kind.is_ordered and len(answers) > 2:
        answers.sort(key=lambda row: -(row.estimate or 0.0))
    return answers, [row for row in rows if row.option_id in ids]


def middle_bars(
    result: QuestionResult, true_means: Mapping[str, float] = MappingProxyType({})
) -> Bars:
    """Return mean and median on a ruler from the smallest to the largest answer.

    The ruler of mean ranks goes from the first place to the last. Raises ValueError for a question
    without a mean. `true_means` are those of a test run: they map "" to the mean, and the id of an
    option to its mean rank.
    """
    low, high = mean_range(result.question)

    def bar(row: EstimateRow) -> Bar:
        start = low if row.conf_low is None else row.conf_low
        end = high if row.conf_high is None else row.conf_high
        true_value = None if row.statistic == "median" else true_means.get(row.option_id)
        return Bar(
            row_label(row),
            *row_texts(result, row),
            None if row.estimate is None else axis_position(row.estimate, low, high),
            axis_position(start, low, high),
            axis_position(end, low, high),
            None if true_value is None else axis_position(true_value, low, high),
            "" if true_value is None else result.number_format(row).text(true_value),
        )

    formatter = number_format(result.question, "median")
    ticks = tuple(
        (place, formatter.number(low + place / 100 * (high - low))) for place in (0.0, 50.0, 100.0)
    )
    shown = [row for row in result.middles if row.conf_low is not None]
    return Bars(tuple(map(bar, shown)), ticks)


def axis_position(value: float, low: float, high: float) -> float:
    """Return a place on the axis in percent; values outside are drawn at its ends."""
    share = (value - low) / (high - low) if high > low else 0.5
    return round(100 * min(max(share, 0.0), 1.0), 2)
