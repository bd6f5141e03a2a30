"""One process of low priority answers researchers' requests, and respondents do not wait for it."""

from __future__ import annotations

import http.client
import os
import select
import signal
import socket
import threading
import time
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from werkzeug.test import Client

from survey import research_process
from survey.hosts import Host, hosts_of
from survey.progress import PROGRESS, Progress, steps
from survey.research import MAX_UPLOAD_BYTES
from survey.research_process import NICENESS, PageComputations, answer_requests
from survey.research_relay import MAX_RELAYED, PATHS, Relay
from tests.benchmarks import readers
from tests.conftest import EMAIL, PASSWORD, wait_until, wait_until_up
from tests.faults.processes import child_pids
from tests.faults.reports import new_report, send
from tests.web.clients import SESSION, answering
from tests.web.researchers import sign_in


def refuse(_environ, _start_response):
    raise AssertionError("a worker answered a researcher's request")


def test_the_relay_passes_on_exactly_the_routes_for_researchers(app):
    for rule in app.url_map.iter_rules():
        is_passed_on = rule.rule.startswith(PATHS)
        assert is_passed_on == (hosts_of(rule.endpoint) == {Host.RESEARCHERS}), rule.endpoint


def test_a_relayed_request_gets_the_same_response(app, researcher, tmp_path):
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


def test_a_worker_answers_503_if_the_process_has_ended_or_has_too_many_requests(app, tmp_path):
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


def test_a_process_that_must_end_before_it_has_started_answers_waiting_requests(app, tmp_path):
    source, target = os.pipe()
    os.close(target)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        client = Client(Relay(refuse, str(tmp_path / "socket")))
        statuses = []
        request = threading.Thread(
            target=lambda: statuses.append(client.get("/research/sign-in").status_code)
        )
        request.start()
        wait_until(lambda: select.select([listener], [], [], 0)[0])
        answer_requests(PageComputations(app, SESSION), listener, source)
        request.join(30)
    os.close(source)
    assert statuses == [200]


def compute_until(event: threading.Event) -> None:
    """Keep a processor busy until an event, for at most half a minute."""
    for _ in range(30_000):
        if event.wait(0):
            return
        end = time.thread_time() + 0.001
        while time.thread_time() < end:
            pass


def test_a_slow_page_shows_its_progress_and_is_computed_once_per_session(tmp_path, monkeypatch):
    monkeypatch.setattr(research_process, "PAGE_SECONDS", 0.05)
    go_on, computed = threading.Event(), []

    def compute(environ, start_response):
        if shown := environ.get(PROGRESS):
            start_response("202 Accepted", [])
            return [f"{shown.done} of {shown.total}".encode()]
        session = environ["HTTP_COOKIE"]
        computed.append(session)
        for step in steps(range(3)):
            if step == 2:
                compute_until(go_on)
        start_response("200 OK", [])
        return [session.encode(), b" has a page"]

    with answering(compute, tmp_path / "socket"):
        relay = Relay(refuse, str(tmp_path / "socket"))
        anna, ben = Client(relay), Client(relay)
        for browser, name in ((anna, "anna"), (ben, "ben")):
            browser.set_cookie(SESSION, name)
        pages = {"headers": {"Accept": "text/html,*/*;q=0.8"}}
        for _ in range(2):
            waiting = anna.get("/research/slow", **pages)
            assert (waiting.status_code, waiting.text) == (202, "2 of 3")
        assert ben.get("/research/slow", **pages).status_code == 202
        go_on.set()
        for browser, name in ((anna, "anna"), (ben, "ben")):
            page = browser.get("/research/slow", **pages)
            assert (page.status_code, page.text) == (200, f"survey={name} has a page")
        assert computed == ["survey=anna", "survey=ben"]
        # Another address, and a program that reads the same one, do not get a page that waits.
        go_on.clear()
        assert anna.get("/research/slow", **pages).status_code == 202
        assert anna.get("/research/other", **pages).status_code == 202
        threading.Timer(0.2, go_on.set).start()
        assert anna.get("/research/slow").status_code == 200
        assert len(computed) == 5


def test_readers_without_an_account_share_a_slow_page_and_a_page_that_waits_shows_progress(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(research_process, "PAGE_SECONDS", 0.05)
    monkeypatch.setattr(research_process, "WAIT_SECONDS", 0.5)
    go_on, computed = threading.Event(), []

    def compute(environ, start_response):
        if PROGRESS in environ:
            start_response("202 Accepted", [])
            return [b"wait"]
        computed.append(environ["PATH_INFO"])
        if environ["PATH_INFO"].endswith("locked"):
            # Another session computes the same results.
            go_on.wait(30)
        else:
            compute_until(go_on)
        start_response("200 OK", [])
        return [b"content"]

    with answering(compute, tmp_path / "socket"):
        relay = Relay(refuse, str(tmp_path / "socket"))
        pages = {"headers": {"Accept": "text/html"}}
        paths = ("/research/public/small", "/research/results/a-token", "/research/public/locked")
        for path in paths:
            assert [Client(relay).get(path, **pages).status_code for _ in range(2)] == [202, 202]
        go_on.set()
        for path in paths:
            assert Client(relay).get(path, **pages).text == "content"
        assert computed == [*paths]
        # Other pages without a session are not shared: they may contain a visitor's form.
        go_on.clear()
        threading.Timer(0.3, go_on.set).start()
        assert Client(relay).get("/research/sign-in", **pages).text == "content"


def test_no_browser_waits_for_a_failed_page_and_a_page_without_readers_is_dropped(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(research_process, "PAGE_SECONDS", 0.05)
    monkeypatch.setattr(research_process, "KEEP_SECONDS", 0.1)
    closed, go_on = threading.Event(), threading.Event()

    class Parts(list):
        def close(self):
            closed.set()

    def compute(environ, start_response):
        if environ["PATH_INFO"].endswith("fails"):
            raise OSError
        if PROGRESS not in environ:
            compute_until(go_on)
        start_response("200 OK", [])
        return Parts([b"content"]) if PROGRESS not in environ else [b"wait"]

    def unavailable(_environ, start_response):
        start_response("503 Service Unavailable", [])
        return []

    with answering(compute, tmp_path / "socket"):
        browser = Client(Relay(unavailable, str(tmp_path / "socket")))
        browser.set_cookie(SESSION, "anna")
        pages = {"headers": {"Accept": "text/html"}}
        assert browser.get("/research/fails", **pages).status_code == 503
        assert browser.get("/research/slow", **pages).text == "wait"
        go_on.set()
        assert closed.wait(30)
        assert browser.get("/research/slow", **pages).text == "content"


def test_the_progress_page_requests_the_computed_page_again(app):
    environ = {PROGRESS: Progress(34, 200)}
    page = app.test_client().get("/research/surveys/small/1?level=0.9", environ_overrides=environ)
    assert page.status_code == 202
    assert 'content="1; url=/research/surveys/small/1?level=0.9"' in page.text
    assert "34 of 200 questions are done" in page.text
    assert page.headers["Cache-Control"] == "no-store"
    # Readers without an account have no surveys.
    shared = app.test_client().get("/research/public/small", environ_overrides=environ)
    assert ("your surveys" in page.text, "your surveys" in shared.text) == (True, False)


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
    assert output.count("the process that serves researchers' pages ended") == 1
    assert not Path(f"/proc/{third}").exists()


@pytest.mark.web
def test_the_benchmark_of_respondents_and_researchers_runs(capsys):
    readers.main(["--short"])
    assert "99th percentile" in capsys.readouterr().out
