"""Commands that are killed: SIGKILL in a transaction that is not yet committed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.conftest import ROOT

KILLED = """
import os, signal, sys
from survey.archive import consistency
from survey.cli import main
from survey.store.postgres import PostgresTransaction
from survey.store.sqlite import SqliteTransaction

left = int(sys.argv.pop(1))

def dying(execute_many):
    def wrapped(transaction, statement, rows):
        global left
        affected = execute_many(transaction, statement, rows)
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return affected
    return wrapped

for kind in (PostgresTransaction, SqliteTransaction):
    kind.execute_many = dying(kind.execute_many)
consistency.PAGE = 7
main()
"""


def killed(commits: int, *arguments: str, **variables: str) -> None:
    """Run a command that writes a few rows at once; kill it after so many transactions."""
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(commits), *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL


def ignored(done: int, total: int) -> None:
    """Somebody who watches a copy and minds only that what is done is a part of all."""
    assert 0 <= done <= total
