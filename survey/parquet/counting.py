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

from survey.errors import CountsError, NotFoundError
from survey.estimator.tables.crosstab import LARGEST_TABLE
from survey.mechanism import AnyChannel, BitVector, SubsetSelection
from survey.mechanism.arrays import Integers
from survey.mechanism.codes import BITS_OF_BYTE, packed_bytes
from survey.parquet.directory import Manifest, holds_bits
from survey.parquet.engines import Table, Value
from survey.questionnaire.kinds import PublishedQuestion
from survey.store import PublishedSurvey, Tally
from survey.store.readable import BUCKET, STRATUM

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


Group = tuple[str, ...]
"""A stratum and a bucket, or nothing where all reports are counted together."""


@dataclass(frozen=True)
class Combinations:
    """How many reports of which group have which combination of pieces, row by row."""

    groups: list[Group]
    values: tuple[Integers, ...]
    n: Integers


@dataclass(frozen=True)
class Reports:
    """The reports of an export in an engine; every method counts all of them there."""

    survey: PublishedSurvey
    manifest: Manifest
    table: Table

    def tally(self) -> Tally:
        """The counts over all strata and buckets, as `Store.tally` gives them.

        Raises CountsError for a code that no device can have sent, and for a number of reports
        that is not the manifest's.
        """
        return self._tallies(())[()]

    def tallies(self) -> dict[tuple[str, str], Tally]:
        """The same for each (stratum, bucket) with reports, as `Store.tallies` gives them."""
        found = self._tallies((STRATUM, BUCKET))
        return {(stratum, bucket): tally for (stratum, bucket), tally in found.items()}

    def joint_counts(self, first: str, second: str) -> Integers:
        """How often reports to two questions came together, shape (counted, counted).

        `first` and `second` are ids of different questions; reports that hold an answer to both
        are counted, once for each pair of options or bits that they support: what
        `survey.estimator.crosstab` takes, with the channels of the two. Raises NotFoundError for
        an unknown question, CountsError for the same one twice, a table of more than 10^7 cells,
        or a code that no device can have sent.
        """
        rows, columns = self._question(first), self._question(second)
        if rows is columns:
            raise CountsError(f"{first} with itself: a cross-tab is of two questions")
        shape = rows.channel.counted, columns.channel.counted
        if shape[0] * shape[1] > LARGEST_TABLE:
            raise CountsError(f"a table of {shape[0]:,} by {shape[1]:,} is above 10^7 cells")
        for question in (rows, columns):
            self._refuse_impossible(question)
        counts: Integers = np.zeros(shape, dtype=np.int64)
        for a in pieces(rows):
            for b in pieces(columns):
                found = self._combinations([a, b])
                seen = np.zeros((a.size, b.size), dtype=np.int64)
                np.add.at(seen, found.values, found.n)
                counts[a.places, b.places] = b.supports(a.supports(seen, 0), 1)
        return counts

    def _question(self, name: str) -> PublishedQuestion:
        for question in self.survey.definition.questions:
            if question.id == name:
                return question
        raise NotFoundError(f'{self.survey.slug} has no question "{name}"')

    def _tallies(self, by: tuple[str, ...]) -> dict[Group, Tally]:
        """The counts of each group of the columns `by`."""
        sizes = self._sizes(by)
        told = [self._told(question, sizes, by) for question in self.survey.definition.questions]
        return {
            group: Tally(
                release=self.manifest.release,
                n=n,
                n_asked=[int(asked[row]) for asked, _ in told],
                counts=[counts[row].tolist() for _, counts in told],
            )
            for row, (group, n) in enumerate(sizes.items())
        }

    def _sizes(self, by: tuple[str, ...]) -> dict[Group, int]:
        """The reports of each group, all of them those that the manifest tells of."""
        found = self._combinations([], by)
        if (n := int(found.n.sum())) != self.manifest.n:
            raise CountsError(f"{n:,} reports; the manifest says {self.manifest.n:,}")
        return dict(zip(found.groups, found.n.tolist(), strict=True))

    def _told(
        self, question: PublishedQuestion, sizes: dict[Group, int], by: tuple[str, ...]
    ) -> tuple[Integers, Integers]:
        """Per group, how many reports hold an answer, and what they support."""
        self._refuse_impossible(question)
        rows = {group: row for row, group in enumerate(sizes)}
        asked = np.zeros(len(rows), dtype=np.int64)
        counts = np.zeros((len(rows), question.channel.counted), dtype=np.int64)
        for piece in pieces(question):
            found = self._combinations([piece], by)
            seen = np.zeros((len(rows), piece.size), dtype=np.int64)
            groups = np.array([rows[group] for group in found.groups], dtype=np.int64)
            np.add.at(seen, (groups, found.values[0]), found.n)
            asked = seen.sum(axis=1)
            counts[:, piece.places] = piece.supports(seen, 1)
        missing = sum(sizes.values()) - int(asked.sum())
        if missing and not question.nullable:
            raise CountsError(f"column {question.id}: {missing:,} codes are missing")
        return asked, counts

    def _combinations(self, of: Sequence[Piece], by: tuple[str, ...] = ()) -> Combinations:
        """Run the expression."""
        found = counted(self.table, [piece.value(self.table) for piece in of], by).to_pyarrow()
        names = [found[name].to_pylist() for name in by]
        return Combinations(
            groups=list(zip(*names, strict=True)) if by else [()] * len(found),
            values=tuple(
                piece.read(found[f"piece_{place}"].to_pylist()) for place, piece in enumerate(of)
            ),
            n=np.array(found["n"].to_pylist(), dtype=np.int64),
        )

    def _refuse_impossible(self, question: PublishedQuestion) -> None:
        for condition in impossible(self.table, question):
            wrong = int(self.table.filter(condition).count().to_pyarrow().as_py())
            if wrong:
                raise CountsError(
                    f"column {question.id}: {wrong:,} codes are none of its "
                    f"{question.channel.kind} channel's"
                )
