"""Every test of the store runs on both databases, unless its file names one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from survey.settings import Settings
from tests.conftest import SECRET
from tests.store.databases import KINDS, Outside, PostgresqlServer


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """A real server, started once; the extra `test` brings it, so that nothing is skipped."""
    # Not among pytest's own: another run that starts takes the server's user its way there.
    with TemporaryDirectory(prefix="survey-postgresql-") as directory:
        server = PostgresqlServer(Path(directory))
        yield server
        server.server.cleanup()


@pytest.fixture
def sqlite_settings(tmp_path: Path) -> Settings:
    return Settings(secret=SECRET, database=f"sqlite:///{tmp_path / 'survey.db'}", password_cost=1)


@pytest.fixture
def postgresql_settings(
    sqlite_settings: Settings, postgresql: PostgresqlServer
) -> Iterator[Settings]:
    url = postgresql.fresh()
    yield replace(sqlite_settings, database=url)
    postgresql.drop(url)


@pytest.fixture(params=KINDS)
def settings(request: pytest.FixtureRequest) -> Settings:
    found: Settings = request.getfixturevalue(f"{request.param}_settings")
    return found


@pytest.fixture
def outside(settings: Settings) -> Outside:
    return Outside(settings.database)
