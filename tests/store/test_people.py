"""The store's contract on both databases: two-factor authentication, teams and actions."""

from __future__ import annotations

import threading

import pytest

from survey.errors import ConflictError, ForbiddenError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import ROLES, Action, ColleagueLink
from tests.conftest import SMALL, TODAY

ADA, BEN = "ada@example.org", "ben@example.org"


@pytest.fixture
def ada(store):
    return store.add_researcher(ADA, "hash").key


@pytest.fixture
def definitions():
    """Return two versions of a survey."""
    definition = load(SMALL.encode(), "s.toml", Caps())
    return freeze(definition, 1), freeze(definition, 2)


@pytest.fixture
def ben(store, ada):
    return store.add_researcher(BEN, "hash").key


def test_the_first_researcher_is_an_administrator_and_others_on_request(store):
    assert store.add_researcher(ADA, "hash").is_admin
    assert not store.add_researcher(BEN, "hash").is_admin
    assert store.add_researcher("eve@example.org", "hash", is_admin=True).is_admin
    assert [(researcher.email, researcher.is_admin) for researcher in store.researchers()] == [
        (ADA, True),
        (BEN, False),
        ("eve@example.org", True),
    ]


def test_sessions_are_listed_only_for_their_researcher(store, ada, ben):
    store.start_session(b"one", ada, 10, 1000)
    store.start_session(b"two", ada, 20, 1000)
    store.start_session(b"three", ben, 30, 1000)
    assert [(session.token_hash, session.started) for session in store.sessions(ada)] == [
        (b"two", 20),
        (b"one", 10),
    ]
    store.end_session(b"two")
    assert [session.token_hash for session in store.sessions(ada)] == [b"one"]


def test_a_time_step_is_accepted_once_and_never_after_a_later_one(store, ada):
    assert store.second_factor(ada) is None
    store.set_second_factor(ada, "SECRET", [])
    assert store.use_step(ada, 7)
    assert not store.use_step(ada, 7)
    assert not store.use_step(ada, 6)
    assert store.use_step(ada, 8)
    assert store.second_factor(ada).step == 8


def test_only_one_of_many_simultaneous_uses_of_a_code_succeeds(store, ada):
    store.set_second_factor(ada, "SECRET", [])
    outcomes: list[bool] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(store.use_step(ada, 5))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True]


def test_a_recovery_code_works_once_and_only_for_its_owner(store, ada, ben):
    codes = [bytes([n]) * 32 for n in range(3)]
    store.set_second_factor(ada, "SECRET", codes)
    assert not store.use_recovery_code(ben, codes[0])
    assert store.use_recovery_code(ada, codes[0])
    assert not store.use_recovery_code(ada, codes[0])
    assert store.n_recovery_codes(ada) == 2
    store.set_second_factor(ada, "", [])
    assert store.second_factor(ada) is None
    assert not store.use_recovery_code(ada, codes[1])


def test_the_first_publisher_owns_the_survey_and_its_later_versions(store, ada, ben, definitions):
    first, second = definitions
    store.publish(first, TODAY, team={ben: "owner"})
    store.publish(second, TODAY, team={ada: "owner"})
    assert store.roles(ben) == {"small": "owner"}
    assert store.roles(ada) == {}


def test_a_survey_never_loses_its_last_owner(store, ada, ben):
    store.set_role("small", ada, "owner")
    store.set_role("small", ben, "viewer")
    for role in ("editor", None):
        with pytest.raises(ConflictError, match="needs an owner"):
            store.set_role("small", ada, role)
    assert store.roles(ada) == {"small": "owner"}
    store.set_role("small", ben, "owner")
    store.set_role("small", ada, None)
    assert [(member.email, member.role) for member in store.members("small")] == [(BEN, "owner")]


def test_a_link_that_several_people_open_adds_one_account(store, ada):
    store.add_colleague_link(b"new", ColleagueLink("small", "editor", 100, ada))
    cleo = store.join_as_new_researcher(b"new", "cleo@example.org", "hash", 60)
    assert store.roles(cleo.key) == {"small": "editor"}
    assert store.join_as_new_researcher(b"new", "dora@example.org", "hash", 60) is None
    assert store.researcher("dora@example.org") is None


def test_a_link_for_a_colleague_works_once_and_expires(store, ada, ben):
    store.add_colleague_link(b"new", ColleagueLink("small", "editor", 100, ada))
    store.add_colleague_link(b"old", ColleagueLink("small", "owner", 50, ada))
    assert store.join(b"old", ben, 60) is None
    assert store.colleague_link(b"new", 60).role == "editor"
    assert store.join(b"new", ben, 60).slug == "small"
    assert store.join(b"new", ben, 60) is None
    assert store.colleague_link(b"new", 60) is None
    assert store.roles(ben) == {"small": "editor"}


@pytest.mark.parametrize(
    ("role", "valid_roles"),
    [(None, set()), ("viewer", {"viewer"}), ("editor", {"viewer", "editor"})],
)
def test_links_above_the_role_of_their_maker_are_revoked(store, ada, ben, role, valid_roles):
    for slug in ("small", "other"):
        for maker in (ada, ben):
            store.set_role(slug, maker, "owner")
            for link_role in ROLES:
                name = f"{slug} {maker} {link_role}".encode()
                store.add_colleague_link(name, ColleagueLink(slug, link_role, 100, maker))
    store.set_role("small", ben, role)
    links = store.colleague_links("small", 60)
    assert {link.role for link in links if link.maker == BEN} == valid_roles
    assert len([link for link in links if link.maker == ADA]) == 3
    assert len(store.colleague_links("other", 60)) == 6
    assert store.colleague_links("other", 101) == []
    with pytest.raises(ForbiddenError, match="role owner in small"):
        store.add_colleague_link(b"late", ColleagueLink("small", "owner", 100, ben))


def test_a_link_stays_valid_if_its_maker_keeps_the_role(store, ada):
    store.set_role("small", ada, "owner")
    store.add_colleague_link(b"link", ColleagueLink("small", "owner", 100, ada))
    with pytest.raises(ConflictError, match="needs an owner"):
        store.set_role("small", ada, None)
    assert store.colleague_link(b"link", 60) is not None


def test_only_its_own_team_can_revoke_a_link(store, ada):
    store.add_colleague_link(b"link", ColleagueLink("small", "viewer", 100, ada))
    assert not store.revoke_colleague_link("other", b"link")
    assert store.revoke_colleague_link("small", b"link")
    assert not store.revoke_colleague_link("small", b"link")
    assert store.colleague_link(b"link", 60) is None


def test_joining_keeps_a_higher_role(store, ada):
    store.set_role("small", ada, "owner")
    store.add_colleague_link(b"new", ColleagueLink("small", "viewer", 100, ada))
    store.join(b"new", ada, 60)
    assert store.roles(ada) == {"small": "owner"}


def test_actions_are_listed_latest_first_for_one_survey_or_all(store):
    for at, slug in enumerate(["small", "other", "small"]):
        store.add_action(Action(at, ADA, "released", slug, ""))
    assert [action.at for action in store.actions("small", 10)] == [2, 0]
    assert [action.at for action in store.actions(None, 2)] == [2, 1]
