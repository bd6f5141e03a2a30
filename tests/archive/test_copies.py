"""Copies of a store into another database, also after interruptions."""

from __future__ import annotations

from contextlib import suppress

import pytest
from click.testing import CliRunner

from survey.archive import check, copy_store
from survey.archive.copies import COPIED, EXCLUDED
from survey.cli import main
from survey.errors import ConflictError, NotFoundError, StoreError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import TABLES, Store, open_store
from tests.archive.interruption import check_progress, run_killed
from tests.archive.whole_store import all_rows, contents, copied_rows, fill, without_boxes
from tests.conftest import SMALL, TODAY, long_unless
from tests.store.databases import KINDS, DirectAccess, PostgresqlServer
from tests.store.reports import (
    add,
    keeper_at,
    pending_reports,
    publish_pending,
    random_reports,
)


@pytest.fixture
def filled(store, small) -> Store:
    """Return a store with rows in every table."""
    fill(store, small)
    return store


def test_the_tables_and_columns_are_those_of_the_database(store, direct_access, settings):
    for table in TABLES.values():
        with direct_access.connection() as connection:
            cursor = connection.execute(f"SELECT * FROM {table.name}")
            assert tuple(column[0] for column in cursor.description) == table.column_names


def test_a_snapshot_returns_every_row_once_in_pages_of_any_size(filled):
    whole = contents(filled)
    assert all(whole.values())
    assert contents(filled, limit=1) == contents(filled, limit=7) == whole
    assert sorted(whole["released_ids"]) == whole["released_ids"]


def test_a_snapshot_does_not_contain_later_rows(filled, small):
    before = contents(filled)
    with filled.snapshot() as snapshot:
        assert all_rows(snapshot, "survey", 10) == before["survey"]
        add(filled, small, random_reports(30))
        publish_pending(filled, small, 25)
        for table in TABLES:
            assert all_rows(snapshot, table, 10) == before[table]
    assert contents(filled) != before


@pytest.fixture(params=KINDS)
def empty(request, tmp_path, postgresql: PostgresqlServer):
    """Return a migrated store of either kind without rows, and its URL."""
    url = f"sqlite:///{tmp_path / 'copy.db'}"
    if request.param == "postgresql":
        url = postgresql.create("unmigrated")
    store = open_store(url)
    store.migrate()
    yield store, url
    store.close_connections()
    if request.param == "postgresql":
        postgresql.drop(url)


@pytest.fixture
def target(tmp_path):
    """Return a migrated SQLite store without rows, and its URL."""
    url = f"sqlite:///{tmp_path / 'target.db'}"
    store = open_store(url)
    store.migrate()
    yield store, url
    store.close_connections()


def test_a_copy_of_all_rows_is_equal_and_copying_again_is_refused(filled, small, empty):
    copy, url = empty
    whole = contents(filled)
    for table, rows in whole.items():
        copy.insert_rows(table, iter(rows))
    with pytest.raises(StoreError):
        copy.insert_rows("counts", whole["counts"])
    assert contents(copy) == whole
    assert copy.surveys() == filled.surveys()
    assert copy.tally(small.key) == filled.tally(small.key)
    assert copy.tallies(small.key) == filled.tallies(small.key)
    # The copy accepts new rows and continues the numbers of the original.
    copy.add_researcher("bob@example.org", "hash")
    add(copy, small, random_reports(30))
    assert publish_pending(copy, small, 25)
    assert DirectAccess(url).run("SELECT max(key) FROM researcher") == [(2,)]


def test_one_invalid_row_rejects_the_whole_insert(filled, small):
    before = contents(filled)
    good = (small.key, b"\xaa" * 16)
    with pytest.raises(StoreError):
        filled.insert_rows("counts", [(small.key, "", "", 0, 0, 5), (99, "", "", 0, 0, 5)])
    with pytest.raises(NotFoundError, match="sqlite_master"):
        filled.insert_rows("sqlite_master", [good])
    with filled.snapshot() as snapshot, pytest.raises(NotFoundError, match="pg_authid"):
        snapshot.rows("pg_authid", None, 1)
    assert contents(filled) == before


def test_copied_rows_are_rolled_back_with_their_transaction(filled, empty):
    copy, _ = empty
    whole = contents(filled)
    with suppress(ZeroDivisionError), copy._write() as transaction:
        transaction.copy_rows(TABLES["survey"], whole["survey"])
        raise ZeroDivisionError
    assert contents(copy)["survey"] == []


def test_every_table_is_either_copied_or_excluded(sqlite_settings):
    store = open_store(sqlite_settings.database)
    store.migrate()
    with store._lookup() as transaction:
        rows = transaction.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
    store.close_connections()
    names = {name for (name,) in rows} - {"_sqlite_migrations", "sqlite_sequence"}
    assert sorted((*COPIED, *EXCLUDED)) == sorted(names)
    assert COPIED[-1] == "release"


def test_a_copied_store_has_every_row_but_sessions_and_continues_the_original(
    filled, small, settings, empty, keys
):
    copy, _ = empty
    progress = []
    result = copy_store(
        filled, copy, keys, lambda n_copied, total: progress.append((n_copied, total))
    )
    assert (result.surveys, result.reports, result.mistakes) == (1, 44, ())
    assert without_boxes(contents(copy)) == without_boxes(copied_rows(filled))
    assert progress == sorted(progress)
    n_rows = sum(len(rows) for rows in without_boxes(copied_rows(filled)).values())
    assert progress[-1] == (n_rows, n_rows)
    resent = pending_reports(filled, small)
    add(copy, small, [*resent, *random_reports(40)])
    assert copy.n_pending(small.key) == filled.n_pending(small.key) + 40
    copy.close_survey("small", TODAY)
    # With the unsealed report, and without the single report of another link.
    assert keeper_at(copy, settings, 1).work() == 56
    assert copy.tally(small.key).n == 44 + 56


@pytest.mark.parametrize("settings", long_unless(["sqlite"], KINDS), indirect=True)
@pytest.mark.parametrize("empty", long_unless(["postgresql"], KINDS), indirect=True)
def test_a_killed_copy_continues_and_ends_equal_to_the_source(filled, settings, empty, keys):
    copy, url = empty
    whole, before = without_boxes(copied_rows(filled)), 0
    for commits in (1, 6):
        run_killed(commits, "copy-store", settings.database, url, SURVEY_KEYS=settings.keys)
        half = without_boxes(contents(copy))
        # The copy has the rows of committed transactions and none of the interrupted one.
        n_rows = sum(len(rows) for rows in half.values())
        assert n_rows > before
        assert all(set(rows) <= set(whole[table]) for table, rows in half.items())
        assert half["release"] == []
        before = n_rows
    copy_store(filled, copy, keys, check_progress)
    assert without_boxes(contents(copy)) == whole


def test_an_interrupted_copy_is_not_accepted_as_a_store(filled, settings, target, keys):
    copy, url = target
    run_killed(5, "copy-store", settings.database, url, SURVEY_KEYS=settings.keys)
    with copy.snapshot() as snapshot:
        assert "copy or a restore into this database was interrupted" in check(snapshot).mistakes[0]
    with pytest.raises(StoreError, match="interrupted"):
        copy_store(copy, filled, keys, check_progress)
    keeper = keeper_at(copy, settings, 1)
    for use in (copy.check_complete, keeper.work, keeper.take_over, keeper.unused_keys):
        with pytest.raises(StoreError, match="interrupted"):
            use()
    refused = CliRunner().invoke(
        main, ["serve"], env={"SURVEY_DATABASE": url, "SURVEY_SECRET": settings.secret}
    )
    assert refused.exit_code == 1
    assert "the database is incomplete" in refused.stderr
    copy_store(filled, copy, keys, check_progress)
    copy.check_complete()


def test_a_database_without_tables_is_migrated_first(filled, tmp_path, postgresql, keys):
    for url in (f"sqlite:///{tmp_path / 'new.db'}", postgresql.create("unmigrated")):
        copy = open_store(url)
        copy_store(filled, copy, keys, check_progress)
        assert without_boxes(contents(copy)) == without_boxes(copied_rows(filled))
        copy.close_connections()
        if url.startswith("postgresql"):
            postgresql.drop(url)


def test_copying_an_equal_store_changes_nothing(filled, target, keys):
    copy, _ = target
    for _ in range(2):
        copy_store(filled, copy, keys, check_progress)
    assert without_boxes(contents(copy)) == without_boxes(copied_rows(filled))


def test_another_instances_database_is_rejected_and_unchanged(filled, target, keys):
    target_store, _ = target
    definition = load(SMALL.replace('"small"', '"other"').encode(), "other.toml", Caps())
    target_store.publish(freeze(definition, 1), TODAY)
    before = contents(target_store)
    with pytest.raises(ConflictError, match=r'"survey" has rows that the source does not have'):
        copy_store(filled, target_store, keys, check_progress)
    assert contents(target_store) == before


@pytest.mark.parametrize("settings", long_unless(["sqlite"], KINDS), indirect=True)
@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("researcher", "INSERT INTO researcher VALUES (9, 'eve@example.org', 'hash')"),
        ("inbox", "UPDATE inbox SET stratum = 'elsewhere'"),
        ("pending", "UPDATE pending SET stratum = 'elsewhere'"),
        ("released_ids", "INSERT INTO released_ids SELECT survey, codes, codes FROM inbox"),
        ("release", "UPDATE release SET n = n + 1"),
        ("counts", "UPDATE counts SET option = option + 100"),
        ("invitation", "UPDATE invitation SET spent = 1"),
        ("survey", "UPDATE survey SET state = 'closed'"),
        ("login_session", "INSERT INTO login_session SELECT first, 1, 5, 5 FROM released_ids"),
    ],
)
def test_a_target_with_other_rows_is_rejected(filled, target, table, statement, keys):
    target_store, url = target
    copy_store(filled, target_store, keys, check_progress)
    DirectAccess(url).run(statement)
    before = contents(target_store)
    with pytest.raises(ConflictError, match=f'its table "{table}" has rows'):
        copy_store(filled, target_store, keys, check_progress)
    assert contents(target_store) == before


@pytest.mark.parametrize("settings", long_unless(["sqlite"], KINDS), indirect=True)
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM invitation WHERE token_hash = NEW.token_hash",
        "UPDATE invitation SET stratum = 'elsewhere' WHERE token_hash = NEW.token_hash",
    ],
)
def test_a_row_that_the_target_does_not_store_as_it_was_written_makes_the_copy_fail(
    filled, target, change, keys
):
    copy, url = target
    DirectAccess(url).run(f"CREATE TRIGGER faulty AFTER INSERT ON invitation BEGIN {change}; END")
    with pytest.raises(StoreError, match=r'differs from what was written: its table "invitation"'):
        copy_store(filled, copy, keys, check_progress)


def test_reports_that_arrive_during_a_copy_make_it_fail(filled, small, target, keys):
    copy, _ = target
    before = copied_rows(filled)
    late = random_reports(3)

    def watch(n_copied: int, total: int) -> None:
        if n_copied == total:
            add(filled, small, late)

    with pytest.raises(ConflictError, match=r'changed while it was copied \(its table "pending"\)'):
        copy_store(filled, copy, keys, watch)
    # The copy has every report stored before it began, and the source has lost none.
    assert without_boxes(contents(copy)) == without_boxes(before)
    assert all(filled.has_report(small.key, item.id) for item in late)
    # When the source no longer changes, a second run copies the remaining reports.
    copy_store(filled, copy, keys, check_progress)
    assert without_boxes(contents(copy)) == without_boxes(copied_rows(filled))


@pytest.mark.long
def test_a_source_with_a_release_since_the_interrupted_copy_is_rejected(
    filled, small, settings, target, keys
):
    copy, url = target
    run_killed(5, "copy-store", settings.database, url, SURVEY_KEYS=settings.keys)
    publish_pending(filled, small, 1)
    half = contents(copy)
    with pytest.raises(ConflictError, match="a copy of an earlier state"):
        copy_store(filled, copy, keys, check_progress)
    assert contents(copy) == half


def test_an_inconsistent_source_is_not_copied(filled, direct_access, target, keys):
    copy, _ = target
    direct_access.run("UPDATE counts SET n = n + 1 WHERE option = 1")
    with pytest.raises(StoreError, match=r"contradicts itself .*the counts say"):
        copy_store(filled, copy, keys, check_progress)
    assert not any(contents(copy).values())
