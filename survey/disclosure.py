"""The rule about small groups: results never describe fewer than 25 reports.

A respondent in a very small group could be identified from its results. Every part of the program
that releases, groups or exports reports imports the minimum and the merging rules from here.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MINIMUM_REPORTS = 25
"""Smallest number of reports that are released together, and that a named group may have."""

OTHER_GROUPS = "other links"
"""Name of the group that small strata are merged into; no stratum may have this name."""

Cell = tuple[str, str]
"""A stratum and a bucket (the day or week of a release)."""


def merge_small_strata(sizes: Mapping[str, int]) -> dict[str, str]:
    """Return the name under which results show each stratum, given its number of reports.

    The smallest strata are merged until together they have enough reports. At least two strata
    are merged: otherwise, subtracting the others from the total would reveal the one left out.

    >>> merge_small_strata({"north": 400, "south": 300, "east": 20, "west": 3})
    {'west': 'other links', 'east': 'other links', 'south': 'other links', 'north': 'north'}
    >>> merge_small_strata({"": 7})
    {'': ''}
    """
    if len(sizes) < 2:
        return {stratum: stratum for stratum in sizes}
    names: dict[str, str] = {}
    merged = 0
    for stratum, n in sorted(sizes.items(), key=lambda item: (item[1], item[0])):
        is_small = n < MINIMUM_REPORTS or 0 < merged < MINIMUM_REPORTS
        names[stratum] = OTHER_GROUPS if is_small else stratum
        merged += n if is_small else 0
    return names


def merge_small_groups(sizes: Mapping[Cell, int]) -> dict[Cell, Cell]:
    """Return the stratum and bucket under which results show each cell, given its reports.

    First, small strata are merged over all buckets as in `merge_small_strata`. Then neighbouring
    buckets are merged until each stratum has either no reports or enough of them in every bucket.
    No difference between totals of strata, buckets or cells then isolates fewer than the minimum.

    >>> merge_small_groups({("", "2026-01-01"): 90, ("", "2026-01-02"): 40, ("", "2026-01-03"): 1})
    {('', '2026-01-01'): ('', '2026-01-01'), ('', '2026-01-02'): ('', '2026-01-02/2026-01-03'), \
('', '2026-01-03'): ('', '2026-01-02/2026-01-03')}
    """
    by_stratum: Counter[str] = Counter()
    for (stratum, _), n in sizes.items():
        by_stratum[stratum] += n
    names = merge_small_strata(by_stratum)
    by_bucket: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (stratum, bucket), n in sizes.items():
        by_bucket[bucket][names[stratum]] += n
    spans = _merge_buckets(by_bucket)
    return {(stratum, bucket): (names[stratum], spans[bucket]) for stratum, bucket in sizes}


def _merge_buckets(by_bucket: Mapping[str, Counter[str]]) -> dict[str, str]:
    """Return each bucket's name in results: its own, or that of the span it was merged into."""
    spans: list[list[str]] = []
    span: list[str] = []
    for bucket in sorted(by_bucket):
        span.append(bucket)
        if _has_enough(by_bucket, span):
            spans.append(span)
            span = []
    # Reports at the end that are too few join the spans before them.
    while span and spans and not _has_enough(by_bucket, span):
        span = spans.pop() + span
    if span:
        spans.append(span)
    return {
        bucket: span[0] if len(span) == 1 else f"{span[0]}/{span[-1]}"
        for span in spans
        for bucket in span
    }


def _has_enough(by_bucket: Mapping[str, Counter[str]], span: Sequence[str]) -> bool:
    """Return whether each stratum has no reports, or enough of them, in these buckets."""
    sizes = sum((by_bucket[bucket] for bucket in span), Counter[str]())
    return all(n >= MINIMUM_REPORTS for n in sizes.values())


def secure_permutation(n: int) -> NDArray[np.intp]:
    """Return a random order of n things, shape (n,), from the operating system's CSPRNG.

    The order sorts random 64-bit keys; two of the n keys are equal with probability below
    n^2 / 2^65.
    """
    import numpy as np

    keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return np.argsort(keys)
