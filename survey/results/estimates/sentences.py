"""Remarks under a question's estimates, and results as plain text for a terminal.

The remarks name the sources of the margin of error, goodness of fit, and fabrication.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from survey import estimator
from survey.estimator.planning.sample_size import rounded
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import SUPPRESSED
from survey.results.estimates.compute import MAX_CHANNEL_SIZE, QuestionEstimates
from survey.results.number_format import number_format
from survey.results.question_statistics import channel_size, single_code_channel, truth_values


def remarks(
    question: PublishedQuestion,
    counts: Sequence[int],
    estimates: QuestionEstimates,
    disclosures: Mapping[str, estimator.Disclosure],
) -> tuple[str, ...]:
    """Return remarks on the estimates that are shown; they reveal nothing the rows do not.

    A multiple-choice question gets the remark on its margin only, because its options are
    estimated independently.
    """
    shares = estimates.shares
    if disclosures["shares"] == SUPPRESSED or question.kind.is_numeric:
        shares = None
    mean = estimates.mean if disclosures["mean"] != SUPPRESSED and not shares else None
    texts = []
    if shares:
        texts.append(margin_remark(shares))
    elif mean:
        texts.append(mean_margin_remark(mean, question, counts))
    is_shown = {disclosures["shares"], disclosures["mean"]} != {SUPPRESSED}
    if not question.kind.is_multiple and is_shown:
        texts.append(fit_remark(question, counts))
        if shares:
            texts.append(fabrication_remark(shares, question))
        elif mean:
            texts.append(mean_fabrication_remark(mean, question, counts))
    return tuple(text for text in texts if text)


def margin_remark(shares: estimator.Proportions) -> str:
    """State the widest margin of error, and what it would be without randomization."""
    split = estimator.margin_split(shares)
    place = int(split.margin.argmax())
    margin = f"The widest margin of error is ±{_points(split.margin[place])} points"
    if shares.target == "respondents":
        return f"{margin}, all of it from randomization."
    sampling = _points(split.sampling[place])
    return f"{margin}. Without randomization it would be ±{sampling} points."


def mean_margin_remark(
    mean: estimator.Mean, question: PublishedQuestion, counts: Sequence[int]
) -> str:
    """State the mean's margin of error, and what it would be without randomization."""
    channel = single_code_channel(question)
    if channel is None:
        return ""
    split = estimator.margin_split_of_mean(
        counts, channel, truth_values(question), level=mean.level
    )
    margin, sampling = (_amount(part[0], question) for part in (split.margin, split.sampling))
    at_most = "at most " if split.at_most else ""
    return (
        f"The mean’s margin of error is ±{margin}. Without randomization it would be "
        f"{at_most}±{sampling}."
    )


def fit_warning(question: PublishedQuestion, counts: Sequence[int]) -> str:
    """Warn of reports that are not consistent with the channel; empty if they may be."""
    if question.kind.is_multiple or channel_size(question.channel) > MAX_CHANNEL_SIZE:
        return ""
    fit = estimator.channel_fit(counts, question.channel)
    if not fit.doubtful:
        return ""
    return (
        "Do not rely on these estimates: the responses are not consistent with the randomization "
        f"(chance alone would cause this about 1 time in {_odds(fit.p_value)}). Some may not come "
        "from this page."
    )


def fit_remark(question: PublishedQuestion, counts: Sequence[int]) -> str:
    """State that the reports are consistent with the channel; empty if they may not be."""
    if channel_size(question.channel) > MAX_CHANNEL_SIZE:
        return ""
    if estimator.channel_fit(counts, question.channel).flag:
        return ""
    return (
        "The responses are consistent with the randomization. This cannot rule out fabricated "
        "responses or untruthful answers."
    )


def fabrication_remark(shares: estimator.Proportions, question: PublishedQuestion) -> str:
    """State how few fabricated reports could shift some share by the widest margin of error."""
    bounds = estimator.poisoning(shares, question.kind.share_channel(question))
    n_fakes = int(bounds.fakes_for(bounds.margin.max()).min())
    return (
        f"{_fabricated(n_fakes, bounds.n)} could shift an estimate by the widest margin of error "
        "undetected."
    )


def mean_fabrication_remark(
    mean: estimator.Mean, question: PublishedQuestion, counts: Sequence[int]
) -> str:
    """State how few fabricated reports could shift the mean by its margin of error."""
    channel = single_code_channel(question)
    if channel is None:
        return ""
    bounds = estimator.poisoning_of_mean(counts, channel, truth_values(question), level=mean.level)
    n_fakes = int(bounds.fakes_per_margin[0])
    return (
        f"{_fabricated(n_fakes, bounds.n)} could shift the mean by its margin of error undetected."
    )


def _fabricated(n_fakes: int, n: int) -> str:
    responses = "1 fabricated response" if n_fakes == 1 else f"{n_fakes:,} fabricated responses"
    return f"As few as {responses} out of {n:,}"


def _amount(margin: float, question: PublishedQuestion) -> str:
    """Format a margin in the unit of the question, with at least one significant digit."""
    formatter = number_format(question, "mean")
    unit = "days" if formatter.is_date else formatter.unit
    return f"{rounded(float(margin), formatter.decimals, digits=1)} {unit}".rstrip()


def _points(margin: float) -> str:
    return rounded(100 * float(margin), decimals=1, digits=1)


def _odds(p_value: float) -> str:
    """Return 1/p to one significant digit, at most a million.

    >>> _odds(0.0042), _odds(0.0)
    ('200', '1,000,000')
    """
    times = min(1 / max(p_value, 1e-12), 1e6)
    digit = 10 ** math.floor(math.log10(times))
    return f"{int(times // digit) * digit:,}"
