"""Release: a portion of what waits becomes blocks and counts in one transaction.

A report is either in a portion or waits: whoever releases holds the survey, and nobody adds to
it meanwhile.
"""

from __future__ import annotations

from typing import cast

from survey.store.protocol import MAX_RELEASED, Compose, LastBlock, PendingReports, ReleaseContent
from survey.store.sql.transaction import SqlTransactions, Transaction


class SqlReleasing(SqlTransactions):
    """The part of a `Store` that releases."""

    def release(
        self,
        survey: int,
        minimum: int,
        compose_release: Compose,
        *,
        bucket: str = "",
        maximum: int = MAX_RELEASED,
    ) -> int:
        """Move a portion of the pending reports of one stratum into blocks and counts.

        The stratum of which most wait. Released together with others, few of a stratum would be
        singled out by what was readable of it before and after. Returns how many reports were
        released: 0 when fewer than `minimum` of every stratum wait, else about `maximum` at most;
        what is left of the stratum is nothing, or at least `minimum` again.
        """
        with self._writing() as transaction:
            transaction.hold(survey)
            stratum, waiting = _fullest(transaction, survey)
            n = portion(waiting, minimum, maximum)
            if n:
                end, group = _take(transaction, survey, stratum, bucket, n)
                _write(transaction, survey, compose_release([group]))
                _move(transaction, survey, stratum, end, n)
        return n

    def _release_numbers(self) -> dict[int, int]:
        """How often each survey was released, of those that were."""
        with self._looking() as transaction:
            rows = transaction.all("SELECT survey, number FROM release WHERE number > 0")
        return {int(survey): int(number) for survey, number in rows}

    def forget_ids(self, survey: int) -> None:
        """Delete the ids of a survey's released reports; a resent one can no longer be told."""
        with self._writing() as transaction:
            transaction.change("DELETE FROM seen WHERE survey = ?", [survey])


def portion(waiting: int, minimum: int, maximum: int) -> int:
    """How many of those that wait are released at once, so that equal portions follow.

    >>> [portion(n, 25, 16_384) for n in (24, 25, 16_384, 16_385, 65_536)]
    [0, 25, 16384, 8193, 16384]
    """
    minimum = max(minimum, 1)
    if waiting < minimum:
        return 0
    portions = min(-(-waiting // maximum), waiting // minimum)
    return -(-waiting // portions)


def _fullest(transaction: Transaction, survey: int) -> tuple[str, int]:
    """The stratum of which most reports wait, and how many they are."""
    row = transaction.one(
        "SELECT stratum, count(*) FROM inbox WHERE survey = ? GROUP BY stratum "
        "ORDER BY count(*) DESC, stratum LIMIT 1",
        [survey],
    )
    return (cast("str", row[0]), int(row[1])) if row else ("", 0)


def _take(
    transaction: Transaction, survey: int, stratum: str, bucket: str, n: int
) -> tuple[bytes, PendingReports]:
    """The first `n` of a stratum in order of their random ids, and the last id of them."""
    rows = transaction.all(
        "SELECT id, codes FROM inbox WHERE survey = ? AND stratum = ? ORDER BY id LIMIT ?",
        [survey, stratum, n],
    )
    codes = [cast("bytes", each) for _, each in rows]
    last = _last_block(transaction, survey, stratum, bucket)
    return cast("bytes", rows[-1][0]), PendingReports(stratum, bucket, codes, last)


def _last_block(
    transaction: Transaction, survey: int, stratum: str, bucket: str
) -> LastBlock | None:
    place = (survey, stratum, bucket)
    newest = transaction.one(
        "SELECT max(block) FROM block "
        "WHERE survey = ? AND stratum = ? AND bucket = ? AND question = 0",
        place,
    )
    if newest is None or newest[0] is None:
        return None
    columns = transaction.all(
        "SELECT data FROM block WHERE survey = ? AND stratum = ? AND bucket = ? AND block = ? "
        "ORDER BY question",
        [*place, newest[0]],
    )
    return LastBlock(int(newest[0]), [cast("bytes", data) for (data,) in columns])


def _write(transaction: Transaction, survey: int, sealed: ReleaseContent) -> None:
    transaction.change_each(
        "INSERT INTO block (survey, stratum, bucket, question, block, n, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (survey, stratum, bucket, question, block) "
        "DO UPDATE SET n = excluded.n, data = excluded.data",
        [(survey, c.stratum, c.bucket, c.question, c.block, c.n, c.data) for c in sealed.columns],
    )
    transaction.change_each(
        "INSERT INTO counts (survey, stratum, bucket, question, option, n) "
        "VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (survey, stratum, bucket, question, option) "
        "DO UPDATE SET n = counts.n + excluded.n",
        [(survey, *place, added) for place, added in sealed.counts.items()],
    )


def _move(transaction: Transaction, survey: int, stratum: str, end: bytes, n: int) -> None:
    """What was sealed leaves the inbox; only its ids stay, in their own random order."""
    sealed = (survey, stratum, end)
    transaction.change(
        "INSERT INTO seen (survey, id) "
        "SELECT survey, id FROM inbox WHERE survey = ? AND stratum = ? AND id <= ? ORDER BY id",
        sealed,
    )
    transaction.change("DELETE FROM inbox WHERE survey = ? AND stratum = ? AND id <= ?", sealed)
    transaction.change(
        "UPDATE release SET number = number + 1, n = n + ? WHERE survey = ?", [n, survey]
    )
