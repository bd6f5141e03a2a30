"""The one Ibis expression that counts, and the pieces of codes that it counts by.

A code is counted as an integer, or byte by byte where it is a bit string: every piece has at
most 10,000 values, so that what comes back from an engine is small however many reports there
are, and however many different sets they name. Of each byte the bits are known; so are, of two
bytes counted together, the pairs of their bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, or_

import ibis
import numpy as np

from survey.errors import CountsError
from survey.mechanism import AnyChannel, BitVector, SubsetSelection
from survey.mechanism.arrays import Integers
from survey.mechanism.codes import BITS_OF_BYTE, packed_bytes
from survey.parquet.directory import holds_bits
from survey.parquet.engines import Table, Value
from survey.questionnaire.published import PublishedQuestion

HEX_DIGITS = "0123456789ABCDEF"

BITS_PER_CONDITION = 32
"""Options compared in one condition; engines take thousands of terms, but slowly."""


def _hex(code: bytes) -> str:
    """Two capital hexadecimal digits per byte: both engines have it under this name."""
    raise NotImplementedError


_in_engine = ibis.udf.scalar.builtin(
    _hex, name="hex", signature=((ibis.dtype("binary"),), ibis.dtype("string"))
)


def counted(reports: Table, pieces: Sequence[Value], by: Sequence[str] = ()) -> Table:
    """How many reports have each combination of pieces, in each group of the columns `by`.

    One row per group and combination that occurs: the columns of `by`, piece_0, piece_1, ...,
    and n. Reports of which a piece is null are left out. No piece: the size of each group; one:
    a tally; two of different questions: a cross-tab.
    """
    named = {f"piece_{place}": piece for place, piece in enumerate(pieces)}
    asked = reports.mutate(**named).drop_null(list(named)) if named else reports
    return asked.aggregate(by=[*by, *named], n=asked.count())


@dataclass(frozen=True)
class Piece:
    """A part of a question's code: an integer, or one byte of a bit string.

    `size` values are possible; `places` are those in the channel's counts that it tells of.
    """

    question: PublishedQuestion
    byte: int | None

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.question.channel.counted if self.byte is None else 256

    @property
    def places(self) -> slice:
        """The counts that it tells of."""
        if self.byte is None:
            return slice(0, self.size)
        return slice(8 * self.byte, min(8 * self.byte + 8, self.question.channel.counted))

    def value(self, reports: Table) -> Value:
        """The piece as an expression."""
        code = reports[self.question.id]
        if self.byte is None or self.question.channel.code_bytes == 1:
            return code
        return _in_engine(code).substr(2 * self.byte, 2)

    def read(self, values: Sequence[int | str | bytes]) -> Integers:
        """The values that came back as integers; CountsError for one that no report can have."""
        found = np.array([_integer(value) for value in values], dtype=np.int64)
        outside = (found < 0) | (found >= self.size)
        if self.byte is not None:
            # The bits after the last option: no report has one.
            spare = 8 * self.byte + 8 - self.places.stop
            outside |= (found & ((1 << spare) - 1)) > 0
        if outside.any():
            raise CountsError(self._refusal(int(found[outside][0])))
        return found

    def supports(self, counts: Integers, axis: int) -> Integers:
        """Counts of the values along an axis as counts of `places`."""
        if self.byte is None:
            return counts
        bits = BITS_OF_BYTE[:, : self.places.stop - self.places.start]
        return np.moveaxis(np.tensordot(counts, bits, axes=(axis, 0)), -1, axis)

    def _refusal(self, value: int) -> str:
        if self.byte is None:
            return f"column {self.question.id}: code {value} must be from 0 to {self.size - 1}"
        return (
            f"column {self.question.id}: byte {self.byte} is {value:02x}; a code is "
            f"{self.question.channel.counted} bits, and those after them are 0"
        )


def _integer(value: int | str | bytes) -> int:
    """A piece's value: a code, a byte in hexadecimal, or the one byte of a bit string."""
    if isinstance(value, str):
        return int(value, 16)
    return int.from_bytes(value, "big") if isinstance(value, bytes) else value


def pieces(question: PublishedQuestion) -> list[Piece]:
    """What a question's codes are counted by."""
    if not holds_bits(question.channel):
        return [Piece(question, None)]
    return [Piece(question, byte) for byte in range(packed_bytes(question.channel.counted))]


def impossible(reports: Table, question: PublishedQuestion) -> list[Value]:
    """Conditions that no report of a question fulfils, beyond what its pieces tell.

    Sets have d options; sampled bits are of exactly as many options, and only of those.
    """
    channel: AnyChannel = question.channel
    code = _in_engine(reports[question.id]) if holds_bits(channel) else None
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        return [_ones(code, channel.k) != channel.d]
    if not isinstance(channel, BitVector) or not channel.is_sampled:
        return []
    m = channel.m
    options = range(0, m, BITS_PER_CONDITION)
    return [_ones(code, m) != channel.sampled] + [
        reduce(
            or_,
            (
                _is_one(code, m + option) & ~_is_one(code, option)
                for option in range(start, min(start + BITS_PER_CONDITION, m))
            ),
        )
        for start in options
    ]


def _ones(code: Value, bits: int) -> Value:
    """How many of the first bits are 1.

    For each of a digit's four bits, the digits that are left without those where it is 0.
    """
    whole = code.substr(0, bits // 4)
    full = [whole.translate(_digits(bit, one=False), "").length() for bit in range(4)]
    rest = [_is_one(code, bit).ifelse(1, 0) for bit in range(bits - bits % 4, bits)]
    return reduce(add, [*full, *rest])


def _is_one(code: Value, bit: int) -> Value:
    """Whether a bit is 1; bit 0 is the highest of the first digit."""
    return code.substr(bit // 4, 1).isin(list(_digits(bit % 4, one=True)))


def _digits(bit: int, *, one: bool) -> str:
    """The hexadecimal digits in which a bit is 1, or 0; bit 0 is the highest.

    >>> _digits(0, one=True)
    '89ABCDEF'
    """
    return "".join(
        digit for value, digit in enumerate(HEX_DIGITS) if bool(value & (8 >> bit)) == one
    )
