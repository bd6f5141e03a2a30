"""The ledger of a survey: the privacy loss of each question, topic and whole report, added up."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from survey.disclosure import MINIMUM_REPORTS
from survey.mechanism import SubsetSelection
from survey.mechanism.composition import (
    composed_epsilon,
    format_epsilon,
    group_ratio,
    log_rounded_up,
    parallel_ratio,
    posterior_interval,
    shuffled_epsilon,
    waves_ratio,
)
from survey.mechanism.numeric import gaussian_delta
from survey.questionnaire.definition import Definition, max_questions_asked, ratios_of
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.privacy_loss import Bounds, becomes, label, odds_in_words, topic_bounds

LONGEST_FRACTION = 10_000
"""Size of a numerator, in bits, above which a fraction is not written in full."""

DELTA = 1e-6
"""The delta of the two figures given for comparison."""


@dataclass(frozen=True)
class Entry:
    """One question: its answers, its mechanism, and its privacy loss.

    `ratio` is e^epsilon of the channel, an exact fraction. `truth_probability` is that of a report
    or of a bit, None for tables; `keep_probability` is the same in the coin form. `delta` belongs
    to the (1, delta) guarantee of Gaussian noise. `joint` lists the questions that are randomized
    jointly with this one. `linked_epsilon`, `odds`, `from10` and `from50` cover all reports
    that depend on the answer, as in the privacy label.
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
    joint: tuple[str, ...]
    linked_epsilon: float
    odds: str
    from10: int
    from50: int


@dataclass(frozen=True)
class TopicEntry:
    """The questions of one topic, and the privacy loss of all that one respondent sends about it.

    With sampled questions, this is the maximum over the possible draws. It includes questions that
    skip logic links to the topic.
    """

    topic: str
    questions: tuple[str, ...]
    epsilon: float
    odds: str
    from10: int
    from50: int


@dataclass(frozen=True)
class Ledger:
    """All questions, and the privacy loss of one respondent.

    topics         the privacy loss about each topic

    epsilon        basic composition: the sum over all that one respondent sends; the guarantee
    apart          parallel composition: the maximum for one respondent if each question (with those
                   that depend on it) were asked of different people
    advanced       optimal composition at `DELTA`, None unless its figure is below that of the sum:
                   an (epsilon, delta) guarantee, which is weaker
    waves          the sum when the same respondent answers this many waves
    together       the sum for this many people with correlated answers, such as a household
    shuffled       epsilon at `DELTA` by the number of reports shuffled together, if the other
                   respondents are honest and the shuffling is trusted. That number is the size of
                   the smallest release for a reader of every release, and of a group for a reader
                   of the final totals
    half           the range in which a suspicion of one half can end
    """

    entries: tuple[Entry, ...]
    topics: tuple[TopicEntry, ...]
    questions_asked: int
    ratio: str
    epsilon: float
    odds: str
    from10: int
    from50: int
    apart: float
    advanced: float | None
    waves: dict[int, float]
    together: dict[int, float]
    shuffled: dict[int, float]
    half: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """Return plain values for programs."""
        return asdict(self)


def ledger(
    definition: Definition,
    *,
    waves: tuple[int, ...] = (2, 4),
    people: tuple[int, ...] = (2, 4),
    respondents: tuple[int, ...] = (MINIMUM_REPORTS, 1_000, 100_000),
) -> Ledger:
    """Add up the privacy loss of a survey."""
    ratio = definition.ratio
    low, high = posterior_interval(ratio)
    ratios = ratios_of(definition.questions).values()
    epsilons = sorted(map(log_rounded_up, ratios), reverse=True)
    n_asked = max_questions_asked(definition.groups, definition.drawn)
    bounds = Bounds.of(ratio)
    return Ledger(
        entries=tuple(_entry(q, definition.linked_ratios[q.id]) for q in definition.questions),
        topics=tuple(
            TopicEntry(
                topic,
                definition.topics[topic],
                log_rounded_up(definition.topic_ratios[topic]),
                **asdict(bounds_of_topic),
            )
            for topic, bounds_of_topic in topic_bounds(definition).items()
        ),
        questions_asked=n_asked,
        ratio=in_digits(ratio),
        epsilon=definition.epsilon,
        odds=odds_in_words(ratio),
        from10=bounds.from10,
        from50=bounds.from50,
        apart=log_rounded_up(parallel_ratio(definition.linked_ratios.values())),
        advanced=_below(composed_epsilon(epsilons[:n_asked], DELTA), definition.epsilon),
        waves={n: log_rounded_up(waves_ratio(ratio, n)) for n in waves},
        together={n: log_rounded_up(group_ratio(ratio, n)) for n in people},
        shuffled={n: shuffled_epsilon(ratio, n, DELTA) for n in respondents},
        half=(math.floor(1000 * low) / 1000, math.ceil(1000 * high) / 1000),
    )


def lines(ledger: Ledger) -> list[str]:
    """Return the ledger as lines for a terminal."""
    waves = ", ".join(f"{n} waves {format_epsilon(e)}" for n, e in ledger.waves.items())
    together = ", ".join(f"{n} people {format_epsilon(e)}" for n, e in ledger.together.items())
    shuffled = {
        n: f"{n:,} reports {format_epsilon(epsilon)}{_no_gain(epsilon, ledger.epsilon)}"
        for n, epsilon in ledger.shuffled.items()
    }
    advanced = []
    if ledger.advanced is not None:
        advanced = [
            "  optimal composition, a weaker guarantee: "
            f"{format_epsilon(ledger.advanced)} at delta {DELTA:g}"
        ]
    return [
        f"  complete response ({ledger.questions_asked} questions per respondent): epsilon "
        f"{format_epsilon(ledger.epsilon)}, odds factor at most {ledger.odds}; a suspicion of 10% "
        f"{becomes(ledger.from10)}, one of 50% becomes {_percent(ledger.half[0])} to "
        f"{_percent(ledger.half[1])}",
        *(
            f'  topic "{entry.topic}" ({", ".join(entry.questions)}): epsilon '
            f"{format_epsilon(entry.epsilon)}; odds factor at most {entry.odds}: a suspicion of "
            f"10% {becomes(entry.from10)}, of 50% {becomes(entry.from50)}"
            for entry in ledger.topics
        ),
        "  each question alone:",
        *(f"    {_line(entry)}" for entry in ledger.entries),
        f"  repeated waves with the same respondents: {waves}",
        f"  people with correlated answers: {together}",
        f"  different people for each question: at most {format_epsilon(ledger.apart)} per person",
        *advanced,
        "  among the other respondents of a group, only if the shuffling is trusted, at delta "
        f"{DELTA:g}:",
        "    against somebody who reads every release: "
        f"{_listed(shuffled, lambda n: n <= MINIMUM_REPORTS)}",
        "    against somebody who reads only the final totals: "
        f"{_listed(shuffled, lambda n: n > MINIMUM_REPORTS)}",
        "    against anyone who can send or use the other reports: no gain",
    ]


def _below(epsilon: float, total: float) -> float | None:
    """Return an epsilon if its printed figure is below that of the sum, otherwise None."""
    return epsilon if Decimal(format_epsilon(epsilon)) < Decimal(format_epsilon(total)) else None


def _no_gain(epsilon: float, total: float) -> str:
    return " (no gain)" if _below(epsilon, total) is None else ""


def _listed(phrases: Mapping[int, str], is_shown: Callable[[int], bool]) -> str:
    return ", ".join(phrase for n, phrase in phrases.items() if is_shown(n))


def _percent(share: float) -> str:
    """Format a share that is neither 0 nor 1, to a tenth of a percent."""
    if share < 0.001:
        return "less than 0.1%"
    return "more than 99.9%" if share > 0.999 else f"{share:.1%}"


def _line(entry: Entry) -> str:
    parameters = ""
    if entry.truth_probability is not None:
        parameters = f"truth probability {entry.truth_probability:.4g}, "
    if entry.keep_probability is not None:
        parameters += f"keep probability {entry.keep_probability:.4g}, "
    if entry.delta is not None:
        parameters += f"delta {entry.delta:.2g} at epsilon 1, "
    linked = ""
    if entry.linked_epsilon != entry.epsilon:
        linked_epsilon = format_epsilon(entry.linked_epsilon)
        subject = "the questions linked to it"
        if entry.joint:
            subject = f"{' and '.join(entry.joint)}, randomized jointly with it"
        linked = f" (with {subject}: epsilon {linked_epsilon})"
    return (
        f"{entry.question}: {entry.asks} by {entry.mechanism}, {parameters}"
        f"epsilon {format_epsilon(entry.epsilon)}{linked}; odds factor "
        f"at most {entry.odds}: a suspicion of 10% {becomes(entry.from10)}, of 50% "
        f"{becomes(entry.from50)}"
    )


def _entry(question: PublishedQuestion, linked: Fraction) -> Entry:
    channel, numbers = question.channel, label(question, linked)
    return Entry(
        question=question.id,
        type=question.type,
        mechanism=question.mechanism,
        asks=question.kind.describe(question),
        truth_probability=channel.truth_probability,
        keep_probability=_keep_probability(question),
        delta=_delta(question),
        ratio=in_digits(channel.ratio),
        epsilon=channel.epsilon,
        joint=tuple(id_ for id_ in question.joint.questions if id_ != question.id)
        if question.joint
        else (),
        linked_epsilon=log_rounded_up(linked),
        odds=numbers.odds,
        from10=numbers.from10,
        from50=numbers.from50,
    )


def _keep_probability(question: PublishedQuestion) -> float | None:
    """The coin form of randomized response: p = t + (1-t)/k, so t = (pk - 1)/(k - 1)."""
    channel = question.channel
    if question.by_patterns or not isinstance(channel, SubsetSelection) or channel.report_bits:
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
