"""Respondents' pages meet WCAG 2.2 AA: rules, keyboard, magnification, touch and screen readers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from survey.respondent_texts import LANGUAGES, say
from tests.browser.accessible import (
    ENTRIES,
    EVERY_STATE,
    FOCUSED,
    FOREIGN,
    HIDDEN_TEXTS,
    MOVING,
    RULES,
    SPACED,
    VIOLATIONS,
    WHOLE,
    WRONG,
    State,
    answer_states,
    fill_in,
    send_states,
    start_states,
    states,
)
from tests.browser.respondent import choose, heading, option, press, wait_sent, wait_waiting
from tests.browser.test_looks import DIRECTORY, TOO_SMALL
from tests.conftest import SMALL, long_unless

pytestmark = [pytest.mark.web]

LOOKS = {
    "light": {"locale": "en"},
    "dark": {"locale": "en", "color_scheme": "dark"},
    "right to left": {"locale": "ar"},
    "forced colors": {"locale": "en", "forced_colors": "active"},
}
MAGNIFIED = {"viewport": {"width": 320, "height": 256}, "is_mobile": False}
"""A window of 1280 by 1024 at 400 percent; a phone would widen the window to fit its content."""


def find_faults(
    walk: Iterable[State], measure: Callable[[Page], list[str]]
) -> dict[str, list[str]]:
    """Return the faults measured in each state."""
    return {name: faults for name, page in walk if (faults := measure(page))}


def test_every_state_of_a_visit_passes_the_accessibility_checks(site, device):
    device.context.add_init_script(AXE_SCRIPT)
    page = device.open(site.link(site.publish(EVERY_STATE)))
    walk = chain(start_states(page, "en"), answer_states(page, "en"), send_states(page, "en"))
    assert find_faults(walk, lambda page: page.evaluate(VIOLATIONS, RULES)) == {}


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
def test_every_state_passes_the_accessibility_checks_in_every_look(site, new_device, look):
    device = new_device(**LOOKS[look])
    device.context.add_init_script(AXE_SCRIPT)
    walk = with_pictures(states(site, device, LOOKS[look]["locale"]), look)
    assert find_faults(walk, lambda page: page.evaluate(VIOLATIONS, RULES)) == {}


def with_pictures(walk: Iterable[State], look: str) -> Iterator[State]:
    """Walk through the states; SURVEY_TEST_SCREENSHOTS saves a picture of each."""
    for name, page in walk:
        for width in (390, 1280) if DIRECTORY else ():
            page.set_viewport_size({"width": width, "height": 844})
            file = Path(DIRECTORY or "") / f"state-{name}-{look}-{width}.png".replace(" ", "-")
            page.screenshot(path=file, full_page=True, animations="disabled")
        if DIRECTORY:
            page.set_viewport_size({"width": 390, "height": 844})
        yield name, page


def clipped_texts(page: Page) -> list[str]:
    page.evaluate(SPACED, True)
    spaced = page.evaluate(HIDDEN_TEXTS)
    page.evaluate(SPACED, False)
    return spaced + page.evaluate(HIDDEN_TEXTS)


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "ar"])
def test_at_400_percent_nothing_scrolls_sideways_or_disappears(site, new_device, language):
    walk = states(site, new_device(locale=language, **MAGNIFIED), language)
    assert find_faults(walk, clipped_texts) == {}


def texts_in_another_language(page: Page) -> list[str]:
    """Check Arabic pages for screen readers, reduced motion and large targets."""
    language_and_direction = page.evaluate(
        "[document.documentElement.lang, document.documentElement.dir]"
    )
    # Without its code, the page cannot know the reader's language and speaks all of them.
    expected = ["en", ""] if page.locator(".opening").count() else ["ar", "rtl"]
    boxes = [tool.bounding_box() for tool in page.locator("#tools select, #tools button").all()]
    return [
        *([] if language_and_direction == expected else language_and_direction),
        *[f"too small: {box}" for box in boxes if min(box["width"], box["height"]) < 44],
        *page.evaluate(TOO_SMALL),
        *page.evaluate(MOVING),
        *page.evaluate(FOREIGN),
    ]


@pytest.mark.long
def test_in_arabic_targets_are_large_nothing_moves_and_each_text_names_its_language(
    site, new_device
):
    walk = states(site, new_device(locale="ar", reduced_motion="reduce"), "ar")
    assert find_faults(walk, texts_in_another_language) == {}


class Keys:
    """A keyboard user who checks the focus after every key."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> str:
        """Press the keys and return the name of the element that then has the focus."""
        for key in keys:
            self.page.keyboard.press(key)
            focused = self.page.evaluate(FOCUSED)
            assert focused["isSeen"], (key, focused)
            assert focused["isOutlined"], (key, focused)
            assert not focused["isLost"], key
        return focused["name"]

    def go_to(self, name: str, key: str = "Tab") -> None:
        for _ in range(40):
            if self.press(key) == name:
                return
        raise AssertionError(f"no way to {name} by {key}")

    def type(self, name: str, text: str) -> None:
        self.go_to(name)
        self.page.keyboard.type(text)


def test_a_survey_can_be_answered_by_keyboard_with_the_focus_always_visible(site, new_device):
    device = new_device(locale="en-GB", has_touch=False, **MAGNIFIED)
    page = device.open(site.link(site.publish(WHOLE)))
    heading(page, "Work and health")
    keys = Keys(page)
    assert keys.press("Tab") == "Try the dice"
    keys.press("Space")
    keys.press("Tab", "Space")
    keys.go_to("Show 100 people who said the same")
    keys.press("Space")
    keys.go_to("I agree, start")
    keys.press("Enter")
    for fill in BY_KEYS:
        fill(keys)
        keys.go_to("Continue")
        keys.press("Enter")
    heading(page, "Check your answers")
    keys.go_to("Send")
    keys.go_to("Change: Where do you work?", "Shift+Tab")
    assert keys.press("Enter") == "Where do you work?"
    keys.go_to("On the road")
    keys.press("Space")
    keys.go_to("Go to review")
    keys.press("Space")
    assert page.locator(".answers b").all_inner_texts() == ANSWERS
    keys.go_to("Send")
    keys.press("Enter")
    wait_sent(page)
    keys.go_to("See what was sent")
    keys.press("Enter")
    keys.go_to("The exact message")
    keys.press("Enter", "Tab")
    assert page.evaluate("document.activeElement.tagName") == "PRE"
    keys.go_to("Forget this on this device", "Shift+Tab")
    keys.press("Enter")
    heading(page, "Forgotten")


def skip(keys: Keys) -> None:
    """Continue without an answer first, then answer through the error summary."""
    keys.go_to("Continue")
    keys.press("Enter")
    expect(keys.page.locator(".error-summary")).to_be_focused()
    keys.press("Tab")
    assert keys.press("Enter") == "Never"
    keys.press("Space", "ArrowDown")


BY_KEYS: list[Callable[[Keys], object]] = [
    lambda keys: (keys.go_to("I was tired"), keys.press("Space", "Shift+Tab", "Space")),
    lambda keys: keys.type("How many hours did you work last week?", "38"),
    lambda keys: keys.type("Since when have you worked here?", "03051998"),
    lambda keys: (keys.go_to("0 (Very bad)"), keys.press("Space", "ArrowDown", "ArrowDown")),
    lambda keys: keys.type("How warm is your place of work?", "20.5"),
    lambda keys: [(keys.go_to(name), keys.press("Space")) for name in ("At home", "A desk")],
    skip,
]
"""The keys that answer each page."""
ANSWERS = [
    *("A child was ill", "I was tired", "40 hours", "6 March 1998", "2", "20.5 °C"),
    *("At home", "On the road", "A desk", "Often"),
]


def test_every_input_has_a_name_and_every_group_is_labelled_by_its_question(site, new_device):
    page = new_device(locale="en").open(site.link(site.publish(WHOLE)))
    press(page, "I agree, start")
    for typed in ENTRIES:
        for group in page.locator("fieldset").all():
            question = group.locator("legend").inner_text()
            expect(group).to_have_accessible_name(question)
            for field in group.locator("input").all():
                is_entry = field.evaluate("e => e.matches('.entry')")
                label = question if is_entry else field.locator("xpath=..").inner_text()
                expect(field).to_have_accessible_name(label)
        fill_in(page, typed)
        press(page, "Continue")
    for change in page.locator(".change button").all():
        expect(change).to_have_accessible_name(re.compile("^Change: .+[?]$"))
    expect(page.get_by_role("combobox")).to_have_accessible_name("Language")


def test_screen_readers_announce_errors_and_every_attempt_to_send(site, new_device):
    device = new_device(locale="en").disable_retries()
    page = device.open(site.link(site.publish(WHOLE)))
    press(page, "I agree, start")
    for at, typed in enumerate(ENTRIES):
        press(page, "Continue")
        summary = page.locator(".error-summary")
        if at in WRONG:
            WRONG[at](page)
            press(page, "Continue")
            expect(summary).to_have_accessible_name("There is a problem")
        expect(summary).to_be_focused()
        expect(page.get_by_role("alert").first).to_be_visible()
        fill_in(page, typed)
        press(page, "Continue")
    page.route("**/reports", lambda route: route.abort())
    press(page, "Send")
    wait_waiting(page)
    status = page.get_by_role("status").element_handle()
    page.unroute_all()
    requests = []
    page.route("**/reports", lambda route: requests.append(route))
    with page.expect_request("**/reports"):
        press(page, "Try now")
    # Few screen readers announce a replaced element, so it must be the same one.
    assert status.inner_text() == "Trying now."
    requests.pop().fulfill(status=503)
    wait_waiting(page)
    assert status.inner_text().startswith("The survey cannot accept")


@pytest.mark.parametrize("language", long_unless(["ar"], LANGUAGES))
def test_every_page_states_its_language_and_direction(site, new_device, language):
    toml = WHOLE
    if language not in ("en", "ar"):
        toml = toml.replace("title = { en = ", f'title = {{ {language} = "Title", en = ')
    page = new_device(locale=language).open(site.link(site.publish(toml)))
    for address in (page.url, f"{site.url}/s/none"):
        page.goto(address)
        # The words arrive after the page.
        page.locator("#tools button").wait_for()
        language_and_direction = page.evaluate(
            "[document.documentElement.lang, document.documentElement.dir]"
        )
        assert language_and_direction == [language, say(language, "language.direction")]


def test_focus_and_chosen_options_stay_visible_in_forced_colors(site, new_device):
    page = new_device(locale="en", forced_colors="active").open(site.link(site.publish(WHOLE)))
    page.get_by_text("Try the dice").click()
    button = page.locator(".pair button").first
    pictures = [button.screenshot()]
    button.dispatch_event("click")
    pictures.append(button.screenshot())
    press(page, "I agree, start")
    choices = page.locator(".choices")
    pictures.append(choices.screenshot())
    # The first box is focused, then ticked too, then ticked only while the next is focused.
    for key in ("Tab", "Space", "Tab"):
        page.keyboard.press(key)
        pictures.append(choices.screenshot())
    assert len(set(pictures)) == len(pictures)


def test_confirming_presence_chooses_no_answer_and_keeps_the_place(site, device):
    page = device.context.new_page()
    page.clock.install()
    page.goto(site.link(site.publish(f"kiosk = true\n{SMALL}")))
    press(page, "Start")
    choose(page, "Yes")
    radio = option(page, "Yes").locator("input")
    notice = page.get_by_role("alertdialog", name="Are you still there?")
    for leave in (lambda: press(page, "I am still here"), lambda: page.keyboard.press("Escape")):
        page.clock.run_for(121_000)
        expect(notice.get_by_role("button")).to_be_focused()
        leave()
        # A closed dialog has no role; its element disappears with the timer of the restart.
        expect(page.locator("dialog")).to_have_count(0)
        expect(radio).to_be_checked()
        expect(radio).to_be_focused()
