"""Count the requests that reloads leave unanswered: `python -m tests.benchmarks.reload [--short]`.

nginx runs the shipped configuration in front of `survey serve`: one server with one and with two
workers, and two servers with one worker each. Devices send reports, and researchers read and send
forms, over connections that stay open, while each server in turn gets SIGHUP. A form is not
idempotent, so nginx may send it only once. The clients do not repeat unanswered requests.

A request is unanswered if its connection breaks or if it gets an unexpected status. A report is
lost if it was acknowledged and is not stored. Reports are doubled if more of them are stored than
were sent. The baseline for the longest wait of a report is the longest wait under the same load
without reloads, in the same run. With `--base DIRECTORY`, the same cases run on the code of another
working tree as well. `--short` makes one reload, and shows only that the benchmark works.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, open_store
from tests.benchmarks.ingestion import keep
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.storage import today
from tests.conftest import ROOT, SECRET, SMALL, free_port, wait_until, wait_until_up
from tests.deploy.proxy import HOST, RESEARCH_HOST, Proxy, nginx
from tests.faults.processes import child_pids, is_spawned
from tests.faults.reports import JSON, new_report, stored_report

DEVICES, RESEARCHERS = 6, 2
PAUSE_SECONDS = 0.01
SECONDS = 2.0
"""How long the load lasts without reloads, and after each new start of workers."""

REPORT = ("POST", "/s/small/reports", 201)
PAGE = ("GET", "/research/sign-in", 200)
SIGN_IN = ("POST", "/research/sign-in", 400)
"""Method, path and status of each request; the form lacks the token of its page."""

FORM = {"Content-Type": "application/x-www-form-urlencoded"}

LIMITS = (("rate=50r/s", "rate=5000r/s"), ("rate=20r/s", "rate=5000r/s"), ("20r/m", "5000r/s"))
"""Changes of nginx's configuration: the load comes from one address."""


@dataclass
class Tally:
    """The requests of a load, and the seconds that each report took."""

    acknowledged: list[bytes] = field(default_factory=list)
    n_sent: int = 0
    n_reports: int = 0
    unanswered: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    n_lost: int = 0
    n_doubled: int = 0

    @property
    def is_met(self) -> bool:
        """Whether reports were acknowledged and all targets were met."""
        misses = (len(self.unanswered), self.n_lost, self.n_doubled)
        return bool(self.acknowledged) and not any(misses)


class Traffic:
    """Devices and researchers that send requests through a proxy, each of them once."""

    def __init__(self, proxy: Proxy, survey: PublishedSurvey) -> None:
        self._proxy, self._survey = proxy, survey
        self.tally = Tally()
        self._lock, self._stop = threading.Lock(), threading.Event()
        works = [self._send_reports] * DEVICES + [self._read_and_send_forms] * RESEARCHERS
        self._threads = [threading.Thread(target=work) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send_reports(self) -> None:
        connection = self._proxy.connect()
        while not self._stop.wait(PAUSE_SECONDS):
            body = new_report(self._survey)
            self.tally.n_reports += 1
            if self._ask(connection, REPORT, body, JSON):
                self.tally.acknowledged.append(body)
        connection.close()

    def _read_and_send_forms(self) -> None:
        connection = self._proxy.research.connect()
        while not self._stop.wait(PAUSE_SECONDS):
            self._ask(connection, PAGE)
            self._ask(connection, SIGN_IN, b"email=x", FORM)
        connection.close()

    def _ask(
        self,
        connection: http.client.HTTPSConnection,
        request: tuple[str, str, int],
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> bool:
        """Send a request; return whether it got the expected status."""
        (method, path, expected), start = request, time.monotonic()
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            response.read()
            outcome = str(response.status)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            outcome = type(error).__name__
        with self._lock:
            self.tally.n_sent += 1
            if request is REPORT:
                self.tally.waits.append(time.monotonic() - start)
            if outcome != str(expected):
                self.tally.unanswered.append(f"{method} {path} {outcome}")
        return outcome == str(expected)


@dataclass(frozen=True)
class Case:
    """The number of servers, of workers of each server, and of reloads."""

    servers: int
    workers: int
    reloads: int
    code: Path = ROOT

    @property
    def name(self) -> str:
        which = "" if self.code == ROOT else ", earlier checkout"
        return f"{self.servers} x {self.workers} workers, {self.reloads} reloads{which}"


@contextmanager
def run_servers(case: Case, database: str) -> Iterator[list[tuple[int, int]]]:
    """Run servers over a database; yield the process id and the port of each."""
    variables = {
        "SURVEY_SECRET": SECRET,
        "SURVEY_DATABASE": database,
        "SURVEY_PUBLIC_URL": f"https://{HOST}",
        "SURVEY_RESEARCH_URL": f"https://{RESEARCH_HOST}",
        "SURVEY_TRUSTED_PROXIES": "1",
        "SURVEY_PASSWORD_COST": "1",
        "PYTHONPATH": str(case.code),
    }
    with ExitStack() as stack:
        servers = []
        for _ in range(case.servers):
            port = free_port()
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "survey.cli", "serve", "--without-keeper"),
                    *("--port", str(port), "--workers", str(case.workers)),
                ],
                env={**os.environ, **variables},
                cwd=case.code,
            )
            stack.callback(process.wait, 90)
            stack.callback(process.terminate)
            wait_until_up(f"http://127.0.0.1:{port}", process)
            servers.append((process.pid, port))
        yield servers


def reload(pid: int, workers: int) -> None:
    """Send SIGHUP to a server, and wait until it has started its new workers."""

    def leaves() -> set[int]:
        pids = {pid for pid in family(pid) if is_spawned(pid)}
        return {pid for pid in pids if not child_pids(pid)}

    before = leaves()
    os.kill(pid, signal.SIGHUP)
    wait_until(lambda: len(leaves() - before) >= workers, 90)


def family(pid: int) -> Iterator[int]:
    """Yield the ids of the processes below a process."""
    for child in child_pids(pid):
        yield child
        yield from family(child)


def measure(case: Case, seconds: float) -> Tally:
    """Print the figures of a case, and return them."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        directory = Path(scratch)
        database = f"sqlite:///{directory / 'reload.db'}"
        store = open_store(database)
        store.migrate()
        survey = publish(store, load(SMALL.encode(), "small.toml", Caps()), today())
        stack.callback(store.close_connections)
        stack.enter_context(keep(database, directory / "keys"))
        servers = stack.enter_context(run_servers(case, database))
        (folder := directory / "nginx").mkdir()
        directory.chmod(0o711)
        ports = [port for _, port in servers]
        proxy = stack.enter_context(nginx(folder, ports, *LIMITS))
        # The first of these requests starts the process that answers researchers.
        proxy.research.ask("GET", "/research/sign-in")
        with Traffic(proxy, survey) as traffic:
            tally = traffic.tally
            time.sleep(seconds)
            n_undisturbed = len(tally.waits)
            for number in range(case.reloads):
                reload(servers[number % len(servers)][0], case.workers)
                time.sleep(seconds)
        count_stored(store, survey, tally)
        report(case, tally, n_undisturbed)
        return tally


def count_stored(store: Store, survey: PublishedSurvey, tally: Tally) -> None:
    """Count the reports that are lost, and those that are doubled."""
    ids = [stored_report(body).id for body in tally.acknowledged]
    tally.n_lost = sum(not store.has_report(survey.key, id) for id in ids)  # noqa: A001
    n_stored = store.n_pending(survey.key) + store.n_released(survey.key)
    tally.n_doubled = max(0, n_stored - tally.n_reports)


def report(case: Case, tally: Tally, n_undisturbed: int) -> None:
    calm = max(tally.waits[:n_undisturbed], default=0.0)
    longest = max(tally.waits[n_undisturbed:], default=0.0)
    status = "yes" if tally.is_met else "MISSED"
    print(
        f"{case.name:<51} {tally.n_sent:>8,}{len(tally.acknowledged):>8,}"
        f"{len(tally.unanswered):>12}{tally.n_lost:>6}{tally.n_doubled:>9}{1000 * calm:>9.0f}"
        f"{1000 * longest:>9.0f}{longest / (calm or 1):>7.1f}  {status}",
        flush=True,
    )
    for problem in sorted(set(tally.unanswered)):
        print(f"    {tally.unanswered.count(problem)} x {problem}")


def main() -> None:
    """Run all cases."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--reloads", type=int, default=20)
    parser.add_argument("--base", type=Path, help="working tree of an earlier version")
    options = parser.parse_args()
    codes = [ROOT, *([options.base.resolve()] if options.base else [])]
    cases = [
        Case(servers, workers, options.reloads, code)
        for servers, workers in ((1, 1), (1, 2), (2, 1))
        for code in codes
    ]
    columns = f"{'sent':>8}{'201':>8}{'unanswered':>12}{'lost':>6}{'doubled':>9}"
    print(
        f"{'waits in ms; target: 0 of the three':<52}{columns}{'calm':>9}{'reload':>9}{'ratio':>7}"
    )
    for case in [Case(1, 2, 1)] if options.short else cases:
        tally = measure(case, 0.2 if options.short else SECONDS)
        if case.code == ROOT and not tally.is_met:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
