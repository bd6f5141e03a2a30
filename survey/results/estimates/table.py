"""One line of results: the fields are the columns of the CSV, whatever the question."""

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
from survey.results.estimates.compute import Estimates, answers, cells_of, values
from survey.results.estimates.histogram import Cell
from survey.results.grouped import Group
from survey.results.options import Wanted
from survey.results.suppression import Decisions
from survey.store import PublishedSurvey
from survey.version import __version__

ESTIMATED = ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective")
"""Columns that an estimator's result has under the same name, one number per option."""

NO_NUMBERS = {**dict.fromkeys(("report_count", "report_share", *ESTIMATED)), "method": ""}
"""A row that may not be shown, or of which nothing is known."""

FLAGS: Mapping[Disclosure, str] = {"show": "", "caution": "caution", "hide": "suppressed"}

NOT_ESTIMABLE = "not_estimable"
"""The flag of shares that the question's design cannot tell; its mean can be."""

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
"""The mechanisms of a definition in words."""


@dataclass(frozen=True)
class Row:
    """One estimate: a share of an option or of a cell of values, a mean or a median.

    option_id, option_label  the option or cell; empty for what is about the whole question
    statistic           share, mean or median
    base                all, or answered: of those whose answer is one (not "prefer not to say")
    n_reports           reports that bear on it: all of the survey, or of those asked
    report_count        reports that say the option, where a report says options; else None
    report_share        of n_reports
    estimate to conf_high  shares as fractions of one; means and medians in the question's own
                        unit, of dates in days since 1970-01-01, of a scale its scores
    method              the interval's, or of a cell and a median how the values were found
    truth_probability   P(report says it | it is true) where there is one such number, else None
    n_options           different true answers; of a multiple choice by bits its options
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
    """A question's rows in their order: shares among all, of answers, of cells, mean, median."""

    shares: tuple[Row, ...]
    answered: tuple[Row, ...]
    spread: tuple[Row, ...]
    mean: tuple[Row, ...]
    median: tuple[Row, ...]


class Told(NamedTuple):
    """What is asked of one question and what was found: all that its rows are made of."""

    survey: PublishedSurvey
    question: PublishedQuestion
    asked: int
    found: Estimates
    shown: Decisions
    wanted: Wanted
    now: datetime
    group: Group


Numbers = Mapping[str, Any]


def question_rows(told: Told) -> QuestionRows:
    """Every row the question will ever have: numbers come and go, rows do not."""
    return QuestionRows(
        _option_rows(told), _answer_rows(told), _cell_rows(told), _mean_row(told), _median_row(told)
    )


def _option_rows(told: Told) -> tuple[Row, ...]:
    found, shown = told.found, told.shown.shares
    return tuple(
        _row(told, ("share", "all"), option, _untold(told), shown, _of_option(found, i, shown))
        for i, option in enumerate(told.question.options)
    )


def _answer_rows(told: Told) -> tuple[Row, ...]:
    found, shown, options = told.found, told.shown.answered, told.question.options
    kind = ("share", "answered")
    return tuple(
        _row(told, kind, options[i], _untold(told), shown, _of_answer(found, place, i, shown))
        for place, i in enumerate(answers(told.question))
    )


def _cell_rows(told: Told) -> tuple[Row, ...]:
    found, shown = told.found, told.shown.spread
    kind, untold = ("share", found.base), not found.numbers.told
    return tuple(
        _row(told, kind, cell, untold, shown, _of_cell(found, place, told.wanted, shown))
        for place, cell in enumerate(cells_of(told.question))
    )


def _mean_row(told: Told) -> tuple[Row, ...]:
    if not values(told.question):
        return ()
    found, shown = told.found, told.shown.mean
    return (_row(told, ("mean", found.base), None, False, shown, _of_mean(found, shown)),)


def _median_row(told: Told) -> tuple[Row, ...]:
    if not values(told.question):
        return ()
    found, shown = told.found, told.shown.median
    kind, untold = ("median", found.base), not found.numbers.told
    return (_row(told, kind, None, untold, shown, _of_median(found, shown)),)


def _untold(told: Told) -> bool:
    """Whether the design cannot tell the shares."""
    return bool(told.asked) and told.found.shares is None


def _row(
    told: Told,
    kind: tuple[str, str],
    of: Option | Cell | None,
    untold: bool,
    shown: Disclosure,
    numbers: Numbers,
) -> Row:
    """A row of a statistic and base, of an option, a cell or the whole question."""
    # What the usual intervals show may have no base at a higher level: no numbers, no claim.
    flag = NOT_ESTIMABLE if untold else FLAGS[shown if numbers else "hide"]
    written: dict[str, Any] = {
        **_common(told),
        **NO_NUMBERS,
        "option_id": of.id if of else "",
        "option_label": of.label if of else "",
        "statistic": kind[0],
        "base": kind[1],
        "flag": flag,
        **numbers,
    }
    return Row(**written)


def _of_option(found: Estimates, option: int, shown: Disclosure) -> Numbers:
    if found.shares is None or shown == "hide":
        return {}
    return _of_reports(found.shares, option, found.supports[option])


def _of_answer(found: Estimates, place: int, option: int, shown: Disclosure) -> Numbers:
    if found.answered is None or shown == "hide":
        return {}
    return _of_reports(found.answered, place, found.supports[option])


def _of_reports(result: Proportions | AnsweredShares, place: int, count: int | None) -> Numbers:
    """The estimator's numbers at a place, and how many of its reports say the option."""
    n = int(result.reports[place])
    numbers = {name: float(getattr(result, name)[place]) for name in ESTIMATED}
    return {
        **{name: None if math.isnan(x) else x for name, x in numbers.items()},
        "n_reports": n,
        "report_count": count,
        "report_share": count / n if count is not None and n else None,
        "method": result.method,
    }


def _of_cell(found: Estimates, place: int, wanted: Wanted, shown: Disclosure) -> Numbers:
    """The unbiased share as the estimate, the shown distribution's for display."""
    spread = found.numbers.spread
    if spread is None or shown == "hide":
        return {}
    return {
        "estimate": float(spread.linear[place]),
        "mle": float(spread.estimate[place]),
        "std_error": float(spread.std_error[place]),
        "conf_low": float(spread.conf_low[place]),
        "conf_high": float(spread.conf_high[place]),
        "n_effective": float(spread.n_effective[place]),
        "method": f"{spread.method}, simultaneous" if wanted.simultaneous else spread.method,
    }


def _of_mean(found: Estimates, shown: Disclosure) -> Numbers:
    if found.mean is None or shown == "hide":
        return {}
    return {name: getattr(found.mean, name) for name in (*ESTIMATED, "method") if name != "mle"}


def _of_median(found: Estimates, shown: Disclosure) -> Numbers:
    """One of the grid's values: it has an interval and no standard error."""
    middle = found.numbers.median
    if middle is None or shown == "hide":
        return {}
    names = ("estimate", "conf_low", "conf_high")
    return {**{name: float(getattr(middle, name)[0]) for name in names}, "method": middle.method}


def _common(told: Told) -> Numbers:
    """What is the same in all rows of a question, but for its numbers."""
    survey, question = told.survey, told.question
    return {
        "survey_id": survey.slug,
        "survey_version": survey.version,
        **told.group._asdict(),
        "question_id": question.id,
        "question_text": question.text,
        "n_reports": told.asked,
        "conf_level": told.wanted.level,
        "mechanism": MECHANISMS[question.mechanism],
        "truth_probability": _truth_probability(question),
        "n_options": question.channel.options,
        "epsilon": question.channel.epsilon,
        "generated_at": told.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "app_version": __version__,
    }


def _truth_probability(question: PublishedQuestion) -> float | None:
    channel = question.channel
    return None if isinstance(channel, WeightTable) else channel.p
