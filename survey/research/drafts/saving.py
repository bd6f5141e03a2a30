"""Save a sheet of a draft beside what others saved meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from survey.errors import ConflictError, NotFoundError
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.edits import Merged, Sheet, Values, merged
from survey.store import Draft, Store, draft_key

TRIES = 5
"""How often a save begins again because another one was quicker."""


@dataclass(frozen=True)
class Opened:
    """A revision of a draft, read."""

    draft: Draft
    content: DraftContent


@dataclass(frozen=True)
class Saved:
    """What became of a save: nothing was kept while there are clashes to decide."""

    opened: Opened
    merged: Merged
    was_removed: bool

    @property
    def is_kept(self) -> bool:
        """Whether what was sent is in the draft now."""
        return not self.merged.clashes


class Drafts:
    """Reads and writes the drafts of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, slug: str) -> Opened:
        """The newest revision; NotFoundError when the draft is gone."""
        draft = self._store.draft(draft_key(slug))
        if draft is None:
            raise NotFoundError("this draft was published or deleted")
        return Opened(draft, DraftContent.from_json(draft.content))

    def change(self, slug: str, who: str, change: Callable[[DraftContent], DraftContent]) -> Opened:
        """Do something to whatever is the newest revision."""
        for _ in range(TRIES):
            opened = self.open(slug)
            content = change(opened.content)
            if content == opened.content:
                return opened
            try:
                draft = self._store.save_draft(opened.draft, content.to_json(), who, _now())
            except ConflictError:
                continue
            return Opened(draft, content)
        raise ConflictError("others save this draft all the time; try it again in a moment")

    def save(self, slug: str, who: str, sheet: Sheet, mine: Values, revision: int) -> Saved:
        """Save a sheet that was opened at a revision.

        What others changed in it meanwhile stays; where both changed the same field nothing is
        saved, and the clashes say what the others wrote.
        """
        base = self.sheet_at(slug, sheet, revision) or {}
        found: list[tuple[Merged, bool]] = []

        def write(content: DraftContent) -> DraftContent:
            theirs = _read(sheet, content)
            both = merged(base, mine, mine if theirs is None else theirs)
            found[:] = [(both, theirs is None)]
            return content if both.clashes else sheet.write(content, both.values)

        opened = self.change(slug, who, write)
        return Saved(opened, *found[0])

    def sheet_at(self, slug: str, sheet: Sheet, revision: int) -> Values | None:
        """What a sheet held in a revision; None when that is not kept, or had no such part."""
        draft = self._store.draft(draft_key(slug), revision)
        return _read(sheet, DraftContent.from_json(draft.content)) if draft else None


def _read(sheet: Sheet, content: DraftContent) -> Values | None:
    """What a sheet holds; None when its part was removed."""
    try:
        return sheet.read(content)
    except NotFoundError:
        return None


def _now() -> int:
    return int(time.time())
