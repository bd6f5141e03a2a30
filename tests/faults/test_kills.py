"""After a kill, every acknowledged report is stored once and no process keeps running."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from survey.archive import check
from tests.conftest import ROOT, TODAY, long_unless, wait_until
from tests.faults.load import Load
from tests.faults.processes import child_pids, generation_pids, is_spawned, worker_pids
from tests.faults.reports import check_stored_once, new_report, send
from tests.store.databases import KINDS
from tests.store.reports import NOON, YEARS_LATER, add, keeper_at, random_reports

CONNECTIONS = 8


def keep_sending(port: int, survey, acknowledged: list[bytes], stop: threading.Event) -> None:
    """Send reports over one connection until it breaks; collect acknowledged bodies."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        while not stop.is_set():
            body = new_report(survey)
            if send(connection, survey, body).status == 201:
                acknowledged.append(body)
    except (OSError, http.client.HTTPException):
        pass  # the test has killed the server
    finally:
        connection.close()


@pytest.mark.security
@pytest.mark.parametrize(
    ("workers", "kills", "n_between_kills"),
    [
        ("2", 1, 300),
        pytest.param("1", 1, 300, marks=pytest.mark.long),
        pytest.param("2", 100, 500, marks=pytest.mark.long),
    ],
)
def test_acknowledged_means_on_disk_also_when_every_process_is_killed(
    serve, store, small, settings, workers, kills, n_between_kills
):
    acknowledged: list[bytes] = []
    for kill in range(1, kills + 1):
        _kill_under_load(serve, workers, store, small, acknowledged, kill * n_between_kills)
    # At most one report per connection was stored before its response was sent.
    check_stored_once(store, small, acknowledged, kills * CONNECTIONS)
    n_stored = store.n_released(small.key) + store.n_pending(small.key)
    store.close_survey("small", TODAY)
    keeper_at(store, settings, YEARS_LATER).work()
    # Every pending report could be opened: no key was destroyed too early.
    assert store.tally(small.key).n == n_stored
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


def _kill_under_load(serve, workers, store, survey, acknowledged, target: int) -> None:
    """Start a server; kill its processes after `target` acknowledged reports and a release."""
    # Each second a release publishes reports and destroys a key, so that kills hit these steps.
    url = serve("--workers", workers, SURVEY_RELEASE_EVERY="1")
    port = int(url.rpartition(":")[2])
    stop = threading.Event()
    threads = [
        threading.Thread(target=keep_sending, args=[port, survey, acknowledged, stop])
        for _ in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(acknowledged) >= target and store.n_released(survey.key) > 0, 60)
    parent = serve.processes.pop()
    for pid in [parent.pid, *child_pids(parent.pid)]:
        # The workers end when they notice that their server is gone.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    parent.communicate(timeout=90)
    stop.set()
    for thread in threads:
        thread.join()


KEEPER = """
import os, signal, sys
from survey.store import PrivateKeys, open_store
from survey.store import sealed_reports
from tests.store.reports import keeper_at
from survey.settings import Settings

url, keys, hour, left = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
store = open_store(url)

def kill_around(step):
    def run(*args, **kwargs):
        count()
        outcome = step(*args, **kwargs)
        count()
        return outcome
    return run

def count():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

for name in ("rotate_keys", "release", "delete_keys"):
    setattr(store, name, kill_around(getattr(store, name)))
PrivateKeys.create_several = kill_around(PrivateKeys.create_several)
PrivateKeys.destroy = kill_around(PrivateKeys.destroy)
PrivateKeys._synchronize_names = kill_around(PrivateKeys._synchronize_names)
keeper_at(store, Settings(keys=keys), hour).work()
"""
"""A keeper that is killed before or after its n-th step."""


@pytest.mark.parametrize("settings", long_unless(KINDS[:1], KINDS), indirect=True)
def test_a_keeper_killed_at_any_step_loses_and_doubles_no_report(settings, store, small):
    n_sent, n_kills = 0, 0
    keeper_at(store, settings).work()
    for step in range(1, 30):
        for _ in range(4):
            add(store, small, random_reports(20))
        n_sent += 80
        before = store.n_released(small.key)
        command = [sys.executable, "-c", KEEPER, settings.database, settings.keys, str(step)]
        ended = subprocess.run([*command, str(step)], cwd=ROOT, check=False)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL
        n_kills += 1
        n_killed, time = store.n_released(small.key), store.release_times()[small.key]
        keeper_at(store, settings, step).work()
        # Once a release time is recorded, nothing more is published before the next one.
        assert store.n_released(small.key) == n_killed or time < NOON + 3600 * step
        assert (store.n_released(small.key) - before) % 25 == 0
        assert store.n_released(small.key) + store.n_pending(small.key) == n_sent
        with store.snapshot() as snapshot:
            assert check(snapshot).mistakes == ()
    assert n_kills >= 12
    store.close_survey("small", TODAY)
    keeper_at(store, settings, 40).work()
    assert store.tally(small.key).n == n_sent


def test_workers_end_when_the_server_that_started_them_is_killed(serve, store, small):
    serve("--workers", "2")
    parent = serve.processes[0]
    children = {*generation_pids(parent.pid), *worker_pids(parent.pid)}
    assert len(children) == 3
    parent.kill()
    # Its output ends when the last process that could write to it is gone.
    parent.communicate(timeout=90)
    assert not [pid for pid in children if is_spawned(pid)]


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.long)])
def test_a_worker_killed_under_load_is_replaced_and_no_report_is_lost(serve, store, small, times):
    port = int(serve("--workers", "2").rpartition(":")[2])
    (server,) = serve.processes

    with Load(small, [port]) as load:
        for _ in range(times):
            load.wait_for(100)
            before = worker_pids(server.pid)
            os.kill(min(before), signal.SIGKILL)
            wait_until(lambda before=before: bool(worker_pids(server.pid) - before), 60)
            load.wait_for(100)
    assert server.poll() is None, "the server ended with its worker"
    assert load.statuses.keys() <= {201, 503}
    check_stored_once(store, small, load.acknowledged, load.max_unacknowledged)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


def test_a_terminated_server_stops_with_exit_0(serve, small):
    serve()
    process = serve.processes[0]
    process.terminate()
    process.communicate(timeout=90)
    assert process.returncode == 0
