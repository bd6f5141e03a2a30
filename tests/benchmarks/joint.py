"""Measure joint responses against separate reports: `python -m tests.benchmarks.joint [--short]`.

The baseline is the same survey with the questions randomized separately, each with an equal part of
the same total epsilon. Both are run on the same true answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from survey.estimator import (
    crosstab,
    independence,
    joint_precision,
    proportions,
)
from survey.mechanism import SubsetSelection, from_epsilon
from survey.mechanism.channel import Floats
from survey.mechanism.joint_response import item_response, joint_response, marginal_response
from tests.benchmarks.short import benchmark_parser, reduced, require_range

N = 2_000
SURVEYS = 400
TRUTH = np.array([[0.03, 0.07], [0.07, 0.83]])
"""Two yes/no questions with 10% yes each, a correlation of .22, and 3% yes to both."""

TARGETS: dict[str, tuple[float, float]] = {"1.6": (1.28, 1.8), "4": (1.4, 1.3)}
"""Minimum ratios of margins, separate to joint, by total epsilon: of a question, of the cell."""

ITEMS = ((10, "4", 1.09), (20, "8", 0.71))
"""Numbers of yes/no questions, total epsilon, and n Var of a share of one half in closed form."""

ITEM_SURVEYS, ITEM_N, ALIKE = 400, 1_000, 0.9

COVERAGE = 0.945
LEVELS = (0.03, 0.07)
THREE_OPTIONS = (1.3, 1.6)
"""Range of the total epsilon from which two questions of three options gain in their shares too."""

TOTALS = [Fraction(step, 20) for step in range(4, 121)]
"""Total epsilons at which joint responses are compared with separate reports."""

SHORT = {
    "SURVEYS": 5,
    "ITEM_SURVEYS": 2,
    "TOTALS": [Fraction(step, 2) for step in range(1, 13)],
}


@dataclass(frozen=True)
class Measured:
    """Means over simulated surveys: margins of error, coverage, and squared error of the table."""

    share: float
    cell: float
    share_coverage: float
    cell_coverage: float
    squared_error: float


def measured(channels: list[SubsetSelection], truth: Floats, rng: np.random.Generator) -> Measured:
    """Simulate surveys whose questions have these channels: one of all, or one each."""
    is_joint = len(channels) == 1
    if is_joint:
        (joint,) = channels
        first = marginal_response(joint, truth.shape[0])
        chances = joint.q + (joint.p - joint.q) * truth
    else:
        first = channels[0]
        chances = channels[0].matrix.T @ truth @ channels[1].matrix
    rows = []
    for counts in rng.multinomial(N, chances.ravel() / chances.sum(), size=SURVEYS):
        table = crosstab(counts.reshape(truth.shape), channels)
        shares = proportions(counts.reshape(truth.shape).sum(axis=1), first)
        likely = crosstab(counts.reshape(truth.shape), channels, method="em").estimate
        share = float(truth[0].sum())
        rows.append(
            (
                (shares.conf_high[0] - shares.conf_low[0]) / 2,
                (table.conf_high[0, 0] - table.conf_low[0, 0]) / 2,
                shares.conf_low[0] <= share <= shares.conf_high[0],
                np.mean((table.conf_low <= truth) & (truth <= table.conf_high)),
                np.mean((likely - truth) ** 2),
            )
        )
    return Measured(*np.mean(rows, axis=0).tolist())


def type_one_error(k: int, epsilon: str, rng: np.random.Generator) -> float:
    """Return the share of surveys with independent answers that the joint test at .05 rejects."""
    joint = joint_of([from_epsilon(k, Fraction(epsilon) / 2)] * 2)
    a, b = rng.dirichlet(np.full(k, 2.0), size=2)
    chances = joint.q + (joint.p - joint.q) * np.outer(a, b)
    tables = rng.multinomial(N, chances.ravel(), size=2 * SURVEYS).reshape(-1, k, k)
    return float(np.mean([independence(table, joint).p_value <= 0.05 for table in tables]))


def joint_of(channels: list[SubsetSelection]) -> SubsetSelection:
    """Return the joint response with the total epsilon of these channels."""
    ratio = math.prod((channel.ratio for channel in channels), start=Fraction(1))
    return joint_response([channel.k for channel in channels], ratio)


def first_total_that_pays(sizes: list[int]) -> float | None:
    """Return the smallest total epsilon on a grid from which shares are narrower; None for all."""
    pays = [
        joint_precision([from_epsilon(k, total / len(sizes)) for k in sizes], N).narrows_shares
        for total in TOTALS
    ]
    changes = [float(total) for total, (a, b) in zip(TOTALS[1:], pairwise(pays), strict=True)
               if a != b]  # fmt: skip
    if not changes and pays[0]:
        return None
    return changes[0] if len(changes) == 1 and pays[-1] else math.nan


def item_rows() -> Iterator[tuple[int, str, float, float, float, float, float]]:
    """Yield m, total epsilon, n Var by separate reports, by sampling, in a half-space; coverage.

    n Var of a share of one half. Those of separate reports and of the best number of sampled
    questions are computed, that of the half-space is simulated. One number decides all answers of
    most people, so that dependence between the reports would show.
    """
    rng = np.random.default_rng(11)
    for m, total, target in ITEMS:
        ratio = from_epsilon(2, Fraction(total)).ratio
        space = item_response(m, ratio)
        part = marginal_response(space, 2)
        sampled = [_half_variance(from_epsilon(2, Fraction(total) / s)) * m / s
                   for s in range(1, m + 1)]  # fmt: skip
        shares = np.where(np.arange(m) % 2, 0.2, 0.5)
        errors, covered = [], []
        for _ in range(ITEM_SURVEYS):
            number = rng.random((ITEM_N, 1))
            is_alike = rng.random((ITEM_N, 1)) < ALIKE
            truths = np.where(is_alike, number, rng.random((ITEM_N, m))) < shares
            ones = space.perturb(truths.astype(np.int64), rng).sum(axis=0)
            for item, share in enumerate(shares):
                found = proportions([int(ones[item]), ITEM_N - int(ones[item])], part)
                covered.append(found.conf_low[0] <= share <= found.conf_high[0])
                if share == 0.5:
                    errors.append(found.estimate[0] - share)
        variance = ITEM_N * float(np.mean(np.square(errors)))
        yield m, total, sampled[-1], min(sampled), variance, target, float(np.mean(covered))


def _half_variance(channel: SubsetSelection) -> float:
    """Return n Var of a share of one half, 1/4/(p - q)^2."""
    return 0.25 / (channel.p - channel.q) ** 2


def verdict(is_met: bool) -> str:
    return "reached" if is_met else "MISSED"


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        compare()


def compare() -> None:
    """Print the figures of joint responses and of separate reports."""
    print(f"two yes/no questions, n = {N:,}, {SURVEYS} surveys; margins of error in points")
    heading = ("total", "", "separate", "joint", "ratio", "target")
    print("".join(f"{name:>10}" for name in heading))
    results = {}
    for total, targets in TARGETS.items():
        rng = np.random.default_rng(3)
        half = from_epsilon(2, Fraction(total) / 2)
        apart, joint = (
            measured(channels, TRUTH, rng) for channels in ([half, half], [joint_of([half, half])])
        )
        results[total] = joint
        for name, target in zip(("share", "cell"), targets, strict=True):
            before, after = getattr(apart, name), getattr(joint, name)
            ratio = before / after
            require_range(f"separate to joint margins, {name}", ratio, 0.8 * target, 1.5 * target)
            print(
                f"{total:>10}{name:>10}{100 * before:>10.2f}{100 * after:>10.2f}{ratio:>10.2f}"
                f"{target:>10} {verdict(ratio >= target)}"
            )
        ratio = math.sqrt(apart.squared_error / joint.squared_error)
        print(
            f"{total:>10}{'RMSE (em)':>10}{100 * math.sqrt(apart.squared_error):>10.2f}"
            f"{100 * math.sqrt(joint.squared_error):>10.2f}{ratio:>10.2f}{1:>10} "
            f"{verdict(ratio >= 1)}"
        )

    print("\ncoverage at .95 of joint responses")
    for total, joint in results.items():
        least = min(joint.share_coverage, joint.cell_coverage)
        print(
            f"{total:>10}  share {joint.share_coverage:.3f}, cells {joint.cell_coverage:.3f} "
            f"(target >= {COVERAGE}, less two errors of simulation: "
            f"{verdict(least >= COVERAGE - 2 * math.sqrt(0.05 * 0.95 / SURVEYS))})"
        )

    print("\nyes/no questions in one half-space: n Var of a share of one half, and coverage at .95")
    columns = ("questions", "total", "separate", "sampled", "half-space", "target", "coverage")
    print("".join(f"{name:>12}" for name in columns))
    for m, total, separate, sampled, variance, target, coverage in item_rows():
        is_met = variance <= 1.05 * target and coverage >= COVERAGE - 0.005
        print(
            f"{m:>12}{total:>12}{separate:>12.2f}{sampled:>12.2f}{variance:>12.2f}{target:>12}"
            f"{coverage:>12.3f} {verdict(is_met)}"
        )

    print("\ntotal epsilon from which a joint response also narrows the shares (.2 to 6)")
    for sizes in ([2, 2], [2, 3], [3, 3], [4, 4], [2, 2, 2]):
        start = first_total_that_pays(sizes)
        words = "always" if start is None else f"from {start:.2f}"
        target = ""
        if sizes == [2, 2]:
            target = f" (target: always: {verdict(start is None)})"
        elif sizes == [3, 3]:
            low, high = THREE_OPTIONS
            is_met = start is not None and low <= start <= high
            target = f" (target: between {low} and {high}: {verdict(is_met)})"
        print(f"{' x '.join(map(str, sizes)):>10} options: {words}{target}")

    rng = np.random.default_rng(7)
    rates = [type_one_error(k, total, rng) for k in (2, 3) for total in ("0.8", "1.6", "4")]
    is_inside = LEVELS[0] <= min(rates) and max(rates) <= LEVELS[1]
    print(
        f"\ntype I error at .05 of the test of independence: {min(rates):.3f} to {max(rates):.3f} "
        f"(target {LEVELS[0]} to {LEVELS[1]}: {verdict(is_inside)})"
    )


if __name__ == "__main__":
    main()
