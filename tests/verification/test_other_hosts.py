"""`survey verify` of a page on another host, with a real browser, through a proxy, and repeated."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from survey.audit.visits import check_visits
from survey.cli import main
from survey.respond.client import Client
from survey.store import PublishedSurvey, Store
from survey.verification.connection import Response
from survey.verification.result import check_log
from tests.browser.test_split_hosting import StaticHost
from tests.conftest import free_port, wait_until
from tests.pictures import publish_with_picture
from tests.verification.tampering import (
    Alteration,
    all_alterations,
    always,
    tampering_proxy,
    with_content,
)

pytestmark = pytest.mark.web


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def link(url: str, survey: PublishedSurvey) -> str:
    return f"{url}/s/small#d={survey.definition.sha256[:32]}"


@pytest.fixture
def copy(
    serve: Callable[..., str], small: PublishedSurvey, tmp_path: Path
) -> Iterator[tuple[str, str, Path]]:
    """Serve a copy of the page on another host; yield its link, the collector and its folder."""
    port = free_port()
    host = f"http://127.0.0.1:{port}"
    collector = serve(SURVEY_CLIENT_ORIGINS=host)
    folder = tmp_path / "host" / "surveys"
    folder.parent.mkdir()
    CliRunner().invoke(main, ["bundle", str(folder), "--collector", collector])

    class Host(StaticHost):
        headers_of = Client.load(collector).manifest["headers"]

    server = ThreadingHTTPServer(("127.0.0.1", port), partial(Host, directory=str(folder.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"{host}/surveys/#slug=small&d={small.definition.sha256[:32]}"
    yield url, collector, folder
    server.shutdown()
    server.server_close()


def test_a_genuine_copy_on_another_host_gives_no_false_alarm(copy):
    url, collector, _ = copy
    arguments = (url, "--collector", collector, "--visits", "6", "--without-audit")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "definition matches the hash in the link" in result.output


@pytest.mark.parametrize("name", ["index.html", "main.js", "words.en.json", "respond.css"])
def test_an_altered_file_of_a_copy_is_found(copy, name):
    url, collector, folder = copy
    file = next(folder.rglob(name))
    file.write_bytes(file.read_bytes() + b" ")
    result = run(url, "--collector", collector, "--visits", "1", "--without-audit")
    assert result.exit_code == 1
    assert "the bytes differ" in result.output


def test_a_copy_for_another_collector_is_found(copy):
    url, _, _ = copy
    result = run(url, "--collector", "https://other.example", "--visits", "1", "--without-audit")
    # The definition of a collector that does not exist cannot be loaded.
    assert result.exit_code in (1, 2)
    assert "all identical" not in result.output


def test_the_files_of_another_release_are_compared_with_its_manifest(
    serve: Callable[..., str], small: PublishedSurvey, tmp_path: Path
):
    form = {**Client.load().manifest, "version": "9.9.9"}
    file = tmp_path / "client-manifest.json"
    file.write_text(json.dumps(form))
    result = run(link(serve(), small), "--manifest", str(file), "--visits", "1")
    assert result.exit_code == 2
    assert "does not know" in result.output


def test_the_audit_runs_on_the_files_that_were_fetched(
    serve: Callable[..., str], small: PublishedSurvey, node: str, monkeypatch: pytest.MonkeyPatch
):
    url = link(serve(), small)
    # All visits take half a minute; tests of the audit make them.
    monkeypatch.setattr("survey.audit.summary.check_visits", partial(check_visits, most=1))
    monkeypatch.setenv("PATH", f"{Path(node).parent}:{os.environ['PATH']}")
    result = run(url, "--visits", "1")
    assert result.exit_code == 0, result.output
    assert "checks passed" in result.output
    monkeypatch.setenv("PATH", "")
    result = run(url, "--visits", "1")
    assert result.exit_code == 0
    assert "skipped, because Node is not installed" in result.output


def test_pictures_are_compared_with_their_hashes_also_by_a_real_browser(
    serve: Callable[..., str], store: Store, browser: object
):
    survey, sha256 = publish_with_picture(store)
    url = f"{serve()}/s/pets#d={survey.sha256[:32]}"
    plain = [sys.executable, "-m", "survey.cli", "verify", url, "--visits", "2", "--without-audit"]
    for command in (plain, [*plain, "--browser"]):
        # Another process: playwright allows one browser driver for each.
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    store._execute("UPDATE picture SET content = ? WHERE sha256 = ?", [b"other", sha256])
    result = subprocess.run(plain, capture_output=True, text=True)
    assert result.returncode == 1
    assert "its content does not match the hash in the definition" in result.stdout


def run_with_browser(url: str) -> subprocess.CompletedProcess[str]:
    """Verify a page in another process: playwright allows one browser driver for each."""
    options = ["--browser", "--visits", "1", "--without-audit"]
    command = [sys.executable, "-m", "survey.cli", "verify", url, *options]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_real_browser_gives_no_false_alarm(
    serve: Callable[..., str], small: PublishedSurvey, browser: object
):
    command = [sys.executable, "-m", "survey.cli", "verify", link(serve(), small)]
    # Another process: playwright allows one browser driver for each.
    result = subprocess.run(
        [*command, "--browser", "--visits", "2", "--without-audit"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 real browser visits, all identical" in result.stdout


@pytest.mark.parametrize("name", ["added script", "main.js altered", "page: Set-Cookie added"])
def test_a_real_browser_finds_alterations(
    serve: Callable[..., str], small: PublishedSurvey, browser: object, name: str
):
    alteration = next(a for a in all_alterations() if a.name == name)
    with tampering_proxy(serve(), alteration, always) as url:
        result = run_with_browser(link(url, small))
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"  {alteration.where}: " in result.stdout


def test_a_real_browser_compares_a_page_that_is_replaced_at_once(
    serve: Callable[..., str], small: PublishedSurvey, browser: object
):
    served: list[Response] = []

    def change(response: Response) -> Response:
        served.append(response)
        if len(served) > 1:
            return response
        headers = [pair for pair in response.headers if "policy" not in pair[0].lower()]
        script = b"<head><script>location.reload()</script>"
        content = response.content.replace(b"<head>", script, 1)
        return with_content(replace(response, headers=tuple(headers)), content)

    alteration = Alteration("replaced page", f"/s/{small.slug}", change, "page", "other content")
    with tampering_proxy(serve(), alteration, always) as url:
        result = run_with_browser(link(url, small))
    assert len(served) >= 2
    assert result.returncode == 1, result.stdout + result.stderr
    assert "  page: " in result.stdout


def accept_interrupts() -> None:
    """Undo what shells do to background processes, such as those of a continuous integration."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_verifications_are_repeated_and_logged_until_interrupted(
    serve: Callable[..., str], small: PublishedSurvey, tmp_path: Path
):
    file = tmp_path / "log"
    command = [sys.executable, "-m", "survey.cli", "verify", link(serve(), small)]
    options = ["--watch", "1s", "--log", str(file), "--visits", "1", "--without-audit"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, text=True, preexec_fn=accept_interrupts
    ) as process:
        try:
            wait_until(lambda: file.exists() and file.read_bytes().count(b"\n") >= 2)
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=60)[0]
        finally:
            process.kill()
    entries = check_log(file)[0]
    assert process.returncode == 0
    assert {entry["status"] for entry in entries} == {"identical"}
    # The interruption may come between the last line of the log and the output of its hash.
    heads = re.findall(r"^head (\w+)$", output, re.MULTILINE)
    assert len(entries) >= len(heads) >= len(entries) - 1 >= 1
    for head in heads:
        check_log(file, head)
    assert CliRunner().invoke(main, ["verify", "--check-log", str(file)]).exit_code == 0


def test_requests_go_through_the_proxy(serve: Callable[..., str], small: PublishedSurvey):
    requests: list[str] = []

    class Forward(StaticHost):
        def do_GET(self) -> None:  # noqa: N802
            requests.append(self.path)
            self.send_response_only(503)
            self.send_header("Content-Length", "0")
            self.wfile.write(b"".join(self._headers_buffer) + b"\r\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        via = f"http://127.0.0.1:{server.server_port}"
        url = "http://survey.invalid/s/small"
        result = run(url, "--proxy", via, "--visits", "1", "--without-audit")
    finally:
        server.shutdown()
        server.server_close()
    assert result.exit_code == 2
    assert set(requests) == {url}
