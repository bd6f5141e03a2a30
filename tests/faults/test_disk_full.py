"""A full disk: 503 while it lasts, nothing acknowledged is lost, and it recovers by itself."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from survey.archive import check
from survey.collect.group_commit import LOG_SECONDS
from survey.settings import Settings
from tests.conftest import SECRET, wait_until, wait_until_up
from tests.faults.processes import worker_pids
from tests.faults.reports import check_stored_once, new_report, send

EACH = 40
"""Reports sent in every phase of a cycle."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes in memory; needs the right to mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "survey-test", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def settings(disk: Path) -> Settings:
    return Settings(secret=SECRET, database=f"sqlite:///{disk / 'survey.db'}", password_cost=1)


def fill_up(ballast: Path) -> None:
    """Take all the room that is left, to the last page."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue


@pytest.mark.security
@pytest.mark.parametrize("cycles", [1, pytest.param(10, marks=pytest.mark.long)])
def test_disk_full_again_and_again_loses_nothing_and_recovers_by_itself(
    serve, store, small, disk, cycles
):
    ballast, acknowledged, refused = disk / "ballast", [], 0
    began = time.monotonic()
    port = int(serve().rpartition(":")[2])
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        for _ in range(cycles):
            fill_up(ballast)
            waiting = []
            for _ in range(EACH):
                body = new_report(small)
                answer = send(connection, small, body)
                # What the log has room for already may still be taken.
                assert answer.status in (201, 503), answer
                if answer.status == 201:
                    acknowledged.append(body)
                    continue
                assert int(answer.retry_after or 0) > 0
                waiting.append(body)
            refused += len(waiting)
            ballast.unlink()
            first, *others = [*waiting, *(new_report(small) for _ in range(EACH))]
            # A commit that failed late has everybody refused for a moment more.
            wait_until(lambda first=first: send(connection, small, first).status == 201)
            for body in others:
                assert send(connection, small, body).status == 201
            acknowledged += [first, *others]
    assert refused >= cycles, "the disk was never full"
    check_stored_once(store, small, acknowledged, 0)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    (process,) = serve.processes
    process.terminate()
    said = process.communicate(timeout=90)[0]
    assert "reports are refused for now" in said
    assert "SQLITE_FULL" in said
    # Once in a while, not once for each report: the log may lie on the same disk.
    assert said.count("refused for now") <= cycles + (time.monotonic() - began) // LOG_SECONDS


@pytest.mark.security
def test_disk_full_while_a_worker_ends_still_leaves_a_server(serve, store, small, disk):
    """Also where temporary files are on the same disk: none of them must be what it starts by."""
    folder = disk / "temporary"
    folder.mkdir()
    port = int(serve("--workers", "1", TMPDIR=str(folder)).rpartition(":")[2])
    (process,) = serve.processes
    fill_up(disk / "ballast")
    (before,) = worker_pids(process.pid)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: process.poll() is not None or worker_pids(process.pid) - {before}, 60)
    wait_until_up(f"http://127.0.0.1:{port}", process)
    body = new_report(small)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        assert send(connection, small, body).status in (201, 503)
        (disk / "ballast").unlink()
        wait_until(lambda: send(connection, small, body).status == 201)
    check_stored_once(store, small, [body], 0)
