"""The respondent's page as Lighthouse sees it on a slow phone: its scores, bytes and requests.

Wants `npm install` in `client_js` and a Chromium on the path; the server runs on loopback.

    python -m tests.benchmarks.lighthouse
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from survey.collect.invitations import respondent_link
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import open_store
from tests.conftest import ROOT, SECRET, SERVE, TODAY, free_port, wait_until_up

SURVEY = ROOT / "survey/demo/workplace.toml"
LEAST = {"accessibility": 100, "best-practices": 95, "performance": 95}
MOST_INTERACTIVE_SECONDS = 2.0
MOST_BYTES = 45 * 1024
MOST_REQUESTS = 14


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """The demo's survey on a server of its own; yields its link."""
    database = f"sqlite:///{directory / 'survey.db'}"
    store = open_store(database)
    store.migrate()
    survey = publish(store, load(SURVEY.read_bytes(), SURVEY.name, Caps()), TODAY)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {"SURVEY_SECRET": SECRET, "SURVEY_DATABASE": database, "SURVEY_PUBLIC_URL": url}
    process = subprocess.Popen(
        [*SERVE, "--port", str(port)],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until_up(url, process)
        yield respondent_link(survey, url)
    finally:
        process.terminate()
        process.communicate(timeout=30)
        store.close_connections()


def audited(link: str, report: Path) -> dict[str, Any]:
    """Lighthouse's report on a page, with its usual throttling of a phone."""
    tool = ROOT / "client_js/node_modules/.bin/lighthouse"
    if not tool.exists():
        sys.exit("lighthouse is not there: cd client_js && npm install")
    chromium = shutil.which("chromium") or "chromium"
    subprocess.run(
        [
            *(str(tool), link, "--quiet", "--output=json", f"--output-path={report}"),
            f"--only-categories={','.join(LEAST)}",
            "--chrome-flags=--headless=new --no-sandbox --disable-background-networking",
        ],
        env={**os.environ, "CHROME_PATH": chromium},
        check=True,
    )
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


def line(what: str, figure: float, target: float, *, at_most: bool) -> None:
    reached = figure <= target if at_most else figure >= target
    word = "yes" if reached else "MISSED"
    print(f"{what:40}{figure:>10,.1f}{target:>10,.1f}{figure / target:>8.2f}  {word}")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, served(Path(directory)) as link:
        found = audited(link, Path(directory, "report.json"))
    print(f"{'':40}{'figure':>10}{'target':>10}{'ratio':>8}")
    for category, least in LEAST.items():
        score = 100 * found["categories"][category]["score"]
        line(category, score, least, at_most=False)
    audits = found["audits"]
    seconds = audits["interactive"]["numericValue"] / 1000
    line("interactive after, seconds", seconds, MOST_INTERACTIVE_SECONDS, at_most=True)
    requests = audits["network-requests"]["details"]["items"]
    files = [each for each in requests if not each["url"].startswith("data:")]
    line("requests", len(files), MOST_REQUESTS, at_most=True)
    page = [each for each in files if not each["url"].endswith(".json")]
    size = sum(each["transferSize"] for each in page)
    line("bytes on the wire, headers included", size, MOST_BYTES, at_most=True)
    for name, audit in audits.items():
        if audit.get("score") is not None and audit["score"] < 1:
            print(f"  {name}: {audit['score']} {audit.get('displayValue', '')}")


if __name__ == "__main__":
    main()
