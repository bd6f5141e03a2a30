"""Computation of a regression of one question's answers on other answers and on the group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from survey import estimator
from survey.errors import ChannelError, CountsError, FieldError
from survey.estimator.trust.suppression import HIDDEN_MARGIN, decide, least_precise
from survey.estimator.trust.worst_case import (
    WorstCase,
    joint_regression_worst_case,
    regression_worst_case,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.compute import crosstab_channels, pair_design
from survey.results.display_status import SUPPRESSED, count_missing
from survey.results.groups import tallies_by_link
from survey.results.joint_counts import (
    CombinationCounts,
    ask_probability,
    count_combinations,
    joint_channel,
)
from survey.results.question_statistics import (
    defines_groups,
    find_question,
    opt_outs,
    question_index,
    truth_labels,
)
from survey.results.regression.table import GROUP, INTERCEPT, RegressionResult, Term
from survey.results.request import IntervalOptions, Request
from survey.store import PublishedSurvey, Store


@dataclass(frozen=True)
class RegressionRequest(Request):
    """The outcome question, its predictors, the baseline answer, and the penalty (`PENALTIES`).

    `predictors` are ids of questions and `GROUP`. `baseline` is an option's id; if it is empty,
    the default baseline is used. In links it is prefixed with its question's id, so that a link
    with another question ignores it.
    """

    required: ClassVar = ("question",)
    file_stem_format: ClassVar = "{question}-regression"

    question: str = ""
    predictors: tuple[str, ...] = ()
    baseline: str = ""
    against: str = ""
    penalty: str = ""

    @classmethod
    def parse(cls, query: Any) -> Self:
        """Parse a link's query."""
        question, against = query.get("question", ""), query.get("against", "")
        baseline_question, _, baseline = against.partition(":")
        return cls(
            question,
            tuple(query.getlist("predictor")),
            baseline if baseline_question == question else "",
            against,
            query.get("penalty", ""),
        )

    @property
    def is_complete(self) -> bool:
        """Whether predictors were chosen, or could be: the form with an outcome has a baseline."""
        return super().is_complete and bool(self.predictors or self.against)

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request."""
        predictors = list(self.predictors)
        return {
            "question": self.question,
            "against": self.against,
            "predictor": predictors,
            "penalty": self.penalty,
        }


PENALTIES = {"": "Maximum likelihood", "firth": "Firth’s penalized likelihood"}
"""Names of the estimates in the form, by the penalty in links."""

MAX_PREDICTORS = 4
MAX_ANSWERS = 12
"""Largest number of answers of an outcome or predictor."""

MAX_WORK = 50_000
"""Largest number of rows times combinations of answers; a fit of this size takes a few seconds."""

MAX_PENALIZED = 20
"""Largest number of parameters of a fit with a penalty, whose slope is slow to compute."""


def regression_questions(survey: PublishedSurvey) -> list[PublishedQuestion]:
    """Return the questions that can be an outcome or a predictor."""
    return [
        question
        for question in survey.definition.questions
        if defines_groups(question) and len(truth_labels(question)) <= MAX_ANSWERS
    ]


def has_groups(store: Store, survey: PublishedSurvey) -> bool:
    """Return whether the group (by collection link) can be a predictor."""
    return len(tallies_by_link(store, survey)) > 1


def compute_regression(
    store: Store, survey: PublishedSurvey, request: RegressionRequest, options: IntervalOptions
) -> RegressionResult:
    """Fit a logistic regression through the channels of its questions.

    Raises CountsError and ChannelError for unsuitable questions, NotFoundError for unknown ids.
    """
    outcome = _check_question(survey, request.question)
    predictors = [_check_question(survey, name) for name in request.predictors if name != GROUP]
    by_group = GROUP in request.predictors
    if request.penalty not in PENALTIES:
        raise FieldError(
            "penalty", f"penalty must be firth or empty (found {request.penalty[:60]!r})"
        )
    _check_predictors(store, survey, outcome, predictors, by_group)
    questions = [outcome, *predictors]
    counts = count_combinations(store, survey, [question_index(survey, q.id) for q in questions])
    by_group = by_group and len(counts.groups) > 1
    if not by_group:
        counts = _merge_groups(counts)
    combinations = math.prod(len(truth_labels(question)) for question in questions)
    if len(counts.times) * combinations > MAX_WORK:
        raise CountsError(
            "these predictors have too many combinations of answers to fit while you wait: "
            "choose fewer predictors, or predictors with fewer options"
        )
    baseline = _baseline_index(outcome, request.baseline)
    cases = _worst_cases(questions, counts)
    decision = least_precise(decide(case, of_case) for case, of_case in cases)
    terms = _list_terms(predictors, counts.groups if by_group else ())
    answers = len(truth_labels(outcome))
    parameters = (answers - 1) * len(terms)
    parameters += (combinations // answers - 1) * max(len(counts.groups), 1)
    if request.penalty and parameters > MAX_PENALIZED:
        raise CountsError(
            "Firth’s penalty takes too long with this many coefficients: choose fewer predictors "
            "or predictors with fewer options"
        )
    fit = None
    if decision != SUPPRESSED:
        fit = _fit(questions, counts, baseline, options, request.penalty)
    n = int(counts.times.sum())
    missing = _count_missing(survey, questions, cases, n)
    return RegressionResult(survey, outcome, baseline, terms, fit, n, decision, options, missing)


def _check_question(survey: PublishedSurvey, question_id: str) -> PublishedQuestion:
    question = find_question(survey, question_id)
    if not defines_groups(question):
        raise ChannelError(
            f"“{question.text}” is a number, or names several options in each report: a regression "
            "needs questions with one answer of a list"
        )
    if len(truth_labels(question)) > MAX_ANSWERS:
        raise CountsError(f"“{question.text}” has more than {MAX_ANSWERS} answers")
    return question


def _check_predictors(
    store: Store,
    survey: PublishedSurvey,
    outcome: PublishedQuestion,
    predictors: Sequence[PublishedQuestion],
    by_group: bool,
) -> None:
    ids = [question.id for question in predictors]
    if outcome.id in ids:
        raise CountsError(f"“{outcome.text}” is the outcome, so it cannot be a predictor")
    if len(set(ids)) < len(ids):
        raise CountsError("Choose each predictor once")
    if not ids and not by_group:
        raise CountsError("Choose at least one predictor")
    if len(ids) + by_group > MAX_PREDICTORS:
        raise CountsError(f"Choose at most {MAX_PREDICTORS} predictors")
    if by_group and not has_groups(store, survey):
        raise CountsError("all released reports belong to one group, so it cannot be a predictor")


def _merge_groups(counts: CombinationCounts) -> CombinationCounts:
    """Return the counts of all groups together."""
    codes, row = np.unique(counts.codes, axis=0, return_inverse=True)
    times = np.bincount(row.ravel(), counts.times).astype(np.int64)
    return CombinationCounts(codes, np.zeros(len(codes), dtype=np.int64), times, ("",))


def _baseline_index(question: PublishedQuestion, option_id: str) -> int:
    """Return the position of the answer that the others are compared with."""
    ids = [id_ for id_, _ in truth_labels(question)]
    if option_id and option_id not in ids:
        raise FieldError("against", f"“{question.text}” has no answer {option_id[:60]!r}")
    return ids.index(option_id) if option_id else default_baseline(question)


def default_baseline(question: PublishedQuestion) -> int:
    """Return the position of "no" in a yes/no question, else of the first substantive answer."""
    if question.kind.is_binary:
        return 1
    places = range(len(truth_labels(question)))
    return next(place for place in places if place not in opt_outs(question))


def _list_terms(predictors: Sequence[PublishedQuestion], groups: Sequence[str]) -> list[Term]:
    """Return the terms in the order of the estimator: intercept, groups, answers."""
    terms = [INTERCEPT]
    terms += [Term(GROUP, (name, name), (groups[0], groups[0])) for name in groups[1:]]
    for question in predictors:
        answers, reference = truth_labels(question), default_baseline(question)
        terms += [
            Term(question.id, answer, answers[reference])
            for place, answer in enumerate(answers)
            if place != reference
        ]
    return terms


def _fit(
    questions: Sequence[PublishedQuestion],
    counts: CombinationCounts,
    baseline: int,
    options: IntervalOptions,
    penalty: str,
) -> estimator.Regression:
    channels = [channel for question in questions for channel in crosstab_channels([question])]
    # Indicators of each group but the first, which is the reference.
    dummies = np.eye(len(counts.groups))[counts.group][:, 1:]
    return estimator.regression(
        counts.codes[:, 0],
        channels[0],
        dummies if dummies.shape[1] else None,
        names=list(counts.groups[1:]) if dummies.shape[1] else None,
        randomized=[
            estimator.Randomized(
                question.id, counts.codes[:, place], channel, default_baseline(question)
            )
            for place, (question, channel) in enumerate(
                zip(questions[1:], channels[1:], strict=True), 1
            )
        ],
        times=counts.times,
        baseline=baseline,
        level=options.level,
        joint=_list_joint_responses(questions),
        penalty="firth" if penalty else None,
    )


def _list_joint_responses(
    questions: Sequence[PublishedQuestion],
) -> list[estimator.JointlyRandomized]:
    """Return the joint responses with two or more of these questions."""
    places: dict[tuple[str, ...], list[int]] = {}
    for place, question in enumerate(questions):
        if question.joint:
            places.setdefault(question.joint.questions, []).append(place)
    responses = []
    for members in places.values():
        channel = joint_channel([questions[place] for place in members])
        if channel and len(members) > 1:
            responses.append(estimator.JointlyRandomized(channel, members))
    return responses


def _worst_cases(
    questions: Sequence[PublishedQuestion], counts: CombinationCounts
) -> list[tuple[WorstCase, float]]:
    """Return the worst case of each coefficient, and of how many reports it is estimated.

    All coefficients are shown or none. Groups are compared with the first one: two of n_0 and n_g
    reports are as precise as two of n/2 reports each, n = 4/(1/n_0 + 1/n_g).
    """
    outcome, *predictors = (crosstab_channels([question])[0] for question in questions)
    terms = [len(truth_labels(question)) - 1 for question in questions]
    parameters = terms[0] * (1 + sum(terms[1:]) + len(counts.groups) - 1)
    n = int(counts.times.sum())
    cases: list[tuple[WorstCase, float]] = [
        (
            joint_regression_worst_case(design, parameters)
            if len(design.channels) == 1
            else regression_worst_case(outcome, predictor, parameters),
            n,
        )
        for predictor, design in zip(
            predictors, (pair_design(questions[0], other) for other in questions[1:]), strict=True
        )
    ]
    if len(counts.groups) > 1:
        by_group = np.bincount(counts.group, counts.times, len(counts.groups))
        case = regression_worst_case(outcome, None, parameters)
        # A group without reports makes its comparison as good as one of no reports.
        cases += [(case, 4 / (1 / by_group[0] + 1 / size) if size else 0) for size in by_group[1:]]
    return cases


def _count_missing(
    survey: PublishedSurvey,
    questions: Sequence[PublishedQuestion],
    cases: Sequence[tuple[WorstCase, float]],
    n: int,
) -> int:
    """Return about how many more responses show every coefficient, if groups grow alike."""
    needed = max(
        case.required_n(HIDDEN_MARGIN) * n / of_case if of_case else math.inf
        for case, of_case in cases
    )
    return count_missing(
        needed, n, ask_probability(survey, [question.id for question in questions])
    )
