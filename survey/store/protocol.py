"""What a store promises, whatever database stands behind it, and the plain values it moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Protocol

from survey.questionnaire.definition import Definition, read_definition

State = Literal["open", "superseded", "closed"]

ASKED = -1
"""The place of a question's counts that says how many reports hold an answer to it."""


@dataclass(frozen=True)
class PublishedSurvey:
    """One published version; `changed` is the UTC date of its last change of state."""

    key: int
    slug: str
    version: int
    sha256: str
    state: State
    changed: date
    canonical: bytes = field(repr=False)

    @property
    def definition(self) -> Definition:
        """The frozen definition."""
        return read_definition(self.canonical)


@dataclass(frozen=True)
class StoredReport:
    """All that is kept of one report before its release: a random id and its codes."""

    id: bytes
    stratum: str
    codes: bytes


@dataclass(frozen=True)
class LastBlock:
    """The newest block of a stratum, which the next release shuffles into."""

    number: int
    columns: Sequence[bytes]


@dataclass(frozen=True)
class Waiting:
    """What waits in one stratum, in no meaningful order, with its newest block."""

    stratum: str
    codes: Sequence[bytes]
    last: LastBlock | None


@dataclass(frozen=True)
class BlockColumn:
    """One question's shuffled codes of up to a block of reports."""

    stratum: str
    question: int
    block: int
    n: int
    data: bytes


@dataclass(frozen=True)
class Sealed:
    """What a release writes: whole blocks, and what to add to the counts.

    `counts` maps (stratum, question, place) to the number of newly released reports: the places
    of its channel's counts, and `ASKED`.
    """

    columns: Sequence[BlockColumn]
    counts: Mapping[tuple[str, int, int], int]


@dataclass(frozen=True)
class Tally:
    """Released counts of one survey, over all strata.

    `n` reports; `asked[question]` of them hold an answer to a question (all, unless the survey
    draws its questions); `counts[question]` are those of its channel. `release` numbers the
    state: equal numbers mean equal counts.
    """

    release: int
    n: int
    asked: Sequence[int]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Researcher:
    """Someone who may sign in."""

    key: int
    email: str
    password_hash: str = field(repr=False)


class Store(Protocol):
    """Every method is one transaction; errors are StoreBusyError, StoreError or named ones."""

    def migrate(self) -> list[str]: ...
    def pending_migrations(self) -> list[str]: ...
    def close_connections(self) -> None: ...

    def publish(self, definition: Definition, today: date) -> PublishedSurvey: ...
    def surveys(self) -> list[PublishedSurvey]: ...
    def versions(self, slug: str) -> list[PublishedSurvey]: ...
    def close_survey(self, slug: str, today: date) -> list[PublishedSurvey]: ...

    def add_report(self, survey: int, report: StoredReport) -> None: ...
    def knows_report(self, survey: int, report: StoredReport) -> bool: ...
    def waiting(self, survey: int) -> int: ...
    def released(self, survey: int) -> int: ...
    def release(
        self, survey: int, minimum: int, seal: Callable[[Sequence[Waiting]], Sealed]
    ) -> int: ...
    def forget_ids(self, survey: int) -> None: ...
    def has_free_pages(self) -> bool: ...
    def truncate_log(self, *, only_pending: bool = False) -> None: ...
    def vacuum(self) -> None: ...
    def tally(self, survey: int) -> Tally: ...
    def blocks(self, survey: int, question: int) -> list[BlockColumn]: ...

    def add_researcher(self, email: str, password_hash: str) -> None: ...
    def set_password(self, email: str, password_hash: str) -> None: ...
    def researcher(self, email: str) -> Researcher | None: ...
    def start_session(
        self, token_hash: bytes, researcher: int, now: int, absolute: int
    ) -> None: ...
    def session_researcher(
        self, token_hash: bytes, now: int, idle: int, absolute: int
    ) -> Researcher | None: ...
    def end_session(self, token_hash: bytes) -> None: ...
