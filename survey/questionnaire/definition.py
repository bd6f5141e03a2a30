"""A published definition: frozen for good and identified by the SHA-256 of its canonical JSON.

Devices, server and estimator all read their parameters from these same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from survey.mechanism.composition import log_rounded_up
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.privacy_loss import groups_of, linked_ratios, total_ratio_of

MAX_REPORT_BYTES = 8192
"""Maximum size of a report's body."""

MAX_STRATUM_LENGTH = 60
INVITATION_LENGTH = 43


@dataclass(frozen=True)
class Definition:
    """One version of one survey, as published; the hash is over `canonical`.

    `groups` are the questions that are drawn together, of which each respondent is asked `drawn`;
    without question sampling both cover all questions. `bucket` says how much of a release's date
    is stored: "none", the "day" or the "week". `languages` starts with the survey's own. `access`
    is "open" to everybody with the link, or by "invitation".
    """

    canonical: bytes
    slug: str
    version: int
    title: str
    questions: tuple[PublishedQuestion, ...]
    groups: tuple[tuple[str, ...], ...]
    drawn: int
    report_bytes: int
    allow_skip_logic: bool
    bucket: str
    languages: tuple[str, ...]
    access: str

    @cached_property
    def sha256(self) -> str:
        """The definition id: SHA-256 of the canonical bytes, in hex."""
        return hashlib.sha256(self.canonical).hexdigest()

    @property
    def is_sampled(self) -> bool:
        """Whether each respondent is asked only some of the questions."""
        return self.drawn < len(self.groups)

    @cached_property
    def ratio(self) -> Fraction:
        """The odds factor, e^epsilon, of one respondent's whole report."""
        return total_ratio_of(self.groups, self._ratios, self.drawn)

    @cached_property
    def linked_ratios(self) -> dict[str, Fraction]:
        """e^epsilon of all reports that depend on the answer to a question, by its id.

        Its own, times those of the questions that skip logic links to it.
        """
        return linked_ratios(groups_of(self.questions), self._ratios)

    @property
    def _ratios(self) -> dict[str, Fraction]:
        return {question.id: question.channel.ratio for question in self.questions}

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up."""
        return log_rounded_up(self.ratio)


def report_body(
    definition_id: str,
    report_id: str,
    codes: Sequence[int | str | None],
    *,
    stratum: str = "",
    invitation: str = "",
    length: int = 0,
) -> bytes:
    """Return a report as the client writes it: fixed keys in order, padded to `length` bytes."""
    form = {
        "definition": definition_id,
        "report_id": report_id,
        "stratum": stratum,
        "codes": list(codes),
        "invitation": invitation,
        "pad": "",
    }
    body = json.dumps(form, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    return body[:-2] + b"." * (length - len(body)) + body[-2:]
