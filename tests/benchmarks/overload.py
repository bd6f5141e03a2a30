"""Ten times the load for a minute: `python -m tests.benchmarks.overload [--seconds 60]`.

The shipped server (`survey serve`, two workers, releases included) under 64 connections, which is
what `tests.benchmarks.ingestion` measures with, and then under 640, each sending as fast as it is
answered; on SQLite and on PostgreSQL. It needs wrk (Debian package wrk), which shares the cores.
The p99 of what was taken is over all answers, shifted as if every refusal had been quicker.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from survey.archive import check
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import PublishedSurvey, Store, open_store
from tests.benchmarks.ingestion import DEFINITION, postgresql, wrk
from tests.conftest import ROOT, SECRET, free_port, wait_until_up

USUAL, TIMES, WORKERS = 64, 10, 2
SLOWEST_MS = 1000


@contextmanager
def shipped(database: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`survey serve` over a database; ended with SIGTERM."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    variables = {"SURVEY_SECRET": SECRET, "SURVEY_DATABASE": database, "SURVEY_PUBLIC_URL": url}
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


def overloaded(kind: str, database: str, seconds: int) -> None:
    store = open_store(database)
    store.migrate()
    today = datetime.now(UTC).date()
    survey = publish(store, load(DEFINITION.encode(), "load.toml", Caps()), today)
    arguments = [survey.sha256, ",".join("0" * 10), str(survey.definition.report_bytes)]
    acknowledged = 0
    with shipped(database) as (url, server):
        for connections, length in ((USUAL, min(seconds, 10)), (TIMES * USUAL, seconds)):
            found = wrk(f"{url}/s/load/reports", connections, length, arguments)
            acknowledged += found["statuses"].get("201", 0)
            p99 = found["p99_taken_ms"]
            print(
                f"{kind:12}{connections:>12}{found['per_second']:>12,.0f}{p99:>12,.0f}"
                f"{SLOWEST_MS:>8}{p99 / SLOWEST_MS:>8.2f}  {found['statuses']}, "
                f"{found['dropped']} broken, {'runs' if server.poll() is None else 'CRASHED'}",
                flush=True,
            )
    stored = all_there(store, survey, acknowledged)
    print(f"{'':12}acknowledged {acknowledged:,}, stored {stored:,}")


def all_there(store: Store, survey: PublishedSurvey, acknowledged: int) -> int:
    """How many reports are stored; an error if an acknowledged one is not, or one is wrong."""
    stored = store.n_released(survey.key) + store.n_pending(survey.key)
    with store.snapshot() as snapshot:
        mistakes = check(snapshot).mistakes
    store.close_connections()
    if stored < acknowledged or mistakes:
        raise AssertionError(f"acknowledged {acknowledged:,}, stored {stored:,}, {mistakes}")
    return stored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    seconds = parser.parse_args().seconds
    print(f"{'':12}{'connections':>12}{'per second':>12}{'p99 ms':>12}{'target':>8}{'ratio':>8}")
    with ExitStack() as stack:
        scratch = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR")))
        stack.callback(shutil.rmtree, scratch)
        overloaded("SQLite", f"sqlite:///{scratch / 'survey.db'}", seconds)
        (own := scratch / "pg").mkdir()
        overloaded("PostgreSQL", stack.enter_context(postgresql(own)), seconds)


if __name__ == "__main__":
    main()
