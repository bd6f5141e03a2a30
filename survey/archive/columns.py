"""What is released of each question in each stratum and bucket: its blocks beside its counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import cast

import numpy as np

from survey.archive.pages import rows
from survey.archive.published import Published
from survey.questionnaire.published import PublishedQuestion
from survey.store import ASKED, Row, Snapshot

Place = tuple[int, str, str, int]
"""The survey, stratum, bucket and question of a column."""

place_of = itemgetter(0, 1, 2, 3)


@dataclass
class Column:
    """Counts as stored (`counted`) and as the blocks give them (`rebuilt`), by place.

    `sizes` are the reports in each block by its number; `mistakes` say which of it cannot be read.
    """

    rebuilt: Counter[int] = field(default_factory=Counter)
    counted: Counter[int] = field(default_factory=Counter)
    sizes: dict[int, int] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def columns(snapshot: Snapshot, surveys: dict[int, Published]) -> Iterator[tuple[Place, Column]]:
    """Every column that has blocks or counts, in their order; one block in memory at a time."""
    # Both tables lie in the order of these four, and texts sort by code point everywhere.
    both = merge(
        (("block", row) for row in rows(snapshot, "block")),
        (("counts", row) for row in rows(snapshot, "counts")),
        key=lambda each: place_of(each[1]),
    )
    for key, found in groupby(both, key=lambda each: place_of(each[1])):
        place, column = cast("Place", key), Column()
        question = _question(surveys, place, column)
        for table, row in found:
            if table == "counts":
                column.counted[cast("int", row[4])] += cast("int", row[5])
            else:
                _read_block(row, question, column)
        yield place, column


def _question(
    surveys: dict[int, Published], place: Place, column: Column
) -> PublishedQuestion | None:
    survey = surveys.get(place[0])
    if survey is None:
        column.mistakes.append("there is no such survey")
    elif 0 <= place[3] < len(survey.questions):
        return survey.questions[place[3]]
    else:
        column.mistakes.append("its definition has no such question")
    return None


def _read_block(row: Row, question: PublishedQuestion | None, column: Column) -> None:
    """Add a block's codes to the rebuilt counts."""
    block, n, codes = cast("tuple[int, int, bytes]", row[4:])
    column.sizes[block] = n
    if question is None:
        return
    if n < 1 or len(codes) != n * question.code_bytes:
        column.mistakes.append(
            f"block {block} of {n:,} reports has {len(codes):,} bytes, "
            f"not {n * question.code_bytes:,}"
        )
        return
    stored = np.frombuffer(codes, dtype=np.uint8).reshape(n, question.code_bytes)
    asked, supports = question.count(stored)
    column.rebuilt[ASKED] += asked
    if len(supports) > question.channel.counted:
        column.mistakes.append(f"block {block} holds a code that its question does not have")
    for place in np.flatnonzero(supports).tolist():
        column.rebuilt[place] += int(supports[place])
