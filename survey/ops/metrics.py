"""Metrics for Prometheus: readiness and releases. No arriving report changes any of them.

Counters of accepted or rejected reports, even in steps, would show an observer who sends some of
them when others take part. Therefore no process counts the reports it receives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from survey.errors import SurveyError
from survey.ops.health import STORE_CHECKS, Check
from survey.store import Store
from survey.version import __version__


class Gauges(Collector):
    """Readiness, releases, version and page code, read at each request."""

    def __init__(
        self, store: Store, client_sha256: str, checks: Callable[[], Mapping[str, Check]]
    ) -> None:
        self._store, self._client_sha256, self._checks = store, client_sha256, checks

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
        if not all(check.ok for name, check in checks.items() if name in STORE_CHECKS):
            return  # The database would make the caller wait again.
        try:
            surveys = [survey for survey in self._store.surveys() if not survey.is_test_run]
            n_released = sum(self._store.n_released(survey.key) for survey in surveys)
            times = self._store.release_times()
        except SurveyError:
            return
        yield GaugeMetricFamily(
            "survey_reports_released", "Released reports of all existing surveys.", n_released
        )
        # The keeper serves every open survey at each release time, even without reports.
        served = [times.get(survey.key, 0) for survey in surveys if survey.state != "closed"]
        yield GaugeMetricFamily(
            "survey_release_time_seconds",
            "Latest release time for which all open surveys were processed, 0 if none.",
            min(filter(None, served), default=0),
        )
