"""What the released counts of one question tell: shares, a mean, and how numbers are spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError, NoBaseError
from survey.estimator import (
    AnsweredShares,
    Histogram,
    Mean,
    Proportions,
    Quantiles,
    answered_shares,
    histogram,
    mean,
    median,
    no_answer_shares,
    proportions,
    subset_shares,
)
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, WeightTable
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.histogram import Cell, cells, edges
from survey.results.options import Wanted

Counts = NDArray[np.int64]

MOST_WEIGHTS = 500_000
"""Truths times reports up to which medians and cells are estimated while somebody waits for a
page: a grid of 400 values. For finer ones there is `survey.estimator`."""


class Numbers(NamedTuple):
    """How answers that are numbers are spread; `told` whether the design tells it at all.

    spread  shares of the cells of a number or date
    median  of numbers, dates and scales
    """

    spread: Histogram | None = None
    median: Quantiles | None = None
    told: bool = True


@dataclass(frozen=True)
class Estimates:
    """All estimates of one question; each is None where nobody was asked or nothing is known.

    `shares` has one number per option of the question; None also where there is no option, or
    the design cannot tell them. `answered` has one per option that is an answer, None also where
    hardly anybody answered. `supports` are the reports that say each option, None where a report
    says no option. `mean` and `numbers` are those of questions whose answers stand for numbers,
    over `base`: all or answered.
    """

    shares: Proportions | None
    answered: AnsweredShares | None
    supports: tuple[int | None, ...]
    mean: Mean | None
    numbers: Numbers
    base: str


def estimates(
    question: PublishedQuestion, asked: int, counts: Sequence[int], wanted: Wanted
) -> Estimates:
    """Estimate all that a question's channel can tell from its counts."""
    c = np.asarray(counts, dtype=np.int64)
    base = "answered" if None in values(question) else "all"
    if not asked:
        return Estimates(None, None, (None,) * len(question.options), None, Numbers(), base)
    shares = _shares(question, asked, c, wanted) if question.options else None
    return Estimates(
        shares=shares,
        answered=_answered(question, asked, c, wanted) if shares and answers(question) else None,
        supports=_supports(question, c),
        mean=_mean(question, c, wanted),
        numbers=_numbers(question, c, wanted),
        base=base,
    )


def no_answers(question: PublishedQuestion) -> tuple[int, ...]:
    """Options that are no answer: "prefer not to say", "does not apply"."""
    silent = {question.opt_out, question.not_applicable} - {""}
    return tuple(i for i, option in enumerate(question.options) if option.id in silent)


def answers(question: PublishedQuestion) -> tuple[int, ...]:
    """Options that are answers, of a question that also has one that is none; else nothing."""
    silent = no_answers(question)
    if not silent:
        return ()
    return tuple(i for i in range(len(question.options)) if i not in silent)


def values(question: PublishedQuestion) -> tuple[float | None, ...]:
    """The number each truth stands for, None for those that are no answer; empty without a mean.

    Of subset selection with d > 1 only the shares are known: its counts are per option.
    """
    if question.grid is None or numeric_channel(question) is None:
        return ()
    silent = question.channel.truths - question.grid.points
    return (*question.grid.values, *(None,) * silent)


def numeric_channel(question: PublishedQuestion) -> SubsetSelection | WeightTable | None:
    """The channel, if its counts are one per report, so that numbers can be read from them."""
    channel = question.channel
    if isinstance(channel, BitVector) or (isinstance(channel, SubsetSelection) and channel.d > 1):
        return None
    return channel


def weights(channel: AnyChannel) -> int:
    """The size of a channel as a table, which is what reading it takes time by."""
    return channel.truths * channel.counted


def cells_of(question: PublishedQuestion) -> tuple[Cell, ...]:
    """The cells of a number's or a date's histogram; that of a scale are its own options."""
    if question.grid is None or question.type not in ("number", "date") or not values(question):
        return ()
    return cells(question.grid, is_date=question.type == "date")


def _mean(question: PublishedQuestion, counts: Counts, wanted: Wanted) -> Mean | None:
    """The mean; None where there is none, or where hardly anybody answered."""
    channel, numbers = numeric_channel(question), values(question)
    if channel is None or not numbers:
        return None
    try:
        return mean(counts, channel, numbers, level=wanted.level)
    except NoBaseError:
        return None


def _numbers(question: PublishedQuestion, counts: Counts, wanted: Wanted) -> Numbers:
    """How the numbers of those who answered are spread, if it can be told."""
    channel, numbers = numeric_channel(question), values(question)
    if channel is None or not numbers:
        return Numbers()
    if weights(channel) > MOST_WEIGHTS:
        return Numbers(told=False)
    try:
        middle = median(counts, channel, numbers, level=wanted.level)
        return Numbers(_spread(question, channel, counts, wanted), middle)
    except NoBaseError:
        return Numbers()
    except ChannelError:
        return Numbers(told=False)


def _spread(
    question: PublishedQuestion,
    channel: SubsetSelection | WeightTable,
    counts: Counts,
    wanted: Wanted,
) -> Histogram | None:
    found = cells_of(question)
    if question.grid is None or not found:
        return None
    # All cells at once by Bonferroni, as for shares.
    level = 1 - (1 - wanted.level) / len(found) if wanted.simultaneous else wanted.level
    return histogram(counts, channel, values(question), edges(question.grid, found), level=level)


def _shares(
    question: PublishedQuestion, asked: int, counts: Counts, wanted: Wanted
) -> Proportions | None:
    """One share per option; None where different shares give the same reports."""
    channel = question.channel
    asked_for: dict[str, Any] = {
        "level": wanted.level,
        "simultaneous": wanted.simultaneous,
        "target": wanted.target,
    }
    # Tables of more than two options have an interval of their own.
    if not isinstance(channel, WeightTable) or channel.truths == channel.reports == 2:
        asked_for["interval"] = wanted.interval
    estimator = shares_estimator(question)
    if estimator is subset_shares:
        return estimator(counts, channel, question.patterns, len(question.options), **asked_for)
    if estimator is proportions:
        asked_for["n"] = asked
    try:
        return estimator(counts, channel, **asked_for)
    except ChannelError:
        return None


def shares_estimator(question: PublishedQuestion) -> Callable[..., Proportions]:
    """The function that reads the shares of a question, which methods name."""
    if question.by_patterns:
        return subset_shares
    if isinstance(question.channel, WeightTable) and question.type in ("number", "date"):
        return no_answer_shares
    return proportions


def _answered(
    question: PublishedQuestion, asked: int, counts: Counts, wanted: Wanted
) -> AnsweredShares | None:
    """Shares among those who answered; None where these are not clearly anybody."""
    patterns = question.patterns if question.by_patterns else None
    try:
        return answered_shares(
            counts,
            question.channel,
            no_answers(question),
            n=None if patterns else asked,
            patterns=patterns,
            level=wanted.level,
            simultaneous=wanted.simultaneous,
            target=wanted.target,
        )
    except NoBaseError:
        return None


def _supports(question: PublishedQuestion, counts: Counts) -> tuple[int | None, ...]:
    """How many reports say each option, where a report says options.

    Reports of a table say an option when there are as many reports as options, and always the
    ones that stand for no answer.
    """
    channel, k = question.channel, len(question.options)
    if isinstance(channel, BitVector):
        return tuple(counts[-k:].tolist())
    if question.by_patterns:
        holding = [[option in pattern for pattern in question.patterns] for option in range(k)]
        return tuple(int(counts[holds].sum()) for holds in holding)
    own = k
    if isinstance(channel, WeightTable) and channel.reports != k:
        own = channel.no_answers
    return (None,) * (k - own) + tuple(counts[len(counts) - own :].tolist())
