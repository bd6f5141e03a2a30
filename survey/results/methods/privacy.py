"""Methods of privacy: what leaves a device, what it can prove, and when it becomes readable."""

from __future__ import annotations

import math
from fractions import Fraction

from survey.disclosure import MINIMUM_REPORTS, OTHER_GROUPS, merge_small_strata, secure_permutation
from survey.mechanism import grr
from survey.mechanism.accounting import (
    format_epsilon,
    log_rounded_up,
    posterior_bound,
    total_epsilon,
    total_ratio,
)
from survey.mechanism.channel import PureChannel
from survey.mechanism.weight_table import largest_ratio
from survey.results.methods.section import Chapter, Formula, Section

SUSPICION = Fraction(1, 10)


def _epsilon_example() -> str:
    channel = grr(2, "3/4")
    return (
        f"Yes or no with p = {channel.p:g}: T/L = {channel.ratio}, epsilon = "
        f"{format_epsilon(channel.epsilon)}."
    )


def _odds_example() -> str:
    ratio = grr(2, "3/4").ratio
    after = posterior_bound(SUSPICION, ratio)
    return (
        f"With e^epsilon = {ratio} a suspicion of {float(SUSPICION):.0%} becomes at most "
        f"{float(after):.0%}."
    )


def _total_example() -> str:
    ratios = [grr(2, "3/4").ratio] * 2
    return (
        f"Two questions of e^epsilon = 3 together: {total_ratio(ratios)}, epsilon = "
        f"{format_epsilon(total_epsilon(ratios))} = 2 × {math.log(3):.4f}, rounded up."
    )


PRIVACY = Chapter(
    "What is sent, and what it can prove",
    (
        Section(
            "truth-probability",
            "Truth probability p, and q",
            "p is the chance that a report supports the answer that is true, q that it supports "
            "any one answer that is not; D is their difference. Both are fractions of the integers "
            "that the device draws with; nothing is a rounded decimal.",
            (
                Formula(
                    "P(report supports j | j is true) = p, P(report supports j | j is not) = q",
                    "The chance that a report supports answer j is p when j is true and q when "
                    "it is not.",
                ),
                Formula("D = p − q", "D is p minus q."),
            ),
            runs=(PureChannel,),
            assumes="The device ran the published definition, whose hash it checks.",
            cannot="Tables of weights have no single p; their mechanism’s section has the chances.",
        ),
        Section(
            "epsilon",
            "Epsilon of a question",
            "How much one report can tell about one answer: the logarithm of the largest factor "
            "between the chances of any report under any two answers. It is computed from the "
            "integers that run, and always rounded up.",
            (
                Formula(
                    "ε = ln max_{y} max_{x,x′} P(y | x) / P(y | x′)",
                    "Epsilon is the logarithm of the largest ratio, over all reports y and all "
                    "pairs of true answers, of the chance of y under one to that under the other.",
                ),
                Formula("ε = ln(T/L)", "With two weights: the logarithm of T divided by L."),
            ),
            runs=(PureChannel, largest_ratio, log_rounded_up),
            sources=("Dwork and Roth 2014",),
            assumes="The device’s random numbers are the system’s own cryptographic ones.",
            cannot="That somebody took part, and the network address at the moment of sending, are "
            "outside it.",
            example=_epsilon_example,
        ),
        Section(
            "total-epsilon",
            "Total epsilon of a survey",
            "All reports of one person together: the ratios multiply, the epsilons add up "
            "(basic composition). Rows of the released reports hold one person’s reports to all "
            "questions side by side, so this is the figure that counts for them.",
            (
                Formula(
                    "ε_{total} = Σ ε_{question}",
                    "Total epsilon is the sum of the epsilons of all questions that one person "
                    "answers.",
                ),
            ),
            runs=(total_ratio, total_epsilon),
            sources=("Dwork and Roth 2014",),
            assumes="Each question is randomized on its own, which the audit proves of the client.",
            cannot="Answers to other surveys add to it; nobody here can count those.",
            example=_total_example,
        ),
        Section(
            "odds",
            "By how much a report can move odds",
            "Whatever somebody believed before, a report multiplies the odds of any answer "
            "against any other by at most e to the power of epsilon.",
            (
                Formula(
                    "posterior ≤ prior e^{ε} / (prior e^{ε} + 1 − prior)",
                    "The posterior chance is at most prior times e to the epsilon, divided by that "
                    "same product plus one minus the prior.",
                ),
            ),
            runs=(posterior_bound,),
            assumes="Nothing about what anybody knows beforehand.",
            cannot="What is true of a group may be learned well, and so guessed of its members.",
            example=_odds_example,
        ),
        Section(
            "release",
            "Released reports, n",
            "What waits is released in steps: shuffled together with the newest block by the "
            "system’s random generator, then added to the counts. Every figure is made of released "
            "reports alone, so that nobody’s single arrival can be watched; what is left at the "
            "close is released then, however few.",
            runs=(secure_permutation,),
            assumes="The step’s least size is the server’s setting and stands on the dashboard.",
            cannot="What changes between two releases belongs to the people of that step together.",
            also=("n-reports",),
        ),
        Section(
            "strata",
            "Links (strata) and small ones",
            f"A link with fewer than {MINIMUM_REPORTS} released reports is never read by its own "
            f"name: the smallest are read together as “{OTHER_GROUPS}” until they are enough.",
            runs=(merge_small_strata,),
            assumes="Which link somebody got is openly known, never an answer.",
            cannot="Groups of people by what they REPORTED are not strata: filtering by a report "
            "is biased, a cross-tab is not.",
        ),
        Section(
            "microdata",
            "Perturbed microdata",
            "The released reports themselves: a row for each, with the code of every question as "
            "its channel reports it, without ids, times or an order that tells anything. Each row "
            "was randomized on the respondent’s device, so its epsilon holds for whoever reads it, "
            "whatever they do with it: what is computed from reports costs no privacy.",
            (
                Formula(
                    "P(f(Y) ∈ S | x) ≤ e^{ε} P(f(Y) ∈ S | x′)",
                    "Whatever is computed from a report Y, the chance of any result under one "
                    "answer is at most e to the epsilon times that under another.",
                ),
            ),
            runs=(merge_small_strata, secure_permutation, total_ratio),
            sources=("Dwork and Roth 2014",),
            assumes="Published once, they cannot be taken back; published again after more "
            "releases, the difference of both files is the reports of the steps between, at the "
            "close however few: best is once, after it.",
            cannot="A row never proves an answer. Filtering rows by a reported answer is biased: "
            "debias with the channels that come with the file.",
        ),
    ),
)
