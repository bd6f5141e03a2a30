"""Reading aloud: only on request, only with the device's own voices, and never beyond the page."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.respondent import choose, entry, heading, press
from tests.surveys import PIPED

pytestmark = pytest.mark.web

HURT, WHERE = "Were you hurt?", "Where were you hurt?"
SURVEY = """
slug = "small"
title = "Work"
epsilon = 1

[[pages]]
[[pages.questions]]
id = "hurt"
type = "yes_no"
text = {en = "Were you hurt?", es = "¿Se lesionó?", ar = "هل أُصبت؟"}
help = "In the last year."

[[pages]]
[[pages.questions]]
id = "where"
type = "single_choice"
text = "Where were you hurt?"
options = [{id = "work", label = "At work"}, {id = "home", label = "At home"}]
"""
VOICES = """[
  {name: "Cloud English", lang: "en-GB", localService: false},
  {name: "Device English", lang: "en_US", localService: true},
  {name: "Device Spanish", lang: "es-MX", localService: true},
  {name: "Cloud Arabic", lang: "ar", localService: false},
]"""
FAKE = """
window.spoken = [];
window.known = %s;
class Utterance { constructor(text) { this.text = text; } }
const speech = {
  onvoiceschanged: null,
  getVoices: () => window.known,
  speak(utterance) {
    window.spoken.push(`${utterance.voice.name}, ${utterance.lang}: ${utterance.text}`);
    window.last = utterance;
  },
  cancel() { window.spoken.push("(silence)"); },
};
Object.defineProperty(window, "speechSynthesis", { value: speech });
Object.defineProperty(window, "SpeechSynthesisUtterance", { value: Utterance });
"""


def opened(site: Any, device: Any, voices: str = VOICES) -> Page:
    device.context.add_init_script(FAKE % voices)
    page = device.open(site.link(site.publish(SURVEY)))
    press(page, "Start")
    heading(page, HURT)
    return page


def spoken(page: Page) -> list[str]:
    """Return what was spoken since the last call."""
    return list(page.evaluate("window.spoken.splice(0)"))


def toggle(page: Page) -> Locator:
    return page.locator(".read-aloud button")


def test_question_help_and_options_are_read_by_the_devices_own_voice_when_asked(site, device):
    page = opened(site, device)
    assert spoken(page) == []
    expect(toggle(page)).to_have_text("Read aloud")
    toggle(page).tap()
    voice = "Device English, en_US"
    texts = (HURT, "In the last year.", "Yes", "No", "Prefer not to say")
    assert spoken(page) == ["(silence)", *(f"{voice}: {text}" for text in texts)]
    expect(toggle(page)).to_have_text("Stop reading")
    page.evaluate("window.last.onend()")
    expect(toggle(page)).to_have_text("Read aloud")
    box = toggle(page).bounding_box()
    assert box
    assert box["height"] >= 44


def test_texts_are_read_with_the_earlier_answers_that_they_contain(site, device):
    device.context.add_init_script(FAKE % VOICES)
    page = device.open(site.link(site.publish(PIPED)))
    press(page, "Start")
    choose(page, "the factory")
    entry(page).fill("38")
    press(page, "Continue")
    heading(page, "Questions 3 to 4")
    toggle(page).tap()
    assert [line.partition(": ")[2] for line in spoken(page)[1:3]] == [
        "How long do you travel to the factory {one way}?",
        "You work 38 hours.",
    ]


def test_an_error_ends_the_reading_to_which_it_belongs_and_no_other(site, device):
    page = opened(site, device)
    toggle(page).tap()
    page.evaluate("window.first = window.last")
    toggle(page).tap()
    toggle(page).tap()
    page.evaluate("window.first.onerror()")
    expect(toggle(page)).to_have_text("Stop reading")
    page.evaluate("window.last.onerror()")
    expect(toggle(page)).to_have_text("Read aloud")


def test_simplified_chinese_is_read_by_a_voice_of_the_mainland(site, device):
    tags = ("zh-HK", "zh-TW", "zh_CN")
    voices = ",".join(f'{{name: "{tag}", lang: "{tag}", localService: true}}' for tag in tags)
    device.context.add_init_script(FAKE % f"[{voices}]")
    chinese = SURVEY.replace("en = ", '"zh-Hans" = ').replace(
        'title = "', 'language = "zh-Hans"\ntitle = "'
    )
    page = device.open(site.link(site.publish(chinese)))
    page.locator(".view.start > .button").tap()
    toggle(page).tap()
    assert spoken(page)[1].startswith("zh_CN, zh_CN:")


def test_reading_stops_when_pressed_again_and_on_every_way_from_the_page(site, new_device):
    def again(page: Page) -> None:
        toggle(page).tap()
        expect(toggle(page)).to_have_text("Read aloud")

    def other_language(page: Page) -> None:
        page.get_by_role("combobox").select_option("es")
        expect(toggle(page)).to_have_text("Leer en voz alta")

    def forward(page: Page) -> None:
        choose(page, "No")
        press(page, "Continue")
        heading(page, WHERE)

    def back(page: Page) -> None:
        press(page, "Back")
        page.locator(".view.start").wait_for()

    for leave in (again, other_language, forward, back):
        page = opened(site, new_device())
        toggle(page).tap()
        spoken(page)
        leave(page)
        assert spoken(page) == ["(silence)"], leave.__name__
    # Leaving the site silences the browser before the page is gone.
    device = new_device()
    page = opened(site, device)
    toggle(page).tap()
    page.evaluate("void (speechSynthesis.cancel = () => console.log('silent'))")
    page.route("https://www.wikipedia.org/", lambda route: route.fulfill(body="Neutral"))
    press(page, "Leave now")
    page.wait_for_url("https://www.wikipedia.org/")
    assert device.messages == ["silent"]


def test_no_voice_from_the_network_is_used_and_a_text_keeps_its_own_language(site, device):
    page = opened(site, device)
    page.get_by_role("combobox").select_option("ar")
    expect(toggle(page)).to_be_hidden()
    page.get_by_role("combobox").select_option("es")
    toggle(page).tap()
    said = spoken(page)
    assert said[1] == "Device Spanish, es-MX: ¿Se lesionó?"
    assert said[2] == "Device English, en_US: In the last year."
    assert not any("Cloud" in text for text in said)


def test_the_button_appears_when_the_voices_have_loaded_and_nothing_is_stored(site, device):
    page = opened(site, device, "[]")
    expect(toggle(page)).to_be_hidden()
    page.evaluate(f"window.known = {VOICES}; speechSynthesis.onvoiceschanged()")
    expect(toggle(page)).to_be_visible()
    before = (len(device.requests), page.evaluate("JSON.stringify({...localStorage})"))
    toggle(page).tap()
    assert spoken(page)[1].startswith("Device English")
    toggle(page).tap()
    assert (len(device.requests), page.evaluate("JSON.stringify({...localStorage})")) == before


ANDROID = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/120.0.0.0 Mobile"
NO_SPEECH = "Object.defineProperty(window, 'speechSynthesis', { value: undefined })"


@pytest.mark.parametrize(
    ("settings", "script"),
    [({}, NO_SPEECH), ({"user_agent": ANDROID}, FAKE % VOICES)],
    ids=["without speech", "Android"],
)
def test_a_browser_that_names_no_local_voices_has_no_button(site, new_device, settings, script):
    device = new_device(**settings)
    device.context.add_init_script(script)
    page = device.open(site.link(site.publish(SURVEY)))
    press(page, "Start")
    heading(page, HURT)
    assert page.locator(".read-aloud").count() == 0
