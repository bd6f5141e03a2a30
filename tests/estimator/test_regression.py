"""Regression through channels: against other implementations, real surveys, and simulation."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from survey.errors import ChannelError, CountsError
from survey.estimator.proportions import proportions
from survey.estimator.regression import Randomized, Regression, regression
from survey.estimator.regression_design import make_design
from survey.estimator.regression_likelihood import mean_and_gradient, size
from survey.mechanism import BitVector, SubsetSelection, from_epsilon, grr
from survey.mechanism.classical import forced_response, two_coins
from survey.mechanism.numeric import one_bit
from tests.conftest import ROOT

DIE = grr(2, "5/6")
"""Truth with 4/6, forced yes or no with 1/6 each."""

NIGERIA = ROOT.parent / "shared" / "data" / "nigeria.csv"


def people(n: int, seed: int, outcomes: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An open predictor, a binary one that goes with it, and true answers of known coefficients."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    u = (rng.random(n) < expit(-0.3 + 0.7 * x)).astype(int)
    slopes = np.column_stack([np.ones(n), x, u]) @ TRUE[: outcomes - 1].T
    eta = np.column_stack([np.zeros(n), slopes])
    shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    truth = (rng.random(n)[:, None] > shares.cumsum(axis=1)).sum(axis=1)
    return x, u, truth


TRUE = np.array([[-0.5, 0.8, 0.7], [0.4, -0.5, -0.6]])


# Against others


def test_without_randomization_it_is_statsmodels_logit():
    x, u, truth = people(800, 1)
    found = regression(truth, None, np.column_stack([x, u]), names=["x", "u"])
    theirs = sm.Logit(truth, sm.add_constant(np.column_stack([x, u]))).fit(disp=0)
    np.testing.assert_allclose(found.estimate, theirs.params, atol=1e-6)
    np.testing.assert_allclose(found.std_error, theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(found.p_value, theirs.pvalues, rtol=1e-4)
    np.testing.assert_allclose(
        np.column_stack([found.conf_low, found.conf_high]), theirs.conf_int(), atol=1e-5
    )
    assert found.log_likelihood == pytest.approx(theirs.llf)
    assert found.term.tolist() == ["intercept", "x", "u"]
    robust = sm.Logit(truth, sm.add_constant(np.column_stack([x, u]))).fit(disp=0, cov_type="HC0")
    sandwich = regression(truth, None, np.column_stack([x, u]), errors="sandwich")
    np.testing.assert_allclose(sandwich.std_error, robust.bse, rtol=1e-5)


def test_without_randomization_it_is_statsmodels_multinomial_logit():
    x, u, truth = people(800, 2, outcomes=3)
    found = regression(truth, None, np.column_stack([x, u]))
    theirs = sm.MNLogit(truth, sm.add_constant(np.column_stack([x, u]))).fit(disp=0)
    np.testing.assert_allclose(found.estimate, theirs.params.T.ravel(), atol=1e-5)
    np.testing.assert_allclose(found.std_error, theirs.bse.T.ravel(), rtol=1e-5)
    assert found.outcome.tolist() == [1, 1, 1, 2, 2, 2]


def test_weights_are_those_of_a_weighted_likelihood():
    x, _, truth = people(600, 3)
    twice = np.repeat(np.arange(600), 2)
    weighted = regression(truth, None, x, weights=np.full(600, 2.0), errors="observed")
    double = regression(truth[twice], None, x[twice])
    np.testing.assert_allclose(weighted.estimate, double.estimate, atol=1e-6)
    np.testing.assert_allclose(weighted.std_error, double.std_error, rtol=1e-6)
    assert weighted.log_likelihood == pytest.approx(double.log_likelihood)
    rng = np.random.default_rng(4)
    w = rng.uniform(0.5, 3, 600)
    one, scaled = (regression(truth, None, x, weights=factor * w) for factor in (1, 50))
    assert one.errors == "sandwich"
    np.testing.assert_allclose(one.std_error, scaled.std_error, rtol=1e-6)
    theirs = sm.GLM(truth, sm.add_constant(x), family=sm.families.Binomial(), freq_weights=w).fit()
    np.testing.assert_allclose(one.estimate, theirs.params, atol=1e-6)
    # Huber's sandwich by hand: H^-1 (sum w^2 s s') H^-1.
    X = sm.add_constant(x)
    P = expit(X @ one.estimate)
    H = (X * (w * P * (1 - P))[:, None]).T @ X
    S = X * (w * (truth - P))[:, None]
    wanted = np.linalg.inv(H) @ (S.T @ S) @ np.linalg.inv(H)
    np.testing.assert_allclose(one.std_error, np.sqrt(np.diag(wanted)), rtol=1e-5)


def test_units_and_origins_of_predictors_change_nothing_but_their_coefficients():
    x, _, truth = people(1500, 5)
    reports = DIE.perturb(truth, np.random.default_rng(5))
    plain = regression(reports, DIE, x)
    moved = regression(reports, DIE, 1e6 + 1000 * x)
    assert moved.estimate[1] * 1000 == pytest.approx(plain.estimate[1], rel=1e-5)
    assert moved.std_error[1] * 1000 == pytest.approx(plain.std_error[1], rel=1e-4)
    assert moved.log_likelihood == pytest.approx(plain.log_likelihood)
    back = moved.estimate[0] + 1e6 * moved.estimate[1]
    assert back == pytest.approx(plain.estimate[0], abs=1e-4)


@pytest.mark.parametrize("channel", [DIE, two_coins("1/2", "1/3"), SubsetSelection(2, 1, 1, 3)])
def test_an_intercept_alone_is_the_linear_estimate(channel):
    reports = np.repeat([0, 1], [450, 350])
    found, share = regression(reports, channel), proportions([450, 350], channel)
    p = expit(found.estimate[0])
    assert p == pytest.approx(share.estimate[1], abs=1e-7)
    # Delta method: d share / d intercept = p (1-p).
    assert found.std_error[0] * p * (1 - p) == pytest.approx(share.std_error[1], rel=1e-5)


def test_three_answers_with_an_intercept_alone_are_the_linear_shares():
    channel, counts = grr(3, "3/5"), [500, 300, 260]
    found = regression(np.repeat([0, 1, 2], counts), channel)
    shares = np.exp([0, *found.estimate])
    np.testing.assert_allclose(shares / shares.sum(), proportions(counts, channel).estimate)


@pytest.mark.parametrize("outcomes", [2, 3])
@pytest.mark.parametrize("hidden", [0, 1, 2])
@pytest.mark.parametrize("prior_on_open", [True, False])
def test_the_gradient_is_that_of_the_likelihood(outcomes, hidden, prior_on_open):
    x, u, truth = people(60, 6, outcomes)
    rng, channel = np.random.default_rng(6), from_epsilon(outcomes, 1)
    randomized = [
        Randomized("u", DIE.perturb(u, rng), DIE),
        Randomized("v", from_epsilon(3, 1).perturb(u + 1, rng), from_epsilon(3, 1)),
    ]
    design = make_design(
        channel.perturb(truth, rng), channel, x, None, randomized[:hidden],
        rng.uniform(1, 2, 60), prior_on_open=prior_on_open,
    )  # fmt: skip
    theta = rng.normal(size=size(design))
    _, gradient = mean_and_gradient(theta, design)
    steps = 1e-6 * np.eye(len(theta))
    numeric = [
        (mean_and_gradient(theta + s, design)[0] - mean_and_gradient(theta - s, design)[0]) / 2e-6
        for s in steps
    ]
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


# The survey in Nigeria (Blair, Imai, Zhou 2015, R package rr)

RR_TERMS = ("asset index", "married", "age/10", "(age/10)^2", "education", "female")
RR_ESTIMATE = (-0.340167, 0.078962, -0.267425, -0.352828, 0.040993, -0.006908, -0.554395)
RR_STD_ERROR = (0.508561, 0.041356, 0.254513, 0.264228, 0.026035, 0.045584, 0.162435)
RR_LOG_LIKELIHOOD = -1540.117850
"""The model of that paper's table 3 by the algorithm of rr's `rrreg`: expectation maximization with
weighted logits, errors from the outer product of scores. The digits come from running that
algorithm in R (until the log likelihood rises by less than 1e-13; rr stops at 1e-8), not from
print."""


def nigeria() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reports, the six predictors of the model, and civic engagement, of complete rows."""
    if not NIGERIA.exists():
        return (np.empty(0),) * 3
    columns = ("rr.q1", "cov.asset.index", "cov.married", "cov.age", "cov.education", "cov.female")
    with NIGERIA.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if all(row[name] != "NA" for name in columns)]
    values = np.array([[float(row[name]) for name in columns] for row in rows])
    reports, asset, married, age, education, female = values.T
    predictors = [asset, married, age / 10, (age / 10) ** 2, education, female]
    civic = np.array([row["civic"] == "TRUE" for row in rows])
    return reports.astype(int), np.column_stack(predictors), civic.astype(int)


def test_contact_with_armed_groups_in_nigeria():
    # Counted in the data of rr: 497 of 1,312 men and 334 of 1,123 women reported yes.
    men, women = [815, 497], [789, 334]
    overall = proportions(np.add(men, women), DIE)
    assert overall.estimate[1] == pytest.approx(0.2619, abs=5e-5)
    assert overall.std_error[1] == pytest.approx(0.0144, abs=5e-5)
    female = np.repeat([0, 0, 1, 1], [*men, *women])
    found = regression(np.repeat([0, 1, 0, 1], [*men, *women]), DIE, female, names=["female"])
    assert expit(found.estimate[0]) == pytest.approx(0.3182, abs=5e-5)
    assert expit(found.estimate.sum()) == pytest.approx(0.1961, abs=5e-5)
    for sex, share in ((men, 0.3182), (women, 0.1961)):
        assert proportions(sex, DIE).estimate[1] == pytest.approx(share, abs=5e-5)


def test_the_nigerian_model_is_that_of_rr():
    reports, predictors, _ = nigeria()
    if not reports.size:
        return
    found = regression(reports, DIE, predictors, names=RR_TERMS, errors="outer-product")
    assert found.n == 2423
    np.testing.assert_allclose(found.estimate, RR_ESTIMATE, atol=2e-6)
    np.testing.assert_allclose(found.std_error, RR_STD_ERROR, atol=2e-6)
    assert found.log_likelihood == pytest.approx(RR_LOG_LIKELIHOOD, abs=1e-6)
    assert found.converged
    assert not found.boundary


def test_the_randomized_item_predicts_civic_engagement_in_nigeria():
    reports, predictors, civic = nigeria()
    if not reports.size:
        return
    contact = [Randomized("contact", reports, DIE)]
    found = regression(civic, None, predictors, names=RR_TERMS, randomized=contact)
    assert found.converged
    assert not found.boundary
    assert found.term[-1] == "contact=1"
    np.testing.assert_allclose(found.fit.predictor_shares.sum(), 1)
    assert 0.2 < found.fit.predictor_shares[1] < 0.32


# An algorithm of another kind


def rr_by_em(reports: np.ndarray, X: np.ndarray, p: float, q: float) -> np.ndarray:
    """Coefficients by expectation maximization with weighted logits, as rr finds them."""
    D, beta = p - q, np.zeros(X.shape[1])
    for _ in range(3000):
        share = expit(X @ beta)
        said = np.where(reports == 1, D * share + q, 1 - D * share - q)
        weight = np.where(reports == 1, D * share, D * (1 - share)) / said
        model = sm.GLM(reports, X, family=sm.families.Binomial(), var_weights=weight)
        following = model.fit(start_params=beta).params
        if np.abs(following - beta).max() < 1e-9:
            break
        beta = following
    return np.asarray(following)


def test_expectation_maximization_with_weighted_logits_ends_at_the_same_coefficients():
    x, u, truth = people(1500, 7)
    reports = DIE.perturb(truth, np.random.default_rng(7))
    X = np.column_stack([np.ones(1500), x, u])
    found = regression(reports, DIE, X[:, 1:])
    np.testing.assert_allclose(found.estimate, rr_by_em(reports, X, 5 / 6, 1 / 6), atol=1e-5)


# Simulation


def simulated(outcomes: int, hidden: bool, n: int, rounds: int, model: str = "logit"):
    """Coefficients and their errors of many surveys, with the true ones."""
    rng = np.random.default_rng(outcomes + n)
    channel, other = from_epsilon(outcomes, 3), grr(2, "9/10")
    estimates, errors = [], []
    for _ in range(rounds):
        x, u, truth = people(n, int(rng.integers(2**31)), outcomes)
        reports = channel.perturb(truth, rng)
        randomized = [Randomized("u", other.perturb(u, rng), other)] if hidden else []
        open_ = x if hidden else np.column_stack([x, u])
        found = regression(reports, channel, open_, randomized=randomized, predictor_model=model)
        assert found.converged
        assert not found.boundary
        estimates.append(found.estimate)
        errors.append(found.std_error)
    return np.array(estimates), np.array(errors), TRUE[: outcomes - 1].ravel()


def check_calibrated(estimates: np.ndarray, errors: np.ndarray, truth: np.ndarray) -> None:
    rounds = len(estimates)
    spread = estimates.std(axis=0, ddof=1)
    # Logits have a bias of order 1/n; here it is below a tenth of an error.
    bias = np.abs(estimates.mean(axis=0) - truth)
    assert np.all(bias < 4 * spread / math.sqrt(rounds) + 0.1 * spread)
    # A standard deviation from so many rounds is known to 1/sqrt(2 rounds).
    ratio = np.median(errors, axis=0) / spread
    assert np.all(np.abs(ratio - 1) < 4 / math.sqrt(2 * rounds))
    covered = np.mean(np.abs(estimates - truth) < 1.96 * errors, axis=0)
    assert np.all(covered > 0.95 - 4 * math.sqrt(0.05 * 0.95 / rounds))


@pytest.mark.parametrize("hidden", [False, True])
def test_coefficients_are_unbiased_and_their_errors_calibrated(hidden):
    check_calibrated(*simulated(2, hidden, 1000, 30))


@pytest.mark.long
@pytest.mark.parametrize("outcomes", [2, 3])
@pytest.mark.parametrize("hidden", [False, True])
def test_coefficients_are_unbiased_and_their_errors_calibrated_in_many_surveys(outcomes, hidden):
    check_calibrated(*simulated(outcomes, hidden, 3000, 200))


@pytest.mark.long
def test_a_predictor_that_goes_with_open_ones_needs_a_model_of_it():
    estimates, _, truth = simulated(2, True, 3000, 60, "shares")
    spread = estimates.std(axis=0) / math.sqrt(60)
    assert abs(estimates[:, 1].mean() - truth[1]) > 3 * spread[1]


@pytest.mark.long
def test_sandwich_errors_are_calibrated_with_weights():
    rng, estimates, errors = np.random.default_rng(8), [], []
    for _ in range(200):
        x, u, truth = people(2000, int(rng.integers(2**31)))
        weights = np.exp(0.5 * rng.normal(size=2000))
        reports = DIE.perturb(truth, rng)
        found = regression(reports, DIE, np.column_stack([x, u]), weights=weights)
        estimates.append(found.estimate)
        errors.append(found.std_error)
    check_calibrated(np.array(estimates), np.array(errors), TRUE[0])


# Where there is nothing certain to say


@pytest.mark.parametrize("counts", [(250, 750), (200, 800), (0, 40), (1000, 0)])
def test_a_negative_moment_estimate_is_flagged_and_never_certain(counts):
    yes, no = counts
    found = regression(np.repeat([1, 0], [yes, no]), grr(2, "3/4"))
    assert found.boundary
    assert math.isinf(found.std_error[0])
    assert found.p_value[0] == 1
    assert found.conf_low[0] == -math.inf
    assert found.conf_high[0] == math.inf
    assert np.isfinite(found.estimate).all()


def test_one_answer_of_three_that_nobody_has_spoils_only_its_own_coefficients():
    channel = grr(3, "3/5")
    reports = np.repeat([0, 1, 2], [500, 320, 180])
    found = regression(reports, channel)
    assert found.boundary
    assert np.isinf(found.std_error).tolist() == [False, True]


def test_a_predictor_that_separates_is_flagged():
    x = np.repeat([0.0, 1.0], 50)
    found = regression(x.astype(int), None, x)
    assert found.boundary
    assert np.all(np.isinf(found.std_error))
    through = regression(np.repeat([0, 1], [400, 100]), grr(2, "3/4"), np.repeat([0, 1], 250))
    assert through.boundary


def test_a_search_that_was_stopped_says_so(monkeypatch):
    monkeypatch.setattr("survey.estimator.regression_fit._searched", lambda start, design: start)
    monkeypatch.setattr("survey.estimator.regression_fit.NEWTON_STEPS", 0)
    x, _, truth = people(300, 9)
    assert not regression(truth, None, x).converged


# Refusals


@pytest.mark.parametrize(
    ("keywords", "error", "reason"),
    [
        ({"reports": []}, CountsError, "n = 0"),
        ({"reports": [[0, 1]]}, CountsError, "shape"),
        ({"reports": [0, 1, 1, 2]}, CountsError, "report 3 is 2, above 1"),
        ({"reports": [0, 1, -1, 1]}, CountsError, "report 2 is -1"),
        ({"reports": [0, 1, 0.5, 1]}, CountsError, "report 2 is 0.5"),
        ({"reports": [0, 1, math.nan, 1]}, CountsError, "report 2 is nan"),
        ({"reports": ["a", "b", "c", "d"]}, CountsError, "whole numbers"),
        ({"reports": [0, 0, 0, 0], "channel": None}, CountsError, "nothing to explain"),
        ({"predictors": [1, 2, 3]}, CountsError, r"shape \(4, columns\)"),
        ({"predictors": [1, 2, 3, math.nan]}, CountsError, r"predictors\[3, 0\] = nan"),
        ({"predictors": [2, 2, 2, 2]}, CountsError, "'x0' is the same for everybody"),
        ({"predictors": [[1, 2], [2, 4], [3, 6], [5, 10]]}, CountsError, "'x1' is a combination"),
        ({"predictors": [1, 2, 3, 5], "names": ["a", "b"]}, ValueError, "2 names for 1"),
        ({"weights": [1, 1, 1]}, CountsError, "weights of shape"),
        ({"weights": [1, 1, 0, 1]}, CountsError, r"weights\[2\] = 0"),
        ({"weights": [1, -1, 1, 1]}, CountsError, r"weights\[1\] = -1"),
        ({"weights": [1, 1, 1, math.nan]}, CountsError, r"weights\[3\] = nan"),
        ({"weights": [1, 1, 1, math.inf]}, CountsError, r"weights\[3\] = inf"),
        ({"channel": one_bit(5, 1)}, ChannelError, "different shares give the same reports"),
        ({"channel": SubsetSelection(4, 2, 3, 1)}, ChannelError, "d = 2"),
        ({"channel": BitVector(2, 1, 3, 1)}, ChannelError, "bit_vector"),
        ({"randomized": [Randomized("u", [0, 1], DIE)]}, CountsError, "'u' has 2 reports for 4"),
        ({"randomized": [Randomized("u", [0, 1, 2, 0], DIE)]}, CountsError, "'u': report 2 is 2"),
        ({"errors": "wild"}, ValueError, "errors 'wild'"),
        ({"predictor_model": "tree"}, ValueError, "predictor_model 'tree'"),
        ({"level": 1}, ValueError, "level = 1"),
    ],
)
def test_what_is_no_regression_is_refused(keywords, error, reason):
    arguments = {"reports": [0, 1, 1, 0], "channel": DIE, **keywords}
    with pytest.raises(error, match=reason):
        regression(**arguments)


def test_more_predictors_than_people_are_refused():
    with pytest.raises(CountsError, match="combination of the others"):
        regression([0, 1, 1], DIE, np.random.default_rng(1).normal(size=(3, 5)))


def test_too_many_combinations_are_refused():
    big = from_epsilon(1000, 4)
    randomized = [Randomized(name, np.arange(100), big) for name in "ab"]
    with pytest.raises(CountsError, match="use fewer of them"):
        regression(np.arange(100) % 2, DIE, randomized=randomized)


def test_a_regression_is_a_table_of_coefficients():
    x, _, truth = people(400, 10)
    found = regression(DIE.perturb(truth, np.random.default_rng(1)), DIE, x, names=["age"])
    assert isinstance(found, Regression)
    row = found.to_rows()[1]
    assert row["term"] == "age"
    assert row["n"] == 400
    assert "age" in repr(found)
    assert "<table>" in found._repr_html_()


def test_forced_response_of_several_answers_is_read_by_its_own_matrix():
    die = forced_response("2/3", ["1/6", "1/3", "1/2"])
    truth = np.repeat([0, 1, 2], [3000, 2000, 1000])
    reports = die.perturb(truth, np.random.default_rng(11))
    found = regression(reports, die)
    wanted = np.log([2 / 3, 1 / 3])
    assert np.all(np.abs(found.estimate - wanted) < 4 * found.std_error)
