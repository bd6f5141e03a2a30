"""Charts can be downloaded in every format, with the numbers of the page, unless suppressed."""

from __future__ import annotations

import json
import re

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.charts import FORMATS
from survey.results.estimates.result import ResultCache
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import TODAY
from tests.surveys import EVERY_TYPE
from tests.web.researchers import sign_in

FILE_STARTS = {"json": b"{", "svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.fixture
def reader(client, researcher, store, small):
    add_released(store, small, 3000)
    assert sign_in(client).status_code == 302
    return client


def address(question, kind: str, part: str = "shares") -> str:
    return f"/research/surveys/small/1/figures/{question.id}-{part}.{kind}"


def test_a_chart_can_be_downloaded_in_every_format(reader, small):
    question = small.definition.questions[0]
    for file_format, media_type in FORMATS.items():
        response = reader.get(address(question, file_format))
        assert response.status_code == 200, file_format
        assert response.content_type == media_type
        assert response.data.startswith(FILE_STARTS[file_format]), file_format
        name = f"small-1-{question.id}-shares.{file_format}"
        assert name in response.headers["Content-Disposition"]


def test_the_specification_has_the_numbers_of_the_table(reader, store, small):
    question = ResultCache(store).result(small).questions[0]
    specification = json.loads(reader.get(address(question.question, "json")).data)
    points = specification["data"]["values"]
    assert [point["dot"] for point in points] == [
        min(max(row.estimate, 0), 1) for row in question.shares
    ]
    assert [point["low"] for point in points] == [row.conf_low for row in question.shares]
    assert question.question.text in " ".join(specification["title"]["text"])


def test_a_figure_has_the_intervals_of_its_page(reader, small):
    question = small.definition.questions[0]
    default, wider = (
        json.loads(reader.get(address(question, "json") + query).data)["data"]["values"]
        for query in ("", "?level=0.99")
    )
    assert all(narrow["low"] >= wide["low"] for narrow, wide in zip(default, wider, strict=True))
    assert default != wider


def test_a_suppressed_question_has_no_figures(client, researcher, store, small):
    sign_in(client)
    for kind in FORMATS:
        assert client.get(address(small.definition.questions[0], kind)).status_code == 404


def test_an_unknown_figure_is_not_found(reader, small):
    key = small.definition.questions[0].id
    for name in (
        *("none-shares.svg", f"{key}-shares.gif", f"{key}-none.svg"),
        *(f"{key}-middle.svg", f"{key}.svg", f"{key}-shares"),
    ):
        response = reader.get(f"/research/surveys/small/1/figures/{name}")
        assert response.status_code == 404, name


@pytest.mark.web
def test_every_figure_linked_from_the_results_page_exists(client, researcher, store):
    survey = publish(store, load(EVERY_TYPE.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 6000)
    sign_in(client)
    page = client.get(f"/research/surveys/{survey.slug}/1").text
    figures = re.findall(r'href="([^"]+/figures/[^"]+\.svg)"', page)
    assert len(figures) > 3
    assert page.count('<figure class="chart"') == len(figures)
    assert {client.get(path).status_code for path in figures} == {200}
