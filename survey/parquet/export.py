"""Write an export's Parquet files block by block, and read an export that is complete.

Every file is written under a temporary name and renamed when it is complete, the manifest last:
a reader finds either the earlier export or the new one. The directory has these files:

    definition.json             the published definition, byte for byte
    codebook.csv                each column, the labels of its codes, and the options of its bits
    manifest.json               the contents; written last, so that it marks a complete export
    release-000012-00000.parquet ...    the reports, in no meaningful order

A part has one row per report: a column per question, named by its id, and the columns `_stratum`
and `_bucket`, whose names no question can have. Integer codes are uint8 for up to 256 codes,
otherwise uint16. Bit strings are fixed-size binary; option 0 is the highest bit of the first
byte. A code is null if a survey that samples its questions did not ask the question, or if too
few released reports of the stratum answer it. Debiased columns of doubles may follow: their plain
averages are the published shares and means. Parquet stores each of their few values once per block.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from itertools import chain, count, islice
from pathlib import Path
from typing import cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from survey.errors import ConflictError, NotFoundError, SettingsError, StoreError, SurveyError
from survey.parquet.engines import first_line
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import ASKED_PREFIX
from survey.results.exports.csv import to_csv
from survey.results.exports.report_table import (
    DebiasedColumn,
    VariableRow,
    added_columns,
    code_variables,
    codebook_rows,
    debiased_values,
)
from survey.store import BlockColumn, PublishedSurvey, State, Store
from survey.store.releases import BUCKET, STRATUM, read_microdata

DEFINITION = "definition.json"
CODEBOOK = "codebook.csv"
MANIFEST = "manifest.json"
DOCUMENTS = (DEFINITION, CODEBOOK, MANIFEST)
PARTIAL = ".partial"
FORMAT = 1

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


NAME_TYPE = pa.dictionary(pa.int8(), pa.string())
"""The type of columns with the same name in all rows of a block, which is stored once."""

BLOCKS_PER_PART = 64
"""At most four million reports per part: few files, yet enough for every core."""

Batches = Iterator[pa.RecordBatch]
Progress = Callable[[int], object]
"""Called after each block with its number of reports."""


Debiased = Sequence[Sequence[DebiasedColumn]]
"""The debiased columns of each question, which an export need not have."""


def schema_of(definition: Definition, debiased: Debiased = ()) -> pa.Schema:
    """Return the columns of a survey's export, in order: those of codes, then debiased ones."""
    questions = [pa.field(question.id, type_of(question)) for question in definition.questions]
    added = [pa.field(c.variable.name, pa.float64()) for columns in debiased for c in columns]
    return pa.schema(
        [pa.field(STRATUM, NAME_TYPE), pa.field(BUCKET, NAME_TYPE), *questions, *added]
    )


def type_of(question: PublishedQuestion) -> pa.DataType:
    """Return the type of a question's column."""
    if question.channel.report_bits:
        return pa.binary(question.channel.code_bytes)
    return pa.uint8() if question.channel.code_bytes == 1 else pa.uint16()


def batch_of(
    definition: Definition, block: list[BlockColumn], debiased: Debiased = ()
) -> pa.RecordBatch:
    """Return one block: the columns of all questions, with the same reports in the same order."""
    n = block[0].n
    names = [
        pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int8), [name])
        for name in (block[0].stratum, block[0].bucket)
    ]
    stored = [np.frombuffer(column.data, dtype=np.uint8) for column in block]
    answers = map(column_of, definition.questions, stored)
    added = [
        # Engines leave nulls out of an average, but not every engine leaves out nan.
        pa.array(values, from_pandas=True)
        for question, columns, codes in zip(definition.questions, debiased, stored, strict=False)
        for values in debiased_values(question, columns, codes)
    ]
    schema = schema_of(definition, debiased)
    return pa.record_batch([*names, *answers, *added], schema=schema)


def column_of(question: PublishedQuestion, stored: NDArray[np.uint8]) -> pa.Array:
    """Convert the stored codes of one question to a column."""
    codes, is_asked = stored.reshape(-1, question.code_bytes), None
    if question.nullable:
        is_asked, codes = codes[:, 0] == ASKED_PREFIX[0], codes[:, 1:]
    codes = np.ascontiguousarray(codes)
    if question.channel.report_bits:
        mask = is_asked if is_asked is None else np.packbits(is_asked, bitorder="little")
        validity = None if mask is None else pa.py_buffer(mask)
        return pa.Array.from_buffers(type_of(question), len(codes), [validity, pa.py_buffer(codes)])
    if question.channel.code_bytes == 2:
        codes = codes.view(">u2").astype(np.uint16)
    return pa.array(codes.ravel(), mask=None if is_asked is None else ~is_asked)


def write_reports(
    store: Store,
    survey: PublishedSurvey,
    directory: Path,
    progress: Progress,
    *,
    with_debiased: bool = False,
) -> Manifest:
    """Write the released reports of a survey, and only these, and return the manifest."""
    check_path(directory)
    # Only the owner may read single reports, although they are randomized.
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_free(directory, survey)
    survey.require_intact_dates()
    released, blocks = read_microdata(store, survey)
    debiased = added_columns(survey.definition, released) if with_debiased else []
    batches = (batch_of(survey.definition, block, debiased) for block in blocks)
    schema = schema_of(survey.definition, debiased)
    parts = tuple(_write_parts(schema, released.release, batches, directory, progress))
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
    variables = [
        *code_variables(survey.definition),
        *(column.variable for columns in debiased for column in columns),
    ]
    codebook = to_csv(codebook_rows(variables), VariableRow)
    _write(directory / CODEBOOK, codebook.encode("utf-8"))
    _write(directory / DEFINITION, survey.canonical)
    _write(directory / MANIFEST, manifest.to_json().encode("utf-8"))
    for entry in directory.iterdir():
        if _is_export_file(entry.name) and entry.name not in {*DOCUMENTS, *parts}:
            entry.unlink()
    return manifest


def _check_free(directory: Path, survey: PublishedSurvey) -> None:
    """Raise ConflictError unless the directory is empty or contains an export of this version."""
    foreign = sorted(e.name for e in directory.iterdir() if not _is_export_file(e.name))
    if foreign:
        raise ConflictError(
            f"{directory} contains {foreign[0]}; choose an empty or a new directory"
        )
    try:
        earlier = read_manifest(directory)
    except NotFoundError:
        return  # The directory is empty, or an earlier export was interrupted.
    if earlier.definition != survey.sha256:
        raise ConflictError(
            f"{directory} contains {earlier.slug} version {earlier.version}, not {survey.slug} "
            f"version {survey.version}; choose an empty or a new directory"
        )


def _is_export_file(name: str) -> bool:
    """Return whether a complete or an interrupted export writes a file with this name."""
    final = name.removesuffix(PARTIAL)
    return final in DOCUMENTS or is_part(final)


def _write_parts(
    schema: pa.Schema, release: int, batches: Batches, directory: Path, progress: Progress
) -> Iterator[str]:
    """Write batches into as many parts as needed, at least one, and yield the name of each."""
    for number in count():
        first = list(islice(batches, 1))
        if number and not first:
            return
        name = part_name(release, number)
        content = chain(first, islice(batches, BLOCKS_PER_PART - 1))
        _write_part(schema, content, directory / name, progress)
        yield name


def _write_part(schema: pa.Schema, batches: Batches, file: Path, progress: Progress) -> None:
    """Write one part with a row group per batch."""
    partial = file.with_name(file.name + PARTIAL)
    with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            progress(batch.num_rows)
    partial.replace(file)


def _write(file: Path, content: bytes) -> None:
    partial = file.with_name(file.name + PARTIAL)
    partial.write_bytes(content)
    partial.replace(file)


@dataclass(frozen=True)
class Export:
    """A complete export: its manifest, its survey, and the files of its reports."""

    manifest: Manifest
    survey: PublishedSurvey
    parts: tuple[Path, ...]


def read_export(directory: Path) -> Export:
    """Read an export after checking its definition's hash and the columns and size of every part.

    Raises NotFoundError if there is no export, and StoreError that names an invalid file.
    """
    check_path(directory)
    manifest = read_manifest(directory)
    survey = manifest.survey(_definition(directory / DEFINITION, manifest))
    parts = tuple(directory / part for part in manifest.parts)
    schema = _plain(schema_of(survey.definition))
    n = sum(_count_rows(part, schema) for part in parts)
    if n != manifest.n:
        raise StoreError(f"{directory} contains {n:,} reports; its manifest says {manifest.n:,}")
    return Export(manifest, survey, parts)


def _definition(file: Path, manifest: Manifest) -> bytes:
    """Read the definition's bytes; StoreError unless their hash is the manifest's."""
    if not file.exists():
        raise StoreError(f"{file} is missing")
    canonical = file.read_bytes()
    digest = hashlib.sha256(canonical).hexdigest()
    if digest != manifest.definition:
        raise StoreError(
            f"{file} has the SHA-256 {digest[:16]}...; the manifest says "
            f"{manifest.definition[:16]}..."
        )
    try:
        definition = manifest.survey(canonical).definition
    except (KeyError, TypeError, ValueError, SurveyError) as error:
        raise StoreError(f"{file} is not a definition: {error}") from None
    if (definition.slug, definition.version) != (manifest.slug, manifest.version):
        raise StoreError(
            f"{file} is {definition.slug} version {definition.version}; the manifest says "
            f"{manifest.slug} version {manifest.version}"
        )
    return canonical


def _count_rows(part: Path, schema: pa.Schema) -> int:
    """Return a part's number of reports from its footer; StoreError for other columns."""
    if not part.exists():
        raise StoreError(f"{part} is missing")
    try:
        with pq.ParquetFile(part) as file:
            columns, rows = _plain(file.schema_arrow), int(file.metadata.num_rows)
    except pa.ArrowException as error:
        raise StoreError(f"{part} is not Parquet: {first_line(error)}") from None
    for field in schema:
        place = columns.get_field_index(field.name)
        if place < 0:
            raise StoreError(f"{part} has no column {field.name}")
        if columns.field(place).type != field.type:
            raise StoreError(
                f"{part}: column {field.name} is {columns.field(place).type}, not {field.type}"
            )
    return rows


def _plain(schema: pa.Schema) -> pa.Schema:
    """Replace dictionary columns by their values' type, so that both encodings are equal."""
    return pa.schema(
        pa.field(field.name, field.type.value_type)
        if pa.types.is_dictionary(field.type)
        else pa.field(field.name, field.type)
        for field in schema
    )
