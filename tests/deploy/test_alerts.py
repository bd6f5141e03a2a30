"""Each failure raises its alert, according to the metrics of a real instance."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from survey.ops import health, metrics
from survey.ops.metrics import ErrorTime, Operation, WorkerExits
from tests.conftest import ROOT, free_port, wait_until
from tests.faults.processes import worker_pids
from tests.faults.reports import new_report
from tests.store.databases import DirectAccess
from tests.store.reports import NOON, add, keeper_at, random_reports, report
from tests.store.test_damage import damage
from tests.store.test_keeper import publish_copy
from tests.test_research_process import research_pids

DEPLOY = ROOT / "deploy"
RULES = {
    rule["alert"]: rule
    for rule in yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
}
DASHBOARD = json.loads((DEPLOY / "dashboard.json").read_text(encoding="utf-8"))
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
PLACE = {"job": "survey", "instance": "127.0.0.1:9464"}
HOUR = 60
"""Minutes in an hour."""

GIGABYTE = 1_000_000_000


class Instance:
    """The metrics of an instance whose clock, like that of promtool, starts at 0."""

    def __init__(self, store, settings) -> None:
        self.store, self.settings = store, settings
        self.errors, self.exits, self.start = ErrorTime(), WorkerExits(), 0.0
        self.ends = {"research": 0, "keeper": 0}
        self.now = NOON
        """The current time for the readiness checks."""

    def scrape(self) -> str:
        """Return the metrics as Prometheus reads them."""
        checks = {name: check(self.store) for name, check in health.STORE_CHECKS.items()}
        checks["disk"] = health._disk(self.settings)
        checks["releases"] = health._releases(self.store, self.settings)
        registry = CollectorRegistry()
        registry.register(health.Gauges(self.store, "0" * 64, lambda: checks))
        registry.register(
            Operation(self.settings, self.errors, self.exits, self.ends, clock=lambda: self.start)
        )
        return generate_latest(registry).decode()

    def write_backup(self, minute: int, size: int) -> None:
        file = Path(self.settings.backups) / f"survey-{minute:06}.backup"
        file.write_bytes(bytes(size))
        os.utime(file, (60 * minute, 60 * minute))
        file.with_name(f"{file.name}.sha256").touch()


@pytest.fixture
def instance(store, settings, tmp_path, monkeypatch) -> Instance:
    """Return a healthy instance with a backup at minute 0 and 20 gigabytes of free disk."""
    backups = tmp_path / "backups"
    backups.mkdir()
    instance = Instance(store, replace(settings, backups=str(backups)))
    monkeypatch.setattr(health, "time", SimpleNamespace(time=lambda: instance.now))
    instance.write_backup(0, 3 << 20)
    set_free(monkeypatch, 20 * GIGABYTE)
    return instance


def set_free(monkeypatch, n_bytes: float) -> None:
    monkeypatch.setattr(metrics.shutil, "disk_usage", lambda _: SimpleNamespace(free=int(n_bytes)))


Scrapes = Sequence[tuple[str | None, int]]
"""Metrics, None if the server does not answer, and for how many minutes they stay the same."""


def samples(text: str | None) -> Mapping[str, float]:
    """Return the values of all series of a scrape, with the labels that Prometheus adds."""
    values = {}
    for family in text_string_to_metric_families(text or ""):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                values[series(sample.name, {**sample.labels, **PLACE})] = sample.value
    return {**values, series("up", PLACE): float(text is not None)}


def series(name: str, labels: Mapping[str, str]) -> str:
    return name + json.dumps(labels).replace('": "', '="').replace(', "', ", ").replace('{"', "{")


def firing(scrapes: Scrapes, directory: Path, step: int = 1) -> set[str]:
    """Return the alerts that Prometheus raises after these scrapes, one in every `step` minutes."""
    read = [(samples(text), minutes) for text, minutes in scrapes]
    names = {name for values, _ in read for name in values}
    inputs = []
    for name in sorted(names):
        runs = [(values.get(name), minutes // step - 1) for values, minutes in read]
        parts = [f"_x{n + 1}" if value is None else f"{value!r}+0x{n}" for value, n in runs]
        inputs.append({"series": name, "values": " ".join(parts)})
    minutes = sum(minutes for _, minutes in scrapes) - step
    # Each alert is expected not to fire; promtool lists those that do.
    expected = [{"eval_time": f"{minutes}m", "alertname": alert} for alert in RULES]
    content = {
        "rule_files": [str(DEPLOY / "alerts.yaml")],
        "evaluation_interval": f"{step}m",
        "tests": [{"interval": f"{step}m", "input_series": inputs, "alert_rule_test": expected}],
    }
    file = directory / "case.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    output = promtool("test", "rules", str(file))
    assert "parse" not in output, output
    return set(re.findall(r"alertname: (\w+), time", output))


def promtool(*arguments: str) -> str:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool on the path (apt-get install prometheus)")
    process = subprocess.run([program, *arguments], capture_output=True, text=True)
    return process.stdout + process.stderr


def names_in(expressions: Iterable[str]) -> set[str]:
    return set(re.findall(r"\bsurvey_\w+", " ".join(expressions)))


def test_rules_and_dashboard_name_metrics_that_exist_and_the_dashboard_shows_all(instance, small):
    families = list(text_string_to_metric_families(instance.scrape()))
    names = {family.name + "_total" * (family.type == "counter") for family in families}
    used = names_in(rule["expr"] for rule in RULES.values())
    assert len(used) >= 8
    assert used <= names
    assert names == names_in(EXPRESSIONS)


def test_each_alert_links_to_the_first_section_of_the_runbook_which_says_what_to_do():
    runbook = (DEPLOY / "README.md").read_text(encoding="utf-8")
    title, section = re.findall(r"^## (.*)\n((?:(?!## ).*\n)+)", runbook, re.M)[0]
    anchor = title.lower().replace(" ", "-")
    for alert, rule in RULES.items():
        assert rule["annotations"]["runbook_url"].endswith(f"/deploy/README.md#{anchor}")
        (row,) = [line for line in section.splitlines() if line.startswith(f"| `{alert}`")]
        assert all(len(cell.split()) >= 3 for cell in row.split("|")[2:4]), alert


@pytest.mark.web
def test_prometheus_accepts_the_rules_and_the_expressions_of_the_dashboard(tmp_path):
    rules = [
        {"record": f"panel:{n}", "expr": expression.replace("$instance", ".*")}
        for n, expression in enumerate(EXPRESSIONS)
    ]
    file = tmp_path / "dashboard.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))
    assert f"{len(RULES)} rules found" in promtool("check", "rules", str(DEPLOY / "alerts.yaml"))


@pytest.mark.web
def test_failures_of_the_server_raise_their_alerts(instance, small, tmp_path, monkeypatch, client):
    healthy = instance.scrape()
    assert firing([(healthy, 26 * HOUR)], tmp_path, step=5) == set()
    assert firing([(healthy, HOUR), (None, 5)], tmp_path) == {"SurveyDown"}
    # A reload of Prometheus or of the server alone must not raise an alert.
    assert firing([(healthy, HOUR), (None, 1), (healthy, 5)], tmp_path) == set()
    instance.settings = replace(instance.settings, disk_minimum=1_000_000)
    not_ready = instance.scrape()
    assert firing([(healthy, HOUR), (not_ready, 5)], tmp_path) == {
        "SurveyNotReady",
        "SurveySometimesNotReady",
    }
    # One of four workers hangs, so one check in four fails.
    hanging = [(healthy, 3), (not_ready, 1)] * 4
    assert firing([(healthy, HOUR), *hanging], tmp_path) == {"SurveySometimesNotReady"}
    assert firing([(healthy, HOUR), *hanging[:4], (healthy, 7)], tmp_path) == set()
    instance.settings = replace(instance.settings, disk_minimum=200)
    starts = [(healthy, HOUR)]
    for minute in range(60, 75, 5):
        instance.start = 60.0 * minute
        starts.append((instance.scrape(), 5))
    assert firing(starts[:3], tmp_path) == set()
    assert firing(starts, tmp_path) == {"SurveyRestarts"}
    instance.start = 0.0
    instance.ends["keeper"] += 1
    assert firing([(healthy, HOUR), (instance.scrape(), 5)], tmp_path) == {"SurveyComponentExited"}
    instance.ends["keeper"] -= 1
    client.application.wsgi_app = instance.errors.watch(client.application.wsgi_app)
    Path(instance.settings.database.removeprefix("sqlite:///")).rename(tmp_path / "moved.db")
    errors = [(healthy, HOUR)]
    for minute in (60, 61, 62):
        monkeypatch.setattr(metrics.time, "time", lambda minute=minute: 60.0 * minute)
        reply = client.post(
            "/s/small/reports", data=new_report(small), content_type="application/json"
        )
        assert reply.status_code == 503
        failing = with_value(healthy, "survey_error_time_seconds", instance.errors.seconds)
        errors.append((failing, 1))
    assert firing(errors[:3], tmp_path) == set()
    assert firing(errors, tmp_path) == {"SurveyErrors"}


def with_value(text: str, name: str, value: float) -> str:
    """Return a scrape in which a metric has another value."""
    changed, n = re.subn(rf"^{name} .*$", f"{name} {value}", text, flags=re.M)
    assert n == 1
    return changed


@pytest.mark.web
def test_failures_of_releases_raise_their_alerts(
    instance, store, settings, small, tmp_path, monkeypatch
):
    # These reports are damaged below.
    add(store, small, [report(1)])
    healthy = instance.scrape()
    keeper = keeper_at(store, settings, 1)
    publish_copy(store, "zzz")
    sizes = store.pending_sizes
    monkeypatch.setattr(
        store, "pending_sizes", lambda key: 1 // 0 if key == small.key else sizes(key)
    )
    with pytest.raises(ZeroDivisionError):
        keeper.work()
    failing = instance.scrape()
    assert firing([(healthy, HOUR), (failing, 15)], tmp_path) == {"SurveyReleaseFails"}
    instance.now = NOON + 4 * 3600
    both = firing([(healthy, HOUR), (instance.scrape(), 15)], tmp_path)
    assert both == {"SurveyReleaseFails", "SurveyReleasesLate"}
    instance.now = NOON
    monkeypatch.setattr(store, "pending_sizes", sizes)
    keeper.work()
    in_time = instance.scrape()
    assert firing([(healthy, HOUR), (in_time, 15)], tmp_path) == set()
    instance.now = NOON + 4 * 3600
    late = instance.scrape()
    assert firing([(healthy, HOUR), (late, 15)], tmp_path) == {"SurveyReleasesLate"}
    add(store, small, random_reports(1))
    damage(DirectAccess(settings.database), small, "box")
    keeper_at(store, settings, 2).work()
    damaged = instance.scrape()
    raised = firing([(healthy, HOUR), (damaged, 5)], tmp_path)
    assert raised == {"SurveyDamagedRows"}
    a_day_later = firing([(healthy, HOUR), (damaged, 26 * HOUR)], tmp_path, step=15)
    assert "SurveyDamagedRows" not in a_day_later
    add(store, small, [report(2)])
    damage(DirectAccess(settings.database), small, "box")
    keeper_at(store, settings, 3).work()
    again = [(healthy, HOUR), (damaged, 26 * HOUR), (instance.scrape(), HOUR)]
    assert "SurveyDamagedRows" in firing(again, tmp_path, step=15)


@pytest.mark.web
def test_failures_of_backups_and_disks_raise_their_alerts(instance, tmp_path, monkeypatch):
    healthy = instance.scrape()
    assert firing([(healthy, 28 * HOUR)], tmp_path, step=5) == {"SurveyBackupOld"}
    backups, instance.settings = instance.settings, replace(instance.settings, backups="")
    assert firing([(instance.scrape(), HOUR)], tmp_path, step=5) == {"SurveyBackupOld"}
    instance.settings = backups
    instance.write_backup(24 * HOUR, 40_000)
    assert firing([(healthy, 24 * HOUR), (instance.scrape(), 10)], tmp_path, step=5) == {
        "SurveyBackupSmall"
    }
    instance.write_backup(24 * HOUR + 1, 2 << 20)
    assert firing([(healthy, 24 * HOUR), (instance.scrape(), 10)], tmp_path, step=5) == set()
    for hourly, alerts in ((0.3, {"SurveyDiskFillsUp"}), (0.1, set())):
        filling = []
        for hour in range(25):
            set_free(monkeypatch, (20 - hourly * hour) * GIGABYTE)
            filling.append((instance.scrape(), HOUR))
        assert firing(filling, tmp_path, step=5) == alerts


@pytest.mark.web
def test_killed_processes_and_a_moved_database_appear_in_the_metrics_of_a_running_server(
    serve, settings, small, tmp_path
):
    port = free_port()
    url = serve(SURVEY_INTERNAL=f"127.0.0.1:{port}", SURVEY_BACKUPS=str(tmp_path))

    def scrape() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as response:
            return response.read().decode()

    def value(name: str) -> float:
        return samples(scrape())[series(name, PLACE)]

    healthy = scrape()
    (pid,) = worker_pids(serve.processes[0].pid)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: value("survey_worker_exits_total") == 1)
    assert "SurveyWorkerExited" in firing([(healthy, 10), (scrape(), 2)], tmp_path)
    wait_until(lambda: b"ok" in fetch(f"{url}/healthz"))
    wait_until(lambda: b"<form" in fetch(f"{url}/research/sign-in"))
    (pid,) = research_pids(serve.processes[0].pid)
    os.kill(pid, signal.SIGKILL)
    ends = series("survey_component_exits_total", {"component": "research", **PLACE})
    wait_until(lambda: samples(scrape())[ends] == 1)
    assert value("survey_error_time_seconds") == 0
    Path(settings.database.removeprefix("sqlite:///")).rename(tmp_path / "moved.db")
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/s/small/reports", new_report(small), headers)
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(request, timeout=20)
    assert value("survey_error_time_seconds") > 0
    assert "SurveyNotReady" in firing([(healthy, 10), (scrape(), 5)], tmp_path)


def fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            content: bytes = response.read()
            return content
    except OSError:
        return b""
