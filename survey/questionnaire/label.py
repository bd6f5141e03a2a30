"""The privacy label's numbers, computed from the channel in integers as the client does.

`client_js/src/report.js` is the twin of this module; `tests/vectors/label.json` binds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from survey.mechanism import BitVector, SubsetSelection, WeightTable, multiple_choice
from survey.mechanism.accounting import posterior_bound
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion


@dataclass(frozen=True)
class Label:
    """What one channel means for a person.

    `own` and `other`: of 100 people with one answer (with another one), how many reports say
    it; empty for numbers, where every report can come from every answer. `odds`: the most that
    anyone's odds about the answer are multiplied by, the reports of questions that skip logic
    links to it included. `from10`, `from50`: what a suspicion of 10 and of 50 per cent can become
    at most, in whole per cent.
    """

    own: str
    other: str
    odds: str
    from10: int
    from50: int


def labels(definition: Definition) -> dict[str, Label]:
    """The label of every question, by its id."""
    linked = definition.linked_ratios
    return {question.id: label(question, linked[question.id]) for question in definition.questions}


def linked(definition: Definition) -> set[str]:
    """The ids of questions whose odds count the reports of others too, by skip logic."""
    together = definition.linked_ratios
    return {one.id for one in definition.questions if together[one.id] != one.channel.ratio}


def label(question: PublishedQuestion, ratio: Fraction) -> Label:
    """Compute the label of a question; frequencies rounded half up, risks rounded up.

    `ratio` is e^epsilon of all reports that tell about its answer (`Definition.linked_ratios`).
    """
    found = frequencies(question)
    own, other = map(_share, found) if found else ("", "")
    return Label(
        own=own,
        other=other,
        odds=_tenths(math.ceil(ratio * 10)),
        from10=_percent_up(posterior_bound(Fraction(1, 10), ratio)),
        from50=_percent_up(posterior_bound(Fraction(1, 2), ratio)),
    )


def frequencies(question: PublishedQuestion) -> tuple[Fraction, Fraction] | None:
    """P(a report says the first option | it is the answer), and if it is not; None for numbers.

    Where it differs between the other answers, the smallest: never more cover than there is.
    """
    channel = question.channel
    if question.kind.is_numeric:
        return None
    match channel:
        case SubsetSelection() if question.by_patterns:
            holding = sum(0 in pattern for pattern in question.patterns)
            return multiple_choice.support(channel, holding)
        case WeightTable():
            said = [Fraction(int(weight), channel.total) for weight in channel.weights[:, 0]]
            return said[0], min(said[1:])
        case SubsetSelection() | BitVector():
            return channel.exact_p, channel.exact_q


def odds_in_words(ratio: Fraction) -> str:
    """The most that odds are multiplied by, as a whole number rounded up.

    >>> odds_in_words(Fraction(2209, 2))
    '1,105'
    """
    return f"{math.ceil(ratio):,}"


def _share(probability: Fraction) -> str:
    return _tenths(math.floor(probability * 1000 + Fraction(1, 2)))


def _tenths(tenths: int) -> str:
    whole, rest = divmod(tenths, 10)
    return f"{whole:,}.{rest}" if rest else f"{whole:,}"


def _percent_up(share: Fraction) -> int:
    """Whole per cent, rounded up: a bound must not be understated."""
    return math.ceil(share * 100)
