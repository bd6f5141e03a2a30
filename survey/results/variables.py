"""Variables of a cross-tabulation: a question, or one option of a multiple-choice question.

A multiple-choice question that is reported option by option uses one randomized bit per option.
Each bit is treated as a question with two answers, ticked or not ticked, under the name
`question.option`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from survey.errors import NotFoundError
from survey.mechanism import BitVector, SubsetSelection
from survey.mechanism.arrays import Booleans, Codes
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.texts import Option
from survey.store import PublishedSurvey

TICKED = (Option(id="ticked", label="Ticked"), Option(id="not_ticked", label="Not ticked"))


@dataclass(frozen=True)
class Variable:
    """A question and its position in a report; `option` is set for one option of the question."""

    place: int
    question: PublishedQuestion
    option: int | None = None
    bits: BitVector | None = None

    def was_asked(self, codes: Codes) -> Booleans:
        """Return which reports hold this variable; all of them unless options are sampled."""
        if self.option is None or self.bits is None or not self.bits.is_sampled:
            return np.ones(len(codes), dtype=bool)
        return np.unpackbits(codes, axis=1)[:, self.option].astype(bool)

    def decode(self, codes: Codes) -> Codes:
        """Return the codes of the variable: for an option 0 means ticked, 1 not ticked."""
        if self.option is None or self.bits is None:
            return codes
        column = self.option + (self.bits.m if self.bits.is_sampled else 0)
        return np.asarray(1 - np.unpackbits(codes, axis=1)[:, column : column + 1])


def list_variables(survey: PublishedSurvey) -> Iterator[Variable]:
    """Yield the variables of a survey in the order of its questions."""
    for place, question in enumerate(survey.definition.questions):
        if isinstance(question.channel, BitVector):
            yield from _option_variables(place, question, question.channel)
        else:
            yield Variable(place, question)


def find_variable(survey: PublishedSurvey, name: str) -> Variable:
    """Return a variable by its name; NotFoundError lists the names that exist."""
    variables = {variable.question.id: variable for variable in list_variables(survey)}
    if name not in variables:
        choices = ", ".join(variables)
        raise NotFoundError(f'{survey.slug} has no question "{name}" to cross; there are {choices}')
    return variables[name]


def _option_variables(
    place: int, question: PublishedQuestion, channel: BitVector
) -> Iterator[Variable]:
    # P(bit | ticked) = T/(T+L): Warner's channel of two options, the first of them ticked.
    bit = SubsetSelection(k=2, d=1, T=channel.T, L=channel.L)
    for index, option in enumerate(question.options):
        option_question = replace(
            question,
            id=f"{question.id}.{option.id}",
            type="single_choice",
            text=f"{question.text} {option.label}",
            options=TICKED,
            max_ticks=0,
            alone=0,
            opt_out="",
            not_applicable="",
            channel=bit,
        )
        yield Variable(place, option_question, index, channel)
