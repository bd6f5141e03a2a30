"""The preview of a draft: who may open it, what it contains, and what an incomplete draft lacks."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest

from survey.app import create_app
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.edits import add_question
from survey.questionnaire.loading import parse
from survey.respond import Client
from tests.conftest import EMAIL, PASSWORD, SMALL
from tests.surveys import EVERY_TYPE
from tests.web.researchers import sign_in, token

HOSTILE = "</script><script>alert(1)</script>\"'><meta name=preview content={}>"
PUBLIC, RESEARCH = "https://survey.example.org", "https://research.example.org"


@pytest.fixture
def ada(client, researcher):
    assert sign_in(client).status_code == 302
    return client


@pytest.fixture
def draft(store, researcher):
    """Return a function that stores a draft and returns the address of its pages."""

    def add(toml: str | DraftContent = SMALL) -> str:
        content = (
            toml if isinstance(toml, DraftContent) else draft_from(parse(toml.encode(), "s.toml"))
        )
        team = {store.researcher(EMAIL).key: "owner"}
        return f"/research/drafts/{store.add_draft(content.to_json(), EMAIL, 1, team).slug}"

    return add


def settings_of(page) -> dict[str, str]:
    """Return the contents of the page's meta elements by name."""
    pairs = re.findall(r'<meta name="([^"]*)" content="([^"]*)">', page.text)
    return {name: html.unescape(text) for name, text in pairs}


def test_the_preview_is_the_shipped_page_with_the_draft_in_it(ada, draft):
    page = ada.get(f"{draft()}/preview/page")
    shipped = Client.load().page.decode()
    added = [line for line in page.text.splitlines() if line not in shipped.splitlines()]
    assert [re.match(r'<(meta name="[\w-]*"|script)', line)[1] for line in added] == [
        *('meta name="collector"', 'meta name="preview"', 'meta name="preview-hash"'),
        *('meta name="preview-language"', 'meta name="preview-start"', "script"),
    ]
    missing = [line for line in shipped.splitlines() if line not in page.text.splitlines()]
    assert missing == ['<footer id="version"></footer>']
    definition = json.loads(settings_of(page)["preview"])
    texts = [q["text"] for p in definition["pages"] for q in p["questions"]]
    assert texts == ["Did you fall asleep at work?", texts[1]]


def test_a_preview_of_one_question_asks_it_of_everyone(ada, draft):
    content = draft_from(parse(SMALL.encode(), "s.toml"))
    second = list(content.questions)[1]
    conditional = {**second, "ask_question": "fell_asleep", "ask_options": ("yes",)}
    content = content.with_question(second["key"], conditional)
    survey = {**content.survey, "questions_per_person": "1"}
    address = draft(replace(content, survey=survey))
    settings = settings_of(ada.get(f"{address}/preview/page?question={second['key']}"))
    definition = json.loads(settings["preview"])
    (question,) = [q for p in definition["pages"] for q in p["questions"]]
    assert (question["id"], question["ask_if"], definition["sampling"]) == (
        second["id"],
        None,
        None,
    )
    assert settings["preview-start"] == "yes"


def test_the_preview_starts_in_the_chosen_language_of_the_draft(ada, draft):
    content = replace(draft_from(parse(SMALL.encode(), "s.toml")), languages=("es",))
    address = draft(content)
    for asked, shown in (("es", "es"), ("en", "en"), ("fr", "en"), ("", "en")):
        page = ada.get(f"{address}/preview/page?language={asked}")
        assert settings_of(page)["preview-language"] == shown, asked


def test_an_incomplete_draft_names_what_the_preview_lacks(ada, draft):
    content, key = add_question(draft_from(parse(SMALL.encode(), "s.toml")), 1, "single_choice")
    address = draft(content)
    page = ada.get(f"{address}/preview")
    assert "The survey is not complete." in page.text
    assert f'href="{address}/questions/{key}#text"' in page.text
    assert "any of the 2 complete questions" in page.text
    assert "<iframe" not in page.text
    framed = ada.get(f"{address}/preview/page")
    assert framed.status_code == 200
    assert "There are no answers yet" in framed.text
    assert "main.js" not in framed.text
    complete = next(iter(content.questions))["key"]
    assert "<iframe" in ada.get(f"{address}/preview?question={complete}").text
    assert "main.js" in ada.get(f"{address}/preview/page?question={complete}").text
    assert ada.get(f"{address}/preview/page?question=99").status_code == 404


@pytest.mark.security
def test_hostile_texts_stay_in_the_definition_of_the_preview(ada, draft):
    content = draft_from(parse(SMALL.encode(), "s.toml"))
    title = {**content.survey, "title": {"en": HOSTILE}}
    question = {**next(iter(content.questions)), "text": {"en": HOSTILE}}
    content = replace(content.with_question(question["key"], question), survey=title)
    address = draft(content)
    page = ada.get(f"{address}/preview/page")
    assert json.loads(settings_of(page)["preview"])["title"] == HOSTILE
    for path in ("preview", "preview/page"):
        assert "<script>alert" not in ada.get(f"{address}/{path}").text


@pytest.mark.security
def test_a_draft_has_no_page_on_the_respondents_origin(store, settings, draft):
    address = draft(EVERY_TYPE)
    app = create_app(replace(settings, public_url=PUBLIC, research_url=RESEARCH), store)
    client = app.test_client()
    csrf_token = token(client.get("/research/sign-in", base_url=RESEARCH))
    typed = {"csrf_token": csrf_token, "email": EMAIL, "password": PASSWORD}
    assert client.post("/research/sign-in", base_url=RESEARCH, data=typed).status_code == 302
    for path in ("preview", "preview/page"):
        assert client.get(f"{address}/{path}", base_url=RESEARCH).status_code == 200
        public = client.get(f"{address}/{path}", base_url=PUBLIC)
        assert public.status_code == 404
        assert b"Work and health" not in public.data
    for path in ("s/small/reports", "reports", "page/s/small/reports"):
        target = f"{address}/preview/{path}"
        assert client.post(target, base_url=RESEARCH, json={}).status_code in (400, 404, 405)
