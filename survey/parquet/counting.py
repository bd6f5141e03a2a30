"""Tallies and cross-tabs of an export, as the store's counts and as the estimator takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survey.errors import CountsError, NotFoundError
from survey.estimator.tables.crosstab import LARGEST_TABLE
from survey.parquet.directory import Manifest
from survey.parquet.engines import Table
from survey.parquet.expression import Integers, Piece, counted, impossible, pieces
from survey.questionnaire.published import PublishedQuestion
from survey.store import PublishedSurvey, Tally
from survey.store.readable import BUCKET, STRATUM

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
                asked=[int(asked[row]) for asked, _ in told],
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
