"""What can be crossed: a question, or one answer of a multiple choice that is reported by itself.

Of a multiple choice whose options are reported bit by bit, each bit is randomized response of two
options, ticked or not: as such it is crossed with anything, under the name `question.option`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from survey.errors import NotFoundError
from survey.mechanism import BitVector, SubsetSelection
from survey.mechanism.arrays import Codes
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.texts import Option
from survey.store import PublishedSurvey

TICKED = (Option(id="ticked", label="Ticked"), Option(id="not_ticked", label="Not ticked"))


@dataclass(frozen=True)
class Item:
    """A question and its place in a report; `tick` is the one option meant, None for all of it."""

    place: int
    question: PublishedQuestion
    tick: int | None = None
    bits: BitVector | None = None

    def asked(self, codes: Codes) -> NDArray[np.bool_]:
        """Which of the codes, shape (n, bytes), tell of it: all, unless options are drawn."""
        if self.tick is None or self.bits is None or not self.bits.is_sampled:
            return np.ones(len(codes), dtype=bool)
        return np.unpackbits(codes, axis=1)[:, self.tick].astype(bool)

    def codes(self, codes: Codes) -> Codes:
        """The codes as those of its question: 0 for a bit that says ticked, 1 for one that not."""
        if self.tick is None or self.bits is None:
            return codes
        reported = self.tick + (self.bits.m if self.bits.is_sampled else 0)
        return np.asarray(1 - np.unpackbits(codes, axis=1)[:, reported : reported + 1])


def items_of(survey: PublishedSurvey) -> Iterator[Item]:
    """Everything of a survey that can be crossed, in its order."""
    for place, question in enumerate(survey.definition.questions):
        if isinstance(question.channel, BitVector):
            yield from _ticks(place, question, question.channel)
        else:
            yield Item(place, question)


def item_of(survey: PublishedSurvey, name: str) -> Item:
    """The item of a name; NotFoundError names those there are."""
    found = list(items_of(survey))
    for item in found:
        if item.question.id == name:
            return item
    there = ", ".join(item.question.id for item in found)
    raise NotFoundError(f'{survey.slug} has no question "{name}" to cross; there are {there}')


def _ticks(place: int, question: PublishedQuestion, channel: BitVector) -> Iterator[Item]:
    # P(bit | ticked) = T/(T+L): Warner's channel of two options, the first of them ticked.
    bit = SubsetSelection(k=2, d=1, T=channel.T, L=channel.L)
    for tick, option in enumerate(question.options):
        alone = replace(
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
        yield Item(place, alone, tick, channel)
