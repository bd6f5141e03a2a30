"""What researchers see first: the findings of the demo's survey, on a phone and on a desk."""

from __future__ import annotations

import pytest

from survey.collect.publication import publish
from survey.demo import DEFINITION
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.browser.research import add_released, sign_in
from tests.conftest import TODAY

pytestmark = pytest.mark.web

FIRST_SCREEN = 700
"""Pixels within which the first finding must be in sight."""

MAX_LINKS, MAX_BYTES = 60, 150_000


@pytest.fixture
def demo(serve, store, researcher) -> str:
    """Serve the demo's survey with reports; return the address of its results."""
    survey = publish(store, load(DEFINITION.read_bytes(), "workplace.toml", Caps()), TODAY)
    assert len(survey.definition.questions) == 8
    add_released(store, survey, 6000)
    return f"{serve()}/research/surveys/{survey.slug}/{survey.version}"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_the_first_finding_is_on_the_first_screen_of_a_light_page(demo, new_device, width, height):
    device = new_device(viewport={"width": width, "height": height}, is_mobile=False)
    page = sign_in(device, demo.partition("/research/")[0])
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(demo)
    page.wait_for_load_state("networkidle")
    finding = page.locator(".findings li").first
    box = finding.bounding_box()
    assert box["y"] + box["height"] <= FIRST_SCREEN, box
    # The sentence names estimate, interval and question.
    assert "% interval" in finding.inner_text()
    assert 8 < page.evaluate("document.links.length") <= MAX_LINKS
    assert 0 < sum(sizes) <= MAX_BYTES, sizes
