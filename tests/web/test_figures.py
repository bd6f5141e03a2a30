"""Charts can be downloaded in every format, with the numbers of the page, unless suppressed."""

from __future__ import annotations

import io
import json
import re

import pytest
from PIL import Image

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.results.charts import FORMATS
from survey.results.estimates.result import ResultCache
from survey.results.number_format import share_texts
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
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
    points = points_of(specification)
    assert [point["dot"] for point in points] == [
        min(max(row.estimate, 0), 1) for row in question.shares
    ]
    assert [point["low"] for point in points] == [row.conf_low for row in question.shares]
    values = [
        "{} ({})".format(*share_texts(row.estimate, row.conf_low, row.conf_high))
        for row in question.shares
    ]
    assert [point["value"] for point in points] == values
    assert specification["title"]["text"] == [question.question.text]
    assert specification["title"]["subtitle"] == ["Estimated shares with 95% intervals"]
    (line,) = specification["vconcat"][1]["data"]["values"][0]["lines"]
    assert line.startswith("n = 3,000 · A small survey, ")
    assert line.endswith("· randomized on respondents’ devices (ε\N{NO-BREAK SPACE}1.792)")


def points_of(specification) -> list[dict]:
    return specification["vconcat"][0]["data"]["values"]


def test_a_figure_has_the_size_title_and_footnote_that_its_link_asks_for(reader, small):
    question = small.definition.questions[0]
    for size, expected in (("small", (640, 360)), ("", (1200, 675)), ("print", (2009, 1131))):
        png = reader.get(address(question, "png"), query_string={"size": size}).data
        assert Image.open(io.BytesIO(png)).size == pytest.approx(expected, abs=2), size
    texts = {"title": "My own title", "footnote": "A footnote & more"}
    svg = reader.get(address(question, "svg"), query_string=texts).text
    assert "My own title" in svg
    assert "A footnote &amp; more" in svg
    assert question.text not in re.sub(r'aria-label="[^"]*"', "", svg)
    # The renderer would end the process at characters that SVG cannot contain.
    hostile = reader.get(address(question, "png"), query_string={"title": "a\x01b\ufffe\x0b"})
    assert hostile.data.startswith(FILE_STARTS["png"])
    for query in ({"size": "huge"}, {"title": "x" * 301}):
        assert reader.get(address(question, "svg"), query_string=query).status_code == 422


def test_long_labels_wrap_in_figures_and_none_is_cut(client, researcher, store):
    labels = ["I was pressed by my direct manager to stay", "I was pressed by my deputy manager"]
    toml = SMALL.replace('"Never"', f'"{labels[0]}"').replace('"Once"', f'"{labels[1]}"')
    survey = publish(store, load(toml.encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 3000)
    sign_in(client)
    svg = client.get(address(survey.definition.questions[1], "svg")).text
    assert "…" not in svg
    words = " ".join(re.findall(r">([^<>]+)<", svg))
    assert all(label in words for label in labels)


def test_a_figure_has_the_intervals_of_its_page(reader, small):
    question = small.definition.questions[0]
    default, wider = (
        points_of(json.loads(reader.get(address(question, "json") + query).data))
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
    figures = []
    for question in survey.definition.questions:
        page = client.get(f"/research/surveys/{survey.slug}/1/questions/{question.id}").text
        found = re.findall(r'formaction="([^"]+/figures/[^"]+\.svg)"', page)
        charts = re.findall(r'<div class="(?:bars|scale)">', page)
        assert len(charts) == len(found) > 0
        figures += found
    assert {client.get(path).status_code for path in figures} == {200}
    overview = client.get(f"/research/surveys/{survey.slug}/1").text
    downloads = re.findall(r'href="([^"]+/figures/[^"]+\.png)"', overview)
    assert len(downloads) == len(survey.definition.questions)
    assert {client.get(path).status_code for path in downloads} == {200}
