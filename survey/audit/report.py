"""All checks of an audit in one go, written for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from survey.audit.exact import AnyChannel
from survey.audit.proof import Auditor, Check


def all_checks(
    files: Mapping[str, bytes], channels: Sequence[AnyChannel], samples: int
) -> list[Check]:
    """Enumerate every channel, the way from words to draws, then sample the real generator."""
    auditor = Auditor(files)
    return [
        *auditor.enumeration(channels),
        auditor.words(channels),
        *auditor.sampling(channels, samples),
    ]


def as_text(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """The client's hash, its files' hashes, and a line for each check."""
    return "\n".join(
        [
            f"client {client}",
            *(f"  {digest}  {name}" for name, digest in files.items()),
            *(f"{'ok  ' if check.ok else 'BAD '} {check.name}: {check.detail}" for check in checks),
        ]
    )


def as_json_text(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """The same as JSON."""
    form = {"client": client, "files": files, "checks": [asdict(check) for check in checks]}
    return json.dumps(form, indent=2)
