"""A store in one SQLite file that nobody serves from: what it holds is whole without other files.

A backup is such a file, whatever database it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from sqlite_utils import Database

from survey.errors import NotFoundError, StoreBusyError, StoreError
from survey.store.protocol import Store
from survey.store.schema import check_not_newer
from survey.store.sqlite import SqliteStore
from survey.store.sqlite_connections import connect
from survey.store.sqlite_migrations import all_steps, applied_steps
from survey.store.sqlite_transaction import named_errors


def first_step() -> str:
    """The step that makes the first tables of any store: a database that lacks it has none."""
    return all_steps()[0]


@contextmanager
def created(path: Path) -> Iterator[Store]:
    """A new store at `path`, readable by its owner alone; one file when the context has ended.

    It is for this thread alone: the file is not whole while anybody else has it open.
    """
    store = SqliteStore(path)
    try:
        store.migrate()
        yield store
    finally:
        store.close_connections()
    _leave_log(path)


def _leave_log(path: Path) -> None:
    """Take in the log beside the file, and let nobody who opens the file write one again."""
    with named_errors(), closing(connect(path)) as connection:
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if mode != ("delete",):
        raise StoreBusyError(f"{path} is open elsewhere; it must be left alone until it is whole")


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """The store in the file at `path`, which is never changed: an older one is upgraded in a copy.

    Raises NotFoundError when there is no file, StoreError when it is no store or a newer one.
    """
    if not path.is_file():
        raise NotFoundError(f"there is no file {path}")
    if _lacks_steps(path):
        with TemporaryDirectory() as directory:
            upgraded = Path(directory) / "upgraded.db"
            copyfile(path, upgraded)
            with created(upgraded) as store:
                yield store
        return
    store = SqliteStore(path)
    try:
        yield store
    finally:
        store.close_connections()


def _lacks_steps(path: Path) -> bool:
    """Whether a store is of an older schema."""
    with named_errors(), closing(Database(connect(path))) as database:
        applied = applied_steps(database)
    if not applied:
        raise StoreError(f"{path} is no store: it has none of the tables of one")
    check_not_newer(applied, all_steps(), str(path))
    return len(applied) < len(all_steps())
