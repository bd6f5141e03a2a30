"""Weight tables: any finite channel as an integer matrix, row = truth, column = report.

A shape describes a table by a few integers, from which Python and the client build the same rows.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import permutations
from math import comb, factorial
from typing import Any, ClassVar

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.channel import (
    AnyIntegers,
    Channel,
    Floats,
    Integers,
    UniformBelow,
    check_grid,
    check_integers,
    check_total,
    check_truth,
    check_truths,
    check_two_weights,
)

MAX_EXPLICIT = 64
MAX_REPORTS = 4_096

MIN_RANKED = 3
MAX_RANKED = 6
"""Minimum and maximum number of ranked options: six options have 6! = 720 rankings, or rows."""


class Shape(ABC):
    """A few parameters, which a definition holds, and the table that they describe."""

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @abstractmethod
    def rows(self) -> Integers:
        """Return the weights, shape (truths, reports); all rows have the same sum."""

    def to_json(self) -> dict[str, Any]:
        """Return the name and the parameters: integers, lists of integers, and other shapes."""
        parameters = {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}
        return {"name": self.name, **parameters}


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    return value.to_json() if isinstance(value, Shape) else value


@dataclass(frozen=True)
class Window(Shape):
    """k ordered truths; truth i gives weight T to the reports of a window and L to all others.

    The window of truth i begins at report i * stride and has `width` reports, so there are
    (k-1) stride + width reports. Stride 1 and width 2b+1 give the square wave (Li et al. 2020) on
    a grid, a larger stride the piecewise mechanism (Wang et al. 2019).
    """

    name: ClassVar[str] = "window"
    k: int
    width: int
    stride: int
    T: int
    L: int

    def __post_init__(self) -> None:
        check_integers(k=self.k, width=self.width, stride=self.stride, T=self.T, L=self.L)
        check_grid(self.k)
        if self.width < 1 or self.stride < 1 or self.reports > MAX_REPORTS:
            raise ChannelError(
                f"a window of width {self.width} and stride {self.stride} has {self.reports:,} "
                f"reports; width and stride are at least 1 and at most {MAX_REPORTS:,} fit"
            )
        outside = self.reports - self.width
        check_two_weights(self.T, self.L, self.width * self.T + outside * self.L)

    @property
    def reports(self) -> int:
        """Number of different reports."""
        return (self.k - 1) * self.stride + self.width

    def rows(self) -> Integers:
        """Return T inside the window and L outside."""
        start = self.stride * np.arange(self.k)[:, None]
        report = np.arange(self.reports)[None, :]
        inside = (report >= start) & (report < start + self.width)
        return np.where(inside, self.T, self.L).astype(np.int64)


@dataclass(frozen=True)
class OneBit(Shape):
    """Truths 0..R; the report is one bit, whose probability grows with the truth.

    P(1 | x) = (xT + (R-x)L) / (R(T+L)), so the estimated mean is unbiased. Source: Duchi,
    Jordan, Wainwright 2018.
    """

    name: ClassVar[str] = "one_bit"
    R: int
    T: int
    L: int

    def __post_init__(self) -> None:
        check_integers(R=self.R, T=self.T, L=self.L)
        check_grid(self.R + 1)
        check_two_weights(self.T, self.L, self.R * (self.T + self.L))

    def rows(self) -> Integers:
        """Return the columns of report 0 and report 1."""
        x = np.arange(self.R + 1, dtype=np.int64)
        weight_of_1 = x * self.T + (self.R - x) * self.L
        return np.stack([self.R * (self.T + self.L) - weight_of_1, weight_of_1], axis=1)


@dataclass(frozen=True)
class ByDistance(Shape):
    """The truth plus symmetric noise, clamped to the grid; noise of +-z has weight `weights[z]`.

    P(truth i is reported as j) = weights[|i-j|] / M inside the grid; each end of the grid has the
    whole tail beyond it. M = weights[0] + 2 (weights[1] + ... + weights[R]) for every truth.
    """

    name: ClassVar[str] = "by_distance"
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        check_integers(**{f"weights[{z}]": weight for z, weight in enumerate(self.weights)})
        check_grid(len(self.weights))
        if min(self.weights) < 1:
            raise ChannelError("every weight must be at least 1: a zero weight gives no privacy")
        check_total(2 * sum(self.weights) - self.weights[0])

    def rows(self) -> Integers:
        """Return the noise around each truth; the ends collect the noise outside the grid."""
        weights = np.array(self.weights, dtype=np.int64)
        k = len(weights)
        grid = np.arange(k)
        rows: Integers = weights[np.abs(grid[:, None] - grid[None, :])]
        tails = np.cumsum(weights[::-1])[::-1]
        rows[:, 0] = tails[grid]
        rows[:, -1] = tails[k - 1 - grid]
        return rows


@dataclass(frozen=True)
class Explicit(Shape):
    """Any integer matrix of up to 64 x 64 whose rows have the same sum."""

    name: ClassVar[str] = "explicit"
    table: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.table}
        if (
            not 2 <= len(self.table) <= MAX_EXPLICIT
            or len(lengths) != 1
            or not (2 <= lengths.pop() <= MAX_EXPLICIT)
        ):
            raise ChannelError(
                f"a table has 2 to {MAX_EXPLICIT} rows of the same 2 to {MAX_EXPLICIT} weights"
            )
        check_integers(
            **{
                f"table[{i}][{j}]": weight
                for i, row in enumerate(self.table)
                for j, weight in enumerate(row)
            }
        )
        for i, row in enumerate(self.table):
            if min(row) < 1:
                raise ChannelError(
                    f"row {i} has a weight below 1: a zero weight gives no "
                    "privacy (epsilon would be infinite); the nearest is 1"
                )
            if sum(row) != sum(self.table[0]):
                raise ChannelError(
                    f"row {i} adds up to {sum(row)}, row 0 to "
                    f"{sum(self.table[0])}; rows have equal sums: {self._nearest_weight(i)}"
                )
        check_total(sum(self.table[0]))

    def _nearest_weight(self, row: int) -> str:
        """Name one weight of this row, or of row 0, that would make both sums equal."""
        missing = sum(self.table[0]) - sum(self.table[row])
        for i, change in ((row, missing), (0, -missing)):
            weight = max(self.table[i])
            if weight + change >= 1:
                break
        j = self.table[i].index(weight)
        return f"the nearest allowed value is table[{i}][{j}] = {weight + change}"

    def rows(self) -> Integers:
        return np.array(self.table, dtype=np.int64)


@dataclass(frozen=True)
class Mixture(Shape):
    """One of two tables, chosen at random; the report shows which table was used.

    Reports of `second` come after those of `first`. The weights of `first` are multiplied by `a`,
    those of `second` by `b`. No report belongs to both, so epsilon is the larger of the two.
    """

    name: ClassVar[str] = "mixture"
    a: int
    first: Window | OneBit
    b: int
    second: Window | OneBit

    def __post_init__(self) -> None:
        check_integers(a=self.a, b=self.b)
        if min(self.a, self.b) < 1:
            raise ChannelError("both parts of a mixture need a weight of at least 1")
        rows = [part.rows() for part in (self.first, self.second)]
        if len(rows[0]) != len(rows[1]):
            raise ChannelError(
                f"the parts of a mixture have {len(rows[0])} and {len(rows[1])} "
                "truths; both numbers must be equal"
            )
        reports = rows[0].shape[1] + rows[1].shape[1]
        if reports > MAX_REPORTS:
            raise ChannelError(f"{reports:,} reports; at most {MAX_REPORTS:,} fit")
        check_total(self.a * int(rows[0][0].sum()) + self.b * int(rows[1][0].sum()))

    def rows(self) -> Integers:
        return np.concatenate([self.a * self.first.rows(), self.b * self.second.rows()], axis=1)


@dataclass(frozen=True)
class FirstOrOrder(Shape):
    """Rankings of m options; a report states a first choice, or the order of `size` options.

    Truth i is the i-th ranking in lexicographic order, `rankings(m)[i]`, from the first place to
    the last. Reports 0 to m-1 state the first choice; the others state the orders of `size`
    options, `permutations(range(m), size)`. Orders of all m options include the first choice, so
    there are no other reports in this case, and `a` is 0. A report that is true of the ranking has
    the weight T, and other reports L, times `a` for first choices and `b` for orders. For every
    ranking, one first choice and one order of each subset are true, so all rows have the same sum

        a (T + (m-1) L) + b C(m, size) (T + (size!-1) L),

    and the ranking does not influence whether the report states a first choice or an order.
    """

    name: ClassVar[str] = "first_or_order"
    m: int
    size: int
    a: int
    b: int
    T: int
    L: int

    def __post_init__(self) -> None:
        check_integers(m=self.m, size=self.size, a=self.a, b=self.b, T=self.T, L=self.L)
        if not MIN_RANKED <= self.m <= MAX_RANKED:
            raise ChannelError(
                f"m = {self.m} options to rank must be from {MIN_RANKED} to {MAX_RANKED}"
            )
        if self.size not in order_sizes(self.m):
            raise ChannelError(
                f"size = {self.size} must be one of {', '.join(map(str, order_sizes(self.m)))} "
                f"for {self.m} options"
            )
        if (self.a == 0) != (self.size == self.m) or min(self.a, self.b - 1) < 0:
            raise ChannelError(
                "first choices and orders need a weight of at least 1 each; the order of all "
                "options includes the first choice, whose weight is then 0"
            )
        order = self.T + (factorial(self.size) - 1) * self.L
        first = self.T + (self.m - 1) * self.L
        total = self.a * first + self.b * comb(self.m, self.size) * order
        check_two_weights(self.T, self.L, total)

    def rows(self) -> Integers:
        """Return T times `a` or `b` where a report is true of the ranking, otherwise L."""
        ranked = rankings(self.m)
        place = np.argsort(ranked, axis=1)
        orders = np.array(list(permutations(range(self.m), self.size)))
        is_first = ranked[:, :1] == np.arange(self.m)
        in_order = (np.diff(place[:, orders], axis=2) > 0).all(axis=2)
        weights = [
            self.a * np.where(is_first, self.T, self.L),
            self.b * np.where(in_order, self.T, self.L),
        ]
        return np.concatenate(weights[0 if self.a else 1 :], axis=1).astype(np.int64)


def order_sizes(m: int) -> tuple[int, ...]:
    """Return the numbers of options, of m, whose order a report may state: 2, 3 or all.

    >>> order_sizes(3), order_sizes(6)
    ((2, 3), (2, 3, 6))
    """
    return (*(size for size in (2, 3) if size < m), m)


def rankings(m: int) -> Integers:
    """Return all rankings of m options in lexicographic order, shape (m!, m).

    Column 0 is the option in the first place.

    >>> rankings(3)[:2].tolist()
    [[0, 1, 2], [0, 2, 1]]
    """
    return np.array(list(permutations(range(m))), dtype=np.int64)


def shape_from_json(form: Mapping[str, Any]) -> Shape:
    """Build a shape from its JSON form in a definition; ChannelError for any other form."""
    parameters = {key: value for key, value in form.items() if key != "name"}
    try:
        match form.get("name"):
            case "window":
                return Window(**parameters)
            case "one_bit":
                return OneBit(**parameters)
            case "by_distance":
                return ByDistance(tuple(parameters.pop("weights")), **parameters)
            case "explicit":
                rows: Sequence[Sequence[int]] = parameters.pop("table")
                return Explicit(tuple(tuple(row) for row in rows), **parameters)
            case "mixture":
                return _mixture(parameters)
            case "first_or_order":
                return FirstOrOrder(**parameters)
    except (TypeError, KeyError, AttributeError) as error:
        name = form.get("name")
        raise ChannelError(f"the table {name!r} has other parameters: {error}") from None
    raise ChannelError(f"unknown table {form.get('name')!r}")


def _mixture(parameters: dict[str, Any]) -> Mixture:
    parts = {}
    for side in ("first", "second"):
        form = parameters.pop(side)
        # Checked before the recursion, because mixtures within mixtures could nest without end.
        if form.get("name") not in (Window.name, OneBit.name):
            raise ChannelError(f"the {side} part of a mixture is a window or one bit")
        parts[side] = shape_from_json(form)
    return Mixture(**parameters, **parts)  # type: ignore[arg-type]


MAX_NO_ANSWERS = 2
"""The answers "prefer not to say" and "does not apply"."""


@dataclass(frozen=True)
class WeightTable(Channel):
    """P(j | i) = W[i][j] / M, where M is the sum of every row.

    epsilon = ln max_j (max_i W[i][j] / min_i W[i][j]), computed from the integers that run.
    The last `no_answers` truths and reports stand for "prefer not to say" and "does not apply";
    they are part of the table and do not increase epsilon.

    >>> WeightTable(Explicit(((3, 1), (1, 3)))).ratio
    Fraction(3, 1)
    """

    kind: ClassVar[str] = "weight_table"
    shape: Shape
    no_answers: int = 0

    def __post_init__(self) -> None:
        check_integers(no_answers=self.no_answers)
        if not 0 <= self.no_answers <= MAX_NO_ANSWERS:
            raise ChannelError(f"no_answers = {self.no_answers} must be from 0 to {MAX_NO_ANSWERS}")
        check_total(self.total)

    @cached_property
    def weights(self) -> Integers:
        """The integers that run, shape (truths, reports); all rows have the same sum."""
        plain = self.shape.rows()
        if (plain == plain[0]).all():
            raise ChannelError("all rows are equal: the reports would carry no information")
        rows = with_no_answers(plain, self.no_answers)
        rows.flags.writeable = False
        return rows

    @property
    def options(self) -> int:
        return len(self.weights)

    @property
    def reports(self) -> int:
        """Number of different reports."""
        return len(self.weights[0])

    @cached_property
    def total(self) -> int:
        """M, the range of the single draw."""
        return int(self.weights[0].sum())

    @cached_property
    def ratio(self) -> Fraction:
        return largest_ratio(self.weights)

    @property
    def matrix(self) -> Floats:
        """P(report | truth), shape (truths, reports); rows sum to 1."""
        return _matrix(self)

    @property
    def counted(self) -> int:
        return self.reports

    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> Integers:
        truths = check_truths(truths, self.truths)
        u = rng.integers(0, self.total, size=truths.shape, dtype=np.int64)
        reports = np.empty(truths.shape, dtype=np.int64)
        for truth in np.unique(truths):
            rows = truths == truth
            reports[rows] = np.searchsorted(np.cumsum(self.weights[truth]), u[rows], side="right")
        return reports

    def perturb_one(self, truth: int, uniform_below: UniformBelow) -> int:
        """Randomize one truth with one draw; the scan covers the whole row for every report."""
        truth = check_truth(truth, self.truths)
        u = uniform_below(self.total)
        # report = the number of partial sums of the row that are at most u.
        return int((u >= np.cumsum(self.weights[truth])).sum())

    def to_json(self) -> dict[str, Any]:
        """Return the form that a definition holds: the integers of the shape, never the matrix."""
        return {"kind": self.kind, "table": self.shape.to_json(), "no_answers": self.no_answers}


def table_from_json(form: Mapping[str, Any]) -> WeightTable:
    """Build a weight table from its JSON form; ChannelError for any other form."""
    if set(form) != {"kind", "table", "no_answers"} or not isinstance(form["table"], Mapping):
        raise ChannelError("a weight_table channel has kind, table, no_answers")
    return _table(json.dumps([form["table"], form["no_answers"]]))


@lru_cache(maxsize=4)
def _matrix(table: WeightTable) -> Floats:
    """Return a table's matrix, cached because an estimate for 1,000 answers reads it 70 times."""
    matrix = np.asarray(table.weights / table.total)
    matrix.flags.writeable = False
    return matrix


@lru_cache(maxsize=16)
def _table(form: str) -> WeightTable:
    """Return a table, cached because plans compare the same few tables hundreds of times.

    A table of 1,000 truths and reports takes 8 MB, so the cache is small.
    """
    shape, no_answers = json.loads(form)
    return WeightTable(shape_from_json(shape), no_answers)


def largest_ratio(weights: Integers) -> Fraction:
    """Return max_j (max_i W[i][j] / min_i W[i][j]) as an exact fraction."""
    pairs = np.unique(np.stack([weights.max(axis=0), weights.min(axis=0)], axis=1), axis=0)
    return max(Fraction(int(high), int(low)) for high, low in pairs)


def with_no_answers(rows: Integers, no_answers: int) -> Integers:
    """Add truths that are not an answer, with one additional report each, at the same epsilon.

    Let rho be the largest ratio, M the row sum, and m_j the column minima. Every other row gives
    the new report the weight A = floor((M - sum m_j) / (rho - 1)). The new row gives it
    floor(rho A), and m_j to the earlier reports; the remainder of the rounding goes to the first
    columns whose weight is below their maximum. All row sums stay equal, and the ratio of no
    column exceeds rho.
    """
    if no_answers == 0:
        return rows.copy()
    low, high = rows.min(axis=0), rows.max(axis=0)
    row_sum, rho = int(rows[0].sum()), largest_ratio(rows)
    shared = int((row_sum - int(low.sum())) / (rho - 1))
    own_weight = int(rho * shared)
    if shared < 1:
        raise ChannelError('this table has no room for an answer like "prefer not to say"')
    silent = _raise_from_left(low, high, row_sum + shared - own_weight)
    extended = np.full((len(rows) + no_answers, rows.shape[1] + no_answers), shared, np.int64)
    extended[: len(rows), : rows.shape[1]] = rows
    for i in range(no_answers):
        extended[len(rows) + i, : rows.shape[1]] = silent
        extended[len(rows) + i, rows.shape[1] + i] = own_weight
    return extended


def _raise_from_left(low: Integers, high: Integers, row_sum: int) -> Integers:
    """Raise column minima, at most to the maxima, from the left until they add up to `row_sum`."""
    room = np.cumsum(high - low)
    missing = row_sum - int(low.sum())
    raised = np.minimum(room, missing)
    return low + np.diff(raised, prepend=0)
