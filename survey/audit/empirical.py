"""What many reports of the real generator say: cells near their probability, epsilon kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from survey.audit.check import Check
from survey.audit.exact import Truth, distribution, number_of_reports, shown, some_truths, work
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats

ALPHA = 1e-6
"""Chance of a false alarm of a whole audit: half for its channels, half for whole reports."""

CELLS = 4_096
"""Most codes that are counted one by one; of bit strings with more, each bit is counted."""

TRUTHS = 8
WORK = 150_000_000
"""Units of `work` above which fewer truths are sampled, never fewer than two."""

Counts = Mapping[str, int]


def asked_samples(channel: AnyChannel, n: int) -> dict[str, Any]:
    """The question to the client, save which channel it is."""
    return {"truths": sampled_truths(channel, n), "n": n, "bits": bits_counted(channel)}


def sampled_truths(channel: AnyChannel, n: int) -> list[Truth]:
    """Up to eight truths, two where one perturbation takes long."""
    most = TRUTHS if work(channel) == 1 else min(max(WORK // (n * work(channel)), 2), TRUTHS)
    return some_truths(channel, most)


def _is_counted_by_code(channel: AnyChannel) -> bool:
    if isinstance(channel, WeightTable) or (
        isinstance(channel, SubsetSelection) and channel.d == 1
    ):
        return True
    # The number of sets of a thousand options has three hundred digits: look at its bits first.
    return _bits(channel) <= 64 and number_of_reports(channel) <= CELLS


def bits_counted(channel: AnyChannel) -> int:
    """Of how many bits each is counted; 0 where whole codes are."""
    return 0 if _is_counted_by_code(channel) else _bits(channel)


def _bits(channel: AnyChannel) -> int:
    match channel:
        case BitVector():
            return channel.bits
        case SubsetSelection():
            return channel.k
    raise TypeError("a table's reports are no bits")


def promised(channel: AnyChannel, truth: Truth) -> dict[str, float]:
    """The probability of every cell that is counted: of a code, or of a bit that is 1."""
    if _is_counted_by_code(channel):
        return {code: float(share) for code, share in distribution(channel, truth).items()}
    if isinstance(channel, SubsetSelection):
        return {str(i): channel.p if i == truth else channel.q for i in range(channel.k)}
    assert isinstance(channel, BitVector)  # noqa: S101
    assert isinstance(truth, tuple)  # noqa: S101  see `truths_of`
    asked = channel.sampled / channel.m
    ones = [asked * (channel.p if tick else channel.q) for tick in truth]
    shares = [*([asked] * channel.m if channel.is_sampled else []), *ones]
    return {str(i): share for i, share in enumerate(shares)}


def check_samples(channel: AnyChannel, seen: Sequence[Counts], n: int, alpha: float) -> Check:
    """Every cell within its Clopper-Pearson interval, and no epsilon proved above the claim.

    `alpha` is the chance of a false alarm, over all cells.
    """
    truths = sampled_truths(channel, n)
    expected = [promised(channel, truth) for truth in truths]
    each_alpha = alpha / sum(map(len, expected))
    for truth, table, cells in zip(truths, seen, expected, strict=True):
        if wrong := wrong_cell(table, cells, n, each_alpha):
            return Check("generator", shown(channel), False, f"truth {_brief(truth)}, {wrong}")
    bound = epsilon_bound(seen, n, each_alpha)
    cells_of = "codes" if _is_counted_by_code(channel) else "bits"
    detail = (
        f"{n:,} for each of {len(truths)} truths, {len(expected[0]):,} {cells_of}: "
        f"epsilon is at least {bound:.3f}, promised {channel.epsilon:.3f}"
    )
    return Check("generator", shown(channel), bound <= channel.epsilon, detail)


def wrong_cell(table: Counts, cells: Mapping[str, float], n: int, alpha: float) -> str:
    """The first cell of n reports whose interval excludes its probability; "" when none does."""
    if unknown := set(table) - set(cells):
        return f"unknown report {min(unknown)}"
    counts = np.array([table.get(code, 0) for code in cells])
    low, high = clopper_pearson(counts, n, alpha)
    shares = np.array(list(cells.values()))
    outside = np.flatnonzero((shares < low) | (shares > high))
    if not outside.size:
        return ""
    at = int(outside[0])
    return f"report {list(cells)[at]}: {counts[at]:,} of {n:,}, expected {shares[at] * n:,.0f}"


def _brief(truth: Truth) -> str:
    return str(truth) if isinstance(truth, int) else "".join(map(str, truth))[:80]


def epsilon_bound(tables: Sequence[Counts], n: int, alpha: float) -> float:
    """What the samples prove epsilon to be at least (Clopper-Pearson, one-sided each).

    ln max_j (max_i low_ij / min_i high_ij) over cells j and truths i.
    """
    codes = sorted(set().union(*tables))
    counts = np.array([[table.get(code, 0) for code in codes] for table in tables])
    low, high = clopper_pearson(counts, n, alpha)
    ratios = low.max(axis=0) / high.min(axis=0)
    return float(np.log(max(ratios.max(), 1.0)))


def clopper_pearson(c: int | NDArray[np.int64], n: int, alpha: float) -> tuple[Floats, Floats]:
    """The exact interval for c successes of n at level 1 - alpha (Clopper and Pearson 1934)."""
    counts = np.asarray(c)
    inside, below = np.maximum(counts, 1), np.minimum(counts, n - 1)
    low = np.where(counts == 0, 0.0, betaincinv(inside, n - inside + 1, alpha / 2))
    high = np.where(counts == n, 1.0, betaincinv(below + 1, n - below, 1 - alpha / 2))
    return low, high
