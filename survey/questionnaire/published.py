"""A question as it was published: its form in the definition, and its codes as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from survey.errors import DefinitionError
from survey.mechanism import AnyChannel, SubsetSelection, channel_from_json, multiple_choice
from survey.mechanism.arrays import Codes, Integers
from survey.questionnaire.grid import Grid
from survey.questionnaire.kinds import KINDS, Kind
from survey.questionnaire.question import AskIf, BaseQuestion
from survey.questionnaire.texts import Option

ASKED = b"\x01"
"""What stands before a code in a survey that draws questions; zeros stand for one not drawn."""


@dataclass(frozen=True)
class PublishedQuestion:
    """A question as it is asked, with the channel that every device runs for it.

    `options` are all options as shown; of number and date questions only those that are no answer.
    `grid` holds the values of numbers and dates, and the scores of a scale. `alone` is how many
    options at the end stand alone in a multiple choice. `stated` is what the researcher wrote of
    its privacy, way by way, for codebooks. `nullable` says whether the survey draws
    its questions, so that a report may leave this one out.
    """

    id: str
    type: str
    text: str
    options: tuple[Option, ...]
    grid: Grid | None
    max_ticks: int
    alone: int
    opt_out: str
    not_applicable: str
    ask_if: AskIf | None
    mechanism: str
    stated: Mapping[str, str]
    channel: AnyChannel
    nullable: bool

    @property
    def kind(self) -> Kind:
        """The class of the question's type."""
        return KINDS[self.type]

    @property
    def code_bytes(self) -> int:
        """Bytes that an answer to this question takes in a stored report."""
        return self.channel.code_bytes + self.nullable

    def encode(self, code: object) -> bytes:
        """The stored bytes of a code; ChannelError says what it must be."""
        if not self.nullable:
            return self.channel.encode(code)
        if code is None:
            return bytes(self.code_bytes)
        return ASKED + self.channel.encode(code)

    def count(self, codes: Codes) -> tuple[int, Integers]:
        """How many of the codes, shape (n, code_bytes), were asked, and what they support."""
        if self.nullable:
            codes = codes[codes[:, 0] == ASKED[0], 1:]
        return len(codes), self.channel.count(np.ascontiguousarray(codes))

    def truth(self, answer: int | Sequence[int]) -> int | tuple[int, ...]:
        """What the channel gets for an answer: an option or grid index, or the ticked options.

        Raises KeyError for ticks that may not stand together.
        """
        if isinstance(answer, int):
            return answer
        if self.by_patterns:
            return {pattern: i for i, pattern in enumerate(self.patterns)}[tuple(sorted(answer))]
        return tuple(int(option in answer) for option in range(len(self.options)))

    @cached_property
    def patterns(self) -> tuple[multiple_choice.Pattern, ...]:
        """The sets of options that the truths of a multiple choice by subsets stand for."""
        return multiple_choice.patterns(len(self.options) - self.alone, self.max_ticks, self.alone)

    @property
    def by_patterns(self) -> bool:
        """Whether a multiple choice is asked by generalized randomized response over its sets."""
        return self.type == "multiple_choice" and isinstance(self.channel, SubsetSelection)


def question_form(question: BaseQuestion) -> dict[str, Any]:
    """The form of a question that a definition carries; every key is always there."""
    grid, ask_if = question.grid, question.ask_if
    form = {
        "id": question.id,
        "type": question.type,
        "text": question.text,
        "help": question.help,
        "options": [{"id": option.id, "label": option.label} for option in question.all_options],
        "grid": grid.to_json() if grid else None,
        "max_ticks": question.ticks,
        "alone": question.asked.alone,
        "opt_out": question.opt_out,
        "not_applicable": question.not_applicable,
        "ask_if": {"question": ask_if.question, "options": list(ask_if.options)}
        if ask_if
        else None,
        "mechanism": question.design,
        "stated": question.stated,
        "channel": question.channel.to_json(),
    }
    # Left out otherwise: definitions published before there was this keep their hash.
    return {**form, "shuffled": True} if question.shuffled else form


def translated_form(question: BaseQuestion, own: BaseQuestion) -> dict[str, Any]:
    """The texts of a question in another language, "" for each that is as in its own."""
    labels = zip(question.all_options, own.all_options, strict=True)
    unit, own_unit = (each.grid.unit if each.grid else "" for each in (question, own))
    return {
        "text": unless(question.text, own.text),
        "help": unless(question.help, own.help),
        "unit": unless(unit, own_unit),
        "options": [unless(option.label, as_own.label) for option, as_own in labels],
    }


def unless(text: str, same: str) -> str:
    """A text, or "" when it is the same as another.

    >>> unless("Sí", "Yes"), unless("No", "No")
    ('Sí', '')
    """
    return "" if text == same else text


def published(form: dict[str, Any], *, nullable: bool) -> PublishedQuestion:
    """Read back what `question_form` wrote."""
    question = PublishedQuestion(
        id=form["id"],
        type=form["type"],
        text=form["text"],
        options=tuple(Option(**option) for option in form["options"]),
        grid=Grid(**form["grid"]) if form["grid"] else None,
        max_ticks=form["max_ticks"],
        alone=form["alone"],
        opt_out=form["opt_out"],
        not_applicable=form["not_applicable"],
        ask_if=AskIf(**form["ask_if"]) if form["ask_if"] else None,
        mechanism=form["mechanism"],
        stated=form["stated"],
        channel=channel_from_json(form["channel"]),
        nullable=nullable,
    )
    if question.channel.options != _answers(question):
        raise DefinitionError([(form["id"], f"its channel has {question.channel.options} options")])
    return question


def _answers(question: PublishedQuestion) -> int:
    """How many options the question's channel must have."""
    if question.by_patterns:
        return len(question.patterns)
    if question.type in ("number", "date") and question.grid:
        return question.grid.points + len(question.options)
    return len(question.options)
