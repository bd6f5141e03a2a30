"""Whether a store agrees with itself: every count is rebuilt from the blocks and compared.

All of it is of one moment, and what is in memory grows with the questions, not with the reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from survey.archive.columns import Place, columns
from survey.archive.published import Published, published_in
from survey.archive.waiting import waiting_mistakes
from survey.errors import StoreError
from survey.store import ASKED, Snapshot

MOST_MISTAKES = 1_000
"""Nobody reads more; the check ends with them."""


@dataclass(frozen=True)
class Checked:
    """What a check found: published surveys, released reports, and what contradicts what."""

    surveys: int
    reports: int
    mistakes: tuple[str, ...]

    def or_refused(self) -> Checked:
        """The same, for who goes on only with a store without mistakes; else StoreError.

        >>> Checked(surveys=1, reports=30, mistakes=()).or_refused().reports
        30
        """
        if self.mistakes:
            raise StoreError(
                f"this store contradicts itself ({len(self.mistakes):,} times; "
                f"`survey check-store` tells all): {self.mistakes[0]}"
            )
        return self


def check(snapshot: Snapshot) -> Checked:
    """Rebuild every count of every survey, stratum, bucket and question, and compare.

    Also compared: the number of released reports, the sizes of blocks, the lengths of codes, the
    ids that were seen, and each definition's hash. Cost: one reading of all rows.
    """
    surveys = published_in(snapshot)
    return Checked(
        surveys=len({survey.slug for survey in surveys.values()}),
        reports=sum(survey.released or 0 for survey in surveys.values()),
        mistakes=tuple(islice(_mistakes(snapshot, surveys), MOST_MISTAKES)),
    )


def _mistakes(snapshot: Snapshot, surveys: dict[int, Published]) -> Iterator[str]:
    for survey in surveys.values():
        yield from survey.mistakes
    yield from _released_mistakes(snapshot, surveys)
    yield from waiting_mistakes(snapshot, surveys)


def _released_mistakes(snapshot: Snapshot, surveys: dict[int, Published]) -> Iterator[str]:
    """Counts against blocks, the questions of a group against each other, all against `release`."""
    totals: Counter[tuple[int, int]] = Counter()
    group: tuple[object, ...] = ()
    sizes: dict[int, int] = {}
    for place, column in columns(snapshot, surveys):
        survey, *_, question = place
        yield from (f"{_named(place, surveys)}: {mistake}" for mistake in column.mistakes)
        yield from _count_mistakes(place, column.rebuilt, column.counted, surveys)
        if place[:3] != group:
            group, sizes = place[:3], column.sizes
        elif column.sizes != sizes:
            yield f"{_named(place, surveys)}: its blocks are not as long as the first question's"
        totals[survey, question] += sum(column.sizes.values())
    for survey, found in surveys.items():
        for question in range(len(found.questions)):
            if totals[survey, question] != found.released:
                yield (
                    f"{found.name}, {found.question(question)}: the blocks hold "
                    f"{totals[survey, question]:,} reports, {found.released or 0:,} were released"
                )


def _count_mistakes(
    place: Place, rebuilt: Counter[int], counted: Counter[int], surveys: dict[int, Published]
) -> Iterator[str]:
    for option in sorted(rebuilt.keys() | counted.keys()):
        if rebuilt[option] != counted[option]:
            counts = "reports asked" if option == ASKED else f"place {option}"
            yield (
                f"{_named(place, surveys)}, {counts}: the blocks hold {rebuilt[option]:,}, "
                f"the counts say {counted[option]:,}"
            )


def _named(place: Place, surveys: dict[int, Published]) -> str:
    key, stratum, bucket, question = place
    survey = surveys.get(key)
    name = f"{survey.name}, {survey.question(question)}" if survey else f"survey number {key}"
    parts = [name, *(f'{what} "{it}"' for what, it in _group(stratum, bucket) if it)]
    return ", ".join(parts)


def _group(stratum: str, bucket: str) -> list[tuple[str, str]]:
    return [("link", stratum), ("released", bucket)]
