"""Arriving reports and invitations: each transaction stores many reports, each exactly once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from survey.errors import (
    ClosedError,
    ConflictError,
    InvitationError,
    NotFoundError,
    StoreBusyError,
    StoreError,
    SurveyError,
)
from survey.store.report_identities import identity, released
from survey.store.schema import INVITATION
from survey.store.sealed_reports import SealingKey, current_key, insert_batches, seal
from survey.store.transactions import REGISTRY, StoredReport, Transaction, Transactions

Addressed = tuple[int, StoredReport]
"""A report with the key of its survey."""

Verdicts = dict[tuple[int, bytes], SurveyError | None]
"""For each survey and identity: None if the report is stored, or the error that rejects it."""


class Reports(Transactions):
    """The part of a `Store` that accepts reports and issues invitations."""

    def add_reports(self, reports: Sequence[Addressed]) -> list[SurveyError | None]:
        """Seal and store as many reports as possible, in a transaction that is durable on return.

        Returns one verdict per report: None if its id is stored, now or earlier; ClosedError if
        its survey is closed; InvitationError if its invitation is unknown, spent, or for another
        stratum; StoreBusyError if its survey has no key yet; StoreError if the database rejects
        it. One transaction stores a report and spends its invitation.

        Raises StoreBusyError if the database cannot be used. Then nothing is stored, unless the
        connection broke during the commit; in that case, repeated reports are recognized.
        """
        try:
            with self._write() as transaction:
                verdicts = _add(transaction, reports)
        except StoreError:
            # The database rejects one of the reports, and only that report must fail.
            with self._write() as transaction:
                verdicts = _add_one_by_one(transaction, reports)
        return [verdicts[survey, identity(report.id)] for survey, report in reports]

    def has_report(self, survey: int, report_id: bytes) -> bool:
        """Return whether a report is stored, pending or released."""
        with self._lookup() as transaction:
            return _is_known(transaction, survey, identity(report_id))

    def n_invited(self, survey: int, stratum: str) -> int:
        """Return the number of invitations issued for a stratum."""
        with self._lookup() as transaction:
            return _n_invited(transaction, survey, stratum)

    def n_invited_by_stratum(self, survey: int) -> dict[str, int]:
        """Return the number of invitations issued for each stratum that has any.

        Sort alphabetically: PostgreSQL's own order changes after many reports have arrived, and
        the page would reveal that.
        """
        rows = self._rows(
            "SELECT stratum, count(*) FROM invitation WHERE survey = ? "
            "GROUP BY stratum ORDER BY stratum",
            [survey],
        )
        return {str(stratum): int(n) for stratum, n in rows}

    def add_invitations(
        self, survey: int, stratum: str, token_hashes: Sequence[bytes], before: int | None = None
    ) -> None:
        """Issue single-use invitations for a stratum, given the SHA-256 of their tokens.

        Raises NotFoundError if there is no such survey, and ConflictError for a token that was
        issued before, or if the stratum no longer has `before` invitations. Then none is issued.
        """
        with self._write() as transaction:
            # If a form is sent twice at once, the second request sees the invitations of the first.
            transaction.lock(REGISTRY)
            n = _n_invited(transaction, survey, stratum)
            if before not in (None, n):
                raise ConflictError(f"this stratum now has {n:,} invitations")
            if transaction.row("SELECT 1 FROM survey WHERE key = ?", [survey]) is None:
                raise NotFoundError(f"there is no survey number {survey}")
            inserted = transaction.execute_many(
                f"{INVITATION.insert} ON CONFLICT DO NOTHING",
                [(survey, token_hash, stratum, 0) for token_hash in token_hashes],
            )
            if 0 in inserted:
                raise ConflictError("one of these invitations was issued before")


def _add(transaction: Transaction, reports: Iterable[Addressed]) -> Verdicts:
    """Add reports as if they arrived one by one, with few statements for all of them.

    All reports with the same id count as one report and get the same verdict. A different verdict
    for a copy with other codes would reveal the sealed codes.
    """
    distinct: dict[tuple[int, bytes], StoredReport] = {}
    for survey, report in reports:
        distinct.setdefault((survey, identity(report.id)), report)
    keys = _lock(transaction, {survey for survey, _ in distinct})
    new_places = transaction.insert_ids([place for place in distinct if place[0] in keys])
    refusals = _spend(transaction, [(survey, distinct[survey, i]) for survey, i in new_places])
    accepted: defaultdict[int, list[StoredReport]] = defaultdict(list)
    verdicts: Verdicts = {}
    for place, report in distinct.items():
        if place in refusals:
            verdicts[place] = refusals[place]
        elif place in new_places:
            verdicts[place] = None
            accepted[place[0]].append(report)
        else:
            verdicts[place] = _explain_refusal(transaction, *place)
    for survey, new in accepted.items():
        insert_batches(transaction, seal(keys[survey], new))
    return verdicts


def _lock(transaction: Transaction, surveys: Iterable[int]) -> dict[int, SealingKey]:
    """Lock surveys; return their current keys, without those that have none.

    The keeper changes a key under the exclusive lock, so every report sealed with the old key is
    stored before the change. All transactions lock in the same order, which prevents deadlocks.
    """
    keys = {}
    for survey in sorted(surveys):
        transaction.lock(survey, shared=True)
        if key := current_key(transaction, survey):
            keys[survey] = key
    return keys


def _add_one_by_one(transaction: Transaction, reports: Sequence[Addressed]) -> Verdicts:
    verdicts: Verdicts = {}
    for survey, report in reports:
        place = (survey, identity(report.id))
        if place in verdicts:
            continue
        try:
            with transaction.savepoint():
                verdicts.update(_add(transaction, [(survey, report)]))
        except StoreError as refusal:
            verdicts[place] = refusal
    return verdicts


def _spend(transaction: Transaction, reports: Iterable[Addressed]) -> Verdicts:
    """Spend the invitations of reports just added; remove reports whose invitation is invalid."""
    # All transactions spend in the same order, which prevents deadlocks.
    invited = sorted(
        ((survey, report) for survey, report in reports if report.invitation),
        key=lambda item: (item[0], item[1].invitation, item[1].id),
    )
    n_spent = transaction.execute_many(
        "UPDATE invitation SET spent = 1 "
        "WHERE survey = ? AND token_hash = ? AND stratum = ? AND spent = 0",
        [(survey, report.invitation, report.stratum) for survey, report in invited],
    )
    invalid_places = [
        (survey, identity(report.id))
        for (survey, report), n in zip(invited, n_spent, strict=True)
        if not n
    ]
    transaction.execute_many("DELETE FROM pending_id WHERE survey = ? AND id = ?", invalid_places)
    return {
        place: InvitationError("this invitation is unknown, already used, or for another link")
        for place in invalid_places
    }


def _explain_refusal(transaction: Transaction, survey: int, item: bytes) -> SurveyError | None:
    """Return why the report with an identity was not added, or None if it is already stored."""
    if _is_known(transaction, survey, item):
        return None
    state = transaction.row("SELECT state FROM survey WHERE key = ?", [survey])
    if state is None or state[0] == "closed":
        return ClosedError("this survey is closed and accepts no more reports")
    return StoreBusyError(
        "this survey has no key for its reports yet; send the report again in a moment"
    )


def _is_known(transaction: Transaction, survey: int, item: bytes) -> bool:
    # Check pending reports first, because a release can move the report between the queries.
    pending = "SELECT 1 FROM pending_id WHERE survey = ? AND id = ?"
    return transaction.row(pending, [survey, item]) is not None or bool(
        released(transaction, survey, [item])
    )


def _n_invited(transaction: Transaction, survey: int, stratum: str) -> int:
    return transaction.integer(
        "SELECT count(*) FROM invitation WHERE survey = ? AND stratum = ?", [survey, stratum]
    )
