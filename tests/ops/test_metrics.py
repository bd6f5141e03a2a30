"""Metrics state readiness and releases; no arriving report changes them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.utils import floatToGoString

from survey.errors import StoreBusyError
from survey.ops.health import OK, Check, Gauges
from tests.store.reports import NOON, add, keeper_at, random_reports


def exposition(store, **checks: Check) -> str:
    registry = CollectorRegistry()
    registry.register(Gauges(store, "0" * 64, lambda: checks))
    return generate_latest(registry).decode()


@pytest.mark.security
def test_metrics_change_at_release_times_only(store, settings, small):
    keeper_at(store, settings, 1).work()
    before = exposition(store)
    assert f"survey_release_time_seconds {floatToGoString(NOON + 3600)}" in before
    for n in (1, 24, 100):
        add(store, small, random_reports(n))
        keeper_at(store, settings, 1.9).work()
        assert exposition(store) == before
    keeper_at(store, settings, 2).work()
    after = exposition(store)
    assert "survey_reports_released 100.0" in after
    assert f"survey_release_time_seconds {floatToGoString(NOON + 7200)}" in after


def test_the_release_time_stands_still_while_no_keeper_runs(store, settings, small):
    """A survey that was published since has not been served: it does not count yet."""
    assert "survey_release_time_seconds 0.0" in exposition(store)
    keeper_at(store, settings, 1).work()
    assert exposition(store) == exposition(store)
    assert f"survey_release_time_seconds {floatToGoString(NOON + 3600)}" in exposition(store)


def test_a_database_that_fails_leaves_the_other_metrics(store, monkeypatch):
    def fail():
        raise StoreBusyError("broken")

    monkeypatch.setattr(store, "surveys", fail)
    assert 'survey_ready{check="disk"} 1.0' in exposition(store, disk=OK)
    assert "survey_reports_released" not in exposition(store, disk=OK)
