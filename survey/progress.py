"""The progress of a long computation, for the page that researchers see until it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

PROGRESS = "survey.progress"
"""Request variable with the `Progress` that the page is to show."""

Item = TypeVar("Item")


@dataclass
class Progress:
    """Steps of the current part of a computation: `done` of `total`; 0 of 0 while unknown."""

    done: int = 0
    total: int = 0


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


def follow() -> Progress:
    """Return the progress of this thread's computation from now on."""
    progress = Progress()
    _current.set(progress)
    return progress


def start(total: int) -> None:
    """Begin a part of `total` steps."""
    if progress := _current.get():
        progress.done, progress.total = 0, total


def advance() -> None:
    """Count a step as done."""
    if progress := _current.get():
        progress.done = min(progress.done + 1, progress.total)


def steps(items: Sequence[Item]) -> Iterator[Item]:
    """Yield items, and count each as a step of a new part.

    >>> progress = follow()
    >>> for _ in steps("abc"):
    ...     print(progress)
    Progress(done=0, total=3)
    Progress(done=1, total=3)
    Progress(done=2, total=3)
    """
    start(len(items))
    for item in items:
        yield item
        advance()
