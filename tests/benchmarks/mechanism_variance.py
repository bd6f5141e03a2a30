"""Compare the variance of the selected designs, exact and simulated, with their rivals'.

    python -m tests.benchmarks.mechanism_variance [--short]

The criterion is n Var of the linear
estimate of one option's share, including the sampling of respondents, averaged over the options at
shares pi = 1/k. The rivals use exactly our e^epsilon, r. A report supports an option with
probability p if the option is the truth, and with q otherwise ("pure protocols" in Wang, Blocki,
Li, Jha 2017). With lambda = q + (p-q)/k:

    n Var = lambda (1 - lambda) / (p - q)^2

    subset selection    p = dr/(dr+k-d), q = (p(d-1) + (1-p)d)/(k-1)     Ye and Barg 2018
    GRR                 p = r/(r+k-1),   q = 1/(r+k-1)                   Kairouz et al. 2016
    OUE                 p = 1/2,         q = 1/(r+1)                     Wang et al. 2017, 4.2
    OLH                 p = r/(r+g-1),   q = 1/g, the best integer g     Wang et al. 2017, 4.3
    Hadamard response   below, the best number of blocks B               Acharya, Sun, Zhang 2019

A second table compares the default design for numbers with one bit, hybrid and piecewise: n Var of
the estimated mean on [-1, 1] at the worst true answer, exact from the tables and pseudo-values in
use, for the same number of options without an answer.

A third table compares means by the optimal piecewise mechanism with those by the hybrid, the
baseline, and with the best tables that a linear programme finds: ratios of the widths of intervals.
A table at epsilon consists of reports with the weight r
under some answers and 1 under the others, of any frequency. The programme chooses the frequency of
each interval of answers and of each of `VALUES` as its pseudo-value, for the smallest variance in
the worst case or if all answers are equally frequent.

A fourth table compares the half-space with the other designs for several ticks, at the same total
epsilon: n Var of the share of an option that half of all people tick. Its closed form is compared
with a simulation of reports of people of whom each ticks each option with probability 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from survey.errors import ChannelError
from survey.estimator.core.debiasing import expected, pseudo_values
from survey.estimator.numbers.mean import DESIGNS, smallest_worst_variance, worst_variance
from survey.mechanism import HalfSpace, SubsetSelection, WeightTable, best, multiple_choice
from survey.mechanism.numeric import hybrid, optimal_piecewise
from survey.mechanism.simulation import population
from tests.benchmarks.short import benchmark_parser, reduced, require_range

OPTIONS = (2, 4, 5, 7, 10, 16, 64, 256)
EPSILONS = ("0.5", "1", "2", "4")
PEOPLE = 500
ROUNDS = 2_000
ROUNDING = 1e-9

POINTS = (2, 11, 101, 1000)
NUMBER_EPSILONS = ("0.5", "1", "2", "4", "8")
TOLERANCE = 1e-3
"""Allowance for grids above 101 points, which the selection compares at 101 points."""

LEAST_POINTS = 11
LEAST_EPSILONS = ("2", "3", "4")
VALUES = np.linspace(-2, 2, 161)
"""Pseudo-values of the tables of the linear programme."""
WIDEST = 1.02
"""Largest width of a planned interval relative to that of the best table."""

TICKS = (5, 10, 20, 32)
TICK_EPSILONS = ("1", "2", "4", "8")
TICK_TARGETS = {(10, "4"): 1.09, (20, "8"): 0.71}
"""Largest n Var of the half-space by options and epsilon, rounded to hundredths."""
TICK_PEOPLE = 100_000

SHORT = {
    "OPTIONS": (2, 4),
    "EPSILONS": ("1",),
    "ROUNDS": 100,
    "POINTS": (2, 11),
    "NUMBER_EPSILONS": ("1",),
    "LEAST_POINTS": 5,
    "LEAST_EPSILONS": ("2",),
    "TICKS": (5,),
    "TICK_EPSILONS": ("1",),
    "TICK_PEOPLE": 1_000,
}
MAX_DEVIATION = 6
"""A deviation of a simulation by more standard errors means a fault."""


def pure_variance(p: float, q: float, k: int) -> float:
    """Return n Var of a pure protocol at pi = 1/k."""
    rate = q + (p - q) / k
    return rate * (1 - rate) / (p - q) ** 2


def closed_form(channel: SubsetSelection) -> float:
    """Return n Var of a channel from its integers."""
    return pure_variance(channel.p, channel.q, channel.k)


def subset_selection(k: int, d: int, r: float) -> float:
    """Return n Var of subset selection with sets of size d."""
    p = d * r / (d * r + k - d)
    return pure_variance(p, (p * (d - 1) + (1 - p) * d) / (k - 1), k)


def grr(k: int, r: float) -> float:
    """Return n Var of generalized randomized response."""
    return pure_variance(r / (r + k - 1), 1 / (r + k - 1), k)


def oue(k: int, r: float) -> float:
    """Return n Var of optimized unary encoding: k bits, where a 1 stays 1 with probability 1/2."""
    return pure_variance(0.5, 1 / (r + 1), k)


def local_hashing(k: int, r: float, g: int) -> float:
    """Return n Var of GRR over g hash values, which two options share with probability 1/g."""
    return pure_variance(r / (r + g - 1), 1 / g, k)


def olh(k: int, r: float) -> float:
    """Return n Var of optimized local hashing: the best integer g near r + 1, the real optimum."""
    g_near = math.floor(r + 1)
    return min(local_hashing(k, r, g) for g in range(max(2, g_near - 2), g_near + 4))


def block_sizes(k: int, blocks: int) -> list[int]:
    """Return the number of options per block, as equal as possible."""
    return [k // blocks + (block < k % blocks) for block in range(blocks)]


def hadamard_response(k: int, r: float, blocks: int) -> float:
    """Return n Var of Hadamard response with B blocks, averaged over the options.

    An option's set is half of its block's reports; a report inside is r times as likely as one
    outside. With Z = r + 2B - 1 and S the block, P(set) - P(S)/2 = pi (r-1)/(2Z), so one report
    counts +-Z/(r-1) in its block and 0 elsewhere, and P(S) = (2 + pi_S (r-1))/Z:
    n Var = Z (2 + pi_S (r-1))/(r-1)^2 - pi^2, pi_S the share of the block.
    """
    Z = r + 2 * blocks - 1
    own_block = sum((size / k) ** 2 for size in block_sizes(k, blocks))
    return Z * (2 + own_block * (r - 1)) / (r - 1) ** 2 - 1 / k**2


def hadamard(k: int, r: float) -> float:
    """Return n Var of Hadamard response with the best power of two as the number of blocks."""
    powers = range(math.floor(math.log2(k)) + 1)
    return min(hadamard_response(k, r, 2**power) for power in powers)


RIVALS: dict[str, Callable[[int, float], float]] = {
    "GRR": grr,
    "OUE": oue,
    "OLH": olh,
    "Hadamard": hadamard,
}


def simulated_variance(
    channel: SubsetSelection, people: int, rounds: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return n Var over simulated surveys and its Monte Carlo standard error."""
    k = channel.k
    shares = np.full(k, 1 / k).tolist()
    squares = np.empty(rounds)
    for i in range(rounds):
        counts = population(channel, shares, people, rng)
        # pi = (c/n - q)/(p - q), its mean squared error over the options, times n.
        estimate = (counts / people - channel.q) / (channel.p - channel.q)
        squares[i] = people * np.mean((estimate - 1 / k) ** 2)
    return float(squares.mean()), float(squares.std(ddof=1) / math.sqrt(rounds))


def print_row(k: int, epsilon: str, rng: np.random.Generator) -> tuple[float, float]:
    """Print a row; return best/min(rivals) and the simulation's deviation in standard errors."""
    channel = best(k, epsilon)
    exact = closed_form(channel)
    variance, error = simulated_variance(channel, PEOPLE, ROUNDS, rng)
    rivals = {name: rival(k, float(channel.ratio)) for name, rival in RIVALS.items()}
    ratio, deviation = exact / min(rivals.values()), (variance - exact) / error
    figures = "".join(f"{value:>10.4g}" for value in (variance, exact, *rivals.values()))
    print(f"{k:>4}{epsilon:>8}{channel.d:>5}{figures}{deviation:>9.2f}{ratio:>8.4f}")
    return ratio, abs(deviation)


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        compare()


def compare() -> None:
    """Print all tables."""
    rng = np.random.default_rng(20261121)
    print(f"n Var at pi = 1/k; simulated: {ROUNDS:,} surveys of {PEOPLE} respondents")
    print(f"{'k':>4}{'epsilon':>8}{'d':>5}{'simulated':>10}{'exact':>10}", end="")
    print("".join(f"{name:>10}" for name in RIVALS) + f"{'diff, SE':>9}{'ratio':>8}")
    rows = [print_row(k, epsilon, rng) for k in OPTIONS for epsilon in EPSILONS]
    worst, deviation = (max(column) for column in zip(*rows, strict=True))
    require_range("deviation of the simulation", deviation, 0, MAX_DEVIATION)
    print(
        f"simulation against closed form: "
        f"at most {deviation:.2f} standard errors in {len(rows)} cells"
    )
    verdict = "reached" if worst <= 1 + ROUNDING else "MISSED"
    print(f"worst ratio best / min(rivals): {worst:.4f} (target <= 1: {verdict})")
    print_numbers()
    print_least()
    print_ticks(rng)


def print_numbers() -> None:
    """Print the table of designs for numbers."""
    print("\nn Var of the mean of numbers on [-1, 1], at the worst true answer")
    print(f"{'k':>5}{'epsilon':>8}{'silent':>7}" + "".join(f"{name:>11}" for name in DESIGNS))
    ratios = [
        print_number_row(k, epsilon, no_answers)
        for k in POINTS
        for epsilon in NUMBER_EPSILONS
        for no_answers in (0, 1)
    ]
    verdict = "reached" if max(ratios) <= 1 + TOLERANCE else "MISSED"
    print(f"worst ratio default / min(all): {max(ratios):.4f} (target <= 1: {verdict})")


def mean_variance(channel: WeightTable) -> float:
    """Return n Var of the mean on [-1, 1] if all answers are equally frequent."""
    x = np.linspace(-1, 1, channel.truths)
    return float(expected(channel, pseudo_values(channel, x, 1).values ** 2).mean())


def least_variance(k: int, r: float, *, worst: bool) -> float:
    """Return the smallest n Var of any table of intervals: in the worst case, or of the mean.

    With m_Ig >= 0 for the reports I with the pseudo-value g, and c_I(i) = r if i is in I, else 1:
    minimize the maximum, or the mean, over i of sum m_Ig c_I(i) g^2 (less x_i^2 in the worst
    case), where sum m_Ig c_I(i) = 1 and sum m_Ig c_I(i) g = x_i for every i.
    """
    x = np.linspace(-1, 1, k)
    i = np.arange(k)
    intervals = [(a, b) for a in range(k) for b in range(a, k) if b - a < k - 1]
    c = np.array([np.where((a <= i) & (i <= b), r, 1.0) for a, b in intervals]).T
    equal = np.vstack([np.kron(c, np.ones(len(VALUES))), np.kron(c, VALUES)])
    right = np.concatenate([np.ones(k), x])
    squares = np.kron(c, VALUES**2)
    if worst:
        # The last variable is the maximum.
        objective = np.append(np.zeros(squares.shape[1]), 1.0)
        limits = {"A_ub": csr_matrix(np.hstack([squares, -np.ones((k, 1))])), "b_ub": x**2}
        equal = np.hstack([equal, np.zeros((2 * k, 1))])
    else:
        objective, limits = squares.mean(axis=0), {}
    return float(linprog(objective, A_eq=csr_matrix(equal), b_eq=right, **limits).fun)


def print_least() -> None:
    """Print how much narrower intervals of means are than by the hybrid."""
    print(
        f"\nhow many times narrower than by the hybrid a mean's interval is, {LEAST_POINTS} points"
    )
    print(f"{'':>8}{'worst case':>32}{'answers equally frequent':>32}")
    names = f"{'optimal piecewise':>20}{'best table':>12}"
    print(f"{'epsilon':>8}{names}{names}{'ratio':>8}")
    ratios = []
    for epsilon in LEAST_EPSILONS:
        base, ours = (make(LEAST_POINTS, epsilon) for make in (hybrid, optimal_piecewise))
        gains: list[float] = []
        for worst, variance in ((True, worst_variance), (False, mean_variance)):
            least = least_variance(LEAST_POINTS, math.exp(float(epsilon)), worst=worst)
            gains += [math.sqrt(variance(base) / other) for other in (variance(ours), least)]
        ratios.append(gains[3] / gains[2])
        figures = "".join(f"{gain:>{20 - 8 * (i % 2)}.3f}" for i, gain in enumerate(gains))
        print(f"{epsilon:>8}{figures}{ratios[-1]:>8.3f}")
    verdict = "reached" if max(ratios) <= WIDEST else "MISSED"
    print(
        f"planned width / that of the best table: {max(ratios):.3f} (target <= {WIDEST}: {verdict})"
    )


def print_ticks(rng: np.random.Generator) -> None:
    """Print the table of designs for several ticks."""
    print("\nn Var of the share of one of several ticks, at a share of one half")
    names = [*multiple_choice.DESIGNS]
    print(f"{'m':>5}{'epsilon':>8}" + "".join(f"{name:>17}" for name in names), end="")
    print(f"{'split/half':>12}{'best/half':>11}{'diff, SE':>9}  selected")
    rows = [print_tick_row(m, epsilon, rng) for m in TICKS for epsilon in TICK_EPSILONS]
    selects_smallest = all(selected for selected, _ in rows)
    print(f"the design of the smallest variance is selected: {selects_smallest} (target True)")
    print(f"simulation: at most {max(deviation for _, deviation in rows):.2f} standard errors")
    for (m, epsilon), target in TICK_TARGETS.items():
        channel = multiple_choice.half_space(m, m, 0, epsilon)
        exact = round(multiple_choice.variance(channel, m, m, 0), 2)
        verdict = "reached" if exact <= target else "MISSED"
        print(f"half-space, {m} options, epsilon {epsilon}: {exact} (target {target}: {verdict})")


def print_tick_row(m: int, epsilon: str, rng: np.random.Generator) -> tuple[bool, float]:
    """Print a row; return whether the best design is selected, and the simulation's deviation."""
    variances = {}
    for name, design in multiple_choice.DESIGNS.items():
        try:
            variances[name] = multiple_choice.variance(design(m, m, 0, epsilon), m, m, 0)
        except ChannelError:
            variances[name] = math.inf  # too many sets of options
    half = variances["half_space"]
    others = min(value for name, value in variances.items() if name != "half_space")
    selected = multiple_choice.smallest_variance(m, m, 0, epsilon)[0]
    deviation = half_space_deviation(multiple_choice.half_space(m, m, 0, epsilon), rng)
    figures = "".join(f"{value:>17.4g}" for value in variances.values())
    print(f"{m:>5}{epsilon:>8}{figures}{variances['bits'] / half:>12.2f}", end="")
    print(f"{others / half:>11.3f}{deviation:>9.2f}  {selected}")
    return variances[selected] <= min(half, others), deviation


def half_space_deviation(channel: HalfSpace, rng: np.random.Generator) -> float:
    """Return the largest deviation of a simulated share of right bits, in standard errors."""
    truths = rng.integers(0, 2, (TICK_PEOPLE, channel.m))
    right = (channel.perturb(truths, rng) == truths).mean(axis=0)
    error = math.sqrt(channel.p * channel.q / TICK_PEOPLE)
    return float(np.abs(right - channel.p).max() / error)


def print_number_row(k: int, epsilon: str, no_answers: int) -> float:
    """Print a row; return default/min(all)."""
    worst = {name: worst_variance(make(k, epsilon, no_answers)) for name, make in DESIGNS.items()}
    default = smallest_worst_variance(k, epsilon, no_answers)
    figures = "".join(f"{value:>11.4f}" for value in worst.values())
    print(f"{k:>5}{epsilon:>8}{no_answers:>7}{figures}  {default}")
    return worst[default] / min(worst.values())


if __name__ == "__main__":
    main()
