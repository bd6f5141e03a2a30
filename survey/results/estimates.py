"""What the released counts of one question tell: shares among all and among answers, a mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError, NoBaseError
from survey.estimator import (
    AnsweredShares,
    Mean,
    Proportions,
    answered_shares,
    mean,
    no_answer_shares,
    proportions,
    subset_shares,
)
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.questionnaire.published import PublishedQuestion

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Estimates:
    """All estimates of one question.

    `shares` has one number per option of the question; None where nobody was asked, there is no
    option, or the design cannot tell them. `answered` has one per option that is an answer, None
    also where hardly anybody answered. `supports` are the reports that say each option, None
    where a report says no option. `has_mean` whether its answers stand for numbers, `mean` their
    mean, over `base`: all or answered.
    """

    shares: Proportions | None
    answered: AnsweredShares | None
    supports: tuple[int | None, ...]
    has_mean: bool
    mean: Mean | None
    base: str


def estimates(
    question: PublishedQuestion, asked: int, counts: Sequence[int], level: float
) -> Estimates:
    """Estimate all that a question's channel can tell from its counts."""
    c = np.asarray(counts, dtype=np.int64)
    values = _values(question)
    has_mean = bool(values)
    base = "answered" if None in values else "all"
    if not asked:
        return Estimates(None, None, (None,) * len(question.options), has_mean, None, base)
    shares = _shares(question, asked, c, level) if question.options else None
    answered = _answered(question, asked, c, level) if shares and answers(question) else None
    found = _mean(question, c, level)
    return Estimates(shares, answered, _supports(question, c), has_mean, found, base)


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


def _values(question: PublishedQuestion) -> tuple[float | None, ...]:
    """The number each truth stands for, None for those that are no answer; empty without a mean.

    Of subset selection with d > 1 only the shares are known: its counts are per option.
    """
    channel = question.channel
    is_read = isinstance(channel, WeightTable) or (
        isinstance(channel, SubsetSelection) and channel.d == 1
    )
    if question.grid is None or not is_read:
        return ()
    no_answers = _truths(question) - question.grid.points
    return (*question.grid.values, *(None,) * no_answers)


def _truths(question: PublishedQuestion) -> int:
    if question.type in ("number", "date") and question.grid:
        return question.grid.points + len(question.options)
    return len(question.options)


def _mean(question: PublishedQuestion, counts: Counts, level: float) -> Mean | None:
    channel, values = question.channel, _values(question)
    if isinstance(channel, BitVector) or not values:
        return None
    return mean(counts, channel, values, level=level)


def _shares(
    question: PublishedQuestion, asked: int, counts: Counts, level: float
) -> Proportions | None:
    """One share per option; None where different shares give the same reports."""
    channel = question.channel
    if isinstance(channel, SubsetSelection) and question.by_patterns:
        k = len(question.options)
        return subset_shares(counts, channel, question.patterns, k, level=level)
    try:
        if isinstance(channel, WeightTable) and question.type in ("number", "date"):
            return no_answer_shares(counts, channel, level=level)
        return proportions(counts, channel, n=asked, level=level)
    except ChannelError:
        return None


def _answered(
    question: PublishedQuestion, asked: int, counts: Counts, level: float
) -> AnsweredShares | None:
    """Shares among those who answered; None where these are not clearly anybody."""
    patterns = question.patterns if question.by_patterns else None
    n = None if patterns else asked
    try:
        return answered_shares(
            counts, question.channel, no_answers(question), n=n, patterns=patterns, level=level
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
