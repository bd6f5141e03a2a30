"""The directory of an export: its files, its columns, and the manifest that makes it one.

    definition.json             the published definition, byte for byte
    manifest.json               what is here; written last, so that with it everything is complete
    release-000012-00000.parquet ...    the reports, in no meaningful order

A part has one row per report: a column per question named by its id, and `_stratum` and
`_bucket`, whose names no question can have. Integers are uint8 up to 256 codes, else uint16; bit
strings fixed-size binary, option 0 the highest bit of the first byte; null where a survey that
draws its questions did not ask.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import cast, get_args

from survey.errors import NotFoundError, SettingsError, StoreError
from survey.mechanism import AnyChannel, BitVector, SubsetSelection
from survey.store import PublishedSurvey
from survey.store.protocol import State

DEFINITION = "definition.json"
MANIFEST = "manifest.json"
PARTIAL = ".partial"
FORMAT = 1

ENGINES = {"duckdb": "parquet", "pyspark": "scale"}
"""Each engine, and the extra that brings it."""


PATTERNS = frozenset("*?[]{}\\")
"""What engines take for patterns in a path: with them they would read other files, too."""


def check_path(directory: Path) -> None:
    """Refuse a directory whose path an engine would take for a pattern.

    >>> check_path(Path("/data/wave[1]"))
    Traceback (most recent call last):
    survey.errors.SettingsError: /data/wave[1]: engines take [ ] for patterns; choose another name
    """
    if found := sorted(PATTERNS & set(str(directory.absolute()))):
        raise SettingsError(
            f"{directory}: engines take {' '.join(found)} for patterns; choose another name"
        )


@dataclass(frozen=True)
class Manifest:
    """What an export holds: `n` reports of one version of a survey, in the files `parts`.

    `definition` is the SHA-256 of the definition, `release` the number of the release after which
    it was written, `state` and `changed` those of the survey at that time.
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
        """The manifest as text; one manifest has one."""
        return json.dumps(asdict(self), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def survey(self, canonical: bytes) -> PublishedSurvey:
        """The survey as it was when the export was written; its key is that of no store."""
        changed = date.fromisoformat(self.changed)
        return PublishedSurvey(
            0, self.slug, self.version, self.definition, self.state, changed, canonical
        )


def part_name(release: int, number: int) -> str:
    """The name of a part of an export.

    >>> part_name(12, 0)
    'release-000012-00000.parquet'
    """
    return f"release-{release:06}-{number:05}.parquet"


def is_part(name: str) -> bool:
    """Whether a name is one that `part_name` gives.

    >>> [is_part(name) for name in (part_name(3, 0), "release-notes.parquet")]
    [True, False]
    """
    return re.fullmatch(r"release-[0-9]{6,}-[0-9]{5,}\.parquet", name) is not None


def read_manifest(directory: Path) -> Manifest:
    """The manifest of an export; NotFoundError where there is none, StoreError for another file."""
    file = directory / MANIFEST
    try:
        form = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise NotFoundError(
            f"{directory} is no export: it has no {MANIFEST}; "
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
    """Whether the values are of the manifest's types, and its parts files beside it."""
    parts = cast("list[object]", form["parts"]) if isinstance(form["parts"], list) else [None]
    return (
        all(type(form[name]) is int for name in ("version", "release", "n"))
        and all(isinstance(form[name], str) for name in ("slug", "definition"))
        and form["state"] in get_args(State)
        and _is_date(form["changed"])
        # A part is a plain name: no manifest makes a reader open files elsewhere.
        and all(isinstance(part, str) and is_part(part) for part in parts)
    )


def _is_date(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def holds_bits(channel: AnyChannel) -> bool:
    """Whether a channel's codes are bit strings, and not integers.

    >>> [holds_bits(SubsetSelection(k=8, d=d, T=3, L=1)) for d in (1, 2)]
    [False, True]
    """
    return isinstance(channel, BitVector) or (
        isinstance(channel, SubsetSelection) and channel.d > 1
    )
