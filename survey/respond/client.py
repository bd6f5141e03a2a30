"""The respondents' client: the files that browsers receive, their manifest and compression."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path, PurePath
from typing import Any

import brotli
import minify
from flask import Response, request
from jinja2 import Environment, FileSystemLoader

from survey.questionnaire.drafts.preview import Preview
from survey.respondent_texts import LANGUAGES, device_texts, say
from survey.security import respondent_headers
from survey.version import __version__

PACKAGE = Path(__file__).resolve().parent.parent

CONTENT_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
"""Content type of each kind of file, by suffix."""

MINIFIED = ("text/javascript", "text/css")

CODINGS = ("br", "gzip")
"""Content codings, best first."""

INDEX, MANIFEST, ICON, STYLE = "index.html", "client-manifest.json", "favicon.svg", "respond.css"

SCRIPTS = ("opening.js", "main.js")
"""The modules that the page runs, in this order; they import the others."""

MANIFEST_FORMAT = 1

NO_COLLECTOR = "preview:"
"""The collector of a preview; `preview.js` answers its requests within the page."""


@dataclass(frozen=True)
class Client:
    """The files of a release's client, by name, for every survey, language and visitor.

    `files` are the modules, the styles and the texts of each language. The page itself depends on
    them and on `collector`: the URL of the server that collects the reports if another host serves
    the page, or "" if the collecting server does.
    """

    files: Mapping[str, bytes]
    collector: str = ""
    version: str = field(default=__version__)

    @classmethod
    def load(cls, collector: str = "") -> Client:
        """Load this installation's client as it is served, without comments and long local names.

        They make up half of the bytes. Anyone can build the same bytes from the same sources,
        because the project pins one version of the minifier.
        """
        files = {name: _minified(name, content) for name, content in source_files().items()}
        return cls(files, collector)

    @property
    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of each file, sorted by name."""
        return {name: sha256(content) for name, content in sorted(self.files.items())}

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the lines `<sha256 of file>  <name>`, sorted by name."""
        lines = (f"{digest}  {name}\n" for name, digest in self.file_hashes.items())
        return sha256("".join(lines).encode("utf-8"))

    @property
    def base(self) -> str:
        """The folder of the files; a page on another host has them in a folder beside it."""
        return f"{'' if self.collector else '/'}client/{self.sha256}"

    @cached_property
    def page(self) -> bytes:
        """The page of every survey; it lists each file with its hash."""
        return self._page(self.collector)

    def preview(self, preview: Preview) -> bytes:
        """Return the page of a draft, with the same files; no server has its collector's address.

        The page contains the definition, because the draft has no address on any server.
        """
        return self._page(NO_COLLECTOR, preview)

    def _page(self, collector: str, preview: Preview | None = None) -> bytes:
        template = Environment(
            loader=FileSystemLoader(PACKAGE / "templates" / "respond"), autoescape=True
        ).get_template(INDEX)
        names = sorted(name for name in self.files if name.endswith(".js"))
        page = template.render(
            version=self.version,
            collector=collector,
            preview=preview,
            # Inline, because each file costs another request on a slow connection.
            icon=self.files[ICON].decode("utf-8"),
            style=self._reference(STYLE),
            # Listed, because browsers otherwise discover imports one level at a time.
            modules=[self._reference(name) for name in names if name not in SCRIPTS],
            scripts=[self._reference(name) for name in SCRIPTS],
            words_files=[
                {"language": language, **self._reference(words_file(language))}
                for language in LANGUAGES
            ],
            title=" · ".join(say(language, "shell.title") for language in LANGUAGES),
            notices=[_notice(language) for language in LANGUAGES],
        )
        return page.encode("utf-8")

    def _reference(self, name: str) -> dict[str, str]:
        digest = hashlib.sha256(self.files[name]).digest()
        integrity = f"sha256-{base64.b64encode(digest).decode('ascii')}"
        return {"path": f"{self.base}/{name}", "integrity": integrity}

    @cached_property
    def served(self) -> dict[str, bytes]:
        """The content of the page and all files, by path relative to the page's address."""
        folder = self.base.removeprefix("/")
        return {INDEX: self.page, **{f"{folder}/{name}": self.files[name] for name in self.files}}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The version, the SHA-256 of each file by path, and the headers that a host must send."""
        return {
            "format": MANIFEST_FORMAT,
            "version": self.version,
            "collector": self.collector,
            "files": {path: sha256(content) for path, content in sorted(self.served.items())},
            "headers": respondent_headers(self.collector),
        }

    @property
    def manifest_bytes(self) -> bytes:
        """The manifest as a file."""
        return json.dumps(self.manifest, indent=1).encode("utf-8")

    def webcat_config(self, source: str) -> dict[str, Any]:
        """Return the configuration from which `webcat` creates the manifest that operators sign.

        `source` is the URL of this version's source code. Every address without a file shows the
        page. Source: freedomofpress/webcat-docs, config-schema.md.
        """
        return {
            "app": source,
            "version": self.version,
            "default_csp": self.manifest["headers"]["page"]["Content-Security-Policy"],
            "extra_csp": {},
            "default_index": INDEX,
            "default_fallback": f"/{INDEX}",
            "wasm": [],
        }


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some content in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def source_files() -> dict[str, bytes]:
    """Return the client's sources and texts, from the checkout or otherwise from the package."""
    checkout = PACKAGE.parent / "client_js" / "src"
    folder = (
        checkout
        if (PACKAGE.parent / "pyproject.toml").exists() and checkout.is_dir()
        else PACKAGE / "static" / "client"
    )
    sources = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in CONTENT_TYPES
    }
    words = {words_file(language): device_texts(language) for language in LANGUAGES}
    return dict(sorted({**sources, **words}.items()))


def words_file(language: str) -> str:
    """Return the name of the file with the texts of a language."""
    return f"words.{language}.json"


def _notice(language: str) -> dict[str, str]:
    """Return the notice that the page shows until its modules run."""
    return {
        "language": language,
        "direction": say(language, "language.direction"),
        "title": say(language, "shell.title"),
        "needs": say(language, "shell.needs"),
        "stays": say(language, "shell.stays"),
        "nothing": say(language, "cannot.nothing"),
    }


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

    def response(self, content_type: str, status: int = 200) -> Response:
        """Return a response in the best coding that the current request accepts."""
        coding = next((coding for coding in CODINGS if request.accept_encodings[coding] > 0), None)
        body = self.coded[coding] if coding else self.plain
        response = Response(body, status, content_type=content_type)
        response.headers["Vary"] = "Accept-Encoding"
        if coding:
            response.headers["Content-Encoding"] = coding
        return response


compress = lru_cache(maxsize=64)(Compressed.from_bytes)
"""Compress a content that many requests share, and remember the result."""
