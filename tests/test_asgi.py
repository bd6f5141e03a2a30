"""The ASGI application of a worker: requests of the framework, which get threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from survey.asgi import RESEARCH_THREADS, WorkerApplication
from survey.respond import DirectReports

PART = {"type": "http.request", "body": b"0123456789", "more_body": True}
GONE = {"type": "http.disconnect"}

SCOPE: dict[str, Any] = {
    "type": "http",
    "scheme": "http",
    "http_version": "1.1",
    "headers": [],
    "method": "POST",
    "path": "/",
    "query_string": b"",
}


class NoReports(DirectReports):
    """Leaves all requests to the framework."""

    def __init__(self) -> None:
        pass

    def n_body_bytes(self, environ: Any) -> None:
        return None


def answer(
    app: Any,
    arriving: list[dict[str, Any]],
    on_send: Callable[[int], None] = lambda _: None,
    **scope: Any,
) -> list[Any]:
    """Send a request to an application; return what it sends.

    The client leaves when a message says so. `on_send` is called with the number of messages.
    """
    sent: list[Any] = []

    async def receive() -> Any:
        while not arriving:
            await asyncio.sleep(0.001)
        return arriving.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)
        on_send(len(sent))
        await asyncio.sleep(0)

    asyncio.run(WorkerApplication(app, NoReports())({**SCOPE, **scope}, receive, send))
    return sent


class Export:
    """A response without an end, which counts its parts."""

    def __init__(self, failing_part: int = 0) -> None:
        self.n_parts, self.is_closed, self._failing_part = 0, False, failing_part

    def __call__(self, _: Any, start_response: Any) -> Export:
        start_response("200 OK", [("Content-Type", "text/csv")])
        return self

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.n_parts += 1
            if self.n_parts == self._failing_part:
                raise ConnectionResetError
            yield b"part"

    def close(self) -> None:
        self.is_closed = True


def test_a_response_ends_when_its_client_disconnects():
    export, arriving = Export(), [PART | {"more_body": False}]
    sent = answer(export, arriving, lambda n: arriving.append(GONE) if n == 5 else None)
    # The export itself has no end.
    assert export.is_closed
    assert export.n_parts >= 5
    assert sent[0]["headers"] == [(b"Content-Type", b"text/csv")]


def test_a_response_that_fails_halfway_is_not_completed():
    sent: list[Any] = []
    export = Export(failing_part=4)
    with pytest.raises(ConnectionResetError):
        answer(export, [], sent.append)
    assert export.is_closed
    assert sent[-1] == 4


def test_slow_requests_do_not_keep_the_others_waiting():
    released = threading.Event()

    def app(environ: Any, start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/slow":
            assert released.wait(30)
        start_response("200 OK", [])
        return []

    application = WorkerApplication(
        app, NoReports(), lambda environ: environ["PATH_INFO"] == "/slow"
    )

    async def request(path: str) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            return PART | {"more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await application({**SCOPE, "path": path}, receive, send)
        return int(sent[0]["status"])

    async def mix() -> list[int]:
        slow = [asyncio.create_task(request("/slow")) for _ in range(RESEARCH_THREADS + 1)]
        quick = await asyncio.wait_for(asyncio.gather(*map(request, ["/"] * 100)), 30)
        assert not any(task.done() for task in slow)
        released.set()
        return [*quick, *await asyncio.gather(*slow)]

    assert set(asyncio.run(mix())) == {200}


def test_a_response_is_closed_even_if_its_first_message_cannot_be_sent():
    def fail(_: int) -> None:
        raise ConnectionResetError

    export = Export()
    with pytest.raises(ConnectionResetError):
        answer(export, [], fail)
    assert export.is_closed


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"99")]])
def test_an_interrupted_upload_is_not_treated_as_complete(headers):
    def app(environ: Any, _: Any) -> list[bytes]:
        assert environ["wsgi.input"].read(10) == b"0123456789"
        return [environ["wsgi.input"].read(99)]

    with pytest.raises(ConnectionResetError):
        answer(app, [PART, PART, GONE], headers=headers)


def test_the_environment_has_the_values_of_headers_without_underscores_and_the_octets_of_the_path():
    environs: list[Any] = []

    def app(environ: Any, start_response: Any) -> list[bytes]:
        environs.append(environ)
        start_response("204 NO CONTENT", [])
        return []

    headers = [(b"host", b"h"), (b"cookie", b"a=1"), (b"cookie", b"b=2"), (b"content-type", b"t")]
    headers += [(b"x-forwarded-for", b"192.0.2.7"), (b"x_forwarded_for", b"192.0.2.8")]
    scope = {"path": "/\u00e9", "query_string": b"q=\xc3\xa9", "client": ("192.0.2.1", "5000")}
    answer(app, [], headers=headers, **scope)
    expected = {"HTTP_HOST": "h", "HTTP_COOKIE": "a=1,b=2", "CONTENT_TYPE": "t"}
    # A client must not be able to choose its address if a proxy forwards this header.
    expected |= {"HTTP_X_FORWARDED_FOR": "192.0.2.7"}
    expected |= {"PATH_INFO": "/\u00c3\u00a9", "QUERY_STRING": "q=\u00c3\u00a9"}
    expected |= {"SCRIPT_NAME": "", "REMOTE_ADDR": "192.0.2.1"}
    assert {name: environs[0][name] for name in expected} == expected
