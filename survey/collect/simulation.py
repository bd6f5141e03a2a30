"""Simulated respondents, and test runs of drafts in which they answer.

A test run is a separate survey. Deleting its draft deletes the test run with all its reports.
Simulated reports are randomized as on a device, checked as on arrival, and published at once. A
published survey never receives simulated reports, and a test run never receives real ones.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

import numpy as np

from survey.collect.incoming_reports import accept, parse
from survey.collect.release import release_simulated
from survey.errors import DesignError
from survey.mechanism import UniformBelow, secure_uniform_below
from survey.mechanism.channel import Floats
from survey.mechanism.joint_response import perturb_jointly
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition, Survey, report_body
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import Answer
from survey.store import Draft, PublishedSurvey, Store

BATCH = 8_192
"""Simulated reports per transaction."""

MAX_SIMULATED = 5_000
"""Maximum number of simulated respondents per request, because a researcher waits for the page."""

ASSOCIATED = 0.5
"""Part of the respondents of a test run with associated answers to questions randomized jointly."""

SECRET_BYTES = 16
"""Random bytes in the address of a test run: anyone who knows the address can open it."""

Shares = Mapping[str, Sequence[float]]
"""True shares by question id: of each option (of a multiple choice: how many tick it). A number or
date has one more share in front: where in its range the mean of those who answer lies."""


# Simulated respondents


def complete_shares(definition: Definition, typed: Shares) -> dict[str, list[float]]:
    """Return the shares of every question: those typed, else the defaults.

    Raises DesignError for an unknown question, a wrong number of shares, or values outside [0, 1].
    """
    ids = [question.id for question in definition.questions]
    for unknown in typed.keys() - set(ids):
        raise DesignError(
            f"{unknown!r} is not a question of this survey; questions: {', '.join(ids)}"
        )
    return {
        question.id: _check_shares(question, typed[question.id])
        if question.id in typed
        else question.kind.default_shares(question)
        for question in definition.questions
    }


def _check_shares(question: PublishedQuestion, shares: Sequence[float]) -> list[float]:
    names = question.kind.share_names(question)
    if len(shares) != len(names):
        raise DesignError(
            f"{question.id} needs {len(names)} shares ({', '.join(names)}), not {len(shares)}"
        )
    for share in shares:
        if not 0 <= share <= 1:
            raise DesignError(f"{question.id}: a share must be between 0 and 1 (found {share})")
    return list(shares)


def simulate_respondents(
    definition: Definition,
    n: int,
    shares: Shares,
    rng: np.random.Generator,
    associated: float = 0.0,
) -> Iterator[list[Answer | None]]:
    """Yield the true answers of n respondents; None for a question that was not drawn.

    Answers to different questions are independent, except that for a part `associated` of the
    respondents one number decides the answers to all questions of a joint response.
    """
    columns = []
    typed = {
        question.id: shares.get(question.id) or question.kind.default_shares(question)
        for question in definition.questions
    }
    for question in definition.questions:
        columns.append(question.kind.draw_answers(question, typed[question.id], n, rng))
    joint = {question.joint for question in definition.questions if question.joint}
    for response in sorted(joint, key=lambda response: response.questions) if associated else ():
        respondents = np.flatnonzero(rng.random(n) < associated)
        u = rng.random(respondents.size)
        for place, question in enumerate(definition.questions):
            if question.joint == response:
                options = _options_at(u, typed[question.id])
                for respondent, option in zip(respondents.tolist(), options, strict=True):
                    columns[place][respondent] = option
    for row in zip(*columns, strict=True):
        groups = rng.permutation(len(definition.groups))[: definition.drawn]
        drawn_ids = {name for group in groups for name in definition.groups[group]}
        answers = _apply_conditions(definition.questions, row)
        yield [
            answer if question.id in drawn_ids else None
            for question, answer in zip(definition.questions, answers, strict=True)
        ]


def _options_at(u: Floats, shares: Sequence[float]) -> list[int]:
    """Return the option in which the cumulative shares reach u, so that each has its share."""
    reached = np.cumsum(shares) / sum(shares)
    return [min(int(i), len(shares) - 1) for i in np.searchsorted(reached, u, side="right")]


def _apply_conditions(
    questions: Sequence[PublishedQuestion], row: Sequence[Answer]
) -> list[Answer]:
    """Return the answers with "does not apply" for every question that is skipped."""
    answer_ids: dict[str, set[str]] = {}
    answers: list[Answer] = []
    for question, answer in zip(questions, row, strict=True):
        names = [option.id for option in question.options]
        condition = question.ask_if
        if condition and not answer_ids[condition.question] & set(condition.options):
            not_applicable = names.index(question.not_applicable)
            answer = question.kind.option_answer(question, not_applicable)
        answers.append(answer)
        indices = answer if isinstance(answer, tuple) else (answer,)
        answer_ids[question.id] = {names[i] for i in indices if i < len(names)}
    return answers


# The truth about them


@dataclass(frozen=True)
class Truth:
    """Shares by option among all who could be asked, and the means among those who answer.

    `means` maps "" to the mean of numbers or scores, and the id of each ranked option to its mean
    rank; it is empty if the answers have neither.
    """

    shares: Mapping[str, float]
    means: Mapping[str, float]


def true_values(definition: Definition, typed: Shares) -> dict[str, Truth]:
    """Return the truth of each question by id, without those that the shares do not determine.

    A skipped question counts as "does not apply"; of the ticks only as many count as a report may
    hold. The result is exact, because answers to different questions are drawn independently.
    """
    truths: dict[str, Truth] = {}
    by_id = {question.id: question for question in definition.questions}
    for question in definition.questions:
        if question.id not in typed:
            continue
        asked_share: float | None = 1.0
        if condition := question.ask_if:
            parent = by_id[condition.question]
            asked_share = (
                parent.kind.share_of_any(parent, truths[parent.id].shares, condition.options)
                if parent.id in truths
                else None
            )
        if asked_share is not None:
            truths[question.id] = _true_value(question, typed[question.id], asked_share)
    return truths


def _true_value(question: PublishedQuestion, typed: Sequence[float], asked_share: float) -> Truth:
    """Return the typed truth among those who are asked, "does not apply" among the others."""
    shares, means = question.kind.true_shares(question, typed)
    among_all = {
        option.id: asked_share * share
        for option, share in zip(question.options, shares, strict=True)
    }
    if question.not_applicable:
        among_all[question.not_applicable] += 1 - asked_share
    return Truth(among_all, means)


# Their reports


def add_simulated(
    store: Store, survey: PublishedSurvey, respondents: Iterable[Sequence[Answer | None]]
) -> Iterator[int]:
    """Publish a report of each respondent; yield the number of reports per transaction.

    The reports take the path of real ones except for the pending state, because no arrival has to
    be hidden.
    """
    remaining = iter(respondents)
    while batch := list(islice(remaining, BATCH)):
        bodies = (simulated_report(survey, answers) for answers in batch)
        reports = [accept(parse(body), survey.definition) for body in bodies]
        release_simulated(store, survey, reports)
        yield len(reports)


def simulated_report(survey: PublishedSurvey, answers: Sequence[Answer | None]) -> bytes:
    """Return one respondent's report, randomized exactly as on a device."""
    codes = randomized_codes(survey.definition.questions, answers, secure_uniform_below)
    return report_body(
        survey.sha256, secrets.token_urlsafe(16), codes, length=survey.definition.report_bytes
    )


def randomized_codes(
    questions: Sequence[PublishedQuestion],
    answers: Sequence[Answer | None],
    uniform_below: UniformBelow,
) -> list[int | str | None]:
    """Randomize one respondent's answers as a device does; None for a question that was not drawn.

    A joint response is drawn when the first of its questions is reached.
    """
    by_id = {question.id: question for question in questions}
    truths: dict[str, Any] = {
        question.id: None if answer is None else question.truth(answer)
        for question, answer in zip(questions, answers, strict=True)
    }
    codes: dict[str, int | str | None] = {}
    for question in questions:
        truth, joint = truths[question.id], question.joint
        if truth is None:
            codes[question.id] = None
        elif joint is None:
            codes[question.id] = question.channel.perturb_one(truth, uniform_below)
        elif question.id == joint.questions[0]:
            sizes = [by_id[id_].channel.options for id_ in joint.questions]
            members = [truths[id_] for id_ in joint.questions]
            reports = perturb_jointly(joint.channel, members, sizes, uniform_below)
            codes |= zip(joint.questions, reports, strict=True)
    return [codes[question.id] for question in questions]


# Test runs


def make_test_run(store: Store, survey: Survey, draft: Draft, today: date) -> PublishedSurvey:
    """Publish a draft as its test run, and delete the previous one.

    The draft is not public yet, so the address is new and cannot be guessed.
    """
    remove_test_run(store, draft, today)
    slug = f"{draft.slug}-{secrets.token_hex(SECRET_BYTES)}"
    translations = {
        language: _mark_as_test(other, slug) for language, other in survey.translations.items()
    }
    marked = _mark_as_test(survey, slug).translated(translations)
    return store.publish(freeze(marked, 1), today)


def _mark_as_test(survey: Survey, slug: str) -> Survey:
    """Return the survey with a title that marks every page and file as a test."""
    title = f"TEST: {survey.title}"
    return survey.model_copy(update={"slug": slug, "access": "open", "title": title})


def remove_test_run(store: Store, draft: Draft, today: date) -> None:
    """Delete a draft's test run with all its reports, if there is one."""
    for test_run in store.test_runs(draft.slug):
        store.close_survey(test_run.slug, today)
        store.delete_survey(test_run.slug, today)


def add_test_responses(
    store: Store, survey: PublishedSurvey, n: int, shares: Shares, rng: np.random.Generator
) -> int:
    """Let n simulated respondents answer a test run; return the number of published reports.

    Raises DesignError if the survey is not a test run or is closed, or if n is out of range.
    """
    if not survey.is_test_run:
        raise DesignError(f"{survey.slug} is not a test run: real surveys get no test responses")
    if survey.state != "open":
        raise DesignError("The test run is closed and accepts no more responses: rebuild the test")
    if not 1 <= n <= MAX_SIMULATED:
        raise DesignError(
            f"The number of test responses must be from 1 to {MAX_SIMULATED:,} (found {n:,})"
        )
    respondents = simulate_respondents(survey.definition, n, shares, rng, ASSOCIATED)
    return sum(add_simulated(store, survey, respondents))
