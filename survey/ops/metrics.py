"""Figures for Prometheus: of the load, in steps as coarse as releases.

A count that moved with every report would tell who watches it when somebody took part, which the
dashboard and all files are careful not to. So what happens is held back in its process until as
many reports have come as a release has at least; then all of it is told at once.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Histogram

from survey.errors import STATUS, SurveyError

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
