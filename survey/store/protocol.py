"""What a store promises, whatever database stands behind it, and the plain values it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Protocol

from survey.errors import ReportError, SurveyError
from survey.questionnaire.canonical import read_definition
from survey.questionnaire.definition import Definition
from survey.questionnaire.texts import TRIAL
from survey.store.people import People, Role, team_slug

State = Literal["open", "superseded", "closed"]

N_ASKED = -1
"""The place of a question's counts that says how many reports hold an answer to it."""

MAX_RELEASED = 8_192
"""Reports per transaction of a release: so few hold the write lock only for moments."""

Value = int | str | bytes
Row = tuple[Value, ...]


@dataclass(frozen=True)
class Schedule:
    """The first and the last UTC day on which a survey takes reports, and how many at most.

    None of a day, and 0 for the number, when there is no such limit.
    """

    opens: date | None = None
    closes: date | None = None
    maximum: int = 0


@dataclass(frozen=True)
class Plan:
    """How many reports are planned for, 0 when nobody said, and people to invite by stratum."""

    n: int = 0
    strata: Mapping[str, int] = field(default_factory=dict)


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
    schedule: Schedule = Schedule()

    @property
    def definition(self) -> Definition:
        """The frozen definition."""
        return read_definition(self.canonical)

    @property
    def is_test_run(self) -> bool:
        """Whether it is the try-out of a draft, of which nothing stays."""
        return self.slug.startswith(TRIAL)

    @property
    def team(self) -> str:
        """The slug of its team: of a try-out, that of its draft."""
        return team_slug(self.slug)


@dataclass(frozen=True)
class StoredReport:
    """All that is kept of one report before its release: a random id of 16 bytes and its codes.

    `invitation` is the SHA-256 of the link's token, empty for an open link; it is spent together
    with the report and not kept with it.
    """

    id: bytes
    stratum: str
    codes: bytes
    invitation: bytes = b""

    def __post_init__(self) -> None:
        if len(self.id) != 16:
            raise ReportError(f"a report's id must be 16 bytes, not {len(self.id)}")
        if len(self.invitation) not in (0, 32):
            raise ReportError(
                f"an invitation must be a SHA-256 of 32 bytes, not {len(self.invitation)}"
            )
        if "\0" in self.stratum:
            raise ReportError("a stratum must be without the character NUL")


@dataclass(frozen=True)
class LastBlock:
    """The newest block of a stratum and bucket, which the next release shuffles into."""

    number: int
    columns: Sequence[bytes]


@dataclass(frozen=True)
class PendingReports:
    """What is released of one stratum into a bucket, in no meaningful order, with its newest
    block."""

    stratum: str
    bucket: str
    codes: Sequence[bytes]
    last: LastBlock | None


@dataclass(frozen=True)
class BlockColumn:
    """One question's shuffled codes of up to a block of reports."""

    stratum: str
    bucket: str
    question: int
    block: int
    n: int
    data: bytes


@dataclass(frozen=True)
class ReleaseContent:
    """What a release writes: whole blocks, and what to add to the counts.

    `counts` maps (stratum, bucket, question, place) to the number of newly released reports: the
    places of its channel's counts, and `N_ASKED`.
    """

    columns: Sequence[BlockColumn]
    counts: Mapping[tuple[str, str, int, int], int]


Compose = Callable[[Sequence[PendingReports]], ReleaseContent]


@dataclass(frozen=True)
class Tally:
    """Released counts of one survey, over all strata or of one.

    `n` reports; `n_asked[question]` of them hold an answer to a question (all, unless the survey
    draws its questions); `counts[question]` are those of its channel. `release` numbers the
    state: equal numbers mean equal counts.
    """

    release: int
    n: int
    n_asked: Sequence[int]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Release:
    """A survey's newest release: its number, as in `Tally`, and all reports released by then."""

    number: int
    n: int


class Snapshot(Protocol):
    """Whole tables as they stood at one moment, however long the reading takes."""

    def rows(self, table: str, after: Row | None, limit: int) -> list[Row]:
        """Up to `limit` rows whose primary key comes after `after`, in its order."""
        ...


class Store(People, Protocol):
    """Every method is one transaction; errors are StoreBusyError, StoreError or named ones."""

    def migrate(self) -> list[str]: ...
    def pending_migrations(self) -> list[str]: ...

    def check_writable(self) -> None: ...
    def check_complete(self) -> None: ...
    def close_connections(self) -> None: ...
    def close_thread_connection(self) -> None: ...

    def publish(
        self,
        definition: Definition,
        today: date,
        schedule: Schedule = ...,
        team: Mapping[int, Role] | None = None,
    ) -> PublishedSurvey: ...
    def surveys(self) -> list[PublishedSurvey]: ...
    def versions(self, slug: str) -> list[PublishedSurvey]: ...
    def test_runs(self, draft: str) -> list[PublishedSurvey]: ...
    def set_schedule(self, survey: int, schedule: Schedule) -> None: ...
    def close_survey(self, slug: str, today: date) -> list[PublishedSurvey]: ...
    def delete_survey(self, slug: str, today: date) -> None: ...
    def archived_slugs(self) -> set[str]: ...
    def set_archived(self, slug: str, *, archived: bool) -> None: ...
    def plan(self, survey: int) -> Plan: ...
    def set_plan(self, survey: int, plan: Plan) -> None: ...

    def add_reports(
        self, reports: Sequence[tuple[int, StoredReport]]
    ) -> list[SurveyError | None]: ...
    def add_invitations(
        self, survey: int, stratum: str, token_hashes: Sequence[bytes], before: int | None = None
    ) -> None: ...
    def n_invited(self, survey: int, stratum: str) -> int: ...
    def n_invited_by_stratum(self, survey: int) -> dict[str, int]: ...
    def has_report(self, survey: int, report: StoredReport) -> bool: ...
    def n_pending(self, survey: int) -> int: ...
    def n_released(self, survey: int) -> int: ...
    def release(
        self,
        survey: int,
        minimum: int,
        compose_release: Compose,
        *,
        bucket: str = "",
        maximum: int = MAX_RELEASED,
    ) -> int: ...
    def forget_ids(self, survey: int) -> None: ...
    def clean_up_after_release(self, survey: int) -> None: ...
    def retry_clean_up(self) -> None: ...
    def has_free_pages(self) -> bool: ...
    def vacuum(self) -> None: ...

    def newest_release(self, survey: int) -> Release: ...
    def tally(self, survey: int) -> Tally: ...
    def tallies(self, survey: int) -> dict[tuple[str, str], Tally]: ...
    def blocks(self, survey: int, question: int) -> Iterator[BlockColumn]: ...
    def block_columns(
        self, survey: int, questions: Sequence[int]
    ) -> Iterator[list[BlockColumn]]: ...

    def snapshot(self) -> AbstractContextManager[Snapshot]: ...
    def insert_rows(self, table: str, rows: Iterable[Row]) -> None: ...
