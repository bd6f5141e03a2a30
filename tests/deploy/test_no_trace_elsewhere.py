"""No trace (security 10): servers and proxy write only to known files and addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from survey.collect.invitations import issue_invitations, new_tokens
from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.conftest import ROOT, SMALL, TODAY
from tests.deploy.proxy import Proxy
from tests.deploy.test_no_trace import visit, visitors
from tests.faults.processes import child_pids
from tests.system_calls import OUTPUT_CALLS, output_targets, trace

pytestmark = [pytest.mark.web, pytest.mark.security]


def process_trees(*pids: int) -> list[int]:
    """Return these processes and all their descendants."""
    return [member for pid in pids for member in (pid, *process_trees(*child_pids(pid)))]


def internal_socket_pairs(processes: Sequence[int]) -> set[str]:
    """Return the names in strace of all pairs of sockets that these processes have open.

    An event loop writes to such a pair when another thread wakes it.
    """
    sockets = set()
    for pid in processes:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                sockets |= set(re.findall(r"^socket:\[(\d+)\]$", str(descriptor.readlink())))
    return {f"UNIX-STREAM:[{a}->{b}]" for a in sockets for b in sockets}


def allowed_targets(directory: Path) -> list[str]:
    """Return patterns of all permitted targets."""
    root = re.escape(str(directory))
    return [
        # The database, its write-ahead log, its shared memory and its lock files.
        rf"{root}/survey\.db(-wal|-shm|-journal|\.door|\.lock|\.use)?",
        # Private keys, which the keeper makes and destroys, and its lock file.
        rf"{root}/keys/([0-9a-f]{{64}}\.key|lock)",
        # Visitors, proxy and servers on this machine.
        r"TCP:\[127(\.\d+){3}:\d+->127(\.\d+){3}:\d+\]",
        r'connect sin_addr=inet_addr\("127\.0\.0\.1"\)',
        # Wake-ups between threads, and the servers' output.
        r"anon_inode:\[eventfd\]",
        r"pipe:\[\d+\]",
    ]


@pytest.fixture
def forbidden_targets(store, serve, tmp_path: Path) -> Callable[[Proxy], set[str]]:
    """Return a function that lists the targets which servers and proxy must not write to."""
    definition = f'access = "invitation"\n{SMALL}'
    survey = publish(store, load(definition.encode(), "s.toml", Caps()), TODAY)
    tokens = new_tokens(3)
    issue_invitations(store, survey, "", tokens)
    allowed = allowed_targets(tmp_path)

    def watch(proxy: Proxy) -> set[str]:
        calls = tmp_path / "calls"
        processes = process_trees(proxy.process.pid, *(server.pid for server in serve.processes))
        with trace(processes, calls, OUTPUT_CALLS):
            for person in visitors(tokens):
                assert visit(proxy, survey, person)[2] == 201
            allowed_pairs = internal_socket_pairs(processes)
        targets = output_targets(calls)
        assert str(tmp_path / "survey.db-wal") in targets, (
            "no report was stored, so the test is void"
        )
        return {
            target
            for target in targets - allowed_pairs
            if not any(re.fullmatch(pattern, target) for pattern in allowed)
        }

    return watch


def test_no_trace_is_written_or_sent_anywhere_else(start_proxy, forbidden_targets, tmp_path):
    assert forbidden_targets(start_proxy(TMPDIR=str(tmp_path))) == set()


BODY_LOGGER = """
from survey.collect.incoming_reports import Intake
original = Intake.receive
def receive(self, slug, body, today):
    with open({target!r}, "ab") as file:
        file.write(body)
    return original(self, slug, body, today)
Intake.receive = receive
"""


def test_the_trace_detects_a_server_that_stores_bodies_in_a_file(
    start_proxy, forbidden_targets, tmp_path
):
    target = str(tmp_path / "bodies")
    (planted := tmp_path / "planted").mkdir()
    (planted / "sitecustomize.py").write_text(BODY_LOGGER.format(target=target))
    assert forbidden_targets(start_proxy(servers=1, PYTHONPATH=f"{planted}:{ROOT}")) == {target}


@pytest.mark.parametrize("address", ["127.0.0.1:5140", "unix:/dev/log"])
def test_the_trace_detects_a_proxy_that_logs_to_another_program(
    start_proxy, forbidden_targets, address
):
    targets = forbidden_targets(
        start_proxy(("access_log off;", f"access_log syslog:server={address};"), servers=1)
    )
    assert any("UDP" in target or "/dev/log" in target for target in targets)
