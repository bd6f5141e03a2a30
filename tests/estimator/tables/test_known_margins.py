"""Cross-tabs with known margins agree with dense least squares and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator import joint_shares, reconciled, reconciled_crosstab
from survey.mechanism import best, from_epsilon, grr
from survey.mechanism.numeric import geometric
from tests.cases import each_case

COUNTS = np.array([[410, 260, 130], [300, 480, 220]])
CHANNELS = [from_epsilon(2, 1), from_epsilon(3, "1.5")]
MARGINS = [[0.4, 0.6], [0.3, 0.5, 0.2]]


def test_joint_shares_are_those_of_the_whole_matrix():
    P, covariance = joint_shares(COUNTS, CHANNELS)
    whole = np.kron(*(np.linalg.inv(channel.matrix.T) for channel in CHANNELS))
    f = COUNTS.ravel() / COUNTS.sum()
    np.testing.assert_allclose(P.ravel(), whole @ f, atol=1e-12)
    plain = whole @ (np.diag(f) - np.outer(f, f)) @ whole.T / COUNTS.sum()
    np.testing.assert_allclose(covariance, plain, atol=2e-3 * np.abs(plain).max())


def test_joint_shares_of_tables_and_three_questions_have_no_bias():
    channels = [geometric(3, 1, no_answers=0), grr(2, "3/4"), grr(2, "0.9")]
    truth = np.arange(1.0, 13).reshape(3, 2, 2) / 78
    reports = truth
    for axis, channel in enumerate(channels):
        product = np.tensordot(channel.matrix.T, reports, axes=(1, axis))
        reports = np.moveaxis(product, 0, axis)
    counts = np.round(reports * 10**9).astype(np.int64)
    P, covariance = joint_shares(counts, channels)
    np.testing.assert_allclose(P, truth, atol=1e-6)
    assert covariance.shape == (12, 12)


def test_reconciling_is_the_nearest_table_in_the_metric_of_its_errors():
    P, covariance = joint_shares(COUNTS, CHANNELS)
    result = reconciled(P, covariance, MARGINS)
    # Cells add up to 1, so the covariance is singular; the first five cells determine the sixth.
    precision = np.linalg.inv(covariance[:5, :5])

    def far(x):
        return float((x - P.ravel()[:5]) @ precision @ (x - P.ravel()[:5]))

    def missed(x):
        table = np.append(x, 1 - x.sum()).reshape(2, 3)
        return np.append(table.sum(axis=1)[0] - 0.4, table.sum(axis=0)[:2] - [0.3, 0.5])

    nearest = minimize(
        far, P.ravel()[:5], constraints={"type": "eq", "fun": missed}, options={"ftol": 1e-13}
    )
    np.testing.assert_allclose(result.estimate.ravel()[:5], nearest.x, atol=1e-5)
    np.testing.assert_allclose(result.estimate.sum(axis=1), MARGINS[0], atol=1e-12)
    np.testing.assert_allclose(result.estimate.sum(axis=0), MARGINS[1], atol=1e-12)


def test_known_margins_never_make_an_error_larger():
    P, covariance = joint_shares(COUNTS, CHANNELS)
    before = np.sqrt(np.diag(covariance)).reshape(2, 3)
    result = reconciled(P, covariance, MARGINS)
    assert np.all(result.std_error < before)
    only_rows = reconciled(P, covariance, {0: MARGINS[0]})
    assert np.all(result.std_error <= only_rows.std_error + 1e-12)
    assert np.all(only_rows.std_error <= before + 1e-12)


def test_the_displayed_table_has_the_margins_and_nothing_below_zero():
    P, covariance = joint_shares([[40, 20], [15, 25]], [grr(2, "3/4"), grr(2, "3/4")])
    result = reconciled(P, covariance, [[0.6, 0.4], [0.5, 0.5]])
    assert result.estimate.min() < 0 <= result.display.min()
    np.testing.assert_allclose(result.display.sum(axis=1), [0.6, 0.4], atol=1e-9)
    np.testing.assert_allclose(result.display.sum(axis=0), [0.5, 0.5], atol=1e-9)
    assert np.all(result.conf_low >= 0)
    assert np.all(result.conf_high <= [[0.5, 0.5], [0.4, 0.4]])


def test_a_category_without_reports_can_still_have_its_margin():
    P, covariance = joint_shares([[30, 20], [0, 0]], [from_epsilon(2, 6), from_epsilon(2, 6)])
    result = reconciled(P, covariance, {0: [0.98, 0.02]})
    np.testing.assert_allclose(result.estimate.sum(axis=1), [0.98, 0.02], atol=1e-9)


def simulated(rounds, n, rng):
    truth = np.array([[0.25, 0.10, 0.05], [0.05, 0.40, 0.15]])
    margins = [truth.sum(axis=1), truth.sum(axis=0)]
    reports = CHANNELS[0].matrix.T @ truth @ CHANNELS[1].matrix
    tables = rng.multinomial(n, reports.ravel(), size=rounds).reshape(rounds, 2, 3)
    return truth, [reconciled(*joint_shares(c, CHANNELS), margins) for c in tables]


@pytest.mark.web
def test_reconciled_cells_are_unbiased_and_covered():
    rounds = 600
    truth, results = simulated(rounds, 1500, np.random.default_rng(3))
    estimates = np.array([result.estimate for result in results])
    spread = estimates.std(axis=0)
    assert np.all(np.abs(estimates.mean(axis=0) - truth) < 4 * spread / math.sqrt(rounds))
    errors = np.array([result.std_error for result in results]).mean(axis=0)
    np.testing.assert_allclose(errors, spread, rtol=0.12)
    hits = sum((result.conf_low <= truth) & (truth <= result.conf_high) for result in results)
    assert hits.min() >= binom.ppf(0.0005, rounds, 0.94)


@pytest.mark.web
@pytest.mark.parametrize(
    ("truth", "epsilon", "n"),
    [
        ([[0.01, 0.29], [0.3, 0.4]], 4, 100),
        ([[0.0, 0.3], [0.3, 0.4]], 8, 100),
        ([[0.005, 0.015], [0.005, 0.975]], 8, 200),
        pytest.param(
            *([[0.01, 0.29, 0.1], [0.2, 0.2, 0.0], [0.02, 0.08, 0.1]], 1, 300),
            marks=pytest.mark.long,
        ),
        ([[0.01, 0.29, 0.1], [0.2, 0.2, 0.0], [0.02, 0.08, 0.1]], 8, 200),
        ([[0.01, 0.01, 0.01], [0.01, 0.01, 0.01], [0.01, 0.01, 0.92]], 8, 100),
        pytest.param(
            *([[0.02, 0.02, 0.02], [0.02, 0.02, 0.02], [0.02, 0.02, 0.84]], 6, 100),
            marks=pytest.mark.long,
        ),
    ],
)
def test_cells_of_rare_answers_are_covered_and_never_without_width(truth, epsilon, n):
    rounds, T = 250, np.array(truth)
    channels = [from_epsilon(k, epsilon) for k in T.shape]
    margins = [T.sum(axis=1), T.sum(axis=0)]
    reports = channels[0].matrix.T @ T @ channels[1].matrix
    rng = np.random.default_rng(4)
    hits, estimates, squares = np.zeros(T.shape), [], np.zeros(T.shape)
    for _ in range(rounds):
        counts = rng.multinomial(n, reports.ravel()).reshape(T.shape)
        result = reconciled_crosstab(counts, channels, margins)
        estimates.append(result.estimate)
        squares += result.std_error**2
        hits += (result.conf_low <= T + 1e-12) & (result.conf_high >= T - 1e-12)
        assert (result.conf_high - result.conf_low).min() > 0
        np.testing.assert_allclose(result.estimate.sum(axis=1), margins[0], atol=1e-9)
        np.testing.assert_allclose(result.display.sum(axis=0), margins[1], atol=1e-9)
    assert hits.min() >= binom.ppf(0.0005, rounds, 0.94)
    spread = np.std(estimates, axis=0)
    assert np.all(np.abs(np.mean(estimates, axis=0) - T) < 0.25 * spread)
    # Estimated errors may exceed true errors in nearly empty cells.
    assert np.all(spread < 1.15 * np.sqrt(squares / rounds))


def test_margins_may_be_shares_or_people():
    shares = reconciled_crosstab(COUNTS, CHANNELS, MARGINS)
    people = reconciled_crosstab(COUNTS, CHANNELS, [1000 * np.array(m) for m in MARGINS])
    np.testing.assert_allclose(people.estimate, shares.estimate)
    np.testing.assert_allclose(people.conf_high, shares.conf_high)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 10**4, 10**8])
def test_two_nearly_identical_questions_are_reconciled(n):
    channel, truth = from_epsilon(3, 8), np.diag([0.5, 0.3, 0.2])
    rng = np.random.default_rng(7)
    for _ in range(10):
        counts = rng.multinomial(n, (channel.matrix.T @ truth @ channel.matrix).ravel())
        margins = [truth.sum(axis=1), truth.sum(axis=0)]
        result = reconciled_crosstab(counts.reshape(3, 3), [channel] * 2, margins)
        np.testing.assert_allclose(result.display.sum(axis=0), margins[1], atol=1e-9)


def test_cells_determined_by_the_margins_are_certain():
    margins = [[0.4, 0.6], [0, 1]]
    result = reconciled_crosstab([[40, 200], [50, 250]], [grr(2, "0.9")] * 2, margins)
    for table in (result.estimate, result.conf_low, result.conf_high, result.display):
        np.testing.assert_allclose(table, [[0, 0.4], [0, 0.6]], atol=1e-12)
    assert not result.std_error.any()
    (single,) = [reconciled_crosstab([40, 60], [from_epsilon(2, 1)], [[0.4, 0.6]])]
    np.testing.assert_array_equal(single.conf_low, single.conf_high)


@pytest.mark.web
def test_margins_of_another_population_have_a_small_p_value():
    truth = np.array([[0.15, 0.15, 0.1], [0.15, 0.35, 0.1]])
    reports = CHANNELS[0].matrix.T @ truth @ CHANNELS[1].matrix
    rng = np.random.default_rng(9)
    results = [
        reconciled_crosstab(rng.multinomial(2000, reports.ravel()).reshape(2, 3), CHANNELS, m)
        for m in [MARGINS] * 200 + [[[0.7, 0.3], [0.3, 0.5, 0.2]]] * 5
    ]
    agreement = np.array([result.agreement for result in results])
    assert (
        binom.ppf(0.001, 200, 0.05) <= (agreement[:200] < 0.05).sum() <= binom.ppf(0.999, 200, 0.05)
    )
    assert agreement[200:].max() < 1e-3


def test_a_table_of_reports_agrees_with_its_reconciled_estimate_where_nothing_is_rare():
    truth = np.array([[0.15, 0.15, 0.1], [0.15, 0.35, 0.1]])
    reports = CHANNELS[0].matrix.T @ truth @ CHANNELS[1].matrix
    counts = np.random.default_rng(5).multinomial(10**5, reports.ravel()).reshape(2, 3)
    by_estimate = reconciled(*joint_shares(counts, CHANNELS), MARGINS)
    result = reconciled_crosstab(counts, CHANNELS, MARGINS)
    for name in ("estimate", "std_error", "conf_low", "conf_high"):
        np.testing.assert_allclose(getattr(result, name), getattr(by_estimate, name), atol=1e-3)


def test_tables_of_devices_that_add_noise_are_reconciled_too():
    channels = [geometric(3, 2, no_answers=0), grr(2, "0.9")]
    counts = np.array([[200, 90], [120, 200], [40, 150]])
    result = reconciled_crosstab(counts, channels, [[0.5, 0.3, 0.2], [0.4, 0.6]])
    np.testing.assert_allclose(result.estimate.sum(axis=0), [0.4, 0.6], atol=1e-9)
    assert np.all(result.conf_low <= result.display + 1e-9)
    assert np.all(result.display <= result.conf_high + 1e-9)


P2, COV2 = joint_shares([[40, 20], [15, 25]], [grr(2, "3/4"), grr(2, "3/4")])


@each_case(
    ("estimate", "covariance", "margins", "words"),
    [
        (P2, COV2, [[0.6, 0.4], [0.5, 0.6]], "contradict"),
        (P2, COV2, [[0.6, -0.4], [0.5, 0.5]], "negative"),
        (P2, COV2, [[60, 40], [50, 50]], "same unit"),
        (P2, COV2[:3], [[0.6, 0.4]], "shape"),
        (P2, COV2 + np.triu(np.ones((4, 4)), 1), [[0.6, 0.4]], "symmetric"),
        (P2, -COV2, [[0.6, 0.4]], "negative"),
        (P2, COV2 * math.nan, [[0.6, 0.4]], "finite"),
        (P2 * math.nan, COV2, [[0.6, 0.4]], "finite"),
        ([["a", "b"]], COV2, [[0.6, 0.4]], "numbers"),
        (P2, "none", [[0.6, 0.4]], "numbers"),
    ],
)
def test_wrong_tables_are_rejected_by_name(estimate, covariance, margins, words):
    with pytest.raises(DesignError, match=words):
        reconciled(estimate, covariance, margins)


def test_wrong_counts_and_channels_are_rejected_by_name():
    with pytest.raises(CountsError, match="shape"):
        joint_shares([[1, 2]], CHANNELS)
    with pytest.raises(CountsError, match="n = 0"):
        joint_shares(np.zeros((2, 3), dtype=int), CHANNELS)
    with pytest.raises(CountsError, match="largest"):
        joint_shares(np.ones((60, 60), dtype=int), [from_epsilon(60, 4)] * 2)
    with pytest.raises(ChannelError, match="d = "):
        joint_shares(np.ones((9, 2), dtype=int), [best(9, 1), grr(2, "3/4")])
