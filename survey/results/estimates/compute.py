"""Estimates of one question from its released counts: shares, mean, median and histogram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from survey import estimator
from survey.errors import ChannelError, NoBaseError
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Integers
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.histogram import Cell, cells, edges
from survey.results.question_statistics import (
    channel_size,
    opt_outs,
    single_code_channel,
    substantive_options,
    truth_values,
)
from survey.results.request import IntervalOptions, Request

MAX_CHANNEL_SIZE = 500_000
"""Largest channel (truths times reports) whose medians and cells are estimated for a page: a grid
of 400 values. For finer grids call `survey.estimator` directly."""


@dataclass(frozen=True)
class QuestionEstimates:
    """All estimates of a question; each is None if nobody was asked or it cannot be estimated.

    supports  number of reports that name each option; None if reports do not name options
    base      "all" or "answered": the respondents whom spread, mean and median describe
    shares    one number per option; None also if the design does not identify the shares
    answered  one number per substantive option; None also if hardly anybody answered
    spread    shares of the histogram cells of a number or date
    mean      of questions whose answers are numbers or scores; median likewise
    mean_ranks  one per option of a ranking; empty for other questions
    has_distribution  whether the question's design allows spread and median at all
    """

    supports: tuple[int | None, ...]
    base: str
    shares: estimator.Proportions | None = None
    answered: estimator.AnsweredShares | None = None
    spread: estimator.Histogram | None = None
    mean: estimator.Mean | None = None
    mean_ranks: tuple[estimator.Mean, ...] = ()
    median: estimator.Quantiles | None = None
    has_distribution: bool = True


def estimate_question(
    question: PublishedQuestion, n_asked: int, counts: Sequence[int], options: IntervalOptions
) -> QuestionEstimates:
    """Compute every estimate that a question's channel allows from its counts."""
    c = np.asarray(counts, dtype=np.int64)
    if not n_asked:
        return no_estimates(question)
    share_counts = question.kind.share_counts(question, c)
    shares = question_shares(question, n_asked, share_counts, options) if question.options else None
    has_base = shares is not None and bool(substantive_options(question))
    spread, median_estimate, has_distribution = _distribution(question, c, options)
    return QuestionEstimates(
        supports=_supports(question, share_counts),
        base=answer_base(question),
        shares=shares,
        answered=shares_of_answered(question, n_asked, share_counts, options) if has_base else None,
        spread=spread,
        mean=question_mean(question, c, options),
        mean_ranks=_mean_ranks(question, c, options),
        median=median_estimate,
        has_distribution=has_distribution,
    )


def no_estimates(question: PublishedQuestion) -> QuestionEstimates:
    """Return the estimates of a question about which nothing is known."""
    return QuestionEstimates((None,) * len(question.options), answer_base(question))


def answer_base(question: PublishedQuestion) -> str:
    """Return the base of a question's numbers: "answered" with opt-outs, otherwise "all"."""
    if question.kind.is_ranking:
        return "answered" if opt_outs(question) else "all"
    return "answered" if None in truth_values(question) else "all"


def histogram_cells(question: PublishedQuestion) -> tuple[Cell, ...]:
    """Return the histogram cells of a number or date; a scale uses its own options instead."""
    if question.grid is None or not question.kind.is_numeric or not truth_values(question):
        return ()
    return cells(question.grid, is_date=question.kind.is_date)


def question_mean(
    question: PublishedQuestion, counts: Integers, options: IntervalOptions
) -> estimator.Mean | None:
    """Return the mean; None if there is none, or if hardly anybody answered."""
    channel, values = single_code_channel(question), truth_values(question)
    if channel is None or not values:
        return None
    try:
        return estimator.mean(counts, channel, values, level=options.level)
    except NoBaseError:
        return None


def mean_range(question: PublishedQuestion) -> tuple[float, float]:
    """Return the smallest and largest possible mean, or mean rank; ValueError if there is none."""
    if question.kind.is_ranking:
        return 1.0, float(question.kind.count_ranked(question))
    if question.grid is None:
        raise ValueError(f"question {question.id} has no mean to show")
    return question.grid.values[0], question.grid.values[-1]


def _mean_ranks(
    question: PublishedQuestion, counts: Integers, options: IntervalOptions
) -> tuple[estimator.Mean, ...]:
    """Return each option's mean rank; empty if not a ranking, or if hardly anybody ranked."""
    channel = question.channel
    if not question.kind.is_ranking or not isinstance(channel, WeightTable):
        return ()
    return estimator.mean_ranks(
        counts, channel, level=options.level, simultaneous=options.simultaneous
    )


def _distribution(
    question: PublishedQuestion, counts: Integers, options: IntervalOptions
) -> tuple[estimator.Histogram | None, estimator.Quantiles | None, bool]:
    """Return histogram and median of those who answered, and whether the design allows them."""
    channel, values = single_code_channel(question), truth_values(question)
    if channel is None or not values:
        return None, None, True
    if channel_size(channel) > MAX_CHANNEL_SIZE:
        return None, None, False
    try:
        median_estimate = estimator.median(counts, channel, values, level=options.level)
        return _histogram(question, channel, counts, options), median_estimate, True
    except NoBaseError:
        return None, None, True
    except ChannelError:
        return None, None, False


def _histogram(
    question: PublishedQuestion,
    channel: SubsetSelection | WeightTable,
    counts: Integers,
    options: IntervalOptions,
) -> estimator.Histogram | None:
    bins = histogram_cells(question)
    if question.grid is None or not bins:
        return None
    # Bonferroni over the cells gives simultaneous coverage, as for shares.
    level = 1 - (1 - options.level) / len(bins) if options.simultaneous else options.level
    bounds = edges(question.grid, bins)
    return estimator.histogram(counts, channel, truth_values(question), bounds, level=level)


def question_shares(
    question: PublishedQuestion, n_asked: int, counts: Integers, options: IntervalOptions
) -> estimator.Proportions | None:
    """Return one share per option; None if different shares give the same reports."""
    channel = question.kind.share_channel(question)
    arguments = interval_arguments(channel, options)
    estimate = shares_estimator(question)
    if estimate is estimator.subset_shares:
        return estimate(counts, channel, question.patterns, len(question.options), **arguments)
    if estimate is estimator.proportions:
        arguments["n"] = n_asked
    try:
        return estimate(counts, channel, **arguments)
    except ChannelError:
        return None


def interval_arguments(channel: AnyChannel, options: IntervalOptions) -> dict[str, Any]:
    """Return the options as arguments of the estimators of shares."""
    arguments: dict[str, Any] = {
        "level": options.level,
        "simultaneous": options.simultaneous,
        "target": options.target,
    }
    # Tables of more than two options have one interval method only.
    if not isinstance(channel, WeightTable) or channel.truths == channel.reports == 2:
        arguments["interval"] = options.interval
    return arguments


def shares_estimator(question: PublishedQuestion) -> Callable[..., estimator.Proportions]:
    """Return the function that estimates a question's shares."""
    if question.by_patterns:
        return estimator.subset_shares
    if isinstance(question.channel, WeightTable) and question.kind.is_numeric:
        return estimator.no_answer_shares
    return estimator.proportions


def shares_of_answered(
    question: PublishedQuestion, n_asked: int, counts: Integers, options: IntervalOptions
) -> estimator.AnsweredShares | None:
    """Return shares among those who answered; None if hardly anybody clearly answered."""
    patterns = question.patterns if question.by_patterns else None
    try:
        return estimator.answered_shares(
            counts,
            question.kind.share_channel(question),
            opt_outs(question),
            n=None if patterns else n_asked,
            patterns=patterns,
            level=options.level,
            simultaneous=options.simultaneous,
            target=options.target,
        )
    except NoBaseError:
        return None


def _supports(question: PublishedQuestion, counts: Integers) -> tuple[int | None, ...]:
    """Return how many reports name each option, None for options that reports do not name.

    Reports of a table name options if there are as many reports as options; opt-out options
    always have a separate report.
    """
    channel, k = question.kind.share_channel(question), len(question.options)
    if question.kind.is_ranking:
        # If there is one more report after the ordinary options, it states an order.
        n_ranked = k - len(opt_outs(question))
        by_code = counts.tolist()
        return tuple(by_code[:n_ranked] + by_code[len(by_code) - (k - n_ranked) :])
    if isinstance(channel, TickChannel):
        return tuple(counts[-k:].tolist())
    if question.by_patterns:
        holding = [[option in pattern for pattern in question.patterns] for option in range(k)]
        return tuple(int(counts[holds].sum()) for holds in holding)
    n_named = k
    if isinstance(channel, WeightTable) and channel.reports != k:
        n_named = channel.no_answers
    return (None,) * (k - n_named) + tuple(counts[len(counts) - n_named :].tolist())


@dataclass(frozen=True)
class Detail:
    """Figures behind one option's share; all but `fabricated` are fractions of one.

    unbiased        the linear estimate, which may lie outside 0 to 1
    display         the most likely share within 0 to 1; shares of exclusive answers sum to 1
    margin          half the interval; its square is the sum of the squares of the two parts
    sampling        the margin without randomization
    randomization   the margin if everybody in the population had been asked
    randomized      the part of the variance that is due to randomization, 0 to 1
    fabricated      number of fabricated reports that could shift the estimate by its margin
    """

    label: str
    unbiased: float
    display: float
    std_error: float
    n_effective: float
    margin: float
    sampling: float
    randomization: float
    randomized: float
    fabricated: int


def share_details(question: PublishedQuestion, shares: estimator.Proportions) -> tuple[Detail, ...]:
    """Return the details of each option of a question whose answers are options."""
    split = estimator.margin_split(shares)
    patterns = question.patterns if question.by_patterns else None
    channel = question.kind.share_channel(question)
    bounds = estimator.poisoning(shares, channel, patterns=patterns)
    columns: dict[str, Any] = {
        "unbiased": shares.estimate,
        "display": shares.mle,
        "std_error": shares.std_error,
        "n_effective": shares.n_effective,
        "margin": split.margin,
        "sampling": split.sampling,
        "randomization": split.randomization,
        "randomized": split.randomized,
        "fabricated": bounds.fakes_per_margin.astype(int),
    }
    return tuple(
        Detail(option.label, **{name: column[i].item() for name, column in columns.items()})
        for i, option in enumerate(question.options)
    )


@dataclass(frozen=True)
class EstimatesRequest(Request):
    """All questions of a survey, or one question, or the chart of one of its parts."""

    file_stem_format: ClassVar = "{question}-{part}"

    question: str = ""
    part: str = ""

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request; its parameters are in the path."""
        return {}

    @property
    def file_stem(self) -> str:
        """The part of a file name that states what the file is about."""
        return super().file_stem if self.part else "estimates"
