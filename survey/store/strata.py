"""Small strata are read only together: a report among few would be too nearly somebody's."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

FEWEST_OF_STRATUM = 25
"""Reports of a stratum that is read by its own name, and people for whom one may be planned."""

OTHER_LINKS = "other links"
"""The name under which small strata are read together; no stratum may be called so."""


def readable_strata(sizes: Mapping[str, int]) -> dict[str, str]:
    """The name by which the reports of each stratum are read, of a survey with these numbers.

    The smallest ones are joined until together they are large enough: what is missing from a
    total must not be one small stratum either.

    >>> readable_strata({"north": 400, "south": 300, "east": 20, "west": 3})
    {'west': 'other links', 'east': 'other links', 'south': 'other links', 'north': 'north'}
    >>> readable_strata({"": 7})
    {'': ''}
    """
    if len(sizes) < 2:
        return {stratum: stratum for stratum in sizes}
    names: dict[str, str] = {}
    joined = 0
    for stratum, n in sorted(sizes.items(), key=lambda each: (each[1], each[0])):
        is_small = n < FEWEST_OF_STRATUM or 0 < joined < FEWEST_OF_STRATUM
        names[stratum] = OTHER_LINKS if is_small else stratum
        joined += n if is_small else 0
    return names


Cell = tuple[str, str]
"""A stratum and a bucket."""


def readable_groups(sizes: Mapping[Cell, int]) -> dict[Cell, Cell]:
    """Under which stratum and bucket the reports of each are read, of a survey with these numbers.

    Small strata are joined as `readable_strata` says, over all buckets. Then buckets are joined
    with their neighbours until every stratum has none or enough reports in each: whatever totals
    of strata, of buckets or of both are taken from each other, no few reports are left over.

    >>> readable_groups({("", "2026-01-01"): 90, ("", "2026-01-02"): 40, ("", "2026-01-03"): 1})
    {('', '2026-01-01'): ('', '2026-01-01'), ('', '2026-01-02'): ('', '2026-01-02/2026-01-03'), \
('', '2026-01-03'): ('', '2026-01-02/2026-01-03')}
    """
    by_stratum: Counter[str] = Counter()
    for (stratum, _), n in sizes.items():
        by_stratum[stratum] += n
    names = readable_strata(by_stratum)
    cells: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (stratum, bucket), n in sizes.items():
        cells[bucket][names[stratum]] += n
    spans = _spans(cells)
    return {(stratum, bucket): (names[stratum], spans[bucket]) for stratum, bucket in sizes}


def _spans(cells: Mapping[str, Counter[str]]) -> dict[str, str]:
    """By which name each bucket is read: its own, or that of the span of time it is joined to."""
    spans: list[list[str]] = []
    begun: list[str] = []
    for bucket in sorted(cells):
        begun.append(bucket)
        if _is_enough(cells, begun):
            spans.append(begun)
            begun = []
    # What is left at the end goes to those before it.
    while begun and spans and not _is_enough(cells, begun):
        begun = spans.pop() + begun
    if begun:
        spans.append(begun)
    return {
        bucket: span[0] if len(span) == 1 else f"{span[0]}/{span[-1]}"
        for span in spans
        for bucket in span
    }


def _is_enough(cells: Mapping[str, Counter[str]], span: Sequence[str]) -> bool:
    """Whether every stratum has no report or enough of them in these buckets together."""
    together = sum((cells[bucket] for bucket in span), Counter[str]())
    return all(n >= FEWEST_OF_STRATUM for n in together.values())


def secure_permutation(n: int) -> NDArray[np.intp]:
    """A random order of n things from the system's CSPRNG.

    Sorting random 64-bit keys; two of n are equal with chance below n^2 / 2^65.
    """
    keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return np.argsort(keys)
