"""Drafts of surveys: each save is a revision, and no save overwrites an unseen one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import date

from survey.errors import ConflictError, NotFoundError
from survey.questionnaire import TEST_RUN_PREFIX
from survey.store.people import Role, add_team, delete_team
from survey.store.pictures import add_pictures, delete_unused_pictures
from survey.store.schema import DELETED, DRAFT, DRAFT_COMMENT
from survey.store.surveys import next_key
from survey.store.titles import draft_names
from survey.store.transactions import REGISTRY, Transactions

MAX_REVISIONS = 200
"""Newest revisions of a draft that are stored; older ones are deleted."""

MAX_COMMENTS = 500
"""Maximum number of comments on one draft, resolved ones included."""

MAX_COMMENT_LENGTH = 2_000
"""Maximum length of a comment in characters."""

REVISIONS = "SELECT key, revision, who, at, content FROM draft "
# A join, because a subquery for each revision takes three times as long.
HEADS = (
    "SELECT draft.key, revision, who, at, title, short_name FROM draft JOIN "
    "(SELECT key, max(revision) AS newest FROM draft GROUP BY key) AS head "
    "ON head.key = draft.key AND revision = newest"
)
COMMENTS = (
    "SELECT number, draft, question, draft_comment.researcher, email, at, resolved, content "
    "FROM draft_comment JOIN researcher ON researcher.key = draft_comment.researcher "
)
NEWEST = "revision = (SELECT max(revision) FROM draft AS other WHERE other.key = draft.key) "


@dataclass(frozen=True)
class Revision:
    """One revision of a draft, saved by `author`; `at` is in seconds since 1970."""

    key: int
    revision: int
    author: str
    at: int

    @property
    def slug(self) -> str:
        """The slug of the draft's team; its test runs have longer slugs, which nobody guesses."""
        return f"{TEST_RUN_PREFIX}{self.key}"


@dataclass(frozen=True)
class DraftHead(Revision):
    """One revision without its content, for lists of drafts.

    Title and short name are empty if the content is damaged.
    """

    title: str
    short_name: str


@dataclass(frozen=True)
class Draft(Revision):
    """One revision with its content, which is JSON."""

    content: str = field(repr=False)


@dataclass(frozen=True)
class Comment:
    """A comment of a researcher on a question of a draft, or on the whole draft.

    `question` is the question's key in the draft, 0 for the whole draft; a comment on a removed
    question stays stored, because undoing the removal restores the question under the same key.
    `author` is an e-mail address, `at` a second since 1970, `resolved` 0 or 1.
    """

    number: int
    draft: int
    question: int
    researcher: int
    author: str
    at: int
    resolved: int
    text: str


class Drafts(Transactions):
    """The part of a `Store` that holds unpublished surveys."""

    def add_draft(self, content: str, author: str, at: int, team: Mapping[int, Role]) -> Draft:
        """Create a draft; `team` maps researchers to roles."""
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            draft = Draft(next_key(transaction, "draft"), 1, author, at, content)
            transaction.execute(DRAFT.insert, [*astuple(draft), *draft_names(content)])
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
        return [DraftHead(*row) for row in self._rows(HEADS)]

    def newest_drafts(self, keys: Sequence[int]) -> list[Draft]:
        """Return the newest revision of each of these drafts that exists."""
        rows = self._rows_of_keys(f"{REVISIONS}WHERE {NEWEST}AND key IN", keys)
        return [Draft(*row) for row in rows]

    def save_draft(
        self,
        before: Draft,
        content: str,
        author: str,
        at: int,
        pictures: Iterable[tuple[str, bytes]] = (),
    ) -> Draft:
        """Save a new revision that is based on the revision `before`, with its new pictures.

        Raises ConflictError if a newer revision exists, NotFoundError if the draft is gone.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            newest = transaction.row("SELECT max(revision) FROM draft WHERE key = ?", [before.key])
            if newest is None or newest[0] is None:
                raise NotFoundError("this draft was published or deleted meanwhile")
            if newest != (before.revision,):
                raise ConflictError("somebody else has saved this draft meanwhile")
            add_pictures(transaction, pictures)
            draft = Draft(before.key, before.revision + 1, author, at, content)
            transaction.execute(DRAFT.insert, [*astuple(draft), *draft_names(content)])
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
            transaction.execute("DELETE FROM draft_comment WHERE draft = ?", [key])
            delete_unused_pictures(transaction)
            slug = Revision(key, 0, "", 0).slug
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

    def add_comment(self, draft: int, question: int, researcher: int, at: int, text: str) -> None:
        """Add a comment to a question of a draft, or to the whole draft if `question` is 0.

        Raises NotFoundError if the draft does not exist, ConflictError if it has too many comments.
        """
        with self._write() as transaction:
            transaction.lock(REGISTRY)
            if not transaction.row("SELECT 1 FROM draft WHERE key = ?", [draft]):
                raise NotFoundError("this draft was published or deleted")
            n = transaction.integer("SELECT count(*) FROM draft_comment WHERE draft = ?", [draft])
            if n >= MAX_COMMENTS:
                raise ConflictError(
                    f"a draft can have {MAX_COMMENTS} comments; delete some of yours first"
                )
            number = transaction.integer("SELECT coalesce(max(number), 0) + 1 FROM draft_comment")
            transaction.execute(
                DRAFT_COMMENT.insert, [number, draft, question, researcher, at, 0, text]
            )

    def comments(self, draft: int) -> list[Comment]:
        """Return the comments on a draft, oldest first."""
        rows = self._rows(f"{COMMENTS}WHERE draft = ? ORDER BY number", [draft])
        return [Comment(*row) for row in rows]

    def resolve_comment(self, draft: int, number: int, *, resolved: bool) -> bool:
        """Resolve a comment on a draft, or reopen it; return False if there is no such comment."""
        return bool(
            self._execute(
                "UPDATE draft_comment SET resolved = ? WHERE draft = ? AND number = ?",
                [int(resolved), draft, number],
            )
        )

    def delete_comment(self, draft: int, number: int, researcher: int) -> bool:
        """Delete a researcher's own comment; return False if they have no such comment."""
        return bool(
            self._execute(
                "DELETE FROM draft_comment WHERE draft = ? AND number = ? AND researcher = ?",
                [draft, number, researcher],
            )
        )
