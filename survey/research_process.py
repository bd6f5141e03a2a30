"""The process that answers researchers' requests, separate from the workers for respondents.

A regression or a PDF keeps the interpreter busy for seconds, and would delay every report that the
same process receives. Workers therefore pass researchers' requests on to one process of low
priority, whose cache of results serves them all. The server starts this process at the first such
request, and again if it ends.

If a page takes nearly a second to compute, the process answers with the progress and continues to
compute it. The browser asks again every second until it receives the page.

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
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from logging.config import dictConfig
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from survey.ops.logs import catch_all, configuration
from survey.progress import PROGRESS, follow
from survey.settings import Settings
from survey.store import open_store
from survey.worker_resources import socket_folder

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

SOCKET_VARIABLE = "LDP_SURVEY_RESEARCH_SOCKET"
"""Environment variable with the path of the socket, which the server sets for its workers."""

THREADS = 32
"""Number of requests that the process answers at the same time."""

BACKLOG = 128

NICENESS = 5
"""Added to the niceness of the process, so that workers get CPU time before it."""

RESTART_SECONDS = 1.0
"""Pause before the process is started again after it ended."""

STOP_SECONDS = 30.0
"""How long the process may take to answer the requests that it has accepted."""

PAGE_SECONDS = 0.8
"""CPU time that a page may take before the browser shows its progress."""

WAIT_SECONDS = 10.0
"""Time after which a browser receives the progress of a page that uses little CPU time.

Such a page waits, for example because another session computes the same results."""

KEEP_SECONDS = 15.0
"""How long the process keeps a computed page for the browser's next request."""

COMMAND = "from survey.research_process import main; main({descriptor})"

logger = logging.getLogger(__name__)


class ResearchProcess:
    """The server's control of the process that answers researchers' requests.

    Create it before the workers start, and `run` it in a thread. It counts unexpected ends in
    `ends["research"]`.
    """

    def __init__(self, ends: Counter[str]) -> None:
        self._ends = ends
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
        """Start the process whenever a request waits and no process runs, until `stop`."""
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
            # Threads of OpenBLAS wait for each other in busy loops. On a busy machine, they took
            # seven times as long as one thread, and slowed down the workers too.
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
        )
        threading.Thread(target=self._watch, args=[process], daemon=True).start()
        return process

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a process; if it was unexpected, count it and allow another start."""
        process.wait()
        if process is self._process and not self._must_stop:
            self._ends["research"] += 1
            logger.error(
                "the process that serves researchers' pages ended unexpectedly; "
                "the next request starts it again"
            )
            time.sleep(RESTART_SECONDS)
            with self._lock:
                if process is self._process:
                    self._process = None
            self._wake()

    def _wake(self) -> None:
        os.write(self._target, b"\0")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the standard input of a process, which tells it to end."""
    if process.stdin is not None:
        process.stdin.close()


def main(descriptor: int) -> None:
    """Answer researchers' requests at a listening socket until the server closes standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Terminals and systemd send signals to all processes, but workers still need responses.
        signal.signal(number, signal.SIG_IGN)
    dictConfig(configuration())
    catch_all()
    # The sandbox of the systemd unit forbids changes of the priority.
    with suppress(PermissionError):
        os.nice(NICENESS)
    # Imported here, because only this process needs the pages.
    from survey.app import create_app

    try:
        settings = Settings.from_environment(os.environ)
        store = open_store(settings.database)
        with store.use():
            listener = socket.socket(fileno=descriptor)
            app = create_app(settings, store)
            pages = PageComputations(app, app.config["SESSION_COOKIE_NAME"])
            answer_requests(pages, listener, sys.stdin.fileno())
    except Exception:
        logger.critical(
            "the process that serves researchers' pages cannot start; run: survey config check",
            exc_info=True,
        )
        sys.exit(1)


class PageComputation:
    """A page that one thread computes, and for which a browser may ask several times.

    Create the object in that thread. At most one connection waits for the page. After
    `PAGE_SECONDS` of CPU time or `WAIT_SECONDS` in total, it receives a response with the progress.
    The next connection with the same request then waits.
    """

    def __init__(self) -> None:
        self._progress = follow()
        # CPU time, because on a busy machine even short pages take seconds.
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._progress_due = time.clock_gettime(self._clock) + PAGE_SECONDS
        self._wait_until = time.monotonic() + WAIT_SECONDS
        self._changed = threading.Condition()
        self._client: Connection | None = None
        self._timer = threading.Timer(0, lambda: None)
        self._is_finished = False

    def attach(self, app: WSGIApplication, environ: WSGIEnvironment, client: Connection) -> bool:
        """Let a connection wait; return False if another one waits or the page is finished."""
        with self._changed:
            if self._client is not None or self._is_finished:
                return False
            self._client = client
            self._changed.notify()
            self._start_timer(PAGE_SECONDS, app, environ, client)
        return True

    def wait_for_client(self) -> Connection | None:
        """Return the waiting connection, or the next one within `KEEP_SECONDS`, or None."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._client is not None or self._is_finished, KEEP_SECONDS
            )
            return self._finish()

    def drop_if_unclaimed(self) -> None:
        """Drop the page unless a connection waits for it."""
        with self._changed:
            if self._client is None:
                self._is_finished = True
                self._changed.notify()

    def close(self) -> None:
        """Close a connection that still waits, after the page failed."""
        with self._changed:
            if client := self._finish():
                client.close()

    def _finish(self) -> Connection | None:
        self._is_finished = True
        self._timer.cancel()
        client, self._client = self._client, None
        return client

    def _start_timer(self, seconds: float, *request: Any) -> None:
        self._timer = threading.Timer(seconds, self._send_progress, request)
        self._timer.daemon = True
        self._timer.start()

    def _send_progress(
        self, app: WSGIApplication, environ: WSGIEnvironment, client: Connection
    ) -> None:
        with self._changed:
            if self._client is not client:
                return
            left = min(
                self._progress_due - time.clock_gettime(self._clock),
                self._wait_until - time.monotonic(),
            )
            if left > 0:
                self._start_timer(left, app, environ, client)
                return
            self._client = None
        with client, suppress(OSError):
            _send(app, {**environ, PROGRESS: self._progress}, lambda: client)


class PageComputations:
    """The pages that are being computed, by their request."""

    def __init__(self, app: WSGIApplication, session_cookie: str) -> None:
        self._app, self._session_cookie = app, session_cookie
        self._pages: dict[tuple[str, ...], PageComputation] = {}
        self._lock = threading.Lock()

    def answer(self, environ: WSGIEnvironment, client: Connection) -> None:
        """Answer a request now, or when the browser asks again."""
        key = self._key(environ)
        if not key:
            with client:
                _send(self._app, environ, lambda: client)
            return
        with self._lock:
            page = self._pages.get(key)
            if page and page.attach(self._app, environ, client):
                return
            page = self._pages[key] = PageComputation()
            page.attach(self._app, environ, client)
        try:
            _send(self._app, environ, page.wait_for_client)
        finally:
            with self._lock:
                if self._pages.get(key) is page:
                    del self._pages[key]
            page.close()

    def stop(self) -> None:
        """Drop the pages for which no connection waits; another process computes them again."""
        with self._lock:
            for page in self._pages.values():
                page.drop_if_unclaimed()

    def _key(self, environ: WSGIEnvironment) -> tuple[str, ...]:
        """Return what identifies a request that a browser repeats; () for others.

        Requests of different sessions never share a page, because other researchers may not be
        allowed to see it. Requests without a session share only results that anyone with the
        address may see.
        """
        # Imported only in this process: the server itself needs no pages.
        from werkzeug.http import parse_cookie

        from survey.research.share import READER_PATHS

        session = parse_cookie(environ).get(self._session_cookie, "")
        is_page = "text/html" in environ.get("HTTP_ACCEPT", "")
        is_for_readers = environ["PATH_INFO"].startswith(READER_PATHS)
        if not ((session or is_for_readers) and is_page and environ["REQUEST_METHOD"] == "GET"):
            return ()
        names = ("HTTP_HOST", "PATH_INFO", "QUERY_STRING")
        return (session, *(environ.get(name, "") for name in names))


def answer_requests(pages: PageComputations, listener: socket.socket, end: int) -> None:
    """Answer requests until the pipe `end` closes, which also happens if the server is killed."""
    # Another process may accept a connection first, while this one is being replaced.
    listener.setblocking(False)
    threads = ThreadPoolExecutor(THREADS)

    def accept() -> bool:
        with suppress(OSError):
            client, _ = listener.accept()
            client.setblocking(True)
            connection = Connection(client.detach())
            connection.send_bytes(b"")
            threads.submit(_answer, pages, connection)
            return True
        return False

    while True:
        readable, _, _ = select.select([end, listener.fileno()], [], [])
        if end in readable:
            break
        accept()
    # During repeated reloads, each process may have to end before it has started. Without this
    # step, no process would answer the waiting requests.
    for _ in range(BACKLOG):
        if not accept():
            break
    deadline = threading.Timer(STOP_SECONDS, os._exit, [1])
    deadline.daemon = True
    deadline.start()
    pages.stop()
    threads.shutdown()
    deadline.cancel()


def _answer(pages: PageComputations, connection: Connection) -> None:
    """Answer the request of a connection."""
    # The worker may close the connection, because its client has disconnected.
    with suppress(OSError, EOFError):
        try:
            variables = json.loads(connection.recv_bytes())
            body = connection.recv_bytes()
        except BaseException:
            connection.close()
            raise
        environ = {
            **variables,
            "wsgi.version": (1, 0),
            "wsgi.input": BytesIO(body),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        pages.answer(environ, connection)


def _send(
    app: WSGIApplication, environ: WSGIEnvironment, wait_for_client: Callable[[], Connection | None]
) -> None:
    """Compute a response up to its first part; send it over the connection of `wait_for_client`.

    Without a connection, the response is dropped.
    """
    start: list[bytes] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        start[:] = [json.dumps([status, headers]).encode()]

    parts = app(environ, start_response)
    try:
        remaining = iter(parts)
        first = next(remaining, b"")
        if (connection := wait_for_client()) is None:
            return
        with connection:
            for part in (*start, first):
                if part:
                    connection.send_bytes(part)
            for part in remaining:
                if part:
                    connection.send_bytes(part)
            connection.send_bytes(b"")
    finally:
        if hasattr(parts, "close"):
            parts.close()
