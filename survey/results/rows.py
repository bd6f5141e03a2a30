"""One line of results: the fields are the columns of the CSV, whatever the question."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from survey import __version__
from survey.estimator import AnsweredShares, Disclosure, Proportions
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.questionnaire.published import PublishedQuestion
from survey.results.estimates import Estimates, answers
from survey.store import PublishedSurvey

LEVEL = 0.95

ESTIMATED = ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective")
"""Columns that an estimator's result has under the same name, one number per option."""

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
    """One estimate, a share of an option or the mean of a question.

    statistic           share or mean
    base                all, or answered: of those whose answer is one (not "prefer not to say")
    n_reports           reports that bear on it: all of the survey, or of those asked
    report_count        reports that say the option, where a report says options; else None
    report_share        of n_reports
    estimate to conf_high  shares as fractions of one; means in the question's own unit, of dates
                        in days since 1970-01-01, of a scale its scores
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


class Decisions(NamedTuple):
    """Whether shares among all, shares among those who answered, and the mean may be shown."""

    shares: Disclosure
    answered: Disclosure
    mean: Disclosure


class QuestionRows(NamedTuple):
    """A question's rows in their order: shares among all, among those who answered, its mean."""

    shares: tuple[Row, ...]
    answered: tuple[Row, ...]
    mean: tuple[Row, ...]


def question_rows(
    survey: PublishedSurvey,
    question: PublishedQuestion,
    asked: int,
    found: Estimates,
    shown: Decisions,
    now: datetime,
) -> QuestionRows:
    """A share of every option, of every answer where some options are none, and a mean."""
    common = {**_common(survey, question, now), "n_reports": asked}
    flags = [FLAGS[decision] for decision in shown]
    if asked and found.shares is None:
        flags[:2] = [NOT_ESTIMABLE] * 2
    everybody = found.shares if shown.shares != "hide" else None
    some = found.answered if shown.answered != "hide" else None
    return QuestionRows(
        tuple(
            _share(common, question, found, option, everybody, option, "all", flags[0])
            for option in range(len(question.options))
        ),
        tuple(
            _share(common, question, found, option, some, place, "answered", flags[1])
            for place, option in enumerate(answers(question))
        ),
        (_mean(common, found, shown.mean, flags[2]),) if found.has_mean else (),
    )


def _share(
    common: Mapping[str, Any],
    question: PublishedQuestion,
    found: Estimates,
    option: int,
    result: Proportions | AnsweredShares | None,
    place: int,
    base: str,
    flag: str,
) -> Row:
    """The row of an option, whose numbers are at a place of the result."""
    count = found.supports[option] if result else None
    n = int(result.reports[place]) if result else common["n_reports"]
    written: dict[str, Any] = {
        **common,
        "option_id": question.options[option].id,
        "option_label": question.options[option].label,
        "statistic": "share",
        "base": base,
        "n_reports": n,
        "report_count": count,
        "report_share": count / n if count is not None and n else None,
        **_numbers(result, place),
        "flag": flag,
    }
    return Row(**written)


def _numbers(result: Proportions | AnsweredShares | None, place: int) -> dict[str, Any]:
    """The estimator's numbers at a place; None where there is none."""
    if result is None:
        return {**dict.fromkeys(ESTIMATED), "method": ""}
    numbers = {name: float(getattr(result, name)[place]) for name in ESTIMATED}
    return {
        **{name: None if math.isnan(x) else x for name, x in numbers.items()},
        "method": result.method,
    }


def _mean(common: Mapping[str, Any], found: Estimates, shown: Disclosure, flag: str) -> Row:
    result = found.mean if shown != "hide" else None
    names = [name for name in ESTIMATED if name != "mle"]
    numbers = {name: getattr(result, name) if result else None for name in names}
    written: dict[str, Any] = {
        **common,
        "option_id": "",
        "option_label": "",
        "statistic": "mean",
        "base": found.base,
        "report_count": None,
        "report_share": None,
        "mle": None,
        **numbers,
        "method": result.method if result else "",
        "flag": flag,
    }
    return Row(**written)


def _common(survey: PublishedSurvey, question: PublishedQuestion, now: datetime) -> dict[str, Any]:
    return {
        "survey_id": survey.slug,
        "survey_version": survey.version,
        "wave": "",
        "stratum": "",
        "bucket": "",
        "question_id": question.id,
        "question_text": question.text,
        "conf_level": LEVEL,
        "mechanism": MECHANISMS[question.mechanism],
        "truth_probability": _truth_probability(question),
        "n_options": _different_answers(question),
        "epsilon": question.channel.epsilon,
        "generated_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "app_version": __version__,
    }


def _truth_probability(question: PublishedQuestion) -> float | None:
    channel = question.channel
    return None if isinstance(channel, WeightTable) else channel.p


def _different_answers(question: PublishedQuestion) -> int:
    match question.channel:
        case SubsetSelection() as channel:
            return channel.k
        case BitVector() as channel:
            return channel.m
        case WeightTable() as channel:
            return channel.truths
