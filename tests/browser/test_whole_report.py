"""The respondent's page shows the factor of a whole report that enumeration finds."""

from __future__ import annotations

import pytest

from survey.questionnaire.privacy_loss import Bounds
from tests.browser.respondent import heading
from tests.web.test_whole_report import SURVEYS, enumerated_ratio, rounded_up

pytestmark = pytest.mark.web


@pytest.mark.parametrize("name", SURVEYS)
def test_the_start_page_shows_the_enumerated_factor_and_its_examples(site, device, name):
    survey = site.publish(SURVEYS[name])
    factor = enumerated_ratio(survey.definition)
    bounds = Bounds.of(factor)
    page = device.open(site.link(survey))
    heading(page, "Nights")
    text = page.locator("main").text_content()
    assert f"at most {rounded_up(factor)}" in text
    for percent in (bounds.from10, bounds.from50):
        assert (f"{percent}%" if percent <= 99 else "more than 99%") in text
