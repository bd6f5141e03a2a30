"""Answers, empty answers, changes and the review, by touch, keyboard and screen reader."""

from __future__ import annotations

from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.browser.respondent import answer, choose, entry, heading, option, press, wait_sent
from tests.conftest import SMALL
from tests.surveys import EVERY_TYPE

pytestmark = pytest.mark.web

THREE = """
slug = "small"
title = "Three questions"
introduction = "An introduction."
contact = "Ask us."
thanks = "Thank you."
epsilon = 1

[[pages]]
title = "Both at once"
[[pages.questions]]
id = "a"
type = "yes_no"
text = "First question?"
help = "A hint to the first."
[[pages.questions]]
id = "b"
type = "single_choice"
text = "Second question?"
prefer_not_to_say = false
options = [{id = "x", label = "Choice x"}, {id = "y", label = "Choice y"}]

[[pages]]
[[pages.questions]]
id = "c"
type = "yes_no"
text = "Third question?"
"""


@pytest.fixture
def page(site, device) -> Page:
    """Open a survey of three questions on two pages."""
    return device.open(site.link(site.publish(THREE)))


def focused(page: Page) -> str:
    text: str = page.evaluate("document.activeElement.textContent")
    return text


def test_an_empty_question_is_noticed_once_and_then_counts_as_prefer_not_to_say(page):
    press(page, "Start")
    choose(page, "Choice y")
    press(page, "Continue")
    summary = page.locator(".error-summary")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("You left this empty. That is fine.")
    expect(summary.get_by_role("listitem")).to_have_count(1)
    expect(summary).to_contain_text("“First question?”: we count it as “Prefer not to say”.")
    error = page.get_by_role("group", name="First question?").locator(".error")
    expect(error).to_be_visible()
    expect(page).to_have_title("Three questions")
    summary.get_by_role("button").tap()
    assert page.evaluate("document.activeElement.type") == "radio"
    assert "#d=" in page.url  # the link's hash is still there
    press(page, "Continue")
    heading(page, "Third question?")
    press(page, "Continue")
    press(page, "Continue")
    heading(page, "Check your answers")
    for question in ("a", "c"):
        expect(page.locator(f"[data-question={question}]")).to_contain_text(
            "Prefer not to say left empty"
        )


def test_a_question_without_opt_out_must_be_answered(page):
    press(page, "Start")
    choose(page, "Yes")
    for _ in range(3):
        press(page, "Continue")
        summary = page.locator(".error-summary")
        expect(summary).to_be_focused()
        expect(summary).to_contain_text("There is a problem")
        expect(summary.locator("li")).to_have_text("Choose an answer: “Second question?”")
    choose(page, "Choice x")
    press(page, "Continue")
    heading(page, "Third question?")


def test_back_keeps_the_answers(page):
    press(page, "Start")
    choose(page, "No")
    choose(page, "Choice y")
    press(page, "Continue")
    choose(page, "Yes")
    press(page, "Back")
    expect(option(page, "No").locator("input")).to_be_checked()
    expect(option(page, "Choice y").locator("input")).to_be_checked()
    press(page, "Back")
    heading(page, "Three questions")
    press(page, "Start")
    expect(option(page, "No").locator("input")).to_be_checked()
    press(page, "Continue")
    expect(option(page, "Yes").locator("input")).to_be_checked()


def test_change_opens_the_question_and_returns_to_the_review(page):
    press(page, "Start")
    choose(page, "No")
    choose(page, "Choice y")
    press(page, "Continue")
    choose(page, "Yes")
    press(page, "Continue")
    heading(page, "Check your answers")
    page.get_by_role("button", name="Change: Second question?").tap()
    assert focused(page) == "Second question?"
    choose(page, "Choice x")
    press(page, "Go to review")
    heading(page, "Check your answers")
    assert [row.inner_text() for row in page.locator("dd:not(.change) b").all()] == [
        "No",
        "Choice x",
        "Yes",
    ]
    page.get_by_role("button", name="Change: First question?").tap()
    press(page, "Back")
    heading(page, "Check your answers")


def test_the_whole_survey_works_by_keyboard_alone(site, new_device):
    device = new_device(has_touch=False, is_mobile=False)
    page = device.open(site.link(site.publish(THREE)))
    keys = page.keyboard

    def tab_to(words: str) -> None:
        for _ in range(20):
            if focused(page).strip() == words:
                return
            keys.press("Tab")
        raise AssertionError(f"no way to {words} by Tab")

    heading(page, "Three questions")
    tab_to("Start")
    keys.press("Enter")
    heading(page, "Both at once")
    keys.press("Tab")
    keys.press("Space")
    keys.press("ArrowDown")
    expect(option(page, "No").locator("input")).to_be_checked()
    keys.press("Tab")
    keys.press("ArrowUp")  # wraps from the first radio button to the last
    expect(option(page, "Choice y").locator("input")).to_be_checked()
    tab_to("Continue")
    keys.press("Space")
    heading(page, "Third question?")
    tab_to("Continue")
    keys.press("Enter")
    expect(page.locator(".error-summary")).to_be_focused()
    keys.press("Tab")
    keys.press("Enter")
    keys.press("Space")
    tab_to("Continue")
    keys.press("Enter")
    heading(page, "Check your answers")
    tab_to("Send")
    keys.press("Enter")
    wait_sent(page)
    tab_to("Forget this on this device")
    keys.press("Enter")
    heading(page, "Forgotten")


def check_basics(page: Page) -> None:
    """Check what screen readers and keyboards need on every page: language, one heading, names."""
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.title().strip()
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')]"
        ".filter(e => e.checkVisibility()).map(e => +e.tagName[1])"
    )
    assert levels.count(1) == 1
    unnamed = page.evaluate("""[...document.querySelectorAll("input,button,a,summary")].filter(e =>
        !(e.ariaLabel || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent ||
        e.labels?.[0]?.textContent || e.textContent).trim()).length""")
    assert unnamed == 0
    steps = [after - before for before, after in pairwise(levels)]
    assert all(step <= 1 for step in steps), levels
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    referred = page.evaluate("""["aria-labelledby", "aria-describedby"].flatMap((name) =>
        [...document.querySelectorAll(`[${name}]`)].flatMap(
            (e) => e.getAttribute(name).split(" ")))""")
    assert set(referred) - {""} <= set(ids)


def test_every_view_has_a_language_names_and_one_focused_heading(page):
    heading(page, "Three questions")
    check_basics(page)

    def arrived() -> None:
        expect(page.locator("h1")).to_be_focused()
        assert page.evaluate("scrollY") == 0
        check_basics(page)

    press(page, "Start")
    arrived()
    for group, inputs in (("First question?", 3), ("Second question?", 2)):
        radios = page.get_by_role("group", name=group).get_by_role("radio")
        expect(radios).to_have_count(inputs)
    expect(page.get_by_role("group", name="First question?")).to_have_accessible_description(
        "A hint to the first."
    )
    press(page, "Continue")
    check_basics(page)
    expect(page.get_by_role("group", name="First question?")).to_have_accessible_description(
        "A hint to the first. You left this empty. That is fine: we count it as "
        "“Prefer not to say”."
    )
    choose(page, "Yes")
    choose(page, "Choice x")
    press(page, "Continue")
    arrived()
    choose(page, "Yes")
    press(page, "Continue")
    arrived()
    # The page does not retry on its timer while a busy machine inspects it.
    later = {"Retry-After": "600"}
    page.route("**/reports", lambda route: route.fulfill(status=503, headers=later))
    press(page, "Send")
    heading(page, "Not sent yet")
    arrived()
    page.unroute_all()
    page.route("**/reports", lambda route: route.fulfill(status=422))
    press(page, "Try now")
    heading(page, "The survey did not accept your lines")
    arrived()
    page.unroute_all()
    press(page, "Try again")
    wait_sent(page)
    arrived()
    press(page, "Forget this on this device")
    heading(page, "Forgotten")
    arrived()


def test_every_type_of_question_has_names_descriptions_and_one_heading(site, device):
    page = device.open(site.link(site.publish(EVERY_TYPE)))
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    check_basics(page)
    press(page, "Start")
    steps = ["I was ill", "Does not apply", "Prefer not to say", "2", "", "Does not apply"]
    for label in steps:
        expect(page.locator("h1")).to_be_focused()
        check_basics(page)
        press(page, "Continue")
        check_basics(page)
        if label:
            choose(page, label)
        else:
            entry(page).fill("1")
        press(page, "Continue")
    heading(page, "Check your answers")
    check_basics(page)


def test_focus_is_visible_by_keyboard(site, new_device):
    device = new_device(has_touch=False, is_mobile=False)
    page = device.open(site.link(site.publish(SMALL.replace("3/4", "3/5"))))
    heading(page, "A small survey")
    outline = "(e => getComputedStyle(e).outlineStyle)"
    for words in (
        "Try the dice",
        "More about protection",
        "Start",
    ):
        page.keyboard.press("Tab")
        assert focused(page) == words
        assert page.evaluate(f"{outline}(document.activeElement)") != "none"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "radio"
    assert page.evaluate(f"{outline}(document.activeElement.nextElementSibling)") == "solid"


def test_choosing_an_answer_moves_nothing(page):
    press(page, "Start")
    for label in ("Yes", "No", "Choice x"):
        choose(page, label)
        heading(page, "Both at once")


def test_pulling_a_page_does_not_reload_it_and_swiping_does_not_leave_it(page):
    press(page, "Start")
    heading(page, "Both at once")
    # Newer browsers apply the values of the root element to the whole page, older ones the body's.
    for element in ("documentElement", "body"):
        for axis in "XY":
            style = f"getComputedStyle(document.{element}).overscrollBehavior{axis}"
            assert page.evaluate(style) == "none"


def test_a_resting_finger_never_looks_like_a_suggested_answer(page):
    press(page, "Start")
    page.locator("label.choice").first.hover()
    spans = page.locator("label.choice span").all()
    looks = "e => [getComputedStyle(e).boxShadow, getComputedStyle(e).borderColor].join()"
    assert len({span.evaluate(looks) for span in spans}) == 1


def test_the_documents_title_is_the_title_of_the_survey_in_every_view(page):
    expect(page).to_have_title("Three questions")
    press(page, "Start")
    heading(page, "Both at once")
    expect(page.get_by_text("Page 1 of 2")).to_be_visible()
    expect(page).to_have_title("Three questions")
    choose(page, "Choice x")
    for words in ("Third question?", "Check your answers"):
        for _ in range(2):
            press(page, "Continue")
            expect(page).to_have_title("Three questions")
        heading(page, words)


def test_an_empty_question_is_announced_beside_the_question(page):
    press(page, "Start")
    press(page, "Continue")
    expect(page.get_by_role("alert")).to_have_text(
        [
            "You left this empty. That is fine: we count it as “Prefer not to say”.",
            "Choose an answer.",
        ]
    )


def test_a_new_visit_has_no_answers_of_an_earlier_one(site, device):
    link = site.link(site.publish())
    page = device.open(link)
    answer(page, ["Yes", "Often"])
    page.reload()
    heading(page, "A small survey")
    press(page, "Start")
    expect(page.locator("input:checked")).to_have_count(0)


def test_the_second_tap_of_a_double_tap_never_presses_a_button_of_the_next_view(site, device):
    page = device.open(site.link(site.publish()))
    answer(page, ["Yes", "Never"])
    send = page.get_by_role("button", name="Send", exact=True)
    for taps in (2, 3):
        send.dispatch_event("click", {"detail": taps})
    heading(page, "Check your answers")
    assert device.posts == []
    send.dispatch_event("click", {"detail": 1})
    wait_sent(page)
