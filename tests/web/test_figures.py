"""The charts of a dashboard as files: the same numbers, in every form, never what is hidden."""

from __future__ import annotations

import json
import re

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.estimates.result import Results
from survey.results.exports.figures import FORMATS
from survey.settings import Caps
from tests.browser.research import add_released
from tests.browser.surveys import EVERY_TYPE
from tests.conftest import TODAY
from tests.web.researchers import sign_in

BEGINNINGS = {"json": b"{", "svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.fixture
def reader(client, researcher, store, small):
    add_released(store, small, 3000)
    assert sign_in(client).status_code == 302
    return client


def address(question, kind: str, part: str = "shares") -> str:
    return f"/research/surveys/small/1/figures/{question.id}-{part}.{kind}"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_chart_is_downloaded_in_every_form(reader, small, kind):
    question = small.definition.questions[0]
    answer = reader.get(address(question, kind))
    assert answer.status_code == 200
    assert answer.content_type == FORMATS[kind]
    assert answer.data.startswith(BEGINNINGS[kind])
    assert f"small-1-{question.id}-shares.{kind}" in answer.headers["Content-Disposition"]


def test_the_specification_has_the_figures_of_the_table(reader, store, small):
    question = Results(store).of(small).questions[0]
    written = json.loads(reader.get(address(question.question, "json")).data)
    points = written["data"]["values"]
    assert [point["dot"] for point in points] == [
        min(max(row.estimate, 0), 1) for row in question.shares
    ]
    assert [point["low"] for point in points] == [row.conf_low for row in question.shares]
    assert question.question.text in " ".join(written["title"]["text"])


def test_a_figure_has_the_intervals_that_its_page_has(reader, small):
    question = small.definition.questions[0]
    usual, wide = (
        json.loads(reader.get(address(question, "json") + query).data)["data"]["values"]
        for query in ("", "?level=0.99")
    )
    assert all(one["low"] >= other["low"] for one, other in zip(usual, wide, strict=True))
    assert usual != wide


def test_what_the_page_hides_has_no_figure(client, researcher, store, small):
    sign_in(client)
    for kind in FORMATS:
        assert client.get(address(small.definition.questions[0], kind)).status_code == 404


@pytest.mark.parametrize(
    "path",
    ["none-shares.svg", "{}-shares.gif", "{}-none.svg", "{}-middle.svg", "{}.svg", "{}-shares"],
)
def test_a_figure_that_there_is_not_is_404(reader, small, path):
    name = path.format(small.definition.questions[0].id)
    assert reader.get(f"/research/surveys/small/1/figures/{name}").status_code == 404


def test_every_figure_that_a_page_offers_is_there(client, researcher, store):
    survey = publish(store, load(EVERY_TYPE.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 6000)
    sign_in(client)
    page = client.get(f"/research/surveys/{survey.slug}/1").text
    offered = re.findall(r'href="([^"]+/figures/[^"]+\.svg)"', page)
    assert len(offered) > 3
    assert page.count('<figure class="chart"') == len(offered)
    assert {client.get(path).status_code for path in offered} == {200}
