"""Metrics of the machine and the processes: disks, backups, server errors and workers.

Their values are coarse on purpose. The exact free space of a disk, the exact size of a backup with
its pending reports, or a count of failed requests would show when respondents take part.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from survey.ops.health import nearest_folder
from survey.settings import Settings
from survey.store import database_file

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

DISK_STEP = 100_000_000
"""Rounding step of the free space in bytes.

It is the size of many thousands of reports, and half the default `SURVEY_DISK_MINIMUM`.
"""

MIN_BACKUP_SIZE = 1 << 20
"""Smallest size of a backup in the metrics, in bytes; larger ones are powers of two."""

MINUTE = 60


class ErrorTime:
    """The last minute in which any worker answered with a server error, shared by all processes.

    The log contains this minute too. A count would show how many respondents try to send reports
    during a failure.
    """

    def __init__(self) -> None:
        # Without a lock: a killed worker would never release it, and all others would wait.
        self._time = get_context("spawn").RawValue("q", 0)

    @property
    def seconds(self) -> int:
        """The start of the minute as Unix time, 0 if there was no error."""
        return int(self._time.value)

    def record(self, now: float) -> None:
        """Record an error."""
        self._time.value = int(now) // MINUTE * MINUTE

    def watch(self, app: WSGIApplication) -> WSGIApplication:
        """Return an application that records the errors of `app`."""

        def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            def start(status: str, *rest: Any) -> Any:
                if int(status[:3]) >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    self.record(time.time())
                return start_response(status, *rest)

            return app(environ, start)

        return answer


class WorkerExits(logging.Filter):
    """The number of workers that ended unexpectedly, counted in the log of granian.

    The processes that start workers share it with the server.
    """

    def __init__(self) -> None:
        super().__init__()
        self._n = get_context("spawn").RawValue("q", 0)

    @property
    def n(self) -> int:
        """The number of workers that ended unexpectedly since the server started."""
        return int(self._n.value)

    def filter(self, record: logging.LogRecord) -> bool:
        """Count messages about workers that ended unexpectedly; pass every message on."""
        self._n.value += bool(re.match(r"Unexpected exit from worker-\d+", record.getMessage()))
        return True


@dataclass(frozen=True)
class BackupFile:
    """A backup file: its modification time as Unix time, and its size in bytes."""

    time: float
    size: int

    @classmethod
    def newest(cls, directory: Path) -> BackupFile:
        """Return the newest complete backup; its time and size are 0 if none can be read."""
        try:
            # backup.sh writes the checksum last.
            names = [path.with_suffix("") for path in directory.glob("survey-*.backup.sha256")]
            files = [path.stat() for path in names if path.exists()]
        except OSError:
            return cls(0.0, 0)
        return max(
            (cls(file.st_mtime, file.st_size) for file in files),
            key=lambda backup: backup.time,
            default=cls(0.0, 0),
        )

    @property
    def size_class(self) -> int:
        """The size, rounded up to a power of two and to `MIN_BACKUP_SIZE`; 0 if it is empty."""
        return max(MIN_BACKUP_SIZE, 1 << (self.size - 1).bit_length()) if self.size else 0


class Operation(Collector):
    """Metrics of disks, backups, server errors, workers and other parts, read at each request.

    `component_exits` counts the unexpected exits of each other component.
    """

    def __init__(
        self,
        settings: Settings,
        errors: ErrorTime,
        exits: WorkerExits,
        component_exits: Mapping[str, int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._errors = settings, errors
        self._exits, self._component_exits = exits, component_exits
        self._start = clock()

    def describe(self) -> Iterable[Metric]:
        """Return no descriptions, because collecting them would read the disks."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield all current values, except those that cannot be read."""
        yield GaugeMetricFamily(
            "survey_start_time_seconds", "Time at which the server started.", self._start
        )
        yield GaugeMetricFamily(
            "survey_error_time_seconds",
            "Last minute in which the server answered a request with a server error (status "
            "5xx), 0 if none since it started. Such requests are not counted: a count would show "
            "how many respondents try to send during a failure.",
            self._errors.seconds,
        )
        yield CounterMetricFamily(
            "survey_worker_exits",
            "Workers that ended unexpectedly and were replaced.",
            self._exits.n,
        )
        component_exits = CounterMetricFamily(
            "survey_component_exits",
            "Number of times that a `component` of the server other than a worker exited "
            "unexpectedly and was restarted: `research`, the process that serves researchers' "
            "pages, or `keeper`, if it runs inside the server.",
            labels=["component"],
        )
        for component, n in self._component_exits.items():
            component_exits.add_metric([component], n)
        yield component_exits
        free = GaugeMetricFamily(
            "survey_disk_free_bytes",
            f"Free space of the `disk` of an SQLite database or of the backups, rounded down to "
            f"{DISK_STEP // 1_000_000} megabytes, so that it does not show single reports.",
            labels=["disk"],
        )
        for name, n_bytes in self._free_bytes():
            free.add_metric([name], n_bytes // DISK_STEP * DISK_STEP)
        yield free
        if self._settings.backups:
            yield from self._backup()

    def _free_bytes(self) -> Iterator[tuple[str, int]]:
        """Yield the free space of each disk that can be read."""
        file, backups = database_file(self._settings.database), self._settings.backups
        paths: Mapping[str, Path | None] = {
            "database": file,
            "backups": Path(backups) / "x" if backups else None,
        }
        for name, path in paths.items():
            if path is not None:
                try:
                    yield name, shutil.disk_usage(nearest_folder(path)).free
                except OSError:
                    continue

    def _backup(self) -> Iterator[Metric]:
        backup = BackupFile.newest(Path(self._settings.backups))
        yield GaugeMetricFamily(
            "survey_backup_time_seconds",
            "Time of the newest complete backup in `SURVEY_BACKUPS`, 0 if there is none.",
            backup.time,
        )
        yield GaugeMetricFamily(
            "survey_backup_bytes",
            "Size of this backup, rounded up to a power of two and to one mebibyte, because the "
            "exact size would show how many reports are pending.",
            backup.size_class,
        )
