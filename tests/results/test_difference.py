"""Differences between groups by link, version or another answer."""

from __future__ import annotations

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError
from survey.estimator import conditional_difference, crosstab, difference, independence
from survey.results.charts import LABEL_LINE_PIXELS
from survey.results.difference.compute import (
    DifferenceRequest,
    comparable_groups,
    compute_difference,
)
from survey.results.difference.table import (
    caveats,
    difference_chart,
    null_statement,
    paper_sentences,
)
from survey.results.joint_counts import joint_counts
from survey.results.number_format import points
from survey.results.request import IntervalOptions
from tests.conftest import SMALL
from tests.parquet.reports import fill
from tests.parquet.reports import published as published_kinds
from tests.results.populations import SHARES, add_people, published, shares_by_first_answer


def between(store, survey, name, a, b, options=None):
    """Compute the difference between two groups given by their ids."""
    request = DifferenceRequest(name, a, b)
    return compute_difference(store, survey, request, options or IntervalOptions())


@pytest.fixture
def two_groups(store, small):
    add_people(store, small, 3000, "north", shares_by_first_answer(0.5), 1)
    add_people(store, small, 2000, "south", shares_by_first_answer(0.2), 2)
    return small


def test_the_difference_of_two_groups_is_estimated_from_their_counts(store, two_groups):
    result = between(
        store, two_groups, "fell_asleep", "link:north", "link:south", IntervalOptions(level=0.9)
    )
    tallies = {stratum: tally for (stratum, _), tally in store.tallies(two_groups.key).items()}
    counts = [tallies[name].counts[0] for name in ("north", "south")]
    channel = two_groups.definition.questions[0].channel
    expected = difference(*counts, channel, level=0.9)
    for place, row in enumerate(result.rows):
        assert row.estimate == expected.estimate[place]
        assert (row.conf_low, row.conf_high) == (
            expected.conf_low[place],
            expected.conf_high[place],
        )
        assert row.p_value == expected.p_value[place]
        assert (row.n_a, row.n_b) == (3000, 2000)
    assert result.test.p_value == independence(counts).p_value
    assert abs(result.rows[0].estimate - 0.3) < 4 * result.rows[0].std_error


def test_sentences_name_the_groups_and_each_kind_of_group_has_its_own_caveat(store, two_groups):
    by_group = between(store, two_groups, "fell_asleep", "link:north", "link:south")
    assert "of respondents of the group “north”" in paper_sentences(by_group)[0]
    assert "differed between" in paper_sentences(by_group)[1]
    assert any("assigned at random" in text for text in caveats(by_group))
    never, once = "answer:pressure:never", "answer:pressure:once"
    by_answer = between(store, two_groups, "fell_asleep", never, once)
    assert (
        "answered “Never” to “Did anybody press you to stay longer?”"
        in paper_sentences(by_answer)[0]
    )
    assert any("joint inversion" in text for text in caveats(by_answer))
    assert by_answer.test is None


def test_only_a_difference_that_is_shown_gets_a_sentence_for_a_paper(store, small):
    for seed, group in enumerate(("north", "south")):
        add_people(store, small, 2000, group, SHARES, seed)
    alike = between(store, small, "fell_asleep", "link:north", "link:south")
    assert all(row.conf_low <= 0 <= row.conf_high for row in alike.rows)
    assert paper_sentences(alike) == []
    largest = max(max(-row.conf_low, row.conf_high) for row in alike.rows)
    assert null_statement(alike) == (
        "These responses do not show a difference between respondents of the group “north” and "
        f"respondents of the group “south”. Differences of up to {100 * largest:.0f} percentage "
        "points remain possible."
    )


def test_groups_by_an_answer_are_estimated_by_joint_inversion(store, two_groups):
    never, once = "answer:pressure:never", "answer:pressure:once"
    result = between(store, two_groups, "fell_asleep", never, once)
    channels = [question.channel for question in two_groups.definition.questions]
    table = crosstab(joint_counts(store, two_groups, 0, 1), channels)
    expected = conditional_difference(table, [0, 1])
    np.testing.assert_array_equal([row.estimate for row in result.rows], expected.estimate)
    np.testing.assert_array_equal([row.conf_low for row in result.rows], expected.conf_low)


def test_every_group_that_is_offered_can_be_compared(store):
    kinds = ["choice", "sets", "coins", "bits", "subsets", "hours", "mood"]
    survey = published_kinds(store, kinds)
    fill(store, survey, 300, "north", 1)
    fill(store, survey, 200, "south", 2)
    offered = {}
    for question in survey.definition.questions:
        groups = comparable_groups(store, survey, question)
        offered[question.id] = list(groups)
        for members in groups.values():
            first, second = members[:2]
            assert between(store, survey, question.id, first.id, second.id).groups[0] == first
    by_answer = [
        "Groups",
        *(f"Answers to “{name}?”" for name in ("choice", "coins", "subsets", "mood")),
    ]
    assert offered["hours"] == offered["bits"] == offered["sets"] == ["Groups"]
    assert offered["coins"] == [heading for heading in by_answer if "coins" not in heading]


def test_versions_are_compared_through_their_own_channels(store, small):
    add_people(store, small, 3000, seed=3)
    changed = published(store, SMALL.replace('"3/4"', '"4/5"'))
    add_people(store, changed, 3000, seed=4)
    result = between(store, changed, "fell_asleep", "version:1", "version:2")
    first, second = (store.tally(version.key).counts[0] for version in (small, changed))
    channels = [version.definition.questions[0].channel for version in (small, changed)]
    expected = difference(first, second, *channels)
    np.testing.assert_array_equal([row.estimate for row in result.rows], expected.estimate)
    assert result.test is None, "different channels make different reports of equal answers"
    assert any("different people" in text for text in caveats(result))


def test_two_answers_have_one_test_and_more_have_a_limit_for_all_of_them_together(store, small):
    two = published(
        store, SMALL.replace('type = "yes_no"', 'type = "yes_no"\nprefer_not_to_say = false')
    )
    for seed, group in enumerate(("north", "south")):
        add_people(store, two, 3000, group, SHARES[:2], seed)
    yes_or_no = between(store, two, "fell_asleep", "link:north", "link:south")
    assert len(yes_or_no.rows) == 2
    assert yes_or_no.test is None
    for level, limit in (
        (0.95, "p below 0.0166"),
        (0.9, "p below 0.0333"),
        (0.99, "p below 0.0033"),
    ):
        options = IntervalOptions(level=level)
        result = between(store, two, "pressure", "link:north", "link:south", options)
        assert result.test is not None
        assert any(limit in text for text in caveats(result))


def test_a_version_without_the_question_or_with_other_options_is_rejected(store, small):
    changed = published(store, SMALL.replace('"often"', '"mostly"').replace("fell_asleep", "slept"))
    for name, reason in (("slept", "version 1 does not ask"), ("pressure", "other options")):
        with pytest.raises(CountsError, match=reason):
            between(store, changed, name, "version:1", "version:2")


def test_few_reports_of_one_group_suppress_all_numbers_at_every_level(store, small):
    add_people(store, small, 4000, "north")
    add_people(store, small, 60, "south")
    for level in (0.95, 0.5):
        options = IntervalOptions(level=level)
        result = between(store, small, "fell_asleep", "link:north", "link:south", options)
        assert result.is_suppressed
        assert {(row.estimate, row.estimate_a, row.p_value, row.flag) for row in result.rows} == {
            (None, None, None, "suppressed")
        }
        assert paper_sentences(result) == []
        assert result.test is None


def test_groups_by_an_answer_that_hardly_anybody_gave_may_differ_by_any_amount(store, small):
    """Suppressing them would select the surveys in which the group seems larger than it is."""
    nobody = np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    add_people(store, small, 1500, shares=nobody)
    never, often = "answer:pressure:never", "answer:pressure:often"
    result = between(store, small, "fell_asleep", never, often)
    assert not result.is_suppressed
    assert {(row.estimate, row.conf_low, row.conf_high) for row in result.rows} == {(None, -1, 1)}
    assert any("any difference is possible" in text for text in caveats(result))
    assert paper_sentences(result) == []


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("link:north", "link:north", "choose two different groups"),
        ("link:north", "answer:pressure:never", "cannot be compared"),
    ],
)
def test_groups_that_cannot_be_compared_are_rejected_with_a_reason(store, two_groups, a, b, reason):
    with pytest.raises(CountsError, match=reason):
        between(store, two_groups, "fell_asleep", a, b)


KINDS = ["choice", "sets", "hours", "subsets", "bits", "mood", "since", "coins"]


def test_every_kind_of_question_is_compared_between_groups(store):
    survey = published_kinds(store, KINDS)
    fill(store, survey, 3000, "north", 1)
    fill(store, survey, 2000, "south", 2)
    for question in survey.definition.questions:
        result = between(store, survey, question.id, "link:north", "link:south")
        has_mean = question.kind.is_numeric or question.id == "mood"
        assert bool(result.mean_rows) == has_mean, question.id
        assert bool(result.share_rows) == (not question.kind.is_numeric), question.id
        visible = [row for row in result.rows if row.estimate is not None]
        assert all(row.conf_low <= row.conf_high for row in visible)
        assert caveats(result)
        assert bool(visible) == (bool(paper_sentences(result)) or bool(null_statement(result)))


def test_numbers_and_sets_of_options_cannot_be_compared_by_an_answer(store):
    survey = published_kinds(store, KINDS)
    fill(store, survey, 500)
    option = survey.definition.questions[0].options
    a, b = (f"answer:choice:{choice.id}" for choice in option[:2])
    with pytest.raises(CountsError, match="compare its mean between groups"):
        between(store, survey, "hours", a, b)
    with pytest.raises(ChannelError, match="several options"):
        between(store, survey, "sets", a, b)


def test_lines_of_long_answers_do_not_overlap(store):
    long = SMALL.replace(
        '"Never"', '"Nobody pressed me to stay longer than I had agreed to this year"'
    )
    survey = published(store, long)
    for seed, group in enumerate(("north", "south")):
        add_people(store, survey, 3000, group, SHARES, seed)
    chart = difference_chart(between(store, survey, "pressure", "link:north", "link:south"))
    n_lines = max(point["option"].count("\n") + 1 for point in chart["data"]["values"])
    assert n_lines > 2
    assert chart["height"]["step"] >= LABEL_LINE_PIXELS * n_lines


def test_the_chart_has_zero_in_the_middle_and_contains_every_interval(store, two_groups):
    result = between(store, two_groups, "fell_asleep", "link:north", "link:south")
    chart = difference_chart(result)
    low, high = chart["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low == -high
    for point in chart["data"]["values"]:
        assert low <= point["low"] <= point["dot"] <= point["high"] <= high
        ends = points(point["low"]), points(point["high"])
        assert point["words"].endswith(" points ({} to {})".format(*ends))
        assert point["words"].count(point["option"]) == 1
