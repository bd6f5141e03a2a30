"""What stands behind each share that is shown: both estimates, both parts of its margin, and how
few made-up reports could move it."""

from __future__ import annotations

from dataclasses import dataclass

from survey.estimator import Proportions, margin_split, poisoning
from survey.questionnaire.kinds import PublishedQuestion


@dataclass(frozen=True)
class Detail:
    """One option; all but `made_up` are shares as fractions of one.

    unbiased        the linear estimate, which may lie outside 0 to 1
    display         the most likely share within 0 to 1; where answers exclude each other all of
                    them add up to 1
    margin          half of the interval; its square is the sum of those of the two parts
    sampling        what would be left of it if all had answered openly
    randomization   what would be left of it if everybody had been asked
    randomized      the part of the variance that is randomization, 0 to 1
    made_up         as few made-up reports could move the estimate by its margin
    """

    label: str
    unbiased: float
    display: float
    std_error: float
    n_effective: float
    margin: float
    sampling: float
    randomization: float
    randomized: float
    made_up: int


def details(question: PublishedQuestion, shares: Proportions) -> tuple[Detail, ...]:
    """A line for each option of a question whose answers are options, in its order."""
    split = margin_split(shares)
    patterns = question.patterns if question.by_patterns else None
    bounds = poisoning(shares, question.channel, patterns=patterns)
    return tuple(
        Detail(
            label=option.label,
            unbiased=float(shares.estimate[i]),
            display=float(shares.mle[i]),
            std_error=float(shares.std_error[i]),
            n_effective=float(shares.n_effective[i]),
            margin=float(split.margin[i]),
            sampling=float(split.sampling[i]),
            randomization=float(split.randomization[i]),
            randomized=float(split.randomized[i]),
            made_up=int(bounds.fakes_per_margin[i]),
        )
        for i, option in enumerate(question.options)
    )
