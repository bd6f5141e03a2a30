"""Run a verification: visits in random order, a pause between them, and the audit at the end."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from survey.audit.node import Check
from survey.errors import SurveyError
from survey.settings import is_loopback
from survey.verification.connection import Connections, Proxy, UnreachableError
from survey.verification.manifest import Manifest, installed, known_manifests
from survey.verification.result import Result
from survey.verification.visitors import USER_AGENTS, Visitor, choose_visitors
from survey.verification.visits import Target, Visit, probe, visit

DEFAULT_VISITS = 66
"""Enough to detect, with a probability of 99%, that 1 visit in 15 is altered: 1 - 0.01^(1/66)."""

PAUSE_SECONDS = 1.0
"""Mean pause between visits, except on this machine: servers limit requests per second."""

MAX_FAILURES = 3
"""After this many failed visits without a successful one, a server counts as unreachable."""

AUDIT_SAMPLES = 10_000

MakeVisit = Callable[[Visitor], Visit]
"""Makes one visit, or requests what no browser requests, as one visitor."""


def manifests_for(target: Target, file: Path | None, onion: str = "") -> dict[str, Manifest]:
    """Return the manifests to compare with, by version; raise SurveyError for a wrong file.

    `onion` is the onion address that the page must offer.
    """
    manifests = _manifests(target, file)
    return {version: replace(manifest, onion=onion) for version, manifest in manifests.items()}


def _manifests(target: Target, file: Path | None) -> dict[str, Manifest]:
    if file is None:
        return known_manifests(target.collector)
    manifest = Manifest.read(file)
    if manifest.collector != target.collector:
        recipient = manifest.collector or "the page's own server"
        raise SurveyError(
            f"{file} is for a page that sends reports to {recipient}; --collector must match"
        )
    return {manifest.version: manifest}


def verify(
    target: Target,
    make_visit: MakeVisit,
    make_probe: MakeVisit,
    *,
    n_visits: int = DEFAULT_VISITS,
    pause: float | None = None,
    watch: Callable[[int], None] = lambda _: None,
    browsers: Sequence[str] = tuple(USER_AGENTS),
    rng: random.Random | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Visit a target and compare all responses; pass the number of visits so far to `watch`.

    Each visitor returns after all visits, for requests that no browser makes: a server that saw
    them earlier could answer all later visits with the published client.
    """
    rng = rng or random.SystemRandom()
    if pause is None:
        pause = 0.0 if is_loopback(urlsplit(target.page).hostname or "") else PAUSE_SECONDS
    result = Result(target, [], installed(target.collector).version)
    outcomes = []
    for at, visitor in enumerate(choose_visitors(n_visits, rng, browsers)):
        if at:
            sleep(pause * rng.uniform(0.5, 1.5))
        try:
            outcomes.append(make_visit(visitor))
        except UnreachableError as error:
            result.failures.append(str(error))
            if len(result.failures) >= MAX_FAILURES and not outcomes:
                break
        watch(at + 1)
    for outcome in outcomes:
        try:
            outcome.add(make_probe(outcome.visitor))
        except UnreachableError as error:
            result.failures.append(str(error))
            if len(result.failures) >= MAX_FAILURES:
                break
    result.visits += outcomes
    return result


def network_visits(
    target: Target, manifests: Mapping[str, Manifest], proxy: Proxy | None
) -> tuple[MakeVisit, MakeVisit]:
    """Return functions that make visits and probes with this program's own requests."""

    def make_visit(visitor: Visitor) -> Visit:
        with closing(Connections(proxy)) as server:
            return visit(target, visitor, server.get, manifests)

    def make_probe(visitor: Visitor) -> Visit:
        with closing(Connections(proxy)) as server:
            return probe(target, visitor, server.get, manifests)

    return make_visit, make_probe


def audit(result: Result, node: str | None = None) -> None:
    """Run the audit on the files and the definition that a visit received."""
    from survey.audit.summary import run_checks
    from survey.questionnaire.canonical import read_definition

    definition = next((v.definition for v in result.visits if v.definition is not None), None)
    if definition is None:
        result.audit_note = "skipped, because it needs the definition of an open survey"
        return
    if result.exit_status:
        result.audit_note = "skipped, because the files are not the published ones"
        return
    if result.version != result.newest:
        # The list of names and the texts are those of the installed version.
        result.audit_note = (
            f"skipped, because this installation audits only version {result.newest}"
        )
        return
    if (node or shutil.which("node")) is None:
        result.audit_note = "skipped, because Node is not installed on this machine"
        return
    files = max((visit.files for visit in result.visits), key=len)
    try:
        survey, collector = read_definition(definition), result.target.collector
        checks = run_checks(files, survey, AUDIT_SAMPLES, node, collector=collector)
        result.audit = list(checks)
    except (SurveyError, KeyError, ValueError, RecursionError) as error:
        result.audit = [Check("definition", "audit", False, str(error))]
