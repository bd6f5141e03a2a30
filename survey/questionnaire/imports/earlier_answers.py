"""Earlier answers in the texts of other tools, as placeholders where a device can show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from survey.questionnaire.error_messages import shortened
from survey.questionnaire.imports.markup import Text

MISSING = "shows “…” where an earlier answer is missing"


class ShownText(NamedTuple):
    """A text with placeholders, the names of the answers that it shows, and what it leaves out."""

    text: Text
    names: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()


@dataclass(frozen=True)
class References:
    """How a tool writes an earlier answer into a text.

    pattern  matches a reference; its only group is the expression in it
    name     returns the name of the question that an expression means; "" if it means none
    note     returns what changes if an expression shows the label of an option
    """

    pattern: re.Pattern[str]
    name: Callable[[str], str] = str
    note: Callable[[str], str] = lambda _: ""

    def without(self, text: str) -> str:
        """Return a text with "…" instead of answers."""
        return self.pattern.sub("…", text)

    def left_out(self, text: str) -> set[str]:
        """Return what the report says about each reference that a text loses."""
        return {_loss(match[0]) for match in self.pattern.finditer(text)}

    def shown(self, text: Text, ids: Mapping[str, str]) -> ShownText:
        """Return a text with placeholders for the answers in `ids`, by the questions' names.

        Each language must show the same answers; a reference that one of them lacks becomes "…".
        """
        tables = [text] if isinstance(text, str) else list(text.values())
        names = frozenset.intersection(
            *(frozenset(map(self.name, self.pattern.findall(own))) for own in tables)
        ).intersection(ids)
        left_out = {
            _loss(match[0])
            for own in tables
            for match in self.pattern.finditer(own)
            if self.name(match[1]) not in names
        }
        shown_ids = {name: ids[name] for name in names}
        changed: Text = (
            self._with_placeholders(text, shown_ids)
            if isinstance(text, str)
            else {tag: self._with_placeholders(own, shown_ids) for tag, own in text.items()}
        )
        return ShownText(changed, names, frozenset(left_out))

    def notes(self, text: Text, names: frozenset[str]) -> set[str]:
        """Return what changes where a text shows the labels of these questions' answers."""
        tables = [text] if isinstance(text, str) else text.values()
        expressions = (found for own in tables for found in self.pattern.findall(own))
        notes = {self.note(found) for found in expressions if self.name(found) in names}
        return notes - {""}

    def _with_placeholders(self, text: str, ids: Mapping[str, str]) -> str:
        if not ids:
            return self.without(text)
        parts = self.pattern.split(text)
        plain = [part.replace("{", "{{").replace("}", "}}") for part in parts[::2]]
        answers = [
            f"{{{ids[name]}|…}}" if name in ids else "…" for name in map(self.name, parts[1::2])
        ]
        return "".join(part for pair in zip(plain, [*answers, ""], strict=True) for part in pair)


def _loss(reference: str) -> str:
    return f"{shortened(reference)} is left out of its texts"
