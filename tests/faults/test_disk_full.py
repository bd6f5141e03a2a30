"""A full disk: the server answers 503 until there is space, and loses no acknowledged report."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from survey.archive import check
from survey.settings import Settings
from tests.conftest import SECRET, wait_until, wait_until_up
from tests.faults.processes import worker_pids
from tests.faults.reports import check_stored_once, new_report, send

REPORTS = 40
"""Number of reports sent in each phase of a cycle."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk in memory, which requires the right to mount.

    Its 16 megabytes are enough for the database and for the log before each checkpoint.
    """
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "survey-test", str(folder)], capture_output=True
    )
    if mount.returncode:
        pytest.skip(f"no disk can be mounted here: {mount.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def settings(disk: Path) -> Settings:
    return Settings(secret=SECRET, database=f"sqlite:///{disk / 'survey.db'}", password_cost=1)


def fill_up(ballast: Path) -> None:
    """Write a file that fills the disk, to the last page."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue


@pytest.mark.security
@pytest.mark.parametrize("cycles", [1, pytest.param(10, marks=pytest.mark.long)])
def test_disk_full_repeatedly_loses_no_report_and_requires_no_restart(
    serve, store, small, disk, cycles
):
    ballast, acknowledged, refused = disk / "ballast", [], 0
    port = int(serve().rpartition(":")[2])
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        for _ in range(cycles):
            fill_up(ballast)
            unsent = []
            for _ in range(REPORTS):
                body = new_report(small)
                response = send(connection, small, body)
                # The log may still have room for some reports.
                assert response.status in (201, 503), response
                if response.status == 201:
                    acknowledged.append(body)
                    continue
                assert int(response.retry_after or 0) > 0
                unsent.append(body)
            refused += len(unsent)
            ballast.unlink()
            first, *remaining = [*unsent, *(new_report(small) for _ in range(REPORTS))]
            # After a commit that failed late, the server refuses reports for another moment.
            wait_until(lambda first=first: send(connection, small, first).status == 201)
            for body in remaining:
                assert send(connection, small, body).status == 201
            acknowledged += [first, *remaining]
    assert refused >= cycles, "the disk was never full"
    check_stored_once(store, small, acknowledged, 0)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()
    (process,) = serve.processes
    process.terminate()
    log = process.communicate(timeout=90)[0]
    # A line would show when a device sent a report, and the log may be on the same disk.
    assert "survey.collect.group_commit" not in log


@pytest.mark.security
def test_disk_full_while_a_worker_ends_still_leaves_a_server(serve, store, small, disk):
    """Start workers without temporary files, because those are on the same disk here."""
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
