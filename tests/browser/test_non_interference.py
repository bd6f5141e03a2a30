"""The raw answer never leaves: with equal codes, all that can be seen is equal (security 3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product

import pytest
from playwright.sync_api import Page, Request

from tests.browser.conftest import Device, Site
from tests.browser.respondent import answer_and_send, heading, wait_sent, wait_waiting

pytestmark = [pytest.mark.web, pytest.mark.security]

FIRST = {"Yes": 0, "No": 1, "Prefer not to say": 2, None: 2}
SECOND = {"Never": 0, "Once": 1, "Often": 2}
PATTERNS = list(product(FIRST, SECOND))

STUB = """
(() => {
  const chosen = CHOSEN;
  let octet = 0;
  crypto.getRandomValues = (array) => {
    if (array instanceof Uint32Array) return array.fill(0), array.set(chosen), array;
    for (let i = 0; i < array.length; i += 1) array[i] = octet = (octet + 89) % 251;
    return array;
  };
})();
"""
STATE = """async () => ({
  dom: document.documentElement.outerHTML,
  title: document.title,
  address: location.href,
  history: [history.length, JSON.stringify(history.state)],
  name: window.name,
  referrer: document.referrer,
  scroll: [scrollX, scrollY],
  values: [...document.querySelectorAll("input,textarea,select")].map((e) => e.value),
  local: {...localStorage},
  session: {...sessionStorage},
  cookie: document.cookie,
  databases: await indexedDB.databases(),
  caches: await caches.keys(),
  workers: (await navigator.serviceWorker.getRegistrations()).length,
  globals: Object.getOwnPropertyNames(window).sort(),
  resources: performance.getEntriesByType("resource").map((e) => e.name).sort(),
})"""


def word(truth: int, report: int) -> int:
    """A generator word that turns this truth into this report, for T = 6, L = 1, M = 8.

    u below 6 is offset 0, u = 6 is offset 1, u = 7 is offset 2; a word below 8 is its own u.
    """
    offset = (report - truth) % 3
    return 0 if offset == 0 else 5 + offset


def seen(request: Request) -> tuple[object, ...]:
    headers = sorted(request.all_headers().items())
    return request.method, request.url, headers, request.post_data_buffer, request.resource_type


def watched(device: Device, page: Page) -> dict[str, object]:
    """Everything outside the page's memory, and the page itself."""
    return {
        **page.evaluate(STATE),
        "requests": sorted(map(repr, map(seen, device.requests))),
        "order": [request.url for request in device.posts],
        "console": device.said,
        "kept": device.context.storage_state(indexed_db=True),
    }


def visit(
    site: Site,
    new_device: Callable[..., Device],
    link: str,
    pattern: tuple[str, str],
    codes: tuple[int, int],
    end: Callable[[Page], None],
) -> dict[str, object]:
    truths = FIRST[pattern[0]], SECOND[pattern[1]]
    chosen = [word(truth, code) for truth, code in zip(truths, codes, strict=True)]
    device = new_device()
    device.context.add_init_script(STUB.replace("CHOSEN", json.dumps(chosen)))
    if end is wait_waiting:
        device.context.route("**/reports", lambda route: route.abort())
    page = device.open(link)
    answer_and_send(page, pattern)
    end(page)
    assert json.loads(device.bodies[0])["codes"] == list(codes)
    found = watched(device, page)
    device.context.close()
    return found


def test_all_twelve_patterns_of_answers_leave_the_same_traces_when_the_codes_agree(
    site, new_device
):
    link = site.link(site.publish())
    first, *others = [
        visit(site, new_device, link, pattern, (2, 1), wait_sent) for pattern in PATTERNS
    ]
    assert first["requests"]
    for pattern, other in zip(PATTERNS[1:], others, strict=True):
        assert other == first, pattern


def test_opposite_answers_leave_the_same_traces_while_the_report_waits(site, new_device):
    link = site.link(site.publish())
    one = visit(site, new_device, link, ("Yes", "Often"), (1, 1), wait_waiting)
    other = visit(site, new_device, link, ("No", "Never"), (1, 1), wait_waiting)
    assert one == other


def test_other_codes_do_show_so_the_comparison_can_fail(site, new_device):
    link = site.link(site.publish())
    one = visit(site, new_device, link, ("Yes", "Often"), (1, 1), wait_sent)
    other = visit(
        site,
        new_device,
        link,
        ("Yes", "Often"),
        (1, 2),
        lambda page: heading(page, "Your report was not accepted"),
    )  # the same id with other bytes: 409
    assert one["requests"] != other["requests"]
    assert one["dom"] != other["dom"]
