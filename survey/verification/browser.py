"""Visits with a real Chromium, whose connections and headers are those of a browser.

A server could still recognize it: its client hints name Chromium, whichever browser it imitates.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from survey.errors import SurveyError
from survey.verification.connection import Proxy, Response, UnreachableError
from survey.verification.manifest import Difference, Manifest, manifest_of
from survey.verification.run import MakeVisit
from survey.verification.visitors import USER_AGENTS, Visitor
from survey.verification.visits import Target, Visit, pictures_in, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, CDPSession, Page

TIMEOUT_MILLISECONDS = 30_000
DESKTOP, MOBILE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}

MISSING = (
    "--browser needs playwright and Chromium: pip install playwright && playwright install chromium"
)


@contextmanager
def browser_visits(
    target: Target, manifests: Mapping[str, Manifest], proxy: Proxy | None
) -> Iterator[MakeVisit]:
    """Start a Chromium, and yield a function that makes visits with it."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise SurveyError(MISSING) from None
    # Chromium resolves names through a SOCKS 5 proxy as well.
    server = proxy and f"{proxy.scheme.removesuffix('h')}://{proxy.host}:{proxy.port}"
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
                args=["--no-sandbox"] if os.geteuid() == 0 else [],
                proxy={"server": server} if server else None,
            )
        except Error as error:
            raise SurveyError(f"{MISSING} ({error.message.splitlines()[0]})") from None

        def make_visit(visitor: Visitor) -> Visit:
            try:
                with _context(browser, target, visitor) as context:
                    return _visit(context, target, visitor, manifests)
            except Error as error:
                raise UnreachableError(error.message.splitlines()[0]) from None

        yield make_visit
        browser.close()


@contextmanager
def _context(browser: Browser, target: Target, visitor: Visitor) -> Iterator[BrowserContext]:
    """Open a browser profile with those of the visitor's properties that Chromium can imitate."""
    # The version that the browser's client hints name as well.
    version = f"Chrome/{browser.version.partition('.')[0]}."
    agent = re.sub(r"Chrome/\d+\.", version, USER_AGENTS[visitor.browser])
    is_mobile = "Mobile" in agent
    context = browser.new_context(
        user_agent=agent,
        locale=visitor.language.partition(",")[0],
        viewport=MOBILE if is_mobile else DESKTOP,  # type: ignore[arg-type]
        is_mobile=is_mobile,
        has_touch=is_mobile,
    )
    context.set_default_timeout(TIMEOUT_MILLISECONDS)
    if visitor.cookie:
        pairs = [pair.split("=") for pair in visitor.cookie.split("; ")]
        context.add_cookies([{"name": n, "value": v, "url": target.origin} for n, v in pairs])
    try:
        yield context
    finally:
        context.close()


class _Traffic:
    """Responses to all requests of a page, by address."""

    def __init__(self, context: BrowserContext, target: Target) -> None:
        self._context = context
        self._target = target
        self._page: Page | None = None
        self._received: dict[str, Any] = {}
        self._bodies: dict[str, bytes] = {}
        self.addresses: set[str] = set()

    def fetch(self, url: str, headers: Mapping[str, str]) -> Response:  # noqa: ARG002
        """Return the browser's response from an address; the browser sets the headers itself."""
        if url == self._target.page:
            self._load_page()
        if url in self._received:
            response = self._received[url]
            body = self._bodies.get(url)
            return _received(url, response, _body(response) if body is None else body)
        page = self._context.new_page()
        try:
            received: list[Any] = []
            page.on("response", lambda response: received.append(response))
            page.goto(url)
            if not received:
                # Playwright does not report the responses of icons.
                icon = self._context.request.get(url, max_redirects=0)
                return _response(url, icon.status, icon.headers_array, icon.body())
            response = next(r for r in received if r.url == url)
            return _received(url, response, _body(response))
        finally:
            page.close()

    def _load_page(self) -> None:
        if self._page is not None:
            self._page.close()
        self._received, self._bodies = {}, {}
        self._page = self._context.new_page()
        self._page.on("response", self._record)
        session = self._context.new_cdp_session(self._page)
        session.on("Fetch.requestPaused", partial(self._record_body, session))
        session.send("Fetch.enable", {"patterns": [{"requestStage": "Response"}]})
        self._page.goto(self._target.link, wait_until="networkidle")

    def _record(self, response: Any) -> None:
        address = response.url.partition("#")[0]
        self._received.setdefault(address, response)
        if not address.startswith(("data:", "blob:")):
            self.addresses.add(address)

    def _record_body(self, session: CDPSession, event: Mapping[str, Any]) -> None:
        """Record the body of a response before the page receives it.

        Otherwise, an altered page could load another one at once, and the browser would discard
        these bodies.
        """
        request = {"requestId": event["requestId"]}
        if _has_body(event.get("responseStatusCode", 0)):
            answer = session.send("Fetch.getResponseBody", request)
            encoded: str = answer["body"]
            body = base64.b64decode(encoded) if answer["base64Encoded"] else encoded.encode()
            self._bodies.setdefault(event["request"]["url"].partition("#")[0], body)
        session.send("Fetch.continueRequest", request)


def _has_body(status: int) -> bool:
    """Tell whether the browser has the body; redirects and failed connections have none."""
    return status >= 200 and not 300 <= status < 400


def _body(response: Any) -> bytes:
    body: bytes = response.body() if _has_body(response.status) else b""
    return body


def _received(url: str, response: Any, body: bytes) -> Response:
    return _response(url, response.status, response.headers_array(), body)


def _response(url: str, status: int, headers: Any, body: bytes) -> Response:
    pairs = ((header["name"], header["value"]) for header in headers)
    # The browser has decoded the body already.
    decoded = tuple(pair for pair in pairs if pair[0].lower() != "content-encoding")
    return Response(url, status, decoded, body)


def _visit(
    context: BrowserContext,
    target: Target,
    visitor: Visitor,
    manifests: Mapping[str, Manifest],
) -> Visit:
    traffic = _Traffic(context, target)
    outcome = visit(target, visitor, traffic.fetch, manifests)
    manifest = manifest_of(manifests, outcome.version)
    expected_addresses = {target.address(path) for path in manifest.files} | {target.definition}
    expected_addresses |= {target.picture(digest) for digest in pictures_in(outcome.definition)}
    for address in sorted(traffic.addresses - expected_addresses):
        outcome.differences.append(Difference("page", f"it requests {address}"))
    cookie_names = {pair.partition("=")[0] for pair in visitor.cookie.split("; ")}
    for cookie in context.cookies():
        if cookie["name"] not in cookie_names:
            outcome.differences.append(Difference("page", f"it sets the cookie {cookie['name']}"))
    for worker in context.service_workers:
        outcome.differences.append(Difference("page", f"it adds the service worker {worker.url}"))
    return outcome
