"""Consistent hierarchies agree with the dense least-squares solution on any tree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from survey.errors import DesignError
from survey.estimator import (
    consistent,
    consistent_proportions,
    consistent_shares,
    proportions,
)
from survey.estimator.core.intervals import continuity, normal_quantile
from survey.mechanism import BitVector, from_epsilon
from tests.cases import each_case
from tests.conftest import long_unless


def random_tree(rng, size):
    """Return the parents of one or more random trees, not in top-down order."""
    parents = np.array([-1, *(int(rng.integers(-1 if rng.random() < 0.1 else 0, v)) for v in
                              range(1, size))])  # fmt: skip
    order = rng.permutation(size)
    place = np.argsort(order)
    return [int(place[parents[v]]) if parents[v] >= 0 else -1 for v in order]


def leaves_of(parents):
    """Return the membership of leaves in strata; shape (strata, leaves)."""
    size = len(parents)
    leaves = [v for v in range(size) if v not in parents]
    S = np.zeros((size, len(leaves)))
    for column, leaf in enumerate(leaves):
        v = leaf
        while v >= 0:
            S[v, column] = 1
            v = parents[v]
    return S


def dense(y, s, parents):
    """Return x = S (S' W S)^-1 S' W y with W = 1/s^2, and its standard errors."""
    S = leaves_of(parents)
    is_asked = np.isfinite(s)
    W = np.zeros(len(s))
    W[is_asked] = 1 / s[is_asked] ** 2
    covariance = S @ np.linalg.inv(S.T @ (W[:, None] * S)) @ S.T
    return covariance @ (W * np.where(is_asked, y, 0)), np.sqrt(np.diag(covariance))


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_two_passes_are_the_dense_solution_on_any_tree(seed, size):
    rng = np.random.default_rng(seed)
    parents = random_tree(rng, size)
    y, s = rng.normal(0, 50, size), rng.uniform(0.5, 20, size)
    result = consistent(y, s, parents)
    estimate, error = dense(y, s, parents)
    np.testing.assert_allclose(result.estimate, estimate, atol=1e-7)
    np.testing.assert_allclose(result.std_error, error, rtol=1e-7)
    assert np.all(result.std_error <= s * (1 + 1e-9))


@pytest.mark.slow
@given(st.integers(0, 10**6))
def test_strata_without_reports_are_derived_if_others_determine_them(seed):
    rng = np.random.default_rng(seed)
    parents = random_tree(rng, 15)
    y, s = rng.normal(0, 50, 15), rng.uniform(0.5, 20, 15)
    for v in range(15):
        # At most one child per stratum is not asked, so the sum determines it.
        if parents[v] >= 0 and rng.random() < 0.3:
            if any(parents[u] == parents[v] and np.isnan(y[u]) for u in range(15)):
                continue
            y[v] = s[v] = math.nan
    try:
        result = consistent(y, s, parents)
    except DesignError:
        S, is_asked = leaves_of(parents), np.isfinite(s)
        assert np.linalg.matrix_rank(S[is_asked]) < S.shape[1]
        return
    estimate, error = dense(y, s, parents)
    np.testing.assert_allclose(result.estimate, estimate, atol=1e-6)
    np.testing.assert_allclose(result.std_error, error, rtol=1e-6)


def test_hays_two_passes_on_a_complete_tree_of_equal_variances():
    # Hay et al. 2010, theorem 3: z = (k^l - k^(l-1))/(k^l - 1) y + (k^(l-1) - 1)/(k^l - 1) sum z;
    # for height l = 2 and k = 2 that is 2/3 and 1/3.
    result = consistent([100, 60, 30], [1, 1, 1], [-1, 0, 0])
    root = 2 / 3 * 100 + 1 / 3 * 90
    assert result.estimate[0] == pytest.approx(root)
    np.testing.assert_allclose(result.estimate[1:], np.array([60, 30]) + (root - 90) / 2)


@pytest.mark.slow
@given(st.integers(0, 10**6))
def test_children_add_up_and_what_is_shown_lies_within_the_population(seed):
    rng = np.random.default_rng(seed)
    parents = random_tree(rng, 25)
    S = leaves_of(parents)
    people = S @ rng.integers(20, 2000, S.shape[1])
    share = rng.uniform(-0.2, 1.2, (25, 3))
    result = consistent_shares(share, rng.uniform(0.02, 0.4, (25, 3)), parents, people)
    for table in (result.estimate, result.display):
        totals = table * people[:, None]
        sums = np.zeros_like(totals)
        is_part = np.asarray(parents) >= 0
        np.add.at(sums, np.asarray(parents)[is_part], totals[is_part])
        has_parts = np.isin(np.arange(25), parents)
        np.testing.assert_allclose(sums[has_parts], totals[has_parts], atol=1e-5)
    assert result.display.min() >= 0
    assert result.display.max() <= 1 + 1e-9
    assert result.conf_low.min() >= 0
    assert result.conf_high.max() <= 1


def test_options_with_one_error_keep_adding_up():
    share = np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.3, 0.4, 0.3]])
    result = consistent_shares(share, np.full((3, 3), 0.05), [-1, 0, 0], [300, 200, 100])
    np.testing.assert_allclose(result.estimate.sum(axis=1), 1)


def test_shares_with_given_errors_have_intervals_only_with_their_numbers_of_reports():
    parents, people, channel = [-1, 0, 0], [300, 200, 100], from_epsilon(2, 5)
    counts = np.array([[12, 88], [3, 47], [9, 51]])
    shares = [proportions(c, channel) for c in counts]
    given = [[getattr(s, name)[0] for s in shares] for name in ("estimate", "std_error")]
    without = consistent_shares(*given, parents, people)
    assert without.conf_low.tolist() == [0, 0, 0]
    assert without.conf_high.tolist() == [1, 1, 1]
    # Of two options, both have the same randomization: errors and n determine those of reports.
    result = consistent_shares(*given, parents, people, n=counts.sum(axis=1))
    reports = consistent_proportions(counts, channel, parents, people)
    np.testing.assert_allclose(result.estimate, reports.estimate[:, 0])
    np.testing.assert_allclose(result.std_error, reports.std_error[:, 0])
    np.testing.assert_allclose(result.conf_high, reports.conf_high[:, 0], atol=2e-3)
    with pytest.raises(DesignError, match="n must be above 0"):
        consistent_shares(*given, parents, people, n=[100, 0, 60])


def test_the_ends_of_a_stratum_move_by_c_of_its_largest_jump():
    channel, counts = from_epsilon(2, 8), [[0, 50], [0, 50]]
    result = consistent_proportions(counts, channel, [-1, -1], [100, 100])
    reach = normal_quantile(0.95) * result.std_error + continuity(0.95) / 50 / (
        channel.p - channel.q
    )
    np.testing.assert_allclose(result.conf_high[:, 0], reach[:, 0], rtol=1e-9)


def test_an_exactly_known_total_is_kept():
    result = consistent([100, 70, 40], [0, 5, 10], [-1, 0, 0])
    assert result.estimate[0] == 100
    assert result.std_error[0] == 0
    np.testing.assert_allclose(result.estimate[1:], [68, 32])
    leaf = consistent([100, 70, 40], [5, 0, 5], [-1, 0, 0])
    assert leaf.estimate[1] == 70
    assert leaf.estimate[0] == pytest.approx(70 + leaf.estimate[2])
    exact = consistent([110, 70, 40], [0, 0, 0], [-1, 0, 0])
    np.testing.assert_allclose(exact.estimate, [110, 70, 40])
    np.testing.assert_allclose(exact.display, [110, 70, 40])


def test_errors_are_calibrated_and_intervals_cover():
    rng, rounds = np.random.default_rng(8), 3000
    parents, leaves = [-1, 0, 0, 1, 1, 2, 2, 2], np.array([300, 50, 200, 150, 100])
    truth = leaves_of(parents) @ leaves
    s = np.array([40.0, 60, 30, 50, 20, 60, 30, 45])
    y = truth + rng.normal(0, s, (rounds, 8))
    # Rounds take the place of options: each column is one survey.
    result = consistent(y.T, np.tile(s[:, None], rounds), parents)
    spread = result.estimate.std(axis=1)
    np.testing.assert_allclose(result.std_error[:, 0], spread, rtol=0.06)
    hits = ((truth >= result.conf_low.T) & (truth <= result.conf_high.T)).sum(axis=0)
    assert hits.min() >= binom.ppf(0.0005, rounds, 0.95)


@pytest.mark.web
@pytest.mark.parametrize("epsilon", long_unless([8], [0.5, 2, 8]))
@pytest.mark.parametrize(
    "shares",
    long_unless(
        [[[0.02, 0.98]]],
        [[[0.02, 0.98]], [[0, 1], [0.3, 0.7]], [[0, 0.01, 0.09, 0.9], [0.3, 0.3, 0.3, 0.1]]],
    ),
)
def test_rare_shares_from_reports_are_covered_and_not_drawn_to_the_smallest_errors(epsilon, shares):
    rng, rounds, n = np.random.default_rng(12), 300, 100
    parents = [-1, 0, 0, 1, 1, 2, 2, 2]
    S = leaves_of(parents)
    leaves = np.array([300.0, 50, 200, 150, 100])
    people = S @ leaves
    truth = S @ (leaves[:, None] * np.resize(shares, (5, len(shares[0])))) / people[:, None]
    channel = from_epsilon(truth.shape[1], epsilon)
    estimates, hits = [], np.zeros(truth.shape)
    for _ in range(rounds):
        counts = rng.multinomial(n, truth @ channel.matrix)
        result = consistent_proportions(counts, channel, parents, people)
        hits += (result.conf_low <= truth + 1e-12) & (result.conf_high >= truth - 1e-12)
        estimates.append(result.estimate)
    assert hits.min() >= binom.ppf(0.0001, rounds, 0.94)
    bias = np.mean(estimates, axis=0) - truth
    assert np.all(np.abs(bias) < 0.25 * np.std(estimates, axis=0))


@pytest.mark.web
def test_shares_of_all_options_add_up_to_1_with_calibrated_errors():
    rng, channel = np.random.default_rng(13), from_epsilon(3, 4)
    parents, leaves = [-1, 0, 0, 1, 1, 2, 2, 2], np.array([300.0, 50, 200, 150, 100])
    S = leaves_of(parents)
    people = S @ leaves
    leaf_shares = np.array(
        [[0.9, 0.05, 0.05], [0.1, 0.2, 0.7], [0, 0.5, 0.5], [0.3, 0.3, 0.4], [0, 0, 1]]
    )
    truth = S @ (leaves[:, None] * leaf_shares) / people[:, None]
    estimates, squares = [], np.zeros(truth.shape)
    for _ in range(300):
        counts = rng.multinomial(100, truth @ channel.matrix)
        result = consistent_proportions(counts, channel, parents, people)
        for table in (result.estimate, result.display):
            np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-9)
            np.testing.assert_allclose(S @ (leaves[:, None] * table[3:]), table * people[:, None])
        assert result.display.min() >= 0
        estimates.append(result.estimate)
        squares += result.std_error**2
    spread = np.std(estimates, axis=0)
    assert np.all(spread < 1.15 * np.sqrt(squares / 300))
    assert np.all(spread > 0.6 * np.sqrt(squares / 300))


def test_reports_of_several_ticks_and_of_strata_that_were_not_asked_are_made_consistent():
    channel = BitVector(m=3, s=2, T=3, L=1)
    counts = [[60, 30, 90], [30, 20, 50], [0, 0, 0]]
    result = consistent_proportions(
        counts, channel, [-1, 0, 0], [100, 60, 40], n=[120, 70, 0], level=0.9
    )
    totals = result.estimate * np.array([100, 60, 40])[:, None]
    np.testing.assert_allclose(totals[1:].sum(axis=0), totals[0])
    assert result.estimate.shape == (3, 3)
    assert result.level == 0.9


@pytest.mark.slow
def test_a_large_country_takes_two_passes_over_its_tree():
    rng = np.random.default_rng(9)
    states, towns = 400, 100
    parents = [-1, *[0] * states, *np.repeat(np.arange(1, states + 1), towns).tolist()]
    y = rng.normal(100, 10, (len(parents), 4))
    result = consistent(y, np.full(y.shape, 5.0), parents)
    assert result.estimate[0] == pytest.approx(result.estimate[1 : states + 1].sum(axis=0))
    assert result.display[0] == pytest.approx(result.display[1 : states + 1].sum(axis=0))


@each_case(
    ("arguments", "words"),
    [
        (([1, 2], [1, 1], [1, 0]), "cycle"),
        (([1, 2, 3], [1, 1, 1], [-1, 2, 1]), "stratum 1 is part of itself"),
        (([1, 2], [1, 1], [-1]), "whole numbers"),
        (([1, 2], [1, 1], [-1, 2]), "from -1 to 1"),
        (([1, 2], [1, 1], [-1, 0.5]), "whole number"),
        (([], [], []), "whole numbers"),
        (([1, 2], [1, -1], [-1, 0]), "negative"),
        (([1, math.nan], [1, 1], [-1, 0]), "both an estimate and an error"),
        (([1, 2], [1, math.nan], [-1, 0]), "both an estimate and an error"),
        (([1, math.inf], [1, 1], [-1, 0]), "both an estimate and an error"),
        (([1, 2], [1, 1, 1], [-1, 0]), "shape"),
        (([100, 70, 40], [0, 0, 0], [-1, 0, 0]), "but their totals differ"),
        (([1, math.nan, math.nan], [1, math.nan, math.nan], [-1, 0, 0]), "cannot be determined"),
        (([math.nan, 1, math.nan], [math.nan, 1, math.nan], [-1, 0, 0]), "cannot be determined"),
        ((["a", "b"], [1, 1], [-1, 0]), "numbers"),
        ((1, 1, [-1]), "for each stratum"),
    ],
)
def test_wrong_trees_and_estimates_are_rejected_by_name(arguments, words):
    with pytest.raises(DesignError, match=words):
        consistent(*arguments)


@pytest.mark.parametrize(
    ("people", "words"),
    [
        ([100, 60, 30], "add up to 90"),
        ([100, 100, 0], "above 0"),
        ([100, 60, math.nan], "above 0"),
        ([100, 100], "3 strata"),
    ],
)
def test_wrong_populations_are_rejected_by_name(people, words):
    with pytest.raises(DesignError, match=words):
        consistent_shares([0.5, 0.4, 0.3], [0.1, 0.1, 0.1], [-1, 0, 0], people)
