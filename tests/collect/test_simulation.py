"""A test run uses the path of real reports, beside the real surveys, and leaves nothing."""

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
)
from survey.errors import DefinitionError, DesignError
from survey.estimator import mean
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.results.question_statistics import truth_values
from survey.settings import Caps
from tests import surveys
from tests.conftest import SMALL, TODAY


def written(text: str):
    return load(text.encode(), "s.toml", Caps())


@pytest.fixture
def draft(store):
    ada = store.add_researcher("ada@example.org", "hash").key
    return store.add_draft("{}", "ada@example.org", 1, {ada: "owner"})


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_simulated_respondents_are_estimated_near_the_shares_they_were_given(store, draft, rng):
    survey = make_test_run(store, written(SMALL), draft, TODAY)
    shares = {"fell_asleep": [0.3, 0.6, 0.1], "pressure": [0.5, 0.5, 0.0]}
    assert add_test_responses(store, survey, 4_000, shares, rng) == 4_000
    result = ResultCache(store).result(survey)
    assert result.n == 4_000
    found = {row.option_id: row for row in result.questions[1].shares}
    for name, share in zip(("never", "once", "often"), shares["pressure"], strict=True):
        row = found[name]
        assert abs(row.estimate - share) < 5 * row.std_error


@pytest.mark.parametrize("text", [surveys.EVERY_TYPE, surveys.SKIPS, surveys.SAMPLED])
def test_every_type_skip_logic_and_drawn_questions_can_be_simulated(store, draft, rng, text):
    survey = make_test_run(store, written(text), draft, TODAY)
    assert add_test_responses(store, survey, 300, {}, rng) == 300
    tally = store.tally(survey.key)
    assert tally.n == 300
    assert all(asked <= 300 for asked in tally.n_asked)


def test_a_number_is_estimated_near_the_mean_it_was_given(store, draft, rng):
    survey = make_test_run(store, written(surveys.EVERY_TYPE), draft, TODAY)
    add_test_responses(store, survey, 3_000, {"hours": [0.25]}, rng)
    at = [question.id for question in survey.definition.questions].index("hours")
    question = survey.definition.questions[at]
    found = mean(store.tally(survey.key).counts[at], question.channel, truth_values(question))
    assert abs(found.estimate - 20) < 5 * found.std_error


def test_a_try_out_never_touches_a_published_survey(store, draft, rng):
    real = publish(store, written(SMALL), TODAY)
    test_run = make_test_run(store, written(SMALL), draft, TODAY)
    assert test_run.team == draft.slug
    assert test_run.is_test_run
    assert not real.is_test_run
    add_test_responses(store, test_run, 50, {}, rng)
    assert store.n_released(real.key) == store.n_pending(real.key) == 0
    with pytest.raises(DesignError, match="is not a test run"):
        add_test_responses(store, real, 50, {}, rng)


def test_a_try_out_made_anew_begins_without_reports_and_keeps_the_draft_s_team(store, draft, rng):
    first = make_test_run(store, written(SMALL), draft, TODAY)
    add_test_responses(store, first, 30, {}, rng)
    second = make_test_run(store, written(SMALL), draft, TODAY)
    assert second.key > first.key
    assert store.n_released(second.key) == 0
    assert [member.role for member in store.members(draft.slug)] == ["owner"]
    remove_test_run(store, draft, TODAY)
    remove_test_run(store, draft, TODAY)
    assert store.surveys() == []
    assert store.draft(draft.key) == draft


def test_the_address_of_a_try_out_cannot_be_guessed_and_is_new_each_time(store, draft):
    first = make_test_run(store, written(SMALL), draft, TODAY)
    second = make_test_run(store, written(SMALL), draft, TODAY)
    for test_run in (first, second):
        assert re.fullmatch(rf"{draft.slug}-[0-9a-f]{{32}}", test_run.slug)
    assert first.slug != second.slug
    assert store.test_runs(draft.slug) == [second]
    assert store.versions(draft.slug) == store.versions(first.slug) == []


def test_a_draft_s_try_outs_are_not_those_of_another_number(store, draft):
    others = [store.add_draft("{}", "ada@example.org", 1, {}) for _ in range(10)]
    test_run = make_test_run(store, written(SMALL), others[-1], TODAY)
    assert others[-1].slug.startswith(draft.slug)
    assert store.test_runs(draft.slug) == []
    assert store.test_runs(others[-1].slug) == [test_run]


def test_a_try_out_is_open_to_all_and_translated_as_the_survey_is(store, draft):
    text = surveys.EVERY_TYPE.replace(
        'title = "Work and health"',
        'title = {en = "Work", es = "Trabajo"}\naccess = "invitation"',
    )
    test_run = make_test_run(store, written(text), draft, TODAY)
    form = json.loads(test_run.canonical)
    assert test_run.definition.access == "open"
    assert form["slug"] == test_run.slug
    assert form["translations"]["es"]["title"] == "TEST: Trabajo"


def test_too_many_at_a_time_are_refused(store, draft, rng):
    survey = make_test_run(store, written(SMALL), draft, TODAY)
    for n in (0, MAX_SIMULATED + 1):
        with pytest.raises(DesignError, match="from 1 to 5,000"):
            add_test_responses(store, survey, n, {}, rng)


def test_no_survey_may_take_the_name_of_a_try_out():
    with pytest.raises(DefinitionError, match="reserved for test runs"):
        written(SMALL.replace('slug = "small"', 'slug = "trial-1"'))


def test_shares_to_begin_with_are_shares(store, draft):
    survey = make_test_run(store, written(surveys.EVERY_TYPE), draft, TODAY)
    for question in survey.definition.questions:
        shares = question.kind.default_shares(question)
        assert all(0 <= share <= 1 for share in shares)
        if question.type in ("yes_no", "single_choice", "scale"):
            assert sum(shares) == pytest.approx(1)


def test_people_who_do_not_answer_a_number_are_simulated_too(store, draft, rng):
    # At a large epsilon, so that the shares are never too uncertain to be shown.
    text = surveys.EVERY_TYPE.replace("epsilon = 0.5", "epsilon = 2.8")
    survey = make_test_run(store, written(text), draft, TODAY)
    add_test_responses(store, survey, 4_000, {"hours": [0.25, 0.4, 0.1]}, rng)
    (question,) = [
        one for one in ResultCache(store).result(survey).questions if one.question.id == "hours"
    ]
    found = {row.option_id: row for row in question.shares}
    for name, share in (("does_not_apply", 0.4), ("prefer_not_to_say", 0.1)):
        row = found[name]
        assert abs(row.estimate - share) < 5 * row.std_error
    with pytest.raises(DesignError, match="must add up to less than 100%"):
        add_test_responses(store, survey, 50, {"hours": [0.25, 0.5, 0.5]}, rng)
