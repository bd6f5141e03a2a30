"""Many at once: the same report from everywhere, and a database that somebody else holds."""

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
    together = threading.Barrier(THREADS)
    bodies = [new_report(small) for _ in range(ids)]

    def insist(_: int) -> list[Response]:
        found = []
        for body in bodies:
            together.wait(60)
            # A connection each time, so that both workers get some.
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                found.append(send(connection, small, body))
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        answers = [answer for some in pool.map(insist, range(THREADS)) for answer in some]
    assert Counter(answer.status for answer in answers) == {201: THREADS * ids}
    assert {answer.body for answer in answers} == {b""}
    check_stored_once(store, small, bodies, 0)


@pytest.mark.security
def test_locked_by_another_process_gives_503_until_it_is_released(serve, store, small):
    port = int(serve().rpartition(":")[2])
    body = new_report(small)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        assert send(connection, small, new_report(small)).status == 201
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = send(connection, small, body)
            other.execute("ROLLBACK")
        assert refused.status == 503
        assert int(refused.retry_after or 0) > 0
        assert store.n_pending(small.key) == 1
        # For a moment longer everybody is refused at once: who waited has waited long enough.
        wait_until(lambda: send(connection, small, body).status == 201)
    check_stored_once(store, small, [body], 1)
    (process,) = serve.processes
    process.terminate()
    said = process.communicate(timeout=90)[0]
    assert "reports are refused for now" in said
