"""A stub that replaces the survey server behind nginx and records the requests it receives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple
from urllib.parse import unquote_plus

VULNERABLE_PAGE = (
    b"<!doctype html><title>x</title><p>%s</p><form><input name=q><button>Go</button></form>"
)
"""A page that echoes its input unescaped, which every vulnerability scanner must detect."""


class ReceivedRequest(NamedTuple):
    """A request that reached the stub."""

    method: str
    path: str
    headers: dict[str, str]


class StubServer(ThreadingHTTPServer):
    """Read every request completely, then respond with `body` or, if `drops`, close instead."""

    daemon_threads = True

    def __init__(self, body: bytes, *, drops: bool, echoes: bool, address: tuple[str, int]) -> None:
        super().__init__(address, _Handler)
        self.body, self.drops, self.echoes = body, drops, echoes
        self.requests: list[ReceivedRequest] = []


class _Handler(BaseHTTPRequestHandler):
    server: StubServer

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.rfile.read(int(headers.get("content-length", 0)))
        self.server.requests.append(ReceivedRequest(self.command, self.path, headers))
        self.close_connection = True
        if not self.server.drops:
            body = self.server.body
            self.send_response(200)
            if self.server.echoes:
                body = VULNERABLE_PAGE % unquote_plus(self.path.rpartition("q=")[2]).encode()
                self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            # nginx may already have closed the connection.
            with suppress(ConnectionError):
                self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def stub_server(
    body: bytes = b"",
    *,
    drops: bool = False,
    echoes: bool = False,
    address: tuple[str, int] = ("127.0.0.1", 0),
) -> Iterator[StubServer]:
    """Run a stub for the duration of the context, by default on its own port."""
    server = StubServer(body, drops=drops, echoes=echoes, address=address)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
