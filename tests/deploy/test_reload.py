"""Reloading or restarting servers behind the proxy loses no report."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from contextlib import closing

import pytest

from tests.deploy.proxy import Proxy
from tests.faults.processes import worker_pids
from tests.faults.reports import check_stored_once, new_report

pytestmark = pytest.mark.web

SENDERS = 6
JSON = {"Content-Type": "application/json"}


class Senders:
    """Threads that send each report once through the proxy and count the statuses."""

    def __init__(self, proxy: Proxy, survey) -> None:
        self.statuses: Counter[int] = Counter()
        self.acknowledged: list[bytes] = []
        self.errors: list[bytes] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=[proxy, survey]) for _ in range(SENDERS)
        ]

    def __enter__(self) -> Senders:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self, proxy: Proxy, survey) -> None:
        with closing(proxy.connect()) as connection:
            while not self._stop.wait(0.02):
                body = new_report(survey)
                connection.request("POST", "/s/small/reports", body, JSON)
                response = connection.getresponse()
                text = response.read()
                self.statuses[response.status] += 1
                if response.status == 201:
                    self.acknowledged.append(body)
                else:
                    self.errors.append(text)

    def wait_for(self, count: int) -> None:
        target = self.statuses.total() + count
        deadline = time.monotonic() + 60
        while self.statuses.total() < target:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def has_new_workers(pid: int, before: set[int]) -> bool:
    """Tell whether none of the earlier workers is left."""
    workers = worker_pids(pid)
    return bool(workers) and not workers & before


def test_a_reload_of_every_server_loses_no_request(start_proxy, serve, store, small):
    wide = ("rate=50r/s", "rate=5000r/s")
    proxy = start_proxy(wide)
    with Senders(proxy, small) as senders:
        senders.wait_for(100)
        for server in serve.processes:
            before = worker_pids(server.pid)
            server.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 60
            while not has_new_workers(server.pid, before):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            senders.wait_for(100)
    assert senders.errors == []
    check_stored_once(store, small, senders.acknowledged, 0)


def test_stopping_a_server_for_an_upgrade_loses_no_request(start_proxy, serve, store, small):
    proxy = start_proxy(("rate=50r/s", "rate=5000r/s"))
    first = serve.processes[0]
    with Senders(proxy, small) as senders:
        senders.wait_for(100)
        first.terminate()
        first.communicate(timeout=60)
        senders.wait_for(200)
    assert first.returncode == 0
    assert senders.errors == []
    check_stored_once(store, small, senders.acknowledged, 0)
