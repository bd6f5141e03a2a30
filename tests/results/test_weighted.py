"""Shares weighted to known margins of links and of answers, beside the unweighted ones."""

from __future__ import annotations

import numpy as np
import pytest

from survey.errors import CountsError, DesignError
from survey.estimator import crosstab, poststratified, proportions, standardized_shares
from survey.results.counts import crossed_counts
from survey.results.options import Wanted
from survey.results.weighting.compute import bases, categories, weighted
from survey.results.weighting.sentences import caveats, to_write
from tests.parquet.reports import fill
from tests.parquet.reports import published as published_kinds
from tests.results.exploring import SHARES, add_people, turned

PRESSURE = "answer:pressure"


@pytest.fixture
def two_links(store, small):
    add_people(store, small, 3000, "north", turned(0.5), 1)
    add_people(store, small, 2000, "south", turned(0.2), 2)
    return small


def test_margins_of_links_are_post_stratification(store, two_links):
    found = weighted(store, two_links, "fell_asleep", "link", [0.1, 0.9], Wanted(level=0.9))
    tallies = {stratum: tally for (stratum, _), tally in store.tallies(two_links.key).items()}
    counts = [tallies[name].counts[0] for name in ("north", "south")]
    channel = two_links.definition.questions[0].channel
    expected = poststratified(counts, [0.1, 0.9], channel, level=0.9)
    plain = proportions(np.sum(counts, axis=0), channel, level=0.9)
    for place, row in enumerate(found.rows):
        assert row.estimate == expected.estimate[place]
        assert (row.conf_low, row.conf_high) == (
            expected.conf_low[place],
            expected.conf_high[place],
        )
        assert row.unweighted == plain.estimate[place]
    assert found.design_effect > 1
    assert [(part.label, part.known, part.here) for part in found.composition] == [
        ("north", 0.1, 0.6),
        ("south", 0.9, 0.4),
    ]
    assert abs(found.rows[0].estimate - 0.23) < 4 * found.rows[0].std_error


def test_margins_of_an_answer_are_standardization_and_undo_who_took_part(store, small):
    # Those who were pressed took part twice as often as the others.
    took_part = SHARES * np.array([1, 2, 2])
    add_people(store, small, 12_000, shares=took_part / took_part.sum())
    known = SHARES.sum(axis=0) / SHARES.sum()
    found = weighted(store, small, "fell_asleep", PRESSURE, known.tolist(), Wanted())
    channels = [question.channel for question in small.definition.questions]
    table = crosstab(crossed_counts(store, small, 0, 1), channels)
    expected = standardized_shares(table, known)
    np.testing.assert_array_equal([row.estimate for row in found.rows], expected.estimate)
    truth = SHARES.sum(axis=1) / SHARES.sum()
    for row, true in zip(found.rows, truth, strict=True):
        assert abs(row.estimate - true) < 4 * row.std_error
    assert abs(found.rows[0].unweighted - truth[0]) > 4 * found.rows[0].std_error


def test_what_is_said_belongs_to_the_kind_of_margins(store, two_links):
    by_link = weighted(store, two_links, "fell_asleep", "link", [0.3, 0.7], Wanted())
    assert "post-stratified; design effect" in to_write(by_link)[0]
    assert "north 30%, south 70%" in to_write(by_link)[0]
    assert any("who took part only as far as the links do" in said for said in caveats(by_link))
    by_answer = weighted(store, two_links, "fell_asleep", PRESSURE, [0.5, 0.5, 0], Wanted())
    assert "standardized by joint inversion" in to_write(by_answer)[0]
    assert any("Left out are those who answered “Often”" in said for said in caveats(by_answer))


def test_few_reports_hide_all_weighted_shares_and_say_nothing(store, small):
    add_people(store, small, 40, "north")
    add_people(store, small, 30, "south")
    for by, known in (("link", [0.5, 0.5]), (PRESSURE, [0.4, 0.4, 0.2])):
        found = weighted(store, small, "fell_asleep", by, known, Wanted(level=0.5))
        assert {(row.estimate, row.unweighted, row.flag) for row in found.rows} == {
            (None, None, "suppressed")
        }
        assert to_write(found) == []
        assert found.design_effect is None
    assert {part.here for part in found.composition} == {None}


def test_margins_that_these_reports_cannot_have_are_refused_by_name(store, two_links):
    with pytest.raises(DesignError, match="“south” is 0 here, but 2,000 reports came by it"):
        weighted(store, two_links, "fell_asleep", "link", [1, 0], Wanted())
    with pytest.raises(CountsError, match="margins of its own"):
        weighted(store, two_links, "pressure", PRESSURE, [0.3, 0.3, 0.4], Wanted())


def test_every_kind_of_question_with_options_is_weighted_by_links(store):
    survey = published_kinds(store, ["choice", "sets", "subsets", "bits", "mood", "hours"])
    fill(store, survey, 3000, "north", 1)
    fill(store, survey, 2000, "south", 2)
    for question in survey.definition.questions[:-1]:
        found = weighted(store, survey, question.id, "link", [0.5, 0.5], Wanted())
        assert all(row.method.startswith("post-strata") for row in found.rows if row.method)
        assert found.rows
    with pytest.raises(CountsError, match="is a number"):
        weighted(store, survey, "hours", "link", [0.5, 0.5], Wanted())
    with pytest.raises(CountsError, match="by links only"):
        weighted(store, survey, "sets", "answer:choice", [0.5, 0.5], Wanted())


def test_what_margins_can_be_of(store, small):
    assert list(bases(store, small)) == ["answer:fell_asleep", "answer:pressure"]
    add_people(store, small, 50, "north")
    add_people(store, small, 50, "south")
    assert "link" in bases(store, small)
    silent = categories(store, small, "answer:fell_asleep")[2]
    assert silent.optional, "no official table counts those who did not answer"
