"""Rankings: placed, moved and removed by keyboard on a narrow screen, then reviewed and sent."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.respondent import choose, heading, press, wait_sent
from tests.surveys import RANKING

pytestmark = pytest.mark.web

MATTERS = "What matters most to you at work?"


@pytest.fixture
def page(site, device) -> Page:
    """Open the ranking on a screen 320 px wide."""
    opened_page = device.open(site.link(site.publish(RANKING)))
    opened_page.set_viewport_size({"width": 320, "height": 640})
    press(opened_page, "Start")
    heading(opened_page, MATTERS)
    return opened_page


def placed(page: Page) -> list[str]:
    return page.locator(".ranked .placed > span").all_inner_texts()


def test_a_ranking_is_answered_changed_and_sent_by_keyboard(page: Page) -> None:
    page.get_by_role("button", name="Colleagues").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Colleagues: place 1 of 4.")
    # The focus moves to the next remaining option.
    expect(page.locator(":focus")).to_have_text("Pay")
    press(page, "Continue")
    expect(page.locator(".error:not([hidden])")).to_have_text(
        "Put all answers in order. Still to place: 3."
    )
    press(page, "Back")
    page.go_forward()
    heading(page, MATTERS)
    assert placed(page) == ["Colleagues"]
    press(page, "Continue")
    expect(page.locator(".error-summary")).to_contain_text("Still to place: 3.")
    for _ in range(2):
        page.locator(".rank-option").first.focus()
        page.keyboard.press("Space")
    expect(page.locator(".error-summary")).to_have_count(0)
    # Only one place is left for the last option.
    assert placed(page) == ["Colleagues", "Pay", "Free time", "Safety"]
    page.get_by_role("button", name="Move up: Safety").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Safety: place 2 of 4.")
    assert placed(page) == ["Colleagues", "Safety", "Pay", "Free time"]
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 320
    press(page, "Continue")
    choose(page, "Yes")
    press(page, "Continue")
    expect(page.locator(".answers dd").first).to_contain_text("Colleagues")
    press(page, "Back")
    press(page, "Back")
    assert placed(page) == ["Colleagues", "Safety", "Pay", "Free time"]
    page.get_by_role("button", name="Remove: Safety").click()
    expect(page.locator(":focus")).to_have_text("Safety")
    choose(page, "Does not apply")
    assert placed(page) == []
    press(page, "Continue")
    press(page, "Continue")
    press(page, "Send")
    wait_sent(page)


def test_the_browser_asks_before_a_ranking_that_is_not_complete_is_lost(page: Page, device) -> None:
    page.reload()
    assert device.warnings == 0
    press(page, "Start")
    page.get_by_role("button", name="Colleagues").tap()
    page.reload()
    assert device.warnings == 1


def test_a_long_word_of_a_placed_option_gets_a_hyphen_of_its_language(page: Page) -> None:
    page.get_by_role("button", name="Colleagues").tap()
    label = page.locator(".placed bdi")
    assert label.evaluate("e => getComputedStyle(e).hyphens") == "auto"
    assert label.get_attribute("lang") == "en"


def test_the_receipt_states_which_option_comes_before_which(page: Page) -> None:
    for name in ("Pay", "Safety", "Colleagues"):
        page.get_by_role("button", name=name).click()
    press(page, "Continue")
    choose(page, "Yes")
    press(page, "Continue")
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").click()
    sentence = page.locator(".reported dd").first
    expect(sentence).to_have_text(
        re.compile(
            r"The dice sent (\S.* in first place|\S.* before \S.*|Does not apply|Prefer .*)\."
        )
    )
