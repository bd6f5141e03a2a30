"""The store's contract on both databases: it stores each report once, with a separate verdict."""

from __future__ import annotations

import threading

import pytest

from survey.errors import ClosedError, ConflictError, NotFoundError, ReportError, StoreError
from survey.store import StoredReport, open_store
from survey.store.report_identities import identity
from tests.conftest import TODAY
from tests.store.databases import DirectAccess
from tests.store.reports import (
    add,
    keeper_at,
    pending_reports,
    publish_pending,
    random_reports,
    report,
)

REFUSED_IDS = (report(2).id, bytes.fromhex("c0ffee") * 5 + b"\x02")
REFUSED = [identity(report_id).hex() for report_id in REFUSED_IDS]
REFUSING = {
    "sqlite": [
        "CREATE TRIGGER poisoned BEFORE INSERT ON pending_id "
        f"WHEN lower(hex(NEW.id)) IN ('{REFUSED[0]}', '{REFUSED[1]}') "
        "BEGIN SELECT RAISE(ABORT, 'a page is damaged'); END"
    ],
    "postgresql": [
        "CREATE FUNCTION poisoned() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'a page is damaged' USING ERRCODE = 'data_corrupted'; END $$",
        "CREATE TRIGGER poisoned BEFORE INSERT ON pending_id FOR EACH ROW "
        f"WHEN (encode(NEW.id, 'hex') IN ('{REFUSED[0]}', '{REFUSED[1]}')) "
        "EXECUTE FUNCTION poisoned()",
    ],
}


def verdicts(store, survey, reports) -> list[str]:
    """Return the class name of each report's error, or an empty string if it is stored."""
    outcomes = store.add_reports([(survey.key, item) for item in reports])
    return [type(item).__name__ if item else "" for item in outcomes]


def hashes(*numbers: int) -> list[bytes]:
    return [number.to_bytes(32, "big") for number in numbers]


def test_a_resent_report_is_stored_once(store, small):
    for _ in range(3):
        assert verdicts(store, small, [report(1), report(2)]) == ["", ""]
    assert store.n_pending(small.key) == 2


def test_the_same_report_several_times_in_a_batch_is_stored_once(store, small):
    assert verdicts(store, small, [report(1), report(2), report(1)]) == ["", "", ""]
    assert store.n_pending(small.key) == 2


def test_nothing_is_added_by_an_empty_batch(store, small):
    assert store.add_reports([]) == []


@pytest.mark.security
def test_the_same_id_with_other_codes_is_accepted_and_changes_nothing(store, small):
    """A different answer would reveal whether the sender guessed the codes."""
    add(store, small, [report(1)])
    other = report(1, b"\x01\x01")
    assert verdicts(store, small, [other, report(2), report(2, b"\x01\x01")]) == ["", "", ""]
    stored = {item.id: item.codes for item in pending_reports(store, small)}
    assert stored == {report(n).id: report(n).codes for n in (1, 2)}


def test_a_released_report_is_recognized_by_its_id(store, small):
    add(store, small, [report(number) for number in range(30)])
    assert publish_pending(store, small) == 30
    assert verdicts(store, small, [report(3), report(30)]) == ["", ""]
    assert (store.n_pending(small.key), store.tally(small.key).n) == (1, 30)
    assert store.has_report(small.key, report(3).id)


def test_a_deleted_id_is_no_longer_recognized(store, small):
    add(store, small, [report(1)])
    publish_pending(store, small, 1)
    store.forget_ids(small.key)
    assert not store.has_report(small.key, report(1).id)


def test_a_closed_survey_accepts_no_new_report_and_an_open_one_accepts_all(store, small):
    add(store, small, [report(1)])
    store.close_survey("small", TODAY)
    assert verdicts(store, small, [report(1), report(2), report(1, b"\x01\x01")]) == [
        "",
        "ClosedError",
        "",
    ]
    assert store.n_pending(small.key) == 1


def test_a_missing_survey_accepts_nothing(store, small):
    outcomes = store.add_reports([(small.key, report(1)), (99, report(2))])
    assert outcomes[0] is None
    assert isinstance(outcomes[1], ClosedError)


def test_a_report_that_the_database_refuses_fails_alone(store, small, settings, direct_access):
    for statement in REFUSING[settings.database.partition(":")[0]]:
        direct_access.run(statement)
    bad = report(2, b"\xee\xee")
    batch = [report(1), bad, report(3), report(1, b"\x01\x01"), bad]
    assert verdicts(store, small, batch) == ["", "StoreError", "", "", "StoreError"]
    assert store.n_pending(small.key) == 2
    (_, refusal) = store.add_reports([(small.key, report(4)), (small.key, bad)])
    assert "a page is damaged" in str(refusal)
    assert store.n_pending(small.key) == 3


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"id": b"\x00" * 15}, "16 bytes, not 15"),
        ({"invitation": b"\x00" * 31}, "32 bytes, not 31"),
        ({"stratum": "a\0b"}, "NUL"),
    ],
)
def test_a_report_that_no_store_can_hold_cannot_be_constructed(fields, wrong):
    with pytest.raises(ReportError, match=wrong):
        StoredReport(**{"id": b"\x00" * 16, "stratum": "", "codes": b"", **fields})


# -- invitations


def test_an_invitation_is_spent_with_its_report_and_a_resent_report_is_known(store, small):
    store.add_invitations(small.key, "north", hashes(1, 2))
    first = report(1, stratum="north", invitation=hashes(1)[0])
    second = report(2, stratum="north", invitation=hashes(1)[0])
    assert verdicts(store, small, [first]) == [""]
    assert verdicts(store, small, [first, second]) == ["", "InvitationError"]
    assert not store.has_report(small.key, second.id)
    publish_pending(store, small, 1)
    assert verdicts(store, small, [first, second]) == ["", "InvitationError"]


def test_an_invitation_is_spent_once_in_a_batch_too(store, small):
    store.add_invitations(small.key, "north", hashes(1, 2))
    batch = [report(n, stratum="north", invitation=hashes(1 + n // 2)[0]) for n in range(4)]
    assert verdicts(store, small, batch) == ["", "InvitationError", "", "InvitationError"]
    assert store.n_pending(small.key) == 2


@pytest.mark.parametrize(
    ("stratum", "token"), [("south", 1), ("", 1), ("north", 3)], ids=["other", "none", "unknown"]
)
def test_an_unknown_invitation_or_one_of_another_stratum_admits_no_report(
    store, small, stratum, token
):
    store.add_invitations(small.key, "north", hashes(1))
    batch = [report(1, stratum=stratum, invitation=hashes(token)[0]), report(2)]
    assert verdicts(store, small, batch) == ["InvitationError", ""]
    good = report(3, stratum="north", invitation=hashes(1)[0])
    assert verdicts(store, small, [good]) == [""]


def test_only_one_of_many_simultaneous_issues_of_invitations_succeeds(store, small):
    store.add_invitations(small.key, "north", [bytes(32)])
    outcomes: list[str] = []

    def issue(number: int) -> None:
        hashes = [bytes([number, n]) * 16 for n in range(1, 20)]
        try:
            store.add_invitations(small.key, "north", hashes, before=1)
            outcomes.append("issued")
        except ConflictError:
            outcomes.append("refused")

    threads = [threading.Thread(target=issue, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["issued", *["refused"] * 5]
    assert store.n_invited_by_stratum(small.key) == {"north": 20}


@pytest.mark.security
def test_arriving_reports_do_not_change_the_order_of_groups(store, small, settings):
    """PostgreSQL analyzes the table again after many invitations are used."""
    groups = ["north", "south", "west", "east", "a", "b", "c"]
    for number, group in enumerate(groups):
        hashes = [bytes([number, n]) * 16 for n in range(60)]
        store.add_invitations(small.key, group, hashes)
    before = list(store.n_invited_by_stratum(small.key))
    DirectAccess(settings.database).run("ANALYZE invitation")
    assert list(store.n_invited_by_stratum(small.key)) == before == sorted(groups)


def test_an_invitation_is_issued_once_and_only_for_an_existing_survey(store, small):
    store.add_invitations(small.key, "north", hashes(1))
    with pytest.raises(ConflictError, match="issued before"):
        store.add_invitations(small.key, "south", hashes(2, 1))
    with pytest.raises(NotFoundError, match="99"):
        store.add_invitations(99, "north", hashes(3))
    # A rejected batch issues no invitation, not even the valid ones.
    unissued = report(1, stratum="south", invitation=hashes(2)[0])
    assert verdicts(store, small, [unissued]) == ["InvitationError"]


@pytest.mark.security
def test_a_sealed_batch_shows_neither_order_nor_pairs_of_ids_and_invitations(store, small):
    tokens = hashes(*range(20, 0, -1))
    store.add_invitations(small.key, "north", tokens)
    add(
        store,
        small,
        [
            report(n, stratum="north", invitation=tokens[n * 7 % 20])
            for n in (*range(9, 0, -1), *range(10, 20))
        ],
    )
    (batch,) = store.batches(small.key, "north", 1, 99)
    assert batch.report_ids == sorted(batch.report_ids)
    spent = [batch.invitations[i : i + 32] for i in range(0, len(batch.invitations), 32)]
    assert spent == sorted(spent)
    assert len(spent) == 19


# -- concurrency


def run_together(settings, tasks) -> list[object]:
    """Run each task on a separate store, all at the same time; return their results or errors."""
    outcomes: list[object] = [None] * len(tasks)
    start = threading.Barrier(len(tasks))

    def run(place: int) -> None:
        thread_store = open_store(settings.database)
        try:
            thread_store.surveys()  # connects
            start.wait(30)
            outcomes[place] = tasks[place](thread_store)
        except Exception as error:  # noqa: BLE001  the test reports every error
            outcomes[place] = error
        finally:
            thread_store.close_connections()

    threads = [threading.Thread(target=run, args=[place]) for place in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_the_same_reports_from_many_stores_at_once_are_stored_once(store, settings, small):
    reports = [(small.key, report(number)) for number in range(20)]
    tasks = [
        lambda thread_store, order=order: thread_store.add_reports(reports[::order])
        for order in (1, -1)
        for _ in "1234"
    ]
    assert run_together(settings, tasks) == [[None] * 20] * 8
    assert store.n_pending(small.key) == 20


def test_an_invitation_used_by_many_at_once_admits_one_report(store, settings, small):
    store.add_invitations(small.key, "north", hashes(*range(10)))

    def send(thread_store, person: int):
        tokens = range(10) if person % 2 else range(9, -1, -1)
        return thread_store.add_reports(
            [
                (small.key, report(100 * person + n, stratum="north", invitation=hashes(n)[0]))
                for n in tokens
            ]
        )

    outcomes = run_together(
        settings, [lambda thread_store, p=p: send(thread_store, p) for p in range(1, 7)]
    )
    verdicts_of_all = [verdict for outcome in outcomes for verdict in outcome]
    assert verdicts_of_all.count(None) == store.n_pending(small.key) == 10
    assert sum(isinstance(verdict, ConflictError) for verdict in verdicts_of_all) == 50


@pytest.mark.web
def test_no_report_is_duplicated_or_lost_between_senders_and_a_keeper(store, settings, small):
    """Two threads send every report while a keeper releases and changes the key."""
    reports = random_reports(600)
    end = threading.Event()

    def keep_releasing(thread_store):
        hour = 0
        while not end.is_set():
            hour += 1
            keeper_at(thread_store, settings, hour).work()
        return hour

    def send(thread_store):
        for start in range(0, 600, 20):
            add(thread_store, small, reports[start : start + 20])
            add(thread_store, small, reports[max(0, start - 40) : start + 20])
        end.set()

    hours, *sent = run_together(settings, [keep_releasing, send, send])
    assert sent == [None, None]
    store.close_survey("small", TODAY)
    keeper_at(store, settings, hours + 1).work()
    assert store.tally(small.key).n == 600
    assert [column.n for (column,) in store.block_columns(small.key, [0])] == [600]


def test_nothing_is_added_to_a_survey_after_its_close(store, settings, small):
    """When the close returns, the acknowledged reports are pending, and none is added later."""
    pending_at_close = []

    def close(thread_store):
        thread_store.close_survey("small", TODAY)
        pending_at_close.append(thread_store.n_pending(small.key))

    def send(thread_store, person):
        outcomes_of_thread = [
            thread_store.add_reports([(small.key, report(1000 * person + number))])[0]
            for number in range(100)
        ]
        return sum(verdict is None for verdict in outcomes_of_thread)

    tasks = [lambda thread_store, p=p: send(thread_store, p) for p in range(1, 4)]
    outcomes = run_together(settings, [close, *tasks])
    assert outcomes[0] is None
    assert pending_at_close == [sum(outcomes[1:])] == [store.n_pending(small.key)]


def test_a_store_error_names_no_code_of_a_report(store, small, settings, direct_access):
    for statement in REFUSING[settings.database.partition(":")[0]]:
        direct_access.run(statement)
    (refusal,) = store.add_reports([(small.key, StoredReport(REFUSED_IDS[1], "", b"\xee\xee"))])
    assert isinstance(refusal, StoreError)
    assert "c0ffee" not in str(refusal).lower()
    assert "eeee" not in str(refusal).lower()
