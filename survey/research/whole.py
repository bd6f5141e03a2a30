"""Whole numbers as forms and links send them, however many digits somebody types."""

from __future__ import annotations

LONGEST = 15
"""Digits that every whole number here fits into; int() refuses thousands of them by an error."""


def whole(text: str, otherwise: int = 0) -> int:
    """The number that a text is, or another for a text that is none.

    >>> whole("42"), whole("4٢"), whole("9" * 5_000, -1)
    (42, 0, -1)
    """
    plain = text.strip()
    is_number = plain.isascii() and plain.isdecimal() and len(plain) <= LONGEST
    return int(plain) if is_number else otherwise
