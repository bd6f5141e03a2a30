"""The true answer never leaves the device: equal codes leave equal traces (security 3)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import PurePath
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, Route

from survey.mechanism import AnyChannel, BitVector, WeightTable
from survey.respond.client import CONTENT_TYPES, Client, source_files
from tests.browser.conftest import Device, Site
from tests.browser.respondent import (
    answer,
    choose,
    entry,
    heading,
    press,
    wait_sent,
    wait_waiting,
)
from tests.conftest import long_unless

pytestmark = pytest.mark.security

FIRST = {"Yes": 0, "No": 1, "Prefer not to say": 2, None: 2}
SECOND = {"Never": 0, "Once": 1, "Often": 2}
PATTERNS = list(product(FIRST, SECOND))

STUB = """
(() => {
  const random_words = CHOSEN;
  let octet = 0;
  crypto.getRandomValues = (array) => {
    if (array instanceof Uint32Array) return array.fill(0), array.set(random_words), array;
    for (let i = 0; i < array.length; i += 1) array[i] = octet = (octet + 89) % 251;
    return array;
  };
  const delays = [];
  const start = window.setTimeout;
  window.setTimeout = (act, delay, ...rest) => (delays.push(delay), start(act, delay, ...rest));
  window.requestedDelays = () => delays;
})();
"""
STATE = """async () => ({
  dom: document.documentElement.outerHTML,
  title: document.title,
  delays: window.requestedDelays(),
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
ALL_LISTED = """(requested) => {
  const listed = new Set(performance.getEntriesByType("resource").map((e) => e.name));
  return requested.every((name) => listed.has(name));
}"""


def word(truth: int, report: int) -> int:
    """Return a generator word that turns a truth into a report, for T = 6, L = 1, M = 8.

    u below 6 is offset 0, u = 6 is offset 1, u = 7 is offset 2; a word below 8 is its own u.
    """
    offset = (report - truth) % 3
    return 0 if offset == 0 else 5 + offset


def observable_parts(request: Request) -> tuple[object, ...]:
    headers = sorted(request.all_headers().items())
    return request.method, request.url, headers, request.post_data_buffer, request.resource_type


def traces(device: Device, page: Page) -> dict[str, object]:
    """Return the page and everything outside its memory.

    The browser lists a resource some time after its answer, so wait for all of them.
    """
    requested = {request.url for request in device.requests if not request.is_navigation_request()}
    page.wait_for_function(ALL_LISTED, arg=sorted(requested))
    return {
        **page.evaluate(STATE),
        "requests": sorted(map(repr, map(observable_parts, device.requests))),
        "order": [request.url for request in device.posts],
        "addresses": device.addresses,
        "console": device.messages,
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
    random_words = [word(truth, code) for truth, code in zip(truths, codes, strict=True)]
    return visit_with(
        new_device, link, lambda page: answer(page, pattern), random_words, codes, end
    )


def visit_with(
    new_device: Callable[..., Device],
    link: str,
    fill_in: Callable[[Page], None],
    random_words: list[int],
    codes: Sequence[object],
    end: Callable[[Page], None],
) -> dict[str, object]:
    """Make a visit with these generator words, which must give these codes."""
    device = new_device().disable_retries()
    device.context.add_init_script(STUB.replace("CHOSEN", json.dumps(random_words)))
    if end is wait_waiting:
        device.context.route("**/reports", lambda route: route.abort())
    page = device.open(link)
    fill_in(page)
    press(page, "Send")
    end(page)
    assert json.loads(device.bodies[0])["codes"] == list(codes)
    visit_traces = traces(device, page)
    device.context.close()
    return visit_traces


@pytest.mark.long
def test_all_twelve_patterns_of_answers_leave_the_same_traces_when_the_codes_agree(
    site, new_device
):
    link = site.link(site.publish())
    first, *later = [
        visit(site, new_device, link, pattern, (2, 1), wait_sent) for pattern in PATTERNS
    ]
    assert first["requests"]
    for pattern, pattern_traces in zip(PATTERNS[1:], later, strict=True):
        assert pattern_traces == first, pattern


@pytest.mark.web
def test_the_raw_answer_never_leaves_opposite_ones_leave_the_same_traces(site, new_device):
    link = site.link(site.publish())
    first = visit(site, new_device, link, ("Yes", "Often"), (1, 1), wait_waiting)
    second = visit(site, new_device, link, ("No", "Never"), (1, 1), wait_waiting)
    assert first == second


@pytest.mark.web
def test_the_comparison_of_traces_detects_different_codes(site, new_device):
    link = site.link(site.publish())
    first = visit(site, new_device, link, ("Yes", "Often"), (1, 1), wait_sent)
    # The same id with other bytes: the server keeps nothing by which it could tell.
    second = visit(site, new_device, link, ("Yes", "Often"), (1, 2), wait_sent)
    assert first["requests"] != second["requests"]
    assert first["dom"] != second["dom"]


# -- the comparison detects page modules that leak


SENDING, ANSWERING = "onSend(answers,", "onAnswer(id, ...of)"

LEAKS = {
    "the name of the window": ("visit.js", "window.name = answers.fell_asleep;", SENDING),
    "the storage": ("visit.js", "localStorage.setItem('t', JSON.stringify(answers));", SENDING),
    "an element": ("visit.js", "document.body.title = Object.values(answers).join();", SENDING),
    "a delay": ("visit.js", "setTimeout(() => {}, Object.values(answers)[0]);", SENDING),
    "the address": ("view-questions.js", "history.replaceState(0, '', `?${of[0]}`),", ANSWERING),
    "a request": ("view-questions.js", "new Image().src = `/favicon.ico?${of[0]}`,", ANSWERING),
}
"""A module, the code that leaks an answer, and the code before which it runs."""


def altered_client(module: str, leak: str, place: str) -> Client:
    """Return a client whose page names the altered module with its true hash."""
    source = source_files()[module].decode()
    assert source.count(place) == 1
    is_expression = leak.endswith(",")
    both = f"({leak} {place})" if is_expression else f"{leak} {place}"
    changed = source.replace(place, both)
    return Client.from_sources({**source_files(), module: changed.encode()})


@pytest.mark.parametrize("leak", LEAKS)
def test_the_client_has_the_place_of_each_leak(leak):
    assert altered_client(*LEAKS[leak]).served != Client.load().served


def serve_altered(device: Device, client: Client) -> Device:
    """Let a device load this client instead of the server's."""

    def fulfill(route: Route) -> None:
        path = urlsplit(route.request.url).path
        content = client.served.get(path.removeprefix("/"), client.page)
        kind = CONTENT_TYPES[PurePath(path).suffix or ".html"]
        route.fulfill(body=content, headers={"Content-Type": kind})

    device.context.route(re.compile(r"/client/|/s/[^/]+$"), fulfill)
    return device


@pytest.mark.web
@pytest.mark.parametrize("leak", ["none", *LEAKS])
def test_the_comparison_of_traces_detects_a_page_module_that_leaks_answers(site, new_device, leak):
    client = Client.load() if leak == "none" else altered_client(*LEAKS[leak])

    def altered_device() -> Device:
        return serve_altered(new_device(), client)

    link = site.link(site.publish())
    first = visit(site, altered_device, link, ("Yes", "Often"), (1, 1), wait_sent)
    second = visit(site, altered_device, link, ("No", "Never"), (1, 1), wait_sent)
    assert (first == second) == (leak == "none")


# -- ticks, numbers, dates and paths

NIGHTS = """
slug = "small"
title = "Nights"
allow_skip_logic = true
epsilon = 1
[[pages]]
[[pages.questions]]
id = "reasons"
type = "multiple_choice"
text = "Why were you awake?"
mechanism = "bits"
options = [{id = "work", label = "Work"}, {id = "child", label = "A child"}]
[[pages]]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours did you work?"
low = 0
high = 6
mechanism = "square_wave"
does_not_apply = true
ask_if = { question = "reasons", options = ["work"] }
[[pages]]
[[pages.questions]]
id = "since"
type = "date"
text = "Since when?"
low = 2020-01-01
high = 2020-01-07
mechanism = "square_wave"
"""
CODES = ("YA", 2, 3)
"""Bits 0110; third and fourth column."""

VISITS = [
    # ticks and their bits; hours typed and their truth; date typed and its truth
    (["Work", "A child"], [1, 1, 0, 0], "2", 2, "2020-01-03", 2),
    (["Work"], [1, 0, 0, 0], "0.4", 0, "2020-01-01", 0),
    (["Work"], [1, 0, 0, 0], "Prefer not to say", 8, "Prefer not to say", 7),
    (["A child"], [0, 1, 0, 0], None, 7, "2020-01-05", 4),
    (["None of these"], [0, 0, 1, 0], None, 7, "2020-01-02", 1),
    ([], [0, 0, 0, 1], None, 7, "", 7),
]


def words(channel: AnyChannel, truth: int | list[int], code: object) -> list[int]:
    """Return generator words that turn a truth into a code."""
    if isinstance(channel, BitVector):
        bits = [int(bit) for bit in "0110"]
        assert isinstance(truth, list)
        return [0 if tick == bit else channel.T for tick, bit in zip(truth, bits, strict=True)]
    assert isinstance(channel, WeightTable)
    return [int(channel.weights[truth][:code].sum())]


def enter_answer(page: Page, text: str) -> None:
    """Type or choose an answer, or leave the question empty."""
    if text == "Prefer not to say":
        choose(page, text)
    elif text:
        entry(page).fill(text)
    else:
        press(page, "Continue")
    press(page, "Continue")


def fill_in(page: Page, ticks: list[str], hours: str | None, since: str) -> None:
    press(page, "Start")
    for label in ticks:
        choose(page, label)
    if not ticks:
        press(page, "Continue")
    press(page, "Continue")
    if hours is not None:
        heading(page, "How many hours did you work?")
        enter_answer(page, hours)
    heading(page, "Since when?")
    enter_answer(page, since)
    heading(page, "Check your answers")


@pytest.mark.web
@pytest.mark.parametrize("end", long_unless([wait_sent], [wait_sent, wait_waiting]))
def test_the_raw_answer_never_leaves_ticks_numbers_dates_and_paths_leave_the_same_traces(
    site, new_device, end
):
    survey = site.publish(NIGHTS)
    channels = [question.channel for question in survey.definition.questions]
    traces = []
    for ticks, bits, hours, hour, since, day in VISITS:
        truths = (bits, hour, day)
        random_words = [
            word
            for channel, truth, code in zip(channels, truths, CODES, strict=True)
            for word in words(channel, truth, code)
        ]

        def fill(page: Page, answers: tuple[list[str], str | None, str] = (ticks, hours, since)):
            fill_in(page, *answers)

        traces.append(visit_with(new_device, site.link(survey), fill, random_words, CODES, end))
    first, *later = traces
    assert first["requests"]
    for answers, visit_traces in zip(VISITS[1:], later, strict=True):
        assert visit_traces == first, answers
