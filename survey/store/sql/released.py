"""What has been released: counts that cost the same however many reports, blocks that stream."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

from survey.errors import NotFoundError
from survey.questionnaire.canonical import read_definition
from survey.store.protocol import N_ASKED, BlockColumn, Release, Tally
from survey.store.sql.transaction import SqlTransactions, Transaction, whole_number

Group = tuple[str, str]
"""A stratum and a bucket."""

Counted = dict[tuple[int, int], int]
"""Released reports by question and place."""


class SqlReleased(SqlTransactions):
    """The part of a `Store` that everything a person can see is read from."""

    def n_released(self, survey: int) -> int:
        """How many reports have been released; NotFoundError when there is no such survey."""
        return self.newest_release(survey).n

    def newest_release(self, survey: int) -> Release:
        """What tells, without any counts, whether something was released since."""
        with self._looking() as transaction:
            row = transaction.one("SELECT number, n FROM release WHERE survey = ?", [survey])
        if row is None:
            raise NotFoundError(f"there is no survey number {survey}")
        return Release(int(row[0]), int(row[1]))

    def tally(self, survey: int) -> Tally:
        """The released counts over all strata and buckets, from one state of the database."""
        with self._reading() as transaction:
            release, n, places = _head(transaction, survey)
            rows = transaction.all(
                "SELECT question, option, CAST(sum(n) AS BIGINT) FROM counts WHERE survey = ? "
                "GROUP BY question, option",
                [survey],
            )
        counted = {(int(question), int(place)): int(count) for question, place, count in rows}
        return _tally(release, n, places, counted)

    def tallies(self, survey: int) -> dict[tuple[str, str], Tally]:
        """The released counts of each (stratum, bucket) that has any, from one state."""
        with self._reading() as transaction:
            release, _, places = _head(transaction, survey)
            rows = transaction.all(
                "SELECT stratum, bucket, question, option, n FROM counts WHERE survey = ?",
                [survey],
            )
            sizes = {
                group: _size(transaction, survey, group) for group in _groups(transaction, survey)
            }
        counted: defaultdict[Group, Counted] = defaultdict(dict)
        for stratum, bucket, question, place, count in rows:
            group = cast("str", stratum), cast("str", bucket)
            counted[group][int(question), int(place)] = int(count)
        return {group: _tally(release, n, places, counted[group]) for group, n in sizes.items()}

    def blocks(self, survey: int, question: int) -> Iterator[BlockColumn]:
        """One question's released codes, block by block, in one state of the database."""
        for (column,) in self.block_columns(survey, [question]):
            yield column

    def block_columns(self, survey: int, questions: Sequence[int]) -> Iterator[list[BlockColumn]]:
        """The columns of several questions, in their order, block by block.

        The n-th codes of a block's columns are one report's. One block is in memory at a time.
        """
        if not questions:
            return
        with self._streaming() as transaction:
            for group in _groups(transaction, survey):
                for block in _numbers(transaction, survey, group, questions[0]):
                    yield [
                        _column(transaction, survey, group, question, block)
                        for question in questions
                    ]


def _groups(transaction: Transaction, survey: int) -> Iterator[Group]:
    """Each (stratum, bucket) with blocks; two looks at the key for each, none at its blocks."""
    all_of_it = "SELECT stratum, bucket FROM block WHERE survey = ? "
    row = transaction.one(all_of_it + "ORDER BY stratum, bucket LIMIT 1", [survey])
    while row is not None:
        yield cast("Group", row)
        next_bucket = transaction.one(
            all_of_it + "AND stratum = ? AND bucket > ? ORDER BY bucket LIMIT 1", [survey, *row]
        )
        row = next_bucket or transaction.one(
            all_of_it + "AND stratum > ? ORDER BY stratum, bucket LIMIT 1", [survey, row[0]]
        )


def _numbers(transaction: Transaction, survey: int, group: Group, question: int) -> list[int]:
    """The numbers of a group's blocks, in order."""
    rows = transaction.all(
        "SELECT block FROM block WHERE survey = ? AND stratum = ? AND bucket = ? AND question = ? "
        "ORDER BY block",
        [survey, *group, question],
    )
    return [int(block) for (block,) in rows]


def _size(transaction: Transaction, survey: int, group: Group) -> int:
    """The released reports of a group: each has one place in the blocks of every question."""
    return whole_number(
        transaction.one(
            "SELECT CAST(sum(n) AS BIGINT) FROM block "
            "WHERE survey = ? AND stratum = ? AND bucket = ? AND question = 0",
            [survey, *group],
        )
    )


def _column(
    transaction: Transaction, survey: int, group: Group, question: int, block: int
) -> BlockColumn:
    row = transaction.one(
        "SELECT n, data FROM block "
        "WHERE survey = ? AND stratum = ? AND bucket = ? AND question = ? AND block = ?",
        [survey, *group, question, block],
    )
    if row is None:
        raise NotFoundError(f"survey number {survey} has no released question {question}")
    return BlockColumn(*group, question, block, int(row[0]), cast("bytes", row[1]))


def _head(transaction: Transaction, survey: int) -> tuple[int, int, tuple[int, ...]]:
    """The number of the last release, the reports released, and each question's places."""
    row = transaction.one(
        "SELECT release.number, release.n, survey.definition FROM release "
        "JOIN survey ON survey.key = release.survey WHERE survey.key = ?",
        [survey],
    )
    if row is None:
        raise NotFoundError(f"there is no survey number {survey}")
    return int(row[0]), int(row[1]), _places(cast("bytes", row[2]))


@lru_cache(maxsize=256)
def _places(canonical: bytes) -> tuple[int, ...]:
    """How many places the counts of each question have; a definition never changes."""
    return tuple(question.channel.counted for question in read_definition(canonical).questions)


def _tally(release: int, n: int, places: Sequence[int], counted: Counted) -> Tally:
    return Tally(
        release=release,
        n=n,
        n_asked=[counted.get((question, N_ASKED), 0) for question in range(len(places))],
        counts=[
            [counted.get((question, place), 0) for place in range(k)]
            for question, k in enumerate(places)
        ],
    )
