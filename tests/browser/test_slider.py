"""Sliders: nothing is selected before the person selects it, by touch, keyboard and buttons."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.respondent import choose, heading, press, review, wait_sent
from tests.surveys import SLIDER

pytestmark = pytest.mark.web

PAIN = "How strong is your pain?"
WARMTH = "How warm is your room?"
UNSET = "No number chosen yet"


@pytest.fixture
def page(site, device) -> Page:
    opened_page = device.open(site.link(site.publish(SLIDER)))
    press(opened_page, "Start")
    heading(opened_page, PAIN)
    return opened_page


def slider(page: Page) -> Locator:
    return page.get_by_role("slider")


def chosen(page: Page) -> Locator:
    return page.locator("output.chosen")


def tap_at(page: Page, share: float) -> None:
    """Tap the line at a fraction of its width."""
    box = slider(page).bounding_box()
    assert box
    slider(page).tap(position={"x": box["width"] * share, "y": box["height"] / 2})


def thumb(page: Page) -> str:
    style = "e => getComputedStyle(e, '::-webkit-slider-thumb').visibility"
    return str(slider(page).evaluate(style))


def test_an_untouched_slider_selects_nothing_and_counts_as_empty(page):
    expect(chosen(page)).to_have_text(UNSET)
    assert "unset" in str(slider(page).get_attribute("class"))
    expect(slider(page)).to_have_attribute(
        "aria-valuetext", f"{UNSET}, from 0 points, No pain to 100 points, Unbearable"
    )
    press(page, "Continue")
    expect(page.locator(".error:not([hidden])")).to_contain_text(
        "we count it as “Prefer not to say”"
    )
    press(page, "Continue")
    heading(page, WARMTH)
    for _ in range(2):  # this one has no opt-out
        press(page, "Continue")
        expect(page.locator(".error:not([hidden])")).to_have_text("Enter an answer.")
    expect(page.locator(".ends")).to_have_text("−540")


def test_a_tap_selects_even_the_middle_where_the_hidden_thumb_is(page):
    # The value of the hidden thumb: whichever pixel has it, the tap changes no value.
    for pixel in range(-3, 4):
        choose(page, "Prefer not to say")
        box = slider(page).bounding_box()
        assert box
        slider(page).tap(position={"x": box["width"] / 2 + pixel, "y": box["height"] / 2})
        expect(chosen(page)).not_to_have_text(UNSET)
        if chosen(page).text_content() == "50 points":
            break
    expect(chosen(page)).to_have_text("50 points")
    press(page, "Continue")
    heading(page, WARMTH)


def test_buttons_start_at_either_end_and_stop_there(page):
    press(page, "Higher")
    expect(chosen(page)).to_have_text("0 points")
    press(page, "Lower")
    expect(chosen(page)).to_have_text("0 points")
    expect(slider(page)).to_have_attribute("aria-valuetext", "0 points, No pain")
    press(page, "Higher")
    expect(chosen(page)).to_have_text("1 points")
    choose(page, "Prefer not to say")
    expect(chosen(page)).to_have_text(UNSET)
    press(page, "Lower")
    expect(chosen(page)).to_have_text("100 points")
    assert page.locator("label.choice input:checked").count() == 0


def test_the_keyboard_selects_and_moves(page):
    slider(page).focus()
    for key, number in (
        ("PageUp", 0),
        ("PageUp", 10),
        ("ArrowRight", 11),
        ("ArrowDown", 10),
        ("End", 100),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        expect(chosen(page)).to_have_text(f"{number} points")
    choose(page, "Prefer not to say")
    slider(page).focus()
    page.keyboard.press("ArrowLeft")
    expect(chosen(page)).to_have_text("100 points")


def test_an_answer_survives_back_and_change_and_is_sent(site, page):
    tap_at(page, 0.25)
    text = str(chosen(page).text_content())
    press(page, "Continue")
    heading(page, WARMTH)
    press(page, "Higher")
    press(page, "Higher")
    expect(chosen(page)).to_have_text("−2.5")
    press(page, "Back")
    heading(page, PAIN)
    expect(chosen(page)).to_have_text(text)
    press(page, "Continue")
    press(page, "Continue")
    heading(page, "Check your answers")
    expect(review(page, "pain")).to_contain_text(text)
    expect(review(page, "warmth")).to_contain_text("−2.5")
    review(page, "pain").get_by_role("button").tap()
    heading(page, PAIN)
    expect(chosen(page)).to_have_text(text)
    choose(page, "Prefer not to say")
    press(page, "Go to review")
    expect(review(page, "pain")).to_contain_text("Prefer not to say")
    with page.expect_request("**/reports") as sent:
        press(page, "Send")
    wait_sent(page)
    assert len(json.loads(sent.value.post_data or "")["codes"]) == 2


def test_another_language_keeps_the_slider_and_mirrors_it(page):
    def switch(language: str) -> None:
        page.get_by_role("combobox").select_option(language)

    switch("ar")
    expect(chosen(page)).to_have_text("لم تختر عددًا بعد")
    assert "unset" in str(slider(page).get_attribute("class"))
    tap_at(page, 0.8)
    value = int(slider(page).input_value())
    assert 5 <= value <= 25, "numbers rise from right to left"
    slider(page).focus()
    page.keyboard.press("ArrowLeft")
    expect(slider(page)).to_have_value(str(value + 1))
    expect(page.locator(".ends")).to_contain_text("لا ألم")
    switch("en")
    expect(chosen(page)).to_have_text(f"{value + 1} points")
    choose(page, "Prefer not to say")
    switch("ar")
    expect(chosen(page)).to_have_text("لم تختر عددًا بعد")
    slider(page).focus()
    page.keyboard.press("ArrowLeft")
    expect(slider(page)).to_have_value("0")


def test_slider_and_buttons_are_large_enough_and_fit_the_smallest_phone(site, new_device):
    page = new_device(viewport={"width": 320, "height": 640}).open(site.link(site.publish(SLIDER)))
    press(page, "Start")
    heading(page, PAIN)
    for target in (slider(page), *page.locator(".step").all()):
        box = target.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 44
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_the_thumb_appears_only_with_an_answer_also_in_forced_colors(site, new_device):
    page = new_device(forced_colors="active").open(site.link(site.publish(SLIDER)))
    press(page, "Start")
    heading(page, PAIN)
    untouched = slider(page).screenshot()
    press(page, "Higher")
    press(page, "Higher")
    page.locator("h1").focus()
    assert slider(page).screenshot() != untouched
    choose(page, "Prefer not to say")
    page.locator("h1").focus()
    assert slider(page).screenshot() == untouched


def test_the_labels_below_a_short_slider_break_no_word(site, new_device):
    labels = SLIDER.replace('en = "No pain"', 'en = "Kein Schmerz"').replace(
        'en = "Unbearable"', 'en = "Schlimmster vorstellbarer Schmerz"'
    )
    page = new_device(viewport={"width": 320, "height": 640}).open(site.link(site.publish(labels)))
    press(page, "Start")
    broken = page.locator(".ends").evaluate("""(ends) =>
      [...ends.querySelectorAll("span")].flatMap(({firstChild: text}) =>
        [...text.data.matchAll(/\\S+/g)].filter(({0: word, index}) => {
          const range = document.createRange();
          range.setStart(text, index);
          range.setEnd(text, index + word.length);
          return range.getClientRects().length > 1;
        }).map(([word]) => word))""")
    assert broken == []
    assert page.locator(".ends span").all_inner_texts()[0] == "Kein Schmerz"
