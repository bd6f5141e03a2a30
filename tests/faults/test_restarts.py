"""Servers that are stopped and restarted in turn while reports arrive."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from survey.archive import check
from tests import conftest
from tests.conftest import wait_until
from tests.faults.load import Load
from tests.faults.processes import worker_pids
from tests.faults.reports import check_stored_once

ROUNDS = 10

SIGHUP_AT_START = """
import os, signal
from survey import cli, server
check = server.check_port
def check_with_signal(*address):
    os.kill(os.getpid(), signal.SIGHUP)
    check(*address)
server.check_port = check_with_signal
if __name__ == "__main__":
    cli.main()
"""


def check_nothing_is_lost(store, survey, load: Load) -> None:
    # A server that stops answers all requests it has accepted. Only connections that it had not
    # accepted break, and it stores nothing that was sent over them.
    assert load.statuses.keys() <= {201, 503}
    check_stored_once(store, survey, load.acknowledged, load.max_unacknowledged)
    with store.snapshot() as snapshot:
        assert check(snapshot).mistakes == ()


@pytest.mark.long
def test_servers_restarted_in_turn_under_load_lose_nothing_and_end_with_exit_0(serve, store, small):
    ports = [int(serve("--workers", "2").rpartition(":")[2]) for _ in range(2)]
    with Load(small, ports) as load:
        load.wait_for(100)
        for _ in range(ROUNDS):
            for place, port in enumerate(ports):
                old = serve.processes[place]
                old.terminate()
                old.communicate(timeout=60)
                assert old.returncode == 0
                load.wait_for(50)
                serve("--workers", "2", port=port)
                serve.processes[place] = serve.processes.pop()
                load.wait_for(50)
    check_nothing_is_lost(store, small, load)


def test_workers_stay_if_new_ones_would_not_start(serve, store, small, settings, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(settings.secret)
    secret.chmod(0o600)
    (tmp_path / "survey.db").chmod(0o600)
    port = int(
        serve("--workers", "2", SURVEY_SECRET=None, SURVEY_SECRET_FILE=str(secret)).rpartition(":")[
            2
        ]
    )
    (server,) = serve.processes
    before = worker_pids(server.pid)
    with Load(small, [port]) as load:
        load.wait_for(20)
        secret.write_text("short")
        server.send_signal(signal.SIGHUP)
        lines = [server.stdout.readline() for _ in range(2)]
        # Other lines, such as those of a traceback, could quote a setting.
        assert [json.loads(line)["errors"] for line in lines] == [["SettingsError"], []], lines
        assert "new workers did not start" in lines[1]
        load.wait_for(50)
        assert worker_pids(server.pid) == before
        secret.write_text(settings.secret)
        server.send_signal(signal.SIGHUP)
        wait_until(lambda: not before & worker_pids(server.pid), 60)
        load.wait_for(50)
    assert load.n_broken == 0
    check_nothing_is_lost(store, small, load)


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 20])
def test_replacing_workers_under_load_loses_nothing(serve, store, small, times):
    port = int(serve("--workers", "2").rpartition(":")[2])
    (server,) = serve.processes
    with Load(small, [port]) as load:
        for _ in range(times):
            load.wait_for(50)
            before = worker_pids(server.pid)
            server.send_signal(signal.SIGHUP)
            wait_until(lambda before=before: not before & worker_pids(server.pid), 60)
            load.wait_for(50)
    assert server.poll() is None
    assert load.n_broken == 0
    check_nothing_is_lost(store, small, load)


def test_sighup_during_the_start_does_not_stop_a_server(serve, store, small, monkeypatch):
    """Keep serving when an operator restarts and reloads the server at the same time."""
    monkeypatch.setattr(conftest, "SERVE", [sys.executable, "-c", SIGHUP_AT_START, "serve"])
    port = int(serve("--workers", "1").rpartition(":")[2])
    with Load(small, [port]) as load:
        load.wait_for(20)
    check_nothing_is_lost(store, small, load)
