"""The numbers of the privacy label, computed in integers from the channel.

The client computes the same numbers (`client_js/src/privacy-loss.js`, `frequencies.js`);
`tests/vectors/label.json` binds the two.
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
    """What one channel means for a respondent.

    `own` and `other`: of 100 people with one answer (with another one), how many reports say
    it; empty for numbers, where every report can come from every answer. `odds`: the maximum factor
    by which the odds of a guess about the answer change, with the reports of questions that skip
    logic links to it. `from10`, `from50`: what a suspicion of 10% and of 50% can become at most, in
    whole per cent.
    """

    own: str
    other: str
    odds: str
    from10: int
    from50: int


def labels(definition: Definition) -> dict[str, Label]:
    """Return the label of every question, by id."""
    linked = definition.linked_ratios
    return {question.id: label(question, linked[question.id]) for question in definition.questions}


def linked(definition: Definition) -> set[str]:
    """Return the ids of questions whose odds include other questions' reports, by skip logic."""
    together = definition.linked_ratios
    return {q.id for q in definition.questions if together[q.id] != q.channel.ratio}


def label(question: PublishedQuestion, ratio: Fraction) -> Label:
    """Compute the label of a question; frequencies rounded half up, risks rounded up.

    `ratio` is e^epsilon of all reports that depend on its answer (`Definition.linked_ratios`).
    """
    shares = frequencies(question)
    own, other = map(_share, shares) if shares else ("", "")
    return Label(
        own=own,
        other=other,
        odds=_tenths(math.ceil(ratio * 10)),
        from10=_percent_up(posterior_bound(Fraction(1, 10), ratio)),
        from50=_percent_up(posterior_bound(Fraction(1, 2), ratio)),
    )


def frequencies(question: PublishedQuestion) -> tuple[Fraction, Fraction] | None:
    """P(a report says the first option | it is the answer), and if it is not; None for numbers.

    Where the second differs between the other answers, the smallest: the label must not promise
    more cover than there is.
    """
    channel = question.channel
    if question.kind.is_numeric:
        return None
    match channel:
        case SubsetSelection() if question.by_patterns:
            holding = sum(0 in pattern for pattern in question.patterns)
            return multiple_choice.support(channel, holding)
        case WeightTable():
            shares = [Fraction(int(weight), channel.total) for weight in channel.weights[:, 0]]
            return shares[0], min(shares[1:])
        case SubsetSelection() | BitVector():
            return channel.exact_p, channel.exact_q


def odds_in_words(ratio: Fraction) -> str:
    """Return the odds factor as a whole number, rounded up.

    >>> odds_in_words(Fraction(2209, 2))
    '1,105'
    """
    return f"{math.ceil(ratio):,}"


def _share(probability: Fraction) -> str:
    return _tenths(math.floor(probability * 1000 + Fraction(1, 2)))


def _tenths(tenths: int) -> str:
    whole, tenth = divmod(tenths, 10)
    return f"{whole:,}.{tenth}" if tenth else f"{whole:,}"


def _percent_up(share: Fraction) -> int:
    """Return whole per cent, rounded up: a bound must not be understated."""
    return math.ceil(share * 100)
