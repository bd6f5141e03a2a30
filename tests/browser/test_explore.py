"""Explore pages of a survey with long texts: nothing is cut at any width."""

from __future__ import annotations

import pytest

from tests.browser.research import sign_in, visit
from tests.conftest import SMALL
from tests.results.populations import SHARES, add_people, published

pytestmark = pytest.mark.web

LONG = (
    SMALL.replace("Did you fall asleep at work?", "Donaudampfschifffahrtsgesellschaft" * 4)
    .replace("Never", "Nobody pressed me to stay longer than I had agreed to at any time this year")
    .replace("Once", "An answer that needs a whole sentence, as answers in real surveys often do")
    .replace("Often", "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverleihung")
)
PAGES = (
    "",
    "?first=fell_asleep&second=pressure",
    "/difference?question=pressure&a=link:north&b=link:south",
    "/difference?question=pressure&a=answer:fell_asleep:yes&b=answer:fell_asleep:no",
    "/regression?question=pressure&predictor=link&predictor=fell_asleep",
    "/weighting?question=pressure&by=link&unit=percent&margins=north,20%0Asouth,80",
    "/weighting?question=fell_asleep&by=answer:pressure",
)
OUTSIDE = """[...document.querySelectorAll("main, main *")]
  .filter((e) => e.checkVisibility() && !e.closest("svg, .unseen"))
  .filter((e) => e.matches(".scroll") || !e.closest(".scroll"))
  .filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`)"""
CUT = """[...document.querySelectorAll(".scroll")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1)
  .map((e) => [e.getAttribute("aria-label"), e.tabIndex, getComputedStyle(e).backgroundImage])"""
HIDDEN_HEADS = """[...document.querySelectorAll(".scroll th[scope=rowgroup] > span")]
  .map((e) => [e, e.closest(".scroll").getBoundingClientRect().right])
  .filter(([e, edge]) => e.getBoundingClientRect().right > edge)
  .map(([e]) => e.textContent)"""


@pytest.mark.parametrize("width", [390, 1280])
def test_long_answers_widen_no_page_and_tables_show_where_they_scroll(
    serve, store, researcher, new_device, width
):
    survey = published(store, LONG)
    for seed, group in enumerate(("north", "south")):
        add_people(store, survey, 8000, group, SHARES, seed)
    url = serve()
    page = sign_in(new_device(viewport={"width": width, "height": 800}, is_mobile=False), url)
    for path in PAGES:
        visit(page, f"{url}/research/surveys/small/explore{path}")
        assert page.locator("table").count() or not page.locator("#table").count(), path
        assert page.evaluate(OUTSIDE) == [], path
        assert page.evaluate(HIDDEN_HEADS) == [], path
        cut = page.evaluate(CUT)
        if width > 1000:
            assert cut == [], path
        assert all(tab == 0 and "gradient" in edge for _, tab, edge in cut), path
