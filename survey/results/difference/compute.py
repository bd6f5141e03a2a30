"""A question's answers compared between two groups: links, versions, or by another answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from survey.errors import ChannelError, CountsError, NoBaseError, NotFoundError
from survey.estimator import (
    Conditional,
    Difference,
    Disclosure,
    Independence,
    Mean,
    MeanDifference,
    conditional,
    conditional_difference,
    crosstab,
    difference,
    disclosure,
    independence,
    mean,
    mean_difference,
    proportions,
)
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.counts import Integers, crossed_counts
from survey.results.crosstab.compute import crossable, place_of
from survey.results.difference.table import Compared, is_number
from survey.results.estimates.compute import numeric_channel, values
from survey.results.groups import ANSWER, VERSION, Group, splits
from survey.results.options import Wanted
from survey.results.strata_counts import counts_by_link
from survey.store import PublishedSurvey, Store, find_survey


def compared(
    store: Store,
    survey: PublishedSurvey,
    name: str,
    groups: tuple[Group, Group],
    wanted: Wanted,
) -> Compared:
    """Compare the answers to a question, named by its id, between two groups of one kind.

    Raises CountsError for groups that cannot be compared, NotFoundError for an unknown question,
    ChannelError for questions whose reports tell no shares.
    """
    question = survey.definition.questions[place_of(survey, name)]
    first, second = groups
    if first == second:
        raise CountsError(f"{first.label} with itself: two different groups are compared")
    if first.kind != second.kind or (first.kind == ANSWER and first.of != second.of):
        raise CountsError(
            "two links, two versions, or two answers to one question are compared: "
            f"{first.label} and {second.label} are not of one kind"
        )
    if first.kind == ANSWER:
        return _by_answer(store, survey, question, groups, wanted)
    if first.kind == VERSION:
        reports = [_of_version(store, survey, question, group) for group in groups]
    else:
        reports = [_of_link(store, survey, name, group) for group in groups]
    return _openly(survey, question, groups, (reports[0], reports[1]), wanted)


class _Reports(NamedTuple):
    """What a group's devices ran, and the counts of its `asked` reports."""

    question: PublishedQuestion
    asked: int
    counts: Integers

    def mean(self, level: float) -> Mean | None:
        """None where there is none, or where hardly anybody answered."""
        channel, numbers = numeric_channel(self.question), values(self.question)
        if channel is None or not numbers:
            return None
        try:
            return mean(self.counts, channel, numbers, level=level)
        except NoBaseError:
            return None


def _of_link(store: Store, survey: PublishedSurvey, name: str, group: Group) -> _Reports:
    place = place_of(survey, name)
    for one in counts_by_link(store, survey):
        if one.name == group.of:
            question = survey.definition.questions[place]
            return _Reports(question, one.asked[place], one.counts[place])
    raise NotFoundError(f"no released report came by the {group.label}")


def _of_version(
    store: Store, survey: PublishedSurvey, question: PublishedQuestion, group: Group
) -> _Reports:
    """The same question of another version; its channel may be another one."""
    other = find_survey(store, survey.slug, int(group.of))
    asked = {one.id: place for place, one in enumerate(other.definition.questions)}
    if question.id not in asked:
        raise CountsError(f"{group.label} does not ask {question.id}")
    place = asked[question.id]
    theirs = other.definition.questions[place]
    if _form(theirs) != _form(question):
        raise CountsError(
            f"{question.id} has other options in {group.label}: shares of different lists of "
            "options are not compared"
        )
    tally = store.tally(other.key)
    return _Reports(theirs, tally.n_asked[place], np.asarray(tally.counts[place], dtype=np.int64))


def _form(question: PublishedQuestion) -> tuple[object, ...]:
    """What two questions must have in common to be compared."""
    ids = tuple(option.id for option in question.options)
    return question.type, ids, question.grid, question.by_patterns and question.max_ticks


def _openly(
    survey: PublishedSurvey,
    question: PublishedQuestion,
    groups: tuple[Group, Group],
    reports: tuple[_Reports, _Reports],
    wanted: Wanted,
) -> Compared:
    """Of groups that are known openly."""
    first, second = reports
    shares, shown = None, _HIDDEN
    means, means_shown = None, _HIDDEN
    if first.asked and second.asked:
        shares = None if is_number(question) else _shares(first, second, wanted)
        shown = _shares_shown(reports) if shares else _HIDDEN
        means, means_shown = _means(reports, wanted)
    return Compared(
        survey=survey,
        question=question,
        groups=groups,
        n=(first.asked, second.asked),
        shares=shares,
        shown=shown,
        means=means,
        means_shown=means_shown,
        test=_test(reports) if shown != "hide" else None,
        wanted=wanted,
    )


_HIDDEN: Disclosure = "hide"


def _shares(first: _Reports, second: _Reports, wanted: Wanted) -> Difference:
    return difference(
        first.counts,
        second.counts,
        first.question.channel,
        second.question.channel,
        n_a=first.asked,
        n_b=second.asked,
        level=wanted.level,
    )


def _shares_shown(reports: Sequence[_Reports]) -> Disclosure:
    """Each group's shares are in the table: all are shown or none, by the usual intervals."""
    level = Wanted().level
    return disclosure(
        *(
            proportions(one.counts, one.question.channel, n=one.asked, level=level)
            for one in reports
        )
    )


def _means(
    reports: tuple[_Reports, _Reports], wanted: Wanted
) -> tuple[MeanDifference | None, Disclosure]:
    usual = [one.mean(Wanted().level) for one in reports]
    a, b = (one.mean(wanted.level) for one in reports)
    if a is None or b is None or usual[0] is None or usual[1] is None:
        return None, _HIDDEN
    return mean_difference(a, b), disclosure(usual[0], usual[1])


def _test(reports: Sequence[_Reports]) -> Independence | None:
    """Pearson's test of group by report; none where a report is in several cells.

    Where the groups' devices ran different channels, equal answers give different reports.
    """
    channels = [one.question.channel for one in reports]
    channel = channels[0]
    if channel != channels[1] or isinstance(channel, BitVector):
        return None
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        return None
    table = np.stack([one.counts for one in reports])
    return independence(table) if (table.sum(axis=0) > 0).sum() > 1 else None


def _by_answer(
    store: Store,
    survey: PublishedSurvey,
    question: PublishedQuestion,
    groups: tuple[Group, Group],
    wanted: Wanted,
) -> Compared:
    """Of groups by a reported answer: by joint inversion, never by filtering."""
    if is_number(question):
        raise CountsError(
            f"{question.id} is a number: its mean is compared between links or versions"
        )
    place, other = place_of(survey, question.id), place_of(survey, groups[0].of)
    if place == other:
        raise CountsError(f"{question.id} cannot be split by its own answers")
    if not splits(question):
        raise ChannelError(
            f"each report to {question.id} names several options: it is compared between links or "
            "versions only"
        )
    channels = crossable([question, survey.definition.questions[other]])
    counts = crossed_counts(store, survey, place, other)
    options = [group.option for group in groups]
    shares, shown = None, _HIDDEN
    if counts.any():
        table = crosstab(counts, channels, level=wanted.level)
        try:
            shown = disclosure(_usual_conditional(counts, channels, options))
            shares = conditional_difference(table, options)
        except NoBaseError:
            shares, shown = None, _HIDDEN
    n = int(counts.sum())
    return Compared(survey, question, groups, (n, n), shares, shown, None, _HIDDEN, None, wanted)


def _usual_conditional(
    counts: Integers, channels: Sequence[SubsetSelection | WeightTable], options: list[int]
) -> Conditional:
    return conditional(crosstab(counts, channels, level=Wanted().level), 1, options=options)
