"""Concurrent devices that, like the client, resend a report until the server acknowledges it."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from types import TracebackType

from survey.store import PublishedSurvey
from tests.conftest import wait_until
from tests.faults.reports import new_report, send

CONNECTIONS = 8
PAUSE_SECONDS = 0.05
"""Pause before a device resends a report; the client waits longer."""


class Load:
    """Devices that send reports to the servers in turn within the context.

    `acknowledged` lists the reports with status 201, `statuses` counts the responses, and
    `n_broken` counts connections without a response. A device resends any other report to the next
    server.
    """

    def __init__(self, survey: PublishedSurvey, ports: Sequence[int]) -> None:
        self.survey = survey
        self.ports = ports
        self.acknowledged: list[bytes] = []
        self.statuses: Counter[int] = Counter()
        self.n_broken = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run_device, args=[number])
            for number in range(CONNECTIONS)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def max_unacknowledged(self) -> int:
        """Return the maximum number of stored reports whose response was lost."""
        return CONNECTIONS

    def wait_for(self, n: int, seconds: float = 60) -> None:
        """Wait until the servers acknowledge n further reports."""
        target = len(self.acknowledged) + n
        wait_until(lambda: len(self.acknowledged) >= target, seconds)

    def _run_device(self, turn: int) -> None:
        body = new_report(self.survey)
        while not self._stop.is_set():
            turn += 1
            port = self.ports[turn % len(self.ports)]
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                body = self._send_until_failure(connection, body)
            time.sleep(PAUSE_SECONDS)

    def _send_until_failure(self, connection: http.client.HTTPConnection, body: bytes) -> bytes:
        """Send reports, starting with `body`; return the first report without status 201."""
        while not self._stop.is_set():
            try:
                status = send(connection, self.survey, body).status
            except (OSError, http.client.HTTPException):
                self.n_broken += 1
                break
            self.statuses[status] += 1
            if status != 201:
                break
            self.acknowledged.append(body)
            body = new_report(self.survey)
        return body
