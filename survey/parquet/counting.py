"""Tallies and cross-tabs of an export, in the form that the store and the estimator use.

One Ibis expression counts pieces of codes: a whole code if it is an integer, or each byte of a
bit string. Every piece has at most 10,000 values, so the engine returns a small table, whatever
the number of reports and of different sets. The counts of byte values give the counts of bits,
and the joint counts of two bytes give those of pairs of bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, or_

import ibis
import numpy as np

from survey.errors import CountsError, NotFoundError
from survey.estimator.tables.crosstab import MAX_CELLS
from survey.mechanism import AnyChannel, BitVector, SubsetSelection
from survey.mechanism.channel import BITS_OF_BYTE, Integers, packed_bytes
from survey.parquet.engines import Table, Value
from survey.parquet.export import Manifest
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import PublishedSurvey, Tally
from survey.store.releases import BUCKET, STRATUM

HEX_DIGITS = "0123456789ABCDEF"

BITS_PER_CONDITION = 32
"""Options compared in one condition; engines handle thousands of terms, but slowly."""


def _hex(code: bytes) -> str:
    """Return two capital hexadecimal digits per byte; both engines provide `hex`."""
    raise NotImplementedError


_engine_hex = ibis.udf.scalar.builtin(
    _hex, name="hex", signature=((ibis.dtype("binary"),), ibis.dtype("string"))
)


def count_combinations(reports: Table, pieces: Sequence[Value], by: Sequence[str] = ()) -> Table:
    """Count the reports with each combination of pieces, in each group of the columns `by`.

    Returns one row per group and combination that occurs, with the columns of `by`, piece_0,
    piece_1, ..., and n. A piece is null in a row of reports without an answer. The
    result is the size of each group without pieces, a tally with one piece, and a cross-tab with
    two pieces of different questions.
    """
    columns = {f"piece_{place}": piece for place, piece in enumerate(pieces)}
    with_pieces = reports.mutate(**columns)
    return with_pieces.aggregate(by=[*by, *columns], n=with_pieces.count())


@dataclass(frozen=True)
class Piece:
    """A part of a question's code: an integer, or one byte of a bit string.

    It has `size` possible values and determines the elements `places` of the channel's counts.
    """

    question: PublishedQuestion
    byte: int | None

    @property
    def size(self) -> int:
        """The number of possible values."""
        return self.question.channel.counted if self.byte is None else 256

    @property
    def places(self) -> slice:
        """The elements of the channel's counts that this piece determines."""
        if self.byte is None:
            return slice(0, self.size)
        return slice(8 * self.byte, min(8 * self.byte + 8, self.question.channel.counted))

    def value(self, reports: Table) -> Value:
        """Return the piece as an expression."""
        code = reports[self.question.id]
        if self.byte is None or self.question.channel.code_bytes == 1:
            return code
        return _engine_hex(code).substr(2 * self.byte, 2)

    def decode(self, values: Sequence[int | str | bytes]) -> Integers:
        """Convert an engine's values to integers; CountsError for a value that no report has."""
        integers = np.array([_integer(value) for value in values], dtype=np.int64)
        outside = (integers < 0) | (integers >= self.size)
        if self.byte is not None:
            # No report has a 1 in the bits after the last option.
            spare = 8 * self.byte + 8 - self.places.stop
            outside |= (integers & ((1 << spare) - 1)) > 0
        if outside.any():
            raise CountsError(self._error(int(integers[outside][0])))
        return integers

    def supports(self, counts: Integers, axis: int) -> Integers:
        """Convert counts of values along an axis to counts of `places`."""
        if self.byte is None:
            return counts
        bits = BITS_OF_BYTE[:, : self.places.stop - self.places.start]
        return np.moveaxis(np.tensordot(counts, bits, axes=(axis, 0)), -1, axis)

    def _error(self, value: int) -> str:
        if self.byte is None:
            return f"column {self.question.id}: code {value} must be from 0 to {self.size - 1}"
        return (
            f"column {self.question.id}: byte {self.byte} is {value:02x}; a code is "
            f"{self.question.channel.counted} bits, and those after them are 0"
        )


def _integer(value: int | str | bytes) -> int:
    """Convert a piece's value: a code, a byte in hexadecimal, or a single byte."""
    if isinstance(value, str):
        return int(value, 16)
    return int.from_bytes(value, "big") if isinstance(value, bytes) else value


def pieces(question: PublishedQuestion) -> list[Piece]:
    """Return the pieces by which a question's codes are counted."""
    if not question.channel.report_bits:
        return [Piece(question, None)]
    return [Piece(question, byte) for byte in range(packed_bytes(question.channel.counted))]


def invalid_codes(reports: Table, question: PublishedQuestion) -> list[Value]:
    """Return conditions that only invalid codes fulfil, in addition to the checks of each piece.

    A set has d options. A sampled code names `sampled` options and reports only bits of these.
    """
    channel: AnyChannel = question.channel
    code = _engine_hex(reports[question.id]) if channel.report_bits else None
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
    """Return how many of the first bits are 1.

    For each of a digit's four bits, delete the digits in which it is 0 and count the others.
    """
    digits = code.substr(0, bits // 4)
    full = [digits.translate(_digits(bit, is_one=False), "").length() for bit in range(4)]
    remaining = [_is_one(code, bit).ifelse(1, 0) for bit in range(bits - bits % 4, bits)]
    return reduce(add, [*full, *remaining])


def _is_one(code: Value, bit: int) -> Value:
    """Return whether a bit is 1; bit 0 is the highest of the first digit."""
    return code.substr(bit // 4, 1).isin(list(_digits(bit % 4, is_one=True)))


def _digits(bit: int, *, is_one: bool) -> str:
    """Return the hexadecimal digits in which a bit is 1, or 0; bit 0 is the highest.

    >>> _digits(0, is_one=True)
    '89ABCDEF'
    """
    return "".join(
        digit for value, digit in enumerate(HEX_DIGITS) if bool(value & (8 >> bit)) == is_one
    )


Group = tuple[str, ...]
"""A stratum and a bucket, or an empty tuple if all reports are counted together."""


@dataclass(frozen=True)
class Combinations:
    """Rows of counts: the group, the combination of pieces, and the number of reports."""

    groups: list[Group]
    values: tuple[Integers, ...]
    n: Integers


@dataclass(frozen=True)
class Reports:
    """The reports of an export in an engine, in which every method counts all of them."""

    survey: PublishedSurvey
    manifest: Manifest
    table: Table

    def tally(self) -> Tally:
        """Return the counts over all strata and buckets, as `Store.tally` does.

        Raises CountsError for an invalid code, or if the number of reports differs from the
        manifest's.
        """
        return self._tallies(())[()]

    def tallies(self) -> dict[tuple[str, str], Tally]:
        """Return the counts of each (stratum, bucket) with reports, as `Store.tallies` does."""
        tallies = self._tallies((STRATUM, BUCKET))
        return {(stratum, bucket): tally for (stratum, bucket), tally in tallies.items()}

    def joint_counts(self, first: str, second: str) -> Integers:
        """Return the joint counts of two questions' reports, shape (counted, counted).

        `first` and `second` are ids of different questions. Every report to both questions counts
        once for each pair of options or bits that it supports. `survey.estimator.crosstab`
        accepts the result. Raises NotFoundError for an unknown question, and CountsError for the
        same question twice, more than 10^7 cells, or an invalid code.
        """
        rows, columns = self._question(first), self._question(second)
        if rows is columns:
            raise CountsError(f"{first} with itself: a cross-tab needs two different questions")
        shape = rows.channel.counted, columns.channel.counted
        if shape[0] * shape[1] > MAX_CELLS:
            raise CountsError(f"a table of {shape[0]:,} by {shape[1]:,} is above 10^7 cells")
        for question in (rows, columns):
            self._check_codes(question)
        counts: Integers = np.zeros(shape, dtype=np.int64)
        for a in pieces(rows):
            for b in pieces(columns):
                combinations = self._combinations([a, b])
                table = np.zeros((a.size, b.size), dtype=np.int64)
                np.add.at(table, combinations.values, combinations.n)
                counts[a.places, b.places] = b.supports(a.supports(table, 0), 1)
        return counts

    def _question(self, name: str) -> PublishedQuestion:
        for question in self.survey.definition.questions:
            if question.id == name:
                return question
        raise NotFoundError(f'{self.survey.slug} has no question "{name}"')

    def _tallies(self, by: tuple[str, ...]) -> dict[Group, Tally]:
        """Return the counts of each group of the columns `by`."""
        sizes = self._sizes(by)
        tallies = [self._counts(q, sizes, by) for q in self.survey.definition.questions]
        return {
            group: Tally(
                release=self.manifest.release,
                n=n,
                n_asked=[int(n_asked[row]) for n_asked, _ in tallies],
                counts=[counts[row].tolist() for _, counts in tallies],
            )
            for row, (group, n) in enumerate(sizes.items())
        }

    def _sizes(self, by: tuple[str, ...]) -> dict[Group, int]:
        """Return the number of reports per group; CountsError if the sum is not the manifest's."""
        groups = self._combinations([], by)
        if (n := int(groups.n.sum())) != self.manifest.n:
            raise CountsError(f"{n:,} reports; the manifest says {self.manifest.n:,}")
        return dict(zip(groups.groups, groups.n.tolist(), strict=True))

    def _counts(
        self, question: PublishedQuestion, sizes: dict[Group, int], by: tuple[str, ...]
    ) -> tuple[Integers, Integers]:
        """Return per group the number of reports with an answer, and their counts."""
        self._check_codes(question)
        rows = {group: row for row, group in enumerate(sizes)}
        n_asked = np.zeros(len(rows), dtype=np.int64)
        counts = np.zeros((len(rows), question.channel.counted), dtype=np.int64)
        for piece in pieces(question):
            combinations = self._combinations([piece], by)
            table = np.zeros((len(rows), piece.size), dtype=np.int64)
            groups = np.array([rows[group] for group in combinations.groups], dtype=np.int64)
            np.add.at(table, (groups, combinations.values[0]), combinations.n)
            n_asked = table.sum(axis=1)
            counts[:, piece.places] = piece.supports(table, 1)
        missing = sum(sizes.values()) - int(n_asked.sum())
        if missing and not question.nullable:
            raise CountsError(f"column {question.id}: {missing:,} codes are missing")
        return n_asked, counts

    def _combinations(self, pieces: Sequence[Piece], by: tuple[str, ...] = ()) -> Combinations:
        """Run the expression in the engine."""
        rows = count_combinations(
            self.table, [piece.value(self.table) for piece in pieces], by
        ).to_pyarrow()
        # Drop nulls here, because the engine would compare each report with null, which is slower.
        rows = rows.drop_null()
        names = [rows[name].to_pylist() for name in by]
        return Combinations(
            groups=list(zip(*names, strict=True)) if by else [()] * len(rows),
            values=tuple(
                piece.decode(rows[f"piece_{place}"].to_pylist())
                for place, piece in enumerate(pieces)
            ),
            n=np.array(rows["n"].to_pylist(), dtype=np.int64),
        )

    def _check_codes(self, question: PublishedQuestion) -> None:
        for condition in invalid_codes(self.table, question):
            n_invalid = int(self.table.filter(condition).count().to_pyarrow().as_py())
            if n_invalid:
                raise CountsError(
                    f"column {question.id}: {n_invalid:,} codes are not valid for its "
                    f"{question.channel.kind} channel"
                )
