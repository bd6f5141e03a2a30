"""The respondent's page as served: its size, completeness and languages."""

from __future__ import annotations

import gzip
import json
import re

import brotli
import pytest

from survey import respondent_texts
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.respond.client import Client, source_files
from survey.settings import Caps
from survey.store import Schedule
from tests.conftest import SMALL, TODAY
from tests.store.reports import add, publish_pending, random_reports

FOUR = SMALL.replace(
    'title = "A small survey"',
    'title = { en = "A small survey", es = "Una encuesta", pt = "Uma pesquisa", ar = "استبيان" }',
)
MAX_BYTES = {"one language": 45 * 1024, "four languages": 60 * 1024}
"""Maximum page weight in a browser: compressed with brotli, without headers and definition."""


@pytest.fixture
def four(store):
    """Publish the small survey in all languages of the interface."""
    return publish(store, load(FOUR.encode(), "s.toml", Caps()), TODAY)


def loaded_paths(page: str) -> list[str]:
    """Return the addresses that a browser requests to open the page, except the definition."""
    paths = re.findall(r'(?:href|src)="(/[^"]+)"', page)
    assert len(paths) == len(set(paths))
    return paths


def page_weight(client) -> int:
    """Return the compressed bytes of the page and of every file that it loads."""
    accept = {"Accept-Encoding": "br"}
    page = client.get("/s/small", headers=accept)
    assert page.headers["Content-Encoding"] == "br"
    paths = loaded_paths(client.get("/s/small").get_data(as_text=True))
    files = [client.get(path, headers=accept) for path in paths]
    return sum(len(response.data) for response in (page, *files))


def test_the_page_weighs_at_most_45_kb_in_one_language(client, small):
    assert page_weight(client) <= MAX_BYTES["one language"]


def test_the_page_weighs_at_most_60_kb_in_four_languages(client, four):
    assert page_weight(client) <= MAX_BYTES["four languages"]


def test_the_page_preloads_every_module_so_that_no_import_waits_for_another(client, small):
    page = client.get("/s/small").get_data(as_text=True)
    preloaded = re.findall(r'<link rel="modulepreload" href="/client/[0-9a-f]+/([^"]+)"', page)
    modules = {name for name in Client.load().files if name.endswith(".js")}
    assert {*preloaded, "main.js"} == modules


@pytest.mark.parametrize(
    ("accepted", "coding", "undo"),
    [
        ("br, gzip", "br", brotli.decompress),
        ("gzip", "gzip", gzip.decompress),
        ("gzip;q=0, br;q=0", None, bytes),
        ("identity", None, bytes),
        ("", None, bytes),
    ],
)
def test_every_content_encoding_has_the_same_content(client, small, accepted, coding, undo):
    path = loaded_paths(client.get("/s/small").get_data(as_text=True))[0]
    for address in ("/s/small", "/s/small/definition.json", path):
        plain = client.get(address, headers={"Accept-Encoding": "identity"})
        coded = client.get(address, headers={"Accept-Encoding": accepted})
        assert coded.headers.get("Content-Encoding") == coding
        assert undo(coded.data) == plain.data
        assert "Accept-Encoding" in coded.headers["Vary"]


def test_the_served_client_is_the_source_without_comments_and_reproducible():
    served, sources = Client.load().files, source_files()
    assert served.keys() == sources.keys()
    for name, content in sources.items():
        text = served[name].decode("utf-8")
        if name.endswith(".js"):
            assert not re.search(r"@param|^\s*\*", text, re.M)
            exports = r"export (?:async )?(?:function|const|class) (\w+)"
            declared = re.findall(f"^{exports}", content.decode("utf-8"), re.M)
            assert sorted(re.findall(exports, text)) == sorted(declared)
    assert Client.load().sha256 == Client.load().sha256


@pytest.mark.security
def test_the_texts_in_the_page_are_the_hashed_files_byte_for_byte(client, four):
    page = client.get("/s/small").get_data(as_text=True)
    blocks = re.findall(r'<script type="application/json" data-texts="(\w+)">(.*?)</script>', page)
    assert [language for language, _ in blocks] == ["en", "ar", "es", "pt"]
    for language, text in blocks:
        assert text.encode("utf-8") == Client.load().files[f"texts.{language}.json"]
        assert len(json.loads(text)) == len(respondent_texts.device_keys())


@pytest.mark.parametrize(
    ("asks", "language", "says"),
    [
        ("es-MX,es;q=0.9,en;q=0.5", "es", "Abriendo la encuesta"),
        ("pt-BR", "pt", "Abrindo a pesquisa"),
        ("ar", "ar", "جارٍ فتح الاستبيان"),
        ("de,fr;q=0.8", "en", "Opening the survey"),
        ("", "en", "Opening the survey"),
    ],
)
def test_the_page_opens_in_the_language_that_the_browser_asks_for(
    client, four, asks, language, says
):
    response = client.get("/s/small", headers={"Accept-Language": asks})
    page = response.get_data(as_text=True)
    assert f'<html lang="{language}" dir="{"rtl" if language == "ar" else "ltr"}">' in page
    assert says in page
    assert "Accept-Language" in response.headers["Vary"]


def test_a_survey_in_one_language_loads_no_texts_of_another(client, small):
    page = client.get("/s/small", headers={"Accept-Language": "es"}).get_data(as_text=True)
    assert re.findall(r'data-texts="(\w+)"', page) == ["en"]
    assert '<html lang="en"' in page


@pytest.mark.parametrize(
    ("asks", "says"),
    [("es", "Página no encontrada"), ("ar", "الصفحة غير موجودة"), ("en", "Page not found")],
)
def test_an_unknown_survey_address_shows_a_message_in_the_readers_language(
    client, small, asks, says
):
    headers = {"Accept": "text/html", "Accept-Language": asks}
    response = client.get("/s/none", headers=headers)
    assert response.status_code == 404
    page = response.get_data(as_text=True)
    assert says in page
    assert f'<html lang="{asks}"' in page


@pytest.mark.parametrize(
    ("schedule", "status", "name"),
    [
        (Schedule(opens=TODAY.replace(year=2090)), 403, "not-open"),
        (Schedule(closes=TODAY.replace(year=2020)), 410, "closed"),
        (Schedule(maximum=50), 410, "full"),
    ],
)
def test_page_and_definition_state_why_no_reports_are_accepted(
    client, store, small, schedule, status, name
):
    if schedule.maximum:
        add(store, small, random_reports(25))
        publish_pending(store, small)
    store.set_schedule(small.key, schedule)
    assert client.get("/s/small").status_code == status
    response = client.get("/s/small/definition.json")
    assert response.status_code == status
    assert json.loads(response.data)["type"] == f"urn:survey:{name}"


def test_after_sending_the_server_asks_the_browser_to_clear_only_the_cache(client, small):
    response = client.get("/s/small/sent")
    assert response.status_code == 204
    assert response.headers["Clear-Site-Data"] == '"cache"'
    assert client.get("/s/none/sent").status_code == 404
