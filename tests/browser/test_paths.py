"""The questions that one person gets, by skip logic or drawn at random."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.respondent import choose, entry, heading, option, press, review, wait_sent
from tests.surveys import EVERY_TYPE, SAMPLED, SKIPS

pytestmark = pytest.mark.web

NIGHTS = "Do you work at night?"
OFTEN = "How many nights a week?"
SLEEP = "How many hours do you sleep after it?"
TIRED = "Are you tired?"


@pytest.fixture
def page(site, device) -> Page:
    """Open a survey whose questions depend on each other."""
    return device.open(site.link(site.publish(SKIPS)))


def answer_pages(page: Page, *labels: str) -> None:
    for label in labels:
        choose(page, label)
        press(page, "Continue")


def reviewed_questions(page: Page) -> list[str]:
    """Return the questions in the review."""
    heading(page, "Check your answers")
    return page.locator(".answers dt").all_inner_texts()


def test_the_start_page_says_that_the_time_taken_may_hint_at_the_questions(page, site, device):
    expect(page.get_by_text("The time you take may hint at which you saw.")).to_be_visible()
    plain = device.open(site.link(site.publish()))
    heading(plain, "A small survey")
    expect(plain.get_by_text("The time you take")).to_have_count(0)


def test_questions_that_do_not_apply_are_skipped_forwards_and_backwards(page):
    press(page, "Start")
    heading(page, NIGHTS)
    answer_pages(page, "No")
    heading(page, TIRED)
    expect(page.get_by_text("Page 4 of 4")).to_be_visible()
    press(page, "Back")
    heading(page, NIGHTS)
    answer_pages(page, "Yes")
    heading(page, OFTEN)
    answer_pages(page, "One or two")
    heading(page, TIRED)
    answer_pages(page, "Yes")
    assert reviewed_questions(page) == [NIGHTS, OFTEN, TIRED]
    press(page, "Back")
    heading(page, TIRED)
    press(page, "Back")
    heading(page, OFTEN)


def test_an_empty_question_counts_as_prefer_not_to_say_for_questions_that_depend_on_it(page):
    press(page, "Start")
    press(page, "Continue")
    press(page, "Continue")
    heading(page, TIRED)


def test_new_questions_after_a_change_come_before_the_review(page):
    press(page, "Start")
    answer_pages(page, "No", "Yes")
    assert reviewed_questions(page) == [NIGHTS, TIRED]
    page.get_by_role("button", name=f"Change: {NIGHTS}").tap()
    choose(page, "Yes")
    press(page, "Go to review")
    heading(page, OFTEN)
    choose(page, "More")
    press(page, "Go to review")
    heading(page, SLEEP)
    press(page, "Go to review")
    press(page, "Go to review")
    assert reviewed_questions(page) == [NIGHTS, OFTEN, SLEEP, TIRED]
    expect(review(page, "sleep")).to_contain_text("Prefer not to say left empty")
    page.get_by_role("button", name=f"Change: {NIGHTS}").tap()
    choose(page, "No")
    press(page, "Go to review")
    assert reviewed_questions(page) == [NIGHTS, TIRED]


def test_going_back_after_a_change_does_not_skip_open_questions(page):
    press(page, "Start")
    answer_pages(page, "No", "Yes")
    page.get_by_role("button", name=f"Change: {NIGHTS}").tap()
    choose(page, "Yes")
    press(page, "Back")
    heading(page, "Nights")
    press(page, "Start")
    press(page, "Continue")
    heading(page, OFTEN)
    answer_pages(page, "One or two")
    heading(page, TIRED)


def bounds(page: Page) -> list[list[str]]:
    """Return the three bounds of every question from the table."""
    page.locator("summary").first.tap()
    rows = page.locator(".protection tbody tr").all()
    return [row.locator("td").all_inner_texts()[2:] for row in rows]


@pytest.mark.security
def test_the_bound_of_a_question_includes_all_linked_questions(page, site, device):
    # Epsilon 1 rounds to factors of 2.7 and 2.8; three linked questions have 3 times that epsilon.
    nights, often, sleep, tired = bounds(page)
    assert nights == often == sleep
    assert nights[0] == "21"
    assert tired == ["2.8", "24%", "74%"]
    expect(page.locator(".protection caption")).to_contain_text("the lines of all linked questions")
    expect(page.locator(".example")).to_contain_text(NIGHTS)
    expect(page.locator(".example")).to_contain_text(
        "Their lines change the odds of a guess about your answer by a factor of at most "
        f"{nights[0]}. A 10% suspicion"
    )
    press(page, "Start")
    page.get_by_text("How this answer is protected").tap()
    expect(page.locator(".question details")).to_contain_text(
        f"by a factor of at most {nights[0]}."
    )
    answer_pages(page, "No")
    heading(page, TIRED)
    page.get_by_text("How this answer is protected").tap()
    expect(page.locator(".question details")).to_contain_text("by a factor of at most 2.8.")
    expect(page.locator(".question details")).not_to_contain_text("depend on earlier")
    plain = device.open(site.link(site.publish()))
    heading(plain, "A small survey")
    expect(plain.locator(".protection")).not_to_contain_text("linked")


@pytest.mark.security
def test_every_path_sends_one_report_of_the_same_form_and_length(site, new_device):
    link = site.link(site.publish(SKIPS))
    bodies = []
    for labels, hours in ((("No", "Yes"), ""), (("Yes", "More"), "5"), (("Yes", "One or two"), "")):
        device = new_device()
        page = device.open(link)
        press(page, "Start")
        answer_pages(page, *labels)
        if hours:
            heading(page, SLEEP)
            entry(page).fill(hours)
            press(page, "Continue")
        if labels[0] == "Yes":
            answer_pages(page, "No")
        press(page, "Send")
        wait_sent(page)
        (body,) = device.bodies
        bodies.append(body)
    assert len({len(body) for body in bodies}) == 1
    for body in bodies:
        codes = json.loads(body)["codes"]
        assert len(codes) == 4
        assert None not in codes


# -- sampling


def test_only_the_drawn_questions_appear(site, device):
    page = device.open(site.link(site.publish(SAMPLED)))
    expect(page.get_by_text("We ask you 2 of 5 questions, chosen at random.")).to_be_visible()
    press(page, "Start")
    headings = []
    for number in (1, 2):
        expect(page.get_by_text(f"Page {number} of 2")).to_be_visible()
        headings.append(page.locator("h1").inner_text())
        answer_pages(page, "Yes")
    assert len(set(headings)) == 2
    assert reviewed_questions(page) == headings
    press(page, "Send")
    wait_sent(page)
    codes = json.loads(device.bodies[0])["codes"]
    indices = sorted(int(re.sub(r"\D", "", text)) for text in headings)
    assert [i for i, code in enumerate(codes) if code is not None] == indices
    page.get_by_text("See what was sent").tap()
    expect(page.get_by_text("You were not asked this.", exact=True)).to_have_count(3)


def test_frequencies_count_people_who_get_the_question(site, device):
    page = device.open(site.link(site.publish(SAMPLED)))
    expect(page.locator(".example")).to_contain_text(
        "is not proof. The numbers count people who get the question."
    )
    expect(page.locator(".protection caption")).to_contain_text(
        "The numbers count people who get the question."
    )
    plain = device.open(site.link(site.publish(EVERY_TYPE)))
    heading(plain, "Work and health")
    caption = plain.locator(".protection caption")
    expect(caption).to_contain_text("The numbers count lines about the option.")
    expect(caption).not_to_contain_text("people who get")


def test_with_sampling_and_skip_logic_the_start_page_says_up_to(site, device):
    definition = SKIPS.replace("epsilon = 1", "epsilon = 1\nquestions_per_person = 1", 1)
    page = device.open(site.link(site.publish(definition)))
    expect(page.get_by_text("We ask you up to 3 of 4 questions")).to_be_visible()
    page = device.open(site.link(site.publish(SKIPS)))
    expect(page.get_by_text("Up to 4 questions on 4 pages.")).to_be_visible()


def test_questions_are_drawn_once_per_visit(site, device):
    page = device.open(site.link(site.publish(SAMPLED)))
    headings = set()
    for _ in range(6):
        press(page, "Start")
        headings.add(page.locator("h1").inner_text())
        press(page, "Back")
        heading(page, "Some of five")
    assert len(headings) == 1


def test_different_people_get_different_questions(site, device):
    link = site.link(site.publish(SAMPLED))
    headings = set()
    page = device.open(link)
    # One question alone would come first 30 times with probability (2/5)^30.
    for _ in range(30):
        press(page, "Start")
        headings.add(page.locator("h1").inner_text())
        if len(headings) > 1:
            break
        page.reload()
    assert len(headings) > 1


@pytest.mark.security
def test_a_generator_that_fails_when_questions_are_drawn_asks_nothing(site, device):
    page = device.open(site.link(site.publish(SAMPLED)))
    heading(page, "Some of five")
    page.evaluate("void (crypto.getRandomValues = () => { throw new Error('no entropy') })")
    press(page, "Start")
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("no secure random numbers")
    expect(option(page, "Yes")).to_have_count(0)
    assert device.posts == []
