"""Groups of respondents: by collection link, release period, version, or reported answer."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Literal

import numpy as np

from survey.errors import NotFoundError
from survey.results.question_statistics import defines_groups, truth_labels
from survey.store import PublishedSurvey, ReleasedReports, Store, Tally

GroupKind = Literal["everyone", "link", "period", "version", "answer"]
LINK: GroupKind = "link"
PERIOD: GroupKind = "period"
VERSION: GroupKind = "version"
ANSWER: GroupKind = "answer"

OPEN_LINK = "open link"
"""The name of the reports without a stratum beside reports that have one."""

Tallies = Mapping[tuple[str, str], Tally]
"""Released counts by stratum and bucket, as a store returns them."""

AS_STORED, WEEK, MONTH = "kept", "week", "month"
"""Lengths of a period in links: as the survey stores them, or longer."""


@dataclass(frozen=True)
class Group:
    """A group of respondents.

    `name` is the link's name, the period, the version's number, or the id of the question whose
    answer defines the group; `option` is that answer's position among the truths. Links, periods
    and versions are known exactly, answers only through randomized reports.
    """

    kind: GroupKind = "everyone"
    name: str = ""
    label: str = ""
    option: int = 0
    option_id: str = ""

    @property
    def id(self) -> str:
        """The name of the group in links to pages."""
        return f"{self.kind}:{self.name}" + (f":{self.option_id}" if self.kind == ANSWER else "")

    @property
    def columns(self) -> dict[str, str]:
        """The columns that identify the group in a table of estimates."""
        return {
            "wave": "",
            "stratum": self.name if self.kind == LINK else "",
            "bucket": self.name if self.kind == PERIOD else "",
        }


EVERYONE = Group()


def link_group(name: str) -> Group:
    """Return the group of respondents of a collection link."""
    return Group(LINK, name, f"group “{name}”")


def list_groups(store: Store, survey: PublishedSurvey) -> dict[str, Sequence[Group]]:
    """Return the groups that can be compared, under their headings."""
    links = [link_group(name) for name in tallies_by_link(store, survey)]
    versions = [
        Group(VERSION, str(version.version), f"version {version.version}")
        for version in store.versions(survey.slug)
    ]
    groups: dict[str, Sequence[Group]] = {"Groups": links, "Versions": versions}
    groups = {heading: members for heading, members in groups.items() if len(members) > 1}
    for question in survey.definition.questions:
        if defines_groups(question):
            groups[f"Answers to “{question.text}”"] = [
                Group(ANSWER, question.id, label, place, option)
                for place, (option, label) in enumerate(truth_labels(question))
            ]
    return groups


def find_group(store: Store, survey: PublishedSurvey, group_id: str) -> Group:
    """Return the group with this id; NotFoundError if there is none."""
    groups = {group.id: group for groups in list_groups(store, survey).values() for group in groups}
    if group_id in groups:
        return groups[group_id]
    raise NotFoundError(f'{survey.slug} has no group "{group_id[:80]}"')


def tallies_by_link(store: ReleasedReports, survey: PublishedSurvey) -> dict[str, Tally]:
    """Return the released counts of each collection link, the largest first."""
    tallies = store.tallies(survey.key)
    names = stratum_names(tallies)
    groups = _merge(tallies, lambda key: link_group(names[key[0]]))
    largest_first = sorted(groups.items(), key=lambda item: (-item[1].n, item[0].name))
    return {group.name: tally for group, tally in largest_first}


def stratum_names(tallies: Tallies) -> dict[str, str]:
    """Return the name under which results show each stratum."""
    return {stratum: stratum or OPEN_LINK for stratum, _ in tallies}


def split_by_link(tallies: Tallies) -> dict[Group, Tally]:
    """Return the counts of each link; empty if all reports arrived by the open link."""
    if {stratum for stratum, _ in tallies} <= {""}:
        return {}
    names = stratum_names(tallies)
    return _merge(tallies, lambda key: link_group(names[key[0]]))


def split_by_period(tallies: Tallies, length: str = AS_STORED) -> dict[Group, Tally]:
    """Return the counts of each release period in order; empty if the survey stores none."""
    if {bucket for _, bucket in tallies} <= {""}:
        return {}

    def period_of(key: tuple[str, str]) -> Group:
        period = lengthen(key[1], length)
        return Group(PERIOD, period, period)

    return _merge(tallies, period_of)


split_by_week = partial(split_by_period, length=WEEK)
split_by_month = partial(split_by_period, length=MONTH)
"""The counts of each month of release; a week counts to the month of its first day."""


def lengthen(bucket: str, length: str) -> str:
    """Return the week or month in which a day or week begins; a week stays a week.

    >>> lengthen("2027-01-01", "week"), lengthen("2027-01-01", "month")
    ('2026-W53', '2027-01')
    >>> lengthen("2026-W53", "month")
    '2026-12'
    """
    if not bucket or length == AS_STORED:
        return bucket
    first = first_day(bucket)
    if length == MONTH:
        return f"{first:%Y-%m}"
    year, week, _ = first.isocalendar()
    return f"{year}-W{week:02}"


def first_day(bucket: str) -> date:
    """Return the first day of a day, ISO week, month or range of them.

    >>> first_day("2026-W53"), first_day("2027-01"), first_day("2027-01-04/2027-01-07")
    (datetime.date(2026, 12, 28), datetime.date(2027, 1, 1), datetime.date(2027, 1, 4))
    """
    bucket = bucket.partition("/")[0]
    if "W" in bucket:
        year, week = bucket.split("-W")
        return date.fromisocalendar(int(year), int(week), 1)
    return date.fromisoformat(bucket if bucket.count("-") == 2 else f"{bucket}-01")


def last_day(bucket: str) -> date:
    """Return the last day of a day, ISO week, month or range of them.

    >>> last_day("2026-W53"), last_day("2027-02"), last_day("2027-01-04/2027-01-07")
    (datetime.date(2027, 1, 3), datetime.date(2027, 2, 28), datetime.date(2027, 1, 7))
    """
    bucket = bucket.rpartition("/")[2]
    first = first_day(bucket)
    if "W" in bucket:
        return first + timedelta(days=6)
    if bucket.count("-") == 2:
        return first
    _, n_days = monthrange(first.year, first.month)
    return first.replace(day=n_days)


def has_passed(bucket: str, today: date) -> bool:
    """Return whether a day, ISO week, month or range of them is over, so that it is final.

    >>> has_passed("2026-11", date(2026, 11, 30)), has_passed("2026-W45", date(2026, 11, 9))
    (False, True)
    >>> [has_passed("2026-11-01/2026-11-03", date(2026, 11, day)) for day in (2, 3, 4)]
    [False, False, True]
    """
    return today > last_day(bucket)


def _merge(tallies: Tallies, group_of: Callable[[tuple[str, str]], Group]) -> dict[Group, Tally]:
    """Return the counts of each group, sorted by name."""
    members: dict[Group, list[Tally]] = {}
    for key, tally in tallies.items():
        members.setdefault(group_of(key), []).append(tally)
    groups = sorted(members, key=lambda group: group.name)
    return {group: add_tallies(members[group]) for group in groups}


def add_tallies(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of the counts of several groups of one release."""
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
