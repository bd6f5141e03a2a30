"""A visit: load everything that a browser loads from a survey link, and compare it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from survey.errors import SurveyError
from survey.questionnaire.texts import PICTURE_HASH, PICTURE_TYPE
from survey.respond.client import (
    FIELD_INDEX,
    FIELD_MODULES,
    FIELD_WORKER,
    ICON,
    INDEX,
    MANIFEST,
    SCRIPTS,
    field_words_file,
    sha256,
    words_file,
)
from survey.respondent_texts import LANGUAGES, SOURCE, closest_language
from survey.security import framing_headers
from survey.verification.connection import CodingError, Response
from survey.verification.manifest import (
    VALIDATORS,
    Difference,
    Manifest,
    added_references,
    compare_file,
    compare_headers,
    describe_change,
    manifest_of,
)
from survey.verification.visitors import Visitor

Fetch = Callable[[str, Mapping[str, str]], Response]

VERSION = re.compile(rb'<meta name="version" content="([^"]{1,40})">')
HASH_PREFIX = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32,64}")
SURVEY_PATH = re.compile(r"/s/([a-z0-9]+(?:-[a-z0-9]+)*)/?")
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

WORKER_PATHS = ("/sw.js", "/service-worker.js", "/serviceworker.js", "/worker.js")
"""Usual addresses of service workers; the respondents' origin has no file at them.

A worker at another address is found as well: only an altered page or module can install it.
"""

PICTURE_NAME = re.compile(PICTURE_HASH)

PICTURE_HEADERS: Mapping[str, str] = {
    "content-type": PICTURE_TYPE,
    "content-security-policy": framing_headers("isolated", "")["Content-Security-Policy"],
    "x-content-type-options": "nosniff",
}
"""Headers of pictures: pictures must not run code, nor differ between visitors."""

SHORT_HASH = 16


@dataclass(frozen=True)
class Target:
    """The page to verify, and the survey if the link names one.

    prefix     start of the definition's hash, from the link after "#d="; "" if missing
    collector  origin that collects the reports if another host serves the page, else ""
    """

    page: str
    slug: str
    prefix: str
    collector: str

    @classmethod
    def parse(cls, link: str, collector: str = "") -> Target:
        """Read a survey link or the address of a page; drop an invitation."""
        parts = urlsplit(link)
        try:
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            is_valid = False
        if not is_valid or parts.username is not None:
            raise SurveyError(
                f"{link}: write a survey link or the URL of a page, such as https://HOST/s/SLUG"
            )
        values = {name: value[0] for name, value in parse_qs(parts.fragment).items()}
        prefix = values.get("d", "")
        if prefix and not HASH_PREFIX.fullmatch(prefix):
            raise SurveyError(
                f"#d={prefix} is not the start of a hash (32 digits); copy the whole link"
            )
        page = parts._replace(fragment="", path=parts.path or "/").geturl()
        pattern, text = (SLUG, values.get("slug", "")) if collector else (SURVEY_PATH, parts.path)
        match = pattern.fullmatch(text)
        slug = match[match.lastindex or 0] if match else ""
        if prefix and not slug:
            hint = "#slug=SLUG&d=HASH" if collector else "/s/SLUG#d=HASH"
            raise SurveyError(f"{link} has a hash but names no survey; such links end in {hint}")
        return cls(page, slug, prefix, collector.removesuffix("/"))

    @property
    def link(self) -> str:
        """The link without an invitation."""
        slug = {"slug": self.slug} if self.collector and self.slug else {}
        values = {**slug, **({"d": self.prefix} if self.prefix else {})}
        fragment = "&".join(f"{name}={value}" for name, value in values.items())
        return f"{self.page}{'#' if fragment else ''}{fragment}"

    @property
    def origin(self) -> str:
        """Scheme and host of the page."""
        parts = urlsplit(self.page)
        return f"{parts.scheme}://{parts.netloc}"

    def address(self, path: str) -> str:
        """Return the address of a file of the release."""
        if path == INDEX:
            return self.page
        if path == FIELD_INDEX:
            path = path.removesuffix(INDEX)
        return urljoin(self.page, path if self.collector else f"/{path}")

    @property
    def definition(self) -> str:
        """The address of the definition."""
        return f"{self.collector or self.origin}/s/{self.slug}/definition.json"

    def picture(self, sha256: str) -> str:
        """Return the address of a picture in the definition."""
        return f"{self.collector or self.origin}/pictures/{sha256}"


@dataclass
class Visit:
    """The outcome of one visit.

    version      the version that the page names; "" if it names none
    files        the files with the bytes of the release, by name
    altered      the bytes that differ, by path, "page" or "definition"
    validators   values of ETag and Last-Modified, by path and content coding
    definition   the bytes of the definition; None if the server sends none
    status       the status of the definition's response
    """

    visitor: Visitor
    version: str = ""
    is_known: bool = True
    differences: list[Difference] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    altered: dict[str, bytes] = field(default_factory=dict)
    validators: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    definition: bytes | None = None
    status: int = 0

    def add(self, other: Visit) -> None:
        """Add the differences of another visit by the same visitor."""
        self.differences = list(dict.fromkeys([*self.differences, *other.differences]))
        self.files |= other.files
        self.altered |= other.altered


def visit(
    target: Target,
    visitor: Visitor,
    fetch: Fetch,
    manifests: Mapping[str, Manifest],
) -> Visit:
    """Load what a browser loads, as one visitor, and compare it with the release.

    A page that names no version is compared with the newest one of `manifests`.
    """
    loader = _open(target, visitor, fetch, manifests)
    if loader.outcome.is_known:
        loader.load_client()
        loader.load_definition()
        loader.load_files(loader.needed_texts)
        loader.load_pictures()
        if loader.has_field_mode:
            loader.load_field_mode()
        if visitor.returning:
            loader.load_page()
            loader.load_definition()
    return loader.outcome


def probe(
    target: Target,
    visitor: Visitor,
    fetch: Fetch,
    manifests: Mapping[str, Manifest],
) -> Visit:
    """Load the page and what no browser requests for this survey, as one visitor."""
    loader = _open(target, visitor, fetch, manifests)
    if loader.outcome.is_known:
        loader.load_files({ICON, *map(words_file, LANGUAGES)})
        loader.probe_additions()
    return loader.outcome


def _open(
    target: Target,
    visitor: Visitor,
    fetch: Fetch,
    manifests: Mapping[str, Manifest],
) -> _Loader:
    outcome = Visit(visitor)
    page = fetch(target.page, visitor.headers("document", "none"))
    manifest = _manifest(page, outcome, manifests)
    loader = _Loader(target, visitor, fetch, manifest, outcome)
    if outcome.is_known:
        loader.compare_page(page)
    return loader


def _manifest(page: Response, outcome: Visit, manifests: Mapping[str, Manifest]) -> Manifest:
    """Return the manifest of the version that a page names; the newest one if it is unknown."""
    try:
        match = VERSION.search(page.content)
    except CodingError:
        match = None
    if match is None:
        outcome.differences.append(Difference("page", "it names no version"))
        return manifest_of(manifests, "")
    outcome.version = match[1].decode("utf-8", "replace")
    outcome.is_known = outcome.version in manifests
    return manifest_of(manifests, outcome.version)


@dataclass(frozen=True)
class _Loader:
    target: Target
    visitor: Visitor
    fetch: Fetch
    manifest: Manifest
    outcome: Visit

    def load_page(self) -> None:
        """Load the page and compare it."""
        self.compare_page(self.fetch(self.target.page, self.visitor.headers("document", "none")))

    def compare_page(self, page: Response) -> None:
        """Compare the page, and list additional addresses that it loads."""
        if not self._compare(INDEX, page):
            self.outcome.files[INDEX] = page.content
        elif "page" in self.outcome.altered:
            for address in added_references(self.manifest, self.outcome.altered["page"]):
                self._add("page", f"it also loads {address}")

    def _compare(self, path: str, response: Response, where: str = "", status: int = 200) -> bool:
        """Compare a response with a file of the release; return whether it differs."""
        differences = list(compare_file(self.manifest, path, response, where, status))
        where = where or ("page" if path == INDEX else path)
        self._note(differences, response, where)
        return bool(differences)

    def _note(self, differences: Sequence[Difference], response: Response, where: str) -> None:
        """Note differences, the bytes that have them, and values that could identify a visitor."""
        visit_differences = self.outcome.differences
        visit_differences += [
            difference
            for difference in dict.fromkeys(differences)
            if difference not in visit_differences
        ]
        if differences:
            with suppress(CodingError):
                self.outcome.altered[where] = response.content
        coding = ",".join(response.values("content-encoding"))
        values = (",".join(response.values(name)) for name in sorted(VALIDATORS))
        self.outcome.validators[where, coding] = tuple(values)

    def _add(self, where: str, what: str) -> None:
        self.outcome.differences.append(Difference(where, what))

    def load_client(self) -> None:
        """Load the styles and modules in the order of the page."""
        paths = [
            path
            for path in self.manifest.files
            if PurePath(path).suffix in KINDS
            and path != FIELD_WORKER
            and PurePath(path).name not in FIELD_MODULES
        ]
        for path in sorted(paths, key=_place_in_page):
            self._load(path, KINDS[PurePath(path).suffix])

    def load_files(self, names: Collection[str]) -> None:
        """Load the icon or texts with these names."""
        for path in self.manifest.files:
            if PurePath(path).name in names:
                self._load(path, "empty")

    def _load(self, path: str, kind: str) -> None:
        response = self.fetch(self.target.address(path), self.visitor.headers(kind))
        if not self._compare(path, response):
            is_field = path in (FIELD_INDEX, FIELD_WORKER)
            self.outcome.files[path if is_field else PurePath(path).name] = response.content

    def load_field_mode(self) -> None:
        """Load what a tablet installs in addition to the page's files."""
        if FIELD_INDEX not in self.manifest.files:
            return
        self._load(FIELD_INDEX, "document")
        self._load(FIELD_WORKER, "serviceworker")
        self.load_files({*FIELD_MODULES, *map(field_words_file, LANGUAGES)})

    @property
    def needed_texts(self) -> set[str]:
        """The names of the texts in the survey's languages; all if these are unknown."""
        tags = _languages(self.outcome.definition) or LANGUAGES
        return {words_file(closest_language(tag) or SOURCE) for tag in tags}

    def load_pictures(self) -> None:
        """Load all pictures of the definition, and compare each with its hash."""
        for digest in pictures_in(self.outcome.definition):
            address, where = self.target.picture(digest), f"/pictures/{digest}"
            response = self.fetch(address, self._headers_to_collector(is_cached=True))
            self._note(list(_compare_picture(response, digest, where)), response, where)

    def _headers_to_collector(self, *, is_cached: bool) -> Mapping[str, str]:
        is_elsewhere = bool(self.target.collector)
        return self.visitor.headers(
            "empty",
            "cross-site" if is_elsewhere else "same-origin",
            self.target.origin if is_elsewhere else "",
            is_cached=is_cached,
        )

    @property
    def has_field_mode(self) -> bool:
        """Whether the survey has field mode."""
        return "field" in _form(self.outcome.definition or b"")

    def load_definition(self) -> None:
        """Load the definition, and compare it with the link's hash."""
        if not self.target.slug:
            return
        headers = self._headers_to_collector(is_cached=False)
        response = self.fetch(self.target.definition, headers)
        self.outcome.status = response.status
        differences = list(self._compare_definition(response))
        self._note(differences, response, "definition")

    def _compare_definition(self, response: Response) -> Iterator[Difference]:
        where = "definition"
        if response.status != 200:
            if location := response.values("location"):
                yield Difference(where, f"redirect to {location[0]}")
            elif not response.is_inert:
                yield Difference(where, f"status {response.status} with more than a text")
            return
        yield from compare_headers(self.manifest, where, ".json", response, where)
        if self.target.collector:
            allowed = response.values("access-control-allow-origin")
            if allowed != [self.target.origin]:
                yield Difference(where, f"header Access-Control-Allow-Origin is {allowed}")
        try:
            content = response.content
        except CodingError as error:
            yield Difference(where, str(error))
            return
        digest, prefix = sha256(content), self.target.prefix
        if not digest.startswith(prefix):
            yield Difference(where, f"its hash {digest[:32]} is not the link's {prefix}")
        elif len(prefix) == SHORT_HASH and _format(content) != 1:
            yield Difference(
                where, "the link contains only 16 digits of its hash; it must contain 32"
            )
        elif self.outcome.definition not in (None, content):
            yield Difference(where, describe_change(self.outcome.definition, content))
        self.outcome.definition = content

    def probe_additions(self) -> None:
        """Request the manifest, the icon, and addresses that must not exist."""
        self._compare_manifest()
        if self.target.collector:
            for path in WORKER_PATHS:
                address = urljoin(self.target.page, path)
                if self.fetch(address, self.visitor.headers("serviceworker")).status < 400:
                    self._add(path, "the host added this file")
            return
        icon = next(path for path in self.manifest.files if PurePath(path).name == ICON)
        response = self.fetch(f"{self.target.origin}/favicon.ico", self.visitor.headers("image"))
        self._compare(icon, response, "/favicon.ico")
        for path in (*WORKER_PATHS, f"/{secrets.token_hex(4)}"):
            is_worker = path in WORKER_PATHS
            headers = self.visitor.headers("serviceworker" if is_worker else "document")
            response = self.fetch(f"{self.target.origin}{path}", headers)
            where = path if is_worker else "an address that must not exist"
            self._compare(INDEX, response, where, 404)

    def _compare_manifest(self) -> None:
        address = self.target.address(MANIFEST)
        response = self.fetch(address, self.visitor.headers("empty"))
        differences: list[Difference] = []
        if not self.target.collector:
            differences += compare_headers(self.manifest, "page", ".json", response, MANIFEST)
        try:
            form = json.loads(response.content)
        except (ValueError, RecursionError, CodingError):
            form = None
        if response.status != 200 or form != self.manifest.to_json():
            message = f"it is not the manifest of the release (status {response.status})"
            differences.append(Difference(MANIFEST, message))
        self._note(differences, response, MANIFEST)


KINDS: Mapping[str, str] = {".js": "script", ".css": "style"}
"""How browsers request the files that the page lists, by suffix."""


def _place_in_page(path: str) -> tuple[bool, int, str]:
    """Return what sorts files as the page lists them: styles, modules, and what it runs."""
    name = PurePath(path).name
    return name.endswith(".js"), SCRIPTS.index(name) + 1 if name in SCRIPTS else 0, name


def _form(definition: bytes) -> dict[str, object]:
    try:
        form = json.loads(definition)
    except (ValueError, RecursionError):
        return {}
    return form if isinstance(form, dict) else {}


def _format(definition: bytes) -> object:
    return _form(definition).get("format")


def pictures_in(definition: bytes | None) -> list[str]:
    """Return the hash of each picture in a definition, in order; [] if it is damaged."""
    form: Any = _form(definition) if definition is not None else {}
    with suppress(AttributeError, KeyError, TypeError):
        options = [
            option
            for page in form["pages"]
            for question in page["questions"]
            for option in question["options"]
        ]
        hashes = [option["picture"]["sha256"] for option in options if "picture" in option]
        if all(PICTURE_NAME.fullmatch(digest) for digest in hashes):
            return list(dict.fromkeys(hashes))
    return []


def _compare_picture(response: Response, digest: str, where: str) -> Iterator[Difference]:
    if response.status != 200:
        yield Difference(where, f"status {response.status} instead of 200")
        return
    for name, value in PICTURE_HEADERS.items():
        if response.values(name) != [value]:
            yield Difference(where, f"header {name} is {response.values(name)} instead of {value}")
    if response.values("set-cookie"):
        yield Difference(where, "it sets a cookie")
    with suppress(CodingError):
        if sha256(response.content) == digest:
            return
    yield Difference(where, "its content does not match the hash in the definition")


def _languages(definition: bytes | None) -> list[str] | None:
    """Return the languages of a definition; None if they are unknown."""
    form = _form(definition) if definition is not None else {}
    language, translations = form.get("language"), form.get("translations", {})
    if not isinstance(language, str) or not isinstance(translations, dict):
        return None
    return [language, *translations]
