"""Coverage of intervals by exact enumeration of all outcomes, without simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from survey.estimator import proportions
from survey.estimator.core.intervals import INTERVALS, _between, _overtaking, feldman_cousins
from survey.mechanism import SubsetSelection, from_epsilon, from_ratio, grr
from tests.cases import each_case
from tests.estimator.enumeration import all_ends, exact_coverage, mean_width

SHARES = np.linspace(0, 1, 101)
ROUNDING = 1e-9

CHANNELS = [
    from_epsilon(k, epsilon) for k in (2, 4, 10) for epsilon in (0.5, 1.0, math.log(3), 2.0)
]
EXTREMES = [
    from_epsilon(2, "0.01"),
    from_epsilon(2, 12),
    # Another interval fails for this channel at n = 1000.
    from_epsilon(2, 4),
    from_epsilon(10_000, 6),
    # Inverted Warner: p < q.
    from_ratio(2, 1, 3),
]


@pytest.mark.slow
@each_case("channel", CHANNELS + EXTREMES)
@each_case("n", [1, 2, 7, 50, 200, 1000])
@pytest.mark.web
def test_feldman_cousins_covers_every_share_with_at_least_the_level(
    n: int, channel: SubsetSelection
) -> None:
    assert exact_coverage(all_ends(n, channel, "feldman-cousins")).min() >= 0.95 - ROUNDING


@each_case("level", [0.7, 0.8, 0.9, 0.99, 0.999])
@each_case("channel", [grr(2, "3/4"), grr(4, "0.9")])
def test_feldman_cousins_covers_at_other_levels(channel: SubsetSelection, level: float) -> None:
    ends = all_ends(120, channel, "feldman-cousins", level)
    assert exact_coverage(ends).min() >= level - ROUNDING
    assert np.all(ends.width > 0)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.6])
def test_even_at_low_levels_the_default_has_no_zero_width(level: float) -> None:
    for channel in (grr(2, "3/4"), grr(10, "0.2"), from_epsilon(10, "0.01")):
        for n in (1, 30, 1000):
            assert np.all(all_ends(n, channel, "feldman-cousins", level).width > 0)


@each_case("channel", CHANNELS + EXTREMES)
def test_clopper_pearson_covers_every_share_with_at_least_the_level(
    channel: SubsetSelection,
) -> None:
    for n in (1, 50, 200):
        assert exact_coverage(all_ends(n, channel, "clopper-pearson")).min() >= 0.95 - ROUNDING


@each_case("channel", CHANNELS)
def test_the_wilson_hull_covers_nearly_once_n_is_large_enough(channel: SubsetSelection) -> None:
    n = math.ceil(200 / min(channel.q, 1 - channel.p))
    assert exact_coverage(all_ends(n, channel, "wilson-hull")).min() >= 0.944


@pytest.mark.slow
def test_the_default_interval_is_on_average_no_wider_than_wilsons_by_more_than_a_fiftieth() -> None:
    ratios = [
        mean_width(all_ends(n, channel, "feldman-cousins"), SHARES)
        / mean_width(all_ends(n, channel, "wilson"), SHARES)
        for n in (50, 200, 1000)
        for channel in CHANNELS
    ]
    assert np.mean(ratios) <= 1.02
    assert max(ratios) <= 1.05


@pytest.mark.slow
@each_case("interval", ["feldman-cousins", "wilson-hull"])
@each_case("channel", CHANNELS + EXTREMES)
def test_no_interval_of_these_has_zero_width(channel: SubsetSelection, interval: str) -> None:
    for n in (1, 50, 1000):
        assert np.all(all_ends(n, channel, interval).width > 0)


@each_case("interval", list(INTERVALS))
def test_ends_rise_with_the_count_and_stay_between_0_and_1(interval: str) -> None:
    for channel in (grr(2, "3/4"), grr(10, "0.3"), from_epsilon(3, 8)):
        ends = all_ends(300, channel, interval)
        assert np.all(np.diff(ends.low) >= 0)
        assert np.all(np.diff(ends.high) >= 0)
        assert ends.low.min() == 0
        assert ends.high.max() == 1


def test_the_default_is_one_method_at_every_n_and_its_ends_never_jump() -> None:
    channel = grr(2, "3/4")
    for share in (0.2, 0.26, 0.4, 0.72, 0.76):
        # n min(q, 1-p) is 200 at n = 800: an approximation might take over there.
        before, after = (
            proportions([round(n * share), n - round(n * share)], channel) for n in (799, 801)
        )
        error = 0.5 / math.sqrt(800) / (channel.p - channel.q)
        assert before.method == after.method == "feldman-cousins"
        assert abs(before.conf_low - after.conf_low).max() < 0.06 * error
        assert abs(before.conf_high - after.conf_high).max() < 0.06 * error
    assert proportions([10**7, 10**7], channel).method == "feldman-cousins"


def coverage_of_fixed_populations(n: int, channel: SubsetSelection, low, high) -> list[float]:
    """Return the exact coverage for each population in which m of n respondents hold the option."""
    coverages = []
    for m in range(n + 1):
        chances = binom.pmf(np.arange(m + 1), m, channel.p)
        chances_of_others = binom.pmf(np.arange(n - m + 1), n - m, channel.q)
        covers = (low <= m / n + ROUNDING) & (m / n - ROUNDING <= high)
        coverages.append(float(np.convolve(chances, chances_of_others) @ covers))
    return coverages


@pytest.mark.slow
@each_case("channel", CHANNELS + EXTREMES)
def test_the_fixed_population_interval_covers_the_share_among_these_respondents(
    channel: SubsetSelection,
) -> None:
    for n in (1, 2, 5, 10, 20, 50, 120):
        ends = all_ends(n, channel, "fixed-population")
        assert np.all(ends.width > 0)
        covered = coverage_of_fixed_populations(n, channel, ends.low, ends.high)
        assert min(covered) >= 0.95 - ROUNDING


def test_the_fixed_population_interval_is_narrower_by_what_sampling_adds() -> None:
    channel, n = grr(2, "3/4"), 4000
    fixed, sampled = (all_ends(n, channel, name) for name in ("fixed-population", "wilson"))
    middle = n // 2
    # pi = 1/2: V = 3/16 against 1/4 of the reports.
    assert fixed.width[middle] / sampled.width[middle] == pytest.approx(np.sqrt(0.75), abs=0.01)


def accepted_by_definition(n: int, a: float, b: float, level: float, share: float) -> set[int]:
    """Return the outcomes with the highest likelihood ratios that together reach the level."""
    c = np.arange(n + 1)
    best = np.clip(c / n, a, b)
    ratio = c * np.log(share / best) + (n - c) * np.log((1 - share) / (1 - best))
    probability = binom.pmf(c, n, share)
    order = np.lexsort((-probability, -np.round(ratio, 11)))
    enough = np.searchsorted(np.cumsum(probability[order]), level - 1e-13) + 1
    return set(order[:enough].tolist())


@pytest.mark.parametrize(
    ("n", "a", "b"),
    [(1, 0.3, 0.7), (5, 0.25, 0.75), (20, 0.1, 0.6), (60, 0.27, 0.73), (80, 0.05, 0.15)],
)
def test_feldman_cousins_is_the_hull_of_the_sets_its_definition_accepts(
    n: int, a: float, b: float
) -> None:
    low, high = feldman_cousins(np.arange(n + 1), n, a, b, 0.95)
    for share in np.linspace(a, b, 301):
        for c in accepted_by_definition(n, a, b, 0.95, share):
            assert low[c] <= share <= high[c]
    inwards = 1e-4 * math.sqrt(a * (1 - a) / n)
    for c in range(n + 1):
        assert c in accepted_by_definition(n, a, b, 0.95, low[c] + inwards)
        assert c in accepted_by_definition(n, a, b, 0.95, high[c] - inwards)


@pytest.mark.slow
@each_case("a", [1e-6, 0.05, 0.3, 0.7, 0.97])
@each_case("part", [1e-4, 0.1, 0.6, 0.9999])
def test_the_acceptance_probability_falls_as_outcomes_drop_out(a: float, part: float) -> None:
    b = a + (1 - a) * part
    for n in (*range(1, 25), 60, 200):
        counts = np.arange(math.floor(n * a) + 1, n + 1)
        # Every m below every c.
        c, m = np.repeat(counts, counts), np.concatenate([np.arange(count) for count in counts])
        at = _overtaking(m, c, n, np.full(c.shape, a), np.full(c.shape, b))
        is_same_c = np.diff(c) == 0
        assert np.all(np.diff(at)[is_same_c] >= -ROUNDING)
        assert np.all(np.diff(_between(m + 1, c, n, at))[is_same_c] <= ROUNDING)


@pytest.mark.long
@each_case("k", [2, 3, 4, 10, 100])
@each_case("epsilon", ["0.05", "0.5", "1", "1.5", "2", "3", "4", "6", "8", "12"])
def test_feldman_cousins_covers_on_a_finer_grid(k: int, epsilon: str) -> None:
    channel = from_epsilon(k, epsilon)
    for n in (*range(1, 100), 150, 300, 500, 799, 801, 2000, 5000, 20_000):
        ends = all_ends(n, channel, "feldman-cousins")
        assert np.all(ends.width > 0)
        assert exact_coverage(ends).min() >= 0.95 - ROUNDING
