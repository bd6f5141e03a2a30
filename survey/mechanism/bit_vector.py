"""Bit vectors: one Warner bit per option, for questions that allow several ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.accounting import log_rounded_up
from survey.mechanism.bits import pack_bits
from survey.mechanism.weights import MAX_BITS, UniformBelow, check_integers, check_two_weights


@dataclass(frozen=True)
class BitVector:
    """m options, every bit reported: kept with weight T, flipped with weight L.

    P(bit = truth) = T/(T+L) independently per bit. Two answers differ in at most
    min(m, 2s) bits when at most s options may be ticked, so epsilon = min(m, 2s) ln(T/L).

    `s` is the largest number of ticks, m when there is no limit. Source: Warner 1965 per bit;
    composition as in Erlingsson, Pihur, Korolova 2014.

    >>> BitVector(m=3, s=1, T=3, L=1).ratio
    Fraction(9, 1)
    """

    m: int
    s: int
    T: int
    L: int

    def __post_init__(self) -> None:
        check_integers(m=self.m, s=self.s, T=self.T, L=self.L)
        if not 1 <= self.m <= MAX_BITS:
            nearest = min(max(self.m, 1), MAX_BITS)
            raise ChannelError(
                f"m = {self.m} options: a bit vector has 1 to {MAX_BITS}; the nearest is {nearest}"
            )
        if not 1 <= self.s <= self.m:
            raise ChannelError(f"s = {self.s} ticks must be from 1 to m = {self.m}")
        check_two_weights(self.T, self.L, self.T + self.L)

    @property
    def kind(self) -> str:
        """The name of this kind of channel in a definition."""
        return "bit_vector"

    @property
    def exact_p(self) -> Fraction:
        """P(bit is 1 | ticked) = T/(T+L)."""
        return Fraction(self.T, self.T + self.L)

    @property
    def exact_q(self) -> Fraction:
        """P(bit is 1 | not ticked) = L/(T+L)."""
        return Fraction(self.L, self.T + self.L)

    @property
    def p(self) -> float:
        """`exact_p` as a float."""
        return float(self.exact_p)

    @property
    def q(self) -> float:
        """`exact_q` as a float."""
        return float(self.exact_q)

    @property
    def ratio(self) -> Fraction:
        """e^epsilon = (T/L)^min(m, 2s)."""
        larger, smaller = max(self.T, self.L), min(self.T, self.L)
        return Fraction(larger, smaller) ** min(self.m, 2 * self.s)

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up."""
        return log_rounded_up(self.ratio)

    def perturb(
        self, truths: NDArray[np.integer[Any]], rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        """Perturb many tick patterns at once; `truths` and the result have shape (n, m), 0 or 1."""
        truths = np.asarray(truths)
        if truths.ndim != 2 or truths.shape[1] != self.m or not np.isin(truths, (0, 1)).all():
            raise ChannelError(f"truths must be ticks, 0 or 1, of shape (n, {self.m})")
        flips = rng.integers(0, self.T + self.L, size=truths.shape, dtype=np.int64) >= self.T
        return (truths.astype(np.uint8) ^ flips).astype(np.uint8)

    def perturb_one(self, truth: Sequence[int], uniform_below: UniformBelow) -> str:
        """Perturb one pattern, bit by bit as the client does; m draws whatever the ticks are."""
        if len(truth) != self.m or any(tick not in (0, 1) for tick in truth):
            raise ChannelError(f"truth must be {self.m} ticks, each 0 or 1")
        if sum(truth) > self.s:
            raise ChannelError(f"truth has {sum(truth)} ticks; at most {self.s} are allowed")
        if self.T <= self.L:
            raise ChannelError(f"a device never runs a channel with T = {self.T} <= L = {self.L}")
        reported = [tick ^ (uniform_below(self.T + self.L) >= self.T) for tick in truth]
        return pack_bits([option for option, bit in enumerate(reported) if bit], self.m)

    def to_json(self) -> dict[str, int | str]:
        """The form a definition carries and the client runs."""
        return {"kind": self.kind, "m": self.m, "s": self.s, "T": self.T, "L": self.L}
