"""Try-outs of drafts: a survey of its own beside the real ones, of which nothing stays.

Simulated respondents take the path of real ones: a device's randomization, the wire, the store,
the release. Nothing of a try-out is ever added to a published survey.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import islice

import numpy as np

from survey.collect.release import release
from survey.collect.simulated import Answer, simulated_report
from survey.collect.submission import accept
from survey.collect.wire import parse
from survey.errors import DesignError, SurveyError
from survey.mechanism.simulate import truths
from survey.questionnaire.definition import Definition, freeze
from survey.questionnaire.model import Survey
from survey.questionnaire.published import PublishedQuestion
from survey.store import Draft, PublishedSurvey, Store

MOST_SIMULATED = 5_000
"""Simulated respondents at a time: somebody waits for the page."""

SECRET_BYTES = 16
"""Random bytes in the address of a try-out: it is open, and only known to whom it was shown."""

AT_ONCE = 500
"""Reports of one transaction."""

Shares = Mapping[str, Sequence[float]]
"""Per question, by its id: the true share of each option (of a multiple choice: how many tick
it). Of a number first the share of the range at which the mean of those who answer lies."""


def make_trial(store: Store, survey: Survey, draft: Draft, today: date) -> PublishedSurvey:
    """Publish a draft as its try-out, in the place of the one before; open to all who know of it.

    What is not published yet is for nobody else to read: its address is new and cannot be guessed.
    """
    remove_trial(store, draft, today)
    slug = f"{draft.slug}-{secrets.token_hex(SECRET_BYTES)}"
    others = {language: _tried(other, slug) for language, other in survey.translations.items()}
    return store.publish(freeze(_tried(survey, slug).translated(others), 1), today)


def _tried(survey: Survey, slug: str) -> Survey:
    """The survey under another name; every page, file and report of it says what it is."""
    title = f"TEST: {survey.title}"
    return survey.model_copy(update={"slug": slug, "access": "open", "title": title})


def remove_trial(store: Store, draft: Draft, today: date) -> None:
    """Delete a draft's try-out with all its reports, if there is one."""
    for trial in store.trials(draft.slug):
        store.close_survey(trial.slug, today)
        store.delete_survey(trial.slug, today)


def simulate(
    store: Store, survey: PublishedSurvey, n: int, shares: Shares, rng: np.random.Generator
) -> int:
    """Let n simulated respondents answer a try-out, and release; returns how many were stored.

    Raises DesignError for a survey that is no try-out or a closed one, or too many people at a
    time.
    """
    if not survey.is_trial:
        raise DesignError(f"{survey.slug} is no try-out: nobody is simulated in a real survey")
    if survey.state != "open":
        raise DesignError("The try-out is closed and takes no more reports: make it anew")
    if not 1 <= n <= MOST_SIMULATED:
        raise DesignError(f"{n:,} respondents: from 1 to {MOST_SIMULATED:,} can be simulated")
    definition, stored = survey.definition, 0
    people = _respondents(definition, n, shares, rng)
    while answers := list(islice(people, AT_ONCE)):
        bodies = (simulated_report(survey, one) for one in answers)
        reports = [(survey.key, accept(parse(body), definition)) for body in bodies]
        stored += sum(not _is_refusal(each) for each in store.add_reports(reports))
    release(store, survey, 1)
    return stored


def _is_refusal(verdict: SurveyError | None) -> bool:
    return verdict is not None


def usual_shares(question: PublishedQuestion) -> list[float]:
    """Shares to begin with: falling from the first option on, few who do not answer."""
    k, silent = len(question.options), _silent(question)
    if question.type in ("number", "date"):
        return [0.4, *[0.05] * k]
    if question.type == "multiple_choice":
        return [0.0 if i >= k - question.alone else 0.4 / (1 + i) for i in range(k)]
    weights = [0.1 if i in silent else 1 / (1 + i) for i in range(k)]
    return [weight / sum(weights) for weight in weights]


def _silent(question: PublishedQuestion) -> set[int]:
    none = {question.opt_out, question.not_applicable} - {""}
    return {i for i, option in enumerate(question.options) if option.id in none}


def _respondents(
    definition: Definition, n: int, shares: Shares, rng: np.random.Generator
) -> Iterator[list[Answer | None]]:
    """n people's true answers; where questions are drawn, None for those that were not."""
    columns = [
        _answers(question, shares.get(question.id) or usual_shares(question), n, rng)
        for question in definition.questions
    ]
    for answers in zip(*columns, strict=True):
        asked = _drawn(definition, rng)
        known = _after_conditions(definition.questions, answers)
        yield [
            answer if question.id in asked else None
            for question, answer in zip(definition.questions, known, strict=True)
        ]


def _after_conditions(
    questions: Sequence[PublishedQuestion], answers: Sequence[Answer]
) -> list[Answer]:
    """The same answers, "does not apply" where an earlier one means that nothing is asked."""
    said: dict[str, set[str]] = {}
    found: list[Answer] = []
    for question, answer in zip(questions, answers, strict=True):
        names = [option.id for option in question.options]
        condition = question.ask_if
        if condition and not said[condition.question] & set(condition.options):
            silent = names.index(question.not_applicable)
            answer = (silent,) if question.type == "multiple_choice" else _place(question, silent)
        found.append(answer)
        chosen = answer if isinstance(answer, tuple) else (answer,)
        said[question.id] = {names[i] for i in chosen if i < len(names)}
    return found


def _place(question: PublishedQuestion, option: int) -> int:
    """The truth that an option is: those of a number come after the points of its grid."""
    is_number = question.type in ("number", "date") and question.grid is not None
    return option + question.grid.points if is_number and question.grid else option


def _drawn(definition: Definition, rng: np.random.Generator) -> set[str]:
    groups = rng.permutation(len(definition.groups))[: definition.drawn]
    return {name for group in groups for name in definition.groups[group]}


def _answers(
    question: PublishedQuestion, shares: Sequence[float], n: int, rng: np.random.Generator
) -> list[Answer]:
    if question.type in ("number", "date") and question.grid is not None:
        return _numbers(question.grid.points, shares, n, rng)
    if question.type == "multiple_choice":
        return [_ticks(question, row) for row in rng.random((n, len(shares))) < np.array(shares)]
    return [int(i) for chunk in truths(shares, n, rng) for i in chunk]


def _numbers(
    points: int, shares: Sequence[float], n: int, rng: np.random.Generator
) -> list[Answer]:
    """Points of a grid around a mean, and behind them the options that are no answer."""
    mean, *silent = shares
    if sum(silent) >= 1:
        raise DesignError("somebody must answer: shares of those who do not add up to all of them")
    kinds = rng.choice(1 + len(silent), size=n, p=[1 - sum(silent), *silent])
    values = rng.binomial(points - 1, mean, n)
    return [
        int(points + kind - 1 if kind else value) for kind, value in zip(kinds, values, strict=True)
    ]


def _ticks(
    question: PublishedQuestion, ticked: np.ndarray[tuple[int], np.dtype[np.bool]]
) -> Answer:
    """The options one person ticks: as many as allowed, or "none of these"."""
    ordinary = len(question.options) - question.alone
    chosen = [i for i in np.flatnonzero(ticked).tolist() if i < ordinary][: question.max_ticks]
    alone = [i for i in np.flatnonzero(ticked).tolist() if i >= ordinary]
    return tuple(chosen) or tuple(alone[:1]) or (ordinary,)
