"""Sentences about model-based shares: how much groups differ, for a paper, and the caveats."""

from __future__ import annotations

from survey.estimator import GroupShares
from survey.results.number_format import format_p_value, percent, points
from survey.results.small_groups.table import SmallGroupsResult

OUTLIER = 3.0
"""Absolute residual above which a group counts as unlike the others."""


def spread_sentences(result: SmallGroupsResult) -> list[str]:
    """Return how much the true shares differ between groups, for each answer."""
    shares = result.shares
    if shares is None:
        return []
    labels = result.labels
    # The second of two exclusive answers says the same as the first.
    is_complement = len(labels) == 2 and not result.question.kind.is_multiple
    n_described = 1 if is_complement else len(labels)
    return [_spread_sentence(result, shares, option) for option in range(n_described)]


def _spread_sentence(result: SmallGroupsResult, shares: GroupShares, option: int) -> str:
    groups = "periods" if result.is_over_time else "groups"
    label = result.labels[option]
    high = points(float(shares.between_high[option]))
    test = format_p_value(float(shares.p_value[option]))
    if shares.is_pooled[option]:
        pooled = percent(float(shares.expected[0, option]))
        finding = (
            "the periods deviate from a straight line by no more than chance explains, so each "
            "model-based estimate lies on the line"
            if result.is_over_time
            else "the groups differ by no more than chance explains, so each model-based estimate "
            f"is the pooled share, {pooled}"
        )
        return (
            f"“{label}”: {finding}. A standard deviation of up to {high} points remains possible "
            f"({test})."
        )
    around = " around a straight line" if result.is_over_time else ""
    return (
        f"“{label}”: the true shares of the {groups} vary{around} with a standard deviation of "
        f"about {points(float(shares.between_sd[option]))} points ({result.options.percent} "
        f"interval {points(float(shares.between_low[option]))} to {high}; test of no difference: "
        f"{test})."
    )


def outlier_sentences(result: SmallGroupsResult) -> list[str]:
    """Return a warning for each group that the model fits badly."""
    if result.shares is None:
        return []
    residual = abs(result.shares.residual)
    return [
        f"“{group.name}” differs markedly from the others. Use its direct estimate."
        for group, values in zip(result.groups, residual, strict=True)
        if (values > OUTLIER).any()
    ]


def _weight_sentence(result: SmallGroupsResult, shares: GroupShares) -> str:
    """Return how much of the estimates comes from the model; empty if all of it does."""
    low, high = (percent(float(end)) for end in (shares.shrinkage.min(), shares.shrinkage.max()))
    if shares.is_pooled.all():
        return ""
    extent = low if low == high else f"between {low} and {high}"
    own = "period’s" if result.is_over_time else "group’s"
    return (
        f"The model contributes {extent} of each estimate; the {own} own responses contribute the "
        "rest."
    )


def paper_sentences(result: SmallGroupsResult) -> list[str]:
    """Return a sentence for a paper; none about suppressed figures."""
    shares = result.shares
    if shares is None:
        return []
    groups = "periods" if result.is_over_time else "groups"
    mean = "a linear trend" if result.is_over_time else "a common mean"
    return [
        f"Model-based shares of {len(result.groups)} {groups} were estimated with a normal "
        f"hierarchical model of the debiased shares with {mean} and known sampling variances (Fay "
        f"and Herriot 1979); {result.options.percent} intervals integrate over the variance "
        f"between {groups} ({shares.n:,} reports, each randomized on the respondent’s device)."
    ]


def caveats(result: SmallGroupsResult) -> list[str]:
    """Return the caveats that belong beside the figures."""
    if result.shares is None:
        return []
    groups, one = ("periods", "A period") if result.is_over_time else ("groups", "A group")
    texts = [
        _weight_sentence(result, result.shares),
        f"On average over the {groups}, {result.options.percent} of the intervals contain the true "
        f"share. {one} that is unlike all others is covered less often.",
        f"To compare two {groups}, use direct estimates: the model pulls estimates together.",
    ]
    return [text for text in texts if text]
