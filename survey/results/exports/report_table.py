"""One table of the released reports, from which all files with labels are written.

A row is a report, a column a variable: the group, the code that a question's report has, for a
multiple choice whether the report names each option, and debiased columns, whose plain averages
are the published shares and means. The table is in memory; for very many reports there is Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.disclosure import secure_permutation
from survey.errors import SettingsError
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import Booleans, Codes, Floats, Integers
from survey.mechanism.ranking import first_or_order_shape
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import ASKED_PREFIX
from survey.results.exports.csv import csv_writer, safe_cell
from survey.results.exports.pseudo_values import (
    ALL,
    MEAN,
    MEAN_RANK,
    SHARE,
    PseudoValues,
    answered_mean,
    question_values,
)
from survey.results.question_statistics import truth_labels
from survey.store import BlockColumn, PublishedSurvey, Store, Tally
from survey.store.releases import BUCKET, STRATUM, read_microdata

MAX_CELLS = 20_000_000
"""Maximum number of cells of a table in memory, which takes 160 MB."""

MAX_NAME = 31
"""Characters of a variable's name. Stata allows 32 and SPSS 64, but pyreadstat gives a Stata file's
value labels the name of their variable and accepts 31 characters there."""

KEYWORDS = frozenset(
    [
        *("all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with"),
        *("byte", "double", "float", "if", "in", "int", "long", "str", "strl", "using"),
        *(f"str{width}" for width in range(1, 2046)),
    ]
)
"""Names that SPSS or Stata reserve."""

NAMED: Mapping[int, str] = {0: "Not named", 1: "Named"}

Content = Literal["group", "code", "named", "share", "mean", "mean rank", "base"]


@dataclass(frozen=True)
class Variable:
    """A column of the table.

    name      valid in SPSS, Stata and R, unique, at most 31 characters
    label     what the column contains, in words
    content   "group"; "code", the code of a report; "named", whether a report names an option; or
              the published statistic of which it is the debiased column; "base", whose average is
              1: the average of a mean's column within a group, divided by that of the base, is
              the mean of the group's respondents who answered
    labels    the meaning of each code; empty for numbers and texts
    """

    name: str
    label: str
    content: Content
    question_id: str = ""
    option_id: str = ""
    labels: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_debiased(self) -> bool:
        """Whether the column has numbers to average instead of codes."""
        return self.content in ("share", "mean", "mean rank", "base")


@dataclass(frozen=True, eq=False)
class ReportTable:
    """The variables and their columns, in one random order of rows.

    A group's column has texts; all others numbers, with nan where the report leaves the question
    or option out.
    """

    survey: PublishedSurvey
    tally: Tally
    variables: tuple[Variable, ...]
    columns: tuple[NDArray[Any], ...]


def read_table(store: Store, survey: PublishedSurvey) -> ReportTable:
    """Read all released reports in a new random order.

    The order is drawn over the whole table, so that it says nothing about releases. Raises
    SettingsError if the table would be too large for memory.
    """
    tally, blocks = read_microdata(store, survey)
    definition = survey.definition
    variables = table_variables(definition, tally)
    if tally.n * len(variables) > MAX_CELLS:
        raise SettingsError(
            f"{tally.n:,} responses with {len(variables):,} columns are more than the "
            f"{MAX_CELLS:,} cells that this format can hold; choose CSV with codes or Parquet"
        )
    debiased = debiased_columns(definition, tally)
    parts = [_block_columns(definition, debiased, block) for block in blocks]
    if not parts:
        return ReportTable(survey, tally, variables, (np.empty(0, dtype=object),) * len(variables))
    order = secure_permutation(tally.n)
    columns = tuple(np.concatenate(part)[order] for part in zip(*parts, strict=True))
    return ReportTable(survey, tally, variables, columns)


def table_variables(definition: Definition, tally: Tally) -> tuple[Variable, ...]:
    """Return the variables of a survey's table, with unique names."""
    variables = _group_variables("stratum", "bucket")
    names = {variable.name for variable in variables}
    columns = debiased_columns(definition, tally)
    for question, debiased in zip(definition.questions, columns, strict=True):
        written = (*_report_variables(question), *(column.variable for column in debiased))
        variables += _uniquely_named(written, names)
    return tuple(variables)


def _uniquely_named(variables: Iterable[Variable], names: set[str]) -> Iterator[Variable]:
    """Yield variables with names that are not in `names`, to which they are added."""
    for variable in variables:
        name = unique_name(variable.name, names)
        names.add(name)
        yield replace(variable, name=name)


def code_variables(definition: Definition) -> Iterator[Variable]:
    """Yield the columns of a file with codes, such as Parquet: one per question, named by its id.

    A column of bits is one variable per option, in the order of the bits, all with its name.
    """
    yield from _group_variables(STRATUM, BUCKET)
    for question in definition.questions:
        for variable in _report_variables(question):
            labels = {} if variable.content == "named" else variable.labels
            yield replace(variable, name=question.id, labels=labels)


def _group_variables(stratum: str, bucket: str) -> list[Variable]:
    return [
        Variable(stratum, "Group, from the collection link", "group"),
        Variable(bucket, "Day or week of release, if the survey records it", "group"),
    ]


def unique_name(wanted: str, names: set[str]) -> str:
    """Return a name of at most 31 characters that is neither reserved nor in use.

    >>> unique_name("with", set()), unique_name("a" * 40, {"a" * 31})[-4:]
    ('with_2', 'aa_2')
    """
    name, number = wanted[:MAX_NAME], 1
    while name in names or name in KEYWORDS:
        number += 1
        end = f"_{number}"
        name = wanted[: MAX_NAME - len(end)] + end
    return name


class DebiasedColumn(NamedTuple):
    """A column whose plain average is a published estimate, and its value for each code.

    place  the position of the option whose bit, 0 or 1, is the code; otherwise None
    """

    variable: Variable
    values: Floats
    place: int | None = None


def debiased_columns(definition: Definition, tally: Tally) -> list[list[DebiasedColumn]]:
    """Return the debiased columns of each question."""
    return [
        list(_question_columns(question, counts, n))
        for question, counts, n in zip(
            definition.questions, tally.counts, tally.n_asked, strict=True
        )
    ]


def added_columns(definition: Definition, tally: Tally) -> list[list[DebiasedColumn]]:
    """Return the debiased columns of a file with codes, with names that no code's column has."""
    names = {STRATUM, BUCKET, *(question.id for question in definition.questions)}
    return [
        [
            column._replace(variable=variable)
            for column, variable in zip(
                columns,
                _uniquely_named((column.variable for column in columns), names),
                strict=True,
            )
        ]
        for columns in debiased_columns(definition, tally)
    ]


def _question_columns(
    question: PublishedQuestion, counts: Sequence[int], n: int
) -> Iterator[DebiasedColumn]:
    """Yield the columns of shares and means, then that of the base, if it is not everybody."""
    id_, text = question.id, question.text
    items = _averages(question, n)
    for item in items:
        of = f" of “{item.label}”" if item.label else ""
        content = _CONTENTS[item.statistic]
        suffix = f"{content.rpartition(' ')[2]}_{item.item}".strip("_")
        label = f"Debiased {content}{of}: {text}"
        variable = Variable(f"{id_}_{suffix}", label, content, id_, item.item)
        # The plain average is the estimate: v / mean of b.
        average = item.values / (answered_mean(item, counts, n) or np.nan)
        yield DebiasedColumn(variable, average, item.place)
    if base := _base_item(items):
        label = f"Debiased base, average 1: respondents who answered: {text}"
        weights = base.answered / (answered_mean(base, counts, n) or np.nan)
        yield DebiasedColumn(Variable(f"{id_}_base", label, "base", id_), weights)


def _report_variables(question: PublishedQuestion) -> Iterator[Variable]:
    """Yield the code of a question's report, or each option that it can name."""
    id_, text = question.id, question.text
    if question.channel.report_bits:
        for option in question.options:
            label = f"Randomized report names “{option.label}”: {text}"
            yield Variable(f"{id_}_{option.id}", label, "named", id_, option.id, NAMED)
    else:
        yield Variable(
            *(id_, f"Randomized report: {text}", "code", id_), labels=code_labels(question)
        )


_CONTENTS: Mapping[str, Content] = {SHARE: "share", MEAN: "mean", MEAN_RANK: "mean rank"}


def _base_item(items: Sequence[PseudoValues]) -> PseudoValues | None:
    """Return the statistic that is about those who answered, if there is one; all have one base."""
    return next((item for item in items if item.base != ALL), None)


def _averages(question: PublishedQuestion, n: int) -> list[PseudoValues]:
    """Return the shares of options and the means; not the cells of a histogram."""
    options = {option.id for option in question.options}
    return [item for item in question_values(question, n) if not item.item or item.item in options]


def code_labels(question: PublishedQuestion) -> dict[int, str]:
    """Return what each code of a report says; empty if a code is only the index of a report."""
    channel = question.channel
    if (shape := first_or_order_shape(channel)) is not None and isinstance(channel, WeightTable):
        labels = [option.label for option in question.options]
        first = [f"First: {label}" for label in labels[: shape.m]] if shape.a else []
        orders = permutations(labels[: shape.m], shape.size)
        return dict(enumerate([*first, *map(" > ".join, orders), *labels[shape.m :]]))
    if isinstance(channel, SubsetSelection):
        return {code: label for code, (_, label) in enumerate(truth_labels(question))}
    if isinstance(channel, WeightTable):
        # Numbers have reports without a meaning of their own; opt-outs always have one each.
        labels = [label for _, label in truth_labels(question)]
        named = len(labels) if channel.reports == len(labels) else channel.no_answers
        start = channel.reports - named
        return {start + i: label for i, label in enumerate(labels[len(labels) - named :])}
    return {}


def _block_columns(
    definition: Definition,
    debiased: Sequence[Sequence[DebiasedColumn]],
    block: Sequence[BlockColumn],
) -> list[NDArray[Any]]:
    """Return the columns of one block, in the order of `table_variables`."""
    n = block[0].n
    columns: list[NDArray[Any]] = [
        np.full(n, name, dtype=object) for name in (block[0].stratum, block[0].bucket)
    ]
    for question, column, added in zip(definition.questions, block, debiased, strict=True):
        stored = np.frombuffer(column.data, np.uint8)
        if question.channel.report_bits:
            columns.extend(named_options(question, stored).T)
        else:
            is_asked, codes = stored_codes(question, stored)
            columns.append(np.where(is_asked, code_index(codes), np.nan))
        columns.extend(debiased_values(question, added, stored))
    return columns


def debiased_values(
    question: PublishedQuestion, columns: Sequence[DebiasedColumn], stored: Codes
) -> Iterator[Floats]:
    """Yield the debiased columns of one question's reports; nan where a report has no value."""
    is_asked, codes = stored_codes(question, stored)
    index = np.where(is_asked, code_index(codes), 0)
    bits = named_options(question, stored) if question.channel.report_bits else None
    for column in columns:
        if bits is None or column.place is None:
            yield np.where(is_asked, column.values[index], np.nan)
        else:
            bit = bits[:, column.place]
            yield np.where(np.isnan(bit), np.nan, column.values[(bit == 1).astype(np.int64)])


def stored_codes(question: PublishedQuestion, stored: Codes) -> tuple[Booleans, Codes]:
    """Return which reports include the question, shape (n,), and their codes, (n, bytes)."""
    codes = stored.reshape(-1, question.code_bytes)
    if not question.nullable:
        return np.ones(len(codes), dtype=bool), codes
    return codes[:, 0] == ASKED_PREFIX[0], codes[:, 1:]


def code_index(codes: Codes) -> Integers:
    """Return codes of one or more bytes as integers, the highest byte first."""
    index = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T[:2]:
        index = index * 256 + column
    return index


def named_options(question: PublishedQuestion, stored: Codes) -> Floats:
    """Return 1 where a report names an option, 0 where not, nan where it does not cover it."""
    is_asked, codes = stored_codes(question, stored)
    k = len(question.options)
    bits = np.unpackbits(codes, axis=1)[:, : question.channel.report_bits].astype(np.float64)
    if question.channel.is_sampled:
        bits = np.where(bits[:, :k] == 1, bits[:, k:], np.nan)
    bits[~is_asked] = np.nan
    return bits


@dataclass(frozen=True)
class VariableRow:
    """A row of codebook.csv: a column of the table, one of its codes, or an option of its bits.

    content  "group", "code", "named", "share", "mean", "mean rank" or "base", as in `Variable`; the
             plain average of a "share", "mean" or "mean rank" column over its cells that are not
             empty is the published estimate
    """

    variable: str
    label: str
    content: str
    question_id: str
    option_id: str
    code: int | None
    code_label: str


def codebook_rows(variables: Sequence[Variable]) -> Iterator[VariableRow]:
    """Yield a row per column without codes, and otherwise a row per code."""
    for variable in variables:
        head = (variable.name, variable.label, variable.content)
        about = (variable.question_id, variable.option_id)
        for code, label in variable.labels.items() or ((None, ""),):
            yield VariableRow(*head, *about, code, label)


def write_labels(text: IO[str], table: ReportTable) -> None:
    """Write the table as CSV with the label of each code instead of the code."""
    writer = csv_writer(text)
    writer.writerow(variable.name for variable in table.variables)
    columns = map(_label_cells, table.variables, table.columns)
    writer.writerows(zip(*columns, strict=True))


def _label_cells(variable: Variable, column: NDArray[Any]) -> list[Any]:
    if variable.content == "group":
        return [safe_cell(name) for name in column.tolist()]
    if variable.is_debiased:
        return ["" if number != number else number for number in column.tolist()]
    labels = {code: safe_cell(label) for code, label in variable.labels.items()}
    return [
        "" if number != number else labels.get(int(number), int(number))
        for number in column.tolist()
    ]
