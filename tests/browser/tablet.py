"""A tablet in field mode: a browser with permanent storage, and a network that can fail."""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from survey.respond.views import HASH_BYTES
from survey.store import FieldKeys, PublishedSurvey
from survey.store.field_boxes import open_box
from tests.browser.respondent import SINGLE_TAPS, answer_and_send, heading, press
from tests.store.reports import pending_reports

if TYPE_CHECKING:
    from tests.browser.conftest import Site

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Network:
    """A TCP proxy in front of a site.

    `mode` is "on", "off" (no server answers), "cut" (an upload arrives, its response does
    not), "half" (only a part of a large request arrives) or "busy" (every request gets 503).
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self.mode = "on"
        self.uploads_left: int | None = None
        """Number of uploads after which the network fails; None for no failure."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        mode = self.mode
        with closing(client), suppress(OSError):
            if mode == "off":
                return
            client.settimeout(30)
            if mode == "busy":
                client.recv(65536)
                client.sendall(BUSY)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
                return
            with closing(socket.create_connection(self._target, timeout=30)) as server:
                cut = threading.Event()
                back = threading.Thread(target=self._pump, args=(server, client, cut), daemon=True)
                back.start()
                sent = 0
                while data := client.recv(4096):
                    if b"/field HTTP" in data and self.uploads_left is not None:
                        self.uploads_left -= 1
                        if self.uploads_left < 0:
                            return
                    if self.mode != mode:
                        # A change of the mode ends connections that were kept alive.
                        return
                    if mode == "cut" and b"/field HTTP" in data:
                        cut.set()
                        # A request whose answer is cut is complete when nothing more arrives.
                        client.settimeout(1)
                    sent += len(data)
                    if mode == "half" and sent > 8192:
                        return
                    server.sendall(data)

    def _pump(self, server: socket.socket, client: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if not cut.is_set():
                    client.sendall(data)
            client.shutdown(socket.SHUT_WR)


class Tablet:
    """A browser with one page; `restart` closes the browser and opens it again."""

    def __init__(
        self, browser: Browser, directory: Path, url: str, options: Mapping[str, Any]
    ) -> None:
        self._browser, self.directory, self.url = browser, directory, url
        self._options = options
        self.context: BrowserContext
        self.page: Page
        self.bodies: list[bytes] = []
        """The body of each report that a person was told is stored."""
        self.uploads: list[bytes] = []
        """The body of each attempt to upload, in order."""
        self.start()

    def start(self) -> None:
        arguments = ["--disable-background-networking", "--disable-component-update"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        self.context = self._browser.browser_type.launch_persistent_context(
            str(self.directory),
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=arguments,
            **self._options,
        )
        self.context.set_default_timeout(60_000)
        self.context.add_init_script(SINGLE_TAPS)
        self.context.on("request", self._record)
        self.page = self.context.pages[0]

    def _record(self, request: Request) -> None:
        body = request.post_data_buffer or b""
        # With only the definition's hash, a tablet asks whether the survey accepts uploads.
        if request.method == "POST" and len(body) > HASH_BYTES:
            self.uploads.append(body)

    def open_window(self) -> Page:
        """Open the page of field mode in a second window."""
        page = self.context.new_page()
        page.goto(f"{self.url}/field/")
        heading(page, "A small survey")
        return page

    def close(self) -> None:
        self.context.close()

    def restart(self, day: str | None = None) -> None:
        """Restart the browser; its clock then shows `day`."""
        self.close()
        self.start()
        if day:
            self.page.clock.set_system_time(day)
        self.page.goto(f"{self.url}/field/")

    def link(self, survey: PublishedSurvey) -> str:
        return f"{self.url}/field/#slug={survey.slug}&d={survey.sha256[:32]}"

    def prepare(self, survey: PublishedSurvey) -> None:
        self.page.goto(self.link(survey))
        heading(self.page, "Get this tablet ready")
        press(self.page, "Prepare this tablet")
        heading(self.page, "A small survey")

    def interview(self) -> None:
        """Answer as one person and pass the tablet on."""
        answer_and_send(self.page)
        heading(self.page, "Stored. Thank you.")
        # Until then, the next person could read the lines on the screen.
        expect(
            self.page.get_by_text("Press the button before you pass this device on.")
        ).to_be_visible()
        self.bodies.append((self.page.locator("pre").text_content() or "").encode())
        press(self.page, "Start for the next person")
        heading(self.page, "A small survey")

    def open_desk(self) -> None:
        press(self.page, "For the interviewer")
        heading(self.page, "For the interviewer")

    def upload(self) -> str:
        """Press "Upload now", and return the status that the page shows."""
        press(self.page, "Upload now")
        status = self.page.get_by_role("status")
        expect(status).to_have_text(re.compile(r"^(?!Uploading\.).+"))
        return status.text_content() or ""

    def stored(self) -> dict[str, Any]:
        """Return what the tablet's database contains."""
        found: dict[str, Any] = self.page.evaluate(READ_DATABASE)
        return found

    def change_queue(self, change: str) -> None:
        """Change the queue by a JavaScript statement."""
        self.page.evaluate(CHANGE_QUEUE.replace("CHANGE", change))


OPEN = """
const database = await new Promise((resolve, reject) => {
  const request = indexedDB.open("survey-field", 1);
  request.onsuccess = () => resolve(request.result);
  request.onerror = reject;
});
const get = (store, key) => new Promise((resolve) => {
  const request = store.get(key);
  request.onsuccess = () => resolve(request.result);
});
"""
READ_DATABASE = (
    "async () => {"
    + OPEN
    + """
const store = database.transaction("field").objectStore("field");
const keys = await new Promise((resolve) => {
  const request = store.getAllKeys();
  request.onsuccess = () => resolve(request.result);
});
const queue = await get(store, "queue");
const survey = await get(store, "survey");
database.close();
const names = (await indexedDB.databases()).map(({name}) => name);
const length = queue.boxes.length / queue.used.length;
const boxes = Array.from(queue.used, (_, i) =>
  Array.from(queue.boxes.subarray(i * length, (i + 1) * length)));
return {keys, names, boxes, used: [...queue.used], drawn: [...queue.drawn], late: queue.late,
        fields: Object.keys(queue).sort(), survey: Object.keys(survey).sort(),
        local: {...localStorage}, session: {...sessionStorage}, caches: await caches.keys()};
}"""
)
CHANGE_QUEUE = (
    "async () => {"
    + OPEN
    + """
const transaction = database.transaction("field", "readwrite");
const store = transaction.objectStore("field");
const queue = await get(store, "queue");
CHANGE;
store.put(queue, "queue");
await new Promise((resolve) => { transaction.oncomplete = resolve; });
database.close();
}"""
)


def arrived_bodies(site: Site, survey: PublishedSurvey) -> list[bytes]:
    """Open the pending boxes like the keeper; return the reports in them."""
    site.read_keys()
    definition = survey.definition
    assert definition.field
    private_key = FieldKeys(site.keys).find_field_key(definition.field.key)
    assert private_key
    contents = [
        open_box(private_key, definition, box.codes) for box in pending_reports(site.store, survey)
    ]
    return sorted(content for content in contents if content.strip(b"\0"))


def check_all_arrived(site: Site, survey: PublishedSurvey, tablet: Tablet) -> None:
    """Check that every report that a tablet stored is pending exactly once."""
    assert arrived_bodies(site, survey) == sorted(tablet.bodies)
    assert len({*tablet.bodies}) == len(tablet.bodies)
