"""Commands that end by SIGKILL in a transaction that is not committed yet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.conftest import ROOT

SCRIPT = """
import os, signal, sys
from survey.archive import consistency
from survey.cli import main
import survey.store.postgres, survey.store.sqlite
from survey.store.transactions import Transaction

left = int(sys.argv.pop(1))

def kill_during(copy_rows):
    def wrapped(transaction, table, rows):
        global left
        copy_rows(transaction, table, rows)
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return wrapped

def kill_after(write_copy):
    def wrapped(store, path, without):
        write_copy(store, path, without)
        os.kill(os.getpid(), signal.SIGKILL)
    return wrapped

for kind in Transaction.__subclasses__():
    kind.copy_rows = kill_during(kind.copy_rows)
SqliteStore = survey.store.sqlite.SqliteStore
SqliteStore.write_copy = kill_after(SqliteStore.write_copy)
consistency.PAGE = 7
main()
"""


def run_killed(commits: int, *arguments: str, **variables: str) -> None:
    """Run a command with small pages and kill it after `commits` transactions."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(commits), *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL


def check_progress(n_copied: int, total: int) -> None:
    """Check that the progress of a copy never exceeds its total."""
    assert 0 <= n_copied <= total
