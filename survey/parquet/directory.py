"""The directory of an export: its files, its columns, and its manifest.

    definition.json             the published definition, byte for byte
    manifest.json               the contents; written last, so that it marks a complete export
    release-000012-00000.parquet ...    the reports, in no meaningful order

A part has one row per report: a column per question, named by its id, and the columns `_stratum`
and `_bucket`, whose names no question can have. Integer codes are uint8 for up to 256 codes,
otherwise uint16. Bit strings are fixed-size binary; option 0 is the highest bit of the first
byte. A code is null if a survey that samples its questions did not ask the question.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import cast, get_args

from survey.errors import NotFoundError, SettingsError, StoreError
from survey.store import PublishedSurvey, State

DEFINITION = "definition.json"
MANIFEST = "manifest.json"
PARTIAL = ".partial"
FORMAT = 1

ENGINES = {"duckdb": "parquet", "pyspark": "scale"}
"""Each engine and the extra that installs it."""

PATTERNS = frozenset("*?[]{}\\")
"""Characters that engines interpret as patterns in a path and that would match other files."""


def check_path(directory: Path) -> None:
    """Raise SettingsError for a path that an engine would interpret as a pattern.

    >>> check_path(Path("/data/wave[1]"))
    Traceback (most recent call last):
    survey.errors.SettingsError: /data/wave[1]: engines read [ ] as patterns; choose another name
    """
    if characters := sorted(PATTERNS & set(str(directory.absolute()))):
        raise SettingsError(
            f"{directory}: engines read {' '.join(characters)} as patterns; choose another name"
        )


@dataclass(frozen=True)
class Manifest:
    """The contents of an export: `n` reports of one survey version, in the files `parts`.

    `definition` is the SHA-256 of the definition and `release` the number of the last exported
    release. `state` and `changed` describe the survey at that time.
    """

    slug: str
    version: int
    definition: str
    state: State
    changed: str
    release: int
    n: int
    parts: tuple[str, ...]
    format: int = FORMAT

    def to_json(self) -> str:
        """Return the manifest as JSON text; equal manifests have equal texts."""
        return json.dumps(asdict(self), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def survey(self, canonical: bytes) -> PublishedSurvey:
        """Return the survey as it was at the export; its key 0 belongs to no store."""
        changed = date.fromisoformat(self.changed)
        return PublishedSurvey(
            0, self.slug, self.version, self.definition, self.state, changed, canonical
        )


def part_name(release: int, number: int) -> str:
    """Return the file name of a part of an export.

    >>> part_name(12, 0)
    'release-000012-00000.parquet'
    """
    return f"release-{release:06}-{number:05}.parquet"


def is_part(name: str) -> bool:
    """Return whether `part_name` can return this name.

    >>> [is_part(name) for name in (part_name(3, 0), "release-notes.parquet")]
    [True, False]
    """
    return re.fullmatch(r"release-[0-9]{6,}-[0-9]{5,}\.parquet", name) is not None


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of an export.

    Raises NotFoundError if there is none, and StoreError if the file is not a valid manifest.
    """
    file = directory / MANIFEST
    try:
        form = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise NotFoundError(
            f"{directory} is not an export: it has no {MANIFEST}; "
            "survey export SLUG --parquet DIR writes one"
        ) from None
    except ValueError as error:
        raise StoreError(f"{file} is not JSON: {error}") from None
    if not isinstance(form, dict) or form.get("format") != FORMAT:
        raise StoreError(f"{file} must be a manifest of format {FORMAT}")
    if set(form) != {field.name for field in fields(Manifest)} or not _fits(form):
        raise StoreError(f"{file} must hold {', '.join(field.name for field in fields(Manifest))}")
    return Manifest(**{**form, "parts": tuple(form["parts"])})


def _fits(form: dict[str, object]) -> bool:
    """Return whether the values have the manifest's types and the parts are plain file names."""
    parts = cast("list[object]", form["parts"]) if isinstance(form["parts"], list) else [None]
    return (
        all(type(form[name]) is int for name in ("version", "release", "n"))
        and all(isinstance(form[name], str) for name in ("slug", "definition"))
        and form["state"] in get_args(State)
        and _is_date(form["changed"])
        # With plain names no manifest can make a reader open files elsewhere.
        and all(isinstance(part, str) and is_part(part) for part in parts)
    )


def _is_date(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(date.fromisoformat(text))
    except ValueError:
        return False
