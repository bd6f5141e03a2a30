"""Rows of estimates, and with them the columns of the CSV: the fields of `EstimateRow`.

Page, CSV, API and terminal share them, whatever the question type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from survey.estimator import AnsweredShares, Disclosure, Mean, Proportions
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.texts import Option
from survey.results.display_status import FLAGS, NO_BASE, SUPPRESSED, numbers_at
from survey.results.estimates.compute import QuestionEstimates, histogram_cells, mean_range
from survey.results.estimates.histogram import Cell
from survey.results.groups import Group
from survey.results.number_format import (
    NOT_ENOUGH,
    NOT_ENOUGH_YET,
    TOO_FEW_ANSWERED,
    NumberFormat,
    describe_share,
)
from survey.results.question_statistics import question_columns, substantive_options, truth_values
from survey.results.request import IntervalOptions
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
        "optimal_piecewise": "optimal piecewise mechanism",
        "bits": "randomized response per option",
        "sampled_options": "randomized response of sampled options",
        "half_space": "randomized response of all options in a half-space",
        "subsets": "generalized randomized response over sets",
        "first_or_order": "first choice or order",
    }
)
"""The names of mechanisms in CSV, by their name in a definition."""


@dataclass(frozen=True)
class EstimateRow:
    """One estimate: the share of an option or histogram cell, a mean, or a median.

    option_id, option_label  the option or cell; empty for statistics of the whole question
    statistic           share, mean or median; mean_rank of an option of a ranking, whose shares
                        are those of first places
    base                all, or answered: only answers, without opt-outs such as "prefer not to say"
    n_reports           reports the estimate is based on: all, or those that include the question
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


class RowContext(NamedTuple):
    """A question with its estimates, and everything else that its rows state."""

    survey: PublishedSurvey
    question: PublishedQuestion
    n_asked: int
    estimates: QuestionEstimates
    disclosures: Mapping[str, Disclosure]
    options: IntervalOptions
    now: datetime
    group: Group
    has_failed: bool = False


Numbers = Mapping[str, Any]


def question_rows(context: RowContext) -> dict[str, tuple[EstimateRow, ...]]:
    """Return the rows of each part; rows exist before there are numbers to show in them."""
    question, estimates = context.question, context.estimates
    answered, supports = estimates.answered, estimates.supports
    # While nobody was asked, the design is assumed to identify the shares.
    has_shares = not context.n_asked or estimates.shares is not None
    estimable = {
        "shares": has_shares,
        "answered": has_shares,
        "spread": estimates.has_distribution,
        "median": estimates.has_distribution,
    }

    def row(part: str, base: str, item: Option | Cell | None, numbers: Numbers) -> EstimateRow:
        """Return the row of a part, for an option, a cell or the whole question."""
        disclosure = context.disclosures[part]
        if disclosure == SUPPRESSED:
            numbers = {}
        elif not numbers:
            numbers = _unknown_numbers(question, part)
        flag = FLAGS[disclosure]
        if context.has_failed or not estimable.get(part, True):
            flag = NOT_ESTIMABLE
        columns: dict[str, Any] = {
            **_common_columns(context),
            **NO_NUMBERS,
            "option_id": item.id if item else "",
            "option_label": item.label if item else "",
            "statistic": _statistic(question, part, item),
            "base": base,
            "flag": flag,
            **numbers,
        }
        return EstimateRow(**columns)

    base, options = estimates.base, question.options
    rows = {
        "shares": [
            row("shares", "all", option, _share_numbers(estimates.shares, i, supports[i]))
            for i, option in enumerate(options)
        ],
        "answered": [
            row("answered", "answered", options[i], _share_numbers(answered, place, supports[i]))
            for place, i in enumerate(substantive_options(question))
        ],
        "spread": [
            row("spread", base, cell, _cell_numbers(context, place))
            for place, cell in enumerate(histogram_cells(question))
        ],
        "mean": [row("mean", base, None, _mean_numbers(estimates.mean))],
        "median": [row("median", base, None, _median_numbers(estimates))],
    }
    if not truth_values(question):
        rows |= {"mean": [], "median": []}
    if question.kind.is_ranking:
        ranked = question.kind.count_ranked(question)
        means = estimates.mean_ranks or (None,) * ranked
        rows["mean"] = [
            row("mean", base, option, _mean_numbers(mean))
            for option, mean in zip(options[:ranked], means, strict=True)
        ]
    return {part: tuple(part_rows) for part, part_rows in rows.items()}


def _unknown_numbers(question: PublishedQuestion, part: str) -> Numbers:
    """Return the interval of all possible values, if hardly anybody seems to have answered.

    Such a result is shown like any other: hiding it would select the surveys that show estimates.
    """
    low, high = mean_range(question) if part in ("mean", "median") else (0.0, 1.0)
    return {"conf_low": low, "conf_high": high, "method": NO_BASE}


def _share_numbers(
    result: Proportions | AnsweredShares | None, place: int, count: int | None
) -> Numbers:
    """Return the estimator's numbers of one option, and how many reports name it."""
    if result is None:
        return {}
    n = int(result.reports[place])
    numbers = numbers_at(result, ESTIMATED, place)
    return {
        **{name: None if math.isnan(x) else x for name, x in numbers.items()},
        "n_reports": n,
        "report_count": count,
        "report_share": count / n if count is not None and n else None,
        "method": result.method,
    }


def _cell_numbers(context: RowContext, place: int) -> Numbers:
    """Return the unbiased share as `estimate` and the share of the smoothed histogram as `mle`."""
    spread = context.estimates.spread
    if spread is None:
        return {}
    simultaneous = ", simultaneous" if context.options.simultaneous else ""
    names = ("std_error", "conf_low", "conf_high", "n_effective")
    return {
        "estimate": float(spread.linear[place]),
        "mle": float(spread.estimate[place]),
        **numbers_at(spread, names, place),
        "method": f"{spread.method}{simultaneous}",
    }


def _statistic(question: PublishedQuestion, part: str, item: Option | Cell | None) -> str:
    if item is None:
        return part
    return "mean_rank" if question.kind.is_ranking and part == "mean" else "share"


def _mean_numbers(mean: Mean | None) -> Numbers:
    if mean is None:
        return {}
    names = (*ESTIMATED, "method")
    return {name: getattr(mean, name) for name in names if name != "mle"}


def _median_numbers(estimates: QuestionEstimates) -> Numbers:
    """Return the median and its interval, which are grid values; it has no standard error."""
    median = estimates.median
    if median is None:
        return {}
    names = ("estimate", "conf_low", "conf_high")
    return {**numbers_at(median, names, 0), "method": median.method}


def _common_columns(context: RowContext) -> Numbers:
    """Return the columns that are equal in all rows of a question."""
    survey, question = context.survey, context.question
    return {
        **question_columns(survey, question),
        **context.group.columns,
        "question_text": question.text,
        "n_reports": context.n_asked,
        "conf_level": context.options.level,
        "mechanism": MECHANISMS[question.mechanism],
        "truth_probability": question.channel.truth_probability,
        "n_options": question.channel.options,
        "epsilon": question.channel.epsilon,
        "generated_at": context.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "app_version": __version__,
    }


def row_label(row: EstimateRow) -> str:
    """Return the option or cell of a row, or "Mean" or "Median"."""
    if row.statistic == "share":
        return row.option_label
    if row.statistic == "mean_rank":
        return f"Mean rank of “{row.option_label}”"
    base = " of those who answered" if row.base == "answered" else ""
    return f"{row.statistic.capitalize()}{base}"


def describe_estimate(
    row: EstimateRow, formatter: NumberFormat | None = None, *, closed: bool = False
) -> str:
    """Describe a row's estimate and interval in words.

    `formatter` formats means and medians. `closed` says that no more responses can arrive.
    """
    if row.flag == "not_estimable":
        return "cannot be estimated from this design"
    if row.method == NO_BASE:
        return TOO_FEW_ANSWERED
    if row.estimate is None or row.conf_low is None or row.conf_high is None:
        return NOT_ENOUGH if closed else NOT_ENOUGH_YET
    if row.statistic == "share":
        return describe_share(row.estimate, row.conf_low, row.conf_high)
    numbers = formatter or NumberFormat(1)
    if row.conf_low == row.conf_high:
        return f"estimated {numbers.text(row.estimate)}, no other value is in the interval"
    ends = f"{numbers.number(row.conf_low)} and {numbers.text(row.conf_high)}"
    return f"estimated {numbers.text(row.estimate)}, between {ends}"
