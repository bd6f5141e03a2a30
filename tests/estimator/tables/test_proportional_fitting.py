"""Iterative proportional fitting: margins, preserved odds ratios and rejected arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from survey.errors import DesignError
from survey.estimator import fitted
from tests.cases import each_case


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 5))
def test_margins_are_met_and_odds_ratios_stay(seed, rows, columns):
    rng = np.random.default_rng(seed)
    table, target = rng.uniform(0.1, 9, (rows, columns)), rng.dirichlet(np.ones(rows * columns))
    target = target.reshape(rows, columns) + 0.001
    result = fitted(table, [target.sum(axis=1), target.sum(axis=0)])
    np.testing.assert_allclose(result.sum(axis=0), target.sum(axis=0), atol=1e-8)
    np.testing.assert_allclose(result.sum(axis=1), target.sum(axis=1), atol=1e-8)

    def ratio(x):
        return np.log(x[:-1, :-1] * x[1:, 1:] / (x[1:, :-1] * x[:-1, 1:]))

    np.testing.assert_allclose(ratio(result), ratio(table), atol=1e-9)


def test_three_ways_with_a_joint_margin_minimize_the_divergence():
    rng = np.random.default_rng(1)
    seed = rng.uniform(1, 5, (2, 3, 2))
    target = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    margins = {(0, 1): target.sum(axis=2), 2: target.sum(axis=(0, 1))}
    result = fitted(seed, margins)

    def divergence(x):
        return float((x * np.log(x / (seed / seed.sum()).ravel())).sum())

    def missed(x):
        table = x.reshape(2, 3, 2)
        return np.concatenate(
            [
                (table.sum(axis=2) - target.sum(axis=2)).ravel(),
                (table.sum(axis=(0, 1)) - target.sum(axis=(0, 1)))[:1],
            ]
        )

    best = minimize(
        divergence,
        np.full(12, 1 / 12),
        bounds=[(1e-9, 1)] * 12,
        constraints={"type": "eq", "fun": missed},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    np.testing.assert_allclose(result.ravel(), best.x, atol=1e-5)


@pytest.mark.web
@each_case(
    ("seed", "margins", "words"),
    [
        ([[1, 2], [3, 4]], [[1, 2], [1, 1]], "contradict each other"),
        ([[1, 2], [3, 4]], [[1, -2], [1, 1]], "negative"),
        ([[1, 2], [3, 4]], [[1, math.inf], [1, 1]], "finite"),
        ([[1, 2], [3, 4]], [[1, 1, 1], [1, 1]], "shape"),
        ([[1, 2], [3, 4]], {2: [1, 1]}, "axes"),
        ([[1, 2], [3, 4]], {(1, 0): [[1, 1], [1, 1]]}, "rising"),
        ([[1, 2], [3, 4]], {(): 3}, "axes"),
        ([[1, 2], [3, 4]], [], "at least one"),
        ([[0, 0], [3, 4]], [[1, 1], [1, 1]], "no reports"),
        ([[0, 0], [0, 0]], [[1, 1], [1, 1]], "at least one must be positive"),
        ([[1, -2], [3, 4]], [[1, 1], [1, 1]], "not negative"),
        ([[1, math.nan], [3, 4]], [[1, 1], [1, 1]], "finite"),
        ([["a", "b"]], [[1]], "numbers"),
        ([[1, 0], [0, 1]], [[2, 1], [1, 2]], "did not converge"),
        (3, [[1]], "at least one axis"),
    ],
)
def test_wrong_tables_and_margins_are_rejected_by_name(seed, margins, words):
    with pytest.raises(DesignError, match=words):
        fitted(seed, margins)


def test_totals_that_differ_by_rounding_are_one_total():
    table = fitted([[1, 1], [1, 2]], [[0.3333333, 0.6666667], [0.5, 0.5000001]])
    assert table.sum() == pytest.approx(1)
