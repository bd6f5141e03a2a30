"""A server in the survey's place, that tells what arrives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple


class Heard(NamedTuple):
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]


class StandIn(ThreadingHTTPServer):
    """Takes every request in whole and answers it with a body, or leaves before the answer."""

    daemon_threads = True

    def __init__(self, body: bytes, *, leaves: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.leaves = body, leaves
        self.heard: list[Heard] = []


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.rfile.read(int(headers.get("content-length", 0)))
        self.server.heard.append(Heard(self.command, self.path, headers))
        self.close_connection = True
        if not self.server.leaves:
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.server.body)))
            self.end_headers()
            # Whoever is sent away does not take it.
            with suppress(ConnectionError):
                self.wfile.write(self.server.body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def standing_in(body: bytes = b"", *, leaves: bool = False) -> Iterator[StandIn]:
    """While it stands there, on a port of its own."""
    server = StandIn(body, leaves=leaves)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
