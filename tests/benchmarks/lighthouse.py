"""Measure the respondents' page on slow phones: Lighthouse's scores, weight, time until usable.

The page is served over TLS and HTTP/2, as the deployed proxy serves it: browsers offer WebCrypto
only there, and HTTP/2 loads the page's modules side by side. Needs `npm install` in `client_js`
and Chromium on the path.

    python -m tests.benchmarks.lighthouse [--short]
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from survey.collect.invitations import respondent_link
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import open_store
from tests.benchmarks.short import benchmark_parser, reduced
from tests.conftest import ROOT, SECRET, TODAY, free_port, wait_until
from tests.deploy.proxy import write_certificate
from tests.surveys import WORKPLACE

MIN_SCORES = {"accessibility": 100, "best-practices": 100, "performance": 95}
MAX_INTERACTIVE_SECONDS = 2.0
MAX_USABLE_SECONDS = 2.5
"""Maximum time until "Start" is on the screen, over `SLOW_NETWORK`."""
SLOW_NETWORK = {"downloadThroughput": 50_000, "uploadThroughput": 50_000, "latency": 150}
"""400 kbit/s, in bytes per second; latency in milliseconds, as in Lighthouse's slow 4G."""
SLOW_PROCESSOR = 6
VISITS = 5
MAX_BYTES = 45 * 1024

SHORT = {"VISITS": 1}


@contextmanager
def served_survey(directory: Path) -> Iterator[str]:
    """Serve a survey of eight questions over TLS and HTTP/2; yield its link."""
    database = f"sqlite:///{directory / 'survey.db'}"
    store = open_store(database)
    store.migrate()
    survey = publish(store, load(WORKPLACE.encode(), "workplace.toml", Caps()), TODAY)
    write_certificate(directory / "tls", "localhost")
    port = free_port()
    url = f"https://localhost:{port}"
    settings = {"SURVEY_SECRET": SECRET, "SURVEY_DATABASE": database, "SURVEY_PUBLIC_URL": url}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "granian", "--interface", "wsgi", "--factory"),
            *("--port", str(port), "--ssl-certificate", str(directory / "tls/fullchain.pem")),
            *("--ssl-keyfile", str(directory / "tls/privkey.pem"), "survey.app:create_app"),
        ],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _accepts_connections(port))
        yield respondent_link(survey, Settings(public_url=url))
    finally:
        process.terminate()
        process.wait(timeout=30)
        store.close_connections()


def _accepts_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def run_lighthouse(link: str, report: Path) -> dict[str, Any]:
    """Return Lighthouse's report on a page, with its default throttling: a phone on slow 4G."""
    tool = ROOT / "client_js/node_modules/.bin/lighthouse"
    if not tool.exists():
        sys.exit("lighthouse is not installed: cd client_js && npm install")
    chromium = shutil.which("chromium") or "chromium"
    subprocess.run(
        [
            *(str(tool), link, "--quiet", "--output=json", f"--output-path={report}"),
            f"--only-categories={','.join(MIN_SCORES)}",
            "--chrome-flags=--headless=new --no-sandbox --disable-background-networking "
            "--ignore-certificate-errors",
        ],
        env={**os.environ, "CHROME_PATH": chromium},
        check=True,
    )
    content: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return content


USABLE = """
globalThis.usable = new Promise((resolve) => {
  const observer = new MutationObserver(() => {
    if (!document.querySelector(".start > .button")) return;
    observer.disconnect();
    // The frame after the next one is on the screen.
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
  });
  observer.observe(document, { childList: true, subtree: true });
});
"""
"""Resolves with the milliseconds since the request of the page until "Start" is on the screen."""


def usable_seconds(link: str) -> list[float]:
    """Return the seconds until "Start" is on the screen, for several first visits."""
    seconds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(VISITS):
            context = browser.new_context(
                ignore_https_errors=True, viewport={"width": 390, "height": 844}
            )
            page = context.new_page()
            tools = context.new_cdp_session(page)
            tools.send("Network.enable")
            tools.send("Network.emulateNetworkConditions", {"offline": False, **SLOW_NETWORK})
            tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOW_PROCESSOR})
            page.add_init_script(USABLE)
            page.goto(link)
            seconds.append(page.evaluate("usable") / 1000)
            context.close()
        browser.close()
    return seconds


def print_line(name: str, value: float, target: float, *, at_most: bool) -> None:
    is_met = value <= target if at_most else value >= target
    status = "yes" if is_met else "MISSED"
    print(f"{name:40}{value:>10,.1f}{target:>10,.1f}{value / target:>8.2f}  {status}")


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        measure()


def measure() -> None:
    """Print all figures of the page."""
    with tempfile.TemporaryDirectory() as directory, served_survey(Path(directory)) as link:
        usable = usable_seconds(link)
        report = run_lighthouse(link, Path(directory, "report.json"))
    print(f"{'':40}{'measured':>10}{'target':>10}{'ratio':>8}")
    for category, score in MIN_SCORES.items():
        measured = 100 * report["categories"][category]["score"]
        print_line(category, measured, score, at_most=False)
    audits = report["audits"]
    seconds = audits["interactive"]["numericValue"] / 1000
    print_line("seconds until interactive", seconds, MAX_INTERACTIVE_SECONDS, at_most=True)
    print_line("seconds until usable, 400 kbit/s", median(usable), MAX_USABLE_SECONDS, at_most=True)
    requests = audits["network-requests"]["details"]["items"]
    page = [
        item
        for item in requests
        if not item["url"].startswith("data:") and not item["url"].endswith("/definition.json")
    ]
    size = sum(item["transferSize"] for item in page)
    print_line("bytes on the wire, headers included", size, MAX_BYTES, at_most=True)
    print(f"usable after {', '.join(f'{value:.2f}' for value in sorted(usable))} s")
    print(f"requests: {len(page)}, protocols: {', '.join({item['protocol'] for item in page})}")
    for name, audit in audits.items():
        if audit.get("score") is not None and audit["score"] < 1:
            print(f"  {name}: {audit['score']} {audit.get('displayValue', '')}")


if __name__ == "__main__":
    main()
