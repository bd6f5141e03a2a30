"""Estimates from a plain table of reports that another system collected.

The table is a CSV file with one row per respondent and one column per question; a cell is the
report. The mechanism is stated by its parameters, or by the JSON form of its channel.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator import Proportions, proportions
from survey.estimator.shares.linear_estimator import linear_estimator
from survey.mechanism import AnyChannel, channel_from_json, from_epsilon, grr
from survey.mechanism.channel import Integers
from survey.mechanism.composition import format_epsilon
from survey.mechanism.randomized_response import two_coins, unrelated_question, warner
from survey.results.estimates.compute import interval_arguments
from survey.results.estimates.table import ESTIMATED
from survey.results.exports.csv import bounded_lines
from survey.results.exports.microdata import encode_cell
from survey.results.number_format import describe_share
from survey.results.request import IntervalOptions

MAX_SHOWN = 60
"""Characters of a wrong cell that an error message repeats."""

MAX_CHANNEL_FILE = 64 * 2**20
"""Maximum size in bytes of a file with channels."""

MAX_GROUPS = 1_000
"""Maximum number of groups: more of them are rather an identifier of respondents."""


def _grr(k: str, p: str = "", epsilon: str = "") -> AnyChannel:
    if not k.isdecimal() or len(k) > 6:
        raise ChannelError(f"k = {k[:MAX_SHOWN]!r} must be the number of answers")
    if bool(p) == bool(epsilon):
        raise ChannelError("grr needs either p or epsilon, such as grr:k=4,p=0.5")
    return grr(int(k), p) if p else from_epsilon(int(k), epsilon)


INLINE: Mapping[str, tuple[Callable[..., AnyChannel], tuple[str, ...]]] = {
    "grr": (_grr, ("k", "p", "epsilon")),
    "warner": (warner, ("p",)),
    "two_coins": (two_coins, ("truth", "yes")),
    "unrelated_question": (unrelated_question, ("p", "prevalence")),
}
"""The mechanisms that can be stated in one line, with their parameters."""


class Column(NamedTuple):
    """A column of the table: its channel, and the labels of the true answers, or none.

    `has_labels` tells whether the cells are these labels; otherwise they are codes. Both at once
    would be ambiguous: a label may be a number.
    """

    channel: AnyChannel
    labels: tuple[str, ...] = ()
    has_labels: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The labels of the estimates; without labels the codes."""
        return self.labels or tuple(map(str, range(self.channel.options)))


def share_problem(column: Column) -> str:
    """Return why the shares of an export's column cannot be estimated; "" if they can be."""
    channel, labels, _ = column
    if len(labels) != channel.options:
        return "its reports name orders of answers, not single answers"
    try:
        linear_estimator(channel)
    except ChannelError as error:
        return str(error)
    return ""


def parse_channel(text: str) -> AnyChannel:
    """Parse a mechanism with its parameters; ChannelError for any other text.

    >>> parse_channel("grr:k=4,p=0.5")
    SubsetSelection(k=4, d=1, T=3, L=1)
    """
    name, _, written = text.partition(":")
    if name not in INLINE:
        raise ChannelError(
            f"--channel {text[:MAX_SHOWN]!r} must be a JSON file, or one of {_forms()}"
        )
    make, names = INLINE[name]
    values: dict[str, str] = {}
    for part in written.split(","):
        key, _, value = part.partition("=")
        if key not in names or not value or key in values:
            raise ChannelError(
                f"--channel {text[:MAX_SHOWN]!r}: {part[:MAX_SHOWN]!r} must be one of "
                f"{', '.join(f'{name}=...' for name in names)}, each once"
            )
        values[key] = value
    try:
        return make(**values)
    except TypeError:
        missing = ", ".join(name for name in names if name not in values)
        raise ChannelError(f"--channel {text[:MAX_SHOWN]!r} lacks one of {missing}") from None


def read_channels(path: Path) -> AnyChannel | dict[str, Column]:
    """Read a channel's JSON form, or the channels.json of an export: columns by question id.

    Raises ChannelError for any other content.
    """
    if path.stat().st_size > MAX_CHANNEL_FILE:
        raise ChannelError(f"{path} has more than {MAX_CHANNEL_FILE:,} bytes")
    try:
        form = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ChannelError(f"{path} is not JSON: {error}") from None
    if not isinstance(form, dict):
        raise ChannelError(f"{path} must be a channel, or the channels.json of an export")
    if "questions" not in form:
        return channel_from_json(form)
    try:
        return {
            str(item["id"]): Column(
                channel_from_json(item["channel"]),
                _answer_names(item["answers"]),
            )
            for item in form["questions"]
        }
    except (KeyError, TypeError) as error:
        raise ChannelError(f"{path} is not the channels.json of an export: {error}") from None


def _answer_names(answers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the labels of an export's answers, or their ids if two labels are equal."""
    labels = tuple(str(answer["label"]) for answer in answers)
    if len(set(labels)) == len(labels):
        return labels
    return tuple(str(answer["id"]) for answer in answers)


@dataclass(frozen=True)
class DebiasedRow:
    """The estimated share of one answer; the columns are named as in the CSV of a survey.

    question_id  the column of the table
    stratum      the group, if the table is divided into groups
    n_reports    reports that the estimate is based on
    """

    question_id: str
    stratum: str
    option_label: str
    n_reports: int
    estimate: float | None
    mle: float | None
    std_error: float | None
    conf_low: float
    conf_high: float
    conf_level: float
    n_effective: float
    method: str
    epsilon: float


@dataclass
class _Reports:
    """The distinct codes of one column in one group, and the number of reports with each."""

    times: dict[bytes, int] = field(default_factory=dict)
    n: int = 0

    def add(self, code: bytes) -> None:
        self.times[code] = self.times.get(code, 0) + 1
        self.n += 1

    def counts(self, channel: AnyChannel) -> Integers:
        """Return the counts that `survey.estimator.proportions` takes."""
        counts = np.zeros(channel.counted, dtype=np.int64)
        for code, times in self.times.items():
            stored = np.frombuffer(code, dtype=np.uint8)[None]
            counts += times * channel.count(stored)
        return counts


class PlainTable(NamedTuple):
    """The reports of a table by column and group, and the number of empty cells left out."""

    columns: Mapping[str, Column]
    groups: Mapping[str, Mapping[str, _Reports]]
    n_empty: int

    def estimates(self, options: IntervalOptions) -> Iterator[tuple[str, str, Proportions]]:
        """Yield the column, the group and the shares, column by column."""
        for name, column in self.columns.items():
            for group, reports in self.groups.items():
                if not reports[name].n:
                    place = f" in the group {group!r}" if group else ""
                    raise CountsError(f"{name} has no reports{place}")
                yield name, group, _shares(column, reports[name], options)

    def rows(self, options: IntervalOptions) -> list[DebiasedRow]:
        """Return one row per column, group and answer."""
        return [
            DebiasedRow(
                question_id=name,
                stratum=group,
                option_label=label,
                n_reports=int(shares.reports[place]),
                **{key: _number(getattr(shares, key)[place]) for key in ESTIMATED},
                conf_level=options.level,
                method=shares.method,
                epsilon=self.columns[name].channel.epsilon,
            )
            for name, group, shares in self.estimates(options)
            for place, label in enumerate(self.columns[name].names)
        ]


def _number(value: float) -> Any:
    return None if math.isnan(value) else float(value)


def _shares(column: Column, reports: _Reports, options: IntervalOptions) -> Proportions:
    channel = column.channel
    arguments = interval_arguments(channel, options)
    shares = proportions(reports.counts(channel), channel, n=reports.n, **arguments)
    return shares.with_labels(column.names)


def check_labels(columns: Mapping[str, Column]) -> None:
    """Raise DesignError unless each column has no labels, or one per answer, all different."""
    for name, (channel, labels, _) in columns.items():
        if labels and (len(labels) != channel.options or len(set(labels)) < len(labels)):
            raise DesignError(
                f"{name} has {len(labels)} labels; its channel needs {channel.options} different "
                "ones, in the order of the answers"
            )


def read_table(
    file: IO[str],
    choose_columns: Callable[[Sequence[str]], Mapping[str, Column]],
    *,
    by: str = "",
    delimiter: str = ",",
    skip_empty: bool = False,
) -> PlainTable:
    """Count the reports of a CSV file with a header, by column and by group in the column `by`.

    `choose_columns` returns the columns to count, given the header. A cell is a label, a code from
    0, or bits separated by spaces. Raises CountsError that names the row (the header is row 1) and
    the value of any other cell, also of an empty one unless `skip_empty`; DesignError for a column
    that does not exist, or twice.
    """
    rows = csv.reader(bounded_lines(file), delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        columns = choose_columns(header)
        check_labels(columns)
        places = {name: _place(header, name) for name in (*columns, *([by] if by else []))}
        return _count(rows, header, columns, places, by, skip_empty)
    except csv.Error as error:
        problem = CountsError(f"row {rows.line_num}: not CSV: {error}")
        problem.line = rows.line_num
        raise problem from None
    except CountsError as error:
        # A row can have several lines; this is its last one.
        error.line = rows.line_num
        raise
    except UnicodeDecodeError as error:
        raise CountsError(f"the table is not UTF-8: {error}") from None


def _count(
    rows: Iterator[list[str]],
    header: Sequence[str],
    columns: Mapping[str, Column],
    places: Mapping[str, int],
    by: str,
    skip_empty: bool,
) -> PlainTable:
    groups: dict[str, dict[str, _Reports]] = {}
    known: dict[str, dict[str, bytes]] = {name: {} for name in columns}
    n_empty = 0
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        if len(row) != len(header):
            raise CountsError(f"row {number} has {len(row)} cells, the header {len(header)}")
        group = row[places[by]] if by else ""
        if group not in groups:
            groups[group] = {name: _Reports() for name in columns}
            if len(groups) > MAX_GROUPS:
                raise CountsError(f"{by} has more than {MAX_GROUPS:,} different values")
        for name, column in columns.items():
            cell = row[places[name]]
            if not cell and skip_empty:
                n_empty += 1
                continue
            if cell not in known[name]:
                known[name][cell] = _code(column, cell, name, number)
            groups[group][name].add(known[name][cell])
    if not groups:
        raise CountsError("the table has a header, but no rows")
    return PlainTable(columns, groups, n_empty)


def _place(header: Sequence[str], name: str) -> int:
    if header.count(name) != 1:
        problem = "several columns" if name in header else "no column"
        raise DesignError(
            f"the table has {problem} {name!r}: its columns are {', '.join(header)[:500]}"
        )
    return header.index(name)


def _code(column: Column, cell: str, name: str, row: int) -> bytes:
    """Return the stored bytes of a cell, which is a label or a code."""
    channel, labels, has_labels = column
    # A table has another number of reports than answers if its reports name no answer.
    are_answers = not channel.report_bits and channel.counted == channel.options
    place = f"row {row}: {name} = {cell[:MAX_SHOWN]!r}"
    if not cell:
        raise CountsError(f"{place} is empty; leave out empty cells with --skip-empty")
    if has_labels and are_answers:
        if cell not in labels:
            raise CountsError(f"{place} must be one of {', '.join(labels)[:200]}")
        return channel.encode(labels.index(cell))
    try:
        return encode_cell(channel, cell)
    except ChannelError as error:
        hint = "; name the answers in order with --labels" if are_answers and not labels else ""
        raise CountsError(f"{place} {error}{hint}") from None


def terminal_lines(table: PlainTable, options: IntervalOptions) -> list[str]:
    """Return the estimates as lines: a heading per column and group, then its answers."""
    lines: list[str] = []
    for name, group, shares in table.estimates(options):
        column = table.columns[name]
        place = f", {group}" if group else ""
        lines.append(
            f"{name}{place}: {shares.n:,} reports, {options.description} ({shares.method}), "
            f"epsilon {format_epsilon(column.channel.epsilon)}"
        )
        width = max(map(len, column.names))
        ends = zip(column.names, shares.estimate, shares.conf_low, shares.conf_high, strict=True)
        lines += [
            f"  {label:<{width}}  {describe_share(float(x), float(low), float(high))}"
            for label, x, low, high in ends
        ]
    return lines


def _forms() -> str:
    return ", ".join(
        f"{name}:{','.join(f'{part}=...' for part in parts)}" for name, (_, parts) in INLINE.items()
    )
