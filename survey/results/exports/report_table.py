"""One table of the released reports, from which all files with labels are written.

A row is a report, a column a variable: the group, the code that a question's report has, for a
multiple choice whether the report names each option, and debiased columns, whose plain averages
are the published shares and means. The table is in memory; for very many reports there is Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import IO, Any, Literal

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
    parts = [_block_columns(definition, tally, block) for block in blocks]
    if not parts:
        return ReportTable(survey, tally, variables, (np.empty(0, dtype=object),) * len(variables))
    order = secure_permutation(tally.n)
    columns = tuple(np.concatenate(part)[order] for part in zip(*parts, strict=True))
    return ReportTable(survey, tally, variables, columns)


def table_variables(definition: Definition, tally: Tally) -> tuple[Variable, ...]:
    """Return the variables of a survey's table, with unique names."""
    variables = _group_variables("stratum", "bucket")
    names = {variable.name for variable in variables}
    for place, question in enumerate(definition.questions):
        for variable in _question_variables(question, tally.n_asked[place]):
            name = unique_name(variable.name, names)
            names.add(name)
            variables.append(
                Variable(
                    name,
                    variable.label,
                    variable.content,
                    variable.question_id,
                    variable.option_id,
                    variable.labels,
                )
            )
    return tuple(variables)


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


def _question_variables(question: PublishedQuestion, n: int) -> Iterator[Variable]:
    """Yield the code or the named options of a question, then its debiased columns."""
    id_, text = question.id, question.text
    yield from _report_variables(question)
    items = _averages(question, n)
    for item in items:
        of = f" of “{item.label}”" if item.label else ""
        content = _CONTENTS[item.statistic]
        suffix = f"{content.rpartition(' ')[2]}_{item.item}".strip("_")
        label = f"Debiased {content}{of}: {text}"
        yield Variable(f"{id_}_{suffix}", label, content, id_, item.item)
    if _base_item(items):
        label = f"Debiased base, average 1: respondents who answered: {text}"
        yield Variable(f"{id_}_base", label, "base", id_)


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
    definition: Definition, tally: Tally, block: Sequence[BlockColumn]
) -> list[NDArray[Any]]:
    """Return the columns of one block, in the order of `table_variables`."""
    n = block[0].n
    columns: list[NDArray[Any]] = [
        np.full(n, name, dtype=object) for name in (block[0].stratum, block[0].bucket)
    ]
    for place, (question, column) in enumerate(zip(definition.questions, block, strict=True)):
        counts, n_asked = tally.counts[place], tally.n_asked[place]
        columns += _question_columns(
            question, np.frombuffer(column.data, np.uint8), counts, n_asked
        )
    return columns


def _question_columns(
    question: PublishedQuestion, stored: Codes, counts: Sequence[int], n_asked: int
) -> Iterator[Floats]:
    is_asked, codes = stored_codes(question, stored)
    named = _named_options(question, codes) if question.channel.report_bits else None
    index = code_index(codes)
    if named is None:
        yield np.where(is_asked, index, np.nan)
    else:
        named[~is_asked] = np.nan
        yield from named.T
    items = _averages(question, n_asked)
    for item in items:
        # The plain average is the estimate: v / mean of b.
        average = item.values / (answered_mean(item, counts, n_asked) or np.nan)
        if named is None or item.place is None:
            yield np.where(is_asked, average[np.where(is_asked, index, 0)], np.nan)
        else:
            column = named[:, item.place]
            yield np.where(np.isnan(column), np.nan, average[(column == 1).astype(np.int64)])
    if base := _base_item(items):
        weights = base.answered / (answered_mean(base, counts, n_asked) or np.nan)
        yield np.where(is_asked, weights[np.where(is_asked, index, 0)], np.nan)


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


def _named_options(question: PublishedQuestion, codes: Codes) -> Floats:
    """Return 1 where a report names an option, 0 where not, nan where it does not cover it."""
    k = len(question.options)
    bits = np.unpackbits(codes, axis=1)[:, : question.channel.report_bits].astype(np.float64)
    if question.channel.is_sampled:
        covered, ones = bits[:, :k], bits[:, k:]
        return np.where(covered == 1, ones, np.nan)
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
