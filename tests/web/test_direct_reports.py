"""Reports that are accepted without the framework: clients see no difference.

Each request goes to two applications over equal databases. One of them is complete; in the other
the framework answers every request.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import RawIOBase
from pathlib import Path
from typing import Any

import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import create_environ, run_wsgi_app

from survey.app import create_app
from survey.asgi import WorkerApplication
from survey.collect.invitations import token_hash
from survey.collect.publication import publish
from survey.errors import StoreBusyError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import report_body
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import PublishedSurvey, Schedule, Store, open_store
from tests.conftest import ONION, SMALL
from tests.store.tablets import publish_for_tablets

pytestmark = pytest.mark.security

TODAY = datetime.now(UTC).date()
TOKEN, RUN = "A" * 43, "trial-1-ab"
URL, LISTED, FOREIGN = "http://localhost", "https://union.example", "https://elsewhere.example"
PUBLIC, RESEARCH = "https://survey.example.org", "https://research.example.org"
TWO_ORIGINS = {"public_url": PUBLIC, "research_url": RESEARCH, "onion_url": ONION}
BEHIND_PROXY = {**TWO_ORIGINS, "trusted_proxies": 1, "client_origins": LISTED}
CHUNKED = {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}


@dataclass(frozen=True)
class Request:
    """A request, by default a report for the survey `plain`.

    `is_direct` tells whether it must be answered without the framework.
    """

    body: bytes
    path: str = "/s/plain/reports"
    method: str = "POST"
    kind: str | None = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, Any] = field(default_factory=dict)
    is_direct: bool = False

    def environment(self) -> dict[str, Any]:
        """Return a new WSGI environment."""
        environ = create_environ(
            self.path, method=self.method, data=self.body, content_type=self.kind
        )
        names = {f"HTTP_{name.upper().replace('-', '_')}": name for name in self.headers}
        values = {key: self.headers[name] for key, name in names.items()}
        return {**environ, **values, "wsgi.input_terminated": True, **self.environ}


class Pair:
    """Two applications over equal databases: the complete one, and one with the framework only."""

    def __init__(self, settings: Settings, stores: Sequence[Store]) -> None:
        self.stores = stores
        complete, framework = (create_app(settings, store) for store in stores)
        # The framework reads each definition first.
        self._intake = complete.reports._reception.intake
        for survey in stores[0].surveys():
            self._intake._definition(survey.slug, survey.sha256)
        self._n_framework_calls = 0
        self._framework, self._inner = framework.wsgi_app, complete.wsgi_app
        self._complete = WorkerApplication(self._count, complete.reports)

    def forget_definitions(self) -> None:
        """Empty the cache of the complete application."""
        self._intake._definitions.clear()

    def _count(self, *arguments: Any) -> Any:
        self._n_framework_calls += 1
        return self._inner(*arguments)

    def compare(self, request: Request) -> str:
        """Send a request to both, compare their answers, and return the status."""
        before = self._n_framework_calls
        answer = asyncio.run(_answer_of_worker(self._complete, request))
        body, status, headers = run_wsgi_app(self._framework, request.environment(), buffered=True)
        assert answer == _answer(int(status[:3]), headers, b"".join(body)), request
        assert "set-cookie" not in answer[1], request
        assert request.is_direct == (before == self._n_framework_calls), (request, answer)
        return str(answer[0])

    def compare_rows(self, surveys: Mapping[str, PublishedSurvey]) -> None:
        """Compare the numbers of stored reports of each survey."""
        complete, framework = (
            {name: store.n_pending(survey.key) for name, survey in surveys.items()}
            for store in self.stores
        )
        assert complete == framework


Answer = tuple[int, dict[str, list[str]], bytes]


def _answer(status: int, headers: Headers, body: bytes) -> Answer:
    """Return status, headers and body of an answer, without random values."""
    names = {name.lower() for name, _ in headers} - {"retry-after"}
    return status, {name: sorted(headers.getlist(name)) for name in names}, body


async def _answer_of_worker(application: WorkerApplication, request: Request) -> Answer:
    """Send a request whose body arrives in two parts; return the answer."""
    scope, body = scope_of(request.environment())
    middle = len(body or b"") // 2
    arriving: list[Any] = [{"type": "http.disconnect"}]
    if body is not None:
        arriving = [
            {"type": "http.request", "body": body[:middle], "more_body": True},
            {"type": "http.request", "body": body[middle:], "more_body": True},
            {"type": "http.request", "body": b"", "more_body": False},
        ]
    sent: list[Any] = []

    async def receive() -> Any:
        return arriving.pop(0) if arriving else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await application(scope, receive, send)
    start, *parts = sent
    headers = Headers([(name.decode(), value.decode()) for name, value in start["headers"]])
    return _answer(start["status"], headers, b"".join(part["body"] for part in parts))


def scope_of(environ: dict[str, Any]) -> tuple[dict[str, Any], bytes | None]:
    """Return the ASGI scope of a request and its body, None if the connection ends before."""
    fields = {name: value for name, value in environ.items() if name.startswith("HTTP_")}
    fields["HTTP_CONTENT_TYPE"] = environ.get("CONTENT_TYPE") or ""
    fields["HTTP_CONTENT_LENGTH"] = environ.get("CONTENT_LENGTH") or ""
    headers = [
        (name.removeprefix("HTTP_").replace("_", "-").lower().encode(), value.encode())
        for name, value in fields.items()
        if value or name not in ("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH")
    ]
    scope = {
        "type": "http",
        "method": environ["REQUEST_METHOD"],
        "path": environ["PATH_INFO"].encode("latin-1").decode(),
        "query_string": environ["QUERY_STRING"].encode(),
        "http_version": "1.1",
        "scheme": environ["wsgi.url_scheme"],
        "server": (environ["SERVER_NAME"], environ["SERVER_PORT"]),
        "client": ("127.0.0.1", "50000"),
        "headers": headers,
    }
    try:
        return scope, environ["wsgi.input"].read()
    except ConnectionResetError:
        return scope, None


def publish_each_kind(store: Store, directory: Path) -> dict[str, PublishedSurvey]:
    """Publish a survey for each way in which the server treats reports; return them by slug.

    The versions of the survey `old` are called `first` and `newest`.
    """

    def add(slug: str, text: str = SMALL, schedule: Schedule | None = None) -> PublishedSurvey:
        text = text.replace('slug = "small"', f'slug = "{slug}"')
        return publish(store, load(text.encode(), "s.toml", Caps()), TODAY, schedule)

    publish_for_tablets(store, directory)
    for slug in ("plain", "closed"):
        add(slug)
    store.close_survey("closed", TODAY)
    invited = add("invited", f'access = "invitation"\n{SMALL}')
    store.add_invitations(invited.key, "east", [token_hash(TOKEN)])
    add("later", schedule=Schedule(opens=TODAY + timedelta(3)))
    store.set_schedule(add("over").key, Schedule(closes=TODAY - timedelta(1)))
    versions = [add("old", SMALL.replace("Two", number)) for number in ("One", "Three", "Four")]
    add("drawn", f"questions_per_person = 1\n{SMALL}")
    run = load(SMALL.encode(), "s.toml", Caps()).model_copy(update={"slug": RUN})
    store.publish(freeze(run, 1), TODAY)
    surveys = {survey.slug: survey for survey in store.surveys()}
    return {**surveys, "first": versions[0], "newest": versions[-1]}


class BrokenConnection(RawIOBase):
    """A connection that ends while the body is read."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        raise ConnectionResetError


class Bodies:
    """Reports, each with a new id that is the same in every run."""

    def __init__(self, surveys: Mapping[str, PublishedSurvey]) -> None:
        self._surveys = surveys
        self._n = 0

    def __call__(
        self, slug: str = "plain", codes: Sequence[Any] = (0, 2), *, length: int = 0, **texts: str
    ) -> bytes:
        self._n += 1
        report_id = base64.urlsafe_b64encode(self._n.to_bytes(16, "big")).decode().rstrip("=")
        sha256 = self._surveys[slug].sha256
        return report_body(sha256, report_id, codes, length=length, **texts)


def reports_for_each_survey(body: Bodies) -> Iterator[Request]:
    """Yield valid reports for every survey, of which some surveys refuse all."""

    def to(slug: str, content: bytes, *, is_direct: bool = False) -> Request:
        return Request(content, f"/s/{slug}/reports", is_direct=is_direct)

    yield to("plain", content := body(), is_direct=True)
    yield to("plain", content, is_direct=True)
    yield to("small", body("small"), is_direct=True)
    invited = body("invited", stratum="east", invitation=TOKEN)
    yield to("invited", invited, is_direct=True)
    yield to("invited", invited, is_direct=True)
    for invitation, stratum in ((TOKEN, "east"), (TOKEN, "west"), ("unknown", ""), ("", "")):
        yield to("invited", body("invited", stratum=stratum, invitation=invitation))
    yield to("old", body("newest"), is_direct=True)
    yield to("drawn", body("drawn", [None, 2]), is_direct=True)
    for slug in ("old", "closed", "later", "over", RUN, "drawn", "none"):
        yield to(slug, body({"old": "first", "none": "plain"}.get(slug, slug)))
    for slug in ("closed", "PLAIN", "plain%00", "pl%C3%A4in", "a" * 200, "", "/plain", "plain/x"):
        yield to(slug, body())
    yield to("pla%69n", body(), is_direct=True)
    for path in ("/s/plain/reports/", "/s/plain/reports%0A", "/s/plain", "/", "/s/plain/field"):
        yield Request(body(), path)


def malformed_reports(body: Bodies) -> Iterator[Request]:
    """Yield reports whose body is wrong or of an extreme length."""
    plain = body()
    for content in (
        *(b"", b"{", b"[]", b"{}", b"nul", b"NaN", b"\xff", b"[" * 5_000, plain[:-1], plain * 2),
        *(plain.replace(b'"pad"', b'"more"'), plain.replace(b"{", b'{"pad":"",', 1)),
        *(plain.replace(b'""', b'"\\ud800"', 1), plain.replace(b"[0", b"[1e400")),
        *(plain.replace(b"[0", b"[true"), plain.replace(b"[0", b"[0,0")),
        *(plain.replace(b"AAA", b"A"), plain.replace(b"AAA", b"A=="), body(codes=[7, 7])),
        *(body(stratum="east"), body(stratum="\0"), body(length=8_193), body(length=99_999)),
    ):
        yield Request(content)
    yield Request(body(length=8_192), is_direct=True)


def unusual_requests(body: Bodies) -> Iterator[Request]:
    """Yield valid reports in requests that differ from a browser's."""
    json_types = ("application/json; charset=utf-8", "Application/JSON", "application/jsonx")
    form_types = ("multipart/form-data", "application/x-www-form-urlencoded")
    for kind in (None, "", "text/plain", "a/b; =\x00", *json_types, *form_types):
        yield Request(body(), kind=kind)
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "X"):
        yield Request(body(), method=method)
        yield Request(body(), method=method, headers={"Accept": "text/html"})
    yield Request(body(codes=[9, 9]), headers={"Accept": "text/html"})
    yield Request(body(), "/s/plain/reports?a=b", headers={"Cookie": "survey=x"}, is_direct=True)
    for length in ("", "x", "-1", "٣", "8193", "10000000000000000000"):
        yield Request(body(), environ={"CONTENT_LENGTH": length})
    plain = body()
    yield Request(body(), environ=CHUNKED)
    yield Request(body(), headers={"Transfer-Encoding": "chunked"})
    yield Request(body(length=9_999), environ=CHUNKED)
    yield Request(plain, environ={"wsgi.input": BrokenConnection()})


def requests_of_origins(body: Bodies) -> Iterator[Request]:
    """Yield valid reports of pages and for hosts of every kind."""
    for host in ("localhost", "LOCALHOST:80", "survey.example.org", "a b", "[::1]", "", "x:99999"):
        yield Request(body(), environ={"HTTP_HOST": host}, is_direct=True)
    for origin, is_direct in ((URL, True), (FOREIGN, False), (LISTED, False), ("null", False)):
        for site in ("same-origin", "none", "same-site", "cross-site"):
            headers = {"Origin": origin, "Sec-Fetch-Site": site}
            direct = is_direct and site in ("same-origin", "none")
            yield Request(body(), headers=headers, is_direct=direct)
        yield Request(body(), headers={"Origin": origin}, is_direct=is_direct)
    for origin in ("", "http://[", "http://localhost:8001"):
        yield Request(body(), headers={"Origin": origin})


def requests_behind_proxy(body: Bodies) -> Iterator[Request]:
    """Yield reports for every survey and host of an instance with two origins behind a proxy."""
    public, research, onion = (url.partition("://")[2] for url in (PUBLIC, RESEARCH, ONION))
    for host in (public, public.upper(), f"{public}:443", research, onion, "evil.example", ""):
        is_public = host.lower().removesuffix(":443") in (public, onion)
        for slug in ("plain", RUN, "none"):
            forwarded = {"X-Forwarded-Host": host, "X-Forwarded-Proto": "https"}
            for origin in (None, PUBLIC, RESEARCH, ONION, LISTED, FOREIGN):
                headers = {**forwarded, **({"Origin": origin} if origin else {})}
                is_own = origin in (None, PUBLIC, LISTED, f"https://{host.lower()}")
                direct = slug == "plain" and is_public and is_own
                direct = direct or (host == onion and slug == "plain" and origin == ONION)
                content = body(slug if slug == RUN else "plain")
                path = f"/s/{slug}/reports"
                yield Request(content, path, headers=headers, is_direct=direct)


@pytest.fixture
def surveys(store, tmp_path) -> dict[str, PublishedSurvey]:
    """Publish a survey of each kind into the database that both applications start with."""
    surveys = publish_each_kind(store, tmp_path)
    store.close_connections()
    return surveys


@pytest.fixture
def stores(surveys, tmp_path) -> Iterator[list[Store]]:
    """Return two stores with the same surveys, keys and invitations."""
    stores = []
    for name in ("complete", "framework"):
        shutil.copy(tmp_path / "survey.db", tmp_path / f"{name}.db")
        stores.append(open_store(f"sqlite:///{tmp_path / name}.db"))
    yield stores
    for other in stores:
        other.close_connections()


def test_every_report_gets_the_same_answer_as_from_the_framework(settings, stores, surveys):
    pair, body = Pair(settings, stores), Bodies(surveys)
    statuses = set()
    for requests in (
        *(reports_for_each_survey, malformed_reports, unusual_requests, requests_of_origins),
    ):
        statuses |= {pair.compare(request)[:3] for request in requests(body)}
    assert statuses > {"201", "400", "403", "404", "405", "409", "410", "413", "415", "422"}
    pair.compare_rows(surveys)


def test_behind_a_proxy_every_host_of_two_origins_gives_the_same_answers(settings, stores, surveys):
    pair, body = Pair(replace(settings, **BEHIND_PROXY), stores), Bodies(surveys)
    statuses = {pair.compare(request)[:3] for request in requests_behind_proxy(body)}
    assert statuses == {"201", "403", "404"}
    pair.compare_rows(surveys)


@pytest.mark.parametrize("error", [StoreBusyError("busy"), RuntimeError("a defect")])
def test_a_failing_store_is_tried_once_and_answered_by_the_framework(
    settings, stores, surveys, monkeypatch, error
):
    attempts = []

    def fail(*_: object) -> None:
        attempts.append(1)
        raise error

    for store in stores:
        monkeypatch.setattr(store, "add_reports", fail)
    status = Pair(settings, stores).compare(Request(Bodies(surveys)()))
    assert status[:3] == ("503" if isinstance(error, StoreBusyError) else "500")
    assert len(attempts) == 2


def test_the_framework_answers_reports_whose_definition_must_be_read(settings, stores, surveys):
    pair, body = Pair(settings, stores), Bodies(surveys)
    pair.forget_definitions()
    pair.compare(Request(body()))
    assert pair.compare(Request(body(), is_direct=True)) == "201"
