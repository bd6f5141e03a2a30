"""No trace (security 10): servers and proxy write to known files, and speak to nobody else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from survey.collect.invitations import issue_invitations, new_tokens
from survey.collect.publication import publish
from survey.questionnaire.native import load
from survey.settings import Caps
from tests.conftest import ROOT, SMALL, TODAY
from tests.deploy.proxy import Proxy
from tests.deploy.reached import LEAVING, reached
from tests.deploy.test_no_trace import visit, visitors
from tests.faults.processes import children_of
from tests.traced import watched

pytestmark = [pytest.mark.web, pytest.mark.security]


def all_of(*pids: int) -> list[int]:
    """These processes and all that they have started."""
    return [one for pid in pids for one in (pid, *all_of(*children_of(pid)))]


def known_in(directory: Path) -> list[str]:
    """All that may be reached, as patterns."""
    here = re.escape(str(directory))
    return [
        # The database, its log of changes, what its users share, and their places in the queue.
        rf"{here}/survey\.db(-wal|-shm|-journal|\.door|\.lock)?",
        # IntakeMetrics that workers add up, in memory where there is a directory of it.
        rf"({here}|/dev/shm)/survey-figures-\w+/\w+\.db",
        # The visitors, the proxy and the servers, all of this machine.
        r"TCP:\[127(\.\d+){3}:\d+->127(\.\d+){3}:\d+\]",
        r'connect sin_addr=inet_addr\("127\.0\.0\.1"\)',
        # What threads of one process wake each other with, and the servers' own output.
        r"anon_inode:\[eventfd\]",
        r"pipe:\[\d+\]",
    ]


@pytest.fixture
def strange(store, serve, tmp_path: Path) -> Callable[[Proxy], set[str]]:
    """What servers and proxy reach while people answer, and should not."""
    invited = f'access = "invitation"\n{SMALL}'
    survey = publish(store, load(invited.encode(), "s.toml", Caps()), TODAY)
    tokens = new_tokens(3)
    issue_invitations(store, survey, "", tokens)
    known = known_in(tmp_path)

    def look(proxy: Proxy) -> set[str]:
        seen = tmp_path / "seen"
        processes = all_of(proxy.process.pid, *(one.pid for one in serve.processes))
        with watched(processes, seen, LEAVING):
            for person in visitors(tokens):
                assert visit(proxy, survey, person)[2] == 201
        found = reached(seen)
        assert str(tmp_path / "survey.db-wal") in found, "no report was stored: this showed nothing"
        return {name for name in found if not any(re.fullmatch(one, name) for one in known)}

    return look


def test_no_trace_is_written_or_sent_anywhere_else(behind, strange, tmp_path):
    assert strange(behind(TMPDIR=str(tmp_path))) == set()


KEEPING = """
from survey.collect.intake import Intake
taken = Intake.receive
def receive(self, slug, body, today):
    with open({kept!r}, "ab") as file:
        file.write(body)
    return taken(self, slug, body, today)
Intake.receive = receive
"""


def test_a_server_that_keeps_bodies_beside_the_database_is_caught(behind, strange, tmp_path):
    kept = str(tmp_path / "kept")
    (planted := tmp_path / "planted").mkdir()
    (planted / "sitecustomize.py").write_text(KEEPING.format(kept=kept))
    assert strange(behind(servers=1, PYTHONPATH=f"{planted}:{ROOT}")) == {kept}


@pytest.mark.parametrize("to", ["127.0.0.1:5140", "unix:/dev/log"])
def test_a_proxy_that_logs_to_another_program_is_caught(behind, strange, to):
    found = strange(behind(("access_log off;", f"access_log syslog:server={to};"), servers=1))
    assert any("UDP" in one or "/dev/log" in one for one in found)
