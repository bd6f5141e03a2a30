"""Run all checks of an audit, and write their outcomes as text or JSON."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from survey.audit.access import check_access
from survey.audit.altered_definitions import (
    check_accepted,
    check_label,
    check_rejected,
    check_rejected_samples,
)
from survey.audit.bundled_modules import unbundle
from survey.audit.enumeration import Auditor
from survey.audit.node import Check, ClientError, Node
from survey.audit.random_generator import check_ids, sampled_reports
from survey.audit.respondents import check_respondents
from survey.audit.visits import check_visits
from survey.audit.whole_reports import check_pairs, check_question_sampling
from survey.questionnaire.definition import Definition

GROUPS: Mapping[str, str] = {
    "access": "Access: each function uses exactly what `access.txt` lists",
    "definition": "Definition: what the device accepts, shows and rejects",
    "channels": "Channels: every draw compared with the integers of the definition",
    "whole reports": "Whole reports: nothing but the codes depends on an answer",
    "generator": "Generator: from the device's randomness to draws and reports",
    "visits": "Visits: what the device sends, stores and shows in a simulated browser",
}

LIMITS = (
    "The checks prove what they enumerate: the draws of channels and of pairs of questions. They "
    "test the rest. The pages run in a simulated browser."
)


def run_checks(
    files: Mapping[str, bytes],
    definition: Definition,
    samples: int,
    node: str | None = None,
    seed: int | None = None,
    collector: str = "",
) -> Iterator[Check]:
    """Run every check of a survey: first which names the modules use, then how they behave.

    The audit ends after the first part if a module uses a name that is not on its list: such code
    may recognize the audit, so its behavior under the audit would prove nothing. `collector` is
    the server that collects the reports if another host serves the page, otherwise "".
    """
    access = check_access(files, collector)
    yield from access
    if all(check.ok for check in access):
        yield from run_client(unbundle(files), definition, samples, node, seed)


def run_client(
    files: Mapping[str, bytes],
    definition: Definition,
    samples: int,
    node: str | None = None,
    seed: int | None = None,
) -> Iterator[Check]:
    """Test the client, whose modules are single files, from the definition to the report sent.

    `seed` repeats the choices of an earlier run. The checks stop if the device does not accept the
    definition, or if the client fails.
    """
    try:
        yield from _client_checks(files, definition, samples, node, _seed(seed))
    except ClientError as error:
        yield Check("visits", "the client", False, str(error))


def _seed(given: int | None) -> int:
    """Return the given seed, or a new one that no client can predict."""
    return secrets.randbits(32) if given is None else given


def _client_checks(
    files: Mapping[str, bytes], definition: Definition, samples: int, node: str | None, seed: int
) -> Iterator[Check]:
    first = check_accepted(Node(files, node), definition)
    yield first
    if not first.ok:
        return
    device = Node(files, node, definition.canonical)
    form = json.loads(definition.canonical)
    yield from (check_rejected(device, definition, form), check_rejected_samples(device, form))
    yield check_label(device, definition)
    auditor = Auditor(files, node, definition)
    channels = list(dict.fromkeys(question.device_channel for question in definition.questions))
    yield from auditor.enumeration(channels)
    yield auditor.ratios(channels)
    yield from check_whole_reports(files, definition, node, seed)
    yield from (auditor.words(channels, seed), check_ids(device))
    yield from auditor.sampling(channels, samples)
    yield sampled_reports(device, form, samples, seed)
    # Visits take most of the time, so report all other faults first.
    yield from check_visits(device, files, definition, seed)


def check_whole_reports(
    files: Mapping[str, bytes],
    definition: Definition,
    node: str | None = None,
    seed: int | None = None,
) -> Iterator[Check]:
    """Check every report of two questions at a time, and some reports of all questions."""
    form = json.loads(definition.canonical)
    device = Node(files, node, definition.canonical)
    yield from check_pairs(Node(files, node), form)
    yield from check_question_sampling(device, form)
    yield check_respondents(device, definition, _seed(seed))


def to_text(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """Return the hashes of the client and its files, the checks by group, and a summary."""
    lines = [f"client {client}", *(f"  {digest}  {name}" for name, digest in files.items())]
    for group, members in groupby(checks, key=lambda check: check.group):
        lines += ["", GROUPS[group]]
        lines += [f"{'ok  ' if c.ok else 'BAD '} {c.name}: {c.detail}" for c in members]
    return "\n".join([*lines, "", LIMITS, summary(checks)])


def summary(checks: Sequence[Check]) -> str:
    """Return the number of failed checks in one sentence.

    >>> summary([Check("channels", "one", True, ""), Check("channels", "two", False, "")])
    '1 of 2 checks failed: the client does not keep its promises'
    """
    failures = sum(not check.ok for check in checks)
    if failures:
        return f"{failures} of {len(checks)} checks failed: the client does not keep its promises"
    return f"all {len(checks)} checks passed: the client keeps its promises"


def to_json(client: str, files: Mapping[str, str], checks: Sequence[Check]) -> str:
    """Return the outcome as JSON: hashes, checks, summary, and what the checks cannot show."""
    form = {
        "client": client,
        "files": files,
        "ok": all(check.ok for check in checks),
        "summary": summary(checks),
        "limits": LIMITS,
        "checks": [asdict(check) for check in checks],
    }
    return json.dumps(form, indent=2)
