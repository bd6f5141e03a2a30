"""Trade-off tables and simulated grids: formula, seed and coverage of the margins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from survey.errors import DesignError
from survey.estimator import margin_of, simulated_grid, tradeoff
from survey.estimator.planning.privacy_cost import GRID_EPSILONS, GRID_SIZES
from tests.cases import each_case


def test_every_cell_is_the_plans_margin():
    trade_off = tradeoff([0.5, 1, 2], [100, 1000], k=4, share=0.1, population=5000)
    for i, n in enumerate((100, 1000)):
        for j, epsilon in enumerate((0.5, 1, 2)):
            plan = margin_of(n, epsilon=epsilon, k=4, share=0.1, population=5000)
            assert trade_off.margin[i, j] == plan.margin
            assert (trade_off.n[i, j], trade_off.epsilon[i, j]) == (n, epsilon)


def test_margins_fall_with_epsilon_and_with_n_and_never_exceed_half():
    margin = tradeoff(GRID_EPSILONS, GRID_SIZES).margin
    assert margin.max() <= 0.5
    # Wider intervals contain nearly every share: they say nothing, whatever n and epsilon are.
    informative = margin < 0.45
    assert np.all(np.diff(margin, axis=0)[informative[1:]] < 0)
    assert np.all(np.diff(margin, axis=1)[informative[:, 1:]] < 0)
    assert informative.sum() > 20


def test_rows_carry_n_and_epsilon():
    rows = tradeoff([1, 2], [100]).to_rows()
    assert [(row["n"], row["epsilon"]) for row in rows] == [(100, 1.0), (100, 2.0)]


def test_the_grid_matches_the_classical_demonstration_and_depends_only_on_the_seed():
    first, again = (simulated_grid(np.random.default_rng(3)) for _ in range(2))
    reseeded = simulated_grid(np.random.default_rng(4))
    assert first.estimate.shape == (3, len(GRID_EPSILONS))
    assert (first.epsilon.min(), first.epsilon.max()) == (0.001, 10)
    assert first.n[:, 0].tolist() == [100, 500, 2000]
    np.testing.assert_array_equal(first.estimate, again.estimate)
    assert np.any(first.estimate != reseeded.estimate)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "share"), [(2, 0.5), (2, 0.1), (4, 0.3)])
def test_simulated_margins_cover_the_share_and_match_the_plan(k, share):
    rng, rounds = np.random.default_rng(5), 1500
    grids = [
        simulated_grid(rng, (0.01, 0.5, 1, 3), (500, 2000), k=k, share=share) for _ in range(rounds)
    ]
    estimates = np.array([grid.estimate for grid in grids])
    margins = np.array([grid.margin for grid in grids])
    hits = (np.abs(estimates - share) <= margins).sum(axis=0)
    assert hits.min() >= binom.ppf(0.0001, rounds, 0.935)
    planned = tradeoff((0.01, 0.5, 1, 3), (500, 2000), k=k, share=share).margin
    # Elsewhere the interval ends at 0 or 1, and the bars of a simulated grid do not.
    inside = planned < 0.4 * min(share, 1 - share)
    assert inside.sum() >= 2
    np.testing.assert_allclose(margins.mean(axis=0)[inside], planned[inside], rtol=0.02)


@each_case(
    ("epsilons", "sizes", "words"),
    [
        ([], [100], "1 to"),
        ([1], [], "1 to"),
        ([1, math.nan], [100], "epsilon = nan"),
        ([1, 30], [100], "nearest allowed value is 12"),
        ([1], [0], "n = 0"),
        ([1], [1.5], "whole number"),
    ],
)
def test_wrong_grids_are_rejected_by_name(epsilons, sizes, words):
    with pytest.raises(DesignError, match=words):
        tradeoff(epsilons, sizes)
    with pytest.raises(DesignError, match=words):
        simulated_grid(np.random.default_rng(1), epsilons, sizes)


@pytest.mark.parametrize("arguments", [{"k": 1}, {"share": 2}, {"level": 0}, {"share": math.nan}])
def test_wrong_questions_are_rejected_by_name(arguments):
    name = {"k": "options"}.get(*arguments, *arguments)
    for refused in (
        lambda: simulated_grid(np.random.default_rng(1), **arguments),
        lambda: tradeoff([1], [100], **arguments),
    ):
        with pytest.raises(DesignError, match=f"^{name} = "):
            refused()


def test_an_empty_population_is_named_in_the_error():
    with pytest.raises(DesignError, match=r"^population = 0 must be"):
        tradeoff([1], [0], population=0)
