"""Pseudo-values: numbers per report whose plain average is a published share or mean.

`values.csv` has them for every question and code, `channels.csv` the probabilities that they come
from. Both are the codebook of a computer: with them and the reports, anybody can recompute what
the results page shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import IO, Any, NamedTuple

import numpy as np

from survey.errors import ChannelError
from survey.estimator.core.arguments import NumberDesign, checked_values
from survey.estimator.core.debiasing import pseudo_values
from survey.estimator.numbers.distribution import cell_members, set_ratios
from survey.estimator.numbers.mean import mean_ratios
from survey.estimator.shares.linear_estimator import linear_estimator
from survey.estimator.shares.multiple_choice import membership
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Floats, Integers
from survey.mechanism.ranking import rank_values
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.compute import (
    MAX_CHANNEL_SIZE,
    answer_base,
    histogram_cells,
    mean_range,
)
from survey.results.estimates.histogram import edges
from survey.results.estimates.table import MECHANISMS
from survey.results.exports.csv import csv_writer, safe_cell
from survey.results.question_statistics import channel_size, single_code_channel, truth_values
from survey.store import Tally

SHARE, MEAN, MEAN_RANK = "share", "mean", "mean_rank"
ALL = "all"


@dataclass(frozen=True, eq=False)
class PseudoValues:
    """The numbers of one statistic of a question, one per code of a report.

    With the mean v of `values` and the mean b of `answered` over all reports, the published
    estimate is v/b. Where everybody answers, `answered` is 1 for every code.

    item, label  the option or histogram cell; empty for a statistic of the whole question
    place        the option's position if a report has a bit for each option, which is the code
                 then; otherwise None
    """

    statistic: str
    base: str
    item: str
    label: str
    values: Floats
    answered: Floats
    place: int | None = None


def question_values(question: PublishedQuestion, n: int) -> list[PseudoValues]:
    """Return the pseudo-values of all statistics of a question that `n` reports include."""
    if not n:
        return []
    return [*share_values(question, n), *_mean_values(question, n), *_cell_values(question, n)]


def share_values(question: PublishedQuestion, n: int) -> list[PseudoValues]:
    """Return one entry per option, among all; empty if the design does not identify the shares."""
    if not question.options:
        return []
    try:
        columns = _share_columns(question, n)
    except ChannelError:
        return []
    by_bit = question.channel.report_bits > 0
    return [
        PseudoValues(
            *(SHARE, ALL, option.id, option.label, column, np.ones(column.size)),
            place=place if by_bit else None,
        )
        for place, (option, column) in enumerate(zip(question.options, columns, strict=True))
    ]


def _share_columns(question: PublishedQuestion, n: int) -> Sequence[Floats]:
    """Return the values of each option: one per code, or those of a bit that is 0 and 1."""
    channel = question.channel
    if isinstance(channel, WeightTable) and question.kind.is_numeric:
        truths = range(channel.truths - channel.no_answers, channel.truths)
        targets = (np.eye(1, channel.truths, truth)[0] for truth in truths)
        return [pseudo_values(channel, target, n).values for target in targets]
    chances = option_chances(question)
    if not chances:
        # G with E[g_j | truth i] = [i = j]
        G = linear_estimator(question.kind.share_channel(question)).values
        return list(G[report_classes(question)].T)
    # (s - q)/(p - q), where s says whether the report names the option
    named = np.array([[0, 1]] * len(chances))
    if not channel.report_bits:
        named = names_of_codes(question)
    return [(s - q) / (p - q) for s, (p, q) in zip(named, chances, strict=True)]


def option_chances(question: PublishedQuestion) -> list[tuple[float, float]]:
    """Return p and q of each option: P(report names it), if it was chosen and if it was not.

    Empty for questions whose reports name no options, which are tables.
    """
    if not question.options or (question.kind.is_numeric and question.grid):
        return []
    channel = question.kind.share_channel(question)
    if question.by_patterns and isinstance(channel, SubsetSelection):
        # Of all patterns, N_j contain option j.
        numbers = names_of_codes(question).sum(axis=1).tolist()
        p, q = channel.p, channel.q
        return [(p + (number - 1) * q, number * q) for number in numbers]
    try:
        return [(pair.p, pair.q) for pair in linear_estimator(channel).chances]
    except ChannelError:
        return []


def names_of_codes(question: PublishedQuestion) -> Integers:
    """Return 1 where a code names an option, shape (options, codes)."""
    k = len(question.options)
    if question.by_patterns:
        return membership(question.patterns, question.channel.truths, k)
    return np.eye(k, dtype=np.int64)


def report_classes(question: PublishedQuestion) -> Integers:
    """Return the report of `share_channel` that each code stands for.

    Only rankings differ: all orders of some options are one report about first places.
    """
    codes = np.eye(question.channel.counted, dtype=np.int64)
    return np.asarray(question.kind.share_counts(question, codes).argmax(axis=1))


def _mean_values(question: PublishedQuestion, n: int) -> Iterator[PseudoValues]:
    """Yield the mean, or the mean rank of each option, in the question's own unit."""
    channel, values = single_code_channel(question), truth_values(question)
    base = answer_base(question)
    if question.kind.is_ranking and isinstance(channel, WeightTable):
        ranked = question.options[: question.kind.count_ranked(question)]
        for place, option in enumerate(ranked):
            ranks = rank_values(channel, place)
            columns = _number_columns(channel, ranks, mean_range(question), n)
            yield PseudoValues(MEAN_RANK, base, option.id, option.label, *columns)
    elif channel is not None and values:
        columns = _number_columns(channel, values, mean_range(question), n)
        yield PseudoValues(MEAN, base, "", "", *columns)


def _number_columns(
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None],
    ends: tuple[float, float],
    n: int,
) -> tuple[Floats, Floats]:
    """Return v = middle b + half a and b, for the pseudo-values a on [-1, 1] and b."""
    design = NumberDesign.of(channel, checked_values(values, channel.truths))
    ratios = mean_ratios(channel, design.values, n)
    low, high = ends
    return (low + high) / 2 * ratios.b + (high - low) / 2 * ratios.a[0], ratios.b


def _cell_values(question: PublishedQuestion, n: int) -> Iterator[PseudoValues]:
    """Yield the histogram cells of a number or date, unless its channel is too large for them."""
    channel, values = single_code_channel(question), truth_values(question)
    bins = histogram_cells(question)
    if channel is None or question.grid is None or len(bins) < 2:
        return
    if channel_size(channel) > MAX_CHANNEL_SIZE:
        return
    truths = checked_values(values, channel.truths)
    numbers = np.unique(truths[~np.isnan(truths)])
    members = cell_members(np.array(edges(question.grid, bins)), numbers)
    ratios = set_ratios(channel, truths, members, n)
    for cell, a in zip(bins, ratios.a, strict=True):
        # (b + a)/2: indicators are estimated on the scale from -1 to 1
        yield PseudoValues(
            *(SHARE, answer_base(question), cell.id, cell.label, (ratios.b + a) / 2, ratios.b)
        )


@dataclass(frozen=True)
class ValueRow:
    """The pseudo-values of one code for one statistic.

    scope, stratum   "all" reports, or those of one "stratum"
    option_id        the option or histogram cell; empty for statistics of the whole question
    code             the code in reports.csv; for bits 1 if the report names the option, else 0
    report           the code, except for first places in rankings: all orders of some options
                     are one report
    value, answered  the published estimate is the mean of value divided by the mean of answered
    plain_value      value divided by the mean of answered: its plain average over the reports that
                     include the question is the published estimate
    """

    scope: str
    stratum: str
    question_id: str
    statistic: str
    base: str
    option_id: str
    code: int
    report: int
    value: float
    answered: float
    plain_value: float


class Scope(NamedTuple):
    """The reports that figures are about: "all", or those of a "stratum", as in reports.csv."""

    scope: str = "all"
    stratum: str = ""


ALL_REPORTS = Scope()


def write_values(
    text: IO[str], questions: Sequence[PublishedQuestion], tallies: Mapping[Scope, Tally]
) -> None:
    """Write values.csv for all reports and, if given, for strata.

    A stratum has rows only where its values differ from those of all reports: the values of some
    tables depend on the number of reports.
    """
    writer = csv_writer(text)
    writer.writerow(field.name for field in fields(ValueRow))
    for place, question in enumerate(questions):
        everybody = tallies[ALL_REPORTS]
        common = question_values(question, everybody.n_asked[place])
        for scope, tally in tallies.items():
            n, counts = tally.n_asked[place], tally.counts[place]
            items = question_values(question, n) if scope != ALL_REPORTS else common
            for item, shared in zip(items, common, strict=False):
                if scope == ALL_REPORTS or not _are_equal(item, shared):
                    writer.writerows(_value_rows(scope, question, item, counts, n))


def _are_equal(first: PseudoValues, second: PseudoValues) -> bool:
    return np.array_equal(first.values, second.values) and np.array_equal(
        first.answered, second.answered
    )


def _value_rows(
    scope: Scope, question: PublishedQuestion, item: PseudoValues, counts: Sequence[int], n: int
) -> Iterator[tuple[Any, ...]]:
    answered = answered_mean(item, counts, n)
    reports: Sequence[int] = range(item.values.size)
    if item.place is None and item.item in {option.id for option in question.options}:
        reports = report_classes(question).tolist() if item.statistic == SHARE else reports
    head = (
        scope.scope,
        safe_cell(scope.stratum),
        question.id,
        item.statistic,
        item.base,
        item.item,
    )
    columns = (item.values.tolist(), item.answered.tolist())
    for code, (report, value, has_answer) in enumerate(zip(reports, *columns, strict=True)):
        plain = value / answered if answered else ""
        yield (*head, code, report, value, has_answer, plain)


def answered_mean(item: PseudoValues, counts: Sequence[int], n: int) -> float:
    """Return the mean of `answered` over n reports; 0 if it is not above 0.

    Estimates among those who answered do not exist then.
    """
    if item.place is not None or (item.answered == 1).all():
        return 1.0
    return max(float(np.asarray(counts) @ item.answered) / n, 0.0)


@dataclass(frozen=True)
class ChannelRow:
    """One probability of a channel: P(report | truth).

    per          "answer": truth and report are indices, as in channels.json and reports.csv;
                 "option": they say whether the option was chosen, and whether the report names it
    p, q         P(report names it | chosen) and P(report names it | not chosen), if there is one
                 such pair

    Tables of more than 500,000 probabilities are in weights/ID.csv only; p and q determine others.
    """

    question_id: str
    mechanism: str
    epsilon: float
    p: float | None
    q: float | None
    per: str
    option_id: str
    truth: int
    report: int
    probability: float


def write_channels(text: IO[str], questions: Sequence[PublishedQuestion]) -> None:
    """Write channels.csv: one row per probability."""
    writer = csv_writer(text)
    writer.writerow(field.name for field in fields(ChannelRow))
    for question in questions:
        head = (question.id, MECHANISMS[question.mechanism], question.channel.epsilon)
        for option, (p, q) in zip(question.options, option_chances(question), strict=False):
            table = ((1, 1, p), (1, 0, 1 - p), (0, 1, q), (0, 0, 1 - q))
            writer.writerows((*head, p, q, "option", option.id, *row) for row in table)
        if (matrix := _matrix(question)) is not None:
            channel = question.channel
            p_q = ("", "") if isinstance(channel, WeightTable) else (channel.p, channel.q)
            for truth, row in enumerate(matrix.tolist()):
                writer.writerows(
                    (*head, *p_q, "answer", "", truth, report, chance)
                    for report, chance in enumerate(row)
                )


def _matrix(question: PublishedQuestion) -> Floats | None:
    """Return P(code | truth); None for bits, and if it would be too long."""
    channel = question.channel
    if channel_size(channel) > MAX_CHANNEL_SIZE:
        return None
    if isinstance(channel, WeightTable):
        return channel.matrix
    if isinstance(channel, TickChannel) or channel.d > 1:
        return None
    return channel.q + (channel.p - channel.q) * np.eye(channel.k)
