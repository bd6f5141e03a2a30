"""Questions that hang together by skip logic: drawn together, and protected only together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Protocol

from survey.mechanism.accounting import total_ratio


class Condition(Protocol):
    """What a question depends on."""

    @property
    def question(self) -> str: ...


class Dependent(Protocol):
    """A question that may depend on an earlier one."""

    @property
    def id(self) -> str: ...
    @property
    def ask_if(self) -> Condition | None: ...


def groups_of(questions: Iterable[Dependent]) -> list[list[str]]:
    """The ids of each question that depends on no other, with those of all that depend on it.

    `questions` are in the survey's order: each comes after the one it depends on.
    """
    first: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for question in questions:
        parent = question.ask_if.question if question.ask_if else question.id
        first[question.id] = first.get(parent, question.id)
        groups.setdefault(first[question.id], []).append(question.id)
    return list(groups.values())


def linked_ratios(
    groups: Iterable[Iterable[str]], ratios: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """e^epsilon of everything that reports about the answer to one question, for each.

    Who is not asked a question counts as "does not apply" there: the reports of a whole group
    tell about each of its answers.

    >>> linked_ratios([["a", "b"], ["c"]], {"a": Fraction(2), "b": Fraction(3), "c": Fraction(5)})
    {'a': Fraction(6, 1), 'b': Fraction(6, 1), 'c': Fraction(5, 1)}
    """
    linked: dict[str, Fraction] = {}
    for group in map(list, groups):
        together = total_ratio(ratios[name] for name in group)
        linked |= dict.fromkeys(group, together)
    return linked


def total_ratio_of(
    groups: Iterable[Iterable[str]], ratios: Mapping[str, Fraction], drawn: int
) -> Fraction:
    """e^epsilon of a survey that draws `drawn` of its groups of questions for each person.

    The product over the groups that give away most, whoever they fall to. `ratios` maps a
    question's id to its own.

    >>> ratios = {"a": Fraction(2), "b": Fraction(5), "c": Fraction(3)}
    >>> total_ratio_of([["a", "b"], ["c"]], ratios, 1)
    Fraction(10, 1)
    """
    together = (total_ratio(ratios[name] for name in group) for group in groups)
    return total_ratio(sorted(together, reverse=True)[:drawn])
