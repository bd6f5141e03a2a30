"""Links to results and public results, on both databases."""

from __future__ import annotations

import pytest

from survey.collect.publication import close
from survey.errors import ConflictError, ForbiddenError, NotFoundError
from survey.store import MAX_WEBHOOKS, ReleaseNotice, ResultLink
from tests.conftest import TODAY
from tests.store.reports import add, publish_pending, random_reports

NOW = 1_000


@pytest.fixture
def ada(store):
    return store.add_researcher("ada@example.org", "hash").key


def link(maker: int, *, expires: int = NOW + 10) -> ResultLink:
    return ResultLink("small", f"Reader {maker}, {expires}", expires, maker)


def test_a_link_shows_the_results_of_its_survey_until_it_expires_or_is_revoked(store, small, ada):
    store.add_result_link(b"one", link(ada), NOW)
    store.add_result_link(b"two", link(ada, expires=NOW + 20), NOW)
    assert store.slug_of_result_link(b"one", NOW + 9) == "small"
    assert store.slug_of_result_link(b"one", NOW + 10) is None
    assert store.slug_of_result_link(b"three", NOW) is None
    assert [item.token_hash for item in store.result_links("small", NOW)] == [b"one", b"two"]
    assert [item.maker for item in store.result_links("small", NOW + 10)] == ["ada@example.org"]
    assert store.result_links("other", NOW) == []
    assert not store.revoke_result_link("other", b"two")
    assert store.slug_of_result_link(b"two", NOW) == "small"
    assert store.revoke_result_link("small", b"two")
    assert store.slug_of_result_link(b"two", NOW) is None
    assert not store.revoke_result_link("small", b"two")


def test_a_new_link_deletes_those_that_have_expired(store, small, ada, direct_access):
    store.add_result_link(b"old", link(ada), NOW)
    store.add_result_link(b"last", link(ada, expires=NOW + 11), NOW)
    store.add_result_link(b"new", link(ada, expires=NOW + 99), NOW + 10)
    rows = direct_access.run("SELECT token_hash FROM result_link ORDER BY expires")
    assert [bytes(token_hash) for (token_hash,) in rows] == [b"last", b"new"]


@pytest.mark.parametrize("role", [None, "viewer", "editor"])
def test_an_owner_who_loses_this_role_loses_the_links_they_created(store, small, ada, role):
    ben = store.add_researcher("ben@example.org", "hash").key
    for researcher in (ada, ben):
        store.set_role("small", researcher, "owner")
    store.add_result_link(b"ada's", link(ada), NOW)
    store.add_result_link(b"ben's", link(ben), NOW)
    store.set_role("small", ben, role)
    with pytest.raises(ForbiddenError):
        store.add_result_link(b"another", link(ben), NOW)
    assert store.slug_of_result_link(b"ben's", NOW) is None
    assert store.slug_of_result_link(b"ada's", NOW) == "small"


@pytest.mark.parametrize("role", [None, "editor"])
def test_a_former_owner_neither_shares_results_nor_revokes_links(store, small, ada, role):
    """The role can end between the check of the page and the change."""
    ben = store.add_researcher("ben@example.org", "hash").key
    store.set_role("small", ben, role)
    store.add_result_link(b"ada's", link(ada), NOW)
    with pytest.raises(ForbiddenError, match="only owners of small can share its results"):
        store.set_public_results("small", public=True, researcher=ben)
    with pytest.raises(ForbiddenError, match="only owners of small can revoke links"):
        store.revoke_result_link("small", b"ada's", ben)
    assert not store.has_public_results("small")
    assert store.revoke_result_link("small", b"ada's", ada)


def test_results_are_public_until_they_are_switched_off(store, small):
    assert not store.has_public_results("small")
    for _ in range(2):
        store.set_public_results("small", public=True)
        assert store.has_public_results("small")
    assert not store.has_public_results("other")
    store.set_public_results("small", public=False)
    assert not store.has_public_results("small")


def test_a_deleted_survey_leaves_nothing_that_a_later_one_of_its_name_would_share(
    store, small, ada, direct_access
):
    store.add_result_link(b"one", link(ada), NOW)
    store.set_public_results("small", public=True)
    close(store, "small", TODAY)
    store.delete_survey("small", TODAY)
    for table in ("result_link", "public_results"):
        assert direct_access.run(f"SELECT * FROM {table}") == [], table
    with pytest.raises(NotFoundError):
        store.add_result_link(b"two", link(ada), NOW)
    with pytest.raises(NotFoundError):
        store.set_public_results("small", public=True)


def test_roles_decide_who_gets_messages_about_releases(store, small, ada):
    store.set_role("small", ada, "owner")
    ben = store.add_researcher("ben@example.org", "hash").key
    store.set_role("small", ben, "editor")
    store.add_release_notice(ReleaseNotice("small", ben))
    with pytest.raises(ConflictError):
        store.add_release_notice(ReleaseNotice("small", ben))
    with pytest.raises(ForbiddenError):
        store.add_release_notice(ReleaseNotice("small", ben, "https://hooks.example.org"))
    store.set_role("small", ben, "owner")
    store.add_release_notice(ReleaseNotice("small", ben, "https://hooks.example.org"))
    with pytest.raises(ConflictError):
        store.add_release_notice(ReleaseNotice("small", ada, "https://hooks.example.org"))
    store.set_role("small", ben, "editor")
    assert [due.notice.url for due in store.release_notices("small")] == [""]
    store.set_role("small", ben, "viewer")
    assert store.release_notices("small") == []
    for number in range(MAX_WEBHOOKS):
        store.add_release_notice(ReleaseNotice("small", ada, f"https://h.example.org/{number}"))
    with pytest.raises(ConflictError):
        store.add_release_notice(ReleaseNotice("small", ada, "https://h.example.org/more"))
    close(store, "small", TODAY)
    store.delete_survey("small", TODAY)
    assert store.release_notices("small") == []


def test_a_notice_is_due_from_a_release_until_its_message_is_delivered_or_given_up(
    store, small, ada, monkeypatch
):
    monkeypatch.setattr("survey.store.shared_results.MAX_DELIVERY_TRIES", 2)
    store.set_role("small", ada, "owner")
    for url in ("", "https://hooks.example.org"):
        store.add_release_notice(ReleaseNotice("small", ada, url))
    add(store, small, random_reports(30))
    assert store.due_notices() == []
    publish_pending(store, small)
    mail, hook = store.due_notices()
    assert (mail.email, mail.n_released - mail.notice.n) == ("ada@example.org", 30)
    store.record_delivery(mail)
    store.record_delivery(hook, "no answer")
    (hook,) = store.due_notices()
    assert (hook.notice.tries, hook.notice.problem) == (1, "no answer")
    store.record_delivery(hook, "no answer")
    assert store.due_notices() == []
    assert store.release_notices("small")[1].notice.problem == "no answer"
