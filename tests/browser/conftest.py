"""Provide one real server for all browser tests, and devices: recording browser contexts."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from nacl.public import PrivateKey
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Request, expect

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, open_store
from tests.browser.respondent import SINGLE_TAPS
from tests.browser.tablet import Network, Tablet
from tests.conftest import (
    EMAIL,
    SECRET,
    SERVE,
    SMALL,
    TODAY,
    free_port,
    hashed_password,
    wait_until_up,
)
from tests.store.reports import PRIVATE_KEYS

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 1,
}
STEP_SECONDS = 60
"""Maximum duration of one step in a browser on a busy machine."""

NO_LONG_TIMERS = """
const run = window.setTimeout;
window.setTimeout = (act, ms, ...rest) => run(act, ms < 2000 ? ms : 1e9, ...rest);
"""

expect.set_options(timeout=1000 * STEP_SECONDS)


@dataclass
class Site:
    """A running `survey serve` and the database behind it."""

    url: str
    store: Store
    keys: Path
    settings: dict[str, str]
    process: subprocess.Popen[str]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def publish(self, toml: str = SMALL) -> PublishedSurvey:
        """Publish under a new slug, so that no test sees another test's reports."""
        slug = f"survey-{next(self.numbers)}"
        return self.publish_as(slug, toml)

    def publish_as(self, slug: str, toml: str) -> PublishedSurvey:
        definition = toml.replace('slug = "small"', f'slug = "{slug}"')
        if "layout = " not in definition:
            # Most tests need whole pages of questions; the others state a layout.
            definition = f'layout = "pages"\n{definition}'
        while "field_until" in toml and not self.store.spare_field_keys():
            time.sleep(0.1)  # The keeper has just started, or replaces the last key.
        return publish(self.store, load(definition.encode(), "s.toml", Caps()), TODAY)

    def read_keys(self) -> None:
        """Let this process open the pending reports of the server, as its keeper can."""
        for file in self.keys.glob("*.key"):
            private_key = PrivateKey(file.read_bytes())
            PRIVATE_KEYS[bytes(private_key.public_key)] = private_key

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=90)

    def start(self) -> None:
        """Start the server again, at the same address."""
        self.process = start_server(self.url, self.settings)

    def link(self, survey: PublishedSurvey) -> str:
        return f"{self.url}/s/{survey.slug}#d={survey.sha256[:32]}"


def start_server(url: str, settings: dict[str, str]) -> subprocess.Popen[str]:
    """Start `survey serve` and wait until it answers."""
    process = subprocess.Popen(
        [*SERVE, "--port", url.rpartition(":")[2]],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_until_up(url, process)
    return process


@contextmanager
def running_site(directory: Path, **settings: str) -> Iterator[Site]:
    """Run a server with a fresh database below a directory."""
    database = f"sqlite:///{directory / 'survey.db'}"
    store = open_store(database)
    store.migrate()
    store.add_researcher(EMAIL, hashed_password())
    url = f"http://127.0.0.1:{free_port()}"
    settings = {
        "SURVEY_SECRET": SECRET,
        "SURVEY_DATABASE": database,
        "SURVEY_PUBLIC_URL": url,
        "SURVEY_KEYS": str(directory / "keys"),
        "SURVEY_PASSWORD_COST": "1",
        **settings,
    }
    (directory / "keys").mkdir(mode=0o700)
    site = Site(url, store, directory / "keys", settings, start_server(url, settings))
    yield site
    site.stop()
    store.close_connections()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("browser")) as running:
        yield running


@dataclass
class Device:
    """A person's browser, with every request and console message of every tab."""

    context: BrowserContext
    requests: list[Request] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)
    """The kinds of data that the browser reported as cleared."""

    addresses: list[str] = field(default_factory=list)
    """Every address that a tab had, also within a page."""

    warnings: int = 0
    """How often the browser asked before it left a page."""

    def __post_init__(self) -> None:
        self.context.on("request", lambda request: self.requests.append(request))
        self.context.on("console", lambda line: self._record_message(line.text))
        self.context.on("weberror", lambda error: self.messages.append(str(error.error)))
        self.context.on("dialog", self._dismiss)
        self.context.on("page", self._record_addresses)

    def _record_addresses(self, page: Page) -> None:
        page.on("framenavigated", lambda frame: self.addresses.append(frame.url))

    def _record_message(self, text: str) -> None:
        forgot = re.fullmatch(r"Clear-Site-Data header on '.*': Cleared data types: (.*)\.", text)
        if forgot:
            self.cleared.append(forgot[1])
        else:
            self.messages.append(text)

    def _dismiss(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":
            self.warnings += 1
            dialog.accept()
            return
        self.messages.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def disable_retries(self) -> Device:
        """Stop timers from resending a waiting report; call this before `open`.

        Otherwise, on a busy machine, the page could try again between two steps of a test that
        counts the tries.
        """
        self.context.add_init_script(NO_LONG_TIMERS)
        return self

    def open(self, url: str) -> Page:
        page = self.context.new_page()
        page.goto(url)
        return page

    @property
    def posts(self) -> list[Request]:
        return [request for request in self.requests if request.method != "GET"]

    @property
    def bodies(self) -> list[bytes | None]:
        """The body of every attempt to send something, in order."""
        return [request.post_data_buffer for request in self.posts]


@pytest.fixture
def new_device(browser: Browser) -> Iterator[Callable[..., Device]]:
    """Create a phone; the options are those of a browser context."""
    contexts: list[BrowserContext] = []

    def new(**options: Any) -> Device:
        context = browser.new_context(**{**PHONE, **options})
        context.set_default_timeout(1000 * STEP_SECONDS)
        context.add_init_script(SINGLE_TAPS)
        contexts.append(context)
        return Device(context)

    yield new
    for context in contexts:
        context.close()


@pytest.fixture
def device(new_device: Callable[..., Device]) -> Device:
    return new_device()


@pytest.fixture(scope="module")
def field_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a site that releases nothing in the middle of a test."""
    with running_site(tmp_path_factory.mktemp("field"), SURVEY_RELEASE_EVERY="604800") as running:
        yield running


@pytest.fixture
def network(field_site: Site) -> Iterator[Network]:
    """Run a network that can fail, between the site and its tablets."""
    proxy = Network(field_site.url)
    yield proxy
    proxy.close()


@pytest.fixture
def field_survey(field_site: Site) -> PublishedSurvey:
    """Publish a survey with field mode."""
    until = datetime.now(UTC).date() + timedelta(days=40)
    return field_site.publish(f'kiosk = true\nfield_until = "{until}"\n{SMALL}')


@pytest.fixture
def tablet(browser: Browser, tmp_path: Path, network: Network) -> Iterator[Tablet]:
    tablet = Tablet(browser, tmp_path / "profile", network.url, PHONE)
    yield tablet
    tablet.close()
