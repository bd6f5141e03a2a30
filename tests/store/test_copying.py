"""The contract of a store, on both databases: whole tables are read from one state and written."""

from __future__ import annotations

import pytest

from survey.errors import NotFoundError, StoreError
from survey.store import TABLES, Row, Store, open_store
from tests.store.databases import Outside, PostgresqlServer
from tests.store.reports import add, random_reports, report, side_by_side


@pytest.fixture
def filled(store, small) -> Store:
    """A store with rows in every table."""
    tokens = [number.to_bytes(32, "big") for number in range(10)]
    store.add_invitations(small.key, "north", tokens)
    invited = [report(n, stratum="north", invitation=tokens[n]) for n in range(4)]
    add(store, small, [*random_reports(40), *invited])
    store.release(small.key, 20, side_by_side, bucket="2026-W47", most=30)
    store.add_researcher("ada@example.org", "hash")
    store.start_session(b"token", store.researcher("ada@example.org").key, 5, 100)
    return store


def pages(snapshot, table: str, limit: int) -> list[Row]:
    """All rows of a table, read in portions."""
    rows: list[Row] = []
    places = [TABLES[table].columns.index(column) for column in TABLES[table].key]
    after = None
    while page := snapshot.rows(table, after, limit):
        assert len(page) <= limit
        rows += page
        after = tuple(page[-1][place] for place in places)
    return rows


def contents(store, limit: int = 1000) -> dict[str, list[Row]]:
    with store.snapshot() as snapshot:
        return {table: pages(snapshot, table, limit) for table in TABLES}


def test_the_tables_and_columns_are_those_of_the_database(store, outside, settings):
    for table in TABLES.values():
        with outside.connection() as connection:
            cursor = connection.execute(f"SELECT * FROM {table.name}")
            assert tuple(column[0] for column in cursor.description) == table.columns


def test_a_snapshot_gives_every_row_once_in_portions_of_any_size(filled):
    whole = contents(filled)
    assert all(whole.values())
    assert contents(filled, limit=1) == contents(filled, limit=7) == whole
    assert sorted(whole["inbox"]) == whole["inbox"]


def test_a_snapshot_does_not_see_what_comes_later(filled, small):
    before = contents(filled)
    with filled.snapshot() as snapshot:
        assert pages(snapshot, "survey", 10) == before["survey"]
        add(filled, small, random_reports(30))
        filled.release(small.key, 25, side_by_side)
        for table in TABLES:
            assert pages(snapshot, table, 10) == before[table]
    assert contents(filled) != before


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request, tmp_path, postgresql: PostgresqlServer):
    """A migrated store of either kind without any rows, and its url."""
    url = f"sqlite:///{tmp_path / 'copy.db'}"
    if request.param == "postgresql":
        url = postgresql.fresh()
    store = open_store(url)
    store.migrate()
    yield store, url
    store.close_connections()
    if request.param == "postgresql":
        postgresql.drop(url)


def test_a_copy_of_all_rows_is_the_same_store_and_copying_again_changes_nothing(
    filled, small, empty
):
    copy, url = empty
    whole = contents(filled)
    for _ in range(2):
        for table, rows in whole.items():
            copy.insert_rows(table, iter(rows))
    assert contents(copy) == whole
    assert copy.surveys() == filled.surveys()
    assert copy.tally(small.key) == filled.tally(small.key)
    assert copy.tallies(small.key) == filled.tallies(small.key)
    # It goes on working: what comes next gets the next numbers.
    copy.add_researcher("bob@example.org", "hash")
    add(copy, small, random_reports(30))
    assert copy.release(small.key, 25, side_by_side)
    assert Outside(url).run("SELECT max(key) FROM researcher") == [(2,)]


def test_rows_that_contradict_the_tables_are_refused_together(filled, small):
    before = contents(filled)
    good = (small.key, b"\xaa" * 16)
    with pytest.raises(StoreError):
        filled.insert_rows("counts", [(small.key, "", "", 0, 0, 5), (99, "", "", 0, 0, 5)])
    with pytest.raises(NotFoundError, match="sqlite_master"):
        filled.insert_rows("sqlite_master", [good])
    with filled.snapshot() as snapshot, pytest.raises(NotFoundError, match="pg_authid"):
        snapshot.rows("pg_authid", None, 1)
    assert contents(filled) == before
