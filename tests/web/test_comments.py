"""Comments on drafts: who may write, resolve and delete them, and what happens to them."""

from __future__ import annotations

import re

import pytest

from survey.questionnaire.drafts.draft import DraftContent
from survey.store import MAX_COMMENT_LENGTH, Comment
from tests.conftest import EMAIL, TODAY
from tests.web.researchers import People, send, token
from tests.web.routes import Routes


@pytest.fixture
def people(app, store, researcher, small):
    return People(app, store)


@pytest.fixture
def slug(app, store, small, people) -> str:
    return Routes(app, store, small, EMAIL).draft(people.team)


def path(slug: str) -> str:
    return f"/research/drafts/{slug}/comments"


def comment(client, slug: str, text: str, question: int):
    return send(client, path(slug), question=str(question), text=text)


def comments(store, slug: str) -> list[Comment]:
    return store.comments(int(slug.removeprefix("trial-")))


def act(client, slug: str, number: int, do: str):
    return send(client, f"{path(slug)}/{number}", page=path(slug), do=do)


def keys(store, slug: str) -> list[int]:
    content = DraftContent.from_json(store.draft(int(slug.removeprefix("trial-"))).content)
    return [question["key"] for question in content.questions]


def edit(client, slug: str, do: str):
    page = client.get(f"/research/drafts/{slug}")
    revision = re.search(r'name="revision" value="(\d+)"', page.text)[1]
    data = {"csrf_token": token(page), "revision": revision, "do": do}
    return client.post(f"/research/drafts/{slug}/edit", data=data)


def test_a_viewer_comments_on_a_question_and_an_editor_sees_it_where_they_edit(store, people, slug):
    first, _ = keys(store, slug)
    assert comment(people["viewer"], slug, " Shorter?\n<b>Please</b> ", first).status_code == 302
    (stored,) = comments(store, slug)
    assert (stored.question, stored.author, stored.text) == (
        *(first, "viewer@example.org"),
        "Shorter?\n<b>Please</b>",
    )
    page = people["editor"].get(path(slug)).text
    assert "&lt;b&gt;Please&lt;/b&gt;" in page
    assert "<b>Please" not in page
    assert "viewer@example.org, 20" in page
    for address in ("", f"/questions/{first}"):
        assert "1 open comment<" in people["editor"].get(f"/research/drafts/{slug}{address}").text


def test_only_members_of_the_team_can_comment(store, people, slug):
    csrf = token(people["stranger"].get("/research/account"))
    data = {"csrf_token": csrf, "question": "0", "text": "Hello"}
    assert people["stranger"].post(path(slug), data=data).status_code == 404
    anonymous = people["anonymous"].post(path(slug), data=data)
    assert anonymous.status_code == 401
    assert comments(store, slug) == []


def test_any_member_can_resolve_comments_but_only_the_author_can_delete_them(store, people, slug):
    comment(people["editor"], slug, "Too long", 0)
    (stored,) = comments(store, slug)
    viewer, editor = people["viewer"], people["editor"]
    assert ">Delete<" not in viewer.get(path(slug)).text
    assert act(viewer, slug, stored.number, "resolve").status_code == 302
    assert comments(store, slug)[0].resolved
    assert "Resolved: 1" in viewer.get(path(slug)).text
    act(viewer, slug, stored.number, "reopen")
    assert not comments(store, slug)[0].resolved
    assert act(viewer, slug, stored.number, "delete").status_code == 403
    assert comments(store, slug)
    assert act(editor, slug, stored.number, "delete").status_code == 302
    assert comments(store, slug) == []
    again = act(editor, slug, stored.number, "delete")
    assert "has already been deleted" in editor.get(again.location).text


def test_a_comment_of_another_draft_cannot_be_changed(app, store, people, slug, small):
    other = Routes(app, store, small, EMAIL).draft({store.researcher(EMAIL).key: "owner"})
    comment(people["admin"], other, "Mine", 0)
    (stored,) = comments(store, other)
    for do in ("resolve", "delete"):
        act(people["editor"], slug, stored.number, do)
    assert comments(store, other) == [stored]


def test_an_empty_or_long_comment_and_one_on_a_removed_question_are_kept_on_the_page(
    store, people, slug
):
    client = people["viewer"]
    for text, question, expected in (
        (" \0 ", 0, "Write a comment"),
        ("y" * (MAX_COMMENT_LENGTH + 1), 0, "at most 2,000 characters long (found 2,001)"),
        ("Fine", 99, "This question was removed from the draft"),
    ):
        answer = comment(client, slug, text, question)
        assert answer.status_code == 422
        assert expected in answer.text
        assert text.replace("\0", "").strip() in answer.text
    assert comments(store, slug) == []
    assert comment(client, slug, "é" * MAX_COMMENT_LENGTH, 0).status_code == 302


def test_the_number_of_comments_is_limited(store, people, slug, monkeypatch):
    monkeypatch.setattr("survey.store.drafts.MAX_COMMENTS", 2)
    for _ in range(2):
        comment(people["viewer"], slug, "One more", 0)
    rejected = comment(people["viewer"], slug, "Too many", 0)
    assert rejected.status_code == 409
    assert "a draft can have 2 comments" in rejected.text
    assert "Too many" in rejected.text
    assert len(comments(store, slug)) == 2


def test_a_comment_moves_and_goes_with_its_question_and_comes_back_by_undo(store, people, slug):
    first, second = keys(store, slug)
    client = people["editor"]
    comment(client, slug, "About sleep", first)
    edit(client, slug, f"question-down {first}")
    edit(client, slug, f"question-down {first}")
    assert keys(store, slug) == [second, first]
    assert "About sleep" in client.get(path(slug)).text
    removed = edit(client, slug, f"question-remove {first}")
    page = client.get(path(slug)).text
    assert "About sleep" not in page
    assert "open comment" not in client.get(removed.location).text
    before = re.search(r"undo=(\d+)", removed.location)[1]
    edit(client, slug, f"undo {before}")
    assert "About sleep" in client.get(path(slug)).text


def test_publishing_warns_about_open_comments_and_deletes_them(store, people, slug):
    comment(people["viewer"], slug, "Wait", 0)
    page = people["editor"].get(f"/research/drafts/{slug}/publish").text
    assert "1 comment is open; publishing deletes all comments" in page
    assert "Fix before publishing" not in page
    store.delete_draft(int(slug.removeprefix("trial-")), TODAY)
    assert comments(store, slug) == []
