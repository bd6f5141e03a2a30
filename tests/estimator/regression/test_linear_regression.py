"""Linear regression on randomized predictors: exact cases, least squares, coverage."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import kurtosis, t

from survey.errors import ChannelError, CountsError
from survey.estimator import ByGroup, Randomized, linear_regression
from survey.mechanism import SubsetSelection, from_epsilon, grr
from tests.cases import each_case

COIN = grr(2, "3/4")


def test_without_randomized_predictors_the_estimates_are_those_of_least_squares():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 2))
    y = x @ [1.0, -2.0] + rng.exponential(size=80)
    fit = linear_regression(y, x, names=["a", "b"])
    theirs = sm.OLS(y, sm.add_constant(x)).fit(cov_type="HC1")
    np.testing.assert_allclose(fit.estimate, theirs.params)
    np.testing.assert_allclose(fit.std_error, theirs.bse)
    assert fit.term.tolist() == ["intercept", "a", "b"]


def test_a_perfect_fit_has_an_interval_around_its_coefficients():
    x = np.linspace(0, 1, 30)
    fit = linear_regression(0.1 + 0.7 * x, x)
    np.testing.assert_allclose([fit.conf_low, fit.conf_high], [[0.1, 0.7]] * 2, atol=1e-6)


def test_one_binary_predictor_has_the_ratio_of_covariance_and_variance():
    # Cov(g, y)/(m (1 - m)) with g = (report - q)/(p - q) and m its mean.
    rng = np.random.default_rng(2)
    reports, y = rng.integers(2, size=300), rng.normal(size=300)
    g = (reports - 0.25) / 0.5
    slope = (np.mean(g * y) - g.mean() * y.mean()) / (g.mean() * (1 - g.mean()))
    fit = linear_regression(y, randomized=[Randomized("u", reports, COIN)])
    assert fit.estimate[1] == pytest.approx(slope)
    swapped = linear_regression(y, randomized=[Randomized("u", reports, COIN, baseline=1)])
    assert swapped.term[1] == "u=0"
    assert swapped.estimate[1] == pytest.approx(-slope)
    assert swapped.conf_low[1] == pytest.approx(-fit.conf_high[1])


@each_case("n", [25, 200])
def test_a_p_value_is_below_5_percent_where_the_interval_excludes_0(n):
    rng = np.random.default_rng(4)
    for effect in np.linspace(0, 4, 30):
        u = rng.integers(2, size=n)
        y = effect * u + rng.normal(size=n)
        reports = COIN.perturb(u, rng)
        fit = linear_regression(y, randomized=[Randomized("u", reports, COIN)])
        excludes = (fit.conf_low > 0) | (fit.conf_high < 0)
        assert ((fit.p_value < 0.05) == excludes).all()


@pytest.mark.slow
def test_true_coefficients_are_found_through_every_kind_of_randomization():
    rng = np.random.default_rng(5)
    n = 40_000
    x, u, w = rng.normal(size=n), rng.integers(3, size=n), rng.integers(2, size=n)
    w = np.where(rng.random(n) < 0.5, w, (u == 1).astype(int))
    three = from_epsilon(3, 2)
    score = np.clip(np.round(1 + x / 2 + (u == 2) + w), 0, 3).astype(int)
    randomized = [
        Randomized("u", three.perturb(u, rng), three),
        Randomized("w", COIN.perturb(w, rng), COIN),
    ]
    four = grr(4, "7/10")
    design = np.column_stack([np.ones(n), x, u == 1, u == 2, w])
    truth = np.linalg.lstsq(design, score.astype(float), rcond=None)[0]
    open_ = linear_regression(score, x, randomized=randomized)
    through = linear_regression(
        four.perturb(score, rng), x, randomized=randomized, channel=four, values=[0, 1, 2, 3]
    )
    for fit in (open_, through):
        assert (abs(fit.estimate - truth) < 4 * fit.std_error).all()
        assert (fit.std_error < 0.15).all()
    assert (through.std_error > open_.std_error).all()


@each_case("epsilon", [1.0, 3.0])
def test_intervals_contain_the_slope(epsilon):
    channel, rng, covered = from_epsilon(2, epsilon), np.random.default_rng(6), 0
    for _ in range(300):
        u = (rng.random(150) < 0.3).astype(int)
        y = 2 * u + rng.exponential(size=150)
        fit = linear_regression(y, randomized=[Randomized("u", channel.perturb(u, rng), channel)])
        covered += fit.conf_low[1] <= 2 <= fit.conf_high[1]
    assert 0.915 < covered / 300 < 0.99


@each_case("randomized", [False, True])
def test_intervals_allow_for_few_people_with_an_answer_if_a_predictor_is_randomized(randomized):
    # (mean r)^2 = t^2 f Var(r)/(n - 3) at both ends, f = HC3/HC0, 2 n/(kurtosis - 1) degrees.
    rng, channel = np.random.default_rng(7), from_epsilon(2, 12)
    n = 60
    x, u = rng.normal(size=n), (np.arange(n) % 6 == 0).astype(int)
    y = x + u + rng.exponential(size=n)
    if randomized:
        fit = linear_regression(
            y, x, randomized=[Randomized("u", channel.perturb(u, rng), channel)]
        )
    else:
        fit = linear_regression(y, np.column_stack([x, u]))
    others = sm.add_constant(x)
    u_left, y_left = (sm.OLS(column, others).fit().resid for column in (u, y))
    theirs = sm.OLS(y_left, u_left).fit()
    factor, degrees = 1.0, n - 3
    if randomized:
        factor = (theirs.HC3_se[0] / theirs.HC0_se[0]) ** 2
        degrees = 2 * n / (kurtosis(u_left * theirs.resid, fisher=False) - 1)
        assert factor > 1.05
        assert degrees < 20
    for end in (fit.conf_low[2], fit.conf_high[2]):
        r = u_left * (y_left - u_left * end)
        expected = t.ppf(0.975, degrees) ** 2 * factor * r.var() / (n - 3)
        assert r.mean() ** 2 == pytest.approx(expected, rel=1e-3)


def test_intervals_contain_the_slope_where_six_people_of_200_have_the_answer():
    # Fieller's interval with n - 2 degrees covers too seldom here.
    channel, rng, covered = from_epsilon(2, 8), np.random.default_rng(8), 0
    for _ in range(800):
        u, y = (rng.random(200) < 0.03).astype(int), rng.lognormal(sigma=0.8, size=200)
        fit = linear_regression(y, randomized=[Randomized("u", channel.perturb(u, rng), channel)])
        covered += fit.conf_low[1] <= 0 <= fit.conf_high[1]
    assert covered / 800 > 0.965


def test_an_interval_is_unbounded_if_no_report_shows_the_answer():
    # Without a report of 1 the estimated share is negative, and the residuals are 0 for everybody.
    channel, y = from_epsilon(2, 8), np.random.default_rng(9).normal(size=50)
    fit = linear_regression(y, randomized=[Randomized("u", np.zeros(50, int), channel)])
    assert (fit.conf_low[1], fit.conf_high[1], fit.p_value[1]) == (-np.inf, np.inf, 1)


@each_case(
    ("keywords", "error", "reason"),
    [
        ({"outcome": [[1.0, 2]]}, CountsError, "must have shape"),
        ({"outcome": [2.0, 2, 2, 2]}, CountsError, "2 for everybody"),
        ({"outcome": [1.0, np.nan, 2, 3]}, CountsError, r"outcome\[1\] = nan"),
        ({"channel": COIN}, ValueError, "both `channel` and `values`"),
        ({"channel": COIN, "values": [1, None]}, ValueError, "must be finite|stand for a number"),
        ({"predictors": [1, 1, 1, 1]}, CountsError, "do not vary enough"),
        ({"randomized": [Randomized("u", [0, 1], COIN)]}, CountsError, "2 reports for 4 people"),
        ({"randomized": [Randomized("u", [0, 1, 2, 0], COIN)]}, CountsError, "report 2 is 2"),
        (
            {"randomized": [Randomized("u", [0, 1, 1, 0], ByGroup([COIN], [0, 0, 0, 0]))]},
            ChannelError,
            "one channel",
        ),
        (
            {"randomized": [Randomized("u", [0, 1, 1, 0], SubsetSelection(4, 2, 3, 1))]},
            ChannelError,
            "d = 1",
        ),
    ],
)
def test_impossible_arguments_are_rejected(keywords, error, reason):
    with pytest.raises(error, match=reason):
        linear_regression(**{"outcome": [1.0, 2, 3, 5], **keywords})
