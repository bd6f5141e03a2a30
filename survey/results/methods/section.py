"""A section of the methods page: what a number is, by which formula, and what it cannot show."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup, escape

RAISED_OR_LOWERED = re.compile(r"([_^])(?:\{([^}]*)\}|(\S))")
"""Indices and powers as formulas here are written: x_j, x^2, x_{j,k}."""

TAGS = {"_": "sub", "^": "sup"}


def typeset(text: str) -> Markup:
    """A text with its indices and powers set as such, and all else escaped.

    >>> typeset("c_j < n^2")
    Markup('c<sub>j</sub> &lt; n<sup>2</sup>')
    """
    return Markup(RAISED_OR_LOWERED.sub(_set, str(escape(text))))  # noqa: S704


class Formula(NamedTuple):
    """One line of mathematics, and the same in words for whoever listens."""

    written: str
    spoken: str

    @property
    def html(self) -> Markup:
        """The line with its indices and powers set as such.

        >>> Formula("π_j = x^{2n}", "").html
        Markup('π<sub>j</sub> = x<sup>2n</sup>')
        """
        return typeset(self.written)


@dataclass(frozen=True)
class Section:
    """One thing that pages show or do, explained once.

    anchor    its address on the page; `also` are others that lead to it
    says      what it is
    runs      the functions that compute it: their names are read off them
    sources   keys of `REFERENCES`
    assumes   when it is right
    cannot    what it does not show
    example   a worked case, computed by what runs whenever it is asked for
    """

    anchor: str
    title: str
    says: str
    formulas: tuple[Formula, ...] = ()
    runs: tuple[Callable[..., object], ...] = ()
    sources: tuple[str, ...] = ()
    assumes: str = ""
    cannot: str = ""
    also: tuple[str, ...] = ()
    example: Callable[[], str] | None = None

    @property
    def ran(self) -> list[str]:
        """The full names of what runs.

        >>> Section("a", "A", "", runs=(re.compile,)).ran
        ['re.compile']
        """
        return [f"{function.__module__}.{function.__qualname__}" for function in self.runs]


class Chapter(NamedTuple):
    """Sections that belong together."""

    title: str
    sections: tuple[Section, ...]


def _set(found: re.Match[str]) -> str:
    tag = TAGS[found[1]]
    return f"<{tag}>{found[2] or found[3]}</{tag}>"
