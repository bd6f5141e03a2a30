"""The forest plot: odds ratios have their places on a logarithmic axis, and open ends arrows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from survey.results.charts import chart_svg
from survey.results.regression.chart import forest_chart, forests
from survey.results.regression.table import GROUP, INTERCEPT, RegressionResult, Term
from survey.results.request import IntervalOptions

INF = math.inf
ROWS: dict[str, tuple[float, float, float]] = {
    "closed": (2.0, 1.0, 4.0),
    "open": (4.0, 0.5, INF),
    "undetermined": (math.nan, 0.25, INF),
    "far": (1e5, 50.0, INF),
    "anything": (math.nan, 0.0, INF),
}
"""The odds ratio of each category and the ends of its interval."""


@dataclass
class Fit:
    """The numbers of a fit, as logarithms of odds ratios."""

    estimate: Any
    conf_low: Any
    conf_high: Any
    std_error: Any
    p_value: Any
    penalty: str = "none"
    converged: bool = True


def result_of(survey, rows=ROWS, disclosure="show", names=None) -> RegressionResult:
    """Return a regression of the first question, which has two answers, on the group."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.array([(0.001, 0.001, 0.001), *rows.values()]))
    names = names or list(rows)
    terms = [INTERCEPT, *(Term(GROUP, (name, name), ("south", "south")) for name in names)]
    one = np.ones(len(logs))
    question = survey.definition.questions[0]
    question = replace(question, options=question.options[:2], opt_out="")
    fit = Fit(*logs.T, one, one)
    return RegressionResult(survey, question, 1, terms, fit, 900, disclosure, IntervalOptions())


def test_places_are_logarithms_between_the_ends_of_the_axis(small):
    (forest,) = forests(result_of(small, {"one": (2.0, 1.0, 4.0), "two": (1.0, 0.3, 7.0)}))
    (group,) = forest.groups
    # The closest steps around 0.3 to 7 are 0.2 and 10, and the intercept of 0.001 has no place.
    assert [text for _, text in forest.ticks] == ["0.2", "0.5", "1", "2", "5", "10"]

    def place(ratio):
        return pytest.approx(100 * math.log(ratio / 0.2) / math.log(10 / 0.2), abs=0.01)

    assert [at for at, _ in forest.ticks] == [place(ratio) for ratio in (0.2, 0.5, 1, 2, 5, 10)]
    assert forest.reference == place(1)
    for row, (ratio, low, high) in zip(group.rows, [(2, 1, 4), (1, 0.3, 7)], strict=True):
        assert (row.dot, row.low, row.high) == (place(ratio), place(low), place(high))
        assert not row.is_open_low
        assert not row.is_open_high


def test_the_axis_extends_to_half_and_double_at_least_and_to_a_hundredfold_at_most(small):
    (narrow,) = forests(result_of(small, {"one": (1.1, 1.05, 1.2)}))
    assert [text for _, text in narrow.ticks] == ["0.5", "1", "2"]
    (wide,) = forests(result_of(small, {"one": (1.1, 0.02, 1e5), "two": (1, 0.011, 99)}))
    assert [text for _, text in wide.ticks] == ["0.01", "0.1", "1", "10", "100"]


def test_intervals_that_continue_beyond_the_axis_have_an_arrow_at_its_end(small):
    (forest,) = forests(result_of(small))
    rows = {row.label: row for row in forest.groups[0].rows}
    ends = {name: (row.is_open_low, row.is_open_high) for name, row in rows.items()}
    assert ends == {
        "closed": (False, False),
        "open": (False, True),
        "undetermined": (False, True),
        "far": (False, True),
        "anything": (True, True),
    }
    assert rows["open"].high == rows["far"].high == 100
    assert [name for name, row in rows.items() if row.dot is None] == [
        *("undetermined", "far", "anything"),
    ]
    assert (rows["far"].value, rows["far"].interval) == ("100,000", "above 50")
    assert rows["undetermined"].text == "above 0.25"
    assert (rows["anything"].low, rows["anything"].text) == (None, "any value is possible")


def test_a_suppressed_regression_has_no_plot(small):
    assert forests(result_of(small, disclosure="hide")) == []


def test_the_figure_has_a_row_for_each_category_and_its_figures_in_words(small):
    names = ["closed", "<script>", "خطأ \x00", "far " * 20, "anything"]
    chart = forest_chart(result_of(small, names=names))
    (panel,) = chart["vconcat"]
    points = panel["data"]["values"]
    assert [point["value"] for point in points][:2] == ["2 (1 to 4)", "4 (above 0.5)"]
    for point, (ratio, low, high) in zip(points, list(ROWS.values())[:2], strict=False):
        assert point["dot"] == pytest.approx(ratio, rel=1e-3)
        assert point["low"] == pytest.approx(low, rel=1e-3)
        assert point["high"] == pytest.approx(min(high, 100), rel=1e-3)
    svg = chart_svg(chart)
    assert svg.count("far far far far far") >= 4
    assert "&lt;script&gt;" in svg
    assert "<script>" not in svg
    assert "\x00" not in svg
    assert "odds ratio" in svg
