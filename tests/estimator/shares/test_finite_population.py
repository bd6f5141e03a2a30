"""Finite populations: coverage by enumeration of every outcome of every population."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from survey.errors import DesignError
from survey.estimator import finite_shares, proportions
from survey.estimator.core.finite_population import exact_ends, outcome_table
from survey.estimator.core.intervals import continuity, finite_population
from survey.mechanism import BitVector, SubsetSelection, from_epsilon, from_ratio, grr
from survey.mechanism.numeric import geometric
from tests.cases import each_case

ROUNDING = 1e-9


def all_outcomes(channel: SubsetSelection, n: int, N: int):
    """Return the interval ends for every count of option 0; shape (n + 1,)."""
    ends = []
    for count in range(n + 1):
        remainder = n - count
        padding = [remainder, *[0] * (channel.k - 2)]
        result = finite_shares([count, *padding], channel, N)
        ends.append((result.conf_low[0], result.conf_high[0]))
    return np.array(ends).T


def outcomes_of(channel: SubsetSelection, n: int):
    """Return P(count | m of n respondents have the answer), shape (n + 1, n + 1)."""
    return np.array(
        [
            np.convolve(
                binom.pmf(np.arange(m + 1), m, channel.p),
                binom.pmf(np.arange(n - m + 1), n - m, channel.q),
            )
            for m in range(n + 1)
        ]
    )


def smallest_coverage(channel: SubsetSelection, n: int, N: int) -> float:
    low, high = all_outcomes(channel, n, N)
    assert np.all(high > low)
    outcomes = outcomes_of(channel, n)
    smallest = 1.0
    for M in range(N + 1):
        chances = hypergeom.pmf(np.arange(n + 1), N, M, n) @ outcomes
        covered = (low <= M / N + 1e-9) & (high >= M / N - 1e-9)
        smallest = min(smallest, float(chances[covered].sum()))
    return smallest


@pytest.mark.slow
@each_case("epsilon", ["0.5", "1", "2", "4"])
@each_case(("n", "N"), [(2, 20), (10, 20), (20, 20), (20, 60), (54, 60)])
def test_the_interval_covers_every_population(epsilon, n, N):
    for k in (2, 4):
        assert smallest_coverage(from_epsilon(k, epsilon), n, N) >= 0.95 - ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["8", "12"])
def test_the_interval_covers_if_nearly_everybody_responded(epsilon):
    for n, N in ((9, 10), (19, 20), (39, 40), (99, 100)):
        assert smallest_coverage(from_epsilon(4, epsilon), n, N) >= 0.95 - ROUNDING


@pytest.mark.long
@each_case("k", [2, 4, 10])
@each_case("epsilon", ["0.5", "1", "2", "3", "4", "8", "12"])
def test_the_interval_covers_every_population_on_a_grid(k, epsilon):
    for n, N in (
        (10, 100),
        (50, 100),
        (90, 100),
        (99, 100),
        (100, 100),
        (20, 200),
        (100, 200),
        (200, 200),
    ):
        assert smallest_coverage(from_epsilon(k, epsilon), n, N) >= 0.95 - ROUNDING


@pytest.mark.parametrize(("level", "minimum"), [(0.9, 0.9), (0.99, 0.99)])
@pytest.mark.parametrize(("epsilon", "n"), [("5", 5), ("6", 15), ("8", 60)])
def test_the_interval_for_these_respondents_covers_at_other_levels(level, minimum, epsilon, n):
    channel = from_epsilon(10, epsilon)
    outcomes, padding = outcomes_of(channel, n), [0] * 8
    results = [
        proportions([c, n - c, *padding], channel, interval="fixed-population", level=level)
        for c in range(n + 1)
    ]
    low, high = (
        np.array([getattr(result, end)[0] for result in results])
        for end in ("conf_low", "conf_high")
    )
    for m in range(n + 1):
        covered = (low <= m / n + 1e-9) & (m / n - 1e-9 <= high)
        assert outcomes[m][covered].sum() >= minimum - ROUNDING


def test_the_probabilities_of_outcomes_are_those_of_drawing_people_and_randomizing_their_answers():
    channel = grr(3, "0.7")
    drawn = np.array([hypergeom.pmf(np.arange(9), 20, M, 8) for M in range(21)])
    expected = drawn @ outcomes_of(channel, 8)
    np.testing.assert_allclose(outcome_table(8, 20, channel.q, channel.p), expected, atol=1e-13)


@each_case("epsilon", ["0.3", "2", "8"])
@each_case(("n", "N"), [(3, 3), (60, 60), (40, 90)])
def test_intervals_contain_the_estimate_and_those_of_lower_levels_and_mirror_each_other(
    n, N, epsilon
):
    channel, outer = from_epsilon(2, epsilon), None
    linear = (np.arange(n + 1) / n - channel.q) / (channel.p - channel.q)
    estimate = np.clip(linear, 0, 1)
    for level in (0.999, 0.99, 0.95, 0.9, 0.5, 0.1):
        low, high = exact_ends(n, N, channel.q, channel.p, level)
        assert np.all(high > low)
        assert np.all((low <= estimate + ROUNDING) & (estimate <= high + ROUNDING))
        np.testing.assert_allclose(low, 1 - high[::-1], atol=ROUNDING)
        if outer is not None:
            assert np.all((outer[0] <= low) & (high <= outer[1]))
        outer = low, high


@each_case(
    ("k", "epsilon", "most"), [(2, "1", 0.97), (10, "1", 0.96), (2, "8", 0.65), (4, "6", 0.8)]
)
def test_exact_intervals_are_narrower_than_score_intervals(monkeypatch, k, epsilon, most):
    channel, n = from_epsilon(k, epsilon), 400
    outcomes, width = outcome_table(n, n, channel.q, channel.p), {}
    for name in ("exact", "score"):
        low, high = finite_population(np.arange(n + 1), n, channel.q, channel.p, 0.95, n)
        width[name] = (outcomes @ (high - low)).mean() / (channel.p - channel.q)
        monkeypatch.setattr("survey.estimator.core.intervals.has_table", lambda *_: False)
    monkeypatch.undo()
    assert width["exact"] <= most * width["score"]


def test_outcomes_too_rare_for_double_precision_have_the_ends_of_their_neighbours():
    is_too_rare = outcome_table(400, 400, 0.09, 0.11).max(axis=0) == 0
    low, high = exact_ends(400, 400, 0.09, 0.11, 0.95)
    assert is_too_rare[-1]
    assert np.all(low[is_too_rare] == 1 - 0.5 / 400)
    assert np.all(high[is_too_rare] == 1)


def test_a_census_has_the_interval_for_these_respondents():
    counts, channel = [130, 270], grr(2, "3/4")
    everybody = finite_shares(counts, channel, 400)
    fixed = proportions(counts, channel, interval="fixed-population")
    np.testing.assert_allclose(everybody.conf_low, fixed.conf_low, atol=1e-12)
    np.testing.assert_allclose(everybody.conf_high, fixed.conf_high, atol=1e-12)
    assert np.all(everybody.sampling == 0)


def test_an_infinite_population_has_the_usual_error():
    counts, channel = [130, 270], grr(2, "3/4")
    infinite, usual = finite_shares(counts, channel, 10**9), proportions(counts, channel)
    np.testing.assert_allclose(infinite.std_error, usual.std_error, rtol=1e-6)
    wilson = proportions(counts, channel, interval="wilson")
    # Wider by the continuity correction only.
    step = continuity(0.95) / (400 * 0.5)
    np.testing.assert_allclose(infinite.conf_low, wilson.conf_low - step, atol=2e-4)
    np.testing.assert_allclose(infinite.conf_high, wilson.conf_high + step, atol=2e-4)


def test_the_error_is_that_of_simulated_surveys():
    rng, channel, N, n, rounds = np.random.default_rng(5), grr(2, "0.9"), 1000, 700, 4000
    with_answer = rng.hypergeometric(300, 700, n, size=rounds)
    counts = rng.binomial(with_answer, 0.9) + rng.binomial(n - with_answer, 0.1)
    estimates = (counts / n - 0.1) / 0.8
    result = finite_shares([238, 462], channel, N)
    assert result.std_error[0] == pytest.approx(estimates.std(), rel=0.05)
    # Without the correction of the sampling part it would be a third larger.
    assert proportions([238, 462], channel).std_error[0] > 1.25 * estimates.std()


@pytest.mark.parametrize(
    ("counts", "channel", "n"),
    [
        ([700, 1300], grr(2, "3/4"), None),
        ([700, 1300], from_ratio(2, 1, 3), None),
        ([500, 300, 200], grr(3, "0.6"), None),
        ([300, 200, 200, 100], BitVector(m=4, s=2, alone=1, sampled=4, T=3, L=1), 500),
    ],
)
def test_the_two_parts_of_an_error_add_up(counts, channel, n):
    half = finite_shares(counts, channel, 4000, n=n)
    np.testing.assert_allclose(half.std_error**2, half.sampling**2 + half.randomization**2)
    everybody = finite_shares(counts, channel, half.n, n=n)
    assert np.all(everybody.sampling == 0)
    np.testing.assert_allclose(everybody.randomization, half.randomization)
    pi = np.clip(half.estimate, 0, 1)
    p, q = channel.p, channel.q
    closed = (pi * p * (1 - p) + (1 - pi) * q * (1 - q)) / (half.n * (p - q) ** 2)
    np.testing.assert_allclose(half.randomization**2, closed)


def test_options_without_asked_respondents_have_the_whole_range():
    channel = BitVector(m=3, s=1, alone=1, sampled=1, T=3, L=1)
    counts = [40, 0, 60, 20, 0, 30]
    result = finite_shares(counts, channel, 200)
    assert (result.conf_low[1], result.conf_high[1]) == (0, 1)


def test_tables_have_finite_populations_too():
    result = finite_shares([300, 350, 350], geometric(3, 2, no_answers=0), 1200)
    assert np.all(result.conf_low < result.conf_high)
    assert np.all(result.sampling < result.std_error)


@pytest.mark.parametrize(
    ("population", "words"),
    [(399, "smaller"), (0, "smaller"), (500.5, "whole"), (math.nan, "whole"), (True, "whole")],
)
def test_wrong_populations_are_rejected_by_name(population, words):
    with pytest.raises(DesignError, match=words):
        finite_shares([130, 270], grr(2, "3/4"), population)
