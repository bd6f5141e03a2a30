"""Groups side by side: each group is estimated and suppressed independently."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pytest

from survey.disclosure import OTHER_GROUPS
from survey.errors import NotFoundError
from survey.estimator import proportions
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.results.charts import chart_svg, has_numbers
from survey.results.estimates.result import SurveyResult
from survey.results.groups import (
    LINK,
    OPEN_LINK,
    Group,
    add_tallies,
    split_by_link,
    split_by_month,
    split_by_period,
    split_by_week,
)
from survey.results.trend.compute import (
    ALL_GROUPS,
    combine_results,
    link_results,
    period_results,
    version_results,
)
from survey.results.trend.request import TrendRequest
from survey.results.trend.table import question_parts, trend_chart
from survey.settings import Caps
from survey.store import PublishedSurvey, Tally
from tests.conftest import SMALL, TODAY, long_unless
from tests.results.test_every_type import QUESTIONS, counts_of, survey_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FIRST, SECOND = "fell_asleep", "pressure"


def tally(first, second=None):
    counts = [first, second or first]
    return Tally(7, sum(first), [sum(part) for part in counts], counts)


def results_of(survey, tallies):
    return {group: SurveyResult(survey, part, NOW, group=group) for group, part in tallies.items()}


def combine(over, results, question, part="", today=None):
    """Combine a question's estimates from named results."""
    request = TrendRequest(over, question, part)
    return combine_results(request, results[0][1], results, today or NOW.date())


def svg(result):
    return chart_svg(trend_chart(result)) if has_numbers(result.rows) else ""


LINKS = {
    ("", "2026-11-02"): tally([900, 700, 400]),
    ("north", "2026-11-02"): tally([500, 1000, 500]),
    ("north", "2026-11-10"): tally([300, 600, 100]),
    (OTHER_GROUPS, "2026-11-10"): tally([13, 8, 5]),
}


def test_counts_of_groups_add_up_to_the_total():
    whole = add_tallies(LINKS.values())
    for split in (split_by_link, split_by_period, split_by_week, split_by_month):
        assert add_tallies(split(LINKS).values()) == whole
    assert whole.n == sum(part.n for part in LINKS.values())


def test_small_links_are_merged_and_the_open_link_has_a_name():
    result = split_by_link(LINKS)
    sizes = {group.name: part.n for group, part in result.items()}
    assert sizes == {"north": 3000, OPEN_LINK: 2000, OTHER_GROUPS: 26}
    assert split_by_link({("", "2026-11-02"): tally([5, 5, 5])}) == {}


def test_periods_are_in_order_and_can_be_lengthened():
    names = [
        [group.name for group in split(LINKS)]
        for split in (split_by_period, split_by_week, split_by_month)
    ]
    assert names == [["2026-11-02", "2026-11-10"], ["2026-W45", "2026-W46"], ["2026-11"]]
    assert split_by_period({("north", ""): tally([5, 5, 5])}) == {}


def test_each_group_has_the_estimates_of_its_counts_and_rows_that_name_it(small):
    every = SurveyResult(small, add_tallies(LINKS.values()), NOW)
    result = combine(
        "links", link_results(every, results_of(small, split_by_link(LINKS))), FIRST, "shares"
    )
    assert [group.name for group in result.groups] == [ALL_GROUPS, "north", OPEN_LINK, OTHER_GROUPS]
    channel = small.definition.questions[0].channel
    north = proportions([800, 1600, 600], channel)
    rows = [row for row in result.rows if row.stratum == "north"]
    np.testing.assert_array_equal([row.estimate for row in rows], north.estimate)
    np.testing.assert_array_equal([row.conf_low for row in rows], north.conf_low)
    assert {row.stratum for row in result.rows} == {"", "north", OPEN_LINK, OTHER_GROUPS}
    assert {row.n_reports for row in rows} == {3000}


def test_only_the_small_group_is_suppressed_and_states_what_is_missing(small):
    every = SurveyResult(small, add_tallies(LINKS.values()), NOW)
    result = combine(
        "links", link_results(every, results_of(small, split_by_link(LINKS))), FIRST, ""
    )
    assert [group.disclosure == "hide" for group in result.groups] == [False, False, False, True]
    suppressed = result.groups[-1]
    assert {(row.estimate, row.report_count, row.flag) for row in suppressed.rows} == {
        (None, None, "suppressed")
    }
    assert "Not enough responses yet: about" in suppressed.suppression_text
    chart_data = trend_chart(result)["data"]["values"]
    assert {point["group"] for point in chart_data} == {ALL_GROUPS, "north", OPEN_LINK}


def test_a_past_period_promises_no_more_responses(small):
    small_tallies = {("", day): tally([20, 30, 10]) for day in ("2026-11-02", "2026-11-03")}
    result = combine(
        "trend", period_results(results_of(small, split_by_period(small_tallies))), FIRST, ""
    )
    assert {group.suppression_text for group in result.groups} == {"Not enough responses."}
    assert {row.bucket for row in result.rows} == {"2026-11-02", "2026-11-03"}
    assert svg(result) == ""


def test_the_current_period_states_how_many_responses_are_missing(small):
    small_tallies = {("", day): tally([20, 30, 10]) for day in ("2026-11-20", "2026-11-21")}
    result = combine(
        "trend", period_results(results_of(small, split_by_period(small_tallies))), FIRST, ""
    )
    assert result.groups[0].suppression_text == "Not enough responses."
    assert "more needed" in result.groups[1].suppression_text
    later = combine(
        "trend",
        period_results(results_of(small, split_by_period(small_tallies))),
        FIRST,
        "",
        date(2026, 11, 22),
    )
    assert later.groups[1].suppression_text == "Not enough responses."


def test_without_groups_there_are_no_results_to_compare(small):
    every = SurveyResult(small, tally([5, 5, 5]), NOW)
    assert link_results(every, {}) == []
    assert period_results({}) == []


@pytest.mark.parametrize("name", long_unless(set(QUESTIONS) - {"pay", "since"}, QUESTIONS))
def test_every_part_of_every_type_has_rows_and_a_chart(name):
    survey = survey_of([name])
    question = survey.definition.questions[0]
    groups = {
        Group(LINK, stratum): SurveyResult(
            survey, Tally(1, 9000, [9000], [counts_of(question, 9000, seed)]), NOW
        )
        for seed, stratum in enumerate(("north", "south"))
    }
    every = groups[Group(LINK, "north")]
    chart_data = 0
    for part in question_parts(every.question(name)):
        result = combine("links", link_results(every, groups), name, part)
        assert result.request.part == part
        assert len(result.rows) == 3 * len(result.columns) > 0
        chart = svg(result)
        assert bool(chart) == any(row.estimate is not None for row in result.rows)
        chart_data += bool(chart)
    assert chart_data


def test_unknown_parts_are_rejected_and_missing_parts_become_the_main_part(small):
    every = SurveyResult(small, tally([900, 700, 400]), NOW)
    named_results = [("all", every)]
    assert combine("versions", named_results, FIRST, "median").request.part == "shares"
    with pytest.raises(NotFoundError, match="there is no mode"):
        TrendRequest.parse({"part": "mode"}, "links")
    with pytest.raises(NotFoundError, match="no question"):
        combine("versions", named_results, "none", "shares")


def version_of(number: int, text: str) -> PublishedSurvey:
    definition = freeze(load(text.encode(), "s.toml", Caps()), number)
    return PublishedSurvey(
        number, "small", number, definition.sha256, "open", TODAY, definition.canonical
    )


def versions(*texts: str):
    """Return results of versions, the newest first."""
    result = [
        SurveyResult(version_of(number, text), tally([900, 700, 400]), NOW)
        for number, text in enumerate(texts, 1)
    ]
    return result[::-1]


def test_equal_versions_are_side_by_side_and_never_pooled():
    results = versions(SMALL, SMALL.replace("First page", "Page one"))
    named_results, notes = version_results(results, SECOND)
    result = combine("versions", named_results, SECOND, "")
    assert [group.name for group in result.groups] == ["version 1", "version 2"]
    assert notes == []
    assert {row.n_reports for row in result.rows} == {2000}
    assert [row.survey_version for row in result.rows] == [1] * 3 + [2] * 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"3/4"', '"2/3"', "Version 2 randomizes differently (epsilon"),
        ("press you to stay", "ask you to stay", "Version 2 has a different text"),
        ('label = "Once"', 'label = "One time"', "Version 2 has different texts for the answers"),
    ],
)
def test_changes_between_versions_are_described(old, new, words):
    results = versions(SMALL, SMALL.replace(old, new))
    named_results, notes = version_results(results, SECOND)
    assert [name for name, _ in named_results] == ["version 1", "version 2"]
    assert any(words in note for note in notes)
    # Notes describe the later version, in either order.
    assert version_results(results[::-1], SECOND)[1] == notes


def test_versions_with_other_questions_are_left_out_by_name():
    fewer_options = SMALL.replace('{ id = "once", label = "Once" },\n', "")
    without = SMALL.replace(f'id = "{SECOND}"', 'id = "pressed"')
    results = versions(fewer_options, without, SMALL)
    named_results, notes = version_results(results, SECOND)
    assert [name for name, _ in named_results] == ["version 3"]
    assert notes == [
        "Version 1 has other answers and is not shown here.",
        "Version 2 does not ask this question.",
    ]


def test_answers_keep_the_survey_order_and_suppressed_groups_keep_their_place(small):
    tallies = {**LINKS, ("", "2026-11-20"): tally([20, 20, 20])}
    result = combine(
        "trend", period_results(results_of(small, split_by_period(tallies))), SECOND, ""
    )
    chart_data = trend_chart(result)
    assert chart_data["facet"]["sort"] == ["Never", "Once", "Often"]
    domain = chart_data["spec"]["encoding"]["x"]["scale"]["domain"]
    assert domain == ["2026-11-02", "2026-11-10", "2026-11-20"]
    assert {point["when"] for point in chart_data["data"]["values"]} == set(domain[:2])


@pytest.mark.parametrize("state", ["closed", "superseded"])
def test_a_closed_survey_promises_no_more_responses(small, state):
    closed = SurveyResult(replace(small, state=state), tally([20, 30, 10]), NOW)
    result = combine("versions", [("version 1", closed)], FIRST, "")
    assert result.groups[0].suppression_text == "Not enough responses."
