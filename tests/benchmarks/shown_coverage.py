"""Measure the coverage of intervals among the results that are shown.

    python -m tests.benchmarks.shown_coverage [--short] [ANALYSIS ...] [needed]

For each analysis, over the grid printed at the start, the output gives the least conditional
coverage P(the interval contains the truth | the result is shown) at level .95, for the rule in use
and for the earlier rule (`old_rule`), which looked at the estimates. The rule in use decides the
same in every survey of a design, so conditional and unconditional coverage are equal wherever it
shows anything.

`shares`: by exact enumeration. The rule in use: for all shares from 0 to 1, without a grid. The
earlier rule: two options, at the shares of the grid where it shows the result in at least
`RARELY` of surveys.
`difference of groups`: by exact enumeration on a grid of 101 x 101 shares, groups of equal and of
unequal size, of which the smaller has the fewest reports that are shown. The column of the earlier
rule has MOVER's interval for the same groups.
Means and histograms: 40,000 simulated surveys of every cell (standard error .0011), medians:
10,000, also at epsilon 5 to 8, each at the smallest n that shows the result and at ten times as
many. For medians, the mean width over that of the baseline is printed: intervals whose ends each
have half the error throughout.
Other analyses: by seeded simulation, at the same two n.
The two cells that cover least are simulated again with a fresh seed and fifty times as many rounds,
because the minimum of many noisy figures is too low; only these figures count. Where a group seems
to be empty, the interval has all possible values, as on pages.
`needed`: how many respondents were needed until a result appeared, over the number stated at the
start, if each is asked some of the questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import binom

from survey.errors import NoBaseError
from survey.estimator import (
    answered_shares,
    conditional,
    conditional_difference,
    crosstab,
    disclosure,
    histogram,
    mean,
    mean_difference,
    median,
    poststratified,
    regression,
    standardized_shares,
    weighted_shares,
)
from survey.estimator.core.debiasing import EFFECTIVE_RANGE, binary_moments, effective_answers
from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.numbers.distribution import cell_members, set_ratios
from survey.estimator.numbers.mean import mean_ratios
from survey.estimator.numbers.quantiles import Quantiles
from survey.estimator.regression.logistic_regression import Randomized
from survey.estimator.tables.conditional import Conditional
from survey.estimator.tables.crosstab import Crosstab, PairDesign
from survey.estimator.tables.difference import DEFAULT_DIFFERENCE, DIFFERENCE_INTERVALS
from survey.estimator.trust.suppression import HIDDEN_MARGIN, decide
from survey.estimator.trust.worst_case import (
    ConstantVariance,
    WorstCase,
    answered_worst_case,
    channel_worst_case,
    conditional_worst_case,
    crosstab_worst_case,
    histogram_worst_case,
    mean_worst_case,
    quantile_worst_case,
    regression_worst_case,
    standardized_worst_case,
)
from survey.estimator.weights.weighting_and_raking import WeightedShares
from survey.mechanism import from_epsilon
from survey.mechanism.channel import Booleans, Floats
from survey.mechanism.numeric import hybrid, square_wave
from tests.benchmarks.distribution import QuantileIntervals, hits, simulated_intervals
from tests.benchmarks.short import benchmark_parser, reduced, require_range
from tests.estimator.difference_enumeration import enumerated_difference
from tests.estimator.enumeration import Ends, all_ends, exact_coverage

OPTIONS = (2, 3, 5, 10)
EPSILONS = (0.2, 0.5, 0.7, 0.8, 1.0, 2.0, 4.0, 6.0)
SIZES = (25, 50, 100, 250, 500, 1_000, 2_500, 10_000)
SHARES = np.unique([*np.linspace(0, 1, 41), 0.01, 0.02, 0.98, 0.99])
RARELY = 0.01

TARGET = 0.945
ROUNDS = 200
AGAIN, ROUNDS_AGAIN = 2, 20_000
"""How many cells are simulated again, and how often: two standard errors are then .003."""

ENOUGH = 40
"""Fewest rounds that the earlier rule must show, so that its coverage is more than noise."""

OLD_WIDTH, OLD_ANSWERS = 0.30, 30


def old_rule(*results: Any) -> bool:
    """Return whether the earlier rule showed these results: by width and effective answers."""
    return all(_old_width(r) < OLD_WIDTH and _old_answers(r) >= OLD_ANSWERS for r in results)


def _old_width(result: Any) -> float:
    if isinstance(result, Quantiles):
        return float(np.max(result.reach))
    width = float(np.max(np.asarray(result.conf_high - result.conf_low)))
    return width / (result.high - result.low) if type(result).__name__ == "Mean" else width


def _old_answers(result: Any) -> float:
    if isinstance(result, Crosstab | Conditional | WeightedShares):
        pi = np.clip(result.estimate, *EFFECTIVE_RANGE)
        return float(np.min(pi * (1 - pi) / result.std_error**2))
    return math.inf if isinstance(result, Quantiles) else float(np.min(result.n_effective))


def old_rule_of_two_options(ends: Ends) -> Booleans:
    """Return for each count of "yes" whether the earlier rule showed a yes/no question."""
    p, q = ends.channel.p, ends.channel.q
    counts = np.arange(ends.n + 1)
    estimate = (counts / ends.n - q) / (p - q)
    moments = binary_moments(np.array([p]), np.array([q]))
    answers = effective_answers(estimate, np.full(ends.n + 1, ends.n), moments)
    # "No" has the count n - c.
    width, fewest = np.maximum(ends.width, ends.width[::-1]), np.minimum(answers, answers[::-1])
    return np.asarray((width < OLD_WIDTH) & (fewest >= OLD_ANSWERS))


@dataclass
class Least:
    """The least conditional coverage so far, and where it was."""

    coverage: float = math.inf
    place: str = "nothing shown"

    def add(self, coverage: float, place: str) -> None:
        if coverage < self.coverage:
            self.coverage, self.place = coverage, place


def shares() -> tuple[Least, Least]:
    """Enumerate all counts of one option; the earlier rule for two options only."""
    new, old = Least(), Least()
    for k in OPTIONS:
        for epsilon in EPSILONS:
            channel = from_epsilon(k, epsilon)
            case = channel_worst_case(channel)
            for n in SIZES:
                is_shown = decide(case, n) != "hide"
                if not is_shown and k > 2:
                    continue
                ends = all_ends(n, channel, DEFAULT_INTERVAL)
                place = f"k {k}, epsilon {epsilon:g}, n {n:,}"
                if is_shown:
                    new.add(float(exact_coverage(ends).min()), place)
                if k == 2:
                    _add_old_rule(old, ends, place)
    return new, old


def _add_old_rule(old: Least, ends: Ends, place: str) -> None:
    is_shown, (p, q) = old_rule_of_two_options(ends), (ends.channel.p, ends.channel.q)
    for share in SHARES:
        chances = binom.pmf(np.arange(ends.n + 1), ends.n, q + (p - q) * share)
        shown = float(chances[is_shown].sum())
        if shown >= RARELY:
            covers = (ends.low <= share + 1e-12) & (share <= ends.high + 1e-12)
            covered = float(chances[is_shown & covers].sum()) / shown
            old.add(covered, f"{place}, share {share:g}, shown in {shown:.0%}")


DIFFERENCE_EPSILONS = (1.0, 2.0, 4.0, 6.0, 7.0, 8.0)
DIFFERENCE_SHARES = np.linspace(0, 1, 101)
RATIOS = (1.0, 2.0, 3.0, 10.0)
"""How many times more reports one group has than the other."""

LARGEST_ENUMERATION = 45_000
"""Maximum number of outcomes of both groups in an enumeration."""


def differences() -> tuple[Least, Least]:
    """Enumerate all outcomes of two groups, of which the smaller has the fewest reports shown.

    Both have one channel, or one of them has answers without randomization.
    """
    new, old = Least(), Least()
    open_n = ConstantVariance(0.25).required_n(HIDDEN_MARGIN)
    widths: dict[str, list[float]] = {name: [] for name in DIFFERENCE_INTERVALS}
    for k, epsilon, ratio in product((2, 10), DIFFERENCE_EPSILONS, RATIOS):
        channel = from_epsilon(k, epsilon)
        fewest = channel_worst_case(channel).required_n(HIDDEN_MARGIN)
        for n, second in (
            ((fewest, int(ratio * fewest)), channel),
            ((int(ratio * fewest), open_n), None),
            ((fewest, max(int(ratio * open_n), open_n)), None),
        ):
            if math.prod(n) > LARGEST_ENUMERATION:
                continue
            place = f"k {k}, epsilon {epsilon:g}, n {n[0]} and {n[1]}"
            place += "" if second else " without randomization"
            for name in DIFFERENCE_INTERVALS:
                cell = enumerated_difference(n, (channel, second), name, DIFFERENCE_SHARES)
                widths[name].append(float(cell.width.mean()))
                if name == DEFAULT_DIFFERENCE:
                    new.add(float(cell.coverage.min()), place)
                else:
                    old.add(float(cell.coverage.min()), f"{name}, {place}")
    default, baseline = widths[DEFAULT_DIFFERENCE], widths["mover-wilson"]
    relative = np.array(default) / baseline
    print(f"    mean width over MOVER's: {relative.mean():.3f} ({relative.min():.3f} to "
          f"{relative.max():.3f})")  # fmt: skip
    return new, old


EXAMPLES = ((500, 0.7, 0.05), (500, 0.8, 0.05), (1_000, 0.5, 0.10), (500, 2.0, 0.01))
"""Numbers of reports, epsilons and shares at which the earlier rule is described in the methods."""


def print_examples() -> None:
    """Print in how many surveys the earlier rule showed a yes/no question, and what it showed."""
    print("    the earlier rule, yes/no questions, exact:")
    for n, epsilon, share in EXAMPLES:
        ends = all_ends(n, from_epsilon(2, epsilon), DEFAULT_INTERVAL)
        p, q, is_shown = ends.channel.p, ends.channel.q, old_rule_of_two_options(ends)
        chances = binom.pmf(np.arange(n + 1), n, q + (p - q) * share)
        shown, estimate = chances[is_shown], (np.arange(n + 1) / n - q) / (p - q)
        covers = ((ends.low <= share) & (share <= ends.high))[is_shown]
        order = np.argsort(ends.width[~is_shown])
        total = np.cumsum(chances[~is_shown][order])
        margin = ends.width[~is_shown][order][np.searchsorted(total, total[-1] / 2)] / 2
        print(f"      n {n:>5,}, epsilon {epsilon:g}, share {share:g}: shown in "
              f"{shown.sum():.1%}, then {estimate[is_shown] @ shown / shown.sum():.3f} on average, "
              f"covered {shown[covers].sum() / shown.sum():.3f}; median margin of the others "
              f"{margin:.3f}")  # fmt: skip


Generator = np.random.Generator
Round = tuple[Sequence[Any], Floats, Floats]
"""The results that decide about a figure, and the ends of its intervals."""


@dataclass(frozen=True)
class Design:
    """A design that an analysis is simulated with; `draw` raises NoBaseError without a base.

    truth    the true values, and the range of all possible ones is `lowest` to `highest`
    surveys  simulates many surveys at once: whether they cover, shape (surveys, values), and the
             mean width over that of a baseline (nan without one)
    """

    name: str
    case: WorstCase
    truth: Floats
    draw: Callable[[int, Generator], Round]
    lowest: float = 0.0
    highest: float = 1.0
    times: float = 1.0
    surveys: Callable[[int, int, Generator], tuple[Floats, float]] | None = None

    def sizes(self) -> Iterator[int]:
        """Yield the smallest n that shows the result, and ten times as many, up to 10,000."""
        n = max(math.ceil(self.case.required_n(HIDDEN_MARGIN) * self.times), 25)
        for size in (n, 10 * n):
            if size <= max(SIZES):
                yield size

    def simulate(self, n: int, rounds: int, seed: int) -> tuple[Floats, Booleans, int]:
        """Return where rounds cover, where the earlier rule showed them, and refusals."""
        rng = np.random.default_rng(seed)
        covers, old = np.ones((rounds, self.truth.size), dtype=bool), np.zeros(rounds, dtype=bool)
        n_refused = 0
        for i in range(rounds):
            try:
                results, low, high = self.draw(n, rng)
            except NoBaseError:
                # The page shows the interval of all possible values.
                n_refused += 1
                continue
            assert disclosure(*results) != "hide", f"{self.name}, n {n}"
            old[i] = old_rule(*results)
            truth = self.truth.ravel()
            covers[i] = (low.ravel() <= truth + 1e-9) & (truth <= high.ravel() + 1e-9)
        return covers.astype(float), old, n_refused


def simulated(designs: Iterator[Design], rounds: int) -> tuple[Least, Least]:
    """Return the least coverage of all designs.

    For the rule in use, designs that can simulate many surveys do so `SURVEYS` times; of the
    others, the cells that covered least are simulated again.
    """
    new, old = Least(), Least()
    candidates: list[tuple[float, int, Design, int, str]] = []
    widths: list[float] = []
    for seed, design in enumerate(designs):
        for n in design.sizes():
            covers, shown_before, n_refused = design.simulate(n, rounds, seed)
            place = f"{design.name}, n {n:,}"
            place += f", no base in {n_refused / rounds:.0%}" if n_refused else ""
            cells = covers.mean(axis=0)
            if design.surveys:
                many, width = design.surveys(n, SURVEYS, np.random.default_rng(1_000 + seed))
                new.add(float(many.mean(axis=0).min()), place)
                widths.append(width)
            else:
                candidates.append((float(cells.min()), int(cells.argmin()), design, n, place))
            if shown_before.mean() >= RARELY and shown_before.sum() >= ENOUGH:
                shown = f", shown in {shown_before.mean():.0%}"
                old.add(float(covers[shown_before].mean(axis=0).min()), place + shown)
    if not np.isnan(widths).all():
        print(f"    mean width over the baseline: {np.mean(widths):.3f} ({min(widths):.3f} to "
              f"{max(widths):.3f})")  # fmt: skip
    candidates.sort(key=lambda candidate: candidate[0])
    for _, cell, design, n, place in candidates[:AGAIN]:
        covers, *_ = design.simulate(n, ROUNDS_AGAIN, 1_000)
        new.add(float(covers[:, cell].mean()), place)
    return new, old


SIMULATED_EPSILONS = (0.7, 2.0, 6.0)
NUMBER_EPSILONS = (0.7, 2.0, 5.0, 6.0, 7.0, 8.0)
SURVEYS = 40_000

PARTS_OF_MEDIANS = 4
"""Medians, whose ends are searched one by one, take a quarter of the surveys."""
SHARE_VECTORS = ([0.02, 0.98], [0.0, 0.05, 0.95], [0.5, 0.3, 0.15, 0.05])


def multinomial(channel: Any, truth: Floats, n: int, rng: Generator) -> Floats:
    return rng.multinomial(n, truth @ channel.matrix)


def answered_designs() -> Iterator[Design]:
    for epsilon in SIMULATED_EPSILONS:
        for shares_ in SHARE_VECTORS:
            for refusal in (0.0, 0.2, 0.9):
                truth = np.array(shares_)
                everybody = np.append(truth * (1 - refusal), refusal)
                channel = from_epsilon(everybody.size, epsilon)
                silent = truth.size

                def draw(n, rng, everybody=everybody, channel=channel, silent=silent) -> Round:
                    counts = multinomial(channel, everybody, n, rng)
                    estimate = answered_shares(counts, channel, [silent])
                    return [estimate], estimate.conf_low, estimate.conf_high

                name = f"epsilon {epsilon:g}, shares {shares_[:2]}.., refusal {refusal}"
                yield Design(name, answered_worst_case(channel, (silent,)), truth, draw)


REFUSAL = 0.9
"""Share of people without an answer to a number, much larger than planned."""


def number_designs() -> Iterator[tuple[str, Any, tuple[float | None, ...], Floats]]:
    k = 7
    grid = tuple(float(i) for i in range(k))
    middle = np.exp(-((np.arange(k) - 2) ** 2) / 2)
    distributions = {
        "bell": middle / middle.sum(),
        "all at one end": np.eye(k)[0],
        "few at the other end": np.array([0.97, *[0.0] * (k - 2), 0.03]),
    }
    for epsilon in NUMBER_EPSILONS:
        for name, truth in distributions.items():
            yield f"square wave, epsilon {epsilon:g}, {name}", square_wave(k, epsilon), grid, truth
            channel, values = square_wave(k, epsilon, no_answers=1), (*grid, None)
            everybody = np.append(truth * (1 - REFUSAL), REFUSAL)
            label = f"square wave, epsilon {epsilon:g}, {name}, refusal {REFUSAL}"
            yield label, channel, values, everybody


def _moments(values: Sequence[float | None], truth: Floats) -> tuple[Floats, Floats]:
    answered = np.array([v is not None for v in values])
    numbers = np.array([v for v in values if v is not None])
    return numbers, truth[answered] / truth[answered].sum()


def mean_designs() -> Iterator[Design]:
    others = (
        (
            f"hybrid, epsilon {epsilon:g}, at one end",
            hybrid(7, epsilon),
            tuple(range(7)),
            np.eye(7)[0],
        )
        for epsilon in NUMBER_EPSILONS
    )
    for name, channel, values, truth in [*number_designs(), *others]:
        numbers, shares_ = _moments(values, truth)

        def draw(n, rng, channel=channel, values=values, truth=truth) -> Round:
            estimate = mean(multinomial(channel, truth, n, rng), channel, values)
            return [estimate], np.array([estimate.conf_low]), np.array([estimate.conf_high])

        def surveys(n, rounds, rng, channel=channel, values=values, truth=truth):
            ratios = mean_ratios(channel, values, n)
            counts = rng.multinomial(n, truth @ channel.matrix, size=rounds)
            numbers, shares_ = _moments(values, truth)
            middle, half = (numbers[-1] + numbers[0]) / 2, (numbers[-1] - numbers[0]) / 2
            scaled = np.array([(shares_ @ numbers - middle) / half])
            return hits(simulated_intervals(ratios, counts), scaled)[..., 0].T, math.nan

        case = mean_worst_case(channel, values)
        mean_ = np.array([shares_ @ numbers])
        yield Design(name, case, mean_, draw, numbers[0], numbers[-1], surveys=surveys)


def questions_with_a_median() -> Iterator[tuple[str, Any, tuple[float | None, ...], Floats]]:
    """Yield the questions of numbers, and those for which half are exactly at the median or below.

    A quantile is missed most often there.
    """
    yield from number_designs()
    for epsilon in NUMBER_EPSILONS:
        for truth in ([0.1, 0.2, 0.2, 0.3, 0.1, 0.1, 0.0], [0.5, 0, 0, 0, 0, 0, 0.5],
                      [0.2, 0.27, 0.03, 0.3, 0.1, 0.1, 0.0]):  # fmt: skip
            label = f"square wave, epsilon {epsilon:g}, half in {truth[:3]}"
            yield label, square_wave(7, epsilon), tuple(map(float, range(7))), np.array(truth)


def median_designs() -> Iterator[Design]:
    for name, channel, values, truth in questions_with_a_median():
        numbers, shares_ = _moments(values, truth)
        middle = numbers[int(np.argmax(np.cumsum(shares_) >= 0.5 - 1e-9))]

        def draw(n, rng, channel=channel, values=values, truth=truth) -> Round:
            estimate = median(multinomial(channel, truth, n, rng), channel, values)
            return [estimate], estimate.conf_low, estimate.conf_high

        def surveys(n, rounds, rng, channel=channel, values=values, truth=truth):
            counts = rng.multinomial(n, truth @ channel.matrix, size=rounds)
            counts = counts[: rounds // PARTS_OF_MEDIANS]
            quantiles = QuantileIntervals(channel, np.array(values, dtype=float), counts)
            shares_ = _moments(values, truth)[1]
            rows, baseline = (
                quantiles.hits(0.5, shares_, two_sided=two_sided) for two_sided in (False, True)
            )
            widths = rows[:, 1].mean(), baseline[:, 1].mean()
            return rows[:, :1], widths[0] / widths[1] if widths[1] else 1.0

        case = quantile_worst_case(channel, values)
        true_ = np.array([middle])
        yield Design(name, case, true_, draw, numbers[0], numbers[-1], surveys=surveys)


def histogram_designs() -> Iterator[Design]:
    edges = [0.0, 2.0, 4.0, 7.0]
    for name, channel, values, truth in number_designs():
        _, shares_ = _moments(values, truth)
        cells = np.array([shares_[:2].sum(), shares_[2:4].sum(), shares_[4:].sum()])

        def draw(n, rng, channel=channel, values=values, truth=truth) -> Round:
            estimate = histogram(multinomial(channel, truth, n, rng), channel, values, edges)
            return [estimate], estimate.conf_low, estimate.conf_high

        def surveys(n, rounds, rng, channel=channel, values=values, truth=truth, cells=cells):
            counts = rng.multinomial(n, truth @ channel.matrix, size=rounds)
            distinct = _moments(values, truth)[0]
            members = cell_members(np.array(edges), distinct)
            ratios = set_ratios(channel, np.array(values, dtype=float), members, n)
            # Results also include the displayed share.
            return hits(simulated_intervals(ratios, counts), 2 * cells - 1)[..., 0].T, math.nan

        case = histogram_worst_case(channel, values, edges)
        yield Design(name, case, cells, draw, surveys=surveys)


TABLES = {
    "2 x 2": np.array([[0.01, 0.29], [0.3, 0.4]]),
    "2 x 2, empty cells": np.array([[0.0, 0.0], [0.3, 0.7]]),
    "3 x 3": np.array([[0.3, 0.1, 0.1], [0.05, 0.25, 0.05], [0.0, 0.05, 0.1]]),
    "3 x 3, one large cell": np.array([[0.01] * 3, [0.01] * 3, [0.01, 0.01, 0.92]]),
    "2 x 3, rare column": np.array([[0.02, 0.3, 0.18], [0.01, 0.3, 0.19]]),
}


def table_designs() -> Iterator[tuple[str, Any, Any, Floats]]:
    for epsilon in NUMBER_EPSILONS:
        for name, table in TABLES.items():
            rows, columns = (from_epsilon(k, epsilon) for k in table.shape)
            yield f"{name}, epsilon {epsilon:g}", rows, columns, table


def joint_counts(rows: Any, columns: Any, table: Floats, n: int, rng: Generator) -> Floats:
    reports = rows.matrix.T @ table @ columns.matrix
    return rng.multinomial(n, reports.ravel()).reshape(table.shape)


def crosstab_designs() -> Iterator[Design]:
    for name, rows, columns, table in table_designs():

        def draw(n, rng, rows=rows, columns=columns, table=table) -> Round:
            counts = joint_counts(rows, columns, table, n, rng)
            estimate = crosstab(counts, [rows, columns])
            return [estimate], estimate.conf_low, estimate.conf_high

        yield Design(name, crosstab_worst_case([rows, columns]), table, draw)


def conditional_designs() -> Iterator[Design]:
    for name, rows, columns, table in table_designs():
        for b in range(table.shape[1]):
            truth = table[:, [b]] / table[:, b].sum()

            def draw(n, rng, rows=rows, columns=columns, table=table, b=b) -> Round:
                counts = joint_counts(rows, columns, table, n, rng)
                estimate = conditional(crosstab(counts, [rows, columns]), 1, options=[b])
                return [estimate], estimate.conf_low, estimate.conf_high

            case = conditional_worst_case(PairDesign((rows, columns), table.shape))
            yield Design(f"{name}, given {b}", case, truth, draw)


def answer_difference_designs() -> Iterator[Design]:
    for name, rows, columns, table in table_designs():
        shares_ = table / table.sum(axis=0)
        truth = shares_[:, 0] - shares_[:, 1]

        def draw(n, rng, rows=rows, columns=columns, table=table) -> Round:
            crossed = crosstab(joint_counts(rows, columns, table, n, rng), [rows, columns])
            both = conditional(crossed, 1, options=[0, 1])
            estimate = conditional_difference(crossed, [0, 1])
            return [both], estimate.conf_low, estimate.conf_high

        yield Design(
            name,
            conditional_worst_case(PairDesign((rows, columns), table.shape)),
            truth,
            draw,
            -1.0,
        )


def standardized_designs() -> Iterator[Design]:
    for name, rows, columns, table in table_designs():
        population = np.arange(1.0, table.shape[1] + 1)
        population /= population.sum()
        truth = (table / table.sum(axis=0)) @ population

        def draw(n, rng, rows=rows, columns=columns, table=table, population=population) -> Round:
            crossed = crosstab(joint_counts(rows, columns, table, n, rng), [rows, columns])
            estimate = standardized_shares(crossed, population)
            return [estimate], estimate.conf_low, estimate.conf_high

        case = standardized_worst_case(PairDesign((rows, columns), table.shape), population)
        yield Design(name, case, truth, draw)


MEAN_DIFFERENCES = (
    ("ends", np.eye(7)[0], np.eye(7)[6]),
    ("equal", np.full(7, 1 / 7), np.full(7, 1 / 7)),
    ("rare and common", np.array([0.9, 0, 0, 0, 0, 0, 0.1]), np.array([0.1, 0, 0, 0, 0, 0, 0.9])),
    ("halves and one end", np.array([0.5, 0, 0, 0, 0, 0, 0.5]), np.eye(7)[0]),
)
"""The shares of both groups."""

MEAN_DIFFERENCE_EPSILONS = (0.7, 2.0, 4.0, 6.0, 8.0)
MEAN_DIFFERENCE_RATIOS = (1, 20)
"""How many times more reports the second group has than the first."""


def mean_difference_designs() -> Iterator[Design]:
    for epsilon, ratio in product(MEAN_DIFFERENCE_EPSILONS, MEAN_DIFFERENCE_RATIOS):
        channel, values = square_wave(7, epsilon), tuple(float(i) for i in range(7))
        for name, a, b in MEAN_DIFFERENCES:

            def draw(n, rng, a=a, b=b, channel=channel, values=values, ratio=ratio) -> Round:
                groups = [
                    mean(multinomial(channel, x, m, rng), channel, values)
                    for x, m in ((a, n), (b, ratio * n))
                ]
                estimate = mean_difference(*groups)
                return groups, np.array([estimate.conf_low]), np.array([estimate.conf_high])

            truth = np.array([(a - b) @ np.array(values)])
            case = mean_worst_case(channel, values)
            place = f"{name}, epsilon {epsilon:g}, sizes 1 to {ratio}"
            yield Design(place, case, truth, draw, -6.0, 6.0)


STRATA = (
    (np.array([0.5, 0.3, 0.2]), np.array([[0.02, 0.98], [0.1, 0.9], [0.4, 0.6]])),
    (np.array([0.7, 0.2, 0.1]), np.array([[0.0, 0.3, 0.7], [0.05, 0.6, 0.35], [0.5, 0.0, 0.5]])),
    (np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])),
)


def weighted_designs() -> Iterator[Design]:
    for epsilon in SIMULATED_EPSILONS:
        for people, answers in STRATA:
            channel, sampled = from_epsilon(answers.shape[1], epsilon), np.array([0.2, 0.3, 0.5])
            weights = people / sampled

            def draw(
                n, rng, answers=answers, channel=channel, weights=weights, sampled=sampled
            ) -> Round:
                sizes = np.round(n * sampled).astype(int)
                counts = [
                    multinomial(channel, a, m, rng) for a, m in zip(answers, sizes, strict=True)
                ]
                estimate = weighted_shares(counts, weights, channel)
                return [estimate], estimate.conf_low, estimate.conf_high

            name = f"epsilon {epsilon:g}, weights {weights.round(1).tolist()}"
            # n (sum w^2)/(sum w)^2
            times = float((sampled * weights**2).sum()) * 1.02
            case = channel_worst_case(channel)
            yield Design(name, case, people @ answers, draw, times=times)


def poststratified_designs() -> Iterator[Design]:
    for epsilon in SIMULATED_EPSILONS:
        for people, answers in STRATA:
            channel = from_epsilon(answers.shape[1], epsilon)

            def draw(n, rng, people=people, answers=answers, channel=channel) -> Round:
                sizes = np.round(n * people).astype(int)
                counts = [
                    multinomial(channel, a, m, rng) for a, m in zip(answers, sizes, strict=True)
                ]
                estimate = poststratified(counts, people, channel)
                return [estimate], estimate.conf_low, estimate.conf_high

            name = f"epsilon {epsilon:g}, strata of {people.tolist()}"
            case = channel_worst_case(channel)
            yield Design(name, case, people @ answers, draw, times=1.05)


def regression_designs() -> Iterator[Design]:
    for epsilon in SIMULATED_EPSILONS:
        for odds_ratio in (1.0, 4.0):
            outcome, predictor = from_epsilon(2, epsilon), from_epsilon(2, epsilon)
            logit = np.log(0.3 / 0.7) + np.array([0.0, math.log(odds_ratio)])
            yes = 1 / (1 + np.exp(-logit))
            table = np.stack([1 - yes, yes]) / 2

            def draw(n, rng, outcome=outcome, predictor=predictor, table=table) -> Round:
                counts = joint_counts(outcome, predictor, table, n, rng)
                y, x = np.nonzero(counts)
                fit = regression(
                    y,
                    outcome,
                    randomized=[Randomized("x", x, predictor)],
                    times=counts[y, x],
                )
                crossed = crosstab(counts, [outcome, predictor])
                return [crossed], fit.conf_low[..., 1:], fit.conf_high[..., 1:]

            name = f"epsilon {epsilon:g}, odds ratio {odds_ratio:g}"
            case = regression_worst_case(outcome, predictor, 2)
            truth = np.array([math.log(odds_ratio)])
            yield Design(name, case, truth, draw, -math.inf, math.inf)


ANALYSES: dict[str, tuple[Callable[[], Iterator[Design]], float]] = {
    "answered shares": (answered_designs, 1.0),
    "crosstab": (crosstab_designs, 1.0),
    "conditional shares": (conditional_designs, 0.5),
    "difference by answer": (answer_difference_designs, 0.5),
    "mean": (mean_designs, 0.5),
    "median": (median_designs, 0.25),
    "histogram": (histogram_designs, 0.25),
    "mean difference": (mean_difference_designs, 1.0),
    "weighted shares": (weighted_designs, 1.0),
    "post-stratified shares": (poststratified_designs, 1.0),
    "standardized shares": (standardized_designs, 0.5),
    "regression": (regression_designs, 0.5),
}
"""The designs of each analysis, and its rounds relative to `ROUNDS`."""


ENUMERATED: dict[str, Callable[[], tuple[Least, Least]]] = {
    "shares": shares,
    "difference of groups": differences,
}
"""Analyses whose outcomes are all enumerated."""


SHORT = {
    "ANALYSES": {name: ANALYSES[name] for name in ("crosstab", "mean", "weighted shares")},
    "OPTIONS": (2,),
    "EPSILONS": (2.0,),
    "SIZES": (250,),
    "DIFFERENCE_EPSILONS": (2.0,),
    "DIFFERENCE_SHARES": np.linspace(0, 1, 11),
    "RATIOS": (1.0,),
    "EXAMPLES": EXAMPLES[:1],
    "SIMULATED_EPSILONS": (2.0,),
    "NUMBER_EPSILONS": (2.0,),
    "MEAN_DIFFERENCE_EPSILONS": (2.0,),
    "MEAN_DIFFERENCE_RATIOS": (1,),
    "ROUNDS": 8,
    "ROUNDS_AGAIN": 20,
    "SURVEYS": 200,
}
LEAST_PLAUSIBLE = 0.7
"""A coverage below this means a fault, even in a short run, which simulates 20 surveys again."""


def needed() -> None:
    """Print respondents needed over respondents announced, by the part of questions asked."""
    case = channel_worst_case(from_epsilon(4, 1))
    N = case.required_n(HIDDEN_MARGIN)
    rng = np.random.default_rng(5)
    print(f"\nrespondents needed / announced, from {N} reports (target .9 to 1.1)")
    for s, M in ((1, 1), (3, 4), (2, 8), (1, 10)):
        # Respondents until N of them were asked.
        totals = N + rng.negative_binomial(N, s / M, 20_000) if s < M else np.array([N])
        ratio = totals / (N * M / s)
        print(f"  asked {s} of {M:>2}: mean {ratio.mean():.3f}, middle 90% "
              f"{np.quantile(ratio, 0.05):.2f} to {np.quantile(ratio, 0.95):.2f}")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("parts", nargs="*", metavar="ANALYSIS")
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        measure(options.parts)


def measure(parts: Sequence[str]) -> None:
    """Print the given analyses, or all analyses."""
    print(f"k {OPTIONS}, epsilon {EPSILONS}, n {SIZES}, shares 0 to 1; simulated analyses: epsilon "
          f"{SIMULATED_EPSILONS}, of numbers {NUMBER_EPSILONS}")  # fmt: skip
    print(f"{'':<24}{'least':>7}{'target':>8}{'ratio':>7}{'old rule':>10}{'seconds':>9}")
    for name in (*ENUMERATED, *ANALYSES):
        if parts and name not in parts:
            continue
        start = perf_counter()
        if name in ENUMERATED:
            new, old = ENUMERATED[name]()
        else:
            designs, relative = ANALYSES[name]
            new, old = simulated(designs(), int(ROUNDS * relative))
        if new.coverage < math.inf:
            require_range(f"{name}: least coverage", new.coverage, LEAST_PLAUSIBLE, 1.0 + 1e-9)
        missed = "" if new.coverage >= TARGET else "  MISSED"
        print(f"{name:<24}{new.coverage:>7.4f}{TARGET:>8}{new.coverage / TARGET:>7.3f}"
              f"{old.coverage:>10.3f}{perf_counter() - start:>9.0f}{missed}")  # fmt: skip
        print(f"    least: {new.place}\n    old rule: {old.place}", flush=True)
        if name == "shares":
            print_examples()
    if not parts or "needed" in parts:
        needed()


if __name__ == "__main__":
    main()
