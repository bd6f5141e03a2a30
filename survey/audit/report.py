"""All checks of an audit in one go, written for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from survey.audit.check import Check
from survey.audit.proof import Auditor
from survey.questionnaire.definition import Definition

GROUPS: Mapping[str, str] = {
    "channels": "Channels: every draw, against the integers of the definition",
    "whole reports": "Whole reports: nothing but the codes depends on an answer",
    "generator": "Generator: the device's randomness, as it is",
}


def checks_of(
    files: Mapping[str, bytes], definition: Definition, samples: int, node: str | None = None
) -> Iterator[Check]:
    """Everything that can be held against a survey: its channels, whole reports, the generator."""
    auditor = Auditor(files, node)
    channels = list(dict.fromkeys(question.channel for question in definition.questions))
    yield from auditor.enumeration(channels)
    yield auditor.ratios(channels)
    yield auditor.acceptance(definition)
    yield from auditor.reports(definition)
    yield auditor.words(channels)
    yield from auditor.sampling(channels, samples)


def as_text(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """The client's hash, its files' hashes, the checks group by group, and how many hold."""
    lines = [f"client {client}", *(f"  {digest}  {name}" for name, digest in files.items())]
    for group, members in groupby(checks, key=lambda check: check.group):
        lines += ["", GROUPS[group]]
        lines += [f"{'ok  ' if each.ok else 'BAD '} {each.name}: {each.detail}" for each in members]
    return "\n".join([*lines, "", summary(checks)])


def summary(checks: Sequence[Check]) -> str:
    """How many checks hold, in one line.

    >>> summary([Check("channels", "one", True, ""), Check("channels", "two", False, "")])
    '1 of 2 checks failed: the client does not keep what it promises'
    """
    failed = sum(not check.ok for check in checks)
    if failed:
        return f"{failed} of {len(checks)} checks failed: the client does not keep what it promises"
    return f"all {len(checks)} checks hold: the client keeps what it promises"


def as_json_text(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """The same as JSON."""
    form = {
        "client": client,
        "files": files,
        "ok": all(check.ok for check in checks),
        "summary": summary(checks),
        "checks": [asdict(check) for check in checks],
    }
    return json.dumps(form, indent=2)
