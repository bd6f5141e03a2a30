"""Servers are reloaded and restarted behind the proxy, and nobody who sends a report notices."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from contextlib import closing

import pytest

from tests.deploy.proxy import Proxy
from tests.faults.processes import workers_of
from tests.faults.reports import check_each_is_there_once, new_body

pytestmark = pytest.mark.web

SENDERS = 6
JSON = {"Content-Type": "application/json"}


class Senders:
    """Devices behind the proxy that send each report once, and count what they hear."""

    def __init__(self, proxy: Proxy, survey) -> None:
        self.statuses: Counter[int] = Counter()
        self.acknowledged: list[bytes] = []
        self.refusals: list[bytes] = []
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
                body = new_body(survey)
                connection.request("POST", "/s/small/reports", body, JSON)
                response = connection.getresponse()
                said = response.read()
                self.statuses[response.status] += 1
                if response.status == 201:
                    self.acknowledged.append(body)
                else:
                    self.refusals.append(said)

    def wait_for(self, more: int) -> None:
        wanted = self.statuses.total() + more
        deadline = time.monotonic() + 60
        while self.statuses.total() < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def renewed(pid: int, before: set[int]) -> bool:
    now = workers_of(pid)
    return bool(now) and not now & before


def test_a_reload_of_every_server_loses_no_request(behind, serve, store, small):
    wide = ("rate=50r/s", "rate=5000r/s")
    proxy = behind(wide)
    with Senders(proxy, small) as senders:
        senders.wait_for(100)
        for server in serve.processes:
            before = workers_of(server.pid)
            server.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 60
            while not renewed(server.pid, before):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            senders.wait_for(100)
    assert senders.refusals == []
    check_each_is_there_once(store, small, senders.acknowledged, 0)


def test_a_server_that_is_stopped_for_an_upgrade_costs_no_request(behind, serve, store, small):
    proxy = behind(("rate=50r/s", "rate=5000r/s"))
    first = serve.processes[0]
    with Senders(proxy, small) as senders:
        senders.wait_for(100)
        first.terminate()
        first.communicate(timeout=60)
        senders.wait_for(200)
    assert first.returncode == 0
    assert senders.refusals == []
    check_each_is_there_once(store, small, senders.acknowledged, 0)
