"""The page of one question, and the dashboard's texts around its figures."""

from __future__ import annotations

import html
import re

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.results.number_format import percent_with_decimal
from survey.results.request import (
    INTERVAL_CHOICES,
    INTERVAL_NAMES,
    IntervalOptions,
    options_to_query,
    parse_options,
)
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.web.researchers import sign_in

BASE = "/research/surveys/small"
FIRST, SECOND = "fell_asleep", "pressure"

LONG = 'slug = "long"\ntitle = "Long"\nepsilon = 0.5\n' + "".join(
    f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Question {i}?"\n' for i in range(30)
)


@pytest.fixture
def reader(client, researcher, store, small):
    add_released(store, small, 3000)
    assert sign_in(client).status_code == 302
    return client


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def links_of(page: str) -> list[str]:
    return [html.unescape(link) for link in re.findall(r'href="([^"]+)"', page)]


def test_the_page_of_one_question_shows_its_details(reader, store, small):
    page = reader.get(f"{BASE}/1/questions/{FIRST}")
    assert page.status_code == 200
    result = ResultCache(store).result(small).question(FIRST)
    text = text_of(page.text)
    for line in result.details:
        expected = (
            f"{line.label} {percent_with_decimal(line.unbiased)} "
            f"{percent_with_decimal(line.display)} "
            f"{100 * line.std_error:.2f} ±{100 * line.margin:.1f} "
            f"±{100 * line.sampling:.1f} ±{100 * line.randomization:.1f} "
            f"{line.n_effective:,.0f} {line.fabricated:,}"
        )
        assert expected in text
    assert all(remark in text for remark in result.remarks)
    assert "Did anybody press you to stay longer?" not in re.sub(
        r"<nav.*?</nav>", "", page.text, flags=re.S
    )


def test_the_page_of_one_question_links_to_neighbours_and_groups_with_its_options(reader):
    links = links_of(reader.get(f"{BASE}/1/questions/{FIRST}?level=0.9").text)
    assert f"{BASE}/1/questions/{SECOND}?level=0.9" in links
    assert f"{BASE}/1/links?question={FIRST}&level=0.9" in links
    assert f"{BASE}/1?level=0.9" in links
    assert f"{BASE}/1/questions/{FIRST}" in links
    links = links_of(reader.get(f"{BASE}/1").text)
    assert {f"{BASE}/1/questions/{item}" for item in (FIRST, SECOND)} <= set(links)


def test_an_unknown_question_is_not_found(reader):
    assert reader.get(f"{BASE}/1/questions/none").status_code == 404
    assert reader.get(f"{BASE}/1/figures/none-shares.svg").status_code == 404
    assert reader.get(f"{BASE}/1/figures/{FIRST}-shares.gif").status_code == 404


def test_a_long_survey_has_an_outline_that_marks_suppressed_questions(client, researcher, store):
    survey = publish(store, load(LONG.encode(), "s.toml", Caps(survey=100)), TODAY)
    assert sign_in(client).status_code == 302
    add_released(store, survey, 60)
    page = client.get("/research/surveys/long/1").text
    outline = re.search(r'<nav class="outline".*?</nav>', page, re.S)[0]
    links = re.findall(r'href="([^"#]*)#([^"]+)"', outline)
    assert len(links) == 30
    assert all(f'id="{target}"' in page for _, target in links)
    n_shown = sum(not address for address, _ in links)
    assert n_shown >= 12
    assert outline.count("not enough responses yet") == n_shown


def test_the_page_offers_only_valid_combinations_of_options(reader):
    assert tuple(INTERVAL_NAMES) == INTERVAL_CHOICES
    page = reader.get(f"{BASE}/1").text
    for name in INTERVAL_CHOICES:
        query = options_to_query(IntervalOptions(interval=name))
        address = f"{BASE}/1" + (f"?interval={query['interval']}" if query else "")
        assert f'<a href="{address}"' in page
        assert INTERVAL_NAMES[name] in page
    page = reader.get(f"{BASE}/1?target=respondents").text
    assert not any(name in page for name in list(INTERVAL_NAMES.values()))
    page = reader.get(f"{BASE}/1?interval=wilson").text
    assert f'href="{BASE}/1?target=respondents"' in page
    assert f'href="{BASE}/1?level=0.9&amp;interval=wilson"' in page


def test_every_linked_combination_of_options_can_be_opened(reader):
    addresses = set()
    for start in ("", "?interval=wilson&level=0.99", "?target=respondents&simultaneous=1"):
        page = reader.get(f"{BASE}/1/questions/{SECOND}{start}").text
        nav = re.search(r'<nav class="reading" aria-label="Options".*?</nav>', page, re.S)[0]
        addresses |= set(links_of(nav))
    assert len(addresses) > 12
    for address in addresses:
        _, _, query = address.partition("?")
        parse_options(dict(pair.split("=") for pair in query.split("&") if pair))


def test_the_page_names_the_latest_release(reader, store, small):
    assert "(latest: release 1)" in text_of(reader.get(f"{BASE}/1").text)
    add_released(store, small, 100)
    text = text_of(reader.get(f"{BASE}/1").text)
    assert "(latest: release 2)" in text


def test_versions_are_listed_newest_first_and_a_question_links_to_its_versions(reader, store):
    assert "No figure combines responses" not in reader.get(f"{BASE}/1").text
    text = SMALL.replace(f'id = "{SECOND}"', 'id = "pressed"')
    publish(store, load(text.encode(), "s.toml", Caps()), TODAY)
    page = reader.get(f"{BASE}/1?level=0.9").text
    nav = re.search(r'<nav class="reading" aria-label="Versions.*?</nav>', page, re.S)[0]
    assert links_of(nav) == [
        f"{BASE}/2?level=0.9",
        f"{BASE}/1?level=0.9",
        "/research/surveys/small/changes?after=2",
    ]
    assert "2 (open)" in nav
    assert "1 (superseded)" in nav
    assert "No figure combines responses" in text_of(page)
    assert "3,000" in page
    assert "3,000" not in reader.get(f"{BASE}/2").text
    page = reader.get(f"{BASE}/1/questions/{FIRST}").text
    assert f'href="{BASE}/2/questions/{FIRST}"' in page
    assert f"{BASE}/2/questions/{SECOND}" not in reader.get(f"{BASE}/1/questions/{SECOND}").text


SKIPPING = """
slug = "skipping"
title = "Skipping"
allow_skip_logic = true
epsilon = 4

[[pages]]
[[pages.questions]]
id = "works"
type = "yes_no"
text = "Do you work?"

[[pages]]
[[pages.questions]]
id = "overtime"
type = "yes_no"
text = "Do you work overtime?"
ask_if = { question = "works", options = ["yes"] }

[[pages.questions]]
id = "alone"
type = "yes_no"
text = "Do you live alone?"
"""


def test_odds_factors_name_the_influence_of_skip_logic(reader, store):
    publish(store, load(SKIPPING.encode(), "skipping.toml", Caps()), TODAY)
    counting = "With the questions linked to it by skip logic: weak protection (ε 8), odds factor"
    headings = [
        text_of(reader.get(f"/research/surveys/skipping/1/questions/{name}").text)
        for name in ("works", "overtime", "alone")
    ]
    assert [counting in text for text in headings] == [True, True, False]
    assert [". This question alone: ε 4" in text for text in headings] == [True, True, False]
    assert "This question alone: weak protection (ε 4), odds factor at most 55" in headings[2]
