"""What a survey gives away, question by question and together: for `survey check` and builders."""

from __future__ import annotations

import decimal
import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.accounting import (
    advanced_epsilon,
    format_epsilon,
    group_ratio,
    log_rounded_up,
    parallel_ratio,
    posterior_interval,
    shuffled_epsilon,
    waves_ratio,
)
from survey.mechanism.numeric import gaussian_delta
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.label import label, odds_in_words

LONGEST_FRACTION = 10_000
"""Bits of a numerator above which a fraction is not written in full."""

DELTA = 1e-6
"""The delta of the two figures that are given for comparison."""


@dataclass(frozen=True)
class Entry:
    """One question: what it asks, how it is randomized, what one report of it can do.

    `ratio` is e^epsilon of its channel, an exact fraction. `truth_probability` is that of a report,
    or of a bit, that has one; None for tables; `keep_probability` the same in the coin form.
    `delta` is the usual reading of Gaussian noise: its delta at epsilon 1. `linked_epsilon` is that
    of all reports that tell about the answer, its own and those of the questions that skip logic
    links to it; `odds`, `from10`, `from50` are about them too, as in the privacy label.
    """

    question: str
    type: str
    mechanism: str
    asks: str
    truth_probability: float | None
    keep_probability: float | None
    delta: float | None
    ratio: str
    epsilon: float
    linked_epsilon: float
    odds: str
    from10: int
    from50: int


@dataclass(frozen=True)
class Ledger:
    """All questions and what they come to for one person.

    epsilon        basic composition: the sum over all that one person sends; the guarantee
    apart          parallel composition: what one person gives away at most if every question (with
                   those that depend on it) were asked of other people
    advanced       advanced composition at `DELTA`, for comparison: (epsilon, delta), seldom less
    waves          the sum when the same person answers so many waves
    together       the same for so many people whose answers hang together, such as a household
    shuffled       central epsilon at `DELTA` for who trusts the shuffler, None where not proved
    half           where a suspicion of one half can end
    """

    entries: tuple[Entry, ...]
    questions_asked: int
    ratio: str
    epsilon: float
    odds: str
    apart: float
    advanced: float
    waves: dict[int, float]
    together: dict[int, float]
    shuffled: dict[int, float | None]
    half: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """Plain values, for builders and programs."""
        return asdict(self)


def ledger(
    definition: Definition,
    *,
    waves: tuple[int, ...] = (2, 4),
    people: tuple[int, ...] = (2, 4),
    respondents: tuple[int, ...] = (1_000, 100_000),
) -> Ledger:
    """Add up what a survey gives away."""
    ratio = definition.ratio
    low, high = posterior_interval(ratio)
    epsilons = sorted((q.channel.epsilon for q in definition.questions), reverse=True)
    asked = questions_asked(definition)
    return Ledger(
        entries=tuple(_entry(q, definition.linked_ratios[q.id]) for q in definition.questions),
        questions_asked=asked,
        ratio=in_digits(ratio),
        epsilon=definition.epsilon,
        odds=odds_in_words(ratio),
        apart=log_rounded_up(parallel_ratio(definition.linked_ratios.values())),
        advanced=advanced_epsilon(epsilons[:asked], DELTA),
        waves={n: log_rounded_up(waves_ratio(ratio, n)) for n in waves},
        together={n: log_rounded_up(group_ratio(ratio, n)) for n in people},
        shuffled={n: shuffled_epsilon(ratio, n, DELTA) for n in respondents},
        half=(math.floor(1000 * low) / 1000, math.ceil(1000 * high) / 1000),
    )


def questions_asked(definition: Definition) -> int:
    """The most questions that one person is asked."""
    sizes = sorted(map(len, definition.groups), reverse=True)
    return sum(sizes[: definition.drawn])


def lines(found: Ledger) -> list[str]:
    """The ledger as people read it on a terminal."""
    return [
        *(f"  {_line(entry)}" for entry in found.entries),
        f"  all together ({found.questions_asked} questions a person): epsilon "
        f"{format_epsilon(found.epsilon)}, odds multiplied by at most {found.odds}; a suspicion of "
        "50% ends "
        f"between {_percent(found.half[0])} and {_percent(found.half[1])}",
        *_comparisons(found),
    ]


def _percent(share: float) -> str:
    """A share that is neither 0 nor 1, to a tenth of a per cent."""
    if share < 0.001:
        return "less than 0.1%"
    return "more than 99.9%" if share > 0.999 else f"{share:.1%}"


def _line(entry: Entry) -> str:
    known = entry.truth_probability
    p = "" if known is None else f"truth probability {known:.4g}, "
    if entry.keep_probability is not None:
        p += f"keep probability {entry.keep_probability:.4g}, "
    if entry.delta is not None:
        p += f"delta {entry.delta:.2g} at epsilon 1, "
    linked = ""
    if entry.linked_epsilon != entry.epsilon:
        linked = (
            f" (with the questions linked to it: epsilon {format_epsilon(entry.linked_epsilon)})"
        )
    return (
        f"{entry.question}: {entry.asks} by {entry.mechanism}, {p}"
        f"epsilon {format_epsilon(entry.epsilon)}{linked}; odds about the answer are multiplied by "
        f"at most {entry.odds}: a suspicion of 10% {_becomes(entry.from10)}, of 50% "
        f"{_becomes(entry.from50)}"
    )


def _becomes(percent: int) -> str:
    """What a suspicion becomes; the bound is rounded up, so 100 would say too much."""
    return "can become more than 99%" if percent > 99 else f"becomes at most {percent}%"


def _comparisons(found: Ledger) -> list[str]:
    waves = ", ".join(f"{n} waves {format_epsilon(e)}" for n, e in found.waves.items())
    together = ", ".join(f"{n} people {format_epsilon(e)}" for n, e in found.together.items())
    shuffled = ", ".join(
        f"{n:,} reports {'no bound' if epsilon is None else format_epsilon(epsilon)}"
        for n, epsilon in found.shuffled.items()
    )
    return [
        f"  answered again in later waves: {waves}",
        f"  answers that hang together: {together}",
        f"  asked of different people instead: {format_epsilon(found.apart)} at most for each",
        f"  advanced composition, for comparison: {format_epsilon(found.advanced)} "
        f"at delta {DELTA:g}",
        f"  only for who trusts the shuffling of releases, at delta {DELTA:g}: {shuffled}",
    ]


def _entry(question: PublishedQuestion, linked: Fraction) -> Entry:
    channel, numbers = question.channel, label(question, linked)
    return Entry(
        question=question.id,
        type=question.type,
        mechanism=question.mechanism,
        asks=question.kind.describe(question),
        truth_probability=None if isinstance(channel, WeightTable) else channel.p,
        keep_probability=_keep_probability(question),
        delta=_delta(question),
        ratio=in_digits(channel.ratio),
        epsilon=channel.epsilon,
        linked_epsilon=log_rounded_up(linked),
        odds=numbers.odds,
        from10=numbers.from10,
        from50=numbers.from50,
    )


def _keep_probability(question: PublishedQuestion) -> float | None:
    """The coin form of randomized response: p = t + (1-t)/k, so t = (pk - 1)/(k - 1)."""
    channel = question.channel
    if question.by_patterns or not isinstance(channel, SubsetSelection) or channel.d > 1:
        return None
    return float((channel.exact_p * channel.k - 1) / (channel.k - 1))


def _delta(question: PublishedQuestion) -> float | None:
    """The (1, delta) reading of Gaussian noise whose sensitivity is the whole grid."""
    if "sigma" not in question.stated or question.grid is None:
        return None
    step = question.grid.step / 10**question.grid.decimals
    sensitivity = (question.grid.points - 1) * step
    return gaussian_delta(float(Fraction(question.stated["sigma"])), sensitivity, 1.0)


def in_digits(ratio: Fraction) -> str:
    """A fraction in full, or rounded up to twelve digits where it has thousands of them.

    >>> in_digits(Fraction(9, 4))
    '9/4'
    """
    if ratio.numerator.bit_length() < LONGEST_FRACTION:
        return str(ratio)
    with decimal.localcontext(prec=12, rounding=decimal.ROUND_CEILING):
        return f"{Decimal(ratio.numerator) / Decimal(ratio.denominator):e}"
