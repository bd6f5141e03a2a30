"""Ten times the devices that a server is measured with: refused politely, and nothing is lost."""

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
PATIENCE_SECONDS = 120
"""How long a device that is refused goes on after the others have ended."""

Found = TypeVar("Found")

STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
RETRY = re.compile(rb"\r\nretry-after: [1-9]", re.IGNORECASE)


def request(survey, body: bytes) -> bytes:
    return (
        b"POST /s/%b/reports HTTP/1.1\r\nHost: survey\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (survey.slug.encode(), len(body), body)
    )


async def device(port: int, survey, until: float, seen: Counter[str], acknowledged: list[bytes]):
    """One connection that sends a report after the other, the same again when it is refused.

    It goes on until its last one is acknowledged: a refused one may have been stored.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body, status = new_report(survey), 0
    while (now := time.monotonic()) < until or (status != 201 and now < until + PATIENCE_SECONDS):
        writer.write(request(survey, body))
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(STATUS.match(head)[1])
        await reader.readexactly(int(LENGTH.search(head)[1]))
        seen[str(status)] += 1
        if status == 201:
            acknowledged.append(body)
            body = new_report(survey)
        elif RETRY.search(head):
            seen["come again"] += 1
    writer.close()


def in_a_loop_of_its_own(work: Coroutine[object, object, Found]) -> Found:
    """What it returns; in another thread, for a browser's tests keep a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def once(port: int, survey, body: bytes) -> tuple[int, bool]:
    """The status that one device hears, and whether it is told when to come again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(survey, body))
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    writer.close()
    return int(STATUS.match(head)[1]), RETRY.search(head) is not None


@pytest.mark.security
def test_locked_store_refuses_everybody_with_a_time_to_try_again(serve, store, small):
    port = int(serve().rpartition(":")[2])
    bodies = [new_report(small) for _ in range(DEVICES)]

    async def everybody() -> list[tuple[int, bool]]:
        return await asyncio.gather(*(once(port, small, body) for body in bodies))

    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answers = in_a_loop_of_its_own(everybody())
        other.execute("ROLLBACK")
    assert set(answers) == {(503, True)}
    assert store.n_pending(small.key) == 0


@pytest.mark.security
@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.long)])
def test_overloaded_ten_times_the_server_answers_or_says_when_to_try_again(
    serve, store, small, seconds
):
    port = int(serve("--workers", "2").rpartition(":")[2])
    seen: Counter[str] = Counter()
    acknowledged: list[bytes] = []

    async def everybody() -> None:
        until = time.monotonic() + seconds
        # A connection that breaks ends the test with its error.
        await asyncio.gather(
            *(device(port, small, until, seen, acknowledged) for _ in range(DEVICES))
        )

    in_a_loop_of_its_own(everybody())
    assert seen.keys() <= {"201", "503", "come again"}
    assert seen["503"] == seen["come again"]
    assert len(acknowledged) >= DEVICES
    check_stored_once(store, small, acknowledged, 0)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    assert serve.processes[0].poll() is None
