"""The bar of a scale: where its segments lie, and what it says beside them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.results.charts import chart_svg
from survey.results.estimates.chart import file_chart
from survey.results.estimates.result import QuestionResult, question_result
from survey.results.estimates.scale_bar import diverging_bar, has_diverging_bar
from survey.results.number_format import share_texts
from survey.settings import Caps
from survey.store import PublishedSurvey
from tests.conftest import TODAY

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SCALE = """
slug = "scale"
title = "Scales"
introduction = "One question."
truth_probability = "3/4"
[[pages]]
title = "Page"
[[pages.questions]]
id = "agree"
type = "scale"
text = "Do you agree?"
"""


def result_of(shares: list[float], extra: str = "", n: int = 40_000) -> QuestionResult:
    """Return the result of a scale whose reports have exactly their expected counts.

    The share of people who prefer not to say comes last if `extra` does not exclude them.
    """
    toml = SCALE + (extra or f"low = 1\nhigh = {len(shares)}\nprefer_not_to_say = false\n")
    definition = freeze(load(toml.encode(), "scale.toml", Caps(question=8, survey=100)), 1)
    survey = PublishedSurvey(1, "scale", 1, definition.sha256, "open", TODAY, definition.canonical)
    question = survey.definition.questions[0]
    counts = np.round(n * np.array(shares) @ question.channel.matrix).astype(int).tolist()
    return question_result(survey, question, sum(counts), sum(counts), counts, NOW)


def test_an_odd_scale_has_half_of_its_middle_answer_on_each_side():
    bar = diverging_bar(result_of([0.1, 0.2, 0.3, 0.25, 0.15]))
    # 45% lie to the left of the middle and 55% to its right: the axis ends at 75%.
    assert [text for _, text in bar.ticks] == ["75%", "50%", "25%", "0%", "25%", "50%", "75%"]
    assert [place for place, _ in bar.ticks][::3] == [0, 50, 100]
    starts = [50 + 50 * share / 0.75 for share in (-0.45, -0.35, -0.15, 0.15, 0.4)]
    assert [segment.start for segment in bar.segments] == pytest.approx(starts, abs=0.05)
    widths = [50 * share / 0.75 for share in (0.1, 0.2, 0.3, 0.25, 0.15)]
    assert [segment.width for segment in bar.segments] == pytest.approx(widths, abs=0.05)
    assert [segment.shade for segment in bar.segments] == [
        *("low-5", "low-1", "middle", "high-1", "high-5"),
    ]
    assert not bar.is_adjusted


def test_an_even_scale_is_divided_at_its_middle_and_opt_outs_lie_beside_it():
    extra = "low = 1\nhigh = 4\n"
    result = result_of([0.1, 0.2, 0.25, 0.25, 0.2], extra)
    bar = diverging_bar(result)
    assert len(bar.segments) == 4
    assert bar.segments[2].start == pytest.approx(50, abs=0.05)
    assert [(row.label, row.width, row.shade) for row in bar.apart] == [
        ("Prefer not to say", 0.0, "")
    ]
    rows = result.shares
    assert [(s.value, s.interval) for s in [*bar.segments, *bar.apart]] == [
        share_texts(row.estimate, row.conf_low, row.conf_high) for row in rows
    ]
    assert all("to" in segment.interval for segment in bar.segments)


def test_an_impossible_estimate_has_no_segment_and_the_bar_says_so():
    # Of five answers, none has fewer than 1/16 of the reports if its share is not negative.
    result = result_of([0.35, 0.3, 0.2, 0.18, -0.03])
    bar = diverging_bar(result)
    assert min(row.estimate for row in result.shares) == pytest.approx(-0.03, abs=0.001)
    assert (bar.segments[-1].width, bar.segments[-1].value) == (0.0, "")
    assert bar.segments[-1].interval in ("less than 1%", "at most 1%")
    assert bar.is_adjusted
    end = int(bar.ticks[-1][1][:-1]) / 100
    total = bar.segments[-1].start - bar.segments[0].start
    assert total * 2 * end / 100 == pytest.approx(1, abs=0.01)


def test_long_scales_and_suppressed_ones_have_no_such_bar():
    assert has_diverging_bar(result_of([1 / 11] * 11, n=400_000))
    assert not has_diverging_bar(result_of([1 / 12] * 12, n=400_000))
    suppressed = result_of([0.2] * 5, n=30)
    assert not has_diverging_bar(suppressed)
    with pytest.raises(ValueError, match="agree has no shares"):
        diverging_bar(suppressed)


def test_the_figure_has_the_bar_the_mean_and_the_intervals_of_each_answer():
    result = result_of([0.1, 0.2, 0.3, 0.25, 0.15])
    chart = file_chart(result, "shares")
    panel, mean, rows = chart["vconcat"]
    bar = diverging_bar(result)
    for point, segment in zip(panel["data"]["values"], bar.segments, strict=True):
        assert (point["start"], point["label"]) == (segment.start, segment.value)
        assert point["end"] - point["start"] == pytest.approx(segment.width)
    assert mean["data"]["values"] == [{"text": "Mean: 3.1 (3.1 to 3.2)"}]
    values = [point["value"] for point in rows["data"]["values"]]
    assert values == [segment.text for segment in bar.segments]
    assert all("(" in value for value in values)
    svg = chart_svg(chart)
    for text in ("75%", "0%", "Mean: 3.1", "30%", *values):
        assert f">{text}" in svg
    assert "undefined" not in svg


def test_labels_with_characters_that_svg_cannot_contain_are_drawn_without_them():
    options = "".join(
        f'{{ id = "o{i}", label = {json.dumps(label)} }},\n'
        for i, label in enumerate(("a: <b>", "ab", "لا أوافق"))
    )
    result = result_of([0.3, 0.3, 0.4], f"options = [\n{options}]\nprefer_not_to_say = false\n")
    chart = file_chart(result, "shares")
    chart["vconcat"][0]["data"]["values"][0]["words"] = "\ufffe\x08"
    svg = chart_svg(chart)
    assert "a: &lt;b&gt;" in svg
    assert "لا أوافق" in svg
    assert "\ufffe" not in svg
