"""Pictures of answers: every device loads all and compares their hashes; cards are the options."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, Route, expect

from tests.browser.accessible import RULES, VIOLATIONS
from tests.browser.respondent import choose, heading, option, press, review, wait_sent
from tests.pictures import add_picture, webp
from tests.surveys import SLIDER

pytestmark = pytest.mark.web

PET, HOME = "Which pet?", "Where does it live?"
PETS = """
slug = "small"
title = "Pets"
epsilon = 1
allow_skip_logic = true

[[pages]]
[[pages.questions]]
id = "pet"
type = "single_choice"
text = {en = "Which pet?", ar = "أي حيوان؟"}
options = [{id = "cat", label = "Cat", picture = "CAT", picture_alt = ALT},
           {id = "dog", label = "Dog", picture = "DOG", picture_alt = "Dog"},
           {id = "none", label = "None at all"}]

[[pages]]
[[pages.questions]]
id = "home"
type = "multiple_choice"
text = {en = "Where does it live?", ar = "أين يعيش؟"}
ask_if = {question = "pet", options = ["cat"]}
options = [{id = "house", label = "House", picture = "HOUSE", picture_alt = "A house"},
           {id = "street", label = "Street"}]
""".replace("ALT", '{en = "A grey cat", ar = "قط رمادي"}')

FORCED = {"forced_colors": "active", "viewport": {"width": 320, "height": 640}}
WITH_A_VOICE = """
const getVoices = () => ["en", "ar"].map((lang) => ({ lang, localService: true }));
Object.defineProperty(window, "speechSynthesis", { value: { getVoices, cancel() {} } });
"""


@pytest.fixture
def pictures(site) -> dict[str, str]:
    colors = {"CAT": "grey", "DOG": "brown", "HOUSE": "red"}
    return {name: add_picture(site.store, webp(color)) for name, color in colors.items()}


@pytest.fixture
def link(site, pictures) -> str:
    text = PETS
    for name, sha256 in pictures.items():
        text = text.replace(f'"{name}"', f'"{sha256}"')
    return str(site.link(site.publish(text)))


def opened(device: Any, link: str) -> Page:
    page = device.open(link)
    page.locator(".view.start > .button").tap()
    return page


def width(page: Page, place: int = 0) -> int:
    """Return the number of decoded pixels in a row of a picture."""
    return int(page.locator("img.picture").nth(place).evaluate("image => image.naturalWidth"))


def test_a_card_is_chosen_as_a_whole_and_sent_as_any_other_answer(device, link):
    page = opened(device, link)
    heading(page, PET)
    page.wait_for_function("() => [...document.images].every((image) => image.naturalWidth === 64)")
    expect(page.get_by_role("radio", name="A grey cat Cat")).to_have_count(1)
    # A description that repeats the label is not read twice.
    expect(page.get_by_role("radio", name="Dog", exact=True)).to_have_count(1)
    page.locator("img.picture").first.tap()
    expect(page.get_by_role("radio", name="A grey cat Cat")).to_be_checked()
    press(page, "Continue")
    heading(page, HOME)
    assert width(page) == 64
    choose(page, "Street")
    press(page, "Continue")
    expect(review(page, "pet")).to_contain_text("Cat")
    press(page, "Send")
    wait_sent(page)


def test_cards_have_one_size_and_two_columns_on_the_smallest_phone(new_device, link):
    for size in (320, 390):
        page = opened(new_device(viewport={"width": size, "height": 800}), link)
        heading(page, PET)
        boxes = [card.bounding_box() for card in page.locator(".card").all()]
        assert len({(box["width"], box["y"]) for box in boxes if box}) == 1
        assert len(boxes) == 2
        others = option(page, "None at all").bounding_box()
        assert others
        assert others["width"] > 2 * (boxes[0] or {})["width"]
        assert page.evaluate("document.documentElement.scrollWidth") == size


def test_picture_requests_come_first_and_are_the_same_for_every_answer_and_language(
    new_device, link, pictures
):
    transcripts = []
    for language, answer in (("en", "Cat"), ("en", "Dog"), ("ar", "Dog"), ("en", None)):
        device, requests = new_device(locale=language), list[str]()
        device.context.on(
            "request", lambda request, seen=requests: seen.append(request.url.partition("/")[2])
        )
        page = device.open(link)
        page.locator(".view.start > .button").wait_for()
        page.wait_for_load_state("networkidle")
        before_start = len(requests)
        page.locator(".view.start > .button").tap()
        if answer:
            page.locator(".card", has_text=answer).tap()
        for _ in range(2):
            page.locator(".view > .button").last.tap()
        page.wait_for_load_state("networkidle")
        assert len(requests) == before_start, "no request follows an answer"
        transcripts.append([url for url in requests if "/pictures/" in url])
    assert all(transcript == transcripts[0] for transcript in transcripts)
    assert [url[-64:] for url in transcripts[0]] == list(pictures.values())


@pytest.mark.parametrize("how", ["another picture", "missing"])
def test_a_picture_with_another_hash_is_rejected_and_replaced_by_its_description(
    new_device, link, pictures, how
):
    def answer(route: Route) -> None:
        if how == "missing":
            route.fulfill(status=404, body="")
        else:
            route.fulfill(status=200, body=webp("green"), content_type="image/webp")

    device = new_device()
    device.context.route(f"**/pictures/{pictures['CAT']}", answer)
    page = opened(device, link)
    heading(page, PET)
    page.wait_for_function("() => document.images[1].naturalWidth === 64")
    assert width(page, 0) == 0
    assert page.locator("img.picture").first.get_attribute("src") is None
    expect(page.get_by_role("radio", name="A grey cat Cat")).to_have_count(1)
    choose(page, "Cat")
    press(page, "Continue")
    heading(page, HOME)


@pytest.mark.parametrize("survey", ["pictures", "sliders"])
def test_no_accessibility_rule_fails_before_and_after_an_answer(site, new_device, link, survey):
    address = link if survey == "pictures" else site.link(site.publish(SLIDER))
    for language, look in (("en", {}), ("ar", {"color_scheme": "dark"}), ("en", FORCED)):
        device = new_device(locale=language, **look)
        for script in (AXE_SCRIPT, WITH_A_VOICE):
            device.context.add_init_script(script)
        page = opened(device, address)
        page.locator(".read-aloud button").wait_for()
        assert page.evaluate(VIOLATIONS, RULES) == [], (language, look)
        page.locator(".step, .card").last.tap()
        assert page.evaluate(VIOLATIONS, RULES) == [], (language, look)
