"""A researcher's browser without a screen: cookies that it keeps, forms that it fills in."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from typing import NamedTuple
from urllib.parse import urlencode

from tests.conftest import EMAIL, PASSWORD

SIGN_IN = "/research/sign-in"
TOKEN = re.compile(r'name="csrf_token" type="hidden" value="([^"]+)"')


class Page(NamedTuple):
    """What was answered."""

    status: int
    headers: list[tuple[str, str]]
    """With names in small letters."""
    text: str

    @property
    def location(self) -> str:
        return dict(self.headers).get("location", "")


class WebClient:
    """One browser; `connect` opens its connections, `host` is the name that it asks for."""

    def __init__(self, connect: Callable[[], HTTPConnection], host: str = "") -> None:
        self.cookies: dict[str, str] = {}
        self._connect, self._host = connect, host

    def get(self, path: str) -> Page:
        return self._ask("GET", path)

    def post(self, path: str, **fields: str) -> Page:
        return self._ask("POST", path, urlencode(fields))

    def sign_in(self, email: str = EMAIL, password: str = PASSWORD) -> Page:
        """Fill in the form; 302 leads on, and a later try may use the same form's token."""
        return self.post(SIGN_IN, csrf_token=self.token(), email=email, password=password)

    def token(self) -> str:
        """The token of the form to sign in."""
        found = TOKEN.search(self.get(SIGN_IN).text)
        assert found
        return found[1]

    def _ask(self, method: str, path: str, body: str | None = None) -> Page:
        headers = {"Host": self._host} if self._host else {}
        if self.cookies:
            headers["Cookie"] = self.cookie
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(self._connect()) as connection:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            said = [(name.lower(), value) for name, value in response.getheaders()]
            page = Page(response.status, said, response.read().decode())
        for name, value in said:
            if name == "set-cookie":
                self.cookies |= {key: kept.value for key, kept in SimpleCookie(value).items()}
        return page

    @property
    def cookie(self) -> str:
        """The header that it sends."""
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())
