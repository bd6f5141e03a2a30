"""The privacy loss of a survey, question by question and in total, for `survey check`."""

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
"""Size of a numerator, in bits, above which a fraction is not written in full."""

DELTA = 1e-6
"""The delta of the two figures given for comparison."""


@dataclass(frozen=True)
class Entry:
    """One question: its answers, its mechanism, and what one report can reveal.

    `ratio` is e^epsilon of its channel, an exact fraction. `truth_probability` is that of a report
    or of a bit, None for tables; `keep_probability` is the same in the coin form. `delta` is the
    usual reading of Gaussian noise: its delta at epsilon 1. `linked_epsilon` is that of all reports
    that depend on the answer: its own and those of questions that skip logic links to it. `odds`,
    `from10` and `from50` are about these reports too, as in the privacy label.
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
    """All questions, and the privacy loss of one respondent.

    epsilon        basic composition: the sum over all that one respondent sends; the guarantee
    apart          parallel composition: the maximum for one respondent if each question (with those
                   that depend on it) were asked of different people
    advanced       advanced composition at `DELTA`, for comparison: (epsilon, delta), seldom smaller
    waves          the sum when the same respondent answers this many waves
    together       the sum for this many people with correlated answers, such as a household
    shuffled       central epsilon at `DELTA` if the shuffling is trusted, None where not proved
    half           the range in which a suspicion of one half can end
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
        """Return plain values for programs."""
        return asdict(self)


def ledger(
    definition: Definition,
    *,
    waves: tuple[int, ...] = (2, 4),
    people: tuple[int, ...] = (2, 4),
    respondents: tuple[int, ...] = (1_000, 100_000),
) -> Ledger:
    """Add up the privacy loss of a survey."""
    ratio = definition.ratio
    low, high = posterior_interval(ratio)
    epsilons = sorted((q.channel.epsilon for q in definition.questions), reverse=True)
    n_asked = questions_asked(definition)
    return Ledger(
        entries=tuple(_entry(q, definition.linked_ratios[q.id]) for q in definition.questions),
        questions_asked=n_asked,
        ratio=in_digits(ratio),
        epsilon=definition.epsilon,
        odds=odds_in_words(ratio),
        apart=log_rounded_up(parallel_ratio(definition.linked_ratios.values())),
        advanced=advanced_epsilon(epsilons[:n_asked], DELTA),
        waves={n: log_rounded_up(waves_ratio(ratio, n)) for n in waves},
        together={n: log_rounded_up(group_ratio(ratio, n)) for n in people},
        shuffled={n: shuffled_epsilon(ratio, n, DELTA) for n in respondents},
        half=(math.floor(1000 * low) / 1000, math.ceil(1000 * high) / 1000),
    )


def questions_asked(definition: Definition) -> int:
    """Return the maximum number of questions that one respondent is asked."""
    sizes = sorted(map(len, definition.groups), reverse=True)
    return sum(sizes[: definition.drawn])


def lines(ledger: Ledger) -> list[str]:
    """Return the ledger as lines for a terminal."""
    return [
        *(f"  {_line(entry)}" for entry in ledger.entries),
        f"  complete response ({ledger.questions_asked} questions per respondent): epsilon "
        f"{format_epsilon(ledger.epsilon)}, odds factor at most {ledger.odds}; a suspicion of 50% "
        f"becomes {_percent(ledger.half[0])} to {_percent(ledger.half[1])}",
        *_comparisons(ledger),
    ]


def _percent(share: float) -> str:
    """Format a share that is neither 0 nor 1, to a tenth of a per cent."""
    if share < 0.001:
        return "less than 0.1%"
    return "more than 99.9%" if share > 0.999 else f"{share:.1%}"


def _line(entry: Entry) -> str:
    p = ""
    if entry.truth_probability is not None:
        p = f"truth probability {entry.truth_probability:.4g}, "
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
        f"epsilon {format_epsilon(entry.epsilon)}{linked}; odds factor "
        f"at most {entry.odds}: a suspicion of 10% {_becomes(entry.from10)}, of 50% "
        f"{_becomes(entry.from50)}"
    )


def _becomes(percent: int) -> str:
    """Describe what a suspicion becomes; the bound is rounded up, so 100 would overstate it."""
    return "can become more than 99%" if percent > 99 else f"becomes at most {percent}%"


def _comparisons(ledger: Ledger) -> list[str]:
    waves = ", ".join(f"{n} waves {format_epsilon(e)}" for n, e in ledger.waves.items())
    together = ", ".join(f"{n} people {format_epsilon(e)}" for n, e in ledger.together.items())
    shuffled = ", ".join(
        f"{n:,} reports {'no bound' if epsilon is None else format_epsilon(epsilon)}"
        for n, epsilon in ledger.shuffled.items()
    )
    return [
        f"  repeated waves with the same respondents: {waves}",
        f"  people with correlated answers: {together}",
        f"  different people for each question: at most {format_epsilon(ledger.apart)} per person",
        f"  advanced composition, for comparison: {format_epsilon(ledger.advanced)} "
        f"at delta {DELTA:g}",
        f"  only if the shuffling of releases is trusted, at delta {DELTA:g}: {shuffled}",
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
    """Return the (1, delta) reading of Gaussian noise whose sensitivity is the whole grid."""
    if "sigma" not in question.stated or question.grid is None:
        return None
    step = question.grid.step / 10**question.grid.decimals
    sensitivity = (question.grid.points - 1) * step
    return gaussian_delta(float(Fraction(question.stated["sigma"])), sensitivity, 1.0)


def in_digits(ratio: Fraction) -> str:
    """Return a fraction in full, or rounded up to twelve digits if it has thousands of digits.

    >>> in_digits(Fraction(9, 4))
    '9/4'
    """
    if ratio.numerator.bit_length() < LONGEST_FRACTION:
        return str(ratio)
    with decimal.localcontext(prec=12, rounding=decimal.ROUND_CEILING):
        return f"{Decimal(ratio.numerator) / Decimal(ratio.denominator):e}"
