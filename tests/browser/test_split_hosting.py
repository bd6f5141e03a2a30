"""The respondents' page on another host than the collector, in Chromium and in Firefox."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import expect

from survey.cli import main
from survey.collect.invitations import respondent_link
from tests.browser.conftest import Site, running_site
from tests.browser.respondent import (
    answer,
    answer_and_send,
    heading,
    press,
    stored_entries,
    wait_sent,
    wait_waiting,
)
from tests.conftest import SMALL, free_port

pytestmark = [pytest.mark.web, pytest.mark.security]

INVITED = f'access = "invitation"\n{SMALL}'

FOLDER = "/surveys/"
"""The folder of the copy on its host."""


class StaticHost(SimpleHTTPRequestHandler):
    """A host that sends the files of a folder with the headers of their manifest."""

    headers_of: dict[str, dict[str, str]]
    cookies: list[str]

    def end_headers(self) -> None:
        kind = "files" if "/client/" in self.path else "page"
        kind = "field" if "/field/" in self.path else kind
        for name, value in self.headers_of[kind].items():
            if name != "Strict-Transport-Security":
                self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@dataclass
class Split:
    """A collector, a host that it lists, and a host that it does not list."""

    collector: Site
    host: str
    unlisted: str

    def link(self, survey: Any, host: str = "", **parts: str) -> str:
        page = f"{host or self.host}{FOLDER}"
        return respondent_link(survey, self.collector.url, page=page, **parts)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Split]:
    directory = tmp_path_factory.mktemp("split")
    ports = [free_port() for _ in range(2)]
    host, unlisted = (f"http://127.0.0.1:{port}" for port in ports)
    with running_site(directory, SURVEY_CLIENT_ORIGINS=f"https://a.example {host}/") as collector:
        copy = directory / "host" / FOLDER.strip("/")
        copy.parent.mkdir()
        command = ["bundle", str(copy), "--collector", collector.url]
        result = CliRunner().invoke(main, command, catch_exceptions=False)
        assert result.exit_code == 0
        StaticHost.headers_of = json.loads((copy / "client-manifest.json").read_text())["headers"]
        handler = partial(StaticHost, directory=str(copy.parent))
        servers = [ThreadingHTTPServer(("127.0.0.1", port), handler) for port in ports]
        for server in servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Split(collector, host, unlisted)
        for server in servers:
            server.shutdown()
            server.server_close()


def test_a_copy_on_a_listed_host_sends_to_the_collector_only_what_it_must(split, device):
    survey = split.collector.publish()
    page = device.open(split.link(survey))
    answer_and_send(page)
    wait_sent(page)
    assert split.collector.store.n_pending(survey.key) == 1
    sent = [request for request in device.requests if request.url.startswith(split.collector.url)]
    path = f"{split.collector.url}/s/{survey.slug}"
    asked = [(request.method, request.url) for request in sent if request.method != "OPTIONS"]
    assert asked == [("GET", f"{path}/definition.json"), ("POST", f"{path}/reports")]
    assert not any({"cookie", "referer"} & request.all_headers().keys() for request in sent)
    assert device.messages == []


def test_a_copy_prepares_a_tablet_that_uploads_to_the_collector(split, device):
    until = datetime.now(UTC).date() + timedelta(days=40)
    survey = split.collector.publish(f'kiosk = true\nfield_until = "{until}"\n{SMALL}')
    command = ["link", survey.slug, "--tablet", "--page", f"{split.host}{FOLDER}"]
    link = CliRunner(env=split.collector.settings).invoke(main, command).stdout.strip()
    assert link == f"{split.host}{FOLDER}field/#slug={survey.slug}&d={survey.sha256[:32]}"
    page = device.open(link)
    press(page, "Prepare this tablet")
    heading(page, "A small survey")
    answer_and_send(page)
    heading(page, "Stored. Thank you.")
    press(page, "Start for the next person")
    press(page, "For the interviewer")
    expect(page.get_by_text("All answers are uploaded.")).to_be_visible()
    assert split.collector.store.n_pending(survey.key) == 25


def test_an_invitation_to_a_copy_leaves_the_address_and_is_used_once(split, device):
    survey = split.collector.publish_as("invited-copy", INVITED)
    result = CliRunner(env=split.collector.settings).invoke(
        main, ["invite", survey.slug, "--count", "25", "--page", f"{split.host}{FOLDER}"]
    )
    link = result.stdout.splitlines()[0]
    assert link.startswith(f"{split.host}{FOLDER}#slug={survey.slug}&i=")
    page = device.open(link)
    heading(page, "A small survey")
    fragment = page.evaluate("location.hash")
    assert fragment == f"#slug={survey.slug}&d={survey.sha256[:32]}&i="
    answer_and_send(page)
    wait_sent(page)
    assert split.collector.store.n_pending(survey.key) == 1


def test_a_report_from_a_copy_waits_while_the_device_is_offline(split, device):
    survey = split.collector.publish()
    page = device.open(split.link(survey))
    answer(page, ["Yes", "Never"])
    device.context.set_offline(True)
    press(page, "Send")
    wait_waiting(page)
    device.context.set_offline(False)
    wait_sent(page)
    assert split.collector.store.n_pending(survey.key) == 1


def test_a_copy_resends_a_stored_report_on_the_next_visit(split, device):
    survey = split.collector.publish()
    page = device.open(split.link(survey))
    answer(page, ["Yes", "Never"])
    page.route("**/reports", lambda route: route.abort())
    press(page, "Send")
    wait_waiting(page)
    (entry,) = stored_entries(page).values()
    page.close()
    page = device.open(split.link(survey))
    wait_sent(page)
    assert split.collector.store.n_pending(survey.key) == 1
    assert json.loads(entry)["body"].encode() == device.bodies[-1]


def test_a_page_on_an_unlisted_host_can_neither_load_a_survey_nor_send(split, device):
    survey = split.collector.publish()
    page = device.open(split.link(survey, split.unlisted))
    heading(page, "This survey cannot start")
    expect(page.locator("input")).to_have_count(0)
    url = f"{split.collector.url}/s/{survey.slug}/reports"
    for options in (
        {"method": "POST", "body": "{}", "headers": {"Content-Type": "application/json"}},
        {"method": "POST", "body": "{}", "mode": "no-cors"},
    ):
        outcome = page.evaluate(
            "([url, options]) => fetch(url, options).then((r) => r.type, () => 'blocked')",
            [url, options],
        )
        assert outcome in ("blocked", "opaque")
    assert split.collector.store.n_pending(survey.key) == 0


class Firefox:
    """Firefox, which does one action after the other."""

    def __init__(self, node: str) -> None:
        executable = shutil.which("firefox-esr") or shutil.which("firefox")
        assert executable, "install Firefox (Debian: firefox-esr)"
        self._process = subprocess.Popen(
            [node, str(Path(__file__).parent / "firefox.mjs"), executable],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *command: str) -> Any:
        self._process.stdin.write(f"{json.dumps(command)}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def firefox(node: str) -> Iterator[Firefox]:
    browser = Firefox(node)
    yield browser
    browser.close()


def respond_in_firefox(firefox: Firefox, link: str) -> None:
    """Go from the link to the review."""
    firefox("open", link)
    firefox("press", "Start")
    for label in ("Yes", "Never"):
        firefox("choose", label)
        firefox("press", "Continue")
    firefox("see", "Check your answers")


@pytest.mark.parametrize("place", ["own host", "other host"])
def test_in_firefox_a_report_survives_a_stopped_server_and_is_sent_once(split, firefox, place):
    survey = split.collector.publish()
    link = split.collector.link(survey) if place == "own host" else split.link(survey)
    respond_in_firefox(firefox, link)
    split.collector.stop()
    try:
        firefox("press", "Send")
        firefox("see", "Trying again in")
        assert len(firefox("storage")) == 1
    finally:
        split.collector.start()
    firefox("see", "Sent. Thank you.")
    assert split.collector.store.n_pending(survey.key) == 1


def test_in_firefox_a_page_on_an_unlisted_host_cannot_load_the_survey(split, firefox):
    survey = split.collector.publish()
    firefox("open", split.link(survey, split.unlisted))
    firefox("see", "This survey cannot start")


def test_the_copy_is_byte_for_byte_the_client_of_the_release_but_for_its_collector(tmp_path):
    copies = []
    for name in ("a", "b"):
        command = ["bundle", str(tmp_path / name), "--collector", f"https://{name}.example"]
        assert CliRunner().invoke(main, command).exit_code == 0
        files = {p.relative_to(tmp_path / name): p for p in (tmp_path / name).rglob("*.*")}
        copies.append({path: file.read_bytes() for path, file in files.items() if file.is_file()})
    different = {str(path) for path in copies[0] if copies[0][path] != copies[1][path]}
    assert copies[0].keys() == copies[1].keys()
    pages = {"index.html", "field/index.html", "field/worker.js"}
    assert different == {*pages, "client-manifest.json"}
    assert (
        copies[0][Path("index.html")].replace(b"//a.example", b"//b.example")
        == (copies[1][Path("index.html")])
    )
    again = CliRunner().invoke(
        main, ["bundle", str(tmp_path / "a"), "--collector", "https://a.example"]
    )
    assert again.exit_code == 1
    assert "already exists" in again.output
