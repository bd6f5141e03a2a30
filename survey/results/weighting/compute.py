"""Computation of shares that are weighted to known margins of the population."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from survey import estimator
from survey.errors import CountsError, DesignError, NoBaseError, NotFoundError
from survey.estimator.trust.suppression import HIDDEN_MARGIN, decide, least_precise
from survey.estimator.trust.worst_case import standardized_worst_case
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.compute import crosstab_channels, pair_design
from survey.results.display_status import SUPPRESSED, count_missing
from survey.results.groups import tallies_by_link
from survey.results.joint_counts import ask_probability, joint_counts
from survey.results.number_format import not_enough
from survey.results.question_statistics import (
    defines_groups,
    find_question,
    opt_outs,
    question_index,
    truth_labels,
)
from survey.results.request import IntervalOptions
from survey.results.weighting.request import (
    BY_ANSWER,
    BY_GROUP,
    Category,
    WeightingRequest,
    check_length,
    parse_margins,
)
from survey.results.weighting.table import CategoryShare, WeightingResult
from survey.store import PublishedSurvey, Store


def list_bases(store: Store, survey: PublishedSurvey) -> dict[str, str]:
    """Return what margins can be over: the names in links, and on pages."""
    groups = {BY_GROUP: "the groups"} if len(tallies_by_link(store, survey)) > 1 else {}
    questions = [question for question in survey.definition.questions if defines_groups(question)]
    return groups | {f"{BY_ANSWER}{question.id}": f"“{question.text}”" for question in questions}


def weightable_questions(survey: PublishedSurvey) -> list[PublishedQuestion]:
    """Return the questions that have shares to weight."""
    questions = survey.definition.questions
    return [question for question in questions if question.kind.is_listed]


def list_categories(store: Store, survey: PublishedSurvey, by: str) -> list[Category]:
    """Return the categories of the margins; NotFoundError for an unknown base."""
    if by not in list_bases(store, survey):
        raise NotFoundError(f"{survey.slug} has no margins of {by[:60]!r}")
    if by == BY_GROUP:
        return [Category(name, name) for name in tallies_by_link(store, survey)]
    question = find_question(survey, by.removeprefix(BY_ANSWER))
    opt_out_ids = {question.options[place].id for place in opt_outs(question)}
    return [Category(id_, label, id_ in opt_out_ids) for id_, label in truth_labels(question)]


def compute_weighting(
    store: Store, survey: PublishedSurvey, request: WeightingRequest, options: IntervalOptions
) -> WeightingResult:
    """Weight the shares of a question to the margins of a request.

    Margins over groups give post-stratification. Margins over an answer, which is known only
    through randomized reports, give standardization by joint inversion. Raises DesignError for
    margins that do not fit the reports, CountsError and ChannelError for unsuitable questions.
    """
    check_length(request.margins)
    categories = list_categories(store, survey, request.by)
    population = parse_margins(request.margins, categories, request.unit)
    question = find_question(survey, request.question)
    if question.kind.is_ranking:
        raise CountsError(f"“{question.text}” is a ranking: its shares cannot be weighted")
    if question.kind.is_numeric:
        raise CountsError(f"“{question.text}” is a number: only shares of options can be weighted")
    if request.by == BY_GROUP:
        return _by_group(store, survey, question, population, options)
    return _by_answer(store, survey, question, request.by, population, options)


def _by_group(
    store: Store,
    survey: PublishedSurvey,
    question: PublishedQuestion,
    population: Sequence[float],
    options: IntervalOptions,
) -> WeightingResult:
    place, tallies = question_index(survey, question.id), tallies_by_link(store, survey)
    n_asked_by_group = [tally.n_asked[place] for tally in tallies.values()]
    for name, n, share in zip(tallies, n_asked_by_group, population, strict=True):
        if share > 0 and n < 2:
            raise DesignError(f"“{name}” has fewer than two reports that include this question")
        if share == 0 and n > 0:
            raise DesignError(f"“{name}” is 0 here, but {n:,} reports belong to this group")
    counts = np.array([tally.counts[place] for tally in tallies.values()], dtype=np.int64)
    n_asked = sum(n_asked_by_group)

    n = sum(tally.n for tally in tallies.values())
    composition = [
        CategoryShare(name, share, tally.n / n)
        for (name, tally), share in zip(tallies.items(), population, strict=True)
    ]
    if not n_asked:
        return WeightingResult(
            survey, question, BY_GROUP, composition, None, None, 0, SUPPRESSED, options
        )
    unweighted = estimator.proportions(
        counts.sum(axis=0), question.channel, n=n_asked, level=options.level
    )
    weighted = estimator.poststratified(
        counts, list(population), question.channel, n=n_asked_by_group, level=options.level
    )
    decision = estimator.disclosure(unweighted, weighted)
    needed, asked = (
        estimator.reports_needed(unweighted, weighted),
        ask_probability(survey, [question.id]),
    )
    missing = count_missing(needed, n_asked, asked)
    return WeightingResult(
        survey,
        question,
        BY_GROUP,
        composition,
        unweighted,
        weighted,
        n_asked,
        decision,
        options,
        missing,
    )


def _by_answer(
    store: Store,
    survey: PublishedSurvey,
    question: PublishedQuestion,
    by: str,
    population: Sequence[float],
    options: IntervalOptions,
) -> WeightingResult:
    place = question_index(survey, question.id)
    base_place = question_index(survey, by.removeprefix(BY_ANSWER))
    base = survey.definition.questions[base_place]
    if place == base_place:
        raise CountsError(f"“{question.text}” cannot be weighted to its own margins")
    if not defines_groups(question):
        raise CountsError(
            f"each report to “{question.text}” names several options: weight it by groups only"
        )
    design = pair_design(question, base)
    own_channel, base_channel = (crosstab_channels([member])[0] for member in (question, base))
    counts = joint_counts(store, survey, place, base_place)
    n = int(counts.sum())
    if not n:
        raise CountsError(f"{not_enough(survey)}: no released report includes both questions")

    unweighted = estimator.proportions(counts.sum(axis=1), own_channel, level=options.level)
    reported = estimator.proportions(counts.sum(axis=0), base_channel, level=options.level)
    shares = reported.estimate if estimator.disclosure(reported) != SUPPRESSED else None
    composition = [
        CategoryShare(label, share, None if shares is None else float(shares[i]))
        for i, ((_, label), share) in enumerate(zip(truth_labels(base), population, strict=True))
    ]
    case = standardized_worst_case(design, np.array(population))
    decision = least_precise([decide(case, n), estimator.disclosure(unweighted)])
    needed = max(case.required_n(HIDDEN_MARGIN), estimator.reports_needed(unweighted))
    missing = count_missing(needed, n, ask_probability(survey, [question.id, base.id]))
    try:
        table = estimator.crosstab(counts, design.channels, level=options.level)
        weighted = estimator.standardized_shares(table, list(population))
    except NoBaseError:
        weighted = None
    return WeightingResult(
        survey, question, by, composition, unweighted, weighted, n, decision, options, missing
    )
