"""The respondent's page as served: its size, completeness and languages."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence

import brotli
import pytest

from survey import respondent_texts
from survey.audit.bundled_modules import unbundle
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.respond.client import FIELD_MODULES, SCRIPTS, Client, source_files
from survey.respondent_texts import LANGUAGES, device_texts
from survey.settings import Caps
from survey.store import Schedule
from survey.version import __version__
from tests.conftest import SMALL, TODAY
from tests.store.reports import add, publish_pending, random_reports

FOUR = SMALL.replace(
    'title = "A small survey"',
    'title = { en = "A small survey", es = "Una encuesta", pt = "Uma pesquisa", ar = "استبيان" }',
)
MAX_BYTES = {"one language": 45_000, "four languages": 60_000}
"""Maximum page weight in a browser: compressed with brotli, without headers and definition."""


@pytest.fixture
def four(store):
    """Publish the small survey in all languages of the interface."""
    return publish(store, load(FOUR.encode(), "s.toml", Caps()), TODAY)


def loaded_paths(page: str, languages: Sequence[str] = LANGUAGES) -> list[str]:
    """Return the addresses that a browser requests for a survey, except the definition."""
    words = dict(re.findall(r'<meta name="words" content="([\w-]+) (\S+) sha256-\S+">', page))
    paths = re.findall(r'(?:href|src)="(/[^"]+)"', page) + [words[name] for name in languages]
    assert len(paths) == len(set(paths))
    return paths


def page_weight(client, languages: Sequence[str]) -> int:
    """Return the compressed bytes of the page and of every file that it loads."""
    accept = {"Accept-Encoding": "br"}
    page = client.get("/s/small", headers=accept)
    assert page.headers["Content-Encoding"] == "br"
    paths = loaded_paths(client.get("/s/small").text, languages)
    files = [client.get(path, headers=accept) for path in paths]
    assert {response.status_code for response in files} == {200}
    return sum(len(response.data) for response in (page, *files))


def test_the_page_weighs_at_most_45_kb_in_any_one_language(client, small):
    for language in LANGUAGES:
        assert page_weight(client, [language]) <= MAX_BYTES["one language"], language


def test_the_page_weighs_at_most_60_kb_in_any_four_languages(client, four):
    heaviest = sorted(LANGUAGES, key=lambda language: len(brotli.compress(device_texts(language))))
    assert page_weight(client, heaviest[-4:]) <= MAX_BYTES["four languages"]


def test_the_page_names_every_script_so_that_no_import_waits_for_another(client, small):
    page = client.get("/s/small").get_data(as_text=True)
    scripts = re.findall(r'<script (?:type="module" )?src="/client/[0-9a-f]+/([^"]+)"', page)
    assert scripts == ["guard.js", *SCRIPTS]
    files = {name for name in Client.load().files if name.endswith(".js")}
    assert set(scripts) == files - {*FIELD_MODULES}


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
    sources = source_files()
    served = unbundle(Client.load().files)
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
def test_every_file_that_the_page_names_has_the_stated_integrity(client, four):
    page = client.get("/s/small").text
    named = re.findall(r'<(?:link|script)[^>]*(?:href|src)="(/[^"]+)" integrity="([^"]+)"', page)
    named += re.findall(r'<meta name="words" content="\w+ (\S+) (\S+)">', page)
    assert [path for path, _ in named].sort() == loaded_paths(page).sort()
    for path, integrity in named:
        digest = hashlib.sha256(client.get(path).data).digest()
        assert integrity == f"sha256-{base64.b64encode(digest).decode()}", path


def test_the_words_of_each_language_are_in_the_order_of_the_keys():
    for language in LANGUAGES:
        words = json.loads(Client.load().files[f"words.{language}.json"])
        assert len(words) == len(respondent_texts.device_keys())


VISITORS = (
    {},
    {"Accept-Language": "es-MX,es;q=0.9", "User-Agent": "Mozilla/5.0 (iPhone)"},
    {"Accept": "application/json", "Cookie": "a=b", "X-Forwarded-For": "192.0.2.1"},
)


@pytest.mark.security
def test_the_page_is_the_same_bytes_for_every_survey_visitor_and_mistake(client, store, four):
    store.set_schedule(four.key, Schedule(closes=TODAY.replace(year=2020)))
    html = {"Accept": "text/html"}
    pages = {
        client.get(f"/s/{slug}", headers=headers).data
        for slug in ("small", "none", "trial-x", "A%20b")
        for headers in VISITORS
    } | {client.get(path, headers=html).data for path in ("/s/a/b", "/s/", "/x", "/client/0/a.js")}
    assert pages == {Client.load().page}
    assert client.get("/s/none").status_code == 200
    assert client.get("/x", headers=html).status_code == 404


def test_without_its_modules_the_page_says_in_every_language_what_it_needs(client):
    page = client.get("/s/small").text
    for language in LANGUAGES:
        assert f'<section lang="{language}"' in page
        assert respondent_texts.say(language, "shell.needs") in page
    # Nothing follows a Chinese period but the next sentence.
    assert "。 " not in page


def test_the_manifest_lists_the_bytes_and_headers_of_all_files(client, small):
    manifest = json.loads(client.get("/client-manifest.json").data)
    assert manifest == Client.load().manifest
    assert manifest["version"] == __version__
    page = client.get("/s/small")
    for path, digest in manifest["files"].items():
        response = page if path == "index.html" else client.get(f"/{path}")
        assert hashlib.sha256(response.data).hexdigest() == digest, path
        kind = "field" if path.startswith("field/") else "files"
        expected = dict(manifest["headers"]["page" if path == "index.html" else kind])
        # The test's server has no https.
        del expected["Strict-Transport-Security"]
        assert expected.items() <= dict(response.headers).items(), path
    listed = {path.rpartition("/")[2] for path in manifest["files"]}
    assert listed == {"index.html", "worker.js", *Client.load().files}


@pytest.mark.parametrize(
    ("schedule", "status", "name"),
    [
        (Schedule(opens=TODAY.replace(year=2090)), 403, "not-open"),
        (Schedule(closes=TODAY.replace(year=2020)), 410, "closed"),
        (Schedule(maximum=50), 410, "full"),
    ],
)
def test_the_definition_states_why_no_reports_are_accepted(
    client, store, small, schedule, status, name
):
    if schedule.maximum:
        add(store, small, random_reports(25))
        publish_pending(store, small)
    store.set_schedule(small.key, schedule)
    response = client.get("/s/small/definition.json")
    assert response.status_code == status
    assert json.loads(response.data)["type"] == f"urn:survey:{name}"


def test_after_sending_the_server_asks_the_browser_to_clear_only_the_cache(client, small):
    response = client.get("/s/small/sent")
    assert response.status_code == 204
    assert response.headers["Clear-Site-Data"] == '"cache"'
    assert client.get("/s/none/sent").status_code == 404
