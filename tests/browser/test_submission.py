"""Each report is created once and arrives once despite failures (security 5 and 6)."""

from __future__ import annotations

import json
import re
from itertools import cycle, product

import pytest
from playwright.sync_api import Page, Route, expect

from survey.collect.simulation import make_test_run
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.browser.respondent import (
    answer,
    answer_and_send,
    choose,
    heading,
    press,
    stored_entries,
    wait_sent,
    wait_waiting,
)
from tests.conftest import SMALL, TODAY, long_unless, wait_until
from tests.store.reports import pending_reports

pytestmark = [pytest.mark.web, pytest.mark.security]

SPELLINGS = ["/s/%73{}", "/%73/s{}", "/s/s{}%2F", "/s/%53{}"]
REFUSALS = {
    409: "The survey already has other lines with the same number.",
    410: "The survey is closed.",
    413: "Your lines are longer than this survey allows.",
    422: "One of your lines does not fit the survey’s questions.",
}
ALL_ANSWERS = list(product(["Yes", "No", "Prefer not to say", None], ["Never", "Once", "Often"]))
"""Every way to answer the small survey; None leaves the question empty."""
SAMPLE = ALL_ANSWERS[::3]


def problem(route: Route, status: int, **headers: str) -> None:
    body = {"type": "urn:survey:test", "title": "", "status": status, "detail": "a reason <b>"}
    route.fulfill(
        status=status,
        headers=headers,
        body=json.dumps(body),
        content_type="application/problem+json",
    )


def refuse(route: Route, status: int) -> None:
    """Record the report but answer that it is refused, the worst case for a server."""
    assert route.fetch().status == 201
    problem(route, status)


def test_a_survey_answered_by_tapping_offline_arrives_exactly_once(site, device):
    device.disable_retries()
    survey = site.publish()
    page = device.open(site.link(survey))
    answer(page, ["Yes", "Often"])
    device.context.set_offline(True)
    press(page, "Send")
    for _ in range(2):
        wait_waiting(page)
        press(page, "Try now")
    wait_waiting(page)
    assert len(device.bodies) == 3
    assert site.store.n_pending(survey.key) == 0
    device.context.set_offline(False)
    wait_sent(page)
    assert len(device.bodies) == 4
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1
    site.read_keys()
    (stored,) = pending_reports(site.store, survey)
    assert [*stored.codes] == json.loads(device.bodies[0])["codes"]


def test_a_lost_acknowledgment_leads_to_the_same_bytes_and_one_report(site, device):
    device.disable_retries()
    survey = site.publish()
    page = device.open(site.link(survey))
    losses = iter([True, True, False])

    def lose_the_answer(route: Route) -> None:
        assert route.fetch().status == 201
        if next(losses):
            route.abort()
        else:
            route.continue_()

    page.route("**/reports", lose_the_answer)
    answer_and_send(page)
    for _ in range(2):
        wait_waiting(page)
        press(page, "Try now")
    wait_sent(page)
    assert len(device.bodies) == 3
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1


def test_perturbed_once_twenty_failed_sends_reloads_a_tab_and_the_back_button_repeat_the_bytes(
    site, device
):
    device.disable_retries()
    survey = site.publish()
    failures = cycle(
        [
            lambda route: route.abort(),
            lambda route: problem(route, 500),
            lambda route: problem(route, 503, **{"Retry-After": "7200"}),
            lambda route: route.fulfill(status=200, body="<h1>Hotel</h1>"),
        ]
    )
    device.context.route("**/reports", lambda route: next(failures)(route))
    page = device.open(site.link(survey))
    answer_and_send(page)
    wait_waiting(page)
    while len(device.bodies) < 12:
        press(page, "Try now")
        wait_waiting(page)
    for _ in range(3):
        page.reload()
        wait_waiting(page)
    second = device.open(site.link(survey))
    wait_waiting(second)
    for _ in range(2):
        second.goto("about:blank")
        second.go_back()
        wait_waiting(second)
    while len(device.bodies) < 20:
        press(second, "Try now")
        wait_waiting(second)
    device.context.unroute_all()
    page.bring_to_front()
    press(page, "Try now")
    wait_sent(page)
    second.bring_to_front()
    press(second, "Try now")
    wait_sent(second)
    assert len(device.bodies) == 22
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1


STEP = 10
"""Milliseconds of a page's clock."""


def test_waits_grow_and_obey_retry_after_up_to_ten_minutes(site, device):
    survey = site.publish()
    page = device.context.new_page()
    page.clock.install(time="2026-11-21T00:00:00Z")
    replies = [lambda route: route.abort()]
    page.route("**/reports", lambda route: replies[-1](route))
    page.goto(site.link(survey))
    answer(page, ["No", "Once"])
    page.clock.pause_at("2026-11-21T01:00:00Z")
    press(page, "Send")
    heading(page, "Sending")
    status = page.get_by_role("status")

    def first_wait() -> bool:
        # Only this call moves the page's clock, however long a busy machine takes.
        page.clock.run_for(STEP)
        return page.get_by_text("Trying again in").count() > 0

    wait_until(first_wait)
    for seconds in (2, 5, 10, 20, 30, 30):
        expect(status).to_contain_text(f"Trying again in {seconds} seconds.")
        tries = len(device.bodies)
        page.clock.run_for(seconds * 1000 - 2 * STEP)
        assert len(device.bodies) == tries
        with page.expect_request("**/reports"):
            page.clock.run_for(2 * STEP)
    wait_waiting(page)
    replies.append(lambda route: problem(route, 503, **{"Retry-After": "86400"}))
    press(page, "Try now")
    expect(status).to_have_text(
        "The survey cannot accept your lines right now. Trying again in 10 minutes."
    )
    assert len(set(device.bodies)) == 1


def test_a_second_tab_that_was_open_before_never_creates_a_second_report(site, device):
    device.disable_retries()
    survey = site.publish()
    first, second = device.open(site.link(survey)), device.open(site.link(survey))
    answer(second, ["No", "Once"])
    device.context.route("**/reports", lambda route: problem(route, 503))
    first.bring_to_front()
    answer_and_send(first, ["Yes", "Never"])
    wait_waiting(first)
    second.bring_to_front()
    press(second, "Send")
    wait_waiting(second)
    expect(second.locator(".notice")).to_contain_text("answers you gave just now were not used")
    assert len(device.bodies) == 2
    assert len(set(device.bodies)) == 1


def test_a_stored_report_whose_survey_does_not_load_offers_leave_now(site, device):
    device.disable_retries()
    page = device.open(site.link(site.publish()))
    device.context.route("**/reports", lambda route: problem(route, 503))
    answer_and_send(page)
    wait_waiting(page)
    device.context.route("**/definition.json", lambda route: route.abort())
    device.context.route("https://www.wikipedia.org/", lambda route: route.fulfill(body="Neutral"))
    page.reload()
    wait_waiting(page)
    press(page, "Leave now")
    page.wait_for_url("https://www.wikipedia.org/")


def test_two_tabs_that_send_in_the_same_moment_send_one_report(site, device):
    survey = site.publish()
    tabs = [device.open(site.link(survey)) for _ in range(2)]
    for tab, label in zip(tabs, ("Yes", "No"), strict=True):
        tab.bring_to_front()
        answer(tab, [label, "Never"])
    at_once = """() => new Promise((resolve) => {
        const begin = Math.ceil((Date.now() + 300) / 1000) * 1000;
        while (Date.now() < begin) {}
        document.querySelector(".review > .button").click();
        resolve();
    })"""
    for tab in tabs:
        tab.evaluate(f"() => setTimeout({at_once}, 0)")
    for tab in tabs:
        tab.bring_to_front()
        wait_sent_or_marked(tab)
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1


def test_a_browser_without_locks_sends_the_report(site, device):
    survey = site.publish()
    device.context.add_init_script("delete Navigator.prototype.locks")
    page = device.open(site.link(survey))
    assert page.evaluate("navigator.locks === undefined")
    answer_and_send(page)
    wait_sent(page)
    assert site.store.n_pending(survey.key) == 1


def wait_sent_or_marked(page: Page) -> None:
    """Wait until this tab knows that it or another tab sent a report."""
    outcome = re.compile("Sent. Thank you.|This device has already sent answers")
    expect(page.get_by_role("heading", level=1)).to_have_text(outcome)


@pytest.mark.parametrize("status", long_unless([409], REFUSALS))
def test_a_refused_report_stays_can_be_read_and_is_sent_again_unchanged(site, device, status):
    survey = site.publish()
    page = device.open(site.link(survey))
    device.context.route("**/reports", lambda route: refuse(route, status))
    answer_and_send(page)
    heading(page, "The survey did not accept your lines")
    expect(page.locator(".notice").first).to_have_text(REFUSALS[status])
    # The server's messages are in English; the page is in the respondent's language.
    expect(page.locator("main")).not_to_contain_text("a reason")
    before = stored_entries(page)
    press(page, "Try again")
    heading(page, "The survey did not accept your lines")
    expect(page.locator("h1")).to_be_focused()
    for _ in range(2):
        page.reload()
        heading(page, "The survey did not accept your lines")
        expect(page.locator(".notice").first).to_have_text(REFUSALS[status])
    assert stored_entries(page) == before
    second = device.open(site.link(survey))
    heading(second, "The survey did not accept your lines")
    assert len(device.bodies) == 2  # shown again is not sent again
    site.publish_as(survey.slug, SMALL.replace("Two questions.", "Two other questions."))
    page.bring_to_front()
    page.goto("about:blank")
    page.goto(f"{site.url}/s/{survey.slug}")
    heading(page, "The survey did not accept your lines")
    press(page, "Try again")
    expect(page.locator("h1")).to_be_focused()
    page.get_by_text("See what these lines say").tap()
    expect(page.locator("pre")).to_have_text(device.bodies[0].decode())
    device.context.unroute_all()
    second.bring_to_front()
    press(second, "Try again")
    wait_sent(second)
    assert len(device.bodies) == 4
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1


def test_a_report_to_a_test_run_is_discarded_and_the_page_says_so(site, device):
    ada = site.store.add_researcher("test-run@example.org", "hash").key
    draft = site.store.add_draft("{}", "test-run@example.org", 1, {ada: "owner"})
    survey = make_test_run(site.store, load(SMALL.encode(), "s.toml", Caps()), draft, TODAY)
    page = device.open(site.link(survey))
    answer_and_send(page)
    heading(page, "This is a test run")
    expect(page.locator(".notice")).to_contain_text("Nothing was stored, and your lines are gone")
    assert len(device.bodies) == 1
    assert stored_entries(page) == {}
    page.reload()
    heading(page, "TEST: A small survey")


def test_a_refusal_as_of_a_test_run_never_discards_a_report_to_a_survey(site, device):
    survey = site.publish()
    device.context.route("**/reports", lambda route: refuse(route, 403))
    page = device.open(site.link(survey))
    answer_and_send(page)
    heading(page, "The survey did not accept your lines")
    (entry,) = stored_entries(page).values()
    assert json.loads(entry)["body"] == device.bodies[0].decode()


def test_a_closed_survey_still_shows_the_stored_report(site, device):
    device.disable_retries()
    survey = site.publish()
    device.context.route("**/reports", lambda route: route.abort())
    page = device.open(site.link(survey))
    answer_and_send(page)
    wait_waiting(page)
    device.context.unroute_all()
    page.route("**/definition.json", lambda route: problem(route, 410))
    page.route("**/reports", lambda route: problem(route, 410))
    page.reload()
    heading(page, "The survey did not accept your lines")
    page.get_by_text("See what these lines say").tap()
    expect(page.locator("pre")).to_have_text(device.bodies[0].decode())


def test_an_unreadable_entry_is_never_replaced_by_a_new_report(site, device):
    survey = site.publish()
    page = device.open(site.link(survey))
    page.evaluate(f"localStorage.setItem('survey-report:{survey.slug}', '{{oops')")
    page.reload()
    heading(page, "Stored data for this survey cannot be read")
    expect(page.locator("input")).to_have_count(0)
    assert device.posts == []


def definitions(device) -> int:
    """Return how often the device requested the definition."""
    return sum(request.url.endswith("/definition.json") for request in device.requests)


@pytest.mark.parametrize("spelling", long_unless(SPELLINGS[:1], SPELLINGS))
def test_an_address_in_another_spelling_never_gets_a_second_report(site, device, spelling):
    survey = site.publish()
    page = device.open(site.link(survey))
    answer_and_send(page)
    wait_sent(page)
    before = stored_entries(page)
    second_page = device.open(site.url + spelling.format(survey.slug[1:]))
    second_page.wait_for_load_state("networkidle")
    expect(second_page.locator("input")).to_have_count(0)
    expect(second_page.get_by_role("button", name="Start")).to_have_count(0)
    assert definitions(device) == 1
    assert len(device.bodies) == 1
    assert stored_entries(page) == before


def test_a_percent_encoded_link_opens_no_survey(site, device):
    survey = site.publish()
    page = device.open(f"{site.url}/s/%73{survey.slug[1:]}#d={survey.sha256[:32]}")
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_have_text(
        "There is no survey at this address. Check the link."
    )
    expect(page.get_by_text("Nothing was asked, and nothing was sent.")).to_be_visible()
    assert stored_entries(page) == {}
    assert definitions(device) == 0


def store_entry(page, survey, state: str, codes: str) -> str:
    """Store a report with these codes on the device and return its body."""
    body = f'{{"definition":"{survey.sha256}","codes":{codes},"pad":""}}'
    entry = {"state": state, "body": body, "status": 422, "detail": ""}
    # Before that, the open page could still read and send the stored report.
    expect(page.locator(".view.start")).to_be_visible()
    page.evaluate(
        "([key, text]) => localStorage.setItem(key, text)",
        [f"survey-report:{survey.slug}", json.dumps(entry)],
    )
    page.reload()
    return body


ODD_CODES = ["[9,9]", "[-1,0.5]", "[0]", "[]", "[0,1,2]", '[null,"AAAA"]', '[{"toString":1},[0]]']


@pytest.mark.parametrize("codes", long_unless(ODD_CODES[-2:], ODD_CODES))
def test_a_refused_report_with_odd_codes_is_shown_as_far_as_it_can_be_read(site, device, codes):
    survey = site.publish()
    page = device.open(site.link(survey))
    body = store_entry(page, survey, "refused", codes)
    heading(page, "The survey did not accept your lines")
    page.get_by_text("See what these lines say").tap()
    expect(page.locator("pre")).to_have_text(body)
    expect(page.locator(".reported dt")).to_have_count(2)
    unreadable = page.get_by_text("This line cannot be read.")
    readable = sum(type(code) is int and 0 <= code < 3 for code in json.loads(codes)[:2])
    expect(unreadable).to_have_count(2 - readable)
    device.context.route("**/reports", lambda route: problem(route, 422))
    press(page, "Try again")
    heading(page, "The survey did not accept your lines")
    expect(page.locator("h1")).to_be_focused()
    assert device.bodies == [body.encode()]
    assert device.messages == [line for line in device.messages if "422" in line]


@pytest.mark.parametrize("codes", long_unless(ODD_CODES[-2:], ODD_CODES))
def test_a_waiting_report_with_odd_codes_is_sent_unchanged(site, device, codes):
    survey = site.publish()
    page = device.open(site.link(survey))
    device.context.route("**/reports", lambda route: route.fulfill(status=201))
    body = store_entry(page, survey, "pending", codes)
    wait_sent(page)
    page.get_by_text("See what was sent").tap()
    expect(page.locator("pre")).to_have_text(body)
    assert device.bodies == [body.encode()]
    assert stored_entries(page) == {f"survey-report:{survey.slug}": '{"state":"sent"}'}
    assert device.messages == []


def two_tabs_with_a_refused_report(site, device):
    """Open two tabs that show the same refused report."""
    survey = site.publish()
    first = device.open(site.link(survey))
    device.context.route("**/reports", lambda route: problem(route, 410))
    answer_and_send(first)
    heading(first, "The survey did not accept your lines")
    second = device.open(site.link(survey))
    heading(second, "The survey did not accept your lines")
    device.context.unroute_all()
    device.messages.clear()
    return survey, first, second


@pytest.mark.parametrize("mine", [0, 1], ids=["the tab that made it", "the tab that found it"])
def test_trying_again_after_another_tab_sent_the_report_shows_a_message(site, device, mine):
    survey, *tabs = two_tabs_with_a_refused_report(site, device)
    tabs[1 - mine].bring_to_front()
    press(tabs[1 - mine], "Try again")
    wait_sent(tabs[1 - mine])
    tabs[mine].bring_to_front()
    press(tabs[mine], "Try again")
    heading(tabs[mine], "This device has already sent answers")
    assert len(device.bodies) == 2
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1
    assert stored_entries(tabs[mine]) == {f"survey-report:{survey.slug}": '{"state":"sent"}'}
    assert device.messages == []


@pytest.mark.parametrize("status", long_unless([201], [201, 410, 422]))
def test_trying_now_after_another_tab_sent_the_report_leaves_the_mark(site, device, status):
    device.disable_retries()
    survey = site.publish()
    device.context.route("**/reports", lambda route: route.abort())
    first = device.open(site.link(survey))
    answer_and_send(first)
    wait_waiting(first)
    second = device.open(site.link(survey))
    wait_waiting(second)
    device.context.unroute_all()
    first.route("**/reports", lambda route: problem(route, status))
    press(second, "Try now")
    wait_sent(second)
    first.bring_to_front()
    press(first, "Try now")
    heading(
        first,
        "Sent. Thank you." if status == 201 else "This device has already sent answers",
    )
    assert stored_entries(first) == {f"survey-report:{survey.slug}": '{"state":"sent"}'}
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1


def test_a_trace_that_another_tab_removed_first_is_removed_too(site, device):
    survey = site.publish()
    first = device.open(site.link(survey))
    answer_and_send(first)
    wait_sent(first)
    other_tabs = [device.open(site.link(survey)) for _ in range(2)]
    for tab in other_tabs:
        heading(tab, "This device has already sent answers")
    for tab in [first, *other_tabs]:
        tab.bring_to_front()
        press(tab, "Forget this on this device")
        heading(tab, "Forgotten")
    assert stored_entries(first) == {}
    assert len(device.bodies) == 1
    assert device.messages == []


def test_after_success_a_mark_without_answer_id_or_body_stays_until_it_is_removed(site, device):
    survey = site.publish()
    page = device.open(site.link(survey))
    answer_and_send(page)
    wait_sent(page)
    assert stored_entries(page) == {f"survey-report:{survey.slug}": '{"state":"sent"}'}
    page.reload()
    heading(page, "This device has already sent answers")
    expect(page.locator("input")).to_have_count(0)
    site.publish_as(survey.slug, SMALL.replace("Two questions.", "Two newer questions."))
    page.goto("about:blank")
    page.goto(f"{site.url}/s/{survey.slug}")
    heading(page, "This device has already sent answers")
    press(page, "Forget this on this device")
    heading(page, "Forgotten")
    assert stored_entries(page) == {}
    assert len(device.bodies) == 1


def test_only_the_report_is_stored_while_it_waits(site, device):
    device.disable_retries()
    survey = site.publish()
    page = device.open(site.link(survey))
    device.context.route("**/reports", lambda route: route.abort())
    answer(page, ["Yes", "Once"])
    assert stored_entries(page) == {}
    press(page, "Send")
    wait_waiting(page)
    assert list(stored_entries(page)) == [f"survey-report:{survey.slug}"]
    stored = json.loads(stored_entries(page)[f"survey-report:{survey.slug}"])
    assert stored == {"state": "pending", "body": device.bodies[0].decode()}


def test_without_storage_the_report_waits_in_the_open_page(site, device):
    device.disable_retries()
    survey = site.publish()
    device.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no') }})"
    )
    page = device.open(site.link(survey))
    page.route("**/reports", lambda route: problem(route, 500))
    answer_and_send(page)
    wait_waiting(page)
    expect(page.locator(".notice")).to_contain_text("Leave this page open")
    page.unroute_all()
    press(page, "Try now")
    wait_sent(page)
    assert len(set(device.bodies)) == 1


@pytest.mark.parametrize(
    "denial",
    [
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no') }})",
        "for (const name of ['getItem', 'setItem', 'removeItem'])"
        " Storage.prototype[name] = () => { throw new DOMException('no') }",
    ],
    ids=["when named", "when used"],
)
def test_without_storage_the_page_shows_a_message_and_promises_no_mark(site, device, denial):
    device.context.add_init_script(denial)
    page = device.open(site.link(site.publish()))
    expect(page.locator(".notice", has_text="Keep the page open")).to_be_visible()
    answer_and_send(page)
    wait_sent(page)
    expect(page.locator(".notice", has_text="Please do not answer again")).to_be_visible()
    expect(page.get_by_text("remember")).to_have_count(0)
    expect(page.locator("main").get_by_role("button")).to_have_count(0)


def test_with_storage_the_page_does_not_warn_about_it(site, device):
    page = device.open(site.link(site.publish()))
    heading(page, "A small survey")
    expect(page.get_by_text("cannot store anything")).to_have_count(0)
    assert stored_entries(page) == {}
    answer_and_send(page)
    wait_sent(page)
    expect(page.get_by_text("cannot store anything")).to_have_count(0)


@pytest.mark.parametrize("patterns", long_unless([SAMPLE], [SAMPLE, ALL_ANSWERS]), ids=len)
def test_constant_shape_every_pattern_of_answers_has_the_same_keys_length_and_requests(
    site, new_device, patterns
):
    survey = site.publish()
    shapes = set()
    for pattern in patterns:
        person = new_device()
        page = person.open(site.link(survey))
        with page.expect_response("**/sent"):
            answer_and_send(page, pattern)
        wait_sent(page)
        (body,) = person.bodies
        addresses = [(request.method, request.url) for request in person.requests]
        shapes.add((len(body), tuple(json.loads(body)), tuple(sorted(addresses))))
        assert re.fullmatch(
            rb'\{"definition":"[0-9a-f]{64}","report_id":"[\w-]{22}","stratum":"",'
            rb'"codes":\[[012],[012]\],"invitation":"","pad":"\.+"\}',
            body,
        )
        person.context.close()
    assert len(shapes) == 1
    assert next(iter(shapes))[0] == survey.definition.report_bytes
    assert site.store.n_pending(survey.key) == len(patterns)


def test_pressing_send_twice_creates_one_report(site, device):
    survey = site.publish()
    page = device.open(site.link(survey))
    answer(page, ["No", "Never"])
    page.get_by_role("button", name="Send").dblclick()
    wait_sent(page)
    assert len(device.bodies) == 1


def test_the_back_button_shows_an_empty_form(site, device):
    survey = site.publish()
    page = device.open(site.link(survey))
    press(page, "Start")
    choose(page, "Yes")
    page.goto(f"{site.url}/healthz")
    page.go_back()
    press(page, "Start")
    expect(page.locator("input")).to_have_count(3)
    expect(page.locator("input:checked")).to_have_count(0)
