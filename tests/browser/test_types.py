"""Ticks, numbers and dates: by touch and keyboard, invalid, changed, reviewed and sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.respondent import choose, entry, heading, option, press, review, wait_sent
from tests.conftest import long_unless
from tests.surveys import EVERY_TYPE

pytestmark = pytest.mark.web

REASONS = "Why did you stay at home?"
HOURS = "How many hours did you work last week?"
SINCE = "Since when have you worked here?"
MOOD = "How do you feel at work?"
WARMTH = "How warm is your place of work?"
PLACES = "Places and tools"
NO_HOURS = ["81", "-1", "many", "1.2.3", "40 hours", "1e1"]


@pytest.fixture
def page(site, device) -> Page:
    """Open the first question of a survey with all types."""
    opened_page = device.open(site.link(site.publish(EVERY_TYPE)))
    press(opened_page, "Start")
    heading(opened_page, REASONS)
    return opened_page


def ticked(page: Page) -> list[str]:
    return page.locator("label.choice:has(input:checked)").all_inner_texts()


def error(page: Page) -> Locator:
    return page.locator(".error:not([hidden])")


def skip(page: Page, *questions: str) -> None:
    """Skip questions, which then count as "Prefer not to say"."""
    for question in questions:
        heading(page, question)
        press(page, "Continue")
        press(page, "Continue")


def go_to_places(page: Page) -> None:
    skip(page, REASONS, HOURS, SINCE, MOOD)
    heading(page, WARMTH)
    entry(page).fill("20")
    press(page, "Continue")
    heading(page, PLACES)


# -- ticks


def test_several_options_can_be_ticked_and_unticked(page):
    choose(page, "I was ill")
    choose(page, "I was tired")
    assert ticked(page) == ["I was ill", "I was tired"]
    choose(page, "I was ill")
    assert ticked(page) == ["I was tired"]
    expect(page.get_by_role("group", name=REASONS)).to_have_accessible_description(
        "Think of the last month. Choose up to 2."
    )


def test_an_exclusive_option_clears_all_others_and_is_cleared_by_them(page):
    choose(page, "I was ill")
    choose(page, "I was tired")
    choose(page, "None of these")
    assert ticked(page) == ["None of these"]
    choose(page, "Prefer not to say")
    assert ticked(page) == ["Prefer not to say"]
    choose(page, "A child was ill")
    assert ticked(page) == ["A child was ill"]
    expect(page.locator(".or")).to_have_text("or")


def test_too_many_ticks_are_reported_at_once_and_stop_the_page(page):
    for label in ("I was ill", "I was tired", "A child was ill"):
        choose(page, label)
    expect(error(page)).to_have_text("Choose at most 2.")
    expect(page.get_by_role("alert")).to_have_text("Choose at most 2.")
    for _ in range(2):
        press(page, "Continue")
        summary = page.locator(".error-summary")
        expect(summary).to_be_focused()
        expect(summary.locator("li")).to_have_text(f"“{REASONS}”: Choose at most 2.")
    choose(page, "I was ill")
    expect(error(page)).to_have_count(0)
    press(page, "Continue")
    heading(page, HOURS)


def test_a_question_without_remaining_ticks_counts_as_empty(page):
    choose(page, "I was ill")
    choose(page, "I was ill")
    press(page, "Continue")
    expect(error(page)).to_contain_text("we count it as “Prefer not to say”")


def test_ticks_are_restored_after_going_back(page):
    choose(page, "I was ill")
    choose(page, "A child was ill")
    press(page, "Continue")
    heading(page, HOURS)
    press(page, "Back")
    heading(page, REASONS)
    assert ticked(page) == ["I was ill", "A child was ill"]


def test_ticks_work_by_keyboard_alone(site, new_device):
    device = new_device(has_touch=False, is_mobile=False)
    page = device.open(site.link(site.publish(EVERY_TYPE)))
    press_by_mouse = page.get_by_role("button", name="Start")
    press_by_mouse.click()
    heading(page, REASONS)
    for key in ("Tab", "Space", "Tab", "Tab", "Space"):
        page.keyboard.press(key)
    assert ticked(page) == ["I was ill", "I was tired"]
    outline = "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert ticked(page) == ["None of these"]


# -- numbers


@pytest.mark.parametrize(
    ("typed", "displayed", "result"),
    [
        ("37,5", "40", "40 hours"),
        pytest.param("37.4", "35", "35 hours", marks=pytest.mark.long),
        pytest.param(" 80 ", "80", "80 hours", marks=pytest.mark.long),
        pytest.param("٠", "0", "0 hours", marks=pytest.mark.long),
    ],
)
def test_a_number_is_rounded_on_the_device_and_shown_rounded(page, typed, displayed, result):
    skip(page, REASONS)
    heading(page, HOURS)
    field = entry(page)
    expect(field).to_have_attribute("inputmode", "numeric")
    expect(field).to_have_accessible_name(HOURS)
    expect(field).to_have_accessible_description(
        "A number from 0 to 80 hours. This device rounds it, in steps of 5."
    )
    field.fill(typed)
    press(page, "Continue")
    heading(page, SINCE)
    press(page, "Back")
    expect(entry(page)).to_have_value(displayed)
    press(page, "Continue")
    skip(page, SINCE, MOOD)
    heading(page, WARMTH)
    entry(page).fill("1")
    press(page, "Continue")
    skip_both(page)
    expect(review(page, "hours")).to_contain_text(result)


def skip_both(page: Page) -> None:
    """Go to the last page, whose second question is required."""
    heading(page, PLACES)
    option(page, "Does not apply").tap()
    press(page, "Continue")
    press(page, "Continue")
    heading(page, "Check your answers")


@pytest.mark.parametrize("typed", long_unless(["81", "1e1"], NO_HOURS))
def test_an_invalid_number_always_stops_the_page(page, typed):
    skip(page, REASONS)
    heading(page, HOURS)
    entry(page).fill(typed)
    for _ in range(2):
        press(page, "Continue")
        expect(page.locator(".error-summary")).to_be_focused()
        expect(error(page)).to_have_text("Enter a number from 0 to 80.")
        expect(entry(page)).to_have_attribute("aria-invalid", "true")
    page.locator(".error-summary").get_by_role("button").tap()
    expect(entry(page)).to_be_focused()
    entry(page).fill("40")
    press(page, "Continue")
    heading(page, SINCE)


def test_an_option_beside_a_number_clears_it_and_is_cleared_by_typing(page):
    skip(page, REASONS)
    heading(page, HOURS)
    entry(page).fill("90")
    choose(page, "Does not apply")
    expect(entry(page)).to_have_value("")
    assert ticked(page) == ["Does not apply"]
    entry(page).fill("4")
    assert ticked(page) == []
    choose(page, "Prefer not to say")
    press(page, "Continue")
    heading(page, SINCE)
    press(page, "Back")
    assert ticked(page) == ["Prefer not to say"]


def test_an_empty_number_is_noticed_once_and_always_without_an_opt_out(page):
    skip(page, REASONS)
    heading(page, HOURS)
    press(page, "Continue")
    expect(error(page)).to_contain_text("we count it as “Prefer not to say”")
    # An empty field is not invalid.
    expect(entry(page)).to_have_attribute("aria-invalid", "false")
    press(page, "Continue")
    skip(page, SINCE, MOOD)
    heading(page, WARMTH)
    expect(page.locator(".choice")).to_have_count(0)
    for _ in range(2):
        press(page, "Continue")
        expect(error(page)).to_have_text("Enter an answer.")
        expect(entry(page)).to_have_attribute("aria-invalid", "true")


def test_numbers_below_zero_can_be_typed_on_a_phone(page):
    skip(page, REASONS, HOURS, SINCE, MOOD)
    heading(page, WARMTH)
    expect(entry(page)).to_have_attribute("inputmode", "text")
    entry(page).fill("-3.26")
    press(page, "Continue")
    heading(page, PLACES)
    press(page, "Back")
    expect(entry(page)).to_have_value("\u22123.5")
    press(page, "Continue")
    skip_both(page)
    expect(review(page, "warmth")).to_contain_text("\u22123.5 °C")


# -- dates


def test_a_date_is_rounded_on_the_device_and_shown_in_words(page):
    skip(page, REASONS, HOURS)
    heading(page, SINCE)
    field = entry(page)
    expect(field).to_have_attribute("min", "1998-03-02")
    expect(field).to_have_attribute("max", "1998-12-31")
    field.fill("1998-03-05")
    press(page, "Continue")
    heading(page, MOOD)
    press(page, "Back")
    expect(entry(page)).to_have_value("1998-03-06")
    press(page, "Continue")
    skip(page, MOOD)
    entry(page).fill("1")
    press(page, "Continue")
    skip_both(page)
    expect(review(page, "since")).to_contain_text("6 March 1998")


def test_a_date_outside_the_range_or_incomplete_always_stops_the_page(page):
    skip(page, REASONS, HOURS)
    heading(page, SINCE)
    wrong: list[Callable[[], None]] = [
        lambda: entry(page).fill("1997-01-01"),
        lambda: entry(page).press_sequentially("03"),
    ]
    for fill in wrong:
        entry(page).fill("")
        fill()
        for _ in range(2):
            press(page, "Continue")
            expect(error(page)).to_have_text("Enter a date from 2 March 1998 to 31 December 1998.")
    choose(page, "Prefer not to say")
    press(page, "Continue")
    heading(page, MOOD)


def test_an_option_chosen_beside_an_incomplete_date_counts(page):
    skip(page, REASONS, HOURS)
    heading(page, SINCE)
    choose(page, "Prefer not to say")
    entry(page).press_sequentially("03")
    assert ticked(page) == []
    press(page, "Continue")
    expect(error(page)).to_have_text("Enter a date from 2 March 1998 to 31 December 1998.")
    choose(page, "Prefer not to say")
    expect(error(page)).to_have_count(0)
    assert entry(page).evaluate("(e) => e.validity.badInput") is False
    # Choose the checked option again.
    choose(page, "Prefer not to say")
    press(page, "Continue")
    heading(page, MOOD)
    press(page, "Back")
    assert ticked(page) == ["Prefer not to say"]


def test_a_checked_option_overrides_an_incomplete_date_in_every_browser(page):
    skip(page, REASONS, HOURS)
    heading(page, SINCE)
    choose(page, "Prefer not to say")
    # Some browsers send no event for an incomplete date.
    page.evaluate(
        "['keyup', 'input'].forEach((name) =>"
        " addEventListener(name, (e) => e.stopImmediatePropagation(), true))"
    )
    entry(page).press_sequentially("03")
    assert entry(page).evaluate("(e) => e.validity.badInput") is True
    assert ticked(page) == ["Prefer not to say"]
    press(page, "Continue")
    heading(page, MOOD)


# -- scales

SCALES = """
slug = "small"
title = "Scales"
epsilon = 1

[[pages]]
title = "All scales"
"""


def points_in_rows(page: Page, question: str) -> list[int]:
    """Return the number of points in each row of a scale, from the top down.

    The option for no answer is not a point and is always below them.
    """
    group = page.get_by_role("group", name=question)
    boxes = group.locator(".choice:not(.apart)").evaluate_all(
        "(all) => all.map((e) => e.getBoundingClientRect()).map(({ x, y }) => [x, y])"
    )
    assert boxes == sorted(boxes, key=lambda box: (box[1], box[0])), question
    apart = group.locator(".choice.apart").bounding_box()
    assert apart is not None
    assert apart["y"] > boxes[-1][1]
    return list(Counter(y for _, y in boxes).values())


def test_scales_of_up_to_seven_points_are_horizontal_where_the_screen_and_the_words_allow_it(
    site, new_device
):
    last = {
        "Five points?": (5, "Very"),
        "Five points with long words?": (5, "Satisfied"),
        "Seven points?": (7, "Very"),
        "Eight points?": (8, "Very"),
    }
    questions = [
        f"""
[[pages.questions]]
id = "scale_{at}"
type = "scale"
text = "{text}"
low = 1
high = {high}
high_label = "{label}"
"""
        for at, (text, (high, label)) in enumerate(last.items())
    ]
    survey = site.publish(SCALES + "".join(questions))
    page = new_device(viewport={"width": 1280, "height": 800}).open(site.link(survey))
    press(page, "Start")
    heading(page, "All scales")
    below = {"Five points with long words?": [1] * 5, "Eight points?": [1] * 8}
    across = {
        1280: {"Five points?": [5], "Seven points?": [7]},
        390: {"Five points?": [5], "Seven points?": [7]},
        # Seven points of at least 44 px do not fit side by side.
        320: {"Five points?": [5], "Seven points?": [5, 2]},
    }
    for width, rows in across.items():
        page.set_viewport_size({"width": width, "height": 800})
        assert {text: points_in_rows(page, text) for text in last} == rows | below, width
        overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, width


# -- complete visits


def test_every_type_is_reviewed_changed_and_sent_as_one_report(site, device):
    survey = site.publish(EVERY_TYPE)
    page = device.open(site.link(survey))
    press(page, "Start")
    choose(page, "I was ill")
    choose(page, "A child was ill")
    press(page, "Continue")
    entry(page).fill("38")
    press(page, "Continue")
    entry(page).fill("1998-03-02")
    press(page, "Continue")
    choose(page, "4 (Very good)")
    press(page, "Continue")
    entry(page).fill("20.2")
    press(page, "Continue")
    choose(page, "At home")
    choose(page, "On a site")
    choose(page, "A desk")
    press(page, "Continue")
    heading(page, "Check your answers")
    assert page.locator("dd:not(.change) b").all_inner_texts() == [
        "I was ill",
        "A child was ill",
        "40 hours",
        "2 March 1998",
        "4 (Very good)",
        "20 °C",
        "At home",
        "On a site",
        "A desk",
    ]
    for change, act, question, result in [
        (REASONS, lambda: choose(page, "None of these"), "reasons", "None of these"),
        (HOURS, lambda: entry(page).fill("3"), "hours", "5 hours"),
        (SINCE, lambda: choose(page, "Prefer not to say"), "since", "Prefer not to say"),
        (MOOD, lambda: choose(page, "0 (Very bad)"), "mood", "0 (Very bad)"),
        ("Where do you work?", lambda: choose(page, "At home"), "places", "On a site"),
    ]:
        page.get_by_role("button", name=f"Change: {change}").tap()
        act()
        press(page, "Go to review")
        heading(page, "Check your answers")
        expect(review(page, question).locator("b")).to_have_text(result)
    expect(review(page, "hours").locator("dd").first).to_have_text("rounded to 5 hours")
    expect(review(page, "warmth").locator("dd").first).to_have_text("rounded to 20 °C")
    press(page, "Send")
    wait_sent(page)
    codes = json.loads(device.bodies[0])["codes"]
    assert [type(code) for code in codes] == [str, int, int, int, int, str, int]
    page.get_by_text("See what was sent").tap()
    expect(page.locator(".reported > div")).to_have_count(7)
    reported = page.locator(".reported").inner_text()
    assert "cannot be read" not in reported
    # Only the scale and the tools use the word "answers"; other texts do not.
    assert reported.count("random answer") == reported.count("This may be a random answer.") == 2
    assert reported.count("This line can come from every answer.") == 5
    assert len(device.posts) == 1
    assert device.messages == []


def test_a_required_answer_that_was_removed_does_not_reach_the_review(page):
    go_to_places(page)
    choose(page, "A desk")
    choose(page, "At home")
    press(page, "Continue")
    heading(page, "Check your answers")
    page.get_by_role("button", name="Change: Which of these do you use?").tap()
    choose(page, "A desk")
    press(page, "Back")
    heading(page, PLACES)
    press(page, "Go to review")
    expect(error(page)).to_have_text("Choose an answer.")
    choose(page, "A car")
    press(page, "Go to review")
    heading(page, "Check your answers")


def test_a_wrong_number_never_reaches_the_review(page):
    go_to_places(page)
    skip_both(page)
    page.get_by_role("button", name=f"Change: {WARMTH}").tap()
    entry(page).fill("99")
    press(page, "Go to review")
    expect(error(page)).to_have_text("Enter a number from \u221210 to 40.")
    entry(page).fill("9")
    press(page, "Go to review")
    heading(page, "Check your answers")
    expect(review(page, "warmth")).to_contain_text("9 °C")


def test_a_number_and_a_date_on_the_grid_are_not_called_rounded(page):
    skip(page, REASONS)
    entry(page).fill("37")
    press(page, "Continue")
    entry(page).fill("1998-03-05")
    press(page, "Continue")
    skip(page, MOOD)
    entry(page).fill("1.5")
    press(page, "Continue")
    skip_both(page)
    expected = {"hours": "rounded to 35 hours", "since": "rounded to 6 March 1998"}
    for question, text in (expected | {"warmth": "1.5 °C"}).items():
        expect(review(page, question).locator("dd").first).to_have_text(text)
    page.get_by_role("button", name=f"Change: {HOURS}").tap()
    entry(page).fill("35")
    press(page, "Go to review")
    expect(review(page, "hours").locator("dd").first).to_have_text("35 hours")


EIGHTHS = """
slug = "small"
title = "Eighths"
epsilon = 1
[[pages]]
[[pages.questions]]
id = "weight"
type = "number"
text = "How heavy is it?"
low = "0.5"
high = "2.5"
step = "0.125"
[[pages.questions]]
id = "parts"
type = "number"
text = "How many parts?"
low = "0.5"
high = "3.5"
[[pages.questions]]
id = "bit"
type = "number"
text = "How many hours?"
low = 0
high = 10
mechanism = "one_bit"
prefer_not_to_say = false
"""


def test_numbers_with_three_decimals_are_restored_as_shown(site, device):
    page = device.open(site.link(site.publish(EIGHTHS)))
    press(page, "Start")
    hints = page.locator(".hint").all_inner_texts()
    # Whole steps that start at a half are not whole numbers.
    assert [hint.split(" from ")[0] for hint in hints] == ["A number", "A number", "A whole number"]
    for field, text in zip(entry(page).all(), ("1.13", "1", "7"), strict=True):
        field.fill(text)
    press(page, "Continue")
    press(page, "Back")
    expect(entry(page).first).to_have_value("1.125")
    press(page, "Continue")
    heading(page, "Check your answers")
    expect(review(page, "weight").locator("b")).to_have_text("1.125")
    expect(review(page, "parts").locator("dd").first).to_have_text("rounded to 1.5")
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    bit = page.locator(".reported > div").last
    expect(bit).to_contain_text(
        f"{json.loads(device.bodies[0])['codes'][2]}: a code number, not your"
    )
    expect(bit).to_contain_text("This line can come from every answer.")


def test_the_start_page_is_accurate_for_every_mechanism(site, device):
    replaced = "sometimes your answer, sometimes another"
    by_chance = "Any answer can give any line"
    plain = device.open(site.link(site.publish()))
    heading(plain, "A small survey")
    expect(plain.locator(".privacy")).to_contain_text(replaced)
    for toml, title in ((EVERY_TYPE, "Work and health"), (EIGHTHS, "Eighths")):
        page = device.open(site.link(site.publish(toml)))
        heading(page, title)
        label = page.locator(".privacy")
        expect(label).to_contain_text(by_chance)
        expect(label).not_to_contain_text(replaced)
