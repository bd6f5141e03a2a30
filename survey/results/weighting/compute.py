"""A question's shares weighted to known margins, beside what they are unweighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.errors import CountsError, DesignError, NoBaseError
from survey.estimator import (
    Disclosure,
    Proportions,
    WeightedShares,
    crosstab,
    disclosure,
    poststratified,
    proportions,
    standardized_shares,
)
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.counts import crossed_counts
from survey.results.crosstab.compute import answers, crossable, place_of
from survey.results.difference.table import is_number
from survey.results.estimates.compute import no_answers
from survey.results.estimates.table import FLAGS
from survey.results.groups import splits
from survey.results.options import Wanted
from survey.results.strata_counts import counts_by_link
from survey.results.weighting.request import Category
from survey.results.wording import not_enough
from survey.store import PublishedSurvey, Store

BY_LINK = "link"
"""What margins are of: the links, or "answer:" and the id of a question."""

BY_ANSWER = "answer:"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedRow:
    """One answer; the fields are the columns of the CSV. Without numbers while it is hidden."""

    survey_id: str
    survey_version: int
    question_id: str
    option_id: str
    option_label: str
    weighted_by: str
    n_reports: int
    unweighted: float | None
    unweighted_low: float | None
    unweighted_high: float | None
    estimate: float | None
    std_error: float | None
    conf_low: float | None
    conf_high: float | None
    n_effective: float | None
    conf_level: float
    method: str
    flag: str


class Composition(NamedTuple):
    """A category of the margins: what it makes of the population and of the reports.

    `here` is estimated where the margins are those of an answer, None where that may not be shown.
    """

    label: str
    known: float
    here: float | None


@dataclass(frozen=True)
class Weighted:
    """Weighted and unweighted shares of one question, and what of them may be shown."""

    survey: PublishedSurvey
    question: PublishedQuestion
    by: str
    composition: Sequence[Composition]
    unweighted: Proportions | None
    weighted: WeightedShares | None
    n: int
    shown: Disclosure
    wanted: Wanted

    @property
    def of(self) -> PublishedQuestion | None:
        """The question whose answers the margins are of; None where they are of links."""
        if self.by == BY_LINK:
            return None
        place = place_of(self.survey, self.by.removeprefix(BY_ANSWER))
        return self.survey.definition.questions[place]

    @property
    def design_effect(self) -> float | None:
        """The largest n/n_effective: by how much weighting multiplies the variance."""
        if self.weighted is None or self.shown == "hide":
            return None
        return float(self.n / self.weighted.n_effective.min())

    @property
    def rows(self) -> list[WeightedRow]:
        """A row for each answer; shown or hidden all together."""
        return [self._row(place, *each) for place, each in enumerate(answers(self.question))]

    def _row(self, place: int, option: str, label: str) -> WeightedRow:
        plain, weighted = self.unweighted, self.weighted
        hidden = self.shown == "hide" or plain is None or weighted is None

        def at(result: Proportions | WeightedShares | None, name: str) -> float | None:
            return None if hidden else float(getattr(result, name)[place])

        return WeightedRow(
            survey_id=self.survey.slug,
            survey_version=self.survey.version,
            question_id=self.question.id,
            option_id=option,
            option_label=label,
            weighted_by=self.by,
            n_reports=self.n,
            unweighted=at(plain, "estimate"),
            unweighted_low=at(plain, "conf_low"),
            unweighted_high=at(plain, "conf_high"),
            estimate=at(weighted, "estimate"),
            std_error=at(weighted, "std_error"),
            conf_low=at(weighted, "conf_low"),
            conf_high=at(weighted, "conf_high"),
            n_effective=at(weighted, "n_effective"),
            conf_level=self.wanted.level,
            method="" if hidden or weighted is None else weighted.method,
            flag=FLAGS[self.shown],
        )


def bases(store: Store, survey: PublishedSurvey) -> dict[str, str]:
    """What margins can be of, by the name links have for it."""
    found = {BY_LINK: "the links"} if len(counts_by_link(store, survey)) > 1 else {}
    questions = [question for question in survey.definition.questions if splits(question)]
    return found | {f"{BY_ANSWER}{one.id}": f"“{one.text}”" for one in questions}


def weightable(survey: PublishedSurvey) -> list[PublishedQuestion]:
    """The questions that have shares to weight."""
    return [question for question in survey.definition.questions if not is_number(question)]


def categories(store: Store, survey: PublishedSurvey, by: str) -> list[Category]:
    """What margins must say a number of."""
    if by == BY_LINK:
        return [Category(one.name, one.name) for one in counts_by_link(store, survey)]
    question = survey.definition.questions[place_of(survey, by.removeprefix(BY_ANSWER))]
    silent = {question.options[place].id for place in no_answers(question)}
    return [Category(id_, label, id_ in silent) for id_, label in answers(question)]


def weighted(
    store: Store,
    survey: PublishedSurvey,
    name: str,
    by: str,
    population: Sequence[float],
    wanted: Wanted,
) -> Weighted:
    """Weight a question, named by its id, to the shares of `categories` in the population.

    By links it is post-stratification; by an answer, which is itself known through random answers
    alone, standardization by joint inversion. Raises DesignError for margins these reports cannot
    have, CountsError and ChannelError for questions that cannot be weighted so.
    """
    question = survey.definition.questions[place_of(survey, name)]
    if is_number(question):
        raise CountsError(f"{question.id} is a number: shares of options are weighted")
    if by == BY_LINK:
        return _by_link(store, survey, question, population, wanted)
    return _by_answer(store, survey, question, by, population, wanted)


def _by_link(
    store: Store,
    survey: PublishedSurvey,
    question: PublishedQuestion,
    population: Sequence[float],
    wanted: Wanted,
) -> Weighted:
    place, links = place_of(survey, question.id), counts_by_link(store, survey)
    asked = [one.asked[place] for one in links]
    _check_links([one.name for one in links], asked, population)
    counts = np.stack([one.counts[place] for one in links])
    plain, found, shown = None, None, _HIDDEN
    if sum(asked):
        channel, total = question.channel, counts.sum(axis=0)

        def at(level: float) -> tuple[Proportions, WeightedShares]:
            return (
                proportions(total, channel, n=sum(asked), level=level),
                poststratified(counts, list(population), channel, n=asked, level=level),
            )

        plain, found = at(wanted.level)
        shown = disclosure(*at(Wanted().level))
    n = sum(one.n for one in links)
    made_of = [
        Composition(one.name, known, one.n / n)
        for one, known in zip(links, population, strict=True)
    ]
    return Weighted(survey, question, BY_LINK, made_of, plain, found, sum(asked), shown, wanted)


_HIDDEN: Disclosure = "hide"


def _check_links(names: Sequence[str], asked: Sequence[int], population: Sequence[float]) -> None:
    for name, n, known in zip(names, asked, population, strict=True):
        if known > 0 and n < 2:
            raise DesignError(f"“{name}” has no two reports that hold this question")
        if known == 0 and n > 0:
            raise DesignError(f"“{name}” is 0 here, but {n:,} reports came by it")


def _by_answer(
    store: Store,
    survey: PublishedSurvey,
    question: PublishedQuestion,
    by: str,
    population: Sequence[float],
    wanted: Wanted,
) -> Weighted:
    place = place_of(survey, question.id)
    other = place_of(survey, by.removeprefix(BY_ANSWER))
    base = survey.definition.questions[other]
    if place == other:
        raise CountsError(f"{question.id} cannot be weighted to margins of its own")
    if not splits(question):
        raise CountsError(
            f"each report to {question.id} names several options: it is weighted by links only"
        )
    channels = crossable([question, base])
    counts = crossed_counts(store, survey, place, other)
    n = int(counts.sum())
    if not n:
        raise CountsError(f"{not_enough(survey)}: no released report holds both questions")

    def at(level: float) -> tuple[Proportions, WeightedShares]:
        table = crosstab(counts, channels, level=level)
        plain = proportions(counts.sum(axis=1), channels[0], level=level)
        return plain, standardized_shares(table, list(population))

    plain, found, shown = None, None, _HIDDEN
    try:
        plain, found = at(wanted.level)
        shown = disclosure(*at(Wanted().level))
    except NoBaseError:
        plain, found, shown = None, None, _HIDDEN
    here = proportions(counts.sum(axis=0), channels[1], level=Wanted().level)
    seen = here.estimate if disclosure(here) != "hide" else None
    made_of = [
        Composition(label, known, None if seen is None else float(seen[at_]))
        for at_, ((_, label), known) in enumerate(zip(answers(base), population, strict=True))
    ]
    return Weighted(survey, question, by, made_of, plain, found, n, shown, wanted)
