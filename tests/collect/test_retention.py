"""Surveys are deleted when their retention period after their close is over."""

from __future__ import annotations

from datetime import date, timedelta

from survey.collect.publication import close, delete_overdue, overdue, publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.conftest import SMALL, TODAY


def test_only_closed_surveys_past_their_retention_period_are_deleted(store, small):
    second_definition = SMALL.replace('slug = "small"', 'slug = "other"')
    publish(store, load(second_definition.encode(), "o.toml", Caps()), TODAY)
    assert overdue(store, 30, TODAY + timedelta(days=1000)) == []
    close(store, "small", TODAY)
    assert delete_overdue(store, 30, TODAY + timedelta(days=30)) == []
    assert delete_overdue(store, 30, TODAY + timedelta(days=31)) == ["small"]
    assert [survey.slug for survey in store.surveys()] == ["other"]
    (action,) = store.actions(None, 1)
    assert (action.actor, action.event) == ("retention", "deleted a survey")


def test_a_new_version_after_a_close_keeps_the_survey(store, small):
    close(store, "small", TODAY)
    changed = SMALL.replace("A small survey", "Another title")
    publish(store, load(changed.encode(), "o.toml", Caps()), TODAY)
    assert overdue(store, 1, date(2100, 1, 1)) == []
