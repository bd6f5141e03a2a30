"""The start page: its length, consent, the dice, help, and leaving."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from survey.store import PublishedSurvey, Schedule
from tests.browser.conftest import Site
from tests.browser.research import add_released
from tests.browser.respondent import (
    answer,
    choose,
    heading,
    option,
    press,
    stored_entries,
    wait_sent,
)
from tests.conftest import ROOT, SMALL, TODAY, long_unless

pytestmark = pytest.mark.web

WHOLE = (
    'consent = "I am 18 or older.\\n\\nI take part of my own will."\n'
    'ethics = "Approved by the board, 2026-4."\nhelpline = "Call 112 at any hour."\n' + SMALL
)
ADVICE = "Do not answer what could hurt you."
NEUTRAL_PAGE = "https://www.wikipedia.org/"

DEMO = 'layout = "auto"\n' + (ROOT / "survey/demo/workplace.toml").read_text(encoding="utf-8")
SHORT = {"start": 1_000, "words": 120}
"""Limits on the demo's start page at 390 px: bottom edge of "Start" in pixels, words before it."""

WORDS_BEFORE_START = """() => {
  const before = [];
  for (const part of document.querySelector(".start").children) {
    if (part.matches(".button")) break;
    before.push(part.innerText);
  }
  return before.join(" ").split(/\\s+/).filter((word) => /[\\p{L}\\p{N}]/u.test(word)).length;
}"""

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


def test_help_line_and_consent_come_before_the_agree_button(site, device):
    page = device.open(site.link(site.publish(WHOLE)))
    heading(page, "A small survey")
    sections = page.locator(".passage h2").all_inner_texts()
    assert sections == ["Help: ", "Your consent", "Ethics"]
    assert page.locator(".consent p").all_inner_texts() == [
        "I am 18 or older.",
        "I take part of my own will.",
    ]
    below = page.get_by_role("button", name="I agree, start").bounding_box()["y"]
    assert page.locator(".consent").bounding_box()["y"] < below
    press(page, "I agree, start")
    expect(page.locator(".helpline")).to_contain_text("Call 112 at any hour.")


def test_a_notice_keeps_its_distance_from_the_help_line(site, device):
    page = device.open(site.link(site.publish(f"kiosk = true\n{WHOLE}")))
    notice = page.locator(".start > .notice").bounding_box()
    below = page.locator(".helpline h2").bounding_box()["y"]
    assert below - notice["y"] - notice["height"] >= 14


@pytest.mark.security
@pytest.mark.parametrize("at", ["start", "review"])
def test_leaving_clears_everything_and_back_does_not_return(site, device, at):
    page = device.context.new_page()
    device.context.route(NEUTRAL_PAGE, lambda route: route.fulfill(body="Neutral"))
    page.goto(f"{site.url}/healthz")
    page.goto(site.link(site.publish()))
    heading(page, "A small survey")
    if at == "review":
        answer(page, ["Yes", "Never"])
    press(page, "Leave now")
    page.wait_for_url(NEUTRAL_PAGE)
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
        page.locator("fieldset").nth(number).locator("label.choice").first.tap()
    page.get_by_text("How these answers are protected").tap()
    protection = page.locator(".details-body").inner_text()
    assert protection.index("of at most 2,187") < protection.index("question alone: strong")
    assert protection.count("question alone: strong") == 7
    assert "proof" not in protection
    press(page, "Continue")
    heading(page, "Check your answers")
    assert_weak(page.locator("main").inner_text())
    expect(page.locator(".notice").first).to_contain_text(ADVICE)
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    assert_weak(page.locator(".sent > details").inner_text())
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
    press(page, "Start")
    for number in range(2):
        page.locator("fieldset").nth(number).locator("label.choice").first.tap()
    press(page, "Continue")
    heading(page, "Check your answers")
    assert_weak_in_part(page.locator("main"), ADVICE)
    press(page, "Send")
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    assert_weak_in_part(page.locator(".sent > details"), "")


def assert_weak_in_part(part: Locator, advice: str) -> None:
    """Check that a page warns of a topic's factor 12.6, and promises nothing."""
    text = part.inner_text()
    assert "All your lines together: weak protection." in text
    assert "All your lines about “nights”: weak protection, a factor of at most 13." in text
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
    assert "All your lines about “nights”: weak protection, a factor of at most 2,187." in text
    assert text.count("at most 3.") == text.count("This question alone")
    assert not re.search("prove|proof|not your answers|truthfully", text)


def publish_demo(site: Site) -> PublishedSurvey:
    return site.publish(DEMO.replace('slug = "workplace"', 'slug = "small"'))


def scrolled(page: Page) -> float:
    """Return the scrolling distance to the first button below the text."""
    box = page.locator("main > .view > .button").first.bounding_box()
    return max(0, box["y"] + box["height"] - page.viewport_size["height"])


def test_the_demo_can_be_started_after_a_few_words_and_one_swipe(site, device):
    page = device.open(site.link(publish_demo(site)))
    heading(page, "Your working conditions")
    box = page.get_by_role("button", name="Start").bounding_box()
    measured = {"start": box["y"] + box["height"], "words": page.evaluate(WORDS_BEFORE_START)}
    print(measured)
    assert measured["start"] <= SHORT["start"]
    assert measured["words"] <= SHORT["words"]


def test_the_demo_takes_two_taps_a_question_and_three_more_and_little_scrolling(site, device):
    page = device.open(site.link(publish_demo(site)))
    heading(page, "Your working conditions")
    taps, pixels, n_questions = 1, scrolled(page), 0
    press(page, "Start")
    while page.locator(".questions").count():
        n_questions += 1
        title = page.get_by_role("heading", level=1).text_content()
        pixels += scrolled(page)
        page.locator("label.choice").last.tap()
        press(page, "Continue")
        taps += 2
        expect(page.get_by_role("heading", level=1)).not_to_have_text(title or "")
    pixels += scrolled(page)
    press(page, "Send")
    taps += 1
    wait_sent(page)
    print({"taps": taps, "pixels": pixels, "questions": n_questions})
    assert taps <= 2 * n_questions + 3
    assert pixels <= 300 * n_questions + 600


def test_the_dice_show_one_answer_and_100_people_and_keep_and_send_nothing(site, device):
    page = device.open(site.link(site.publish(SMALL.replace("3/4", "3/5"))))
    heading(page, "A small survey")
    before = len(device.requests)
    page.get_by_text("Try the dice").tap()
    dice = page.locator("details", has_text="Try the dice")
    expect(dice.locator(".pair button")).to_have_text(["Yes", "No"])
    press(page, "Yes")
    expect(dice.get_by_role("status")).to_contain_text("You said “Yes”. The dice send “")
    press(page, "Show 100 people who said the same")
    press(page, "No")
    press(page, "Show 100 people who said the same")
    text = dice.get_by_role("status").inner_text()
    yes, no = (int(n) for n in re.findall(r"said “(?:Yes|No)”\. (\d+) of their lines", text))
    assert f"{yes} of these lines come from people who said “Yes”, {no} from" in text
    assert text.endswith("No line proves what you answered.")
    assert [dots.locator(".yes").count() for dots in dice.locator(".dots").all()] == [yes, no]
    # Of 100 lines, about 60 say "Yes" after "Yes" and 20 after "No", with deviations of 5 and 4.
    assert 30 < yes < 90
    assert 0 < no < 50
    assert dice.locator(".dots").first.get_attribute("aria-hidden") == "true"
    assert len(device.requests) == before
    assert stored_entries(page) == {}
    assert page.evaluate("document.getAnimations().length") == 0


def test_the_dice_ask_about_tea_whatever_the_two_answers_of_the_survey_are(site, device):
    options = 'options = [{ id = "a", label = "Public" }, { id = "b", label = "Private" }]'
    survey = f"""
    slug = "small"
    title = "Work"
    epsilon = 1
    [[questions]]
    id = "employer"
    type = "single_choice"
    text = "For whom do you work?"
    {options}
    """
    page = device.open(site.link(site.publish(survey)))
    page.get_by_text("Try the dice").tap()
    expect(page.locator(".pair button")).to_have_text(["Yes", "No"])


def test_the_dice_of_a_weak_question_promise_nothing(site, device):
    page = device.open(site.link(site.publish(WEAK_QUESTION)))
    page.get_by_text("Try the dice").tap()
    for answer_, least, most in (("Yes", 90, 100), ("No", 0, 10)):
        press(page, answer_)
        press(page, "Show 100 people who said the same")
        lines = page.get_by_role("status").locator("p", has_text=f"said “{answer_}”.").first
        (n,) = re.findall(r"(\d+) of their lines", lines.inner_text())
        assert least <= int(n) <= most
    expect(page.locator("main")).not_to_contain_text(re.compile("prove|truthfully"))


def test_a_phone_number_of_the_help_line_can_be_tapped_and_keeps_its_order_in_arabic(site, device):
    arabic = SMALL.replace(
        "[[pages]]",
        'helpline = "اتصل بالرقم 0800 555 0199 أو 112 حتى 2026"\nlanguage = "ar"\n[[pages]]',
        1,
    )
    page = device.open(site.link(site.publish(arabic)))
    links = page.locator(".helpline a")
    expect(links).to_have_count(2)
    assert links.evaluate_all("all => all.map((a) => a.getAttribute('href'))") == [
        "tel:08005550199",
        "tel:112",
    ]
    # The first group of digits is left of the last one.
    first, last = links.first.evaluate(
        """(a) => [[0, 4], [9, 13]].map(([from, to]) => {
          const range = document.createRange();
          range.setStart(a.firstChild, from);
          range.setEnd(a.firstChild, to);
          return range.getBoundingClientRect().left;
        })"""
    )
    assert first < last


NUMBERS_TO_CALL = {
    "116 123 (9-17 h)": "116123",
    "Call 116 123 (24 hours)": "116123",
    "0800 555 0199 (24/7)": "08005550199",
    "1-800-799-7233 24/7": "18007997233",
    "0800 555 0199 8-20 Uhr": "08005550199",
    "0800 555 0199 8:00-20:00": "08005550199",
    "0800 555 0199 9am-5pm": "08005550199",
    "+20 2 2794 1234 (9-17 h, 2026-12-31)": "+20227941234",
    "+49 (0)30 123456": "+4930123456",
    "+33 1-23-45-67-89": "+33123456789",
    "01 23 45 67 89 at night": "0123456789",
    "(030) 123 45 67": "0301234567",
    "030 / 123456": "030123456",
    "1 (800) 799-7233": "18007997233",
}
"""Help lines as people write them, each with the digits that a phone must dial."""


def test_the_help_line_dials_the_number_without_the_hours_beside_it(site, device):
    lines = "\\n\\n".join(NUMBERS_TO_CALL)
    page = device.open(site.link(site.publish(f'helpline = "{lines}"\n{SMALL}')))
    heading(page, "A small survey")
    links = page.locator(".helpline p").evaluate_all(
        "all => all.map((p) => [...p.querySelectorAll('a')].map((a) => a.getAttribute('href')))"
    )
    assert dict(zip(NUMBERS_TO_CALL, links, strict=True)) == {
        line: [f"tel:{digits}"] for line, digits in NUMBERS_TO_CALL.items()
    }


def test_calling_the_help_line_gives_no_warning_and_leaving_with_answers_still_does(site, device):
    page = device.open(site.link(site.publish(WHOLE)))
    press(page, "I agree, start")
    choose(page, "Yes")
    page.locator(".helpline a").tap()
    expect(option(page, "Yes").locator("input")).to_be_checked()
    # Longer than a browser needs to open the phone.
    page.wait_for_timeout(1500)
    assert device.warnings == 0
    page.reload()
    heading(page, "A small survey")
    assert device.warnings == 1


def test_leaving_shows_an_empty_page_before_the_next_one_loads(site, device):
    device.context.route(NEUTRAL_PAGE, lambda route: route.fulfill(body="Neutral"))
    device.context.add_init_script(
        """addEventListener("beforeunload", () => {
          localStorage.left = `${document.body.innerText.trim()}|${document.title}`;
        });"""
    )
    page = device.open(site.link(site.publish()))
    heading(page, "A small survey")
    press(page, "Leave now")
    page.wait_for_url(NEUTRAL_PAGE)
    assert stored_entries(device.open(f"{site.url}/healthz"))["left"] == "|\u200e"


def test_pressing_shift_three_times_leaves(site, device):
    device.context.route(NEUTRAL_PAGE, lambda route: route.fulfill(body="Neutral"))
    page = device.open(site.link(site.publish()))
    heading(page, "A small survey")
    for key in ("Shift", "Shift", "a", "Shift"):
        page.keyboard.press(key)
    heading(page, "A small survey")
    # A slow press, as of a screen reader's key, starts a new count.
    page.wait_for_timeout(1100)
    page.keyboard.press("Shift")
    page.wait_for_timeout(1100)
    page.keyboard.press("Shift")
    heading(page, "A small survey")
    for _ in range(2):
        page.keyboard.press("Shift")
    page.wait_for_url(NEUTRAL_PAGE)


def test_a_link_to_an_earlier_version_leads_to_the_current_one_with_a_notice(site, device):
    survey = site.publish()
    later = site.publish_as(survey.slug, SMALL.replace("Did you fall asleep", "Did you nod off"))
    page = device.open(site.link(survey))
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("made for an earlier version of this survey")
    press(page, "Show the current version")
    answer(page, ["Yes", "Never"])
    press(page, "Send")
    wait_sent(page)
    assert later.sha256 in (device.bodies[0] or b"").decode()


@pytest.mark.parametrize("files", ["main.js", "{opening,main}.js", "words.en.json"])
def test_a_page_with_missing_files_reloads_itself_twice_and_then_shows_a_button(
    site, device, files
):
    lost = []

    def lose(route: Route) -> None:
        lost.append(route.request.url)
        route.abort()

    device.context.route(f"**/{files}", lose)
    page = device.open(site.link(site.publish()))
    reload = page.get_by_role("button", name="Reload", exact=True)
    expect(reload).to_be_visible()
    expect(reload).to_have_count(1)
    assert [lost.count(url) for url in dict.fromkeys(lost)] == [3] * len(set(lost))
    expect(page.locator(".opening")).to_contain_text("This survey cannot start")
    device.context.unroute(f"**/{files}")
    reload.tap()
    heading(page, "A small survey")


def test_at_twice_the_size_only_leave_now_stays_on_the_screen(site, new_device):
    device = new_device(viewport={"width": 195, "height": 422})
    page = device.open(site.link(publish_demo(site)))
    heading(page, "Your working conditions")
    page.evaluate("scrollTo(0, 300)")
    button = page.get_by_role("button", name="Leave now").bounding_box()
    assert 0 <= button["y"] <= button["y"] + button["height"] <= 422 / 6
    assert page.locator("#tools").bounding_box()["y"] < 0


def test_a_closed_survey_shows_its_title_and_contact(site, device):
    survey = site.publish(f'contact = "The works council, room 12"\n{SMALL}')
    site.store.set_schedule(survey.key, Schedule(closes=TODAY.replace(year=2020)))
    page = device.open(site.link(survey))
    heading(page, "This survey is closed")
    expect(page.locator("main")).to_contain_text("A small survey")
    expect(page.locator(".contact")).to_contain_text("The works council, room 12")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    assert not re.search("[0-9a-f]{16}", page.locator("body").inner_text())


def test_a_number_in_an_arabic_question_keeps_its_order(site, device):
    arabic = SMALL.replace("Did you fall asleep at work?", "هل اتصلت بالرقم 0800 555 0199؟")
    page = device.open(site.link(site.publish(f'language = "ar"\n{arabic}')))
    press(page, "ابدأ")
    number = page.locator("legend bdi")
    expect(number).to_have_text("0800 555 0199")
    expect(number).to_have_attribute("dir", "ltr")
