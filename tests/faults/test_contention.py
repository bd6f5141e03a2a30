"""Many devices send the same report at once; another process locks the database."""

from __future__ import annotations

import http.client
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.conftest import wait_until
from tests.faults.reports import Response, check_stored_once, new_report, send

THREADS = 64


@pytest.mark.security
@pytest.mark.parametrize("ids", [5, pytest.param(100, marks=pytest.mark.long)])
def test_exactly_once_the_same_report_from_64_threads_and_two_workers_is_one_row(
    serve, store, small, ids
):
    port = int(serve("--workers", "2").rpartition(":")[2])
    barrier = threading.Barrier(THREADS)
    bodies = [new_report(small) for _ in range(ids)]

    def send_all(_: int) -> list[Response]:
        responses = []
        for body in bodies:
            barrier.wait(60)
            # A new connection each time, so that both workers receive some.
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                responses.append(send(connection, small, body))
        return responses

    with ThreadPoolExecutor(THREADS) as pool:
        responses = [
            response
            for responses_of_thread in pool.map(send_all, range(THREADS))
            for response in responses_of_thread
        ]
    assert Counter(response.status for response in responses) == {201: THREADS * ids}
    assert {response.body for response in responses} == {b""}
    check_stored_once(store, small, bodies, 0)


@pytest.mark.security
def test_locked_by_another_process_gives_503_until_it_is_released(serve, store, small):
    port = int(serve().rpartition(":")[2])
    body = new_report(small)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        assert send(connection, small, new_report(small)).status == 201
        with closing(sqlite3.connect(store.path, isolation_level=None)) as lock_holder:
            lock_holder.execute("BEGIN IMMEDIATE")
            refused = send(connection, small, body)
            lock_holder.execute("ROLLBACK")
        assert refused.status == 503
        assert int(refused.retry_after or 0) > 0
        assert store.n_pending(small.key) == 1
        # The server refuses all reports for a moment longer, without another wait for the lock.
        wait_until(lambda: send(connection, small, body).status == 201)
    check_stored_once(store, small, [body], 1)
    (process,) = serve.processes
    process.terminate()
    # A line would show when a device sent a report.
    assert "survey.collect.group_commit" not in process.communicate(timeout=90)[0]
