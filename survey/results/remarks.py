"""What a statistician would say under a question's figures: short lines, each with its caveat."""

from __future__ import annotations

import math
from collections.abc import Sequence

from survey.errors import ChannelError
from survey.estimator import Proportions, channel_fit, margin_split, poisoning, poisoning_of_mean
from survey.questionnaire.published import PublishedQuestion
from survey.results.decisions import Decisions
from survey.results.estimates import MOST_WEIGHTS, Estimates, numeric_channel, values, weights
from survey.results.wanted import Wanted


def remarks(
    question: PublishedQuestion,
    counts: Sequence[int],
    found: Estimates,
    shown: Decisions,
    wanted: Wanted,
) -> tuple[str, ...]:
    """Where the margin comes from, whether the reports fit, and what made-up ones could do.

    Only about what is shown: nothing here tells more than the rows do. Of a multiple choice the
    margin alone, because its options are estimated each for itself.
    """
    said = []
    if found.shares and shown.shares != "hide" and question.type not in ("number", "date"):
        said.append(margin_remark(found.shares))
    if question.type != "multiple_choice" and {shown.shares, shown.mean} != {"hide"}:
        said.append(fit_remark(question, counts))
        said.append(made_up_remark(question, counts, shown, wanted))
    return tuple(text for text in said if text)


def margin_remark(shares: Proportions) -> str:
    """The widest interval's half, and what sampling alone would leave of it."""
    split = margin_split(shares)
    widest = int(split.margin.argmax())
    whole = f"The widest margin is ±{100 * split.margin[widest]:.1f} points"
    if shares.target == "respondents":
        return f"{whole}, all of it from the randomization."
    return (
        f"{whole}. Open answers would leave ±{100 * split.sampling[widest]:.1f}; "
        "the rest is the randomization."
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


def made_up_remark(
    question: PublishedQuestion, counts: Sequence[int], shown: Decisions, wanted: Wanted
) -> str:
    """How few made-up reports move a figure by one margin; nothing where no bound is known."""
    channel, numbers = question.channel, values(question)
    try:
        if shown.shares != "hide" and question.type not in ("number", "date"):
            found, what = poisoning(counts, channel, level=wanted.level), "an estimate"
        else:
            reader = numeric_channel(question)
            if reader is None or not numbers or shown.mean == "hide":
                return ""
            found = poisoning_of_mean(counts, reader, numbers, level=wanted.level)
            what = "the mean"
    except ChannelError:
        return ""
    fewest = int(found.fakes_per_margin.min())
    reports = "1 made-up report" if fewest == 1 else f"{fewest:,} made-up reports"
    return f"{reports} of {found.n:,} could move {what} by one margin, unnoticed."


def _times(p_value: float) -> str:
    """1/p to one significant digit, as far as it means anything.

    >>> _times(0.0042), _times(0.0)
    ('200', '1,000,000')
    """
    times = min(1 / max(p_value, 1e-12), 1e6)
    digit = 10 ** math.floor(math.log10(times))
    return f"{int(times // digit) * digit:,}"
