"""A newcomer writes, tests and publishes a survey in a browser; every page is checked."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.edits import add_question
from survey.questionnaire.loading import parse
from tests import surveys
from tests.browser import test_looks
from tests.browser.research import sign_in
from tests.conftest import EMAIL, PASSWORD, long_unless, wait_until

pytestmark = pytest.mark.web

look = test_looks.look
LOOK_AND_SAVE = 2
"""Requests that an edit triggers."""


def write(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)


def press(page: Page, name: str) -> None:
    """Press a button that leads to a page; a save under way may hold it up for a moment."""
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).first.click()


def wait_saved(page: Page) -> None:
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()


@pytest.mark.parametrize("window", long_unless({"phone"}, ["phone", "desk"]))
def test_a_newcomer_writes_tests_and_publishes_a_survey_without_help(
    serve,
    store,
    researcher,
    new_device,
    look,
    window,
):
    url, device = serve(), new_device(**({} if window == "phone" else test_looks.DESK))
    device.context.add_init_script(AXE_SCRIPT)
    page = sign_in(device, url)
    page.get_by_role("link", name="New survey", exact=True).click()
    press(page, "Create draft")
    expect(page.get_by_role("alert")).to_be_visible()
    look(page, "builder-new-wrong")
    write(page, "Title", "Night work and health")
    press(page, "Create draft")
    look(page, "builder-outline-empty")
    write_questions(page, look)
    page.get_by_role("link", name="Texts and settings").click()
    write(page, "Contact", "The team, team@example.org")
    press(page, "Save")
    wait_saved(page)
    look(page, "builder-texts")
    page.get_by_role("link", name="Plan", exact=True).click()
    write(page, "Expected responses", "2000")
    write(page, "Groups to invite", "North 200\nSouth 10")
    press(page, "Save")
    look(page, "builder-plan-wrong")
    write(page, "Groups to invite", "North 200\nSouth 100")
    press(page, "Save")
    look(page, "builder-plan")
    translate(page, look)
    run_test(page, url, look)
    publish(page, url, store, look)


def write_questions(page: Page, look: Callable[[Page, str], None]) -> None:
    page.get_by_label("New question").select_option("single_choice")
    press(page, "Add a question to page 1")
    look(page, "builder-question-new")
    write(page, "Question", "How often do you work at night?")
    for number, label in enumerate(("Never", "Sometimes", "Always"), 1):
        write(page, f"Answer {number}", label)
    # The page shows the privacy loss before anything is saved.
    expect(page.locator("#live-epsilon")).to_contain_text("ln(3)")
    page.get_by_label("Privacy level").select_option("truth_probability")
    write(page, "Value", "3/4")
    expect(page.locator("#live-epsilon")).to_contain_text("truth probability 0.750")
    expect(page.locator("#saved")).to_have_text("Saved")
    press(page, "Save")
    wait_saved(page)
    look(page, "builder-question")
    page.get_by_role("link", name="All questions").click()
    press(page, "Add a page")
    page.get_by_label("New question").nth(1).select_option("number")
    press(page, "Add a question to page 2")
    write(page, "Question", "How many nights last month?")
    write(page, "Lowest", "0")
    write(page, "Highest", "-1")
    press(page, "Save")
    look(page, "builder-question-wrong")
    write(page, "Highest", "31")
    press(page, "Save and return to all questions")
    press(page, "Duplicate How many nights last month?")
    write(page, "Question", "How many hours do you sleep?")
    press(page, "Save and return to all questions")
    press(page, "Up How many hours do you sleep?")
    look(page, "builder-outline")


def translate(page: Page, look: Callable[[Page, str], None]) -> None:
    page.get_by_role("link", name="Languages", exact=True).click()
    write(page, "Language", "es")
    press(page, "Add language")
    write(page, "Night work and health", "Trabajo nocturno y salud")
    press(page, "Save")
    wait_saved(page)
    look(page, "builder-translation")
    page.get_by_role("link", name="Languages", exact=True).click()
    look(page, "builder-languages")


def run_test(page: Page, url: str, look: Callable[[Page, str], None]) -> None:
    page.get_by_role("link", name="Test run", exact=True).click()
    press(page, "Start test run")
    page.locator("summary").first.click()
    look(page, "builder-try")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the survey as a respondent").click()
    respondent = opened.value
    expect(respondent.get_by_role("heading", level=1)).to_contain_text("Night work and health")
    respondent.close()
    page.get_by_role("spinbutton", name="Simulated respondents").fill("1500")
    press(page, "Add test responses")
    page.get_by_role("link", name="Results of the test run").click()
    expect(page.get_by_text("TEST.")).to_be_visible()
    look(page, "builder-test-run-dashboard")
    page.get_by_role("link", name="Back to the draft").click()


def publish(page: Page, url: str, store, look: Callable[[Page, str], None]) -> None:
    page.get_by_role("link", name="Publish", exact=True).click()
    look(page, "builder-publish")
    page.get_by_label("I understand what I cannot change").check()
    page.get_by_role("button", name=re.compile("^Publish night-work")).click()
    expect(page.get_by_role("heading", name="Collect")).to_be_visible()
    look(page, "builder-published")
    (survey,) = store.surveys()
    assert (survey.slug, len(survey.definition.questions)) == ("night-work-and-health", 3)
    assert survey.definition.languages == ("en", "es")
    assert store.plan(survey.key).strata == {"North": 200, "South": 100}
    assert page.goto(f"{url}/research/").status == 200
    look(page, "builder-list")


def test_a_survey_is_written_without_scripts(serve, store, researcher, new_device):
    url, device = serve(), new_device(java_script_enabled=False)
    page = sign_in(device, url)
    page.get_by_role("link", name="New survey", exact=True).click()
    write(page, "Title", "Plain")
    press(page, "Create draft")
    page.get_by_label("New question").select_option("single_choice")
    press(page, "Add a question to page 1")
    write(page, "Question", "How often?")
    write(page, "Answer 1", "Never")
    write(page, "Answer 2", "Always")
    page.get_by_role("button", name="Down answer 1").click()
    expect(page.get_by_label("Answer 2", exact=True)).to_have_value("Never")
    page.get_by_role("button", name="Add an answer").click()
    write(page, "Answer 3", "Sometimes")
    press(page, "Save")
    expect(page.locator("#live-epsilon")).to_contain_text("epsilon 1.099")
    page.get_by_role("link", name="Publish", exact=True).click()
    page.get_by_label("I understand what I cannot change").check()
    page.get_by_role("button", name="Publish plain").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Collect")
    (survey,) = store.surveys()
    options = [option.id for option in survey.definition.questions[0].options]
    assert options == ["always", "never", "sometimes", "prefer_not_to_say"]


def test_the_proposed_design_is_used_by_one_button(serve, store, researcher, new_device, look):
    content = draft_from(parse(surveys.SAMPLED.encode(), "sampled.toml"))
    store.add_draft(content.to_json(), EMAIL, 1, {store.researcher(EMAIL).key: "owner"})
    url, device = serve(), new_device(**test_looks.DESK)
    device.context.add_init_script(AXE_SCRIPT)
    page = sign_in(device, url)
    page.get_by_role("link", name=content.title).first.click()
    page.get_by_role("link", name="Plan", exact=True).click()
    write(page, "Total epsilon of a complete response", "2.5")
    press(page, "Save")
    picture = page.locator("#design img")
    picture.scroll_into_view_if_needed()
    wait_until(lambda: picture.evaluate("image => image.complete && image.naturalWidth > 0"))
    look(page, "builder-design")
    recommended = page.locator("#design .recommendation p").first.inner_text()
    press(page, "Use the recommended design")
    expect(page.get_by_text("The draft now uses this design.")).to_be_visible()
    draft = DraftContent.from_json(store.drafts()[0].content)
    asked = draft.survey["questions_per_person"]
    assert f"Ask each person {asked} of" in recommended
    assert {question["way"] for question in draft.questions} == {"epsilon"}
    expect(page.locator("#design tr.marked").first).to_contain_text(f"{asked} of")


@pytest.mark.long
def test_the_slider_and_the_number_show_the_same_value(serve, store, researcher, new_device):
    url, device = serve(), new_device()
    page = started_draft(device, url)
    page.get_by_label("Privacy level").select_option("epsilon")
    expect(page.get_by_label("Value", exact=True)).to_have_value("1")
    slider = page.get_by_label("Slider for the same value")
    slider.focus()
    slider.press("ArrowRight")
    expect(page.get_by_label("Value", exact=True)).to_have_value("1.05")
    expect(page.locator("#live-epsilon")).to_contain_text("epsilon 1.05")
    write(page, "Value", "2")
    assert slider.input_value() == "2"


def started_draft(device, url: str) -> Page:
    """Create a draft with one question and return the page that edits the question."""
    page = sign_in(device, url)
    page.get_by_role("link", name="New survey", exact=True).click()
    write(page, "Title", "Draft")
    press(page, "Create draft")
    press(page, "Add a question to page 1")
    write(page, "Question", "Do you?")
    expect(page.locator("#live-epsilon")).to_contain_text("ln(3)")
    return page


def test_the_chart_of_a_question_is_loaded_once_the_question_is_saved(
    serve, store, researcher, new_device
):
    page = started_draft(new_device(**test_looks.DESK), serve())
    page.get_by_label("Type").select_option("multiple_choice")
    wait_saved(page)
    responses = []
    page.on("response", lambda response: responses.append(response))
    write(page, "Answer 1", "Children")
    write(page, "Answer 2", "Noise")
    expect(page.locator("#saved")).to_have_text("Saved")
    picture = page.locator("#live-chart img")
    wait_until(
        lambda: picture.evaluate("image => image.complete && image.src.includes('tradeoff')")
    )
    charts = [response for response in responses if "tradeoff.svg" in response.url]
    assert [response.status for response in charts] == [200]
    assert picture.evaluate("image => image.naturalWidth") > 0


def focused_name(page: Page) -> str:
    return page.evaluate(
        "(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()"
    )


@pytest.mark.parametrize("has_script", long_unless([True], [True, False]))
def test_the_new_answer_has_the_focus(serve, store, researcher, new_device, has_script):
    page = sign_in(new_device(java_script_enabled=has_script), serve())
    page.get_by_role("link", name="New survey", exact=True).click()
    write(page, "Title", "Draft")
    press(page, "Create draft")
    page.get_by_label("New question").select_option("single_choice")
    press(page, "Add a question to page 1")
    for number, label in enumerate(("Never", "Once", "Often"), 1):
        write(page, f"Answer {number}", label)
    if has_script:
        page.get_by_label("Answer 2", exact=True).press("Enter")
        assert focused_name(page) == "Answer 3"
        page.keyboard.press("Enter")
        page.keyboard.type("Daily")
        assert focused_name(page) == "Answer 4"
        page.get_by_role("button", name="Add an answer").click()
    else:
        write(page, "Help below the question", "Choose one.")
        press(page, "Add an answer")
        write(page, "Answer 4", "Daily")
        press(page, "Add an answer")
    expect(page.locator(":focus")).to_have_attribute("name", "options-4-label")
    page.keyboard.type("Always")
    press(page, "Remove answer 1")
    expect(page.locator(":focus")).to_have_text("Remove answer 1")
    expect(page.get_by_role("status").filter(has_text="Answer removed.")).to_be_in_viewport()
    options = next(DraftContent.from_json(store.drafts()[0].content).questions)["options"]
    assert [item["label"]["en"] for item in options] == ["Once", "Often", "Daily", "Always"]


COVERED_FIELDS = """() => [...document.querySelector("[data-draft]").elements]
  .filter((field) => field.type !== "hidden" && field.checkVisibility() && field.tabIndex >= 0)
  .filter((field) => {
    document.activeElement.blur();
    window.scrollTo(0, field.getBoundingClientRect().top + window.scrollY - 8);
    field.focus();
    const bar = document.querySelector(".undo").getBoundingClientRect();
    const box = field.getBoundingClientRect();
    return bar.top < box.bottom && box.top < bar.bottom;
  }).map((field) => field.name)"""
"""Scroll each field to where the notice may be, focus it, and return those that it covers."""


@pytest.mark.parametrize("window", long_unless([{}], [{}, test_looks.DESK]), ids=["phone", "desk"])
def test_the_notice_of_a_change_covers_no_field_that_has_the_focus(
    serve, store, researcher, new_device, window
):
    content = DraftContent.new("Draft", "draft").to_json()
    draft = store.add_draft(content, EMAIL, 0, {store.researcher(EMAIL).key: "owner"})
    page = sign_in(new_device(**window), serve(), f"/research/drafts/{draft.slug}")
    page.get_by_label("New question").select_option("single_choice")
    press(page, "Add a question to page 1")
    expect(page.get_by_role("status").filter(has_text="Question added.")).to_be_visible()
    assert page.evaluate(COVERED_FIELDS) == []


def test_a_question_moves_to_any_place_in_one_step_and_keeps_the_focus(
    serve, store, researcher, new_device
):
    url = serve()
    draft = DraftContent.new("Draft", "draft")
    for _ in range(60):
        draft, _key = add_question(draft, 1, "yes_no")
    begun = store.add_draft(draft.to_json(), EMAIL, 0, {store.researcher(EMAIL).key: "owner"})
    page = sign_in(new_device(), url, f"/research/drafts/{begun.slug}")
    *_, last = draft.questions
    place = page.locator(f"#question-{last['key']} select")
    place.select_option("1")
    with page.expect_navigation():
        page.locator(f"[value='question-move {last['key']}']").click()
    expect(page.get_by_role("status")).to_have_text("Question moved.")
    expect(place).to_be_focused()

    def order() -> list[str]:
        content = DraftContent.from_json(store.drafts()[0].content)
        return [question["id"] for question in content.questions]

    ids = [question["id"] for question in draft.questions]
    assert order() == [ids[-1], *ids[:-1]]
    press(page, "Undo")
    assert order() == ids


WITHOUT_DIRECTION = """
() => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const lost = [];
  while (texts.nextNode()) {
    const { data, parentElement } = texts.currentNode;
    const isIsolated = parentElement.closest("bdi, [dir], option, [id^=live-]");
    if (/[\\u0600-\\u06ff]/.test(data) && !isIsolated) lost.push(data.trim());
  }
  return lost;
}
"""


def test_texts_from_right_to_left_have_their_own_direction(serve, store, researcher, new_device):
    draft = DraftContent.new("العمل ليلاً", "night")
    for text in ("هل تعمل ليلاً؟", "هل تنام جيداً؟"):
        draft, key = add_question(draft, 1, "yes_no")
        question = {**draft.question(key), "text": {"en": text}}
        draft = draft.with_question(key, question)
    options = ({"key": 9, "id": "", "label": {"en": "أبدا"}},)
    condition = {"ask_question": "q1", "ask_options": ("yes",), "options": options}
    draft = draft.with_question(key, {**draft.question(key), **condition})
    begun = store.add_draft(draft.to_json(), EMAIL, 0, {store.researcher(EMAIL).key: "owner"})
    url = serve()
    page = sign_in(new_device(), url, f"/research/drafts/{begun.slug}")
    for path in ("", f"/questions/{key}", "/plan", "/publish", "/try", "/languages"):
        page.goto(f"{url}/research/drafts/{begun.slug}{path}")
        assert page.evaluate(WITHOUT_DIRECTION) == [], path


def test_a_chart_that_failed_to_load_widens_no_page_and_is_requested_again(
    serve, store, researcher, new_device
):
    page = started_draft(new_device(**test_looks.DESK), serve())
    page.route("**/tradeoff.svg*", lambda route: route.fulfill(status=503))
    page.get_by_label("Type").select_option("multiple_choice")
    wait_saved(page)
    write(page, "Answer 1", "Children")
    with page.expect_response("**/tradeoff.svg*"):
        write(page, "Answer 2", "Noise")
    width = page.evaluate("document.scrollingElement.scrollWidth")
    assert width == test_looks.DESK["viewport"]["width"]
    page.unroute("**/tradeoff.svg*")
    write(page, "Help below the question", "Select all that apply.")
    picture = page.locator("#live-chart img")
    wait_until(lambda: picture.evaluate("image => image.naturalWidth") > 0)


@pytest.mark.long
def test_a_conflict_is_shown_during_editing_and_nothing_is_overwritten(
    serve, store, researcher, new_device
):
    url, device = serve(), new_device()
    page = started_draft(device, url)
    expect(page.locator("#saved")).to_have_text("Saved")
    second_page = device.context.new_page()
    second_page.goto(page.url)
    write(second_page, "Question", "Do they?")
    press(second_page, "Save")
    wait_saved(second_page)
    write(page, "Question", "Do we?")
    expect(page.locator("#saved")).to_contain_text("also changed Question")
    press(page, "Save")
    expect(page.get_by_role("alert")).to_contain_text("changed the same fields")
    expect(page.get_by_label("Question", exact=True)).to_have_value("Do we?")
    draft = DraftContent.from_json(store.drafts()[0].content)
    assert next(draft.questions)["text"] == {"en": "Do they?"}


@pytest.mark.long
def test_text_written_after_the_session_ended_is_saved_after_signing_in_again(
    serve, store, researcher, new_device
):
    url, device = serve(), new_device()
    page = started_draft(device, url)
    expect(page.locator("#saved")).to_have_text("Saved")
    for session in store.sessions(store.researcher(EMAIL).key):
        store.end_session(session.token_hash)
    write(page, "Help below the question", "A long text that must not be lost")
    expect(page.locator("#saved")).to_contain_text("you are signed out")
    press(page, "Save")
    expect(page.get_by_role("heading", name="Not saved yet")).to_be_visible()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in in a new tab").click()
    sign_in_page = opened.value
    sign_in_page.get_by_label("Email address").fill(EMAIL)
    sign_in_page.get_by_label("Password").fill(PASSWORD)
    sign_in_page.get_by_role("button", name="Sign in").click()
    expect(sign_in_page.get_by_role("heading", name="Surveys")).to_be_visible()
    sign_in_page.close()
    # The form belongs to the earlier session, so the page appears again with a form that works.
    press(page, "Save now")
    press(page, "Save now")
    expect(page.get_by_label("Help below the question")).to_have_value(
        "A long text that must not be lost"
    )


@pytest.mark.long
def test_text_written_just_before_leaving_is_saved(serve, store, researcher, new_device):
    url, device = serve(), new_device()
    page = started_draft(device, url)
    write(page, "Help below the question", "Written just before leaving")
    page.get_by_role("link", name="All questions").click()
    expect(page.get_by_role("heading", name="Draft", exact=True)).to_be_visible()
    wait_until(lambda: "just before leaving" in store.drafts()[0].content)


@pytest.mark.long
def test_pressing_save_during_another_save_causes_no_conflict(serve, store, researcher, new_device):
    url, device = serve(), new_device()
    page = started_draft(device, url)
    expect(page.locator("#saved")).to_have_text("Saved")
    delayed = []
    page.route(
        "**/questions/*",
        lambda route: delayed.append(route) if len(delayed) < LOOK_AND_SAVE else route.continue_(),
    )
    write(page, "Question", "Do they?")
    wait_until(lambda: page.wait_for_timeout(50) or len(delayed) == LOOK_AND_SAVE)
    write(page, "Question", "Do they still?")
    page.get_by_role("button", name="Save", exact=True).first.click()
    for route in delayed:
        route.continue_()
    wait_saved(page)
    assert "Do they still?" in store.drafts()[0].content
