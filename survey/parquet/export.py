"""Write an export's Parquet files block by block, and read an export that is complete.

Every file is written under a temporary name and renamed when it is complete, the manifest last:
a reader finds either the earlier export or the new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from survey.errors import ConflictError, NotFoundError, StoreError, SurveyError
from survey.parquet.directory import (
    DEFINITION,
    MANIFEST,
    PARTIAL,
    Manifest,
    check_path,
    holds_bits,
    is_part,
    part_name,
    read_manifest,
)
from survey.parquet.engines import first_line
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import ASKED
from survey.store import BlockColumn, PublishedSurvey, Store
from survey.store.readable import BUCKET, STRATUM, readable_reports

Named = pa.dictionary(pa.int8(), pa.string())
"""One name for all rows of a block: kept once."""


def schema_of(definition: Definition) -> pa.Schema:
    """The columns of an export of a survey, in their order."""
    questions = [pa.field(question.id, type_of(question)) for question in definition.questions]
    return pa.schema([pa.field(STRATUM, Named), pa.field(BUCKET, Named), *questions])


def type_of(question: PublishedQuestion) -> pa.DataType:
    """The type of a question's column."""
    if holds_bits(question.channel):
        return pa.binary(question.channel.code_bytes)
    return pa.uint8() if question.channel.code_bytes == 1 else pa.uint16()


def batch_of(definition: Definition, block: list[BlockColumn]) -> pa.RecordBatch:
    """One block: the columns of all questions, of the same reports in the same order."""
    n = block[0].n
    names = [
        pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int8), [name])
        for name in (block[0].stratum, block[0].bucket)
    ]
    answers = [
        column_of(question, np.frombuffer(column.data, dtype=np.uint8))
        for question, column in zip(definition.questions, block, strict=True)
    ]
    return pa.record_batch([*names, *answers], schema=schema_of(definition))


def column_of(question: PublishedQuestion, stored: NDArray[np.uint8]) -> pa.Array:
    """The stored codes of one question, side by side, as a column."""
    codes, asked = stored.reshape(-1, question.code_bytes), None
    if question.nullable:
        asked, codes = codes[:, 0] == ASKED[0], codes[:, 1:]
    codes = np.ascontiguousarray(codes)
    if holds_bits(question.channel):
        present = None if asked is None else pa.py_buffer(np.packbits(asked, bitorder="little"))
        return pa.Array.from_buffers(type_of(question), len(codes), [present, pa.py_buffer(codes)])
    if question.channel.code_bytes == 2:
        codes = codes.view(">u2").astype(np.uint16)
    return pa.array(codes.ravel(), mask=None if asked is None else ~asked)


BLOCKS_PER_PART = 64
"""Up to four million reports: few files to open, enough for every core to have one."""

Blocks = Iterator[list[BlockColumn]]
Told = Callable[[int], object]


def write_reports(store: Store, survey: PublishedSurvey, directory: Path, told: Told) -> Manifest:
    """Write all released reports of a survey, and only those; returns what was written."""
    check_path(directory)
    # Reports one by one, if randomized: for its owner, until the owner says otherwise.
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_free(directory, survey)
    released, blocks = readable_reports(store, survey)
    parts = tuple(_write_parts(survey, released.release, blocks, directory, told))
    manifest = Manifest(
        slug=survey.slug,
        version=survey.version,
        definition=survey.sha256,
        state=survey.state,
        changed=survey.changed.isoformat(),
        release=released.release,
        n=released.n,
        parts=parts,
    )
    _write(directory / DEFINITION, survey.canonical)
    _write(directory / MANIFEST, manifest.to_json().encode("utf-8"))
    for entry in directory.iterdir():
        if _is_ours(entry.name) and entry.name not in {DEFINITION, MANIFEST, *parts}:
            entry.unlink()
    return manifest


def _check_free(directory: Path, survey: PublishedSurvey) -> None:
    """Refuse a directory with anything in it but what an export of this version left there."""
    strange = sorted(entry.name for entry in directory.iterdir() if not _is_ours(entry.name))
    if strange:
        raise ConflictError(f"{directory} holds {strange[0]}; choose an empty or a new directory")
    try:
        earlier = read_manifest(directory)
    except NotFoundError:
        return  # Empty, or an export was interrupted before it was one.
    if earlier.definition != survey.sha256:
        raise ConflictError(
            f"{directory} holds {earlier.slug} version {earlier.version}, not {survey.slug} "
            f"version {survey.version}; choose an empty or a new directory"
        )


def _is_ours(name: str) -> bool:
    """Whether an export, also one that was interrupted, leaves files of this name."""
    whole = name.removesuffix(PARTIAL)
    return whole in (DEFINITION, MANIFEST) or is_part(whole)


def _write_parts(
    survey: PublishedSurvey, release: int, blocks: Blocks, directory: Path, told: Told
) -> Iterator[str]:
    """Write blocks into as many parts as they take, at least one, and yield the name of each."""
    for number in count():
        first = list(islice(blocks, 1))
        if number and not first:
            return
        name = part_name(release, number)
        some = chain(first, islice(blocks, BLOCKS_PER_PART - 1))
        _write_part(survey, some, directory / name, told)
        yield name


def _write_part(survey: PublishedSurvey, blocks: Blocks, file: Path, told: Told) -> None:
    """One part, a row group per block."""
    partial = file.with_name(file.name + PARTIAL)
    with pq.ParquetWriter(partial, schema_of(survey.definition), compression="zstd") as writer:
        for block in blocks:
            writer.write_batch(batch_of(survey.definition, block))
            told(block[0].n)
    partial.replace(file)


def _write(file: Path, content: bytes) -> None:
    partial = file.with_name(file.name + PARTIAL)
    partial.write_bytes(content)
    partial.replace(file)


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
        raise StoreError(f"{part} is not Parquet: {first_line(error)}") from None
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
