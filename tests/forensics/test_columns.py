"""No column changes with the codes of pending reports, except by fresh randomness."""

from __future__ import annotations

from dataclasses import replace

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from survey.store import StoredReport, open_store
from tests.conftest import SMALL, TODAY
from tests.forensics.mutants import MUTANTS
from tests.store.databases import KINDS, DirectAccess
from tests.store.reports import add, keeper_at

N = 30
"""Reports of which none is released yet."""

RANDOM_COLUMNS = {"pending.batch", "pending.box", "pending.digest", "sealing_key.public_key"}
"""Columns that differ between two databases with the same reports.

They contain random names, ciphertext, digests of both, and keys.
"""

TABLES = {
    "sqlite": "SELECT name, name FROM sqlite_schema WHERE type = 'table'",
    "postgresql": "SELECT tablename, tablename FROM pg_tables WHERE schemaname = 'survey'",
}

IGNORED_TABLES = {"_sqlite_migrations"}
"""Tables of the library that migrates, with the time of each step."""

Columns = dict[str, list[str]]
"""The contents of each column, sorted."""

pytestmark = [pytest.mark.security, pytest.mark.web]


@pytest.fixture(params=KINDS)
def databases(request, sqlite_settings, tmp_path):
    """Return the settings of three empty databases, each with separate keys."""
    urls = [f"sqlite:///{tmp_path / f'{name}.db'}" for name in "abc"]
    server = request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    if server:
        urls = [server.create("unmigrated") for _ in urls]
    yield [
        replace(sqlite_settings, database=url, keys=str(tmp_path / f"keys {number}"))
        for number, url in enumerate(urls)
    ]
    if server:
        for url in urls:
            server.drop(url)


def as_text(content: object) -> str:
    return content.hex() if isinstance(content, bytes) else repr(content)


def read_columns(url: str) -> Columns:
    """Read every column of every table, also of tables that nobody declared."""
    access = DirectAccess(url)
    columns: Columns = {}
    for table, _ in access.run(TABLES[url.partition(":")[0]]):
        if table in IGNORED_TABLES:
            continue
        with access.connection() as connection:
            cursor = connection.execute(f"SELECT * FROM {table}")
            rows = cursor.fetchall()
            names = [column[0] for column in cursor.description]
        for place, name in enumerate(names):
            columns[f"{table}.{name}"] = sorted(as_text(row[place]) for row in rows)
    return columns


def pending_columns(settings, codes: bytes) -> list[Columns]:
    """Read a new database with pending reports, before and after its keeper has sealed them again.

    Only the codes differ between databases.
    """
    store = open_store(settings.database)
    store.migrate()
    keeper = keeper_at(store, settings)
    keeper.work()
    survey = publish(store, load(SMALL.encode(), "small.toml", Caps()), TODAY)
    tokens = [bytes([number]) * 32 for number in range(N)]
    store.add_invitations(survey.key, "north", tokens)
    reports = [
        StoredReport(token[:16], "north", codes, token)
        if number % 2
        else StoredReport(token[:16], "", codes)
        for number, token in enumerate(tokens)
    ]
    for commit in (reports[:1], reports[1:10], reports[10:]):
        add(store, survey, commit)
    columns = [read_columns(settings.database)]
    assert keeper_at(store, settings, 1).work() == 0
    columns.append(read_columns(settings.database))
    store.close_connections()
    return columns


def lengths(contents: list[str]) -> list[int]:
    return sorted(map(len, contents))


def revealing_columns(databases) -> tuple[set[str], set[str]]:
    """Return the columns that change with the codes, and those that always change.

    A column reveals codes if it is the same in two databases with the same reports, and different
    in a third one with other codes, or if the length of its contents is.
    """
    first, second, other = databases
    states = zip(
        *(pending_columns(first, b"\0\0"), pending_columns(second, b"\0\0")),
        pending_columns(other, b"\1\2"),
        strict=True,
    )
    revealing, changing = set(), set()
    for a, b, c in states:
        for name in a:
            if a[name] != b[name]:
                changing.add(name)
            if lengths(a[name]) != lengths(c[name]) or a[name] == b[name] != c[name]:
                revealing.add(name)
    return revealing, changing


def test_no_column_changes_with_the_codes_of_pending_reports(databases):
    assert revealing_columns(databases) == (set(), RANDOM_COLUMNS)


@pytest.mark.parametrize(
    ("mutant", "columns"),
    [
        ("store_codes", {"beside.content"}),
        ("store_digest", {"beside.content"}),
        # The keeper sets these batches aside: their digests have another name.
        ("name_batches_after_codes", {"pending.batch", "damaged_batch.batch"}),
    ],
)
def test_a_column_that_changes_with_the_codes_is_detected(databases, mutant, columns, monkeypatch):
    MUTANTS[mutant](monkeypatch.setattr)
    revealing, _ = revealing_columns(databases)
    assert revealing == columns
