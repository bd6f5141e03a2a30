"""The files that a respondent's browser loads, their hash, and their compressed forms."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

import brotli
import minify
from flask import Response, request

from survey.respondent_texts import LANGUAGES, device_texts

PACKAGE = Path(__file__).resolve().parent.parent

CONTENT_TYPES: Mapping[str, str] = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
"""Content type of each kind of file, by suffix."""

MINIFIED = ("text/javascript", "text/css")

CODINGS = ("br", "gzip")
"""Content codings, best first."""


@dataclass(frozen=True)
class Client:
    """The content of every file that a respondent's browser loads, by name."""

    files: Mapping[str, bytes]

    @classmethod
    def load(cls) -> Client:
        """Load this installation's client as it is served, without comments and long local names.

        They make up half of the bytes. Anyone can build the same bytes from the same sources,
        because the project pins one version of the minifier.
        """
        return cls({name: _minified(name, content) for name, content in source_files().items()})

    @property
    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of each file, sorted by name."""
        return {
            name: hashlib.sha256(content).hexdigest()
            for name, content in sorted(self.files.items())
        }

    @property
    def sha256(self) -> str:
        """SHA-256 over the lines `<sha256 of file>  <name>`, sorted by name."""
        lines = (f"{digest}  {name}\n" for name, digest in self.file_hashes.items())
        return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def source_files() -> dict[str, bytes]:
    """Return the client's source files and texts, from the checkout or else from the package."""
    checkout = PACKAGE.parent / "client_js" / "src"
    folder = (
        checkout
        if (PACKAGE.parent / "pyproject.toml").exists() and checkout.is_dir()
        else PACKAGE / "static" / "client"
    )
    sources = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in CONTENT_TYPES
    }
    texts = {texts_file(language): device_texts(language) for language in LANGUAGES}
    return dict(sorted({**sources, **texts}.items()))


def texts_file(language: str) -> str:
    """Return the name of the file with a language's texts; the page contains the same bytes."""
    return f"texts.{language}.json"


def _minified(name: str, content: bytes) -> bytes:
    kind = CONTENT_TYPES[PurePath(name).suffix].partition(";")[0]
    if kind not in MINIFIED:
        return content
    return str(minify.string(kind, content.decode("utf-8"))).encode("utf-8")


@dataclass(frozen=True)
class Compressed:
    """A content, plain and in each of `CODINGS`."""

    plain: bytes
    coded: dict[str, bytes]

    @classmethod
    def from_bytes(cls, content: bytes) -> Compressed:
        """Compress a content as small as possible: once here, sent many times."""
        return cls(
            content,
            {
                "br": brotli.compress(content, quality=11),
                # Without a modification time, equal contents have equal bytes.
                "gzip": gzip.compress(content, 9, mtime=0),
            },
        )

    def response(self, content_type: str, status: int = 200, *, vary: str = "") -> Response:
        """Answer the current request in the best coding that it accepts.

        `vary` names other request headers on which the content depends.
        """
        coding = next((coding for coding in CODINGS if request.accept_encodings[coding] > 0), None)
        body = self.coded[coding] if coding else self.plain
        response = Response(body, status, content_type=content_type)
        response.headers["Vary"] = f"Accept-Encoding, {vary}" if vary else "Accept-Encoding"
        if coding:
            response.headers["Content-Encoding"] = coding
        return response


compress = lru_cache(maxsize=64)(Compressed.from_bytes)
"""Compress a content that many requests share, and remember the result."""
