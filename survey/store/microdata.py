"""Released reports as they may be read: of one release, with small groups merged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from survey.disclosure import MINIMUM_REPORTS, Cell, merge_small_groups, secure_permutation
from survey.store.releases import BlockColumn, Tally
from survey.store.store import Store
from survey.store.surveys import PublishedSurvey

if TYPE_CHECKING:
    from survey.questionnaire.kinds import PublishedQuestion

Block = list[BlockColumn]
"""One column per question, of the same reports in the same order."""

STRATUM, BUCKET = "_stratum", "_bucket"
"""Columns of exported reports beside their questions; no question can have these names."""


def read_microdata(store: Store, survey: PublishedSurvey) -> tuple[Tally, Iterator[Block]]:
    """Return a release and its blocks, read from one state, with one block in memory at a time.

    The state begins with the first block. If the release is the same before and after that, the
    blocks belong to it; otherwise there was another release in between, and reading starts again.
    """
    questions = survey.definition.questions
    while True:
        before = store.tally(survey.key)
        sizes = {cell: tally.n for cell, tally in store.tallies(survey.key).items()}
        blocks = store.block_columns(survey.key, range(len(questions)))
        first = list(islice(blocks, 1))
        if store.tally(survey.key).release == before.release:
            return before, merge_small_blocks(chain(first, blocks), sizes, questions)


def merge_small_blocks(
    blocks: Iterator[Block], sizes: Mapping[Cell, int], questions: Sequence[PublishedQuestion]
) -> Iterator[Block]:
    """Yield blocks with the names of their groups; merged blocks come at the end."""
    groups = merge_small_groups(sizes)
    n_cells = Counter(groups.values())
    small_blocks: defaultdict[Cell, list[Block]] = defaultdict(list)
    for block in blocks:
        cell = block[0].stratum, block[0].bucket
        group = groups[cell]
        # One block of a large cell is enough to hide the reports of the small cells in.
        is_small = sizes[cell] < MINIMUM_REPORTS
        if n_cells[group] > 1 and (is_small or not _has_large_cell(small_blocks[group], sizes)):
            small_blocks[group].append(block)
        else:
            yield [replace(column, stratum=group[0], bucket=group[1]) for column in block]
    for group, parts in small_blocks.items():
        if parts:
            yield _merge(parts, group, questions)


def _has_large_cell(blocks: Sequence[Block], sizes: Mapping[Cell, int]) -> bool:
    cells = ((block[0].stratum, block[0].bucket) for block in blocks)
    return any(sizes[cell] >= MINIMUM_REPORTS for cell in cells)


def _merge(blocks: Sequence[Block], group: Cell, questions: Sequence[PublishedQuestion]) -> Block:
    """Return one block of all reports, in an order that does not show where each came from."""
    import numpy as np

    n = sum(block[0].n for block in blocks)
    order = secure_permutation(n)
    columns = []
    for index, question in enumerate(questions):
        stored = np.frombuffer(b"".join(block[index].data for block in blocks), dtype=np.uint8)
        codes = stored.reshape(n, question.code_bytes)[order]
        columns.append(BlockColumn(*group, index, 0, n, codes.tobytes()))
    return columns
