"""Measure the bias, standard errors and coverage of regressions.

    python -m tests.benchmarks.regression [--short] [simulated] [linear] [NAME ...]

`linear` simulates linear regressions with few people who have an answer, among others. The baseline
("plain") is Fieller's interval with n - 3 degrees of freedom. Unbounded intervals count as covered;
widths are compared in surveys in which both are bounded.
`simulated` prints one line per coefficient. Targets in brackets allow for four standard errors of
the simulation.
NAME is a design of two groups without randomization (`TWO_GROUPS`): every outcome is fitted, up to
a probability of `LEFT_OUT` that counts as not covered, so coverage has no noise. The baseline of
the penalized likelihood ("firth") is the unpenalized one ("none"). Every survey has an interval,
with or without an estimate; bias and root mean square error are those of the estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Literal, NamedTuple
from unittest import mock

import numpy as np
from scipy.special import expit
from scipy.stats import binom
from scipy.stats import t as student

from survey.estimator import Randomized, linear_regression, regression
from survey.estimator.regression import linear_regression as linear
from survey.mechanism import SubsetSelection, from_epsilon, grr
from survey.mechanism.channel import Floats
from tests.benchmarks.short import benchmark_parser, reduced, require_range
from tests.estimator.regression.test_simulation import simulated, simulated_in_groups

corrected, fieller = linear._coefficient_interval, linear._fieller

N = 3000
ROUNDS = 200

SETTINGS: dict[str, Callable[[], tuple]] = {
    "one channel, two answers": lambda: simulated(2, False, N, ROUNDS),
    "one channel, three answers": lambda: simulated(3, False, N, ROUNDS),
    "randomized predictor": lambda: simulated(2, True, N, ROUNDS),
    "three groups, two answers": lambda: simulated_in_groups(2, N, ROUNDS),
    "three groups, three answers": lambda: simulated_in_groups(3, N, ROUNDS),
}

LEFT_OUT, TARGET = 0.001, 0.945


class TwoGroups(NamedTuple):
    """A yes/no outcome in two groups of equal size, and its log odds and log odds ratio."""

    channel: SubsetSelection
    size: int
    truth: tuple[float, float]


TWO_GROUPS = {
    "inside": TwoGroups(grr(2, "3/4"), 150, (-0.8, 1.4)),
    "near separation": TwoGroups(grr(2, "3/4"), 150, (-2.0, 1.0)),
    "rare": TwoGroups(from_epsilon(2, 0.7), 190, (math.log(0.05 / 0.95), 1.0)),
}
"""Shares of .31 and .65, of .12 and .27, and of .05 and .13."""


class Outcomes(NamedTuple):
    """Estimates and ends of every outcome, shape (outcomes, 2), and their probabilities."""

    chances: Floats
    estimate: Floats
    low: Floats
    high: Floats


def enumerated(design: TwoGroups, penalty: Literal["firth"] | None) -> Outcomes:
    """Fit the most probable outcomes of both groups, until `LEFT_OUT` remains."""
    p, q = design.channel.p, design.channel.q
    shares = expit(design.truth[0] + design.truth[1] * np.arange(2))
    first, second = binom.pmf(
        np.arange(design.size + 1), design.size, (q + (p - q) * shares)[:, None]
    )
    chances = np.outer(first, second)
    order = np.argsort(chances, axis=None)[::-1]
    kept = order[: int(np.searchsorted(np.cumsum(chances.ravel()[order]), 1 - LEFT_OUT)) + 1]
    fits = []
    for yes in np.column_stack(np.unravel_index(kept, chances.shape)):
        times = np.stack([design.size - yes, yes]).ravel()
        codes, group = np.divmod(np.flatnonzero(times), 2)
        fit = regression(codes, design.channel, group, times=times[times > 0], penalty=penalty)
        fits.append((fit.estimate, fit.conf_low, fit.conf_high))
    return Outcomes(chances.ravel()[kept], *np.moveaxis(np.array(fits), 1, 0))


def print_two_groups(name: str) -> None:
    design = TWO_GROUPS[name]
    print(f"\n{name}: two groups of {design.size}, p = {design.channel.p:.3f}, every outcome")
    print(f"{'':<12}{'true':>7}{'none':>7}{'bias':>8}{'rmse':>8}{'coverage':>10}{'given one':>11}"
          f"{'target':>8}{'seconds':>9}")  # fmt: skip
    penalties: tuple[Literal["firth"] | None, ...] = (None, "firth")
    for penalty in penalties:
        start = perf_counter()
        found = enumerated(design, penalty)
        seconds = perf_counter() - start
        for place, truth in enumerate(design.truth):
            estimate, chances = found.estimate[:, place], found.chances
            has_one = np.isfinite(estimate)
            part = chances[has_one] / chances[has_one].sum()
            error = estimate[has_one] - truth
            covers = (found.low[:, place] <= truth) & (truth <= found.high[:, place])
            covered = float(chances[covers].sum())
            given = float(chances[covers & has_one].sum() / chances[has_one].sum())
            if penalty:
                require_range(f"{name}: coverage", covered, LEAST_PLAUSIBLE, 1 + 1e-9)
            missed = "  MISSED" if covered < TARGET else ""
            print(f"{penalty or 'none':<12}{truth:7.2f}{chances[~has_one].sum():7.3f}"
                  f"{part @ error:8.3f}{math.sqrt(part @ error**2):8.3f}{covered:10.4f}"
                  f"{given:11.4f}{TARGET:>8}{seconds:9.0f}{missed}", flush=True)  # fmt: skip


class Linear(NamedTuple):
    """People, privacy loss, share of the answer, errors, and the effect of the answer."""

    n: int
    epsilon: float
    share: float
    errors: str
    effect: float


LINEAR = [
    Linear(50, 8, 0.03, "normal", 2),
    Linear(50, 1, 0.5, "exponential", 2),
    Linear(100, 8, 0.1, "lognormal", 0),
    Linear(100, 4, 0.1, "normal", 2),
    Linear(200, 1, 0.3, "exponential", 2),
    Linear(200, 8, 0.1, "exponential", 2),
    Linear(200, 8, 0.03, "lognormal", 0),
    Linear(500, 1, 0.3, "normal", 2),
    Linear(500, 8, 0.03, "lognormal", 0),
    Linear(500, 4, 0.5, "normal", 2),
    Linear(2000, 8, 0.03, "lognormal", 0),
    Linear(2000, 2, 0.1, "exponential", 2),
]
"""Designs of least coverage in a grid of n, epsilon, share and errors, and ordinary ones."""

ERRORS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(sigma=0.8, size=n),
}

LINEAR_ROUNDS = 4000

SHORT = {
    "LEFT_OUT": 0.15,
    "N": 1000,
    "ROUNDS": 2,
    "SETTINGS": {"one channel, two answers": SETTINGS["one channel, two answers"]},
    "LINEAR": LINEAR[:1],
    "LINEAR_ROUNDS": 20,
    "TWO_GROUPS": {"few": TwoGroups(from_epsilon(2, 4), 2, (-0.8, 1.4))},
}
LEAST_PLAUSIBLE = 0.75
"""A coverage below this means a fault, even in a short run."""


def plain_interval(p: Floats, q: Floats, freedom: int, level: float) -> tuple[float, float]:
    """Return Fieller's interval of mean p/mean q with Student's t of `freedom` degrees."""
    k = student.ppf((1 + level) / 2, freedom) ** 2 * np.cov(p, q, bias=True) / freedom
    return fieller(p.mean(), q.mean(), k)


def linear_ends(design: Linear, rng: np.random.Generator) -> Floats:
    """Return the ends of both intervals of both slopes, shape (plain or corrected, ends, slopes).

    The outcome is a predictor without randomization, plus the effect of the answer, plus an error.
    """
    n, channel = design.n, from_epsilon(2, design.epsilon)
    x, u = rng.normal(size=n), (rng.random(n) < design.share).astype(int)
    y = x + design.effect * u + ERRORS[design.errors](rng, n)
    plain = []

    def both(p: Floats, q: Floats, freedom: int, level: float, few: bool) -> tuple:
        plain.append(plain_interval(p, q, freedom, level))
        return corrected(p, q, freedom, level, few)

    with mock.patch.object(linear, "_coefficient_interval", both):
        fit = linear_regression(
            y, x, randomized=[Randomized("u", channel.perturb(u, rng), channel)]
        )
    return np.array([np.transpose(plain)[:, 1:], [fit.conf_low[1:], fit.conf_high[1:]]])


def print_linear() -> None:
    start = perf_counter()
    print(f"\nlinear regression, {LINEAR_ROUNDS:,} surveys per design, target {TARGET}")
    print(f"{'n':>5}{'epsilon':>9}{'share':>7} {'errors':<12}{'effect':>6}  {'slope':<7}"
          f"{'plain':>7}{'now':>7}{'bounded':>9}{'of these':>10}{'width':>7}")  # fmt: skip
    least = np.ones(2)
    for seed, design in enumerate(LINEAR):
        rng = np.random.default_rng(seed)
        ends = np.array([linear_ends(design, rng) for _ in range(LINEAR_ROUNDS)])
        low, high = ends[:, :, 0], ends[:, :, 1]
        truth = np.array([1.0, design.effect])
        covers = (low <= truth) & (truth <= high)
        bounded = np.isfinite(low)
        for place, slope in enumerate(("open", "answer")):
            coverage = covers[:, :, place].mean(axis=0)
            least = np.minimum(least, coverage)
            has_ends = bounded[:, 1, place]
            given = covers[has_ends, 1, place].mean() if has_ends.any() else math.nan
            width = np.diff(ends[has_ends, :, :, place], axis=2)[:, :, 0]
            ratio = np.median(width[:, 1] / width[:, 0]) if has_ends.any() else math.nan
            missed = "  MISSED" if coverage[1] < TARGET else ""
            print(f"{design.n:5}{design.epsilon:9}{design.share:7} {design.errors:<12}"
                  f"{design.effect:6}  {slope:<7}{coverage[0]:7.4f}{coverage[1]:7.4f}"
                  f"{has_ends.mean():9.2f}{given:10.3f}{ratio:7.2f}{missed}",
                  flush=True)  # fmt: skip
    require_range("least coverage of linear regressions", least[1], LEAST_PLAUSIBLE, 1.0)
    print(f"least coverage {least[1]:.4f}, target {TARGET}, ratio {least[1] / TARGET:.3f}; "
          f"plain {least[0]:.4f}; {perf_counter() - start:.0f} seconds")  # fmt: skip


def print_simulated() -> None:
    ratio_margin = 4 / math.sqrt(2 * ROUNDS)
    coverage_margin = 4 * math.sqrt(0.05 * 0.95 / ROUNDS)
    print(f"n = {N:,}, {ROUNDS} surveys per setting")
    print(f"{'setting':30}{'true':>7}{'bias/error':>12}{'error/spread':>14}{'coverage':>10}")
    for name, simulate in SETTINGS.items():
        estimates, errors, truth = simulate()
        for place, true_value in enumerate(truth):
            estimate, error = estimates[:, place], errors[:, place]
            spread = estimate.std(ddof=1)
            bias = (estimate.mean() - true_value) / spread
            coverage = (abs(estimate - true_value) < 1.96 * error).mean()
            ratio = float(error.mean()) / spread
            print(f"{name:30}{true_value:7.2f}{bias:12.3f}{ratio:14.3f}{coverage:10.3f}")
    print(f"{'target':37}{'(0)':>12}{'(1)':>14}{'(.95)':>10}, up to")
    print(f"{'':37}{4 / math.sqrt(ROUNDS):12.3f}{ratio_margin:14.3f}{coverage_margin:10.3f}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("parts", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        measure(options.parts)


def measure(parts: Sequence[str]) -> None:
    """Print the given parts, or all parts."""
    if not parts or "simulated" in parts:
        print_simulated()
    if not parts or "linear" in parts:
        print_linear()
    for name in TWO_GROUPS:
        if not parts or name in parts:
            print_two_groups(name)


if __name__ == "__main__":
    main()
