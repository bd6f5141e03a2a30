"""Half-spaces of the hypercube: all ticks of a question, randomized as one vector of bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import (
    AnyIntegers,
    UniformBelow,
    check_integers,
    check_total,
    pack_bits,
)

MAX_HALF_SPACE_BITS = 32
"""Maximum number of bits: above it, one 32-bit word cannot draw each of the 2^m vectors."""


@dataclass(frozen=True)
class HalfSpace(TickChannel):
    """m bits in one report: P(report | truth) depends on how many bits agree.

    Of the 2^m vectors, G agree with the truth in at least t = `agreements` bits:

        G = sum_{a >= t} C(m, a),  t > m/2

    With v and z in {-1, 1}^m these are the z with <z, v> >= 2t - m. The device reports one of them
    with probability near/(near+far), each equally likely, and otherwise one of the other 2^m - G.
    Neither G nor the sum over all reports depends on the truth. Every report therefore has one of
    two probabilities, both occur under any two different truths, and exactly

        e^epsilon = near (2^m - G) / (far G).

    For even m and t = m/2 + 1, vectors that agree in m/2 bits count as far: half of their bits are
    right at any weight, so the smaller weight leaves more probability for better vectors.

    Source: Duchi, Jordan, Wainwright 2018 for the t closest to m/2; Bhowmick et al. 2018 for any t.

    >>> HalfSpace(m=3, s=3, agreements=2, near=3, far=1).ratio
    Fraction(3, 1)
    >>> HalfSpace(m=3, s=3, agreements=2, near=3, far=1).exact_p
    Fraction(5, 8)
    """

    kind: ClassVar[str] = "half_space"
    parameters: ClassVar[tuple[str, ...]] = ("m", "s", "alone", "agreements", "near", "far")
    m: int
    s: int
    agreements: int
    """t, the minimum number of bits in which a near report agrees with the truth."""
    near: int
    far: int
    alone: int = 0

    def __post_init__(self) -> None:
        check_integers(m=self.m, s=self.s, alone=self.alone)
        check_integers(agreements=self.agreements, near=self.near, far=self.far)
        self._check_sizes(MAX_HALF_SPACE_BITS)
        if not self.m // 2 < self.agreements <= self.m:
            raise ChannelError(
                f"agreements = {self.agreements} must be from {self.m // 2 + 1} to m = {self.m}"
            )
        if self.far < 1:
            raise ChannelError(
                f"far = {self.far} must be at least 1: a zero weight gives no privacy"
            )
        check_total(self.near + self.far)
        if self.ratio <= 1:
            least = self.far * self.near_count / self.far_count
            raise ChannelError(
                f"near = {self.near} must be above {least:g}: a near report must be more likely "
                "than any other"
            )

    @property
    def near_count(self) -> int:
        """G, the number of near vectors."""
        return _tails(self.m)[self.m][self.agreements]

    @property
    def far_count(self) -> int:
        """2^m - G, the number of all others, which are far."""
        return (1 << self.m) - self.near_count

    @property
    def ratio(self) -> Fraction:
        """e^epsilon = near (2^m - G) / (far G), for any two different truths."""
        return Fraction(self.near * self.far_count, self.far * self.near_count)

    @property
    def exact_p(self) -> Fraction:
        """P(a bit agrees): C(m-1, a-1) of the C(m, a) vectors with a agreements agree in it."""
        return self._average(tail(self.m - 1, self.agreements - 1), 2 ** (self.m - 1))

    @property
    def exact_q(self) -> Fraction:
        """P(bit is 1 | not ticked) = 1 - p."""
        return 1 - self.exact_p

    @property
    def pair_agreements(self) -> tuple[Fraction, Fraction]:
        """P(two given bits both agree), P(neither does); whatever the truth and the other bits.

        Of the vectors with a agreements, C(m-2, a-2) and C(m-2, a).
        """
        rest, t = self.m - 2, self.agreements
        return self._average(tail(rest, t - 2), 2**rest), self._average(tail(rest, t), 2**rest)

    def _average(self, near: int, both: int) -> Fraction:
        """Return P(a set of `both` vectors, of which `near` are near)."""
        return (
            self.near * Fraction(near, self.near_count)
            + self.far * Fraction(both - near, self.far_count)
        ) / (self.near + self.far)

    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> AnyIntegers:
        """Randomize many tick patterns at once, shape (n, m), values 0 or 1, for simulation.

        Returns the reported bits, shape (n, m).

        >>> channel = HalfSpace(m=3, s=3, agreements=2, near=3, far=1)
        >>> ticks = np.ones((10_000, 3), dtype=np.int64)
        >>> bool(abs(channel.perturb(ticks, np.random.default_rng(1)).mean() - 0.625) < 0.02)
        True
        """
        truths = self._check_truths(truths)
        n = len(truths)
        is_near = rng.integers(0, self.near + self.far, n, dtype=np.int64) < self.near
        ranks = np.where(
            is_near, rng.integers(0, self.near_count, n), rng.integers(0, self.far_count, n)
        )
        need = np.where(is_near, self.agreements, self.m - self.agreements + 1)
        tails = np.array(_tails(self.m), dtype=np.int64)
        agree = np.empty(truths.shape, dtype=np.uint8)
        for i in range(self.m):
            need_if_one = np.maximum(need - 1, 0)
            with_one = tails[self.m - 1 - i, need_if_one]
            is_one = ranks < with_one
            agree[:, i] = is_one == is_near
            ranks = np.where(is_one, ranks, ranks - with_one)
            need = np.where(is_one, need_if_one, need)
        reported: NDArray[np.uint8] = truths.astype(np.uint8) ^ (1 - agree)
        return reported

    def perturb_one(self, truth: Sequence[int], uniform_below: UniformBelow) -> str:
        """Randomize one pattern as the client does, with three draws whatever the ticks."""
        reported = self.perturb_bits(truth, uniform_below)
        return pack_bits([option for option, bit in enumerate(reported) if bit], self.m)

    def perturb_bits(self, truth: Sequence[int], uniform_below: UniformBelow) -> list[int]:
        """Randomize one pattern; return its m bits.

        The agreements are drawn without the truth. Far vectors are those with at least m - t + 1
        disagreements, so one numbering serves both.
        """
        self._check_truth(truth)
        is_near = uniform_below(self.near + self.far) < self.near
        right = vector_of(uniform_below(self.near_count), self.m, self.agreements)
        wrong = vector_of(uniform_below(self.far_count), self.m, self.m - self.agreements + 1)
        flips = [1 - bit for bit in right] if is_near else wrong
        return [tick ^ flip for tick, flip in zip(truth, flips, strict=True)]


def tail(n: int, least: int) -> int:
    """Return the number of vectors of n bits with at least `least` ones.

    >>> tail(4, 3), tail(4, -1)
    (5, 16)
    """
    return sum(comb(n, ones) for ones in range(max(least, 0), n + 1))


def vector_of(rank: int, m: int, least: int) -> list[int]:
    """Return the vector with number `rank` among those of m bits with at least `least` ones.

    Vectors with a one in front come first; each rank below `tail(m, least)` is a different vector.

    >>> [vector_of(rank, 3, 2) for rank in range(4)]
    [[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
    """
    tails, bits = _tails(m), []
    for rest in range(m - 1, -1, -1):
        with_one = tails[rest][max(least - 1, 0)]
        bit = int(rank < with_one)
        bits.append(bit)
        rank -= (1 - bit) * with_one
        least = max(least - bit, 0)
    return bits


@lru_cache(maxsize=MAX_HALF_SPACE_BITS + 1)
def _tails(m: int) -> tuple[tuple[int, ...], ...]:
    """Return `tail(n, least)` for n and `least` up to m."""
    return tuple(tuple(tail(n, least) for least in range(m + 1)) for n in range(m + 1))
