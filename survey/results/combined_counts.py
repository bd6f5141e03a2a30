"""How often reports to several questions came together, link by link, from the released blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.errors import CountsError
from survey.results.counts import Integers, numbers_of
from survey.results.strata_counts import readable_names
from survey.results.wording import not_enough
from survey.store import BlockColumn, PublishedSurvey, Store

MOST_COMBINATIONS = 20_000
"""Combinations of reports up to which they are counted: estimates from more take minutes."""


class CombinedCounts(NamedTuple):
    """Every combination of reports that came: a row each.

    codes  (rows, questions): the reports
    link   (rows,): the place of the row's link in `links`
    times  (rows,): how many people's reports they are
    links  what the links are called, the one with the most reports first
    """

    codes: Integers
    link: Integers
    times: Integers
    links: tuple[str, ...]


def combined_counts(store: Store, survey: PublishedSurvey, places: Sequence[int]) -> CombinedCounts:
    """Count the reports that hold all these questions, of channels with one code per report.

    Raises CountsError for more combinations than can be counted, or where no report holds all.
    """
    sizes = [survey.definition.questions[place].channel.counted for place in places]
    cells = math.prod(sizes)
    if cells > MOST_COMBINATIONS:
        raise CountsError(
            f"{cells:,} combinations of reports are above {MOST_COMBINATIONS:,}: choose fewer "
            "questions, or such with fewer options"
        )
    names = readable_names(store, survey)
    found: dict[str, Integers] = {}
    for columns in store.block_columns(survey.key, places):
        name = names[columns[0].stratum]
        counts = np.bincount(_cells(survey, places, sizes, columns), minlength=cells)
        found[name] = found.get(name, 0) + counts
    links = sorted(found, key=lambda name: (-int(found[name].sum()), name))
    table = np.array([found[name] for name in links], dtype=np.int64).reshape(-1, cells)
    link, cell = np.nonzero(table)
    if not cell.size:
        raise CountsError(f"{not_enough(survey)}: no released report holds all these questions")
    codes = np.stack(np.unravel_index(cell, sizes), axis=1)
    return CombinedCounts(codes, link, table[link, cell], tuple(links))


def _cells(
    survey: PublishedSurvey,
    places: Sequence[int],
    sizes: Sequence[int],
    columns: Sequence[BlockColumn],
) -> NDArray[np.int64]:
    """The combination of each report of a block that holds all questions, the last fastest."""
    questions = [survey.definition.questions[place] for place in places]
    codes = [np.frombuffer(each.data, np.uint8).reshape(each.n, -1) for each in columns]
    if questions[0].nullable:
        # A first byte of 1 says that a question was asked; it is no part of the code.
        asked = np.all([one[:, 0] == 1 for one in codes], axis=0)
        codes = [one[asked, 1:] for one in codes]
    cells = np.zeros(len(codes[0]), dtype=np.int64)
    for question, one, size in zip(questions, codes, sizes, strict=True):
        cells = cells * size + numbers_of(question, one)
    return cells
