"""The relay with which workers pass researchers' requests on to the process that answers them.

`survey/research_process.py` describes that process and the messages.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Self

from survey.errors import ResearchBusyError
from survey.research import MAX_UPLOAD_BYTES
from survey.respond.reception import REFUSAL

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PATHS = ("/research", "/api/", "/handbook")
"""Path prefixes of researchers' pages, the API and the handbook."""

VARIABLES = (
    *("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE"),
    *("CONTENT_LENGTH", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "REMOTE_ADDR"),
    "wsgi.url_scheme",
)
"""Variables of a request that are passed on, besides its headers."""

MAX_RELAYED = 32
"""Maximum number of requests that a worker relays at the same time; it rejects others with 503."""

ACCEPT_SECONDS = 60.0
"""Longest wait until the process accepts a request; it takes seconds to start."""

UNAVAILABLE = "researchers’ pages are not available at the moment; try again in a few seconds"


def is_relayed(environ: WSGIEnvironment) -> bool:
    """Return whether a worker passes a request on."""
    path: str = environ["PATH_INFO"]
    return path.startswith(PATHS)


class Relay:
    """WSGI middleware of a worker that passes researchers' requests on; `app` answers all others.

    `app` also answers requests that cannot be passed on, with status 503.
    """

    def __init__(self, app: WSGIApplication, path: str) -> None:
        self._app, self._path = app, path
        self._slots = threading.Semaphore(MAX_RELAYED)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        if not is_relayed(environ):
            return self._app(environ, start_response)
        if self._slots.acquire(blocking=False):
            try:
                response = _Response.request(self._path, environ, self._slots.release)
            except (OSError, EOFError):
                self._slots.release()
            else:
                start_response(response.status, response.headers)
                return response
        environ[REFUSAL] = ResearchBusyError(UNAVAILABLE)
        return self._app(environ, start_response)


class _Response:
    """The response of the process to one request; iterates over the parts of its body."""

    def __init__(
        self, connection: Connection, release: Callable[[], None], status: str, headers: Any
    ) -> None:
        self._connection: Connection | None = connection
        self._release = release
        self.status = status
        self.headers: list[tuple[str, str]] = [(name, value) for name, value in headers]

    @classmethod
    def request(cls, path: str, environ: WSGIEnvironment, release: Callable[[], None]) -> Self:
        """Send a request and wait for the beginning of its response.

        Closing the response calls `release`. Raises OSError or EOFError if no response begins.
        """
        variables = {
            name: value
            for name, value in environ.items()
            if name in VARIABLES or name.startswith("HTTP_")
        }
        body = _body(environ)
        with ExitStack() as stack:
            client = stack.enter_context(closing(socket.socket(socket.AF_UNIX)))
            client.settimeout(ACCEPT_SECONDS)
            client.connect(path)
            client.settimeout(None)
            connection = stack.enter_context(Connection(client.detach()))
            if not connection.poll(ACCEPT_SECONDS):
                raise TimeoutError
            connection.recv_bytes()
            connection.send_bytes(json.dumps(variables).encode())
            connection.send_bytes(body)
            status, headers = json.loads(connection.recv_bytes())
            stack.pop_all()
        return cls(connection, release, status, headers)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        part = self._connection.recv_bytes() if self._connection else b""
        if not part:
            self.close()
            raise StopIteration
        return part

    def close(self) -> None:
        """Close the connection; the process then stops sending."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._release()

    def __del__(self) -> None:
        # A server might not close a response after its client has disconnected. The connection is
        # closed when it is deleted.
        if self._connection is not None:
            self._connection = None
            self._release()


def _body(environ: WSGIEnvironment) -> bytes:
    """Return the body of a request; if it is too large, at most one byte more than allowed."""
    length: str = environ.get("CONTENT_LENGTH", "")
    if not length and "HTTP_TRANSFER_ENCODING" not in environ:
        return b""
    if length and not (length.isdecimal() and int(length) <= MAX_UPLOAD_BYTES):
        return b""
    body: bytes = environ["wsgi.input"].read(int(length or MAX_UPLOAD_BYTES + 1))
    return body
