"""Releases: pending reports become blocks and counts; all results are read from these alone.

A report is either pending or released, because one transaction publishes it and replaces its sealed
batch. Reading the counts takes the same time for any number of reports. Blocks are streamed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from survey.disclosure import Cell, is_question_shown
from survey.errors import ConflictError, DamagedSurveyError, NotFoundError
from survey.questionnaire import is_test_run
from survey.store.digests import row_digest
from survey.store.report_identities import add_released, forget_released, sorted_identities
from survey.store.schema import BLOCK, COUNTS, RELEASE_FAILURE
from survey.store.sealed_reports import Batch, delete_batches, insert_keeper_batches
from survey.store.transactions import Row, Transaction, Transactions

if TYPE_CHECKING:
    from survey.store.surveys import PublishedSurvey


N_ASKED = -1
"""The place of a question's counts that holds the number of reports with an answer to it."""

MAX_RELEASED = 1_024
"""Maximum number of reports of a stratum per transaction, which must hold the write lock only
briefly."""

Counts = dict[tuple[int, int], int]
"""Number of released reports by question and place."""


BLOCK_COLUMNS = ", ".join(BLOCK.column_names)

KEEPER_STATE = """
SELECT state, count(*), CAST(sum(key) AS BIGINT), 0 FROM survey GROUP BY state
UNION ALL SELECT 'release', count(*), CAST(sum(number) AS BIGINT), CAST(sum(time) AS BIGINT)
FROM release
UNION ALL SELECT 'sealing_key', count(*), CAST(sum(survey) AS BIGINT), CAST(sum(period) AS BIGINT)
FROM sealing_key
UNION ALL SELECT 'due', 0, (SELECT count(*) FROM (SELECT 1 FROM inbox LIMIT 1) AS unsealed),
(SELECT count(*) FROM schedule JOIN survey ON survey.key = schedule.survey
WHERE state = 'open' AND closes <> '' AND closes < ?)
ORDER BY 1
"""


@dataclass(frozen=True)
class LastBlock:
    """The newest block of a stratum and bucket; the next release is shuffled into it."""

    number: int
    columns: Sequence[bytes]


@dataclass(frozen=True)
class ChosenReports:
    """Codes of reports that a release publishes in a stratum and bucket, and its last block."""

    stratum: str
    bucket: str
    codes: Sequence[bytes]
    last: LastBlock | None


@dataclass(frozen=True)
class BlockColumn:
    """The shuffled codes of one question in one block of `n` reports."""

    stratum: str
    bucket: str
    question: int
    block: int
    n: int
    data: bytes

    def row(self, survey: int) -> tuple[int, str, str, int, int, int, bytes]:
        """Return the column as a row of `block`, without its digest."""
        place = (survey, self.stratum, self.bucket, self.question, self.block)
        return (*place, self.n, self.data)


@dataclass(frozen=True)
class ReleaseContent:
    """The content of a release: whole blocks, and the numbers to add to the counts.

    `counts` maps (stratum, bucket, question, place) to the number of newly released reports; the
    places are those of the channel's counts, and `N_ASKED`.
    """

    columns: Sequence[BlockColumn]
    counts: Mapping[tuple[str, str, int, int], int]


@dataclass(frozen=True)
class Tally:
    """Released counts of a survey, of all strata together or of one.

    `n` reports were released; `n_asked[question]` of them have an answer to a question (all,
    unless the survey draws its questions); `counts[question]` are the counts of its channel. Both
    leave out the strata in which too few reports answer the question.
    Two tallies with the same `release` have the same counts.
    """

    release: int
    n: int
    n_asked: Sequence[int]
    counts: Sequence[Sequence[int]]


class ReleasedReports(Protocol):
    """Released reports by survey: those of a store, or of a file that was exported from one."""

    def tally(self, survey: int) -> Tally:
        """Return the counts over all strata and buckets."""
        ...

    def tallies(self, survey: int) -> dict[Cell, Tally]:
        """Return the counts of each stratum and bucket."""
        ...

    def block_columns(self, survey: int, questions: Sequence[int]) -> Iterator[list[BlockColumn]]:
        """Yield the columns of several questions, block by block."""
        ...


@dataclass(frozen=True)
class Release:
    """The number of a survey's newest release, and of all reports released so far."""

    number: int
    n: int


@dataclass(frozen=True)
class ReleaseFailure:
    """An error that prevents the keeper from serving a survey.

    `error` is its class name; `since` is in seconds since 1970.
    """

    since: int
    error: str


class Releases(Transactions):
    """The part of a `Store` that releases reports and reads released ones."""

    def last_blocks(self, survey: int, strata: Sequence[str], bucket: str) -> dict[str, LastBlock]:
        """Return the newest block of a bucket for each of these strata that has blocks.

        Raises DamagedSurveyError if a block differs from its digest: the release would rewrite it
        with a new digest, which would hide the damage.
        """
        if not strata:
            return {}
        with self._lookup() as transaction:
            rows = transaction.rows(
                f"SELECT {BLOCK_COLUMNS} FROM block AS newest WHERE survey = ? "  # noqa: S608  marks
                f"AND stratum IN ({', '.join('?' * len(strata))}) AND bucket = ? AND block = "
                "(SELECT max(block) FROM block WHERE survey = newest.survey AND stratum = "
                "newest.stratum AND bucket = newest.bucket AND question = 0) "
                "ORDER BY stratum, question",
                [survey, *strata, bucket],
            )
        _require_intact(rows)
        return {
            stratum: LastBlock(int(block), [row[6] for row in columns])
            for (stratum, block), columns in groupby(rows, key=itemgetter(1, 4))
        }

    def last_block_sizes(self, survey: int, bucket: str) -> dict[str, int]:
        """Return the number of reports in the newest block of each stratum with pending reports."""
        rows = self._rows(
            "SELECT stratum, (SELECT n FROM block WHERE survey = ? AND stratum = waiting.stratum "
            "AND bucket = ? AND question = 0 ORDER BY block DESC LIMIT 1) "
            "FROM (SELECT DISTINCT stratum FROM pending WHERE survey = ?) AS waiting",
            [survey, bucket, survey],
        )
        return {str(stratum): int(n) for stratum, n in rows if n is not None}

    def release(
        self,
        survey: int,
        content: ReleaseContent,
        ids: Sequence[bytes],
        opened: Sequence[Batch] = (),
        remainder: Sequence[Batch] = (),
    ) -> None:
        """Publish the reports with these ids; replace the opened batches with the remainder.

        Raises ConflictError, and changes nothing, if another process has replaced one of the
        opened batches or deleted the key of the remainder.
        """
        released = sorted_identities(ids)
        pending = sorted_identities(i for batch in remainder for i in batch.report_ids)
        rows = _content_rows(survey, content)
        with self._write() as transaction:
            transaction.lock(survey)
            delete_batches(transaction, opened)
            insert_keeper_batches(transaction, remainder)
            transaction.replace_pending_ids(survey, released, pending)
            if ids:
                add_released(transaction, survey, released)
                _write_content(transaction, *rows)
                transaction.execute(
                    "UPDATE release SET number = number + 1, n = n + ? WHERE survey = ?",
                    [len(ids), survey],
                )

    def cell_sizes(self, survey: int) -> dict[Cell, int]:
        """Return the number of released reports of each stratum and bucket."""
        with self._read() as transaction:
            return {cell: _size(transaction, survey, cell) for cell in _cells(transaction, survey)}

    def cell_codes(self, survey: int, cell: Cell) -> list[bytes]:
        """Return the codes of all released reports of a stratum and bucket, for the keeper.

        Raises DamagedSurveyError if a block differs from its digest.
        """
        with self._read() as transaction:
            rows = transaction.rows(
                f"SELECT {BLOCK_COLUMNS} FROM block "  # noqa: S608  constant
                "WHERE survey = ? AND stratum = ? AND bucket = ? ORDER BY block, question",
                [survey, *cell],
            )
        _require_intact(rows)
        codes: list[bytes] = []
        for _, members in groupby(rows, key=itemgetter(4)):
            columns = [_split(data, len(data) // n) for *_, n, data, _ in members]
            codes += [b"".join(parts) for parts in zip(*columns, strict=True)]
        return codes

    def merge_cells(self, survey: int, sizes: Mapping[Cell, int], content: ReleaseContent) -> None:
        """Replace cells of these sizes by others with the same reports.

        Raises ConflictError, and changes nothing, if one of the cells has other reports by now.
        """
        rows = _content_rows(survey, content)
        with self._write() as transaction:
            transaction.lock(survey)
            for cell, size in sizes.items():
                if _size(transaction, survey, cell) != size:
                    raise ConflictError("another keeper has released or merged the same reports")
                for table in ("block", "counts"):
                    transaction.execute(
                        f"DELETE FROM {table} WHERE survey = ? AND stratum = ? AND bucket = ?",  # noqa: S608  constant
                        [survey, *cell],
                    )
            _write_content(transaction, *rows)
            transaction.execute("UPDATE release SET number = number + 1 WHERE survey = ?", [survey])

    def keeper_state(self, today: date) -> tuple[Row, ...]:
        """Return totals that change whenever the keeper has work to do before a release time.

        Keys are never reused, and a survey goes from open to superseded to closed: the number of
        surveys in each state and the sum of their keys identify them. The last row has the number
        of unsealed reports (0 or 1) and of surveys whose last day has passed.
        """
        return tuple(self._rows(KEEPER_STATE, [today.isoformat()]))

    def release_times(self) -> dict[int, int]:
        """Return each survey's latest processed release time, in seconds since 1970."""
        rows = self._rows("SELECT survey, time FROM release")
        return {int(survey): int(time) for survey, time in rows}

    def set_release_time(self, time: int, *surveys: int) -> None:
        """Record a release time as processed for surveys that have nothing to release."""
        with self._write() as transaction:
            transaction.execute_many(
                "UPDATE release SET time = ? WHERE survey = ?",
                [(time, survey) for survey in surveys],
            )

    def failures(self) -> dict[int, ReleaseFailure]:
        """Return the current failure of each survey that the keeper cannot serve."""
        rows = self._rows("SELECT survey, since, error FROM release_failure")
        return {int(survey): ReleaseFailure(int(since), error) for survey, since, error in rows}

    def set_failure(self, survey: int, failure: ReleaseFailure | None) -> None:
        """Record the failure of a survey; None records that the keeper has served it."""
        with self._write() as transaction:
            transaction.lock(survey)
            transaction.execute("DELETE FROM release_failure WHERE survey = ?", [survey])
            # The survey may have been deleted in the meantime.
            if failure and transaction.row("SELECT 1 FROM survey WHERE key = ?", [survey]):
                transaction.execute(RELEASE_FAILURE.insert, [survey, failure.since, failure.error])

    def _release_numbers(self) -> dict[int, int]:
        """Return the number of releases for each survey that has any."""
        rows = self._rows("SELECT survey, number FROM release WHERE number > 0")
        return {int(survey): number for survey, number in rows}

    def forget_ids(self, survey: int) -> None:
        """Delete the ids of a survey's released reports, which only serve to recognize repeats."""
        with self._write() as transaction:
            forget_released(transaction, survey)

    def n_released(self, survey: int) -> int:
        """Return the number of released reports; raise NotFoundError for an unknown survey."""
        return self.newest_release(survey).n

    def newest_release(self, survey: int) -> Release:
        """Return the newest release; its number tells readers whether the results have changed."""
        row = self._row("SELECT number, n FROM release WHERE survey = ?", [survey])
        if row is None:
            raise NotFoundError(f"there is no survey number {survey}")
        return Release(int(row[0]), int(row[1]))

    def tally(self, survey: int) -> Tally:
        """Return the released counts over all strata and buckets, read from one state."""
        with self._read() as transaction:
            head = _read_head(transaction, survey)
            hidden = _hidden_questions(transaction, survey, head)
            # Read the strata separately only if a question is hidden in some of them.
            stratum = "stratum" if hidden else "''"
            rows = transaction.rows(
                f"SELECT {stratum}, question, option, CAST(sum(n) AS BIGINT) FROM counts "  # noqa: S608
                "WHERE survey = ? GROUP BY 1, 2, 3",
                [survey],
            )
        counts: Counter[tuple[int, int]] = Counter()
        for stratum, question, place, count in rows:
            if (stratum, question) not in hidden:
                counts[question, place] += count
        return _tally(head, head.n, counts)

    def tallies(self, survey: int) -> dict[Cell, Tally]:
        """Return the released counts of each stratum and bucket, read from one state."""
        with self._read() as transaction:
            head = _read_head(transaction, survey)
            hidden = _hidden_questions(transaction, survey, head)
            rows = transaction.rows(
                "SELECT stratum, bucket, question, option, n FROM counts WHERE survey = ?",
                [survey],
            )
            sizes = {cell: _size(transaction, survey, cell) for cell in _cells(transaction, survey)}
        counts: defaultdict[Cell, Counts] = defaultdict(dict)
        for stratum, bucket, question, place, count in rows:
            if (stratum, question) not in hidden:
                counts[stratum, bucket][question, place] = count
        return {cell: _tally(head, n, counts[cell]) for cell, n in sizes.items()}

    def block_columns(self, survey: int, questions: Sequence[int]) -> Iterator[list[BlockColumn]]:
        """Yield the columns of several questions, block by block, read from one state.

        The n-th codes of a block's columns belong to the same report. One block is in memory at a
        time. A question with too few answers in a stratum looks as if nobody was asked.
        """
        if not questions:
            return
        with self._stream() as transaction:
            hidden = _hidden_questions(transaction, survey, _read_head(transaction, survey))
            for cell in _cells(transaction, survey):
                blocks = transaction.rows(
                    "SELECT block FROM block WHERE survey = ? AND stratum = ? AND bucket = ? "
                    "AND question = ? ORDER BY block",
                    [survey, *cell, questions[0]],
                )
                for (block,) in blocks:
                    columns = [
                        _read_column(transaction, survey, cell, question, block)
                        for question in questions
                    ]
                    yield [
                        _without_answers(column) if (cell[0], column.question) in hidden else column
                        for column in columns
                    ]


def _content_rows(survey: int, content: ReleaseContent) -> tuple[list[Row], list[Row]]:
    """Return the rows of `block` and of `counts`, to be computed before the survey is locked."""
    columns = (column.row(survey) for column in content.columns)
    blocks: list[Row] = [(*row, row_digest(row)) for row in columns]
    return blocks, [(survey, *place, n) for place, n in content.counts.items()]


def _write_content(transaction: Transaction, blocks: Sequence[Row], counts: Sequence[Row]) -> None:
    transaction.insert_rows(
        BLOCK,
        blocks,
        "ON CONFLICT (survey, stratum, bucket, question, block) "
        "DO UPDATE SET n = excluded.n, data = excluded.data, digest = excluded.digest",
    )
    transaction.insert_rows(
        COUNTS,
        counts,
        "ON CONFLICT (survey, stratum, bucket, question, option) "
        "DO UPDATE SET n = counts.n + excluded.n",
    )


def _cells(transaction: Transaction, survey: int) -> Iterator[Cell]:
    """Yield each cell that has blocks, with two key look-ups per cell; read no blocks."""
    select = "SELECT stratum, bucket FROM block WHERE survey = ? "
    row = transaction.row(select + "ORDER BY stratum, bucket LIMIT 1", [survey])
    while row is not None:
        yield row
        next_bucket = transaction.row(
            select + "AND stratum = ? AND bucket > ? ORDER BY bucket LIMIT 1", [survey, *row]
        )
        row = next_bucket or transaction.row(
            select + "AND stratum > ? ORDER BY stratum, bucket LIMIT 1", [survey, row[0]]
        )


def _size(transaction: Transaction, survey: int, cell: Cell) -> int:
    """Return the number of released reports in a cell, from the blocks of its first question."""
    return transaction.integer(
        "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM block "
        "WHERE survey = ? AND stratum = ? AND bucket = ? AND question = 0",
        [survey, *cell],
    )


def _require_intact(blocks: Sequence[Row]) -> None:
    """Raise DamagedSurveyError unless each row of `block` has the digest of its values."""
    for row in blocks:
        if row_digest(row[:-1]) != row[-1]:
            survey, *_, question, block, _, _, _ = row
            raise DamagedSurveyError(
                f"released reports of survey number {survey} are damaged: block {block} of its "
                f"question number {question} differs from its digest; restore a backup"
            )


def _split(joined: bytes, size: int) -> Iterator[bytes]:
    return (joined[start : start + size] for start in range(0, len(joined), size))


def _read_column(
    transaction: Transaction, survey: int, cell: Cell, question: int, block: int
) -> BlockColumn:
    row = transaction.row(
        "SELECT n, data FROM block "
        "WHERE survey = ? AND stratum = ? AND bucket = ? AND question = ? AND block = ?",
        [survey, *cell, question, block],
    )
    if row is None:
        raise NotFoundError(f"survey number {survey} has no released question {question}")
    return BlockColumn(*cell, question, block, int(row[0]), row[1])


class _Head(NamedTuple):
    """A survey's newest release, its number of released reports, and the layout of its counts.

    `places` has the number of places in each question's counts. `hides` tells whether respondents
    are asked only some questions, so that each question needs enough answers to be shown.
    """

    release: int
    n: int
    places: tuple[int, ...]
    hides: bool


def _read_head(transaction: Transaction, survey: int) -> _Head:
    row = transaction.row(
        "SELECT release.number, release.n, survey.definition FROM release "
        "JOIN survey ON survey.key = release.survey WHERE survey.key = ?",
        [survey],
    )
    if row is None:
        raise NotFoundError(f"there is no survey number {survey}")
    return _Head(int(row[0]), int(row[1]), *_layout(row[2]))


@lru_cache(maxsize=256)
def _layout(canonical: bytes) -> tuple[tuple[int, ...], bool]:
    """Return `places` and `hides` of a `_Head`; cached, because definitions never change."""
    from survey.questionnaire.canonical import read_definition

    definition = read_definition(canonical)
    places = tuple(question.channel.counted for question in definition.questions)
    # A test run shows every question, because its reports are simulated.
    return places, definition.is_sampled and not is_test_run(definition.slug)


def _hidden_questions(transaction: Transaction, survey: int, head: _Head) -> set[tuple[str, int]]:
    """Return the strata and questions with too few answers to be shown."""
    if not head.hides:
        return set()
    rows = transaction.rows(
        "SELECT stratum, question, CAST(sum(n) AS BIGINT) FROM counts "
        "WHERE survey = ? AND option = ? GROUP BY stratum, question",
        [survey, N_ASKED],
    )
    return {(stratum, question) for stratum, question, n in rows if not is_question_shown(int(n))}


def _without_answers(column: BlockColumn) -> BlockColumn:
    """Return the column of zeros that results if nobody is asked the question."""
    return replace(column, data=bytes(len(column.data)))


def _tally(head: _Head, n: int, counts: Mapping[tuple[int, int], int]) -> Tally:
    return Tally(
        release=head.release,
        n=n,
        n_asked=[counts.get((question, N_ASKED), 0) for question in range(len(head.places))],
        counts=[
            [counts.get((question, place), 0) for place in range(k)]
            for question, k in enumerate(head.places)
        ],
    )


Block = list[BlockColumn]
"""One column per question, of the same reports in the same order."""

STRATUM, BUCKET = "_stratum", "_bucket"
"""Columns of exported reports beside their questions; no question can have these names."""


def read_microdata(store: Releases, survey: PublishedSurvey) -> tuple[Tally, Iterator[Block]]:
    """Return a release and its blocks, read from one state, with one block in memory at a time.

    The state begins with the first block. If the release is the same before and after that, the
    blocks belong to it; otherwise there was another release in between, and reading starts again.
    """
    questions = survey.definition.questions
    while True:
        before = store.tally(survey.key)
        blocks = store.block_columns(survey.key, range(len(questions)))
        first = list(islice(blocks, 1))
        if store.tally(survey.key).release == before.release:
            return before, chain(first, blocks)
