"""Joint counts of reports to several questions, from their codes, in chunks of constant memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import CountsError
from survey.estimator.arguments import checked_arguments
from survey.estimator.counts import checked_whole, whole_counts

Integers = NDArray[np.int64]
Codes = NDArray[np.integer[Any]]

CHUNK = 65_536
"""Reports counted at once, so that their combined index stays in the processor's cache; as many
as the table has cells where those are more."""

LARGEST_TABLE = 10**7
"""Cells of the largest table that is counted, 80 MB."""


@checked_arguments
def joint_counts(columns: Sequence[ArrayLike], sizes: Sequence[int]) -> Integers:
    """How often each combination of reports occurs, shape `sizes`.

    `columns` has one array per question, all of shape (n,): the codes 0 to size - 1 of the same n
    reports in the same order. The counts of a chunk are one bincount of the combined index
    ((a k_b + b) k_c + c), Horner's scheme.

    Raises CountsError for columns of unequal lengths, codes that are not whole numbers or outside
    0 to size - 1, no reports, or a table of more than 10^7 cells.

    >>> joint_counts([[0, 1, 1], [2, 0, 2]], [2, 3]).tolist()
    [[0, 0, 1], [1, 0, 1]]
    """
    shape = _checked_sizes(sizes, len(columns))
    codes = [_checked_codes(column, place) for place, column in enumerate(columns)]
    n = len(codes[0])
    if any(len(column) != n for column in codes):
        raise CountsError(f"columns of {[len(column) for column in codes]} reports: not the same")
    if n == 0:
        raise CountsError("n = 0: there are no reports to count")
    cells = math.prod(shape)
    counts = np.zeros(cells, dtype=np.int64)
    size = min(max(CHUNK, cells), n)
    index = np.empty(size, dtype=np.intp)
    for start in range(0, n, size):
        chunk = [column[start : start + size] for column in codes]
        counts += np.bincount(_combined(chunk, shape, index[: len(chunk[0])]), minlength=cells)
    return counts.reshape(shape)


def _combined(
    chunk: list[Codes], shape: tuple[int, ...], index: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The place of every report's cell, row by row, in `index`."""
    for place, (codes, size) in enumerate(zip(chunk, shape, strict=True)):
        if int(codes.max()) >= size or (codes.dtype.kind == "i" and int(codes.min()) < 0):
            wrong = codes[(codes < 0) | (codes >= size)][0]
            raise CountsError(f"question {place}: code {wrong} must be from 0 to {size - 1}")
        if place == 0:
            np.copyto(index, codes, casting="unsafe")
        else:
            np.multiply(index, size, out=index)
            np.add(index, codes, out=index, casting="unsafe")
    return index


def _checked_sizes(sizes: Sequence[int], columns: int) -> tuple[int, ...]:
    shape = tuple(checked_whole(size, "a size") for size in sizes)
    if not shape or len(shape) != columns or min(shape) < 1:
        raise CountsError(f"sizes {list(sizes)} for {columns} questions: one size, above 0, each")
    if math.prod(shape) > LARGEST_TABLE:
        raise CountsError(
            f"a table of {math.prod(shape):,} cells is above {LARGEST_TABLE:,}: cross fewer "
            "questions"
        )
    return shape


def _checked_codes(column: ArrayLike, place: int) -> Codes:
    codes = np.asarray(column)
    if codes.ndim != 1 or (codes.dtype.kind not in "iu" and codes.size):
        raise CountsError(
            f"question {place}: codes must be whole numbers of shape (n,), "
            f"not {codes.dtype} of shape {codes.shape}"
        )
    return codes


def whole_table(counts: ArrayLike, shape: tuple[int, ...], what: str) -> Integers:
    """The counts as int64 of that shape, or the reason why they are none."""
    values = np.asarray(counts)
    if values.shape != shape:
        raise CountsError(f"counts of shape {values.shape} must have shape {shape}: {what}")
    return whole_counts(values.ravel(), values.size, f"{what}, row by row").reshape(shape)
