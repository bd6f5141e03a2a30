"""Joint counts over the released blocks of reports: pairs of variables, combinations of several.

A variable is a question, or one option of a multiple-choice question that is reported option by
option. Such a question uses one randomized bit per option; each bit is treated as a question with
two answers, ticked or not ticked, under the name `question.option`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError, CountsError, NotFoundError
from survey.estimator.core.arguments import CodeChannel
from survey.mechanism import HalfSpace, SubsetSelection
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import AnyIntegers, Booleans, Codes, Integers, count_octets
from survey.mechanism.joint_response import marginal_response
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.choice import SingleChoice
from survey.questionnaire.texts import Option
from survey.results.groups import stratum_names
from survey.results.number_format import not_enough
from survey.store import BlockColumn, PublishedSurvey, ReleasedReports

TICKED = (Option(id="ticked", label="Ticked"), Option(id="not_ticked", label="Not ticked"))


@dataclass(frozen=True)
class Variable:
    """A question and its position in a report; `option` is set for one option of the question."""

    place: int
    question: PublishedQuestion
    option: int | None = None
    bits: TickChannel | None = None

    def was_asked(self, codes: Codes) -> Booleans:
        """Return which reports include this variable; all of them unless options are sampled."""
        if self.option is None or self.bits is None or not self.bits.is_sampled:
            return np.ones(len(codes), dtype=bool)
        return np.unpackbits(codes, axis=1)[:, self.option].astype(bool)

    def decode(self, codes: Codes) -> Codes:
        """Return the codes of the variable: for an option 0 means ticked, 1 not ticked."""
        if self.option is None or self.bits is None:
            return codes
        column = self.option + (self.bits.m if self.bits.is_sampled else 0)
        return np.asarray(1 - np.unpackbits(codes, axis=1)[:, column : column + 1])


def list_variables(survey: PublishedSurvey) -> Iterator[Variable]:
    """Yield the variables of a survey in the order of its questions.

    Rankings have none, because each report says something about only a few of the options.
    """
    for place, question in enumerate(survey.definition.questions):
        if question.kind.is_ranking:
            continue
        if isinstance(question.channel, TickChannel):
            yield from _option_variables(place, question, question.channel)
        else:
            yield Variable(place, question)


def find_variable(survey: PublishedSurvey, name: str) -> Variable:
    """Return a variable by its name; NotFoundError lists the names that exist."""
    variables = {variable.question.id: variable for variable in list_variables(survey)}
    if any(q.id == name and q.kind.is_ranking for q in survey.definition.questions):
        raise NotFoundError(
            f"“{name}” is a ranking and cannot be cross-tabulated: each report states only the "
            "first place or the order of a few options"
        )
    if name not in variables:
        choices = ", ".join(variables)
        raise NotFoundError(
            f'{survey.slug} has no question "{name}" to cross: choose one of {choices}'
        )
    return variables[name]


def ask_probability(survey: PublishedSurvey, names: Sequence[str]) -> float:
    """Return the probability that a respondent is asked all these questions or options.

    Of G groups of questions a respondent gets d, so m of them with the probability
    d/G (d-1)/(G-1) ... (d-m+1)/(G-m+1). Options may be sampled in addition.
    """
    definition = survey.definition
    by_name = {variable.question.id: variable for variable in list_variables(survey)}
    options = [by_name[name] for name in names if name in by_name and by_name[name].bits]
    ids = {definition.questions[option.place].id for option in options} | set(names)
    m = sum(not ids.isdisjoint(group) for group in definition.groups)
    G, d = len(definition.groups), definition.drawn
    drawn = math.prod((d - i) / (G - i) for i in range(m))
    return drawn * math.prod(
        option.bits.sampled / option.bits.m for option in options if option.bits
    )


def _option_variables(
    place: int, question: PublishedQuestion, channel: TickChannel
) -> Iterator[Variable]:
    for index, option in enumerate(question.options):
        option_question = replace(
            question,
            id=f"{question.id}.{option.id}",
            type=SingleChoice.type,
            text=f"{question.text} {option.label}",
            options=TICKED,
            max_ticks=0,
            alone=0,
            opt_out="",
            not_applicable="",
            channel=channel.option_channel,
        )
        yield Variable(place, option_question, index, channel)


def joint_channel(questions: Sequence[PublishedQuestion]) -> SubsetSelection | None:
    """Return the channel of questions that were randomized jointly, None if they were not.

    Raises ChannelError for two questions of one half-space, whose reports depend on each other.
    """
    joint = questions[0].joint
    if joint is None or len(questions) < 2 or any(other.joint != joint for other in questions):
        return None
    if isinstance(joint.channel, HalfSpace):
        ids = " and ".join(question.id for question in questions)
        raise ChannelError(
            f"{ids} are randomized in one half-space, which shows the shares of each question but "
            'not how they are related; for that randomize them with mechanism = "grr"'
        )
    size = math.prod(len(question.options) for question in questions)
    return joint.channel if size == joint.channel.k else marginal_response(joint.channel, size)


BYTE_CELLS = 256
"""Largest table whose cells fit into one byte per report, which is faster to count."""

BATCH = 2**20
"""Reports whose cells are counted in one call."""

MAX_COMBINATIONS = 20_000
"""Largest number of combinations that are counted; a fit to more would take minutes."""


def joint_counts(
    store: ReleasedReports, survey: PublishedSurvey, first: int, second: int
) -> Integers:
    """Return the counts that `survey.estimator.crosstab` takes, shape (counted, counted).

    `first` and `second` are positions of questions. Only reports that include both questions count;
    a report of a set of options counts once per pair of options. Raises CountsError for a stored
    code outside the channel.
    """
    questions = survey.definition.questions
    return joint_variable_counts(
        store, survey, Variable(first, questions[first]), Variable(second, questions[second])
    )


def joint_variable_counts(
    store: ReleasedReports, survey: PublishedSurvey, first: Variable, second: Variable
) -> Integers:
    """Return joint counts as `joint_counts` does, also for one option of a multiple choice."""
    questions = [first.question, second.question]
    shape = questions[0].channel.counted, questions[1].channel.counted
    pairs = _code_pairs(store, survey, first, second)
    if any(map(_reports_sets, questions)):
        counts = np.zeros(shape, dtype=np.int64)
        for a, b in pairs:
            counts += _indicators(questions[0], a).T @ _indicators(questions[1], b)
        return counts
    # One byte per report where that is enough.
    kind = np.uint8 if shape[0] * shape[1] <= BYTE_CELLS else np.int64

    def cells_of(a: Codes, b: Codes) -> AnyIntegers:
        """Return the cell of each report: a k_b + b."""
        cells: AnyIntegers = np.multiply(code_numbers(questions[0], a), shape[1], dtype=kind)
        cells += code_numbers(questions[1], b).astype(kind, copy=False)
        return cells

    cells = (cells_of(a, b) for a, b in pairs)
    return _count_cells(cells, shape[0] * shape[1]).reshape(shape)


class CombinationCounts(NamedTuple):
    """The combinations of reports that occur, one row each.

    codes  (rows, questions): the reported codes
    group  (rows,): position of the row's group in `groups`
    times  (rows,): number of respondents who sent this combination
    groups  names of the groups of respondents by collection link, the largest first
    """

    codes: Integers
    group: Integers
    times: Integers
    groups: tuple[str, ...]


def count_combinations(
    store: ReleasedReports, survey: PublishedSurvey, places: Sequence[int]
) -> CombinationCounts:
    """Count the combinations of codes in the reports that include all these questions.

    Each question's channel must report a single code.

    Raises CountsError for too many combinations, or if no report includes all questions.
    """
    sizes = [survey.definition.questions[place].channel.counted for place in places]
    n_cells = math.prod(sizes)
    if n_cells > MAX_COMBINATIONS:
        raise CountsError(
            f"{n_cells:,} combinations of reports are more than {MAX_COMBINATIONS:,}: choose fewer "
            "questions, or questions with fewer options"
        )
    names = stratum_names(store.tallies(survey.key))
    tables: dict[str, Integers] = {}
    for columns in store.block_columns(survey.key, places):
        name = names[columns[0].stratum]
        counts = np.bincount(_combined_cells(survey, places, sizes, columns), minlength=n_cells)
        tables[name] = tables.get(name, 0) + counts
    groups = sorted(tables, key=lambda name: (-int(tables[name].sum()), name))
    table = np.array([tables[name] for name in groups], dtype=np.int64).reshape(-1, n_cells)
    group, cell = np.nonzero(table)
    if not cell.size:
        raise CountsError(f"{not_enough(survey)}: no released report includes all these questions")
    codes = np.stack(np.unravel_index(cell, sizes), axis=1)
    return CombinationCounts(codes, group, table[group, cell], tuple(groups))


def _code_pairs(
    store: ReleasedReports, survey: PublishedSurvey, first: Variable, second: Variable
) -> Iterator[tuple[Codes, Codes]]:
    """Yield block by block the codes of the reports that include both variables."""
    for columns in store.block_columns(survey.key, [first.place, second.place]):
        a, b = (np.frombuffer(column.data, np.uint8).reshape(column.n, -1) for column in columns)
        if first.question.nullable:
            # The first byte is 1 if the question was asked; the code follows it.
            is_asked = (a[:, 0] & b[:, 0]).astype(bool)
            a, b = a[is_asked, 1:], b[is_asked, 1:]
        if first.option is not None or second.option is not None:
            is_asked = first.was_asked(a) & second.was_asked(b)
            a, b = first.decode(a[is_asked]), second.decode(b[is_asked])
        yield a, b


def _combined_cells(
    survey: PublishedSurvey,
    places: Sequence[int],
    sizes: Sequence[int],
    columns: Sequence[BlockColumn],
) -> Integers:
    """Return the cell of each report of a block that includes all questions, the last fastest."""
    questions = [survey.definition.questions[place] for place in places]
    codes = [np.frombuffer(column.data, np.uint8).reshape(column.n, -1) for column in columns]
    if questions[0].nullable:
        # The first byte is 1 if the question was asked; the code follows it.
        is_asked = np.all([part[:, 0] == 1 for part in codes], axis=0)
        codes = [part[is_asked, 1:] for part in codes]
    cells = np.zeros(len(codes[0]), dtype=np.int64)
    for question, part, size in zip(questions, codes, sizes, strict=True):
        cells = cells * size + code_numbers(question, part)
    return cells


def _count_cells(cells: Iterable[NDArray[np.integer[Any]]], size: int) -> Integers:
    """Count how often each cell occurs; tables of one byte per cell are counted in batches."""
    counts, batch = np.zeros(size, dtype=np.int64), []
    for part in cells:
        if size > BYTE_CELLS:
            counts += np.bincount(part, minlength=size)
            continue
        batch.append(part)
        if sum(map(len, batch)) >= BATCH:
            counts += count_octets(np.concatenate(batch), size)
            batch = []
    return counts + count_octets(np.concatenate(batch), size) if batch else counts


def code_numbers(question: PublishedQuestion, codes: Codes) -> AnyIntegers:
    """Return each report's code of one or two bytes as a number; CountsError if out of range."""
    numbers: AnyIntegers = codes[:, 0]
    if codes.shape[1] == 2:
        numbers = (codes[:, 0].astype(np.uint16) << 8) | codes[:, 1]
    if numbers.size and int(numbers.max()) >= question.channel.counted:
        raise CountsError(
            f"question {question.id}: code {int(numbers.max())} must be from 0 to "
            f"{question.channel.counted - 1}"
        )
    return numbers


def _indicators(question: PublishedQuestion, codes: Codes) -> Integers:
    """Return 1 where a report supports an option, shape (n, counted)."""
    counted = question.channel.counted
    if _reports_sets(question):
        return np.unpackbits(codes, axis=1)[:, :counted].astype(np.int64)
    return np.asarray(np.eye(counted, dtype=np.int64)[code_numbers(question, codes)])


def _reports_sets(question: PublishedQuestion) -> bool:
    channel: CodeChannel = question.channel  # type: ignore[assignment]
    return isinstance(channel, SubsetSelection) and channel.d > 1
