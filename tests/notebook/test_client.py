"""The client of the API, against the application behind a real HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from werkzeug.serving import make_server

import survey
from survey.collect.publication import publish
from survey.errors import (
    ForbiddenError,
    NotFoundError,
    QueryError,
    RemoteError,
    SettingsError,
    UnauthorizedError,
)
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.settings import Caps
from tests.api.conftest import make_token
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY, hashed_password


@contextmanager
def running(server) -> Iterator[str]:
    # A short interval: `shutdown` waits for the next poll.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def url(app):
    with running(make_server("127.0.0.1", 0, app, threaded=True)) as address:
        yield address


@pytest.fixture
def admin(store):
    return store.add_researcher("admin@example.org", hashed_password()).key


@pytest.fixture
def connection(url, store, admin):
    return survey.connect(url, make_token(store, admin))


def test_results_and_reports_of_a_survey_are_those_of_the_page(store, small, connection):
    add_released(store, small, 3000)
    (listed,) = connection.surveys()
    remote = connection.survey("small")
    assert (listed.slug, listed.released, remote.version.version) == ("small", 3000, 1)
    page = ResultCache(store).result(small)
    estimates = [row.estimate for row in page.rows]
    assert [row.estimate for row in remote.results().rows] == estimates
    assert remote.results(level=0.9, simultaneous=True).rows[0].conf_level == 0.9
    assert remote.definition()["slug"] == "small"
    table = remote.crosstab("fell_asleep", "pressure")
    marks = table.plot().to_dict()["data"]["values"]
    assert [mark["estimate"] for mark in marks] == [row.estimate for row in table.rows]
    assert table.to_arrow().num_rows == len(table.rows)
    downloaded = remote.microdata()
    by_hand = downloaded.crosstab("fell_asleep", "pressure")
    assert [row.estimate for row in table.rows] == by_hand.estimate.ravel().tolist()
    cells = table.to_pandas()["estimate"].unstack(sort=False)
    assert cells.to_numpy().tolist() == by_hand.estimate.tolist()
    assert "Yes" in table._repr_html_()
    assert downloaded.proportions("pressure").estimate.tolist() == [
        row.estimate for row in page.question("pressure").shares
    ]


def test_a_suppressed_table_is_shown_without_numbers(store, small, connection):
    add_released(store, small, 30)
    table = connection.survey("small").crosstab("fell_asleep", "pressure")
    assert table.shown == "hide"
    assert table._repr_html_().count("<td>suppressed</td>") == len(table.rows) > 0
    assert table.to_pandas()["estimate"].isna().all()
    with pytest.raises(NotFoundError, match="no cell can be shown"):
        table.plot()


def test_all_pages_of_the_list_are_read(store, small, connection, monkeypatch):
    monkeypatch.setattr("survey.api.endpoints.MAX_LISTED", 2)
    slugs = ["a-z", "ab", "another", "small", "z"]
    for slug in slugs:
        if slug != "small":
            text = SMALL.replace('"small"', f'"{slug}"').encode()
            publish(store, load(text, "s.toml", Caps()), TODAY)
    assert [version.slug for version in connection.surveys()] == slugs


def test_errors_say_what_would_be_right(url, store, small, admin, connection):
    reader = store.add_researcher("reader@example.org", hashed_password()).key
    limited = survey.connect(url, make_token(store, reader, "surveys"))
    store.set_role("small", reader, "viewer")
    for error, request, message in (
        (UnauthorizedError, lambda: survey.connect(url, "x" * 43).surveys(), "rejects the token"),
        (NotFoundError, lambda: connection.survey("none"), 'no survey "none"'),
        (NotFoundError, lambda: connection.survey("small", 7), "no version 7: choose one of 1"),
        (ForbiddenError, lambda: limited.survey("small").results(), "scope"),
        (QueryError, lambda: connection.survey("small").results(level=2), "level = 2"),
        (QueryError, lambda: connection.survey("small").results(width=1), "'width' is an unknown"),
    ):
        with pytest.raises(
            (error, NotFoundError) if error is RemoteError else error, match=message
        ):
            request()


def test_addresses_that_would_reveal_the_token_are_rejected():
    for url, token, message in (
        ("http://research.example.org", "t", "must start with https"),
        ("ftp://research.example.org", "t", "must be an address such as"),
        ("research.example.org", "t", "must be an address such as"),
        ("https://[::1", "t", "is not an address: Invalid IPv6 URL"),
        ("https://research.example.org:port", "t", "is not an address: Port could not be cast"),
        ("https://me:secret@example.org", "t", "must not contain a name or a password"),
        ("https://research.example.org", "", "token must be one word"),
        ("https://research.example.org", "a\nb", "token must be one word"),
    ):
        with pytest.raises(SettingsError, match=message):
            survey.connect(url, token)
    shown = repr(survey.connect("https://research.example.org/", "secret"))
    assert shown == "Connection('https://research.example.org/api/v1')"


class Script:
    """A server that answers each request with the next status and headers of a list."""

    def __init__(
        self, *responses: tuple[int, dict[str, str]], body: bytes = b'{"total": 0, "surveys": []}'
    ) -> None:
        script = self
        self.responses, self.paths = list(responses), []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                script.paths.append(self.path)
                status, headers = script.responses.pop(0)
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def test_temporary_errors_are_repeated_after_the_requested_delay():
    script, delays = Script((503, {"Retry-After": "7"}), (0, {}), (429, {}), (200, {})), []
    with running(script.server) as url:
        assert survey.connect(url, "t", sleep=delays.append).surveys() == []
    assert len(script.paths) == 4
    assert delays[0] == 7
    assert 1 <= delays[1] <= 1.5
    assert 2 <= delays[2] <= 3


def test_a_client_gives_up_after_five_attempts_or_a_long_delay():
    for responses, attempts in (
        ([(500, {})] * 5, 5),
        ([(503, {"Retry-After": "3600"})], 1),
        ([(503, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"})], 1),
    ):
        script = Script(*responses)
        with running(script.server) as url, pytest.raises(RemoteError, match=f"attempt {attempts}"):
            survey.connect(url, "t", sleep=lambda seconds: None).surveys()
        assert len(script.paths) == attempts


def test_responses_that_end_early_are_repeated_whatever_their_status():
    late = {"Content-Length": "500"}
    chunks = {"Content-Length": "0", "Transfer-Encoding": "chunked"}
    for status, headers in ((200, late), (404, late), (200, chunks), (404, chunks)):
        script = Script(*[(status, headers)] * 5, body=b"ff\r\nabc")
        with running(script.server) as url, pytest.raises(RemoteError, match="attempt 5"):
            survey.connect(url, "t", sleep=lambda seconds: None).surveys()
        assert len(script.paths) == 5, (status, headers)


def test_deeply_nested_responses_are_errors_of_the_server():
    for status, message in ((404, "the server answered 404"), (200, "not that of this version")):
        script = Script((status, {}), body=b"[" * 200_000)
        error = NotFoundError if status == 404 else RemoteError
        with running(script.server) as url, pytest.raises(error, match=message):
            survey.connect(url, "t").surveys()


def test_a_definition_that_is_not_json_is_an_error_of_the_server(small, connection, monkeypatch):
    remote = connection.survey("small")
    monkeypatch.setattr(connection, "_fetch", lambda path, query: b"[" * 200_000)
    with pytest.raises(RemoteError, match="definition: the response is not JSON"):
        remote.definition()


def test_the_token_does_not_follow_a_redirect():
    other = Script((200, {}))
    with running(other.server) as target:
        script = Script((302, {"Location": f"{target}/api/v1/surveys"}))
        with running(script.server) as url, pytest.raises(RemoteError, match="redirects to"):
            survey.connect(url, "t").surveys()
    assert other.paths == []


def test_answers_of_another_kind_of_server_are_rejected():
    script = Script((200, {}))
    with (
        running(script.server) as url,
        pytest.raises(RemoteError, match="not that of this version"),
    ):
        survey.connect(url, "t").survey("small")
