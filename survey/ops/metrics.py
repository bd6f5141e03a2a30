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

from survey.errors import STATUS, SurveyError
from survey.ops.health import MEGABYTE, OF_STORE, Check, free_megabytes
from survey.settings import Settings
from survey.store import Store
from survey.version import __version__

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
REPORTS = (1, 2, 4, 8, 16, 32, 64, 128)
"""The most reports of one commit is the last; so many may wait behind it as well."""

OTHER = "Other"
REASONS = {error: error.__name__.removesuffix("Error") for error in STATUS}
"""Names of refusals, all that a label can be: none is made of what was sent."""

ACCEPTED = "survey_reports_accepted"
REFUSED = "survey_reports_refused"
COMMIT_SECONDS = "survey_commit_seconds"
COMMIT_REPORTS = "survey_commit_reports"
COMMIT_QUEUE = "survey_commit_queue"


class Steps:
    """Holds back what happens until it is of `step` reports together, then tells all of it."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._lock = Lock()
        self._held: list[Callable[[], None]] = []
        self._reports = 0

    def hold(self, reports: int, tell: Callable[[], None]) -> None:
        """Keep `tell` until enough reports came, these among them."""
        with self._lock:
            self._held.append(tell)
            self._reports += reports
            if self._reports < self._step:
                return
            told, self._held, self._reports = self._held, [], 0
        for each in told:
            each()


class Metrics:
    """The figures of one process; several processes add up in `PROMETHEUS_MULTIPROC_DIR`."""

    def __init__(self, step: int, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self._accepted = Counter(ACCEPTED, "Reports acknowledged, in steps.", registry=registry)
        self._refused = Counter(
            REFUSED, "Reports refused, in steps of each reason.", ["reason"], registry=registry
        )
        self._seconds = Histogram(
            COMMIT_SECONDS, "Time of one commit.", buckets=SECONDS, registry=registry
        )
        self._together = Histogram(
            COMMIT_REPORTS, "Reports of one commit.", buckets=REPORTS, registry=registry
        )
        self._left = Histogram(
            COMMIT_QUEUE, "Reports that wait behind a commit.", buckets=REPORTS, registry=registry
        )
        self._commits = Steps(step)
        self._refusals = {name: Steps(step) for name in (*REASONS.values(), OTHER)}

    def committed(self, accepted: int, seconds: float, left: int) -> None:
        """Hold back a commit of `accepted` reports until a step is full."""
        if not accepted:
            return

        def tell() -> None:
            self._accepted.inc(accepted)
            self._seconds.observe(seconds)
            self._together.observe(accepted)
            self._left.observe(left)

        self._commits.hold(accepted, tell)

    def refused(self, error: SurveyError) -> None:
        """Hold back a refusal until a step of its reason is full."""
        name = REASONS.get(type(error), OTHER)
        # Named only when it is told: a reason that stands at 0 would tell of its first refusal.
        self._refusals[name].hold(1, lambda: self._refused.labels(name).inc())


DISK_STEP = 64
"""Free megabytes are told in steps of so many: reports that arrive take less, for long."""


class Gauges(Collector):
    """Readiness, free disk, reports released so far, version and page code of a server."""

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
        """Nothing: describing would ask the database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Everything as it is now, what cannot be told left out."""
        yield InfoMetricFamily(
            "survey",
            "Version of the server and hash of the page code it serves.",
            value={"version": __version__, "client_sha256": self._client_sha256},
        )
        ready = GaugeMetricFamily(
            "survey_ready", "Whether it can take reports, by what that needs.", labels=["check"]
        )
        found = self._checks()
        for name, check in found.items():
            ready.add_metric([name], float(check.ok))
        yield ready
        if (free := free_megabytes(self._settings)) is not None:
            told = free // DISK_STEP * DISK_STEP * MEGABYTE
            yield GaugeMetricFamily(
                "survey_disk_free_bytes", "Free where the database is, in steps.", value=told
            )
        if not all(check.ok for name, check in found.items() if name in OF_STORE):
            return  # It would be waited for once more.
        try:
            surveys = [survey for survey in self._store.surveys() if not survey.is_test_run]
            released = sum(self._store.n_released(survey.key) for survey in surveys)
        except SurveyError:
            return
        yield GaugeMetricFamily(
            "survey_reports_released", "Reports released, of all surveys there are.", released
        )
