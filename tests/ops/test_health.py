"""Health, readiness and figures stand on an address inside, and only there."""

from __future__ import annotations

import json
import socket
import struct
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from survey.errors import StoreError
from survey.ops import health
from survey.ops.health import checks
from survey.settings import Settings
from survey.store import open_store
from tests.conftest import SECRET, free_port, wait_until
from tests.faults.reports import new_report
from tests.store.databases import DirectAccess
from tests.store.writers import has_waiting_writer

HELD = 1.0
"""Seconds for which somebody else keeps the database, below those after which one gives up."""


def asked(url: str, method: str = "GET") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def inside(serve) -> tuple[str, str]:
    """A server's addresses, outside and inside."""
    port = free_port()
    outside = serve("--workers", "2", SURVEY_INTERNAL=f"127.0.0.1:{port}")
    return outside, f"http://127.0.0.1:{port}"


def figures(url: str) -> dict[str, float]:
    lines = asked(f"{url}/metrics")[1].splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


MACHINES = ("survey_disk_free_bytes ", "survey_ready{")
"""Figures that other programs of the machine change."""


def counted(url: str) -> list[str]:
    """All lines of the figures but those of the machine itself."""
    lines = asked(f"{url}/metrics")[1].splitlines()
    assert all(any(line.startswith(name) for line in lines) for name in MACHINES)
    return [line for line in lines if not line.startswith(MACHINES)]


def send(outside: str, survey, n: int) -> None:
    for _ in range(n):
        request = urllib.request.Request(
            f"{outside}/s/small/reports",
            new_report(survey),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 201


@pytest.mark.web
@pytest.mark.security
def test_metrics_of_several_workers_add_up_in_steps(inside, small):
    outside, within = inside
    status, said = asked(f"{within}/readyz")
    assert status == 200, said
    assert json.loads(said)["ready"] is True
    before = counted(within)
    send(outside, small, 20)
    assert counted(within) == before
    send(outside, small, 80)
    found = figures(within)
    accepted = found["survey_reports_accepted_total"]
    assert accepted >= 50
    assert found["survey_commit_reports_sum"] == accepted
    assert found['survey_ready{check="workers"}'] == 1
    assert asked(f"{within}/healthz") == (200, "ok\n")
    assert asked(f"{within}/metrics", "POST")[0] == 405
    assert asked(f"{within}/elsewhere")[0] == 404


@pytest.mark.web
@pytest.mark.security
def test_metrics_and_readiness_are_not_public(inside):
    outside, _ = inside
    assert asked(f"{outside}/healthz") == (200, "ok\n")
    assert {asked(f"{outside}/{name}")[0] for name in ("readyz", "metrics")} == {404}


@pytest.mark.web
def test_a_server_with_too_little_disk_space_is_not_ready(serve):
    port = free_port()
    serve("--workers", "1", SURVEY_INTERNAL=f"127.0.0.1:{port}", SURVEY_DISK_MINIMUM="1000000")
    status, said = asked(f"http://127.0.0.1:{port}/readyz")
    assert status == 503
    assert json.loads(said)["disk"] == "less than 1000000 MB free"


@pytest.mark.web
def test_a_server_whose_database_cannot_be_written_is_not_ready(serve, store, settings):
    port = free_port()
    serve("--workers", "1", SURVEY_INTERNAL=f"127.0.0.1:{port}")
    with store._write():
        status, said = asked(f"http://127.0.0.1:{port}/readyz")
    assert status == 503
    told = json.loads(said)
    assert (told["migrated"], told["writable"]) == ("ok", "no answer within 3 seconds")
    assert asked(f"http://127.0.0.1:{port}/readyz")[0] == 200


@pytest.mark.web
def test_a_server_whose_database_lacks_a_migration_names_the_command(inside, settings):
    DirectAccess(settings.database).run(
        "DELETE FROM _sqlite_migrations WHERE name = 'm005_workspace'"
    )
    status, said = asked(f"{inside[1]}/readyz")
    assert status == 503
    assert json.loads(said)["migrated"] == "run: survey migrate"


@pytest.mark.web
def test_refusals_and_the_queue_behind_a_commit_are_metrics(inside, store, small):
    """25 of one kind together, none before; what waits while somebody holds the database."""
    address, within = inside
    refused = "survey_reports_refused_total"
    for _ in range(24):
        assert asked(f"{address}/s/small/reports", "POST")[0] == 415
    assert refused not in asked(f"{within}/metrics")[1]
    for _ in range(26):
        assert asked(f"{address}/s/small/reports", "POST")[0] == 415
    # Of two workers one has had as many as a step, at least.
    assert sum(n for name, n in figures(within).items() if name.startswith(refused)) >= 25
    with ThreadPoolExecutor(40) as pool:
        with store._write():
            sent = [pool.submit(send, address, small, 1) for _ in range(40)]
            wait_until(lambda: has_waiting_writer(store.path))
            time.sleep(HELD)  # a commit waits meanwhile, and others come to wait behind it
        assert [one.result() for one in sent] == [None] * 40
    send(address, small, 60)
    told = figures(within)
    assert told["survey_commit_queue_sum"] > 0
    assert told["survey_commit_seconds_sum"] > HELD / 2


@pytest.mark.web
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_internal_requests_take_no_connection_from_reports_and_releases(inside, serve, small):
    outside, within = inside
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(asked, f"{within}/readyz") for _ in range(60)]
        asking += [pool.submit(asked, f"{within}/metrics") for _ in range(30)]
        send(outside, small, 60)
        assert {one.result()[0] for one in asking} == {200}
    process = serve.processes[0]
    process.terminate()
    assert "no release" not in process.communicate(timeout=60)[0]


@pytest.mark.web
@pytest.mark.security
def test_no_trace_of_who_asks_inside_and_goes_away_in_a_line_with_an_address(inside, serve):
    _, within = inside
    address = ("127.0.0.1", int(within.rpartition(":")[2]))
    for said in (
        b"",
        b"GET /metrics HTTP/1.1\r\n",
        b"GET /metrics HTTP/1.1\r\n\r\n",
        b"\xff\r\n\r\n",
    ):
        with socket.create_connection(address, timeout=20) as connection:
            connection.sendall(said)
            # Closed with a reset, as by somebody who pulled the cable.
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert asked(f"{within}/healthz") == (200, "ok\n")
    process = serve.processes[0]
    process.terminate()
    lines = process.communicate(timeout=60)[0].splitlines()
    assert all(json.loads(line)["event"] for line in lines)
    assert "127.0.0.1" not in "".join(lines)


def test_an_unreadable_database_is_not_ready_and_names_the_kind_of_error(tmp_path):
    # The system refuses so long a name, as it does a folder that may not be entered.
    url = f"sqlite:///{tmp_path}/{'x' * 300}/survey.db"
    settings = Settings(secret=SECRET, database=url)
    store = open_store(url)
    with pytest.raises(StoreError, match="files cannot be used"):
        store.pending_migrations()
    found = checks(store, settings, f"http://127.0.0.1:{free_port()}")
    assert {name for name, check in found.items() if not check.ok} == set(found)


def test_readiness_waits_for_workers_and_database_at_the_same_time(store, settings, monkeypatch):
    """Each wait beside the other, on a clock that goes on while one waits."""
    now = [1_000.0]

    class Silent:
        """What asks a database that does not answer."""

        def __init__(self, **_: object) -> None:
            pass

        def start(self) -> None:
            pass

        def join(self, seconds: float) -> None:
            now[0] += seconds

    def silent(_: str) -> health.Check:
        now[0] += health.ANSWER_SECONDS
        return health.OK

    monkeypatch.setattr(health, "monotonic", lambda: now[0])
    monkeypatch.setattr(health, "Thread", Silent)
    monkeypatch.setattr(health, "_workers", silent)
    assert checks(store, settings, "")["writable"].why == health.LATE
    assert now[0] == 1_000 + health.STORE_SECONDS
