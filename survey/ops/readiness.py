"""Whether this server can take reports now: its database, its disk, its own workers."""

from __future__ import annotations

import shutil
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic

from survey.errors import SurveyError
from survey.settings import Settings
from survey.store import Store, file_of

MEGABYTE = 1_000_000
ANSWER_SECONDS = 2.0
STORE_SECONDS = 3.0
"""A database that answers no sooner is none to take reports with; whoever asks waits no longer."""

LATE = f"no answer within {STORE_SECONDS:g} seconds"


@dataclass(frozen=True)
class Check:
    """One thing that must be so; `why` says in words of ours what is not."""

    ok: bool
    why: str = ""


OK = Check(ok=True)


def checks(store: Store, settings: Settings, own_url: str) -> Mapping[str, Check]:
    """Everything that a server needs to take reports, each looked at now."""
    found: dict[str, Check] = {}
    deadline = monotonic() + STORE_SECONDS
    asking = Thread(target=_ask, args=[store, found], daemon=True)
    asking.start()
    others = {"disk": _disk(settings), "workers": _workers(own_url)}
    asking.join(max(deadline - monotonic(), 0.0))
    late = Check(ok=False, why=LATE)
    return {name: found.get(name, late) for name in OF_STORE} | others


def _ask(store: Store, found: dict[str, Check]) -> None:
    """Ask the database one thing after the other; what is told is told at once."""
    try:
        for name, look in OF_STORE.items():
            found[name] = look(store)
    finally:
        # What this thread alone opened goes with it.
        store.close_mine()


def _tried(look: Callable[[], None]) -> Check:
    try:
        look()
    except (SurveyError, OSError) as error:
        return Check(ok=False, why=type(error).__name__)
    return OK


def _migrated(store: Store) -> Check:
    try:
        pending = store.pending_migrations()
    except SurveyError as error:
        return Check(ok=False, why=type(error).__name__)
    return Check(ok=False, why="run: survey migrate") if pending else OK


OF_STORE: Mapping[str, Callable[[Store], Check]] = {
    "migrated": _migrated,
    "writable": lambda store: _tried(store.check_writable),
    "whole": lambda store: _tried(store.check_whole),
}


def free_megabytes(settings: Settings) -> int | None:
    """Free space where the database's file is; None where it is another server's disk."""
    file = file_of(settings.database)
    return None if file is None else shutil.disk_usage(_there(file)).free // MEGABYTE


def _there(file: Path) -> Path:
    """The file's folder, or the nearest one above it that is there."""
    return next(folder for folder in file.absolute().parents if folder.exists())


def _disk(settings: Settings) -> Check:
    try:
        free = free_megabytes(settings)
    except OSError as error:
        return Check(ok=False, why=type(error).__name__)
    if free is None or free >= settings.disk_minimum:
        return OK
    return Check(ok=False, why=f"less than {settings.disk_minimum} MB free")


def _workers(own_url: str) -> Check:
    # Without a proxy: a setting of the machine's must not lead a request to ourselves elsewhere.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{own_url}/healthz", timeout=ANSWER_SECONDS):
            return OK
    except OSError:
        return Check(ok=False, why="no worker answers")
