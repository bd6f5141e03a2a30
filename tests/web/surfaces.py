"""Read everything that anybody can read about a survey, without what differs between two readings.

Pages of researchers and respondents, files, API, metrics, log and commands; a test compares what
they state before and after reports arrive.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile, is_zipfile

import pyarrow.parquet as pq
from click.testing import CliRunner
from flask.testing import FlaskClient
from werkzeug.test import Client, TestResponse

from survey.app import create_app
from survey.cli import main
from survey.ops.health import STORE_CHECKS, Check, Gauges, Internal
from survey.ops.logs import Lines
from survey.parquet import export_reports
from survey.results.exports.microdata import write_microdata
from survey.settings import Settings
from survey.store import Store, find_survey
from tests.api.conftest import make_token
from tests.conftest import EMAIL, hashed_password
from tests.web.researchers import sign_in
from tests.web.routes import LOOK, RESULT_TOKEN, Routes

SECTIONS = ("results.", "versions.", "collection.", "microdata.", "reports.", "respond.", "api.")
"""Routes about published surveys, with those of `PAGES`."""

PAGES = (
    *("home", "healthz", "research.surveys", "research.publish", "drafts.new"),
    *("team.members", "team.log", "people.log", "people.researchers"),
    *("readers.public", "readers.figure", "share.page"),
)

FILES = ("respond.client_file", "reports.stylesheet", "respond.favicon", "reports.report_pdf")
"""Routes without a report, and the printed form of another page."""

COSTLY = (
    *("results.regression", "results.regression_csv", "results.regression_figure"),
    *("results.trend_figure", "results.difference_figure", "reports.report"),
    *("reports.methods", "reports.survey_methods", "results.weighting_csv"),
)
"""Routes that take long, and state the numbers of others."""

MASKED = re.compile(
    r'name="csrf_token" type="hidden" value="[^"]+"|csrf-token" content="[^"]+"'
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00| ?Z| UTC)?"
)
"""Tokens, and times of day: those of the reading, and of the next release."""

MASKED_HEADERS = ("Date", "Set-Cookie", "Retry-After", "Content-Length")
"""Headers that differ between two equal readings: the time, a session signed with the time, and a
random pause. The content length is omitted, because the body itself is compared and shuffled rows
change its length."""

COMMANDS = (
    ["estimate", "small"],
    ["estimate", "small", "--csv"],
    ["estimate", "small", "--cross", "fell_asleep", "pressure"],
    ["export", "small"],
    ["check-store"],
    ["schedule", "small"],
    ["keeper", "--destroy-unused"],
)


class Surfaces:
    """Everything that can be read about the survey `small` and its versions."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self.settings = store, settings
        key = store.add_researcher(EMAIL, hashed_password()).key
        self.token = make_token(store, key)
        client = create_app(settings, store).test_client()
        assert sign_in(client).status_code == 302
        cookie = client.get_cookie("survey")
        assert cookie
        self.cookie = cookie.value

    def client(self) -> FlaskClient:
        """Return the researcher's client of a server that has just started: it caches nothing."""
        client = create_app(self.settings, self.store).test_client()
        client.set_cookie("survey", self.cookie)
        return client

    def read(self, *, is_complete: bool = False) -> dict[str, str]:
        """Return what each surface states, by its address or command; `COSTLY` ones on request."""
        pages = self._pages(is_complete=is_complete)
        texts = {**pages, **self._files(), **self._commands(), **self._internal()}
        return {name: MASKED.sub("", text) for name, text in texts.items()}

    def rows(self) -> dict[int, Counter[tuple[str, ...]]]:
        """Return the rows of each version's microdata: stratum, bucket, and codes."""
        rows = {}
        for version in self.store.versions("small"):
            members = self._microdata(version.version)
            lines = members["reports.csv"].splitlines()[1:]
            rows[version.version] = Counter(tuple(line.split(",")) for line in lines)
        return rows

    def _pages(self, *, is_complete: bool) -> dict[str, str]:
        client = self.client()
        app = client.application
        routes = Routes(app, self.store, find_survey(self.store, "small"), EMAIL)
        versions = [version.version for version in self.store.versions("small")]
        # Building these addresses changes what other pages show, so it must not happen in between.
        routes.result_link(RESULT_TOKEN)
        self.store.set_public_results("small", public=True)
        self.store.set_team_look("small", LOOK)
        texts = {}
        for rule in app.url_map.iter_rules():
            if not rule.endpoint.startswith(SECTIONS) and rule.endpoint not in PAGES:
                continue
            is_left_out = rule.endpoint in FILES or rule.endpoint in COSTLY * (not is_complete)
            if "GET" not in (rule.methods or ()) or is_left_out:
                continue
            address = routes.address(rule)
            for version in versions if "version" in rule.arguments else versions[:1]:
                address_of_version = address.replace("/1/", f"/{version}/", 1)
                headers = {"Authorization": f"Bearer {self.token}"} if "/api/" in address else {}
                if rule.endpoint == "api.reports_zip":
                    continue  # It is logged; `_files` writes the same file.
                with client.get(address_of_version, headers=headers) as response:
                    texts[address_of_version] = response_text(response)
        return texts

    def _microdata(self, version: int) -> dict[str, str]:
        file = io.BytesIO()
        write_microdata(file, self.store, find_survey(self.store, "small", version))
        return _members(file.getvalue())

    def _files(self) -> dict[str, str]:
        texts = {}
        for version in self.store.versions("small"):
            number = version.version
            texts[f"microdata {number}"] = _joined(self._microdata(number))
            with TemporaryDirectory() as directory:
                manifest = export_reports(self.store, version, Path(directory), lambda _: None)
                rows = [
                    str(row)
                    for part in manifest.parts
                    for row in pq.read_table(Path(directory) / part).to_pylist()
                ]
                texts[f"parquet {number}"] = "\n".join([str(manifest.n), *sorted(rows)])
        return texts

    def _commands(self) -> dict[str, str]:
        texts = {" ".join(command): self.run(*command) for command in COMMANDS}
        # Another user of the machine has no key, but may have access to the database.
        directory = f"{self.settings.keys}-of-another-user"
        refusal = self.run("keeper", "--take-over", keys=directory)
        return {**texts, "keeper --take-over": refusal.replace(directory, "KEYS")}

    def run(self, *command: str, keys: str = "") -> str:
        """Return the exit code and the output of a command of `survey`."""
        variables = {
            "SURVEY_DATABASE": self.settings.database,
            "SURVEY_KEYS": keys or self.settings.keys,
            "SURVEY_SECRET": self.settings.secret,
        }
        result = CliRunner(env=variables).invoke(main, command)
        return f"{result.exit_code} {result.output}"

    def _internal(self) -> dict[str, str]:
        """Return the operator's pages; only a server can check its workers and its disk."""

        def checks() -> dict[str, Check]:
            return {name: check(self.store) for name, check in STORE_CHECKS.items()}

        internal = Internal(checks, [Gauges(self.store, "0" * 64, checks)], lambda: None)
        return {path: response_text(Client(internal).get(path)) for path in ("/metrics", "/readyz")}


def response_text(response: TestResponse) -> str:
    """Return the status, the headers and the body of a response."""
    headers = (f"{name}: {value}" for name, value in response.headers if name not in MASKED_HEADERS)
    return "\n".join([response.status, *sorted(headers), "", _text(response.data)])


def _text(body: bytes) -> str:
    if is_zipfile(io.BytesIO(body)):
        return _joined(_members(body))
    return body.decode()


def _members(packed: bytes) -> dict[str, str]:
    with ZipFile(io.BytesIO(packed)) as members:
        texts = {name: members.read(name).decode() for name in members.namelist()}
    if "reports.csv" in texts:
        # The order of the rows is drawn again for every file.
        head, *rows = texts["reports.csv"].splitlines()
        texts["reports.csv"] = "\n".join([head, *sorted(rows)])
    return texts


def _joined(texts: dict[str, str]) -> str:
    return "\n".join(f"{name}\n{text}" for name, text in texts.items())


@contextmanager
def captured_log() -> Iterator[list[str]]:
    """Collect what servers, keepers and commands of this process log, at every level."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    lines: list[str] = []
    handler = Collector()
    handler.setFormatter(Lines())
    root, own = logging.getLogger(), logging.getLogger("survey")
    level = own.level
    root.addHandler(handler)
    own.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        own.setLevel(level)
