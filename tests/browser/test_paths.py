"""The questions that one person gets, by skip logic or drawn at random."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from survey.store import PublishedSurvey
from tests.browser.conftest import Site
from tests.browser.respondent import (
    answer,
    choose,
    entry,
    heading,
    option,
    press,
    review,
    wait_sent,
)
from tests.conftest import SMALL
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
    page.get_by_text("More about protection").tap()
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
    heading(page, OFTEN)
    choose(page, "One or two")
    press(page, "Go to review")
    assert reviewed_questions(page) == [NIGHTS, OFTEN, TIRED]


def bounds(page: Page) -> list[list[str]]:
    """Return the three bounds of every question from the table."""
    page.get_by_text("More about protection").tap()
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
    expect(page.locator(".questions details")).to_contain_text(
        f"by a factor of at most {nights[0]}."
    )
    answer_pages(page, "No")
    heading(page, TIRED)
    page.get_by_text("How this answer is protected").tap()
    expect(page.locator(".questions details")).to_contain_text("by a factor of at most 2.8.")
    expect(page.locator(".questions details")).not_to_contain_text("depend on earlier")
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
    expect(page.get_by_text("2 questions, about 1 minute.")).to_be_visible()
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
    expect(page.locator(".reported dt")).to_have_count(2)
    expect(page.get_by_text("You were not asked the other questions.")).to_be_visible()


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
    expect(page.get_by_text("Up to 3 questions, about 2 minutes.")).to_be_visible()
    page = device.open(site.link(site.publish(SKIPS)))
    expect(page.get_by_text("Up to 4 questions, about 2 minutes.")).to_be_visible()


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


# -- one question at a time


def publish_single(site: Site, toml: str = SMALL) -> PublishedSurvey:
    return site.publish(f'layout = "auto"\n{toml}')


def test_one_question_is_shown_at_a_time_with_its_place_and_the_title_of_its_page(site, device):
    page = device.open(site.link(publish_single(site)))
    press(page, "Start")
    heading(page, "Did you fall asleep at work?")
    expect(page.get_by_role("progressbar", name="Question 1 of 2")).to_be_visible()
    expect(page.get_by_text("1 of 2", exact=True)).to_be_visible()
    expect(page.locator(".section")).to_have_text("First page")
    expect(page.locator("fieldset")).to_have_count(1)
    answer_pages(page, "Yes")
    heading(page, "Did anybody press you to stay longer?")
    answer_pages(page, "Often")
    heading(page, "Check your answers")


def test_a_survey_of_more_than_20_questions_shows_whole_pages_by_default(site, device):
    questions = "".join(
        f'[[questions]]\nid = "q{n}"\ntype = "yes_no"\ntext = "Question {n}?"\n' for n in range(21)
    )
    long = f'slug = "small"\ntitle = "S"\nepsilon = 0.1\n{questions}'
    for layout, shown in (("auto", 21), ("questions", 1)):
        page = device.open(site.link(site.publish(f'layout = "{layout}"\n{long}')))
        press(page, "Start")
        expect(page.locator("fieldset")).to_have_count(shown)


def test_the_phones_back_goes_one_page_back_and_keeps_the_answers(site, device):
    page = device.context.new_page()
    page.goto(f"{site.url}/healthz")
    page.goto(site.link(publish_single(site)))
    answer(page, ["Yes", "Often"])
    url = page.url
    page.go_back()
    heading(page, "Did anybody press you to stay longer?")
    expect(option(page, "Often").locator("input")).to_be_checked()
    page.go_back()
    heading(page, "Did you fall asleep at work?")
    page.go_forward()
    heading(page, "Did anybody press you to stay longer?")
    press(page, "Back")
    press(page, "Back")
    heading(page, "A small survey")
    assert page.url == url
    assert device.warnings == 0
    page.go_back()
    page.wait_for_url("**/healthz")


def test_after_sending_the_phones_back_leaves_the_survey(site, device):
    page = device.context.new_page()
    page.goto(f"{site.url}/healthz")
    page.goto(site.link(publish_single(site)))
    answer(page, ["Yes", "Often"])
    press(page, "Send")
    wait_sent(page)
    page.go_back()
    page.wait_for_url("**/healthz")


def test_reloading_asks_first_while_there_are_answers_and_not_after_sending(site, device):
    page = device.open(site.link(publish_single(site)))
    heading(page, "A small survey")
    page.reload()
    press(page, "Start")
    assert device.warnings == 0
    answer_pages(page, "Yes")
    page.reload()
    heading(page, "A small survey")
    assert device.warnings == 1
    answer(page, ["Yes", "Often"])
    press(page, "Send")
    wait_sent(page)
    page.reload()
    heading(page, "This device has already sent answers")
    assert device.warnings == 1


def test_more_pages_than_a_tab_has_entries_are_gone_through_left_and_sent(site, device):
    pages = "".join(
        f'[[pages]]\n[[pages.questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Number {i}?"\n'
        for i in range(1, 61)
    )
    link = site.link(site.publish(f'slug = "small"\ntitle = "S"\nepsilon = "0.1"\n{pages}'))
    for last in (3, 60):
        page = device.open(link)
        press(page, "Start")
        answer_pages(page, *["Yes"] * last)
        if last == 3:
            page.route("https://www.wikipedia.org/", lambda route: route.fulfill(body="Neutral"))
            press(page, "Leave now")
            page.wait_for_url("https://www.wikipedia.org/")
    heading(page, "Check your answers")
    press(page, "Back")
    expect(page.get_by_text("Number 60?")).to_be_visible()
    press(page, "Continue")
    press(page, "Send")
    wait_sent(page)


def test_enter_in_a_number_field_continues(site, device):
    number = (
        'slug = "small"\ntitle = "S"\nepsilon = 1\n[[questions]]\nid = "n"\ntype = "number"\n'
        'text = "How many?"\nlow = 0\nhigh = 12\n'
    )
    page = device.open(site.link(publish_single(site, number)))
    press(page, "Start")
    page.locator("input.entry").fill("3")
    page.keyboard.press("Enter")
    heading(page, "Check your answers")


def test_a_second_tab_detects_at_once_that_a_report_was_sent(site, device):
    link = site.link(publish_single(site))
    first, second = device.open(link), device.open(link)
    press(second, "Start")
    choose(second, "No")
    first.bring_to_front()
    answer(first, ["Yes", "Often"])
    press(first, "Send")
    wait_sent(first)
    second.bring_to_front()
    heading(second, "This device has already sent answers")
    expect(second.locator("main")).to_contain_text("answers you gave just now were not used")
    assert len(set(device.bodies)) == 1


def test_two_taps_on_send_send_once_and_show_no_notice(site, device):
    page = device.open(site.link(publish_single(site)))
    answer(page, ["Yes", "Often"])
    page.locator(".review > .button").evaluate("(button) => { button.click(); button.click(); }")
    wait_sent(page)
    expect(page.locator("main")).not_to_contain_text("were not used")
    assert len(device.bodies) == 1


def test_a_date_that_is_rounded_to_months_is_asked_as_a_month_and_a_year(site, device):
    date = (
        'slug = "small"\ntitle = "S"\nepsilon = 1\n[[questions]]\nid = "d"\ntype = "date"\n'
        'text = "Since when?"\nlow = 2020-01-15\nhigh = 2023-12-25\nstep = 30\n'
    )
    page = device.open(site.link(publish_single(site, date)))
    press(page, "Start")
    expect(page.locator("fieldset")).to_have_accessible_description(re.compile("Month and year"))
    page.locator("input.entry").fill("13/2021")
    press(page, "Continue")
    expect(page.locator(".error-summary")).to_contain_text("Enter a month and a year")
    page.locator("input.entry").fill("5/2021")
    press(page, "Continue")
    expect(page.locator(".answers b")).to_have_text("May 2021")


def test_a_month_or_year_is_shown_as_typed_or_as_rounded(site, device):
    # 1981 has one point of the grid, its last day; February 2021 has none.
    cases = (
        ("1980-01-01", "2010-12-24", 365, "1981", "1981"),
        ("2021-02-01", "2021-12-06", 28, "2/2021", "February 2021"),
        ("2021-01-31", "2021-12-27", 30, "2/2021", "rounded to March 2021"),
    )
    for low, high, step, typed, shown in cases:
        date = (
            'slug = "small"\ntitle = "S"\nepsilon = 1\n[[questions]]\nid = "d"\ntype = "date"\n'
            f'text = "Since when?"\nlow = {low}\nhigh = {high}\nstep = {step}\n'
        )
        page = device.open(site.link(publish_single(site, date)))
        press(page, "Start")
        page.locator("input.entry").fill(typed)
        press(page, "Continue")
        expect(page.locator(".answers dd").first).to_have_text(shown)


def test_a_long_list_can_be_searched_and_the_search_is_not_sent(site, device):
    options = ", ".join(f'{{id = "o{n}", label = "Town {n}"}}' for n in range(25))
    towns = (
        'slug = "small"\ntitle = "S"\nepsilon = 1\n[[questions]]\nid = "t"\n'
        f'type = "single_choice"\ntext = "Which town?"\noptions = [{options}]\n'
    )
    page = device.open(site.link(publish_single(site, towns)))
    press(page, "Start")
    page.get_by_role("searchbox", name="Search the answers").fill("town 17")
    expect(page.locator("label.choice:visible")).to_have_text(["Town 17", "Prefer not to say"])
    choose(page, "Town 17")
    press(page, "Continue")
    expect(page.locator(".answers b")).to_have_text("Town 17")
    press(page, "Send")
    wait_sent(page)
    assert b"town" not in (device.bodies[0] or b"")
