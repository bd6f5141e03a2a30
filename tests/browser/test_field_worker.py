"""The service worker of field mode serves one complete release, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePath

import pytest

from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.respond.client import CONTENT_TYPES, FIELD_INDEX, Client
from survey.settings import Caps
from survey.store import FieldKeys
from tests.browser.conftest import PHONE
from tests.browser.respondent import heading, press
from tests.browser.tablet import Tablet
from tests.conftest import SMALL, TODAY

pytestmark = [pytest.mark.web, pytest.mark.security]

OLD = replace(Client.load(), version="1.0.0")
NEW = Client({**OLD.files, "respond.css": OLD.files["respond.css"] + b"\n"}, version="2.0.0")


class Host:
    """A static host with the client's files; `content` maps addresses to bytes."""

    def __init__(self, definition: bytes) -> None:
        self.content: dict[str, bytes] = {}
        self.requests: list[str] = []
        self._definition = definition
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.requests.append(self.path)
                content = host.content.get(self.path)
                self.send_response(404 if content is None else 200)
                suffix = PurePath(self.path).suffix or ".html"
                self.send_header("Content-Type", CONTENT_TYPES[suffix])
                self.send_header("Content-Length", str(len(content or b"")))
                for name, value in OLD.manifest["headers"]["field"].items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def serve(self, client: Client) -> None:
        """Serve another release, with the survey and a page that does not belong to field mode."""
        served = {f"/{path}": content for path, content in client.served.items()}
        served["/field/"] = served[f"/{FIELD_INDEX}"]
        served["/s/small/definition.json"] = self._definition
        self.content = {**served, "/s/small": client.page, "/field/other": b"from the network"}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def definition(tmp_path):
    directory = tmp_path / "keys"
    directory.mkdir(mode=0o700)
    until = TODAY.replace(year=TODAY.year + 1)
    text = f'kiosk = true\nfield_until = "{until + timedelta(days=1)}"\n{SMALL}'
    survey = load(text.encode(), "s.toml", Caps())
    return freeze(survey, 1, FieldKeys(directory).create())


@pytest.fixture
def host(definition) -> Iterator[Host]:
    host = Host(definition.canonical)
    yield host
    host.close()


@pytest.fixture
def tablet(browser, tmp_path, host):
    tablet = Tablet(browser, tmp_path / "profile", host.url, PHONE)
    yield tablet
    tablet.close()


def version(tablet):
    heading(tablet.page, "A small survey")
    return tablet.page.locator("meta[name=version]").get_attribute("content")


def wait_for_update(tablet):
    """Make the browser look for a new worker, and wait until it is installed or discarded."""
    tablet.page.evaluate(
        """async () => {
          const registration = await navigator.serviceWorker.getRegistration();
          await registration.update().catch(() => {});
          while (registration.installing) await new Promise((run) => setTimeout(run, 50));
        }"""
    )


def test_the_tablet_runs_one_complete_release_and_only_its_files_come_from_storage(
    host, tablet, definition
):
    host.serve(OLD)
    tablet.page.goto(f"{host.url}/field/#slug=small&d={definition.sha256[:32]}")
    heading(tablet.page, "Get this tablet ready")
    press(tablet.page, "Prepare this tablet")
    assert version(tablet) == "1.0.0"
    tablet.restart()
    host.requests.clear()
    tablet.page.reload()
    assert version(tablet) == "1.0.0"
    # Only the worker, which browsers compare after each load, and the survey's state.
    assert {*host.requests} <= {"/field/worker.js", "/s/small/definition.json"}
    answers = tablet.page.evaluate(
        """async () => {
          const text = async (path, options) => (await fetch(path, options)).text();
          return [await text("/field/other"), (await text("/s/small")).includes("1.0.0")];
        }"""
    )
    assert answers == ["from the network", True]
    assert "/s/small" in host.requests

    # The browser discards a release with a damaged file, whatever its page says.
    host.serve(NEW)
    damaged = next(path for path in host.content if path.endswith("/fieldwork.js"))
    whole, host.content[damaged] = host.content[damaged], b"damaged"
    wait_for_update(tablet)
    tablet.restart()
    assert version(tablet) == "1.0.0"

    # The complete release is stored next to the old one, which stays until its page is closed.
    host.content[damaged] = whole
    wait_for_update(tablet)
    tablet.page.reload()
    assert version(tablet) == "1.0.0"
    tablet.restart()
    assert version(tablet) == "2.0.0"
    names = tablet.page.evaluate("caches.keys()")
    assert names == [f"survey-field-{NEW.sha256}"]
    # The same release, with all its files, works without the host.
    host.content = {}
    tablet.restart()
    assert version(tablet) == "2.0.0"


def test_only_the_page_of_field_mode_may_install_a_worker(site, device):
    page = device.open(site.link(site.publish()))
    heading(page, "A small survey")
    failure = page.evaluate(
        """async () => {
          const policy = trustedTypes.createPolicy("test", {createScriptURL: (url) => url});
          const address = policy.createScriptURL("/field/worker.js");
          return navigator.serviceWorker.register(address).then(() => "", (error) => error.name);
        }"""
    )
    assert failure in ("SecurityError", "TypeError")
    count = "navigator.serviceWorker.getRegistrations().then((all) => all.length)"
    assert page.evaluate(count) == 0
