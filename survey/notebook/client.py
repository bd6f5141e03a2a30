"""A typed client of the API, on the standard library: pages, retries, clear errors.

The token is sent to the given server only: redirects are errors.
"""

from __future__ import annotations

import http.client
import io
import json
import random
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit

from pydantic import ValidationError

from survey.api.openapi import (
    ADAPTERS,
    PREFIX,
    Crosstab,
    Estimates,
    Surveys,
    Version,
    Versions,
)
from survey.errors import (
    ForbiddenError,
    NotFoundError,
    QueryError,
    RemoteError,
    SettingsError,
    SurveyError,
    UnauthorizedError,
)
from survey.notebook.files import read_microdata
from survey.notebook.tables import CrosstabTable, ResultTable
from survey.settings import is_loopback
from survey.version import __version__

if TYPE_CHECKING:
    from survey.notebook.microdata import Microdata

ATTEMPTS = 5
"""Maximum number of attempts of a request."""

FIRST_DELAY = 0.5
"""Seconds before the second attempt; each further delay is twice as long, with up to half more."""

LONGEST_DELAY = 60.0
"""Maximum delay in seconds; a server that asks for a longer one is not asked again."""

TIMEOUT = 30.0
"""Seconds without a byte from the server after which an attempt has failed."""

MAX_RESPONSE = 2**30
"""Maximum size of a response in bytes."""

TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""

ERRORS: dict[int, type[SurveyError]] = {
    HTTPStatus.UNAUTHORIZED: UnauthorizedError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.UNPROCESSABLE_ENTITY: QueryError,
}

Answer = TypeVar("Answer")
Sleep = Callable[[float], object]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Make a redirect an error: urllib would send the token to its target."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def connect(
    url: str, token: str, *, timeout: float = TIMEOUT, sleep: Sleep = time.sleep
) -> Connection:
    """Return a connection to the API of a server, such as `https://research.example.org`.

    Researchers create tokens on their account page under *API tokens*. Attempts that fail with a
    temporary error are repeated, up to `ATTEMPTS` times. Raises SettingsError for an address that
    is not https (http only on this machine), or for a token that no server issues.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port  # An invalid one raises ValueError.
    except ValueError as error:
        raise SettingsError(f"url = {url!r} is not an address: {error}") from None
    if parts.scheme not in ("https", "http") or not host or parts.query or parts.fragment:
        raise SettingsError(
            f"url = {url!r} must be an address such as https://research.example.org"
        )
    if parts.username or parts.password:
        raise SettingsError("url must not contain a name or a password; pass the token separately")
    if parts.scheme == "http" and not is_loopback(host):
        raise SettingsError(f"url = {url!r} must start with https://: http would reveal the token")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError("token must be one word of ASCII characters; copy it again")
    base = url.rstrip("/").removesuffix(PREFIX) + PREFIX
    return Connection(base, token, timeout, sleep)


class Connection:
    """A connection to a server's API; every method is one or more requests."""

    def __init__(self, base: str, token: str, timeout: float, sleep: Sleep) -> None:
        self._base, self._token = base, token
        self._timeout, self._sleep = timeout, sleep
        self._opener = urllib.request.build_opener(_NoRedirects)

    def surveys(self) -> list[Version]:
        """Return the newest version of each survey that the token may read, from all pages."""
        listed: list[Version] = []
        query: dict[str, str] = {}
        while True:
            page = self._get(Surveys, "/surveys", query)
            listed += page.surveys
            if len(listed) >= page.total or not page.surveys:
                return listed
            last = page.surveys[-1].slug
            if last <= query.get("after", ""):
                raise RemoteError(f"{self._base} repeats the page of surveys that ends with {last}")
            query = {"after": last}

    def survey(self, slug: str, version: int | None = None) -> RemoteSurvey:
        """Return a survey's version, by default the newest; NotFoundError if there is none."""
        versions = self._get(Versions, f"/surveys/{quote(slug, safe='')}").versions
        for described in versions:
            if version in (None, described.version):
                return RemoteSurvey(self, described)
        numbers = ", ".join(str(described.version) for described in versions)
        raise NotFoundError(f'"{slug}" has no version {version}: choose one of {numbers}')

    def __repr__(self) -> str:
        # The token must not appear in a notebook that is shared.
        return f"Connection({self._base!r})"

    def _get(self, kind: type[Answer], path: str, query: dict[str, str] | None = None) -> Answer:
        """Return the response of an operation as its class."""
        body = self._fetch(path, query or {})
        try:
            answer: Answer = ADAPTERS[kind].validate_json(body)
        except (ValidationError, SurveyError) as error:
            raise RemoteError(
                f"{self._base}{path}: the response is not that of this version of the API "
                f"({__version__}): {str(error).splitlines()[0]}"
            ) from None
        return answer

    def _fetch(self, path: str, query: dict[str, str]) -> bytes:
        """Return the body of a response; repeat attempts that failed for the moment."""
        url = self._base + path + (f"?{urlencode(query)}" if query else "")
        delay = FIRST_DELAY
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._attempt(url)
            except _TemporaryError as failure:
                pause = failure.retry_after
                if pause is None:
                    # The random part keeps clients from returning at the same moment.
                    pause = delay * random.uniform(1, 1.5)  # noqa: S311
                if attempt == ATTEMPTS or pause > LONGEST_DELAY:
                    raise RemoteError(
                        f"{url}: {failure.reason} (attempt {attempt}); try again later"
                    ) from None
            self._sleep(pause)
            delay *= 2
        raise AssertionError  # The last attempt returns or raises.

    def _attempt(self, url: str) -> bytes:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "User-Agent": f"ldp-survey/{__version__}",
        }
        request = urllib.request.Request(url, headers=headers)  # noqa: S310  `connect` checks it
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return _read(response, url)
        except HTTPError as error:
            with error:
                raise _error_of(error, url) from None
        except (OSError, http.client.HTTPException) as error:
            raise _interruption(error) from None


@dataclass(frozen=True)
class RemoteSurvey:
    """A version of a survey on a server; `version` describes it."""

    _connection: Connection
    version: Version

    def results(self, **options: Any) -> ResultTable:
        """Return the rows of the results page.

        `options` are level, interval, simultaneous and target, as on the command line. Raises
        QueryError for an unknown option or value.
        """
        query = {
            name: str(int(value)) if isinstance(value, bool) else str(value)
            for name, value in options.items()
        }
        estimates = self._connection._get(Estimates, f"{self._path}/estimates", query)
        return ResultTable(
            estimates.slug, estimates.version, estimates.released, tuple(estimates.rows)
        )

    def crosstab(self, first: str, second: str, *, level: float | None = None) -> CrosstabTable:
        """Return the cross-tabulation of two questions, one row per cell."""
        query = {"first": first, "second": second}
        query |= {} if level is None else {"level": str(level)}
        table = self._connection._get(Crosstab, f"{self._path}/crosstab", query)
        return CrosstabTable(
            table.slug, table.version, table.n, table.shown, table.test, tuple(table.rows)
        )

    def definition(self) -> dict[str, Any]:
        """Return the published definition."""
        body = self._connection._fetch(f"{self._path}/definition", {})
        try:
            form: dict[str, Any] = json.loads(body)
        except (ValueError, RecursionError):
            raise RemoteError(f"{self._path}/definition: the response is not JSON") from None
        return form

    def microdata(self) -> Microdata:
        """Download the released reports; the token needs the scope `exports` and an editor's role.

        The server records each download in the log of the survey.
        """
        file: IO[bytes] = io.BytesIO(
            self._connection._fetch(f"{self._path}/exports/reports.zip", {})
        )
        return read_microdata(file)

    @property
    def _path(self) -> str:
        return f"/surveys/{self.version.slug}/versions/{self.version.version}"


class _TemporaryError(Exception):
    """An attempt that may succeed later; `retry_after` is the delay that the server asked for."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.retry_after = reason, retry_after


def _interruption(error: OSError | http.client.HTTPException) -> _TemporaryError:
    reason = error.reason if isinstance(error, URLError) else error
    return _TemporaryError(f"no response: {reason or type(error).__name__}")


def _read(response: Any, url: str) -> bytes:
    """Return the body of an HTTPResponse; _TemporaryError if it ends before its stated length."""
    body: bytes = response.read(MAX_RESPONSE + 1)
    if len(body) > MAX_RESPONSE:
        raise RemoteError(f"{url}: the response has more than {MAX_RESPONSE:,} bytes")
    # `read` with a size returns the part that has arrived, without an error.
    if response.length:
        raise _TemporaryError(f"the response ended {response.length:,} bytes early")
    return body


def _error_of(error: HTTPError, url: str) -> Exception:
    """Return the error for a response that is not 200."""
    if error.code in TEMPORARY:
        reason = f"the server answered {error.code} {error.reason}"
        return _TemporaryError(reason, _retry_after(error.headers.get("Retry-After")))
    if 300 <= error.code < 400:
        target = str(error.headers.get("Location"))[:200]
        return RemoteError(f"{url} redirects to {target}; pass the address of the server itself")
    try:
        detail = str(json.loads(_read(error.fp, url))["detail"])
    except (OSError, http.client.HTTPException) as failure:
        return _interruption(failure)
    except (KeyError, TypeError, ValueError, RecursionError):
        detail = f"{url}: the server answered {error.code} {error.reason}"
    if error.code == HTTPStatus.UNAUTHORIZED:
        detail = f"the server rejects the token: {detail}"
    return ERRORS.get(error.code, RemoteError)(detail)


def _retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which may be a date; None if there is none.

    >>> _retry_after("7"), _retry_after("soon"), _retry_after(None)
    (7.0, None, None)
    """
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdecimal():
        return float(value)
    try:
        return max((parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None
