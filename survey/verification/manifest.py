"""Manifests: the hashes of a release's files and its headers, and comparisons with responses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from survey.errors import SurveyError
from survey.respond.client import (
    CONTENT_TYPES,
    FIELD_INDEX,
    FIELD_WORKER,
    ICON,
    INDEX,
    MANIFEST_FORMAT,
    Client,
    sha256,
)
from survey.verification.connection import CodingError, Response

FOLDER = Path(__file__).parent / "manifests"
"""Manifests of earlier releases, `VERSION.json`."""

POLICY = "Content-Security-Policy"
HSTS = "Strict-Transport-Security"

TRANSPORT = frozenset(
    [
        *("date", "server", "content-length", "content-type", "content-encoding"),
        *("transfer-encoding", "connection", "keep-alive", "vary", "accept-ranges"),
        *("age", "via", "alt-svc"),
    ]
)
"""Headers that servers and proxies add and that do not affect the page; any value is accepted."""

VALIDATORS = frozenset(["etag", "last-modified"])
"""Headers of static hosts. Our server sends none: browsers return them with the next request, so
that a server could use them like a cookie."""

REPEATABLE = frozenset(["connection", "vary", "via", "alt-svc", "transfer-encoding"])

CROSS_ORIGIN = frozenset(
    f"access-control-{name}"
    for name in ("allow-methods", "allow-headers", "expose-headers", "max-age")
)
"""Headers with which a collector allows the page of another host to load a definition."""

SAME_HOST = re.compile(r'[\w%-]+=":\d+"(;\s*(ma|persist)=\d+)*')
"""An alternative in an Alt-Svc header that leads to the same host, as `h3=":443"; ma=60`."""

JAVASCRIPT = ("text/javascript", "application/javascript")


@dataclass(frozen=True)
class Difference:
    """A difference between a server's response and the release.

    where   the path of a file, "page", "definition", or an address that should not exist
    """

    where: str
    what: str


@dataclass(frozen=True)
class Manifest:
    """A release: SHA-256 of each file by path, and the headers of the page and of the files.

    `client` contains the files if the release is the installed one. `onion` is the onion address
    that the page offers, "" for none: any other one would lead Tor Browser to another server.
    """

    version: str
    collector: str
    files: Mapping[str, str]
    headers: Mapping[str, Mapping[str, str]]
    client: Client | None = None
    onion: str = ""

    @classmethod
    def parse(cls, form: Any, source: str) -> Manifest:
        """Read the JSON form of a `client-manifest.json`; error messages name its `source`."""
        try:
            if form["format"] != MANIFEST_FORMAT:
                raise SurveyError(
                    f"{source} has format {form['format']}; this version reads {MANIFEST_FORMAT}"
                )
            manifest = cls(form["version"], form["collector"], form["files"], form["headers"])
            names = {PurePath(path).name for path in manifest.files}
            headers = [manifest.headers[kind].keys() for kind in ("page", "files")]
            has_headers = all({POLICY, HSTS} <= header_names for header_names in headers)
            is_valid = {INDEX, ICON} <= names and has_headers
        except (KeyError, TypeError, AttributeError):
            is_valid = False
        if not is_valid:
            raise SurveyError(f"{source} is not a client-manifest.json")
        return manifest

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read a manifest from a file."""
        try:
            form = json.loads(file.read_bytes())
        except ValueError:
            raise SurveyError(f"{file} is not a client-manifest.json: it is not JSON") from None
        return cls.parse(form, str(file))

    def to_json(self) -> dict[str, Any]:
        """Return the form of `client-manifest.json`."""
        return {
            "format": MANIFEST_FORMAT,
            "version": self.version,
            "collector": self.collector,
            "files": dict(self.files),
            "headers": {kind: dict(headers) for kind, headers in self.headers.items()},
        }

    def expected_headers(self, kind: str) -> dict[str, str]:
        """Return the headers of the "page", "files", "field", or of a collector's "definition"."""
        headers = dict(self.headers[kind if kind in ("files", "field") else "page"])
        if kind == "definition" and self.collector:
            headers[POLICY] = headers[POLICY].replace(f" {self.collector}", "")
        return headers

    def content(self, path: str) -> bytes | None:
        """Return the bytes of a file, or None if this installation does not contain them."""
        return self.client.served.get(path) if self.client else None


@cache
def installed(collector: str) -> Manifest:
    """Return the manifest of this installation's client."""
    client = Client.load(collector)
    return Manifest(
        client.version,
        collector,
        client.manifest["files"],
        client.manifest["headers"],
        client,
    )


def known_manifests(collector: str) -> dict[str, Manifest]:
    """Return the manifests that this installation contains, by version.

    A page for another host contains the collector's address, so only its hash in this version is
    known.
    """
    manifests = [] if collector else [Manifest.read(file) for file in sorted(FOLDER.glob("*.json"))]
    # The installed client comes last: it prevails over a manifest with the same version.
    return {manifest.version: manifest for manifest in [*manifests, installed(collector)]}


def manifest_of(manifests: Mapping[str, Manifest], version: str) -> Manifest:
    """Return the manifest of a version, or the last one, which is the newest, if it is unknown."""
    return manifests.get(version, list(manifests.values())[-1])


def compare_file(
    manifest: Manifest, path: str, response: Response, where: str = "", status: int = 200
) -> Iterator[Difference]:
    """Compare the status, headers and bytes of a response with a file of the release.

    A file that is also available at another address, `where`, has the headers of the page there,
    because that address does not contain a hash of the content.
    """
    kind = "page" if path == INDEX or where else "files"
    if path in (FIELD_INDEX, FIELD_WORKER):
        kind = "field"
    where = where or ("page" if path == INDEX else path)
    if response.status != status:
        yield Difference(where, _describe_status(response, status))
        return
    yield from compare_headers(manifest, kind, PurePath(path).suffix, response, where)
    try:
        content = response.content
    except CodingError as error:
        yield Difference(where, str(error))
        return
    if sha256(content) != manifest.files[path]:
        yield Difference(where, describe_change(manifest.content(path), content))


def _describe_status(response: Response, expected: int) -> str:
    location = response.values("location")
    to = f", redirect to {location[0]}" if location else ""
    return f"status {response.status} instead of {expected}{to}"


def compare_headers(
    manifest: Manifest, kind: str, suffix: str, response: Response, where: str
) -> Iterator[Difference]:
    """Compare the headers of a response with the required values; report unknown headers."""
    expected = _expected_headers(manifest, kind, response, where)
    for name, value in expected.items():
        values = response.values(name.lower())
        if values != [value]:
            yield Difference(where, _describe_header(name, value, values))
    allowed_names = {name.lower() for name in expected} | TRANSPORT
    if manifest.collector:
        allowed_names |= VALIDATORS
    if kind == "definition" and manifest.collector:
        allowed_names |= CROSS_ORIGIN | {"access-control-allow-origin"}
    for name, values in sorted(response.by_name.items()):
        if name not in allowed_names:
            yield Difference(where, f"header {_title(name)} added: {values[0][:200]}")
        elif len(values) > 1 and name in (TRANSPORT | VALIDATORS) - REPEATABLE:
            yield Difference(where, f"header {_title(name)} sent {len(values)} times")
    if response.malformed:
        yield Difference(where, f"malformed header: {response.malformed[:200]}")
    yield from _compare_hosts(response, where)
    yield from _compare_type(suffix, response, where)


def _expected_headers(
    manifest: Manifest, kind: str, response: Response, where: str
) -> dict[str, str]:
    expected = manifest.expected_headers(kind)
    if manifest.onion and where in ("page", FIELD_INDEX):
        expected["Onion-Location"] = manifest.onion + urlsplit(response.url).path
    if response.url.startswith("http://") and not response.values(HSTS.lower()):
        # Browsers ignore it without encryption, and servers need not send it.
        del expected[HSTS]
    return expected


def _compare_hosts(response: Response, where: str) -> Iterator[Difference]:
    for value in response.values("alt-svc"):
        alternatives = [part.strip() for part in value.split(",")]
        if not all(part == "clear" or SAME_HOST.fullmatch(part) for part in alternatives):
            yield Difference(where, f"header Alt-Svc names another host: {value[:200]}")


def _title(name: str) -> str:
    return name.title().replace("Www-", "WWW-")


def _describe_header(name: str, expected: str, values: list[str]) -> str:
    if not values:
        return f"header {name} missing"
    if len(values) > 1:
        return f"header {name} sent {len(values)} times"
    return f"header {name} is {values[0][:400]!r} instead of {expected!r}"


def _compare_type(suffix: str, response: Response, where: str) -> Iterator[Difference]:
    expected = CONTENT_TYPES[suffix].partition(";")[0]
    values = response.values("content-type")
    essence, _, parameters = (values[0] if values else "").lower().partition(";")
    types = JAVASCRIPT if expected in JAVASCRIPT else (expected,)
    if essence.strip() not in types or parameters.strip() not in ("", "charset=utf-8"):
        content_type = values[0] if values else "missing"
        yield Difference(
            where, f"header Content-Type is {content_type[:200]} instead of {expected}"
        )


EXCERPT = 90
"""Number of bytes of an altered file in a message."""


def describe_change(expected: bytes | None, content: bytes) -> str:
    """Describe how content differs from the expected content; None means unknown.

    >>> describe_change(b"let p = 3;", b"let p = 1;")
    "the bytes differ from byte 8 on: 'let p = 1;' instead of 'let p = 3;'"
    """
    if expected is None:
        return f"the bytes differ (SHA-256 {sha256(content)})"
    pairs = enumerate(zip(expected, content, strict=False))
    shorter = min(len(expected), len(content))
    at = next((i for i, (old, new) in pairs if old != new), shorter)
    start = max(0, at - EXCERPT // 5)
    old, new = (
        part[start : start + EXCERPT].decode("utf-8", "replace") for part in (expected, content)
    )
    return f"the bytes differ from byte {at} on: {new!r} instead of {old!r}"


REFERENCE = re.compile(
    rb"""<(?:script|link|iframe|img|embed|object)\b[^>]*?(?:src|href)\s*=\s*["']?([^"'\s>]+)"""
)
"""Addresses that a page loads; an altered page may also load others in ways not matched here."""


def added_references(manifest: Manifest, page: bytes) -> list[str]:
    """Return the addresses that a page loads in addition to those of the release."""
    folders = {path.rpartition("/")[0] for path in manifest.files if "/" in path}
    addresses = [match.decode("utf-8", "replace") for match in REFERENCE.findall(page)]
    return [
        address
        for address in dict.fromkeys(addresses)
        if not address.startswith("data:") and address.lstrip("/").rpartition("/")[0] not in folders
    ]
