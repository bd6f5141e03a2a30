"""What whoever runs a server may be told of its load, and nothing of single reports."""

from __future__ import annotations

from typing import Protocol

from survey.errors import SurveyError


class Figures(Protocol):
    """Is told of every commit and refusal; whoever implements it tells nothing finer than steps."""

    def committed(self, accepted: int, seconds: float, left: int) -> None:
        """A group was committed: reports accepted, how long it took, how many wait behind it."""
        ...

    def refused(self, error: SurveyError) -> None:
        """A report was refused."""
        ...


class _Untold:
    """Figures that nobody reads."""

    def committed(self, accepted: int, seconds: float, left: int) -> None:
        """Forget it."""

    def refused(self, error: SurveyError) -> None:
        """Forget it."""


UNTOLD = _Untold()
