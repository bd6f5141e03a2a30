"""A scanner for web vulnerabilities (wapiti), and what it asked on its way."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest


class Finding(NamedTuple):
    """What it says of an address."""

    kind: str
    method: str
    path: str
    info: str


class Asked(NamedTuple):
    """A request that came to the proxy."""

    method: str
    status: int
    path: str
    query: str


def scan(
    base: str,
    paths: Sequence[str],
    directory: Path,
    *more: str,
    modules: str = "all",
    seconds: int,
    attack_seconds: int,
) -> list[Finding]:
    """All that it finds from these pages on, of this server alone; so long for each attack."""
    scanner = shutil.which("wapiti")
    if scanner is None:
        pytest.skip("no wapiti on the path (apt-get install wapiti)")
    found = directory / "found.json"
    command = [
        *(scanner, "-u", base + paths[0], *(f"-s{base}{path}" for path in paths[1:])),
        *("--scope", "domain", "-d", "4", "--max-scan-time", str(seconds)),
        *("--max-attack-time", str(attack_seconds), "--flush-session"),
        *("-m", modules, "--verify-ssl", "0", "--no-bugreport", "-v", "0", "--store-session"),
        *(str(directory / "session"), "-f", "json", "-o", str(found), *more),
    ]
    subprocess.run(command, capture_output=True, text=True, timeout=2400, check=False)
    report = json.loads(found.read_text())
    return [
        Finding(kind, one["method"], one["path"], one["info"])
        for part in ("vulnerabilities", "anomalies")
        for kind, several in report[part].items()
        for one in several
    ]


def noting(file: Path) -> tuple[str, str]:
    """A change of the proxy: it notes what it was asked."""
    noted = f"log_format asked '$request_method $status $request_uri'; access_log {file} asked;"
    return "access_log off;", noted


def asked(file: Path) -> list[Asked]:
    """What it noted."""
    found = []
    for line in file.read_text(errors="replace").splitlines():
        method, status, address = line.split(" ", 2)
        # Whatever a scanner makes up, some of it no address at all.
        path, _, query = address.partition("?")
        found.append(Asked(method, int(status), path, query))
    return found
