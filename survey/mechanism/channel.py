"""Channels: P(report | truth) made of integers, so that what is promised is exactly what runs.

A channel that exists is valid: its constructor refuses everything else. The client runs the
same integers (`client_js/src/mechanism.js`); `tests/vectors` binds the two together.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.accounting import log_rounded_up
from survey.mechanism.arrays import AnyIntegers, Codes, Integers


class Channel(Protocol):
    """What every mechanism offers, whatever its truths and reports look like."""

    @property
    def kind(self) -> str: ...
    @property
    def ratio(self) -> Fraction: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def options(self) -> int: ...
    @property
    def truths(self) -> int: ...
    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> AnyIntegers: ...
    def perturb_one(self, truth: Any, uniform_below: UniformBelow) -> int | str: ...
    @property
    def code_bytes(self) -> int: ...
    @property
    def longest_code(self) -> int | str: ...
    @property
    def counted(self) -> int: ...
    def encode(self, code: object) -> bytes: ...
    def count(self, codes: Codes) -> Integers: ...
    def to_json(self) -> dict[str, Any]: ...


UniformBelow = Callable[[int], int]
"""`uniform_below(n)`: an integer uniform in [0, n), n <= 2^32."""

WORD_TOTAL = 2**32
"""Largest total weight: one 32-bit word of a device's generator must be able to decide it."""

MAX_OPTIONS = 10_000
MAX_BITS = 1_000
MAX_GRID = 1_000
"""Most points of a grid for numbers and dates."""


LONGEST = 10**100


def secure_uniform_below(n: int) -> int:
    """Draw uniformly from [0, n) with the system's CSPRNG."""
    return secrets.randbelow(n)


def check_integers(**values: object) -> None:
    """Refuse anything that is not exactly an integer: no float decides on a device."""
    for name, value in values.items():
        if type(value) is not int:
            raise ChannelError(f"{name} must be an integer, not {str(value)[:40]!r}")
        if abs(value) > LONGEST:  # Python refuses to print integers of thousands of digits
            raise ChannelError(f"{name} is far above 2^32; use smaller integers")


def check_grid(k: int) -> int:
    """Refuse grids of too few or too many points."""
    if type(k) is not int or not 2 <= k <= MAX_GRID:
        nearest = min(max(k, 2), MAX_GRID) if type(k) is int else 2
        raise ChannelError(
            f"a grid of {str(k)[:40]} points: 2 to {MAX_GRID:,} are allowed; "
            f"the nearest is {nearest:,}"
        )
    return k


def check_truth(truth: object, truths: int) -> int:
    """The truth as an index, or ChannelError."""
    # numpy's integers are indices too; a bool or a float is none.
    is_index = isinstance(truth, Integral) and not isinstance(truth, bool)
    index = int(truth) if is_index else -1  # type: ignore[call-overload]
    if not 0 <= index < truths:
        raise ChannelError(f"truth {str(truth)[:40]} is not an option index from 0 to {truths - 1}")
    return index


def check_truths(truths: NDArray[Any], most: int) -> Integers:
    """Many truths as indices, or ChannelError."""
    values = np.asarray(truths)
    if values.size and (values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= most):
        raise ChannelError(f"truths must be option indices from 0 to {most - 1}")
    return values.astype(np.int64)


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
        raise ChannelError(
            f"the weights add up to {total:,}, above 2^32; the nearest allowed total is "
            f"{WORD_TOTAL:,}"
        )


class PureChannel(ABC):
    """A channel whose estimates need two numbers: how often a report supports an option."""

    @property
    @abstractmethod
    def exact_p(self) -> Fraction:
        """P(the report supports an option | it is the truth, or ticked)."""

    @property
    @abstractmethod
    def exact_q(self) -> Fraction:
        """P(the report supports an option | it is not)."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """e^epsilon: the largest factor by which one report can move anyone's odds."""

    @property
    def p(self) -> float:
        """`exact_p` as a float."""
        return float(self.exact_p)

    @property
    def q(self) -> float:
        """`exact_q` as a float."""
        return float(self.exact_q)

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up to the next float: never below the truth."""
        return log_rounded_up(self.ratio)
