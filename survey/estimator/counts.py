"""Counts as they must be: whole numbers that the channel they are read through can have given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import CountsError

Integers = NDArray[np.int64]

LARGEST_N = 10**10
"""More reports than there are people; the intervals are accurate up to here."""


def whole_counts(counts: ArrayLike, size: int, what: str) -> Integers:
    """The counts as int64 of shape (size,), or the reason why they are none."""
    values = np.asarray(counts)
    if values.shape != (size,):
        raise CountsError(f"counts of shape {values.shape} must have shape ({size},): {what}")
    if values.dtype.kind not in "iuf":
        raise CountsError(f"counts must be whole numbers, not {values.dtype}")
    for wrong, reason in (
        (~np.isfinite(values) | (values != np.floor(values)), "must be a whole number"),
        (values < 0, "must not be negative"),
        (values > size * LARGEST_N, f"is above {LARGEST_N:,} reports"),
    ):
        if wrong.any():
            place = int(np.argmax(wrong))
            raise CountsError(f"counts[{place}] = {values[place]} {reason}")
    return values.astype(np.int64)


def reports_from(total: int, each: int, n: int | None) -> int:
    """How many reports add `each` to the total of the counts; a stated `n` must agree."""
    if total % each:
        raise CountsError(f"the counts add up to {total}; a report adds {each}, so {each} divides")
    return checked_n(total // each, n)


def checked_n(n: int, stated: int | None) -> int:
    """The number of reports, within what can be estimated from."""
    if stated is not None and stated != n:
        raise CountsError(f"n = {stated} but the counts are those of {n} reports")
    if not 1 <= n <= LARGEST_N:
        raise CountsError(f"n = {n}: an estimate needs 1 to {LARGEST_N:,} reports")
    return n


def check_at_most(counts: Integers, most: Integers, of: str) -> None:
    """Refuse a count above what it is a part of."""
    above = counts > most
    if above.any():
        place = int(np.argmax(above))
        raise CountsError(f"counts of option {place}: {counts[place]} of {most[place]} {of}")
