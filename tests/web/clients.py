"""An HTTP client for researchers' pages that stores cookies and sends forms, and their process."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from survey.research_process import PageComputations, answer_requests
from tests.conftest import EMAIL, PASSWORD

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

SIGN_IN = "/research/sign-in"
TOKEN = re.compile(r'name="csrf_token" type="hidden" value="([^"]+)"')


SESSION = "survey"
"""Name of the cookie of a session."""


@contextmanager
def answering(app: WSGIApplication, path: Path) -> Iterator[None]:
    """Answer requests at a socket in a thread, as the process for researchers' pages does."""
    source, target = os.pipe()
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        listener.listen()
        pages = PageComputations(app, SESSION)
        thread = threading.Thread(target=answer_requests, args=[pages, listener, source])
        thread.start()
        try:
            yield
        finally:
            os.close(target)
            thread.join(30)
            os.close(source)
    assert not thread.is_alive()


class Page(NamedTuple):
    """A response with its status, headers and text."""

    status: int
    headers: list[tuple[str, str]]
    """Pairs of a lower-case name and a value."""
    text: str

    @property
    def location(self) -> str:
        return dict(self.headers).get("location", "")


class WebClient:
    """An HTTP client; `connect` opens its connections, and `host` sets the Host header."""

    def __init__(self, connect: Callable[[], HTTPConnection], host: str = "") -> None:
        self.cookies: dict[str, str] = {}
        self._connect, self._host = connect, host

    def get(self, path: str) -> Page:
        return self._request("GET", path)

    def post(self, path: str, **fields: str) -> Page:
        return self._request("POST", path, urlencode(fields))

    def sign_in(self, email: str = EMAIL, password: str = PASSWORD) -> Page:
        """Send the sign-in form; return the response, a redirect (302) if it succeeds."""
        return self.post(SIGN_IN, csrf_token=self.token(), email=email, password=password)

    def token(self) -> str:
        """Return the CSRF token of the sign-in form."""
        match = TOKEN.search(self.get(SIGN_IN).text)
        assert match
        return match[1]

    def _request(self, method: str, path: str, body: str | None = None) -> Page:
        headers = {"Host": self._host} if self._host else {}
        if self.cookies:
            headers["Cookie"] = self.cookie
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(self._connect()) as connection:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            fields = [(name.lower(), value) for name, value in response.getheaders()]
            page = Page(response.status, fields, response.read().decode())
        for name, value in fields:
            if name == "set-cookie":
                self.cookies |= {key: morsel.value for key, morsel in SimpleCookie(value).items()}
        return page

    @property
    def cookie(self) -> str:
        """Return the Cookie header."""
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())
