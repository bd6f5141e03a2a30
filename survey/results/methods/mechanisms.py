"""Methods of asking for one answer of several: what the integers on the device do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from survey.mechanism import best, classical, grr
from survey.mechanism.accounting import format_epsilon
from survey.results.estimates.table import MECHANISMS
from survey.results.methods.section import Chapter, Formula, Section

TABLE = "With more than two options it has no single p and q: see the score interval."
HAND = "The device throws the coins; with T and L as weights nobody has to trust a human hand."


def anchor_of_mechanism(name: str) -> str:
    """The section that explains a mechanism, by its name in definitions.

    >>> anchor_of_mechanism("grr")
    'mechanism-grr'
    """
    return f"mechanism-{name}"


NAMES_IN_WORDS: Mapping[str, str] = {words: name for name, words in MECHANISMS.items()}
"""The name in definitions of each mechanism that a row names in words."""


def explained(
    name: str,
    says: str,
    formulas: tuple[tuple[str, str], ...],
    run: Callable[..., object],
    sources: tuple[str, ...],
    *,
    assumes: str,
    cannot: str,
) -> Section:
    """The section of a mechanism, under the name that rows give it."""
    return Section(
        anchor_of_mechanism(name),
        MECHANISMS[name][0].upper() + MECHANISMS[name][1:],
        says,
        tuple(Formula(*formula) for formula in formulas),
        runs=(run,),
        sources=sources,
        assumes=assumes,
        cannot=cannot,
        example=EXAMPLES.get(name),
    )


def _grr_example() -> str:
    channel = grr(3, "3/4")
    return (
        f"Three options at p = 3/4: weights T = {channel.T} and L = {channel.L}, q = "
        f"{channel.q:g}, epsilon {format_epsilon(channel.epsilon)}."
    )


def _best_example() -> str:
    channel = best(64, 1)
    return f"64 options at epsilon 1: sets of d = {channel.d}, T/L = {channel.T}/{channel.L}."


def _coins_example() -> str:
    coins = classical.two_coins("1/2", "1/2")
    yes = float(coins.matrix[:, 0] @ [0.2001, 0.7999])
    return f"Two fair coins: a true share of 20.01% is reported as {yes:.3%}."


EXAMPLES: Mapping[str, Callable[[], str]] = {
    "grr": _grr_example,
    "best": _best_example,
    "two_coins": _coins_example,
}

CHOICES = (
    explained(
        "grr",
        "Of k options the true one is reported with chance p, each other one with chance q. With "
        "two options it is Warner’s design.",
        (
            (
                "p = T / (T + (k − 1) L), q = L / (T + (k − 1) L), ε = ln(T/L)",
                "p is T divided by T plus k minus one times L; q is L divided by the same; "
                "epsilon is the logarithm of T over L.",
            ),
        ),
        grr,
        ("Warner 1965", "Kairouz, Oh, Viswanath 2016"),
        assumes="Sent once and never drawn again: every new draw would average the answer out.",
        cannot="A report of the true answer looks like any other.",
    ),
    explained(
        "best",
        "The report is a set of d of the k options. A set that holds the truth has weight T, any "
        "other L. d is the one with the smallest variance at equal shares; d = 1 is generalized "
        "randomized response.",
        (
            ("p = dT / (dT + (k − d) L)", "p is d T divided by d T plus k minus d times L."),
            (
                "q = p (d − 1)/(k − 1) + (1 − p) d/(k − 1)",
                "q is p times d minus one over k minus one, plus one minus p times d over k minus "
                "one.",
            ),
        ),
        best,
        ("Ye and Barg 2018",),
        assumes="Each option’s support is one binomial count with this p and q.",
        cannot="Counts of sets with 1 < d < k − 1 do not tell the likelihood of the sets: the most "
        "likely shares are then the nearest possible ones.",
    ),
    explained(
        "warner",
        "With chance p the question, otherwise its opposite.",
        (
            (
                "P(yes | yes) = P(no | no) = p, ε = |ln(p / (1 − p))|",
                "Yes is reported for yes, and no for no, with chance p; epsilon is the size of "
                "the logarithm of p over one minus p.",
            ),
        ),
        classical.warner,
        ("Warner 1965",),
        assumes=HAND,
        cannot=TABLE,
    ),
    explained(
        "two_coins",
        "Heads, with chance t: the truth. Tails: a second coin says yes with chance y, whatever is "
        "true.",
        (
            (
                "P(yes | yes) = t + (1 − t) y, P(yes | no) = (1 − t) y",
                "Yes is reported for yes with chance t plus one minus t times y, for no with "
                "chance one minus t times y.",
            ),
        ),
        classical.two_coins,
        ("Boruch 1971", "Dwork and Roth 2014"),
        assumes=HAND,
        cannot=TABLE,
    ),
    explained(
        "forced_response",
        "With chance t the truth, otherwise option j with chance f_j, whatever is true.",
        (
            (
                "P(j | i) = t [i = j] + (1 − t) f_j, ε = ln max_j (1 + t / ((1 − t) f_j))",
                "Option j is reported with chance one minus t times f j, plus t where it is true; "
                "epsilon is the logarithm of the largest one plus t over one minus t times f j.",
            ),
        ),
        classical.forced_response,
        ("Boruch 1971", "Fox and Tracy 1986"),
        assumes=HAND,
        cannot=TABLE,
    ),
    explained(
        "unrelated_question",
        "With chance p the question, otherwise a harmless one whose share u of yes is known.",
        (
            (
                "P(yes | yes) = p + (1 − p) u, P(yes | no) = (1 − p) u",
                "Yes is reported for yes with chance p plus one minus p times u, for no with "
                "chance one minus p times u.",
            ),
        ),
        classical.unrelated_question,
        ("Greenberg, Abul-Ela, Simmons, Horvitz 1969",),
        assumes="u is right: the device draws it, so it is.",
        cannot=TABLE,
    ),
    explained(
        "exponential",
        "Report j is the likelier the more useful it is for the truth i, by a table u of "
        "utilities whose largest difference within a column is d.",
        (
            (
                "P(j | i) ∝ exp(ε u_{ij} / (2d))",
                "The chance of report j under truth i is proportional to the exponential of "
                "epsilon times u i j over two d.",
            ),
        ),
        classical.exponential,
        ("McSherry and Talwar 2007",),
        assumes="Weights are integers; their own epsilon is shown, at most the asked one.",
        cannot=TABLE,
    ),
)

CHOICE_MECHANISMS = Chapter("Mechanisms for one answer of several", CHOICES)
