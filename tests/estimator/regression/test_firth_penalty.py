"""Firth's penalty: published results, the information of reports, finite coefficients."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from survey.errors import CountsError
from survey.estimator import ByGroup, Randomized, regression
from survey.estimator.regression.design_matrix import make_design
from survey.estimator.regression.likelihood import Penalized, fitted, mean_and_gradient, size
from survey.mechanism import from_epsilon, grr
from tests.cases import each_case
from tests.estimator.regression.surveys import rows

COIN = grr(2, "3/4")


@pytest.mark.slow
def test_the_endometrial_data_have_the_estimates_and_profile_intervals_of_logistf():
    # Heinze and Schemper 2002; digits of logistf 1.24 (R). NV separates the outcome.
    file = Path(__file__).with_name("endometrial.csv")
    values = np.array([[*map(float, row.values())] for row in rows(file, ("NV",))])
    outcome, predictors = values[:, 3].astype(int), values[:, :3]
    assert np.isnan(regression(outcome, None, predictors).estimate[1])
    fit = regression(outcome, None, predictors, penalty="firth")
    assert fit.converged
    assert not fit.boundary
    assert fit.estimate == pytest.approx(
        [3.77455951, 2.92927330, -0.03475175, -2.60416387], rel=1e-6
    )
    assert fit.conf_low == pytest.approx([1.0825371, 0.6097244, -0.1244587, -4.3651832], rel=1e-5)
    assert fit.conf_high == pytest.approx(
        [7.20928050, 7.85463171, 0.04045547, -1.23272106], rel=1e-5
    )
    # The p-value is below 1 - level if and only if the profile's interval excludes 0.
    assert ((fit.p_value < 0.05) == (fit.conf_low * fit.conf_high > 0)).all()


def test_a_share_without_randomization_is_haldanes():
    # log((y + 1/2)/(n - y + 1/2))
    for yes, no in ((3, 9), (1, 20)):
        fit = regression(np.repeat([1, 0], [yes, no]), None, penalty="firth")
        assert fit.estimate[0] == pytest.approx(np.log((yes + 0.5) / (no + 0.5)), abs=1e-6)


def test_the_information_is_the_expected_curvature_of_the_likelihood_of_all_reports():
    rng = np.random.default_rng(5)
    n = 12
    groups = ByGroup([grr(3, "3/5"), None], rng.integers(2, size=n))
    design = make_design(
        np.tile([0, 1, 2], 4),
        groups,
        rng.integers(3, size=n),
        None,
        [Randomized("u", np.tile([0, 1], 6), from_epsilon(2, 1))],
        None,
        prior_on_open=True,
        times=1 + rng.integers(3, size=n),
        baseline=1,
    )
    likelihood, theta = Penalized(design), rng.normal(size=size(design)) / 2
    possible = likelihood.possible
    outcome, prior = fitted(theta, possible)
    chances = np.einsum("nu,nu,nut,nt->n", prior, possible.randomized, outcome, possible.outcome)
    expected = possible.times * chances
    assert expected.sum() == pytest.approx(design.times.sum())
    # Each possible report counts as often as it is expected at theta.
    weighted = replace(possible, weights=expected)
    curvature = [
        np.subtract(*(mean_and_gradient(theta + side * step, weighted)[1] for side in (1, -1)))
        for step in 1e-4 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(
        likelihood.information(theta), np.array(curvature) * expected.sum() / 2e-4, atol=1e-5
    )


@pytest.mark.slow
@each_case("counts", [(250, 750), (200, 800), (0, 40), (1000, 0)])
def test_a_share_below_0_has_a_finite_coefficient_whose_interval_is_open(counts):
    fit = regression(np.repeat([1, 0], counts), COIN, penalty="firth")
    assert np.isfinite([fit.estimate, fit.std_error]).all()
    assert fit.conf_low[0] < fit.estimate[0] < fit.conf_high[0]
    # The likelihood leaves the side of the limit open.
    assert np.isinf([fit.conf_low[0], fit.conf_high[0]]).tolist() == [
        counts[0] < counts[1],
        counts[0] > counts[1],
    ]


def test_a_coefficient_of_exactly_0_has_the_p_value_1():
    fit = regression([0, 1, 0, 1], COIN, [0, 1, 1, 0], penalty="firth")
    assert fit.estimate.tolist() == [0, 0]
    assert fit.p_value.tolist() == [1, 1]


@pytest.mark.slow
def test_a_predictor_that_separates_the_answers_through_the_randomization_has_a_finite_odds_ratio():
    x = np.repeat([0, 1], [250, 250])
    reports = np.repeat([0, 1, 0, 1], [190, 60, 60, 190])
    assert regression(reports, COIN, x).boundary
    fit = regression(reports, COIN, x, penalty="firth")
    assert 2 < fit.conf_low[1] < fit.estimate[1] < fit.conf_high[1]
    assert fit.conf_high[1] == np.inf


@pytest.mark.slow
def test_rows_of_several_people_are_as_many_people():
    reports, x = np.array(list(product((0, 1), (0, 1)))).T
    times = np.array([40, 25, 12, 30])
    rows_ = regression(reports, COIN, x, times=times, penalty="firth")
    whole = regression(reports.repeat(times), COIN, x.repeat(times), penalty="firth")
    for column in ("estimate", "std_error", "conf_low", "conf_high", "p_value"):
        np.testing.assert_allclose(getattr(rows_, column), getattr(whole, column), rtol=1e-4)


def test_the_penalty_excludes_weights_and_other_errors_and_has_one_name():
    for keywords in ({"weights": [1, 2, 1]}, {"errors": "sandwich"}):
        with pytest.raises(ValueError, match="depends on the number of people"):
            regression([0, 1, 1], COIN, penalty="firth", **keywords)
    with pytest.raises(ValueError, match="penalty 'ridge' must be 'firth' or None"):
        regression([0, 1, 1], COIN, penalty="ridge")
    x = np.random.default_rng(1).normal(size=(40_000, 1))
    randomized = [Randomized(f"p{i}", np.arange(40_000) % 4, grr(4, "1/2")) for i in range(2)]
    with pytest.raises(CountsError, match="possible reports is too much for a penalty"):
        regression(np.arange(40_000) % 2, COIN, x, randomized=randomized, penalty="firth")


@pytest.mark.long
def test_penalized_estimates_are_nearer_to_the_truth_and_their_intervals_contain_it():
    rng = np.random.default_rng(21)
    truth, n, n_surveys = np.array([-2.0, 1.0]), 300, 200
    covered, squares, unpenalized = np.zeros(2), np.zeros(2), []
    for _ in range(n_surveys):
        x = rng.integers(2, size=n)
        answers = (rng.random(n) < expit(truth[0] + truth[1] * x)).astype(int)
        pairs = np.stack([COIN.perturb(answers, rng), x])
        (reports, x), times = np.unique(pairs, axis=1, return_counts=True)
        fit = regression(reports, COIN, x, times=times, penalty="firth")
        covered += (fit.conf_low <= truth) & (truth <= fit.conf_high)
        squares += (fit.estimate - truth) ** 2
        plain = regression(reports, COIN, x, times=times)
        if not plain.boundary:
            unpenalized.append((plain.estimate - truth) ** 2)
    assert (covered / n_surveys > 0.91).all()
    assert len(unpenalized) < n_surveys
    assert (squares / n_surveys < 0.8 * np.mean(unpenalized, axis=0)).all()
