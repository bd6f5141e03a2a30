"""Rows of estimates: one table for page, CSV, API and terminal, whatever the question type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from survey.estimator import AnsweredShares, Disclosure, Proportions
from survey.mechanism import WeightTable
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.texts import Option
from survey.results.display_status import FLAGS, SUPPRESSED, PartDisclosures
from survey.results.estimates.compute import QuestionEstimates, histogram_cells
from survey.results.estimates.histogram import Cell
from survey.results.groups import Group
from survey.results.options import IntervalOptions
from survey.results.questions import substantive_options, truth_values
from survey.store import PublishedSurvey
from survey.version import __version__

ESTIMATED = ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective")
"""Columns that an estimator's result holds under the same name, one number per option."""

NO_NUMBERS = {**dict.fromkeys(("report_count", "report_share", *ESTIMATED)), "method": ""}
"""The columns of a row that is suppressed or cannot be estimated."""

NOT_ESTIMABLE = "not_estimable"
"""The flag of an estimate that the question's design does not allow, or that failed."""

MECHANISMS: Mapping[str, str] = MappingProxyType(
    {
        "grr": "generalized randomized response",
        "best": "subset selection",
        "warner": "Warner's design",
        "two_coins": "two coins",
        "forced_response": "forced response",
        "unrelated_question": "unrelated question",
        "geometric": "geometric noise",
        "laplace": "Laplace noise",
        "gaussian": "Gaussian noise",
        "exponential": "exponential mechanism",
        "square_wave": "square wave",
        "one_bit": "one bit",
        "piecewise": "piecewise mechanism",
        "hybrid": "hybrid of one bit and piecewise",
        "bits": "randomized response per option",
        "sampled_options": "randomized response of sampled options",
        "subsets": "generalized randomized response over sets",
    }
)
"""The names of mechanisms in CSV, by their name in a definition."""


@dataclass(frozen=True)
class EstimateRow:
    """One estimate: the share of an option or histogram cell, a mean, or a median.

    option_id, option_label  the option or cell; empty for statistics of the whole question
    statistic           share, mean or median
    base                all, or answered: only answers, without opt-outs such as "prefer not to say"
    n_reports           reports the estimate is based on: all, or those that hold the question
    report_count        reports that name the option, if reports name options; else None
    report_share        report_count as a fraction of n_reports
    estimate to conf_high  shares as fractions of one; means and medians in the question's own
                        unit, dates in days since 1970-01-01, scales in scores
    method              the interval method; for cells and medians how the values were computed
    truth_probability   P(report names it | it is true) if there is one such number, else None
    n_options           number of different true answers; options of a multiple choice by bits
    flag                caution, suppressed or not_estimable (then no numbers), or empty
    """

    survey_id: str
    survey_version: int
    wave: str
    stratum: str
    bucket: str
    question_id: str
    question_text: str
    option_id: str
    option_label: str
    statistic: str
    base: str
    n_reports: int
    report_count: int | None
    report_share: float | None
    estimate: float | None
    mle: float | None
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    conf_level: float
    n_effective: float | None
    method: str
    mechanism: str
    truth_probability: float | None
    n_options: int
    epsilon: float
    flag: str
    generated_at: str
    app_version: str


class QuestionRows(NamedTuple):
    """A question's rows in order: shares among all, of answers, of cells, mean, median."""

    shares: tuple[EstimateRow, ...]
    answered: tuple[EstimateRow, ...]
    spread: tuple[EstimateRow, ...]
    mean: tuple[EstimateRow, ...]
    median: tuple[EstimateRow, ...]


class RowContext(NamedTuple):
    """A question with its estimates, and everything else that its rows state."""

    survey: PublishedSurvey
    question: PublishedQuestion
    n_asked: int
    estimates: QuestionEstimates
    disclosures: PartDisclosures
    options: IntervalOptions
    now: datetime
    group: Group
    has_failed: bool = False


Numbers = Mapping[str, Any]


def question_rows(context: RowContext) -> QuestionRows:
    """Return every row of a question; rows exist before there are numbers to show in them."""
    return QuestionRows(
        _option_rows(context),
        _answer_rows(context),
        _cell_rows(context),
        _mean_rows(context),
        _median_rows(context),
    )


def _option_rows(context: RowContext) -> tuple[EstimateRow, ...]:
    estimates, disclosure = context.estimates, context.disclosures.shares
    statistic = _Statistic("share", "all", _shares_estimable(context), disclosure)
    return tuple(
        _row(context, statistic, option, _share_numbers(estimates.shares, i, estimates.supports[i]))
        for i, option in enumerate(context.question.options)
    )


def _answer_rows(context: RowContext) -> tuple[EstimateRow, ...]:
    estimates, options = context.estimates, context.question.options
    statistic = _Statistic(
        "share", "answered", _shares_estimable(context), context.disclosures.answered
    )
    return tuple(
        _row(
            context,
            statistic,
            options[i],
            _share_numbers(estimates.answered, place, estimates.supports[i]),
        )
        for place, i in enumerate(substantive_options(context.question))
    )


def _cell_rows(context: RowContext) -> tuple[EstimateRow, ...]:
    estimates = context.estimates
    statistic = _Statistic(
        "share", estimates.base, estimates.numbers.is_estimable, context.disclosures.spread
    )
    return tuple(
        _row(context, statistic, cell, _cell_numbers(context, place))
        for place, cell in enumerate(histogram_cells(context.question))
    )


def _mean_rows(context: RowContext) -> tuple[EstimateRow, ...]:
    if not truth_values(context.question):
        return ()
    statistic = _Statistic("mean", context.estimates.base, True, context.disclosures.mean)
    return (_row(context, statistic, None, _mean_numbers(context.estimates)),)


def _median_rows(context: RowContext) -> tuple[EstimateRow, ...]:
    if not truth_values(context.question):
        return ()
    estimates = context.estimates
    statistic = _Statistic(
        "median", estimates.base, estimates.numbers.is_estimable, context.disclosures.median
    )
    return (_row(context, statistic, None, _median_numbers(estimates)),)


def _shares_estimable(context: RowContext) -> bool:
    """Return whether the design identifies the shares; assumed while nobody was asked."""
    return not context.n_asked or context.estimates.shares is not None


class _Statistic(NamedTuple):
    name: str
    base: str
    is_estimable: bool
    disclosure: Disclosure


def _row(
    context: RowContext, statistic: _Statistic, item: Option | Cell | None, numbers: Numbers
) -> EstimateRow:
    """Return the row of a statistic, for an option, a cell or the whole question."""
    if statistic.disclosure == SUPPRESSED:
        numbers = {}
    # An estimate shown at the default level may not exist at a higher level.
    flag = FLAGS[statistic.disclosure if numbers else SUPPRESSED]
    if context.has_failed or not statistic.is_estimable:
        flag = NOT_ESTIMABLE
    columns: dict[str, Any] = {
        **_common_columns(context),
        **NO_NUMBERS,
        "option_id": item.id if item else "",
        "option_label": item.label if item else "",
        "statistic": statistic.name,
        "base": statistic.base,
        "flag": flag,
        **numbers,
    }
    return EstimateRow(**columns)


def _share_numbers(
    result: Proportions | AnsweredShares | None, place: int, count: int | None
) -> Numbers:
    """Return the estimator's numbers of one option, and how many reports name it."""
    if result is None:
        return {}
    n = int(result.reports[place])
    numbers = {name: float(getattr(result, name)[place]) for name in ESTIMATED}
    return {
        **{name: None if math.isnan(x) else x for name, x in numbers.items()},
        "n_reports": n,
        "report_count": count,
        "report_share": count / n if count is not None and n else None,
        "method": result.method,
    }


def _cell_numbers(context: RowContext, place: int) -> Numbers:
    """Return the unbiased share as `estimate` and the share of the smoothed histogram as `mle`."""
    spread = context.estimates.numbers.spread
    if spread is None:
        return {}
    simultaneous = ", simultaneous" if context.options.simultaneous else ""
    return {
        "estimate": float(spread.linear[place]),
        "mle": float(spread.estimate[place]),
        "std_error": float(spread.std_error[place]),
        "conf_low": float(spread.conf_low[place]),
        "conf_high": float(spread.conf_high[place]),
        "n_effective": float(spread.n_effective[place]),
        "method": f"{spread.method}{simultaneous}",
    }


def _mean_numbers(estimates: QuestionEstimates) -> Numbers:
    if estimates.mean is None:
        return {}
    names = (*ESTIMATED, "method")
    return {name: getattr(estimates.mean, name) for name in names if name != "mle"}


def _median_numbers(estimates: QuestionEstimates) -> Numbers:
    """Return the median and its interval, which are grid values; it has no standard error."""
    median = estimates.numbers.median
    if median is None:
        return {}
    names = ("estimate", "conf_low", "conf_high")
    return {**{name: float(getattr(median, name)[0]) for name in names}, "method": median.method}


def _common_columns(context: RowContext) -> Numbers:
    """Return the columns that are equal in all rows of a question."""
    survey, question = context.survey, context.question
    return {
        "survey_id": survey.slug,
        "survey_version": survey.version,
        **context.group.columns,
        "question_id": question.id,
        "question_text": question.text,
        "n_reports": context.n_asked,
        "conf_level": context.options.level,
        "mechanism": MECHANISMS[question.mechanism],
        "truth_probability": _truth_probability(question),
        "n_options": question.channel.options,
        "epsilon": question.channel.epsilon,
        "generated_at": context.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "app_version": __version__,
    }


def _truth_probability(question: PublishedQuestion) -> float | None:
    channel = question.channel
    return None if isinstance(channel, WeightTable) else channel.p
