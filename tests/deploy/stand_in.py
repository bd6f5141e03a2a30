"""A server in the survey's place, that tells what arrives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple
from urllib.parse import unquote_plus

HOLE = b"<!doctype html><title>x</title><p>%s</p><form><input name=q><button>Go</button></form>"
"""A page that says back what was typed, as it is: whatever looks for holes must find this one."""


class Heard(NamedTuple):
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]


class StandIn(ThreadingHTTPServer):
    """Takes every request in whole and answers it with a body, or leaves before the answer."""

    daemon_threads = True

    def __init__(self, body: bytes, *, leaves: bool, says_back: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.leaves, self.says_back = body, leaves, says_back
        self.heard: list[Heard] = []


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.rfile.read(int(headers.get("content-length", 0)))
        self.server.heard.append(Heard(self.command, self.path, headers))
        self.close_connection = True
        if not self.server.leaves:
            body = self.server.body
            self.send_response(200)
            if self.server.says_back:
                body = HOLE % unquote_plus(self.path.rpartition("q=")[2]).encode()
                self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            # Whoever is sent away does not take it.
            with suppress(ConnectionError):
                self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def standing_in(
    body: bytes = b"", *, leaves: bool = False, says_back: bool = False
) -> Iterator[StandIn]:
    """While it stands there, on a port of its own."""
    server = StandIn(body, leaves=leaves, says_back=says_back)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
