"""All checks of an audit in one go, written for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from survey.audit.definition import accepted, labelled, refused, refused_draws
from survey.audit.enumeration import Auditor
from survey.audit.harness import Check, Node
from survey.audit.respondents import whole_surveys
from survey.audit.sampling import check_ids, sampled_reports
from survey.audit.visits import NOT_RUN, visits
from survey.audit.whole_reports import drawn_questions, enumerated_pairs
from survey.questionnaire.definition import Definition

GROUPS: Mapping[str, str] = {
    "definition": "Definition: what the device reads, says of it, and refuses",
    "channels": "Channels: their draws, against the integers of the definition",
    "whole reports": "Whole reports: nothing but the codes depends on an answer",
    "visits": "Visits: what is sent and kept, with stand-ins for the pages",
    "generator": "Generator: from the device's randomness to draws and reports",
}

UNSEEN = (
    f"not run: {', '.join(NOT_RUN)}, which build the pages and read what is entered; "
    "of them only the hashes above are known"
)


def checks_of(
    files: Mapping[str, bytes], definition: Definition, samples: int, node: str | None = None
) -> Iterator[Check]:
    """Everything that can be held against a survey, from its reading to its reports.

    A device that ends up with another survey ends the audit: what follows would be about that one.
    """
    read = accepted(Node(files, node), definition)
    yield read
    if not read.ok:
        return
    device = Node(files, node, definition.canonical)
    form = json.loads(definition.canonical)
    yield from (refused(device, definition, form), refused_draws(device, form))
    yield labelled(device, definition)
    auditor = Auditor(files, node, definition)
    channels = list(dict.fromkeys(question.channel for question in definition.questions))
    yield from auditor.enumeration(channels)
    yield auditor.ratios(channels)
    yield from reports_of(files, definition, node)
    yield from visits(device, definition)
    yield from (auditor.words(channels), check_ids(device))
    yield from auditor.sampling(channels, samples)
    yield sampled_reports(device, form, samples)


def reports_of(
    files: Mapping[str, bytes], definition: Definition, node: str | None = None
) -> Iterator[Check]:
    """Whole reports: of two questions at a time every one, of all questions some."""
    form = json.loads(definition.canonical)
    device = Node(files, node, definition.canonical)
    yield from enumerated_pairs(Node(files, node), form)
    yield from drawn_questions(device, form)
    yield whole_surveys(device, definition)


def as_text(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """The client's hash, its files' hashes, the checks group by group, what was not run, a sum."""
    lines = [f"client {client}", *(f"  {digest}  {name}" for name, digest in files.items())]
    for group, members in groupby(checks, key=lambda check: check.group):
        lines += ["", GROUPS[group]]
        lines += [f"{'ok  ' if each.ok else 'BAD '} {each.name}: {each.detail}" for each in members]
    return "\n".join([*lines, "", UNSEEN, summary(checks)])


def summary(checks: Sequence[Check]) -> str:
    """How many checks hold, in one line.

    >>> summary([Check("channels", "one", True, ""), Check("channels", "two", False, "")])
    '1 of 2 checks failed: the client does not keep what it promises'
    """
    failed = sum(not check.ok for check in checks)
    if failed:
        return f"{failed} of {len(checks)} checks failed: the client does not keep what it promises"
    return f"all {len(checks)} checks hold: what was run of the client keeps what it promises"


def as_json_text(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """The same as JSON."""
    form = {
        "client": client,
        "files": files,
        "ok": all(check.ok for check in checks),
        "summary": summary(checks),
        "not_run": list(NOT_RUN),
        "checks": [asdict(check) for check in checks],
    }
    return json.dumps(form, indent=2)
