"""The preview of a draft in a browser: it shows the respondents' page and never sends anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.loading import parse
from tests.browser.research import sign_in
from tests.browser.respondent import answer, heading, press
from tests.conftest import EMAIL, SMALL
from tests.pictures import PETS, add_picture, webp

pytestmark = [pytest.mark.web, pytest.mark.security]

NOTHING_SENT = "This is a preview; nothing is sent."

TRY_TO_LEAVE = """
async () => {
  const blocked = [];
  document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.blockedURI));
  for (const path of ["/s/small/reports", location.pathname]) {
    await new Promise((resolve) => {
      const request = new XMLHttpRequest();
      request.onloadend = resolve;
      request.open("POST", path);
      request.send("{}");
    });
  }
  navigator.sendBeacon("/s/small/reports", "{}");
  await new Promise((resolve) => setTimeout(resolve, 200));
  return blocked.length;
}
"""


def add_draft(site, **survey) -> str:
    """Store a draft of the small survey and return the path of its pages."""
    content = draft_from(parse(SMALL.encode(), "s.toml"))
    title = {"en": "A small survey", "es": "Una encuesta"}
    content = replace(
        content, survey={**content.survey, "title": title, **survey}, languages=("es",)
    )
    team = {site.store.researcher(EMAIL).key: "owner"}
    draft = site.store.add_draft(content.to_json(), EMAIL, 1, team)
    return f"/research/drafts/{draft.slug}"


def test_a_preview_shows_the_pictures_of_answers(site, new_device):
    sha256 = add_picture(site.store, webp())
    content = draft_from(parse(PETS.replace("CAT", sha256).encode(), "s.toml"))
    team = {site.store.researcher(EMAIL).key: "owner"}
    draft = site.store.add_draft(content.to_json(), EMAIL, 1, team)
    device = new_device()
    page = sign_in(device, site.url)
    page.goto(f"{site.url}/research/drafts/{draft.slug}/preview/page")
    press(page, "Start")
    page.wait_for_function("() => document.images[0]?.naturalWidth === 64")
    requested = [request.url for request in device.requests if "/pictures/" in request.url]
    assert requested == [f"{site.url}/pictures/{sha256}"]


def stored_names(page: Page) -> list[str]:
    """Return what the origin stores on the device, read outside the preview."""
    names: list[str] = page.evaluate(
        "async () => [...Object.keys(localStorage), ...Object.keys(sessionStorage),"
        " ...(await indexedDB.databases()).map(({ name }) => name)]"
    )
    return names


@pytest.mark.parametrize("access", ["open", "invitation"])
def test_an_answered_preview_sends_and_stores_nothing(site, new_device, access):
    device = new_device()
    address = add_draft(site, access=access)
    page = sign_in(device, site.url, f"{address}/preview")
    before = site.store.versions("small")
    page.goto(f"{site.url}{address}/preview/page")
    heading(page, "A small survey")
    device.requests.clear()
    answer(page, ("Yes", "Never"))
    press(page, "Send")
    expect(page.get_by_role("status")).to_have_text(NOTHING_SENT)
    press(page, "Send")
    expect(page.get_by_role("status")).to_have_count(1)
    heading(page, "Check your answers")
    assert device.requests == []
    assert page.evaluate(TRY_TO_LEAVE) >= 2
    page.goto(f"{site.url}{address}")
    assert stored_names(page) == []
    assert site.store.versions("small") == before


def test_a_report_of_the_published_survey_and_a_preview_do_not_meet(site, new_device):
    device = new_device()
    address = add_draft(site)
    page = sign_in(device, site.url, f"{address}/preview")
    entry = '{"state":"sent"}'
    page.evaluate(f"localStorage.setItem('survey-report:small', '{entry}')")
    page.goto(f"{site.url}{address}/preview/page")
    answer(page, ("No", "Often"))
    press(page, "Send")
    page.goto(f"{site.url}{address}")
    assert page.evaluate("localStorage.getItem('survey-report:small')") == entry


def test_the_frame_shows_the_language_the_question_and_the_way_out(site, new_device):
    device = new_device(viewport={"width": 1280, "height": 900})
    address = add_draft(site, quick_exit="https://www.example.org")
    page = sign_in(device, site.url, f"{address}/preview")
    frame = page.frame_locator("iframe.preview")
    expect(frame.get_by_role("heading", level=1)).to_have_text("A small survey")
    page.get_by_label("Language").select_option("es")
    page.get_by_label("Show").select_option(index=2)
    page.get_by_role("button", name="Update preview").click()
    check_question(frame)
    frame.locator(".exit").click()
    expect(frame.get_by_role("status")).to_contain_text("here, for https://www.example.org.")
    question = page.get_by_label("Show").input_value()
    page.goto(f"{site.url}{address}/questions/{question}")
    page.locator("#preview").scroll_into_view_if_needed()
    beside = page.frame_locator("iframe.preview")
    expect(beside.locator(".view.questions, .view").first).to_contain_text("press you")
    page.get_by_label("Question", exact=True).fill("Is the workload too high?")
    expect(beside.locator("body")).to_contain_text("Is the workload too high?")
    assert [message for message in device.messages if "dialog" in message] == []


def test_the_preview_beside_a_question_leaves_the_focus_in_its_form(site, new_device):
    device = new_device(viewport={"width": 1280, "height": 2400})
    address = add_draft(site)
    page = sign_in(device, site.url, address)
    page.get_by_role("link", name="Did you fall asleep at work?", exact=True).click()
    field = page.get_by_label("Help below the question")
    field.wait_for()
    # Wait for the script that updates the preview.
    page.wait_for_load_state()
    field.fill("One")
    beside = page.frame_locator("iframe.preview")
    expect(beside.locator("body")).to_contain_text("One")
    expect(beside.get_by_role("radio").first).to_be_visible()
    page.keyboard.type(" two")
    expect(field).to_have_value("One two", timeout=5_000)
    # A click moves the focus into the preview, which then works as it does for respondents.
    beside.locator("label").first.click()
    assert page.evaluate("document.activeElement.matches('iframe.preview')")


def check_question(frame: FrameLocator) -> None:
    expect(frame.locator("html")).to_have_attribute("lang", "es")
    expect(frame.locator("#survey")).to_contain_text("press you")
