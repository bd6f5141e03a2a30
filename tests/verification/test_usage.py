"""`survey verify` with wrong usage, unreachable servers, proxies, and files of other releases."""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from survey.cli import main
from survey.errors import SurveyError
from survey.respond.client import Client
from survey.verification import connection, manifest, visits
from survey.verification.connection import (
    Connections,
    Proxy,
    Response,
    UnreachableError,
    socks_connect,
)
from survey.verification.manifest import Difference, known_manifests
from survey.verification.result import Result as Outcome
from survey.verification.run import audit
from survey.verification.visitors import choose_visitors
from survey.verification.visits import Target, Visit
from tests.conftest import ROOT, free_port


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


HASH = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a URL"),
        (("ftp://survey.example.org/s/a",), "write a survey link or the URL of a page"),
        ((f"https://survey.example.org/s/a#d={HASH[:20]}",), "copy the whole link"),
        ((f"https://survey.example.org/#d={HASH}",), "names no survey"),
        (("https://survey.example.org/s/a", "--proxy", "socks5://localhost:9050"), "socks5h://"),
        (("https://survey.example.org/s/a", "--watch", "10"), "is not a time"),
        (("https://survey.example.org/s/a", "--head", HASH), "--check-log"),
        (("--check-log", "/no/such/log"), "there is no file"),
        (("https://survey.example.org/s/a", "--manifest", "/no/such/file"), "No such file"),
    ],
)
def test_wrong_usage_ends_with_status_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.web
def test_a_server_that_does_not_answer_is_not_checked():
    result = run(f"http://127.0.0.1:{free_port()}/s/a", "--without-audit")
    assert result.exit_code == 2
    assert result.output.startswith("NOT CHECKED")


def test_a_link_is_read_without_its_invitation():
    target = Target.parse(f"https://survey.example.org/s/a#d={HASH}&i=secret&s=night")
    assert target.link == f"https://survey.example.org/s/a#d={HASH}"
    assert target.definition == "https://survey.example.org/s/a/definition.json"


def test_the_link_of_a_bundle_names_the_survey_after_the_hash_sign():
    link = f"https://union.example/folder/#slug=a&d={HASH}"
    target = Target.parse(link, "https://survey.example.org")
    assert target.link == link
    assert target.definition == "https://survey.example.org/s/a/definition.json"
    assert target.address("client/x.js") == "https://union.example/folder/client/x.js"


def test_every_property_occurs_six_times_or_more_among_66_visitors():
    visitors = choose_visitors(66, random.Random(1))
    for values in zip(*(visitor.properties().values() for visitor in visitors), strict=True):
        assert min(Counter(values).values()) >= 6


def test_client_hints_name_the_version_of_the_user_agent():
    for visitor in choose_visitors(66, random.Random(1)):
        headers = visitor.headers("document")
        hints, agent = headers.get("Sec-CH-UA", ""), headers["User-Agent"]
        assert ("Chrome/" in agent) == bool(hints)
        for brand, version in re.findall(r'"([^"]+)";v="([^"]+)"', hints)[:2]:
            name = {"Microsoft Edge": "Edg", "Samsung Internet": "SamsungBrowser"}.get(brand)
            assert f"{name or 'Chrome'}/{version}" in agent


def test_this_installation_knows_its_own_release():
    known = known_manifests("")[Client.load().version]
    assert known.to_json() == Client.load().manifest


def test_this_installation_has_the_manifest_of_every_earlier_release():
    # Version 0.2.0 is the first whose page is the same for every survey and visitor.
    changes = (ROOT / "survey/handbook/changelog.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changes, re.M)
    later = [v for v in versions if tuple(map(int, v.split("."))) >= (0, 2, 0)]
    assert set(later) == set(known_manifests(""))


def test_earlier_releases_are_known_but_the_installed_one_prevails(tmp_path, monkeypatch):
    installed = Client.load().manifest
    for version in ("0.1.9", installed["version"]):
        files = {"index.html": "0" * 64, "favicon.svg": "1" * 64}
        form = {**installed, "version": version, "files": files}
        (tmp_path / f"{version}.json").write_text(json.dumps(form))
    monkeypatch.setattr(manifest, "FOLDER", tmp_path)
    known = known_manifests("")
    assert list(known) == ["0.1.9", installed["version"]]
    assert known["0.1.9"].files == files
    assert known[installed["version"]].files == installed["files"]


def test_the_audit_leaves_another_release_to_an_installation_of_it():
    target = Target.parse("https://survey.example.org/s/a")
    visitor = choose_visitors(1, random.Random(1))[0]
    outcome = Outcome(target, [Visit(visitor, "0.2.0", definition=b"{}")], "0.3.0")
    audit(outcome)
    assert outcome.audit is None
    assert "this installation audits only version 0.3.0" in outcome.to_text()


def test_a_server_cannot_rewrite_the_output_with_control_characters():
    target = Target.parse("https://survey.example.org/s/a")
    visitor = choose_visitors(1, random.Random(1))[0]
    visit = Visit(visitor, "0.2.0", differences=[Difference("page", "header X\x1b[2J added")])
    text = Outcome(target, [visit], "0.2.0").to_text()
    assert "\x1b" not in text
    assert r"header X\x1b[2J added" in text


@pytest.mark.web
@pytest.mark.parametrize(("n", "shown"), [(66, "7%"), (1, "99%"), (1000, "0.5%")])
def test_the_excluded_rate_is_rounded_up(n, shown):
    target = Target.parse("https://survey.example.org/s/a")
    visits = [Visit(visitor, "0.2.0") for visitor in choose_visitors(n, random.Random(1))]
    assert f"altered {shown} or more" in Outcome(target, visits, "0.2.0").to_text()


@pytest.mark.parametrize(
    ("fragment", "definition", "status", "sentence"),
    [
        (f"#d={HASH}", b"{}", 200, "definition matches the hash in the link"),
        ("", b"{}", 200, "this does not show whether the definition is the published one"),
        (f"#d={HASH}", None, 410, "no definition (status 410), so none was compared"),
    ],
)
def test_the_output_says_whether_the_definition_was_compared(
    fragment, definition, status, sentence
):
    target = Target.parse(f"https://survey.example.org/s/a{fragment}")
    visitors = choose_visitors(2, random.Random(1))
    visits = [Visit(v, "0.2.0", definition=definition, status=status) for v in visitors]
    outcome = Outcome(target, visits, "0.2.0")
    # Without a definition, nothing was compared with the hash in the link.
    assert outcome.exit_status == (2 if definition is None else 0)
    assert sentence in outcome.to_text()


def test_an_unknown_version_of_a_bundle_needs_its_manifest():
    target = Target.parse("https://union.example/", "https://survey.example.org")
    visits = [Visit(v, "0.1.0", is_known=False) for v in choose_visitors(1, random.Random(1))]
    outcome = Outcome(target, visits, "0.2.0")
    assert outcome.exit_status == 2
    assert "only their own version of a bundle" in outcome.to_text()
    assert "--manifest" in outcome.to_text()


def test_a_definition_that_only_some_visitors_get_is_a_difference():
    target = Target.parse("https://survey.example.org/s/a")
    visitors = choose_visitors(3, random.Random(1))
    contents = (b"{}", b"{}", b"[]")
    visits = [Visit(v, "0.2.0", definition=c) for v, c in zip(visitors, contents, strict=True)]
    outcome = Outcome(target, visits, "0.2.0")
    assert outcome.exit_status == 1
    assert "definition: it differs from that of other visits" in outcome.to_text()


def test_values_that_could_identify_visitors_may_not_differ_between_them():
    target = Target.parse("https://union.example/#slug=a", "https://survey.example.org")
    visits = [Visit(visitor, "0.2.0") for visitor in choose_visitors(3, random.Random(1))]
    for each, coding in zip(visits, ("", "gzip", "gzip"), strict=True):
        each.validators["a.js", coding] = (f'"1-{coding}"', "")
    assert Outcome(target, visits, "0.2.0").exit_status == 0
    visits[0].validators["a.js", "gzip"] = ('"2-gzip"', "")
    text = Outcome(target, visits, "0.2.0").to_text()
    assert "a.js: header ETag or Last-Modified differs" in text
    assert "1 of 3 visits" in text


def test_the_bytes_that_differ_are_saved_with_the_result(tmp_path):
    visits = [Visit(visitor, "0.2.0") for visitor in choose_visitors(3, random.Random(1))]
    for each in visits[:2]:
        each.differences.append(Difference("client/1/main.js", "the bytes differ"))
        each.altered["client/1/main.js"] = b"altered"
    target = Target.parse("https://survey.example.org/s/a")
    Outcome(target, visits, "0.2.0").save(tmp_path / "evidence")
    (file,) = (tmp_path / "evidence").glob("*-main.js")
    assert file.read_bytes() == b"altered"
    form = json.loads((tmp_path / "evidence" / "result.json").read_text())
    entry = form["altered_files"][file.name]
    assert (entry["where"], len(entry["visitors"])) == ("client/1/main.js", 2)
    assert form["status"] == "different"


def test_repeated_headers_and_unknown_codings_are_kept():
    response = Response("http://a/", 200, (("A", "1"), ("a", "2"), ("Content-Encoding", "x")), b"")
    assert response.values("a") == ["1", "2"]
    with pytest.raises(SurveyError, match="unknown coding 'x'"):
        _ = response.content


def test_a_small_body_cannot_fill_the_memory():
    import gzip

    bomb = gzip.compress(bytes(2**25))
    response = Response("http://a/", 200, (("Content-Encoding", "gzip"),), bomb)
    with pytest.raises(SurveyError, match="not exactly one gzip stream"):
        _ = response.content


def test_a_server_that_never_finishes_is_not_checked(monkeypatch):
    monkeypatch.setattr(connection, "MAX_VISIT_SECONDS", 1.0)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def answer() -> None:
        stream, _ = listener.accept()
        with stream, contextlib.suppress(OSError):
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while True:
                stream.sendall(b"x")
                time.sleep(0.1)

    threading.Thread(target=answer, daemon=True).start()
    visitor = Connections()
    with listener, pytest.raises(UnreachableError, match="takes too long"):
        visitor.get(f"http://127.0.0.1:{port}/", {})
    visitor.close()


PAGE = b"<script src=/altered.js></script>"
BUSY = b"HTTP/1.1 503 -\r\nContent-Type: %s\r\nContent-Length: 33\r\n%s\r\n" + PAGE
GENUINE = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ngenuine"


@contextlib.contextmanager
def scripted_server(*answers: bytes) -> Iterator[str]:
    """Run a server that gives each connection the next answer, and then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in answers:
            with contextlib.suppress(OSError), listener.accept()[0] as stream:
                stream.recv(10_000)
                stream.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def first_answer(*answers: bytes) -> Response:
    """Return what a visitor accepts from a server as its first answer."""
    visitor = Connections(sleep=lambda _: None)
    with scripted_server(*answers) as url, contextlib.closing(visitor):
        return visitor.get(url, {})


@pytest.mark.parametrize(
    "busy",
    [
        BUSY % (b"text/html", b""),
        BUSY % (b"image/svg+xml", b""),
        BUSY % (b"application/problem+json", b"Set-Cookie: id=1\r\n"),
        BUSY % (b"application/problem+json", b"Refresh: 0; url=/altered\r\n"),
    ],
)
def test_a_page_with_the_status_of_a_busy_server_counts_as_its_answer(busy):
    assert first_answer(busy, GENUINE).status == 503


def test_a_busy_server_is_asked_again():
    assert first_answer(BUSY % (b"application/problem+json", b""), GENUINE).body == b"genuine"
    assert first_answer(b"", GENUINE).body == b"genuine"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + PAGE, "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n21\r\n" + PAGE, "cut off"),
        (b"HTTP/1.1 OK\r\nContent-Length: 33\r\n\r\n" + PAGE, "HTTP/1.1 OK"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n" + PAGE, "header line"),
    ],
)
def test_a_page_that_browsers_would_show_in_part_is_not_replaced_by_asking_again(answer, reason):
    with pytest.raises(UnreachableError, match=reason):
        first_answer(answer, GENUINE)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity, chunked\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 60\r\n",
    ],
)
def test_a_body_whose_end_browsers_find_elsewhere_is_malformed(head):
    # Where the coding does not apply, a browser shows the size of the piece and its note as well.
    response = first_answer(head + b"\r\n7; " + PAGE + b"\r\ngenuine\r\n0\r\n\r\n")
    assert response.malformed.startswith("Transfer-Encoding")


def test_a_body_with_several_codings_is_not_decoded():
    import gzip

    # Chromium does not decode a body if it does not know the first coding.
    headers = (("Content-Encoding", "identity, gzip"),)
    with pytest.raises(SurveyError, match="several codings"):
        _ = Response("http://a/", 200, headers, gzip.compress(b"genuine")).content


def test_a_body_has_the_coding_that_its_headers_state():
    import gzip
    import zlib

    for coding, body in (
        ("gzip", zlib.compress(b"genuine")),
        ("deflate", gzip.compress(b"genuine")),
        ("gzip", gzip.compress(b"genuine") + gzip.compress(PAGE)),
    ):
        with pytest.raises(SurveyError, match=coding):
            _ = Response("http://a/", 200, (("Content-Encoding", coding),), body).content


@pytest.mark.parametrize(
    ("value", "is_elsewhere"),
    [
        ('h3=":443"; ma=86400, h3-29=":443"; ma=86400; persist=1', False),
        ("clear", False),
        ('h3="evil.example:443"; ma=60', True),
        ('h3=":443", h3="evil.example:443"', True),
        ("h3=evil.example:443", True),
    ],
)
def test_an_alternative_service_on_another_host_is_a_difference(value, is_elsewhere):
    known = known_manifests("")[Client.load().version]
    response = Response("https://a/", 200, (("Alt-Svc", value),), b"")
    found = manifest.compare_headers(known, "page", ".html", response, "page")
    assert any("Alt-Svc" in each.what for each in found) is is_elsewhere


@pytest.mark.parametrize("name", ["ETag", "Last-Modified"])
def test_a_value_that_browsers_return_is_a_difference_unless_a_static_host_sends_it(name):
    response = Response("https://a/", 200, ((name, "visitor 1"),), b"")
    for collector in ("", "https://survey.example.org"):
        known = known_manifests(collector)[Client.load().version]
        found = manifest.compare_headers(known, "page", ".html", response, "page")
        assert any(
            each.what.lower().startswith(f"header {name.lower()} added") for each in found
        ) is (collector == "")


def test_a_deeply_nested_definition_does_not_end_the_verification():
    assert visits._languages(b"[" * 100_000) is None


@pytest.fixture
def socks() -> Iterator[tuple[int, list[bytes]]]:
    """Run a SOCKS proxy that records the requested name, port and user, and then answers "ok"."""
    requests: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        stream, _ = listener.accept()
        with stream:
            stream.recv(4)
            stream.sendall(b"\x05\x02")
            requests.append(stream.recv(100))
            stream.sendall(b"\x01\x00")
            requests.append(stream.recv(300))
            stream.sendall(b"\x05\x00\x00\x01" + bytes(6) + b"ok")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield listener.getsockname()[1], requests
    thread.join()
    listener.close()


def test_a_socks_proxy_gets_the_name_of_the_host_and_an_identity(socks):
    port, requests = socks
    with socket.create_connection(("127.0.0.1", port)) as stream:
        socks_connect(stream, "survey.onion", 80, b"visit")
        assert stream.recv(2) == b"ok"
    assert requests == [
        b"\x01\x05visit\x05visit",
        b"\x05\x01\x00\x03\x0csurvey.onion" + struct.pack(">H", 80),
    ]


def test_a_proxy_is_named_with_its_port():
    assert Proxy.parse("socks5h://127.0.0.1:9050") == Proxy("socks5h", "127.0.0.1", 9050)
    with pytest.raises(SurveyError, match="write http://HOST:PORT"):
        Proxy.parse("http://127.0.0.1")


def test_a_manifest_for_another_collector_is_refused(tmp_path):
    file = tmp_path / "client-manifest.json"
    file.write_bytes(Client.load("https://survey.example.org").manifest_bytes)
    result = run("https://union.example/", "--manifest", str(file))
    assert result.exit_code == 2
    assert "--collector must match" in result.output


NO_ICON = json.dumps({**Client.load().manifest, "files": {"index.html": "0" * 64}})

NO_POLICY = json.dumps({**Client.load().manifest, "headers": {"page": {}, "files": {}}})


@pytest.mark.parametrize("content", ["x", "[]", "{}", '{"format": 9}', NO_ICON, NO_POLICY])
def test_a_file_that_is_no_manifest_is_refused(tmp_path, content):
    (tmp_path / "file.json").write_text(content)
    result = run("https://survey.example.org/s/a", "--manifest", str(tmp_path / "file.json"))
    assert result.exit_code == 2
    assert str(tmp_path / "file.json") in result.output


@pytest.mark.web
def test_the_command_needs_no_settings_database_or_node(tmp_path):
    url = f"http://127.0.0.1:{free_port()}/s/a"
    command = [sys.executable, "-m", "survey.cli", "verify", url, "--json"]
    result = subprocess.run(
        command, cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2, result.stderr
    assert json.loads(result.stdout)["status"] == "not checked"
    assert not list(tmp_path.iterdir())
