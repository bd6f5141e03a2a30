"""What all channels share: integer weights, their limits, and the draw that decides by them."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from survey.errors import ChannelError

UniformBelow = Callable[[int], int]
"""`uniform_below(n)`: an integer uniform in [0, n), n <= 2^32."""

WORD_TOTAL = 2**32
"""Largest total weight: one 32-bit word of a device's generator must be able to decide it."""

MAX_OPTIONS = 10_000
MAX_BITS = 1_000
MAX_GRID = 1_000
"""Most points of a grid for numbers and dates."""


def secure_uniform_below(n: int) -> int:
    """Draw uniformly from [0, n) with the system's CSPRNG."""
    return secrets.randbelow(n)


def check_integers(**values: object) -> None:
    """Refuse anything that is not exactly an integer: no float decides on a device."""
    for name, value in values.items():
        if type(value) is not int:
            raise ChannelError(f"{name} must be an integer, not {value!r}")


def check_two_weights(T: int, L: int, total: int) -> None:
    """Refuse weights that would not be private, not be invertible, or not fit in a word."""
    if L < 1:
        raise ChannelError(f"L = {L} must be at least 1: a zero weight gives no privacy")
    if T < 1 or T == L:
        raise ChannelError(f"T = {T} must be positive and differ from L = {L}")
    check_total(total)


def check_total(total: int) -> None:
    """Refuse totals that one word cannot decide."""
    if total > WORD_TOTAL:
        raise ChannelError(f"the weights add up to {total:,}, above 2^32; use smaller integers")
