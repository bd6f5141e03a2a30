"""Comparisons with Google's accountant, other mechanisms' full tables and simulated populations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import product

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from survey.errors import ChannelError
from survey.mechanism import BitVector, SubsetSelection, WeightTable, best, from_epsilon, grr
from survey.mechanism.composition import composed_epsilon, total_epsilon
from survey.mechanism.numeric import gaussian_delta
from survey.mechanism.simulation import CHUNK, population
from survey.mechanism.weight_table import OneBit, Window
from tests.benchmarks import mechanism_variance as rivals
from tests.cases import each_case

ROUNDING = 1e-9

# Variance: the chosen channel against GRR, OUE, OLH and Hadamard response.


@each_case("k", [*range(2, 20), 30, 64, 100, 256, 1000])
@each_case("epsilon", ["0.1", "0.5", "1", "1.0986", "2", "3", "4", "8"])
def test_the_chosen_channel_is_never_worse_than_grr_oue_olh_or_hadamard(k, epsilon):
    channel = best(k, epsilon)
    variance_of_choice = rivals.closed_form(channel)
    for name, variance in rivals.RIVALS.items():
        assert variance_of_choice <= variance(k, float(channel.ratio)) * (1 + ROUNDING), name


@given(k=st.integers(2, 400), epsilon=st.integers(5, 1200))
def test_no_other_size_of_set_and_no_rival_has_a_smaller_variance(k, epsilon):
    channel = best(k, Fraction(epsilon, 100))
    r = float(channel.ratio)
    variance_of_choice = rivals.closed_form(channel)
    rival_variances = [variance(k, r) for variance in rivals.RIVALS.values()]
    sets = [rivals.subset_selection(k, d, r) for d in range(1, k)]
    # d is chosen for the epsilon that was stated, slightly above that of the integers.
    assert variance_of_choice <= min(rival_variances + sets) * (1 + 1e-6)


@each_case(("k", "epsilon"), [(2, "1"), (5, "0.5"), (7, "1"), (10, "2"), (16, "4")])
def test_simulated_surveys_have_the_closed_forms_variance(k, epsilon):
    channel = best(k, epsilon)
    rng = np.random.default_rng(20261121)
    simulated, error = rivals.simulated_variance(channel, people=200, rounds=400, rng=rng)
    assert abs(simulated - rivals.closed_form(channel)) < 4 * error
    assert error < 0.1 * simulated


def supports(table: np.ndarray, sets: np.ndarray) -> tuple[float, float]:
    """Return p and q of a pure protocol from its table (truth, report) and supported sets."""
    chances = table @ sets.T
    p = np.diag(chances)
    q = chances[~np.eye(len(table), dtype=bool)]
    np.testing.assert_allclose([*p, *q], [p[0]] * p.size + [q[0]] * q.size)
    return float(p[0]), float(q[0])


def ratio_of(table: np.ndarray) -> float:
    np.testing.assert_allclose(table.sum(axis=1), 1)
    return float((table.max(axis=0) / table.min(axis=0)).max())


@each_case("r", [1.5, 3.0, 20.0])
def test_the_closed_form_of_oue_is_the_one_of_its_whole_table(r):
    k = 3
    reports = np.array(list(product((0, 1), repeat=k)))
    p, q = 0.5, 1 / (r + 1)
    shares = np.where(np.eye(k, dtype=bool), p, q)
    table = np.prod(np.where(reports[None], shares[:, None], 1 - shares[:, None]), axis=2)
    assert ratio_of(table) == pytest.approx(r)
    assert rivals.pure_variance(*supports(table, reports.T), k) == pytest.approx(rivals.oue(k, r))


@each_case(("g", "r"), [(2, 1.5), (3, 3.0), (4, 3.0)])
def test_the_closed_form_of_olh_is_the_one_of_its_whole_table(g, r):
    k = 3
    # A report is one of all g^k hash functions and one of its g values.
    hashes = np.array(list(product(range(g), repeat=k)))
    reports = [(function, value) for function in hashes for value in range(g)]
    sets = np.array([function == value for function, value in reports]).T
    table = np.where(sets, r, 1.0) / ((r + g - 1) * len(hashes))
    assert ratio_of(table) == pytest.approx(r)
    variance = rivals.pure_variance(*supports(table, sets), k)
    assert variance == pytest.approx(rivals.local_hashing(k, r, g))


def hadamard_matrix(size: int) -> np.ndarray:
    """Return Sylvester's matrix: H_1 = (1), H_2n = ((H, H), (H, -H))."""
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@each_case(("k", "blocks"), [(2, 1), (3, 1), (5, 1), (4, 2), (5, 2), (7, 4), (8, 8)])
@each_case("r", [1.5, 3.0, 30.0])
def test_the_closed_form_of_hadamard_response_is_the_one_of_its_whole_table(k, blocks, r):
    sizes = rivals.block_sizes(k, blocks)
    # The size is a power of two above the options of a block; no option has the row of ones.
    width = 2 ** math.ceil(math.log2(max(sizes) + 1))
    rows = hadamard_matrix(width)
    owner = [(block, i) for block, size in enumerate(sizes) for i in range(size)]
    signs = np.zeros((k, blocks * width))
    for option, (block, i) in enumerate(owner):
        signs[option, block * width : (block + 1) * width] = rows[i + 1]
    table = np.where(signs > 0, r, 1.0)
    table /= table.sum(axis=1, keepdims=True)
    assert ratio_of(table) == pytest.approx(r)
    # One report counts +-Z/(r-1) in its block: unbiased, and its variance at pi = 1/k.
    scores = signs * (r + 2 * blocks - 1) / (r - 1)
    np.testing.assert_allclose(table @ scores.T, np.eye(k), atol=1e-12)
    reported = table.mean(axis=0)
    variance = np.mean(scores**2 @ reported - (scores @ reported) ** 2)
    assert variance == pytest.approx(rivals.hadamard_response(k, r, blocks))


# Composition: Google's dp-accounting.

COMPOSITIONS = {
    "ten coins": [grr(2, "3/4")] * 10,
    "ten questions at 85 per cent": [grr(2, "0.85")] * 10,
    "three different questions": [grr(2, "3/4"), grr(5, "0.85"), from_epsilon(10, "0.3")],
    "twenty weak questions": [from_epsilon(4, "0.1")] * 20,
    "one question of a thousand options": [from_epsilon(1000, "1.5")],
}
STEP = 1e-6


def google_epsilon(channels: Sequence[SubsetSelection], pessimistic: bool) -> float:
    """Return epsilon at delta 0 of all channels, from loss distributions on a grid of STEP."""
    losses = [
        privacy_loss_distribution.from_randomized_response(
            _chance_of_any_option(channel),
            channel.k,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=STEP,
        )
        for channel in channels
    ]
    together = reduce(lambda first, second: first.compose(second), losses)
    return float(together.get_epsilon_for_delta(0.0))


def _chance_of_any_option(channel: SubsetSelection) -> float:
    """Return the parameter of Google's coin form: the chance of a uniformly random option."""
    return float(channel.k * channel.exact_q)


@each_case("channels", COMPOSITIONS.values())
def test_the_total_epsilon_is_google_dp_accountings(channels):
    ours = total_epsilon([channel.ratio for channel in channels])
    low, high = google_epsilon(channels, False), google_epsilon(channels, True)
    assert low - ROUNDING <= ours <= high + ROUNDING
    assert high - low <= 2 * len(channels) * STEP + ROUNDING


CHANNELS = {
    **COMPOSITIONS,
    "a hundred weak questions": [from_epsilon(4, "0.1")] * 100,
    "four hundred questions of small epsilon": [from_epsilon(7, "0.05")] * 400,
}


@each_case("channels", CHANNELS.values())
def test_neither_of_our_epsilons_is_below_the_optimal_composition(channels):
    accountant = PLDAccountant(
        dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval=1e-4
    )
    for channel, n in Counter(channels).items():
        event = dp_accounting.RandomizedResponseDpEvent(_chance_of_any_option(channel), channel.k)
        accountant.compose(event, n)
    for delta in (1e-9, 1e-6, 1e-2):
        optimal = accountant.get_epsilon(delta) - 1e-4 * len(channels)
        assert total_epsilon([channel.ratio for channel in channels]) >= optimal, delta
        assert composed_epsilon([channel.epsilon for channel in channels], delta) >= optimal, delta


@each_case("sigma", [0.5, 1.0, 4.0, 10.0])
@each_case("delta", [1e-9, 1e-6, 1e-3])
def test_the_gaussian_delta_is_google_dp_accountings(sigma, delta):
    epsilon = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert gaussian_delta(sigma, 1, epsilon) == pytest.approx(delta, rel=1e-6)
    # A sensitivity of three with three times the noise is the same.
    assert gaussian_delta(3 * sigma, 3, epsilon) == pytest.approx(delta, rel=1e-6)


# Simulated populations, for every kind of channel.

TICKS = [(0, 0, 0, 0), (1, 0, 0, 0), (1, 0, 1, 0), (0, 0, 0, 1)]
SHARES = (0.1, 0.2, 0.3, 0.4)
POPULATIONS = {
    "randomized response": (grr(4, "0.6"), None),
    "sets of two": (SubsetSelection(4, 2, 3, 1), None),
    "a window": (WeightTable(Window(4, 3, 2, 3, 1)), None),
    "one bit and two no answers": (WeightTable(OneBit(1, 3, 1), 2), None),
    "bits": (BitVector(4, 3, 3, 1), TICKS),
    "bits, one alone": (BitVector(4, 2, 3, 1, alone=1), TICKS),
    "two of four bits": (BitVector(4, 3, 3, 1, sampled=2), TICKS),
}


def expected_shares(channel, answers) -> np.ndarray:
    """Return the expected counts per respondent."""
    if isinstance(channel, SubsetSelection | WeightTable):
        return np.array(SHARES) @ channel.matrix
    sampled = channel.sampled / channel.m
    ones = channel.q + (channel.p - channel.q) * (np.array(SHARES) @ np.array(answers))
    return ones if sampled == 1 else np.concatenate([np.full(channel.m, sampled), sampled * ones])


@each_case(("channel", "answers"), POPULATIONS.values())
def test_a_simulated_population_has_the_expected_counts_of_its_channel(channel, answers):
    n = 2 * CHUNK + 1001
    counts = population(channel, SHARES, n, np.random.default_rng(3), answers)
    shares = expected_shares(channel, answers)
    assert counts.shape == shares.shape == (channel.counted,)
    errors = np.sqrt(n * shares * (1 - shares))
    assert np.all(np.abs(counts - n * shares) < 4.5 * errors)


def test_every_simulated_respondent_counts_once_even_with_wide_reports():
    rng = np.random.default_rng(4)
    assert population(grr(3, "0.5"), (0.2, 0.3, 0.5), CHUNK + 1, rng).sum() == CHUNK + 1
    wide = best(900, "0.1")
    assert population(wide, np.full(900, 1 / 900), 2500, rng).sum() == 2500 * wide.d
    assert population(grr(3, "0.5"), (0.2, 0.3, 0.5), 0, rng).tolist() == [0, 0, 0]


def test_invalid_shares_and_wrong_numbers_of_answers_are_rejected():
    rng = np.random.default_rng(5)
    with pytest.raises(ChannelError, match="add up to 1"):
        population(grr(2, "3/4"), (0.5, 0.6), 10, rng)
    with pytest.raises(ChannelError, match="2 shares need as many answers, not 4"):
        population(BitVector(4, 4, 3, 1), (0.5, 0.5), 10, rng, TICKS)
