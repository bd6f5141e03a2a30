"""Health, readiness and metrics on an internal address, for the operator only."""

from __future__ import annotations

import ipaddress
import json
import logging
import shutil
import socket
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import compress
from pathlib import Path
from socketserver import ThreadingMixIn
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CONTENT_TYPE_LATEST, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from survey.errors import SettingsError, SurveyError
from survey.settings import Settings, host_and_port
from survey.store import UNREADABLE_DAY, Store, database_file
from survey.version import __version__

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MEGABYTE = 1_000_000
ANSWER_SECONDS = 2.0
STORE_SECONDS = 3.0
"""Longest wait for the database; one that takes longer is not ready for reports."""

LATE = f"no answer within {STORE_SECONDS:g} seconds"


@dataclass(frozen=True)
class Check:
    """The result of a check; `why` describes the problem or the state in fixed texts.

    A server is ready even if a check fails that is not `required`.
    """

    ok: bool
    why: str = ""
    required: bool = True


OK = Check(ok=True)


UNCHECKED = Check(ok=False, why="not checked, because another check fails", required=False)


def checks(store: Store, settings: Settings, own_url: str) -> Mapping[str, Check]:
    """Check everything that a server needs to accept reports, and the state of its releases."""
    results: dict[str, Check] = {}
    deadline = monotonic() + STORE_SECONDS
    thread = Thread(target=_check_store, args=[store, settings, results], daemon=True)
    thread.start()
    other_checks = {"disk": _disk(settings), "workers": _workers(own_url)}
    thread.join(max(deadline - monotonic(), 0.0))
    late = Check(ok=False, why=LATE)
    late_release = Check(ok=False, why=LATE, required=False)
    releases = {"releases": results.get("releases", late_release)}
    return {name: results.get(name, late) for name in STORE_CHECKS} | other_checks | releases


def _check_store(store: Store, settings: Settings, results: dict[str, Check]) -> None:
    """Check the database step by step; add each result as soon as it is known."""
    try:
        for name, check in STORE_CHECKS.items():
            results[name] = check(store)
        is_intact = all(check.ok for check in results.values())
        results["releases"] = _releases(store, settings) if is_intact else UNCHECKED
    finally:
        # The thread ends here, and with it the use of its connection.
        store.close_thread_connection()


def _try(check: Callable[[], None]) -> Check:
    try:
        check()
    except (SurveyError, OSError) as error:
        return Check(ok=False, why=type(error).__name__)
    return OK


def _migrated(store: Store) -> Check:
    try:
        pending = store.pending_migrations()
    except SurveyError as error:
        return Check(ok=False, why=type(error).__name__)
    return Check(ok=False, why="run: survey migrate") if pending else OK


STORE_CHECKS: Mapping[str, Callable[[Store], Check]] = {
    "migrated": _migrated,
    "writable": lambda store: _try(store.check_writable),
    "whole": lambda store: _try(store.check_complete),
}


MAX_NAMES = 10
"""Maximum number of failing surveys that readiness names; the metrics name all of them."""


def _releases(store: Store, settings: Settings) -> Check:
    """Return the age of the last release, and the names of failing surveys.

    The check ignores failing surveys, so that it detects a stopped keeper even if a survey fails,
    unless all surveys do.
    """
    try:
        state = ReleaseState.read(store)
    except SurveyError as error:
        return Check(ok=False, why=type(error).__name__, required=False)
    now = time.time()
    age = state.age(now)
    nothing = "no survey can be served" if state.failing else "no release yet"
    why = nothing if age is None else f"last release {age:.0f} seconds ago"
    waiting = sorted(name for name, since in state.unserved.items() if now > since)
    named = (
        *(("failing", state.failing), ("damaged rows", state.damaged)),
        ("the keeper has not served", waiting),
    )
    for label, names in named:
        if names:
            why += f"; {label}: {', '.join(sorted(names)[:MAX_NAMES])}"
    is_late = bool(waiting) or (age is not None and age > 2 * settings.release_every)
    return Check(ok=not is_late, why=why, required=False)


@dataclass(frozen=True)
class ReleaseState:
    """The state of the releases, which changes at release times only.

    n_released  number of released reports of all surveys
    time        latest release time for which the keeper has processed all surveys, except failing
                ones; 0 if none
    open_time   the same for open surveys
    failing     time since which a survey cannot be served, by its name
    damaged     number of damaged batches of a survey that were set aside, by its name
    unserved    time at which a survey without any release time is a day old, by its name
    """

    n_released: int
    time: int
    open_time: int
    failing: Mapping[str, int]
    damaged: Mapping[str, int]
    unserved: Mapping[str, float]

    @classmethod
    def read(cls, store: Store) -> ReleaseState:
        """Read the current state."""
        surveys = [survey for survey in store.surveys() if not survey.is_test_run]
        names = {survey.key: f"{survey.slug} version {survey.version}" for survey in surveys}
        times = store.release_times()
        # The keeper serves every survey at each release time, even without reports.
        failures, damaged = store.failures(), store.n_damaged()
        working = [survey for survey in surveys if survey.key not in failures]
        served = [times.get(survey.key, 0) for survey in working]
        is_open = [survey.state != "closed" for survey in working]
        return cls(
            sum(store.n_released(survey.key) for survey in surveys),
            min(filter(None, served), default=0),
            min(filter(None, compress(served, is_open)), default=0),
            {name: failures[key].since for key, name in names.items() if key in failures},
            {name: damaged[key] for key, name in names.items() if key in damaged},
            {
                names[survey.key]: _day_after(survey.changed)
                for survey in working
                if not times.get(survey.key) and survey.changed < UNREADABLE_DAY
            },
        )

    def age(self, now: float) -> float | None:
        """Return the seconds since the last release time, or None before the first one."""
        return max(0.0, now - self.time) if self.time else None


def _day_after(day: date) -> float:
    """Return when the UTC day after a day ends, in seconds since 1970.

    The database does not store the time of day of a publication. The keeper serves a new survey
    within seconds.
    """
    return datetime.combine(day, datetime.min.time(), UTC).timestamp() + 2 * 86_400


def free_megabytes(settings: Settings) -> int | None:
    """Return the free space on the database's disk, or None if the database is a server."""
    file = database_file(settings.database)
    return None if file is None else shutil.disk_usage(nearest_folder(file)).free // MEGABYTE


def nearest_folder(file: Path) -> Path:
    """Return the file's folder, or the nearest one above it that exists."""
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
    # Ignore the machine's proxy settings: this request must reach this server itself.
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
    """Return the address and port to listen on, which must not be reachable from outside.

    Resolves names, so that a container can listen on the address that its network gave it. Raises
    SettingsError for any address that is neither loopback nor private, and for "all addresses".
    """
    host, port = host_and_port(setting)
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
    except OSError:
        raise SettingsError(f"SURVEY_INTERNAL = {setting!r}: the name {host} is unknown") from None
    address = ipaddress.ip_address(str(resolved))
    # ::ffff:0.0.0.0 is an IPv6 address that also listens everywhere.
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_unspecified or not (address.is_loopback or address.is_private):
        raise SettingsError(
            f"SURVEY_INTERNAL = {setting!r}: metrics must not be public; use a loopback "
            "address, or the machine's own address in a private network"
        )
    return str(address), port


class Internal:
    """A WSGI application with three addresses: /healthz, /readyz and /metrics."""

    def __init__(
        self, checks: Checks, collectors: Iterable[Collector], close: Callable[[], None]
    ) -> None:
        self._checks, self._close = checks, close
        # Not the library's default registry: whatever another module counts stays private.
        self._registry = CollectorRegistry()
        for collector in collectors:
            self._registry.register(collector)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            status, kind, body = self._answer(environ)
        except Exception:
            # The library would print the error's text, with a path, outside the log.
            logger.exception("an internal request failed")
            status, kind, body = "500 Internal Server Error", "text/plain", b"see the log\n"
        finally:
            # Each request has its own thread, and so its own connection.
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
        checks = self._checks()
        ready = all(check.ok for check in checks.values() if check.required)
        texts = {name: check.why or "ok" for name, check in checks.items()}
        body = json.dumps({"ready": ready, **texts}, indent=2).encode() + b"\n"
        return "200 OK" if ready else "503 Service Unavailable", "application/json", body


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a connection that ended early; the library would print the client's address."""
        del request, client_address
        logger.info("an internal connection ended before its answer")


class _Unlogged(WSGIRequestHandler):
    """A request handler that logs nothing."""

    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
        """Log nothing."""


def serve_inside(application: Internal, address: tuple[str, int]) -> Callable[[], None]:
    """Serve on an address in threads; return a function that stops."""

    class Server(_Server):
        address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET

    try:
        server = make_server(*address, application, server_class=Server, handler_class=_Unlogged)
    except OSError as error:
        raise SettingsError(
            f"SURVEY_INTERNAL: {address[0]} port {address[1]} cannot be used: {error.strerror}"
        ) from None
    Thread(target=server.serve_forever, daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return stop


class Gauges(Collector):
    """Readiness, releases, version and page code, read at each request.

    No arriving report changes any of them. Counters of accepted or rejected reports, even in steps,
    would show an observer who sends some of them when others take part. Therefore no process counts
    the reports it receives.
    """

    def __init__(
        self,
        store: Store,
        client_sha256: str,
        checks: Callable[[], Mapping[str, Check]],
    ) -> None:
        self._store, self._client_sha256, self._checks = store, client_sha256, checks

    def describe(self) -> Iterable[Metric]:
        """Describe nothing: that would query the database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield all current values, except those that cannot be read."""
        yield InfoMetricFamily(
            "survey",
            "Version of the server, and hash of the client it serves (`survey_info`).",
            value={"version": __version__, "client_sha256": self._client_sha256},
        )
        ready = GaugeMetricFamily(
            "survey_ready",
            "Readiness to accept reports, by `check`: migrated, writable, whole, disk, workers; "
            "also releases, without which a server is ready.",
            labels=["check"],
        )
        checks = self._checks()
        for name, check in checks.items():
            ready.add_metric([name], float(check.ok))
        yield ready
        if not all(check.ok for name, check in checks.items() if name in STORE_CHECKS):
            return  # The database would make the caller wait again.
        try:
            state = ReleaseState.read(self._store)
        except SurveyError:
            return
        yield GaugeMetricFamily(
            "survey_reports_released", "Released reports of all existing surveys.", state.n_released
        )
        # Without closed surveys: after closing, no page and no figure may change before a release.
        yield GaugeMetricFamily(
            "survey_release_time_seconds",
            "Latest release time for which the keeper has processed all open surveys, 0 if there "
            "is none. Failing surveys are ignored. If the value is not 0 and is more than two "
            "periods old, the keeper is not working.",
            state.open_time,
        )
        failing = GaugeMetricFamily(
            "survey_release_failing_since_seconds",
            "Time since which a `survey` cannot be served by the keeper; absent if it can.",
            labels=["survey"],
        )
        for name, since in state.failing.items():
            failing.add_metric([name], since)
        yield failing
        damaged = GaugeMetricFamily(
            "survey_damaged_rows",
            "Damaged rows of pending reports of a `survey` that the keeper has set aside.",
            labels=["survey"],
        )
        for name, n in state.damaged.items():
            damaged.add_metric([name], n)
        yield damaged
