"""CPU time of starting, and memory of servers and of a worker that serves respondents only.

    python -m tests.benchmarks.startup [--base DIRECTORY] [--short]

The servers have two workers and start in turn, in several rounds: `survey serve` (granian, with its
keeper), the application on gunicorn, and a peer (`tests.benchmarks.startup_peer`: Flask, Flask-WTF,
pydantic and numpy on gunicorn). Each one has to answer a request. Then it gets a report and a
researcher's page, which starts the process that serves researchers' pages. Memory is the
proportional set size (PSS) summed over all processes of the server. All times are medians; the CPU
time is that of all processes. The code is compiled before the first round, as in an installation.

With --base, the command also measures another working tree, such as an earlier version. --short
takes one round of starts, and shows only that the benchmark works.
"""

from __future__ import annotations

import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, open_store
from tests.benchmarks import ingestion
from tests.benchmarks.reload import family
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.storage import today
from tests.conftest import ROOT, SECRET, SMALL, free_port, wait_until_up
from tests.faults.reports import new_report, send
from tests.startup import serve_respondents

RUNS = 5
WORKERS = 2
MAX_START_SECONDS, MAX_MEGABYTES = 5.0, 300.0
MAX_VERSION_SECONDS = 0.3
MAX_MECHANISM_SECONDS = 0.2
MAX_MEMORY_RATIO = 0.5


def cpu_seconds(arguments: list[str], code: Path) -> float:
    """Return the median CPU time (user and system) of a Python process."""
    times = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(code)},
            cwd=tempfile.gettempdir(),
            check=True,
            capture_output=True,
        )
        after = os.times()
        times.append(
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
    return statistics.median(times)


class Start(NamedTuple):
    """Seconds until the first answer, CPU seconds of all processes, and megabytes (PSS).

    The memory is measured after one request, and again after one request of each kind.
    """

    seconds: float
    cpu: float
    megabytes: float
    megabytes_with_researchers: float


@dataclass(frozen=True)
class Server:
    """A server with its command and the working tree of its code."""

    name: str
    command: Sequence[str]
    code: Path = ROOT
    is_peer: bool = False

    def start(self, variables: Mapping[str, str], survey: PublishedSurvey) -> Start:
        """Start the server, let it answer one request of each kind, and stop it."""
        port = free_port()
        with self._run(port, variables) as (process, seconds):
            cpu, megabytes = ingestion.cpu_seconds(process.pid), pss(process.pid)
            if not self.is_peer:
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
                    require(201, send(client, survey, new_report(survey)).status)
                    client.request("GET", "/research/sign-in")
                    require(200, client.getresponse().status)
            return Start(seconds, cpu, megabytes, pss(process.pid))

    @contextmanager
    def _run(
        self, port: int, variables: Mapping[str, str]
    ) -> Iterator[tuple[subprocess.Popen[str], float]]:
        start = time.monotonic()
        process = subprocess.Popen(
            [word.format(port=port) for word in self.command],
            env={**os.environ, **variables, "PYTHONPATH": str(self.code)},
            cwd=self.code,
            text=True,
        )
        try:
            wait_until_up(f"http://127.0.0.1:{port}", process)
            yield process, time.monotonic() - start
        finally:
            process.terminate()
            process.wait(90)


def require(expected: int, status: int) -> None:
    if status != expected:
        raise SystemExit(f"a response has status {status} instead of {expected}")


def pss(pid: int) -> float:
    """Return the proportional set size of a process and of all below it, in megabytes."""
    kilobytes = 0
    for process in (pid, *family(pid)):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        kilobytes += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1000


def servers(base: Path | None) -> list[Server]:
    """Return the servers to compare; the peer is the last one."""
    granian = (
        *(sys.executable, "-m", "survey.cli", "serve"),
        *("--port", "{port}", "--workers", str(WORKERS)),
    )
    gunicorn = (
        *(sys.executable, "-m", "gunicorn", "-k", "gthread", "--log-level", "warning"),
        *("-b", "127.0.0.1:{port}", "-w", str(WORKERS), "--threads", "64"),
    )
    earlier = [Server("survey serve, earlier", granian, base)] if base else []
    return [
        Server("survey serve (granian)", granian),
        *earlier,
        Server("gunicorn", (*gunicorn, "survey:create_app()")),
        Server("peer", (*gunicorn, "tests.benchmarks.startup_peer:app"), is_peer=True),
    ]


def measure_servers(base: Path | None, rounds: int) -> None:
    """Print the cost of starting each server."""
    starts: dict[Server, list[Start]] = {server: [] for server in servers(base)}
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        database = f"sqlite:///{directory / 'start.db'}"
        store = open_store(database)
        store.migrate()
        survey = publish(store, load(SMALL.encode(), "small.toml", Caps()), today())
        store.close_connections()
        variables = {
            "SURVEY_SECRET": SECRET,
            "SURVEY_DATABASE": database,
            "SURVEY_KEYS": str(directory / "keys"),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(directory / "bytecode"),
        }
        for number in range(rounds + 1):
            for server, results in starts.items():
                # The first round compiles the code.
                if (start := server.start(variables, survey)) and (number or rounds == 1):
                    results.append(start)
    medians = {
        server: Start(*map(statistics.median, zip(*results, strict=True)))
        for server, results in starts.items()
    }
    own, *_, peer = medians.values()
    print(f"{WORKERS} workers{'':15}{'start':>9}{'/ peer':>9}{'CPU':>9}{'/ peer':>9}", end="")
    print(f"{'PSS':>9}{'/ peer':>9}{'with researchers':>20}")
    for server, start in medians.items():
        ratios = [figure / other for figure, other in zip(start[:3], peer[:3], strict=True)]
        print(
            f"{server.name:<24}{start.seconds:>7.1f} s{ratios[0]:>9.2f}{start.cpu:>7.1f} s", end=""
        )
        print(f"{ratios[1]:>9.2f}{start.megabytes:>6.0f} MB{ratios[2]:>9.2f}", end="")
        print(f"{start.megabytes_with_researchers:>17.0f} MB")
    print_target("seconds until the first answer", own.seconds, MAX_START_SECONDS)
    print_target("MB with researchers' process", own.megabytes_with_researchers, MAX_MEGABYTES)


def print_target(label: str, figure: float, target: float) -> None:
    status = "yes" if figure <= target else "MISSED"
    print(
        f"{label:<32}{figure:>8.2f}   at most {target:.2f}, ratio {figure / target:.2f}  {status}"
    )


def measure(code: Path) -> tuple[float, float, float]:
    """Return seconds of `survey --version`, seconds beyond numpy of the mechanisms, megabytes."""
    version = cpu_seconds(["-m", "survey.cli", "--version"], code)
    mechanism = cpu_seconds(["-c", "import survey.mechanism"], code)
    numpy = cpu_seconds(["-c", "import numpy"], code)
    with tempfile.TemporaryDirectory() as directory:
        megabytes = serve_respondents(Path(directory), code)["megabytes"]
    return version, mechanism - numpy, megabytes


def main() -> None:
    """Print the measurements with their targets."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--base", type=Path, help="working tree of an earlier version")
    options = parser.parse_args()
    base = options.base.resolve() if options.base else None
    measure_servers(base, 1 if options.short else RUNS)
    if options.short:
        return
    version, mechanism, megabytes = measure(ROOT)
    print(f"survey --version            {version:6.2f} s CPU    (at most {MAX_VERSION_SECONDS})")
    print(f"import survey.mechanism     {mechanism:6.2f} s CPU beyond numpy", end=" ")
    print(f"(at most {MAX_MECHANISM_SECONDS})")
    print(f"worker after respondents    {megabytes:6.0f} MB")
    if base is None:
        return
    old_version, old_mechanism, old_megabytes = measure(base)
    ratio = megabytes / old_megabytes
    print(f"before: {old_version:.2f} s, {old_mechanism:.2f} s, {old_megabytes:.0f} MB")
    print(f"memory ratio                {ratio:6.2f}          (at most {MAX_MEMORY_RATIO})")


if __name__ == "__main__":
    main()
