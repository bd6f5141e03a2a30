"""Personal links: one report each, removed from the address, damage reported; open links."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from survey.collect.invitations import issue_invitations, new_tokens, respondent_link
from survey.settings import Settings
from tests.browser.respondent import answer_and_send, heading, press, stored_entries, wait_sent
from tests.conftest import SMALL, long_unless

pytestmark = [pytest.mark.web, pytest.mark.security]

DAMAGES = {
    "cut": lambda link: link[:-1],
    "longer": lambda link: f"{link}A",
    "script": lambda link: link.replace("&i=", "&i=<script>alert(1)</script>"),
    "long stratum": lambda link: link.replace("#s=", f"#s={'n' * 61}"),
    "stratum alone": lambda link: link.partition("&i=")[0],
}
INVITED = f'access = "invitation"\n{SMALL}'


def invited(site, survey, stratum: str = "") -> str:
    """Return a personal link to a survey."""
    (token,) = new_tokens(1)
    issue_invitations(site.store, survey, stratum, [token])
    return respondent_link(survey, Settings(public_url=site.url), token=token, stratum=stratum)


def test_a_personal_link_sends_one_report_with_its_group(site, device):
    survey = site.publish(INVITED)
    page = device.open(invited(site, survey, "Köln & Bonn"))
    heading(page, "A small survey")
    expect(page.get_by_text("Your link works once.")).to_be_visible()
    expect(page.get_by_text("Your link belongs to a group: “Köln & Bonn”")).to_be_visible()
    answer_and_send(page)
    wait_sent(page)
    body = json.loads(device.bodies[0])
    assert body["stratum"] == "Köln & Bonn"
    assert len(body["invitation"]) == 43
    assert len(device.bodies[0]) == survey.definition.report_bytes
    assert site.store.n_pending(survey.key) == 1


def test_the_token_leaves_the_address_and_the_history_and_is_in_no_url(site, device):
    survey = site.publish(INVITED)
    link = invited(site, survey, "north")
    token = link.partition("&i=")[2].partition("&")[0]
    page = device.open(link)
    heading(page, "A small survey")
    assert page.url == f"{site.link(survey)}&i="
    assert page.evaluate("history.length") == 2  # the new tab's empty page, and this one
    answer_and_send(page)
    wait_sent(page)
    page.go_back()
    page.go_forward()
    assert token not in page.url
    assert "North" not in page.url
    assert all(token not in request.url for request in device.requests)
    # The browser reports a canceled request with an empty referrer.
    assert not any(request.all_headers().get("referer") for request in device.requests)


def test_an_open_link_asks_people_to_answer_once(site, device):
    page = device.open(site.link(site.publish()))
    page.get_by_text("More about protection").tap()
    expect(page.get_by_text("Please answer only once.")).to_be_visible()


def test_a_used_link_is_rejected_with_the_reason_and_the_report_stays(site, new_device):
    survey = site.publish(INVITED)
    link = invited(site, survey)
    first, second = new_device(), new_device()
    page = first.open(link)
    answer_and_send(page)
    wait_sent(page)
    page = second.open(link)
    answer_and_send(page)
    heading(page, "The survey did not accept your lines")
    expect(page.locator(".notice").first).to_have_text(
        "Your link was already used, or it belongs to another survey."
    )
    # The server would reject it again.
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    expect(page.get_by_text("Each try sends")).to_have_count(0)
    assert site.store.n_pending(survey.key) == 1


@pytest.mark.parametrize("damage", long_unless(["cut", "script"], DAMAGES))
def test_a_damaged_link_shows_an_error_and_no_questions(site, device, damage):
    page = device.open(DAMAGES[damage](invited(site, site.publish(INVITED), "north")))
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("Part of your link is missing or was changed")
    # The link would be the same.
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    assert page.locator("input").count() == 0
    assert device.posts == []
    assert not any("definition.json" in request.url for request in device.requests)
    assert device.messages == []


def test_a_survey_by_invitation_says_so_without_a_personal_link(site, device):
    survey = site.publish(INVITED)
    page = device.open(site.link(survey))
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("opens with your personal link")
    assert device.posts == []


def test_a_link_that_could_not_be_opened_offline_can_be_tried_again(site, device):
    survey = site.publish(INVITED)
    link = invited(site, survey)
    device.context.route("**/definition.json", lambda route: route.abort())
    page = device.open(link)
    heading(page, "This survey cannot start")
    assert page.url == link
    device.context.unroute("**/definition.json")
    press(page, "Try again")
    answer_and_send(page)
    wait_sent(page)
    assert site.store.n_pending(survey.key) == 1


def test_another_link_pasted_over_a_damaged_one_opens(site, device):
    link = invited(site, site.publish(INVITED))
    page = device.open(link[:-3])
    heading(page, "This survey cannot start")
    page.evaluate("(link) => location.assign(link)", link)
    heading(page, "A small survey")
    expect(page.get_by_text("Your link works once.")).to_be_visible()


def test_reloading_a_personal_link_never_continues_without_it(site, device):
    page = device.open(invited(site, site.publish(), "north"))
    heading(page, "A small survey")
    page.reload()
    heading(page, "This survey cannot start")
    expect(page.locator(".notice")).to_contain_text("Open that link again")


def test_removing_a_refused_report_leaves_the_mark(site, new_device):
    survey = site.publish(INVITED)
    link = invited(site, survey)
    answer_and_send(new_device().open(link))
    device = new_device()
    page = device.open(link)
    answer_and_send(page)
    heading(page, "The survey did not accept your lines")
    press(page, "Forget this on this device")
    heading(page, "This device has already sent answers")
    assert list(stored_entries(page).values()) == ['{"state":"sent"}']
    press(page, "Forget this on this device")
    heading(page, "Forgotten")
    assert stored_entries(page) == {}
    page = device.open(invited(site, survey))
    heading(page, "A small survey")


def test_a_waiting_report_keeps_its_invitation_after_a_reload(site, device):
    survey = site.publish(INVITED)
    device.disable_retries()
    device.context.route("**/reports", lambda route: route.abort())
    page = device.open(invited(site, survey))
    answer_and_send(page)
    heading(page, "Not sent yet")
    device.context.unroute("**/reports")
    page.reload()
    wait_sent(page)
    assert len(set(device.bodies)) == 1
    assert site.store.n_pending(survey.key) == 1
