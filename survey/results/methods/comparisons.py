"""Methods for groups that are known by an answer alone, and for means of two groups."""

from __future__ import annotations

from survey.estimator import (
    conditional_difference,
    crosstab,
    mean,
    mean_difference,
    standardized_shares,
)
from survey.mechanism import grr
from survey.results.methods.section import Formula, Section

CHANNEL = grr(2, "3/4")
TABLE = [[3000, 2000], [2000, 3000]]


def _conditional_difference_example() -> str:
    found = conditional_difference(crosstab(TABLE, [CHANNEL, CHANNEL]), [0, 1])
    return (
        "Reports 3,000, 2,000 / 2,000, 3,000 at p = 3/4: between the people of the two second "
        f"answers an estimated {100 * found.estimate[0]:.0f} points, from "
        f"{100 * found.conf_low[0]:.0f} to {100 * found.conf_high[0]:.0f}."
    )


def _standardized_example() -> str:
    found = standardized_shares(crosstab(TABLE, [CHANNEL, CHANNEL]), [20, 80])
    return (
        "The same reports where 20% of the people are known to have the first second answer: an "
        f"estimated {found.estimate[0]:.0%} instead of {0.5:.0%}."
    )


def _mean_difference_example() -> str:
    a, b = (mean(counts, CHANNEL, [0, 1]) for counts in ([300, 700], [500, 500]))
    found = mean_difference(a, b)
    return (
        "300, 700 and 500, 500 reports of 0 and 1 at p = 3/4: means "
        f"{found.estimate:.2f} apart, from {found.conf_low:.2f} to {found.conf_high:.2f}."
    )


COMPARISONS = (
    Section(
        "conditional-difference",
        "Difference between the people of two answers",
        "The share of an answer among those who gave one answer to another question, minus that "
        "among those who gave the other. Both are of the cross-tab: the same reports tell of both.",
        (
            Formula("d = P(a | b) − P(a | b′)", "The share given b less the share given b prime."),
            Formula(
                "low = d − √((x − l)² + (u′ − x′)² − 2ρ (x − l)(u′ − x′))",
                "The lower end is the difference less the root of both squared distances to the "
                "ends of the shares’ own intervals, less twice their product times the "
                "correlation.",
            ),
        ),
        runs=(conditional_difference,),
        sources=("Fieller 1954", "Zou and Donner 2008"),
        assumes="Both groups are clearly there; else nothing is said.",
        cannot="Causes. How many people each group has is itself estimated.",
        also=("mover-fieller",),
        example=_conditional_difference_example,
    ),
    Section(
        "mean-difference",
        "Difference of two means",
        "The mean in one group minus that in another, in the unit of the question.",
        (
            Formula(
                "low = d − √((a − l)² + (u′ − b)²)",
                "The lower end is the difference less the root of the squared distances from one "
                "mean to its lower end and from the other to its upper end.",
            ),
        ),
        runs=(mean_difference,),
        sources=("Zou and Donner 2008",),
        assumes="Different people in each group, drawn independently.",
        cannot="Whether groups differ in how candidly they answer.",
        also=("mover",),
        example=_mean_difference_example,
    ),
    Section(
        "standardization",
        "Weighting to a known answer",
        "The shares there would be if another question’s answers had the distribution that is "
        "known of the population: each answer’s people count as many as there really are.",
        (
            Formula(
                "π_a = Σ_b w_b P(a | b)",
                "The sum, over the other question’s answers, of their known shares times the "
                "share within each.",
            ),
        ),
        runs=(standardized_shares,),
        assumes="Among those of one answer, who took part does not depend on the other.",
        cannot="Bias that the known answer does not explain.",
        example=_standardized_example,
    ),
)
