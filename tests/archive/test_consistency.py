"""The consistency check accepts consistent stores and names every inconsistency."""

from __future__ import annotations

import re
import threading

import pytest

from survey.archive import check
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import StoredReport, database_file, open_store
from tests.archive.whole_store import fill
from tests.conftest import TODAY
from tests.store.reports import add, keeper_at, publish_pending, random_reports
from tests.surveys import EVERY_DESIGN


def check_store(store):
    with store.snapshot() as snapshot:
        return check(snapshot)


@pytest.fixture
def filled(store, small):
    """Return a store with 22 released reports in each of two buckets, 4 of them of "north"."""
    fill(store, small)
    return store


def test_a_store_without_surveys_is_consistent(store):
    result = check_store(store)
    assert (result.surveys, result.reports, result.mistakes) == (0, 0, ())


def test_a_postgresql_server_without_checksums_causes_a_warning(store, settings, monkeypatch):
    # The tests' server has checksums.
    assert store.unchecked_content() == ""
    if database_file(settings.database) is None:
        monkeypatch.setattr("survey.store.postgres._Transaction.rows", lambda *_: [("off",)])
        assert "accounts" in store.unchecked_content()


def test_released_reports_are_consistent_and_pending_reports_are_not_counted(filled, small):
    result = check_store(filled)
    assert (result.surveys, result.reports, result.mistakes) == (1, 44, ())
    add(filled, small, random_reports(9))
    assert check_store(filled) == result


@pytest.mark.parametrize("sampled", [False, True])
def test_every_type_of_question_is_consistent_over_many_releases(store, sampled):
    content = EVERY_DESIGN
    if sampled:
        content = content.replace(b"[[pages]]", b"questions_per_person = 3\n[[pages]]", 1)
    survey = publish(store, load(content, "every.toml", Caps()), TODAY)
    questions = survey.definition.questions
    for number in range(3 * 30):
        # The values of the codes do not matter here: tests of the channels cover the counting.
        codes = b"".join(
            bytes([1] * question.nullable + [0] * question.channel.code_bytes)
            if number % 2 or not sampled
            else bytes(question.code_bytes)
            for question in questions
        )
        add(store, survey, [StoredReport(number.to_bytes(16, "big"), "", codes)])
        if number % 30 == 29:
            publish_pending(store, survey, 25)
    result = check_store(store)
    assert (result.reports, result.mistakes) == (90, ())


def test_ids_deleted_after_closing_are_not_reported_as_missing(filled, small, settings):
    filled.close_survey("small", TODAY)
    keeper_at(filled, settings, 1).work()
    assert check_store(filled).mistakes == ()
    filled.forget_ids(small.key)
    assert check_store(filled).mistakes == ()


@pytest.mark.parametrize(
    ("damage", "values", "mistake"),
    [
        (
            "UPDATE counts SET n = n + 7 WHERE question = 1 AND option = 2 "
            "AND bucket = '2026-W47' AND stratum = ''",
            [],
            r'survey "small" version 1, question "pressure", released "2026-W47", place 2: '
            r"the blocks contain (\d+), the counts say (\d+)",
        ),
        (
            "UPDATE counts SET n = n + 1 WHERE question = 0 AND option = -1 AND stratum = 'north'",
            [],
            r'"fell_asleep", link "north", released "2026-W4\d", reports asked: '
            r"the blocks contain \d, the counts say \d",
        ),
        ("DELETE FROM counts WHERE question = 0 AND option = 0", [], "the counts say 0"),
        (
            "INSERT INTO counts VALUES (1, 'south', '', 1, 0, 5)",
            [],
            'question "pressure", link "south", place 0: the blocks contain 0, the counts say 5',
        ),
        (
            "INSERT INTO counts VALUES (1, '', '', 7, 0, 5)",
            [],
            "question number 7: its definition has no such question",
        ),
        (
            "UPDATE block SET data = ? WHERE question = 1 AND stratum = 'north'",
            [bytes(9)],
            r'"pressure", link "north", released "2026-W4\d": '
            r"block 0 of \d reports has 9 bytes, not \d",
        ),
        (
            "UPDATE block SET n = 1, data = ? WHERE question = 1 AND stratum = 'north'",
            [b"\xc8"],
            "block 0 contains a code that its question does not have",
        ),
        (
            "UPDATE block SET block = 1 WHERE question = 1 AND stratum = 'north'",
            [],
            "its block sizes differ from the first question's",
        ),
        (
            "DELETE FROM block WHERE question = 1 AND stratum = ''",
            [],
            '"pressure": the blocks contain 4 reports, 44 were released',
        ),
        ("UPDATE release SET n = 43", [], "the blocks contain 44 reports, 43 were released"),
        ("DELETE FROM release", [], "the number of released reports is missing"),
        ("UPDATE survey SET sha256 = 'ff'", [], r"its definition has the SHA-256 \w{64}, not ff"),
        (
            "DELETE FROM released_ids WHERE first < ?",
            [b"\x80"],
            "ids are recorded as released, but 44",
        ),
        (
            "INSERT INTO inbox VALUES (1, ?, '', ?)",
            [bytes(16), b"\x00\x00"],
            "a pending report has already been released",
        ),
        (
            "UPDATE inbox SET codes = ?",
            [b"\x00\x01\x02"],
            "a pending report has codes of the wrong length",
        ),
        ("UPDATE pending SET box = ?", [bytes(99)], "a sealed batch has a box of the wrong length"),
        ("UPDATE pending SET ids = ?", [bytes(15)], "ids of the wrong length"),
        ("UPDATE pending SET invitations = ?", [bytes(31)], "invitations of the wrong length"),
        ("UPDATE pending SET period = 7", [], "a sealed batch has no key"),
        ("UPDATE pending SET stratum = 'east'", [], r"the sealed batch \w{32} differs from its"),
        ("UPDATE block SET digest = ?", [bytes(16)], "block 0 differs from its digest"),
        (
            "UPDATE release SET ids_digest = ?",
            [bytes(16)],
            "the ids of its released reports differ from their digest",
        ),
        (
            "UPDATE survey SET title = 'Small'",
            [],
            'its title is "A small survey", but lists show "Small"',
        ),
        ("UPDATE survey SET state = 'superseded'", [], "although it is the newest version"),
        ("UPDATE survey SET changed = '2026-13-01'", [], "is not the day of a change"),
        ("UPDATE schedule SET opens = '2026-11-4'", [], "is not one of days"),
        ("DELETE FROM pending_id", [], "a pending report has no recorded id"),
        ("DELETE FROM pending", [], "a pending id has no report"),
        (
            "INSERT INTO pending SELECT survey, ?, period, stratum, 0, ids, invitations, box, "
            "digest FROM pending WHERE stratum = 'north'",
            [bytes(16)],
            "a pending id has no report, or several",
        ),
    ],
)
def test_every_inconsistency_is_named(filled, settings, direct_access, damage, values, mistake):
    if damage.startswith("UPDATE survey"):
        on = "" if settings.database.startswith("sqlite") else " ON survey"
        direct_access.run(f"DROP TRIGGER published_definition_is_frozen{on}")
    direct_access.run(damage, values)
    result = check_store(filled)
    assert any(re.search(mistake, text) for text in result.mistakes), result.mistakes


def test_a_check_reads_one_snapshot_while_reports_arrive_and_are_released(store, small, settings):
    stop = threading.Event()

    def serve() -> None:
        server = open_store(settings.database)
        while not stop.is_set():
            add(server, small, random_reports(30))
            publish_pending(server, small, 25)
        server.close_connections()

    server = threading.Thread(target=serve)
    server.start()
    try:
        results = [check_store(store) for _ in range(10)]
    finally:
        stop.set()
        server.join()
    assert [result.mistakes for result in results] == [()] * 10
    assert check_store(store).reports % 30 == 0
