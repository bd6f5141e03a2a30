"""Released reports as they may be read: small groups joined, all of one release."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from survey.disclosure import (
    MINIMUM_REPORTS,
    Cell,
    merge_small_groups,
    secure_permutation,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.store.protocol import BlockColumn, PublishedSurvey, Store, Tally

Block = list[BlockColumn]
"""One column per question, of the same reports in the same order."""

STRATUM, BUCKET = "_stratum", "_bucket"
"""Columns beside the questions of exported reports, by names that no question can have."""


def readable_reports(store: Store, survey: PublishedSurvey) -> tuple[Tally, Iterator[Block]]:
    """A release, and its blocks in one consistent reading, one in memory at a time.

    The reading begins with the first block. When the release was the same before and after
    that, it is the one that is read; otherwise one came in between, and it begins again.
    """
    questions = survey.definition.questions
    while True:
        before = store.tally(survey.key)
        sizes = {cell: tally.n for cell, tally in store.tallies(survey.key).items()}
        blocks = store.block_columns(survey.key, range(len(questions)))
        first = list(islice(blocks, 1))
        if store.tally(survey.key).release == before.release:
            return before, readable(chain(first, blocks), sizes, questions)


def readable(
    blocks: Iterator[Block], sizes: Mapping[Cell, int], questions: Sequence[PublishedQuestion]
) -> Iterator[Block]:
    """The blocks as they may be read; those that are joined come at the end."""
    groups = merge_small_groups(sizes)
    several = Counter(groups.values())
    held: defaultdict[Cell, list[Block]] = defaultdict(list)
    for block in blocks:
        cell = block[0].stratum, block[0].bucket
        group = groups[cell]
        # Beside the few of a group one block of its many is enough to be lost in.
        is_few = sizes[cell] < MINIMUM_REPORTS
        if several[group] > 1 and (is_few or not _holds_many(held[group], sizes)):
            held[group].append(block)
        else:
            yield [replace(column, stratum=group[0], bucket=group[1]) for column in block]
    for group, some in held.items():
        if some:
            yield _joined(some, group, questions)


def _holds_many(blocks: Sequence[Block], sizes: Mapping[Cell, int]) -> bool:
    cells = ((block[0].stratum, block[0].bucket) for block in blocks)
    return any(sizes[cell] >= MINIMUM_REPORTS for cell in cells)


def _joined(several: Sequence[Block], group: Cell, questions: Sequence[PublishedQuestion]) -> Block:
    """One block of all their reports, in an order that tells nothing of where each came from."""
    n = sum(block[0].n for block in several)
    order = secure_permutation(n)
    joined = []
    for at, question in enumerate(questions):
        stored = np.frombuffer(b"".join(block[at].data for block in several), dtype=np.uint8)
        codes = stored.reshape(n, question.code_bytes)[order]
        joined.append(BlockColumn(*group, at, 0, n, codes.tobytes()))
    return joined
