"""The store on one SQLite file: a report is acknowledged only after it is on the disk.

sqlite-utils makes the schema and does what is administration; reports take its connection's
plain sqlite3, because `INSERT OR IGNORE` of sqlite-utils needs rowids and ours have none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from survey.errors import ClosedError, ConflictError, NotFoundError
from survey.questionnaire.definition import Definition, read_definition
from survey.store.protocol import (
    ASKED,
    BlockColumn,
    LastBlock,
    PublishedSurvey,
    Sealed,
    StoredReport,
    Tally,
    Waiting,
)
from survey.store.sqlite_connections import named_errors
from survey.store.sqlite_researchers import SqliteResearchers

ALL_SURVEYS = "SELECT key, slug, version, sha256, state, changed, definition FROM survey "


class SqliteStore(SqliteResearchers):
    """A `Store` in the file at `path`."""

    def publish(self, definition: Definition, today: date) -> PublishedSurvey:
        """Store a definition for good; an open version before it becomes superseded."""
        with self._transaction() as connection:
            newest = (
                connection.execute(
                    "SELECT max(version) FROM survey WHERE slug = ?", [definition.slug]
                ).fetchone()[0]
                or 0
            )
            if definition.version != newest + 1:
                raise ConflictError(
                    f"version {definition.version} of {definition.slug} cannot be "
                    f"published; the next is {newest + 1}"
                )
            connection.execute(
                "UPDATE survey SET state = 'superseded', changed = ? "
                "WHERE slug = ? AND state = 'open'",
                [today.isoformat(), definition.slug],
            )
            connection.execute(
                "INSERT INTO survey (slug, version, definition, sha256, state, changed) "
                "VALUES (?, ?, ?, ?, 'open', ?)",
                [
                    definition.slug,
                    definition.version,
                    definition.canonical,
                    definition.sha256,
                    today.isoformat(),
                ],
            )
            row = connection.execute(
                ALL_SURVEYS + "WHERE sha256 = ?", [definition.sha256]
            ).fetchone()
            connection.execute("INSERT INTO release VALUES (?, 0, 0)", [row[0]])
            return _survey(row)

    def surveys(self) -> list[PublishedSurvey]:
        """Every version of every survey, by slug, newest version first."""
        with named_errors():
            rows = self._database().execute(ALL_SURVEYS + "ORDER BY slug, version DESC").fetchall()
            return [_survey(row) for row in rows]

    def versions(self, slug: str) -> list[PublishedSurvey]:
        """All versions of one survey, newest first; empty when there is none."""
        with named_errors():
            rows = (
                self._database()
                .execute(ALL_SURVEYS + "WHERE slug = ? ORDER BY version DESC", [slug])
                .fetchall()
            )
            return [_survey(row) for row in rows]

    def close_survey(self, slug: str, today: date) -> list[PublishedSurvey]:
        """Let no version of a survey take reports any more; returns the versions closed."""
        with self._transaction() as connection:
            rows = connection.execute(
                ALL_SURVEYS + "WHERE slug = ? AND state != 'closed'", [slug]
            ).fetchall()
            connection.execute(
                "UPDATE survey SET state = 'closed', changed = ? "
                "WHERE slug = ? AND state != 'closed'",
                [today.isoformat(), slug],
            )
            return [_survey(row) for row in rows]

    # -- reports

    def add_report(self, survey: int, report: StoredReport) -> None:
        """Store a report once; the same one again is no error, another with its id is.

        Raises ClosedError when the version takes no reports, ConflictError when the id
        already belongs to other codes (while that can still be told).
        """
        with self._transaction() as connection:
            if _is_known(connection, survey, report):
                return
            state = connection.execute(
                "SELECT state FROM survey WHERE key = ?", [survey]
            ).fetchone()
            if state is None or state[0] == "closed":
                raise ClosedError("this survey is closed and takes no more reports")
            connection.execute(
                "INSERT INTO inbox VALUES (?, ?, ?, ?)",
                [survey, report.id, report.stratum, report.codes],
            )

    def knows_report(self, survey: int, report: StoredReport) -> bool:
        """Whether a report was stored before; ConflictError when its id has other codes."""
        with self._begin("DEFERRED") as connection:
            return _is_known(connection, survey, report)

    def waiting(self, survey: int) -> int:
        """How many reports wait for a release; for the release alone, never for readers."""
        return self._count("SELECT count(*) FROM inbox WHERE survey = ?", survey)

    def released(self, survey: int) -> int:
        """How many reports have been released."""
        return self._count("SELECT n FROM release WHERE survey = ?", survey)

    def _count(self, statement: str, survey: int) -> int:
        with named_errors():
            row = self._database().execute(statement, [survey]).fetchone()
            if row is None:
                raise NotFoundError(f"there is no survey number {survey}")
            return int(row[0])

    def release(
        self, survey: int, minimum: int, seal: Callable[[Sequence[Waiting]], Sealed]
    ) -> int:
        """Move what waits through `seal` into blocks and counts, in one transaction.

        Returns how many reports were released: 0 when fewer than `minimum` wait.
        """
        with self._transaction() as connection:
            groups = _waiting(connection, survey)
            n = sum(len(group.codes) for group in groups)
            if n < max(minimum, 1):
                return 0
            _write(connection, survey, seal(groups), n)
        return n

    def forget_ids(self, survey: int) -> None:
        """Delete the ids of a survey's released reports; a resent one can no longer be told."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM seen WHERE survey = ?", [survey])

    # -- released data

    def tally(self, survey: int) -> Tally:
        """The released counts, all from one state of the database."""
        with self._begin("DEFERRED") as connection:
            head = connection.execute(
                "SELECT release.number, release.n, survey.definition FROM release "
                "JOIN survey ON survey.key = release.survey WHERE survey.key = ?",
                [survey],
            ).fetchone()
            if head is None:
                raise NotFoundError(f"there is no survey number {survey}")
            rows = connection.execute(
                "SELECT question, option, sum(n) FROM counts WHERE survey = ? "
                "GROUP BY question, option",
                [survey],
            ).fetchall()
        questions = read_definition(head[2]).questions
        counts = [[0] * question.channel.counted for question in questions]
        asked = [0] * len(questions)
        for question, place, n in rows:
            if place == ASKED:
                asked[question] = n
            else:
                counts[question][place] = n
        return Tally(release=head[0], n=head[1], asked=asked, counts=counts)

    def blocks(self, survey: int, question: int) -> list[BlockColumn]:
        """One question's released codes, block by block."""
        with named_errors():
            rows = (
                self._database()
                .execute(
                    "SELECT stratum, question, block, n, data FROM block "
                    "WHERE survey = ? AND question = ? ORDER BY stratum, block",
                    [survey, question],
                )
                .fetchall()
            )
            return [BlockColumn(*row) for row in rows]


def _is_known(connection: sqlite3.Connection, survey: int, report: StoredReport) -> bool:
    """Whether the id was stored before, in the inbox or released since."""
    waiting = connection.execute(
        "SELECT stratum, codes FROM inbox WHERE survey = ? AND id = ?", [survey, report.id]
    ).fetchone()
    if waiting is not None:
        if waiting != (report.stratum, report.codes):
            raise ConflictError("another report with this report_id is stored already")
        return True
    return (
        connection.execute(
            "SELECT 1 FROM seen WHERE survey = ? AND id = ?", [survey, report.id]
        ).fetchone()
        is not None
    )


def _waiting(connection: sqlite3.Connection, survey: int) -> list[Waiting]:
    rows = connection.execute(
        "SELECT stratum, codes FROM inbox WHERE survey = ? ORDER BY stratum, id", [survey]
    ).fetchall()
    strata: dict[str, list[bytes]] = {}
    for stratum, codes in rows:
        strata.setdefault(stratum, []).append(codes)
    return [
        Waiting(stratum, codes, _last_block(connection, survey, stratum))
        for stratum, codes in strata.items()
    ]


def _last_block(connection: sqlite3.Connection, survey: int, stratum: str) -> LastBlock | None:
    rows = connection.execute(
        "SELECT block, data FROM block WHERE survey = ?1 AND stratum = ?2 AND block = "
        "(SELECT max(block) FROM block WHERE survey = ?1 AND stratum = ?2) ORDER BY question",
        [survey, stratum],
    ).fetchall()
    return LastBlock(rows[0][0], [data for _, data in rows]) if rows else None


def _write(connection: sqlite3.Connection, survey: int, sealed: Sealed, n: int) -> None:
    connection.executemany(
        "INSERT INTO block (survey, stratum, question, block, n, data) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET n = excluded.n, data = excluded.data",
        [(survey, c.stratum, c.question, c.block, c.n, c.data) for c in sealed.columns],
    )
    connection.executemany(
        "INSERT INTO counts (survey, stratum, question, option, n) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET n = n + excluded.n",
        [(survey, *place, added) for place, added in sealed.counts.items()],
    )
    connection.execute("INSERT INTO seen SELECT survey, id FROM inbox WHERE survey = ?", [survey])
    connection.execute("DELETE FROM inbox WHERE survey = ?", [survey])
    connection.execute(
        "UPDATE release SET number = number + 1, n = n + ? WHERE survey = ?", [n, survey]
    )


def _survey(row: tuple[Any, ...]) -> PublishedSurvey:
    key, slug, version, sha256, state, changed, definition = row
    return PublishedSurvey(
        key=key,
        slug=slug,
        version=version,
        sha256=sha256,
        state=state,
        changed=date.fromisoformat(changed),
        canonical=definition,
    )
