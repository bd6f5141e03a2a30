"""Variance of the designs that are picked, exact and simulated, beside their rivals'.

Run as `python -m tests.benchmarks.mechanism_variance`. Compared is n Var of the linear estimate
of one option's share, randomization and sampling of people together, averaged over the options,
when all k shares are pi = 1/k; the rivals at exactly the e^epsilon of our integers, r. With p and
q the chances that a report supports an option that is, and that is not, the truth (Wang, Blocki,
Li, Jha 2017, "pure protocols"), lambda = q + (p-q)/k:

    n Var = lambda (1 - lambda) / (p - q)^2

    subset selection    p = dr/(dr+k-d), q = (p(d-1) + (1-p)d)/(k-1)     Ye and Barg 2018
    GRR                 p = r/(r+k-1),   q = 1/(r+k-1)                   Kairouz et al. 2016
    OUE                 p = 1/2,         q = 1/(r+1)                     Wang et al. 2017, 4.2
    OLH                 p = r/(r+g-1),   q = 1/g, the best integer g     Wang et al. 2017, 4.3
    Hadamard response   below, the best number of blocks B               Acharya, Sun, Zhang 2019

Then the design that numbers get when none is named: n Var of the estimated mean on [-1, 1] for the
true answer where it is largest, exact from the tables with the pseudo-values that run, beside one
bit, hybrid and piecewise, with as many options that are no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from survey.estimator.numbers.mean import DESIGNS, smallest_worst_variance, worst_variance
from survey.mechanism import SubsetSelection, best
from survey.mechanism.simulation import population

OPTIONS = (2, 4, 5, 7, 10, 16, 64, 256)
EPSILONS = ("0.5", "1", "2", "4")
PEOPLE = 500
ROUNDS = 2_000
ROUNDING = 1e-9

POINTS = (2, 11, 101, 1000)
NUMBER_EPSILONS = ("0.5", "1", "2", "4", "8")
COMPARED = 1e-3
"""Grids above 101 points are compared at 101."""


def of_pure(p: float, q: float, k: int) -> float:
    """n Var of a pure protocol at pi = 1/k."""
    reported = q + (p - q) / k
    return reported * (1 - reported) / (p - q) ** 2


def closed_form(channel: SubsetSelection) -> float:
    """n Var of the channel itself, from its integers."""
    return of_pure(channel.p, channel.q, channel.k)


def of_sets(k: int, d: int, r: float) -> float:
    """Subset selection with sets of d."""
    p = d * r / (d * r + k - d)
    return of_pure(p, (p * (d - 1) + (1 - p) * d) / (k - 1), k)


def grr(k: int, r: float) -> float:
    """Generalized randomized response."""
    return of_pure(r / (r + k - 1), 1 / (r + k - 1), k)


def oue(k: int, r: float) -> float:
    """Optimized unary encoding: k bits, a one kept with chance 1/2."""
    return of_pure(0.5, 1 / (r + 1), k)


def local_hashing(k: int, r: float, g: int) -> float:
    """GRR over g values of a hash that two options share with chance 1/g."""
    return of_pure(r / (r + g - 1), 1 / g, k)


def olh(k: int, r: float) -> float:
    """Optimized local hashing: near g = r + 1, which real numbers would make the best."""
    near = math.floor(r + 1)
    return min(local_hashing(k, r, g) for g in range(max(2, near - 2), near + 4))


def blocks_of(k: int, blocks: int) -> list[int]:
    """Options per block, as equal as they can be."""
    return [k // blocks + (block < k % blocks) for block in range(blocks)]


def hadamard_response(k: int, r: float, blocks: int) -> float:
    """n Var of Hadamard response with B blocks, averaged over the options.

    An option's set is half of its block's reports; a report inside is r times as likely as one
    outside. With Z = r + 2B - 1 and S the block, P(set) - P(S)/2 = pi (r-1)/(2Z), so one report
    counts +-Z/(r-1) in its block and 0 elsewhere, and P(S) = (2 + pi_S (r-1))/Z:
    n Var = Z (2 + pi_S (r-1))/(r-1)^2 - pi^2, pi_S the share of the block.
    """
    Z = r + 2 * blocks - 1
    own_block = sum((size / k) ** 2 for size in blocks_of(k, blocks))
    return Z * (2 + own_block * (r - 1)) / (r - 1) ** 2 - 1 / k**2


def hadamard(k: int, r: float) -> float:
    """Hadamard response with the best power of two of blocks, the paper's choice among them."""
    powers = range(math.floor(math.log2(k)) + 1)
    return min(hadamard_response(k, r, 2**power) for power in powers)


RIVALS: dict[str, Callable[[int, float], float]] = {
    "GRR": grr,
    "OUE": oue,
    "OLH": olh,
    "Hadamard": hadamard,
}


def simulated(
    channel: SubsetSelection, people: int, rounds: int, rng: np.random.Generator
) -> tuple[float, float]:
    """n Var seen in so many surveys of so many people, and its Monte Carlo standard error."""
    k = channel.k
    shares = np.full(k, 1 / k).tolist()
    squares = np.empty(rounds)
    for i in range(rounds):
        counts = population(channel, shares, people, rng)
        # pi = (c/n - q)/(p - q), its mean squared error over the options, times n.
        estimate = (counts / people - channel.q) / (channel.p - channel.q)
        squares[i] = people * np.mean((estimate - 1 / k) ** 2)
    return float(squares.mean()), float(squares.std(ddof=1) / math.sqrt(rounds))


def row(k: int, epsilon: str, rng: np.random.Generator) -> tuple[float, float]:
    """Print one line; returns best/min(others) and how far the simulation is off."""
    channel = best(k, epsilon)
    exact = closed_form(channel)
    seen, error = simulated(channel, PEOPLE, ROUNDS, rng)
    others = {name: rival(k, float(channel.ratio)) for name, rival in RIVALS.items()}
    ratio, off = exact / min(others.values()), (seen - exact) / error
    figures = "".join(f"{value:>10.4g}" for value in (seen, exact, *others.values()))
    print(f"{k:>4}{epsilon:>8}{channel.d:>5}{figures}{off:>9.2f}{ratio:>8.4f}")
    return ratio, abs(off)


def main() -> None:
    rng = np.random.default_rng(20261121)
    print(f"n Var at pi = 1/k; simulated: {ROUNDS:,} surveys of {PEOPLE} people")
    print(f"{'k':>4}{'epsilon':>8}{'d':>5}{'simulated':>10}{'exact':>10}", end="")
    print("".join(f"{name:>10}" for name in RIVALS) + f"{'off, SE':>9}{'ratio':>8}")
    rows = [row(k, epsilon, rng) for k in OPTIONS for epsilon in EPSILONS]
    worst, off = (max(column) for column in zip(*rows, strict=True))
    print(f"simulation against closed form: at most {off:.2f} standard errors in {len(rows)} cells")
    verdict = "reached" if worst <= 1 + ROUNDING else "MISSED"
    print(f"worst ratio best / min(others): {worst:.4f} (target <= 1: {verdict})")
    numbers()


def numbers() -> None:
    """Print the table of designs for numbers."""
    print("\nn Var of the mean of numbers on [-1, 1], at the worst true answer")
    print(f"{'k':>5}{'epsilon':>8}{'silent':>7}" + "".join(f"{name:>11}" for name in DESIGNS))
    ratios = [
        number_row(k, epsilon, no_answers)
        for k in POINTS
        for epsilon in NUMBER_EPSILONS
        for no_answers in (0, 1)
    ]
    verdict = "reached" if max(ratios) <= 1 + COMPARED else "MISSED"
    print(f"worst ratio chosen / min(all): {max(ratios):.4f} (target <= 1: {verdict})")


def number_row(k: int, epsilon: str, no_answers: int) -> float:
    """Print one line; returns chosen/min(all)."""
    worst = {name: worst_variance(make(k, epsilon, no_answers)) for name, make in DESIGNS.items()}
    chosen = smallest_worst_variance(k, epsilon, no_answers)
    figures = "".join(f"{value:>11.4f}" for value in worst.values())
    print(f"{k:>5}{epsilon:>8}{no_answers:>7}{figures}  {chosen}")
    return worst[chosen] / min(worst.values())


if __name__ == "__main__":
    main()
