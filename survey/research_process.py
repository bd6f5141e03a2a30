"""The process that answers researchers' requests, apart from the workers that serve respondents.

A regression or a PDF keeps an interpreter busy for seconds, and every report that the same process
receives would wait for its turn again and again. Workers therefore pass researchers' requests on to
one process of low priority, whose cache of results serves them all. The server starts it at the
first of these requests, and again if it ends.

A request is one connection to a Unix socket. The worker sends the variables of the request as
JSON, then its body. The process sends an empty message when it accepts the connection, then the
status and the headers as JSON, the parts of the body, and an empty message at the end.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from logging.config import dictConfig
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survey.duty import socket_folder
from survey.ops.logs import catch_all, configuration
from survey.settings import Settings
from survey.store import open_store

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

SOCKET_VARIABLE = "LDP_SURVEY_RESEARCH_SOCKET"
"""Environment variable with the path of the socket, which the server sets for its workers."""

THREADS = 32
"""Requests that the process answers at the same time."""

BACKLOG = 128

NICENESS = 5
"""Added to the niceness of the process, so that it gets only the time that workers leave."""

RESTART_SECONDS = 1.0
"""Pause before the process is started again after it ended."""

STOP_SECONDS = 30.0
"""How long the process may take to answer the requests that it has accepted."""

COMMAND = "from survey.research_process import main; main({descriptor})"

logger = logging.getLogger(__name__)


class ResearchProcess:
    """The process that answers researchers' requests, as the server sees it.

    Create it before the workers start, and `run` it in a thread.
    """

    def __init__(self) -> None:
        self._directory = socket_folder()
        self.path = str(Path(self._directory.name) / "research")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(BACKLOG)
        self._source, self._target = os.pipe()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._must_stop = False

    def run(self) -> None:
        """Start the process whenever a request waits and there is none, until `stop`."""
        while not self._must_stop:
            listener = self._listener.fileno()
            watched = [self._source] if self._process else [self._source, listener]
            readable, _, _ = select.select(watched, [], [])
            if self._source in readable:
                os.read(self._source, 1024)
            with self._lock:
                if listener in readable and not (self._process or self._must_stop):
                    self._process = self._start()

    def renew(self) -> None:
        """Let the process answer its requests and end; the next request starts another."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _end(process)
        self._wake()

    def stop(self) -> None:
        """End the process after it has answered its requests."""
        with self._lock:
            self._must_stop = True
            process = self._process
        self._wake()
        if process is not None:
            _end(process)
            try:
                process.wait(STOP_SECONDS + RESTART_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._listener.close()
        self._directory.cleanup()

    def _start(self) -> subprocess.Popen[bytes]:
        descriptor = self._listener.fileno()
        # -P: import nothing from the current folder. The command contains a number only.
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-c", COMMAND.format(descriptor=descriptor)],
            stdin=subprocess.PIPE,
            pass_fds=[descriptor],
            # Threads of linear algebra wait for each other in loops. On a busy machine, they took
            # seven times as long as one thread, from the workers too.
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
        )
        threading.Thread(target=self._watch, args=[process], daemon=True).start()
        return process

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a process; allow another if nobody asked for the end."""
        process.wait()
        if process is self._process and not self._must_stop:
            logger.error("the process of researchers' pages ended and will be started again")
            time.sleep(RESTART_SECONDS)
            with self._lock:
                if process is self._process:
                    self._process = None
            self._wake()

    def _wake(self) -> None:
        os.write(self._target, b"\0")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe whose end tells a process to end."""
    if process.stdin is not None:
        process.stdin.close()


def main(descriptor: int) -> None:
    """Answer researchers' requests at a listening socket until the server closes standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Terminals and systemd signal all processes, but workers still wait for responses.
        signal.signal(number, signal.SIG_IGN)
    dictConfig(configuration())
    catch_all()
    # The sandbox of the systemd unit allows no other priority.
    with suppress(PermissionError):
        os.nice(NICENESS)
    # Imported only in this process: the server itself needs no pages.
    from survey.app import create_app

    try:
        settings = Settings.from_environment(os.environ)
        store = open_store(settings.database)
        with store.use():
            listener = socket.socket(fileno=descriptor)
            answer_requests(create_app(settings, store), listener, sys.stdin.fileno())
    except Exception:
        logger.critical("researchers' pages cannot start; see: survey config check", exc_info=True)
        sys.exit(1)


def answer_requests(app: WSGIApplication, listener: socket.socket, end: int) -> None:
    """Answer requests until the pipe `end` ends, which it also does if the server is killed."""
    # Another process may accept a connection first, while this one is being replaced.
    listener.setblocking(False)
    threads = ThreadPoolExecutor(THREADS)
    while True:
        readable, _, _ = select.select([end, listener.fileno()], [], [])
        if end in readable:
            break
        with suppress(OSError):
            client, _ = listener.accept()
            client.setblocking(True)
            connection = Connection(client.detach())
            connection.send_bytes(b"")
            threads.submit(_answer, app, connection)
    deadline = threading.Timer(STOP_SECONDS, os._exit, [1])
    deadline.daemon = True
    deadline.start()
    threads.shutdown()
    deadline.cancel()


def _answer(app: WSGIApplication, connection: Connection) -> None:
    """Answer the request of a connection."""
    # The worker may close the connection, because its client has gone.
    with connection, suppress(OSError, EOFError):
        variables = json.loads(connection.recv_bytes())
        environ = {
            **variables,
            "wsgi.version": (1, 0),
            "wsgi.input": BytesIO(connection.recv_bytes()),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            connection.send_bytes(json.dumps([status, headers]).encode())

        parts = app(environ, start_response)
        try:
            for part in parts:
                if part:
                    connection.send_bytes(part)
            connection.send_bytes(b"")
        finally:
            if hasattr(parts, "close"):
                parts.close()
