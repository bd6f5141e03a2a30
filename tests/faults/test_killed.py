"""Killed in the middle: what was acknowledged is there once, and nothing is left running."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time

import pytest

from survey.archive import check
from tests.conftest import wait_until
from tests.faults.processes import children_of, is_worker
from tests.faults.reports import check_each_is_there_once, new_body, send, stored

CONNECTIONS = 8


def keep_sending(port: int, survey, acknowledged: list[bytes], stop: threading.Event) -> None:
    """Send reports over one connection until it breaks; remember each acknowledged body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        while not stop.is_set():
            body = new_body(survey)
            if send(connection, survey, body).status == 201:
                acknowledged.append(body)
    except (OSError, http.client.HTTPException):
        pass  # the server is gone: what this test is about
    finally:
        connection.close()


@pytest.mark.security
@pytest.mark.parametrize(
    ("workers", "kills", "each"),
    [
        ("1", 1, 300),
        ("2", 1, 300),
        pytest.param("2", 100, 500, marks=pytest.mark.long),
    ],
)
def test_acknowledged_means_on_disk_also_when_every_process_is_killed(
    serve, store, small, workers, kills, each
):
    acknowledged: list[bytes] = []
    for kill in range(1, kills + 1):
        _kill_under_load(serve, workers, small, acknowledged, kill * each)
    # At most one report per connection was stored without its answer having left.
    check_each_is_there_once(store, small, acknowledged, kills * CONNECTIONS)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


def _kill_under_load(serve, workers, survey, acknowledged: list[bytes], until: int) -> None:
    """Start a server, kill all of it with SIGKILL once so many reports were acknowledged."""
    port = int(serve("--workers", workers).rpartition(":")[2])
    stop = threading.Event()
    threads = [
        threading.Thread(target=keep_sending, args=[port, survey, acknowledged, stop])
        for _ in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(acknowledged) >= until, 60)
    parent = serve.processes.pop()
    for pid in [parent.pid, *children_of(parent.pid)]:
        os.kill(pid, signal.SIGKILL)
    parent.communicate(timeout=20)
    stop.set()
    for thread in threads:
        thread.join()


def test_workers_end_when_the_server_that_started_them_is_killed(serve, store, small):
    serve("--workers", "2")
    parent = serve.processes[0]
    workers = children_of(parent.pid)
    assert len(workers) >= 2
    parent.kill()
    # Its output ends when the last process that could write to it is gone.
    parent.communicate(timeout=20)
    assert not [pid for pid in workers if is_worker(pid)]


def test_a_killed_worker_is_replaced_and_no_report_is_lost(serve, store, small):
    url = serve("--workers", "2")
    port = int(url.rpartition(":")[2])
    parent = serve.processes[0]
    before = {pid for pid in children_of(parent.pid) if is_worker(pid)}
    os.kill(next(iter(before)), signal.SIGKILL)
    deadline = time.monotonic() + 30
    while len({pid for pid in children_of(parent.pid) if is_worker(pid)} - before) < 1:
        assert parent.poll() is None, "the server ended with its worker"
        assert time.monotonic() < deadline
        time.sleep(0.1)
    acknowledged: list[bytes] = []
    while not acknowledged:
        stop = threading.Event()
        sender = threading.Thread(target=keep_sending, args=[port, small, acknowledged, stop])
        sender.start()
        time.sleep(0.2)
        stop.set()
        sender.join()
    assert store.knows_report(small.key, stored(acknowledged[0]))


def test_a_terminated_server_stops_with_exit_0(serve, small):
    serve()
    process = serve.processes[0]
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 0
