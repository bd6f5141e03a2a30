"""Every page of researchers at every width, in light and dark: it fits, and no rule fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from survey.app import create_app
from tests.browser.accessible import RULES, VIOLATIONS
from tests.browser.research import sign_in
from tests.browser.test_looks import CLIPPED
from tests.conftest import EMAIL
from tests.web.routes import Routes, add_links
from tests.web.test_headers import PARTS, part_of

pytestmark = pytest.mark.web

WIDTHS = (320, 390, 1280)
SCHEMES = ("light", "dark")

PAGES_OF_OTHERS = ("respond", "api")
"""Parts whose pages are not for researchers; `test_looks` shows those of respondents."""

LEAVE = ("accounts.sign_out", "results.report_pdf")
"""Routes that end the session, or print another page."""

SCROLLS = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(
    "parts",
    [parts for part in PARTS if (parts := tuple(p for p in part if p not in PAGES_OF_OTHERS))],
    ids=lambda parts: parts[-1] or parts[0],
)
def test_every_page_fits_and_passes_the_accessibility_rules(
    serve, settings, store, small, researcher, new_device, parts
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
        faults += [(rule.endpoint, *fault) for fault in faults_of(page)]
    assert faults == []
    assert seen


def is_page(page: Page, address: str) -> bool:
    """Tell whether an address answers with a page; files would be downloaded."""
    response = page.request.get(address)
    return response.ok and response.headers["content-type"].startswith("text/html")


def faults_of(page: Page) -> Iterator[tuple[object, ...]]:
    """Yield what overflows, and each violation of the rules, by colour scheme and width."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            too_wide = page.evaluate(SCROLLS)
            if too_wide > 0:
                yield scheme, width, f"{too_wide} pixels too wide"
            yield from ((scheme, width, clipped) for clipped in page.evaluate(CLIPPED))
            yield from ((scheme, width, fault) for fault in page.evaluate(VIOLATIONS, RULES))
