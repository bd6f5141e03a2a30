"""One process of low priority answers researchers' requests, and respondents do not wait for it."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import threading
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from werkzeug.test import Client

from survey.hosts import Host, hosts_of
from survey.research import MAX_UPLOAD_BYTES
from survey.research_process import NICENESS, answer_requests
from survey.research_relay import MAX_RELAYED, PATHS, Relay
from tests.benchmarks import readers
from tests.conftest import EMAIL, PASSWORD, wait_until, wait_until_up
from tests.faults.processes import child_pids
from tests.faults.reports import new_report, send
from tests.web.researchers import sign_in


def refuse(_environ, _start_response):
    raise AssertionError("a worker answered a researcher's request")


@contextmanager
def answering(app, path: Path):
    """Answer requests at a socket in a thread, as the process does."""
    source, target = os.pipe()
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=answer_requests, args=[app, listener, source])
        thread.start()
        try:
            yield
        finally:
            os.close(target)
            thread.join(30)
            os.close(source)
    assert not thread.is_alive()


def test_exactly_the_routes_that_serve_researchers_only_are_passed_on(app):
    for rule in app.url_map.iter_rules():
        is_passed_on = rule.rule.startswith(PATHS)
        assert is_passed_on == (hosts_of(rule.endpoint) == {Host.RESEARCHERS}), rule.endpoint


def test_a_request_that_is_passed_on_gets_the_same_response(app, researcher, tmp_path):
    direct = app.test_client()
    form = {"email": EMAIL, "password": PASSWORD}
    too_large = {"input_stream": BytesIO(b""), "content_length": MAX_UPLOAD_BYTES + 1}
    requests = (
        ("GET", "/research/sign-in", {}),
        ("HEAD", "/research/sign-in", {}),
        ("GET", "/research/%C3%A4?q=%C3%A4", {}),
        ("GET", "/api/v1/surveys", {"headers": {"Accept": "application/json"}}),
        ("POST", "/research/sign-in", {"data": form}),
        ("POST", "/research/sign-in", {**too_large, "content_type": "multipart/form-data"}),
    )
    with answering(app, tmp_path / "socket"):
        passed_on = Client(Relay(refuse, str(tmp_path / "socket")))
        for method, address, content in requests:
            expected = direct.open(address, method=method, **content)
            response = passed_on.open(address, method=method, **content)
            assert response.status == expected.status, address
            lengths = {r.headers.get("Content-Length") for r in (response, expected)}
            assert len(lengths) == 1, address
            assert {name for name, _ in response.headers} == {n for n, _ in expected.headers}


def test_a_researcher_signs_in_through_the_relay_which_passes_on_no_variable_of_the_server(
    app, researcher, tmp_path
):
    direct, passed_on = app.wsgi_app, []

    def note(environ, start_response):
        passed_on.append(environ)
        return direct(environ, start_response)

    with answering(note, tmp_path / "socket"):
        app.wsgi_app = Relay(refuse, str(tmp_path / "socket"))
        client = app.test_client()
        client.environ_base = {"REMOTE_ADDR": "192.0.2.1", "HOME": "/root"}
        assert sign_in(client).location == "/research/"
        assert client.get("/research/account").status_code == 200
    assert {environ["REMOTE_ADDR"] for environ in passed_on} == {"192.0.2.1"}
    assert not any("HOME" in environ for environ in passed_on)


def test_a_worker_answers_503_if_the_process_is_gone_or_has_too_many_requests(app, tmp_path):
    waiting, go_on = threading.Semaphore(0), threading.Event()

    def wait(environ, start_response):
        waiting.release()
        go_on.wait(30)
        start_response("204 No Content", [])
        return []

    direct, path = app.wsgi_app, tmp_path / "socket"
    client = Client(Relay(direct, str(path)))
    gone = client.get("/research/sign-in")
    with answering(wait, path):
        clients = [
            threading.Thread(target=client.get, args=["/research/"]) for _ in range(MAX_RELAYED)
        ]
        for thread in clients:
            thread.start()
        for _ in clients:
            assert waiting.acquire(timeout=30)
        full = client.get("/api/v1/surveys")
        go_on.set()
        for thread in clients:
            thread.join(30)
        assert client.get("/research/").status_code == 204
    for response in (gone, full):
        assert response.status_code == 503
        assert "try again in a few seconds" in response.text
        assert response.headers["Retry-After"]


def research_pids(server: int) -> list[int]:
    """Return the ids of the processes that answer researchers' requests."""
    pids = []
    for pid in child_pids(server):
        with suppress(OSError):
            if b"research_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                pids.append(pid)
    return pids


@pytest.mark.web
def test_the_process_is_replaced_when_it_ends_and_respondents_never_wait_for_it(serve, small):
    url = serve()
    address, server = urlsplit(url).netloc, serve.processes[0]

    def sign_in_page(timeout: float) -> int:
        with closing(http.client.HTTPConnection(address, timeout=timeout)) as connection:
            connection.request("GET", "/research/sign-in")
            return connection.getresponse().status

    assert research_pids(server.pid) == []
    assert sign_in_page(60) == 200
    (first,) = research_pids(server.pid)
    assert os.getpriority(os.PRIO_PROCESS, first) == min(os.nice(0) + NICENESS, 19)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        sign_in_page(0.5)
    with closing(http.client.HTTPConnection(address, timeout=30)) as connection:
        assert send(connection, small, new_report(small)).status == 201
    os.kill(first, signal.SIGKILL)
    assert sign_in_page(60) == 200
    (second,) = research_pids(server.pid)
    assert second != first
    server.send_signal(signal.SIGHUP)
    wait_until(lambda: second not in research_pids(server.pid))
    wait_until_up(url, server)
    assert sign_in_page(60) == 200
    (third,) = research_pids(server.pid)
    server.terminate()
    output, _ = server.communicate(timeout=90)
    assert server.returncode == 0
    assert output.count("the process of researchers' pages ended") == 1
    assert not Path(f"/proc/{third}").exists()


@pytest.mark.web
def test_the_benchmark_of_respondents_and_researchers_runs(capsys):
    readers.main(["--short"])
    assert "99th percentile" in capsys.readouterr().out
