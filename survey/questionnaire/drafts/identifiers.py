"""Ids made of what people write: plain ASCII, for columns of files and names in programs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

LONGEST = 40
"""Characters of an id that is made of a text; what is written by hand may be longer."""


def identifier(text: str) -> str:
    """An id that a text can be known by; empty when it has no letter or digit of ASCII.

    >>> identifier("Más de una vez (2+)"), identifier("10 or more"), identifier("никогда")
    ('mas_de_una_vez_2', 'o10_or_more', '')
    """
    words = _words(text, "_")
    return f"o{words}" if words[:1].isdigit() else words


def slug(text: str) -> str:
    """An address that a title can be known by; "survey" when it has nothing of ASCII.

    >>> slug("Work & health, 2026"), slug("опрос")
    ('work-health-2026', 'survey')
    """
    return _words(text, "-") or "survey"


def free(wanted: str, taken: Collection[str]) -> str:
    """An id near the wanted one that nothing has yet.

    >>> free("q1", {"q1", "q2"}), free("often", {"often"}), free("a", ())
    ('q3', 'often_2', 'a')
    """
    if wanted not in taken:
        return wanted
    counted = re.fullmatch(r"(.*?)([0-9]+)", wanted)
    stem, start = (counted[1], int(counted[2])) if counted else (f"{wanted}_", 1)
    return next(
        name
        for n in range(start + 1, start + len(taken) + 2)
        if (name := f"{stem}{n}") not in taken
    )


def _words(text: str, between: str) -> str:
    """The letters and digits of a text in ASCII, with one mark between its words."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", between, plain).strip(between)[:LONGEST].strip(between)
