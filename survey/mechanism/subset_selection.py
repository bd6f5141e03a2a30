"""Subset selection; generalized randomized response is its case d = 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.channel import (
    MAX_OPTIONS,
    AnyIntegers,
    Floats,
    TwoWeightChannel,
    UniformBelow,
    check_integers,
    check_truth,
    check_truths,
    check_two_weights,
    draw_subset,
    pack_bits,
)


@dataclass(frozen=True)
class SubsetSelection(TwoWeightChannel):
    """Report a set of d of the k options.

    P(report | truth) is proportional to T if the set contains the truth and to L otherwise, hence
    epsilon = ln(T/L) exactly. d = 1 is generalized randomized response (Kairouz, Oh, Viswanath
    2016), with k = 2 Warner's design (1965); d > 1 is the subset selection of Ye and Barg (2018).

    >>> SubsetSelection(k=3, d=1, T=6, L=1).exact_p
    Fraction(3, 4)
    """

    kind: ClassVar[str] = "subset_selection"
    parameters: ClassVar[tuple[str, ...]] = ("k", "d", "T", "L")
    k: int
    d: int
    T: int
    L: int

    def __post_init__(self) -> None:
        check_integers(k=self.k, d=self.d, T=self.T, L=self.L)
        if not 2 <= self.k <= MAX_OPTIONS:
            raise ChannelError(
                f"k = {self.k} options: a channel needs 2 to {MAX_OPTIONS:,}; "
                f"the nearest is {min(max(self.k, 2), MAX_OPTIONS)}"
            )
        if not 1 <= self.d < self.k:
            raise ChannelError(f"d = {self.d} must be from 1 to k - 1 = {self.k - 1}")
        check_two_weights(self.T, self.L, self.total)

    @property
    def options(self) -> int:
        return self.k

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
    def ratio(self) -> Fraction:
        """e^epsilon = max(T/L, L/T)."""
        return self.weight_ratio

    @cached_property
    def report_bits(self) -> int:
        return 0 if self.d == 1 else self.k

    def encode(self, code: object) -> bytes:
        octets = super().encode(code)
        if self.d > 1 and int.from_bytes(octets, "big").bit_count() != self.d:
            raise ChannelError(f"must be a set of {self.d} of the {self.k} options")
        return octets

    @property
    def matrix(self) -> Floats:
        """P(option is in the report | truth), shape (k, k), row = truth; rows sum to d."""
        matrix = np.full((self.k, self.k), self.q)
        np.fill_diagonal(matrix, self.p)
        return matrix

    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> AnyIntegers:
        """Randomize many truths at once, for simulation; devices run `perturb_one`.

        `truths` has shape (n,) with option indices. Returns option indices of shape (n,) for
        d = 1, and for d > 1 membership (0 or 1) of shape (n, k).

        >>> grr = SubsetSelection(k=2, d=1, T=3, L=1)
        >>> reports = grr.perturb(np.zeros(10_000, dtype=np.int64), np.random.default_rng(1))
        >>> bool(abs(np.mean(reports == 0) - 0.75) < 0.02)
        True
        """
        truths = check_truths(truths, self.k)
        u = rng.integers(0, self.total, size=truths.shape, dtype=np.int64)
        if self.d == 1:
            # offset = max(0, floor((u - T + L)/L)): as in `perturb_one`, without a branch.
            offset = np.maximum((u - (self.T - self.L)) // self.L, 0)
            report = truths + offset
            return report - self.k * (report >= self.k)
        # d distinct offsets from 1..k-1 in random order: the first d of a random permutation.
        keys = rng.random((truths.size, self.k - 1))
        offsets = 1 + np.argsort(keys, axis=1)[:, : self.d]
        offsets[u < self.d * self.T, -1] = 0
        members = np.zeros((truths.size, self.k), dtype=np.uint8)
        np.put_along_axis(members, (truths[:, None] + offsets) % self.k, 1, axis=1)
        return members

    def perturb_one(self, truth: int, uniform_below: UniformBelow) -> int | str:
        """Randomize one truth as the client does, draw by draw, and return the code.

        The draws and their number do not depend on the truth, so neither the time that this takes
        nor a recorded stream of draws reveals the answer.
        """
        truth = check_truth(truth, self.k)
        self.check_device_weights()
        if self.d == 1:
            # Offset 0 for u in [0, T), then every other offset for L values of u.
            u = uniform_below(self.total)
            offset = 0 if u < self.T else 1 + (u - self.T) // self.L
            return (truth + offset) % self.k
        offsets = draw_subset(list(range(1, self.k)), self.d, uniform_below)
        if uniform_below(self.total) < self.d * self.T:
            offsets[-1] = 0
        return pack_bits(((truth + offset) % self.k for offset in offsets), self.k)
