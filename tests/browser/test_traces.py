"""A respondent's device stores and sends nothing except its report (security 4 and 15)."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import urllib.request
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.respondent import (
    SINGLE_TAPS,
    answer,
    answer_and_send,
    choose,
    entry,
    heading,
    press,
    stored_entries,
    wait_sent,
)
from tests.conftest import SMALL, long_unless
from tests.surveys import EVERY_TYPE, SKIPS

pytestmark = [pytest.mark.web, pytest.mark.security]

STORES = """async () => ({
  session: {...sessionStorage},
  cookie: document.cookie,
  databases: await indexedDB.databases(),
  caches: await caches.keys(),
  workers: (await navigator.serviceWorker.getRegistrations()).length,
  state: history.state,
})"""
ENDS = ("on the next page", "at the review", "after sending")
NOTHING = {"session": {}, "cookie": "", "databases": [], "caches": [], "workers": 0, "state": None}


def test_a_visit_stores_only_the_mark_and_requests_only_this_host(site, device):
    survey = site.publish()
    page = device.open(site.link(survey))
    steps = page.evaluate("history.length")
    answer(page, ["Yes", "Never"])
    assert stored_entries(page) == {}
    # The third step of the visit: the history stores only this number.
    assert page.evaluate(STORES) == {**NOTHING, "state": 3}
    press(page, "Send")
    wait_sent(page)
    assert list(stored_entries(page)) == [f"survey-report:{survey.slug}"]
    assert page.evaluate(STORES) == NOTHING
    # Two pages and the review, whatever the answers; an entry contains only its number.
    assert page.evaluate("history.length") == steps + 3
    assert page.evaluate("history.state") is None
    assert page.url == site.link(survey)
    assert device.context.cookies() == []
    assert device.context.service_workers == []
    assert device.messages == []
    assert {urlsplit(request.url).netloc for request in device.requests} == {
        urlsplit(site.url).netloc
    }
    (report,) = device.posts
    assert report.url == f"{site.url}/s/{survey.slug}/reports"
    headers = report.all_headers()
    assert "cookie" not in headers
    assert "referer" not in headers


MEMORY = "survey-memory"


def test_a_device_remembers_earlier_surveys_only_if_asked_and_warns_after_start(site, device):
    first, second = site.publish(), site.publish()
    page = device.open(site.link(first))
    answer_and_send(page)
    wait_sent(page)
    assert MEMORY not in stored_entries(page)
    press(page, "Remember on this device")
    expect(page.get_by_text("Stored on this device: 1 survey, factor at most")).to_be_focused()
    assert json.loads(stored_entries(page)[MEMORY]) == {"surveys": 1, "factor": "100"}
    page = device.open(site.link(second))
    heading(page, "A small survey")
    assert "adds up" not in page.content().lower().partition("<script")[0]
    press(page, "Start")
    heading(page, "What you reveal adds up")
    main = page.locator("main")
    expect(main).to_contain_text("you answered 1 survey on this site")
    expect(main).to_contain_text("together: weak protection. They change the odds of a guess")
    expect(main).to_contain_text("about your answers by a factor of at most 3,600.")
    press(page, "Continue")
    heading(page, "First page")
    page.reload()
    press(page, "Start")
    press(page, "Forget these numbers")
    heading(page, "First page")
    assert MEMORY not in stored_entries(page)


def test_forgetting_a_survey_forgets_the_numbers_of_all_surveys(site, device):
    page = device.open(site.link(site.publish()))
    answer_and_send(page)
    for name in ("Remember on this device", "Forget these numbers"):
        press(page, name)
    expect(page.get_by_text("This device does not store these numbers.")).to_be_focused()
    assert MEMORY not in stored_entries(page)
    page = device.open(site.link(site.publish()))
    answer_and_send(page)
    press(page, "Remember on this device")
    press(page, "Forget this on this device")
    heading(page, "Forgotten")
    assert MEMORY not in stored_entries(page)


def test_no_answer_of_the_server_sets_a_cookie(site, device):
    responses = []
    device.context.on("response", lambda response: responses.append(response))
    page = device.open(site.link(site.publish()))
    with page.expect_response("**/sent"):
        answer_and_send(page)
    wait_sent(page)
    assert len(responses) == len(device.requests) > 7
    for response in responses:
        assert response.status in (200, 201, 204)
        assert "set-cookie" not in response.all_headers()


def test_the_page_requests_each_file_once_and_nothing_else(site, device):
    page = device.open(site.link(site.publish()))
    heading(page, "A small survey")
    page.wait_for_load_state("networkidle")
    urls = [request.url for request in device.requests]
    # Some browsers request an icon late or never, so the icon is part of the page.
    assert page.locator("link[rel=icon]").get_attribute("href").startswith("data:image/svg+xml,")
    assert len(urls) == len(set(urls))
    assert sum(url.endswith("/definition.json") for url in urls) == 1
    files = {"guard.js", "opening.js", "main.js", "respond.css", "words.en.json"}
    assert {url.rpartition("/")[2] for url in urls if "/client/" in url} == files


def test_inputs_stand_in_no_form_and_their_names_differ_between_loads(site, device):
    page = device.open(site.link(site.publish()))
    names = []
    for _ in range(3):
        press(page, "Start")
        expect(page.locator("input")).to_have_count(3)
        assert page.locator("form").count() == 0
        content = page.evaluate(
            "[...document.querySelectorAll('input')].map(i => [i.name, i.value, i.form, i.id])"
        )
        (name,) = {name for name, *_ in content}
        assert len(name) == 17
        assert {tuple(attributes) for _, *attributes in content} == {("on", None, "")}
        names.append(name)
        page.reload()
    assert len(set(names)) == 3


def test_the_markup_of_a_question_does_not_depend_on_the_answer(site, device):
    page = device.open(site.link(site.publish()))
    press(page, "Start")
    before = page.content()
    choose(page, "Yes")
    expect(page.locator("input:checked")).to_have_count(1)
    assert page.content() == before


def test_after_sending_nothing_on_the_page_is_the_raw_answer(site, device):
    page = device.open(site.link(site.publish()))
    answer_and_send(page)
    wait_sent(page)
    expect(page.locator("input")).to_have_count(0)


TYPED = "37.4125"
"""A number that only this test would type."""


def type_number(page: Page) -> None:
    """Go to the review of a survey with a typed number."""
    press(page, "Start")
    choose(page, "I was ill")
    press(page, "Continue")
    entry(page).press_sequentially(TYPED)


def finish(page: Page) -> None:
    """Go from the number to the sent report."""
    for label in ("Prefer not to say", "2"):
        press(page, "Continue")
        choose(page, label)
    press(page, "Continue")
    entry(page).press_sequentially("21")
    press(page, "Continue")
    choose(page, "At home")
    choose(page, "A desk")
    press(page, "Continue")
    heading(page, "Check your answers")
    press(page, "Send")
    wait_sent(page)


def test_a_typed_text_is_not_in_the_markup_and_disappears_with_its_page(site, device):
    page = device.open(site.link(site.publish(EVERY_TYPE)))
    type_number(page)
    assert page.evaluate("document.activeElement.value") == TYPED
    assert TYPED not in page.content()
    finish(page)
    page.get_by_text("See what was sent").tap()
    for text in (TYPED, "35 hours"):
        assert text not in page.content()
    assert page.locator("input").count() == 0
    assert all(TYPED not in entry_text for entry_text in profile_entries(page))
    page.go_back()
    page.go_forward()
    heading(page, "This device has already sent answers")
    assert TYPED not in page.content()


def profile_entries(page: Page) -> list[str]:
    """Return everything that the page stores, and its address."""
    return [str(stored_entries(page)), str(page.evaluate(STORES)), page.url, page.title()]


def test_a_typed_number_disappears_after_a_reload_and_after_back(site, device):
    page = device.open(site.link(site.publish(EVERY_TYPE)))
    type_number(page)
    page.reload()
    heading(page, "Work and health")
    type_number(page)
    page.goto("about:blank")
    page.go_back()
    heading(page, "Work and health")
    press(page, "Start")
    expect(page.locator("input:checked")).to_have_count(0)
    press(page, "Continue")
    press(page, "Continue")
    expect(entry(page)).to_have_value("")


def test_browsers_do_not_store_text_fields(site, device):
    page = device.open(site.link(site.publish(EVERY_TYPE)))
    type_number(page)
    field = entry(page)
    for name, value in (("autocomplete", "off"), ("spellcheck", "false")):
        expect(field).to_have_attribute(name, value)
    assert len(field.get_attribute("name")) == 17
    assert field.evaluate("(e) => e.form") is None


def open_profile(browser: Browser, profile: Path) -> BrowserContext:
    """Open a browser with its profile in a directory."""
    context = browser.browser_type.launch_persistent_context(
        profile,
        executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
        args=["--no-sandbox"] if os.geteuid() == 0 else [],
        has_touch=True,
    )
    context.add_init_script(SINGLE_TAPS)
    return context


def all_bytes(profile: Path) -> bytes:
    """Return all bytes of a closed browser's profile."""
    return b"".join(path.read_bytes() for path in profile.rglob("*") if path.is_file())


def test_the_browsers_profile_contains_no_typed_text(site, browser, tmp_path):
    survey = site.publish(EVERY_TYPE)
    context = open_profile(browser, tmp_path)
    page = context.new_page()
    page.goto(site.link(survey))
    type_number(page)
    finish(page)
    context.close()
    content = all_bytes(tmp_path)
    for text in (TYPED, "35 hours", "I was ill"):
        for encoding in ("utf-8", "utf-16-le"):
            assert text.encode(encoding) not in content
    # The address is in the history, so the search can fail.
    assert f"/s/{survey.slug}".encode() in content


NIGHTS = "Do you work at night?"
OFTEN = "How many nights a week?"
TIRED = "Are you tired?"
PAGES = [f"Page {number} of 4" for number in range(1, 5)]


@pytest.mark.parametrize("ends", long_unless(["after sending"], ENDS))
def test_the_browsers_profile_reveals_no_path_through_the_questions(site, browser, tmp_path, ends):
    survey = site.publish(SKIPS)
    titles = {}
    for first_answer, following in (("Yes", OFTEN), ("No", TIRED)):
        profile = tmp_path / first_answer
        context = open_profile(browser, profile)
        page = context.new_page()
        page.goto(site.link(survey))
        walk(page, first_answer, following, ends)
        # Another page lets the browser save the page that it leaves.
        page.goto("about:blank")
        context.close()
        titles[first_answer] = stored_titles(profile)
        content = all_bytes(profile)
        for text in (*PAGES, NIGHTS, OFTEN, TIRED, "One or two"):
            for encoding in ("utf-8", "utf-16-le"):
                assert text.encode(encoding) not in content, text
        assert f"/s/{survey.slug}".encode() in content
    assert titles["Yes"] == titles["No"]
    assert {title for title in titles["Yes"] if title} == {"Nights"}


def walk(page: Page, first_answer: str, following: str, ends: str) -> None:
    """Walk past the question that decides the path, to the end of the visit."""
    press(page, "Start")
    choose(page, first_answer)
    press(page, "Continue")
    heading(page, following)
    press(page, "Continue")
    if ends == "on the next page":
        return
    while page.get_by_role("button", name="Continue").count():
        press(page, "Continue")
    heading(page, "Check your answers")
    if ends == "after sending":
        press(page, "Send")
        wait_sent(page)


def stored_titles(profile: Path) -> list[str]:
    """Return the titles in the browser's history."""
    with closing(sqlite3.connect(profile / "Default" / "History")) as history:
        return sorted(title for (title,) in history.execute("SELECT title FROM urls"))


def test_prints_hide_answers_and_reports(site, device):
    typing = device.open(site.link(site.publish(EVERY_TYPE)))
    type_number(typing)
    typing.emulate_media(media="print")
    expect(entry(typing)).to_be_hidden()
    page = device.open(site.link(site.publish()))
    answer(page, ["Yes", "Never"])
    page.emulate_media(media="print")
    expect(page.locator(".answers")).to_be_hidden()
    expect(page.get_by_text("this page does not print answers")).to_be_visible()
    page.emulate_media(media="screen")
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    page.get_by_text("The exact message").tap()
    expect(page.locator("pre")).to_be_visible()
    page.emulate_media(media="print")
    for part in ("pre", ".reported"):
        expect(page.locator(part)).to_be_hidden()


def test_the_page_is_byte_identical_for_every_survey(site):
    second_definition = SMALL.replace("A small survey", "Another title").replace(
        "fell_asleep", "other"
    )
    pages = []
    for survey in (site.publish(), site.publish(second_definition)):
        with urllib.request.urlopen(f"{site.url}/s/{survey.slug}") as page:
            pages.append(page.read())
    assert pages[0] == pages[1]
    assert b"survey-" not in pages[0]


def test_fifty_different_browsers_get_identical_pages_definitions_and_code(site):
    survey = site.publish()
    with urllib.request.urlopen(f"{site.url}/s/{survey.slug}") as page:
        base = page.read().decode().partition("/main.js")[0].rpartition('"')[2]
    for path in (f"/s/{survey.slug}", f"/s/{survey.slug}/definition.json", f"{base}/main.js"):
        content = set()
        for number in range(50):
            request = urllib.request.Request(
                site.url + path,
                headers={
                    "User-Agent": f"agent {number}",
                    "Accept-Language": ["de", "ar", "en"][number % 3],
                    "Cookie": f"id={number}",
                    "X-Forwarded-For": f"203.0.113.{number}",
                },
            )
            with urllib.request.urlopen(request) as response:
                content.add(
                    (
                        response.read(),
                        response.headers["Content-Type"],
                        response.headers["ETag"],
                        response.headers["Set-Cookie"],
                    )
                )
        assert len(content) == 1
