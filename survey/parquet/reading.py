"""An export as it is found: refused by name unless all of it is there and as it was written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from survey.errors import StoreError, SurveyError
from survey.parquet.columns import schema_of
from survey.parquet.directory import DEFINITION, Manifest, check_path, read_manifest
from survey.store import PublishedSurvey


@dataclass(frozen=True)
class Export:
    """A whole export: its manifest, its survey, and the files of its reports."""

    manifest: Manifest
    survey: PublishedSurvey
    parts: tuple[Path, ...]


def read_export(directory: Path) -> Export:
    """Check a directory's definition by its hash, and every part's columns and size.

    Raises NotFoundError where there is no export, StoreError naming the file that is wrong.
    """
    check_path(directory)
    manifest = read_manifest(directory)
    survey = manifest.survey(_definition(directory / DEFINITION, manifest))
    parts = tuple(directory / part for part in manifest.parts)
    schema = _plain(schema_of(survey.definition))
    n = sum(_checked_rows(part, schema) for part in parts)
    if n != manifest.n:
        raise StoreError(f"{directory} holds {n:,} reports; its manifest says {manifest.n:,}")
    return Export(manifest, survey, parts)


def _definition(file: Path, manifest: Manifest) -> bytes:
    """The definition's bytes, which must be those that the manifest names."""
    if not file.exists():
        raise StoreError(f"{file} is missing")
    canonical = file.read_bytes()
    found = hashlib.sha256(canonical).hexdigest()
    if found != manifest.definition:
        raise StoreError(
            f"{file} has the SHA-256 {found[:16]}...; the manifest says "
            f"{manifest.definition[:16]}..."
        )
    read = manifest.survey(canonical)
    try:
        definition = read.definition
    except (KeyError, TypeError, ValueError, SurveyError) as error:
        raise StoreError(f"{file} is not a definition: {error}") from None
    if (definition.slug, definition.version) != (manifest.slug, manifest.version):
        raise StoreError(
            f"{file} is {definition.slug} version {definition.version}; the manifest says "
            f"{manifest.slug} version {manifest.version}"
        )
    return canonical


def _checked_rows(part: Path, schema: pa.Schema) -> int:
    """How many reports a part holds; only its footer is read."""
    if not part.exists():
        raise StoreError(f"{part} is missing")
    try:
        with pq.ParquetFile(part) as file:
            found, rows = _plain(file.schema_arrow), int(file.metadata.num_rows)
    except pa.ArrowException as error:
        raise StoreError(f"{part} is not Parquet: {_first_line(error)}") from None
    for field in schema:
        place = found.get_field_index(field.name)
        if place < 0:
            raise StoreError(f"{part} has no column {field.name}")
        if found.field(place).type != field.type:
            raise StoreError(
                f"{part}: column {field.name} is {found.field(place).type}, not {field.type}"
            )
    return rows


def _plain(schema: pa.Schema) -> pa.Schema:
    """A schema in which it does not matter how a column of names is kept."""
    return pa.schema(
        pa.field(field.name, field.type.value_type)
        if pa.types.is_dictionary(field.type)
        else pa.field(field.name, field.type)
        for field in schema
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
