"""Reloading or restarting servers behind the proxy loses no report."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import closing

import pytest

from tests.benchmarks import reload
from tests.deploy.proxy import Proxy
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


@pytest.mark.parametrize(
    "case",
    [
        reload.Case(servers=1, workers=1, reloads=2),
        pytest.param(reload.Case(servers=1, workers=2, reloads=20), marks=pytest.mark.long),
        pytest.param(reload.Case(servers=2, workers=1, reloads=20), marks=pytest.mark.long),
    ],
    ids=lambda case: case.name,
)
def test_a_reload_leaves_no_request_unanswered_even_if_nginx_may_not_repeat_it(case):
    tally = reload.measure(case, seconds=0.5)
    assert len(tally.acknowledged) > 100
    assert tally.unanswered == []
    assert tally.n_lost == tally.n_doubled == 0


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
