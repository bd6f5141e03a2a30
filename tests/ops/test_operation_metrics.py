"""Metrics of disks, backups, server errors and workers show failures, but no single report."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from survey import server
from survey.ops import metrics
from survey.ops.metrics import DISK_STEP, ErrorTime, Operation, WorkerExits
from tests.store.reports import NOON

MEBIBYTE = 1 << 20


@pytest.fixture
def registry(settings, tmp_path):
    """Return the metrics of an instance whose backups are in a directory."""
    registry = CollectorRegistry()
    backups = tmp_path / "backups"
    backups.mkdir()
    settings = replace(settings, backups=str(backups))
    operation = Operation(settings, ErrorTime(), WorkerExits(), {}, clock=lambda: NOON)
    registry.register(operation)
    return registry


def write_backup(directory, day: int, size: int, *, is_complete: bool = True) -> None:
    file = directory / f"survey-2026-11-{day:02}T0200Z.backup"
    file.write_bytes(b"x" * size)
    os.utime(file, (NOON + day * 86_400, NOON + day * 86_400))
    if is_complete:
        file.with_name(f"{file.name}.sha256").touch()


def test_the_newest_complete_backup_has_its_time_and_a_size_that_hides_pending_reports(
    registry, tmp_path
):
    backups = tmp_path / "backups"
    value = registry.get_sample_value
    assert (value("survey_backup_time_seconds"), value("survey_backup_bytes")) == (0, 0)
    write_backup(backups, 1, 3 * MEBIBYTE)
    assert value("survey_backup_time_seconds") == NOON + 86_400
    assert value("survey_backup_bytes") == 4 * MEBIBYTE
    # A thousand pending reports more or less, at any small size, give the same figure.
    for day, size in enumerate((1, 40_000, 240_000, MEBIBYTE), 2):
        write_backup(backups, day, size)
        assert value("survey_backup_time_seconds") == NOON + day * 86_400
        assert value("survey_backup_bytes") == MEBIBYTE
    write_backup(backups, 6, 9 * MEBIBYTE, is_complete=False)
    assert value("survey_backup_time_seconds") == NOON + 5 * 86_400
    write_backup(backups, 7, 0)
    assert value("survey_backup_bytes") == 0
    shutil.rmtree(backups)
    assert value("survey_backup_time_seconds") == 0


@pytest.mark.security
def test_free_space_is_stated_in_steps_of_many_reports(registry, monkeypatch):
    free = 7 * DISK_STEP
    monkeypatch.setattr(metrics.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    for used in (0, 1, 200 * 1_000, DISK_STEP - 1):
        free = 8 * DISK_STEP - 1 - used
        for disk in ("database", "backups"):
            value = registry.get_sample_value("survey_disk_free_bytes", {"disk": disk})
            assert value == 7 * DISK_STEP
    free -= 1
    assert registry.get_sample_value("survey_disk_free_bytes", {"disk": "database"}) < value


@pytest.mark.security
def test_metrics_contain_the_minute_of_the_last_error_but_no_count(monkeypatch):
    errors, statuses = ErrorTime(), []
    monkeypatch.setattr(metrics.time, "time", lambda: NOON + 61.5)

    def answer(status: str) -> None:
        def app(environ, start_response):
            start_response(status, [])
            return [b""]

        assert errors.watch(app)({}, lambda status, _: statuses.append(status)) == [b""]

    for status in ("200 OK", "404 Not Found", "429 Too Many Requests"):
        answer(status)
    assert errors.seconds == 0
    for status in ("500 Internal Server Error", "503 Service Unavailable"):
        answer(status)
        assert errors.seconds == NOON + 60
    assert len(statuses) == 5


def test_a_keeper_that_ends_with_an_error_is_counted_and_runs_again(caplog, monkeypatch, settings):
    monkeypatch.setattr(server, "RESTART_SECONDS", 0)
    ends, stop = Counter(keeper=0), threading.Event()

    def run(stop: threading.Event) -> None:
        if ends["keeper"] < 2:
            raise OSError("the disk is gone")
        stop.set()

    server.run_again(run, ends, stop)
    registry = CollectorRegistry()
    registry.register(Operation(settings, ErrorTime(), WorkerExits(), ends))
    assert registry.get_sample_value("survey_component_exits_total", {"component": "keeper"}) == 2
    assert [record.message for record in caplog.records] == [
        "the keeper ended unexpectedly; restarting it"
    ] * 2


def test_only_unexpected_ends_of_workers_are_counted():
    exits = WorkerExits()
    for text in ("Stopping worker-1", "Unexpected exit from worker-2", "Respawning worker-2"):
        record = logging.LogRecord("_granian", logging.ERROR, "x.py", 1, text, (), None)
        assert exits.filter(record)
    assert exits.n == 1
