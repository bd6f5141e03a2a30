"""Writes the released reports of a survey as Parquet, block by block in constant memory.

Every file is written under another name and renamed when it is complete, the manifest last: a
reader finds the earlier export or the new one, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count, islice
from pathlib import Path

import pyarrow.parquet as pq

from survey.errors import ConflictError, NotFoundError
from survey.parquet.columns import batch_of, schema_of
from survey.parquet.directory import (
    DEFINITION,
    MANIFEST,
    PARTIAL,
    Manifest,
    check_path,
    is_part,
    part_name,
    read_manifest,
)
from survey.store import BlockColumn, PublishedSurvey, Store
from survey.store.readable import readable_reports

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
