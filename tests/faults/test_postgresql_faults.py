"""A database server whose processes are killed under load loses no acknowledged report."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from survey.archive import check
from tests.conftest import free_port, wait_until
from tests.faults.load import Load
from tests.faults.processes import child_pids
from tests.faults.reports import check_stored_once
from tests.ops.test_health import fetch
from tests.store.databases import KINDS, PostgresqlServer

TERMINATE = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = %s AND application_name = 'survey'
"""

pytestmark = pytest.mark.parametrize("settings", KINDS[1:], indirect=True)


def check_nothing_is_lost(store, survey, load: Load) -> None:
    check_stored_once(store, survey, load.acknowledged, load.max_unacknowledged)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


@pytest.mark.long  # in every run, the test below kills the whole server
@pytest.mark.parametrize("times", [2, 100])
def test_backends_that_are_terminated_under_load_lose_nothing(
    serve, store, small, settings, postgresql, times
):
    port = int(serve("--workers", "2").rpartition(":")[2])
    with Load(small, [port]) as load:
        load.wait_for(50)
        terminated = 0
        for _ in range(times):
            with postgresql.administrator() as connection:
                name = postgresql.name(settings.database)
                terminated += connection.execute(TERMINATE, [name]).fetchone()[0]
            load.wait_for(20)
    assert terminated >= times
    # Devices whose commit lost its connection get 503 and no other error.
    assert load.statuses.keys() <= {201, 503}
    check_nothing_is_lost(store, small, load)


def kill_postmaster(server: PostgresqlServer) -> None:
    """Kill the server's first process with SIGKILL; the others end when they notice."""
    directory = Path(server.server.pgdata)
    postmaster = int(Path(directory, "postmaster.pid").read_text().split()[0])
    children = child_pids(postmaster)
    os.kill(postmaster, signal.SIGKILL)
    wait_until(lambda: not any(is_running(pid) for pid in [postmaster, *children]), 60)
    # If no process collects a dead one, its id stays in use, and the next server would believe
    # that the lock files are still held.
    for lock in (directory / "postmaster.pid", *directory.glob(".s.PGSQL.*.lock")):
        lock.unlink()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.long)])
def test_a_killed_database_server_that_comes_back_is_used_again(
    serve, store, small, postgresql, times
):
    port = int(serve("--workers", "2").rpartition(":")[2])
    (process,) = serve.processes
    log: list[str] = []

    def read() -> None:
        with process.stdout as lines:
            for line in lines:
                log.append(line)

    reader = threading.Thread(target=read)
    reader.start()

    def n_warnings() -> int:
        return sum('"logger": "survey.collect.release"' in line for line in list(log))

    with Load(small, [port]) as load:
        load.wait_for(50)
        for _ in range(times):
            kill_postmaster(postgresql)
            refused = load.statuses[503]
            wait_until(lambda refused=refused: load.statuses[503] > refused, 30)
            # The keeper logs it, whether or not reports arrive, but does not repeat it each time.
            wait_until(lambda: n_warnings() > 0)
            postgresql.start()
            load.wait_for(50)
    assert load.statuses.keys() <= {201, 503}
    check_nothing_is_lost(store, small, load)
    process.terminate()
    assert process.wait(timeout=60) == 0
    reader.join()
    # A line of the committer would show when a device sent a report.
    assert not any("survey.collect.group_commit" in line for line in log)


def test_readiness_responds_in_time_while_the_database_is_unavailable(serve, small, postgresql):
    """By default Prometheus waits for 10 seconds, and the container's health check for 4."""
    port, inside = free_port(), free_port()
    serve(port=port, SURVEY_INTERNAL=f"127.0.0.1:{inside}")
    ready, figures = (f"http://127.0.0.1:{inside}/{name}" for name in ("readyz", "metrics"))
    with Load(small, [port]) as load:
        load.wait_for(20)
        assert timed(ready)[0] == 200
        kill_postmaster(postgresql)
        try:
            for _ in range(2):
                status, _, seconds = timed(ready)
                assert (status, seconds < 4) == (503, True)
                status, output, seconds = timed(figures)
                assert (status, seconds < 8) == (200, True)
                assert 'survey_ready{check="writable"} 0.0' in output
        finally:
            postgresql.start()
        load.wait_for(20)
        wait_until(lambda: timed(ready)[0] == 200, 60)
    (process,) = serve.processes
    process.terminate()
    lines = process.communicate(timeout=60)[0].splitlines()
    assert [line for line in lines if "a message of another library" in line] == []


def timed(url: str) -> tuple[int, str, float]:
    began = time.monotonic()
    status, output = fetch(url)
    return status, output, time.monotonic() - began
