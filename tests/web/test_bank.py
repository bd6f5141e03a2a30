"""Templates of surveys and the question bank."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from survey.collect.publication import publish
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.edits import add_copy
from survey.questionnaire.loading import load, parse
from survey.questionnaire.privacy_loss import publication_warnings, report_strength
from survey.research.builder.bank import MAX_LISTED, PLANNED_RESPONSES, TEMPLATES, template
from survey.results.plan.compute import planned_margin, to_published
from survey.results.plan.sentences import WIDE_MARGIN
from survey.settings import Caps
from survey.store import draft_key
from tests.conftest import EMAIL, SMALL, TODAY, hashed_password
from tests.web.researchers import send, sign_in, token

DRAFTS = "/research/drafts"
HOSTILE = "<script>alert(1)</script>\"'"
SECRET = "Do you know the secret question?"


@pytest.fixture
def ada(client, researcher):
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def ben(app, store, researcher):
    """Return the client of a researcher who is not an administrator and has no survey."""
    store.add_researcher("ben@example.org", hashed_password())
    client = app.test_client()
    assert sign_in(client, "ben@example.org").status_code == 302
    return client


def begin(client, **data: str) -> str:
    response = send(client, f"{DRAFTS}/new", **data)
    assert response.status_code == 302, response.text
    return response.location.rpartition("/")[2]


def content_of(store, slug: str) -> DraftContent:
    return DraftContent.from_json(store.draft(draft_key(slug)).content)


def add(client, slug: str, source: str, page: int = 1):
    """Press "Add" beside a question of the bank."""
    bank = client.get(f"{DRAFTS}/{slug}/bank?page={page}")
    revision = re.search(r'name="revision" value="(\d+)"', bank.text)[1]
    data = {"csrf_token": token(bank), "revision": revision, "source": source}
    return client.post(f"{DRAFTS}/{slug}/edit", data={**data, "do": f"question-from {page}"})


def sources(page) -> dict[str, str]:
    """Return the source of each listed question by its text."""
    pairs = re.findall(r'<p dir="auto">(.*?)</p>.*?name="source" value="([^"]*)"', page.text, re.S)
    return {html.unescape(text): html.unescape(source) for text, source in pairs}


def test_every_template_can_be_published_and_is_private_and_precise(store):
    files = {name: template(name) for name in TEMPLATES}
    for name, content in files.items():
        draft_check = check_draft(content, Caps())
        assert draft_check.mistakes == (), name
        asked = draft_check.asked
        assert 6 <= len(asked.questions) <= 10, name
        assert report_strength(asked) != "weak", name
        assert publication_warnings(asked, Caps(), []) == [], name
        n = int(PLANNED_RESPONSES * asked.share_asked)
        margins = {q.id: planned_margin(to_published(q), n) for q in asked.questions}
        assert max(margins.values()) <= WIDE_MARGIN, (name, margins)
        epsilons = [q.channel.epsilon for q in asked.questions]
        assert epsilons[0] == max(epsilons), (name, "the harmless question is the first")
        texts = ("introduction", "consent", "contact", "thanks")
        assert all(content.survey[text].get("en") for text in texts), name
        assert sum(q.prefer_not_to_say is not False for q in asked.questions) >= 5, name
        assert publish(store, draft_check.survey, TODAY).version == 1


PROMISE = re.compile(
    r"\b(nobody|no one|never|anonymous\w*|impossible|guarantee\w*|safe\w*)\b", re.I
)
"""Words of a promise that no randomization keeps: the page computes what it can promise."""


def test_no_template_promises_more_than_the_protection():
    assert PROMISE.search("so nobody can know what you answered")
    for name in TEMPLATES:
        survey = template(name).survey
        for text in ("introduction", "consent", "ethics", "contact", "thanks"):
            assert not PROMISE.search(str(survey[text].get("en", ""))), (name, text)


def test_a_template_becomes_a_draft_with_a_free_name(ada, store):
    first = begin(ada, template="election", title="")
    content = content_of(store, first)
    assert (content.title, content.survey["slug"]) == (
        "The election and your vote",
        "the-election-and-your-vote",
    )
    assert content.plan["n"] == str(PLANNED_RESPONSES)
    second = content_of(store, begin(ada, template="election", title=" The election and your vote"))
    assert second.survey["slug"] == "the-election-and-your-vote-2"
    renamed = content_of(store, begin(ada, template="employees", title="My team"))
    assert (renamed.title, renamed.survey["slug"]) == ("My team", "my-team")


def test_a_wrong_template_or_an_empty_title_creates_nothing(ada, store):
    for data, message in (
        ({"template": "", "title": " "}, "Enter a title; you can change it later"),
        ({"template": "../demo/workplace", "title": "A"}, "Not a valid choice"),
    ):
        response = send(ada, f"{DRAFTS}/new", **data)
        assert (response.status_code, message in response.text) == (422, True), data
    assert store.drafts() == []


def test_a_copy_of_a_bank_question_has_fresh_ids_and_can_be_undone(ada, store):
    slug = begin(ada, template="", title="Night work")
    source = "template:workplace_harassment:by_whom"
    question_page = ada.get(add(ada, slug, source).location)
    assert "Question added." in question_page.text
    assert add(ada, slug, source).status_code == 302
    questions = list(content_of(store, slug).questions)
    assert [question["id"] for question in questions] == ["by_whom", "by_whom_2"]
    keys = [part["key"] for q in questions for part in (q, *q["options"])]
    assert len(set(keys)) == len(keys)
    assert check_draft(content_of(store, slug), Caps()).mistakes == ()
    revision = store.draft(draft_key(slug)).revision
    page = ada.get(f"{DRAFTS}/{slug}?did=question-from&undo={revision - 1}&place=1")
    assert "Question added." in page.text
    data = {"csrf_token": token(page), "do": f"undo {revision - 1}"}
    assert ada.post(f"{DRAFTS}/{slug}/edit", data=data).status_code == 302
    assert len(list(content_of(store, slug).questions)) == 1


def test_a_button_pressed_twice_adds_one_copy(ada, store):
    slug = begin(ada, template="", title="Night work")
    bank = ada.get(f"{DRAFTS}/{slug}/bank")
    revision = re.search(r'name="revision" value="(\d+)"', bank.text)[1]
    data = {"csrf_token": token(bank), "revision": revision, "do": "question-from 1"}
    for _ in range(2):
        ada.post(f"{DRAFTS}/{slug}/edit", data={**data, "source": "template:election:party"})
    assert len(list(content_of(store, slug).questions)) == 1


def test_a_copy_has_the_texts_of_the_languages_that_the_draft_has():
    question = next(iter(draft_from(parse(SMALL.encode(), "s.toml")).questions))
    texts = {"en": "Asleep?", "es": "¿Dormido?", "ar": "نائم؟"}
    options = ({"key": 9, "id": "a", "label": {"en": "A"}},)
    question = {**question, "text": texts, "options": options, "ask_question": "other"}
    draft = replace(DraftContent.new("Titel", "t"), languages=("es",))
    german = {**draft.survey, "language": "de"}
    for survey, expected in (
        (draft.survey, {"en": "Asleep?", "es": "¿Dormido?"}),
        (german, {"es": "¿Dormido?", "de": "Asleep?"}),
    ):
        content, key = add_copy(replace(draft, survey=survey), 1, question, "en")
        copy = content.question(key)
        assert (copy["text"], copy["ask_question"]) == (expected, "")
        assert copy["options"][0]["key"] != 9


def test_the_bank_finds_questions_by_their_words_and_their_survey(ada, store, small):
    slug = begin(ada, template="", title="Night work")
    for find, expected in (
        ("asleep WORK", ["Did you fall asleep at work?"]),
        ("small survey press", ["Did anybody press you to stay longer?"]),
        ("no such words", []),
    ):
        page = ada.get(f"{DRAFTS}/{slug}/bank", query_string={"find": find})
        assert list(sources(page)) == expected, find
    assert "Only the first" in ada.get(f"{DRAFTS}/{slug}/bank").text
    assert len(sources(ada.get(f"{DRAFTS}/{slug}/bank"))) <= MAX_LISTED


@pytest.mark.security
def test_the_bank_has_no_question_of_a_survey_that_the_researcher_cannot_read(ben, store, small):
    secret = draft_from(
        parse(SMALL.replace("Did you fall asleep at work?", SECRET).encode(), "s.toml")
    )
    draft = store.add_draft(secret.to_json(), EMAIL, 1, {store.researcher(EMAIL).key: "owner"})
    slug = begin(ben, template="", title="Night work")
    page = ben.get(f"{DRAFTS}/{slug}/bank?find=work")
    assert sources(page)
    assert not [source for source in sources(page).values() if not source.startswith("template:")]
    assert SECRET not in ben.get(f"{DRAFTS}/{slug}/bank?find=secret").text
    key = next(iter(secret.questions))["key"]
    for source in (
        f"draft:{draft.slug}:{key}",
        "survey:small:fell_asleep",
        "template:../../demo/workplace:injured",
        "",
        "draft::",
    ):
        assert add(ben, slug, source).status_code == 302, source
        assert list(content_of(store, slug).questions) == [], source
    store.set_role(draft.slug, store.researcher("ben@example.org").key, "viewer")
    store.set_role("small", store.researcher("ben@example.org").key, "viewer")
    for source in (f"draft:{draft.slug}:{key}", "survey:small:fell_asleep"):
        add(ben, slug, source)
    texts = [question["text"]["en"] for question in content_of(store, slug).questions]
    assert texts == [SECRET, "Did you fall asleep at work?"]


@pytest.mark.security
def test_hostile_texts_are_shown_as_text_in_the_bank(ada, store):
    toml = SMALL.replace("Did you fall asleep at work?", "<script>alert(1)</script>")
    toml = toml.replace('title = "A small survey"', 'title = "<script>alert(2)</script>"')
    publish(store, load(toml.encode(), "s.toml", Caps()), TODAY)
    slug = begin(ada, template="", title="Night work")
    page = ada.get(f"{DRAFTS}/{slug}/bank", query_string={"find": HOSTILE})
    assert "<script>alert" not in page.text
    page = ada.get(f"{DRAFTS}/{slug}/bank?find=alert")
    assert "<script>alert" not in page.text
    assert "<script>alert(1)</script>" in sources(page)
