"""A log of verifications as a hash chain: every line contains the hash of the line before it.

A person who keeps the newest hash, the head, can detect that earlier lines were changed or removed.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from survey.errors import SurveyError
from survey.respond.client import sha256

START = "0" * 64
"""The previous hash in the first line."""


def append(file: Path, entry: dict[str, Any], now: datetime | None = None) -> str:
    """Append an entry with its time and return the new head; reject a damaged log."""
    previous = check(file)[1] if file.exists() else START
    time = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    line = json.dumps({"previous": previous, "time": time, **entry}, ensure_ascii=False)
    with file.open("ab") as stream:
        stream.write(line.encode("utf-8") + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    return sha256(line.encode("utf-8"))


def check(file: Path, head: str = "") -> tuple[list[dict[str, Any]], str]:
    """Return the entries of a log and its head; raise SurveyError if lines were changed.

    head  an earlier head; the log must contain the line with this hash
    """
    entries, previous, heads = [], START, {START}
    lines = file.read_bytes().split(b"\n")
    if lines.pop():
        raise SurveyError(f"{file}: the last line is incomplete")
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            is_chained = entry["previous"] == previous
        except (ValueError, KeyError, TypeError):
            raise SurveyError(f"{file}, line {number}: this is not an entry of a log") from None
        if not is_chained:
            raise SurveyError(
                f"{file}, line {number}: it does not continue line {number - 1}; "
                "an earlier line was changed, removed or added"
            )
        previous = sha256(line)
        heads.add(previous)
        entries.append(entry)
    if head and head not in heads:
        raise SurveyError(
            f"{file} has no line with the hash {head}; lines were changed or removed after it"
        )
    return entries, previous
