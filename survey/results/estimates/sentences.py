"""What a statistician would say under a question's figures: short lines, each with its caveat."""

from __future__ import annotations

import math
from collections.abc import Sequence

from survey.estimator import (
    Mean,
    Proportions,
    channel_fit,
    margin_split,
    margin_split_of_mean,
    poisoning,
    poisoning_of_mean,
)
from survey.estimator.planning.sample_size import rounded
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.compute import (
    MOST_WEIGHTS,
    Estimates,
    numeric_channel,
    values,
    weights,
)
from survey.results.suppression import Decisions
from survey.results.wording import amounts


def remarks(
    question: PublishedQuestion,
    counts: Sequence[int],
    found: Estimates,
    shown: Decisions,
) -> tuple[str, ...]:
    """Where the margin comes from, whether the reports fit, and what made-up ones could do.

    Only about what is shown: nothing here tells more than the rows do. Of a multiple choice the
    margin alone, because its options are estimated each for itself.
    """
    said = []
    of_shares = shown.shares != "hide" and question.type not in ("number", "date")
    shares = found.shares if of_shares else None
    if shares:
        said.append(margin_remark(shares))
    elif found.mean and shown.mean != "hide":
        said.append(margin_of_mean_remark(found.mean, question, counts))
    if question.type != "multiple_choice" and {shown.shares, shown.mean} != {"hide"}:
        said.append(fit_remark(question, counts))
        if shares:
            said.append(made_up_remark(shares, question))
        elif found.mean and shown.mean != "hide":
            said.append(made_up_mean_remark(found.mean, question, counts))
    return tuple(text for text in said if text)


def margin_remark(shares: Proportions) -> str:
    """The widest interval's half, and what sampling alone would leave of it."""
    split = margin_split(shares)
    widest = int(split.margin.argmax())
    whole = f"The widest margin is ±{_points(split.margin[widest])} points"
    if shares.target == "respondents":
        return f"{whole}, all of it from the randomization."
    return (
        f"{whole}. Open answers would leave ±{_points(split.sampling[widest])}; "
        "the rest is the randomization."
    )


def margin_of_mean_remark(found: Mean, question: PublishedQuestion, counts: Sequence[int]) -> str:
    """Half of the mean's interval, and what open answers would leave of it."""
    reader = numeric_channel(question)
    if reader is None:
        return ""
    split = margin_split_of_mean(counts, reader, values(question), level=found.level)
    whole, alone = (_number(part[0], question) for part in (split.margin, split.sampling))
    most = "at most " if split.at_most else ""
    return (
        f"The mean’s margin is ±{whole}. Open answers would leave {most}±{alone}; the rest is "
        "the randomization."
    )


def fit_remark(question: PublishedQuestion, counts: Sequence[int]) -> str:
    """Whether the reports can have come through the randomization; nothing if not decided."""
    if weights(question.channel) > MOST_WEIGHTS:
        return ""
    fit = channel_fit(counts, question.channel)
    if fit.doubtful:
        return (
            f"These reports do not fit the randomization (by chance about 1 time in "
            f"{_times(fit.p_value)}): some may not come from this page. Do not rely on the figures."
        )
    if fit.flag:
        return ""
    return 'The reports fit the randomization. So can made-up ones, and a self-protective "no".'


def made_up_remark(shares: Proportions, question: PublishedQuestion) -> str:
    """How few made-up reports move some share by the widest margin, which `margin_remark` says."""
    bounds = poisoning(shares, question.channel)
    fewest = int(bounds.fakes_for(bounds.margin.max()).min())
    return f"{_made_up(fewest, bounds.n)} could move an estimate by the widest margin, unnoticed."


def made_up_mean_remark(found: Mean, question: PublishedQuestion, counts: Sequence[int]) -> str:
    """How few made-up reports move the mean by half of its interval."""
    reader = numeric_channel(question)
    if reader is None:
        return ""
    bounds = poisoning_of_mean(counts, reader, values(question), level=found.level)
    fewest = int(bounds.fakes_per_margin[0])
    return f"{_made_up(fewest, bounds.n)} could move the mean by half of its interval, unnoticed."


def _made_up(fewest: int, n: int) -> str:
    reports = "1 made-up report" if fewest == 1 else f"{fewest:,} made-up reports"
    return f"{reports} of {n:,}"


def _number(margin: float, question: PublishedQuestion) -> str:
    """A margin in the unit of the question, with at least one significant digit."""
    written = amounts(question, "mean")
    unit = "days" if written.is_date else written.unit
    return f"{rounded(float(margin), written.decimals, digits=1)} {unit}".rstrip()


def _points(margin: float) -> str:
    return rounded(100 * float(margin), decimals=1, digits=1)


def _times(p_value: float) -> str:
    """1/p to one significant digit, as far as it means anything.

    >>> _times(0.0042), _times(0.0)
    ('200', '1,000,000')
    """
    times = min(1 / max(p_value, 1e-12), 1e6)
    digit = 10 ** math.floor(math.log10(times))
    return f"{int(times // digit) * digit:,}"
