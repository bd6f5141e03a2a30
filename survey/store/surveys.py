"""Published surveys: numbered versions that never change, their schedule, plan and deletion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal

from survey.errors import ConflictError, DamagedSurveyError, NotFoundError, StoreError
from survey.questionnaire import is_test_run
from survey.store.digests import NO_ROWS
from survey.store.people import Role, add_team, delete_team, team_slug
from survey.store.pictures import check_pictures, delete_unused_pictures
from survey.store.schema import ARCHIVED, DELETED, PLAN, RELEASE, SCHEDULE, SURVEY
from survey.store.sealed_reports import take_spare_field_key, take_spare_key
from survey.store.titles import as_column
from survey.store.transactions import REGISTRY, Row, Transaction, Transactions

if TYPE_CHECKING:
    from survey.questionnaire.definition import Definition

State = Literal["open", "superseded", "closed"]

GRACE = timedelta(days=7)
"""How long the previous version accepts reports, and a closed survey recognizes copies of them."""

SURVEY_TABLES = (
    *("inbox", "pending", "pending_id", "damaged_batch", "released_ids", "block", "counts"),
    *("invitation", "schedule", "plan", "release_failure", "release"),
)
"""Tables with rows of one version of a survey; those with reports come first.

Public keys remain until the keeper has destroyed their private keys.
"""

INCOMPLETE_COPY = (
    "a copy or a restore into this database was interrupted: "
    "run it again before a server uses the database"
)
"""Explains why a published survey has no row in `release`, the table that is copied last."""

SURVEYS = (
    "SELECT key, slug, version, sha256, state, changed, definition, opens, closes, most "
    "FROM survey LEFT JOIN schedule ON schedule.survey = survey.key "
)
HEADS = (
    "SELECT key, slug, version, title, state, changed, opens, closes, most, "
    "release.number, release.n, plan.n FROM survey JOIN release ON release.survey = survey.key "
    "LEFT JOIN schedule ON schedule.survey = survey.key "
    "LEFT JOIN plan ON plan.survey = survey.key "
    "WHERE version = (SELECT max(version) FROM survey AS other WHERE other.slug = survey.slug)"
)


@dataclass(frozen=True)
class Schedule:
    """The first and last UTC day on which a survey accepts reports, and their maximum number.

    None for a day, or 0 as the maximum, means that there is no such limit. A day that is
    damaged in the database is None too; then `is_damaged` is true.
    """

    opens: date | None = None
    closes: date | None = None
    maximum: int = 0
    is_damaged: bool = False


@dataclass(frozen=True)
class Plan:
    """The planned number of reports, 0 if unknown, and of people to invite in each stratum."""

    n: int = 0
    strata: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedSurvey:
    """One published version; `changed` is the UTC date of its last change of state.

    If that date is damaged in the database, it is `UNREADABLE_DAY`.
    """

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
        from survey.questionnaire.canonical import read_definition

        return read_definition(self.canonical)

    @property
    def is_test_run(self) -> bool:
        """Whether it is the test run of a draft, which is deleted with all its reports."""
        return is_test_run(self.slug)

    @property
    def team(self) -> str:
        """The slug of its team; a test run has the team of its draft."""
        return team_slug(self.slug)

    def require_intact_dates(self) -> None:
        """Raise DamagedSurveyError if a date that governs the survey's reports is damaged."""
        if self.changed == UNREADABLE_DAY:
            raise DamagedSurveyError(
                f"the day of the last change of {self.slug} version {self.version} is damaged in "
                "the database; restore a backup, or write the day into survey.changed"
            )
        if self.schedule.is_damaged and self.state != "closed":
            raise DamagedSurveyError(
                f"the first or last day of {self.slug} version {self.version} is damaged in the "
                f"database; set both again with: survey schedule {self.slug} --opens --closes"
            )

    def is_over(self, today: date) -> bool:
        """Return whether the survey is open although its last day has passed."""
        closes = self.schedule.closes
        return self.state == "open" and closes is not None and today > closes


@dataclass(frozen=True)
class SurveyHead:
    """The newest version of a survey without its definition, as a list of surveys needs it.

    `n_planned` is the planned number of reports, 0 if unknown; `release` is the number of the
    newest release, and `n_released` the number of all reports released so far.
    """

    key: int
    slug: str
    version: int
    title: str
    state: State
    changed: date
    schedule: Schedule
    release: int
    n_released: int
    n_planned: int


NO_LIMITS = Schedule()

UNREADABLE_DAY = date.max
"""Replaces a damaged day of the last change.

No waiting period that begins on this day ends, so the damage deletes nothing.
"""


class Surveys(Transactions):
    """The part of a `Store` that holds published surveys."""

    def publish(
        self,
        definition: Definition,
        today: date,
        schedule: Schedule = NO_LIMITS,
        team: Mapping[int, Role] | None = None,
    ) -> PublishedSurvey:
        """Store a definition as an open version; it supersedes the open version before it.

        A first version belongs to `team`, which maps researchers to roles, or else only to
        administrators. Raises ConflictError if its version number is not the next one, or
        if its key of field mode is no longer spare.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            _check_next(transaction, definition)
            check_pictures(transaction, definition)
            transaction.execute(
                "UPDATE survey SET state = 'superseded', changed = ? "
                "WHERE slug = ? AND state = 'open'",
                [today.isoformat(), definition.slug],
            )
            key = next_key(transaction, "survey")
            slug, version, canonical = definition.slug, definition.version, definition.canonical
            day, sha256 = today.isoformat(), definition.sha256
            title = as_column(definition.title)
            transaction.execute(
                SURVEY.insert, [key, slug, version, canonical, sha256, "open", day, title]
            )
            transaction.execute(RELEASE.insert, [key, 0, 0, 0, NO_ROWS])
            take_spare_key(transaction, key)
            if definition.field is not None:
                take_spare_field_key(transaction, definition.field.key)
            _set_schedule(transaction, key, schedule)
            if version == 1:
                add_team(transaction, slug, team or {})
        return PublishedSurvey(key, slug, version, sha256, "open", today, canonical, schedule)

    def check_complete(self) -> None:
        """Raise StoreError for a schema of another version or an unfinished copy or restore."""
        if self._rows("SELECT key FROM survey EXCEPT SELECT survey FROM release"):
            raise StoreError(f"the database is incomplete: {INCOMPLETE_COPY}")

    def check_writable(self) -> None:
        """Open a write transaction as a report does, without changing anything.

        Raises StoreBusyError or StoreError if nothing can be written now.
        """
        self._execute("DELETE FROM schedule WHERE survey = -1")

    def surveys(self) -> list[PublishedSurvey]:
        """Return every version of every survey, by slug, newest version first."""
        return list(map(_survey, self._rows(SURVEYS + "ORDER BY slug, version DESC")))

    def survey_heads(self) -> list[SurveyHead]:
        """Return the newest version of every survey and test run, without definitions."""
        return list(map(_head, self._rows(HEADS)))

    def canonical_definitions(self, surveys: Sequence[int]) -> dict[int, bytes]:
        """Return the canonical bytes of the definitions of these versions, by key."""
        rows = self._rows_of_keys("SELECT key, definition FROM survey WHERE key IN", surveys)
        return {int(key): definition for key, definition in rows}

    def versions(self, slug: str) -> list[PublishedSurvey]:
        """Return all versions of a survey, newest first; none if there is no such survey."""
        # PostgreSQL refuses a text with NUL, which no slug has.
        if "\0" in slug:
            return []
        rows = self._rows(SURVEYS + "WHERE slug = ? ORDER BY version DESC", [slug])
        return list(map(_survey, rows))

    def test_runs(self, draft: str) -> list[PublishedSurvey]:
        """Return the test runs of a draft's slug, newest first; briefly there may be two."""
        rows = self._rows(SURVEYS + "WHERE slug LIKE ? ORDER BY key DESC", [f"{draft}-%"])
        return list(map(_survey, rows))

    def set_schedule(self, survey: int, schedule: Schedule) -> None:
        """Replace the schedule of a version."""
        with self._write() as transaction:
            _set_schedule(transaction, survey, schedule)

    def close_survey(self, slug: str, today: date) -> list[PublishedSurvey]:
        """Close all versions of a survey; return those that were still open or superseded.

        On return, every acknowledged report is stored and no further one will be.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            rows = transaction.rows(
                SURVEYS + "WHERE slug = ? AND state <> 'closed' ORDER BY key", [slug]
            )
            surveys = list(map(_survey, rows))
            for survey in surveys:
                transaction.lock(survey.key)
            transaction.execute(
                "UPDATE survey SET state = 'closed', changed = ? "
                "WHERE slug = ? AND state <> 'closed'",
                [today.isoformat(), slug],
            )
        return surveys

    def delete_survey(self, slug: str, today: date) -> None:
        """Delete every version of a closed survey, or of a test run, with all that belongs to it.

        Only its slug, versions, hashes and the day stay known; nothing of its reports does.
        Raises ConflictError if a version is not closed, NotFoundError if there is no such survey.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            rows = transaction.rows(
                "SELECT key, version, sha256, state FROM survey WHERE slug = ? ORDER BY key", [slug]
            )
            if not rows:
                raise NotFoundError(f'there is no survey "{slug}"')
            if any(state != "closed" for *_, state in rows):
                raise ConflictError(f"{slug} still accepts reports; close it before you delete it")
            for key, version, sha256, _ in rows:
                transaction.lock(key)
                # A trigger prevents the deletion of a survey that has reports: it goes last.
                for table in SURVEY_TABLES:
                    transaction.execute(f"DELETE FROM {table} WHERE survey = ?", [key])  # noqa: S608
                transaction.execute("DELETE FROM survey WHERE key = ?", [key])
                transaction.execute(
                    DELETED.insert, ["survey", key, slug, version, sha256, today.isoformat()]
                )
            delete_unused_pictures(transaction)
            # The team of a test run belongs to its draft, and stays.
            if not is_test_run(slug):
                delete_team(transaction, slug)
                # A later survey of the same name must not show this log; administrators keep it.
                transaction.execute(
                    "UPDATE action SET slug = '', detail = ? || ' ' || detail WHERE slug = ?",
                    [slug, slug],
                )

    def archived_slugs(self) -> set[str]:
        """Return the slugs of the surveys that lists leave out."""
        return {slug for (slug,) in self._rows("SELECT slug FROM archived")}

    def set_archived(self, slug: str, *, archived: bool) -> None:
        """Leave a survey out of lists, or show it in them again."""
        with self._write() as transaction:
            transaction.execute("DELETE FROM archived WHERE slug = ?", [slug])
            if archived:
                transaction.execute(ARCHIVED.insert, [slug])

    def plan(self, survey: int) -> Plan:
        """Return the plan of a version."""
        row = self._row("SELECT n, strata FROM plan WHERE survey = ?", [survey])
        return Plan(row[0], json.loads(row[1])) if row else Plan()

    def set_plan(self, survey: int, plan: Plan) -> None:
        """Replace the plan of a version."""
        with self._write() as transaction:
            transaction.execute("DELETE FROM plan WHERE survey = ?", [survey])
            strata = json.dumps(dict(plan.strata), ensure_ascii=False)
            transaction.execute(PLAN.insert, [survey, plan.n, strata])


def next_key(transaction: Transaction, kind: Literal["survey", "draft"]) -> int:
    """Return a key that no survey, or no draft, has or ever had."""
    newest = transaction.integer(f"SELECT coalesce(max(key), 0) FROM {kind}")  # noqa: S608
    newest_deleted = transaction.integer(
        "SELECT coalesce(max(key), 0) FROM deleted WHERE kind = ?", [kind]
    )
    return max(newest, newest_deleted) + 1


def _check_next(transaction: Transaction, definition: Definition) -> None:
    newest = transaction.integer(
        "SELECT coalesce(max(version), 0) FROM survey WHERE slug = ?", [definition.slug]
    )
    if definition.version != newest + 1:
        raise ConflictError(
            f"version {definition.version} of {definition.slug} cannot be published; "
            f"the next version is {newest + 1}"
        )


def _set_schedule(transaction: Transaction, survey: int, schedule: Schedule) -> None:
    transaction.execute("DELETE FROM schedule WHERE survey = ?", [survey])
    if schedule == NO_LIMITS:
        return
    days = [day.isoformat() if day else "" for day in (schedule.opens, schedule.closes)]
    transaction.execute(SCHEDULE.insert, [survey, *days, schedule.maximum])


def _schedule(opens: str | None, closes: str | None, maximum: int | None) -> Schedule:
    first, last = _day(opens or ""), _day(closes or "")
    is_damaged = bool((opens and first is None) or (closes and last is None))
    return Schedule(first, last, maximum or 0, is_damaged)


def _day(text: str) -> date | None:
    """Return a stored day, or None if it is empty or damaged, so that lists remain readable."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _survey(row: Row) -> PublishedSurvey:
    key, slug, version, sha256, state, changed, definition, *schedule = row
    day = _day(changed) or UNREADABLE_DAY
    return PublishedSurvey(key, slug, version, sha256, state, day, definition, _schedule(*schedule))


def _head(row: Row) -> SurveyHead:
    key, slug, version, title, state, changed, *schedule, release, n_released, n_planned = row
    return SurveyHead(
        key,
        slug,
        version,
        title,
        state,
        _day(changed) or UNREADABLE_DAY,
        _schedule(*schedule),
        release,
        n_released,
        n_planned or 0,
    )
