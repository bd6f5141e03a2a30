"""Ways to alter what a server sends, and a proxy that applies one of them."""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from survey.respond.client import FIELD_MODULES, Client
from survey.security import COMMON, respondent_headers
from survey.verification.connection import Response

SLUG = "small"

Change = Callable[[Response], Response]


@dataclass(frozen=True)
class Alteration:
    """A change of the responses at one path; the report must name `where` and `what`."""

    name: str
    path: str
    change: Change
    where: str
    what: str

    def apply(self, response: Response) -> Response:
        is_affected = urlsplit(response.url).path == self.path
        return self.change(response) if is_affected else response


def bytes_replaced(old: bytes, new: bytes) -> Change:
    def change(response: Response) -> Response:
        assert old in response.content
        return with_content(response, response.content.replace(old, new, 1))

    return change


def bytes_appended(response: Response) -> Response:
    return with_content(response, response.content + b" ")


def with_content(response: Response, content: bytes, status: int | None = None) -> Response:
    coded = ("content-encoding", "content-length")
    headers = tuple((n, v) for n, v in response.headers if n.lower() not in coded)
    return replace(response, body=content, headers=headers, status=status or response.status)


def with_header(name: str, value: str) -> Change:
    return lambda response: replace(response, headers=(*response.headers, (name, value)))


def without_header(name: str) -> Change:
    return lambda response: replace(
        response,
        headers=tuple(pair for pair in response.headers if pair[0].lower() != name.lower()),
    )


def header_changed(name: str, value: str) -> Change:
    return lambda response: with_header(name, value)(without_header(name)(response))


def redirected(response: Response) -> Response:
    return replace(with_header("Location", "/elsewhere")(response), status=302)


def refused_with_cookie(response: Response) -> Response:
    typed = header_changed("Content-Type", "application/problem+json")(response)
    return with_content(with_header("Set-Cookie", "id=1")(typed), b"{}", 410)


ADDED_HEADERS: Mapping[str, str] = {
    "Set-Cookie": "id=1",
    "Link": "</evil.js>; rel=preload",
    "Refresh": "0; url=https://evil.example/",
    "Service-Worker-Allowed": "/",
    "Clear-Site-Data": '"storage"',
    "Content-Security-Policy-Report-Only": "default-src 'none'; report-uri /seen",
    "Report-To": "{}",
    "NEL": "{}",
    "SourceMap": "/evil.map",
    "X-Visitor": "1",
}


def header_alterations(path: str, where: str, kind: str) -> Iterator[Alteration]:
    """Yield every header changed, removed and repeated, and every unknown header added."""
    headers = dict(respondent_headers()["files" if kind == "files" else "page"])
    del headers["Strict-Transport-Security"]
    assert COMMON.keys() < headers.keys()
    for name, value in headers.items():
        for verb, change in {
            "changed": header_changed(name, f"{value}x"),
            "removed": without_header(name),
            "repeated": with_header(name, value),
        }.items():
            yield Alteration(f"{where}: {name} {verb}", path, change, where, name)
    for name, value in ADDED_HEADERS.items():
        what = f"header {name.title()} added"
        yield Alteration(f"{where}: {name} added", path, with_header(name, value), where, what)
    elsewhere = with_header("Alt-Svc", 'h3="evil.example:443"; ma=60')
    yield Alteration(f"{where}: Alt-Svc", path, elsewhere, where, "Alt-Svc names another host")
    sent_as_text = header_changed("Content-Type", "text/plain")
    yield Alteration(f"{where}: type", path, sent_as_text, where, "Content-Type")


PAGE, DEFINITION = f"/s/{SLUG}", f"/s/{SLUG}/definition.json"

ADDED_SCRIPT = b'<script type="module" src="/added.js"></script></head>'
REGISTRATION = b'<script>navigator.serviceWorker.register("/worker.js")</script></head>'


def file_alterations() -> Iterator[Alteration]:
    """Yield a change of each file that browsers load, and a redirect of one."""
    client = Client.load()
    for name in client.files:
        if is_of_field_mode(name):
            continue
        path = f"/client/{client.sha256}/{name}"
        where = path.removeprefix("/")
        yield Alteration(f"{name} altered", path, bytes_appended, where, "bytes differ")
    path = f"/client/{client.sha256}/main.js"
    yield Alteration("file redirected", path, redirected, path[1:], "redirect to /elsewhere")


def is_of_field_mode(name: str) -> bool:
    """Return whether only the page of field mode loads a file."""
    return name in FIELD_MODULES or name.startswith("fieldwork-words.")


def field_alterations() -> Iterator[Alteration]:
    """Yield changes of each file that only a tablet in field mode loads, and of the policy."""
    client = Client.load()
    for path, where in FIELD.items():
        yield Alteration(f"{where} altered", path, bytes_appended, where, "bytes differ")
        policy = header_changed("Content-Security-Policy", "worker-src *")
        yield Alteration(f"{where}: policy", path, policy, where, "Content-Security-Policy")
    for name in filter(is_of_field_mode, client.files):
        where = f"client/{client.sha256}/{name}"
        yield Alteration(f"{name} altered", f"/{where}", bytes_appended, where, "bytes differ")


FIELD = {"/field/": "field/index.html", "/field/worker.js": "field/worker.js"}
"""The addresses of field mode's page and worker, and the names of their files."""


def page_alterations() -> Iterator[Alteration]:
    """Yield changes of the page and the definition, and files that do not belong there."""
    for name, change, what in (
        ("shell", bytes_replaced(b"<main", b"<main "), "the bytes differ"),
        ("added script", bytes_replaced(b"</head>", ADDED_SCRIPT), "it also loads /added.js"),
        ("service worker", bytes_replaced(b"</head>", REGISTRATION), "the bytes differ"),
        ("other version", bytes_replaced(b'content="0.', b'content="9.'), "names version"),
        ("no version", bytes_replaced(b'name="version"', b'name="v"'), "names no version"),
        ("redirect", redirected, "redirect to /elsewhere"),
        ("malformed line", with_header("junk\r\nSet-Cookie", "id=1"), "malformed header"),
    ):
        yield Alteration(name, PAGE, change, "page", what)
    for name, change, what in (
        ("definition", bytes_replaced(b"asleep", b"awake"), "is not the link's"),
        ("definition with spaces", bytes_appended, "is not the link's"),
        ("definition redirected", redirected, "redirect to /elsewhere"),
        ("definition refused with a cookie", refused_with_cookie, "status 410 with more"),
    ):
        yield Alteration(name, DEFINITION, change, "definition", what)
    for path in ("/sw.js", "/service-worker.js"):
        yield Alteration(f"{path} added", path, _worker, path, "status 200 instead of 404")


def _worker(response: Response) -> Response:
    typed = header_changed("Content-Type", "text/javascript")(response)
    return with_content(typed, b"onfetch = () => {};", 200)


def all_alterations() -> list[Alteration]:
    script = f"client/{Client.load().sha256}/main.js"
    return [
        *page_alterations(),
        *file_alterations(),
        *header_alterations(PAGE, "page", "page"),
        *header_alterations(DEFINITION, "definition", "page"),
        *header_alterations(f"/{script}", script, "files"),
    ]


Decide = Callable[[Mapping[str, str]], bool]
"""Decides at the start of a visit, from the headers of its first request, whether to alter it."""


def one_in_ten(rng: random.Random) -> Decide:
    return lambda headers: rng.random() < 0.1


def only_for(name: str, part: str) -> Decide:
    return lambda headers: part in headers.get(name, "")


def always(headers: Mapping[str, str]) -> bool:
    return True


@contextmanager
def tampering_proxy(upstream: str, alteration: Alteration, decide: Decide) -> Iterator[str]:
    """Run a proxy in front of a server that alters the visits it decides to alter.

    A connection is a visit.
    """
    host = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        is_altered: bool | None = None

        def setup(self) -> None:
            super().setup()
            self.server_connection = http.client.HTTPConnection(host)

        def finish(self) -> None:
            self.server_connection.close()
            super().finish()

        def do_GET(self) -> None:
            headers = dict(self.headers.items())
            if self.is_altered is None:
                self.is_altered = decide(headers)
            self.server_connection.request("GET", self.path, headers=headers)
            received = self.server_connection.getresponse()
            response = Response(
                self.path, received.status, tuple(received.getheaders()), received.read()
            )
            if self.is_altered:
                response = alteration.apply(response)
            self._send(response)

        def _send(self, response: Response) -> None:
            lines = [f"HTTP/1.1 {response.status} -"]
            framing = ("content-length", "transfer-encoding", "connection")
            lines += [f"{n}: {v}" for n, v in response.headers if n.lower() not in framing]
            # First, so that a malformed line after it cannot hide it from the client.
            lines.insert(1, f"Content-Length: {len(response.body)}")
            self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + response.body)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
