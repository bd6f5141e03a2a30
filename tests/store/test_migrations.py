"""Migration upgrades every released schema without losing a row, even if it is killed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from survey.errors import StoreError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import open_store
from survey.store.digests import row_digest
from survey.store.migrations import statements
from survey.store.report_identities import identities_of, identity, ids_digest
from tests.conftest import ROOT, SMALL, TODAY, long_unless
from tests.store.databases import DirectAccess, PostgresqlServer
from tests.store.reports import add, keeper_at, random_reports, report

pytestmark = pytest.mark.web

SCHEMAS = Path(__file__).parent / "schemas"
KILLED_AFTER = ["CREATE TABLE counts", "CREATE TABLE invitation"]
OLDER = ["m001", "m002", "m003", "m004", "m005", "m006", "m007", "m008", "m010", "m011", "m013"]
STEPS = [
    *("m001_foundation", "m002_invitations", "m003_schedules", "m004_accounts"),
    *("m005_workspace", "m006_sealing", "m007_collaboration"),
    *("m008_pictures", "m009_release_notices", "m010_damage", "m011_sign_ins", "m012_digests"),
    *("m013_strata", "m014_short_ids", "m015_whole_ids", "m016_titles"),
]

KILLED = """
import os, signal, sys
import psycopg, sqlite_utils

def kill_after(execute):
    def wrapped(connection, statement, *others, **named):
        result = execute(connection, statement, *others, **named)
        text = statement.decode() if isinstance(statement, bytes) else statement
        if sys.argv[2] in text:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped

sqlite_utils.Database.execute = kill_after(sqlite_utils.Database.execute)
psycopg.Connection.execute = kill_after(psycopg.Connection.execute)
from survey.store import open_store
from survey.store.migrations import statements
open_store(sys.argv[1]).migrate()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request, tmp_path) -> Iterator[Callable[[], str]]:
    """Return a function that creates a database without tables and returns its URL."""
    urls: list[str] = []
    server: PostgresqlServer | None = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")

    def make() -> str:
        sqlite = f"sqlite:///{tmp_path / f'old{len(urls)}.db'}"
        urls.append(server.create("unmigrated") if server else sqlite)
        return urls[-1]

    yield make
    for url in urls:
        if server:
            server.drop(url)


@pytest.fixture
def empty(new_url) -> str:
    url: str = new_url()
    return url


def create_schema(name: str, url: str) -> None:
    """Create the tables as an older version did."""
    kind = url.partition(":")[0]
    script = (SCHEMAS / f"{kind}_{name}.sql").read_text()
    with DirectAccess(url).connection() as connection:
        if isinstance(connection, psycopg.Connection):
            connection.execute(script)
        else:
            connection.executescript(script)


def fill(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Insert rows into the tables of m001; return them by table."""
    direct_access = DirectAccess(url)
    definition = freeze(load(SMALL.encode(), "small.toml", Caps()), 1)
    direct_access.run(
        "INSERT INTO survey (key, slug, version, definition, sha256, state, changed) "
        "VALUES (?, 'small', 1, ?, ?, 'open', '2026-11-21')",
        [1, definition.canonical, definition.sha256],
    )
    direct_access.run("INSERT INTO release (survey, number, n) VALUES (1, 1, 30)")
    for number in range(30):
        direct_access.run("INSERT INTO seen VALUES (1, ?)", [number.to_bytes(16, "big")])
    for number in range(30, 37):
        direct_access.run(
            "INSERT INTO inbox VALUES (1, ?, '', ?)", [number.to_bytes(16, "big"), b"\x00\x01"]
        )
    for question in (0, 1):
        row = [1, "", "", question, 0, 30, bytes([question]) * 30]
        direct_access.run(
            "INSERT INTO block (survey, stratum, bucket, question, block, n, data) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        for place in (-1, question):
            direct_access.run("INSERT INTO counts VALUES (1, '', '', ?, ?, 30)", [question, place])
    direct_access.run("INSERT INTO researcher VALUES (1, 'ada@example.org', 'hash')")
    return rows_of(url)


def fill_later_tables(url: str, older: str) -> None:
    """Insert the rows that later steps create for those of m001."""
    if older >= "m004":
        DirectAccess(url).run("INSERT INTO admin VALUES (1)")
        DirectAccess(url).run("INSERT INTO membership VALUES ('small', 1, 'owner')")
    if older >= "m012":
        rows = DirectAccess(url).run("SELECT question, n, data FROM block")
        for question, n, data in rows:
            digest = row_digest([1, "", "", question, 0, n, bytes(data)])
            DirectAccess(url).run(
                "UPDATE block SET digest = ? WHERE question = ?", [digest, question]
            )
    if older >= "m005":
        for key, content in enumerate((DraftContent.new("Nights", "nights").to_json(), "{}"), 1):
            DirectAccess(url).run(
                "INSERT INTO draft (key, revision, who, at, content) VALUES (?, 3, 'ada', 5, ?)",
                [key, content],
            )
    if older >= "m006":
        DirectAccess(url).run("INSERT INTO pending_id (survey, id) SELECT survey, id FROM inbox")


def rows_of(url: str) -> dict[str, list[tuple[object, ...]]]:
    tables = ("inbox", "counts", "researcher")
    rows = {table: sorted(DirectAccess(url).run(f"SELECT * FROM {table}")) for table in tables}
    for table, columns in (
        ("survey", "key, slug, version, definition, sha256, state, changed"),
        ("release", "survey, number, n"),
        ("block", "question, block, n, data"),
    ):
        rows[table] = sorted(DirectAccess(url).run(f"SELECT {columns} FROM {table}"))
    return rows


def kill_migration(url: str, statement: str) -> None:
    """Migrate in a process that is killed right after a statement."""
    completed = subprocess.run(
        [sys.executable, "-c", KILLED, url, statement], cwd=ROOT, check=False
    )
    assert completed.returncode == -signal.SIGKILL


def check_it_works(url: str, keys: Path) -> None:
    store = open_store(url)
    survey = store.versions("small")[0]
    assert store.has_report(survey.key, report(3).id)
    assert store.has_report(survey.key, report(31).id)
    settings = Settings(keys=str(keys))
    assert keeper_at(store, settings).work() == 0
    store.add_invitations(survey.key, "north", [bytes(32)])
    invited = report(99, stratum="north", invitation=bytes(32))
    add(store, survey, [*random_reports(50), invited, report(31)])
    assert keeper_at(store, settings, 1).work() == 25
    store.close_survey("small", TODAY)
    # The seven unsealed reports of the older version were sealed, and the single invited one of
    # another group is too small to be published.
    assert keeper_at(store, settings, 2).work() == 32
    assert store.tally(survey.key).n == 30 + 57 == sum(store.tally(survey.key).counts[0])
    ada = store.researcher("ADA@example.org")
    assert (ada.key, ada.is_admin) == (1, True)
    assert store.roles(1) == {"small": "owner"}
    store.close_connections()


def check_digests(url: str) -> None:
    """Check that the migration has computed the digests of all older rows."""
    direct_access = DirectAccess(url)
    rows = direct_access.run("SELECT survey, stratum, bucket, question, block, n, data FROM block")
    for *place, data in rows:
        ((digest,),) = direct_access.run(
            "SELECT digest FROM block WHERE survey = ? AND stratum = ? AND bucket = ? "
            "AND question = ? AND block = ?",
            place[:5],
        )
        assert bytes(digest) == row_digest([*place, bytes(data)])
    rows = direct_access.run("SELECT survey, first, ids FROM released_ids")
    rows = [(survey, bytes(first), bytes(ids)) for survey, first, ids in rows]
    ids = [number.to_bytes(16, "big") for number in range(30)]
    assert {item for row in rows for item in identities_of(row)} == set(map(identity, ids))
    ((digest,),) = direct_access.run("SELECT ids_digest FROM release")
    assert bytes(digest) == ids_digest(rows)


def check_titles(url: str, older: str) -> None:
    """Check that the migration has filled the columns that lists of surveys and drafts show."""
    direct_access = DirectAccess(url)
    assert direct_access.run("SELECT title FROM survey") == [("A small survey",)]
    drafts = direct_access.run("SELECT key, title, short_name FROM draft ORDER BY key")
    assert drafts == ([(1, "Nights", "nights"), (2, "", "")] if older >= "m005" else [])


@pytest.mark.parametrize("older", OLDER)
def test_a_database_of_every_older_schema_is_upgraded_with_all_its_rows(empty, older, tmp_path):
    create_schema(older, empty)
    before = fill(empty)
    fill_later_tables(empty, older)
    store = open_store(empty)
    lacking = [step for step in STEPS if step[:4] > older]
    assert store.pending_migrations() == lacking
    with pytest.raises(StoreError, match=f"{', '.join(lacking)}; run: survey migrate"):
        store.surveys()
    assert store.migrate() == lacking
    store.close_connections()
    assert rows_of(empty) == before
    check_digests(empty)
    check_titles(empty, older)
    check_it_works(empty, tmp_path / "keys")


def test_a_database_of_a_newer_schema_is_refused_by_name(empty):
    store = open_store(empty)
    store.migrate()
    store.close_connections()
    if empty.startswith("sqlite"):
        DirectAccess(empty).run(
            "INSERT INTO _sqlite_migrations VALUES (99, 'survey', 'm999_new', '')"
        )
    else:
        DirectAccess(empty).run("INSERT INTO applied_migration (name) VALUES ('m999_new')")
    for use in (store.surveys, store.check_complete):
        with pytest.raises(StoreError, match="newer version: it has m999_new"):
            use()
    store.close_connections()


@pytest.mark.parametrize(
    ("older", "statement"),
    [
        pytest.param("m001", "CREATE TABLE invitation", marks=pytest.mark.long),
        pytest.param("m002", "CREATE TABLE schedule", marks=pytest.mark.long),
        pytest.param("m003", "CREATE TABLE membership", marks=pytest.mark.long),
        pytest.param("m004", "CREATE TABLE plan", marks=pytest.mark.long),
        pytest.param("m005", "CREATE TABLE pending_id", marks=pytest.mark.long),
        pytest.param("m006", "CREATE TABLE trend_note", marks=pytest.mark.long),
        pytest.param("m009", "CREATE TABLE release_failure", marks=pytest.mark.long),
        pytest.param("m011", "ALTER TABLE pending ADD COLUMN digest", marks=pytest.mark.long),
        ("m013", "CREATE TABLE released_ids"),
    ],
)
def test_an_upgrade_killed_in_the_middle_is_run_again_and_nothing_is_lost(
    empty, older, statement, tmp_path
):
    create_schema(older, empty)
    before = fill(empty)
    fill_later_tables(empty, older)
    kill_migration(empty, statement)
    assert rows_of(empty) == before
    store = open_store(empty)
    assert store.migrate() == [step for step in STEPS if step[:4] > older]
    store.close_connections()
    assert rows_of(empty) == before
    check_it_works(empty, tmp_path / "keys")


@pytest.mark.parametrize("statement", long_unless(KILLED_AFTER[:1], KILLED_AFTER))
def test_the_first_migration_killed_in_the_middle_is_run_again(empty, statement):
    kill_migration(empty, statement)
    store = open_store(empty)
    pending = store.pending_migrations()
    assert pending == (STEPS if "counts" in statement else STEPS[1:])
    assert store.migrate() == pending
    assert store.surveys() == []
    store.close_connections()


def test_migrating_twice_does_nothing_the_second_time(empty):
    store = open_store(empty)
    assert store.migrate() == STEPS
    assert store.migrate() == []
    assert store.pending_migrations() == []
    store.close_connections()


def test_two_simultaneous_migrations_create_the_tables_once(empty):
    outcomes: list[object] = []

    def migrate() -> None:
        store = open_store(empty)
        try:
            outcomes.append(store.migrate())
        except Exception as error:  # noqa: BLE001  the test reports every error
            outcomes.append(error)

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(outcome, list) for outcome in outcomes), outcomes
    assert sorted(step for steps in outcomes for step in steps) == STEPS


def test_an_upgraded_database_has_the_tables_of_a_new_one(empty, new_url):
    create_schema("m001", empty)
    fresh = new_url()
    for url in (empty, fresh):
        store = open_store(url)
        store.migrate()
        store.close_connections()
    assert shape_of(empty) == shape_of(fresh)


def test_each_step_creates_the_recorded_schema_of_its_version(new_url):
    for number, newest in enumerate(STEPS, 1):
        recorded, created = new_url(), new_url()
        create_schema(newest[:4], recorded)
        kind = created.partition(":")[0]
        for step in STEPS[:number]:
            for statement in statements(step, kind):
                DirectAccess(created).run(statement)
        assert shape_of(created) == shape_of(recorded), newest


def shape_of(url: str) -> list[tuple[object, ...]]:
    """Return the schema that the database reports, without the tables that record migrations."""
    return [row for row in _shape(url) if "migration" not in f"{row[0]}{row[1]}"]


def _shape(url: str) -> list[tuple[object, ...]]:
    if url.startswith("sqlite"):
        rows = DirectAccess(url).run("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        # Only the layout of the statements may differ.
        return sorted((name, re.sub(r"\s+|(?<=\()\s+|\s+(?=\))", " ", sql)
                       .replace("( ", "(").replace(" )", ")")) for name, sql in rows)  # fmt: skip
    return sorted(
        DirectAccess(url).run(
            "SELECT table_name, column_name, data_type, is_nullable, collation_name "
            "FROM information_schema.columns WHERE table_schema = current_schema()"
        )
        + DirectAccess(url).run("SELECT indexname, indexdef, '', '', '' FROM pg_indexes "
                           "WHERE schemaname = current_schema()")
        + DirectAccess(url).run("SELECT tgname::text, pg_get_triggerdef(oid), '', '', '' "
                           "FROM pg_trigger WHERE NOT tgisinternal")
        + DirectAccess(url).run("SELECT conname::text, pg_get_constraintdef(oid), '', '', '' "
                           "FROM pg_constraint WHERE connamespace = current_schema()::regnamespace")
        + DirectAccess(url).run("SELECT relname::text, attname::text, attstorage::text, '', '' "
                           "FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
                           "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'")
    )  # fmt: skip
