"""Weighted shares in the words of a paper, each with the caveat that belongs to it."""

from __future__ import annotations

from survey.results.weighting.compute import Weighted
from survey.results.wording import percent


def to_write(found: Weighted) -> list[str]:
    """Sentences as they can stand in a paper; none of what is hidden."""
    rows = [row for row in found.rows if row.estimate is not None]
    if not rows or found.design_effect is None:
        return []
    largest = max(rows, key=lambda row: row.estimate or 0.0)
    return [
        f"Weighted to {_margins(found)}, an estimated {percent(largest.estimate)} answered "
        f"“{largest.option_label}” to “{found.question.text}” ({100 * largest.conf_level:g}% "
        f"confidence interval {percent(largest.conf_low)[:-1]} to {percent(largest.conf_high)}; "
        f"unweighted {percent(largest.unweighted)}; {found.n:,} reports, each randomized on the "
        f"respondent’s device, {_how(found)}; design effect {found.design_effect:.2f})."
    ]


def caveats(found: Weighted) -> list[str]:
    """What must be said beside the figures."""
    said = []
    if found.of is None:
        said.append(
            "Weights correct who took part only as far as the links do: within one link, those who "
            "answered must be like those who did not."
        )
    else:
        said.append(
            f"Who gave which answer to “{found.of.text}” is known through random answers alone, so "
            "the weights are not those of single reports: shares among those of each answer are "
            "estimated by joint inversion and added up in the known proportions. That widens the "
            "intervals."
        )
        said += _left_out(found)
        said.append(
            "The margins must count what the question asks: people who describe themselves "
            "otherwise here than in the official figures make the weighted shares wrong."
        )
    said.append("The margins are taken as exact; those of another survey are not.")
    if found.shown == "caution":
        said.append("The intervals are wide: read the shares as a first impression.")
    if found.design_effect is not None and found.design_effect > 2:
        said.append(
            f"The weights cost much: these reports tell as much as about "
            f"{found.n / found.design_effect:,.0f} of equal weight."
        )
    return said


def _left_out(found: Weighted) -> list[str]:
    without = [part.label for part in found.composition if part.known == 0]
    if not without:
        return []
    named = " or ".join(f"“{label}”" for label in without)
    return [f"Left out are those who answered {named}: the margins say nothing of them."]


def _margins(found: Weighted) -> str:
    parts = ", ".join(f"{part.label} {percent(part.known)}" for part in found.composition)
    of = "the links’ groups" if found.of is None else f"the known answers to “{found.of.text}”"
    return f"{of} ({parts})"


def _how(found: Weighted) -> str:
    if found.of is None:
        return "debiased and post-stratified"
    return "debiased and standardized by joint inversion"
