"""What estimators are given, as it must be: counts a channel can have given, whole n, levels."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import CountsError, DesignError
from survey.mechanism import BitVector

Integers = NDArray[np.int64]

LARGEST_N = 10**10
"""More reports than there are people; the intervals are accurate up to here."""

LEVELS = (1e-6, 1 - 1e-9)
"""The levels of intervals: beyond them the double precision of 1 - level runs out."""


LARGEST_NUMBER = 1e150
"""Numbers of a larger size have squares that cannot be computed with."""


def checked_level(level: float) -> float:
    """The level of an interval, or DesignError.

    >>> checked_level(0.95)
    0.95
    """
    if not isinstance(level, Real) or not LEVELS[0] <= level <= LEVELS[1]:
        raise DesignError(
            f"level = {level!r} must be between 0 and 1 ({LEVELS[0]:g} to 1 - 1e-09), "
            "for example 0.95"
        )
    return float(level)


def checked_whole(number: int, name: str, error: type[ValueError] = CountsError) -> int:
    """The number as an int; neither 2.0 nor True nor "2" is one.

    >>> checked_whole(np.int64(2), "n")
    2
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise error(f"{name} = {number!r} must be a whole number")
    return int(number)


def within_reach(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where a number is finite and its square too; nan is not."""
    return np.asarray(np.abs(numbers) <= LARGEST_NUMBER)


def checked_values(values: Sequence[float | None] | ArrayLike, truths: int) -> NDArray[np.float64]:
    """The number that each true answer stands for, nan where it is no answer (None)."""
    try:
        x = np.array([nan if v is None else v for v in np.asarray(values, dtype=object)], float)
    except (TypeError, ValueError):
        raise ValueError("values must be numbers, None where a truth is no answer") from None
    if x.shape != (truths,):
        raise ValueError(f"{x.size} values for {truths} true answers: one for each, None for none")
    numbers = x[~np.isnan(x)]
    if not within_reach(numbers).all() or len(set(numbers.tolist())) < 2:
        raise ValueError(
            f"values must be finite numbers of at most {LARGEST_NUMBER:g} in size, at least two "
            "of them different"
        )
    return x


def whole_counts(counts: ArrayLike, size: int, what: str) -> Integers:
    """The counts as int64 of shape (size,), or the reason why they are none."""
    try:
        values = np.asarray(counts)
    except ValueError:
        raise CountsError(f"counts must be one row of {size} whole numbers: {what}") from None
    if values.shape != (size,):
        raise CountsError(f"counts of shape {values.shape} must have shape ({size},): {what}")
    if values.dtype.kind not in "iuf":
        raise CountsError(f"counts must be whole numbers, not {values.dtype}")
    if values.dtype.kind == "f":
        # A half-precision number cannot be compared with the largest n.
        values = values.astype(np.float64)
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
    n = checked_whole(n, "n")
    if stated is not None and checked_whole(stated, "n") != n:
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


def bit_counts(
    counts: ArrayLike, channel: BitVector, n: int | None
) -> tuple[Integers, Integers, int]:
    """Of reported bits: ones per option, reports that ask about it, and the number of reports.

    `counts` are ones per option, with `n` stated; of a channel that samples its options times
    asked, then ones, which tell n.
    """
    if channel.is_sampled:
        c = whole_counts(counts, 2 * channel.m, "times asked, then ones, per option")
        reports, ones = c[: channel.m], c[channel.m :]
        n = reports_from(int(reports.sum()), channel.sampled, n)
        check_at_most(reports, np.full(channel.m, n), "reports ask about it")
    else:
        ones = whole_counts(counts, channel.m, "ones per option")
        if n is None:
            raise CountsError("counts of ones do not tell n: state the number of reports")
        n = checked_n(n, None)
        reports = np.full(channel.m, n)
    check_at_most(ones, reports, "reports hold it")
    return ones, reports, n
