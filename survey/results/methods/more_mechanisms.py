"""Methods of asking for numbers, dates and several ticks: what the integers on the device do."""

from __future__ import annotations

from survey.mechanism import multiple_choice, numeric
from survey.results.methods.mechanisms import explained
from survey.results.methods.section import Chapter

ON_A_GRID = "Answers are rounded to the grid before they are randomized; neighbours are any two."
REACH = "Little of a distribution can be told unless epsilon is large or the grid has few points."

NUMBERS = (
    explained(
        "geometric",
        "A two-sided geometric step is added to the place on the grid, and clamped to its ends.",
        (
            (
                "P(z) = (1 − a)/(1 + a) a^{|z|}, a = e^{−ε/(k − 1)}",
                "A step of z has chance one minus a over one plus a, times a to the size of z, "
                "with a equal to e to the minus epsilon over k minus one.",
            ),
        ),
        numeric.geometric,
        ("Ghosh, Roughgarden, Sundararajan 2012",),
        assumes=ON_A_GRID,
        cannot=REACH,
    ),
    explained(
        "laplace",
        "A Laplace step of scale (high − low)/ε, rounded to the grid and clamped to it.",
        (
            (
                "P(z) = P(z − ½ ≤ Laplace((k − 1)/ε) < z + ½)",
                "A step of z has the chance that a Laplace number of scale k minus one over "
                "epsilon lies within one half of z.",
            ),
        ),
        numeric.laplace,
        ("Dwork, McSherry, Nissim, Smith 2006",),
        assumes=ON_A_GRID,
        cannot=REACH,
    ),
    explained(
        "gaussian",
        "A normal step of standard deviation σ, rounded to the grid and clamped to it. Its epsilon "
        "is that of the integers: finite, because every weight is at least one.",
        (
            (
                "P(z) = Φ((z + ½)/σ) − Φ((z − ½)/σ)",
                "A step of z has the chance that a normal number lies within one half of z.",
            ),
        ),
        numeric.gaussian,
        ("Dwork and Roth 2014",),
        assumes=ON_A_GRID,
        cannot=REACH,
    ),
    explained(
        "square_wave",
        "A window of weight T around the truth, weight L elsewhere; for the distribution.",
        (
            (
                "b = (ε e^{ε} − e^{ε} + 1) / (2 e^{ε} (e^{ε} − 1 − ε))",
                "Half the window’s width is epsilon times e to the epsilon, minus e to the "
                "epsilon, plus one, over two e to the epsilon times e to the epsilon minus one "
                "minus epsilon.",
            ),
        ),
        numeric.square_wave,
        ("Li et al. 2020",),
        assumes=ON_A_GRID,
        cannot="Its mean varies more than that of one bit or the piecewise mechanism.",
    ),
    explained(
        "one_bit",
        "One bit, the likelier to be 1 the larger the answer x on the grid from 0 to R.",
        (
            (
                "P(1 | x) = (xT + (R − x) L) / (R (T + L))",
                "The bit is one with chance x T plus R minus x times L, over R times T plus L.",
            ),
        ),
        numeric.one_bit,
        ("Duchi, Jordan, Wainwright 2018",),
        assumes=ON_A_GRID,
        cannot="It tells a mean only: no median, no histogram.",
    ),
    explained(
        "piecewise",
        "A wide window of weight T that moves with the truth; its centre is linear in the truth, "
        "so that the mean comes back unbiased.",
        (
            (
                "width / movement = e^{−ε/2}",
                "The window is e to the minus half epsilon times as wide as it moves between the "
                "two ends of the grid.",
            ),
        ),
        numeric.piecewise,
        ("Wang et al. 2019",),
        assumes=ON_A_GRID,
        cannot="Shares of single values are told poorly.",
    ),
    explained(
        "hybrid",
        f"One bit up to epsilon {numeric.HYBRID_FROM}; above it piecewise with chance α, else one "
        "bit. Which of the two was used is open and says nothing about the answer.",
        (("α = 1 − e^{−ε/2}", "Alpha is one minus e to the minus half epsilon."),),
        numeric.hybrid,
        ("Wang et al. 2019",),
        assumes=ON_A_GRID,
        cannot="Where one bit runs there is no median and no histogram.",
    ),
)

TICKS = (
    explained(
        "bits",
        "Every option’s tick is reported as one bit, each kept with chance p, with its part of "
        "epsilon. D is the number of bits in which two answers can differ.",
        (
            (
                "p = T / (T + L), ε = D ln(T/L)",
                "p is T over T plus L; epsilon is D times the logarithm of T over L.",
            ),
        ),
        multiple_choice.bits,
        ("Warner 1965",),
        assumes="Every bit is always sent, ticked or not.",
        cannot="Such reports cannot be crossed with another question.",
    ),
    explained(
        "sampled_options",
        "Only s of the m options, drawn at random whatever the answer is, are reported, each with "
        "more of epsilon.",
        (
            (
                "ε = min(s, D) ln(T/L)",
                "Epsilon is the smaller of s and D, times the logarithm of T over L.",
            ),
        ),
        multiple_choice.sampled_options,
        ("Nguyen et al. 2016", "Wang et al. 2019"),
        assumes="Which options were drawn is open, and independent of the answer.",
        cannot="Each option’s n is the number of reports that told about it.",
    ),
    explained(
        "subsets",
        "Generalized randomized response over all sets of options that an answer can be.",
        (
            (
                "P(set holds j | j ticked) = p + (N_j − 1) q, P(set holds j | not) = N_j q",
                "A reported set holds option j with chance p plus N j minus one times q when j "
                "was ticked, and N j times q when not; N j is how many sets hold j.",
            ),
        ),
        multiple_choice.subsets,
        ("Kairouz, Oh, Viswanath 2016",),
        assumes="Few options: the sets are as many as two to the power of the options.",
        cannot="Shares of options do not add up to 100%.",
    ),
)

NUMBER_MECHANISMS = Chapter("Mechanisms for numbers and dates", NUMBERS)
TICK_MECHANISMS = Chapter("Mechanisms for several ticks", TICKS)
