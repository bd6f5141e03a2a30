"""What is read when somebody asks for figures: of the store only what is released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from survey.errors import SurveyError
from survey.ops.readiness import MEGABYTE, OF_STORE, Check, free_megabytes
from survey.settings import Settings
from survey.store import Store
from survey.version import __version__

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
            surveys = [survey for survey in self._store.surveys() if not survey.is_trial]
            released = sum(self._store.released(survey.key) for survey in surveys)
        except SurveyError:
            return
        yield GaugeMetricFamily(
            "survey_reports_released", "Reports released, of all surveys there are.", released
        )
