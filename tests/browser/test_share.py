"""The Share page and the results for readers without an account, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.browser.research import add_released, sign_in, visit
from tests.browser.test_looks import LONG, look
from tests.conftest import TODAY, long_unless
from tests.surveys import WORKPLACE


@contextmanager
def page_server(page: str) -> Iterator[str]:
    """Serve a page on another site than the application and return its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("localhost", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


pytestmark = pytest.mark.web

__all__ = ["look"]  # a fixture

SHARE = "/research/surveys/workplace/share"


@pytest.mark.parametrize("width", long_unless([390], [320, 390, 1280]))
def test_share_pages_fit_and_pass_the_accessibility_rules_in_light_and_dark(
    serve, store, researcher, new_device, look, width
):
    device = new_device(viewport={"width": width, "height": 800}, is_mobile=width < 1000)
    device.context.add_init_script(AXE_SCRIPT)
    survey = publish(store, load(WORKPLACE.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 2400)
    publish(store, load(LONG.encode(), "s.toml", Caps()), TODAY)
    page = sign_in(device, url := serve())

    def look_at(name: str, address: str = "") -> None:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            if address:
                visit(page, f"{url}{address}")
            look(page, f"share-{name}-{scheme}")

    look_at("long-title", "/research/surveys/small/share")
    look_at("private", SHARE)
    page.get_by_role("button", name="Make results public").click()
    page.get_by_label("Who is it for?").fill("Ministry of Labour and Social Affairs")
    page.get_by_role("button", name="Create link").click()
    secret = page.get_by_label("New link, shown only once").input_value()
    for details in page.locator("details").all():
        details.locator("summary").click()
    look_at("public")
    page.get_by_role("button", name="Create link").click()
    look_at("wrong")
    reader = new_device(viewport={"width": width, "height": 800}).context
    reader.add_init_script(AXE_SCRIPT)
    page = reader.new_page()
    look_at("link", secret.removeprefix(url))
    look_at("results", "/research/public/workplace")
    assert page.goto(f"{url}/research/public/small").status == 404
    look_at("missing")


def test_copy_buttons_copy_the_field_beside_them(serve, store, researcher, new_device):
    publish(store, load(WORKPLACE.encode(), "s.toml", Caps()), TODAY)
    device = new_device()
    device.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = sign_in(device, serve(), SHARE)
    page.get_by_role("button", name="Copy the link").click()
    expect(page.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    link = page.get_by_label("Link", exact=True).input_value()
    assert "/s/workplace#d=" in link
    assert page.evaluate("navigator.clipboard.readText()") == link


def test_another_site_shows_a_public_figure_and_cannot_read_it(
    serve, store, researcher, new_device
):
    survey = publish(store, load(WORKPLACE.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 2400)
    store.set_public_results("workplace", public=True)
    device = new_device()
    page = sign_in(device, url := serve(), SHARE)
    code = page.locator("#code-1").input_value()
    other = device.context.new_page()
    with page_server(code) as address:
        other.goto(address)
    image = other.locator("figure img")
    expect(image).to_have_js_property("complete", True)
    assert image.evaluate("image => image.naturalWidth") == 640
    assert image.get_attribute("alt").startswith("Estimated")
    source = image.get_attribute("src")
    assert source.startswith(url)
    assert other.evaluate("address => fetch(address).catch(() => 'refused')", source) == "refused"
