"""What researchers see first, and how many clicks a survey and a finding take."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from survey.collect.publication import publish
from survey.demo import DEFINITION
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.browser.research import add_released, sign_in, visit
from tests.conftest import EMAIL, PASSWORD, TODAY

pytestmark = pytest.mark.web

FIRST_SCREEN = 700
"""Pixels within which the first finding must be in sight."""

MAX_LINKS, MAX_BYTES = 60, 150_000


@pytest.fixture
def demo(serve, store, researcher) -> str:
    """Serve the demo's survey with reports; return the address of its results."""
    survey = publish(store, load(DEFINITION.read_bytes(), "workplace.toml", Caps()), TODAY)
    assert len(survey.definition.questions) == 8
    add_released(store, survey, 6000)
    return f"{serve()}/research/surveys/{survey.slug}/{survey.version}"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_the_first_finding_is_on_the_first_screen_of_a_light_page(demo, new_device, width, height):
    device = new_device(viewport={"width": width, "height": height}, is_mobile=False)
    page = sign_in(device, demo.partition("/research/")[0])
    visit(page, demo)
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(demo)
    page.wait_for_load_state("networkidle")
    finding = page.locator(".findings li").first
    box = finding.bounding_box()
    assert box["y"] + box["height"] <= FIRST_SCREEN, box
    # The sentence names estimate, interval and question.
    assert "% interval" in finding.inner_text()
    assert 8 < page.evaluate("document.links.length") <= MAX_LINKS
    assert 0 < sum(sizes) <= MAX_BYTES, sizes


MAX_CLICKS_TO_PUBLISH, MAX_CLICKS_TO_FINDING = 25, 5

WRITTEN = """Were you injured at work in the last 12 months?
Did you report every injury?
Did a supervisor tell you not to report an injury?
How often do you skip breaks?
- Never
- Sometimes
- Often
Do you feel safe at work?
Did you take painkillers in order to work?
How many hours do you sleep before a shift?
- Less than 5
- 5 to 7
- More than 7
Do you plan to leave?"""

COUNT_CLICKS = """addEventListener("click", (event) => {
  if (event.isTrusted) window.countClick();
}, true)"""


class Newcomer:
    """A researcher who clicks into every field, and whose clicks are counted by the browser."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0
        page.expose_function("countClick", self._count)
        page.add_init_script(COUNT_CLICKS)

    def _count(self) -> None:
        self.clicks += 1

    def click(self, role: str, name: str | re.Pattern[str]) -> None:
        """Click an element that leads to a page."""
        with self.page.expect_navigation():
            self.page.get_by_role(role, name=name, exact=isinstance(name, str)).first.click()

    def write(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label, exact=True)
        field.click()
        field.fill(text)


def test_a_newcomer_publishes_a_tested_survey_and_finds_the_group_with_few_clicks(
    serve, store, researcher, new_device
):
    url = serve()
    page = new_device(viewport={"width": 1280, "height": 900}, is_mobile=False).context.new_page()
    newcomer = Newcomer(page)
    page.goto(f"{url}/research/")
    newcomer.write("Email address", EMAIL)
    newcomer.write("Password", PASSWORD)
    newcomer.click("button", "Sign in")
    newcomer.click("link", "New survey")
    newcomer.write("Title", "Safety at work")
    newcomer.click("button", "Create draft")
    page.locator("summary", has_text="Add several questions at once").click()
    newcomer.write("Questions and answers", WRITTEN)
    newcomer.click("button", "Add these questions")
    newcomer.click("link", "Plan")
    newcomer.write("Expected responses", "9000")
    newcomer.write("Groups to invite", "Day shift 5000\nNight shift 4000")
    newcomer.click("button", "Save")
    newcomer.click("link", "Test run")
    newcomer.click("button", "Start test run")
    newcomer.click("button", "Add test responses")
    newcomer.click("link", "Results of the test run")
    expect(page.locator(".findings li").first).to_contain_text("% interval")
    newcomer.click("link", "Back to the draft")
    newcomer.click("link", "Publish")
    page.get_by_label("I understand what I cannot change").click()
    newcomer.click("button", re.compile("^Publish safety-at-work"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Collect")
    (survey,) = store.surveys()
    assert len(survey.definition.questions) == 8
    assert 12 < newcomer.clicks <= MAX_CLICKS_TO_PUBLISH
    # In the population, more people of the night shift have the first answer, "Yes".
    add_released(store, survey, 5000, (0.2, 0.8, 0.0), stratum="Day shift")
    add_released(store, survey, 4000, (0.6, 0.4, 0.0), stratum="Night shift")
    print(f"Clicks to publish: {newcomer.clicks}, target {MAX_CLICKS_TO_PUBLISH}")
    newcomer.clicks = 0
    newcomer.click("link", "Explore")
    newcomer.click("link", re.compile("injured .* by groups"))
    row = page.locator("tr", has=page.get_by_role("rowheader", name="Yes", exact=True))
    day, night = (int(row.locator("td").nth(i).inner_text().rstrip("%")) for i in (0, 1))
    assert night > day + 20
    print(f"Clicks to the finding: {newcomer.clicks}, target {MAX_CLICKS_TO_FINDING}")
    assert 2 <= newcomer.clicks <= MAX_CLICKS_TO_FINDING
