"""Titles for lists of surveys and drafts, stored in separate columns.

Lists search and sort these columns, because reading all definitions and drafts takes too long.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from survey.errors import StoreError

if TYPE_CHECKING:
    from survey.store.transactions import Transaction

MAX_CHARACTERS = 300
"""Maximum number of characters of a title in lists."""

PAGE = 100
"""Number of definitions or drafts that a migration reads at once."""


def as_column(text: str) -> str:
    """Return a text as a single line that both databases can store.

    >>> as_column("Night\\n work\\0")
    'Night work'
    """
    line = " ".join(text.replace("\0", " ").split())[:MAX_CHARACTERS]
    # JSON can contain half of a surrogate pair, which UTF-8 cannot encode.
    return line.encode(errors="replace").decode()


def draft_names(content: str) -> tuple[str, str]:
    """Return the title and the short name of a draft's content; both empty if it is damaged."""
    from survey.questionnaire.drafts.draft import DraftContent

    try:
        draft = DraftContent.from_json(content)
        return as_column(draft.title), as_column(draft.survey["slug"])
    except (AttributeError, StoreError):
        return "", ""


def _published_title(canonical: bytes) -> str:
    """Return the title of a definition; empty if it is damaged, which `check-store` reports."""
    try:
        return as_column(json.loads(canonical)["title"])
    except (LookupError, TypeError, ValueError):
        return ""


def fill_titles(transaction: Transaction) -> None:
    """Fill the title columns in a database of an earlier version, for the step that adds them."""
    after = -1
    while rows := transaction.rows(
        "SELECT key, definition FROM survey WHERE key > ? ORDER BY key LIMIT ?", [after, PAGE]
    ):
        for key, canonical in rows:
            transaction.execute(
                "UPDATE survey SET title = ? WHERE key = ?", [_published_title(canonical), key]
            )
        after = rows[-1][0]
    draft = (-1, -1)
    while rows := transaction.rows(
        "SELECT key, revision, content FROM draft WHERE (key, revision) > (?, ?) "
        "ORDER BY key, revision LIMIT ?",
        [*draft, PAGE],
    ):
        for key, revision, content in rows:
            transaction.execute(
                "UPDATE draft SET title = ?, short_name = ? WHERE key = ? AND revision = ?",
                [*draft_names(content), key, revision],
            )
        draft = rows[-1][:2]
