"""The respondents' client: the files that browsers receive, their manifest and compression."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path, PurePath
from typing import Any

import brotli
import minify
from flask import Response, request
from jinja2 import Environment, FileSystemLoader

from survey.questionnaire.drafts.preview import Preview
from survey.respond.bundle import PAGES, join
from survey.respondent_texts import LANGUAGES, SOURCE, device_texts, fieldwork_texts, say
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

ICON_ESCAPES = str.maketrans({'"': "'", "#": "%23"})
"""Characters that the icon must escape to be a data URL in an attribute of the page."""

GUARD = "guard.js"
"""The script that reloads the page if a module is missing."""

SCRIPTS, FIELD_SCRIPTS = PAGES
"""The scripts of the page and of the page of field mode, in order; they contain all modules."""

FIELD_INDEX, FIELD_WORKER = "field/index.html", "field/worker.js"
"""The page of field mode and its service worker, whose address limits it to `/field/`."""

WORKER = "fieldwork-worker.js"
"""The code of the service worker; `FIELD_WORKER` is the list of its files and then this code."""

FIELD_MODULES = (*FIELD_SCRIPTS, WORKER)
"""The files of field mode, which the respondents' page does not load."""

FIELD_SOURCES = (
    *("fieldwork.js", "fieldwork-queue.js", "fieldwork-texts.js", "fieldwork-upload.js"),
    *("fieldwork-view.js", "seal.js", WORKER),
)
"""The modules that only these files contain."""

MANIFEST_FORMAT = 1

NO_COLLECTOR = "preview:"
"""The collector of a preview; `preview.js` answers its requests within the page."""


@dataclass(frozen=True)
class Client:
    """The files of a release's client, by name, for every survey, language and visitor.

    `files` are the scripts, the styles and the texts of each language, as they are served. The page
    itself depends on them and on `collector`: the URL of the server that collects the reports if
    another host serves the page, or "" if the collecting server does.
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
        return cls.from_sources(source_files(), collector)

    @classmethod
    def from_sources(cls, sources: Mapping[str, bytes], collector: str = "") -> Client:
        """Minify sources, and join the modules of each script of the page into one file."""
        return cls(join(minify_sources(sources)), collector)

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

    @cached_property
    def field_page(self) -> bytes:
        """The page of field mode, which also lists its own modules and texts."""
        return self._page(self.collector, is_field=True)

    @cached_property
    def field_worker(self) -> bytes:
        """The service worker of field mode: the list of all files that it may serve, then its code.

        The list contains the page, and each file that the page names, with its hash.
        """
        addresses = {"./": sha256_integrity(self.field_page)}
        for name in self._field_files:
            reference = self._reference(name, is_field=True)
            addresses[reference["path"]] = reference["integrity"]
        form = {"release": self.sha256, "files": sorted(addresses.items())}
        listed = json.dumps(form, separators=(",", ":"))
        return f"self.fieldClient={listed};\n".encode() + self.files[WORKER]

    @property
    def _field_files(self) -> list[str]:
        """The names of the files that the page of field mode loads."""
        excluded_names = (*SCRIPTS, GUARD, WORKER, ICON)
        return [name for name in sorted(self.files) if name not in excluded_names]

    def preview(self, preview: Preview) -> bytes:
        """Return the page of a draft, with the same files; no server has its collector's address.

        The page contains the definition, because the draft has no address on any server.
        """
        return self._page(NO_COLLECTOR, preview)

    def _page(
        self, collector: str, preview: Preview | None = None, *, is_field: bool = False
    ) -> bytes:
        template = Environment(
            loader=FileSystemLoader(PACKAGE / "templates" / "respond"), autoescape=True
        ).get_template(INDEX)
        reference = partial(self._reference, is_field=is_field)
        page = template.render(
            version=self.version,
            collector=collector,
            preview=preview,
            # Inline, because each file costs another request on a slow connection.
            icon=self.files[ICON].decode("utf-8").strip().translate(ICON_ESCAPES),
            style=reference(STYLE),
            # In field mode, the worker has stored all files, so none can be missing.
            guard=None if is_field else reference(GUARD),
            scripts=[reference(name) for name in (FIELD_SCRIPTS if is_field else SCRIPTS)],
            words_files=[
                {"language": language, **reference(words_file(language))} for language in LANGUAGES
            ],
            field_words_files=[
                {"language": language, **reference(field_words_file(language))}
                for language in LANGUAGES
                if is_field
            ],
            heading=say(SOURCE, "cannot.heading"),
            notices=[_notice(language) for language in LANGUAGES],
        )
        return page.encode("utf-8")

    def _reference(self, name: str, *, is_field: bool = False) -> dict[str, str]:
        # On another host, the page of field mode is in a folder next to the files.
        up = "../" if is_field and self.collector else ""
        integrity = sha256_integrity(self.files[name])
        return {"path": f"{up}{self.base}/{name}", "integrity": integrity}

    @cached_property
    def served(self) -> dict[str, bytes]:
        """The content of the page and all files, by path relative to the page's address."""
        folder = self.base.removeprefix("/")
        return {
            INDEX: self.page,
            FIELD_INDEX: self.field_page,
            FIELD_WORKER: self.field_worker,
            **{f"{folder}/{name}": self.files[name] for name in self.files},
        }

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
        page; only the folder of field mode has another policy. Source:
        freedomofpress/webcat-docs, config-schema.md.
        """
        return {
            "app": source,
            "version": self.version,
            "default_csp": self.manifest["headers"]["page"]["Content-Security-Policy"],
            "extra_csp": {
                f"/{PurePath(FIELD_INDEX).parent}/": self.manifest["headers"]["field"][
                    "Content-Security-Policy"
                ]
            },
            "default_index": INDEX,
            "default_fallback": f"/{INDEX}",
            "wasm": [],
        }


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some content in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sha256_integrity(content: bytes) -> str:
    """Return the SHA-256 of some content as browsers read it in `integrity`."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode('ascii')}"


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
    field_words = {field_words_file(language): fieldwork_texts(language) for language in LANGUAGES}
    return dict(sorted({**sources, **words, **field_words}.items()))


def words_file(language: str) -> str:
    """Return the name of the file with the texts of a language."""
    return f"words.{language}.json"


def field_words_file(language: str) -> str:
    """Return the name of the file with the texts of field mode in a language."""
    return f"fieldwork-words.{language}.json"


def _notice(language: str) -> dict[str, str]:
    """Return the notice that the page shows until its modules run."""
    return {
        "language": language,
        "direction": say(language, "language.direction"),
        "reload": say(language, "shell.reload"),
        # Like the comma, the period of Chinese needs no space.
        "text": say(language, "language.comma")[1:].join(
            [say(language, "shell.needs"), say(language, "cannot.nothing")]
        ),
    }


def minify_sources(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the sources with each module and style minified, as single files."""
    return {name: _minified(name, content) for name, content in sources.items()}


@lru_cache(maxsize=128)
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
