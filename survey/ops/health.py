"""Health, readiness and metrics on an internal address, for the operator only."""

from __future__ import annotations

import ipaddress
import json
import logging
import shutil
import socket
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from socketserver import ThreadingMixIn
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from survey.addresses import host_and_port
from survey.errors import SettingsError, SurveyError
from survey.settings import Settings
from survey.store import Store, database_file

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


MEGABYTE = 1_000_000
ANSWER_SECONDS = 2.0
STORE_SECONDS = 3.0
"""A database that answers no sooner is none to take reports with; whoever asks waits no longer."""

LATE = f"no answer within {STORE_SECONDS:g} seconds"


@dataclass(frozen=True)
class Check:
    """One thing that must be so; `why` says in words of ours what is not."""

    ok: bool
    why: str = ""


OK = Check(ok=True)


def checks(store: Store, settings: Settings, own_url: str) -> Mapping[str, Check]:
    """Everything that a server needs to take reports, each looked at now."""
    found: dict[str, Check] = {}
    deadline = monotonic() + STORE_SECONDS
    asking = Thread(target=_ask, args=[store, found], daemon=True)
    asking.start()
    others = {"disk": _disk(settings), "workers": _workers(own_url)}
    asking.join(max(deadline - monotonic(), 0.0))
    late = Check(ok=False, why=LATE)
    return {name: found.get(name, late) for name in OF_STORE} | others


def _ask(store: Store, found: dict[str, Check]) -> None:
    """Ask the database one thing after the other; what is told is told at once."""
    try:
        for name, look in OF_STORE.items():
            found[name] = look(store)
    finally:
        # What this thread alone opened goes with it.
        store.close_thread_connection()


def _tried(look: Callable[[], None]) -> Check:
    try:
        look()
    except (SurveyError, OSError) as error:
        return Check(ok=False, why=type(error).__name__)
    return OK


def _migrated(store: Store) -> Check:
    try:
        pending = store.pending_migrations()
    except SurveyError as error:
        return Check(ok=False, why=type(error).__name__)
    return Check(ok=False, why="run: survey migrate") if pending else OK


OF_STORE: Mapping[str, Callable[[Store], Check]] = {
    "migrated": _migrated,
    "writable": lambda store: _tried(store.check_writable),
    "whole": lambda store: _tried(store.check_complete),
}


def free_megabytes(settings: Settings) -> int | None:
    """Free space where the database's file is; None where it is another server's disk."""
    file = database_file(settings.database)
    return None if file is None else shutil.disk_usage(_there(file)).free // MEGABYTE


def _there(file: Path) -> Path:
    """The file's folder, or the nearest one above it that is there."""
    return next(folder for folder in file.absolute().parents if folder.exists())


def _disk(settings: Settings) -> Check:
    try:
        free = free_megabytes(settings)
    except OSError as error:
        return Check(ok=False, why=type(error).__name__)
    if free is None or free >= settings.disk_minimum:
        return OK
    return Check(ok=False, why=f"less than {settings.disk_minimum} MB free")


def _workers(own_url: str) -> Check:
    # Without a proxy: a setting of the machine's must not lead a request to ourselves elsewhere.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{own_url}/healthz", timeout=ANSWER_SECONDS):
            return OK
    except OSError:
        return Check(ok=False, why="no worker answers")


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
