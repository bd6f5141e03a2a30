"""The surveys of a store as its check meets them: also when something about them is wrong."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import cast

from survey.archive.pages import rows
from survey.questionnaire.definition import read_definition
from survey.questionnaire.published import PublishedQuestion
from survey.store import Snapshot
from survey.store.schema import HALF_COPIED


@dataclass(frozen=True)
class Published:
    """One version of a survey; without questions when its definition is not what was published.

    `released` is how many reports were, None when no row says so.
    """

    slug: str
    version: int
    state: str
    released: int | None
    questions: tuple[PublishedQuestion, ...]
    mistakes: tuple[str, ...]

    @property
    def name(self) -> str:
        """How messages call it."""
        return f'survey "{self.slug}" version {self.version}'

    @property
    def report_bytes(self) -> int:
        """Bytes of the stored codes of one report."""
        return sum(question.code_bytes for question in self.questions)

    def question(self, number: int) -> str:
        """How messages call a question; a number when the definition has none of it."""
        if 0 <= number < len(self.questions):
            return f'question "{self.questions[number].id}"'
        return f"question number {number}"


def published_in(snapshot: Snapshot) -> dict[int, Published]:
    """Every version of every survey by its key."""
    released = {cast("int", row[0]): cast("int", row[2]) for row in rows(snapshot, "release")}
    found = {}
    for key, slug, version, definition, sha256, state, _ in rows(snapshot, "survey"):
        found[cast("int", key)] = _published(
            cast("str", slug),
            cast("int", version),
            cast("str", state),
            released.get(cast("int", key)),
            cast("bytes", definition),
            cast("str", sha256),
        )
    return found


def _published(
    slug: str, version: int, state: str, released: int | None, definition: bytes, sha256: str
) -> Published:
    name, mistakes = f'survey "{slug}" version {version}', []
    questions: tuple[PublishedQuestion, ...] = ()
    digest = hashlib.sha256(definition).hexdigest()
    if digest == sha256:
        questions = read_definition(definition).questions
    else:
        mistakes.append(f"{name}: its definition has the SHA-256 {digest}, not {sha256}")
    if released is None:
        mistakes.append(f"{name}: nothing says how many reports were released; {HALF_COPIED}")
    return Published(slug, version, state, released, questions, tuple(mistakes))
