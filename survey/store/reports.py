"""Pending reports and invitations: many reports per transaction, each stored exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from survey.errors import (
    ClosedError,
    ConflictError,
    FullError,
    InvitationError,
    NotFoundError,
    StoreError,
    SurveyError,
)
from survey.store.schema import INVITATION
from survey.store.transactions import REGISTRY, StoredReport, Transaction, Transactions

Addressed = tuple[int, StoredReport]
"""A report with the key of its survey."""

Verdicts = dict[Addressed, SurveyError | None]
"""For each report, None if it is stored, or the error with which it is refused."""


class Reports(Transactions):
    """The part of a `Store` that accepts reports and issues invitations."""

    def add_reports(
        self, reports: Sequence[Addressed], maxima: Mapping[int, int] | None = None
    ) -> list[SurveyError | None]:
        """Store as many reports as possible, in one transaction that is durable on return.

        Returns one verdict per report: None if it is stored, now or earlier; ClosedError if its
        survey is closed; FullError if the survey has its maximum of reports; ConflictError if its
        id belongs to another report (as long as that is known); InvitationError if its invitation
        is unknown, spent, or for another stratum; StoreError if the database refuses it. A report
        and its invitation's being spent are one transaction.

        `maxima` maps surveys to their maximum numbers of reports. Reports are counted once per
        call, and no other process adds any until it returns, so that no maximum is exceeded.

        Raises StoreBusyError if the database cannot be used. Then nothing is stored, unless the
        connection broke during the commit: reports that are sent again are recognized.
        """
        limits = {survey: n for survey, n in (maxima or {}).items() if n}
        try:
            with self._write() as transaction:
                verdicts = _add(transaction, reports, limits)
        except StoreError:
            # The database refuses one of the reports: only that one shall fail.
            with self._write() as transaction:
                verdicts = _add_one_by_one(transaction, reports, limits)
        return [verdicts[item] for item in reports]

    def has_report(self, survey: int, report: StoredReport) -> bool:
        """Return whether a report is stored; raise ConflictError if its id has other codes."""
        with self._read() as transaction:
            return _is_known(transaction, survey, report)

    def n_pending(self, survey: int) -> int:
        """Return the number of pending reports: for releases and limits, never for readers."""
        with self._lookup() as transaction:
            return _n_pending(transaction, survey)

    def n_invited(self, survey: int, stratum: str) -> int:
        """Return the number of invitations issued for a stratum."""
        with self._lookup() as transaction:
            return _n_invited(transaction, survey, stratum)

    def n_invited_by_stratum(self, survey: int) -> dict[str, int]:
        """Return the number of invitations issued for each stratum that has any."""
        rows = self._rows(
            "SELECT stratum, count(*) FROM invitation WHERE survey = ? GROUP BY stratum",
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
            # The same form sent twice at once: the second one sees the invitations of the first.
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


def _add(
    transaction: Transaction, reports: Sequence[Addressed], limits: Mapping[int, int]
) -> Verdicts:
    """Add reports as if one came after the other, with few statements for all of them."""
    rooms = _lock(transaction, reports, limits)
    # Copies of the same report are one report and get one verdict.
    distinct = list(dict.fromkeys(reports))
    sizes = Counter(survey for survey, _ in distinct)
    nearly_full = {survey for survey, room in rooms.items() if sizes[survey] > room}
    verdicts: Verdicts = {}
    for item in distinct:
        if item[0] in nearly_full:
            verdicts[item] = _add_single(transaction, item, rooms, limits)
    remaining = [item for item in distinct if item[0] not in nearly_full]
    while remaining:
        batch, remaining = _split_independent(remaining)
        verdicts.update(_add_independent(transaction, batch))
    return verdicts


def _lock(
    transaction: Transaction, reports: Sequence[Addressed], limits: Mapping[int, int]
) -> dict[int, int]:
    """Lock the surveys of reports; return how many more each survey with a limit accepts.

    A survey with a limit is locked alone: two transactions that counted at the same time could
    exceed its maximum together. All lock in the same order and so never wait for each other.
    """
    for survey in sorted({survey for survey, _ in reports}):
        transaction.lock(survey, shared=survey not in limits)
    return {
        survey: limits[survey] - _n_stored(transaction, survey)
        for survey in {survey for survey, _ in reports}
        if survey in limits
    }


def _add_one_by_one(
    transaction: Transaction, reports: Sequence[Addressed], limits: Mapping[int, int]
) -> Verdicts:
    rooms = _lock(transaction, reports, limits)
    verdicts: Verdicts = {}
    for item in dict.fromkeys(reports):
        try:
            with transaction.savepoint():
                verdicts[item] = _add_single(transaction, item, rooms, limits)
        except StoreError as refusal:
            verdicts[item] = refusal
    return verdicts


def _add_single(
    transaction: Transaction, item: Addressed, rooms: dict[int, int], limits: Mapping[int, int]
) -> SurveyError | None:
    """Add a report if its survey has room, and count it; a report that is known is accepted."""
    survey, report = item
    if survey not in rooms:
        return _add_independent(transaction, [item])[item]
    try:
        if _is_known(transaction, survey, report):
            return None
    except ConflictError as conflict:
        return conflict
    if rooms[survey] <= 0:
        return FullError(f"this survey has its maximum of {limits[survey]:,} reports")
    verdict = _add_independent(transaction, [item])[item]
    rooms[survey] -= verdict is None
    return verdict


def _split_independent(reports: Iterable[Addressed]) -> tuple[list[Addressed], list[Addressed]]:
    """Return the first report of each id and invitation, and those that must wait for them."""
    names_before: set[tuple[int, bytes]] = set()
    first: list[Addressed] = []
    later: list[Addressed] = []
    for survey, report in reports:
        names = {(survey, report.id)}
        if report.invitation:
            names.add((survey, report.invitation))
        (first if names_before.isdisjoint(names) else later).append((survey, report))
        names_before |= names
    return first, later


def _add_independent(transaction: Transaction, reports: Sequence[Addressed]) -> Verdicts:
    inserted = transaction.insert_pending(reports)
    verdicts: Verdicts = {}
    invited = []
    for survey, report in reports:
        if (survey, report.id) not in inserted:
            verdicts[survey, report] = _explain_refusal(transaction, survey, report)
            continue
        verdicts[survey, report] = None
        if report.invitation:
            invited.append((survey, report))
    if invited:
        verdicts.update(_spend(transaction, invited))
    return verdicts


def _spend(transaction: Transaction, invited: Sequence[Addressed]) -> Verdicts:
    """Spend the invitations of reports just added; remove reports whose invitation is invalid."""
    # All transactions spend in the same order and so never wait for each other.
    invited = sorted(invited, key=lambda item: (item[0], item[1].invitation))
    spent = transaction.execute_many(
        "UPDATE invitation SET spent = 1 "
        "WHERE survey = ? AND token_hash = ? AND stratum = ? AND spent = 0",
        [(survey, report.invitation, report.stratum) for survey, report in invited],
    )
    refused = [item for item, n in zip(invited, spent, strict=True) if not n]
    transaction.execute_many(
        "DELETE FROM inbox WHERE survey = ? AND id = ?",
        [(survey, report.id) for survey, report in refused],
    )
    return {
        item: InvitationError("this invitation is unknown, already used, or for another link")
        for item in refused
    }


def _explain_refusal(
    transaction: Transaction, survey: int, report: StoredReport
) -> SurveyError | None:
    """Return None for a report that is known, or else the reason why it was not inserted."""
    try:
        if _is_known(transaction, survey, report):
            return None
    except ConflictError as conflict:
        return conflict
    state = transaction.row("SELECT state FROM survey WHERE key = ?", [survey])
    if state is None or state[0] == "closed":
        return ClosedError("this survey is closed and accepts no more reports")
    return StoreError("the database did not store this report and gave no reason")


def _is_known(transaction: Transaction, survey: int, report: StoredReport) -> bool:
    """Return whether a report with this id is stored.

    Raises ConflictError if a different pending report has the id.
    """
    pending = transaction.row(
        "SELECT stratum, codes FROM inbox WHERE survey = ? AND id = ?", [survey, report.id]
    )
    if pending is not None:
        if pending != (report.stratum, report.codes):
            raise ConflictError("a different report with this report_id is already stored")
        return True
    row = transaction.row("SELECT 1 FROM seen WHERE survey = ? AND id = ?", [survey, report.id])
    return row is not None


def _n_pending(transaction: Transaction, survey: int) -> int:
    return transaction.integer("SELECT count(*) FROM inbox WHERE survey = ?", [survey])


def _n_stored(transaction: Transaction, survey: int) -> int:
    """Return the number of reports of a survey, pending or released."""
    released = transaction.row("SELECT n FROM release WHERE survey = ?", [survey])
    return (int(released[0]) if released else 0) + _n_pending(transaction, survey)


def _n_invited(transaction: Transaction, survey: int, stratum: str) -> int:
    return transaction.integer(
        "SELECT count(*) FROM invitation WHERE survey = ? AND stratum = ?", [survey, stratum]
    )
