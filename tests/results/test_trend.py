"""Groups side by side: each group is estimated and suppressed independently."""

from __future__ import annotations

import itertools
import re
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
from survey.results.trend.chart import group_panels, line_panels, note_lines, trend_chart
from survey.results.trend.compute import (
    ALL_GROUPS,
    combine_results,
    link_results,
    period_results,
    version_results,
)
from survey.results.trend.request import TrendRequest
from survey.results.trend.table import DatedNote, question_parts
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


def over_days(small, counts_by_day):
    tallies = {("", day): tally(counts) for day, counts in counts_by_day.items()}
    results = period_results(results_of(small, split_by_period(tallies)))
    return combine("trend", results, SECOND, "shares", date(2026, 12, 31))


DAYS = {
    "2026-11-02": [900, 700, 400],
    "2026-11-04": [20, 30, 10],
    "2026-11-12": [800, 800, 400],
    "2026-11-22": [600, 900, 500],
}


def test_points_stand_at_their_dates_and_estimates_and_no_line_leads_over_a_gap(small):
    result = over_days(small, DAYS)
    chart = line_panels(result)
    # 20 days between the insets of 4%: the third day of data is 10 days after the first.
    assert [group.name for group in result.groups] == list(DAYS)
    for column, panel in enumerate(chart.panels):
        assert [point.x for point in panel.points] == [4.0, 50.0, 96.0]
        rows = [result.groups[key].rows[column] for key in (0, 2, 3)]
        end = max(row.conf_high for group in result.groups[2:] for row in group.rows)
        scale = 0.5 if end <= 0.5 else 0.75
        for point, row in zip(panel.points, rows, strict=True):
            for place, number in (
                (point.y, row.estimate),
                (point.low, row.conf_low),
                (point.high, row.conf_high),
            ):
                assert place == pytest.approx(100 - 100 * min(max(number / scale, 0), 1), abs=0.01)
        assert [len(run) for run in panel.runs] == [1, 2]
        assert panel.lines == [f"50,{panel.runs[1][0].y:g} 96,{panel.runs[1][1].y:g}"]
        assert panel.bands[0].split()[0] == f"50,{panel.runs[1][0].high:g}"
        assert panel.bands[0].split()[-1] == f"50,{panel.runs[1][0].low:g}"
        assert [(gap.x, gap.key) for gap in panel.gaps] == [(13.2, 1)]
    assert chart.gaps == ("2026-11-04: not enough responses.",)


def with_notes(result, *days):
    notes = [DatedNote(date(2026, 11, day), n, f"Note {n}", n) for n, day in enumerate(days, 1)]
    return replace(result, dated_notes=tuple(notes))


def test_marks_stand_at_their_dates_and_only_within_the_axis(small):
    chart = line_panels(with_notes(over_days(small, DAYS), 1, 7, 22, 30))
    assert [(mark.x, mark.label, mark.lines) for mark in chart.marks] == [
        (27.0, "2", (27.0,)),
        (96.0, "3", (96.0,)),
    ]
    assert chart.note_summary == "2 on 2026-11-07, 3 on 2026-11-22"


def test_marks_close_to_each_other_share_a_label_that_names_all_of_them(small):
    chart = line_panels(with_notes(over_days(small, DAYS), 6, 7, 7, 15))
    (first, last) = chart.marks
    assert (first.label, first.lines) == ("1–3", (22.4, 27.0))
    assert first.x == 24.7
    assert first.text == "1. 2026-11-06: Note 1; 2. 2026-11-07: Note 2; 3. 2026-11-07: Note 3"
    assert last.label == "4"


def test_the_axis_ends_at_a_note_within_the_last_period(small):
    tallies = {("", f"2026-W{week}"): tally([900, 700, 400]) for week in (45, 46)}
    weeks = period_results(results_of(small, split_by_period(tallies)))
    result = with_notes(combine("trend", weeks, SECOND, "shares"), 2, 15, 16)
    chart = line_panels(result)
    assert [mark.label for mark in chart.marks] == ["1", "2"]
    assert [point.x for point in chart.panels[0].points] == [4.0, 53.54]
    assert chart.marks[-1].x == 96.0


def test_a_file_marks_each_note_in_every_panel_at_its_date(small):
    result = with_notes(over_days(small, DAYS), 1, 7, 22)
    svg = chart_svg(trend_chart(result))
    lines = re.findall(r'aria-label="Note (\d), (\S+): Note \d"[^>]*', svg)
    assert sorted(lines) == sorted([("2", "2026-11-07"), ("3", "2026-11-22")] * 3)
    assert "Note 1" not in svg
    place = r'aria-label="{}[^>]*transform="translate\(([\d.]+),'
    names = ("Never: 2026-11-02", "Note 2", "Never: 2026-11-12", "Never: 2026-11-22", "Note 3")
    xs = [float(re.search(place.format(name), svg)[1]) for name in names]
    days = [(x - xs[0]) / (xs[-1] - xs[0]) * 20 for x in xs]
    assert days == pytest.approx([0, 5, 10, 20, 20])
    assert note_lines(result) == ["2. 2026-11-07: Note 2", "3. 2026-11-22: Note 3"]
    assert 'aria-label="Note' not in chart_svg(trend_chart(over_days(small, DAYS)))


def test_a_file_labels_notes_of_neighbouring_days_once(small):
    svg = chart_svg(trend_chart(with_notes(over_days(small, DAYS), 6, 7, 7, 15)))
    numbers = re.findall(r"<text[^>]*>([\d–]+)</text>", svg)
    assert sorted(numbers) == sorted(["1–3", "4"] * 3)
    assert len(re.findall('aria-label="Note', svg)) == 12


def test_labels_on_the_axis_of_time_leave_room_for_each_other(small):
    days = {f"2026-11-{day:02d}": [900, 700, 400] for day in range(1, 29)}
    chart = line_panels(over_days(small, days))
    places = [place for place, _ in chart.x_ticks]
    assert [text for _, text in chart.x_ticks][:: len(places) - 1] == ["2026-11-01", "2026-11-28"]
    assert min(b - a for a, b in itertools.pairwise(places)) > 27
    labels = [point.x for point in chart.panels[0].points if point.label]
    assert len(labels) > 3
    assert labels[-1] == 96.0
    assert min(b - a for a, b in itertools.pairwise(labels)) > 8


def test_each_answer_has_a_panel_of_bars_and_all_panels_have_the_same_axis(small):
    every = SurveyResult(small, add_tallies(LINKS.values()), NOW)
    groups = link_results(every, results_of(small, split_by_link(LINKS)))
    result = combine("links", groups, SECOND, "shares")
    panels = group_panels(result)
    assert [panel.label for panel in panels] == ["Never", "Once", "Often"]
    for column, panel in enumerate(panels):
        assert panel.bars.ticks == panels[0].bars.ticks
        end = {"50%": 0.5, "75%": 0.75}[panel.bars.ticks[-1][1]]
        *shown, suppressed = panel.bars.bars
        for bar, group in zip(shown, result.groups, strict=False):
            row = group.rows[column]
            assert (bar.dot, bar.low, bar.high) == tuple(
                pytest.approx(100 * number / end, abs=0.01)
                for number in (row.estimate, row.conf_low, row.conf_high)
            )
        assert panel.bars.reference == shown[0].dot
        assert (suppressed.is_missing, suppressed.interval[:10]) == (True, "Not enough")
    assert max(bar.high for panel in panels for bar in panel.bars.bars) > 50
