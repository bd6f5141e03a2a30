"""The processes that answer respondents, started together and replaced together.

A generation is a granian process with its workers. It imports the application, checks that it can
start, and forks the workers, which therefore start at once and share its memory. It passes no
database connection and no random state on to the workers.

The server owns the listening sockets, one for each worker, so that connections wait in their queues
while workers are replaced. A replaced generation drains: its workers leave the queues to the next
generation and answer every request on the connections they have accepted. Each
connection ends with its next response, when its client closes it, or after `IDLE_SECONDS` without a
request. After `DRAIN_SECONDS`, they stop even if connections are open.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import logging
import multiprocessing
import os
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import granian._signals
from granian._granian import SocketHolder, WorkerSignal
from granian.constants import Interfaces, Loops
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.log import logger as granian_logger
from granian.server.common import AbstractServer
from granian.server.mp import MPServer

from survey.app import create_app
from survey.asgi import WorkerApplication
from survey.ops.config_check import Deployment, refuse_unsafe
from survey.ops.logs import catch_all, configuration
from survey.research.two_factor import SecondFactors
from survey.research_process import SOCKET_VARIABLE
from survey.research_relay import Relay, is_relayed
from survey.settings import Settings
from survey.store import open_store
from survey.worker_resources import DRAIN, MAX_CONNECTIONS, STOP_SIGNALS, WorkerResources

IDLE_SECONDS = 15
"""How long a connection may stay open without a request."""

DRAIN_SECONDS = IDLE_SECONDS + 5
"""How long a draining worker waits for its connections; it closes idle ones earlier."""

DRAIN_POLL_SECONDS = 0.1

STOP_SECONDS = 30
"""How long a worker may take to answer its accepted requests before it is killed."""

RECORD_SECONDS = 2.0
"""How long granian may take to record the end of a worker on a busy machine."""

SO_ATTACH_FILTER = 26
"""Socket option of Linux, `include/uapi/asm-generic/socket.h`."""

DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)
"""The instruction of a packet filter that keeps 0 bytes of each packet (BPF_RET of Linux)."""

START_METHOD = "fork" if sys.platform == "linux" else "spawn"
"""How a generation starts its workers; some libraries of other systems cannot be forked."""

logger = logging.getLogger(__name__)


def run_generation(resources: WorkerResources, ready: Connection) -> None:
    """Run workers until SIGTERM, until they have drained, or until the server has ended.

    Each worker sends an empty message over `ready` when it can answer requests.
    """
    _end_with_server()
    check_start(resources.address, has_keeper=resources.has_keeper)
    with _unreachable_listener() as idle:
        # Exclude the application's objects from garbage collection, which would write to the memory
        # that the workers share.
        gc.collect()
        gc.freeze()
        server = GenerationServer(resources)
        granian_logger.addFilter(lambda record: _should_log(server, record.getMessage()))
        granian_logger.addFilter(resources.exits)
        lifeline = multiprocessing.Pipe(duplex=False)
        server.serve(
            target_loader=partial(worker, resources, ready, idle, lifeline), wrap_loader=False
        )


def check_start(address: str, *, has_keeper: bool) -> None:
    """Perform all steps of a start except serving, with the current settings and code."""
    settings = Settings.from_environment(os.environ)
    refuse_unsafe(Deployment(settings, os.environ, address, has_keeper))
    store = open_store(settings.database)
    try:
        store.check_complete()
        # Earlier versions stored two-factor secrets unencrypted; only the server knows the key.
        SecondFactors(store, settings.secret).encrypt_all()
        create_app(settings, store)
    finally:
        store.close_connections()


class GenerationServer(MPServer):
    """Granian server with the signal `DRAIN`; its workers accept from the server's sockets."""

    def __init__(self, resources: WorkerResources) -> None:
        multiprocessing.set_start_method(START_METHOD, force=True)
        super().__init__(
            "survey.workers:worker",
            factory=True,
            interface=Interfaces.ASGINL,
            loop=Loops.asyncio,
            workers=resources.n_workers,
            backlog=MAX_CONNECTIONS,
            backpressure=MAX_CONNECTIONS,
            http1_settings=HTTP1Settings(header_read_timeout=1000 * IDLE_SECONDS),
            workers_kill_timeout=STOP_SECONDS,
            respawn_failed_workers=True,
            websockets=False,
            log_access=False,
            log_dictconfig=configuration(),
            log_level=LogLevels.warning,
        )
        self._listeners = resources.listeners
        self.main_loop_interrupt = MainLoopEvent(self)  # type: ignore[assignment]
        self.on_startup(self._handle_drain)

    def _init_shared_socket(self) -> None:
        self._ssp = self._shd = self._sso = None

    def _drop_shared_socket(self) -> None:
        # The system refuses connections once every process has closed its sockets.
        for listener in self._listeners:
            listener.close()

    def _spawn_worker(self, idx: int, *args: Any, **options: Any) -> Any:
        listener = self._listeners[idx % len(self._listeners)]
        self._shd = SocketHolder(listener.fileno(), False, MAX_CONNECTIONS)  # type: ignore[assignment,call-arg]
        return super()._spawn_worker(idx, *args, **options)

    def _spawn_workers(self, *args: Any) -> None:
        with _signals_blocked():
            super()._spawn_workers(*args)  # type: ignore[no-untyped-call]

    def _respawn_workers(self, *args: Any, **options: Any) -> None:
        with _signals_blocked():
            super()._respawn_workers(*args, **options)

    def _handle_drain(self) -> None:
        # The server replaces whole generations instead.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # A thread, because a signal handler must not wait.
        signal.signal(DRAIN, lambda *_: threading.Thread(target=self._drain, daemon=True).start())

    def _drain(self) -> None:
        """Let all workers drain, and then end."""
        workers = list(self.wrks)
        for worker in workers:
            worker.interrupt_by_parent = True
            with suppress(ProcessLookupError):
                os.kill(worker.inner.pid, DRAIN)
        for worker in workers:
            worker.join(DRAIN_SECONDS + STOP_SECONDS)  # type: ignore[no-untyped-call]
        self.signal_handler_interrupt()  # type: ignore[no-untyped-call]


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals during a fork: the child would treat signals to its parent as its own."""
    numbers = {*STOP_SIGNALS, DRAIN}
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def _should_log(server: AbstractServer[Any], message: str) -> bool:
    """Return whether to log a message; false if it reports the killing of an ended worker.

    Two threads of granian wait for the end of each worker. The second one does not see the end
    until the first has recorded it a moment later, and reports the worker as alive.
    """
    if not (match := re.match(r"Killing worker-(\d+) ", message)):
        return True
    deadline = time.monotonic() + RECORD_SECONDS
    while is_alive := bool(server.wrks[int(match[1]) - 1].is_alive()):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return is_alive


def worker(
    resources: WorkerResources,
    ready: Connection,
    idle: socket.socket,
    lifeline: tuple[Connection, Connection],
) -> WorkerApplication:
    """Return the application of a worker process, which ends when its generation ends."""
    # This process inherited its parent's handlers. Record signals until the event loop has its
    # handlers. Threads inherit the mask, so unblock the signals before any thread starts.
    early: list[int] = []
    for number in (*STOP_SIGNALS, DRAIN):
        signal.signal(number, lambda number, _: early.append(number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOP_SIGNALS, DRAIN})
    catch_all()
    _end_with_generation(*lifeline)
    try:
        settings = Settings.from_environment(os.environ)
        store = open_store(settings.database)
        use = ExitStack()
        use.enter_context(store.use())
        app = create_app(settings, store)
    except Exception:
        logger.critical("a worker cannot start; run: survey config check", exc_info=True)
        sys.exit(1)
    # Keeps the database in use until the process ends.
    app.extensions["use"] = use
    relay = Relay(app.wsgi_app, os.environ[SOCKET_VARIABLE])
    application = WorkerApplication(resources.last_error.watch(relay), app.reports, is_relayed)
    # Granian's function would shut the worker down before it has left the queues.
    granian._signals.set_loop_signals = partial(
        _handle_signals, application, Queues(resources.listeners, idle), early
    )
    ready.send_bytes(b"")
    return application


class Queues:
    """The queues of connections that a worker accepts, until it leaves them.

    The threads of granian accept connections until they shut down, and then close those on which
    they have not read anything, even if a request has arrived. A worker therefore first replaces
    each listening socket with one that no client can reach. No connection is lost: a worker has
    either accepted it, or it stays in the queue for other workers.
    """

    def __init__(self, listeners: Sequence[socket.socket], idle: socket.socket) -> None:
        self._files = {_file(listener.fileno()) for listener in listeners}
        self._port = listeners[0].getsockname()[1]
        self._idle = idle

    def leave(self) -> None:
        """Accept no further connection."""
        for descriptor in _descriptors():
            with suppress(OSError):
                if _file(descriptor) in self._files:
                    os.dup2(self._idle.fileno(), descriptor, inheritable=False)

    def has_connections(self) -> bool:
        """Return whether a connection from one of the queues is open."""
        return any(map(self._is_connection, _descriptors()))

    def _is_connection(self, descriptor: int) -> bool:
        try:
            # Another thread may close the descriptor; its number may be used again.
            with socket.socket(fileno=os.dup(descriptor)) as copy:
                is_inet = copy.family in (socket.AF_INET, socket.AF_INET6)
                return is_inet and copy.getsockname()[1] == self._port and bool(copy.getpeername())
        except OSError:
            return False


def _descriptors() -> list[int]:
    return [int(path.name) for path in Path("/dev/fd").iterdir()]


def _file(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


@contextmanager
def _unreachable_listener() -> Iterator[socket.socket]:
    """Yield a listening TCP socket that no client reaches.

    On Linux, it drops every packet; on other systems, no client knows its port. It may replace a
    listening socket before granian's threads have read the address of that one; they fail unless it
    is a TCP socket.
    """
    with socket.socket() as listener:
        listener.setblocking(False)
        if sys.platform == "linux":
            instruction = ctypes.create_string_buffer(DROP_ALL)
            program = struct.pack("HP", 1, ctypes.addressof(instruction))
            listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def _handle_signals(
    application: WorkerApplication,
    queues: Queues,
    early: Iterable[int],
    loop: asyncio.AbstractEventLoop,
) -> WorkerSignal:
    """Handle the signals of a worker in its event loop; return the event that shuts it down.

    `early` contains the signals that arrived before the handlers were set.

    Granian asks its connections to end, but on a busy machine, a connection that is never idle may
    miss this and keep the worker running until it is killed. The application therefore closes each
    connection after an answer.
    """
    must_stop = WorkerSignal()

    def stop_accepting() -> None:
        application.closes_connections = True
        queues.leave()

    def stop() -> None:
        stop_accepting()
        must_stop.set()

    def drain() -> None:
        stop_accepting()
        threading.Thread(target=_end_after_connections, args=[queues], daemon=True).start()

    handlers = {**dict.fromkeys(STOP_SIGNALS, stop), DRAIN: drain}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    for handler in {handlers[signal.Signals(number)] for number in early}:
        handler()
    return must_stop


def _end_after_connections(queues: Queues) -> None:
    """Stop this worker when its connections have ended."""
    deadline = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < deadline:
        # Pause first, so that a connection that is being accepted is visible to the check.
        time.sleep(DRAIN_POLL_SECONDS)
        if not queues.has_connections():
            break
    os.kill(os.getpid(), signal.SIGTERM)


def _end_with_server() -> None:
    """End this generation when its server has ended.

    Orphaned workers would occupy the port and accept reports that no process releases.
    """
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_end_after, args=[parent.join], daemon=True).start()


def _end_with_generation(source: Connection, target: Connection) -> None:
    """End this worker when its generation, the only process that holds `target`, has ended."""
    # The pipe of `multiprocessing` is unsuitable: workers forked later inherit its other end.
    target.close()
    threading.Thread(target=_end_after, args=[source.poll, None], daemon=True).start()
    atexit.register(_end_now)


def _end_after(wait: Callable[..., object], *arguments: object) -> None:
    # End at once: acknowledged reports are on the disk, and devices send the others again.
    wait(*arguments)
    os._exit(1)


def _end_now() -> None:
    """End without shutting down the interpreter, after all accepted requests are answered.

    The threads of granian outlive the interpreter, and abort the process when they call it.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


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
