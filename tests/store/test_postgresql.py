"""Tests of PostgreSQL alone: its server, its heaps, its log and its sessions."""

from __future__ import annotations

import builtins
import contextlib
import os
import secrets
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from survey.collect.publication import close, publish
from survey.errors import SettingsError, StoreBusyError, StoreError
from survey.questionnaire.loading import load
from survey.settings import Caps, Settings
from survey.store import StoredReport, open_store, postgres
from survey.store.report_identities import identities_of, identity
from survey.store.reports import _add
from tests.conftest import ROOT, SMALL, TODAY, wait_until
from tests.order import dependence
from tests.store.databases import PostgresqlServer
from tests.store.reports import (
    add,
    keeper_at,
    pending_reports,
    publish_pending,
    random_reports,
    report,
)
from tests.store.test_reports import REFUSED_IDS, REFUSING
from tests.store.test_sqlite import FORKING


@pytest.fixture
def settings(postgresql_settings) -> Settings:
    result: Settings = postgresql_settings
    return result


@pytest.fixture
def impatient(monkeypatch) -> None:
    """Make transactions wait for locks for a tenth of a second only."""
    monkeypatch.setitem(postgres.SESSION, "lock_timeout", "100ms")


def setting(store, name: str) -> object:
    with store._write() as transaction:
        return transaction.row(f"SHOW {name}")[0]


# -- the server


def test_the_server_is_a_recent_one_and_the_role_owns_a_schema_and_nothing_else(
    store, direct_access, settings, postgresql
):
    ((version, schema, superuser),) = direct_access.run(
        "SELECT current_setting('server_version_num')::int, current_schema(), "
        "(SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM pg_roles "
        "WHERE rolname = current_user)"
    )
    assert version >= 150_000
    assert (schema, superuser) == ("survey", False)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        direct_access.run("CREATE TABLE public.other (a int)")


@pytest.mark.security
def test_acknowledged_means_on_disk_despite_the_settings_of_the_role(store, settings, postgresql):
    with postgresql.administrator() as connection:
        name = postgresql.name(settings.database)
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    new_store = open_store(settings.database)
    try:
        assert setting(new_store, "synchronous_commit") == "on"
        assert setting(new_store, "statement_timeout") == "30s"
        assert setting(new_store, "lock_timeout") == "5s"
    finally:
        new_store.close_connections()


def test_a_postgresql_server_without_fsync_is_refused(store, settings, postgresql):
    def switch(value: str) -> None:
        with postgresql.administrator() as connection:
            connection.execute(f"ALTER SYSTEM SET fsync = {value}")
            connection.execute("SELECT pg_reload_conf()")
            # The server's processes reload the setting one by one; new sessions have it at once.
            while connection.execute("SHOW fsync").fetchone() != (value,):
                pass

    switch("off")
    try:
        with pytest.raises(StoreError, match="fsync = off"):
            open_store(settings.database).surveys()
    finally:
        switch("on")


def test_a_database_with_another_encoding_than_utf8_is_rejected(postgresql):
    name = f"test_{secrets.token_hex(6)}"
    with postgresql.administrator() as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        )
    url = postgresql.url(name)
    try:
        with pytest.raises(StoreError, match=r"encoding UTF8 \(found SQL_ASCII\)"):
            open_store(url).migrate()
    finally:
        postgresql.drop(url)


def test_connections_that_the_server_cut_are_replaced(store, small, settings, postgresql):
    add(store, small, [report(1)])
    with postgresql.administrator() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'survey'"
        )
    add(store, small, [report(2)])
    assert store.n_pending(small.key) == 2


@pytest.mark.long
def test_a_restarted_server_is_used_again_and_no_acknowledged_report_is_lost():
    with TemporaryDirectory(prefix="survey-postgresql-") as directory:
        server = PostgresqlServer(Path(directory))
        store = open_store(server.create())
        small = publish(store, load(SMALL.encode(), "small.toml", Caps()), TODAY)
        add(store, small, [report(1)])
        server.stop_immediately()
        with pytest.raises(StoreBusyError):
            store.add_reports([(small.key, report(2))])
        server.start()
        add(store, small, [report(1), report(2)])
        assert store.n_pending(small.key) == 2
        store.close_connections()
        server.server.cleanup()


def test_a_connection_that_breaks_in_a_transaction_is_busy_and_nothing_is_stored(
    store, small, postgresql, monkeypatch
):
    def break_connections(survey, content, ids, *batches):
        with store._write() as transaction:
            with postgresql.administrator() as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                    "WHERE application_name = 'survey'"
                )
            transaction.replace_pending_ids(survey, ids, [])

    add(store, small, random_reports(30))
    with monkeypatch.context() as patch:
        patch.setattr(store, "release", break_connections)
        with pytest.raises(StoreBusyError):
            publish_pending(store, small)
    assert (store.n_pending(small.key), store.n_released(small.key)) == (30, 0)
    assert publish_pending(store, small) == 30


def test_a_missing_server_is_busy(monkeypatch, tmp_path):
    store = open_store(f"postgresql://survey:hidden@/x?host={tmp_path}")
    for method in (store.surveys, store.pending_migrations, store.migrate):
        with pytest.raises(StoreBusyError) as refusal:
            method()
        assert "hidden" not in str(refusal.value)


@pytest.mark.security
def test_locked_tables_are_busy_and_nothing_is_stored(impatient, store, small, direct_access):
    with direct_access.connection() as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE pending IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusyError, match="lock timeout"):
            store.add_reports([(small.key, report(1))])
        blocker.execute("ROLLBACK")
    assert store.n_pending(small.key) == 0
    add(store, small, [report(1)])


def test_a_key_is_neither_replaced_nor_deleted_while_a_commit_seals_with_it(
    impatient, store, small
):
    """Otherwise, a report could be sealed with a key that the keeper has destroyed."""
    (key,) = (key for key in store.sealing_keys() if key.survey == small.key)
    with store._write() as transaction:
        assert list(_add(transaction, [(small.key, report(1))]).values()) == [None]
        with pytest.raises(StoreBusyError, match="lock timeout"):
            store.rotate_keys({small.key: bytes(32)}, time=0)
        with pytest.raises(StoreBusyError, match="lock timeout"):
            store.delete_keys([key])
    assert pending_reports(store, small) == [report(1)]


def test_a_commit_that_the_server_turned_into_a_rollback_is_an_error(store):
    def fail_unnoticed() -> None:
        with store._write() as transaction, contextlib.suppress(psycopg.Error):
            transaction.execute("DELETE FROM nowhere")

    with pytest.raises(StoreError, match="ROLLBACK"):
        fail_unnoticed()


def test_a_forked_child_does_not_use_connections_of_its_parent(settings, store, small):
    subprocess.run([sys.executable, "-c", FORKING, settings.database], cwd=ROOT, check=True)


def test_a_missing_schema_or_table_is_refused_with_a_remedy(postgresql, settings):
    url = postgresql.create("unmigrated")
    try:
        store = open_store(url)
        assert store.pending_migrations() == [
            "m001_foundation",
            "m002_invitations",
            "m003_schedules",
            "m004_accounts",
            "m005_workspace",
            "m006_sealing",
            "m007_collaboration",
            "m008_pictures",
            "m009_release_notices",
            "m010_damage",
            "m011_sign_ins",
            "m012_digests",
            "m013_strata",
            "m014_short_ids",
            "m015_whole_ids",
            "m016_titles",
        ]
        with pytest.raises(StoreError, match="run: survey migrate"):
            store.surveys()
        with postgresql.administrator(postgresql.name(url)) as connection:
            connection.execute("DROP SCHEMA survey")
            connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        with pytest.raises(StoreError, match="CREATE SCHEMA survey AUTHORIZATION"):
            store.migrate()
    finally:
        postgresql.drop(url)


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:hidden@[h/x", "postgresql://u:hidden@h/x?y=z", "postgresql://u:hidden@h/%0"],
)
def test_a_url_that_cannot_be_read_is_refused_without_repeating_its_password(url):
    with pytest.raises(SettingsError, match="postgresql://USER:PASSWORD@HOST/DATABASE") as refusal:
        open_store(url)
    assert "hidden" not in str(refusal.value)
    assert refusal.value.__suppress_context__


def test_without_psycopg_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def import_without_psycopg(name, *arguments, **keywords):
        if name.startswith("psycopg"):
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **keywords)

    for module in [name for name in sys.modules if name.startswith("survey.store.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", import_without_psycopg)
    with pytest.raises(SettingsError, match=r"ldp-survey\[postgresql\]"):
        open_store("postgresql://survey@host/x")


def test_a_store_on_a_file_does_not_import_psycopg():
    program = "import sys, survey.store as s; s.open_store('sqlite:///x'); print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert "survey.store.sqlite" in modules
    assert not [name for name in modules if name.startswith("psycopg")]


# -- traces in the heaps and the log


@pytest.mark.web
@pytest.mark.security
def test_no_arrival_order_is_in_the_heaps_while_others_wait(store, small, settings, direct_access):
    """Neither `ctid` (place in the heap) nor `xmin` (transaction) reveals the order of arrival."""
    n = 20_000
    reports = [StoredReport(os.urandom(16), "", bytes(2)) for _ in range(n)]
    # Reports of one commit are stored in the order of their ids: compare the commits.
    arrival = {identity(item.id): place // 100 for place, item in enumerate(reports)}
    for start in range(0, n, 100):
        add(store, small, reports[start : start + 100])
    before = direct_access.run("SELECT id FROM pending_id ORDER BY ctid")
    assert dependence(range(n), [arrival[item] for (item,) in before]) > 0.4
    assert publish_pending(store, small, 25, maximum=n // 2) == n // 2
    store.clean_up_after_release(small.key)
    pending = [item for (item,) in direct_access.run("SELECT id FROM pending_id ORDER BY ctid")]
    rows = direct_access.run("SELECT survey, first, ids FROM released_ids ORDER BY ctid")
    for identities in (pending, [item for row in rows for item in identities_of(row)]):
        assert len(identities) == n // 2
        assert dependence(range(n // 2), [arrival[item] for item in identities]) < 0.02
    assert len(direct_access.run("SELECT DISTINCT xmin::text FROM released_ids")) == 1
    close(store, "small", TODAY)
    keeper_at(store, settings, 1).work()
    assert direct_access.run("SELECT pg_relation_size('pending')") == [(0,)]


@pytest.mark.web
@pytest.mark.security
def test_after_a_release_no_invitation_reveals_its_report_or_when_it_was_spent(
    store, small, direct_access
):
    n, group_size = 10_000, 25
    tokens = [os.urandom(32) for _ in range(n + 100)]
    order = {token: place // group_size for place, token in enumerate(tokens)}
    store.add_invitations(small.key, "north", tokens)
    for start in range(0, n, group_size):
        numbers = range(start, start + group_size)
        reports = [report(i, stratum="north", invitation=tokens[i]) for i in numbers]
        add(store, small, reports)
    linked = "SELECT count(*) FROM invitation JOIN pending_id ON invitation.xmin = pending_id.xmin"
    assert direct_access.run(linked) == [(n * group_size,)]  # the link that a release removes
    assert publish_pending(store, small, 25, maximum=n // 2) == n // 2
    store.clean_up_after_release(small.key)
    assert direct_access.run(linked) == [(0,)]
    spent = direct_access.run(
        "SELECT token_hash, xmin::text FROM invitation WHERE spent = 1 ORDER BY ctid"
    )
    assert len(spent) == n
    assert len({transaction for _, transaction in spent}) == 1
    assert dependence(range(n), [order[token] for token, _ in spent]) < 0.02
    # After another report, one transaction rewrites all spent invitations again.
    add(store, small, [report(n, stratum="north", invitation=tokens[n])])
    publish_pending(store, small, 25)
    store.clean_up_after_release(small.key)
    spent = direct_access.run("SELECT DISTINCT xmin::text FROM invitation WHERE spent = 1")
    assert len(spent) == 1


@pytest.mark.security
def test_the_next_server_rewrites_the_tables_after_a_killed_release(
    store, small, settings, direct_access, monkeypatch
):
    tokens = [number.to_bytes(32, "big") for number in range(60)]
    store.add_invitations(small.key, "north", tokens)
    for number in range(60):
        add(store, small, [report(number, stratum="north", invitation=tokens[number])])
    with monkeypatch.context() as patch:  # as in a power failure
        patch.setattr(store, "clean_up_after_release", lambda survey: None)
        assert publish_pending(store, small, 25) == 60
    assert direct_access.run("SELECT pg_relation_size('pending')") != [(0,)]
    server = open_store(settings.database)
    keeper_at(server, settings).clean_up(TODAY)
    server.close_connections()
    assert direct_access.run("SELECT pg_relation_size('pending')") == [(0,)]
    assert len(direct_access.run("SELECT DISTINCT xmin::text FROM invitation WHERE spent = 1")) == 1


@pytest.mark.web
@pytest.mark.security
def test_the_server_rewrites_tables_after_a_close_that_a_reader_prevented(
    store, small, settings, direct_access
):
    add(store, small, random_reports(40))
    with direct_access.connection() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM pending, released_ids").fetchone()
        close(store, "small", TODAY)
        keeper_at(store, settings, 1).work()
        assert store.tally(small.key).n == 40
        reader.execute("ROLLBACK")
    node = direct_access.run("SELECT pg_relation_filenode('released_ids')")
    server = open_store(settings.database)
    keeper_at(server, settings).clean_up(TODAY)
    server.close_connections()
    assert direct_access.run("SELECT pg_relation_filenode('released_ids')") != node
    assert not store.has_free_pages()


def test_a_reader_does_not_block_the_clean_up_which_is_repeated_later(store, small, direct_access):
    add(store, small, random_reports(30))
    with direct_access.connection() as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM pending").fetchone()
        assert publish_pending(store, small, 25) == 30
        store.clean_up_after_release(small.key)
        reader.execute("ROLLBACK")
    assert store.has_free_pages()
    store.retry_clean_up()
    assert not store.has_free_pages()
    assert direct_access.run("SELECT pg_relation_size('pending')") == [(0,)]


def test_large_tables_are_cleaned_up_while_others_write(store, small, direct_access, monkeypatch):
    monkeypatch.setattr("survey.store.postgres.MAX_REWRITTEN_BYTES", 0)
    add(store, small, random_reports(30))
    assert publish_pending(store, small, 25) == 30
    with direct_access.connection() as writer:
        writer.execute("BEGIN")
        writer.execute("LOCK TABLE pending, pending_id IN ROW EXCLUSIVE MODE")
        store.clean_up_after_release(small.key)
        vacuumed = (
            "SELECT count(last_vacuum) FROM pg_stat_user_tables "
            "WHERE relname IN ('pending', 'pending_id')"
        )
        wait_until(lambda: direct_access.run(vacuumed) == [(2,)], 30)
        writer.execute("ROLLBACK")


@pytest.mark.security
def test_the_log_of_the_database_server_contains_nothing_of_a_report(
    impatient, store, small, direct_access, postgresql
):
    for statement in REFUSING["postgresql"]:
        direct_access.run(statement)
    secret = bytes.fromhex("c0ffee") * 5 + b"\x01"
    bad = StoredReport(REFUSED_IDS[1], "planted-stratum", b"\xee\xee")
    good = StoredReport(secret, "planted-stratum", b"\x00\x01")
    start = postgresql.log.stat().st_size
    store.add_reports([(small.key, bad), (small.key, report(1))])
    store.add_reports([(small.key, good), (small.key, good)])
    with direct_access.connection() as blocker:
        blocker.execute("BEGIN")
        blocker.execute("LOCK TABLE pending IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusyError):
            store.add_reports([(small.key, StoredReport(secret[::-1], "", b"\x00\x01"))])
        blocker.execute("ROLLBACK")
    lines = postgresql.log.read_bytes()[start:].lower()
    assert b"a page is damaged" in lines
    assert b"lock timeout" in lines
    stored = identity(secret).hex().encode()
    for trace in (b"c0ffee", b"planted", b"eeee", secret, stored):
        assert trace not in lines
