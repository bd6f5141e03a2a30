"""`survey check-store` detects each changed bit of a database file that changes any content."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from survey.archive import backup, check_store
from survey.archive.copies import COPIED
from survey.errors import SurveyError
from survey.store import TABLES, Store, database_file, open_store
from survey.store.sqlite import SCHEMA_OBJECTS, STEP_COLUMNS
from tests.archive.whole_store import fill
from tests.conftest import long_unless
from tests.store.reports import add, publish_pending, random_reports

SEED = 20261128


@pytest.fixture
def file(store: Store, small, settings) -> Path:
    """Return one file with rows in all tables, without a write-ahead log."""
    fill(store, small)
    add(store, small, random_reports(200))
    publish_pending(store, small, 25)
    add(store, small, random_reports(40))
    store.vacuum()
    store.close_connections()
    path = database_file(settings.database)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows of a database, as any reader sees them."""
    with closing(sqlite3.connect(path)) as connection:
        return {t: sorted(connection.execute(f"SELECT * FROM {t}"), key=repr) for t in TABLES}


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows and the schema of a database."""
    found = rows(path)
    with closing(sqlite3.connect(path)) as connection:
        found["schema"] = sorted(connection.execute(SCHEMA_OBJECTS))
        # The layout of the statement that sqlite-utils writes is of no importance.
        found["columns of steps"] = connection.execute(STEP_COLUMNS).fetchall()
        found["steps"] = connection.execute("SELECT name FROM _sqlite_migrations").fetchall()
    return found


def is_noticed(path: Path) -> bool:
    """Return whether `survey check-store` ends with an error."""
    store = open_store(f"sqlite:///{path}")
    try:
        return bool(check_store(store).mistakes)
    except SurveyError:
        return True
    finally:
        with suppress(SurveyError, sqlite3.Error):
            store.close_connections()


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("n", long_unless([400], [400, 10_000]))
def test_every_changed_bit_is_detected_or_changes_no_readable_content(file, tmp_path, n):
    assert check_store(open_store(f"sqlite:///{file}")).mistakes == ()
    content, original = file.read_bytes(), contents(file)
    draw = random.Random(SEED)
    # Deleted rows are overwritten with zeros, so that all other bytes are in use.
    in_use = [place for place, byte in enumerate(content) if byte]
    bits = [8 * draw.choice(in_use) + draw.randrange(8) for _ in range(3 * n // 4)]
    bits += [draw.randrange(8 * len(content)) for _ in range(n // 4)]
    damaged, n_noticed, missed = tmp_path / "damaged.db", 0, []
    for bit in bits:
        damaged.write_bytes(flipped(content, bit))
        if is_noticed(damaged):
            n_noticed += 1
        else:
            now = contents(damaged)
            missed += [
                (name, set(now[name]) ^ set(original[name]))
                for name in original
                if now[name] != original[name]
            ]
    assert missed == []
    assert n_noticed > n // 2


@pytest.mark.parametrize("n", long_unless([100], [100, 2_000]))
def test_no_backup_hides_a_changed_bit(file, tmp_path, n):
    """A copy has new indexes, which agree with damaged rows."""
    content, original, draw = file.read_bytes(), rows(file), random.Random(SEED)
    # Texts of small tables, which have no digest.
    starts = [place for place in range(len(content)) if content.startswith(b"@example.org", place)]
    draws = (draw.choice(starts) + draw.randrange(8) for _ in range(n // 2))
    bits = [8 * place + draw.randrange(8) for place in draws]
    in_use = [place for place, byte in enumerate(content) if byte]
    bits += [8 * draw.choice(in_use) + draw.randrange(8) for _ in range(n // 2)]
    hidden = []
    for number, bit in enumerate(bits):
        (damaged := tmp_path / "damaged.db").write_bytes(flipped(content, bit))
        backup_file, store = tmp_path / f"{number}.db", open_store(f"sqlite:///{damaged}")
        with suppress(SurveyError):
            if not backup(store, backup_file, lambda *_: None).mistakes:
                # A restore creates its own schema.
                copied = rows(backup_file)
                hidden += [(bit, t) for t in COPIED if copied[t] != original[t]]
        with suppress(SurveyError, sqlite3.Error):
            store.close_connections()
        backup_file.unlink(missing_ok=True)
    assert hidden == []
