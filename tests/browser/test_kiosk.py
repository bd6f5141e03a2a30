"""Shared devices: nothing is stored, the next person starts again, and idle answers are cleared."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

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
from tests.browser.test_traces import NOTHING, STORES
from tests.conftest import SMALL

pytestmark = [pytest.mark.web, pytest.mark.security]

SHARED = f"kiosk = true\n{SMALL}"


@pytest.fixture
def survey(site):
    return site.publish(SHARED)


def test_a_shared_device_stores_nothing_and_the_next_person_starts_again(site, survey, device):
    page = device.open(site.link(survey))
    expect(page.get_by_text("So nothing stops a person from answering twice")).to_be_visible()
    for _ in range(2):
        answer_and_send(page)
        wait_sent(page)
        assert stored_entries(page) == {}
        assert page.evaluate(STORES) == NOTHING
        assert device.context.cookies() == []
        expect(page.get_by_text("so nothing stops a person from answering twice.")).to_be_visible()
        for name in ("Forget this on this device", "Remember on this device"):
            expect(page.get_by_text(name)).to_have_count(0)
        press(page, "Start for the next person")
        heading(page, "A small survey")
        assert page.locator("pre").count() == 0
    first, second = (json.loads(body)["report_id"] for body in device.bodies)
    assert first != second
    assert site.store.n_pending(survey.key) == 2


def test_a_shared_device_does_not_reveal_the_surveys_that_it_remembers(site, survey, device):
    page = device.open(site.link(site.publish()))
    answer_and_send(page)
    press(page, "Remember on this device")
    page = device.open(site.link(survey))
    press(page, "Start")
    heading(page, "First page")


def test_a_shared_device_stores_a_waiting_report_only_in_the_page_and_shows_a_message(
    site, survey, device
):
    page = device.open(site.link(survey))
    answer(page, ["Yes", "Never"])
    device.context.set_offline(True)
    press(page, "Send")
    wait_waiting(page)
    expect(page.get_by_text("This shared device stores nothing.")).to_be_visible()
    assert stored_entries(page) == {}
    device.context.set_offline(False)
    wait_sent(page)
    assert len(set(device.bodies)) == 1


def test_the_answers_of_a_person_who_left_are_cleared(site, survey, device):
    page = device.context.new_page()
    page.clock.install(time="2026-11-21T00:00:00Z")
    page.goto(site.link(survey))
    heading(page, "A small survey")
    page.clock.pause_at("2026-11-21T00:01:30Z")
    press(page, "Start")
    choose(page, "Yes")
    page.clock.run_for(121_000)
    notice = page.get_by_role("alertdialog", name="Are you still there?")
    expect(notice).to_contain_text("for 60 seconds")
    expect(notice.get_by_role("button")).to_be_focused()
    press(page, "I am still here")
    # The dialog disappears when the browser reports its end, a moment after it closed.
    expect(page.locator("dialog")).to_have_count(0)
    assert page.locator("input:checked").count() == 1
    page.clock.run_for(121_000)
    expect(notice).to_be_visible()
    page.clock.run_for(61_000)
    heading(page, "A small survey")
    press(page, "Start")
    assert page.locator("input:checked").count() == 0
    assert device.posts == []


def test_a_browser_without_dialogs_clears_answers_without_asking(site, survey, device):
    page = device.context.new_page()
    page.add_init_script("delete HTMLDialogElement.prototype.showModal")
    page.clock.install(time="2026-11-21T00:00:00Z")
    page.goto(site.link(survey))
    heading(page, "A small survey")
    page.clock.pause_at("2026-11-21T00:01:30Z")
    press(page, "Start")
    choose(page, "Yes")
    page.clock.run_for(121_000)
    heading(page, "A small survey")
    press(page, "Start")
    assert page.locator("input:checked").count() == 0


def test_an_active_person_is_not_asked_whether_they_are_there(site, survey, device):
    page = device.context.new_page()
    page.clock.install()
    page.goto(site.link(survey))
    press(page, "Start")
    for label in ("Yes", "No", "Yes"):
        page.clock.run_for(100_000)
        choose(page, label)
    expect(page.get_by_role("alertdialog")).to_have_count(0)


def test_a_waiting_report_survives_idleness(site, survey, device):
    page = device.context.new_page()
    page.clock.install()
    page.goto(site.link(survey))
    answer(page, ["Yes", "Never"])
    device.context.set_offline(True)
    press(page, "Send")
    wait_waiting(page)
    page.clock.run_for(400_000)
    expect(page.get_by_role("alertdialog")).to_have_count(0)
    heading(page, "Not sent yet")


def test_leaving_on_a_shared_device_restarts_the_survey_and_loses_no_report(site, survey, device):
    page = device.open(site.link(survey))
    answer(page, ["Yes", "Never"])
    press(page, "Leave now")
    heading(page, "A small survey")
    press(page, "Start")
    assert page.locator("input:checked").count() == 0
    page.reload()
    answer(page, ["Yes", "Never"])
    device.context.set_offline(True)
    press(page, "Send")
    wait_waiting(page)
    press(page, "Leave now")
    heading(page, "Not sent yet")
    device.context.set_offline(False)
    wait_sent(page)
    assert len(set(device.bodies)) == 1


def test_a_new_version_for_shared_devices_creates_no_second_report_after_sending(site, device):
    survey = site.publish()
    page = device.open(site.link(survey))
    answer_and_send(page)
    wait_sent(page)
    shared = site.publish_as(survey.slug, SHARED)
    heading(device.open(site.link(shared)), "This device has already sent answers")
    assert len(device.posts) == 1
