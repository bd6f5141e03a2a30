"""Methods of shares: estimates, errors, and those among who answered."""

from __future__ import annotations

from survey.estimator import (
    answered_shares,
    debias,
    no_answer_shares,
    norm_sub,
    proportions,
    set_shares,
    subset_shares,
)
from survey.estimator.core.intervals import fixed_population
from survey.estimator.core.likelihood import most_likely_of_supports
from survey.estimator.core.moments import binary_error, effective_answers, seen_variance
from survey.mechanism import grr
from survey.results.methods.section import Chapter, Formula, Section

COUNTS, CHANNEL = [700, 1300], grr(2, "3/4")
"""The worked case: 2,000 reports of a yes-or-no question at p = 3/4."""

NEVER_TRUTH = "Whether people answered truthfully: only prevalence times candour is identified."


def percent_of(share: float, decimals: int = 1) -> str:
    return f"{share:.{decimals}%}"


def _share_example() -> str:
    estimate = float(debias(COUNTS[0] / sum(COUNTS), CHANNEL))
    return (
        f"{COUNTS[0]:,} of {sum(COUNTS):,} reports say yes, p = {CHANNEL.p:g}, q = {CHANNEL.q:g}: "
        f"estimated {percent_of(estimate)}."
    )


def _error_example() -> str:
    found = proportions(COUNTS, CHANNEL)
    return (
        f"The same reports: standard error {percent_of(float(found.std_error[0]), 2)}; "
        f"{found.n_effective[0]:.0f} open answers would tell as much."
    )


def answered_example() -> str:
    found = answered_shares([400, 1000, 600], grr(3, "3/4"), [2])
    yes, low, high = (
        percent_of(float(ends[0])) for ends in (found.estimate, found.conf_low, found.conf_high)
    )
    return (
        "400, 1,000 and 600 reports of yes, no and “prefer not to say” at p = 3/4: an estimated "
        f"{percent_of(found.answered)} answered, of whom {yes} yes, from {low} to {high}."
    )


SHARES = Chapter(
    "Shares",
    (
        Section(
            "share",
            "Estimated share",
            "The share of people for whom an option is true, by inverting the randomization: "
            "c_j of n reports support option j. Unbiased and not clipped: it may lie below 0 or "
            "above 100%, so that estimates add up. Tables of weights are read by the row g of "
            "numbers, one per report, whose mean over the reports is unbiased for the share.",
            (
                Formula(
                    "π_j = (f_j − q) / D, f_j = c_j / n",
                    "The estimated share is the share of reports less q, divided by D.",
                ),
                Formula("E[f_j] = q + D π_j", "On average the share of reports is q plus D pi."),
            ),
            runs=(proportions, debias, set_shares, subset_shares),
            sources=("Warner 1965", "Kairouz, Oh, Viswanath 2016"),
            assumes="People answered truthfully and independently, and their devices ran the "
            "published channel.",
            cannot=NEVER_TRUTH,
            also=("all", "estimate"),
            example=_share_example,
        ),
        Section(
            "report-share",
            "Share of reports",
            "How many reports support an option, before anything is inverted. It is data, not an "
            "estimate: at small epsilon it is near the same for every answer.",
            (Formula("f_j = c_j / n", "The count of option j divided by n."),),
            runs=(debias,),
            cannot="It is no share of people.",
        ),
        Section(
            "mle",
            "Most likely share (mle)",
            "The shares within 0 to 100% under which these reports are most likely: for display "
            "alone, because they are biased near the ends. Where counts do not tell the "
            "likelihood, the possible shares nearest to the estimate.",
            (
                Formula(
                    "λ_j = max(q, c_j / τ), Σ λ_j = 1",
                    "For generalized randomized response: each share of reports is the larger of "
                    "q and its count over tau, with tau such that they add up to one.",
                ),
            ),
            runs=(most_likely_of_supports, norm_sub),
            cannot="Not to be added, averaged or compared: use the estimate.",
        ),
        Section(
            "std-error",
            "Standard error and effective answers",
            "The standard error holds sampling and randomization together. The effective number is "
            "how many answers given openly would tell as much. Where all reports are alike the "
            "error is that of the randomization, never 0.",
            (
                Formula(
                    "SE = √(f (1 − f) / n) / |D|",
                    "The standard error is the root of f times one minus f over n, divided by the "
                    "size of D.",
                ),
                Formula(
                    "n_{eff} = π (1 − π) / SE², π within 1 and 99%",
                    "The effective number is pi times one minus pi over the squared standard "
                    "error, pi clipped to 1 and 99 per cent.",
                ),
            ),
            runs=(binary_error, seen_variance, effective_answers),
            also=("n-effective",),
            example=_error_example,
        ),
        Section(
            "respondents",
            "Shares of these respondents alone",
            "Who was asked is taken as given, and only the randomization is left: of the n people "
            "themselves, not of a population.",
            (
                Formula(
                    "Var = (π p (1 − p) + (1 − π) q (1 − q)) / (n D²)",
                    "The variance is pi times p times one minus p, plus one minus pi times q times "
                    "one minus q, over n times D squared.",
                ),
            ),
            runs=(proportions, fixed_population),
            cannot="It does not cover the population’s share: it leaves out what sampling adds.",
        ),
        Section(
            "answered",
            "Of those who answered",
            "The “valid per cent”: the share of an answer among the people who gave one, as the "
            "ratio of two debiased sums. A is the estimated share of people who answered.",
            (
                Formula("R_j = π_j / A", "The ratio of pi j to A."),
                Formula(
                    "A = 1 − Σ π of options that are no answer",
                    "A is one minus the shares of the options that are no answer.",
                ),
            ),
            runs=(answered_shares,),
            sources=("Fieller 1954",),
            assumes="A is clearly above 0; otherwise nothing is shown.",
            cannot="Why people did not answer, and what they would have said.",
            example=answered_example,
        ),
        Section(
            "no-answer",
            "Share of those who did not answer",
            "Of questions for a number or a date, the share of “prefer not to say” and “does not "
            "apply”, which are truths and reports of their own in the table.",
            runs=(no_answer_shares,),
            cannot=NEVER_TRUTH,
        ),
    ),
)
