"""Published versions of surveys: numbered without holes, frozen, closed for good."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import cast

from survey.errors import ConflictError, StoreError
from survey.questionnaire.definition import Definition
from survey.store.people import Role
from survey.store.protocol import PublishedSurvey, Row, Schedule, State
from survey.store.schema import HALF_COPIED
from survey.store.sql.transaction import SqlTransactions, Transaction, whole_number

ALL_SURVEYS = (
    "SELECT key, slug, version, sha256, state, changed, definition, opens, closes, most "
    "FROM survey LEFT JOIN schedule ON schedule.survey = survey.key "
)

ALWAYS = Schedule()
PUBLISHING = 0
"""A survey number that no survey has: who holds it publishes alone."""


class SqlSurveys(SqlTransactions):
    """The part of a `Store` that knows what is published."""

    def publish(
        self,
        definition: Definition,
        today: date,
        schedule: Schedule = ALWAYS,
        team: Mapping[int, Role] | None = None,
    ) -> PublishedSurvey:
        """Store a definition for good, open as scheduled; an open version before is superseded.

        A first version belongs to `team`, researchers and their roles, or to the admins alone.

        Raises ConflictError when its version is not the next one.
        """
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            _check_next(transaction, definition)
            transaction.change(
                "UPDATE survey SET state = 'superseded', changed = ? "
                "WHERE slug = ? AND state = 'open'",
                [today.isoformat(), definition.slug],
            )
            key = next_key(transaction, "survey")
            published = PublishedSurvey(
                key=key,
                slug=definition.slug,
                version=definition.version,
                sha256=definition.sha256,
                state="open",
                changed=today,
                canonical=definition.canonical,
                schedule=schedule,
            )
            _insert(transaction, published)
            _schedule(transaction, key, schedule)
            if definition.version == 1:
                transaction.change_each(
                    "INSERT INTO membership (slug, researcher, role) VALUES (?, ?, ?)",
                    [(definition.slug, each, role) for each, role in (team or {}).items()],
                )
            return published

    def check_complete(self) -> None:
        """Refuse a database of another version, or into which a copy or restore did not end."""
        with self._looking() as transaction:
            unsaid = transaction.all("SELECT key FROM survey EXCEPT SELECT survey FROM release")
        if unsaid:
            raise StoreError(f"the database is not whole: {HALF_COPIED}")

    def check_writable(self) -> None:
        """Take the right to write, as a report does, and write nothing.

        Raises StoreBusyError or StoreError where nobody can write just now.
        """
        with self._writing() as transaction:
            transaction.change("DELETE FROM schedule WHERE survey = -1")

    def surveys(self) -> list[PublishedSurvey]:
        """Every version of every survey, by slug, newest version first."""
        with self._looking() as transaction:
            rows = transaction.all(ALL_SURVEYS + "ORDER BY slug, version DESC")
        return [_survey(row) for row in rows]

    def versions(self, slug: str) -> list[PublishedSurvey]:
        """All versions of one survey, newest first; empty when there is none."""
        # PostgreSQL refuses a text with NUL, which no slug has.
        if "\0" in slug:
            return []
        with self._looking() as transaction:
            rows = transaction.all(ALL_SURVEYS + "WHERE slug = ? ORDER BY version DESC", [slug])
        return [_survey(row) for row in rows]

    def test_runs(self, draft: str) -> list[PublishedSurvey]:
        """The try-outs of the draft of a slug, newest first: one, or a moment more."""
        with self._looking() as transaction:
            rows = transaction.all(
                ALL_SURVEYS + "WHERE slug LIKE ? ORDER BY key DESC", [f"{draft}-%"]
            )
        return [_survey(row) for row in rows]

    def set_schedule(self, survey: int, schedule: Schedule) -> None:
        """Say anew from when to when a version takes reports, and how many."""
        with self._writing() as transaction:
            _schedule(transaction, survey, schedule)

    def close_survey(self, slug: str, today: date) -> list[PublishedSurvey]:
        """Let no version of a survey take reports any more; returns the versions closed.

        When it returns, every report that was acknowledged is stored and no other will be.
        """
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            rows = transaction.all(
                ALL_SURVEYS + "WHERE slug = ? AND state <> 'closed' ORDER BY key", [slug]
            )
            closed = [_survey(row) for row in rows]
            for survey in closed:
                transaction.hold(survey.key)
            transaction.change(
                "UPDATE survey SET state = 'closed', changed = ? "
                "WHERE slug = ? AND state <> 'closed'",
                [today.isoformat(), slug],
            )
        return closed


def next_key(transaction: Transaction, kind: str) -> int:
    """A number that no survey, or draft, has or had."""
    there = whole_number(
        transaction.one(f"SELECT coalesce(max(key), 0) FROM {kind}")  # noqa: S608  our own words
    )
    gone = whole_number(
        transaction.one("SELECT coalesce(max(key), 0) FROM deleted WHERE kind = ?", [kind])
    )
    return max(there, gone) + 1


def _check_next(transaction: Transaction, definition: Definition) -> None:
    newest = whole_number(
        transaction.one(
            "SELECT coalesce(max(version), 0) FROM survey WHERE slug = ?", [definition.slug]
        )
    )
    if definition.version != newest + 1:
        raise ConflictError(
            f"version {definition.version} of {definition.slug} cannot be published; "
            f"the next is {newest + 1}"
        )


def _insert(transaction: Transaction, survey: PublishedSurvey) -> None:
    transaction.change(
        "INSERT INTO survey (key, slug, version, definition, sha256, state, changed) "
        "VALUES (?, ?, ?, ?, ?, 'open', ?)",
        [
            survey.key,
            survey.slug,
            survey.version,
            survey.canonical,
            survey.sha256,
            survey.changed.isoformat(),
        ],
    )
    transaction.change("INSERT INTO release (survey, number, n) VALUES (?, 0, 0)", [survey.key])


def _schedule(transaction: Transaction, survey: int, schedule: Schedule) -> None:
    transaction.change("DELETE FROM schedule WHERE survey = ?", [survey])
    if schedule == ALWAYS:
        return
    days = [day.isoformat() if day else "" for day in (schedule.opens, schedule.closes)]
    transaction.change(
        "INSERT INTO schedule (survey, opens, closes, most) VALUES (?, ?, ?, ?)",
        [survey, *days, schedule.maximum],
    )


def _survey(row: Row) -> PublishedSurvey:
    key, slug, version, sha256, state, changed, definition, opens, closes, most = row
    return PublishedSurvey(
        key=cast("int", key),
        slug=cast("str", slug),
        version=cast("int", version),
        sha256=cast("str", sha256),
        state=cast("State", state),
        changed=date.fromisoformat(cast("str", changed)),
        canonical=cast("bytes", definition),
        schedule=Schedule(_day(opens), _day(closes), cast("int", most) or 0),
    )


def _day(text: object) -> date | None:
    return date.fromisoformat(cast("str", text)) if text else None
