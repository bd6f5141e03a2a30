"""Figures move in steps as coarse as releases, and name nothing that was sent."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from survey.errors import ClosedError, StoreBusyError, SurveyError
from survey.ops.metrics import Metrics, Steps

STEP = 25


def metrics() -> tuple[Metrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return Metrics(STEP, registry), registry


def test_metrics_change_only_after_as_many_reports_as_a_release_has():
    counted, registry = metrics()
    before = registered(registry)
    for _ in range(STEP - 1):
        counted.committed(1, 0.01, 0)
        assert registered(registry) == before
    counted.committed(1, 0.01, 0)
    assert registry.get_sample_value("survey_reports_accepted_total") == STEP
    assert registry.get_sample_value("survey_commit_seconds_count") == STEP
    after = registered(registry)
    counted.committed(STEP - 1, 0.5, 3)
    assert registered(registry) == after
    counted.committed(4, 0.5, 3)
    assert registry.get_sample_value("survey_reports_accepted_total") == 2 * STEP + 3
    assert registry.get_sample_value("survey_commit_queue_bucket", {"le": "2.0"}) == STEP


def registered(registry: CollectorRegistry) -> str:
    """All that is told, but for the moments at which its counting began."""
    lines = generate_latest(registry).decode().splitlines()
    return "\n".join(line for line in lines if "_created" not in line)


def test_refusals_change_in_steps_for_each_reason():
    counted, registry = metrics()
    before = registered(registry)
    for _ in range(STEP - 1):
        counted.refused(ClosedError("x"))
        counted.refused(StoreBusyError("x"))
    assert registered(registry) == before
    counted.refused(ClosedError("x"))
    name = "survey_reports_refused_total"
    assert registry.get_sample_value(name, {"reason": "Closed"}) == STEP
    assert registry.get_sample_value(name, {"reason": "StoreBusy"}) is None


def test_an_unknown_refusal_has_no_label_of_its_own():
    class OfThisReportError(SurveyError):
        pass

    counted, registry = metrics()
    for _ in range(STEP):
        counted.refused(OfThisReportError("secret"))
    said = registered(registry)
    assert 'reason="Other"' in said
    assert "OfThisReport" not in said


def test_a_commit_that_stored_nothing_is_not_recorded():
    counted, registry = metrics()
    for _ in range(10 * STEP):
        counted.committed(0, 1.0, 0)
    assert registry.get_sample_value("survey_commit_seconds_count") == 0


def test_each_event_is_published_once():
    told: list[int] = []
    steps = Steps(3)
    for i in range(7):
        steps.add(1, lambda i=i: told.append(i))
    assert told == [0, 1, 2, 3, 4, 5]
