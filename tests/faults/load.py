"""Many devices at once that send as the shipped client does: again, until they are acknowledged."""

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
from tests.faults.reports import new_body, send

CONNECTIONS = 8
PAUSE_SECONDS = 0.05
"""Before a report is sent again; the client waits longer."""


class Load:
    """Devices that send to servers in turn while the context lasts.

    `acknowledged` are the reports that got their 201; `statuses` counts the answers; `broken`
    how often a connection gave none. A report that got no 201 is sent again, to the next server.
    """

    def __init__(self, survey: PublishedSurvey, ports: Sequence[int]) -> None:
        self.survey = survey
        self.ports = ports
        self.acknowledged: list[bytes] = []
        self.statuses: Counter[int] = Counter()
        self.broken = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._device, args=[number]) for number in range(CONNECTIONS)
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
    def unsure(self) -> int:
        """At most so many reports are stored whose answer nobody heard."""
        return CONNECTIONS

    def wait_for(self, more: int, seconds: float = 60) -> None:
        """Until so many more reports are acknowledged."""
        until = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= until, seconds)

    def _device(self, turn: int) -> None:
        body = new_body(self.survey)
        while not self._stop.is_set():
            turn += 1
            port = self.ports[turn % len(self.ports)]
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                body = self._over(connection, body)
            time.sleep(PAUSE_SECONDS)

    def _over(self, connection: http.client.HTTPConnection, body: bytes) -> bytes:
        """Send this report and others after it until one is refused or not answered: that one."""
        while not self._stop.is_set():
            try:
                status = send(connection, self.survey, body).status
            except (OSError, http.client.HTTPException):
                self.broken += 1
                break
            self.statuses[status] += 1
            if status != 201:
                break
            self.acknowledged.append(body)
            body = new_body(self.survey)
        return body
