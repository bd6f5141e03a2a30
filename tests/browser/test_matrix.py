"""A matrix: a table on wide screens, cards on narrow ones, by keyboard and screen reader."""

from __future__ import annotations

import json

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.browser.accessible import RULES, VIOLATIONS
from tests.browser.respondent import choose, heading, press, review, wait_sent
from tests.surveys import MATRIX

pytestmark = pytest.mark.web

TEXT = "How satisfied are you with each of these?"
WIDTHS = (320, 390, 600, 1280)
SIX_ROWS = """
slug = "small"
title = "Six sides of work"
epsilon = 6

[[pages]]
[[pages.questions]]
id = "work"
type = "matrix"
text = "How satisfied are you with each of these?"
low = 1
high = 3
low_label = "Not at all"
high_label = "Very"
rows = [{id = "pay", text = "Pay"}, {id = "hours", text = "Working hours"},
        {id = "boss", text = "Your boss"}, {id = "team", text = "Your colleagues"},
        {id = "tools", text = "Your tools"}, {id = "way", text = "The way to work"}]
"""
SIX_NAMES = (
    *("Pay", "Working hours", "Your boss"),
    *("Your colleagues", "Your tools", "The way to work"),
)
THREE_POINTS = ("1 (Not at all)", "2", "3 (Very)", "Prefer not to say")


@pytest.fixture
def page(site, device) -> Page:
    """Open the page with the matrix."""
    opened_page: Page = device.open(site.link(site.publish(MATRIX)))
    press(opened_page, "Start")
    heading(opened_page, "Questions 1 to 2")
    return opened_page


def checked(page: Page) -> list[str]:
    """Return the value of each row as its label, or nothing."""
    return [
        row.evaluate("row => row.querySelector(':checked + span')?.textContent ?? ''")
        for row in page.get_by_role("radiogroup").all()
    ]


def tree(answers: list[str]) -> str:
    """Return the accessibility tree of the matrix of six rows, row by row in reading order.

    `answers` has one label per row; an empty text stands for a row without an answer.
    """
    lines = [f'- group "{TEXT}":', f'  - heading "{TEXT}" [level=1]']
    for row, answer in zip(SIX_NAMES, answers, strict=True):
        lines += [f'  - radiogroup "{row}":', f"    - paragraph: {row}"]
        for label in THREE_POINTS:
            state = " [checked]" if label == answer else ""
            text = f'"{label}"' if label.isdigit() else label
            lines += [f'    - radio "{row} {label}"{state}', f"    - text: {text}"]
    return "\n".join(lines)


def test_a_matrix_of_six_rows_is_answered_by_keyboard_alone_in_the_order_of_its_tree(
    site, new_device
):
    device = new_device(has_touch=False, is_mobile=False, viewport={"width": 320, "height": 640})
    page = device.open(site.link(site.publish(SIX_ROWS)))
    keys, focus = page.keyboard, page.locator(":focus")
    heading(page, "Six sides of work")
    for words in ("Try the dice", "More about protection", "Start"):
        keys.press("Tab")
        expect(focus).to_have_text(words)
    keys.press("Enter")
    heading(page, TEXT)
    expect(focus).to_have_text(TEXT)
    group = page.get_by_role("group", name=TEXT)
    assert group.aria_snapshot() == tree([""] * 6)
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate(VIOLATIONS, RULES) == []
    presses = {
        "Pay": ["Space"],
        "Working hours": ["ArrowRight"],
        "Your boss": ["Space", "ArrowDown", "ArrowDown"],
        # From the first option, the arrow keys go on to the last.
        "Your colleagues": ["Space", "ArrowLeft"],
        "Your tools": ["Space", "ArrowUp", "ArrowUp"],
        "The way to work": ["ArrowRight", "ArrowRight", "ArrowLeft"],
    }
    answers = [THREE_POINTS[point] for point in (0, 1, 2, 3, 2, 1)]
    for at, (row, row_keys) in enumerate(presses.items()):
        keys.press("Tab")
        expect(focus).to_have_accessible_name(f"{row} {THREE_POINTS[0]}")
        for key in row_keys:
            keys.press(key)
        expect(focus).to_have_accessible_name(f"{row} {answers[at]}")
        assert group.aria_snapshot() == tree(answers[: at + 1] + [""] * (5 - at))
    # On the way back, each row is one stop, at its answer.
    for row, answer in list(zip(SIX_NAMES, answers, strict=True))[-2::-1]:
        keys.press("Shift+Tab")
        expect(focus).to_have_accessible_name(f"{row} {answer}")
    for _ in range(6):
        keys.press("Tab")
    expect(focus).to_have_text("Continue")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    keys.press("Enter")
    heading(page, "Check your answers")
    assert page.locator(".answers dd:not(.change) b").all_inner_texts() == answers


def test_every_point_of_a_matrix_fits_and_can_be_touched_at_each_width_and_at_400_per_cent(page):
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"the page scrolls sideways at {width} px"
        has_heads = page.locator(".matrix-heads").is_visible()
        assert has_heads == (width > 38 * 16), width
        for point in page.locator(".matrix .point").all():
            box = point.bounding_box()
            assert box is not None
            assert box["height"] >= 44, (width, box)
            assert box["width"] >= 44, (width, box)
            assert box["x"] + box["width"] <= width, (width, box)
        tops = [point.bounding_box()["y"] for point in page.locator(".matrix .point").all()[:4]]
        assert max(tops) - min(tops) < 1, f"the first points are not in one line at {width} px"


def test_gaps_of_a_matrix_are_reported_for_each_row_and_lead_to_it(page):
    page.get_by_role("radio", name="Working hours 3").check(force=True)
    choose(page, "Yes")
    press(page, "Continue")
    summary = page.locator(".error-summary li")
    expect(summary).to_have_count(2)
    expect(page.locator("[data-question=work_hours] .error")).to_be_hidden()
    expect(page.locator("[data-question=work_boss] .error")).to_be_visible()
    summary.nth(1).get_by_role("button").tap()
    expect(page.get_by_role("radio", name="Your boss 1 (Not at all)")).to_be_focused()


def test_the_note_on_a_row_has_a_margin_and_keeps_the_row_in_its_columns(page):
    page.get_by_role("radio", name="Pay 1 (Not at all)").check(force=True)
    press(page, "Continue")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        note = page.locator(".matrix-row .error:not([hidden])").first
        line = page.locator(".matrix-row.has-note").first.bounding_box()
        assert note.bounding_box()["x"] - line["x"] >= 12, width
        assert line["x"] >= 0, width
        places = {
            page.get_by_role("radio", name=f"{row} 2").bounding_box()["x"]
            for row in ("Pay", "Working hours")
        }
        assert max(places) - min(places) < 1, f"{width}: {places}"


def test_ordinary_words_above_the_columns_of_a_matrix_are_not_broken(site, new_device):
    survey = site.publish(MATRIX.replace('"Very"', '"Satisfied"'))
    page = new_device(viewport={"width": 1280, "height": 800}).open(site.link(survey))
    press(page, "Start")
    heads = page.locator(".matrix-heads .points span")
    lines = heads.nth(4).evaluate("""(head) => {
      const word = document.createRange();
      word.setStart(head.firstChild, 2);
      word.setEnd(head.firstChild, head.textContent.length);
      return [head.textContent, word.getClientRects().length];
    }""")
    assert lines == ["5 (Satisfied)", 1]
    # Longer ones get a hyphen where the browser knows the language.
    for words in (heads.nth(4), page.locator(".row-text").first):
        assert words.evaluate("e => getComputedStyle(e).hyphens") == "auto"
        assert words.get_attribute("lang") == "en"


def test_a_matrix_is_the_question_that_reveals_most_if_its_rows_do_so_together(site, device):
    page = device.open(site.link(site.publish(MATRIX)))
    # Of single rows, each reveals less (e^0.9) than the other question (e^1).
    example = page.locator(".example")
    expect(example.locator(".quiet")).to_have_text("The question that reveals most")
    expect(example.locator(".asked")).to_have_text(TEXT)
    expect(example.locator(".bound")).to_contain_text("by a factor of at most 15.")
    expect(example.locator(".bound")).to_contain_text("All rows together: weak protection.")


def test_a_matrix_explains_once_what_all_its_rows_can_reveal_together(page):
    expect(page.locator(".questions details")).to_have_count(1)
    page.locator(".questions summary").tap()
    # Three rows with e^0.9 each have a total factor of 14.9, rounded up to a whole number.
    expect(page.locator(".questions details")).to_contain_text(
        "All rows together: weak protection. Your lines change the odds of a guess about your "
        "answers by a factor of at most 15."
    )


def test_the_rows_of_a_matrix_are_reviewed_changed_and_sent(page, site):
    bodies: list[str] = []
    page.on("request", lambda request: bodies.append(request.post_data or ""))
    for row in ("Pay 4", "Working hours 2", "Your boss Prefer not to say"):
        page.get_by_role("radio", name=row).check(force=True)
    choose(page, "No")
    press(page, "Continue")
    heading(page, "Check your answers")
    expect(review(page, "work_pay")).to_contain_text(f"{TEXT} Pay")
    expect(review(page, "work_pay")).to_contain_text("4")
    review(page, "work_boss").get_by_role("button").tap()
    assert checked(page) == ["4", "2", "Prefer not to say"]
    page.get_by_role("radio", name="Your boss 5 (Very)").check(force=True)
    press(page, "Go to review")
    press(page, "Send")
    wait_sent(page)
    (body,) = [json.loads(text) for text in bodies if text]
    assert len(body["codes"]) == 4
