"""Methods of intervals: every one that a row may have, and what each promises."""

from __future__ import annotations

from survey.estimator import answered_shares, proportions
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    SIMULTANEOUS_DEFAULT,
    clopper_pearson,
    feldman_cousins,
    fixed_population,
    score_ends,
    wilson,
    wilson_hull,
)
from survey.estimator.shares.answered import HALF, QUARTER
from survey.estimator.shares.binomial import Asked
from survey.results.methods.section import Chapter, Formula, Section
from survey.results.methods.shares import (
    CHANNEL,
    COUNTS,
    NEVER_TRUTH,
    answered_example,
    percent_of,
)

MAPPED = Formula(
    "[π_{low}, π_{high}] = ([λ_{low}, λ_{high}] − q) / D, clipped to [0, 1]",
    "The interval of the share of reports, less q, divided by D, and clipped to zero and one.",
)


def anchor_of_interval(method: str) -> str:
    """The section that explains what a row's `method` says, whatever was added to its name.

    >>> anchor_of_interval("clopper-pearson, simultaneous"), anchor_of_interval("t, with bias")
    ('interval-clopper-pearson', 'interval-t')
    """
    return f"interval-{method.split(',')[0]}"


def _ends(interval: str, *, target: str = "population", simultaneous: bool = False) -> str:
    found = proportions(
        COUNTS, CHANNEL, interval=interval, target=target, simultaneous=simultaneous
    )
    low, high = float(found.conf_low[0]), float(found.conf_high[0])
    return (
        f"{COUNTS[0]:,} of {sum(COUNTS):,} reports at p = {CHANNEL.p:g}: from {percent_of(low, 2)} "
        f"to {percent_of(high, 2)} at 95%."
    )


INTERVALS = Chapter(
    "Intervals",
    (
        Section(
            "interval",
            "What an interval promises",
            "Of many surveys made like this one, as many per cent of the intervals as their level "
            "says hold the true share; how nearly each kind keeps that is said with it. It holds "
            "sampling and randomization, is made for the share λ of reports, known to lie between "
            "q and p, and mapped to the share of people.",
            (MAPPED,),
            runs=(proportions,),
            assumes="As for the estimate.",
            cannot=NEVER_TRUTH,
            also=("conf-low", "conf-high", "conf-level", "level"),
        ),
        Section(
            f"interval-{DEFAULT_INTERVAL}",
            "Feldman and Cousins",
            "The usual interval. Outcomes are ordered by their likelihood under λ against that "
            "under the best λ in the range, and accepted until their probability reaches the "
            "level; the interval is the hull of all λ that accept what was seen. Exact at every n; "
            "never empty.",
            (
                Formula(
                    "R(c; λ) = log L(λ; c) − log L(clip(c/n, q, p); c)",
                    "Outcomes are ranked by the log likelihood of lambda less that of the best "
                    "lambda between q and p.",
                ),
                MAPPED,
            ),
            runs=(feldman_cousins,),
            sources=("Feldman and Cousins 1998",),
            assumes="At least the asked coverage for every true share (enumerated).",
            cannot="The estimate is not clipped, so it may lie outside its interval.",
            example=lambda: _ends(DEFAULT_INTERVAL),
        ),
        Section(
            "interval-wilson",
            "Wilson",
            "The textbook’s score interval for the share of reports, mapped.",
            (
                Formula(
                    "(f + z²/2n ± z √(f (1 − f)/n + z²/4n²)) / (1 + z²/n)",
                    "f plus z squared over two n, plus or minus z times the root of f times one "
                    "minus f over n plus z squared over four n squared, all over one plus z "
                    "squared over n.",
                ),
                MAPPED,
            ),
            runs=(wilson,),
            sources=("Wilson 1927",),
            assumes="Coverage at 95% falls to .931.",
            cannot="All of it may lie outside 0 to 100%: its width is then zero.",
            example=lambda: _ends("wilson"),
        ),
        Section(
            "interval-wilson-hull",
            "Wilson’s hull",
            "Wilson’s interval, widened inwards to the likelihood-ratio end where reports are "
            "rarer than q or commoner than p, so that it always has a width.",
            (MAPPED,),
            runs=(wilson_hull,),
            sources=("Wilson 1927",),
            assumes="n times the rarer of q and 1 − p at least 200: coverage above .944 at 95%.",
            cannot="With fewer reports coverage can fall to .87.",
            example=lambda: _ends("wilson-hull"),
        ),
        Section(
            "interval-clopper-pearson",
            "Clopper and Pearson",
            "The exact interval of equal tails, mapped and widened inwards like the hull.",
            (
                Formula(
                    "λ_{low} = Beta^{−1}(α/2; c, n − c + 1), "
                    "λ_{high} = Beta^{−1}(1 − α/2; c + 1, n − c)",
                    "Quantiles of beta distributions at alpha over two and one minus alpha over "
                    "two.",
                ),
                MAPPED,
            ),
            runs=(clopper_pearson,),
            sources=("Clopper and Pearson 1934",),
            assumes="At least the asked coverage, always.",
            cannot="Wider than need be, by some 4% on average.",
            example=lambda: _ends("clopper-pearson"),
        ),
        Section(
            "simultaneous",
            "All shares of a question at once",
            "Every interval is made at a higher level, so that all k of a question hold together "
            "(Bonferroni). With the usual interval it is Clopper and Pearson’s.",
            (
                Formula(
                    "each at 1 − (1 − level)/k",
                    "Each interval has level one minus one minus the level over k.",
                ),
            ),
            runs=(Asked.each,),
            example=lambda: _ends(SIMULTANEOUS_DEFAULT, simultaneous=True),
        ),
        Section(
            "interval-fixed-population",
            "Fixed population",
            "For the share among these very respondents: the score interval with the variance of "
            "the randomization alone, moved out by C reports because reports are whole.",
            (
                Formula(
                    "|f − λ| ≤ C/n + z √(V(λ)/n), V = π p (1 − p) + (1 − π) q (1 − q)",
                    "All lambda whose distance from f is at most C over n plus z times the root of "
                    "V over n.",
                ),
            ),
            runs=(fixed_population,),
            assumes="By enumeration coverage is at least .952 at 95%.",
            cannot="The population’s share.",
            example=lambda: _ends(DEFAULT_INTERVAL, target="respondents"),
        ),
        Section(
            "interval-score",
            "Score interval of a table",
            "Of mechanisms without one p and q: each report gets a number g with mean 1 under one "
            "truth and 0 under all others; own and other are its mean squares there.",
            (
                Formula(
                    "n (π̂ − π)² ≤ z² (π own + (1 − π) other − π²)",
                    "All pi for which n times the squared distance from the estimate is at most z "
                    "squared times pi own plus one minus pi other minus pi squared.",
                ),
            ),
            runs=(score_ends,),
            sources=("Wilson 1927", "Hall 1992"),
            assumes="Approximate; with two options it is Wilson’s.",
            cannot="Where different shares give the same reports nothing is estimated at all.",
        ),
        Section(
            "interval-fieller",
            "Fieller",
            "For ratios: all r that the two estimates do not contradict, by the variance they have "
            f"if r is true; moved out by {QUARTER:g} of a report, {HALF:g} for these respondents.",
            (
                Formula(
                    "(π_j − r A)² ≤ z² V(r)",
                    "All r for which the square of pi minus r A is at most z squared times the "
                    "variance of that difference.",
                ),
            ),
            runs=(answered_shares,),
            sources=("Fieller 1954", "Wilson 1927"),
            assumes="By enumeration at least .934 at 95% wherever it is not refused.",
            cannot="Nothing where hardly anybody answered: it is refused then.",
            also=("interval-fixed-population-fieller",),
            example=answered_example,
        ),
    ),
)
