"""The release policy: no two readable states of a group differ by fewer than 25 reports.

A respondent in a very small group could be identified from its results, and so could one whose
report is the only difference between two results. Every part of the program that releases, groups,
limits or exports reports imports the rule from here.

The rule hides a respondent among other honest respondents. It cannot hide anyone from an attacker
who sends all the other reports. Against such an attacker, only the randomization protects.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MINIMUM_REPORTS = 25
"""Releases publish multiples of this number of reports; also the minimum size of a named group."""

OTHER_GROUPS = "other groups"
"""Name under which small groups are published together; no stratum may have this name."""

Cell = tuple[str, str]
"""A stratum and a bucket (the day or week of a release)."""

FIRST_MONDAY = 4 * 86_400
"""Monday, 1970-01-05, 00:00 UTC, in seconds. Release times are whole periods after it."""


def n_to_release(n_pending: int) -> int:
    """Return how many of a group's pending reports a release publishes.

    A release leaves 25 to 49 reports pending, or all of them if there are fewer than 50.

    >>> [n_to_release(n) for n in (0, 25, 49, 50, 74, 75, 10_000)]
    [0, 0, 0, 25, 25, 50, 9975]
    """
    return MINIMUM_REPORTS * max(n_pending // MINIMUM_REPORTS - 1, 0)


def release_time(now: float, every: int) -> int:
    """Return the latest release time up to `now`; times in seconds since 1970, UTC.

    >>> release_time(1_795_485_599, 3600) == 1_795_485_600 - 3600, release_time(1_795_485_600, 3600)
    (True, 1795485600)
    """
    return FIRST_MONDAY + (int(now) - FIRST_MONDAY) // every * every


def next_release(now: float, every: int) -> str:
    """Return the next release time as text; times in seconds since 1970, UTC.

    >>> next_release(1_795_485_599, 3600)
    '2026-11-24 02:00 UTC'
    """
    moment = datetime.fromtimestamp(release_time(now, every) + every, UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def closing_names(pending: Mapping[str, int]) -> dict[str, str]:
    """Return the name under which closing publishes each stratum, given its pending reports.

    Strata with fewer than 25 pending reports are pooled and published if the pool has at least 25.
    Strata that are missing from the result are not published. A stratum that has been released
    before still has at least 25 pending reports and therefore keeps its name, unless the key of
    these reports was lost.

    >>> closing_names({"north": 30, "east": 20, "west": 3})
    {'north': 'north'}
    >>> closing_names({"north": 30, "east": 20, "west": 6})
    {'north': 'north', 'east': 'other groups', 'west': 'other groups'}
    """
    small = [stratum for stratum, n in pending.items() if n < MINIMUM_REPORTS]
    is_enough = sum(pending[stratum] for stratum in small) >= MINIMUM_REPORTS
    names = {stratum: stratum for stratum in pending if stratum not in small}
    return {**names, **dict.fromkeys(small, OTHER_GROUPS)} if is_enough else names


def merge_small_strata(sizes: Mapping[str, int]) -> dict[str, str]:
    """Return the stratum into which a conversion moves each, given its number of reports.

    The smallest strata are merged until together they have enough reports. At least two strata
    are merged: otherwise, subtracting the others from the total would reveal the one left out.

    >>> merge_small_strata({"north": 400, "south": 300, "east": 20, "west": 3})
    {'west': 'other groups', 'east': 'other groups', 'south': 'other groups', 'north': 'north'}
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
    """Return the stratum and bucket into which a conversion moves each cell, given its reports.

    Earlier versions released smaller cells and merged them when they were read. This merges them
    in the same way, for good: nothing becomes readable that was not. Cells that all are large
    enough stay as they are.

    First, small strata are merged over all buckets as in `merge_small_strata`. Then neighboring
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
    """Return each bucket's name after merging: its own, or that of its span."""
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
        bucket: bucket if len(span) == 1 else f"{span[0].split('/')[0]}/{span[-1].split('/')[-1]}"
        for span in spans
        for bucket in span
    }


def _has_enough(by_bucket: Mapping[str, Counter[str]], span: Sequence[str]) -> bool:
    """Return whether each stratum has no reports, or enough of them, in these buckets."""
    sizes = sum((by_bucket[bucket] for bucket in span), Counter[str]())
    return all(n >= MINIMUM_REPORTS for n in sizes.values())


def is_question_shown(n_answers: int) -> bool:
    """Return whether a stratum's results show a question that only some respondents are asked.

    `n_answers` is the number of released reports of the stratum that answer the question. Later
    releases, days and weeks may add fewer than 25 answers, because nobody knows who was asked.

    >>> [is_question_shown(n) for n in (1, 24, 25)]
    [False, False, True]
    """
    return n_answers >= MINIMUM_REPORTS


def is_full(n_released: int, maximum: int) -> bool:
    """Return whether the released reports show that a survey has reached its maximum.

    A maximum of 0 means no limit. Every release leaves at least 25 reports pending, so these 25
    count too. The current number of pending reports does not count: otherwise a rejected report
    would tell its sender that another report has arrived.

    >>> [is_full(n, 100) for n in (50, 75)], is_full(1000, 0)
    ([False, True], False)
    """
    return 0 < maximum <= n_released + MINIMUM_REPORTS and n_released > 0


def secure_permutation(n: int) -> NDArray[np.intp]:
    """Return a random permutation of n indices, shape (n,), from the operating system's CSPRNG.

    The order sorts random 64-bit keys; two of the n keys are equal with probability below
    n^2 / 2^65.
    """
    import numpy as np

    keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return np.argsort(keys)
