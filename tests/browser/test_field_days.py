"""Field mode over simulated days: 500 people, restarts, clock jumps and a bad network."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.respondent import heading
from tests.browser.tablet import check_all_arrived

pytestmark = [pytest.mark.long, pytest.mark.security]

DAYS = (
    *("2026-12-01T08:00:00Z", "2026-12-02T23:59:58Z", "2038-01-19T03:14:07Z"),
    *("1970-01-01T00:00:00Z", "2026-12-05T12:00:00Z", "2025-02-28T23:59:59Z"),
    *("2099-12-31T23:59:59Z", "2026-12-08T06:00:00Z", "2000-02-29T00:00:00Z"),
    "2026-12-10T18:00:00Z",
)
PEOPLE_PER_DAY = 50


def test_500_reports_of_ten_days_arrive_exactly_once(field_site, network, field_survey, tablet):
    tablet.prepare(field_survey)
    network.mode = "off"
    for day in DAYS:
        tablet.restart(day)
        heading(tablet.page, "A small survey")
        for _ in range(PEOPLE_PER_DAY):
            tablet.interview()
    tablet.open_desk()
    expect(tablet.page.get_by_text("Answers from 500 people are waiting")).to_be_visible()
    for mode in ("cut", "busy", "half", "off"):
        network.mode = mode
        assert "will try again" in tablet.upload()
    # The network fails after some portions.
    network.uploads_left = 7
    network.mode = "on"
    assert "will try again" in tablet.upload()
    tablet.restart()
    network.uploads_left = None
    tablet.restart()
    tablet.open_desk()
    expect(tablet.page.get_by_text("All answers are uploaded.")).to_be_visible()
    expect(tablet.page.get_by_text("No answers are waiting")).to_be_visible()
    check_all_arrived(field_site, field_survey, tablet)
    assert len(tablet.bodies) == PEOPLE_PER_DAY * len(DAYS)
