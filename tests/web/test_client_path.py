"""The client's path contains the hash of all its files, which anyone can compute and compare."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

import pytest
from click.testing import CliRunner
from flask import Flask

from survey.app import create_app
from survey.cli import main
from survey.respond import Client
from survey.respond.client import FIELD_MODULES
from survey.respondent_texts import LANGUAGES

pytestmark = pytest.mark.security

SHIPPED = Client.load().files


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hash_of_all(files: Mapping[str, bytes]) -> str:
    """Return the hash of the lines that `sha256sum` prints for the files, sorted by name."""
    listing = "".join(f"{sha256(content)}  {name}\n" for name, content in sorted(files.items()))
    return sha256(listing.encode())


def with_flipped_bit(content: bytes) -> bytes:
    """Return the content with one bit flipped in an ASCII byte, so that text remains text."""
    at = next(place for place in range(len(content) // 2, len(content)) if content[place] < 128)
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def with_client(monkeypatch, store, settings, files: Mapping[str, bytes]) -> Flask:
    """Return an application whose client consists of these files."""
    monkeypatch.setattr(Client, "load", classmethod(lambda cls: cls(files)))
    return create_app(settings, store)


def page_of(app: Flask) -> str:
    response = app.test_client().get("/s/small")
    assert response.status_code == 200
    return response.text


def paths_in(page: str) -> list[str]:
    """Return the path of every file that the page loads from the server."""
    return re.findall(r'(?:src|href)="(/[^"]*)"', page)


def test_headers_client_path_is_the_hash_of_all_files_below_it(app, small):
    scripts = {"guard.js", "opening.js", "main.js"}
    kinds = ("words", "fieldwork-words")
    words = {f"{kind}.{language}.json" for kind in kinds for language in LANGUAGES}
    names = {"favicon.svg", "respond.css", *scripts, *FIELD_MODULES, *words}
    page = page_of(app)
    base = page.partition("/main.js")[0].rpartition('"')[2]
    client = app.test_client()
    files = {name: client.get(f"{base}/{name}").data for name in names}
    assert set(SHIPPED) == names
    assert base == f"/client/{hash_of_all(files)}"
    loaded = {path.removeprefix(f"{base}/") for path in paths_in(page)}
    for name in scripts:
        code = re.sub(r"/\*.*?\*/", "", files[name].decode())
        loaded |= set(re.findall(r'(?:from|import)\s*\(?"\./([^"]+)"', code))
    assert {*scripts, "respond.css"} <= loaded <= names


@pytest.mark.web
def test_headers_client_path_changes_with_one_bit_of_any_file(monkeypatch, store, settings, small):
    before = hash_of_all(SHIPPED)
    for name in sorted(SHIPPED):
        altered = {**SHIPPED, name: with_flipped_bit(SHIPPED[name])}
        app = with_client(monkeypatch, store, settings, altered)
        page, now = page_of(app), hash_of_all(altered)
        assert before != now, name
        assert all(path.startswith(f"/client/{now}/") for path in paths_in(page)), name
        client = app.test_client()
        assert client.get(f"/client/{now}/{name}").data == altered[name], name
        assert client.get(f"/client/{before}/{name}").status_code == 404, name


def test_headers_client_path_changes_when_two_files_are_swapped(
    monkeypatch, store, settings, small
):
    swapped = {**SHIPPED, "guard.js": SHIPPED["main.js"], "main.js": SHIPPED["guard.js"]}
    page = page_of(with_client(monkeypatch, store, settings, swapped))
    paths = {path.rpartition("/")[0] for path in paths_in(page)}
    assert paths == {f"/client/{hash_of_all(swapped)}"} != {f"/client/{hash_of_all(SHIPPED)}"}


@pytest.mark.parametrize("altered", [False, True])
def test_headers_client_hashes_are_printed_by_the_audit(monkeypatch, altered):
    files = {**SHIPPED, "main.js": with_flipped_bit(SHIPPED["main.js"])} if altered else SHIPPED
    monkeypatch.setattr(Client, "load", classmethod(lambda cls: cls(files)))
    # The audit's checks take minutes and have separate tests.
    monkeypatch.setattr("survey.audit.summary.run_checks", lambda *_, **__: [])
    text = CliRunner().invoke(main, ["audit"]).output.splitlines()
    assert text[0] == f"client {hash_of_all(files)}"
    hashes = [f"  {sha256(content)}  {name}" for name, content in sorted(files.items())]
    assert text[1 : 1 + len(files)] == hashes
    form = json.loads(CliRunner().invoke(main, ["audit", "--json"]).output)
    assert form["client"] == hash_of_all(files)
    assert form["files"] == {name: sha256(content) for name, content in files.items()}
