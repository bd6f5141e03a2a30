"""A regression of one question's answers on others and on the links, from released reports."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator import (
    Crosstab,
    Disclosure,
    Proportions,
    Randomized,
    Regression,
    crosstab,
    disclosure,
    proportions,
    regression,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.combined_counts import CombinedCounts, combined_counts
from survey.results.crosstab.compute import answers, crossable, place_of
from survey.results.estimates.compute import no_answers
from survey.results.groups import splits
from survey.results.options import Wanted
from survey.results.regression.table import INTERCEPT, LINK, Regressed, Term
from survey.results.strata_counts import counts_by_link
from survey.store import PublishedSurvey, Store

MOST_PREDICTORS = 4
MOST_ANSWERS = 12
"""Answers of a question up to which it is regressed, or on."""

MOST_WORK = 50_000
"""Rows x combinations of the predictors' answers x outcomes that are fitted: a few seconds."""


def regressable(survey: PublishedSurvey) -> list[PublishedQuestion]:
    """The questions that can be explained, or explain."""
    return [
        question
        for question in survey.definition.questions
        if splits(question) and len(answers(question)) <= MOST_ANSWERS
    ]


def has_links(store: Store, survey: PublishedSurvey) -> bool:
    """Whether people can be told apart by their link."""
    return len(counts_by_link(store, survey)) > 1


def regressed(
    store: Store,
    survey: PublishedSurvey,
    name: str,
    predictors: Sequence[str],
    wanted: Wanted,
    against: str = "",
) -> Regressed:
    """Explain the answers to a question by those to others, named by their ids, and `LINK`.

    `against` is the answer that all others are held against; usually "no", or the first. Raises
    CountsError and ChannelError for what cannot be regressed, NotFoundError for unknown names.
    """
    question = _regressable(survey, name)
    explaining = [_regressable(survey, one) for one in predictors if one != LINK]
    _check(store, survey, question, explaining, LINK in predictors)
    places = [place_of(survey, one.id) for one in (question, *explaining)]
    counts = combined_counts(store, survey, places)
    links = LINK in predictors and len(counts.links) > 1
    if not links:
        counts = _without_links(counts)
    _check_work([question, *explaining], counts)
    baseline = _against(question, against)
    shown = _shown([question, *explaining], counts)
    fit = _fit([question, *explaining], counts, baseline, wanted) if shown != "hide" else None
    terms = _terms(explaining, counts.links if links else ())
    n = int(counts.times.sum())
    return Regressed(survey, question, baseline, terms, fit, n, shown, wanted)


def _regressable(survey: PublishedSurvey, name: str) -> PublishedQuestion:
    question = survey.definition.questions[place_of(survey, name)]
    if not splits(question):
        raise ChannelError(
            f"{name} is a number, or names several options in each report: regressions are of "
            "questions with one answer of a list"
        )
    if len(answers(question)) > MOST_ANSWERS:
        raise CountsError(f"{name} has more than {MOST_ANSWERS} answers")
    return question


def _check(
    store: Store,
    survey: PublishedSurvey,
    question: PublishedQuestion,
    explaining: Sequence[PublishedQuestion],
    by_link: bool,
) -> None:
    names = [one.id for one in explaining]
    if question.id in names:
        raise CountsError(f"{question.id} cannot explain itself")
    if len(set(names)) < len(names):
        raise CountsError("each predictor is taken once")
    if not names and not by_link:
        raise CountsError("Choose at least one predictor")
    if len(names) + by_link > MOST_PREDICTORS:
        raise CountsError(f"Choose at most {MOST_PREDICTORS} predictors")
    if by_link and not has_links(store, survey):
        raise CountsError("all released reports came by one link, which explains nothing")


def _check_work(questions: Sequence[PublishedQuestion], counts: CombinedCounts) -> None:
    work = len(counts.times) * math.prod(len(answers(question)) for question in questions)
    if work > MOST_WORK:
        raise CountsError(
            "these predictors have too many combinations of answers to be fitted while you wait: "
            "choose fewer, or such with fewer options"
        )


def _without_links(counts: CombinedCounts) -> CombinedCounts:
    """The same rows for all links together."""
    codes, row = np.unique(counts.codes, axis=0, return_inverse=True)
    times = np.bincount(row.ravel(), counts.times).astype(np.int64)
    return CombinedCounts(codes, np.zeros(len(codes), dtype=np.int64), times, ("",))


def _against(question: PublishedQuestion, named: str) -> int:
    """The place of the answer that others are held against."""
    ids = [id_ for id_, _ in answers(question)]
    if named and named not in ids:
        raise CountsError(f"{question.id} has no answer {named[:60]!r}")
    return ids.index(named) if named else usual_reference(question)


def usual_reference(question: PublishedQuestion) -> int:
    """ "No" of yes and no, else the first answer that is one."""
    if question.type == "yes_no":
        return 1
    silent = no_answers(question)
    return next(place for place in range(len(answers(question))) if place not in silent)


def _terms(explaining: Sequence[PublishedQuestion], links: Sequence[str]) -> list[Term]:
    """In the order of the estimator: intercept, links, answers."""
    found = [INTERCEPT]
    found += [Term(LINK, (name, name), (links[0], links[0])) for name in links[1:]]
    for question in explaining:
        options, reference = answers(question), usual_reference(question)
        found += [
            Term(question.id, option, options[reference])
            for place, option in enumerate(options)
            if place != reference
        ]
    return found


def _fit(
    questions: Sequence[PublishedQuestion], counts: CombinedCounts, baseline: int, wanted: Wanted
) -> Regression:
    channels = crossable(list(questions))
    dummies = np.eye(len(counts.links))[counts.link][:, 1:]
    return regression(
        counts.codes[:, 0],
        channels[0],
        dummies if dummies.shape[1] else None,
        names=list(counts.links[1:]) if dummies.shape[1] else None,
        randomized=[
            Randomized(question.id, counts.codes[:, place], channel, usual_reference(question))
            for place, (question, channel) in enumerate(
                zip(questions[1:], channels[1:], strict=True), 1
            )
        ],
        times=counts.times,
        baseline=baseline,
        level=wanted.level,
    )


def _shown(questions: Sequence[PublishedQuestion], counts: CombinedCounts) -> Disclosure:
    """As of the tables that coefficients could be computed from, or into.

    The outcome crossed with each predictor, and its shares by each link: with one predictor the
    coefficients say exactly what such a table says.
    """
    channels = crossable(list(questions))
    level = Wanted().level
    parts: list[Crosstab | Proportions] = []
    for place in range(1, len(questions)):
        shape = channels[0].counted, channels[place].counted
        table = _summed(counts, [0, place], shape)
        parts.append(crosstab(table, [channels[0], channels[place]], level=level))
    if len(counts.links) > 1:
        shape = len(counts.links), channels[0].counted
        by_link = np.zeros(shape, dtype=np.int64)
        np.add.at(by_link, (counts.link, counts.codes[:, 0]), counts.times)
        if not by_link.sum(axis=1).all():
            return "hide"
        parts += [proportions(row, channels[0], level=level) for row in by_link]
    return disclosure(*parts)


def _summed(
    counts: CombinedCounts, places: Sequence[int], shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Counts of some of the questions, over all others and all links."""
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, tuple(counts.codes[:, place] for place in places), counts.times)
    return table
