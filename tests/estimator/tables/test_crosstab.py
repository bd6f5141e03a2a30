"""Cross-tabs: joint counts, linear table, standard errors, most likely table and margins."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from survey.errors import ChannelError, CountsError
from survey.estimator import Crosstab, Proportions, crosstab, joint_counts, proportions
from survey.estimator.core.debiasing import axis, product_moment
from survey.estimator.core.maximum_likelihood import (
    most_likely_mixture,
    most_likely_table,
    report_shares,
)
from survey.estimator.tables.crosstab import CHUNK, linear_cells
from survey.mechanism import BitVector, SubsetSelection, WeightTable, from_epsilon, grr
from survey.mechanism.numeric import one_bit
from survey.mechanism.randomized_response import forced_response, two_coins
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case

WIDE = WeightTable(Explicit(((5, 1, 1, 3), (1, 5, 1, 3), (1, 1, 5, 3))))
SETS = SubsetSelection(k=5, d=2, T=3, L=1)

PAIRS = {
    "two options": [grr(2, "3/4"), grr(2, "2/3")],
    "different sizes": [grr(3, "1/2"), from_epsilon(4, 1)],
    "Warner inverted": [SubsetSelection(k=2, d=1, T=1, L=3), grr(2, "3/4")],
    "tables": [WIDE, two_coins("1/2", "1/3")],
    "three questions": [grr(2, "3/4"), WIDE, grr(3, "2/3")],
}
pairs = pytest.mark.parametrize("channels", PAIRS.values(), ids=PAIRS)


def dense(channels) -> np.ndarray:
    """Return the Kronecker product, which the estimator avoids building."""
    whole = np.ones((1, 1))
    for channel in channels:
        whole = np.kron(whole, channel.matrix)
    return whole


def random_reports(channels, n: int, seed: int = 1) -> np.ndarray:
    """Return reports of n respondents drawn from a random table."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(math.prod(len(channel.matrix) for channel in channels)))
    shape = [channel.matrix.shape[1] for channel in channels]
    return rng.multinomial(n, P @ dense(channels)).reshape(shape)


# Counting


@each_case("sizes", [[2], [3, 5], [2, 3, 4], [300, 300]])
@each_case("n", [1, CHUNK, 2 * CHUNK + 17])
def test_joint_counts_are_those_of_a_histogram(sizes, n):
    rng = np.random.default_rng(n)
    columns = [rng.integers(0, k, n, dtype=np.uint16) for k in sizes]
    counts = joint_counts(columns, sizes)
    assert counts.dtype == np.int64
    expected = np.zeros(sizes, dtype=np.int64)
    np.add.at(expected, tuple(columns), 1)
    np.testing.assert_array_equal(counts, expected)


@each_case(
    ("columns", "sizes", "reason"),
    [
        ([[], []], [2, 2], "n = 0"),
        ([[0, 1], [0]], [2, 2], "equally long"),
        ([[0, 2], [0, 1]], [2, 2], "question 0: code 2 must be from 0 to 1"),
        ([[0, 1], [0, -1]], [2, 2], "question 1: code -1"),
        ([[0.0, 1.5], [0, 1]], [2, 2], "whole numbers"),
        ([[[0]], [[1]]], [2, 2], "shape"),
        ([[0], [0]], [2], "sizes"),
        ([[0], [0]], [2, 0], "sizes"),
        ([], [], "sizes"),
        ([[0], [0]], [10_000, 10_000], "cells is above"),
    ],
)
def test_invalid_codes_are_rejected_with_their_position(columns, sizes, reason):
    with pytest.raises(CountsError, match=reason):
        joint_counts(columns, sizes)


# The linear table


@pairs
def test_the_linear_table_is_the_dense_inverse_of_the_reports(channels):
    counts = random_reports(channels, 5000)
    table = crosstab(counts, channels)
    if all(len(channel.matrix) == channel.matrix.shape[1] for channel in channels):
        expected = np.linalg.solve(dense(channels).T, counts.ravel() / 5000)
        np.testing.assert_allclose(table.estimate.ravel(), expected, atol=1e-12)
    assert table.estimate.sum() == pytest.approx(1)
    G = np.ones((1, 1))
    for channel in channels:
        G = np.kron(G, axis(channel).means)
    # Var = (sum (a_g b_h)^2 lambda_gh - P^2)/n, by the dense pseudo-values.
    variance = (G**2 @ counts.ravel() / 5000 - table.estimate.ravel() ** 2) / 5000
    np.testing.assert_allclose(table.std_error.ravel(), np.sqrt(variance), rtol=1e-9)


@pairs
def test_debiasing_the_expected_reports_returns_the_truth(channels):
    P = np.random.default_rng(2).dirichlet(np.ones(len(dense(channels))))
    shape = [len(channel.matrix) for channel in channels]
    expected = report_shares(P.reshape(shape), channels)
    np.testing.assert_allclose(expected.ravel(), P @ dense(channels), atol=1e-12)
    table = expected
    for channel in channels:
        table = np.tensordot(table, axis(channel).means, axes=(0, 1))
    np.testing.assert_allclose(table.ravel(), P, atol=1e-12)


@pairs
def test_second_moments_of_other_cells_lie_within_their_bounds(channels):
    axes = [axis(channel) for channel in channels]
    moment = product_moment(axes)
    w = np.ones((1, 1))
    for factors in axes:
        w = np.kron(w, factors.by_truth)
    np.testing.assert_allclose(moment.at_truth.ravel(), np.diagonal(w))
    away = w + np.diag(np.full(len(w), np.inf))
    np.testing.assert_allclose(moment.minimum.ravel(), away.min(axis=1))
    np.fill_diagonal(w, 0)
    np.testing.assert_allclose(moment.maximum.ravel(), w.max(axis=1))


def test_one_question_alone_has_wilsons_interval():
    table = crosstab([500, 300, 200], [grr(3, "3/5")])
    plain = proportions([500, 300, 200], grr(3, "3/5"), interval="wilson")
    np.testing.assert_allclose(table.estimate, plain.estimate, atol=1e-12)
    np.testing.assert_allclose(table.std_error, plain.std_error)
    # The correction for skewness may widen the interval.
    assert np.all(table.conf_low <= plain.conf_low + 1e-12)
    assert np.all(table.conf_high >= plain.conf_high - 1e-12)
    np.testing.assert_allclose(table.conf_high, plain.conf_high, atol=0.003)


@pytest.mark.slow
def test_sets_of_options_are_crossed_by_their_supports():
    rng, n, rounds = np.random.default_rng(3), 3000, 200
    P = rng.dirichlet(np.ones(10)).reshape(5, 2)
    estimates, errors = [], []
    for _ in range(rounds):
        cells = rng.choice(10, size=n, p=P.ravel())
        sets, codes = SETS.perturb(cells // 2, rng), grr(2, "3/4").perturb(cells % 2, rng)
        counts = sets.T.astype(np.int64) @ np.eye(2, dtype=np.int64)[codes]
        table = crosstab(counts, [SETS, grr(2, "3/4")])
        assert table.n == n
        estimates.append(table.estimate)
        errors.append(table.std_error)
    spread = np.std(estimates, axis=0)
    assert np.all(np.abs(np.mean(estimates, axis=0) - P) < 4 * spread / math.sqrt(rounds))
    np.testing.assert_allclose(np.mean(errors, axis=0), spread, rtol=0.2)
    margin = table.margin(1)
    np.testing.assert_allclose(margin.estimate, table.estimate.sum(axis=0), atol=1e-12)


def test_margins_are_sums_of_the_linear_table():
    channels = PAIRS["three questions"]
    table = crosstab(random_reports(channels, 4000), channels)
    for place in range(3):
        margin = table.margin(place)
        assert isinstance(margin, Proportions)
        remaining = tuple(axis for axis in range(3) if axis != place)
        np.testing.assert_allclose(margin.estimate, table.estimate.sum(axis=remaining), atol=1e-12)
    transposed = table.margin(2, 0)
    assert isinstance(transposed, Crosstab)
    np.testing.assert_allclose(transposed.estimate, table.estimate.sum(axis=1).T, atol=1e-12)
    for wrong in ((), (0, 0), (3,), (-1,)):
        with pytest.raises(ValueError, match="questions"):
            table.margin(*wrong)


# Intervals


def simulated_coverage(P: np.ndarray, channel: SubsetSelection, n: int, rounds: int) -> np.ndarray:
    F = channel.matrix.T @ P @ channel.matrix
    counts = np.random.default_rng(n).multinomial(n, F.ravel() / F.sum(), size=rounds)
    shares = np.moveaxis(counts.reshape(rounds, *P.shape), 0, -1) / n
    _, _, low, high = linear_cells(shares, n, (channel, channel), 0.95)
    assert np.all(low < high)
    return np.mean((low <= P) & (high >= P), axis=0)


def hard_tables(k: int) -> list[np.ndarray]:
    falling = np.exp(-1.2 * np.arange(k))
    falling /= falling.sum()
    point, row = np.zeros((k, k)), np.zeros((k, k))
    point[0, 0], row[0] = 1, 1 / k
    return [np.full((k, k), 1 / k**2), np.eye(k) / k, point, np.outer(falling, falling), row]


def at_least(coverage: float, rounds: int) -> float:
    """Return four standard errors below the target, so that the minimum of many cells passes."""
    return coverage - 4 * math.sqrt(coverage * (1 - coverage) / rounds)


@each_case("table", range(5))
def test_intervals_of_cells_cover(table):
    # In 50 reports, a cell's estimate can be near 1 by chance, and explain all that was observed.
    for k, epsilon, n in ((5, "1", 50), (3, "1", 1000)):
        coverage = simulated_coverage(hard_tables(k)[table], from_epsilon(k, epsilon), n, 2000)
        assert coverage.min() >= at_least(0.945, 2000), (k, epsilon, n)


@pytest.mark.long
@each_case("k", [2, 3, 5])
@each_case("epsilon", ["0.5", "1", "2", "4", "6", "8"])
def test_intervals_of_cells_cover_on_a_grid(k, epsilon):
    for n, P in product([50, 200, 500, 2000], hard_tables(k)):
        coverage = simulated_coverage(P, from_epsilon(k, epsilon), n, 4000)
        assert coverage.min() >= at_least(0.945, 4000), (n, P)


def test_cells_far_outside_have_an_interval_with_a_width():
    for counts in ([[0, 9], [9, 0]], [[1, 0], [0, 0]], [[10**9, 0], [0, 10**9]]):
        table = crosstab(counts, [grr(2, "3/4")] * 2)
        assert np.all(table.conf_low < table.conf_high)
        assert np.isfinite(table.std_error).all()


# The most likely table


@each_case("seed", range(3))
def test_the_most_likely_table_agrees_with_a_general_optimizer(seed):
    channels = PAIRS["different sizes"]
    counts, M = random_reports(channels, 300, seed), dense(PAIRS["different sizes"])
    table = crosstab(counts, channels, method="em")
    assert table.converged
    assert table.method == "em"
    f, cells = counts.ravel() / 300, len(M)
    theirs = minimize(
        lambda P: -float(f @ np.log(np.maximum(P @ M, 1e-300))),
        np.full(cells, 1 / cells),
        method="SLSQP",
        bounds=[(0, 1)] * cells,
        constraints={"type": "eq", "fun": lambda P: P.sum() - 1},
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    best = np.clip(theirs.x, 0, 1) / np.clip(theirs.x, 0, 1).sum()
    ours = table.estimate.ravel()
    assert f @ np.log(ours @ M) >= f @ np.log(best @ M) - 1e-6
    np.testing.assert_allclose(ours @ M, best @ M, atol=1e-3)


@pairs
def test_the_table_is_that_of_the_kronecker_product(channels):
    counts = random_reports(channels, 700, 4)
    result, gap, converged = most_likely_table(counts, channels)
    assert converged
    assert 0 <= gap <= 1e-6
    whole = most_likely_mixture(counts.ravel(), dense(channels))
    np.testing.assert_allclose(result.ravel() @ dense(channels), whole @ dense(channels), atol=1e-4)


def test_both_methods_agree_if_the_linear_table_is_possible():
    counts = [[300, 200], [200, 300]]
    linear, em = (crosstab(counts, [grr(2, "3/4")] * 2, method=m) for m in ("linear", "em"))
    np.testing.assert_allclose(linear.estimate, em.estimate, atol=1e-4)
    np.testing.assert_array_equal(linear.conf_low, em.conf_low)


def test_a_table_not_found_in_time_is_flagged(monkeypatch):
    monkeypatch.setattr("survey.estimator.core.maximum_likelihood.MAX_ROUNDS", 1)
    table = crosstab([[900, 3], [1, 0]], [grr(2, "3/4")] * 2, method="em")
    assert not table.converged
    assert table.gap > 1e-6
    assert np.isfinite(table.estimate).all()


def test_a_table_without_inverse_uses_em_and_has_no_error():
    channels = [one_bit(5, 2), grr(2, "3/4")]
    counts = random_reports(channels, 2000)
    with pytest.raises(ChannelError, match="cannot be estimated"):
        crosstab(counts, channels)
    table = crosstab(counts, channels, method="em")
    assert table.converged
    assert np.all(np.isinf(table.std_error))
    assert np.all((table.conf_low == 0) & (table.conf_high == 1))


# Rejected arguments and output


@each_case(
    ("counts", "reason"),
    [
        ([[0, 0], [0, 0]], "n = 0"),
        ([[1, 2]], "shape"),
        ([1, 2, 3, 4], "shape"),
        ([[1, 2], [3, -1]], "negative"),
        ([[1, 2], [3, 0.5]], "whole number"),
        ([[1, 2], [3, math.nan]], "whole number"),
        ([["1", "2"], ["3", "4"]], "whole numbers"),
    ],
)
@each_case("method", ["linear", "em"])
def test_invalid_counts_are_rejected(counts, reason, method):
    with pytest.raises(CountsError, match=reason):
        crosstab(counts, [grr(2, "3/4")] * 2, method=method)


def test_channels_that_a_cross_tab_cannot_use_are_rejected():
    with pytest.raises(ChannelError, match=r"channels\[0\] .* must be a SubsetSelection"):
        crosstab([[1, 2], [3, 4]], [BitVector(2, 1, 3, 1), grr(2, "3/4")])
    with pytest.raises(ChannelError, match="needs the channels"):
        crosstab([], [])
    with pytest.raises(ChannelError, match="d = 2"):
        crosstab(np.full((5, 2), 2), [SETS, grr(2, "3/4")], method="em")
    with pytest.raises(CountsError, match="must be a multiple"):
        crosstab([[1, 0]] + [[0, 0]] * 4, [SETS, grr(2, "3/4")])
    with pytest.raises(CountsError, match="1,010,000 cells is above the maximum of 1,000,000"):
        crosstab(np.ones((1010, 1000), int), [grr(1010, "1/2"), grr(1000, "1/2")], method="em")


def test_unknown_methods_and_levels_are_rejected():
    with pytest.raises(ValueError, match="unknown method"):
        crosstab([[1, 2], [3, 4]], [grr(2, "3/4")] * 2, method="bayes")
    for level in (0, 1, 95, math.nan):
        with pytest.raises(ValueError, match="level"):
            crosstab([[1, 2], [3, 4]], [grr(2, "3/4")] * 2, level=level)


def test_a_cross_tab_is_a_table_of_cells_that_cannot_be_written():
    table = crosstab(random_reports([WIDE, grr(2, "3/4")], 100), [WIDE, grr(2, "3/4")])
    rows = table.to_rows()
    assert len(rows) == 6
    assert (rows[3]["question_0"], rows[3]["question_1"]) == (1, 1)
    assert {"estimate", "std_error", "conf_low", "conf_high", "n", "method"} <= set(rows[0])
    assert "<table>" in table._repr_html_()
    with pytest.raises(ValueError, match="read-only"):
        table.estimate[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        table.made_from.counts[0, 0] = 1


def test_forced_response_crosses_with_its_own_matrix():
    channels = [forced_response("2/3", ["1/2", "1/2"])] * 2
    assert crosstab([[25, 5], [5, 1]], channels).estimate.round(9).tolist() == [[1, 0], [0, 0]]
