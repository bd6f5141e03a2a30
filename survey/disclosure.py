"""The release policy: no two readable states of a group differ by fewer than 25 reports.

A respondent in a very small group could be identified from its results, and so could one whose
report is the only difference between two results. Every part of the program that releases, groups,
limits or exports reports imports the rule from here.

The rule hides a respondent among other honest respondents. It hides nobody from an attacker who
sends all other reports: against that, only the randomization on the device protects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MINIMUM_REPORTS = 25
"""Number of reports that are released together, or a multiple of it; smallest named group."""

OTHER_GROUPS = "other groups"
"""Name under which small groups are published together; no stratum may have this name."""

FIRST_MONDAY = 4 * 86_400
"""Monday, 1970-01-05, 00:00 UTC in seconds: release times are multiples of a period after it."""


def n_to_release(n_pending: int) -> int:
    """Return how many of a group's pending reports a release publishes; 25 to 49 stay pending.

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

    Strata with too few pending reports are published together, if they have enough together. A
    stratum that the result lacks is not published. Releases leave enough pending in every stratum
    that they publish, so that these strata keep their names.

    >>> closing_names({"north": 30, "east": 20, "west": 3})
    {'north': 'north'}
    >>> closing_names({"north": 30, "east": 20, "west": 6})
    {'north': 'north', 'east': 'other groups', 'west': 'other groups'}
    """
    small = [stratum for stratum, n in pending.items() if n < MINIMUM_REPORTS]
    is_enough = sum(pending[stratum] for stratum in small) >= MINIMUM_REPORTS
    names = {stratum: stratum for stratum in pending if stratum not in small}
    return {**names, **dict.fromkeys(small, OTHER_GROUPS)} if is_enough else names


def is_question_shown(n_answers: int) -> bool:
    """Return whether a stratum's results show a question of which respondents are asked some.

    `n_answers` is the number of released reports of the stratum that answer it. Later releases,
    and single days or weeks, may contain fewer of them: nobody knows who was asked.

    >>> [is_question_shown(n) for n in (1, 24, 25)]
    [False, False, True]
    """
    return n_answers >= MINIMUM_REPORTS


def is_full(n_released: int, maximum: int) -> bool:
    """Return whether a survey has reached its maximum, 0 for none, as far as releases show.

    Every release leaves at least 25 reports pending, so they count as well. The number that is
    pending now does not: a refused report would tell its sender whether another one has arrived.

    >>> [is_full(n, 100) for n in (50, 75)], is_full(1000, 0)
    ([False, True], False)
    """
    return 0 < maximum <= n_released + MINIMUM_REPORTS and n_released > 0


def secure_permutation(n: int) -> NDArray[np.intp]:
    """Return a random order of n things, shape (n,), from the operating system's CSPRNG.

    The order sorts random 64-bit keys; two of the n keys are equal with probability below
    n^2 / 2^65.
    """
    import numpy as np

    keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return np.argsort(keys)
