"""Metrics for Prometheus: the load, in steps as coarse as releases.

A counter that moved with every report would reveal when somebody took part. Each process
therefore holds its figures back until as many reports have arrived as a release has at least,
and then publishes all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from survey.collect.incoming_reports import IntakeMetrics
from survey.errors import STATUS, SurveyError
from survey.ops.health import MEGABYTE, STORE_CHECKS, Check, free_megabytes
from survey.settings import Settings
from survey.store import Store
from survey.version import __version__

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
REPORTS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Buckets for reports in one commit, and for reports in the queue behind it."""

UNLISTED = "Other"
REASONS = {error: error.__name__.removesuffix("Error") for error in STATUS}
"""The only labels of refusals; no label contains anything that a client sent."""

ACCEPTED = "survey_reports_accepted"
REFUSED = "survey_reports_refused"
COMMIT_SECONDS = "survey_commit_seconds"
COMMIT_REPORTS = "survey_commit_reports"
COMMIT_QUEUE = "survey_commit_queue"


class Steps:
    """Holds events back until they concern `step` reports, and then publishes all of them."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._lock = Lock()
        self._pending: list[Callable[[], None]] = []
        self._reports = 0

    def add(self, reports: int, publish: Callable[[], None]) -> None:
        """Call `publish` once enough reports, including these, have arrived."""
        with self._lock:
            self._pending.append(publish)
            self._reports += reports
            if self._reports < self._step:
                return
            events, self._pending, self._reports = self._pending, [], 0
        for event in events:
            event()


class Metrics(IntakeMetrics):
    """The metrics of one process; those of several add up in `PROMETHEUS_MULTIPROC_DIR`."""

    def __init__(self, step: int, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self._accepted = Counter(ACCEPTED, "Reports acknowledged, in steps.", registry=registry)
        self._refused = Counter(
            REFUSED, "Reports refused, in steps of each reason.", ["reason"], registry=registry
        )
        self._seconds = Histogram(
            COMMIT_SECONDS, "Time of one commit.", buckets=SECONDS, registry=registry
        )
        self._group_size = Histogram(
            COMMIT_REPORTS, "Reports of one commit.", buckets=REPORTS, registry=registry
        )
        self._queue = Histogram(
            COMMIT_QUEUE, "Reports that wait behind a commit.", buckets=REPORTS, registry=registry
        )
        self._commits = Steps(step)
        self._refusals = {name: Steps(step) for name in (*REASONS.values(), UNLISTED)}

    def committed(self, accepted: int, seconds: float, queued: int) -> None:
        """Record a commit of `accepted` reports once a step is full."""
        if not accepted:
            return

        def publish() -> None:
            self._accepted.inc(accepted)
            self._seconds.observe(seconds)
            self._group_size.observe(accepted)
            self._queue.observe(queued)

        self._commits.add(accepted, publish)

    def refused(self, error: SurveyError) -> None:
        """Record a refusal once a step of its reason is full."""
        name = REASONS.get(type(error), UNLISTED)
        # The label is created last: a reason with the value 0 would reveal its first refusal.
        self._refusals[name].add(1, lambda: self._refused.labels(name).inc())


DISK_STEP = 64
"""Free megabytes are rounded down to a multiple, so that they do not change with each report."""


class Gauges(Collector):
    """Readiness, free disk space, released reports, version and page code, read when asked."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        client_sha256: str,
        checks: Callable[[], Mapping[str, Check]],
    ) -> None:
        self._store, self._settings = store, settings
        self._client_sha256, self._checks = client_sha256, checks

    def describe(self) -> Iterable[Metric]:
        """Describe nothing: that would query the database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield all current values, except those that cannot be read."""
        yield InfoMetricFamily(
            "survey",
            "Version of the server and hash of the page code it serves.",
            value={"version": __version__, "client_sha256": self._client_sha256},
        )
        ready = GaugeMetricFamily(
            "survey_ready", "Whether it can take reports, by what that needs.", labels=["check"]
        )
        checks = self._checks()
        for name, check in checks.items():
            ready.add_metric([name], float(check.ok))
        yield ready
        if (free := free_megabytes(self._settings)) is not None:
            rounded = free // DISK_STEP * DISK_STEP * MEGABYTE
            yield GaugeMetricFamily(
                "survey_disk_free_bytes", "Free where the database is, in steps.", value=rounded
            )
        if not all(check.ok for name, check in checks.items() if name in STORE_CHECKS):
            return  # The database would make the caller wait again.
        try:
            surveys = [survey for survey in self._store.surveys() if not survey.is_test_run]
            released = sum(self._store.n_released(survey.key) for survey in surveys)
        except SurveyError:
            return
        yield GaugeMetricFamily(
            "survey_reports_released", "Reports released, of all surveys there are.", released
        )
