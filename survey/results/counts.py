"""How often reports to two questions came together, counted from the released blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.errors import CountsError
from survey.estimator.tables.axes import Crossed
from survey.mechanism import SubsetSelection
from survey.mechanism.arrays import Codes
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.variables import Item
from survey.store import PublishedSurvey, Store

Integers = NDArray[np.int64]

ONE_BYTE = 256
"""Cells of a table up to which two codes of a report are combined in a single byte: quicker."""

TOGETHER = 2**20
"""Reports whose cells are counted at once."""


def crossed_counts(store: Store, survey: PublishedSurvey, first: int, second: int) -> Integers:
    """Counts of shape (counted, counted) that `survey.estimator.crosstab` takes.

    `first` and `second` are places of questions whose channels can be crossed. Reports that were
    asked both are counted, those of sets once for each pair of options in them. Raises CountsError
    for a stored code that no device can have sent.
    """
    asked = survey.definition.questions
    return item_counts(store, survey, Item(first, asked[first]), Item(second, asked[second]))


def item_counts(store: Store, survey: PublishedSurvey, first: Item, second: Item) -> Integers:
    """The same of two items, of which one may be a single answer of a multiple choice."""
    questions = [first.question, second.question]
    shape = questions[0].channel.counted, questions[1].channel.counted
    both = _codes(store, survey, first, second)
    if any(map(_holds_sets, questions)):
        counts = np.zeros(shape, dtype=np.int64)
        for a, b in both:
            counts += _members(questions[0], a).T @ _members(questions[1], b)
        return counts
    cells = (_cells(questions, a, b, shape) for a, b in both)
    return _counted(cells, shape[0] * shape[1]).reshape(shape)


def _codes(
    store: Store,
    survey: PublishedSurvey,
    first: Item,
    second: Item,
) -> Iterator[tuple[Codes, Codes]]:
    """Block by block, the codes of both questions of the reports that were asked both."""
    for columns in store.block_columns(survey.key, [first.place, second.place]):
        a, b = (np.frombuffer(each.data, np.uint8).reshape(each.n, -1) for each in columns)
        if first.question.nullable:
            # A first byte of 1 says that a question was asked; it is no part of the code.
            asked = (a[:, 0] & b[:, 0]).astype(bool)
            a, b = a[asked, 1:], b[asked, 1:]
        if first.tick is not None or second.tick is not None:
            told = first.asked(a) & second.asked(b)
            a, b = first.codes(a[told]), second.codes(b[told])
        yield a, b


def _cells(
    questions: Sequence[PublishedQuestion], a: Codes, b: Codes, shape: tuple[int, int]
) -> NDArray[np.integer[Any]]:
    """The place of each report's cell, a k_b + b, in one byte where that is enough."""
    kind = np.uint8 if shape[0] * shape[1] <= ONE_BYTE else np.int64
    found: NDArray[np.integer[Any]] = np.multiply(numbers_of(questions[0], a), shape[1], dtype=kind)
    found += numbers_of(questions[1], b).astype(kind, copy=False)
    return found


def _counted(cells: Iterable[NDArray[np.integer[Any]]], size: int) -> Integers:
    """How often each cell occurs.

    Of cells of one byte two at a time: a pair of bytes is a number below 2^16, and the counts of
    the pairs, summed along both bytes, are those of the bytes. That halves the time.
    """
    if size > ONE_BYTE:
        counts = np.zeros(size, dtype=np.int64)
        for part in cells:
            counts += np.bincount(part, minlength=size)
        return counts
    counts, waiting = np.zeros(ONE_BYTE, dtype=np.int64), []
    for part in cells:
        waiting.append(part)
        if sum(map(len, waiting)) >= TOGETHER:
            counts += _of_bytes(np.concatenate(waiting))
            waiting = []
    if waiting:
        counts += _of_bytes(np.concatenate(waiting))
    return counts[:size]


def _of_bytes(cells: NDArray[np.integer[Any]]) -> Integers:
    even = len(cells) - len(cells) % 2
    pairs = np.bincount(cells[:even].view(np.uint16), minlength=ONE_BYTE**2)
    pairs = pairs.reshape(ONE_BYTE, ONE_BYTE)
    last = np.bincount(cells[even:], minlength=ONE_BYTE)
    return np.asarray(pairs.sum(axis=0) + pairs.sum(axis=1) + last)


def numbers_of(question: PublishedQuestion, codes: Codes) -> NDArray[np.integer[Any]]:
    """The code of each report as a number, of one byte or two."""
    found: NDArray[np.integer[Any]] = codes[:, 0]
    if codes.shape[1] == 2:
        found = (codes[:, 0].astype(np.uint16) << 8) | codes[:, 1]
    if found.size and int(found.max()) >= question.channel.counted:
        raise CountsError(
            f"question {question.id}: code {int(found.max())} must be from 0 to "
            f"{question.channel.counted - 1}"
        )
    return found


def _members(question: PublishedQuestion, codes: Codes) -> Integers:
    """1 where a report supports an option, shape (n, counted)."""
    counted = question.channel.counted
    if _holds_sets(question):
        return np.unpackbits(codes, axis=1)[:, :counted].astype(np.int64)
    return np.asarray(np.eye(counted, dtype=np.int64)[numbers_of(question, codes)])


def _holds_sets(question: PublishedQuestion) -> bool:
    channel: Crossed = question.channel  # type: ignore[assignment]
    return isinstance(channel, SubsetSelection) and channel.d > 1
