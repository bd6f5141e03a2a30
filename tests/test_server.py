"""While stopping, a server answers the requests it has accepted and stores no other report."""

from __future__ import annotations

import ctypes
import http.client
import json
import multiprocessing
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import granian.server.common
import pytest

from survey.collect.incoming_reports import parse
from survey.ops.metrics import ErrorTime, WorkerExits
from survey.questionnaire.definition import report_body
from survey.store import StoredReport
from survey.worker_resources import WorkerResources
from survey.workers import GenerationServer, _should_log, _unreachable_listener
from tests.conftest import wait_until
from tests.faults.processes import worker_pids

SENDERS = 32


class Sender(threading.Thread):
    """A thread that sends one report after another over one connection until the server stops."""

    def __init__(self, port: int, survey, stop: threading.Event) -> None:
        super().__init__()
        self._port, self._survey, self._until = port, survey, stop
        self.answered: list[bytes] = []
        self.unanswered: list[bytes] = []
        self.statuses: set[int] = set()

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        while not self._until.is_set():
            body = report_body(self._survey.sha256, secrets.token_urlsafe(16), [0, 1])
            try:
                connection.request(
                    "POST", "/s/small/reports", body, {"Content-Type": "application/json"}
                )
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                self.unanswered.append(body)
                break
            self.statuses.add(response.status)
            self.answered.append(body)
        connection.close()


def stored(store, survey, body: bytes) -> bool:
    submission = parse(body)
    report = StoredReport(submission.report_id, "", bytes(submission.codes))
    return store.has_report(survey.key, report.id)


@pytest.mark.web
@pytest.mark.security
def test_a_server_that_stops_under_load_answers_what_it_stored(serve, store, small):
    url = serve("--workers", "2")
    stop = threading.Event()
    senders = [Sender(int(url.rpartition(":")[2]), small, stop) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    deadline = time.monotonic() + 60
    while sum(len(sender.answered) for sender in senders) < 300:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process = serve.processes[0]
    process.terminate()
    output, _ = process.communicate(timeout=60)
    stop.set()
    for sender in senders:
        sender.join()
    assert process.returncode == 0, output
    assert "panicked" not in output
    assert set.union(*(sender.statuses for sender in senders)) == {201}
    for sender in senders:
        assert all(stored(store, small, body) for body in sender.answered)
        assert not any(stored(store, small, body) for body in sender.unanswered)
    n_stored = store.n_pending(small.key) + store.n_released(small.key)
    ids = {json.loads(body)["report_id"] for sender in senders for body in sender.answered}
    assert n_stored == len(ids)


@pytest.mark.web
def test_a_server_stops_without_a_warning_although_a_silent_connection_stays_open(serve, small):
    url = serve()
    connection = http.client.HTTPConnection("127.0.0.1", int(url.rpartition(":")[2]), timeout=30)
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    process = serve.processes[0]
    process.terminate()
    output, _ = process.communicate(timeout=60)
    connection.close()
    assert process.returncode == 0
    for word in ("Killing", "WARNING", "panicked"):
        assert word not in output


def test_code_that_cannot_be_imported_at_a_reload_is_logged_as_one_line():
    script = (
        "import sys; sys.modules['survey.workers'] = None\n"
        "from survey.server import _run_generation; _run_generation(None, None)"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (1, "")
    assert json.loads(process.stdout)["errors"] == ["ModuleNotFoundError"]


@pytest.mark.web
@pytest.mark.parametrize("target", ["server", "worker"])
def test_a_server_and_its_workers_handle_a_signal_in_whichever_thread_it_arrives(serve, target):
    serve()
    server = serve.processes[0]
    pid = server.pid if target == "server" else min(worker_pids(server.pid))
    threads = {int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()} - {pid}
    assert ctypes.CDLL(None).tgkill(pid, min(threads), signal.SIGTERM) == 0
    if target == "server":
        output, _ = server.communicate(timeout=90)
        assert server.returncode == 0, output
    else:
        # The worker has to stop itself: the server does not know of the signal.
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), 90)


class EndingWorker:
    """A worker that still looks alive for some seconds after its process has ended."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def is_alive(self) -> bool:
        return time.monotonic() < self._until


@pytest.mark.web
def test_no_client_reaches_the_socket_that_a_draining_worker_accepts_from():
    with _unreachable_listener() as listener, pytest.raises(TimeoutError):
        socket.create_connection(listener.getsockname(), timeout=0.5)


@pytest.mark.web
@pytest.mark.parametrize(("seconds", "is_logged"), [(0.01, False), (60, True)])
def test_only_the_killing_of_an_existing_worker_is_logged(seconds, is_logged):
    server = SimpleNamespace(wrks=[None, EndingWorker(seconds)])
    message = "Killing worker-2 after it refused to gracefully stop"
    assert _should_log(server, message) is is_logged
    assert _should_log(server, "something else") is True


class StopAtLine:
    """A trace function that handles a signal to stop when its thread reaches a line.

    A signal handler interrupts the main thread in the same way: between two instructions.
    """

    def __init__(self, server, line: int) -> None:
        self._server, self._n_lines_left = server, line

    def __call__(self, frame, event, argument):
        if event == "line":
            self._n_lines_left -= 1
            if self._n_lines_left == 0:
                self._server.signal_handler_interrupt()
        return self


class StoppedTooLateError(Exception):
    """The main loop replaced the worker before it reached the line of the signal."""


@pytest.fixture
def granian_server(monkeypatch):
    """Return a server as `serve` makes it, with a main loop that starts no processes."""
    monkeypatch.setattr(multiprocessing, "set_start_method", lambda *_, **__: None)
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_, **__: None)
    monkeypatch.setattr(granian.server.common, "configure_logging", lambda *_: None)
    server = GenerationServer(WorkerResources((), 1, "127.0.0.1", True, ErrorTime(), WorkerExits()))

    def respawn(*_, **__):
        if not server.interrupt_signal:
            raise StoppedTooLateError

    monkeypatch.setattr(server, "_respawn_workers", respawn)
    return server


def run_main_loop(server, line: int, outcomes: list[str]) -> None:
    sys.settrace(StopAtLine(server, line))
    try:
        server._serve_loop(None, None)
        outcomes.append("stopped")
    except StoppedTooLateError:
        outcomes.append("too late")
    finally:
        sys.settrace(None)


@pytest.mark.parametrize(("failed_workers", "must_reload"), [([0], False), ([], True)])
def test_no_signal_to_stop_is_lost_while_workers_are_replaced(
    granian_server, failed_workers, must_reload
):
    outcomes = []
    for line in range(1, 100):
        granian_server.interrupt_signal = False
        granian_server.interrupt_children = list(failed_workers)
        granian_server.reload_signal = must_reload
        granian_server.main_loop_interrupt.set()
        # A daemon thread, because a loop that lost its signal never ends.
        loop = threading.Thread(
            target=run_main_loop, args=[granian_server, line, outcomes], daemon=True
        )
        loop.start()
        loop.join(30)
        assert len(outcomes) == line, f"the main loop did not stop at line {line}"
        if outcomes[-1] == "too late":
            break
    assert set(outcomes[:-1]) == {"stopped"}
    assert outcomes[-1] == "too late"
