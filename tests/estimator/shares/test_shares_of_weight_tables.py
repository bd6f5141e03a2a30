"""Shares from weight tables: exact pseudo-values, score intervals, most likely shares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from survey.errors import ChannelError, CountsError
from survey.estimator import no_answer_shares, norm_sub, proportions
from survey.estimator.core.debiasing import SecondMoments, left_inverse
from survey.estimator.core.intervals import confidence_interval, continuity
from survey.estimator.core.maximum_likelihood import TOLERANCE, most_likely_mixture
from survey.estimator.shares.proportions import score_interval
from survey.mechanism import WeightTable, grr
from survey.mechanism.numeric import geometric, hybrid, laplace, one_bit, piecewise, square_wave
from survey.mechanism.randomized_response import exponential, forced_response, two_coins, warner
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case

WIDE = WeightTable(Explicit(((5, 1, 1, 3), (1, 5, 1, 3), (1, 1, 5, 3))))
GRR_AS_TABLE = WeightTable(Explicit(((3, 1, 1), (1, 3, 1), (1, 1, 3))))

TABLES = {
    "forced response with unequal options": forced_response("1/2", ["1/2", "3/10", "1/5"]),
    "two coins with two no answers": two_coins("1/2", "1/3", 2),
    "more reports than truths": WIDE,
    "square wave": square_wave(7, 3),
    "geometric noise": geometric(5, 4),
    "exponential mechanism": exponential([[0, 1, 3], [1, 0, 1], [3, 1, 0]], 2),
}
tables = pytest.mark.parametrize("channel", TABLES.values(), ids=TABLES)


@tables
def test_pseudo_values_of_a_table_are_exact(channel):
    G = left_inverse(channel)
    np.testing.assert_allclose(channel.matrix @ G.T, np.eye(channel.truths), atol=1e-9)


def test_no_other_exact_pseudo_values_vary_less_at_uniform_truth():
    G, P = left_inverse(WIDE), WIDE.matrix
    uniform = P.mean(axis=0)
    free = np.linalg.svd(P)[2][3:]
    for step in (-0.1, 0.1):
        alternative = G + step * free
        np.testing.assert_allclose(P @ alternative.T, np.eye(3), atol=1e-9)
        assert np.all(alternative**2 @ uniform >= G**2 @ uniform)


@pytest.mark.slow
@tables
@each_case("n", [100, 2000])
def test_table_shares_are_unbiased_and_covered(channel, n):
    rng, rounds = np.random.default_rng(n), 1000
    for truth in (np.full(channel.truths, 1 / channel.truths), np.eye(channel.truths)[0]):
        draws = rng.multinomial(n, truth @ channel.matrix, size=rounds)
        G = left_inverse(channel)
        moments = proportions(draws[0], channel).moments
        estimates = draws @ G.T / n
        error = estimates.std(axis=0) / np.sqrt(rounds)
        assert np.all(np.abs(estimates.mean(axis=0) - truth) < 4 * error + 1e-12)
        ends = [score_interval(estimate, n, moments, 0.95) for estimate in estimates]
        covered = np.mean([(low <= truth) & (truth <= high) for low, high in ends], axis=0)
        assert np.all(covered >= 0.93)
        assert all(np.all(low < high) for low, high in ends)


def test_a_table_of_generalized_randomized_response_gives_the_same_estimates():
    counts = [500, 300, 200]
    table, plain = proportions(counts, GRR_AS_TABLE), proportions(counts, grr(3, "3/5"))
    for field in ("estimate", "std_error", "n_effective"):
        np.testing.assert_allclose(getattr(table, field), getattr(plain, field), atol=1e-12)
    np.testing.assert_allclose(table.mle, plain.mle, atol=1e-4)
    # Only whole numbers of reports have an option: its count moves by C before Wilson's interval.
    shift = np.array(counts) - continuity(0.95)
    moved = confidence_interval(shift, 1000, grr(3, "3/5"), 0.95, "wilson")[0]
    np.testing.assert_allclose(table.conf_low, moved)
    assert table.method == "score"


def test_two_options_without_further_rows_are_binomial():
    coins = two_coins("1/2", "1/3")
    result = proportions([420, 580], coins)
    assert result.method == "feldman-cousins"
    p, q = coins.matrix[0, 0], coins.matrix[1, 0]
    assert result.estimate[0] == pytest.approx((0.42 - q) / (p - q))
    assert result.estimate.sum() == pytest.approx(1)
    assert result.conf_low[0] == pytest.approx(1 - result.conf_high[1], abs=1e-8)
    plain = proportions([420, 580], grr(2, "3/4"))
    np.testing.assert_allclose(proportions([420, 580], warner("3/4")).conf_low, plain.conf_low)


def test_simultaneous_score_intervals_are_wider():
    per_estimate = proportions([50, 30, 20], GRR_AS_TABLE)
    all_ = proportions([50, 30, 20], GRR_AS_TABLE, simultaneous=True)
    assert all_.method == "score, simultaneous"
    assert np.all(all_.conf_high - all_.conf_low > per_estimate.conf_high - per_estimate.conf_low)


@each_case("estimate", [-3.0, 0.0, 0.4, 1.0, 5.0])
@each_case("n", [1, 100, 10**10])
def test_a_score_interval_always_has_a_width_and_solves_its_equation(estimate, n):
    moments = SecondMoments(np.array([4.0]), np.array([3.0]))
    low, high = score_interval(np.array([estimate]), n, moments, 0.95)
    assert 0 <= low[0] < high[0] <= 1
    x = np.clip(estimate, 0, 1)
    for end in (low[0], high[0]):
        if 0 < end < 1:
            variance = end * 4 + (1 - end) * 3 - end**2
            assert n * (x - end) ** 2 == pytest.approx(1.959964**2 * variance, rel=1e-4)


def test_undetermined_shares_are_rejected_with_a_hint_to_the_mean():
    with pytest.raises(
        ChannelError, match=r"cannot be estimated .* one_bit .* can estimate the mean"
    ):
        proportions([50, 50], one_bit(11, 1))
    with pytest.raises(ChannelError, match="cannot be estimated"):
        proportions([1, 2, 3], WeightTable(Explicit(((3, 1, 2), (3, 1, 2), (1, 3, 2)))))


def test_counts_and_names_of_intervals_of_tables_are_checked():
    with pytest.raises(CountsError, match="one per report"):
        proportions([1, 2], GRR_AS_TABLE)
    with pytest.raises(CountsError, match="n = 0"):
        proportions([0, 0, 0], GRR_AS_TABLE)
    with pytest.raises(CountsError, match="n = 5"):
        proportions([1, 2, 3], GRR_AS_TABLE, n=5)
    with pytest.raises(ValueError, match="'wilson' of a table"):
        proportions([1, 2, 3], GRR_AS_TABLE, interval="wilson")
    with pytest.raises(ValueError, match="level = 2"):
        proportions([1, 2, 3], GRR_AS_TABLE, level=2)


def log_likelihood(pi: np.ndarray, counts: np.ndarray, channel: WeightTable) -> float:
    return float(counts / counts.sum() @ np.log(np.maximum(pi @ channel.matrix, 1e-300)))


@tables
@each_case("seed", range(4))
def test_the_most_likely_mixture_agrees_with_a_general_optimizer(channel, seed):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(channel.truths, 0.4))
    counts = rng.multinomial(400, truth @ channel.matrix)
    solution = most_likely_mixture(counts, channel.matrix)
    start = np.full(channel.truths, 1 / channel.truths)
    theirs = minimize(
        lambda pi: -log_likelihood(pi, counts, channel),
        start,
        method="SLSQP",
        bounds=[(0, 1)] * channel.truths,
        constraints={"type": "eq", "fun": lambda pi: pi.sum() - 1},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert solution.sum() == pytest.approx(1)
    assert solution.min() >= 0
    # SLSQP meets the constraint on the sum only approximately.
    best = log_likelihood(np.clip(theirs.x, 0, 1) / np.clip(theirs.x, 0, 1).sum(), counts, channel)
    assert log_likelihood(solution, counts, channel) >= best - TOLERANCE
    np.testing.assert_allclose(solution @ channel.matrix, theirs.x @ channel.matrix, atol=1e-3)


def test_the_duality_gap_bounds_the_missing_likelihood():
    counts = np.array([70, 20, 10])
    solution = most_likely_mixture(counts, GRR_AS_TABLE.matrix)
    f, P = counts / 100, GRR_AS_TABLE.matrix
    assert (P @ (f / (solution @ P))).max() - 1 <= TOLERANCE


def test_a_likelihood_not_maximized_in_time_gives_nan(monkeypatch):
    monkeypatch.setattr("survey.estimator.core.maximum_likelihood.MAX_ROUNDS", 1)
    assert np.isnan(most_likely_mixture(np.array([500, 3, 1]), GRR_AS_TABLE.matrix)).all()
    result = proportions([500, 3, 1], GRR_AS_TABLE)
    np.testing.assert_array_equal(result.mle, norm_sub(result.estimate))
    assert result.mle_method == "projection"


@pytest.mark.web
@each_case("constructor", [one_bit, piecewise, hybrid, square_wave, laplace])
@each_case("no_answers", [1, 2])
def test_shares_of_no_answers_are_estimated_from_every_table_of_numbers(constructor, no_answers):
    channel, n, rounds = constructor(11, 2, no_answers), 1000, 200
    truth = np.zeros(channel.truths)
    truth[[2, 9]] = 0.3, 0.45
    truth[-no_answers:] = 0.25 / no_answers
    draws = np.random.default_rng(3).multinomial(n, truth @ channel.matrix, size=rounds)
    results = [no_answer_shares(counts, channel) for counts in draws]
    estimates = np.array([result.estimate for result in results])
    expected = truth[-no_answers:]
    error = estimates.std(axis=0) / np.sqrt(rounds)
    assert np.all(np.abs(estimates.mean(axis=0) - expected) < 4 * error)
    covered = np.mean(
        [(r.conf_low <= expected) & (expected <= r.conf_high) for r in results], axis=0
    )
    assert np.all(covered >= 0.91)


def test_a_table_without_no_answers_has_no_share_of_them():
    with pytest.raises(ChannelError, match="no truth that stands for no answer"):
        no_answer_shares([3, 4], one_bit(11, 1))


@pytest.mark.slow
def test_shares_of_a_table_among_these_respondents_are_covered_and_narrower():
    channel, n = geometric(4, 2), 800
    truth = np.repeat(np.arange(4), [400, 200, 150, 50])
    rng = np.random.default_rng(3)
    covered, rounds = np.zeros(4), 600
    for _ in range(rounds):
        counts = np.bincount(channel.perturb(truth, rng), minlength=channel.reports)
        result = proportions(counts, channel, target="respondents")
        shares = np.array([400, 200, 150, 50]) / n
        covered += (result.conf_low <= shares) & (shares <= result.conf_high)
    assert np.all(covered / rounds >= 0.92)
    population = proportions(counts, channel)
    assert result.method == "fixed-population"
    assert np.all(result.std_error < population.std_error)
    widths = [estimate.conf_high - estimate.conf_low for estimate in (result, population)]
    assert np.all(widths[0] < widths[1])
