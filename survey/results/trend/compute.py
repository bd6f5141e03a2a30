"""Computation of one question over collection links, time, or versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.result import ResultCache, SurveyResult
from survey.results.groups import AS_STORED, MONTH, Group, has_passed, split_by_link
from survey.results.question_statistics import (
    find_question,
    has_question,
    has_same_answers,
    question_index,
)
from survey.results.request import IntervalOptions
from survey.results.trend.request import PERIOD_CHOICES, SPLITS, TrendRequest
from survey.results.trend.table import DatedNote, TrendGroup, TrendResult, question_parts
from survey.store import PublishedSurvey, Store

ALL_GROUPS = "all groups"

MAX_PERIODS = 60
"""Largest number of periods in the default view: more are slow to estimate and hard to read."""

NamedResults = Sequence[tuple[str, SurveyResult]]


def compute_trend(
    cache: ResultCache,
    survey: PublishedSurvey,
    request: TrendRequest,
    options: IntervalOptions,
    today: date,
) -> TrendResult:
    """Return a question's figures in each link, period or version.

    Periods before `today` are final. An unknown question raises NotFoundError.
    """
    total = cache.result(survey, options)
    question = request.question or survey.definition.questions[0].id
    request = replace(request, question=question)
    notes: list[str] = []
    dated_notes: list[DatedNote] = []
    if request.over == "links":
        results = link_results(total, cache.results_by_group(survey, split_by_link, options))
    elif request.over == "trend":
        request = replace(request, per=request.per or _period_length(cache, survey, options))
        split = SPLITS[request.per]
        results = period_results(cache.results_by_group(survey, split, options))
        dated_notes = read_dated_notes(cache.store, survey.team)
    else:
        versions = cache.store.versions(survey.slug)
        other_versions = [version for version in versions if version.key != survey.key]
        results, notes = version_results(
            [total, *(cache.result(version, options) for version in other_versions)], question
        )
    result = combine_results(request, total, results, today, notes)
    return replace(result, dated_notes=tuple(dated_notes))


def read_dated_notes(store: Store, team: str) -> list[DatedNote]:
    """Return a team's notes on the trends of its survey, numbered in chronological order."""
    notes = [note for note in store.trend_notes(team) if note.day]
    return [
        DatedNote(date.fromisoformat(note.day), place, note.text, note.number)
        for place, note in enumerate(notes, 1)
    ]


def combine_results(
    request: TrendRequest,
    total: SurveyResult,
    results: NamedResults,
    today: date,
    notes: Sequence[str] = (),
) -> TrendResult:
    """Combine a question's figures of several named results, in their order.

    If the question lacks the requested part, its main part replaces it: the reader may have
    switched questions.
    """
    if not results:
        return TrendResult(replace(request, part=""), total, (), tuple(notes))
    questions = [(name, result, result.question(request.question)) for name, result in results]
    parts = question_parts(questions[0][2])
    part = request.part if request.part in parts else parts[0]
    groups = tuple(
        TrendGroup(
            name,
            question,
            result.tally.counts[question_index(result.survey, request.question)],
            question.parts[part],
            result.group.columns["bucket"],
            closed=result.survey.state != "open"
            or (request.over == "trend" and has_passed(result.group.name, today)),
        )
        for name, result, question in questions
    )
    return TrendResult(replace(request, part=part), total, groups, tuple(notes))


def _period_length(cache: ResultCache, survey: PublishedSurvey, options: IntervalOptions) -> str:
    """Return the shortest period length that does not give too many periods."""
    for length in PERIOD_CHOICES.get(survey.definition.bucket, (AS_STORED,)):
        if len(cache.results_by_group(survey, SPLITS[length], options)) <= MAX_PERIODS:
            return length
    return MONTH


def link_results(total: SurveyResult, groups: Mapping[Group, SurveyResult]) -> NamedResults:
    """Return the result of all reports and of each link; empty if there is the open link only."""
    results = period_results(groups)
    return [(ALL_GROUPS, total), *results] if results else []


def period_results(groups: Mapping[Group, SurveyResult]) -> NamedResults:
    """Return the result of each group by its name."""
    return [(group.name, result) for group, result in groups.items()]


def version_results(
    results: Sequence[SurveyResult], question_id: str
) -> tuple[NamedResults, list[str]]:
    """Return the versions that ask the same question, oldest first, and notes on the others.

    `results` are those of all versions; the first of them is the version on the page.
    """
    reference = find_question(results[0].survey, question_id)
    comparable: list[SurveyResult] = []
    notes: list[str] = []
    for result in sorted(results, key=lambda result: result.survey.version):
        version = result.survey.version
        if not has_question(result.survey, question_id):
            notes.append(f"Version {version} does not ask this question.")
            continue
        question = find_question(result.survey, question_id)
        if not has_same_answers(question, reference):
            notes.append(f"Version {version} has other answers and is not shown here.")
            continue
        if comparable:
            previous = find_question(comparable[-1].survey, question_id)
            notes += describe_changes(previous, question, version)
        comparable.append(result)
    return [(f"version {result.survey.version}", result) for result in comparable], notes


def describe_changes(old: PublishedQuestion, new: PublishedQuestion, version: int) -> list[str]:
    """Return sentences about what `version` changed in a question."""
    sentences = []
    if old.channel.to_json() != new.channel.to_json():
        sentences.append(
            f"Version {version} randomizes differently (epsilon {new.channel.epsilon:.3g} instead "
            f"of {old.channel.epsilon:.3g}): estimates are comparable, shares of reports are not, "
            "and people may answer differently."
        )
    if old.text != new.text:
        sentences.append(
            f"Version {version} has a different text: “{new.text}” instead of “{old.text}”."
        )
    old_labels, new_labels = ([option.label for option in q.options] for q in (old, new))
    if old_labels != new_labels:
        sentences.append(f"Version {version} has different texts for the answers.")
    return sentences
