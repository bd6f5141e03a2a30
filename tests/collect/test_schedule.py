"""A survey accepts reports within its schedule, up to its maximum."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.collect.incoming_reports import Intake
from survey.collect.publication import publish, validate_schedule
from survey.errors import ClosedError, DesignError, FullError, NotOpenError
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import Schedule, find_survey
from tests.collect.test_incoming_reports import body
from tests.conftest import SECRET, SMALL, TODAY
from tests.store.reports import add, keeper_at, random_reports

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("schedule", "today", "error"),
    [
        (Schedule(opens=TODAY), TODAY - DAY, NotOpenError),
        (Schedule(opens=TODAY), TODAY, None),
        (Schedule(closes=TODAY), TODAY, None),
        (Schedule(closes=TODAY), TODAY + DAY, ClosedError),
        (Schedule(opens=TODAY, closes=TODAY, maximum=100), TODAY, None),
    ],
)
def test_reports_are_accepted_from_the_first_day_to_the_last(store, small, schedule, today, error):
    store.set_schedule(small.key, schedule)
    if error is None:
        Intake(store).receive("small", body(small), today)
        assert store.n_pending(small.key) == 1
        return
    with pytest.raises(error):
        Intake(store).receive("small", body(small), today)
    assert store.n_pending(small.key) == 0


@pytest.mark.security
def test_the_limit_takes_effect_at_a_release_and_acknowledges_stored_reports(
    store, small, settings
):
    """An attacker who fills the survey learns nothing from the first refusal."""
    store.set_schedule(small.key, Schedule(maximum=60))
    intake = Intake(store)
    first = body(small)
    intake.receive("small", first, TODAY)
    add(store, small, random_reports(89))
    intake.receive("small", body(small), TODAY)
    assert keeper_at(store, settings, 1).work() == 50
    with pytest.raises(FullError, match="maximum of 60 reports"):
        intake.receive("small", body(small), TODAY)
    intake.receive("small", first, TODAY)
    store.set_schedule(small.key, Schedule(maximum=80))
    intake.receive("small", body(small), TODAY)
    assert store.n_pending(small.key) == 42


def test_a_report_stored_by_the_last_day_is_acknowledged_when_it_is_resent_later(store, small):
    store.set_schedule(small.key, Schedule(closes=TODAY))
    intake = Intake(store)
    report = body(small)
    intake.receive("small", report, TODAY)
    intake.receive("small", report, TODAY + DAY)
    assert store.n_pending(small.key) == 1


def test_a_survey_whose_last_day_has_passed_is_closed_by_the_server(store, small, settings):
    store.set_schedule(small.key, Schedule(closes=TODAY))
    add(store, small, random_reports(30))
    for hour, state in ((0, "open"), (24, "closed")):
        keeper_at(store, settings, hour).work()
        assert find_survey(store, "small").state == state
        assert store.n_pending(small.key) == 30
    keeper_at(store, settings, 24).work()
    assert (store.n_pending(small.key), store.n_released(small.key)) == (0, 30)


def test_a_new_version_inherits_the_schedule_of_the_previous_one(store, small):
    store.set_schedule(small.key, Schedule(closes=TODAY, maximum=70))
    changed = SMALL.replace("Two questions.", "Two other questions.")
    survey = publish(store, load(changed.encode(), "s.toml", Caps()), TODAY)
    assert find_survey(store, "small").schedule == survey.schedule
    assert survey.schedule == Schedule(closes=TODAY, maximum=70)


def test_a_schedule_that_ends_before_it_begins_is_refused():
    with pytest.raises(DesignError, match="before it opens"):
        validate_schedule(Schedule(opens=TODAY, closes=TODAY - DAY))


def test_a_command_shows_and_changes_the_schedule(store, small, sqlite_settings, monkeypatch):
    monkeypatch.setenv("SURVEY_DATABASE", sqlite_settings.database)
    monkeypatch.setenv("SURVEY_SECRET", SECRET)

    def run(*options: str) -> str:
        return CliRunner().invoke(main, ["schedule", "small", *options]).output.strip()

    assert run() == "small accepts any number of responses, from now until it is closed"
    assert run("--closes", "2030-01-31", "--most", "500") == (
        "small accepts at most 500 responses, from now to 2030-01-31"
    )
    assert run("--opens", "2029-12-01").endswith("from 2029-12-01 to 2030-01-31")
    assert "before it opens" in run("--opens", "2031-01-01")
    assert find_survey(store, "small").schedule == Schedule(
        date(2029, 12, 1), date(2030, 1, 31), 500
    )
    store.close_survey("small", TODAY)
    assert "closing is permanent" in run("--closes", "2031-01-31")
