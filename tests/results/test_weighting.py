"""Shares weighted to known margins over groups and over answers."""

from __future__ import annotations

import numpy as np
import pytest

from survey.errors import CountsError, DesignError
from survey.estimator import crosstab, poststratified, proportions, standardized_shares
from survey.results.joint_counts import joint_counts
from survey.results.request import IntervalOptions
from survey.results.weighting.compute import compute_weighting, list_bases, list_categories
from survey.results.weighting.request import WeightingRequest
from survey.results.weighting.table import caveats, paper_sentences
from tests.parquet.reports import fill
from tests.parquet.reports import published as published_kinds
from tests.results.populations import SHARES, add_people, shares_by_first_answer

PRESSURE = "answer:pressure"


def weight(store, survey, name, by, shares, options=None):
    """Weight a question to the shares of the categories."""
    categories = list_categories(store, survey, by)
    lines = [f"{category.id},{share!r}" for category, share in zip(categories, shares, strict=True)]
    request = WeightingRequest(name, by, "\n".join(lines), "shares")
    return compute_weighting(store, survey, request, options or IntervalOptions())


@pytest.fixture
def two_groups(store, small):
    add_people(store, small, 3000, "north", shares_by_first_answer(0.5), 1)
    add_people(store, small, 2000, "south", shares_by_first_answer(0.2), 2)
    return small


def test_margins_over_groups_give_post_stratification(store, two_groups):
    result = weight(
        store, two_groups, "fell_asleep", "link", [0.1, 0.9], IntervalOptions(level=0.9)
    )
    tallies = {stratum: tally for (stratum, _), tally in store.tallies(two_groups.key).items()}
    counts = [tallies[name].counts[0] for name in ("north", "south")]
    channel = two_groups.definition.questions[0].channel
    expected = poststratified(counts, [0.1, 0.9], channel, level=0.9)
    unweighted = proportions(np.sum(counts, axis=0), channel, level=0.9)
    for place, row in enumerate(result.rows):
        assert row.estimate == expected.estimate[place]
        assert (row.conf_low, row.conf_high) == (
            expected.conf_low[place],
            expected.conf_high[place],
        )
        assert row.unweighted == unweighted.estimate[place]
    assert result.design_effect > 1
    assert [
        (category.label, category.population, category.reported) for category in result.composition
    ] == [
        ("north", 0.1, 0.6),
        ("south", 0.9, 0.4),
    ]
    assert abs(result.rows[0].estimate - 0.23) < 4 * result.rows[0].std_error


def test_margins_over_an_answer_give_standardization_and_correct_nonresponse(store, small):
    # Respondents under pressure took part twice as often as others.
    took_part = SHARES * np.array([1, 2, 2])
    add_people(store, small, 12_000, shares=took_part / took_part.sum())
    population = SHARES.sum(axis=0) / SHARES.sum()
    result = weight(store, small, "fell_asleep", PRESSURE, population.tolist())
    channels = [question.channel for question in small.definition.questions]
    table = crosstab(joint_counts(store, small, 0, 1), channels)
    expected = standardized_shares(table, population)
    np.testing.assert_allclose([row.estimate for row in result.rows], expected.estimate)
    truth = SHARES.sum(axis=1) / SHARES.sum()
    for row, true in zip(result.rows, truth, strict=True):
        assert abs(row.estimate - true) < 4 * row.std_error
    assert abs(result.rows[0].unweighted - truth[0]) > 4 * result.rows[0].std_error


def test_sentences_and_caveats_match_the_kind_of_margins(store, two_groups):
    by_group = weight(store, two_groups, "fell_asleep", "link", [0.3, 0.7])
    assert "post-stratified; design effect" in paper_sentences(by_group)[0]
    assert "north 30%, south 70%" in paper_sentences(by_group)[0]
    assert any("nonresponse only between groups" in text for text in caveats(by_group))
    by_answer = weight(store, two_groups, "fell_asleep", PRESSURE, [0.5, 0.5, 0], IntervalOptions())
    assert "standardized by joint inversion" in paper_sentences(by_answer)[0]
    assert any("answered “Often” are left out" in text for text in caveats(by_answer))


def test_few_reports_suppress_all_weighted_shares_and_sentences(store, small):
    add_people(store, small, 40, "north")
    add_people(store, small, 30, "south")
    for by, population in (("link", [0.5, 0.5]), (PRESSURE, [0.4, 0.4, 0.2])):
        result = weight(store, small, "fell_asleep", by, population, IntervalOptions(level=0.5))
        assert {(row.estimate, row.unweighted, row.flag) for row in result.rows} == {
            (None, None, "suppressed")
        }
        assert paper_sentences(result) == []
        assert result.design_effect is None
    assert {category.reported for category in result.composition} == {None}


def test_margins_that_do_not_fit_the_reports_are_rejected_by_name(store, two_groups):
    with pytest.raises(
        DesignError, match="“south” is 0 here, but 2,000 reports belong to this group"
    ):
        weight(store, two_groups, "fell_asleep", "link", [1, 0])
    with pytest.raises(CountsError, match="its own margins"):
        weight(store, two_groups, "pressure", PRESSURE, [0.3, 0.3, 0.4])


def test_every_kind_of_question_with_options_is_weighted_by_groups(store):
    survey = published_kinds(store, ["choice", "sets", "subsets", "bits", "mood", "hours"])
    fill(store, survey, 3000, "north", 1)
    fill(store, survey, 2000, "south", 2)
    for question in survey.definition.questions[:-1]:
        result = weight(store, survey, question.id, "link", [0.5, 0.5])
        assert all(row.method.startswith("post-strata") for row in result.rows if row.method)
        assert result.rows
    with pytest.raises(CountsError, match="is a number"):
        weight(store, survey, "hours", "link", [0.5, 0.5])
    with pytest.raises(CountsError, match="by groups only"):
        weight(store, survey, "sets", "answer:choice", [0.5, 0.25, 0.25, 0])


def test_margins_can_be_over_groups_and_answers(store, small):
    assert list(list_bases(store, small)) == ["answer:fell_asleep", "answer:pressure"]
    add_people(store, small, 50, "north")
    add_people(store, small, 50, "south")
    assert "link" in list_bases(store, small)
    silent = list_categories(store, small, "answer:fell_asleep")[2]
    assert silent.optional, "no official table counts those who did not answer"
