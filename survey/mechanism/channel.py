"""Channels: P(report | truth) made of integers, so that what is promised is exactly what runs.

A channel that exists is valid: its constructor refuses everything else. The client runs the
same integers (`client_js/src/mechanism.js`); `tests/vectors` binds the two together.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.accounting import log_rounded_up

UniformBelow = Callable[[int], int]
"""`uniform_below(n)`: an integer uniform in [0, n), n <= 2^32."""

WORD_TOTAL = 2**32
"""Largest total weight: one 32-bit word of a device's generator must be able to decide it."""

MAX_OPTIONS = 10_000


def secure_uniform_below(n: int) -> int:
    """Draw uniformly from [0, n) with the system's CSPRNG."""
    return secrets.randbelow(n)


class Channel(Protocol):
    """What every mechanism offers; `matrix` has shape (truths, reports), rows sum to 1."""

    @property
    def kind(self) -> str: ...
    @property
    def k(self) -> int: ...
    @property
    def p(self) -> float: ...
    @property
    def q(self) -> float: ...
    @property
    def ratio(self) -> Fraction: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def matrix(self) -> NDArray[np.float64]: ...
    def perturb(
        self, truths: NDArray[np.integer[Any]], rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]: ...
    def perturb_one(self, truth: int, uniform_below: UniformBelow) -> int | str: ...
    def to_json(self) -> dict[str, int | str]: ...


@dataclass(frozen=True)
class SubsetSelection:
    """Report a set of d of the k options; sets that hold the truth are likelier by T to L.

    d = 1 is generalized randomized response (Kairouz, Oh, Viswanath 2016), k = 2 of it
    Warner's (1965); d > 1 is the subset selection of Ye and Barg (2018).

    P(report | truth) is proportional to T when the set holds the truth and to L otherwise,
    hence epsilon = ln(T/L) exactly.

    >>> SubsetSelection(k=3, d=1, T=6, L=1).exact_p
    Fraction(3, 4)
    """

    k: int
    d: int
    T: int
    L: int

    def __post_init__(self) -> None:
        for name in ("k", "d", "T", "L"):
            value = getattr(self, name)
            if type(value) is not int:
                raise ChannelError(f"{name} must be an integer, not {value!r}")
        if not 2 <= self.k <= MAX_OPTIONS:
            raise ChannelError(
                f"k = {self.k} options: a channel needs 2 to {MAX_OPTIONS:,}; "
                f"the nearest is {min(max(self.k, 2), MAX_OPTIONS)}"
            )
        if not 1 <= self.d < self.k:
            raise ChannelError(f"d = {self.d} must be from 1 to k - 1 = {self.k - 1}")
        if self.L < 1:
            raise ChannelError(f"L = {self.L} must be at least 1: a zero weight gives no privacy")
        if self.T < 1 or self.T == self.L:
            raise ChannelError(f"T = {self.T} must be positive and differ from L = {self.L}")
        if self.total > WORD_TOTAL:
            raise ChannelError(
                f"the weights add up to {self.total:,}, above 2^32; use smaller integers"
            )

    @property
    def kind(self) -> str:
        """The name of this kind of channel in a definition."""
        return "subset_selection"

    @property
    def total(self) -> int:
        """dT + (k-d)L, the range of the draw that decides whether the truth is reported."""
        return self.d * self.T + (self.k - self.d) * self.L

    @property
    def exact_p(self) -> Fraction:
        """P(truth in report) = dT / (dT + (k-d)L)."""
        return Fraction(self.d * self.T, self.total)

    @property
    def exact_q(self) -> Fraction:
        """P(one given other option in report) = p(d-1)/(k-1) + (1-p)d/(k-1)."""
        p = self.exact_p
        return (p * (self.d - 1) + (1 - p) * self.d) / (self.k - 1)

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
        """e^epsilon: the largest factor by which one report can move anyone's odds."""
        larger, smaller = max(self.T, self.L), min(self.T, self.L)
        return Fraction(larger, smaller)

    @cached_property
    def epsilon(self) -> float:
        """ln(T/L), rounded up to the next float: never below the truth."""
        return log_rounded_up(self.ratio)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """P(option is in the report | truth), shape (k, k), row = truth; rows sum to d."""
        matrix = np.full((self.k, self.k), self.q)
        np.fill_diagonal(matrix, self.p)
        return matrix

    def perturb(
        self, truths: NDArray[np.integer[Any]], rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        """Perturb many truths at once, for simulation; devices run `perturb_one`.

        `truths` has shape (n,) with option indices. Returns option indices of shape (n,) for
        d = 1, and for d > 1 membership (0 or 1) of shape (n, k).

        >>> grr = SubsetSelection(k=2, d=1, T=3, L=1)
        >>> reports = grr.perturb(np.zeros(10_000, dtype=np.int64), np.random.default_rng(1))
        >>> bool(abs(np.mean(reports == 0) - 0.75) < 0.02)
        True
        """
        truths = np.asarray(truths)
        if truths.size and (truths.min() < 0 or truths.max() >= self.k):
            raise ChannelError(f"truths must be option indices from 0 to {self.k - 1}")
        u = rng.integers(0, self.total, size=truths.shape, dtype=np.int64)
        if self.d == 1:
            offset = np.where(u < self.T, 0, 1 + (u - self.T) // self.L)
            return (truths.astype(np.int64) + offset) % self.k
        # d distinct offsets from 1..k-1 in random order: the first d of a random permutation.
        keys = rng.random((truths.size, self.k - 1))
        offsets = 1 + np.argsort(keys, axis=1)[:, : self.d]
        offsets[u < self.d * self.T, -1] = 0
        members = np.zeros((truths.size, self.k), dtype=np.uint8)
        np.put_along_axis(members, (truths.astype(np.int64)[:, None] + offsets) % self.k, 1, axis=1)
        return members

    def perturb_one(self, truth: int, uniform_below: UniformBelow) -> int | str:
        """Perturb one truth, draw by draw as the client does; returns the code of the wire.

        The offsets are drawn without looking at the truth, and the number of draws depends on
        nothing, so neither time nor a recorded stream of draws tells what was answered.
        """
        if not 0 <= truth < self.k:
            raise ChannelError(f"truth {truth} is not an option index from 0 to {self.k - 1}")
        if self.T <= self.L:
            raise ChannelError(f"a device never runs a channel with T = {self.T} <= L = {self.L}")
        if self.d == 1:
            # offset 0 for u in [0, T), then each other offset for L values of u.
            u = uniform_below(self.total)
            offset = 0 if u < self.T else 1 + (u - self.T) // self.L
            return (truth + offset) % self.k
        return self._bits((truth + offset) % self.k for offset in self._offsets(uniform_below))

    def _offsets(self, uniform_below: UniformBelow) -> list[int]:
        """d other offsets by a partial Fisher-Yates shuffle; the last may yield to offset 0."""
        deck = list(range(1, self.k))
        for i in range(self.d):
            j = i + uniform_below(self.k - 1 - i)
            deck[i], deck[j] = deck[j], deck[i]
        if uniform_below(self.total) < self.d * self.T:
            deck[self.d - 1] = 0
        return deck[: self.d]

    def _bits(self, members: Any) -> str:
        """The set as k bits, option 0 first, in base64url without padding."""
        octets = bytearray((self.k + 7) // 8)
        for option in members:
            octets[option >> 3] |= 128 >> (option & 7)
        return base64.urlsafe_b64encode(bytes(octets)).decode("ascii").rstrip("=")

    def to_json(self) -> dict[str, int | str]:
        """The form a definition carries and the client runs: kind and integers only."""
        return {"kind": self.kind, "k": self.k, "d": self.d, "T": self.T, "L": self.L}


def channel_from_json(form: Mapping[str, Any]) -> SubsetSelection:
    """Build the channel that a definition carries.

    >>> channel_from_json({"kind": "subset_selection", "k": 2, "d": 1, "T": 3, "L": 1}).p
    0.75
    """
    if form.get("kind") != "subset_selection":
        raise ChannelError(f"unknown kind of channel {form.get('kind')!r}")
    if set(form) != {"kind", "k", "d", "T", "L"}:
        raise ChannelError(f"a subset_selection channel has kind, k, d, T, L, not {sorted(form)}")
    return SubsetSelection(k=form["k"], d=form["d"], T=form["T"], L=form["L"])
