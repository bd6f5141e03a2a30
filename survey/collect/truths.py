"""What is true among simulated respondents: the shares that were typed, after the survey's rules.

Who is not asked a question counts as "does not apply"; of ticks only so many are kept as a report
may hold. All of it is exact, for the answers to different questions are drawn independently.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from survey.collect.simulated_people import Shares
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion


@dataclass(frozen=True)
class Truth:
    """Shares by option among all who could be asked, and the mean among those who answer.

    `mean` is None where the answers stand for no numbers.
    """

    shares: Mapping[str, float]
    mean: float | None


def truths_of(definition: Definition, typed: Shares) -> dict[str, Truth]:
    """The truth of each question, by its id; without those that cannot be told from the shares."""
    found: dict[str, Truth] = {}
    for question in definition.questions:
        condition, asked = question.ask_if, 1.0
        if question.id not in typed:
            continue
        if condition:
            parent = next(one for one in definition.questions if one.id == condition.question)
            known = _any_of(parent, found.get(parent.id), condition.options)
            if known is None:
                continue
            asked = known
        found[question.id] = _truth(question, typed[question.id], asked)
    return found


def _truth(question: PublishedQuestion, typed: Sequence[float], asked: float) -> Truth:
    """Of those who are asked as typed, for the others "does not apply"."""
    names = [option.id for option in question.options]
    shares, mean = list(typed), None
    if question.type in ("number", "date") and question.grid:
        low, high = question.grid.values[0], question.grid.values[-1]
        mean, shares = low + typed[0] * (high - low), list(typed[1:])
    elif question.type == "multiple_choice":
        shares = _ticked(question, typed)
    elif question.grid:
        points = question.grid.points
        answering = sum(shares[:points])
        values = zip(shares, question.grid.values, strict=False)
        mean = sum(share * value for share, value in values) / answering if answering else None
    among_all = {name: asked * share for name, share in zip(names, shares, strict=True)}
    if question.not_applicable:
        among_all[question.not_applicable] += 1 - asked
    return Truth(among_all, mean)


def _ticked(question: PublishedQuestion, typed: Sequence[float]) -> list[float]:
    """P(an option is ticked and kept): the first `max_ticks`; without any, one that stands alone.

    The number of ticks before an option is Poisson-binomial, added up option by option.
    """
    ordinary = len(typed) - question.alone
    before = np.array([1.0])
    kept = []
    for share in typed[:ordinary]:
        kept.append(share * float(before[: question.max_ticks].sum()))
        before = np.convolve(before, [1 - share, share])
    nothing, left = float(before[0]), 1.0
    for share in typed[ordinary:]:
        kept.append(nothing * left * share)
        left *= 1 - share
    kept[ordinary] += nothing * left
    return kept


def _any_of(
    question: PublishedQuestion, truth: Truth | None, options: Sequence[str]
) -> float | None:
    """P(an answer is one of these); None where it does not follow from the shares."""
    if truth is None:
        return None
    if question.type != "multiple_choice":
        return sum(truth.shares[name] for name in options)
    ordinary = {one.id for one in question.options[: len(question.options) - question.alone]}
    ticks = [truth.shares[name] for name in options if name in ordinary]
    alone = sum(truth.shares[name] for name in options if name not in ordinary)
    if len(ticks) > 1 and (question.max_ticks < len(ordinary) or question.ask_if):
        return None  # then one tick tells about another
    return alone + 1 - math.prod(1 - share for share in ticks)
