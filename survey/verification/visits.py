"""A visit: load everything that a browser loads from a survey link, and compare it."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from urllib.parse import parse_qs, urljoin, urlsplit

from survey.errors import SurveyError
from survey.respond.client import INDEX, MANIFEST, sha256, words_file
from survey.respondent_texts import LANGUAGES, SOURCE, closest_language
from survey.verification.connection import CodingError, Response
from survey.verification.manifest import (
    Difference,
    Manifest,
    added_references,
    compare_file,
    compare_headers,
    describe_change,
)
from survey.verification.visitors import Visitor

Fetch = Callable[[str, Mapping[str, str]], Response]

VERSION = re.compile(rb'<meta name="version" content="([^"]{1,40})">')
HASH_PREFIX = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32,64}")
SURVEY_PATH = re.compile(r"/s/([a-z0-9]+(?:-[a-z0-9]+)*)/?")
SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

WORKER_PATHS = ("/sw.js", "/service-worker.js")
"""Usual addresses of service workers; the respondents' origin has no file at them."""

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
        return urljoin(self.page, path if self.collector else f"/{path}")

    @property
    def definition(self) -> str:
        """The address of the definition."""
        return f"{self.collector or self.origin}/s/{self.slug}/definition.json"


@dataclass
class Visit:
    """The outcome of one visit.

    version      the version that the page names; "" if it names none
    definition   the bytes of the definition; None if the server sends none
    status       the status of the definition's response
    """

    visitor: Visitor
    version: str = ""
    is_known: bool = True
    differences: list[Difference] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    definition: bytes | None = None
    status: int = 0


def visit(
    target: Target,
    visitor: Visitor,
    fetch: Fetch,
    manifests: Mapping[str, Manifest],
    newest: Manifest,
    *,
    everything: bool = False,
) -> Visit:
    """Load what a browser loads, as one visitor, and compare it with the release.

    `everything`: also load files that this survey does not need, such as texts in other languages.
    A page that names no version is compared with `newest`.
    """
    outcome = Visit(visitor)
    page = fetch(target.page, visitor.headers("document", "none"))
    manifest = _manifest_of(page, outcome, manifests, newest)
    if manifest is None:
        return outcome
    loader = _Loader(target, visitor, fetch, manifest, outcome)
    loader.compare_page(page)
    loader.load_definition()
    loader.load_files(everything=everything)
    loader.probe_additions()
    if visitor.returning:
        loader.compare_page(fetch(target.page, visitor.headers("document", "none")))
        loader.load_definition()
    outcome.differences = list(dict.fromkeys(outcome.differences))
    return outcome


def _manifest_of(
    page: Response, outcome: Visit, manifests: Mapping[str, Manifest], newest: Manifest
) -> Manifest | None:
    """Return the manifest of the version that a page names; None if it is unknown."""
    try:
        match = VERSION.search(page.content)
    except CodingError:
        match = None
    if match is None:
        outcome.differences.append(Difference("page", "it names no version"))
        return newest
    outcome.version = match[1].decode("utf-8", "replace")
    manifest = manifests.get(outcome.version)
    outcome.is_known = manifest is not None
    return manifest


@dataclass(frozen=True)
class _Loader:
    target: Target
    visitor: Visitor
    fetch: Fetch
    manifest: Manifest
    outcome: Visit

    def compare_page(self, page: Response) -> None:
        """Compare the page, and list additional addresses that it loads."""
        differences = list(compare_file(self.manifest, INDEX, page))
        self.outcome.differences += differences
        if any("the bytes differ" in difference.what for difference in differences):
            for address in added_references(self.manifest, page.content):
                self.outcome.differences.append(Difference("page", f"it also loads {address}"))

    def load_definition(self) -> None:
        """Load the definition, and compare it with the link's hash."""
        if not self.target.slug:
            return
        is_elsewhere = bool(self.target.collector)
        headers = self.visitor.headers(
            "empty",
            "cross-site" if is_elsewhere else "same-origin",
            self.target.origin if is_elsewhere else "",
        )
        response = self.fetch(self.target.definition, headers)
        self.outcome.status = response.status
        if response.status != 200:
            self._check_refusal(response)
            return
        self.outcome.differences += compare_headers(
            self.manifest, "definition", ".json", response, "definition"
        )
        if is_elsewhere:
            allowed = response.values("access-control-allow-origin")
            if allowed != [self.target.origin]:
                self._add(f"header Access-Control-Allow-Origin is {allowed}")
        try:
            content = response.content
        except CodingError as error:
            self._add(str(error))
            return
        if not sha256(content).startswith(self.target.prefix):
            self._add(f"its hash {sha256(content)[:32]} is not the link's {self.target.prefix}")
        elif len(self.target.prefix) == SHORT_HASH and _format(content) != 1:
            self._add("the link contains only 16 digits of its hash; it must contain 32")
        elif self.outcome.definition not in (None, content):
            self._add(describe_change(self.outcome.definition, content))
        self.outcome.definition = content

    def _check_refusal(self, response: Response) -> None:
        if location := response.values("location"):
            self._add(f"redirect to {location[0]}")
        elif not response.is_inert:
            self._add(f"status {response.status} with more than a text")

    def _add(self, what: str) -> None:
        self.outcome.differences.append(Difference("definition", what))

    def load_files(self, *, everything: bool) -> None:
        """Load the files in alphabetical order, as the page lists them."""
        unneeded = set() if everything else self._unneeded()
        for path in self.manifest.files:
            name = PurePath(path).name
            if path == INDEX or name in unneeded:
                continue
            kind = {".js": "script", ".css": "style"}.get(PurePath(path).suffix, "empty")
            response = self.fetch(self.target.address(path), self.visitor.headers(kind))
            differences = list(compare_file(self.manifest, path, response))
            self.outcome.differences += differences
            if response.status == 200 and not differences:
                self.outcome.files[name] = response.content

    def _unneeded(self) -> set[str]:
        languages = _languages(self.outcome.definition)
        if languages is None:
            return set()
        needed = {words_file(closest_language(tag) or SOURCE) for tag in languages}
        return {words_file(language) for language in LANGUAGES} - needed | {"favicon.svg"}

    def probe_additions(self) -> None:
        """Request the manifest, the icon, and addresses that must not exist."""
        self._compare_manifest()
        if self.target.collector:
            for path in WORKER_PATHS:
                address = urljoin(self.target.page, path)
                if self.fetch(address, self.visitor.headers("serviceworker")).status < 400:
                    self.outcome.differences.append(Difference(path, "the host added this file"))
            return
        icon = next(path for path in self.manifest.files if path.endswith("favicon.svg"))
        response = self.fetch(f"{self.target.origin}/favicon.ico", self.visitor.headers("image"))
        self.outcome.differences += compare_file(self.manifest, icon, response, "/favicon.ico")
        for path in (*WORKER_PATHS, f"/{secrets.token_hex(4)}"):
            is_worker = path in WORKER_PATHS
            headers = self.visitor.headers("serviceworker" if is_worker else "document")
            response = self.fetch(f"{self.target.origin}{path}", headers)
            where = path if is_worker else "an address that must not exist"
            self.outcome.differences += compare_file(self.manifest, INDEX, response, where, 404)

    def _compare_manifest(self) -> None:
        address = self.target.address(MANIFEST)
        response = self.fetch(address, self.visitor.headers("empty"))
        if not self.target.collector:
            self.outcome.differences += compare_headers(
                self.manifest, "page", ".json", response, MANIFEST
            )
        try:
            form = json.loads(response.content)
        except (ValueError, RecursionError, CodingError):
            form = None
        if response.status != 200 or form != self.manifest.to_json():
            what = f"it is not the manifest of the release (status {response.status})"
            self.outcome.differences.append(Difference(MANIFEST, what))


def _form(definition: bytes) -> dict[str, object]:
    try:
        form = json.loads(definition)
    except (ValueError, RecursionError):
        return {}
    return form if isinstance(form, dict) else {}


def _format(definition: bytes) -> object:
    return _form(definition).get("format")


def _languages(definition: bytes | None) -> list[str] | None:
    """Return the languages of a definition; None if they are unknown."""
    form = _form(definition) if definition is not None else {}
    language, translations = form.get("language"), form.get("translations", {})
    if not isinstance(language, str) or not isinstance(translations, dict):
        return None
    return [language, *translations]
