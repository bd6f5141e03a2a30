"""Rankings: placed, moved and removed by keyboard on a narrow screen, then reviewed and sent."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.browser.accessible import RULES, VIOLATIONS
from tests.browser.respondent import choose, heading, press, wait_sent
from tests.surveys import RANKING

pytestmark = pytest.mark.web

MATTERS = "What matters most to you at work?"
FIVE = """
slug = "small"
title = "What matters"
epsilon = "2.5"

[[pages]]
[[pages.questions]]
id = "matters"
type = "ranking"
text = "What matters most to you at work?"
options = [{id = "pay", label = "Pay"}, {id = "time", label = "Free time"},
           {id = "team", label = "Colleagues"}, {id = "safe", label = "Safety"},
           {id = "learn", label = "Learning"}]
"""


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


def tree(order: list[str], left: list[str], status: str = "") -> str:
    """Return the accessibility tree of the ranking of five options, in reading order."""
    lines = [
        f'- group "{MATTERS}":',
        f'  - heading "{MATTERS}" [level=1]',
        "  - paragraph: Choose your first answer, then your second, and so on.",
    ]
    if order:
        lines.append('  - list "Your order":')
    for name in order:
        lines += ["    - listitem:", f"      - text: {name}"]
        for act, end in (("Move up", order[0]), ("Move down", order[-1]), ("Remove", "")):
            state = " [disabled]" if name == end else ""
            lines.append(f"      - 'button \"{act}: {name}\"{state}'")
    lines += [f'  - button "{name}"' for name in left]
    lines.append(f'  - status: "{status}"' if status else "  - status")
    lines += ["  - paragraph: or", '  - radio "Prefer not to say"', "  - text: Prefer not to say"]
    return "\n".join(lines)


def test_a_ranking_of_five_is_answered_by_keyboard_alone_in_the_order_of_its_tree(
    site, new_device
) -> None:
    device = new_device(has_touch=False, is_mobile=False, viewport={"width": 320, "height": 640})
    page = device.open(site.link(site.publish(FIVE)))
    keys, focus = page.keyboard, page.locator(":focus")
    heading(page, "What matters")
    status = page.get_by_role("status")
    for words in ("More about protection", "Start"):
        keys.press("Tab")
        expect(focus).to_have_text(words)
    keys.press("Enter")
    heading(page, MATTERS)
    expect(focus).to_have_text(MATTERS)
    group = page.get_by_role("group", name=MATTERS)
    options = ["Pay", "Free time", "Colleagues", "Safety", "Learning"]
    assert group.aria_snapshot() == tree([], options)
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(VIOLATIONS, RULES) == []
    for name in options[:2]:
        keys.press("Tab")
        expect(focus).to_have_accessible_name(name)
    keys.press("Enter")
    expect(status).to_have_text("Free time: place 1 of 5.")
    # The focus is on the first option that is left, and Tab leads to the others.
    expect(focus).to_have_accessible_name("Pay")
    keys.press("Tab")
    keys.press("Space")
    expect(status).to_have_text("Colleagues: place 2 of 5.")
    keys.press("Space")
    assert group.aria_snapshot() == tree(
        ["Free time", "Colleagues", "Pay"], ["Safety", "Learning"], "Pay: place 3 of 5."
    )
    # The last option needs no press, and its place is announced as well.
    keys.press("Space")
    both = "Safety: place 4 of 5. Learning: place 5 of 5."
    expect(status).to_have_text(both)
    order = ["Free time", "Colleagues", "Pay", "Safety", "Learning"]
    assert group.aria_snapshot() == tree(order, [], both)
    # One press too many removes nothing.
    expect(focus).to_have_role("list")
    keys.press("Space")
    assert group.aria_snapshot() == tree(order, [], both)
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(VIOLATIONS, RULES) == []
    # Every button is one stop on the way through the list.
    acts = [f"{act}: {name}" for name in order for act in ("Move up", "Move down", "Remove")]
    for name in acts[:10]:
        keys.press("Tab")
        expect(focus).to_have_accessible_name(name)
    keys.press("Enter")
    order = ["Free time", "Colleagues", "Safety", "Pay", "Learning"]
    assert group.aria_snapshot() == tree(order, [], "Safety: place 3 of 5.")
    expect(focus).to_have_accessible_name("Move up: Safety")
    for _ in range(9):
        keys.press("Tab")
    expect(focus).to_have_accessible_name("Prefer not to say")
    keys.press("Tab")
    expect(focus).to_have_text("Continue")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    keys.press("Enter")
    heading(page, "Check your answers")
    assert page.locator(".answers dd:not(.change) b").all_inner_texts() == order


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
