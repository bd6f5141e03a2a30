"""Bit vectors: one randomized bit per option, for questions that allow several ticks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.channel import (
    MAX_BITS,
    WORD_TOTAL,
    AnyIntegers,
    PureChannel,
    TwoWeightChannel,
    UniformBelow,
    check_integers,
    check_two_weights,
    draw_subset,
    pack_bits,
)
from survey.mechanism.labelled_arrays import ordinary_rows
from survey.mechanism.subset_selection import SubsetSelection

MAX_ALONE = 3
"""Exclusive options: "none of these", "does not apply" and "prefer not to say"."""


class TickChannel(PureChannel):
    """A channel whose truth is a set of ticks and whose report has one bit per option.

    A truth has at most `s` ticks among the first m - alone options, or one tick among the last
    `alone`, which are exclusive ("none of these", "prefer not to say"). A bit is reported unchanged
    with the same probability whether it is 0 or 1, and whatever the other bits are: q = 1 - p.
    """

    m: int
    s: int
    alone: int

    @property
    def options(self) -> int:
        return self.m

    @property
    def truths(self) -> int:
        """Number of different true answers: up to s ticks, or one exclusive option."""
        free = self.m - self.alone
        return sum(comb(free, ticks) for ticks in range(self.s + 1)) + self.alone

    @property
    def exact_q(self) -> Fraction:
        """P(bit is 1 | not ticked) = 1 - p."""
        return 1 - self.exact_p

    @property
    def sampled(self) -> int:
        """How many options a report covers."""
        return self.m

    @property
    def is_sampled(self) -> bool:
        return self.sampled < self.m

    @property
    @abstractmethod
    def pair_agreements(self) -> tuple[Fraction, Fraction]:
        """P(two given reported bits are both unchanged), P(both are flipped), for every truth."""

    @property
    def bits(self) -> int:
        """Number of bits of a code."""
        return self.m

    @property
    def report_bits(self) -> int:
        return self.bits

    @property
    def option_channel(self) -> SubsetSelection:
        """The channel of one option's bit: Warner's, of "ticked" and "not ticked".

        If the denominator of p is above 2^32, this is the nearest p whose denominator is not, less
        than 2^-32 away: estimators compute with floats, and no device runs this channel.
        """
        p = self.exact_p.limit_denominator(WORD_TOTAL)
        return SubsetSelection(k=2, d=1, T=p.numerator, L=p.denominator - p.numerator)

    def _check_sizes(self, maximum: int) -> None:
        """Raise ChannelError for numbers of options or ticks that are not possible."""
        if not 1 <= self.m <= maximum:
            raise ChannelError(
                f"m = {self.m} options: a {self.kind.replace('_', ' ')} has 1 to {maximum}; "
                f"the nearest is {min(max(self.m, 1), maximum)}"
            )
        if not 0 <= self.alone <= min(self.m - 1, MAX_ALONE):
            raise ChannelError(
                f"alone = {self.alone} must be from 0 to {min(self.m - 1, MAX_ALONE)}"
            )
        if not 1 <= self.s <= self.m - self.alone:
            raise ChannelError(
                f"s = {self.s} ticks must be from 1 to m - alone = {self.m - self.alone}"
            )

    def _check_truths(self, truths: AnyIntegers) -> AnyIntegers:
        truths = ordinary_rows(truths, "truths")
        if truths.ndim != 2 or truths.shape[1] != self.m or not np.isin(truths, (0, 1)).all():
            raise ChannelError(f"truths must be ticks, 0 or 1, of shape (n, {self.m})")
        return truths

    def _check_truth(self, truth: Sequence[int]) -> None:
        is_list = isinstance(truth, Sequence) and not isinstance(truth, str)
        if not is_list or len(truth) != self.m or any(tick not in (0, 1) for tick in truth):
            raise ChannelError(f"truth must be {self.m} ticks, each 0 or 1")
        ordinary, exclusive = sum(truth[: self.m - self.alone]), sum(truth[self.m - self.alone :])
        if ordinary > self.s:
            raise ChannelError(f"truth has {ordinary} ticks; at most {self.s} are allowed")
        if exclusive > 1 or (exclusive and ordinary):
            raise ChannelError(
                f"a tick among the last {self.alone} options excludes all other ticks"
            )


@dataclass(frozen=True)
class BitVector(TickChannel, TwoWeightChannel):
    """m bits, each reported unchanged with weight T and flipped with weight L.

    P(bit = truth) = T/(T+L), independently for each bit. A truth has at most `s` ticks among the
    first m - alone options, or one tick among the last `alone`, which are exclusive ("none of
    these", "prefer not to say"). Two truths differ in at most
    D = max(min(m - alone, 2s), s + 1 if alone >= 1, 2 if alone >= 2) bits.
    The device draws `sampled` of the m options at random, independently of the truth, reports
    only these, and names them in the report. Hence epsilon = min(sampled, D) ln(T/L).

    Source: Warner 1965 per bit; composition as in Erlingsson, Pihur, Korolova 2014.

    >>> BitVector(m=3, s=1, T=3, L=1).ratio
    Fraction(9, 1)
    >>> BitVector(m=5, s=5, T=3, L=1, sampled=1).ratio
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "bit_vector"
    parameters: ClassVar[tuple[str, ...]] = ("m", "s", "alone", "sampled", "T", "L")
    m: int
    s: int
    T: int
    L: int
    alone: int = 0
    sampled: int = 0
    """How many options a report covers; 0 stands for all of them."""

    def __post_init__(self) -> None:
        check_integers(m=self.m, s=self.s, T=self.T, L=self.L, alone=self.alone)
        check_integers(sampled=self.sampled)
        self._check_sizes(MAX_BITS)
        if not 0 <= self.sampled <= self.m:
            raise ChannelError(f"sampled = {self.sampled} must be from 1 to m = {self.m}")
        object.__setattr__(self, "sampled", self.sampled or self.m)
        check_two_weights(self.T, self.L, self.T + self.L)

    @property
    def exact_p(self) -> Fraction:
        """P(bit is 1 | ticked) = T/(T+L)."""
        return Fraction(self.T, self.T + self.L)

    @property
    def pair_agreements(self) -> tuple[Fraction, Fraction]:
        """p^2 and (1-p)^2, because bits are randomized independently."""
        return self.exact_p**2, self.exact_q**2

    @property
    def distance(self) -> int:
        """D, the maximum number of bits in which two truths differ."""
        distances = [min(self.m - self.alone, 2 * self.s)]
        if self.alone >= 1:
            distances.append(self.s + 1)
        if self.alone >= 2:
            distances.append(2)
        return max(distances)

    @property
    def ratio(self) -> Fraction:
        """e^epsilon = (T/L)^min(sampled, D)."""
        return self.weight_ratio ** min(self.sampled, self.distance)

    @property
    def bits(self) -> int:
        """Number of bits of a code: the mask of a sampled channel, then the m reported bits."""
        return 2 * self.m if self.is_sampled else self.m

    def encode(self, code: object) -> bytes:
        octets = super().encode(code)
        if self.is_sampled:
            bits = int.from_bytes(octets, "big") >> (8 * len(octets) - self.bits)
            mask, ones = bits >> self.m, bits & ((1 << self.m) - 1)
            if mask.bit_count() != self.sampled or ones & ~mask:
                raise ChannelError(
                    f"must name {self.sampled} of {self.m} options and report only those"
                )
        return octets

    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> AnyIntegers:
        """Randomize many tick patterns at once, shape (n, m), values 0 or 1, for simulation.

        Returns the reported bits, shape (n, m); for a sampled channel shape (n, 2m): the mask of
        sampled options, then the reported bits.
        """
        truths = self._check_truths(truths)
        flips = rng.integers(0, self.T + self.L, size=truths.shape, dtype=np.int64) >= self.T
        reported: NDArray[np.uint8] = truths.astype(np.uint8) ^ flips
        if not self.is_sampled:
            return reported
        # The options with the smallest random keys are a uniform sample.
        order = np.argsort(rng.random(truths.shape), axis=1)[:, : self.sampled]
        mask = np.zeros(truths.shape, dtype=np.uint8)
        np.put_along_axis(mask, order, 1, axis=1)
        return np.concatenate([mask, reported & mask], axis=1)

    def perturb_one(self, truth: Sequence[int], uniform_below: UniformBelow) -> str:
        """Randomize one pattern as the client does; the draws do not depend on the ticks."""
        self._check_truth(truth)
        self.check_device_weights()
        options = list(range(self.m))
        if self.is_sampled:
            options = draw_subset(options, self.sampled, uniform_below)
        reported = [
            option
            for option in options
            if truth[option] ^ (uniform_below(self.T + self.L) >= self.T)
        ]
        if not self.is_sampled:
            return pack_bits(reported, self.m)
        return pack_bits([*options, *(self.m + option for option in reported)], 2 * self.m)
