"""Bit vectors: one Warner bit per option, for questions that allow several ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.arrays import AnyIntegers, Codes, Integers
from survey.mechanism.channel import (
    MAX_BITS,
    PureChannel,
    UniformBelow,
    check_integers,
    check_two_weights,
)
from survey.mechanism.codes import count_bits, encode_bits, longest_bits, pack_bits

MAX_ALONE = 3
"""At most "none of these", "does not apply", "prefer not to say"."""


@dataclass(frozen=True)
class BitVector(PureChannel):
    """m options; every reported bit is kept with weight T, flipped with weight L.

    P(bit = truth) = T/(T+L) independently per bit. A truth has at most `s` ticks among the first
    m - alone options, or one tick among the last `alone` ("none of these", "prefer not to say").
    Two truths differ in at most
    D = max(min(m - alone, 2s), s + 1 if alone >= 1, 2 if alone >= 2) bits.
    `sampled` of the m options, drawn at random by the device whatever the truth is, are reported;
    which ones is open. Hence epsilon = min(sampled, D) ln(T/L).

    Source: Warner 1965 per bit; composition as in Erlingsson, Pihur, Korolova 2014.

    >>> BitVector(m=3, s=1, T=3, L=1).ratio
    Fraction(9, 1)
    >>> BitVector(m=5, s=5, T=3, L=1, sampled=1).ratio
    Fraction(3, 1)
    """

    m: int
    s: int
    T: int
    L: int
    alone: int = 0
    sampled: int = 0
    """How many options are reported; written 0, all of them."""

    def __post_init__(self) -> None:
        check_integers(m=self.m, s=self.s, T=self.T, L=self.L, alone=self.alone)
        check_integers(sampled=self.sampled)
        if not 1 <= self.m <= MAX_BITS:
            nearest = min(max(self.m, 1), MAX_BITS)
            raise ChannelError(
                f"m = {self.m} options: a bit vector has 1 to {MAX_BITS}; the nearest is {nearest}"
            )
        if not 0 <= self.alone <= min(self.m - 1, MAX_ALONE):
            raise ChannelError(
                f"alone = {self.alone} must be from 0 to {min(self.m - 1, MAX_ALONE)}"
            )
        if not 1 <= self.s <= self.m - self.alone:
            raise ChannelError(
                f"s = {self.s} ticks must be from 1 to m - alone = {self.m - self.alone}"
            )
        if not 0 <= self.sampled <= self.m:
            raise ChannelError(f"sampled = {self.sampled} must be from 1 to m = {self.m}")
        object.__setattr__(self, "sampled", self.sampled or self.m)
        check_two_weights(self.T, self.L, self.T + self.L)

    @property
    def kind(self) -> str:
        """The name of this kind of channel in a definition."""
        return "bit_vector"

    @property
    def options(self) -> int:
        """What one number each is estimated for: the m options."""
        return self.m

    @property
    def truths(self) -> int:
        """Different true answers that the channel takes: up to s ticks, or one that is alone."""
        free = self.m - self.alone
        return sum(comb(free, ticks) for ticks in range(self.s + 1)) + self.alone

    @property
    def exact_p(self) -> Fraction:
        """P(bit is 1 | ticked) = T/(T+L)."""
        return Fraction(self.T, self.T + self.L)

    @property
    def exact_q(self) -> Fraction:
        """P(bit is 1 | not ticked) = L/(T+L)."""
        return Fraction(self.L, self.T + self.L)

    @property
    def distance(self) -> int:
        """D, the largest number of bits in which two truths differ."""
        between = [min(self.m - self.alone, 2 * self.s)]
        if self.alone >= 1:
            between.append(self.s + 1)
        if self.alone >= 2:
            between.append(2)
        return max(between)

    @property
    def ratio(self) -> Fraction:
        """e^epsilon = (T/L)^min(sampled, D)."""
        larger, smaller = max(self.T, self.L), min(self.T, self.L)
        return Fraction(larger, smaller) ** min(self.sampled, self.distance)

    @property
    def is_sampled(self) -> bool:
        """Whether a report holds only some of the options, and says which."""
        return self.sampled < self.m

    @property
    def bits(self) -> int:
        """Bits of a code: the options asked (when only some are), then their reported bits."""
        return 2 * self.m if self.is_sampled else self.m

    @property
    def code_bytes(self) -> int:
        """Bytes of one stored code."""
        return (self.bits + 7) // 8

    @property
    def longest_code(self) -> str:
        """A code of the greatest length on the wire: all have the same."""
        return longest_bits(self.bits)

    @property
    def counted(self) -> int:
        """Length of the vector of counts."""
        return self.bits

    def encode(self, code: object) -> bytes:
        """The stored bytes of a code of the wire, or ChannelError saying what it must be."""
        octets = encode_bits(code, self.bits)
        if self.is_sampled:
            bits = int.from_bytes(octets, "big") >> (8 * len(octets) - self.bits)
            asked, ones = bits >> self.m, bits & ((1 << self.m) - 1)
            if asked.bit_count() != self.sampled or ones & ~asked:
                raise ChannelError(
                    f"must name {self.sampled} of {self.m} options and report only those"
                )
        return octets

    def count(self, codes: Codes) -> Integers:
        """How often each bit is 1: the ones; when sampled, first how often each was asked."""
        return count_bits(codes, self.bits)

    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> AnyIntegers:
        """Perturb many tick patterns at once, shape (n, m), values 0 or 1.

        Returns the reported bits, shape (n, m); when sampled, shape (n, 2m): asked, then reported.
        """
        truths = np.asarray(truths)
        if truths.ndim != 2 or truths.shape[1] != self.m or not np.isin(truths, (0, 1)).all():
            raise ChannelError(f"truths must be ticks, 0 or 1, of shape (n, {self.m})")
        flips = rng.integers(0, self.T + self.L, size=truths.shape, dtype=np.int64) >= self.T
        reported: NDArray[np.uint8] = truths.astype(np.uint8) ^ flips
        if not self.is_sampled:
            return reported
        # The options with the smallest of m random keys are a uniform sample.
        order = np.argsort(rng.random(truths.shape), axis=1)[:, : self.sampled]
        asked = np.zeros(truths.shape, dtype=np.uint8)
        np.put_along_axis(asked, order, 1, axis=1)
        return np.concatenate([asked, reported & asked], axis=1)

    def perturb_one(self, truth: Sequence[int], uniform_below: UniformBelow) -> str:
        """Perturb one pattern as the client does; the draws depend on nothing that was ticked."""
        self._check_truth(truth)
        if self.T <= self.L:
            raise ChannelError(f"a device never runs a channel with T = {self.T} <= L = {self.L}")
        asked = self._asked(uniform_below) if self.is_sampled else range(self.m)
        reported = [
            option for option in asked if truth[option] ^ (uniform_below(self.T + self.L) >= self.T)
        ]
        if not self.is_sampled:
            return pack_bits(reported, self.m)
        return pack_bits([*asked, *(self.m + option for option in reported)], 2 * self.m)

    def _asked(self, uniform_below: UniformBelow) -> list[int]:
        """The first `sampled` of a partial Fisher-Yates shuffle."""
        deck = list(range(self.m))
        for i in range(self.sampled):
            j = i + uniform_below(self.m - i)
            deck[i], deck[j] = deck[j], deck[i]
        return deck[: self.sampled]

    def _check_truth(self, truth: Sequence[int]) -> None:
        is_list = isinstance(truth, Sequence) and not isinstance(truth, str)
        if not is_list or len(truth) != self.m or any(tick not in (0, 1) for tick in truth):
            raise ChannelError(f"truth must be {self.m} ticks, each 0 or 1")
        among, apart = sum(truth[: self.m - self.alone]), sum(truth[self.m - self.alone :])
        if among > self.s:
            raise ChannelError(f"truth has {among} ticks; at most {self.s} are allowed")
        if apart > 1 or (apart and among):
            raise ChannelError(f"a tick among the last {self.alone} options stands alone")

    def to_json(self) -> dict[str, int | str]:
        """The form a definition carries and the client runs."""
        return {
            "kind": self.kind,
            "m": self.m,
            "s": self.s,
            "alone": self.alone,
            "sampled": self.sampled,
            "T": self.T,
            "L": self.L,
        }
