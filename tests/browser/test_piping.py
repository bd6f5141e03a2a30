"""An earlier answer in a later text: on the screen of this device, and nowhere else."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser.respondent import choose, entry, heading, option, press, review, wait_sent
from tests.surveys import PIPED

pytestmark = pytest.mark.web

TRAVEL = "[data-question=travel]"


def go_to_travel(page: Page, job: str | None, hours: str | None) -> None:
    press(page, "Start")
    heading(page, "Questions 1 to 2")
    if job:
        choose(page, job)
    if hours:
        entry(page).fill(hours)
    press(page, "Continue")
    if not (job and hours):
        press(page, "Continue")
    heading(page, "Questions 3 to 4")


def test_the_label_and_the_number_of_earlier_answers_stand_in_later_texts_and_the_review(
    site, device
):
    page = device.open(site.link(site.publish(PIPED)))
    go_to_travel(page, "the factory", "38")
    expect(page.locator(f"{TRAVEL} legend")).to_have_text(
        "How long do you travel to the factory {one way}?"
    )
    expect(page.locator(f"{TRAVEL} legend bdi")).to_have_text("the factory")
    expect(page.locator(f"{TRAVEL} .hint")).to_have_text("You work 38 hours.")
    press(page, "Continue")
    gap = page.locator(".error-summary li").first
    expect(gap).to_contain_text("How long do you travel to the factory {one way}?")
    page.get_by_label("Language").select_option("es")
    expect(page.locator(f"{TRAVEL} legend")).to_have_text("¿Cuánto tarda en llegar a la fábrica?")
    page.get_by_label("Idioma").select_option("en")
    press(page, "Continue")
    text = "How long do you travel to the factory {one way}?"
    expect(review(page, "travel")).to_contain_text(text)
    expect(review(page, "travel").get_by_role("button")).to_have_accessible_name(f"Change: {text}")


def test_without_an_answer_the_text_has_the_researchers_own_words(site, device):
    page = device.open(site.link(site.publish(PIPED)))
    go_to_travel(page, None, None)
    legend = page.locator(f"{TRAVEL} legend")
    expect(legend).to_have_text("How long do you travel to your work {one way}?")
    expect(page.locator(f"{TRAVEL} .hint")).to_have_text("You work some hours.")
    press(page, "Back")
    option(page, "Prefer not to say").first.tap()
    option(page, "Prefer not to say").last.tap()
    press(page, "Continue")
    expect(legend).to_have_text("How long do you travel to your work {one way}?")
    expect(page.locator(f"{TRAVEL} .hint")).to_have_text("You work some hours.")


def traces(site, new_device, link: str, job: str | None) -> list[str]:
    """Answer, send and return everything that leaves the page, without the random parts."""
    device = new_device()
    found: list[str] = []
    device.context.on(
        "request",
        lambda request: found.append(
            f"{request.method} {request.url} {len(request.post_data or '')}"
        ),
    )
    page = device.open(link)
    go_to_travel(page, job, "38")
    found += [page.title(), page.url, str(page.evaluate("history.length"))]
    found.append(str(page.evaluate("JSON.stringify([history.state, {...localStorage}])")))
    for _ in range(2):
        press(page, "Continue")
    found += [page.title(), page.url]
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent", exact=False).first.tap()
    expect(page.locator(".reported")).to_contain_text("to your work {one way}?")
    found += [page.title(), page.url, str(page.evaluate("history.length"))]
    device.context.close()
    return found


def test_requests_titles_history_and_storage_are_the_same_for_every_earlier_answer(
    site, new_device
):
    link = site.link(site.publish(PIPED))
    factory, office, none = (
        traces(site, new_device, link, job) for job in ("the factory", "the office", None)
    )
    assert factory == office == none
    assert not any("factory" in trace or "office" in trace for trace in factory)
    assert json.dumps(factory).count("POST") == 1
