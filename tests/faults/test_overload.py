"""With ten times the usual load, a server refuses reports with Retry-After and loses none."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

import pytest

from survey.archive import check
from tests.faults.reports import check_stored_once, new_report

DEVICES = 640
TIMEOUT_SECONDS = 120
"""How long a refused device keeps trying after the others have ended."""

Result = TypeVar("Result")

STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
RETRY = re.compile(rb"\r\nretry-after: [1-9]", re.IGNORECASE)


def request(survey, body: bytes) -> bytes:
    return (
        b"POST /s/%b/reports HTTP/1.1\r\nHost: survey\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (survey.slug.encode(), len(body), body)
    )


async def device(
    port: int, survey, until: float, outcomes: Counter[str], acknowledged: list[bytes]
):
    """Send reports over one connection; resend those that the server refuses.

    Stops only when the last report is acknowledged, because a refused report may be stored.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body, status = new_report(survey), 0
    while (now := time.monotonic()) < until or (status != 201 and now < until + TIMEOUT_SECONDS):
        writer.write(request(survey, body))
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(STATUS.match(head)[1])
        await reader.readexactly(int(LENGTH.search(head)[1]))
        outcomes[str(status)] += 1
        if status == 201:
            acknowledged.append(body)
            body = new_report(survey)
        elif RETRY.search(head):
            outcomes["Retry-After"] += 1
    writer.close()


def run_in_thread(work: Coroutine[object, object, Result]) -> Result:
    """Run a coroutine in another thread: the browser tests occupy the loop of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def send_once(port: int, survey, body: bytes) -> tuple[int, bool]:
    """Send one report; return the status and whether the response has Retry-After."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(survey, body))
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    writer.close()
    return int(STATUS.match(head)[1]), RETRY.search(head) is not None


@pytest.mark.security
def test_locked_store_refuses_all_devices_with_retry_after(serve, store, small):
    port = int(serve().rpartition(":")[2])
    bodies = [new_report(small) for _ in range(DEVICES)]

    async def all_devices() -> list[tuple[int, bool]]:
        return await asyncio.gather(*(send_once(port, small, body) for body in bodies))

    with closing(sqlite3.connect(store.path, isolation_level=None)) as lock_holder:
        lock_holder.execute("BEGIN IMMEDIATE")
        responses = run_in_thread(all_devices())
        lock_holder.execute("ROLLBACK")
    assert set(responses) == {(503, True)}
    assert store.n_pending(small.key) == 0


@pytest.mark.security
@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.long)])
def test_overloaded_ten_times_a_server_accepts_reports_or_sends_retry_after(
    serve, store, small, seconds
):
    port = int(serve("--workers", "2").rpartition(":")[2])
    outcomes: Counter[str] = Counter()
    acknowledged: list[bytes] = []

    async def all_devices() -> None:
        until = time.monotonic() + seconds
        # A connection that breaks ends the test with its error.
        await asyncio.gather(
            *(device(port, small, until, outcomes, acknowledged) for _ in range(DEVICES))
        )

    run_in_thread(all_devices())
    assert outcomes.keys() <= {"201", "503", "Retry-After"}
    assert outcomes["503"] == outcomes["Retry-After"]
    assert len(acknowledged) >= DEVICES
    check_stored_once(store, small, acknowledged, 0)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    assert serve.processes[0].poll() is None
