"""The store's contract on both databases: frozen definitions, researchers, sessions."""

from __future__ import annotations

import threading
from datetime import timedelta
from operator import attrgetter

import pytest

from survey.collect.publication import publish
from survey.errors import ConflictError, NotFoundError, SettingsError, StoreBusyError, StoreError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import Plan, Schedule, SurveyHead, find_survey, open_store, transactions
from tests.conftest import SMALL, TODAY
from tests.store.databases import ERRORS
from tests.store.reports import add, publish_pending, random_reports, report

LATER = TODAY + timedelta(days=1)


@pytest.mark.security
@pytest.mark.parametrize("column", ["slug", "version", "definition", "sha256", "key"])
def test_the_database_refuses_any_change_of_a_published_definition(direct_access, small, column):
    value = {"version": 7, "key": 7, "definition": b"{}"}.get(column, "other")
    with pytest.raises(ERRORS, match="never changed"):
        direct_access.run(f"UPDATE survey SET {column} = ?", [value])


@pytest.mark.security
def test_the_database_refuses_to_replace_a_published_definition(direct_access, small):
    with pytest.raises(ERRORS, match=r"never (replaced|changed)"):
        direct_access.run(
            "INSERT INTO survey (key, slug, version, definition, sha256, state, changed) "
            "SELECT key, slug, version, definition, sha256, state, changed FROM survey WHERE true "
            "ON CONFLICT (key) DO UPDATE SET definition = excluded.definition"
        )


def test_a_published_survey_is_not_deleted_before_its_reports(store, small, direct_access):
    add(store, small, [report(1)])
    direct_access.run("DELETE FROM release")
    with pytest.raises(ERRORS, match="after its reports"):
        direct_access.run("DELETE FROM survey")


def test_the_same_definition_is_published_once(store, small):
    with pytest.raises(ConflictError, match="version 1"):
        publish(store, load(SMALL.encode(), "small.toml", Caps()), TODAY)


def test_a_changed_definition_becomes_the_next_version(store, small):
    changed = load(SMALL.replace("Two questions", "Two short questions").encode(), "s.toml", Caps())
    second = publish(store, changed, LATER)
    assert second == find_survey(store, "small")
    assert [(s.version, s.state, s.changed) for s in store.versions("small")] == [
        (2, "open", LATER),
        (1, "superseded", LATER),
    ]
    assert store.surveys() == store.versions("small")


def test_lists_have_the_newest_version_of_each_survey_with_its_plan_and_released_reports(
    store, small, monkeypatch
):
    add(store, small, random_reports(50))
    publish_pending(store, small)
    add(store, small, [report(1)])
    store.set_schedule(small.key, Schedule(closes=LATER, maximum=400))
    store.set_plan(small.key, Plan(300))
    other = SMALL.replace('slug = "small"', 'slug = "other"')
    other = publish(store, load(other.encode(), "s.toml", Caps()), TODAY)
    head = SurveyHead(
        small.key,
        "small",
        1,
        "A small survey",
        "open",
        TODAY,
        Schedule(None, LATER, 400),
        1,
        50,
        300,
    )
    other_head = SurveyHead(
        other.key, "other", 1, "A small survey", "open", TODAY, Schedule(), 0, 0, 0
    )
    assert sorted(store.survey_heads(), key=attrgetter("key")) == [head, other_head]
    changed = load(SMALL.replace("Two questions", "Two short questions").encode(), "s.toml", Caps())
    second = publish(store, changed, LATER)
    assert {(s.slug, s.version) for s in store.survey_heads()} == {("small", 2), ("other", 1)}
    monkeypatch.setattr(transactions, "MAX_KEYS", 1)
    assert store.canonical_definitions([second.key, other.key, 99]) == {
        second.key: second.canonical,
        other.key: other.canonical,
    }
    assert store.canonical_definitions([]) == {}


def test_simultaneous_publishing_leaves_no_gap_and_no_duplicate(store, settings):
    definition = freeze(load(SMALL.encode(), "small.toml", Caps()), 1)
    outcomes = []

    def publish_once() -> None:
        thread_store = open_store(settings.database)
        try:
            outcomes.append(thread_store.publish(definition, TODAY).version)
        except ConflictError as refusal:
            outcomes.append(str(refusal))
        finally:
            thread_store.close_connections()

    threads = [threading.Thread(target=publish_once) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(1) == 1
    assert sum("the next version is 2" in str(outcome) for outcome in outcomes) == 3


def test_a_slug_that_no_database_can_store_is_unknown(store, small):
    assert store.versions("sm\0all") == []


def test_a_missing_survey_is_named_in_the_error(store):
    for ask in (store.tally, store.tallies, store.n_released, store.newest_release):
        with pytest.raises(NotFoundError, match="99"):
            ask(99)
    with pytest.raises(NotFoundError, match=r'^there is no survey "nothing"$'):
        find_survey(store, "nothing")
    assert store.versions("nothing") == []
    assert store.close_survey("nothing", TODAY) == []


@pytest.mark.parametrize("version", [0, -1, 2])
def test_a_missing_version_is_named_in_the_error(store, small, version):
    with pytest.raises(NotFoundError, match=f'^there is no survey "small" version {version}$'):
        find_survey(store, "small", version)


def test_a_closed_survey_has_the_date_of_its_close(store, small):
    assert [survey.key for survey in store.close_survey("small", LATER)] == [small.key]
    assert (find_survey(store, "small").state, find_survey(store, "small").changed) == (
        "closed",
        LATER,
    )
    assert store.close_survey("small", LATER) == []


def test_a_researcher_is_added_once_and_found_despite_the_case_of_the_address(store):
    store.add_researcher("Ada@example.org", "hash 1")
    store.add_researcher("bob@example.org", "hash 2")
    with pytest.raises(ConflictError, match=r"ADA@example\.org"):
        store.add_researcher("ADA@example.org", "other")
    researcher = store.researcher("ada@EXAMPLE.org")
    assert (researcher.email, researcher.password_hash) == ("Ada@example.org", "hash 1")
    assert store.researcher("eve@example.org") is None


def test_a_session_ends_when_it_is_idle_too_old_closed_or_its_password_changes(store):
    store.add_researcher("ada@example.org", "hash")
    key = store.researcher("ada@example.org").key
    limits = {"idle": 100, "absolute": 1000}

    def researcher_of(token: bytes, now: int):
        return store.session_researcher(token, now, **limits)

    store.start_session(b"a", key, 0, 1000)
    assert researcher_of(b"a", 90).key == key
    assert researcher_of(b"a", 189).key == key  # its last use was at 90
    assert researcher_of(b"a", 290) is None
    store.start_session(b"b", key, 2000, 1000)  # deletes the expired one
    assert researcher_of(b"a", 0) is None
    store.end_session(b"b")
    assert researcher_of(b"b", 2001) is None
    store.start_session(b"c", key, 3000, 1000)
    store.set_password("ADA@example.org", "new")
    assert researcher_of(b"c", 3001) is None
    assert store.researcher("ada@example.org").password_hash == "new"
    with pytest.raises(NotFoundError, match="eve"):
        store.set_password("eve@example.org", "new")


def test_rows_that_refer_to_nothing_are_refused(store):
    with pytest.raises(StoreError):
        store.start_session(b"a", 99, 0, 1000)


@pytest.mark.parametrize("url", ["mysql://u:hidden@h/x", "sqlite:///", "sqlite://x", "survey.db"])
def test_a_database_url_of_another_kind_is_refused_without_repeating_it(url):
    with pytest.raises(SettingsError, match="sqlite:///PATH") as refusal:
        open_store(url)
    assert "hidden" not in str(refusal.value)


def test_a_version_and_its_schedule_are_published_together_or_not_at_all(store):
    definition = freeze(load(SMALL.encode(), "s.toml", Caps()), 1)
    with pytest.raises((StoreError, StoreBusyError)):
        store.publish(definition, TODAY, Schedule(maximum=-1))
    assert store.surveys() == []
    assert store.publish(definition, TODAY, Schedule(maximum=9)) == find_survey(store, "small")
