"""Groups beside each other: the numbers of each group alone, each shown or hidden for itself."""

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
from survey.results.estimates.result import survey_result
from survey.results.grouped import (
    OPEN_LINK,
    Group,
    by_bucket,
    by_month,
    by_stratum,
    by_week,
    total,
)
from survey.results.trend.chart import compared_specification, compared_svg
from survey.results.trend.compute import (
    ALL_LINKS,
    compared,
    over_links,
    over_time,
    over_versions,
    part_of,
    parts_of,
)
from survey.settings import Caps
from survey.store import PublishedSurvey, Tally
from tests.conftest import SMALL, TODAY, long_unless
from tests.results.test_every_type import QUESTIONS, counts_of, survey_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FIRST, SECOND = "fell_asleep", "pressure"


def tally(first, second=None):
    counts = [first, second or first]
    return Tally(7, sum(first), [sum(each) for each in counts], counts)


def results_of(survey, tallies):
    return {group: survey_result(survey, each, NOW, group=group) for group, each in tallies.items()}


LINKS = {
    ("", "2026-11-02"): tally([900, 700, 400]),
    ("north", "2026-11-02"): tally([500, 1000, 500]),
    ("north", "2026-11-10"): tally([300, 600, 100]),
    ("east", "2026-11-10"): tally([10, 6, 4]),
    ("west", "2026-11-10"): tally([3, 2, 1]),
}


def test_the_counts_of_groups_add_up_to_those_of_all():
    whole = total(LINKS.values())
    for split in (by_stratum, by_bucket, by_week, by_month):
        assert total(split(LINKS).values()) == whole
    assert whole.n == sum(each.n for each in LINKS.values())


def test_small_links_are_read_together_and_the_open_link_has_a_name():
    found = by_stratum(LINKS)
    sizes = {group.stratum: each.n for group, each in found.items()}
    assert sizes == {"north": 3000, OPEN_LINK: 2000, OTHER_GROUPS: 26}
    assert by_stratum({("", "2026-11-02"): tally([5, 5, 5])}) == {}


def test_times_are_in_their_order_and_can_be_longer():
    names = [[group.bucket for group in split(LINKS)] for split in (by_bucket, by_week, by_month)]
    assert names == [["2026-11-02", "2026-11-10"], ["2026-W45", "2026-W46"], ["2026-11"]]
    assert by_bucket({("north", ""): tally([5, 5, 5])}) == {}


def test_each_group_has_the_estimates_of_its_own_counts_and_rows_that_say_whose(small):
    every = survey_result(small, total(LINKS.values()), NOW)
    found = compared(
        "links", over_links(every, results_of(small, by_stratum(LINKS))), FIRST, "shares"
    )
    assert [group.name for group in found.groups] == [ALL_LINKS, "north", OPEN_LINK, OTHER_GROUPS]
    channel = small.definition.questions[0].channel
    north = proportions([800, 1600, 600], channel)
    rows = [row for row in found.rows if row.stratum == "north"]
    np.testing.assert_array_equal([row.estimate for row in rows], north.estimate)
    np.testing.assert_array_equal([row.conf_low for row in rows], north.conf_low)
    assert {row.stratum for row in found.rows} == {"", "north", OPEN_LINK, OTHER_GROUPS}
    assert {row.n_reports for row in rows} == {3000}


def test_a_group_with_too_little_is_hidden_alone_and_says_how_much_it_lacks(small):
    every = survey_result(small, total(LINKS.values()), NOW)
    found = compared("links", over_links(every, results_of(small, by_stratum(LINKS))), FIRST, "")
    assert [group.shown == "hide" for group in found.groups] == [False, False, False, True]
    hidden = found.groups[-1]
    assert {(row.estimate, row.report_count, row.flag) for row in hidden.rows} == {
        (None, None, "suppressed")
    }
    assert "Not enough responses yet: about" in hidden.said
    drawn = compared_specification(found)["data"]["values"]
    assert {point["group"] for point in drawn} == {ALL_LINKS, "north", OPEN_LINK}


def test_of_a_time_that_has_passed_no_more_reports_are_promised(small):
    few = {("", day): tally([20, 30, 10]) for day in ("2026-11-02", "2026-11-03")}
    found = compared("time", over_time(results_of(small, by_bucket(few))), FIRST, "")
    assert {group.said for group in found.groups} == {"Not enough responses."}
    assert {row.bucket for row in found.rows} == {"2026-11-02", "2026-11-03"}
    assert compared_svg(found, "light") == ""


def test_the_time_that_is_still_going_on_says_how_many_more_it_needs(small):
    few = {("", day): tally([20, 30, 10]) for day in ("2026-11-20", "2026-11-21")}
    found = compared("time", over_time(results_of(small, by_bucket(few))), FIRST, "")
    assert found.groups[0].said == "Not enough responses."
    assert "more needed" in found.groups[1].said
    later = compared(
        "time", over_time(results_of(small, by_bucket(few))), FIRST, "", date(2026, 11, 22)
    )
    assert later.groups[1].said == "Not enough responses."


def test_without_groups_nothing_is_compared(small):
    every = survey_result(small, tally([5, 5, 5]), NOW)
    assert over_links(every, {}) == []
    assert over_time({}) == []


@pytest.mark.parametrize("name", long_unless(set(QUESTIONS) - {"pay", "since"}, QUESTIONS))
def test_every_part_of_every_type_can_be_compared_and_drawn(name):
    survey = survey_of([name])
    question = survey.definition.questions[0]
    groups = {
        Group(stratum=each): survey_result(
            survey, Tally(1, 9000, [9000], [counts_of(question, 9000, seed)]), NOW
        )
        for seed, each in enumerate(("north", "south"))
    }
    every = groups[Group(stratum="north")]
    drawn = 0
    for part in parts_of(every.question(name)):
        found = compared("links", over_links(every, groups), name, part)
        assert found.part == part
        assert len(found.rows) == 3 * len(found.columns) > 0
        svg = compared_svg(found, "dark")
        assert bool(svg) == any(row.estimate is not None for row in found.rows)
        drawn += bool(svg)
    assert drawn


def test_a_part_that_there_is_not_is_refused_and_one_of_another_type_is_the_usual(small):
    every = survey_result(small, tally([900, 700, 400]), NOW)
    named = [("all", every)]
    assert compared("versions", named, FIRST, "median").part == "shares"
    with pytest.raises(NotFoundError, match="there is no mode"):
        part_of(every.question(FIRST), "mode")
    with pytest.raises(NotFoundError, match="no question"):
        compared("versions", named, "none", "shares")


def version_of(number: int, text: str) -> PublishedSurvey:
    definition = freeze(load(text.encode(), "s.toml", Caps()), number)
    return PublishedSurvey(
        number, "small", number, definition.sha256, "open", TODAY, definition.canonical
    )


def versions(*texts: str):
    """Results of versions, the newest first."""
    found = [
        survey_result(version_of(number, text), tally([900, 700, 400]), NOW)
        for number, text in enumerate(texts, 1)
    ]
    return found[::-1]


def test_versions_that_ask_the_same_stand_beside_each_other_and_are_never_pooled():
    results = versions(SMALL, SMALL.replace("First page", "Page one"))
    named, said = over_versions(results, SECOND)
    found = compared("versions", named, SECOND, "")
    assert [group.name for group in found.groups] == ["version 1", "version 2"]
    assert said == []
    assert {row.n_reports for row in found.rows} == {2000}
    assert [row.survey_version for row in found.rows] == [1] * 3 + [2] * 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"3/4"', '"2/3"', "Version 2 randomizes differently (epsilon"),
        ("press you to stay", "ask you to stay", "Version 2 asks in other words"),
        ('label = "Once"', 'label = "One time"', "Version 2 words its answers differently"),
    ],
)
def test_what_changed_between_versions_is_said(old, new, words):
    results = versions(SMALL, SMALL.replace(old, new))
    named, said = over_versions(results, SECOND)
    assert [name for name, _ in named] == ["version 1", "version 2"]
    assert any(words in each for each in said)
    # From whichever version it is looked at, the change is that of the later one.
    assert over_versions(results[::-1], SECOND)[1] == said


def test_versions_that_ask_something_else_are_left_out_by_name():
    other = SMALL.replace('{ id = "once", label = "Once" },\n', "")
    without = SMALL.replace(f'id = "{SECOND}"', 'id = "pressed"')
    results = versions(other, without, SMALL)
    named, said = over_versions(results, SECOND)
    assert [name for name, _ in named] == ["version 3"]
    assert said == [
        "Version 1 asks it with other answers, and is not shown here.",
        "Version 2 does not ask this question.",
    ]


def test_answers_stand_in_the_order_of_the_survey_and_hidden_groups_keep_their_place(small):
    some = {**LINKS, ("", "2026-11-20"): tally([20, 20, 20])}
    found = compared("time", over_time(results_of(small, by_bucket(some))), SECOND, "")
    drawn = compared_specification(found)
    assert drawn["facet"]["sort"] == ["Never", "Once", "Often"]
    domain = drawn["spec"]["encoding"]["x"]["scale"]["domain"]
    assert domain == ["2026-11-02", "2026-11-10", "2026-11-20"]
    assert {point["when"] for point in drawn["data"]["values"]} == set(domain[:2])


@pytest.mark.parametrize("state", ["closed", "superseded"])
def test_a_survey_that_takes_no_reports_needs_no_more(small, state):
    closed = survey_result(replace(small, state=state), tally([20, 30, 10]), NOW)
    found = compared("versions", [("version 1", closed)], FIRST, "")
    assert found.groups[0].said == "Not enough responses."
