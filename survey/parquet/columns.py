"""Columns of a survey's questions in Parquet, from the codes as the store keeps them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from survey.parquet.directory import holds_bits
from survey.questionnaire.definition import Definition
from survey.questionnaire.published import ASKED, PublishedQuestion
from survey.store import BlockColumn
from survey.store.readable import BUCKET, STRATUM

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
