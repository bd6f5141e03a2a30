"""Measure the coverage and width of weighted shares against equal weights at Kish's n.

    python -m tests.benchmarks.weights [--short] [SURVEYS]

Yes/no questions, weights fixed beforehand, level .95. The classes of a survey are drawn at random;
log-normal weights have one report per class. "Equal shares": all weights have the same true share,
0, .01, .1 or .5. "Heavy": the heaviest tenth or less has another share than all others. The output
gives for each part the least coverage and the mean width over that of equal weights with
(sum w)^2/sum w^2 reports (Kish 1965; the same interval), and the same for the baseline, which takes
Kish's number without drawing the shares of heavy reports towards 1/2 (`_smoothed`). The two cells
that cover least are simulated again with ten times more surveys, because the minimum of many noisy
figures is too low.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from survey.estimator.core.debiasing import SecondMoments
from survey.estimator.core.intervals import wilson_hull
from survey.estimator.shares.linear_estimator import LinearEstimator, linear_estimator
from survey.estimator.weights import weighting_and_raking
from survey.mechanism import SubsetSelection, from_epsilon
from survey.mechanism.channel import Floats
from tests.benchmarks.short import benchmark_parser, reduced, require_range

SURVEYS = 4_000
AGAIN, TIMES_AGAIN = 2, 10
LEVEL, TARGET = 0.95, 0.945

EPSILONS = (0.8, 2.0, 4.0, 8.0)
SIZES = (25, 60, 100, 250, 1_000)

CLASSES = {
    "1, 5, 50": ((1.0, 5.0, 50.0), (1 / 3, 1 / 3, 1 / 3)),
    "1, 5, 50, few heavy": ((1.0, 5.0, 50.0), (0.6, 0.3, 0.1)),
    "1, 2, 5": ((1.0, 2.0, 5.0), (0.5, 0.3, 0.2)),
}
"""Weights, and how often they occur."""

HEAVY_CLASSES = {
    "1, 5": ((1.0, 5.0), (0.9, 0.1)),
    "1, 20": ((1.0, 20.0), (0.9, 0.1)),
    "1, 2, 5": ((1.0, 2.0, 5.0), (0.6, 0.3, 0.1)),
    "1, 5, 50": ((1.0, 5.0, 50.0), (0.6, 0.3, 0.1)),
}
HEAVY_SHARES = ((0.0, 0.2), (0.0, 0.3), (0.02, 0.3), (0.0, 0.7), (0.3, 0.0))
HEAVY_SIZES = (60, 100, 300)

SHORT = {"EPSILONS": (2.0,), "SIZES": (60, 100), "HEAVY_SIZES": (60,), "TIMES_AGAIN": 1}
SHORT_SURVEYS = 100
LEAST_PLAUSIBLE = 0.8
"""A coverage below this means a fault, even in a short run."""


class Surveys(LinearEstimator):
    """The estimator of one option in many surveys, which are in the place of its options."""

    @classmethod
    def of(cls, channel: SubsetSelection, surveys: int) -> Surveys:
        one = linear_estimator(channel)
        moments = SecondMoments(*(np.repeat(m[:1], surveys) for m in one.moments.__dict__.values()))
        return cls(np.repeat(one.values[:, :1], surveys, axis=1), one.chances[:1], moments)

    def interval(
        self, estimate: Floats, n_effective: Floats, level: float, shift: Floats
    ) -> tuple[Floats, Floats]:
        (p, q), ends = self.chances[0], []
        for end, side in enumerate((-1, 1)):
            f = np.clip(q + (p - q) * (estimate + side * shift), 0.0, 1.0)
            hull: Any = wilson_hull(f * n_effective, n_effective, q, p, level)
            ends.append(np.clip((hull[end] - q) / (p - q), 0.0, 1.0))
        return ends[0], ends[1]


class Cell(NamedTuple):
    """A design: the weights of its classes, how often they occur, and the true share of each.

    With `mix` empty, every class is a single report.
    """

    name: str
    epsilon: float
    n: int
    weights: Floats
    mix: Floats
    shares: Floats

    def simulate(self, surveys: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the coverage, and the mean width over that of equal weights at Kish's n."""
        channel = from_epsilon(2, self.epsilon)
        chances = channel.q + (channel.p - channel.q) * self.shares
        w = self.weights / self.weights.max()
        size = (
            rng.multinomial(self.n, self.mix, surveys).T
            if self.mix.size
            else np.ones((len(w), surveys), dtype=np.int64)
        )
        truth = float(np.average(self.shares, weights=w * (self.mix if self.mix.size else 1)))
        ones = rng.binomial(size, chances[:, None])
        low, high = self.ends(channel, size, ones, w)
        covered = np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))
        # Equal weights: one class of as many reports.
        kish = (w[:, None] * size).sum(axis=0) ** 2 / ((w**2)[:, None] * size).sum(axis=0)
        equal = np.maximum(kish.round().astype(np.int64), 2)[None]
        alike = rng.binomial(equal, channel.q + (channel.p - channel.q) * truth)
        equal_low, equal_high = self.ends(channel, equal, alike, np.ones(1))
        return float(covered), float((high - low).mean() / (equal_high - equal_low).mean())

    def ends(
        self, channel: SubsetSelection, size: Any, ones: Any, w: Floats
    ) -> tuple[Floats, Floats]:
        """Return the ends for numbers of reports and of "yes", both of shape (classes, surveys)."""
        group, groups = weighting_and_raking._weight_groups(w)
        member = np.eye(groups)[:, group]
        kinds = np.stack([size - ones, ones], axis=1).astype(float)
        sums = (np.tensordot(member * w**power, kinds, axes=1) for power in range(3))
        linear = Surveys.of(channel, size.shape[1])
        found = weighting_and_raking._weighted(
            linear, weighting_and_raking._Sums(*sums), self.n, LEVEL
        )
        return found.conf_low, found.conf_high


def equal_shares() -> Iterator[Cell]:
    for name, (weights, mix) in CLASSES.items():
        for share, epsilon, n in itertools.product((0, 0.01, 0.1, 0.5), EPSILONS, SIZES):
            shares = np.full(len(weights), float(share))
            yield Cell(name, epsilon, n, np.array(weights), np.array(mix), shares)


def lognormal() -> Iterator[Cell]:
    rng = np.random.default_rng(9)
    for deviation in (0.5, 1.0):
        for share, epsilon, n in itertools.product((0, 0.01, 0.1, 0.5), EPSILONS, SIZES[:-1]):
            weights = np.exp(deviation * rng.standard_normal(n))
            shares = np.full(n, float(share))
            yield Cell(f"log-normal {deviation:g}", epsilon, n, weights, np.empty(0), shares)


def heavy() -> Iterator[Cell]:
    for name, (weights, mix) in HEAVY_CLASSES.items():
        for (light, heaviest), epsilon, n in itertools.product(HEAVY_SHARES, EPSILONS, HEAVY_SIZES):
            shares = np.full(len(weights), light)
            shares[-1] = heaviest
            yield Cell(name, epsilon, n, np.array(weights), np.array(mix), shares)


PARTS: dict[str, Callable[[], Iterator[Cell]]] = {
    "equal shares": equal_shares,
    "log-normal weights": lognormal,
    "heavy": heavy,
}


def measure(cells: list[Cell], surveys: int) -> tuple[float, float, str]:
    """Return the least coverage, the mean relative width, and the cell of the least coverage."""
    figures = [cell.simulate(surveys, np.random.default_rng(i)) for i, cell in enumerate(cells)]
    order = sorted(range(len(cells)), key=lambda i: figures[i][0])[:AGAIN]
    again = [
        (cells[i].simulate(surveys * TIMES_AGAIN, np.random.default_rng(1_000 + i))[0], i)
        for i in order
    ]
    least, i = min(again)
    cell, width = cells[i], float(np.mean([ratio for _, ratio in figures]))
    shares = [round(float(share), 2) for share in np.unique(cell.shares)]
    return least, width, f"{cell.name}, epsilon {cell.epsilon:g}, n {cell.n:,}, shares {shares}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("surveys", nargs="?", type=int, default=SURVEYS)
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        compare(SHORT_SURVEYS if options.short else options.surveys)


def compare(surveys: int) -> None:
    """Print a row of figures for each part."""
    print(f"{surveys:,} surveys per cell; width over equal weights at Kish's n")
    print(f"{'':<20}{'cells':>6}{'least':>8}{'target':>8}{'ratio':>7}{'width':>8}{'seconds':>9}"
          f"{'Kish alone: least':>19}{'width':>8}")  # fmt: skip
    for name, part in PARTS.items():
        start, cells = perf_counter(), list(part())
        least, width, place = measure(cells, surveys)
        seconds = perf_counter() - start
        with patch.object(weighting_and_raking, "_smoothed", lambda *args: args[3]):
            without, narrower, baseline_place = measure(cells, surveys)
        require_range(f"{name}: least coverage", least, LEAST_PLAUSIBLE, 1.0)
        missed = "" if least >= TARGET else "  MISSED"
        print(f"{name:<20}{len(cells):>6}{least:>8.4f}{TARGET:>8}{least / TARGET:>7.3f}"
              f"{width:>8.3f}{seconds:>9.0f}"
              f"{without:>19.4f}{narrower:>8.3f}{missed}")  # fmt: skip
        print(f"    least: {place}\n    Kish alone: {baseline_place}", flush=True)


if __name__ == "__main__":
    main()
