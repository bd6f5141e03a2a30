"""Methods for more than one question or group: cross-tabs, differences, weights, regression."""

from __future__ import annotations

import numpy as np

from survey.estimator import (
    conditional,
    crosstab,
    difference,
    independence,
    poststratified,
    raked,
    regression,
    weighted_shares,
)
from survey.estimator.tables.difference import mover_wilson, score_difference
from survey.mechanism import grr
from survey.results.methods.comparisons import COMPARISONS
from survey.results.methods.section import Chapter, Formula, Section

CHANNEL = grr(2, "3/4")
TABLE = [[300, 200], [200, 300]]

SAMPLE = 4000
"""People of the simulated survey whose coefficients the regression's example finds."""


def _crosstab_example() -> str:
    found = crosstab(TABLE, [CHANNEL, CHANNEL])
    return (
        "Reports 300, 200 / 200, 300 at p = 3/4: the first cell is an estimated "
        f"{found.estimate[0, 0]:.1%}, from {found.conf_low[0, 0]:.1%} to "
        f"{found.conf_high[0, 0]:.1%}, though {TABLE[0][0] / 1000:.0%} of the reports are in it."
    )


def _test_example() -> str:
    test = independence(TABLE)
    return f"The same reports: chi-square {test.statistic:.1f} on {test.df} degree of freedom."


def _conditional_example() -> str:
    found = conditional(crosstab(TABLE, [CHANNEL, CHANNEL]), 1)
    return (
        "The same reports: of those whose second answer is the first option, an estimated "
        f"{found.estimate[0, 0]:.0%} have the first answer too."
    )


def _difference_example() -> str:
    found = difference([500, 500], [400, 600], CHANNEL)
    return (
        "500 of 1,000 and 400 of 1,000 reports at p = 3/4: a difference of "
        f"{100 * found.estimate[0]:.0f} points, from {100 * found.conf_low[0]:.1f} to "
        f"{100 * found.conf_high[0]:.1f}."
    )


def _weighting_example() -> str:
    found = weighted_shares([[60, 40], [30, 70]], [1, 2], CHANNEL)
    return (
        "Two links of 100 reports with weights 1 and 2: an estimated "
        f"{found.estimate[0]:.0%}, standard error {found.std_error[0]:.1%}, as from "
        f"{found.n_effective[0]:.0f} reports of equal weight."
    )


def _poststratified_example() -> str:
    found = poststratified([[60, 40], [30, 70]], [800, 200], CHANNEL)
    return f"The same reports for strata of 800 and 200 people: {found.estimate[0]:.0%}."


def _raked_example() -> str:
    counts = [[[30, 20], [10, 40]], [[25, 25], [20, 30]]]
    found = raked(counts, [[0.6, 0.4], [0.5, 0.5]], CHANNEL)
    return f"Four cells of 50 reports raked to 60:40 and 50:50: {found.estimate[0]:.0%}."


def _regression_example() -> str:
    rng = np.random.default_rng(1)
    age = rng.normal(size=SAMPLE)
    truth = (rng.random(SAMPLE) < 1 / (1 + np.exp(1 - age))).astype(int)
    found = regression(CHANNEL.perturb(truth, rng), CHANNEL, age, names=["age"])
    return (
        f"{SAMPLE:,} simulated people with true coefficients −1 and 1: found "
        f"{found.estimate[0]:.2f} and {found.estimate[1]:.2f}."
    ).replace("-", "−")


RELATIONS = Chapter(
    "Two questions, groups, weights",
    (
        Section(
            "crosstab",
            "Cross-tab",
            "How two answers go together in people, from how their reports go together: each "
            "channel is inverted along its axis of the table F of reports. Unbiased; cells may lie "
            "below 0, and their sums are exactly the shares of each question.",
            (
                Formula(
                    "P = A^{−1} F (B^{−1})^{T}, E[F] = A P B^T",
                    "The table of people is the inverse of the first channel, times the table of "
                    "reports, times the inverse of the second, transposed.",
                ),
                Formula(
                    "Var(P_{ab}) = (Σ_{gh} (a_g b_h)² λ_{gh} − P_{ab}²) / n",
                    "The variance of a cell is the mean square of its reports’ numbers less its "
                    "square, over n.",
                ),
            ),
            runs=(crosstab,),
            sources=(
                "Warner 1965",
                "van den Hout and van der Heijden 2002",
                "Agrawal and Aggarwal 2001",
            ),
            assumes="Each question was randomized on its own. Intervals are score intervals of "
            "each cell alone.",
            cannot="Filtering reports by a reported answer instead is biased.",
            also=("interval-linear",),
            example=_crosstab_example,
        ),
        Section(
            "independence",
            "Are two answers related?",
            "Pearson’s test of the table of REPORTS: independent answers give independent reports, "
            "so that the test is valid there; of debiased counts it is not.",
            (
                Formula(
                    "χ² = Σ (c − e)² / e, e = row × column / n, df = (k_1 − 1)(k_2 − 1)",
                    "Chi-square is the sum of squared differences of counts from expected ones, "
                    "over the expected ones.",
                ),
            ),
            runs=(independence,),
            sources=("Pearson 1900", "Fisher 1922", "Cochran 1954"),
            assumes="Few cells with fewer than 5 expected reports; the page says when not.",
            cannot="How strong a relation is, or which way it runs.",
            also=("pearson",),
            example=_test_example,
        ),
        Section(
            "conditional",
            "Shares within an answer",
            "The share of one answer among the people who gave another: a cell over its margin, "
            "with Fieller’s interval; refused where the margin is not clearly above 0.",
            (Formula("P(a | b) = P_{ab} / P_b", "The cell divided by its margin."),),
            runs=(conditional,),
            sources=("Fieller 1954", "Newcombe 1998"),
            assumes="As the cross-tab.",
            cannot="Causes.",
            example=_conditional_example,
        ),
        Section(
            "difference",
            "Difference between groups",
            "The share in one group minus that in another, for openly known groups: links, waves, "
            "or a group that answered openly.",
            (
                Formula("d = π_a − π_b", "The share in a less the share in b."),
                Formula(
                    "|d̂ − d| ≤ z SE(d) + h",
                    "The interval holds every d whose distance from the estimate is at most z "
                    "standard errors, as they are if d is true, plus h for whole reports.",
                ),
            ),
            runs=(difference, score_difference, mover_wilson),
            sources=(
                "Mee 1984",
                "Miettinen and Nurminen 1985",
                "Newcombe 1998",
                "Zou and Donner 2008",
            ),
            assumes="Different people in each group, drawn independently.",
            cannot="Whether groups differ in how candidly they answer.",
            example=_difference_example,
        ),
        Section(
            "weighting",
            "Weighted shares",
            "Reports of some links stand for more people than others.",
            (
                Formula(
                    "π = Σ w r / Σ w, r_i = ([y_i supports j] − q) / D",
                    "The weighted mean of the reports’ debiased numbers.",
                ),
                Formula(
                    "SE² = n/(n − 1) Σ w² (r − π)² / (Σ w)², n_{eff} = (Σ w)² / Σ w²",
                    "The squared error is the sum of squared weights times squared residuals over "
                    "the squared sum of weights; the effective number is the squared sum of "
                    "weights over the sum of squares.",
                ),
            ),
            runs=(weighted_shares,),
            sources=("Kish 1965",),
            assumes="Weights known beforehand, such as inverse chances of selection.",
            cannot="Bias that the weights do not know of.",
            example=_weighting_example,
        ),
        Section(
            "poststratification",
            "Post-stratification",
            "Every report of a link stands for as many people as its stratum has per report.",
            (
                Formula(
                    "π = Σ N_h π_h / N, SE² = n/(n − 1) Σ (N_h/N)² s_h² / n_h",
                    "The sum of stratum shares times stratum sizes over the whole size.",
                ),
            ),
            runs=(poststratified,),
            assumes="Within a stratum, who answers does not depend on the answer.",
            cannot="Strata with one report show nothing of how their people differ.",
            example=_poststratified_example,
        ),
        Section(
            "raking",
            "Raking to known margins",
            "Where only margins are known, the numbers of reports are fitted to them in turn, and "
            "errors are those of the residuals.",
            (
                Formula(
                    "w_{ab} ← w_{ab} N_a / Σ_b w_{ab} n_{ab}, and in turn for b",
                    "Weights are scaled to each margin in turn until both hold.",
                ),
            ),
            runs=(raked,),
            assumes="All margins have the same total, and their strata are openly known.",
            cannot="What the margins do not say of the cells.",
            example=_raked_example,
        ),
        Section(
            "regression",
            "Regression",
            "A logit of the TRUE answer, fitted through the channel: every report’s likelihood "
            "sums over the answers it may stand for.",
            (
                Formula(
                    "log L = Σ_i log Σ_t M_{t,y(i)} P(t | x_i; β)",
                    "The log likelihood is the sum, over reports, of the logarithm of the sum over "
                    "true answers of the chance of the report under it times its chance given x.",
                ),
            ),
            runs=(regression,),
            sources=(
                "Scheers and Dayton 1988",
                "van den Hout, van der Heijden and Gilchrist 2007",
                "Blair, Imai and Zhou 2015",
                "Heck and Moshagen 2018",
                "Huber 1967",
            ),
            assumes="The logit is right; errors and p-values are those of large samples.",
            cannot="Coefficients that the reports do not determine: they are flagged.",
            example=_regression_example,
        ),
        *COMPARISONS,
    ),
)
