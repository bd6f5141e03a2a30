"""The shipped client: its files in memory, under one hash of them all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

import minify

from survey.words import LANGUAGES, device_texts

PACKAGE = Path(__file__).resolve().parent.parent

TYPES: Mapping[str, str] = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}

MINIFIED = ("text/javascript", "text/css")


@dataclass(frozen=True)
class Client:
    """Name and bytes of every file that a respondent's browser loads."""

    files: Mapping[str, bytes]

    @classmethod
    def find(cls) -> Client:
        """The client of this installation as it is served: without comments, local names short.

        They are half of the bytes that a phone in a train would wait for. Everybody can make the
        same bytes of the same sources: the project depends on one version of the minifier.
        """
        return cls({name: _served(name, content) for name, content in sources().items()})

    @property
    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of each file, by name, in the order of the names."""
        return {
            name: hashlib.sha256(content).hexdigest()
            for name, content in sorted(self.files.items())
        }

    @property
    def sha256(self) -> str:
        """SHA-256 over the lines `<sha256 of file>  <name>`, names in order."""
        lines = (f"{digest}  {name}\n" for name, digest in self.file_hashes.items())
        return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def sources() -> dict[str, bytes]:
    """The client as it is written, the checkout's, else the package's copy, and its words."""
    checkout = PACKAGE.parent / "client_js" / "src"
    folder = (
        checkout
        if (PACKAGE.parent / "pyproject.toml").exists() and checkout.is_dir()
        else PACKAGE / "static" / "client"
    )
    written = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in TYPES}
    words = {words_file(language): device_texts(language) for language in LANGUAGES}
    return dict(sorted({**written, **words}.items()))


def words_file(language: str) -> str:
    """The file of the interface's words in a language, which stand in the page itself too."""
    return f"words.{language}.json"


def _served(name: str, content: bytes) -> bytes:
    """A file without what only its authors read."""
    kind = TYPES[PurePath(name).suffix].partition(";")[0]
    if kind not in MINIFIED:
        return content
    return str(minify.string(kind, content.decode("utf-8"))).encode("utf-8")
