"""Two groups' answers side by side: links, versions, and groups by another answer."""

from __future__ import annotations

import numpy as np
import pytest

from survey.collect.release import release
from survey.errors import ChannelError, CountsError, NotFoundError
from survey.estimator import conditional_difference, crosstab, difference, independence
from survey.results.charts import difference_specification
from survey.results.counts import crossed_counts
from survey.results.difference.compute import compared
from survey.results.difference.sentences import caveats, to_write
from survey.results.groups import group_named, groups
from survey.results.options import Wanted
from survey.store import StoredReport
from tests.conftest import SMALL
from tests.parquet.reports import fill
from tests.parquet.reports import published as published_kinds
from tests.results.exploring import add_people, published, turned


def between(store, survey, name, a, b, wanted=None):
    """The comparison that a link asks for."""
    first, second = (group_named(store, survey, group) for group in (a, b))
    return compared(store, survey, name, (first, second), wanted or Wanted())


@pytest.fixture
def two_links(store, small):
    add_people(store, small, 3000, "north", turned(0.5), 1)
    add_people(store, small, 2000, "south", turned(0.2), 2)
    return small


def test_two_links_differ_as_the_estimator_says_of_their_counts(store, two_links):
    found = between(store, two_links, "fell_asleep", "link:north", "link:south", Wanted(level=0.9))
    tallies = {stratum: tally for (stratum, _), tally in store.tallies(two_links.key).items()}
    counts = [tallies[name].counts[0] for name in ("north", "south")]
    channel = two_links.definition.questions[0].channel
    expected = difference(*counts, channel, level=0.9)
    for place, row in enumerate(found.rows):
        assert row.estimate == expected.estimate[place]
        assert (row.conf_low, row.conf_high) == (
            expected.conf_low[place],
            expected.conf_high[place],
        )
        assert row.p_value == expected.p_value[place]
        assert (row.n_a, row.n_b) == (3000, 2000)
    assert found.test.p_value == independence(counts).p_value
    assert abs(found.rows[0].estimate - 0.3) < 4 * found.rows[0].std_error


def test_sentences_name_the_groups_and_every_kind_of_group_has_a_caveat_of_its_own(
    store, two_links
):
    by_link = between(store, two_links, "fell_asleep", "link:north", "link:south")
    assert "of those who came by the link north" in to_write(by_link)[0]
    assert "differed between" in to_write(by_link)[1]
    assert any("Unless chance decided" in said for said in caveats(by_link))
    never, once = "answer:pressure:never", "answer:pressure:once"
    by_answer = between(store, two_links, "fell_asleep", never, once)
    assert "answered “Never” to “Did anybody press you to stay longer?”" in to_write(by_answer)[0]
    assert any("joint inversion" in said for said in caveats(by_answer))
    assert by_answer.test is None


def test_groups_by_an_answer_are_told_by_joint_inversion(store, two_links):
    never, once = "answer:pressure:never", "answer:pressure:once"
    found = between(store, two_links, "fell_asleep", never, once)
    channels = [question.channel for question in two_links.definition.questions]
    table = crosstab(crossed_counts(store, two_links, 0, 1), channels)
    expected = conditional_difference(table, [0, 1])
    np.testing.assert_array_equal([row.estimate for row in found.rows], expected.estimate)
    np.testing.assert_array_equal([row.conf_low for row in found.rows], expected.conf_low)


def test_two_versions_are_compared_each_through_its_own_channel(store, small):
    add_people(store, small, 3000, seed=3)
    other = published(store, SMALL.replace('"3/4"', '"4/5"'))
    add_people(store, other, 3000, seed=4)
    found = between(store, other, "fell_asleep", "version:1", "version:2")
    first, second = (store.tally(one.key).counts[0] for one in (small, other))
    channels = [one.definition.questions[0].channel for one in (small, other)]
    expected = difference(first, second, *channels)
    np.testing.assert_array_equal([row.estimate for row in found.rows], expected.estimate)
    assert found.test is None, "different channels make different reports of equal answers"
    assert any("different people" in said for said in caveats(found))


def test_a_version_without_the_question_or_with_other_options_is_refused_by_name(store, small):
    other = published(store, SMALL.replace('"often"', '"mostly"').replace("fell_asleep", "slept"))
    for name, reason in (("slept", "version 1 does not ask"), ("pressure", "other options")):
        with pytest.raises(CountsError, match=reason):
            between(store, other, name, "version:1", "version:2")


def test_few_reports_of_one_group_hide_all_numbers_at_every_level(store, small):
    add_people(store, small, 4000, "north")
    add_people(store, small, 60, "south")
    for level in (0.95, 0.5):
        wanted = Wanted(level=level)
        found = between(store, small, "fell_asleep", "link:north", "link:south", wanted)
        assert found.hidden
        assert {(row.estimate, row.estimate_a, row.p_value, row.flag) for row in found.rows} == {
            (None, None, None, "suppressed")
        }
        assert to_write(found) == []
        assert found.test is None


def test_people_of_an_answer_hardly_anybody_gave_are_not_told(store, small):
    nobody = np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    add_people(store, small, 1500, shares=nobody)
    never, often = "answer:pressure:never", "answer:pressure:often"
    assert between(store, small, "fell_asleep", never, often).hidden


def test_small_links_are_compared_only_together(store, small):
    add_people(store, small, 300, "north")
    for name in ("east", "west"):
        codes = bytes([0, 0])
        store.add_reports(
            [(small.key, StoredReport(bytes([i, *name.encode()]).ljust(16, b"."), name, codes))
             for i in range(13)]
        )  # fmt: skip
    # As at the close: few of a link wait until then.
    release(store, small, 1)
    assert [group.of for group in groups(store, small)["Links"]] == ["north", "other links"]
    with pytest.raises(NotFoundError):
        group_named(store, small, "link:east")


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("link:north", "link:north", "two different groups"),
        ("link:north", "answer:pressure:never", "not of one kind"),
    ],
)
def test_groups_that_are_no_pair_are_refused_by_name(store, two_links, a, b, reason):
    with pytest.raises(CountsError, match=reason):
        between(store, two_links, "fell_asleep", a, b)


KINDS = ["choice", "sets", "hours", "subsets", "bits", "mood", "since", "coins"]


def test_every_kind_of_question_is_compared_between_links(store):
    survey = published_kinds(store, KINDS)
    fill(store, survey, 3000, "north", 1)
    fill(store, survey, 2000, "south", 2)
    for question in survey.definition.questions:
        found = between(store, survey, question.id, "link:north", "link:south")
        has_mean = question.type in ("number", "date") or question.id == "mood"
        assert bool(found.mean_rows) == has_mean, question.id
        assert bool(found.share_rows) == (question.type not in ("number", "date")), question.id
        told = [row for row in found.rows if row.estimate is not None]
        assert all(row.conf_low <= row.conf_high for row in told)
        assert caveats(found)
        assert bool(to_write(found)) == bool(told)


def test_a_mean_is_not_split_by_an_answer_nor_sets_of_options(store):
    survey = published_kinds(store, KINDS)
    fill(store, survey, 500)
    option = survey.definition.questions[0].options
    a, b = (f"answer:choice:{one.id}" for one in option[:2])
    with pytest.raises(CountsError, match="its mean is compared between links"):
        between(store, survey, "hours", a, b)
    with pytest.raises(ChannelError, match="several options"):
        between(store, survey, "sets", a, b)


def test_a_chart_of_differences_has_zero_in_its_middle_and_every_interval_in_it(store, two_links):
    found = between(store, two_links, "fell_asleep", "link:north", "link:south")
    drawn = difference_specification("Title", found.rows)
    low, high = drawn["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low == -high
    for point in drawn["data"]["values"]:
        assert low <= point["low"] <= point["dot"] <= point["high"] <= high
