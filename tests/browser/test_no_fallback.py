"""A device that cannot protect answers asks nothing and sends nothing (security 4 and 7)."""

from __future__ import annotations

import hashlib
import json
import math

import pytest
from playwright.sync_api import expect

from survey.respondent_texts import LANGUAGES, say
from tests.browser.respondent import answer, heading, press, stored_entries
from tests.conftest import long_unless

pytestmark = [pytest.mark.web, pytest.mark.security]

RANDOMNESS = "no secure random numbers"
CRYPTO = "cannot check the survey"
REQUIRED_FILES = ["main.js", "opening.js"]
FRAGMENTS = ["0" * 16, "0" * 32, "0" * 64, "abc", "", "g" * 16]
BODIES = [b"", b"{", b"[]", b"null", b'{"format":3}', b"\xff\xfe"]


def test_no_unsafe_fallback_without_javascript_there_is_nothing_to_fill_in_and_it_says_why(
    site, new_device
):
    device = new_device(java_script_enabled=False)
    page = device.open(site.link(site.publish()))
    for language in LANGUAGES:
        for key in ("shell.needs", "cannot.nothing"):
            expect(page.get_by_text(say(language, key))).to_be_visible()
    # Where modules could still run, the notice waits for three seconds; here it need not.
    notice = page.locator(".opening")
    assert notice.evaluate("notice => getComputedStyle(notice).animationName") == "none"
    assert page.locator("input, select, textarea, button, form, a, [contenteditable]").count() == 0
    assert device.posts == []


@pytest.mark.parametrize("file", REQUIRED_FILES)
def test_a_page_with_a_missing_module_states_that_it_did_not_load(site, device, file):
    device.context.route(f"**/{file}", lambda route: route.fulfill(status=404))
    page = device.open(site.link(site.publish()))
    page.wait_for_load_state("load")
    expect(page.get_by_role("heading", name="This survey cannot start")).to_be_visible()
    assert page.locator("input, select, textarea, button:not(.reload), form").count() == 0
    assert device.posts == []


@pytest.mark.parametrize("file", ["main.js", "opening.js", "words.en.json"])
def test_a_page_with_a_file_of_another_release_asks_nothing(site, device, file):
    def alter(route):
        response = route.fetch()
        route.fulfill(response=response, body=response.body() + b" ")

    device.context.route(f"**/{file}", alter)
    page = device.open(site.link(site.publish()))
    expect(page.get_by_role("heading", name="This survey cannot start")).to_be_visible()
    assert page.locator("input, select, textarea, button:not(.reload), form").count() == 0
    assert device.posts == []


@pytest.mark.parametrize(
    ("sabotage", "words"),
    [
        ("crypto.getRandomValues = () => { throw new Error('no entropy') }", RANDOMNESS),
        ("crypto.getRandomValues = undefined", RANDOMNESS),
        ("Object.defineProperty(window, 'crypto', {value: undefined})", RANDOMNESS),
        ("Object.defineProperty(crypto, 'subtle', {value: undefined})", CRYPTO),
    ],
    ids=["throws", "missing", "no crypto", "no subtle"],
)
def test_a_device_without_cryptography_gets_no_questions(site, device, sabotage, words):
    device.context.add_init_script(sabotage)
    page = device.open(site.link(site.publish()))
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text(words)
    expect(page.get_by_text("Nothing was asked, and nothing was sent.")).to_be_visible()
    assert page.locator("input").count() == 0
    assert device.posts == []


def test_no_unsafe_fallback_a_generator_that_fails_at_the_last_moment_sends_nothing(site, device):
    page = device.open(site.link(site.publish()))
    answer(page, ["Yes", "Often"])
    page.evaluate("void (crypto.getRandomValues = () => { throw new Error('no entropy') })")
    press(page, "Send")
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text(RANDOMNESS)
    expect(
        page.get_by_text("Your answers are gone from this page. Nothing was sent.")
    ).to_be_visible()
    assert device.posts == []
    assert stored_entries(page) == {}


def test_the_client_draws_from_no_other_generator_and_reads_no_clock(site, device):
    device.context.add_init_script("""
        const refuse = () => { throw new Error("not fit for a promise") };
        Math.random = refuse; Date.now = refuse; performance.now = refuse;
        window.Date = class { constructor() { refuse() } };
    """)
    page = device.open(site.link(site.publish()))
    answer(page, ["No", "Once"])
    press(page, "Send")
    heading(page, "Sent. Thank you.")
    assert device.messages == []


# -- the definition


def forge(survey, change) -> bytes:
    definition = json.loads(survey.canonical)
    change(definition)
    return json.dumps(
        definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()


def channels(definition):
    return [question["channel"] for page in definition["pages"] for question in page["questions"]]


def weaken(T, L=1):
    def change(definition):
        channels(definition)[0].update(T=T, L=L)

    return change


def with_many_options(definition):
    """p = .0996 but epsilon above 12: only the ratio shows it."""
    question = definition["pages"][0]["questions"][0]
    k = 10_000
    question["options"] = [{"id": f"o{i}", "label": str(i)} for i in range(k)]
    question["opt_out"] = ""
    question["channel"].update(k=k, T=math.ceil(math.e**12 * 1.0001), L=1)


def with_every_bit(definition):
    """Each bit has p = .9; all ten together exceed epsilon 12."""
    question = definition["pages"][0]["questions"][0]
    options = [{"id": f"o{i}", "label": str(i)} for i in range(10)]
    channel = {"kind": "bit_vector", "m": 10, "s": 9, "alone": 1, "sampled": 10, "T": 9, "L": 1}
    question.update(type="multiple_choice", options=options, opt_out="o9", channel=channel)
    question.update(max_ticks=9, alone=1)


def with_certain_number(definition):
    """At the end of the grid, one of 1,000 reports is almost certain."""
    question = definition["pages"][0]["questions"][0]
    grid = {"low": 0, "step": 1, "points": 2, "decimals": 0, "unit": ""}
    table = {"name": "one_bit", "R": 1, "T": 999, "L": 1}
    channel = {"kind": "weight_table", "table": table, "no_answers": 0}
    question.update(type="number", options=[], opt_out="", grid=grid, channel=channel)


def all_questions(definition):
    """Each question is below the limit; all together exceed epsilon 20."""
    (question,) = definition["pages"][0]["questions"]
    question["channel"].update(T=100, L=1)
    definition["pages"][0]["questions"] = [{**question, "id": f"q{i}"} for i in range(5)]


@pytest.mark.parametrize(
    "change",
    [
        weaken(1998),
        weaken(199),
        with_many_options,
        with_every_bit,
        with_certain_number,
        all_questions,
    ],
    ids=[
        "p .999",
        "p just above .99",
        "epsilon above 12",
        "bits above 12",
        "a table above .99",
        "total above 20",
    ],
)
def test_a_definition_above_the_built_in_ceilings_is_refused_even_with_a_matching_link(
    site, device, change
):
    survey = site.publish()
    bad = forge(survey, change)
    device.context.route("**/definition.json", lambda route: route.fulfill(body=bad))
    page = device.open(f"{site.url}/s/{survey.slug}#d={hashlib.sha256(bad).hexdigest()[:32]}")
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("would protect your answers less")
    assert page.locator("input").count() == 0
    assert device.posts == []


def test_a_definition_just_below_the_limits_is_accepted(site, device):
    survey = site.publish()
    fair = forge(survey, weaken(198))
    device.context.route("**/definition.json", lambda route: route.fulfill(body=fair))
    page = device.open(f"{site.url}/s/{survey.slug}#d={hashlib.sha256(fair).hexdigest()}")
    heading(page, "A small survey")


@pytest.mark.parametrize(
    "change",
    [
        lambda definition: definition.update(title="Another title"),
        weaken(5),
        weaken(100),
    ],
)
def test_a_definition_whose_hash_differs_from_the_links_is_refused(site, device, change):
    survey = site.publish()
    device.context.route(
        "**/definition.json", lambda route: route.fulfill(body=forge(survey, change))
    )
    page = device.open(site.link(survey))
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("Your link was made for another survey")
    assert page.locator("input").count() == 0
    assert device.posts == []


def test_a_definition_of_another_survey_is_refused(site, device):
    survey = site.publish()
    bad = forge(survey, lambda definition: definition.update(slug="another"))
    device.context.route("**/definition.json", lambda route: route.fulfill(body=bad))
    page = device.open(f"{site.url}/s/{survey.slug}#d={hashlib.sha256(bad).hexdigest()[:32]}")
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("This page cannot read the survey.")
    assert page.locator("input").count() == 0
    assert device.posts == []


@pytest.mark.parametrize("fragment", long_unless(["0" * 16, ""], FRAGMENTS))
def test_a_link_with_a_wrong_or_shortened_hash_is_refused(site, device, fragment):
    survey = site.publish()
    link = fragment or survey.sha256[:15]
    page = device.open(f"{site.url}/s/{survey.slug}#d={link}")
    heading(page, "This survey cannot start")
    assert device.posts == []


@pytest.mark.parametrize("body", long_unless([b"", b'{"format":2}'], BODIES))
def test_bytes_that_are_not_a_definition_are_refused(site, device, body):
    survey = site.publish()
    device.context.route("**/definition.json", lambda route: route.fulfill(body=body))
    page = device.open(f"{site.url}/s/{survey.slug}")
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("This page cannot read the survey.")
    assert device.posts == []
