"""Only the internal address serves health, readiness and metrics."""

from __future__ import annotations

import json
import socket
import struct
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


def fetch(url: str, method: str = "GET") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method=method), timeout=60
        ) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(internal: str) -> list[str]:
    """Return the lines of the metrics without the free disk, which other programs use, too."""
    status, text = fetch(f"{internal}/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if "survey_disk_free_bytes{" not in line]
    assert len(lines) == len(text.splitlines()) - 1
    return lines


@pytest.fixture
def servers(serve) -> tuple[str, str]:
    """Start a server; return its public and its internal URL."""
    port = free_port()
    public = serve("--workers", "2", SURVEY_INTERNAL=f"127.0.0.1:{port}")
    return public, f"http://127.0.0.1:{port}"


def send(public: str, survey, n: int) -> None:
    for _ in range(n):
        request = urllib.request.Request(
            f"{public}/s/small/reports",
            new_report(survey),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            assert response.status == 201


@pytest.mark.web
@pytest.mark.security
def test_arriving_and_refused_reports_change_no_metric(servers, small):
    public, internal = servers
    # The keeper serves the new survey at the latest release time, after which nothing is due.
    wait_until(lambda: "survey_release_time_seconds 0.0" not in fetch(f"{internal}/metrics")[1])
    status, body = fetch(f"{internal}/readyz")
    assert status == 200, body
    assert json.loads(body)["ready"] is True
    before = metrics(internal)
    assert 'survey_ready{check="workers"} 1.0' in before
    for n in (1, 24, 75):
        send(public, small, n)
        for _ in range(n):
            assert fetch(f"{public}/s/small/reports", "POST")[0] == 415
        assert metrics(internal) == before
    assert fetch(f"{internal}/healthz") == (200, "ok\n")
    assert fetch(f"{internal}/metrics", "POST")[0] == 405
    assert fetch(f"{internal}/elsewhere")[0] == 404


@pytest.mark.web
@pytest.mark.security
def test_metrics_and_readiness_are_not_public(servers):
    public, _ = servers
    assert fetch(f"{public}/healthz") == (200, "ok\n")
    assert {fetch(f"{public}/{name}")[0] for name in ("readyz", "metrics")} == {404}


@pytest.mark.web
def test_a_server_with_two_origins_is_ready_although_the_check_names_neither_host(serve):
    port = free_port()
    internal = f"127.0.0.1:{port}"
    url = serve(
        SURVEY_INTERNAL=internal,
        SURVEY_PUBLIC_URL="https://survey.example.org",
        SURVEY_RESEARCH_URL="https://research.example.org",
        SURVEY_TRUSTED_PROXIES="1",
    )
    assert fetch(f"http://{internal}/readyz")[0] == 200
    assert {fetch(f"{url}/{path}")[0] for path in ("", "research/sign-in", "s/none")} == {404}


@pytest.mark.web
def test_a_server_with_too_little_disk_space_is_not_ready(serve):
    port = free_port()
    serve("--workers", "1", SURVEY_INTERNAL=f"127.0.0.1:{port}", SURVEY_DISK_MINIMUM="1000000")
    status, body = fetch(f"http://127.0.0.1:{port}/readyz")
    assert status == 503
    assert json.loads(body)["disk"] == "less than 1000000 MB free"


@pytest.mark.web
def test_a_server_whose_database_cannot_be_written_is_not_ready(serve, store, settings):
    port = free_port()
    serve("--workers", "1", SURVEY_INTERNAL=f"127.0.0.1:{port}")
    with store._write():
        status, body = fetch(f"http://127.0.0.1:{port}/readyz")
    assert status == 503
    result = json.loads(body)
    assert (result["migrated"], result["writable"]) == ("ok", "no answer within 3 seconds")
    assert fetch(f"http://127.0.0.1:{port}/readyz")[0] == 200


@pytest.mark.web
def test_a_server_whose_database_lacks_a_migration_names_the_command(servers, settings):
    DirectAccess(settings.database).run("DELETE FROM _sqlite_migrations WHERE name = 'm016_titles'")
    status, body = fetch(f"{servers[1]}/readyz")
    assert status == 503
    assert json.loads(body)["migrated"] == "run: survey migrate"


@pytest.mark.web
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_internal_requests_take_no_connection_from_reports_and_releases(servers, serve, small):
    public, internal = servers
    with ThreadPoolExecutor(4) as pool:
        requests = [pool.submit(fetch, f"{internal}/readyz") for _ in range(60)]
        requests += [pool.submit(fetch, f"{internal}/metrics") for _ in range(30)]
        send(public, small, 60)
        assert {request.result()[0] for request in requests} == {200}
    process = serve.processes[0]
    process.terminate()
    assert "no release" not in process.communicate(timeout=60)[0]


@pytest.mark.web
@pytest.mark.security
def test_no_trace_of_an_interrupted_internal_connection_is_logged_with_an_address(servers, serve):
    _, internal = servers
    address = ("127.0.0.1", int(internal.rpartition(":")[2]))
    for body in (
        b"",
        b"GET /metrics HTTP/1.1\r\n",
        b"GET /metrics HTTP/1.1\r\n\r\n",
        b"\xff\r\n\r\n",
    ):
        with socket.create_connection(address, timeout=20) as connection:
            connection.sendall(body)
            # Reset the connection, as if someone had unplugged the cable.
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert fetch(f"{internal}/healthz") == (200, "ok\n")
    process = serve.processes[0]
    process.terminate()
    lines = process.communicate(timeout=60)[0].splitlines()
    assert all(json.loads(line)["event"] for line in lines)
    assert "127.0.0.1" not in "".join(lines)


def test_an_unreadable_database_is_not_ready_and_names_the_kind_of_error(tmp_path):
    # The system rejects an overlong name like a directory that the process may not enter.
    url = f"sqlite:///{tmp_path}/{'x' * 300}/survey.db"
    settings = Settings(secret=SECRET, database=url)
    store = open_store(url)
    with pytest.raises(StoreError, match="files cannot be used"):
        store.pending_migrations()
    results = checks(store, settings, f"http://127.0.0.1:{free_port()}")
    assert {name for name, check in results.items() if not check.ok} == set(results)


def test_readiness_waits_for_workers_and_database_at_the_same_time(store, settings, monkeypatch):
    """The waits overlap: the total time is that of the longest wait."""
    now = [1_000.0]

    class SilentThread:
        """A thread that waits for a database that never responds."""

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
    monkeypatch.setattr(health, "Thread", SilentThread)
    monkeypatch.setattr(health, "_workers", silent)
    assert checks(store, settings, "")["writable"].why == health.LATE
    assert now[0] == 1_000 + health.STORE_SECONDS
