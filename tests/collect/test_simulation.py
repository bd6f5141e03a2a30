"""Test runs process reports like published surveys, and deleting a test run leaves nothing."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from survey.collect.publication import publish
from survey.collect.simulation import (
    MAX_SIMULATED,
    add_test_responses,
    make_test_run,
    remove_test_run,
    simulate_respondents,
)
from survey.errors import DefinitionError, DesignError
from survey.estimator import mean
from survey.questionnaire.loading import load
from survey.results.crosstab.compute import CrosstabRequest, compute_crosstab
from survey.results.estimates.result import ResultCache
from survey.results.question_statistics import truth_values
from survey.results.request import IntervalOptions
from survey.settings import Caps
from tests import surveys
from tests.conftest import SMALL, TODAY


def parsed(text: str):
    return load(text.encode(), "s.toml", Caps())


@pytest.fixture
def draft(store):
    ada = store.add_researcher("ada@example.org", "hash").key
    return store.add_draft("{}", "ada@example.org", 1, {ada: "owner"})


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_the_estimates_of_a_test_run_are_close_to_the_requested_shares(store, draft, rng):
    survey = make_test_run(store, parsed(SMALL), draft, TODAY)
    shares = {"fell_asleep": [0.3, 0.6, 0.1], "pressure": [0.5, 0.5, 0.0]}
    assert add_test_responses(store, survey, 4_000, shares, rng) == 4_000
    result = ResultCache(store).result(survey)
    assert result.n == 4_000
    rows = {row.option_id: row for row in result.questions[1].shares}
    for name, share in zip(("never", "once", "often"), shares["pressure"], strict=True):
        row = rows[name]
        assert abs(row.estimate - share) < 5 * row.std_error


@pytest.mark.parametrize("text", [surveys.EVERY_TYPE, surveys.SKIPS, surveys.SAMPLED])
def test_every_type_skip_logic_and_sampled_questions_can_be_simulated(store, draft, rng, text):
    survey = make_test_run(store, parsed(text), draft, TODAY)
    assert add_test_responses(store, survey, 300, {}, rng) == 300
    tally = store.tally(survey.key)
    assert tally.n == 300
    assert all(n <= 300 for n in tally.n_asked)


def test_the_estimated_mean_of_a_number_is_close_to_the_requested_one(store, draft, rng):
    survey = make_test_run(store, parsed(surveys.EVERY_TYPE), draft, TODAY)
    add_test_responses(store, survey, 3_000, {"hours": [0.25]}, rng)
    at = [question.id for question in survey.definition.questions].index("hours")
    question = survey.definition.questions[at]
    result = mean(store.tally(survey.key).counts[at], question.channel, truth_values(question))
    assert abs(result.estimate - 20) < 5 * result.std_error


def test_answers_to_a_joint_response_are_associated_in_test_runs_and_keep_their_shares():
    """For half of the respondents one number decides both answers, for the others two."""
    definition = surveys.publish(surveys.JOINT.replace(b"questions_per_person = 2\n", b""))
    shares = {"smoked": [0.3, 0.7], "drank": [0.2, 0.3, 0.5]}
    rng = np.random.default_rng(3)
    n = 8_000
    rows = list(simulate_respondents(definition, n, shares, rng, associated=0.5))
    table = np.zeros((2, 3))
    for smoked, _, drank, *_ in rows:
        table[smoked, drank] += 1 / n
    alike = np.array([[0.2, 0.1, 0.0], [0.0, 0.2, 0.5]])
    expected = (alike + np.outer(*shares.values())) / 2
    # Five standard deviations of a share of one half.
    assert np.abs(table - expected).max() < 5 * 0.5 / np.sqrt(n)
    independent = list(simulate_respondents(definition, n, shares, rng))
    often = np.mean([row[0] == 0 and row[2] == 0 for row in independent])
    assert abs(often - 0.06) < 0.02


def test_the_cross_tab_of_a_joint_response_in_a_test_run_shows_an_association(store, draft, rng):
    text = surveys.JOINT.decode().replace("questions_per_person = 2\n", "")
    survey = make_test_run(store, parsed(text.replace('"3/4"', '"9/10"')), draft, TODAY)
    add_test_responses(store, survey, 500, {}, rng)
    result = compute_crosstab(store, survey, CrosstabRequest("smoked", "drank"), IntervalOptions())
    assert result.test.p_value < 1e-6


def test_a_test_run_never_changes_a_published_survey(store, draft, rng):
    real = publish(store, parsed(SMALL), TODAY)
    test_run = make_test_run(store, parsed(SMALL), draft, TODAY)
    assert test_run.team == draft.slug
    assert test_run.is_test_run
    assert not real.is_test_run
    add_test_responses(store, test_run, 50, {}, rng)
    assert store.n_released(real.key) == store.n_pending(real.key) == 0
    with pytest.raises(DesignError, match="is not a test run"):
        add_test_responses(store, real, 50, {}, rng)


def test_a_new_test_run_has_no_reports_and_keeps_the_team_of_its_draft(store, draft, rng):
    first = make_test_run(store, parsed(SMALL), draft, TODAY)
    add_test_responses(store, first, 30, {}, rng)
    second = make_test_run(store, parsed(SMALL), draft, TODAY)
    assert second.key > first.key
    assert store.n_released(second.key) == 0
    assert [member.role for member in store.members(draft.slug)] == ["owner"]
    remove_test_run(store, draft, TODAY)
    remove_test_run(store, draft, TODAY)
    assert store.surveys() == []
    assert store.draft(draft.key) == draft


def test_each_test_run_has_a_new_address_that_cannot_be_guessed(store, draft):
    first = make_test_run(store, parsed(SMALL), draft, TODAY)
    second = make_test_run(store, parsed(SMALL), draft, TODAY)
    for test_run in (first, second):
        assert re.fullmatch(rf"{draft.slug}-[0-9a-f]{{32}}", test_run.slug)
    assert first.slug != second.slug
    assert store.test_runs(draft.slug) == [second]
    assert store.versions(draft.slug) == store.versions(first.slug) == []


def test_a_draft_does_not_list_the_test_runs_of_a_draft_whose_key_has_more_digits(store, draft):
    drafts = [store.add_draft("{}", "ada@example.org", 1, {}) for _ in range(10)]
    test_run = make_test_run(store, parsed(SMALL), drafts[-1], TODAY)
    assert drafts[-1].slug.startswith(draft.slug)
    assert store.test_runs(draft.slug) == []
    assert store.test_runs(drafts[-1].slug) == [test_run]


def test_a_test_run_is_open_to_all_and_has_the_translations_of_its_survey(store, draft):
    text = surveys.EVERY_TYPE.replace(
        'title = "Work and health"',
        'title = {en = "Work", es = "Trabajo"}\naccess = "invitation"',
    )
    test_run = make_test_run(store, parsed(text), draft, TODAY)
    form = json.loads(test_run.canonical)
    assert test_run.definition.access == "open"
    assert form["slug"] == test_run.slug
    assert form["translations"]["es"]["title"] == "TEST: Trabajo"


def test_too_many_or_no_simulated_respondents_are_refused(store, draft, rng):
    survey = make_test_run(store, parsed(SMALL), draft, TODAY)
    for n in (0, MAX_SIMULATED + 1):
        with pytest.raises(DesignError, match="from 1 to 5,000"):
            add_test_responses(store, survey, n, {}, rng)


def test_a_survey_cannot_have_a_slug_reserved_for_test_runs():
    with pytest.raises(DefinitionError, match="reserved for test runs"):
        parsed(SMALL.replace('slug = "small"', 'slug = "trial-1"'))


def test_default_shares_are_between_0_and_1(store, draft):
    survey = make_test_run(store, parsed(surveys.EVERY_TYPE), draft, TODAY)
    for question in survey.definition.questions:
        shares = question.kind.default_shares(question)
        assert all(0 <= share <= 1 for share in shares)
        if question.type in ("yes_no", "single_choice", "scale"):
            assert sum(shares) == pytest.approx(1)


@pytest.mark.web
def test_respondents_who_do_not_answer_a_number_are_simulated_too(store, draft, rng):
    # A large epsilon, because uncertain shares would be suppressed.
    text = surveys.EVERY_TYPE.replace("epsilon = 0.5", "epsilon = 2.8")
    survey = make_test_run(store, parsed(text), draft, TODAY)
    add_test_responses(store, survey, 4_000, {"hours": [0.25, 0.4, 0.1]}, rng)
    (question,) = [
        summary
        for summary in ResultCache(store).result(survey).questions
        if summary.question.id == "hours"
    ]
    rows = {row.option_id: row for row in question.shares}
    for name, share in (("does_not_apply", 0.4), ("prefer_not_to_say", 0.1)):
        row = rows[name]
        assert abs(row.estimate - share) < 5 * row.std_error
    with pytest.raises(DesignError, match="must add up to less than 100%"):
        add_test_responses(store, survey, 50, {"hours": [0.25, 0.5, 0.5]}, rng)
