"""Sentences about weighted shares: for a paper, and the caveats."""

from __future__ import annotations

from survey.results.number_format import percent, percent_range
from survey.results.weighting.table import WeightingResult


def paper_sentences(result: WeightingResult) -> list[str]:
    """Return sentences for a paper; none about suppressed shares."""
    rows = [row for row in result.rows if row.estimate is not None]
    if not rows or result.design_effect is None:
        return []
    largest = max(rows, key=lambda row: row.estimate or 0.0)
    return [
        f"Weighted to {_margins_phrase(result)}, an estimated {percent(largest.estimate)} answered "
        f"“{largest.option_label}” to “{result.question.text}” ({100 * largest.conf_level:g}% "
        f"confidence interval {percent_range(largest.conf_low, largest.conf_high)}; unweighted "
        f"{percent(largest.unweighted)}; {result.n:,} reports, each randomized on the respondent’s "
        f"device, {_method_phrase(result)}; design effect {result.design_effect:.2f})."
    ]


def caveats(result: WeightingResult) -> list[str]:
    """Return the caveats that belong beside the figures."""
    texts = []
    base = result.base_question
    if base is None:
        texts.append(
            "Weights correct for nonresponse only between groups: within a group, those who "
            "answered must be like those who did not."
        )
    else:
        texts.append(
            f"The answers to “{base.text}” are known only through randomized reports, so single "
            "reports have no weights. Shares within each category are estimated by joint inversion "
            "and combined in the known proportions, which widens the intervals."
        )
        texts += _omission_caveat(result)
        texts.append(
            "The margins must measure what the question asks. If people describe themselves "
            "differently here than in official figures, the weighted shares are wrong."
        )
    texts.append("The margins are treated as exact. Margins from another survey are not exact.")
    if result.weighted is None and not result.is_suppressed:
        texts.append(
            "Too few respondents appear to belong to one of the categories, so any weighted share "
            "is possible."
        )
    if result.disclosure == "caution":
        texts.append("The intervals are wide: treat the shares as a first impression.")
    if result.design_effect is not None and result.design_effect > 2:
        texts.append(
            f"The weights are costly: these reports are worth about "
            f"{result.n / result.design_effect:,.0f} reports of equal weight."
        )
    return texts


def _omission_caveat(result: WeightingResult) -> list[str]:
    omitted = [category.label for category in result.composition if category.population == 0]
    if not omitted:
        return []
    labels = " or ".join(f"“{label}”" for label in omitted)
    return [f"Respondents who answered {labels} are left out: the margins do not include them."]


def _margins_phrase(result: WeightingResult) -> str:
    shares = ", ".join(
        f"{category.label} {percent(category.population)}" for category in result.composition
    )
    base = result.base_question
    source = "the groups" if base is None else f"the known answers to “{base.text}”"
    return f"{source} ({shares})"


def _method_phrase(result: WeightingResult) -> str:
    if result.base_question is None:
        return "debiased and post-stratified"
    return "debiased and standardized by joint inversion"
