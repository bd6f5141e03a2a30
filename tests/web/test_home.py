"""The home page of researchers: rows, next steps, search, filters, sorting and pages."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest

from survey.collect.release import utc_today
from survey.collect.simulation import make_test_run
from survey.questionnaire.canonical import freeze, read_definition
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import load, parse
from survey.research import home
from survey.results.plan.survey_design import present_design
from survey.settings import Caps
from survey.store import Plan, Schedule, Store, StoredReport
from tests.conftest import EMAIL, SMALL, hashed_password
from tests.store.reports import publish_pending
from tests.web.researchers import sign_in

SURVEY = load(SMALL.encode(), "s.toml", Caps())
HOME = "/research/"


@pytest.fixture
def ada(client, researcher):
    """Return the client of an administrator."""
    assert sign_in(client).status_code == 302
    return client


def add_survey(store: Store, slug: str, title: str = "Night work", **more):
    definition = freeze(SURVEY.model_copy(update={"slug": slug, "title": title}), 1)
    return store.publish(definition, utc_today(), **more)


def add_pending(store: Store, survey, n: int) -> None:
    reports = [StoredReport(os.urandom(16), "", bytes(2)) for _ in range(n)]
    store.add_reports([(survey.key, report) for report in reports])


def rows(page: str) -> dict[str, str]:
    """Return the text of each row by its title."""
    items = re.findall(r"<li>(.*?)</li>", page.partition('<ol class="surveys"')[2], re.S)
    texts = [" ".join(unescape(re.sub(r"<[^>]+>", " ", item)).split()) for item in items]
    titles = [re.search(r'<h2 dir="auto"><a[^>]*>(.*?)</a>', item)[1] for item in items]
    return dict(zip(titles, texts, strict=True))


def titles(page: str) -> list[str]:
    return list(rows(page))


def test_a_new_researcher_reads_how_to_begin(ada):
    page = ada.get(HOME).text
    assert "You have no surveys yet" in page
    assert 'href="/research/drafts/new"' in page
    assert 'href="/research/publish"' in page
    assert "<form class" not in page


def test_a_row_tells_the_progress_the_dates_and_the_next_step(ada, store):
    today = utc_today()
    plain = add_survey(store, "plain", "Plain")
    add_pending(store, plain, 75)
    publish_pending(store, plain, 25)
    planned = add_survey(store, "planned", "Planned", schedule=Schedule(closes=today))
    store.set_plan(planned.key, Plan(100))
    add_pending(store, planned, 100)
    publish_pending(store, planned, 25)
    tomorrow = today + timedelta(1)
    add_survey(store, "later", "Later", schedule=Schedule(tomorrow, today + timedelta(9), 400))
    full = add_survey(store, "full", "Full", schedule=Schedule(closes=tomorrow, maximum=100))
    add_pending(store, full, 75)
    publish_pending(store, full, 25)
    add_survey(store, "over", "Over", schedule=Schedule(closes=today - timedelta(1)))
    store.close_survey("over", today)
    day = f"{today.day} {today:%b %Y}"
    loss = "Privacy loss ε 3.584 (weak)"
    assert rows(ada.get(HOME).text) == {
        "Over": f"Over closed over, version 1 {loss} No responses released yet Closed on {day}",
        "Full": f"Full open full, version 1 {loss} 75 responses, limit 100 Closes tomorrow "
        "Latest results: release 1 Response limit reached : Full",
        "Later": f"Later not open yet later, version 1 {loss} No responses released yet, limit "
        "400 Opens tomorrow Share the link : Later",
        "Planned": f"Planned open planned, version 1 {loss} 100 of 100 responses "
        "Typical margin: ±13.2 points now Closes today "
        "Latest results: release 1 Close the survey : Planned",
        "Plain": f"Plain open plain, version 1 {loss} 75 responses No closing date "
        "Latest results: release 1 Read the results : Plain",
    }


def test_the_margins_are_those_of_the_plan_and_never_delay_the_list(ada, store, monkeypatch):
    for slug in ("one", "two"):
        survey = add_survey(store, slug, slug)
        store.set_plan(survey.key, Plan(400))
        add_pending(store, survey, 50)
        publish_pending(store, survey, 25)
    now, then = (
        present_design(list(SURVEY.questions), survey.definition.groups, 2, n).typical_margin
        for n in (50, 400)
    )
    margins = f"Typical margin: ±{100 * now:.1f} points now, ±{100 * then:.1f} at the target"
    assert ada.get(HOME).text.count(margins) == 2
    clock = iter((0, 0, home.MARGIN_SECONDS))
    monkeypatch.setattr(home, "monotonic", lambda: next(clock))
    assert ada.get(HOME).text.count(margins) == 1


def test_the_next_step_of_a_draft_is_what_keeps_it_from_being_published(ada, store):
    today, content = utc_today(), draft_from(parse(SMALL.encode(), "s.toml"))
    owner = {store.researcher(EMAIL).key: "owner"}
    draft = store.add_draft(DraftContent.new("Nights", "nights").to_json(), EMAIL, 0, owner)

    def next_step(page: str) -> tuple[str, str]:
        link = re.search(r'<p class="next"><a href="/research/drafts/trial-1([^"]*)">([^<]*)', page)
        return link[2], link[1]

    assert "0 questions Saved on 1 Jan 1970" in rows(ada.get(HOME).text)["Nights"]
    assert next_step(ada.get(HOME).text) == ("Add questions", "")
    spanish = edits.with_language(content, "es")
    for changed, step in (
        (replace(content, survey={**content.survey, "slug": ""}), ("Fix 1 mistake", "/publish")),
        (spanish, ("Translate 9 texts into es", "/languages/es")),
        (content, ("Not tested yet", "/try")),
    ):
        draft = store.save_draft(draft, changed.to_json(), EMAIL, 0)
        assert next_step(ada.get(HOME).text) == step
    make_test_run(store, SURVEY, draft, today)
    assert next_step(ada.get(HOME).text) == ("Publish", "/publish")
    assert len(rows(ada.get(HOME).text)) == 1


@pytest.mark.parametrize("damaged", ["", "[]", '{"survey":{}}', '{"survey":7,"languages":[]}'])
def test_an_unreadable_draft_breaks_no_other_page(ada, store, damaged):
    owner = {store.researcher(EMAIL).key: "owner"}
    content = draft_from(parse(SMALL.encode(), "s.toml"))
    whole = store.add_draft(content.to_json(), EMAIL, 0, owner)
    broken = store.add_draft(damaged, EMAIL, 0, owner)
    assert rows(ada.get(HOME).text)["Unreadable draft"].startswith(
        "Unreadable draft draft Damaged, or saved by a newer version"
    )
    assert titles(ada.get(HOME, query_string={"q": "small"}).text) == ["A small survey"]
    assert ada.get(f"/research/drafts/{whole.slug}/bank").status_code == 200
    page = ada.get(f"/research/drafts/{broken.slug}")
    assert page.status_code == 503
    assert "damaged, or a newer version of the program saved it" in page.text


def test_search_filter_sort_and_pages_are_addresses(ada, store):
    today = utc_today()
    for number in range(30):
        closes = today + timedelta(40 - number) if number % 2 else None
        add_survey(
            store, f"ward-{number:02}", f"Ward {number:02}", schedule=Schedule(closes=closes)
        )
    add_survey(store, "bosses", "Çalışma FÜR Straße")
    store.close_survey("ward-07", today)
    store.set_archived("ward-08", archived=True)
    first = ada.get(HOME).text
    assert titles(first)[:2] == ["Çalışma FÜR Straße", "Ward 29"]
    assert len(titles(first)) == 25
    assert "1 to 25 of 30" in first
    assert 'href="/research/?page=2" rel="next"' in first
    second = ada.get(f"{HOME}?page=2").text
    assert titles(second) == [f"Ward 0{n}" for n in (4, 3, 2, 1, 0)]
    assert titles(ada.get(f"{HOME}?page=99").text) == titles(second)
    assert titles(ada.get(f"{HOME}?page=-1&sort=x&state=x").text) == titles(first)
    assert titles(ada.get(f"{HOME}?sort=title").text)[0] == "Ward 00"
    assert titles(ada.get(f"{HOME}?sort=closes").text)[:2] == ["Ward 29", "Ward 27"]
    assert titles(ada.get(f"{HOME}?state=closed").text) == ["Ward 07"]
    assert titles(ada.get(f"{HOME}?state=archived").text) == ["Ward 08"]
    assert titles(ada.get(f"{HOME}?q=für+STRASSE").text) == ["Çalışma FÜR Straße"]
    assert titles(ada.get(f"{HOME}?q=ward-1+ward").text)[0] == "Ward 19"
    nothing = ada.get(f"{HOME}?q=%3Cb%3E&state=open&sort=title").text
    assert "No survey matches the search." in nothing
    assert 'value="&lt;b&gt;"' in nothing
    assert 'href="/research/?q=%3Cb%3E&amp;sort=title"' in nothing


def test_a_title_is_found_after_it_changed(ada, store):
    owner = {store.researcher(EMAIL).key: "owner"}
    draft = store.add_draft(DraftContent.new("Nights", "n").to_json(), EMAIL, 0, owner)
    assert titles(ada.get(f"{HOME}?q=nights").text) == ["Nights"]
    store.save_draft(draft, DraftContent.new("Days", "n").to_json(), EMAIL, 0)
    assert titles(ada.get(f"{HOME}?q=nights").text) == []
    assert titles(ada.get(f"{HOME}?q=days").text) == ["Days"]


def test_only_the_surveys_on_the_page_are_computed(ada, store, monkeypatch):
    for number in range(60):
        add_survey(store, f"ward-{number}", f"Ward {number}")
    read: list[bytes] = []

    def record(canonical: bytes):
        read.append(canonical)
        return read_definition(canonical)

    monkeypatch.setattr(home, "read_definition", record)
    monkeypatch.setattr(Store, "surveys", None)
    monkeypatch.setattr(Store, "drafts", None)
    assert len(titles(ada.get(f"{HOME}?page=2&sort=title").text)) == 25
    assert len(read) == 25


@pytest.mark.security
def test_the_list_does_not_change_while_reports_are_pending(ada, store):
    survey = add_survey(store, "small")
    add_pending(store, survey, 50)
    publish_pending(store, survey, 25)
    before = ada.get(HOME).text
    add_pending(store, survey, 49)
    assert ada.get(HOME).text == before
    assert "50 responses" in before


@pytest.mark.security
def test_the_list_and_its_search_have_only_surveys_of_the_researcher_s_teams(
    app, store, researcher, small
):
    ben = store.add_researcher("ben@example.org", hashed_password()).key
    add_survey(store, "mine", "Mine", team={ben: "viewer"})
    client = app.test_client()
    sign_in(client, "ben@example.org")
    for query in ("", "?q=small", "?q=m", "?sort=title"):
        assert "A small survey" not in client.get(HOME + query).text
    store.add_draft(DraftContent.new("Ours", "ours").to_json(), EMAIL, 0, {ben: "viewer"})
    store.add_draft(DraftContent.new("Theirs", "theirs").to_json(), EMAIL, 0, {})
    page = client.get(HOME).text
    assert titles(page) == ["Mine", "Ours"]
    assert 'class="next"><a' not in page
    assert re.findall(r'<span class="quiet">(\d+)</span></a>', page) == ["2", "1", "1"]
    store.set_role("mine", ben, "editor")
    assert "Share the link" in client.get(HOME).text
