"""What simulated people would truthfully answer: drawn by shares, then the survey's own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from survey.collect.simulated import Answer
from survey.errors import DesignError
from survey.mechanism.simulation import truths
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion

Shares = Mapping[str, Sequence[float]]
"""Per question, by its id: the true share of each option (of a multiple choice: how many tick
it). Of a number first the share of the range at which the mean of those who answer lies."""


def usual_shares(question: PublishedQuestion) -> list[float]:
    """Shares to begin with: falling from the first option on, few who do not answer."""
    k, silent = len(question.options), _silent(question)
    if question.type in ("number", "date"):
        return [0.4, *[0.05] * k]
    if question.type == "multiple_choice":
        return [0.0 if i >= k - question.alone else 0.4 / (1 + i) for i in range(k)]
    weights = [0.1 if i in silent else 1 / (1 + i) for i in range(k)]
    return [weight / sum(weights) for weight in weights]


def typed_shares(definition: Definition, typed: Shares) -> dict[str, list[float]]:
    """The shares of every question: as typed, else the usual ones.

    Raises DesignError for a question that is not there, and shares that are too many, too few or
    no shares.
    """
    ids = [question.id for question in definition.questions]
    for unknown in typed.keys() - set(ids):
        raise DesignError(f"{unknown!r} is no question of this survey: {', '.join(ids)}")
    return {
        question.id: _checked(question, typed[question.id], usual_shares(question))
        if question.id in typed
        else usual_shares(question)
        for question in definition.questions
    }


def _checked(
    question: PublishedQuestion, shares: Sequence[float], usual: Sequence[float]
) -> list[float]:
    if len(shares) != len(usual):
        first = "where its mean lies, " if question.type in ("number", "date") else ""
        names = ", ".join(option.id for option in question.options)
        raise DesignError(
            f"{question.id} has {len(usual)} shares ({first}{names}), not {len(shares)}"
        )
    for share in shares:
        if not 0 <= share <= 1:
            raise DesignError(f"{question.id}: {share} is no share from 0 to 1")
    return list(shares)


def _silent(question: PublishedQuestion) -> set[int]:
    none = {question.opt_out, question.not_applicable} - {""}
    return {i for i, option in enumerate(question.options) if option.id in none}


def simulated_people(
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
