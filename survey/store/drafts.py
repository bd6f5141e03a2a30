"""Drafts of surveys: each save is a revision, and no save overwrites an unseen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import date

from survey.errors import ConflictError, NotFoundError
from survey.questionnaire import TEST_RUN_PREFIX
from survey.store.people import Role, add_team, delete_team
from survey.store.schema import DELETED, DRAFT
from survey.store.surveys import next_key
from survey.store.transactions import REGISTRY, Transactions

MAX_REVISIONS = 200
"""Newest revisions of a draft that are stored; older ones are deleted."""

REVISIONS = "SELECT key, revision, who, at, content FROM draft "
REVISION_HEADS = "SELECT key, revision, who, at FROM draft "
NEWEST = "revision = (SELECT max(revision) FROM draft AS other WHERE other.key = draft.key) "


@dataclass(frozen=True)
class DraftHead:
    """One revision of an unpublished survey without its content.

    `author` saved it, at a second since 1970.
    """

    key: int
    revision: int
    author: str
    at: int

    @property
    def slug(self) -> str:
        """The slug of the draft's team; its test runs have longer slugs, which nobody guesses."""
        return f"{TEST_RUN_PREFIX}{self.key}"


@dataclass(frozen=True)
class Draft(DraftHead):
    """One revision of an unpublished survey; `content` is JSON."""

    content: str = field(repr=False)


class Drafts(Transactions):
    """The part of a `Store` that holds unpublished surveys."""

    def add_draft(self, content: str, author: str, at: int, team: Mapping[int, Role]) -> Draft:
        """Create a draft; `team` maps researchers to roles."""
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            draft = Draft(next_key(transaction, "draft"), 1, author, at, content)
            transaction.execute(DRAFT.insert, astuple(draft))
            add_team(transaction, draft.slug, team)
            return draft

    def draft(self, key: int, revision: int | None = None) -> Draft | None:
        """Return a revision of a draft, by default the newest; None if it is not stored."""
        condition, values = ("", []) if revision is None else ("AND revision = ? ", [revision])
        row = self._row(
            f"{REVISIONS}WHERE key = ? {condition}ORDER BY revision DESC LIMIT 1",
            [key, *values],
        )
        return Draft(*row) if row else None

    def drafts(self) -> list[Draft]:
        """Return the newest revision of every draft, most recently saved first."""
        rows = self._rows(f"{REVISIONS}WHERE {NEWEST}ORDER BY at DESC, key DESC")
        return [Draft(*row) for row in rows]

    def draft_heads(self) -> list[DraftHead]:
        """Return the newest revision of every draft, without its content."""
        return [DraftHead(*row) for row in self._rows(f"{REVISION_HEADS}WHERE {NEWEST}")]

    def newest_drafts(self, keys: Sequence[int]) -> list[Draft]:
        """Return the newest revision of each of these drafts that exists."""
        rows = self._rows_of_keys(f"{REVISIONS}WHERE {NEWEST}AND key IN", keys)
        return [Draft(*row) for row in rows]

    def save_draft(self, before: Draft, content: str, author: str, at: int) -> Draft:
        """Save a new revision that is based on the revision `before`.

        Raises ConflictError if a newer revision exists, NotFoundError if the draft is gone.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            newest = transaction.row("SELECT max(revision) FROM draft WHERE key = ?", [before.key])
            if newest is None or newest[0] is None:
                raise NotFoundError("this draft was published or deleted meanwhile")
            if newest != (before.revision,):
                raise ConflictError("somebody else has saved this draft meanwhile")
            draft = Draft(before.key, before.revision + 1, author, at, content)
            transaction.execute(DRAFT.insert, astuple(draft))
            transaction.execute(
                "DELETE FROM draft WHERE key = ? AND revision <= ?",
                [draft.key, draft.revision - MAX_REVISIONS],
            )
            return draft

    def delete_draft(self, key: int, today: date, published_as: str = "") -> None:
        """Delete a draft with its revisions and team; `published_as` is its survey, if any."""
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            transaction.execute("DELETE FROM draft WHERE key = ?", [key])
            slug = Draft(key, 0, "", 0, "").slug
            delete_team(transaction, slug)
            if published_as:
                # The log of the draft becomes the log of the survey.
                transaction.execute(
                    "UPDATE action SET slug = ? WHERE slug = ?", [published_as, slug]
                )
            transaction.execute(
                f"{DELETED.insert} ON CONFLICT DO NOTHING",
                ["draft", key, published_as, 0, "", today.isoformat()],
            )

    def published_slug(self, key: int) -> str:
        """Return the slug of the survey that a draft was published as, empty if it was not."""
        row = self._row("SELECT slug FROM deleted WHERE kind = 'draft' AND key = ?", [key])
        return str(row[0]) if row else ""
