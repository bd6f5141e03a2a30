"""Whose reports are read: everybody's, those of one link, of one day or week, of one version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np

from survey.disclosure import merge_small_groups, merge_small_strata
from survey.store import Tally

OPEN_LINK = "open link"
"""The name under which reports without a stratum are read beside those that have one."""

Tallies = Mapping[tuple[str, str], Tally]
"""Released counts by stratum and bucket, as a store gives them."""

KEPT, WEEK, MONTH = "kept", "week", "month"
"""Lengths of time over which reports are read together: as the survey keeps them, and longer."""


class Group(NamedTuple):
    """Whose reports a row is about, as its columns say it; empty for everybody's."""

    wave: str = ""
    stratum: str = ""
    bucket: str = ""


EVERYBODY = Group()


def by_stratum(tallies: Tallies) -> dict[Group, Tally]:
    """The counts of each link, small ones together; empty when all came by the open link."""
    sizes: dict[str, int] = {}
    for (stratum, _), tally in tallies.items():
        sizes[stratum] = sizes.get(stratum, 0) + tally.n
    if set(sizes) <= {""}:
        return {}
    names = merge_small_strata(sizes)
    return _joined(tallies, lambda key: Group(stratum=names[key[0]] or OPEN_LINK))


def by_bucket(tallies: Tallies, per: str = KEPT) -> dict[Group, Tally]:
    """The counts of each time of release, in its order; empty when the survey keeps none.

    Times with few reports of a link are joined with their neighbours.
    """
    if {bucket for _, bucket in tallies} <= {""}:
        return {}
    names = merge_small_groups({key: tally.n for key, tally in tallies.items()})
    return _joined(tallies, lambda key: Group(bucket=longer(names[key][1], per)))


def by_week(tallies: Tallies) -> dict[Group, Tally]:
    """The same by the week of release."""
    return by_bucket(tallies, WEEK)


def by_month(tallies: Tallies) -> dict[Group, Tally]:
    """The same by the month of release, a week in the one in which it begins."""
    return by_bucket(tallies, MONTH)


def longer(bucket: str, per: str) -> str:
    """The week or the month in which a day or week begins; a week stays within a week.

    >>> longer("2027-01-01", "week"), longer("2027-01-01", "month"), longer("2026-W53", "month")
    ('2026-W53', '2027-01', '2026-12')
    """
    if not bucket or per == KEPT:
        return bucket
    first = first_day(bucket)
    if per == MONTH:
        return f"{first:%Y-%m}"
    year, week, _ = first.isocalendar()
    return f"{year}-W{week:02}"


def first_day(bucket: str) -> date:
    """The first day of a day, ISO week, month or a span of them.

    >>> first_day("2026-W53"), first_day("2027-01"), first_day("2027-01-04/2027-01-07")
    (datetime.date(2026, 12, 28), datetime.date(2027, 1, 1), datetime.date(2027, 1, 4))
    """
    bucket = bucket.partition("/")[0]
    if "W" in bucket:
        year, week = bucket.split("-W")
        return date.fromisocalendar(int(year), int(week), 1)
    return date.fromisoformat(bucket if bucket.count("-") == 2 else f"{bucket}-01")


def has_passed(bucket: str, today: date) -> bool:
    """Whether a day, ISO week, month or span of them is over: no more is released in it.

    >>> has_passed("2026-11", date(2026, 11, 30)), has_passed("2026-W45", date(2026, 11, 9))
    (False, True)
    >>> [has_passed("2026-11-01/2026-11-03", date(2026, 11, day)) for day in (2, 3, 4)]
    [False, False, True]
    """
    bucket = bucket.rpartition("/")[2]
    first = first_day(bucket)
    if "W" in bucket:
        return today >= first + timedelta(weeks=1)
    if bucket.count("-") == 2:
        return today > first
    return (today.year, today.month) > (first.year, first.month)


def _joined(tallies: Tallies, group_of: Callable[[tuple[str, str]], Group]) -> dict[Group, Tally]:
    """The counts of each group, in the order of their names."""
    found: dict[Group, list[Tally]] = {}
    for key, tally in tallies.items():
        found.setdefault(group_of(key), []).append(tally)
    return {group: total(found[group]) for group in sorted(found)}


def total(tallies: Iterable[Tally]) -> Tally:
    """The counts of several groups of one release together."""
    parts = list(tallies)
    return Tally(
        release=parts[0].release,
        n=sum(part.n for part in parts),
        n_asked=np.sum([part.n_asked for part in parts], axis=0).tolist(),
        counts=[
            np.sum(counts, axis=0).tolist()
            for counts in zip(*(part.counts for part in parts), strict=True)
        ],
    )
