"""The production server (granian) around the application, with the release loop beside it.

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
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
from prometheus_client.multiprocess import MultiProcessCollector

from survey.app import create_app
from survey.collect.release import ReleaseLoop
from survey.errors import SurveyError
from survey.ops.health import Internal, checks, internal_address, serve_inside
from survey.ops.logs import catch_all, configuration
from survey.ops.metrics import Gauges
from survey.ops.safety import SetUp, refuse_unsafe
from survey.respond.client import Client
from survey.settings import Settings
from survey.store import Store, open_store

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


import subprocess

THREADS = 64
"""Requests that a worker answers at once: so many reports can share a commit."""

CONNECTIONS = 1024
"""Connections of a worker; more wait unaccepted, so that the accepted are answered in time."""

IDLE_SECONDS = 15
"""How long a connection may keep its place without a request."""

STOP_SECONDS = 30
"""How long a worker may take to answer what it has taken; then it is killed."""

STARTUP_SECONDS = 30.0

MEMORY = Path("/dev/shm")  # noqa: S108  what is made in it is the owner's alone

MOST_USUAL_WORKERS = 4

logger = logging.getLogger(__name__)


def serve(
    settings: Settings,
    address: str,
    port: int,
    workers: int,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until interrupted; the workers read their settings from the environment.

    Releases run in this parent process alone, so that there is one loop however many workers.
    """
    check_port(address, port)
    refuse_unsafe(SetUp(settings, os.environ, address))
    store = open_store(settings.database)
    store.check_complete()
    store.close_connections()
    server = _server(address, port, workers)
    # These threads wait for a commit most of the time; they do not compete for the cores.
    granian_logger.addFilter(lambda record: "Python threads" not in record.getMessage())
    granian_logger.addFilter(lambda record: _is_killed(server, record.getMessage()))
    server.signal_handler_reload = Renewal(server, address)  # type: ignore[method-assign]
    stop = threading.Event()
    releases = threading.Thread(target=ReleaseLoop(store, settings).run, args=[stop])
    ready = threading.Thread(target=_when_ready, args=[address, port, on_ready], daemon=True)
    server.on_startup(releases.start)
    server.on_startup(ready.start)
    try:
        catch_all()
        hear_signals()
        with _figures() as directory, _inside(settings, store, address, port, directory):
            server.serve()
    finally:
        stop.set()
        if releases.ident is not None:
            releases.join()


@contextmanager
def _figures() -> Iterator[str]:
    """A directory in which the workers add up what they count; it goes with the server.

    In memory, where there is such a place: its files are mapped, and a process that writes into
    one for which a full disk has no room is killed at once.
    """
    memory = str(MEMORY) if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="survey-figures-", dir=memory) as directory:
        # Read by the workers, which inherit it.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        yield directory


@contextmanager
def _inside(
    settings: Settings, store: Store, address: str, port: int, directory: str
) -> Iterator[None]:
    """While it serves, the addresses inside answer too, if there are any."""
    if not settings.internal:
        yield
        return
    look = partial(checks, store, settings, _local_url(address, port))
    gauges = Gauges(store, settings, Client.load().sha256, look)
    counted = MultiProcessCollector(None, directory)  # type: ignore[no-untyped-call]
    application = Internal(look, [gauges, counted], store.close_thread_connection)
    stop = serve_inside(application, internal_address(settings.internal))
    try:
        yield
    finally:
        stop()


def usual_workers() -> int:
    """A process for each core that this one may use; the disk takes no more than a few in turn."""
    # Not every system can tell which cores are ours.
    mine = (
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )
    return min(len(mine), MOST_USUAL_WORKERS)


def _server(address: str, port: int, workers: int) -> AbstractServer[Any]:
    # A forked worker would inherit the release loop's connection in an unknown state.
    multiprocessing.set_start_method("spawn", force=True)
    return Granian(
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


def _is_killed(server: AbstractServer[Any], message: str) -> bool:
    """Whether a worker said to be killed is there at all; true of every other message.

    Two threads of the server wait for each worker's end. The one that comes second is told of no
    end, until the first has written it down a moment later, and takes the worker for alive.
    """
    if not (said := re.match(r"Killing (old )?worker-(\d+) ", message)):
        return True
    time.sleep(0.1)
    if said[1]:  # It is none of the server's any more.
        return len(multiprocessing.active_children()) > len(server.wrks)
    return bool(server.wrks[int(said[2]) - 1].is_alive())


def worker() -> Flask:
    """The application in a worker process, which ends when the server that started it is gone."""
    catch_all()
    end_with_parent()
    try:
        app = create_app()
    except Exception:
        logger.critical("a worker cannot start; see: survey config check", exc_info=True)
        sys.exit(1)
    app.wsgi_app = parting(app.wsgi_app)  # type: ignore[assignment, method-assign]
    return app


def check_port(address: str, port: int) -> None:
    """Refuse a port that somebody else listens on, before anything else is done."""
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
    """Call back once the server answers."""
    # Without a proxy: a setting of the machine's must not lead a request to ourselves elsewhere.
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
    """The address under which this machine reaches what listens on `address`."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, never bound
    host = everywhere.get(address, address)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


STOPPING = {signal.SIGTERM, signal.SIGINT}

NUDGE = signal.SIGURG
"""A signal that means nothing to us, and is ignored where nobody listens to it."""


def hear_signals(heard: Callable[[int], None] = lambda _: None) -> None:
    """Let the main thread run its handlers at once, whichever thread takes a signal.

    The system may hand a signal to any thread, but Python runs its handlers in the main thread
    alone, and while that waits for a lock only a signal of its own wakes it: on a busy machine
    10 of 129 servers that were stopped went on until they were killed. So a thread is told of
    every signal and wakes the main thread. `heard` is called with its number, in that thread.

    To be called by the main thread; handlers may be set before and later.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.signal(NUDGE, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=[read, heard], daemon=True).start()


def _listen(read: int, heard: Callable[[int], None]) -> None:
    waiting = threading.main_thread().ident
    while numbers := os.read(read, 16):
        # What wakes the main thread is told here too.
        for number in set(numbers) - {NUDGE}:
            heard(number)
            if waiting is not None:
                signal.pthread_kill(waiting, NUDGE)


def parting(app: WSGIApplication) -> WSGIApplication:
    """The application of a worker: once told to stop, its next answer on a connection is the last.

    The server asks its connections to end, but one that is never idle may miss that on a busy
    machine, and would hold the worker until it is killed.
    """
    stops = threading.Event()
    # The server's own handlers come later and replace any other.
    hear_signals(lambda number: stops.set() if number in STOPPING else None)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            last = [("Connection", "close")] if stops.is_set() else []
            return start_response(status, [*headers, *last], *rest)

        return app(environ, start)

    return answer


def end_with_parent() -> None:
    """End this worker when the server that started it is gone.

    Orphaned workers would hold the port and take reports that nobody releases.
    """
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
        atexit.register(_end_now)


def _end_now() -> None:
    """End without taking the interpreter apart, once all that was taken is answered.

    The server's threads outlive it, and the first that looks for it then aborts the process.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with(parent: BaseProcess) -> None:
    # At once when it is gone, be it before this line: what is acknowledged is on the disk, what
    # is not will be sent again.
    parent.join()
    os._exit(1)


TRIAL = "from survey.server import check_start; check_start({address!r})"


class Renewal:
    """What SIGHUP does: new workers take the place of old ones, if they would start at all.

    Whether they would is tried in a process of its own, with the files as they are now. If not,
    the old ones go on: renewed, they would be gone, and with the last of them the server.
    """

    def __init__(self, server: AbstractServer[Any], address: str) -> None:
        self._renew: Callable[[], None] = server.signal_handler_reload
        # -P: nothing that lies in the folder it was started in is taken for a module.
        self._command = [sys.executable, "-P", "-c", TRIAL.format(address=address)]
        self._alone = threading.Lock()

    def __call__(self, *_: object) -> None:
        threading.Thread(target=self._try, daemon=True).start()

    def _try(self) -> None:
        with self._alone:
            # Words of ours alone, and quoted.
            tried = subprocess.run(  # noqa: S603
                self._command, stdin=subprocess.DEVNULL, capture_output=True
            )
        if tried.returncode:
            logger.error("not renewed: new workers would not start; see: survey config check")
        else:
            self._renew()


def check_start(address: str) -> None:
    """Do all that a server does before it serves, with the settings and the code of now."""
    settings = Settings.from_environment(os.environ)
    refuse_unsafe(SetUp(settings, os.environ, address))
    create_app(settings)
