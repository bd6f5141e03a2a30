"""How often reports to two questions came together, counted from the released blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from survey.errors import CountsError
from survey.estimator.axes import Crossed
from survey.mechanism import SubsetSelection
from survey.mechanism.codes import Stored
from survey.questionnaire.published import PublishedQuestion
from survey.store import PublishedSurvey, Store

Integers = NDArray[np.int64]

ONE_BYTE = 256
"""Cells of a table up to which two codes of a report are combined in a single byte: quicker."""


def crossed_counts(store: Store, survey: PublishedSurvey, first: int, second: int) -> Integers:
    """Counts of shape (counted, counted) that `survey.estimator.crosstab` takes.

    `first` and `second` are places of questions whose channels can be crossed. Reports that were
    asked both are counted, those of sets once for each pair of options in them. Raises CountsError
    for a stored code that no device can have sent.
    """
    questions = [survey.definition.questions[place] for place in (first, second)]
    shape = tuple(question.channel.counted for question in questions)
    counts = np.zeros(shape, dtype=np.int64)
    for columns in store.block_columns(survey.key, [first, second]):
        stored = [np.frombuffer(column.data, np.uint8).reshape(column.n, -1) for column in columns]
        a, b = _asked_both(questions, stored)
        counts += _joint(questions, a, b, shape)
    return counts


def _asked_both(questions: list[PublishedQuestion], stored: list[Stored]) -> Iterator[Stored]:
    """The codes of the reports that were asked both, without what says so."""
    if not questions[0].nullable:
        yield from stored
        return
    both = (stored[0][:, 0] & stored[1][:, 0]).astype(bool)
    for codes in stored:
        yield codes[both, 1:]


def _joint(
    questions: list[PublishedQuestion], a: Stored, b: Stored, shape: tuple[int, ...]
) -> Integers:
    sets = [_holds_sets(question) for question in questions]
    if not any(sets):
        return _combined(questions, a, b, shape)
    first, second = (
        _members(question, codes) for question, codes in zip(questions, (a, b), strict=True)
    )
    return np.asarray(first.T @ second)


def _combined(
    questions: list[PublishedQuestion], a: Stored, b: Stored, shape: tuple[int, ...]
) -> Integers:
    """Counts of codes that are one number each: one bincount of a k_b + b."""
    cells = shape[0] * shape[1]
    kind = np.uint8 if cells <= ONE_BYTE else np.int64
    rows, columns = (
        _numbers(question, codes).astype(kind, copy=False)
        for question, codes in zip(questions, (a, b), strict=True)
    )
    combined = np.multiply(rows, shape[1], dtype=kind)
    combined += columns
    return np.bincount(combined, minlength=cells).reshape(shape)


def _numbers(question: PublishedQuestion, codes: Stored) -> NDArray[np.integer]:
    """The code of each report as a number, of one byte or two."""
    found: NDArray[np.integer] = codes[:, 0]
    if codes.shape[1] == 2:
        found = (codes[:, 0].astype(np.uint16) << 8) | codes[:, 1]
    if found.size and int(found.max()) >= question.channel.counted:
        raise CountsError(
            f"question {question.id}: code {int(found.max())} must be from 0 to "
            f"{question.channel.counted - 1}"
        )
    return found


def _members(question: PublishedQuestion, codes: Stored) -> Integers:
    """1 where a report supports an option, shape (n, counted)."""
    counted = question.channel.counted
    if _holds_sets(question):
        return np.unpackbits(codes, axis=1)[:, :counted].astype(np.int64)
    return np.asarray(np.eye(counted, dtype=np.int64)[_numbers(question, codes)])


def _holds_sets(question: PublishedQuestion) -> bool:
    channel: Crossed = question.channel  # type: ignore[assignment]
    return isinstance(channel, SubsetSelection) and channel.d > 1
