"""The production server (granian) around the application, with the keeper beside it.

On SIGTERM it accepts no more connections, commits and answers the requests it has accepted, and
ends. On SIGHUP it replaces its workers, if new ones can start.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Flask
from granian import Granian
from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.log import logger as granian_logger
from granian.server.common import AbstractServer

from survey.app import create_app
from survey.collect.release import Keeper
from survey.errors import SurveyError
from survey.ops.config_check import Deployment, refuse_unsafe
from survey.ops.health import Gauges, Internal, checks, internal_address, serve_inside
from survey.ops.logs import catch_all, configuration
from survey.ops.metrics import ErrorTime, Operation, WorkerExits
from survey.research.two_factor import SecondFactors
from survey.research_process import SOCKET_VARIABLE, Relay, ResearchProcess
from survey.respond.client import Client
from survey.settings import Settings
from survey.store import PrivateKeys, Store, open_store

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


THREADS = 64
"""Requests that a worker handles at the same time, whose reports can share a commit."""

CONNECTIONS = 1024
"""Connections that a worker accepts; others wait, so that accepted ones are served in time."""

IDLE_SECONDS = 15
"""How long a connection may stay open without a request."""

STOP_SECONDS = 30
"""How long a worker may take to answer the requests it has accepted; then it is killed."""

STARTUP_SECONDS = 30.0

MAX_DEFAULT_WORKERS = 4

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}

WAKE_UP = signal.SIGURG
"""A signal without a meaning here; it is ignored where no handler is set."""

START_CHECK = (
    "from survey.server import check_start; check_start({address!r}, has_keeper={has_keeper!r})"
)

logger = logging.getLogger(__name__)


def serve(
    settings: Settings,
    address: str,
    port: int,
    workers: int,
    on_ready: Callable[[], None] = lambda: None,
    *,
    has_keeper: bool = True,
) -> None:
    """Serve until interrupted; the workers read their settings from the environment.

    With a keeper, this parent process holds the private keys and releases reports, whatever the
    number of workers. Without one, `survey keeper` does that, best as another user.
    """
    check_port(address, port)
    refuse_unsafe(Deployment(settings, os.environ, address, has_keeper))
    store = open_store(settings.database)
    with store.use():
        store.check_complete()
        # Earlier versions stored them readable; only the server knows the key.
        SecondFactors(store, settings.secret).encrypt_all()
        _serve(settings, store, address, port, workers, on_ready, has_keeper=has_keeper)


def _serve(
    settings: Settings,
    store: Store,
    address: str,
    port: int,
    workers: int,
    on_ready: Callable[[], None],
    *,
    has_keeper: bool,
) -> None:
    """Run workers, the keeper and the internal addresses on a database that is in use."""
    server = _server(address, port, workers)
    # Granian warns about many threads. These mostly wait for commits and hardly use the cores.
    granian_logger.addFilter(lambda record: "Python threads" not in record.getMessage())
    granian_logger.addFilter(lambda record: _is_killed(server, record.getMessage()))
    errors, exits = ErrorTime(), WorkerExits()
    granian_logger.addFilter(exits)
    research = ResearchProcess()
    os.environ[SOCKET_VARIABLE] = research.path
    server.signal_handler_reload = Renewal(  # type: ignore[method-assign]
        server, research, address, has_keeper=has_keeper
    )
    server.on_startup(threading.Thread(target=research.run, daemon=True).start)
    stop = threading.Event()
    keeper = Keeper(store, PrivateKeys(Path(settings.keys)), settings.release_every)
    releases = threading.Thread(target=keeper.run, args=[stop])
    ready = threading.Thread(target=_when_ready, args=[address, port, on_ready], daemon=True)
    if has_keeper:
        server.on_startup(releases.start)
    server.on_startup(ready.start)
    try:
        catch_all()
        operation = Operation(settings, errors, exits)
        with _internal_server(settings, store, operation, _local_url(address, port)):
            server.serve(target_loader=partial(worker, errors), wrap_loader=False)
    finally:
        research.stop()
        stop.set()
        if releases.ident is not None:
            releases.join()


@contextmanager
def _internal_server(
    settings: Settings, store: Store, operation: Operation, own_url: str
) -> Iterator[None]:
    """Serve health, readiness and metrics on the internal address, if there is one."""
    if not settings.internal:
        yield
        return
    run_checks = partial(checks, store, settings, own_url)
    collectors = (Gauges(store, Client.load().sha256, run_checks), operation)
    application = Internal(run_checks, collectors, store.close_thread_connection)
    stop = serve_inside(application, internal_address(settings.internal))
    try:
        yield
    finally:
        stop()


def default_workers() -> int:
    """Return one worker per usable core, up to a few: all of them share the disk."""
    # Not every system reports which cores a process may use.
    has_affinity = hasattr(os, "sched_getaffinity")
    n_cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(n_cores, MAX_DEFAULT_WORKERS)


def _server(address: str, port: int, workers: int) -> AbstractServer[Any]:
    # A forked worker would inherit the keeper's connections in an unknown state.
    multiprocessing.set_start_method("spawn", force=True)
    server = Granian(
        "survey.server:worker",
        factory=True,
        interface=Interfaces.WSGI,
        address=address,
        port=port,
        workers=workers,
        blocking_threads=THREADS,
        backlog=CONNECTIONS,
        backpressure=CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=1000 * IDLE_SECONDS),
        workers_kill_timeout=STOP_SECONDS,
        respawn_failed_workers=True,
        websockets=False,
        log_access=False,
        log_dictconfig=configuration(),
        log_level=LogLevels.warning,
    )
    server.main_loop_interrupt = MainLoopEvent(server)  # type: ignore[assignment]
    return server


def _is_killed(server: AbstractServer[Any], message: str) -> bool:
    """Return whether to log a message: false for the killing of a worker that has ended.

    Two threads of granian wait for the end of each worker. The second one does not see the end
    until the first has recorded it a moment later, and reports the worker as alive.
    """
    if not (match := re.match(r"Killing (old )?worker-(\d+) ", message)):
        return True
    time.sleep(0.1)
    if match[1]:  # An old worker is no longer in the server's list.
        return len(multiprocessing.active_children()) > len(server.wrks)
    return bool(server.wrks[int(match[2]) - 1].is_alive())


def worker(errors: ErrorTime) -> Flask:
    """Return the application of a worker process, which ends when its server is gone."""
    catch_all()
    end_with_parent()
    try:
        settings = Settings.from_environment(os.environ)
        store = open_store(settings.database)
        use = ExitStack()
        use.enter_context(store.use())
        app = create_app(settings, store)
    except Exception:
        logger.critical("a worker cannot start; see: survey config check", exc_info=True)
        sys.exit(1)
    # Kept for as long as the process lives.
    app.extensions["use"] = use
    app.wsgi_app = Relay(app.wsgi_app, os.environ[SOCKET_VARIABLE])  # type: ignore[method-assign]
    app.wsgi_app = close_after_stop(errors.watch(app.wsgi_app))  # type: ignore[assignment, method-assign]
    return app


def check_port(address: str, port: int) -> None:
    """Raise SurveyError if another program listens on a port."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise SurveyError(
                f"port {port} on {address} cannot be used: {error.strerror}; "
                "choose another with --port"
            ) from None


def _when_ready(address: str, port: int, on_ready: Callable[[], None]) -> None:
    """Call `on_ready` once the server answers."""
    # Ignore the machine's proxy settings: this request must reach this server itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(int(STARTUP_SECONDS / 0.1)):
        try:
            with opener.open(f"{_local_url(address, port)}/healthz", timeout=1):
                break
        except OSError:
            time.sleep(0.1)
    else:
        logger.error("the server does not answer after %d seconds", STARTUP_SECONDS)
        return
    on_ready()


def _local_url(address: str, port: int) -> str:
    """Return the URL with which this machine reaches a server that listens on `address`."""
    loopbacks = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, never bound
    host = loopbacks.get(address, address)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def forward_signals(on_signal: Callable[[int], None]) -> None:
    """Make a worker's main thread run its signal handlers at once, whichever thread gets a signal.

    The system may deliver a signal to any thread, but Python runs handlers only in the main
    thread. While that thread waits for a lock, only a signal sent to it wakes it: on a busy
    machine, 10 of 129 servers did not stop until killed. A separate thread therefore receives each
    signal, calls `on_signal` with its number, and wakes the main thread.

    Call this in the main thread, before or after handlers are set.
    """
    source, target = os.pipe()
    os.set_blocking(target, False)
    signal.signal(WAKE_UP, lambda *_: None)
    signal.set_wakeup_fd(target, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=[source, on_signal], daemon=True).start()


def _listen(pipe: int, on_signal: Callable[[int], None]) -> None:
    main_thread = threading.main_thread().ident
    while numbers := os.read(pipe, 16):
        # The signal that wakes the main thread arrives here too.
        for number in set(numbers) - {WAKE_UP}:
            on_signal(number)
            if main_thread is not None:
                signal.pthread_kill(main_thread, WAKE_UP)


def close_after_stop(app: WSGIApplication) -> WSGIApplication:
    """Return an application that closes each connection after an answer, once it must stop.

    The server asks its connections to end. On a busy machine a connection that is never idle may
    miss that, and would keep the worker running until it is killed.
    """
    stops = threading.Event()
    # A signal handler would not do: the server sets its own later.
    forward_signals(lambda number: stops.set() if number in STOP_SIGNALS else None)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            extra = [("Connection", "close")] if stops.is_set() else []
            return start_response(status, [*headers, *extra], *error)

        return app(environ, start)

    return answer


def end_with_parent() -> None:
    """End this worker when its server is gone.

    Orphaned workers would occupy the port and accept reports that no process releases.
    """
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
        atexit.register(_end_now)


def _end_now() -> None:
    """End without shutting the interpreter down, after all accepted requests were answered.

    The threads of granian outlive the interpreter, and abort the process when they call it.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with(parent: BaseProcess) -> None:
    # End at once: acknowledged reports are on the disk, and devices send the others again.
    parent.join()
    os._exit(1)


class MainLoopEvent:
    """The event that wakes granian's main loop; signal handlers can set it at any moment.

    With a `threading.Event`, a signal to stop could be lost or hang the server while it replaced
    its workers. Granian clears the event after checking for the signal, so it lost a signal that
    came in between. A handler that interrupted a method of the event waited forever for its lock.

    Create the event in the main thread: it also wakes that thread if another one gets a signal.
    """

    def __init__(self, server: AbstractServer[Any]) -> None:
        self._server = server
        self._is_set = False
        self._source, self._target = os.pipe()
        os.set_blocking(self._target, False)
        signal.set_wakeup_fd(self._target, warn_on_full_buffer=False)

    def set(self) -> None:
        """Set the event."""
        self._is_set = True
        # A full pipe wakes the main thread too.
        with suppress(BlockingIOError):
            os.write(self._target, b"\0")

    def clear(self) -> None:
        """Clear the event, unless the server must stop."""
        self._is_set = False
        if self._server.interrupt_signal:
            self._is_set = True

    def wait(self) -> None:
        """Wait until the event is set; run the handlers of signals meanwhile."""
        while not self._is_set:
            os.read(self._source, 1024)


class Renewal:
    """The handler of SIGHUP: it replaces all processes by new ones, if new ones can start.

    A separate process checks that with the current files. If it fails, the old workers stay:
    replaced by workers that end at once, they would take the server with them.
    """

    def __init__(
        self,
        server: AbstractServer[Any],
        research: ResearchProcess,
        address: str,
        *,
        has_keeper: bool,
    ) -> None:
        self._renew_workers: Callable[[], None] = server.signal_handler_reload
        self._renew_research = research.renew
        check = START_CHECK.format(address=address, has_keeper=has_keeper)
        # -P: import nothing from the current folder.
        self._command = [sys.executable, "-P", "-c", check]
        self._lock = threading.Lock()

    def __call__(self, *_: object) -> None:
        # This cannot wait for a lock that the interrupted code has: since Python 3.10, the only one
        # that starting a thread shares with other code is reentrant.
        threading.Thread(target=self._renew_if_possible, daemon=True).start()

    def _renew_if_possible(self) -> None:
        with self._lock:
            # The command consists of constants and a quoted address.
            check = subprocess.run(  # noqa: S603
                self._command, stdin=subprocess.DEVNULL, capture_output=True
            )
        if check.returncode:
            logger.error(
                "workers are not replaced: new ones would not start; see: survey config check"
            )
        else:
            self._renew_workers()
            self._renew_research()


def check_start(address: str, *, has_keeper: bool) -> None:
    """Run all steps of a start except serving, with the current settings and code."""
    settings = Settings.from_environment(os.environ)
    refuse_unsafe(Deployment(settings, os.environ, address, has_keeper))
    create_app(settings)
