"""The result of a verification as text, as JSON and as files, and the log of results."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from survey.audit.node import Check
from survey.errors import SurveyError
from survey.respond.client import INDEX, sha256
from survey.verification.manifest import Difference
from survey.verification.visits import Target, Visit

CONFIDENCE = 0.99

MAX_SHOWN = 40


def percent(rate: float) -> str:
    """Return a rate in percent, rounded up, so that statements about it remain true.

    >>> percent(0.0674), percent(0.00459)
    ('7%', '0.5%')
    """
    digits = 0 if rate >= 0.01 else 1
    scale = 100 * 10**digits
    return f"{math.ceil(rate * scale) / 10**digits:.{digits}f}%"


def printable(line: str) -> str:
    """Escape control characters in a line, because a server could use them to alter the output.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


@dataclass(frozen=True)
class Finding:
    """A difference with the number of visits and a description of the visitors affected."""

    difference: Difference
    n_visits: int
    visitors: str


@dataclass
class Result:
    """The outcome of all visits to a target.

    failures  visits that could not be completed, by reason
    newest    version of this installation
    audit     outcomes of the audit of the served files; None if it was not run
    """

    target: Target
    visits: list[Visit]
    newest: str
    used_browser: bool = False
    failures: list[str] = field(default_factory=list)
    audit: list[Check] | None = None
    audit_note: str = ""

    @property
    def version(self) -> str:
        """The version that most pages name, preferably one with a known manifest."""
        versions = [visit.version for visit in self.visits if visit.version and visit.is_known]
        versions = versions or [visit.version for visit in self.visits]
        return max(sorted(set(versions)), key=versions.count, default="")

    @property
    def n_files(self) -> int:
        """The number of compared files, including the page and the definition."""
        names = {INDEX, *(name for visit in self.visits for name in visit.files)}
        has_definition = any(visit.definition is not None for visit in self.visits)
        return len(names) + has_definition

    @property
    def is_version_known(self) -> bool:
        """Whether there is a manifest to compare with."""
        return not self.visits or any(visit.is_known for visit in self.visits)

    @property
    def findings(self) -> list[Finding]:
        """All differences with the visits that they affect, the most frequent first."""
        differences = [[*visit.differences, *self._deviations(visit)] for visit in self.visits]
        distinct = dict.fromkeys(difference for row in differences for difference in row)
        findings = []
        for difference in distinct:
            affected = [difference in row for row in differences]
            findings.append(Finding(difference, sum(affected), self._describe_visitors(affected)))
        return sorted(findings, key=lambda finding: -finding.n_visits)

    def _deviations(self, visit: Visit) -> list[Difference]:
        """Return how a visit differs from most others."""
        deviations = []
        if visit.version not in ("", self.version):
            message = f"it names version {visit.version!r}; other visits get {self.version}"
            deviations.append(Difference("page", message))
        contents = [other_visit.definition for other_visit in self.visits if other_visit.is_known]
        reference = max(contents, key=contents.count, default=None)
        if visit.is_known and self.target.slug and visit.definition != reference:
            digest = "none" if visit.definition is None else sha256(visit.definition)[:32]
            message = f"it differs from that of other visits: hash {digest}, status {visit.status}"
            deviations.append(Difference("definition", message))
        for (where, coding), values in visit.validators.items():
            all_values = [
                v.validators[where, coding] for v in self.visits if (where, coding) in v.validators
            ]
            if values != max(all_values, key=all_values.count):
                message = "header ETag or Last-Modified differs, which could identify visitors"
                deviations.append(Difference(where, message))
        return deviations

    def _describe_visitors(self, affected: Sequence[bool]) -> str:
        """Describe the affected visits: their number, and the properties that all of them share."""
        n = sum(affected)
        if n == len(affected):
            return "all visits"
        shared = []
        rows = [visit.visitor.properties() for visit in self.visits]
        for name in rows[0]:
            values = {
                row[name] for row, is_affected in zip(rows, affected, strict=True) if is_affected
            }
            unaffected_values = {
                row[name]
                for row, is_affected in zip(rows, affected, strict=True)
                if not is_affected
            }
            if len(values) == 1 and n > 1:
                scope = "" if values & unaffected_values else " and no others"
                shared.append(f"{name} {values.pop()!r} in all of these{scope}")
        return "; ".join([f"{n} of {len(affected)} visits", *shared])

    @property
    def is_identical(self) -> bool:
        """Whether every visit received exactly the release, and the audit, if it ran, passed."""
        return self.exit_status == 0

    @property
    def exit_status(self) -> int:
        """Exit status of the command: 0 identical, 1 different, 2 not checked."""
        if (self.findings and self.is_version_known) or self._failed_checks:
            return 1
        is_complete = self.visits and self.is_version_known and not self.failures
        return 0 if is_complete and not self.lacks_definition else 2

    @property
    def lacks_definition(self) -> bool:
        """Whether the link has a hash, but no visit received a definition to compare with it."""
        definitions = [visit.definition for visit in self.visits if visit.is_known]
        return bool(self.target.prefix and definitions) and all(d is None for d in definitions)

    @property
    def _failed_checks(self) -> list[Check]:
        return [check for check in self.audit or () if not check.ok]

    @property
    def excluded_rate(self) -> float:
        """The smallest rate of altered visits that these visits detect with a probability of 99%.

        A server that alters a share r of all visits at random remains undetected in n visits with
        probability (1 - r)^n, which is 1% for r = 1 - 0.01^(1/n).
        """
        return float(1 - (1 - CONFIDENCE) ** (1 / max(len(self.visits), 1)))

    def to_text(self) -> str:
        """Return the result in sentences."""
        lines = [self._headline(), *self._details(), *self._limits()]
        return "\n".join(map(printable, lines))

    def _headline(self) -> str:
        n = len(self.visits)
        if self.exit_status == 1:
            return (
                f"DIFFERENT: {self.target.page} does not send every visitor the published client"
                f"{f' {self.version}' if self.version else ''}. Do not answer the survey there."
            )
        if self.exit_status == 2:
            reference = "a published client"
            if self.lacks_definition:
                reference = "the hash in the link"
            return f"NOT CHECKED: {self.target.page} could not be compared with {reference}."
        kind = "real browser visits" if self.used_browser else "visits"
        return (
            f"This server sends the published client {self.version}: "
            f"{self.n_files} files, {n} {kind}, all identical."
        )

    def _details(self) -> list[str]:
        lines = []
        for finding in self.findings[:MAX_SHOWN] if self.exit_status == 1 else ():
            difference = finding.difference
            lines.append(f"  {difference.where}: {difference.what} ({finding.visitors})")
        if len(self.findings) > MAX_SHOWN:
            lines.append(f"  and {len(self.findings) - MAX_SHOWN} more differences (see --json)")
        lines += [f"  audit: {check.name}: {check.detail}" for check in self._failed_checks]
        if self.visits and not self.is_version_known:
            lines.append(
                f"  The page names version {self.version}, which this installation ({self.newest}) "
                f"does not know. {self._manifest_hint()}"
            )
        for reason in sorted(set(self.failures))[:3]:
            n = self.failures.count(reason)
            lines.append(f"  {n} {'visit' if n == 1 else 'visits'} failed: {reason}")
        if self.exit_status != 2 or self.lacks_definition:
            lines.append(self._definition_sentence())
        if self.exit_status == 2:
            return lines
        if self.version != self.newest and self.exit_status == 0:
            lines.append(
                f"This installation has version {self.newest}; the server runs {self.version}."
            )
        lines.append(f"Audit of the files: {self._audit_sentence()}.")
        return lines

    def _manifest_hint(self) -> str:
        if self.target.collector:
            # The page names its collector, so its hash is that of one installed version only.
            return (
                "Installations know only their own version of a bundle: for any other, pass the "
                "client-manifest.json that `survey bundle` of that version writes to --manifest."
            )
        return "Upgrade, or pass the manifest of that release with --manifest FILE."

    def _definition_sentence(self) -> str:
        if not self.target.slug:
            return "The URL does not name a survey, so no definition was compared."
        differs = any(finding.difference.where == "definition" for finding in self.findings)
        if all(visit.definition is None for visit in self.visits):
            statuses = sorted({str(visit.status) for visit in self.visits if visit.status})
            return (
                f"The server sends no definition (status {', '.join(statuses)}), so none was "
                "compared. The survey may be closed or may not exist. Verify it while it is open."
            )
        if not self.target.prefix:
            definitions = "different definitions" if differs else "the same definition"
            return (
                f"The visits received {definitions}. The link has no hash (#d=...), so this does "
                "not show whether the definition is the published one."
            )
        if differs:
            return "The survey's definition does not match the hash in the link."
        return "The survey's definition matches the hash in the link."

    def _audit_sentence(self) -> str:
        if self.audit is None:
            return self.audit_note
        n, failed = len(self.audit), len(self._failed_checks)
        return f"{failed} of {n} checks failed" if failed else f"all {n} checks passed"

    def _limits(self) -> list[str]:
        if self.exit_status == 2:
            return []
        lines = []
        if self.exit_status == 0:
            lines.append(
                f"If the server altered {percent(self.excluded_rate)} or more of all visits at "
                f"random, these {len(self.visits)} visits would have detected it with a "
                "probability of at least 99%."
            )
        browser = "a real Chromium" if self.used_browser else "no real browser (--browser)"
        return [
            *lines,
            f"The visits came from one address and used {browser}, so a server "
            "could recognize them. Afterwards, the command requested addresses that no browser "
            "requests, so the server could recognize this address the next time.",
            "This does not show whether the server alters the page for one person or address, or "
            "at other times (--watch), or what it does with the reports.",
        ]

    def save(self, directory: Path) -> None:
        """Save the bytes that differ from the release, named by their hash, and the result."""
        directory.mkdir(exist_ok=True)
        altered: dict[str, dict[str, Any]] = {}
        for visit in self.visits:
            for where, content in visit.altered.items():
                digest = sha256(content)
                name = f"{digest[:16]}-{PurePath(where).name}"
                entry = altered.setdefault(name, {"where": where, "sha256": digest, "visitors": []})
                entry["visitors"].append(visit.visitor.properties())
                (directory / name).write_bytes(content)
        form = {**self.to_json(), "altered_files": altered}
        (directory / "result.json").write_text(json.dumps(form, indent=1), encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        """Return the result for programs."""
        return {
            "url": self.target.link,
            "collector": self.target.collector,
            "status": ("identical", "different", "not checked")[self.exit_status],
            "version": self.version,
            "files": self.n_files,
            "visits": len(self.visits),
            "failed_visits": self.failures,
            "browser": self.used_browser,
            "excluded_rate": math.ceil(1e4 * self.excluded_rate) / 1e4
            if self.exit_status == 0
            else None,
            "definition_compared": bool(self.target.prefix)
            and any(visit.definition is not None for visit in self.visits),
            "differences": [
                {
                    "where": finding.difference.where,
                    "what": finding.difference.what,
                    "visits": finding.n_visits,
                    "visitors": finding.visitors,
                }
                for finding in self.findings
            ],
            "audit": None if self.audit is None else not self._failed_checks,
            "audit_failures": [f"{check.name}: {check.detail}" for check in self._failed_checks],
            "audit_note": self.audit_note,
        }


FIRST_PREVIOUS = "0" * 64
"""The previous hash in the first line."""


def append_entry(file: Path, entry: dict[str, Any], now: datetime | None = None) -> str:
    """Append an entry with its time to a log and return the new head; reject a damaged log.

    A log is a hash chain: every line contains the hash of the line before it. A person who keeps
    the newest hash, the head, can detect that earlier lines were changed or removed.
    """
    previous = check_log(file)[1] if file.exists() else FIRST_PREVIOUS
    time = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    line = json.dumps({"previous": previous, "time": time, **entry}, ensure_ascii=False)
    with file.open("ab") as stream:
        stream.write(line.encode("utf-8") + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    return sha256(line.encode("utf-8"))


def check_log(file: Path, head: str = "") -> tuple[list[dict[str, Any]], str]:
    """Return the entries of a log and its head; raise SurveyError if lines were changed.

    head  an earlier head; the log must contain the line with this hash
    """
    entries, previous, heads = [], FIRST_PREVIOUS, {FIRST_PREVIOUS}
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
