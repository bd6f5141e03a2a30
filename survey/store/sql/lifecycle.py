"""What becomes of surveys: planned, archived, deleted with every report and every trace."""

from __future__ import annotations

import json
from datetime import date
from typing import cast

from survey.errors import ConflictError, NotFoundError
from survey.questionnaire.texts import TRIAL
from survey.store.protocol import Plan
from survey.store.sql.surveys import PUBLISHING
from survey.store.sql.transaction import SqlTransactions, Transaction, whole_number

OF_A_SURVEY = ("inbox", "seen", "block", "counts", "invitation", "schedule", "plan", "release")
"""Tables that hold something of one version of a survey, by its key."""

OF_A_TEAM = ("membership", "colleague_link", "archived")
"""Tables that hold something of all its versions, by the slug."""


class SqlLifecycle(SqlTransactions):
    """The part of a `Store` that says what becomes of a survey."""

    def delete_survey(self, slug: str, today: date) -> None:
        """Delete every version of a closed survey, or of a try-out, with all that belongs to it.

        That it was there stays known, by slug, version, hash and day; nothing of its reports is.
        Raises ConflictError while a version takes reports, NotFoundError when there is none.
        """
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            rows = transaction.all(
                "SELECT key, version, sha256, state FROM survey WHERE slug = ? ORDER BY key", [slug]
            )
            if not rows:
                raise NotFoundError(f'there is no survey "{slug}"')
            if any(state != "closed" for *_, state in rows):
                raise ConflictError(f"{slug} still takes reports; close it before it is deleted")
            for key, version, sha256, _ in rows:
                transaction.hold(cast("int", key))
                _delete_version(transaction, cast("int", key))
                transaction.change(
                    "INSERT INTO deleted (kind, key, slug, version, sha256, day) "
                    "VALUES ('survey', ?, ?, ?, ?, ?)",
                    [key, slug, version, sha256, today.isoformat()],
                )
            # The team of a try-out is its draft's, and stays.
            if not slug.startswith(TRIAL):
                forget_team(transaction, slug)
                # Whoever takes the name next reads nothing of what was done here; admins do.
                transaction.change(
                    "UPDATE action SET slug = '', detail = ? || ' ' || detail WHERE slug = ?",
                    [slug, slug],
                )

    def archived_slugs(self) -> set[str]:
        """The slugs of surveys that lists leave out."""
        with self._looking() as transaction:
            return {cast("str", slug) for (slug,) in transaction.all("SELECT slug FROM archived")}

    def set_archived(self, slug: str, *, archived: bool) -> None:
        """Leave a survey out of lists, or put it back."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM archived WHERE slug = ?", [slug])
            if archived:
                transaction.change("INSERT INTO archived (slug) VALUES (?)", [slug])

    def plan(self, survey: int) -> Plan:
        """What was planned for a version."""
        with self._looking() as transaction:
            row = transaction.one("SELECT n, strata FROM plan WHERE survey = ?", [survey])
        return Plan(whole_number(row), json.loads(cast("str", row[1]))) if row else Plan()

    def set_plan(self, survey: int, plan: Plan) -> None:
        """Say anew what is planned for a version."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM plan WHERE survey = ?", [survey])
            transaction.change(
                "INSERT INTO plan (survey, n, strata) VALUES (?, ?, ?)",
                [survey, plan.n, json.dumps(dict(plan.strata), ensure_ascii=False)],
            )


def forget_team(transaction: Transaction, slug: str) -> None:
    """Delete who works on a survey or draft."""
    for table in OF_A_TEAM:
        transaction.change(f"DELETE FROM {table} WHERE slug = ?", [slug])  # noqa: S608  our own


def _delete_version(transaction: Transaction, key: int) -> None:
    # Its reports first: the database refuses to delete a survey before them.
    for table in OF_A_SURVEY:
        transaction.change(f"DELETE FROM {table} WHERE survey = ?", [key])  # noqa: S608  our own
    transaction.change("DELETE FROM survey WHERE key = ?", [key])
