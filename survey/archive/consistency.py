"""Check that a store agrees with itself: rebuild every count from the blocks and compare.

The check reads one snapshot. Its memory grows with the number of questions, not of reports.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import cast

import numpy as np

from survey.archive.pages import pages, rows
from survey.errors import ChannelError, StoreError
from survey.questionnaire.canonical import read_definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import INCOMPLETE_COPY, N_ASKED, Row, Snapshot


@dataclass(frozen=True)
class Published:
    """One version of a survey; without questions when its definition is not what was published.

    `released` is how many reports were, None when no row says so.
    """

    slug: str
    version: int
    state: str
    released: int | None
    questions: tuple[PublishedQuestion, ...]
    mistakes: tuple[str, ...]

    @property
    def name(self) -> str:
        """How messages call it."""
        return f'survey "{self.slug}" version {self.version}'

    @property
    def report_bytes(self) -> int:
        """Bytes of the stored codes of one report."""
        return sum(question.code_bytes for question in self.questions)

    def question(self, number: int) -> str:
        """How messages call a question; a number when the definition has none of it."""
        if 0 <= number < len(self.questions):
            return f'question "{self.questions[number].id}"'
        return f"question number {number}"


def published_in(snapshot: Snapshot) -> dict[int, Published]:
    """Every version of every survey by its key."""
    released = {cast("int", row[0]): cast("int", row[2]) for row in rows(snapshot, "release")}
    found = {}
    for key, slug, version, definition, sha256, state, _ in rows(snapshot, "survey"):
        found[cast("int", key)] = _published(
            cast("str", slug),
            cast("int", version),
            cast("str", state),
            released.get(cast("int", key)),
            cast("bytes", definition),
            cast("str", sha256),
        )
    return found


def _published(
    slug: str, version: int, state: str, released: int | None, definition: bytes, sha256: str
) -> Published:
    name, mistakes = f'survey "{slug}" version {version}', []
    questions: tuple[PublishedQuestion, ...] = ()
    digest = hashlib.sha256(definition).hexdigest()
    if digest == sha256:
        questions = read_definition(definition).questions
    else:
        mistakes.append(f"{name}: its definition has the SHA-256 {digest}, not {sha256}")
    if released is None:
        mistakes.append(f"{name}: nothing says how many reports were released; {INCOMPLETE_COPY}")
    return Published(slug, version, state, released, questions, tuple(mistakes))


Place = tuple[int, str, str, int]
"""The survey, stratum, bucket and question of a column."""

place_of = itemgetter(0, 1, 2, 3)


@dataclass
class Column:
    """Counts as stored (`counted`) and as the blocks give them (`rebuilt`), by place.

    `sizes` are the reports in each block by its number; `mistakes` say which of it cannot be read.
    """

    rebuilt: Counter[int] = field(default_factory=Counter)
    counted: Counter[int] = field(default_factory=Counter)
    sizes: dict[int, int] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def columns(snapshot: Snapshot, surveys: dict[int, Published]) -> Iterator[tuple[Place, Column]]:
    """Every column that has blocks or counts, in their order; one block in memory at a time."""
    # Both tables lie in the order of these four, and texts sort by code point everywhere.
    both = merge(
        (("block", row) for row in rows(snapshot, "block")),
        (("counts", row) for row in rows(snapshot, "counts")),
        key=lambda each: place_of(each[1]),
    )
    for key, found in groupby(both, key=lambda each: place_of(each[1])):
        place, column = cast("Place", key), Column()
        question = _question(surveys, place, column)
        for table, row in found:
            if table == "counts":
                column.counted[cast("int", row[4])] += cast("int", row[5])
            else:
                _read_block(row, question, column)
        yield place, column


def _question(
    surveys: dict[int, Published], place: Place, column: Column
) -> PublishedQuestion | None:
    survey = surveys.get(place[0])
    if survey is None:
        column.mistakes.append("there is no such survey")
    elif 0 <= place[3] < len(survey.questions):
        return survey.questions[place[3]]
    else:
        column.mistakes.append("its definition has no such question")
    return None


def _read_block(row: Row, question: PublishedQuestion | None, column: Column) -> None:
    """Add a block's codes to the rebuilt counts."""
    block, n, codes = cast("tuple[int, int, bytes]", row[4:])
    column.sizes[block] = n
    if question is None:
        return
    if n < 1 or len(codes) != n * question.code_bytes:
        column.mistakes.append(
            f"block {block} of {n:,} reports has {len(codes):,} bytes, "
            f"not {n * question.code_bytes:,}"
        )
        return
    stored = np.frombuffer(codes, dtype=np.uint8).reshape(n, question.code_bytes)
    try:
        asked, supports = question.count(stored)
    except ChannelError:
        column.mistakes.append(f"block {block} holds a code that its question does not have")
        return
    column.rebuilt[N_ASKED] += asked
    for place in np.flatnonzero(supports).tolist():
        column.rebuilt[place] += int(supports[place])


ID_BYTES = 16
id_of = itemgetter(0, 1)


def waiting_mistakes(snapshot: Snapshot, surveys: dict[int, Published]) -> Iterator[str]:
    """Reports of wrong lengths or of no survey, reports both waiting and released, ids missing.

    No mistake says how many reports wait: that nobody should watch.
    """
    wrong: set[tuple[int, str]] = set()
    seen: Counter[int] = Counter()
    for row in rows(snapshot, "inbox"):
        _add_mistakes(wrong, surveys, row)
    for page in pages(snapshot, "seen"):
        seen.update(survey for survey, _ in cast("list[tuple[int, bytes]]", page))
    wrong.update((key, "it has reports, but is no survey") for key in seen.keys() - surveys.keys())
    wrong.update(_waiting_and_released(snapshot))
    for key, mistake in sorted(wrong):
        yield f"{surveys[key].name if key in surveys else f'survey number {key}'}: {mistake}"
    yield from _missing_ids(surveys, seen)


def _add_mistakes(wrong: set[tuple[int, str]], surveys: dict[int, Published], row: Row) -> None:
    """What is wrong with one report that waits."""
    key, name, _, codes = cast("tuple[int, bytes, str, bytes]", row)
    survey = surveys.get(key)
    if survey is None:
        wrong.add((key, "it has reports, but is no survey"))
        return
    if len(name) != ID_BYTES:
        wrong.add((key, f"a waiting report has an id of {len(name)} bytes, not {ID_BYTES}"))
    if survey.questions and len(codes) != survey.report_bytes:
        wrong.add(
            (key, f"a waiting report has {len(codes)} bytes of codes, not {survey.report_bytes}")
        )


def _waiting_and_released(snapshot: Snapshot) -> Iterator[tuple[int, str]]:
    """The surveys with an id that both tables hold: such a report would be counted twice."""
    waiting = map(id_of, rows(snapshot, "inbox"))
    each = next(waiting, None)
    for page in pages(snapshot, "seen"):
        released = set(page)
        # Both lie in the order of these two, and the rows of `seen` are nothing else.
        while each is not None and each <= page[-1]:
            if each in released:
                yield each[0], "a report waits that was released before"
            each = next(waiting, None)


def _missing_ids(surveys: dict[int, Published], seen: Counter[int]) -> Iterator[str]:
    """A released report whose id is not known could be sent again and be counted twice."""
    for key, survey in surveys.items():
        forgotten = survey.state == "closed" and not seen[key]
        if survey.released is not None and seen[key] != survey.released and not forgotten:
            yield (
                f"{survey.name}: {seen[key]:,} ids are known as released, "
                f"{survey.released:,} reports were"
            )


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
            counts = "reports asked" if option == N_ASKED else f"place {option}"
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
