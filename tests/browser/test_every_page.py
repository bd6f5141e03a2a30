"""Every page of researchers at every width, in light and dark: it fits, and no rule fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from survey import handbook
from survey.app import create_app
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.accents import accent_variants
from survey.settings import Caps
from survey.store import MAX_NOTE_LENGTH, TeamLook
from tests.browser.accessible import RULES, VIOLATIONS
from tests.browser.research import add_released, sign_in, visit
from tests.browser.test_looks import CLIPPED
from tests.conftest import EMAIL, SMALL, TODAY
from tests.web.routes import Routes, add_links
from tests.web.test_headers import PARTS, part_of
from tests.web.test_team_look import png

pytestmark = pytest.mark.web

Looks = Sequence[tuple[Literal["light", "dark"], int]]
"""Color schemes with widths in pixels."""

ALL_LOOKS: Looks = [(scheme, width) for scheme in ("light", "dark") for width in (320, 390, 1280)]
SOME_LOOKS: Looks = [("light", 320), ("dark", 390), ("light", 1280), ("dark", 1280)]
"""Looks of every submission; it checks the accessibility rules in only one, in rotation."""

PAGES_OF_OTHERS = ("respond", "api")
"""Parts whose pages are not for researchers; `test_looks` shows those of respondents."""

LEAVE = ("accounts.sign_out", "results.report_pdf")
"""Routes that end the session, or print another page."""

SCROLLS = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"


each_set_of_looks = pytest.mark.parametrize(
    "looks",
    [
        pytest.param(SOME_LOOKS, id="some"),
        pytest.param(ALL_LOOKS, id="all", marks=pytest.mark.long),
    ],
)


@each_set_of_looks
@pytest.mark.parametrize(
    "parts",
    [parts for part in PARTS if (parts := tuple(p for p in part if p not in PAGES_OF_OTHERS))],
    ids=lambda parts: parts[-1] or parts[0],
)
def test_every_page_fits_and_passes_the_accessibility_rules(
    serve, settings, store, small, researcher, new_device, parts, looks
):
    add_links(store, small)
    url, device = serve(), new_device(viewport={"width": 1280, "height": 800}, is_mobile=False)
    device.context.add_init_script(AXE_SCRIPT)
    page = sign_in(device, url)
    app = create_app(settings, store)
    routes = Routes(app, store, small, EMAIL)
    faults, seen = [], 0
    for rule in app.url_map.iter_rules():
        if part_of(rule.endpoint) not in parts or rule.endpoint in LEAVE:
            continue
        if "GET" not in rule.methods:
            continue
        address = routes.address(rule)
        if not is_page(page, url + address):
            continue
        seen += 1
        page.goto(url + address)
        faults += [(rule.endpoint, *fault) for fault in faults_of(page, looks, turn=seen)]
    assert faults == []
    assert seen


@each_set_of_looks
def test_every_page_of_the_handbook_fits_and_passes_the_accessibility_rules(
    serve, researcher, new_device, looks
):
    url, device = serve(), new_device(viewport={"width": 1280, "height": 800}, is_mobile=False)
    device.context.add_init_script(AXE_SCRIPT)
    page, faults = device.open(f"{url}/handbook"), []
    addresses = ["/handbook?q=remind", *(entry.address for entry in handbook.pages().values())]
    for turn, address in enumerate(addresses):
        page.goto(url + address)
        faults += [(address, *fault) for fault in faults_of(page, looks, turn)]
    assert faults == []


def test_pages_with_notes_and_the_hardest_accent_fit_and_pass_the_accessibility_rules(
    serve, store, researcher, new_device
):
    toml = SMALL.replace('slug = "small"', 'slug = "small"\nbucket = "day"')
    survey = publish(store, load(toml.encode(), "s.toml", Caps()), TODAY)
    for day, text in ((2, "Strike " * 17), (3, "W" * MAX_NOTE_LENGTH), (4, "Vote")):
        add_released(store, survey, 900, day=date(2026, 11, day))
        store.add_trend_note("small", f"2026-11-{day:02d}", 0, text)
    # No accepted color has less contrast with white.
    store.set_team_look("small", TeamLook("Institute", "#767676", png(1200, 60)))
    url, device = serve(), new_device(viewport={"width": 1280, "height": 800}, is_mobile=False)
    device.context.add_init_script(AXE_SCRIPT)
    page = sign_in(device, url)
    faults = []
    for path in ("1", "1/trend", "1/report", "team"):
        visit(page, f"{url}/research/surveys/small/{path}")
        is_loaded = "document.querySelector('img.logo').naturalWidth === 1200"
        assert page.evaluate(is_loaded), path
        faults += [(path, *fault) for fault in faults_of(page, ALL_LOOKS)]
    assert faults == []
    accent = "getComputedStyle(document.body).getPropertyValue('--accent')"
    assert page.evaluate(accent) == accent_variants("#767676").dark
    visit(page, f"{url}/research/surveys/small/1/trend")
    page.locator(".lines .mark text").first.hover()
    expect(page.locator(".tip")).to_contain_text("1. 2026-11-02: Strike")


def is_page(page: Page, address: str) -> bool:
    """Tell whether an address answers with a page; files would be downloaded."""
    response = page.request.get(address)
    return response.ok and response.headers["content-type"].startswith("text/html")


def faults_of(page: Page, looks: Looks, turn: int = 0) -> Iterator[tuple[object, ...]]:
    """Yield what overflows in each look, and violations of the rules, by color scheme and width.

    With `ALL_LOOKS`, check the rules in every look, otherwise only in the one that `turn` selects.
    """
    for index, (scheme, width) in enumerate(looks):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        too_wide = page.evaluate(SCROLLS)
        if too_wide > 0:
            yield scheme, width, f"{too_wide} pixels too wide"
        yield from ((scheme, width, clipped) for clipped in page.evaluate(CLIPPED))
        if looks is ALL_LOOKS or index == turn % len(looks):
            yield from ((scheme, width, fault) for fault in page.evaluate(VIOLATIONS, RULES))
