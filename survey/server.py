"""The production server: generations of workers, with the keeper beside them.

On SIGTERM, the server accepts no more connections, commits and answers the requests it has
accepted, and ends. On SIGHUP, it replaces its workers without losing a request, if new workers can
start. These have the environment of the server, and so its settings, but load the installed code
again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from logging.config import dictConfig
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from survey.collect.release import Keeper
from survey.errors import SurveyError
from survey.ops.config_check import Deployment, refuse_unsafe
from survey.ops.health import Gauges, Internal, checks, internal_address, serve_inside
from survey.ops.logs import catch_all, configuration
from survey.ops.metrics import ErrorTime, Operation, WorkerExits
from survey.research_process import SOCKET_VARIABLE, ResearchProcess
from survey.settings import Settings
from survey.store import PrivateKeys, Store, open_store
from survey.worker_resources import (
    DRAIN,
    MAX_CONNECTIONS,
    STOP_SIGNALS,
    WorkerResources,
    forward_signals,
)

START_SECONDS = 30.0

RESTART_SECONDS = 1.0
"""Pause before the keeper is started again after an error."""

STOP_SECONDS = 40.0
"""How long workers may take to stop; it exceeds the time after which a generation kills them."""

MAX_DEFAULT_WORKERS = 4

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
    number of workers. Without one, run `survey keeper`, preferably as another user.
    """
    check_port(address, port)
    refuse_unsafe(Deployment(settings, os.environ, address, has_keeper))
    store = open_store(settings.database)
    with store.use():
        store.check_complete()
        dictConfig(configuration())
        catch_all()
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
    errors, exits = ErrorTime(), WorkerExits()
    with ExitStack() as stack:
        listeners = tuple(
            stack.enter_context(_listener(address, port)) for _ in range(_n_queues(workers))
        )
        ends = Counter(research=0)
        research = ResearchProcess(ends)
        stack.callback(research.stop)
        os.environ[SOCKET_VARIABLE] = research.path
        threading.Thread(target=research.run, daemon=True).start()
        resources = WorkerResources(listeners, workers, address, has_keeper, errors, exits)
        generations = Generations(resources, on_ready, research.renew)
        if has_keeper:
            keeper = Keeper(store, PrivateKeys(Path(settings.keys)), settings.release_every)
            ends["keeper"] = 0
            stack.enter_context(_in_thread(partial(run_again, keeper.run, ends)))
        operation = Operation(settings, errors, exits, ends)
        own_url = _local_url(address, port)
        stack.enter_context(_internal_server(settings, store, operation, own_url))
        generations.run()


@contextmanager
def _in_thread(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a function in a thread until the context ends, which sets its event."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_again(
    run: Callable[[threading.Event], None], ends: Counter[str], stop: threading.Event
) -> None:
    """Run the keeper until `stop` is set; count errors in `ends["keeper"]`, and start it again."""
    while not stop.is_set():
        try:
            run(stop)
        except Exception:
            ends["keeper"] += 1
            logger.exception("the keeper ended unexpectedly; restarting it")
            stop.wait(RESTART_SECONDS)


@contextmanager
def _internal_server(
    settings: Settings, store: Store, operation: Operation, own_url: str
) -> Iterator[None]:
    """Serve health, readiness and metrics on the internal address, if there is one."""
    if not settings.internal:
        yield
        return
    from survey.respond.client import Client

    run_checks = partial(checks, store, settings, own_url)
    collectors = (Gauges(store, Client.load().sha256, run_checks), operation)
    application = Internal(run_checks, collectors, store.close_thread_connection)
    stop = serve_inside(application, internal_address(settings.internal))
    try:
        yield
    finally:
        stop()


def default_workers() -> int:
    """Return one worker per usable core, up to a maximum, because all workers share the disk."""
    # Not every system reports which cores a process may use.
    has_affinity = hasattr(os, "sched_getaffinity")
    n_cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(n_cores, MAX_DEFAULT_WORKERS)


def check_port(address: str, port: int) -> None:
    """Raise SurveyError if another program listens on a port."""
    with socket.socket(_family(address)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise SurveyError(
                f"port {port} on {address} cannot be used: {error.strerror}; "
                "choose another with --port"
            ) from None


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _n_queues(workers: int) -> int:
    """Return the number of queues; only Linux distributes connections over several."""
    return workers if sys.platform == "linux" else 1


def _listener(address: str, port: int) -> socket.socket:
    """Return a listening socket, which shares its port with those of the other workers."""
    listener = socket.socket(_family(address))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((address, port))
    listener.listen(MAX_CONNECTIONS)
    listener.setblocking(False)
    return listener


def _local_url(address: str, port: int) -> str:
    """Return the URL with which this machine reaches a server that listens on `address`."""
    loopbacks = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, never bound
    host = loopbacks.get(address, address)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _run_generation(resources: WorkerResources, ready: Connection) -> None:
    """Run the workers of a generation, in a new process."""
    # A terminal sends these signals to all processes; only the server acts on them.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Granian does this only when its workers start, and until then, tracebacks would be printed.
    dictConfig(configuration())
    catch_all()
    try:
        # Imported here, because the server needs no pages. The code may be newer than the server's.
        from survey.workers import run_generation

        run_generation(resources, ready)
    except Exception:
        logger.critical("workers cannot start; run: survey config check", exc_info=True)
        sys.exit(1)


class Generation:
    """Workers that were started together, and the process that forked them.

    A thread calls `on_ready` and `on_end`.
    """

    def __init__(
        self,
        resources: WorkerResources,
        on_ready: Callable[[Generation], None],
        on_end: Callable[[Generation], None],
    ) -> None:
        context = get_context("spawn")
        self._n_workers = resources.n_workers
        self._has_ended = threading.Event()
        self._ready, ready = context.Pipe(duplex=False)
        self._process = context.Process(target=_run_generation, args=[resources, ready])
        self._process.start()
        ready.close()
        threading.Thread(target=self._watch, args=[on_ready, on_end], daemon=True).start()

    def _watch(
        self, on_ready: Callable[[Generation], None], on_end: Callable[[Generation], None]
    ) -> None:
        """Wait until every worker can answer requests, and then until the process ends."""
        # Keep the pipe open until the end: workers that replace others also send a message.
        with self._ready:
            if not self._ready.poll(START_SECONDS):
                logger.error("the workers do not start within %d seconds", START_SECONDS)
            with suppress(EOFError):
                for _ in range(self._n_workers):
                    self._ready.recv_bytes()
                on_ready(self)
            # Only one thread may wait for the process; a second one would not get its exit code.
            self._process.join()
        self._has_ended.set()
        on_end(self)

    def signal(self, number: int) -> None:
        """Send a signal to the process, if it still runs."""
        if not self._has_ended.is_set() and self._process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def stop(self) -> bool:
        """Wait for the end after SIGTERM; return whether the process ended without an error."""
        if not self._has_ended.wait(STOP_SECONDS):
            logger.error("workers did not stop in time and were killed")
            self.signal(signal.SIGKILL)
            self._has_ended.wait()
        return self._process.exitcode == 0


class Generations:
    """The generations of a server: SIGHUP replaces the current one, if a new one can start.

    The new generation shares the sockets with the old one, which drains as soon as all new workers
    can answer requests. If the new generation ends before that, the old one continues.
    """

    def __init__(
        self,
        resources: WorkerResources,
        on_first: Callable[[], None],
        on_replaced: Callable[[], None],
    ) -> None:
        self._resources, self._on_first, self._on_replaced = resources, on_first, on_replaced
        self._events: SimpleQueue[tuple[str, Generation | int]] = SimpleQueue()
        self._current: Generation | None = None
        self._next: Generation | None = None
        self._running: set[Generation] = set()
        self._must_repeat = False
        for number in (*STOP_SIGNALS, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        forward_signals(lambda number: self._events.put(("signal", number)))

    def run(self) -> None:
        """Serve until a signal; exit with 1 if the current generation ends."""
        self._start()
        while True:
            match self._events.get():
                case "signal", signal.SIGHUP:
                    self._start()
                case "signal", signal.SIGTERM | signal.SIGINT:
                    break
                case "ready", Generation() as generation:
                    self._replace(generation)
                case "end", Generation() as generation:
                    if not self._is_expected(generation):
                        self._stop()
                        sys.exit(1)
        if not self._stop():
            sys.exit(1)

    def _start(self) -> None:
        """Start a generation; if another one is starting, wait until it has started."""
        if self._next is not None:
            self._must_repeat = True
            return
        self._next = Generation(
            self._resources,
            lambda generation: self._events.put(("ready", generation)),
            lambda generation: self._events.put(("end", generation)),
        )
        self._running.add(self._next)

    def _replace(self, generation: Generation) -> None:
        """Replace the current generation by one that can answer requests."""
        old, self._current, self._next = self._current, generation, None
        if old is None:
            threading.Thread(target=self._on_first, daemon=True).start()
        else:
            old.signal(DRAIN)
            self._on_replaced()
        self._repeat()

    def _is_expected(self, generation: Generation) -> bool:
        """Record the end of a generation; return false if no workers are left."""
        self._running.discard(generation)
        if generation is self._current or self._current is None:
            logger.critical("the workers ended unexpectedly")
            return False
        if generation is self._next:
            logger.error(
                "new workers did not start, so the old ones continue; run: survey config check"
            )
            self._next = None
            self._repeat()
        return True

    def _repeat(self) -> None:
        if self._must_repeat:
            self._must_repeat = False
            self._start()

    def _stop(self) -> bool:
        """Stop all generations; return whether all ended without an error."""
        # The system refuses connections once all workers have left the queues as well.
        for listener in self._resources.listeners:
            listener.close()
        for generation in self._running:
            generation.signal(signal.SIGTERM)
        stopped = [generation.stop() for generation in self._running]
        return all(stopped)
