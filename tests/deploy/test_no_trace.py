"""No trace (security 10): no file contains anything that identifies a visitor."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from survey.archive import backup
from survey.collect.invitations import issue_invitations, new_tokens
from survey.collect.publication import close, publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.conftest import SMALL, TODAY
from tests.deploy.proxy import Proxy
from tests.faults.reports import new_report
from tests.store.reports import YEARS_LATER, keeper_at

pytestmark = [pytest.mark.web, pytest.mark.security]

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Visitor:
    """A respondent with unique values that no file may contain afterwards."""

    address: str
    agent: str
    token: str
    answer: str

    @property
    def marks(self) -> list[bytes]:
        """The values to search for: all texts, and the token's decoded bytes."""
        texts = [self.address, self.agent, self.token, self.answer]
        return [*(text.encode() for text in texts), base64.urlsafe_b64decode(self.token + "=")]


def visitors(tokens: list[str]) -> list[Visitor]:
    return [
        Visitor(
            address=f"127.{30 + i % 200}.{secrets.randbelow(250) + 2}.{secrets.randbelow(250) + 2}",
            agent=f"Agent-{secrets.token_hex(12)}",
            token=token,
            answer=f"answer-{secrets.token_hex(12)}",
        )
        for i, token in enumerate(tokens)
    ]


def visit(proxy: Proxy, survey, visitor: Visitor) -> list[int]:
    """Make a complete visit that also causes every kind of error, and return the statuses."""
    headers = {
        "User-Agent": visitor.agent,
        "Cookie": f"mark={visitor.answer}",
        "Referer": f"https://{visitor.answer}.example/",
        "X-Forwarded-For": visitor.address,
        "Accept-Language": "en",
    }
    form = json.loads(new_report(survey))
    report = json.dumps({**form, "invitation": visitor.token}).encode()
    invalid = json.dumps({**form, "codes": [visitor.answer]}).encode()
    reports = f"/s/{survey.slug}/reports"
    requests = [
        ("GET", f"/s/{survey.slug}", None),
        ("GET", f"/s/{survey.slug}/definition.json?{visitor.answer}", None),
        ("POST", reports, report),
        ("POST", reports, report),
        ("POST", reports, invalid),
        ("POST", reports, visitor.answer.encode()),
        ("POST", f"/s/{visitor.answer}/reports", report),
        ("POST", reports, visitor.answer.encode() * 1000),
        ("GET", f"/{visitor.answer}", None),
        ("GET", f"/s/{survey.slug}/sent", None),
    ]
    return [
        proxy.ask(method, path, body, {**headers, **(JSON if body else {})}, visitor.address)[0]
        for method, path, body in requests
    ]


def files(*directories: Path) -> Iterator[tuple[Path, bytes]]:
    for directory in directories:
        for path in directory.rglob("*"):
            # A database server deletes files during the search.
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    yield path, path.read_bytes()


def matches(marks: list[bytes], contents: Iterator[tuple[Path, bytes]]) -> list[tuple[Path, bytes]]:
    return [(path, mark) for path, content in contents for mark in marks if mark in content]


@pytest.fixture
def invited(store, request):
    """Publish a survey with invitations, and return it with its visitors."""
    definition = f'access = "invitation"\n{SMALL}'
    survey = publish(store, load(definition.encode(), "s.toml", Caps()), TODAY)
    tokens = new_tokens(request.param)
    issue_invitations(store, survey, "", tokens)
    return survey, visitors(tokens)


@pytest.fixture
def databases(request: pytest.FixtureRequest, settings) -> list[Path]:
    """Return the directories of the database server: its tables and logs."""
    if settings.database.startswith("sqlite"):
        return []
    return [Path(request.getfixturevalue("postgresql").server.pgdata)]


@pytest.mark.parametrize(
    ("invited", "settings"),
    [
        (30, "sqlite"),
        (30, "postgresql"),
        pytest.param(200, "sqlite", marks=pytest.mark.long),
        pytest.param(200, "postgresql", marks=pytest.mark.long),
    ],
    indirect=True,
)
def test_no_trace_of_visitors_is_in_any_log_database_temporary_file_or_backup(
    start_proxy, serve, invited, store, settings, databases, tmp_path
):
    survey, people = invited
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    proxy = start_proxy(TMPDIR=str(temporary))
    statuses = [visit(proxy, survey, person) for person in people]
    assert {tuple(visit_statuses) for visit_statuses in statuses} == {
        (200, 200, 201, 201, 422, 400, 404, 413, 404, 204)
    }
    marks = [mark for person in people for mark in person.marks]
    # Search while reports are pending, after a server was killed, and after release and closing.
    assert matches(marks, files(tmp_path, *databases)) == []
    serve.processes[0].kill()
    outputs = [serve.processes[0].communicate()[0]]
    visit(proxy, survey, people[0])
    backup(store, tmp_path / "before.backup", lambda *_: None)
    close(store, survey.slug, TODAY)
    keeper_at(store, settings, YEARS_LATER).work()
    assert store.n_released(survey.key) == len(people)
    backup(store, tmp_path / "after.backup", lambda *_: None)
    serve.processes[1].terminate()
    outputs.append(serve.processes[1].communicate(timeout=60)[0])
    proxy.process.terminate()
    outputs.append(proxy.process.communicate(timeout=90)[0].decode())
    nginx_defaults = [Path("/var/log/nginx"), Path("/var/lib/nginx")]
    assert matches(marks, files(tmp_path, *databases, *nginx_defaults)) == []
    assert [mark for mark in marks if mark in "".join(outputs).encode()] == []


@pytest.mark.parametrize("invited", [1], indirect=True)
def test_the_search_detects_a_proxy_that_logs_requests(start_proxy, invited, tmp_path):
    survey, people = invited
    logging = ("access_log off;", f"access_log {tmp_path}/nginx/logs/access.log combined;")
    proxy = start_proxy(logging, servers=1)
    visit(proxy, survey, people[0])
    proxy.process.terminate()
    proxy.process.wait(timeout=30)
    traces = {mark for _, mark in matches(people[0].marks, files(tmp_path))}
    assert {people[0].address.encode(), people[0].agent.encode()} <= traces


@pytest.mark.parametrize("invited", [1], indirect=True)
def test_the_search_detects_a_proxy_that_logs_errors(start_proxy, serve, invited, tmp_path):
    survey, people = invited
    headers = ("error_log /dev/null emerg;", f"error_log {tmp_path}/nginx/logs/request.log error;")
    proxy = start_proxy(headers, servers=1)
    serve.processes[0].kill()
    serve.processes[0].communicate()
    visit(proxy, survey, people[0])
    assert matches(people[0].marks, files(tmp_path)) != []
