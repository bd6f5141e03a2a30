"""Drafts of surveys: every save is a revision, and nobody saves over what they have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import cast

from survey.errors import ConflictError, NotFoundError
from survey.store.people import Draft, Role
from survey.store.protocol import Row
from survey.store.sql.lifecycle import forget_team
from survey.store.sql.surveys import PUBLISHING, next_key
from survey.store.sql.transaction import SqlTransactions, Transaction

REVISIONS_KEPT = 200
"""Revisions of a draft that can be read again; older ones are deleted."""

REVISIONS = "SELECT key, revision, who, at, content FROM draft "
NEWEST = "revision = (SELECT max(revision) FROM draft AS other WHERE other.key = draft.key) "


class SqlDrafts(SqlTransactions):
    """The part of a `Store` that keeps what is not published yet."""

    def add_draft(self, content: str, who: str, at: int, team: Mapping[int, Role]) -> Draft:
        """Begin a draft, whose `team` maps researchers to roles."""
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            draft = Draft(next_key(transaction, "draft"), 1, who, at, content)
            _insert(transaction, draft)
            transaction.change_each(
                "INSERT INTO membership (slug, researcher, role) VALUES (?, ?, ?)",
                [(draft.slug, researcher, role) for researcher, role in team.items()],
            )
            return draft

    def draft(self, key: int, revision: int | None = None) -> Draft | None:
        """A revision of a draft, the newest when none is named; None when it is not kept."""
        wanted, values = ("", []) if revision is None else ("AND revision = ? ", [revision])
        with self._looking() as transaction:
            row = transaction.one(
                f"{REVISIONS}WHERE key = ? {wanted}ORDER BY revision DESC LIMIT 1", [key, *values]
            )
        return _draft(row) if row else None

    def drafts(self) -> list[Draft]:
        """The newest revision of every draft, the one saved last first."""
        with self._looking() as transaction:
            rows = transaction.all(f"{REVISIONS}WHERE {NEWEST}ORDER BY at DESC, key DESC")
        return [_draft(row) for row in rows]

    def save_draft(self, before: Draft, content: str, who: str, at: int) -> Draft:
        """Save what was made of the revision `before`.

        Raises ConflictError when somebody has saved since, NotFoundError when it is gone.
        """
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            newest = transaction.one("SELECT max(revision) FROM draft WHERE key = ?", [before.key])
            if newest is None or newest[0] is None:
                raise NotFoundError("this draft was published or deleted meanwhile")
            if newest != (before.revision,):
                raise ConflictError("somebody else has saved this draft meanwhile")
            draft = Draft(before.key, before.revision + 1, who, at, content)
            _insert(transaction, draft)
            transaction.change(
                "DELETE FROM draft WHERE key = ? AND revision <= ?",
                [draft.key, draft.revision - REVISIONS_KEPT],
            )
            return draft

    def delete_draft(self, key: int, today: date, published_as: str = "") -> None:
        """Delete a draft with its revisions and team; `published_as` is the survey made from it."""
        with self._writing() as transaction:
            transaction.hold(PUBLISHING)
            transaction.change("DELETE FROM draft WHERE key = ?", [key])
            slug = Draft(key, 0, "", 0, "").slug
            forget_team(transaction, slug)
            if published_as:
                # What was done with the draft was done with what came of it.
                transaction.change(
                    "UPDATE action SET slug = ? WHERE slug = ?", [published_as, slug]
                )
            transaction.change(
                "INSERT INTO deleted (kind, key, slug, version, sha256, day) "
                "VALUES ('draft', ?, ?, 0, '', ?) ON CONFLICT DO NOTHING",
                [key, published_as, today.isoformat()],
            )

    def published_slug(self, key: int) -> str:
        """The slug of the survey that a draft was published as, empty when it was not."""
        with self._looking() as transaction:
            row = transaction.one(
                "SELECT slug FROM deleted WHERE kind = 'draft' AND key = ?", [key]
            )
        return cast("str", row[0]) if row else ""


def _insert(transaction: Transaction, draft: Draft) -> None:
    transaction.change(
        "INSERT INTO draft (key, revision, who, at, content) VALUES (?, ?, ?, ?, ?)",
        [draft.key, draft.revision, draft.author, draft.at, draft.content],
    )


def _draft(row: Row) -> Draft:
    return Draft(*cast("tuple[int, int, str, int, str]", row))
