"""The store's contract on both databases: drafts, plans, API tokens and deleted surveys."""

from __future__ import annotations

import threading

import pytest

from survey.errors import ConflictError, NotFoundError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import TABLES, ApiToken, ColleagueLink, Plan, Schedule, TeamLook, TrendNote
from survey.store.drafts import MAX_REVISIONS
from survey.store.people import TEAM_TABLES
from survey.store.surveys import SURVEY_TABLES
from tests.conftest import SMALL, TODAY
from tests.store.reports import add, publish_pending, random_reports, report


@pytest.fixture
def ada(store):
    return store.add_researcher("ada@example.org", "hash").key


@pytest.fixture
def draft(store, ada):
    return store.add_draft("{}", "ada@example.org", 10, {ada: "owner"})


def test_a_draft_has_a_team_and_every_save_is_a_revision(store, ada, draft):
    assert store.roles(ada) == {draft.slug: "owner"}
    after = store.save_draft(draft, '{"a": 1}', "ben@example.org", 20)
    assert (after.revision, after.author, after.at) == (2, "ben@example.org", 20)
    assert store.draft(draft.key) == after
    assert store.draft(draft.key, 1) == draft
    assert store.draft(draft.key, 3) is None
    second_draft = store.add_draft("{}", "ada@example.org", 30, {})
    assert [row.key for row in store.drafts()] == [second_draft.key, draft.key]
    heads = {(head.key, head.revision, head.author, head.at) for head in store.draft_heads()}
    assert heads == {(second_draft.key, 1, "ada@example.org", 30), (1, 2, "ben@example.org", 20)}
    assert store.newest_drafts([draft.key, 99]) == [after]


def test_a_save_never_overwrites_an_unseen_revision_of_a_draft(store, draft):
    store.save_draft(draft, "theirs", "ben@example.org", 20)
    with pytest.raises(ConflictError):
        store.save_draft(draft, "mine", "ada@example.org", 21)
    assert store.draft(draft.key).content == "theirs"


def test_only_one_of_many_simultaneous_saves_of_a_revision_succeeds(store, draft):
    saved: list[object] = []

    def save(name: str) -> None:
        try:
            saved.append(store.save_draft(draft, name, name, 20).content)
        except ConflictError as error:
            saved.append(error)

    threads = [threading.Thread(target=save, args=(str(i),)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(outcome, str) for outcome in saved) == 1
    assert store.draft(draft.key).content in saved


def test_only_the_newest_revisions_of_a_draft_are_stored(store, draft):
    for _ in range(MAX_REVISIONS):
        draft = store.save_draft(draft, "{}", "ada@example.org", 20)
    assert store.draft(draft.key, 1) is None
    assert store.draft(draft.key, 2) is not None
    assert store.draft(draft.key) == draft


def test_a_draft_is_deleted_with_its_team_and_its_key_is_not_reused(store, ada, draft):
    store.save_draft(draft, "{}", "ada@example.org", 20)
    store.delete_draft(draft.key, TODAY)
    assert store.draft(draft.key) is None
    assert store.drafts() == []
    assert store.roles(ada) == {}
    with pytest.raises(NotFoundError):
        store.save_draft(draft, "{}", "ada@example.org", 30)
    second_draft = store.add_draft("{}", "ada@example.org", 40, {})
    assert second_draft.key == draft.key + 1
    store.delete_draft(second_draft.key, TODAY, "small")
    slugs = [store.published_slug(key) for key in (draft.key, second_draft.key, 99)]
    assert slugs == ["", "small", ""]


def test_comments_are_stored_in_order_and_deleted_with_their_draft(store, ada, draft):
    ben = store.add_researcher("ben@example.org", "hash").key
    other = store.add_draft("{}", "ada@example.org", 10, {ada: "owner"})
    for researcher, text in ((ada, "first"), (ben, "Ñandú\nsecond")):
        store.add_comment(draft.key, 3, researcher, 20, text)
    store.add_comment(other.key, 0, ada, 20, "elsewhere")
    first, second = store.comments(draft.key)
    assert (first.text, second.text) == ("first", "Ñandú\nsecond")
    assert (second.author, second.question, second.at, second.resolved) == (
        *("ben@example.org", 3, 20),
        0,
    )
    assert store.resolve_comment(draft.key, first.number, resolved=True)
    assert not store.resolve_comment(other.key, first.number, resolved=False)
    assert [comment.resolved for comment in store.comments(draft.key)] == [1, 0]
    assert not store.delete_comment(draft.key, second.number, ada)
    assert not store.delete_comment(other.key, second.number, ben)
    assert store.delete_comment(draft.key, second.number, ben)
    store.delete_draft(draft.key, TODAY)
    assert store.comments(draft.key) == []
    assert len(store.comments(other.key)) == 1
    with pytest.raises(NotFoundError):
        store.add_comment(draft.key, 0, ada, 30, "too late")


def test_notes_and_the_look_of_a_team_are_stored_and_limited(store, small, monkeypatch):
    store.add_trend_note("small", "", 2, "New wording")
    store.add_trend_note("small", "2026-11-17", 0, "Strike")
    strike, wording = store.trend_notes("small")
    assert (strike, wording.version) == (TrendNote(2, "2026-11-17", 0, "Strike"), 2)
    assert store.trend_notes("other") == []
    monkeypatch.setattr("survey.store.presentation.MAX_NOTES", 2)
    with pytest.raises(ConflictError, match="can have 2 notes"):
        store.add_trend_note("small", "2026-11-19", 0, "One more")
    assert store.remove_trend_note("small", 2)
    assert not store.remove_trend_note("small", 2)
    assert store.team_look("small") is None
    for look in (TeamLook("A", "plum", b"png"), TeamLook("B")):
        store.set_team_look("small", look)
        assert store.team_look("small") == look
    store.set_team_look("small", TeamLook())
    assert store.team_look("small") is None


def test_a_plan_is_stored_for_a_published_version(store, small):
    assert store.plan(small.key) == Plan()
    store.set_plan(small.key, Plan(1_000, {"north": 40}))
    store.set_plan(small.key, Plan(2_000, {"sur": 60, "Ñandú": 25}))
    assert store.plan(small.key) == Plan(2_000, {"sur": 60, "Ñandú": 25})


def test_archived_surveys_are_left_out_until_they_are_restored(store, small):
    store.set_archived(small.slug, archived=True)
    store.set_archived(small.slug, archived=True)
    assert store.archived_slugs() == {small.slug}
    store.set_archived(small.slug, archived=False)
    assert store.archived_slugs() == set()


def test_an_api_token_works_until_its_researcher_revokes_it(store, ada):
    ben = store.add_researcher("ben@example.org", "hash").key
    token = ApiToken(b"t" * 32, ada, "R at home", "surveys estimates", 10)
    store.add_api_token(token)
    assert store.api_token(b"t" * 32) == token
    assert store.api_tokens(ada) == [token]
    assert store.api_tokens(ben) == []
    store.revoke_api_token(ben, token.token_hash)
    assert store.api_token(b"t" * 32) == token
    store.revoke_api_token(ada, token.token_hash)
    assert store.api_token(b"t" * 32) is None


def test_a_new_password_ends_sessions_and_api_tokens(store, ada):
    ben = store.add_researcher("ben@example.org", "hash").key
    for key, name in ((ada, b"a"), (ben, b"b")):
        store.start_session(name * 32, key, 10, 1000)
        store.add_api_token(ApiToken(name * 32, key, "R", "surveys", 10))
    store.set_password("ben@example.org", "another hash")
    assert (store.sessions(ben), store.api_tokens(ben)) == ([], [])
    assert (len(store.sessions(ada)), len(store.api_tokens(ada))) == (1, 1)
    assert store.researcher_by_key(ben).password_hash == "another hash"
    assert store.researcher_by_key(99) is None


def test_an_open_survey_cannot_be_deleted(store, small):
    with pytest.raises(ConflictError, match="still accepts reports"):
        store.delete_survey(small.slug, TODAY)
    assert store.versions(small.slug) == [small]
    with pytest.raises(NotFoundError):
        store.delete_survey("nowhere", TODAY)


def test_deleting_a_survey_deletes_all_its_rows_and_no_others(store, ada):
    definition = load(SMALL.encode(), "s.toml", Caps())
    remaining = store.publish(freeze(definition.model_copy(update={"slug": "kept"}), 1), TODAY)
    deleted_versions = [
        store.publish(freeze(definition, n), TODAY, Schedule(maximum=9), {ada: "owner"})
        for n in (1, 2)
    ]
    for survey in (remaining, *deleted_versions):
        store.add_invitations(survey.key, "north", [bytes(32)])
        store.set_plan(survey.key, Plan(7))
        add(store, survey, [*random_reports(30), report(99, stratum="north", invitation=bytes(32))])
        publish_pending(store, survey, 25)
        add(store, survey, [report(100)])
    store.set_archived("small", archived=True)
    for slug in ("small", "kept"):
        store.add_trend_note(slug, "2026-11-17", 0, "Strike")
        store.set_team_look(slug, TeamLook("Work", "plum", b"png"))
    store.add_colleague_link(b"link", ColleagueLink("small", "viewer", 100, ada))
    store.close_survey("small", TODAY)
    before = store.tally(remaining.key)
    store.delete_survey("small", TODAY)
    assert store.versions("small") == []
    assert store.tally(remaining.key) == before
    assert store.roles(ada) == {}
    assert store.trend_notes("kept")
    assert store.team_look("kept")
    with store.snapshot() as snapshot:
        for name in SURVEY_TABLES:
            keys = {row[0] for row in snapshot.rows(name, None, 10_000)}
            assert keys <= {remaining.key}, name
        for name in TEAM_TABLES:
            place = TABLES[name].column_names.index("slug")
            assert "small" not in {row[place] for row in snapshot.rows(name, None, 100)}, name
        deletions = snapshot.rows("deleted", None, 10)
    assert [row[2:] for row in deletions] == [
        ("small", 1, deleted_versions[0].sha256, TODAY.isoformat()),
        ("small", 2, deleted_versions[1].sha256, TODAY.isoformat()),
    ]


def test_every_table_with_a_survey_s_key_is_emptied_when_it_is_deleted():
    of_a_survey = {name for name, table in TABLES.items() if "survey" in table.column_names}
    of_a_team = {name for name, table in TABLES.items() if "slug" in table.column_names}
    # The keeper destroys the private keys first.
    assert of_a_survey - {"sealing_key"} == set(SURVEY_TABLES)
    # The records of deletions and actions remain; neither identifies a respondent.
    assert of_a_team - {"survey", "action", "deleted"} == set(TEAM_TABLES)


def test_the_key_of_a_deleted_survey_is_not_reused(store, small):
    store.close_survey(small.slug, TODAY)
    store.delete_survey(small.slug, TODAY)
    again = store.publish(small.definition, TODAY)
    assert (again.version, again.key) == (1, small.key + 1)
