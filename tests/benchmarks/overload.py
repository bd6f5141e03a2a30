"""Load a server with ten times the usual connections for a minute.

    python -m tests.benchmarks.overload [--short] [--seconds 60]

`survey serve` runs with two workers and releases every five seconds on SQLite and on PostgreSQL. It
gets 64 connections, as in `tests.benchmarks.ingestion`, and then 640; each connection sends the
next report as soon as the server responds. Requires wrk (Debian package wrk), which shares the
cores. The p99 of accepted reports assumes that every rejection was faster than every acceptance.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from survey.archive import check
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, open_store
from tests.benchmarks.ingestion import DEFINITION, postgresql, wrk
from tests.benchmarks.short import benchmark_parser, reduced
from tests.conftest import ROOT, SECRET, free_port, wait_until_up

USUAL, FACTORS, WORKERS = 64, (1, 10), 2
RELEASE_SECONDS = 5
MAX_MS = 1000

SHORT = {"USUAL": 8, "FACTORS": (10,), "WORKERS": 1}
STATUSES = {"201", "503"}
"""Expected statuses: reports are accepted, or rejected by a server that is overloaded."""


@contextmanager
def run_server(
    database: str, keys: Path, release_every: int = RELEASE_SECONDS
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `survey serve` over a database, with its keeper; stop it with SIGTERM."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    variables = {
        "SURVEY_SECRET": SECRET,
        "SURVEY_DATABASE": database,
        "SURVEY_PUBLIC_URL": url,
        # Servers that share a directory of keys would wait for its lock and release nothing.
        "SURVEY_KEYS": str(keys),
        "SURVEY_RELEASE_EVERY": str(release_every),
    }
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "survey.cli",
            "serve",
            "--port",
            str(port),
            "--workers",
            str(WORKERS),
        ],
        text=True,
        cwd=ROOT,
        env={**os.environ, **variables},
    )
    try:
        wait_until_up(url, server)
        yield url, server
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def overload(kind: str, database: str, keys: Path, seconds: int) -> None:
    """Print the figures under the usual and the tenfold load; check that no report is lost."""
    store = open_store(database)
    store.migrate()
    today = datetime.now(UTC).date()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps()), today)
    arguments = [survey.sha256, ",".join("0" * 10), str(survey.definition.report_bytes)]
    acknowledged = 0
    with run_server(database, keys) as (url, server):
        for factor in FACTORS:
            connections, length = factor * USUAL, min(seconds, 10) if factor == 1 else seconds
            figures = wrk(f"{url}/s/load/reports", connections, length, arguments)
            acknowledged += figures["statuses"].get("201", 0)
            if server.poll() is not None or not figures["statuses"].keys() <= STATUSES:
                raise RuntimeError(f"exit code {server.poll()}, statuses {figures['statuses']}")
            p99 = figures["p99_accepted_ms"]
            print(
                f"{kind:12}{connections:>12}{figures['per_second']:>12,.0f}{p99:>12,.0f}"
                f"{MAX_MS:>8}{p99 / MAX_MS:>8.2f}  {figures['statuses']}, "
                f"{figures['dropped']} broken connections",
                flush=True,
            )
    if not acknowledged:
        raise RuntimeError("no report was acknowledged")
    stored = count_stored(store, survey, acknowledged)
    print(f"{'':12}acknowledged {acknowledged:,}, stored {stored:,}")


def count_stored(store: Store, survey: PublishedSurvey, acknowledged: int) -> int:
    """Return the number of stored reports; fail if acknowledged reports are missing or damaged."""
    stored = store.n_released(survey.key) + store.n_pending(survey.key)
    with store.snapshot() as snapshot:
        mistakes = check(snapshot).mistakes
    store.close_connections()
    if stored < acknowledged or mistakes:
        raise AssertionError(f"acknowledged {acknowledged:,}, stored {stored:,}, {mistakes}")
    return stored


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args(arguments)
    seconds = 1 if options.short else options.seconds
    print(f"{'':12}{'connections':>12}{'per second':>12}{'p99 ms':>12}{'target':>8}{'ratio':>8}")
    with ExitStack() as stack:
        stack.enter_context(reduced(__name__, SHORT, options.short))
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)
        overload("SQLite", f"sqlite:///{scratch / 'survey.db'}", scratch / "keys", seconds)
        if options.short:
            return
        (directory := scratch / "pg").mkdir()
        overload(
            "PostgreSQL", stack.enter_context(postgresql(directory)), directory / "keys", seconds
        )


if __name__ == "__main__":
    main()
