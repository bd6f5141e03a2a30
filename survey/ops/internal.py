"""The addresses inside: health, readiness and figures, for whoever runs the server alone."""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from survey.addresses import host_and_port
from survey.errors import SettingsError
from survey.ops.readiness import Check

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Checks = Callable[[], Mapping[str, Check]]

logger = logging.getLogger(__name__)

SECURITY = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store")]


def internal_address(setting: str) -> tuple[str, int]:
    """Where to listen: an address of this machine that is not reached from outside.

    A name is looked up, so that a container may listen on the address its network gave it. Raises
    SettingsError for every address, and for any other than a loopback or private one.
    """
    host, port = host_and_port(setting)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
    except OSError:
        raise SettingsError(f"SURVEY_INTERNAL = {setting!r}: {host} is no known name") from None
    address = ipaddress.ip_address(str(found))
    # ::ffff:0.0.0.0 is an address of version 6 that listens everywhere, too.
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_unspecified or not (address.is_loopback or address.is_private):
        raise SettingsError(
            f"SURVEY_INTERNAL = {setting!r}: figures are for the inside alone; take a loopback "
            "address, or the machine's own in a private network"
        )
    return str(address), port


class Internal:
    """A WSGI application of three addresses: /healthz, /readyz, /metrics."""

    def __init__(
        self, checks: Checks, collectors: Iterable[Collector], close: Callable[[], None]
    ) -> None:
        self._checks, self._close = checks, close
        self._registry = CollectorRegistry()
        for collector in collectors:
            self._registry.register(collector)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            status, kind, body = self._answer(environ)
        except Exception:
            # The library would print its text, and a path with it, beside the lines.
            logger.exception("a question inside was not answered")
            status, kind, body = "500 Internal Server Error", "text/plain", b"see the log\n"
        finally:
            # Every request has a thread of its own; what it alone opened goes with it.
            self._close()
        start_response(status, [("Content-Type", kind), *SECURITY])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: WSGIEnvironment) -> tuple[str, str, bytes]:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "text/plain", b"only GET\n"
        match environ["PATH_INFO"]:
            case "/healthz":
                return "200 OK", "text/plain", b"ok\n"
            case "/readyz":
                return self._readiness()
            case "/metrics":
                return "200 OK", CONTENT_TYPE_LATEST, generate_latest(self._registry)
        return "404 Not Found", "text/plain", b"/healthz, /readyz or /metrics\n"

    def _readiness(self) -> tuple[str, str, bytes]:
        found = self._checks()
        ready = all(check.ok for check in found.values())
        told = {name: "ok" if check.ok else check.why for name, check in found.items()}
        body = json.dumps({"ready": ready, **told}, indent=2).encode() + b"\n"
        return "200 OK" if ready else "503 Service Unavailable", "application/json", body


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked has gone, or never said what; the library would print from where."""
        del request, client_address
        logger.info("a connection inside ended before its answer")


class _ServerOfSix(_Server):
    address_family = socket.AF_INET6


class _Unlogged(WSGIRequestHandler):
    """Tells nobody of a request."""

    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
        """Say nothing."""


def serve_inside(application: Internal, address: tuple[str, int]) -> Callable[[], None]:
    """Answer on this address in threads of their own; returns what ends it."""
    kind = _ServerOfSix if ":" in address[0] else _Server
    try:
        server = make_server(*address, application, server_class=kind, handler_class=_Unlogged)
    except OSError as error:
        raise SettingsError(
            f"SURVEY_INTERNAL: {address[0]} port {address[1]} cannot be used: {error.strerror}"
        ) from None
    Thread(target=server.serve_forever, daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return stop
