"""Charts on researchers' pages in a browser: values of their marks on hover, touch and keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from survey.progress import PROGRESS, Progress
from tests.benchmarks import dashboard
from tests.browser.accessible import RULES, VIOLATIONS
from tests.browser.chart_gallery import PAGES, add_gallery
from tests.browser.research import sign_in, visit
from tests.conftest import ROOT

pytestmark = pytest.mark.web

MARKS = {
    "dashboard": ".bars li svg >> nth=0",
    "scale": ".segment rect >> nth=1",
    "trend": ".lines .point circle >> nth=1",
    "difference": ".chart path[aria-label] >> nth=0",
    "regression": ".forest li svg >> nth=0",
}
"""A mark of each kind of chart, by the page that shows it."""

VALUE = re.compile(r"\d.*\(−?\d\S* to −?\d|(at most|at least|less than|more than) \d")
"""A value with its interval, or an interval alone."""

MAX_BYTES = 3072


@pytest.fixture
def address(serve, store, researcher) -> Callable[[str], str]:
    """Serve the gallery; return the address of a page by its name."""
    add_gallery(store, 400)
    url = serve()
    return lambda name: f"{url}/research/surveys/gallery{PAGES[name]}"


def open_page(device, address, name) -> Page:
    url = address(name)
    page = sign_in(device, url.partition("/research/")[0])
    visit(page, url)
    return page


def is_in_sight(page: Page) -> bool:
    box = page.locator(".tip").bounding_box()
    width = page.evaluate("document.documentElement.clientWidth")
    return box["x"] >= 0 and box["x"] + box["width"] <= width + 0.5


def test_a_pointer_at_a_mark_shows_its_value_and_highlights_it(address, new_device):
    device = new_device(viewport={"width": 1280, "height": 900}, is_mobile=False, has_touch=False)
    page = open_page(device, address, "dashboard")
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    for name, mark in MARKS.items():
        visit(page, address(name))
        tip = page.locator(".tip")
        expect(tip).to_be_hidden()
        page.locator(mark).scroll_into_view_if_needed()
        page.locator(mark).hover(force=True)
        expect(tip).to_be_visible()
        expect(tip).to_have_text(VALUE)
        assert is_in_sight(page), name
        assert page.locator(".lit").count() == 1, name
        # The text is on the page without the script too.
        assert tip.get_attribute("aria-hidden") == "true"
        page.keyboard.press("Escape")
        expect(tip).to_be_hidden()
        assert page.locator(".lit").count() == 0, name
        page.mouse.move(5, 5)
        page.locator(mark).hover(force=True)
        expect(tip).to_be_visible()
        page.mouse.move(5, 5)
        expect(tip).to_be_hidden()
    assert refused == []


def test_the_keyboard_goes_through_the_marks_of_a_chart_in_one_stop(address, new_device):
    page = open_page(new_device(), address, "trend")
    tip, lines = page.locator(".tip"), page.locator("svg.lines").first
    titles = page.locator("svg.lines").first.evaluate(
        "(chart) => chart.querySelectorAll('.point, .gap').length"
    )
    assert titles > 2
    page.locator("button:has-text('Show')").focus()
    for _ in range(30):
        page.keyboard.press("Tab")
        if lines.evaluate("(chart) => chart === document.activeElement"):
            break
    expect(tip).to_be_visible()
    texts = [tip.inner_text()]
    for _ in range(titles):
        page.keyboard.press("ArrowRight")
        texts.append(tip.inner_text())
    # The last mark stays where there is no further one.
    assert len(set(texts)) == titles
    assert texts[-1] == texts[-2]
    page.keyboard.press("ArrowLeft")
    assert tip.inner_text() == texts[-3]
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    expect(tip).to_be_visible()
    page.keyboard.press("Tab")
    assert not lines.evaluate("(chart) => chart === document.activeElement")
    assert tip.inner_text() not in texts


def test_a_touch_shows_a_value_until_the_next_touch(address, new_device):
    page = open_page(new_device(viewport={"width": 390, "height": 844}), address, "scale")
    tip = page.locator(".tip")
    page.locator(MARKS["scale"]).tap(force=True)
    expect(tip).to_be_visible()
    assert is_in_sight(page)
    page.wait_for_timeout(300)
    expect(tip).to_be_visible()
    page.locator("h1").tap()
    expect(tip).to_be_hidden()


def test_screen_readers_get_the_same_page_with_and_without_the_script(address, new_device):
    device, plain = new_device(), new_device(java_script_enabled=False)
    device.context.add_init_script(AXE_SCRIPT)
    page, plain_page = (open_page(each, address, "dashboard") for each in (device, plain))
    for name, mark in MARKS.items():
        visit(page, address(name))
        visit(plain_page, address(name))
        page.locator(mark).hover(force=True)
        expect(page.locator(".tip")).to_be_visible()
        assert page.evaluate(VIOLATIONS, RULES) == [], name
        trees = [each.locator("body").aria_snapshot() for each in (page, plain_page)]
        assert trees[0] == trees[1], name


def test_an_old_link_to_a_question_on_another_page_leads_to_its_chart(
    serve, store, settings, researcher, new_device
):
    dashboard.fill(store, settings.database, 400, 60)
    url = serve()
    device = new_device(viewport={"width": 1280, "height": 900}, is_mobile=False, has_touch=False)
    page = sign_in(device, url)
    visit(page, f"{url}/research/surveys/load/1#q-q59")
    expect(page.locator("h2#q-q59")).to_be_in_viewport()
    assert "page=" in page.url


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_link_leads_to_its_target_on_a_page_that_is_still_being_computed(
    app, address, new_device, has_scripts
):
    page = open_page(new_device(java_script_enabled=has_scripts), address, "dashboard")
    path = f"/research/surveys/gallery{PAGES['dashboard']}"
    progress = app.test_client().get(path, environ_overrides={PROGRESS: Progress(1, 5)})
    page.route(
        "**" + path,
        lambda route: route.fulfill(status=202, content_type="text/html", body=progress.text),
        times=1,
    )
    last = page.locator("h2[id^='q-']").last.get_attribute("id")
    page.goto("about:blank")
    page.goto(f"{address('dashboard')}#{last}")
    expect(page).to_have_title("Computing")
    expect(page).not_to_have_title("Computing")
    # Without scripts, a refresh that keeps the place would only scroll.
    heading = page.locator(f"h2#{last}")
    expect(heading).to_be_in_viewport() if has_scripts else expect(heading).to_be_visible()


def test_the_script_is_small():
    assert (ROOT / "survey/static/charts.js").stat().st_size <= MAX_BYTES
