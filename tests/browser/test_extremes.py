"""Surveys at the limits of what can be published, and devices with a wrong clock."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from survey.collect.publication import publish
from survey.errors import DefinitionError
from survey.questionnaire.loading import load
from survey.respondent_texts import say
from survey.settings import Caps
from tests.browser.respondent import answer_and_send, choose, heading, press, review, wait_sent
from tests.conftest import SMALL, TODAY, long_unless

pytestmark = pytest.mark.web

HEAD = 'slug = "small"\ntitle = "Edges"\n'
N_QUESTIONS = 60
CLOCKS = {"1970": 0, "2100": 4_102_444_800}
"""Clock settings in seconds since 1970."""
WIDTHS = {"phone": 390, "desk": 1280}


def one_page(*questions: str) -> str:
    """Return a survey with all questions on one page."""
    pages = "\n".join(f"[[pages.questions]]\n{question}" for question in questions)
    return f"{HEAD}epsilon = 0.3\n[[pages]]\n{pages}"


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    wider: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return wider


def test_sixty_questions_can_be_answered_reviewed_and_sent_in_one_report(site, device):
    survey = site.publish(
        one_page(
            *(f'id = "q{i}"\ntype = "yes_no"\ntext = "Question {i}?"' for i in range(N_QUESTIONS))
        )
    )
    page = device.open(site.link(survey))
    press(page, "Start")
    page.get_by_role("radio", name="Yes").nth(N_QUESTIONS - 1).check()
    press(page, "Continue")
    expect(page.locator(".error-summary li")).to_have_count(N_QUESTIONS - 1)
    press(page, "Continue")
    heading(page, "Check your answers")
    expect(review(page, f"q{N_QUESTIONS - 1}")).to_contain_text("Yes")
    expect(review(page, "q0")).to_contain_text("Prefer not to say")
    press(page, "Send")
    wait_sent(page)
    (body,) = device.bodies
    assert len(json.loads(body)["codes"]) == N_QUESTIONS
    assert len(body) == survey.definition.report_bytes
    assert site.store.n_pending(survey.key) == 1


def test_publishing_rejects_a_label_of_10_000_characters_with_the_reason(site):
    long = SMALL.replace('label = "Never"', f'label = "{"n" * 10_000}"')
    with pytest.raises(DefinitionError, match="has 10,000 characters; at most 300 fit"):
        publish(site.store, load(long.encode(), "s.toml", Caps()), TODAY)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_the_longest_texts_without_a_space_stay_within_the_page(site, new_device, width):
    label, passage = "n" * 300, "w" * 10_000
    survey = site.publish(
        HEAD.replace('"Edges"', f'"{label}"')
        + f'introduction = "{passage}"\nconsent = "{passage}"\nepsilon = 1\n'
        + f'[[pages]]\ntitle = "{label}"\n[[pages.questions]]\nid = "long"\n'
        + f'type = "single_choice"\ntext = "{"q" * 1000}"\nhelp = "{passage[:1000]}"\n'
        + f'options = [{{ id = "a", label = "{label}" }}, {{ id = "b", label = "b" }}]'
    )
    page = new_device(viewport={"width": width, "height": 844}).open(site.link(survey))
    heading(page, label)
    assert overflow(page) == 0
    press(page, "I agree, start")
    expect(page.get_by_role("radio")).to_have_count(3)
    assert overflow(page) == 0
    press(page, "Continue")
    expect(page.locator(".error-summary")).to_be_focused()
    assert overflow(page) == 0
    choose(page, label)
    press(page, "Continue")
    heading(page, "Check your answers")
    assert overflow(page) == 0


def test_each_option_has_its_own_writing_direction(site, device):
    survey = site.publish(
        one_page(
            'id = "mixed"\ntype = "single_choice"\ntext = "Where? (أين)"\noptions = ['
            '{ id = "a", label = "نعم (yes)!" }, { id = "b", label = "No (لا)!" }]'
        )
    )
    page = device.open(site.link(survey))
    press(page, "Start")
    labels = page.locator("label.choice bdi")
    expect(labels).to_have_count(3)
    directions = labels.evaluate_all("all => all.map((label) => getComputedStyle(label).direction)")
    assert directions == ["rtl", "ltr", "ltr"]
    choose(page, "نعم (yes)!")
    press(page, "Continue")
    value = review(page, "mixed").locator("b")
    expect(value).to_have_text("نعم (yes)!")
    assert value.evaluate("(element) => getComputedStyle(element).direction") == "rtl"


@pytest.mark.parametrize("clock", long_unless(["1970"], CLOCKS))
def test_a_device_with_a_wrong_clock_sends_its_report(site, device, clock):
    survey = site.publish()
    device.context.clock.set_fixed_time(CLOCKS[clock])
    page = device.open(site.link(survey))
    assert page.evaluate("Date.now()") == 1000 * CLOCKS[clock]
    answer_and_send(page)
    wait_sent(page)
    assert site.store.n_pending(survey.key) == 1


def test_a_quoted_text_names_its_own_language(site, new_device):
    survey = site.publish(
        one_page(
            'id = "slept"\ntype = "yes_no"\ntext = "Dormiu?"\nprefer_not_to_say = "Nada"',
            'id = "hours"\ntype = "number"\ntext = "Quantas?"\nlow = 0\nhigh = 9\nstep = "0.5"\n'
            'unit = "horas"',
        ).replace("title", 'language = "pt"\ntitle', 1)
    )
    page = new_device(locale="es").open(site.link(survey))
    quoted = page.locator(".privacy bdi[lang=pt]").first
    expect(quoted).to_have_text("Sim")
    press(page, say("pt", "start.button"))
    press(page, say("pt", "question.next"))
    summary = page.locator(".error-summary bdi[lang=pt]")
    assert summary.all_inner_texts()[:2] == ["Dormiu?", "Nada"]
    assert page.locator(".hint [lang=pt]").all_inner_texts() == ["horas"]


def test_decimals_use_the_mark_of_the_language_and_accept_either_mark(site, device):
    survey = site.publish(
        one_page(
            'id = "hours"\ntype = "number"\ntext = "¿Cuántas?"\nlow = 0\nhigh = 9\nstep = "0.5"'
        ).replace("title", 'language = "es"\ntitle', 1)
    )
    page = device.open(site.link(survey))
    press(page, say("es", "start.button"))
    expect(page.locator(".hint")).to_contain_text("0,5")
    for typed in ("2.5", "2,5"):
        page.locator("input.entry").fill(typed)
        press(page, say("es", "question.next"))
        expect(review(page, "hours").locator("b")).to_have_text("2,5")
        press(page, say("es", "question.back"))
        expect(page.locator("input.entry")).to_have_value("2,5")
