"""Two questions whose answers the respondent's page randomizes as one."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.browser.respondent import answer, press, wait_sent
from tests.store.reports import pending_reports

pytestmark = [pytest.mark.web]

PAIR = """
slug = "pair"
title = "Habits"
truth_probability = "3/4"
prefer_not_to_say = false
[[pages]]
[[pages.questions]]
id = "smokes"
type = "yes_no"
text = "Do you smoke?"
[[pages]]
[[pages.questions]]
id = "drinks"
type = "single_choice"
text = "Do you drink?"
options = [{id = "often", label = "Often"}, {id = "once", label = "Once"},
           {id = "never", label = "Never"}]
[[together]]
questions = ["smokes", "drinks"]
joint = true
"""


def test_the_page_states_the_joint_factor_and_sends_one_option_per_question(site, device):
    survey = site.publish(PAIR)
    page = device.open(site.link(survey))
    label = page.get_by_text("Some answers share one roll of the dice.").first
    expect(label).to_be_attached()
    expect(page.get_by_text("by a factor of at most 18").first).to_be_attached()
    answer(page, ["Yes", "Never"])
    press(page, "Send")
    wait_sent(page)
    (body,) = device.bodies
    first, second = json.loads(body)["codes"]
    assert first in range(2)
    assert second in range(3)
    site.read_keys()
    (stored,) = pending_reports(site.store, survey)
    assert [*stored.codes] == [first, second]
