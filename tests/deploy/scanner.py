"""Run wapiti, a scanner for web vulnerabilities, and read the requests that it made."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest


class Finding(NamedTuple):
    """A vulnerability that the scanner reports at an address."""

    kind: str
    method: str
    path: str
    info: str


class LoggedRequest(NamedTuple):
    """A request that reached the proxy."""

    method: str
    status: int
    path: str
    query: str


def scan(
    base: str,
    paths: Sequence[str],
    directory: Path,
    *options: str,
    modules: str = "all",
    seconds: int,
    attack_seconds: int,
) -> list[Finding]:
    """Scan one server from these pages on; `attack_seconds` limits each kind of attack."""
    program = shutil.which("wapiti")
    if program is None:
        pytest.skip("no wapiti on the path (apt-get install wapiti)")
    output = directory / "findings.json"
    command = [
        *(program, "-u", base + paths[0], *(f"-s{base}{path}" for path in paths[1:])),
        *("--scope", "domain", "-d", "4", "--max-scan-time", str(seconds)),
        *("--max-attack-time", str(attack_seconds), "--flush-session"),
        *("-m", modules, "--verify-ssl", "0", "--no-bugreport", "-v", "0", "--store-session"),
        *(str(directory / "session"), "-f", "json", "-o", str(output), *options),
    ]
    subprocess.run(command, capture_output=True, text=True, timeout=2400, check=False)
    report = json.loads(output.read_text())
    return [
        Finding(kind, entry["method"], entry["path"], entry["info"])
        for section in ("vulnerabilities", "anomalies")
        for kind, entries in report[section].items()
        for entry in entries
    ]


def request_log(file: Path) -> tuple[str, str]:
    """Return the change to nginx.conf that makes the proxy log its requests to a file."""
    directives = f"log_format scan '$request_method $status $request_uri'; access_log {file} scan;"
    return "access_log off;", directives


def logged_requests(file: Path) -> list[LoggedRequest]:
    """Return the requests in a log written by `request_log`."""
    requests = []
    for line in file.read_text(errors="replace").splitlines():
        method, status, address = line.split(" ", 2)
        # Scanners invent addresses that no URL parser accepts.
        path, _, query = address.partition("?")
        requests.append(LoggedRequest(method, int(status), path, query))
    return requests
