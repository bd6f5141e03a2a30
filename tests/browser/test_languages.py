"""Respondents read a survey in their language; the server never learns which one."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from survey.respondent_texts import LABEL_LANGUAGES, LANGUAGES, SOURCE, say
from tests.browser.respondent import choose, heading, press, wait_sent
from tests.conftest import long_unless

pytestmark = pytest.mark.web

NIGHTS = """
slug = "small"
title = { en = "Nights", es = "Noches", pt = "Noites", ar = "ليالٍ", nl = "Nachten" }
introduction = { en = "About your nights.", es = "Sobre sus noches." }
epsilon = 1

[[pages]]
[[pages.questions]]
id = "slept"
type = "yes_no"
text = { en = "Did you fall asleep?", es = "¿Se durmió?", pt = "Adormeceu?", ar = "هل نمت؟" }

[[pages]]
[[pages.questions]]
id = "where"
type = "single_choice"
text = { en = "Where?", es = "¿Dónde?", pt = "Onde?", ar = "أين؟" }
prefer_not_to_say = false
options = [{ id = "here", label = { en = "Here", es = "Aquí", ar = "هنا" } },
           { id = "there", label = "There" }]
"""
LOCALES = {"es-MX": "es", "pt-BR": "pt", "ar-EG": "ar", "en-GB": "en", "fr": "en"}
TITLES = {"en": "Nights", "es": "Noches", "pt": "Noites", "ar": "ليالٍ"}


@pytest.fixture
def survey(site):
    return site.publish(NIGHTS)


def language_and_direction(page: Page) -> tuple[str | None, str | None]:
    html = page.locator("html")
    return html.get_attribute("lang"), html.get_attribute("dir")


def read_in(page: Page, language: str) -> None:
    page.locator("#tools select").select_option(language)


@pytest.mark.parametrize("locale", long_unless(["pt-BR", "fr"], LOCALES))
def test_the_page_uses_the_browsers_language_if_the_survey_has_it(site, survey, new_device, locale):
    language = LOCALES[locale]
    page = new_device(locale=locale).open(site.link(survey))
    heading(page, TITLES[language])
    assert language_and_direction(page) == (language, "rtl" if language == "ar" else "ltr")
    expect(page.get_by_role("button", name=say(language, "start.button"))).to_be_visible()


@pytest.mark.parametrize("language", long_unless(["ar"], LANGUAGES))
def test_a_whole_survey_can_be_answered_in_every_language(site, new_device, language):
    title, *_ = re.findall("title = {.*}", NIGHTS)
    titles = ", ".join(f'{tag} = "{tag}"' for tag in LANGUAGES)
    survey = site.publish(NIGHTS.replace(title, f"title = {{ {titles} }}"))
    device = new_device(locale=language)
    page = device.open(site.link(survey))
    press(page, say(language, "start.button"))
    choose(page, say(language if language in LABEL_LANGUAGES else SOURCE, "option.yes"))
    press(page, say(language, "question.next"))
    choose(page, {"es": "Aquí", "ar": "هنا"}.get(language, "Here"))
    press(page, say(language, "question.next"))
    heading(page, say(language, "review.heading"))
    press(page, say(language, "review.send"))
    heading(page, say(language, "sent.heading"))
    assert json.loads(device.bodies[0])["definition"] == survey.sha256


def test_no_gap_follows_a_chinese_sentence(site, new_device):
    chinese = NIGHTS.replace('title = { en = "Nights",', 'title = { en = "Nights", zh = "夜晚",')
    survey = site.publish(f'organization = "医院"\nhelpline = "请拨打 112。"\n{chinese}')
    device = new_device(locale="zh-CN").disable_retries()
    page = device.open(site.link(survey))
    read = []

    def look(state: str) -> None:
        heading(page, say("zh-Hans", state) if "." in state else state)
        page.evaluate("document.querySelectorAll('details').forEach((e) => (e.open = true))")
        read.append(page.locator("main").inner_text())

    look("夜晚")
    press(page, say("zh-Hans", "start.button"))
    look("Did you fall asleep?")
    choose(page, "No")
    press(page, say("zh-Hans", "question.next"))
    choose(page, "Here")
    press(page, say("zh-Hans", "question.next"))
    look("review.heading")
    device.context.set_offline(True)
    press(page, say("zh-Hans", "review.send"))
    expect(page.get_by_role("status")).to_contain_text("再试")
    look("waiting.heading")
    device.context.set_offline(False)
    look("sent.heading")
    text = "\n".join(read)
    assert re.findall(r".{9}[。：！？][ \u00a0].{9}", text) == []
    assert text.count("。") > 40


def test_a_number_and_its_unit_keep_their_order_in_arabic(site, new_device):
    number = 'type = "number"\nlow = 0\nhigh = 80\nunit = "ساعة"'
    survey = site.publish(NIGHTS.replace('type = "yes_no"', number))
    page = new_device(locale="ar").open(site.link(survey))
    press(page, say("ar", "start.button"))
    hint = page.locator(".hint")
    number = hint.get_by_text("80", exact=True).bounding_box()
    unit = hint.get_by_text("ساعة", exact=True).bounding_box()
    assert unit["x"] + unit["width"] < number["x"]


def test_a_minus_sign_stays_left_of_its_number_in_arabic(site, new_device):
    number = 'type = "number"\nlow = -20\nhigh = 40\nunit = "درجة"'
    text = 'text = { en = "Was it {slept|cold}?", ar = "هل كانت {slept|باردة}؟" }'
    definition = re.sub('text = { en = "Where.*', text, NIGHTS.replace('type = "yes_no"', number))
    survey = site.publish(f"allow_skip_logic = true\n{definition}")
    page = new_device(locale="ar").open(site.link(survey))
    press(page, say("ar", "start.button"))
    page.locator("input.entry").fill("-3")
    assert page.locator("input.entry").evaluate("(e) => getComputedStyle(e).direction") == "ltr"
    press(page, say("ar", "question.next"))
    assert_sign_left_of_digit(page.locator("h1, legend").first)
    choose(page, "هنا")
    press(page, say("ar", "question.next"))
    heading(page, say("ar", "review.heading"))
    assert_sign_left_of_digit(page.locator("dd b").first)


def assert_sign_left_of_digit(text: Locator) -> None:
    sign, digit = text.evaluate(
        """(element) => {
          const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const at = node.data.indexOf("−");
            if (at < 0) continue;
            return [at, at + 1].map((from) => {
              const range = document.createRange();
              range.setStart(node, from);
              range.setEnd(node, from + 1);
              return range.getBoundingClientRect().left;
            });
          }
        }"""
    )
    assert sign < digit


def test_changing_the_language_keeps_the_answers(site, survey, device):
    page = device.open(site.link(survey))
    press(page, "Start")
    choose(page, "No")
    read_in(page, "ar")
    expect(page.get_by_role("heading", level=1)).to_have_text("هل نمت؟")
    assert language_and_direction(page) == ("ar", "rtl")
    assert page.locator("input:checked + span").inner_text() == "لا"
    press(page, "متابعة")
    choose(page, "There")
    read_in(page, "es")
    press(page, "Continuar")
    heading(page, "Revise sus respuestas")
    assert page.locator("dd b").all_inner_texts() == ["No", "There"]
    read_in(page, "en")
    press(page, "Send")
    wait_sent(page)


@pytest.mark.security
def test_changing_the_language_keeps_invalid_entries(site, device):
    survey = site.publish(
        NIGHTS.replace(
            '[[pages]]\n[[pages.questions]]\nid = "slept"',
            '[[pages]]\n[[pages.questions]]\nid = "hours"\ntype = "number"\ntext = "Hours?"\n'
            'low = 0\nhigh = 9\n[[pages.questions]]\nid = "places"\ntype = "multiple_choice"\n'
            'text = "Places?"\nmax_ticks = 1\noptions = [{ id = "a", label = "A" }, '
            '{ id = "b", label = "B" }]\n[[pages.questions]]\nid = "slept"',
        )
    )
    page = device.open(site.link(survey))
    press(page, "Start")
    page.locator("input.entry").fill("9x")
    choose(page, "A")
    choose(page, "B")
    read_in(page, "es")
    expect(page.locator("input.entry")).to_have_value("9x")
    expect(page.locator("input:checked")).to_have_count(2)


def test_a_page_that_cannot_start_offers_leave_now_and_the_languages(site, survey, new_device):
    page = new_device(locale="ar").open(f"{site.link(survey)[:-1]}")
    heading(page, say("ar", "cannot.heading"))
    read_in(page, "en")
    heading(page, "This survey cannot start")
    page.route("https://www.wikipedia.org/", lambda route: route.fulfill(body="Neutral"))
    press(page, "Leave now")
    page.wait_for_url("https://www.wikipedia.org/")


@pytest.mark.parametrize("language", ["en", "ar"])
def test_a_label_in_the_other_direction_never_overlaps_its_radio_button(site, new_device, language):
    label = {"en": "إجابة طويلة جدًا " * 8, "ar": "A very long answer in English " * 6}[language]
    survey = site.publish(NIGHTS.replace('label = "There"', f'label = "{label.strip()}"'))
    page = new_device(locale=language).open(site.link(survey))
    press(page, say(language, "start.button"))
    choose(page, say(language, "option.yes"))
    press(page, say(language, "question.next"))
    boxes = page.evaluate("""() => [...document.querySelectorAll("label.choice")].map((row) => {
        const text = document.createRange();
        text.selectNodeContents(row.querySelector("span"));
        const mark = row.querySelector("input").getBoundingClientRect();
        return [...text.getClientRects()].some((line) => line.width > 0
            && line.left < mark.right && mark.left < line.right
            && line.top < mark.bottom && mark.top < line.bottom);
    })""")
    assert boxes == [False] * len(boxes)
    assert len(boxes) == 2


def test_choosing_a_language_sends_no_request_and_is_not_stored(site, survey, device):
    page = device.open(site.link(survey))
    heading(page, "Nights")
    before = len(device.requests)
    for language in ("es", "ar", "pt", "nl", "en", "ar"):
        read_in(page, language)
    heading(page, "ليالٍ")
    assert len(device.requests) == before
    assert page.evaluate("({...localStorage, ...sessionStorage})") == {}
    press(page, "ابدأ")
    choose(page, "نعم")
    press(page, "متابعة")
    choose(page, "هنا")
    press(page, "متابعة")
    press(page, "إرسال")
    heading(page, "أُرسلت. شكرًا لك.")
    (body,) = device.bodies
    assert set(json.loads(body)) == {
        *("definition", "report_id", "stratum", "codes", "invitation", "pad")
    }
    assert len(body) == survey.definition.report_bytes
    for request in device.requests:
        assert "ar" not in request.all_headers().get("accept-language", "")


def test_untranslated_texts_name_their_own_language(site, survey, device):
    page = device.open(site.link(survey))
    read_in(page, "ar")
    lead = page.locator(".lead p")
    expect(lead).to_have_text("About your nights.")
    assert (lead.get_attribute("lang"), lead.get_attribute("dir")) == ("en", "auto")
    title = page.get_by_role("heading", level=1)
    assert title.get_attribute("lang") == "ar"


def test_a_survey_in_another_language_has_an_english_interface(site, survey, new_device):
    page = new_device(locale="nl").open(site.link(survey))
    heading(page, "Nachten")
    assert language_and_direction(page) == ("en", "ltr")
    assert page.get_by_role("heading", level=1).get_attribute("lang") == "nl"
    options = page.locator("#tools option")
    assert options.all_inner_texts() == ["English", "العربية", "Español", "Nederlands", "Português"]


def test_changing_the_language_by_keyboard_keeps_the_focus(site, survey, new_device):
    page = new_device(has_touch=False, is_mobile=False).open(site.link(survey))
    page.locator("#tools select").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("html")).to_have_attribute("lang", "ar")
    assert page.evaluate("document.activeElement.tagName") == "SELECT"


def test_the_waiting_and_sent_views_change_language_too(site, survey, device):
    page = device.open(site.link(survey))
    press(page, "Start")
    choose(page, "Yes")
    press(page, "Continue")
    choose(page, "Here")
    press(page, "Continue")
    device.context.set_offline(True)
    press(page, "Send")
    expect(page.get_by_role("status")).to_contain_text("Trying again in")
    read_in(page, "es")
    expect(page.get_by_role("status")).to_contain_text("Nuevo intento en")
    device.context.set_offline(False)
    heading(page, "Enviado. Gracias.")
    read_in(page, "pt")
    heading(page, "Enviado. Obrigado.")
    assert len(set(device.bodies)) == 1
