"""Metrics change in steps as large as a release and contain no data of a report."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from survey.errors import ClosedError, StoreBusyError, SurveyError
from survey.ops.metrics import Metrics, Steps

STEP = 25


def new_metrics() -> tuple[Metrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return Metrics(STEP, registry), registry


def test_metrics_change_in_steps_of_the_release_minimum():
    metrics, registry = new_metrics()
    before = exposition(registry)
    for _ in range(STEP - 1):
        metrics.committed(1, 0.01, 0)
        assert exposition(registry) == before
    metrics.committed(1, 0.01, 0)
    assert registry.get_sample_value("survey_reports_accepted_total") == STEP
    assert registry.get_sample_value("survey_commit_seconds_count") == STEP
    after = exposition(registry)
    metrics.committed(STEP - 1, 0.5, 3)
    assert exposition(registry) == after
    metrics.committed(4, 0.5, 3)
    assert registry.get_sample_value("survey_reports_accepted_total") == 2 * STEP + 3
    assert registry.get_sample_value("survey_commit_queue_bucket", {"le": "2.0"}) == STEP


def exposition(registry: CollectorRegistry) -> str:
    """Return the exported metrics without their creation times."""
    lines = generate_latest(registry).decode().splitlines()
    return "\n".join(line for line in lines if "_created" not in line)


def test_refusals_change_in_steps_for_each_reason():
    metrics, registry = new_metrics()
    before = exposition(registry)
    for _ in range(STEP - 1):
        metrics.refused(ClosedError("x"))
        metrics.refused(StoreBusyError("x"))
    assert exposition(registry) == before
    metrics.refused(ClosedError("x"))
    name = "survey_reports_refused_total"
    assert registry.get_sample_value(name, {"reason": "Closed"}) == STEP
    assert registry.get_sample_value(name, {"reason": "StoreBusy"}) is None


def test_an_unknown_refusal_has_the_label_other():
    class OfThisReportError(SurveyError):
        pass

    metrics, registry = new_metrics()
    for _ in range(STEP):
        metrics.refused(OfThisReportError("secret"))
    output = exposition(registry)
    assert 'reason="Other"' in output
    assert "OfThisReport" not in output


def test_a_commit_that_stored_nothing_is_not_recorded():
    metrics, registry = new_metrics()
    for _ in range(10 * STEP):
        metrics.committed(0, 1.0, 0)
    assert registry.get_sample_value("survey_commit_seconds_count") == 0


def test_each_event_is_published_once():
    published: list[int] = []
    steps = Steps(3)
    for i in range(7):
        steps.add(1, lambda i=i: published.append(i))
    assert published == [0, 1, 2, 3, 4, 5]
