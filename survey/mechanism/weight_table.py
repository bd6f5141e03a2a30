"""Weight tables: any finite channel as an integer matrix, row = truth, column = report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.accounting import log_rounded_up
from survey.mechanism.arrays import AnyIntegers, Codes, Floats, Integers
from survey.mechanism.codes import count_indices, encode_index, index_bytes
from survey.mechanism.shapes import Shape, shape_from_json
from survey.mechanism.weights import (
    UniformBelow,
    check_integers,
    check_total,
    check_truth,
    check_truths,
)

MAX_NO_ANSWERS = 2
"""At most "prefer not to say" and "does not apply"."""


@dataclass(frozen=True)
class WeightTable:
    """P(j | i) = W[i][j] / M, with M the sum that all rows share.

    epsilon = ln max_j (max_i W[i][j] / min_i W[i][j]), from the integers that run.
    The last `no_answers` truths and reports stand for "prefer not to say" and "does not apply";
    they are part of the table, and epsilon is not larger for them.

    >>> from survey.mechanism.shapes import Explicit
    >>> WeightTable(Explicit(((3, 1), (1, 3)))).ratio
    Fraction(3, 1)
    """

    shape: Shape
    no_answers: int = 0

    def __post_init__(self) -> None:
        check_integers(no_answers=self.no_answers)
        if not 0 <= self.no_answers <= MAX_NO_ANSWERS:
            raise ChannelError(f"no_answers = {self.no_answers} must be from 0 to {MAX_NO_ANSWERS}")
        check_total(self.total)

    @property
    def kind(self) -> str:
        """The name of this kind of channel in a definition."""
        return "weight_table"

    @cached_property
    def weights(self) -> Integers:
        """The integers that run, shape (truths, reports); rows have equal sums."""
        plain = self.shape.rows()
        if (plain == plain[0]).all():
            raise ChannelError("all rows are alike: the reports would say nothing")
        rows = with_no_answers(plain, self.no_answers)
        rows.flags.writeable = False
        return rows

    @property
    def truths(self) -> int:
        """Different true answers that the channel takes."""
        return len(self.weights)

    @property
    def options(self) -> int:
        """What one number each is estimated for: the truths."""
        return self.truths

    @property
    def reports(self) -> int:
        """Number of different reports."""
        return len(self.weights[0])

    @cached_property
    def total(self) -> int:
        """M, the range of the one draw."""
        return int(self.weights[0].sum())

    @cached_property
    def ratio(self) -> Fraction:
        """e^epsilon, exactly."""
        return largest_ratio(self.weights)

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up."""
        return log_rounded_up(self.ratio)

    @property
    def matrix(self) -> Floats:
        """P(report | truth), shape (truths, reports); rows sum to 1."""
        return self.weights / self.total

    @property
    def code_bytes(self) -> int:
        """Bytes of one stored code, the index of a report."""
        return index_bytes(self.reports)

    @property
    def longest_code(self) -> int:
        """A code of the greatest length on the wire."""
        return self.reports - 1

    @property
    def counted(self) -> int:
        """Length of the vector of counts: one per report."""
        return self.reports

    def encode(self, code: object) -> bytes:
        """The stored bytes of a code of the wire, or ChannelError saying what it must be."""
        return encode_index(code, self.reports)

    def count(self, codes: Codes) -> Integers:
        """How often each report came, shape (reports,)."""
        return count_indices(codes, self.reports)

    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> Integers:
        """Perturb many truths at once, shape (n,), for simulation."""
        truths = check_truths(truths, self.truths)
        u = rng.integers(0, self.total, size=truths.shape, dtype=np.int64)
        reports = np.empty(truths.shape, dtype=np.int64)
        for truth in np.unique(truths):
            here = truths == truth
            reports[here] = np.searchsorted(np.cumsum(self.weights[truth]), u[here], side="right")
        return reports

    def perturb_one(self, truth: int, uniform_below: UniformBelow) -> int:
        """Perturb one truth with one draw; the whole row is scanned whatever comes out."""
        truth = check_truth(truth, self.truths)
        u = uniform_below(self.total)
        # report = number of partial sums of the row that u has reached.
        return int((u >= np.cumsum(self.weights[truth])).sum())

    def to_json(self) -> dict[str, Any]:
        """The form a definition carries: the shape's integers, never the matrix."""
        return {"kind": self.kind, "table": self.shape.to_json(), "no_answers": self.no_answers}


def table_from_json(form: Mapping[str, Any]) -> WeightTable:
    """Build the weight table that a definition carries."""
    if set(form) != {"kind", "table", "no_answers"} or not isinstance(form["table"], Mapping):
        raise ChannelError("a weight_table channel has kind, table, no_answers")
    return WeightTable(shape_from_json(form["table"]), form["no_answers"])


def largest_ratio(weights: Integers) -> Fraction:
    """max_j (max_i W[i][j] / min_i W[i][j]) as an exact fraction."""
    pairs = np.unique(np.stack([weights.max(axis=0), weights.min(axis=0)], axis=1), axis=0)
    return max(Fraction(int(most), int(least)) for most, least in pairs)


def with_no_answers(rows: Integers, no_answers: int) -> Integers:
    """Add truths that are no answer, each with a report of its own, at no cost in epsilon.

    With rho the largest ratio, M the row sum, m_j the column minima: every other row gives the
    new report A = floor((M - sum m_j) / (rho - 1)), the new row gives it floor(rho A) and m_j to
    the reports there were; what rounding leaves goes to the first columns that have room below
    their maximum. Sums stay equal, no column's ratio exceeds rho.
    """
    if no_answers == 0:
        return rows.copy()
    least, most = rows.min(axis=0), rows.max(axis=0)
    row_sum, rho = int(rows[0].sum()), largest_ratio(rows)
    others = int((row_sum - int(least.sum())) / (rho - 1))
    own = int(rho * others)
    if others < 1:
        raise ChannelError('this table has no room for an answer like "prefer not to say"')
    silent = _filled(least, most, row_sum + others - own)
    extended = np.full((len(rows) + no_answers, rows.shape[1] + no_answers), others, np.int64)
    extended[: len(rows), : rows.shape[1]] = rows
    for i in range(no_answers):
        extended[len(rows) + i, : rows.shape[1]] = silent
        extended[len(rows) + i, rows.shape[1] + i] = own
    return extended


def _filled(least: Integers, most: Integers, row_sum: int) -> Integers:
    """Column minima, raised from the left until they add up to `row_sum`."""
    room = np.cumsum(most - least)
    missing = row_sum - int(least.sum())
    raised = np.minimum(room, missing)
    return least + np.diff(raised, prepend=0)
