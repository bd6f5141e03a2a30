"""The start page: consent, the quick check, and leaving."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from survey.store import Schedule
from tests.browser.research import add_released
from tests.browser.respondent import (
    answer,
    choose,
    heading,
    press,
    stored_entries,
    wait_sent,
)
from tests.conftest import SMALL, TODAY, long_unless

pytestmark = pytest.mark.web

WHOLE = (
    'consent = "I am 18 or older.\\n\\nI take part of my own will."\n'
    'ethics = "Approved by the board, 2026-4."\nhelpline = "Call 112 at any hour."\n' + SMALL
)
RIGHT = "That’s right. Every line can come from every answer, so no line is proof."
ADVICE = "Skip any question if your answer could hurt you."
THEMES = ("", "blue", "plum", "slate")

CONTRAST = """() => {
  const light = (c) => c.map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const paint = document.createElement("canvas").getContext("2d");
  const read = (name) => {
    paint.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
    paint.fillRect(0, 0, 1, 1);
    return light([...paint.getImageData(0, 0, 1, 1).data].slice(0, 3));
  };
  const ratio = (a, b) => {
    const [low, high] = [read(a), read(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  return [["--accent", "--paper"], ["--accent", "--card"], ["--accent", "--tint"],
    ["--on-accent", "--accent"], ["--on-accent", "--pressed"], ["--ink", "--tint"],
    ["--ink", "--paper"], ["--soft", "--paper"], ["--soft", "--card"], ["--alarm", "--paper"],
    ["--alarm", "--card"]]
    .map(([a, b]) => [a, b, ratio(a, b)]).filter(([, , contrast]) => contrast < 7);
}"""


def test_consent_ethics_and_help_line_come_before_the_button_that_agrees(site, device):
    page = device.open(site.link(site.publish(WHOLE)))
    heading(page, "A small survey")
    sections = page.locator(".passage h2").all_inner_texts()
    assert sections == ["Ethics", "If you need help", "Your consent"]
    assert page.locator(".consent p").all_inner_texts() == [
        "I am 18 or older.",
        "I take part of my own will.",
    ]
    below = page.get_by_role("button", name="I agree, start").bounding_box()["y"]
    assert page.locator(".consent").bounding_box()["y"] < below
    press(page, "I agree, start")
    expect(page.locator(".helpline")).to_contain_text("Call 112 at any hour.")


def test_the_quick_check_explains_its_answer_and_sends_nothing(site, device):
    page = device.open(site.link(site.publish(SMALL.replace("3/4", "3/5"))))
    heading(page, "A small survey")
    before = len(device.requests)
    press(page, "What I said")
    expect(page.get_by_role("status")).to_contain_text("Not quite: nothing for certain.")
    expect(page.get_by_role("button", name="What I said")).to_have_attribute("aria-pressed", "true")
    press(page, "Nothing for certain")
    expect(page.get_by_role("status")).to_have_text(RIGHT)
    assert len(device.requests) == before
    assert stored_entries(page) == {}
    press(page, "Start")
    heading(page, "First page")


@pytest.mark.security
@pytest.mark.parametrize("at", ["start", "review"])
def test_leaving_clears_everything_and_back_does_not_return(site, device, at):
    page = device.context.new_page()
    page.goto(f"{site.url}/healthz")
    page.goto(site.link(site.publish()))
    heading(page, "A small survey")
    if at == "review":
        answer(page, ["Yes", "Never"])
    steps = page.evaluate("history.length")
    press(page, "Leave now")
    page.wait_for_url("about:blank")
    assert page.evaluate("history.length") == steps
    page.go_back()
    page.wait_for_url("**/healthz")
    assert device.posts == []


@pytest.mark.security
def test_leaving_goes_where_the_survey_says(site, device):
    survey = site.publish(f'quick_exit = "https://weather.example/today"\n{SMALL}')
    device.context.route("https://weather.example/**", lambda route: route.fulfill(body="Sunny"))
    page = device.open(site.link(survey))
    heading(page, "A small survey")
    assert all("weather" not in request.url for request in device.requests)
    press(page, "Leave now")
    page.wait_for_url("https://weather.example/today")
    departure = next(request for request in device.requests if "weather" in request.url)
    assert "referer" not in departure.all_headers()


@pytest.mark.parametrize(
    ("schedule", "title", "notice"),
    [
        (
            Schedule(opens=TODAY.replace(year=2090)),
            "This survey cannot start",
            "It opens on 21 November 2090.",
        ),
        (
            Schedule(closes=TODAY.replace(year=2020)),
            "This survey is closed",
            "It no longer accepts answers.",
        ),
    ],
)
def test_a_survey_states_that_it_has_not_opened_or_is_closed(site, device, schedule, title, notice):
    survey = site.publish()
    site.store.set_schedule(survey.key, schedule)
    page = device.open(site.link(survey))
    heading(page, title)
    expect(page.locator(".notice")).to_contain_text(notice)
    assert device.posts == []


def test_a_survey_that_reaches_its_limit_shows_a_message_and_the_report_stays(site, new_device):
    survey, device = site.publish(), new_device()
    site.store.set_schedule(survey.key, Schedule(maximum=100))
    page = device.open(site.link(survey))
    answer(page, ["Yes", "Never"])
    site.read_keys()
    add_released(site.store, survey, 200)
    press(page, "Send")
    heading(page, "The survey did not accept your lines")
    expect(page.locator(".notice").first).to_have_text("The survey has reached its limit.")
    heading(new_device().open(site.link(survey)), "This survey is closed")
    site.store.set_schedule(survey.key, Schedule())
    press(page, "Try again")
    heading(page, "Sent. Thank you.")
    assert len(set(device.bodies)) == 1


@pytest.mark.parametrize("theme", long_unless(["blue"], THEMES))
def test_every_accent_has_a_contrast_of_at_least_seven(site, device, theme):
    page = device.open(site.link(site.publish(f'theme = "{theme}"\n{SMALL}')))
    heading(page, "A small survey")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == []


def test_shuffled_options_vary_in_order_and_options_for_no_answer_stay_last(site, new_device):
    names = [f"Option {letter}" for letter in "ABCDEFGH"]
    options = ", ".join(f'{{id = "o{i}", label = "{name}"}}' for i, name in enumerate(names))
    survey = site.publish(
        'slug = "small"\ntitle = "T"\nepsilon = 1\n[[questions]]\nid = "a"\n'
        f'type = "single_choice"\ntext = "Q?"\nshuffle_options = true\noptions = [{options}]\n'
    )
    orders = []
    for _ in range(3):
        page = new_device().open(site.link(survey))
        press(page, "Start")
        labels = page.locator("label.choice span").all_inner_texts()
        assert sorted(labels[:-1]) == names
        assert labels[-1] == "Prefer not to say"
        orders.append(labels)
        choose(page, "Option C")
        press(page, "Continue")
        heading(page, "Check your answers")
        assert page.locator("dd b").inner_text() == "Option C"
    assert len({tuple(order) for order in orders}) > 1


def test_every_page_leads_with_the_factor_of_seven_rewordings_and_promises_no_doubt(site, device):
    questions = "".join(
        f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q{i}?"\ntopic = "nights"\n'
        for i in range(7)
    )
    head = 'slug = "small"\ntitle = "S"\ntruth_probability = "3/4"\nprefer_not_to_say = false\n'
    page = device.open(site.link(site.publish(head + questions)))
    heading(page, "S")
    assert_weak(page.locator(".privacy").inner_text())
    expect(page.locator(".notice").first).to_contain_text(ADVICE)
    press(page, "Start")
    for number in range(7):
        page.get_by_text("How this answer is protected").nth(number).tap()
        page.locator("fieldset").nth(number).locator("label.choice").first.tap()
    for disclosure in page.locator(".details-body").all_inner_texts():
        assert disclosure.index("of at most 2,187") < disclosure.index("question alone: good")
        assert "proof" not in disclosure
    press(page, "Continue")
    heading(page, "Check your answers")
    assert_weak(page.locator("main").inner_text())
    expect(page.locator(".notice").first).to_contain_text(ADVICE)
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    assert_weak(page.locator(".details-body").inner_text())
    expect(page.locator("main")).not_to_contain_text(ADVICE)


WEAK_QUESTION = """
slug = "small"
title = "S"
prefer_not_to_say = false
[[questions]]
id = "a"
type = "yes_no"
text = "A?"
truth_probability = "99/100"
"""
WEAK_BITS = """
slug = "small"
title = "S"
prefer_not_to_say = false
[[questions]]
id = "a"
type = "multiple_choice"
text = "A?"
truth_probability = "4/5"
options = [{id = "v", label = "V"}, {id = "w", label = "W"}, {id = "x", label = "X"}]
"""


def test_every_page_says_how_often_a_weak_question_sends_the_true_answer(site, device):
    warning = f"Weak: your true answer is sent 99 times in 100. {ADVICE}"
    page = device.open(site.link(site.publish(WEAK_QUESTION)))
    expect(page.locator(".example")).to_contain_text(warning)
    press(page, "Start")
    page.get_by_text("How this answer is protected").tap()
    expect(page.locator(".details-body")).to_contain_text(warning)
    choose(page, "Yes")
    press(page, "Continue")
    expect(page.locator(".answers")).to_contain_text(warning)
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    expect(page.locator(".reported")).to_contain_text("your true answer is sent 99 times in 100.")
    expect(page.locator(".reported")).not_to_contain_text(re.compile(f"random|{ADVICE}"))


def test_a_report_with_only_one_weak_topic_is_weak_on_every_page(site, device):
    """Two questions of 3.6 each: 13 together is moderate for a report and weak for a topic."""
    questions = "".join(
        f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q{i}?"\ntopic = "nights"\n'
        for i in range(2)
    )
    head = 'slug = "small"\ntitle = "S"\ntruth_probability = "0.78"\nprefer_not_to_say = false\n'
    page = device.open(site.link(site.publish(head + questions)))
    expect(page.locator("h2").first).to_have_text("This survey protects your answers only weakly.")
    assert_weak_in_part(page.locator("main"), ADVICE)
    expect(page.locator(".check")).to_have_count(0)
    press(page, "Start")
    for number in range(2):
        page.locator("fieldset").nth(number).locator("label.choice").first.tap()
    press(page, "Continue")
    heading(page, "Check your answers")
    assert_weak_in_part(page.locator("main"), ADVICE)
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    assert_weak_in_part(page.locator(".details-body"), "")


def assert_weak_in_part(part: Locator, advice: str) -> None:
    """Check that a page warns of a topic's factor 12.6, and promises nothing."""
    text = part.inner_text()
    assert "All your lines together: weak protection." in text
    assert "All your lines about nights: weak protection, a factor of at most 13." in text
    warning = (
        "Someone who reads your lines could learn a lot about your answer to one question or "
        "about one topic."
    )
    assert f"{warning} {advice}".strip() in text
    assert not re.search("prove|proof|truthfully|all your answers together", text)


def test_the_example_of_a_weak_question_shows_its_bound_beside_its_frequencies(site, device):
    page = device.open(site.link(site.publish(WEAK_BITS)))
    example = page.locator(".example")
    expect(example).to_contain_text("about 80 send that they did")
    expect(example).to_contain_text("alone: weak protection. Your line changes the odds of a")
    expect(example).to_contain_text("by a factor of at most 256.")
    expect(example).to_contain_text("Weak: your line can show your answer.")


def assert_weak(text: str) -> None:
    """Check that a text warns of the factor 2,187 before any other, and promises nothing."""
    first, *_ = re.findall(r"factor of at most [\d,.]+\d", text)
    assert first == "factor of at most 2,187"
    assert "All your lines together: weak protection." in text
    assert "All your lines about nights: weak protection, a factor of at most 2,187." in text
    assert text.count("at most 3.") == text.count("This question alone")
    assert not re.search("prove|proof|not your answers|truthfully", text)
