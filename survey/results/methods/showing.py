"""Methods of judgement: what may be shown, where margins come from, what reports cannot exclude."""

from __future__ import annotations

from survey.estimator import (
    channel_fit,
    disclosure,
    margin_of,
    margin_split,
    margin_split_of_mean,
    poisoning,
    poisoning_of_mean,
    power,
    proportions,
    reports_needed,
    required_epsilon,
    required_n,
    tradeoff,
)
from survey.estimator.trust.disclosure import FEWEST_EFFECTIVE, HIDDEN_WIDTH, SHOWN_WIDTH
from survey.mechanism import grr
from survey.results.methods.section import Chapter, Formula, Section

CHANNEL = grr(2, "3/4")


def _suppression_example() -> str:
    decided = {n: disclosure(proportions([n // 2, n // 2], CHANNEL)) for n in (100, 1000, 100_000)}
    return "Half yes at p = 3/4: " + ", ".join(f"n = {n:,} {it}" for n, it in decided.items()) + "."


def _margin_example() -> str:
    split = margin_split(proportions([700, 1300], CHANNEL))
    return (
        f"700 of 2,000 reports at p = 3/4: ±{100 * split.margin[0]:.1f} points, of which open "
        f"answers would leave ±{100 * split.sampling[0]:.1f}."
    )


def _made_up_example() -> str:
    found = proportions([500, 500], CHANNEL)
    fewest = int(poisoning(found, CHANNEL).fakes_per_margin[0])
    return f"500 of 1,000 reports at p = 3/4: {fewest} made-up reports move it by one margin."


def _fit_example() -> str:
    p_value = channel_fit([200, 800], CHANNEL).p_value
    return f"200 of 1,000 reports say yes where at least a quarter should: p = {p_value:.4f}."


def _plan_example() -> str:
    return (
        f"Two options, epsilon 1, ±3 points: {required_n(0.03, epsilon=1).n:,} reports; of a "
        f"population of 5,000: {required_n(0.03, epsilon=1, population=5000).n:,}."
    )


def _power_example() -> str:
    found = power(443, 443, 0.2, 0.4, epsilon=1)
    return f"443 reports each, 20% against 40%, epsilon 1: found in {found.power:.0%} of surveys."


SHOWING = Chapter(
    "What is shown, and what it is worth",
    (
        Section(
            "suppression",
            "Suppression",
            "All shares of a question are decided together, never one by one: a hidden option "
            "could be computed from the others. Hidden while the widest interval is "
            f"{HIDDEN_WIDTH:.2f} or more, or any effective number is below {FEWEST_EFFECTIVE}; "
            f"with a caution until the widest is at most {SHOWN_WIDTH}. Decided at the usual "
            "level, however one looks.",
            (
                Formula(
                    f"hide: max width ≥ {HIDDEN_WIDTH:.2f} or min n_{{eff}} < {FEWEST_EFFECTIVE}",
                    "Hidden when the largest width is at least that, or the smallest effective "
                    "number is less.",
                ),
            ),
            runs=(disclosure, reports_needed),
            cannot="How many more reports are needed is a guess while little is known.",
            also=("flag-caution", "flag-suppressed"),
            example=_suppression_example,
        ),
        Section(
            "not-estimable",
            "Cannot be estimated from this design",
            "Different shares would give the same reports, as of one bit for the mean: the shares "
            "are not estimated, however many reports come; the mean is.",
            runs=(proportions,),
            also=("flag-not_estimable",),
        ),
        Section(
            "margin",
            "Margin of error, and where it comes from",
            "Half an interval’s width. Its square is divided as the variance is: what would be "
            "left of open answers, and what the randomization adds.",
            (
                Formula(
                    "margin² = sampling² + randomization²",
                    "The squared margin is the squared sampling part plus the squared "
                    "randomization part.",
                ),
                Formula(
                    "sampling : randomization = π (1 − π) : (π p (1 − p) + (1 − π) q (1 − q)) / D²",
                    "In variance they are as pi times one minus pi to what the channel adds.",
                ),
                Formula(
                    "of a mean: sampling² ∝ (E[x²] − m²) / (n B)",
                    "Of a mean, the sampling part is the variance of the answers, over n times "
                    "the share B of people who answered.",
                ),
            ),
            runs=(margin_split, margin_split_of_mean),
            assumes="Exact for intervals that are normal, near enough for others. Where reports "
            "tell a mean but not how numbers are spread, the sampling part is the largest that it "
            "can be.",
            also=("sampling", "randomization"),
            example=_margin_example,
        ),
        Section(
            "made-up",
            "Made-up reports",
            "A made-up report looks like any other. What limits it is how far one report can move "
            "an estimate; the page says how few could move it by its margin, unnoticed.",
            (
                Formula(
                    "shift ≤ max(1 − λ, λ) / (n |D|)",
                    "One report moves an estimate by at most the larger of one minus lambda and "
                    "lambda, over n times the size of D.",
                ),
            ),
            runs=(poisoning, poisoning_of_mean),
            sources=("Cheu, Smith, Ullman 2021", "Cao, Jia, Gong 2021"),
            assumes="Nothing: it is a bound.",
            cannot="Whether there are any. Personal links keep strangers’ reports out.",
            example=_made_up_example,
        ),
        Section(
            "fit",
            "Do reports fit the randomization?",
            "Whether any population at all could have given these counts: a likelihood-ratio test "
            "and the count furthest outside what its chance can be, together at 1%.",
            (
                Formula(
                    "G² = 2 Σ c log(f / λ_{mle}), z = (f − q) / √(q (1 − q) / n)",
                    "G squared is two times the sum of counts times the logarithm of the share of "
                    "reports over the most likely one; z is the distance from q in standard "
                    "errors.",
                ),
            ),
            runs=(channel_fit,),
            sources=("Wilks 1938", "Cao, Jia, Gong 2021", "Cochran 1954"),
            cannot="Made-up reports that keep the shares possible, or a self-protective “no” given "
            "to the device.",
            example=_fit_example,
        ),
        Section(
            "planning",
            "How many reports",
            "What n gives a margin, what margin an n, what epsilon both; with a population of N "
            "the randomization part gets no finite-population correction.",
            (
                Formula(
                    "n = z² λ (1 − λ) / (D² margin²)",
                    "n is z squared times lambda times one minus lambda, over D squared times the "
                    "margin squared.",
                ),
                Formula(
                    "n = (S N/(N − 1) + m) / ((margin/z)² + S/(N − 1)), S = π (1 − π)",
                    "Of a population of N: S times N over N minus one plus m, over the squared "
                    "margin over z plus S over N minus one; m is the randomization of one report.",
                ),
            ),
            runs=(required_n, margin_of, required_epsilon, tradeoff),
            sources=("Warner 1965", "Cochran 1977"),
            assumes="A normal approximation: n times the rarer of q and 1 − p above about 10.",
            cannot="The true share: one half is the worst case for two options.",
            also=("tradeoff",),
            example=_plan_example,
        ),
        Section(
            "power",
            "How surely a difference is found",
            "The chance that a two-sided test finds a difference of these shares.",
            (
                Formula(
                    "power = Φ((d − z s_0)/s_1) + Φ((−d − z s_0)/s_1)",
                    "The normal probability of d minus z times s nought over s one, plus that of "
                    "minus d minus the same.",
                ),
            ),
            runs=(power,),
            sources=("Fleiss 1981",),
            assumes="A normal approximation.",
            example=_power_example,
        ),
    ),
)
