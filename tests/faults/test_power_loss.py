"""A power failure loses no acknowledged report: each is on disk before its response leaves."""

from __future__ import annotations

import http.client
import re
from contextlib import closing

import pytest

from tests.faults.processes import worker_pids
from tests.faults.reports import new_report, send
from tests.system_calls import trace

SYNCING = ("fsync", "fdatasync")
ANSWERING = ("sendto", "sendmsg", "write", "writev")

ACKNOWLEDGED = re.compile(r'"HTTP/1\.1 201')
SYNCED = r"f(?:data)?sync"
ON_DISK = re.compile(rf"{SYNCED}\(\d+<[^>]*survey\.db-wal>\)\s+= 0|{SYNCED} resumed.*= 0")
"""The line of a call, complete or resumed, after which the database's log is on the disk."""


@pytest.mark.security
@pytest.mark.parametrize("reports", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_acknowledged_means_on_disk_before_any_answer_leaves(
    serve, store, small, tmp_path, reports
):
    port = int(serve().rpartition(":")[2])
    (worker,) = worker_pids(serve.processes[0].pid)
    calls = tmp_path / "calls"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with closing(connection), trace([worker], calls, SYNCING + ANSWERING):
        for _ in range(reports):
            # The requests are sequential, so the server writes one report between two responses.
            assert send(connection, small, new_report(small)).status == 201
    order = [
        "answer" if ACKNOWLEDGED.search(line) else "disk"
        for line in calls.read_text(errors="replace").splitlines()
        if ACKNOWLEDGED.search(line) or ON_DISK.search(line)
    ]
    assert order.count("answer") == reports
    for before, after in zip(["answer", *order], order, strict=False):
        assert (before, after) != ("answer", "answer"), "an answer before its report was written"
    assert order[0] == "disk"
