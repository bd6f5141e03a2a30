"""Computation of differences between groups: of collection links, versions or answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from survey import estimator
from survey.errors import ChannelError, CountsError, NoBaseError, NotFoundError
from survey.estimator.tables.crosstab import PairDesign
from survey.estimator.trust.suppression import HIDDEN_MARGIN, decide, least_precise
from survey.estimator.trust.worst_case import conditional_worst_case
from survey.mechanism import SubsetSelection
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Integers
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.compute import pair_design
from survey.results.difference.table import DifferenceResult
from survey.results.display_status import SUPPRESSED, count_missing, decide_disclosures, worst_cases
from survey.results.estimates.compute import question_mean
from survey.results.groups import (
    ANSWER,
    VERSION,
    Group,
    find_group,
    list_groups,
    tallies_by_link,
)
from survey.results.joint_counts import ask_probability, joint_counts
from survey.results.question_statistics import (
    defines_groups,
    find_question,
    has_question,
    has_same_answers,
    question_index,
    truth_values,
)
from survey.results.request import IntervalOptions, Request
from survey.store import PublishedSurvey, Store, Tally, find_survey


@dataclass(frozen=True)
class DifferenceRequest(Request):
    """A question, and the ids of the two groups whose answers are compared."""

    required: ClassVar = ("question", "a", "b")
    file_stem_format: ClassVar = "{question}-difference"

    question: str = ""
    a: str = ""
    b: str = ""


def compute_difference(
    store: Store, survey: PublishedSurvey, request: DifferenceRequest, options: IntervalOptions
) -> DifferenceResult:
    """Compare the answers to a question between two groups of one kind.

    Raises CountsError for groups that cannot be compared, NotFoundError for an unknown question or
    group, ChannelError for questions whose reports do not identify shares.
    """
    first, second = (find_group(store, survey, name) for name in (request.a, request.b))
    question = find_question(survey, request.question)
    if first == second:
        raise CountsError(f"Groups A and B are both {first.label}: choose two different groups")
    if first.kind != second.kind or (first.kind == ANSWER and first.name != second.name):
        raise CountsError(
            "Groups A and B cannot be compared: choose two groups, two versions, or two answers "
            "to the same question"
        )
    groups = first, second
    if first.kind == ANSWER:
        return _by_answer(store, survey, question, groups, options)
    find_sample = _version_sample if first.kind == VERSION else _group_sample
    samples = (
        find_sample(store, survey, question, first),
        find_sample(store, survey, question, second),
    )
    return _between_samples(survey, question, groups, samples, options)


def comparable_groups(
    store: Store, survey: PublishedSurvey, question: PublishedQuestion
) -> dict[str, Sequence[Group]]:
    """Return the groups between which a question can be compared, under their headings."""
    groups = {
        heading: [group for group in members if _is_comparable(store, survey, question, group)]
        for heading, members in list_groups(store, survey).items()
    }
    return {heading: members for heading, members in groups.items() if len(members) > 1}


def _is_comparable(
    store: Store, survey: PublishedSurvey, question: PublishedQuestion, group: Group
) -> bool:
    try:
        if group.kind == ANSWER:
            _answer_design(survey, question, group.name)
        if group.kind == VERSION:
            _counterpart(store, survey, question, group)
    except (ChannelError, CountsError):
        return False
    return True


class Sample(NamedTuple):
    """The reports of one group to a question: how many include it, and their counts."""

    question: PublishedQuestion
    n_asked: int
    counts: Integers


def _group_sample(
    store: Store, survey: PublishedSurvey, question: PublishedQuestion, group: Group
) -> Sample:
    tally = tallies_by_link(store, survey).get(group.name)
    if tally is None:
        raise NotFoundError(f"no released report belongs to the {group.label}")
    return _sample(survey, question, tally)


def _version_sample(
    store: Store, survey: PublishedSurvey, question: PublishedQuestion, group: Group
) -> Sample:
    """Return the reports of another version to the same question, with that version's channel."""
    version, counterpart = _counterpart(store, survey, question, group)
    return _sample(version, counterpart, store.tally(version.key))


def _counterpart(
    store: Store, survey: PublishedSurvey, question: PublishedQuestion, group: Group
) -> tuple[PublishedSurvey, PublishedQuestion]:
    """Return another version and its question; CountsError if its shares do not compare."""
    version = find_survey(store, survey.slug, int(group.name))
    if not has_question(version, question.id):
        raise CountsError(f"{group.label} does not ask {question.id}")
    counterpart = find_question(version, question.id)
    if not has_same_answers(counterpart, question):
        raise CountsError(
            f"{question.id} has other options in {group.label}: shares of different lists of "
            "options cannot be compared"
        )
    return version, counterpart


def _sample(survey: PublishedSurvey, question: PublishedQuestion, tally: Tally) -> Sample:
    place = question_index(survey, question.id)
    return Sample(question, tally.n_asked[place], np.asarray(tally.counts[place], dtype=np.int64))


def _between_samples(
    survey: PublishedSurvey,
    question: PublishedQuestion,
    groups: tuple[Group, Group],
    samples: tuple[Sample, Sample],
    options: IntervalOptions,
) -> DifferenceResult:
    """Compare groups whose members are known exactly."""
    n = samples[0].n_asked, samples[1].n_asked
    missing = [
        (group, number)
        for group, sample in zip(groups, samples, strict=True)
        for number in missing_in_group(survey, sample.question, sample.n_asked)
    ]
    result = DifferenceResult(survey, question, groups, n, options, missing=tuple(missing))
    if all(n) and not question.kind.is_numeric:
        (question_a, n_a, counts_a), (question_b, n_b, counts_b) = samples
        channels = [q.kind.share_channel(q) for q in (question_a, question_b)]
        counts_a = question_a.kind.share_counts(question_a, counts_a)
        counts_b = question_b.kind.share_counts(question_b, counts_b)
        shares = estimator.difference(
            counts_a, counts_b, *channels, n_a=n_a, n_b=n_b, level=options.level
        )
        result = replace(result, shares=shares, shares_disclosure=_decide(samples, "shares"))
    if all(n) and truth_values(question):
        means = _mean_difference(samples, options)
        result = replace(result, means=means, means_disclosure=_decide(samples, "mean"))
    has_shares = result.shares_disclosure != SUPPRESSED
    return replace(result, test=_test(samples) if has_shares else None)


def missing_in_group(
    survey: PublishedSurvey, question: PublishedQuestion, n_asked: int
) -> list[int]:
    """Return about how many more responses show a group's shares or mean; empty if shown."""
    cases = worst_cases(question)
    needed = min(
        (cases[part].required_n(HIDDEN_MARGIN) for part in ("shares", "mean") if part in cases),
        default=math.inf,
    )
    if n_asked >= needed:
        return []
    return [count_missing(needed, n_asked, ask_probability(survey, [question.id]))]


def _decide(samples: Sequence[Sample], part: str) -> estimator.Disclosure:
    """Decide about both groups together, because the table lists the estimates of both."""
    return least_precise(
        decide_disclosures(sample.question, sample.n_asked)[part] for sample in samples
    )


def _mean_difference(
    samples: tuple[Sample, Sample], options: IntervalOptions
) -> estimator.MeanDifference | None:
    """Return the difference of the means; None if hardly anybody of one group answered."""
    a, b = (question_mean(sample.question, sample.counts, options) for sample in samples)
    return None if a is None or b is None else estimator.mean_difference(a, b)


def _test(samples: Sequence[Sample]) -> estimator.Independence | None:
    """Return Pearson's test of group by report; None if a report counts in several cells.

    There is no test between different channels: equal answers then give different reports. Nor is
    there one of two answers: the test of each already says whether the groups differ.
    """
    channel, other_channel = (sample.question.channel for sample in samples)
    if channel != other_channel or isinstance(channel, TickChannel):
        return None
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        return None
    table = np.stack([sample.counts for sample in samples])
    return estimator.independence(table) if (table.sum(axis=0) > 0).sum() > 2 else None


def _by_answer(
    store: Store,
    survey: PublishedSurvey,
    question: PublishedQuestion,
    groups: tuple[Group, Group],
    options: IntervalOptions,
) -> DifferenceResult:
    """Compare groups defined by an answer: by joint inversion, never by filtering reports."""
    base_id = groups[0].name
    design = _answer_design(survey, question, base_id)
    places = question_index(survey, question.id), question_index(survey, base_id)
    counts = joint_counts(store, survey, *places)
    answers = [group.option for group in groups]
    n = int(counts.sum())
    case = conditional_worst_case(design)
    asked = ask_probability(survey, [question.id, base_id])
    missing = groups[0], count_missing(case.required_n(HIDDEN_MARGIN), n, asked)
    result = DifferenceResult(survey, question, groups, (n, n), options, missing=(missing,))
    if not n:
        return result
    result = replace(result, shares_disclosure=decide(case, n))
    try:
        table = estimator.crosstab(counts, design.channels, level=options.level)
        return replace(result, shares=estimator.conditional_difference(table, answers))
    except NoBaseError:
        return result


def _answer_design(
    survey: PublishedSurvey, question: PublishedQuestion, base_id: str
) -> PairDesign:
    """Return the design that relates a question to the one whose answers define the groups.

    Raises CountsError and ChannelError if reports do not determine shares in these groups.
    """
    if question.kind.is_numeric:
        raise CountsError(
            f"“{question.text}” is a number: compare its mean between groups or versions"
        )
    if question.id == base_id:
        raise CountsError(f"“{question.text}” cannot be split by its own answers")
    if not defines_groups(question):
        raise ChannelError(
            f"each report to “{question.text}” names several options: compare it between groups or "
            "versions"
        )
    return pair_design(question, find_question(survey, base_id))
