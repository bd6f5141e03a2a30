"""Whole numbers as forms and links send them, however many digits somebody types."""

from __future__ import annotations

from typing import Any

from wtforms import IntegerField

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


class WholeField(IntegerField):  # type: ignore[misc]
    """A whole number of a form; one of too many digits is none, and its range says what to enter.

    Such a number is an int, and comparing it as a float, as a range does, fails.
    """

    data: Any

    def process_formdata(self, valuelist: list[str]) -> None:
        """Take what was typed; the field still shows it."""
        if valuelist and len(valuelist[0].strip()) > LONGEST:
            self.data = None
            return
        super().process_formdata(valuelist)
