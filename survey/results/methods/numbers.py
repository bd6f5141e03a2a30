"""Methods of numbers and dates: mean, median, histogram."""

from __future__ import annotations

from survey.estimator import histogram, mean, median, quantiles
from survey.estimator.core.likelihood import most_likely_mixture, smoothed_shares
from survey.estimator.core.pseudo_values import pseudo_values
from survey.mechanism import grr
from survey.mechanism.numeric import one_bit
from survey.results.estimates.compute import MOST_WEIGHTS
from survey.results.estimates.histogram import MOST_CELLS, cells
from survey.results.methods.section import Chapter, Formula, Section

SCORES = [1, 2, 3]


def _mean_example() -> str:
    found = mean([400, 600], one_bit(11, 2), range(11))
    return (
        "400 and 600 reports of one bit at epsilon 2 on 0 to 10: estimated mean "
        f"{found.estimate:.2f}, from {found.conf_low:.2f} to {found.conf_high:.2f} at 95%."
    )


def _median_example() -> str:
    found = median([4000, 3000, 3000], grr(3, "0.6"), SCORES)
    return (
        "4,000, 3,000 and 3,000 reports of the scores 1, 2, 3 at p = 0.6: estimated median "
        f"{found.estimate[0]:g}, from {found.conf_low[0]:g} to {found.conf_high[0]:g}."
    )


def _histogram_example() -> str:
    found = histogram([4000, 3000, 3000], grr(3, "0.6"), SCORES, [1, 2, 3])
    shares = ", ".join(f"{share:.1%}" for share in found.linear)
    return f"The same reports in the cells 1 and 2 to 3: {shares}."


NUMBERS = Chapter(
    "Means, medians and histograms",
    (
        Section(
            "mean",
            "Mean",
            "Every report gets a number a whose mean under each truth is the value x of that "
            "truth, and b whose mean is 1 where the truth is an answer and 0 where it is none. "
            "The mean among those who answered is the mean of a over that of b.",
            (
                Formula(
                    "m = ā / b̄, E[a | i] = x_i, E[b | i] = [i is an answer]",
                    "The mean is the average of a divided by the average of b.",
                ),
            ),
            runs=(mean, pseudo_values),
            sources=("Duchi, Jordan, Wainwright 2018", "Wang et al. 2019"),
            assumes="Options of a scale stand for their scores, a date for its day. People "
            "answered truthfully and independently.",
            cannot="Whether the steps between scores mean the same to everybody.",
            example=_mean_example,
        ),
        Section(
            "interval-t",
            "Student’s t",
            "The interval of a mean: Student’s of the reports’ numbers, Fieller’s where some "
            "truths are no answer; the end on the side to which reports lean lies further out. "
            "“With bias” adds the largest bias where the numbers are not exactly unbiased.",
            (
                Formula(
                    "m ± t_{n−1} s / √n",
                    "The mean plus or minus Student’s t times the standard deviation over root n.",
                ),
            ),
            runs=(mean,),
            sources=("Fieller 1954", "Johnson 1978"),
            assumes="By simulation at least .948 at 95% over nine mechanisms.",
            also=("with-bias",),
            example=_mean_example,
        ),
        Section(
            "median",
            "Median",
            "The least value with at least half of the answers at or below it, read from the shown "
            "distribution. Its interval holds every value that the intervals of the shares at or "
            "below do not refuse: one of the grid’s values, so both ends may be equal.",
            (
                Formula(
                    "F(x) ≥ ½ > F(x − step)",
                    "The first value x at which the share at or below is at least one half.",
                ),
            ),
            runs=(median, quantiles),
            sources=("Thompson 1936",),
            assumes="The design tells a distribution; one bit does not.",
            cannot=f"Grids whose table has more than {MOST_WEIGHTS:,} chances are left out.",
            example=_median_example,
        ),
        Section(
            "histogram",
            "Histogram",
            "The share of answers in each cell: the mean of a number that is 1 inside it and 0 "
            "outside, with the interval of such a mean, stretched to hold the shown share.",
            runs=(histogram, cells),
            assumes=f"Cells, at most {MOST_CELLS}, are those of the question and never depend on "
            "the answers. By simulation at least .944 of cells are covered at 95%.",
            cannot="A smooth picture never narrows the intervals, and is no finding.",
            example=_histogram_example,
        ),
        Section(
            "interval-em",
            "Expectation maximization",
            "How the shown distribution (mle) of a histogram and a median is found: the shares of "
            "all values under which these reports are most likely, smoothed for grids of 100 "
            "values and more. Intervals know nothing of it.",
            (
                Formula(
                    "π_i ← π_i Σ_y f_y P(y | i) / Σ_l π_l P(y | l)",
                    "Each share is multiplied by the average, over the reports, of their chance "
                    "under it divided by their chance under all shares, until nothing changes.",
                ),
            ),
            runs=(most_likely_mixture, smoothed_shares),
            sources=("Agrawal and Aggarwal 2001", "Li et al. 2020"),
            assumes="It stops at a stated tolerance; the flag says when it did not get there.",
            cannot="It is biased near the ends: add and compare the estimates instead.",
            also=("interval-smoothed",),
        ),
    ),
)
