"""Pictures of answer options: stored once by content, deleted with the last survey or draft.

Definitions and drafts name a picture by its SHA-256, so no table has to count its uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from survey.errors import ConflictError
from survey.store.schema import PICTURE
from survey.store.transactions import Transaction, Transactions

if TYPE_CHECKING:
    from survey.questionnaire.definition import Definition

HASH = re.compile(r'"(?:picture|sha256)":"([0-9a-f]{64})"')
"""The hash of a picture in a draft or in a definition; quotes in texts are escaped."""


class Pictures(Transactions):
    """The part of a `Store` that holds pictures."""

    def picture(self, sha256: str) -> bytes | None:
        """Return a picture by the SHA-256 of its content in hex, None if it is not stored."""
        if "\0" in sha256:  # PostgreSQL rejects null characters.
            return None
        row = self._row("SELECT content FROM picture WHERE sha256 = ?", [sha256])
        return bytes(row[0]) if row else None


def add_pictures(transaction: Transaction, pictures: Iterable[tuple[str, bytes]]) -> None:
    """Store pictures, given by SHA-256 and content, that are not stored yet."""
    for sha256, content in pictures:
        transaction.execute(f"{PICTURE.insert} ON CONFLICT DO NOTHING", [sha256, content])


def check_pictures(transaction: Transaction, definition: Definition) -> None:
    """Raise ConflictError if a definition names a picture that is not stored."""
    for sha256 in definition.pictures:
        if transaction.row("SELECT 1 FROM picture WHERE sha256 = ?", [sha256]) is None:
            raise ConflictError(
                f"the picture {sha256[:12]}… is not stored here; upload it again in the draft"
            )


def delete_unused_pictures(transaction: Transaction) -> None:
    """Delete the pictures that no survey and no revision of a draft uses any more."""
    stored = {str(sha256) for (sha256,) in transaction.rows("SELECT sha256 FROM picture", [])}
    if not stored:
        return
    for text in _texts(transaction):
        stored -= set(HASH.findall(text))
    for sha256 in stored:
        transaction.execute("DELETE FROM picture WHERE sha256 = ?", [sha256])


def _texts(transaction: Transaction) -> Iterator[str]:
    """Yield all definitions, and all revisions of drafts, one by one."""
    for key in transaction.rows("SELECT key FROM survey", []):
        for (definition,) in transaction.rows("SELECT definition FROM survey WHERE key = ?", key):
            yield bytes(definition).decode("utf-8")
    for revision in transaction.rows("SELECT key, revision FROM draft", []):
        yield from (
            str(content)
            for (content,) in transaction.rows(
                "SELECT content FROM draft WHERE key = ? AND revision = ?", revision
            )
        )
