"""The ASGI application of a worker: reports in the event loop, all other requests in threads.

A coroutine that waits for a commit costs far less than a thread. The framework is a WSGI
application, so it handles its requests in threads. This module reads their bodies and sends their
responses in parts, at the speed of the network. If a client disconnects, both end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from io import BufferedReader, RawIOBase
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from survey.respond import DirectReports

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

THREADS = 16
"""Maximum number of requests, apart from researchers', that the framework handles at the same time.

Threads mostly wait for the interpreter: with 64, a worker answered a fifth fewer requests."""

RESEARCH_THREADS = 40
"""Maximum number of researchers' requests in progress.

Their threads wait for the process that answers them."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class WorkerApplication:
    """ASGI application of a worker: `reports` accepts ordinary reports, `app` handles the rest.

    `is_relayed` tells which requests have separate threads, so that others do not wait for them.
    """

    def __init__(
        self,
        app: WSGIApplication,
        reports: DirectReports,
        is_relayed: Callable[[WSGIEnvironment], bool] = lambda _: False,
    ) -> None:
        self._app, self._reports, self._is_relayed = app, reports, is_relayed
        self._threads = ThreadPoolExecutor(THREADS, "request")
        self._research_threads = ThreadPoolExecutor(RESEARCH_THREADS, "researcher request")
        self.closes_connections = False
        """Whether each response tells the client to close the connection."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        environ = environment(scope)
        length = self._reports.n_body_bytes(environ)
        body = b"" if length is None else await _read(receive, length)
        is_complete = len(body) == length
        if is_complete and (headers := await self._reports.accept(environ, body)) is not None:
            await send(self._start(self._reports.status, headers.items()))
            await send({"type": "http.response.body", "body": b""})
            return
        loop = asyncio.get_running_loop()
        rest = _RequestBody(body, receive, loop, has_more=not is_complete)
        environ["wsgi.input"] = BufferedReader(rest)
        await self._answer_in_thread(environ, receive, send)

    def _start(self, status: int, headers: Iterable[tuple[str, str]]) -> Message:
        """Return the message that begins a response."""
        octets = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if self.closes_connections:
            octets.append((b"connection", b"close"))
        return {"type": "http.response.start", "status": status, "headers": octets}

    async def _answer_in_thread(
        self, environ: WSGIEnvironment, receive: Receive, send: Send
    ) -> None:
        loop, context = asyncio.get_running_loop(), copy_context()
        threads = self._research_threads if self._is_relayed(environ) else self._threads

        async def run(function: Callable[..., Any], *arguments: Any) -> Any:
            return await loop.run_in_executor(threads, context.run, function, *arguments)

        response: _Response = await run(_call, self._app, environ)
        start = self._start(response.status, response.headers)
        if response.rest is None:
            await send(start)
            await send({"type": "http.response.body", "body": response.part})
            return
        # The server accepts parts of a response even if the client has disconnected.
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await send(start)
            part = response.part
            while part is not None and not disconnect.done():
                await send({"type": "http.response.body", "body": part, "more_body": True})
                part = await run(next, response.rest, None)
            await send({"type": "http.response.body", "body": b""})
        finally:
            disconnect.cancel()
            await run(response.close)


class _Response(NamedTuple):
    """A response of the framework; `rest` are the parts after the first, None if there are none."""

    status: int
    headers: list[tuple[str, str]]
    part: bytes
    rest: Iterator[bytes] | None
    close: Callable[[], None]


def _call(app: WSGIApplication, environ: WSGIEnvironment) -> _Response:
    """Answer a request in the current thread, up to the second part of the body."""
    starts: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        starts.append((status, headers))

    parts = app(environ, start_response)
    close = getattr(parts, "close", lambda: None)
    try:
        iterator = iter(parts)
        part, second = next(iterator, b""), next(iterator, None)
    except BaseException:
        close()
        raise
    rest = None if second is None else chain([second], iterator)
    if rest is None:
        close()
    status, headers = starts[-1]
    return _Response(int(status[:3]), headers, part, rest, close)


class _RequestBody(RawIOBase):
    """The body of a request: the part received so far, and the rest, for which a thread waits."""

    def __init__(
        self, part: bytes, receive: Receive, loop: asyncio.AbstractEventLoop, *, has_more: bool
    ) -> None:
        self._part, self._has_more = memoryview(part), has_more
        self._receive, self._loop = receive, loop

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read a part; raise ConnectionResetError if the client has disconnected."""
        while not self._part and self._has_more:
            message = asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            self._part = memoryview(message.get("body", b""))
            self._has_more = message.get("more_body", False)
        n = min(len(buffer), len(self._part))
        buffer[:n], self._part = self._part[:n], self._part[n:]
        return n

    async def _next(self) -> Message:
        return await self._receive()


async def _read(receive: Receive, length: int) -> bytes:
    """Return the body of a request; fewer than `length` bytes if the client disconnects."""
    parts, n_missing = [], length
    while n_missing > 0:
        message = await receive()
        part: bytes = message.get("body", b"")
        parts.append(part)
        n_missing -= len(part)
        if not message.get("more_body", False):
            break
    return b"".join(parts)


async def _wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected or has received the whole response."""
    while (await receive())["type"] != "http.disconnect":
        pass


@lru_cache(maxsize=256)
def _variable(name: bytes) -> str:
    """Return the name of the variable for a header."""
    variable = name.decode("latin-1").upper().replace("-", "_")
    return variable if variable in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{variable}"


def environment(scope: Message) -> WSGIEnvironment:
    """Return the WSGI environment of a request, without its body."""
    server, client = scope.get("server") or ("", 0), scope.get("client") or ("", 0)
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.errors": sys.stderr,
        "wsgi.input_terminated": True,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, octets in scope["headers"]:
        if b"_" in name:
            # Otherwise, X_Forwarded_For would count as the header that a proxy sets.
            continue
        variable, value = _variable(name), octets.decode("latin-1")
        environ[variable] = f"{environ[variable]},{value}" if variable in environ else value
    return environ
