"""Reports come in: many in one transaction, each exactly once, each with its own verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from survey.errors import (
    ClosedError,
    ConflictError,
    InvitationError,
    NotFoundError,
    StoreError,
    SurveyError,
)
from survey.store.protocol import StoredReport
from survey.store.sql.surveys import PUBLISHING
from survey.store.sql.transaction import SqlTransactions, Transaction, whole_number

Addressed = tuple[int, StoredReport]
"""A report with the number of the survey that it is for."""

Verdicts = dict[Addressed, SurveyError | None]


class SqlReports(SqlTransactions):
    """The part of a `Store` that takes reports and invitations."""

    def add_reports(self, reports: Sequence[Addressed]) -> list[SurveyError | None]:
        """Store all that can be stored, in one transaction that is durable on return.

        One verdict per report: None when it is stored, now or before; ClosedError when its
        survey takes no more; ConflictError when its id belongs to another report (while that can
        still be told), InvitationError when its invitation is unknown, spent or another stratum's,
        StoreError when the database refuses this one. An invitation is spent in the same
        transaction.

        Raises StoreBusyError when the database cannot be used: then nothing is stored, or, when
        the connection broke while it committed, whatever is sent again will be found stored.
        """
        try:
            with self._writing() as transaction:
                verdicts = _add(transaction, reports)
        except StoreError:
            # The database refused one of them for a reason of its own: that one fails alone.
            with self._writing() as transaction:
                verdicts = _add_one_by_one(transaction, reports)
        return [verdicts[each] for each in reports]

    def has_report(self, survey: int, report: StoredReport) -> bool:
        """Whether a report was stored before; ConflictError when its id has other codes."""
        with self._reading() as transaction:
            return _is_known(transaction, survey, report)

    def n_pending(self, survey: int) -> int:
        """How many reports wait for a release; for the release alone, never for readers."""
        with self._looking() as transaction:
            return whole_number(
                transaction.one("SELECT count(*) FROM inbox WHERE survey = ?", [survey])
            )

    def n_invited(self, survey: int, stratum: str) -> int:
        """How many invitations were issued for a stratum, spent or not."""
        with self._reading() as transaction:
            return _invited(transaction, survey, stratum)

    def n_invited_by_stratum(self, survey: int) -> dict[str, int]:
        """How many invitations were issued for each stratum, spent or not."""
        with self._looking() as transaction:
            rows = transaction.all(
                "SELECT stratum, count(*) FROM invitation WHERE survey = ? GROUP BY stratum",
                [survey],
            )
        return {cast("str", stratum): cast("int", n) for stratum, n in rows}

    def add_invitations(
        self, survey: int, stratum: str, token_hashes: Sequence[bytes], before: int | None = None
    ) -> None:
        """Let each of these SHA-256 of a token be spent by one report of a stratum.

        Raises NotFoundError for a survey that is not there, ConflictError for a token that was
        issued before, or when the stratum no longer has the `before` invitations that whoever
        asks knows of: then none of them is stored.
        """
        with self._writing() as transaction:
            # One after the other: what is sent twice at once is counted by the second.
            transaction.hold(PUBLISHING)
            there = _invited(transaction, survey, stratum)
            if before not in (None, there):
                raise ConflictError(f"there are {there:,} invitations of this stratum by now")
            if transaction.one("SELECT 1 FROM survey WHERE key = ?", [survey]) is None:
                raise NotFoundError(f"there is no survey number {survey}")
            added = transaction.change_each(
                "INSERT INTO invitation (survey, token_hash, stratum, spent) "
                "VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING",
                [(survey, token_hash, stratum) for token_hash in token_hashes],
            )
            if 0 in added:
                raise ConflictError("one of these invitations was issued before")


def _add(transaction: Transaction, reports: Sequence[Addressed]) -> Verdicts:
    """Add reports as if one came after the other, few statements for all."""
    transaction.share({survey for survey, _ in reports})
    verdicts: Verdicts = {}
    # The same report several times is one, and has one verdict.
    left = list(dict.fromkeys(reports))
    while left:
        turn, left = _independent(left)
        verdicts.update(_add_independent(transaction, turn))
    return verdicts


def _independent(reports: Iterable[Addressed]) -> tuple[list[Addressed], list[Addressed]]:
    """The first report of each id and each invitation, and those that must wait for them."""
    taken: set[tuple[int, bytes]] = set()
    first: list[Addressed] = []
    later: list[Addressed] = []
    for survey, report in reports:
        names = {(survey, report.id)}
        if report.invitation:
            names.add((survey, report.invitation))
        (first if taken.isdisjoint(names) else later).append((survey, report))
        taken |= names
    return first, later


def _add_independent(transaction: Transaction, reports: Sequence[Addressed]) -> Verdicts:
    added = transaction.insert_waiting(reports)
    verdicts: Verdicts = {}
    invited = []
    for survey, report in reports:
        if (survey, report.id) not in added:
            verdicts[survey, report] = _why_not_added(transaction, survey, report)
            continue
        verdicts[survey, report] = None
        if report.invitation:
            invited.append((survey, report))
    if invited:
        verdicts.update(_spend(transaction, invited))
    return verdicts


def _spend(transaction: Transaction, invited: Sequence[Addressed]) -> Verdicts:
    """Spend the invitations of reports just added; without a valid one a report goes again."""
    # Everyone spends in the same order: two who want the same ones never wait for each other.
    invited = sorted(invited, key=lambda each: (each[0], each[1].invitation))
    spent = transaction.change_each(
        "UPDATE invitation SET spent = 1 "
        "WHERE survey = ? AND token_hash = ? AND stratum = ? AND spent = 0",
        [(survey, report.invitation, report.stratum) for survey, report in invited],
    )
    refused = [each for each, n in zip(invited, spent, strict=True) if not n]
    transaction.change_each(
        "DELETE FROM inbox WHERE survey = ? AND id = ?",
        [(survey, report.id) for survey, report in refused],
    )
    return {
        each: InvitationError("this invitation is unknown, used already, or of another link")
        for each in refused
    }


def _add_one_by_one(transaction: Transaction, reports: Sequence[Addressed]) -> Verdicts:
    transaction.share({survey for survey, _ in reports})
    verdicts: Verdicts = {}
    for each in dict.fromkeys(reports):
        try:
            with transaction.apart():
                verdicts.update(_add_independent(transaction, [each]))
        except StoreError as refusal:
            verdicts[each] = refusal
    return verdicts


def _why_not_added(
    transaction: Transaction, survey: int, report: StoredReport
) -> SurveyError | None:
    """None for a report that was stored before, else what keeps it out."""
    try:
        if _is_known(transaction, survey, report):
            return None
    except ConflictError as conflict:
        return conflict
    state = transaction.one("SELECT state FROM survey WHERE key = ?", [survey])
    if state is None or state[0] == "closed":
        return ClosedError("this survey is closed and takes no more reports")
    return StoreError("the database did not take this report and did not say why")


def _is_known(transaction: Transaction, survey: int, report: StoredReport) -> bool:
    """Whether the id was stored before, in the inbox or released since."""
    waiting = transaction.one(
        "SELECT stratum, codes FROM inbox WHERE survey = ? AND id = ?", [survey, report.id]
    )
    if waiting is not None:
        if waiting != (report.stratum, report.codes):
            raise ConflictError("another report with this report_id is stored already")
        return True
    seen = transaction.one("SELECT 1 FROM seen WHERE survey = ? AND id = ?", [survey, report.id])
    return seen is not None


def _invited(transaction: Transaction, survey: int, stratum: str) -> int:
    return whole_number(
        transaction.one(
            "SELECT count(*) FROM invitation WHERE survey = ? AND stratum = ?", [survey, stratum]
        )
    )
