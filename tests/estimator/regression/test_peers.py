"""Regression through channels agrees with statsmodels and explicit likelihoods."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import expit, logit
from statsmodels.genmod.families.links import Logit
from statsmodels.tools.numdiff import approx_hess

from survey.estimator import ByGroup, Randomized, regression
from survey.mechanism import from_epsilon, grr
from survey.mechanism.randomized_response import forced_response, warner
from tests.estimator.regression.surveys import DIE, people

# statsmodels


def test_without_randomization_the_fit_is_statsmodels_logit():
    x, u, truth = people(800, 1)
    fit = regression(truth, None, np.column_stack([x, u]), names=["x", "u"])
    theirs = sm.Logit(truth, sm.add_constant(np.column_stack([x, u]))).fit(disp=0)
    np.testing.assert_allclose(fit.estimate, theirs.params, atol=1e-6)
    np.testing.assert_allclose(fit.std_error, theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.p_value, theirs.pvalues, rtol=1e-4)
    np.testing.assert_allclose(
        np.column_stack([fit.conf_low, fit.conf_high]), theirs.conf_int(), atol=1e-5
    )
    assert fit.log_likelihood == pytest.approx(theirs.llf)
    assert fit.term.tolist() == ["intercept", "x", "u"]


def test_without_randomization_the_fit_is_statsmodels_multinomial_logit():
    x, u, truth = people(800, 2, outcomes=3)
    X = sm.add_constant(np.column_stack([x, u]))
    fit = regression(truth, None, X[:, 1:])
    theirs = sm.MNLogit(truth, X).fit(disp=0)
    np.testing.assert_allclose(fit.estimate, theirs.params.T.ravel(), atol=1e-5)
    np.testing.assert_allclose(fit.std_error, theirs.bse.T.ravel(), rtol=1e-5)
    assert fit.outcome.tolist() == [1, 1, 1, 2, 2, 2]


class ThroughChannel(Logit):
    """The link whose inverse is q + (p-q) expit(eta): a logit composed with a binary channel."""

    def __init__(self, p: float, q: float) -> None:
        self.q, self.D = q, p - q

    def __call__(self, p):
        return logit((p - self.q) / self.D)

    def inverse(self, z):
        return self.q + self.D * expit(z)

    def deriv(self, p):
        share = (p - self.q) / self.D
        return 1 / (self.D * share * (1 - share))

    def deriv2(self, p):
        share = (p - self.q) / self.D
        return (2 * share - 1) / (self.D * share * (1 - share)) ** 2

    def inverse_deriv(self, z):
        return self.D * expit(z) * (1 - expit(z))

    def inverse_deriv2(self, z):
        return self.inverse_deriv(z) * (1 - 2 * expit(z))


@pytest.mark.slow
@pytest.mark.parametrize(
    "channel", [DIE, warner("1/6"), forced_response("1/2", ["1/3", "2/3"]), from_epsilon(2, "0.5")]
)
def test_a_binary_outcome_is_a_generalized_linear_model_with_the_link_of_the_channel(channel):
    x, u, truth = people(2000, 3)
    reports = channel.perturb(truth, np.random.default_rng(3))
    X = sm.add_constant(np.column_stack([x, u]))
    q, p = channel.matrix[:, 1]
    model = sm.GLM(reports, X, family=sm.families.Binomial(link=ThroughChannel(p, q)))
    start = regression(truth, None, X[:, 1:]).estimate
    theirs = model.fit(start, method="newton", optim_hessian="oim", disp=0, tol=1e-10)
    fit = regression(reports, channel, X[:, 1:])
    np.testing.assert_allclose(fit.estimate, theirs.params, atol=2e-6)
    np.testing.assert_allclose(fit.std_error, theirs.bse, rtol=1e-5)
    assert fit.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    robust = model.fit(
        start, method="newton", optim_hessian="oim", disp=0, tol=1e-10, cov_type="HC0"
    )
    sandwich = regression(reports, channel, X[:, 1:], errors="sandwich")
    np.testing.assert_allclose(sandwich.std_error, robust.bse, rtol=1e-5)


def test_weighted_estimates_and_their_sandwich_are_those_of_a_weighted_model():
    x, _, truth = people(2000, 4)
    rng = np.random.default_rng(4)
    reports, weights = DIE.perturb(truth, rng), rng.uniform(0.3, 3, 2000)
    X = sm.add_constant(x)
    link = ThroughChannel(5 / 6, 1 / 6)
    model = sm.GLM(reports, X, family=sm.families.Binomial(link=link), var_weights=weights)
    theirs = model.fit(method="newton", optim_hessian="oim", disp=0, tol=1e-10, cov_type="HC0")
    fit = regression(reports, DIE, x, weights=weights)
    assert fit.errors == "sandwich"
    np.testing.assert_allclose(fit.estimate, theirs.params, atol=2e-6)
    np.testing.assert_allclose(fit.std_error, theirs.bse, rtol=1e-5)


# Explicit likelihood, maximized with numeric gradients from several starts


def softmax(eta: np.ndarray) -> np.ndarray:
    """Return the shares of a multinomial logit; the answers are along the first axis."""
    raised = np.exp(eta - eta.max(axis=0))
    return np.asarray(raised / raised.sum(axis=0))


def by_hand(log_likelihood, size: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the maximum, its location and the standard errors there."""
    rng = np.random.default_rng(0)
    starts = [np.zeros(size), *rng.normal(scale=0.5, size=(2, size))]

    def minus(theta: np.ndarray) -> float:
        return -log_likelihood(theta)

    ends = [minimize(minus, start, method="BFGS", options={"gtol": 1e-4}) for start in starts]
    best = min(ends, key=lambda end: end.fun)
    refined = minimize(minus, best.x, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-11})
    errors = np.sqrt(np.diag(np.linalg.inv(approx_hess(refined.x, minus))))
    return -refined.fun, refined.x, errors


def check_agreement(fit, theirs: tuple[float, np.ndarray, np.ndarray]) -> None:
    value, estimate, errors = theirs
    size = len(fit.estimate)
    assert fit.log_likelihood == pytest.approx(value, abs=1e-6)
    assert fit.log_likelihood >= value - 1e-9
    np.testing.assert_allclose(fit.estimate, estimate[:size], atol=2e-4)
    np.testing.assert_allclose(fit.std_error, errors[:size], rtol=2e-3)


@pytest.mark.slow
def test_several_answers_are_at_the_maximum_of_an_explicit_likelihood():
    x, _, truth = people(300, 5, outcomes=3)
    channel = grr(3, "4/5")
    reports = channel.perturb(truth, np.random.default_rng(5))

    def log_likelihood(theta: np.ndarray) -> float:
        a, b = theta.reshape(2, 2)
        shares = softmax(np.stack([0 * x, a[0] + a[1] * x, b[0] + b[1] * x]))
        of_report = shares[reports, np.arange(len(x))]
        return float(np.log(0.8 * of_report + 0.1 * (1 - of_report)).sum())

    check_agreement(regression(reports, channel, x), by_hand(log_likelihood, 4))


def test_groups_with_different_channels_are_at_the_maximum_of_an_explicit_likelihood():
    x, _, truth = people(300, 6)
    rng = np.random.default_rng(6)
    group = rng.integers(3, size=300)
    yes_if = {0: (1.0, 0.0), 1: (5 / 6, 1 / 6), 2: (0.3, 0.7)}
    yes = np.array([yes_if[g][1 - t] for g, t in zip(group, truth, strict=True)])
    reports = (rng.random(300) < yes).astype(int)

    def log_likelihood(theta: np.ndarray) -> float:
        share = 1 / (1 + np.exp(-theta[0] - theta[1] * x))
        p, q = np.array([yes_if[g] for g in group]).T
        yes_share = p * share + q * (1 - share)
        return float(np.log(np.where(reports == 1, yes_share, 1 - yes_share)).sum())

    channels = ByGroup([None, DIE, warner("0.3")], group)
    check_agreement(regression(reports, channels, x), by_hand(log_likelihood, 2))


@pytest.mark.slow
def test_a_predictor_randomized_by_group_is_at_the_maximum_of_an_explicit_likelihood():
    _, u, truth = people(400, 7)
    rng = np.random.default_rng(7)
    group = rng.integers(2, size=400)
    weak = grr(2, "3/4")
    reported = np.where(group == 1, weak.perturb(u, rng), u)
    reports = DIE.perturb(truth, rng)

    def log_likelihood(theta: np.ndarray) -> float:
        likelihood = np.zeros(len(reports))
        for truth_of_u, share in enumerate((expit(-theta[2]), expit(theta[2]))):
            is_equal = reported == truth_of_u
            chance = np.where(group == 1, np.where(is_equal, 3 / 4, 1 / 4), is_equal)
            yes = 1 / 6 + 4 / 6 * expit(theta[0] + theta[1] * truth_of_u)
            likelihood += share * chance * np.where(reports == 1, yes, 1 - yes)
        return float(np.log(likelihood).sum())

    randomized = [Randomized("u", reported, ByGroup([None, weak], group))]
    check_agreement(regression(reports, DIE, randomized=randomized), by_hand(log_likelihood, 3))
