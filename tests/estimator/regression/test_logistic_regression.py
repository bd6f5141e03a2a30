"""Regression through channels: invariants, flags and rejected arguments."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.special import expit

from survey.errors import ChannelError, CountsError
from survey.estimator import ByGroup, Randomized, Regression, proportions, regression
from survey.estimator.regression.design_matrix import make_design
from survey.estimator.regression.likelihood import mean_and_gradient, size
from survey.mechanism import BitVector, SubsetSelection, from_epsilon, grr
from survey.mechanism.numeric import one_bit
from survey.mechanism.randomized_response import forced_response, two_coins
from tests.cases import each_case
from tests.estimator.regression.surveys import DIE, people

# Invariants


def test_a_weight_of_two_counts_a_person_twice_and_scale_does_not_matter():
    x, _, truth = people(600, 3)
    twice = np.repeat(np.arange(600), 2)
    weighted = regression(truth, None, x, weights=np.full(600, 2.0), errors="observed")
    double = regression(truth[twice], None, x[twice])
    np.testing.assert_allclose(weighted.estimate, double.estimate, atol=1e-6)
    np.testing.assert_allclose(weighted.std_error, double.std_error, rtol=1e-6)
    assert weighted.log_likelihood == pytest.approx(double.log_likelihood)
    rng = np.random.default_rng(4)
    w = rng.uniform(0.5, 3, 600)
    unscaled, scaled = (regression(truth, None, x, weights=factor * w) for factor in (1, 50))
    assert unscaled.errors == "sandwich"
    np.testing.assert_allclose(unscaled.std_error, scaled.std_error, rtol=1e-6)


def test_units_and_origins_of_predictors_change_nothing_but_their_coefficients():
    x, _, truth = people(1500, 5)
    reports = DIE.perturb(truth, np.random.default_rng(5))
    plain = regression(reports, DIE, x)
    shifted = regression(reports, DIE, 1e6 + 1000 * x)
    assert shifted.estimate[1] * 1000 == pytest.approx(plain.estimate[1], rel=1e-5)
    assert shifted.std_error[1] * 1000 == pytest.approx(plain.std_error[1], rel=1e-4)
    assert shifted.log_likelihood == pytest.approx(plain.log_likelihood)
    back = shifted.estimate[0] + 1e6 * shifted.estimate[1]
    assert back == pytest.approx(plain.estimate[0], abs=1e-4)


@pytest.mark.parametrize("channel", [DIE, two_coins("1/2", "1/3"), SubsetSelection(2, 1, 1, 3)])
def test_an_intercept_alone_is_the_linear_estimate(channel):
    reports = np.repeat([0, 1], [450, 350])
    fit, share = regression(reports, channel), proportions([450, 350], channel)
    p = expit(fit.estimate[0])
    assert p == pytest.approx(share.estimate[1], abs=1e-7)
    # Delta method: d share / d intercept = p (1-p).
    assert fit.std_error[0] * p * (1 - p) == pytest.approx(share.std_error[1], rel=1e-5)


def test_three_answers_with_an_intercept_alone_are_the_linear_shares():
    channel, counts = grr(3, "3/5"), [500, 300, 260]
    fit = regression(np.repeat([0, 1, 2], counts), channel)
    shares = np.exp([0, *fit.estimate])
    np.testing.assert_allclose(shares / shares.sum(), proportions(counts, channel).estimate)


@each_case("outcomes", [2, 3])
@each_case("n_randomized", [0, 1, 2])
@each_case("prior_on_open", [True, False])
def test_the_gradient_is_that_of_the_likelihood(outcomes, n_randomized, prior_on_open):
    x, u, truth = people(60, 6, outcomes)
    rng, channel = np.random.default_rng(6), from_epsilon(outcomes, 1)
    randomized = [
        Randomized("u", DIE.perturb(u, rng), DIE),
        Randomized("v", from_epsilon(3, 1).perturb(u + 1, rng), from_epsilon(3, 1)),
    ]
    design = make_design(
        channel.perturb(truth, rng), channel, x, None, randomized[:n_randomized],
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


@pytest.mark.slow
@pytest.mark.web
def test_the_second_stage_is_the_regression_of_a_predictor_on_those_without_randomization():
    # Without randomization in effect, both stages are ordinary logits.
    x, u, truth = people(3000, 8)
    exact = from_epsilon(2, 12)
    fit = regression(truth, None, x, names=["x"], randomized=[Randomized("u", u, exact)])
    alone = regression(u, None, x, names=["x"])
    second = fit.second_stage
    assert second.combination.tolist() == ["u=1", "u=1"]
    assert second.term.tolist() == ["intercept", "x"]
    for column in ("estimate", "std_error", "conf_low", "conf_high"):
        np.testing.assert_allclose(getattr(second, column), getattr(alone, column), atol=2e-3)
    assert alone.second_stage is None
    # Through the channel: the true coefficients are -.3 and .7.
    reports = grr(2, "9/10").perturb(u, np.random.default_rng(3))
    through = regression(truth, None, x, randomized=[Randomized("u", reports, grr(2, "9/10"))])
    expected = np.array([-0.3, 0.7])
    assert (
        abs(through.second_stage.estimate - expected) < 4 * through.second_stage.std_error
    ).all()
    shares = regression(
        truth,
        None,
        x,
        randomized=[Randomized("u", reports, grr(2, "9/10"), baseline=1)],
        predictor_model="shares",
    ).second_stage
    assert (shares.combination.tolist(), shares.term.tolist()) == (["u=0"], ["intercept"])


# Undetermined coefficients


@pytest.mark.parametrize("counts", [(250, 750), (200, 800), (0, 40), (1000, 0)])
def test_a_negative_moment_estimate_is_flagged_and_never_certain(counts):
    yes, no = counts
    fit = regression(np.repeat([1, 0], [yes, no]), grr(2, "3/4"))
    assert fit.boundary
    check_humble(fit)
    assert np.isnan(fit.estimate).all()


def test_an_unused_answer_affects_only_its_coefficients():
    channel = grr(3, "3/5")
    reports = np.repeat([0, 1, 2], [500, 320, 180])
    fit = regression(reports, channel)
    assert fit.boundary
    assert np.isnan(fit.estimate).tolist() == [False, True]


def test_a_predictor_that_separates_is_flagged():
    x = np.repeat([0.0, 1.0], 50)
    fit = regression(x.astype(int), None, x)
    assert fit.boundary
    assert np.isnan(fit.estimate).all()
    through = regression(np.repeat([0, 1], [400, 100]), grr(2, "3/4"), np.repeat([0, 1], 250))
    assert through.boundary


def check_humble(fit: Regression) -> None:
    """Check that a fit claims no certainty, and nothing at all without an estimate."""
    has_estimate = np.isfinite(fit.estimate)
    for column in (fit.z, fit.p_value, fit.std_error):
        assert np.isfinite(column[has_estimate]).all()
    for column in (fit.estimate, fit.z, fit.p_value):
        assert np.isnan(column[~has_estimate]).all()
    assert (fit.std_error[~has_estimate] == math.inf).all()
    # Without an estimate, at least one side is open.
    assert np.isinf([fit.conf_low, fit.conf_high]).any(axis=0)[~has_estimate].all()
    assert (fit.conf_low < fit.conf_high).all()
    assert fit.boundary or has_estimate.all()
    assert (fit.std_error > 0.1).all()
    assert (fit.p_value[has_estimate] > 1e-6).all()


@each_case("report", [0, 1, 2])
@each_case("errors", ["observed", "sandwich", "outer-product"])
def test_the_same_report_from_everybody_is_flagged(report, errors):
    x = np.random.default_rng(12).normal(size=60)
    fit = regression(np.full(60, report), grr(3, "3/5"), x, errors=errors)
    check_humble(fit)
    assert fit.boundary


def test_more_coefficients_than_people_are_flagged():
    x = np.array([0.3, -1.2, 0.8, 2.0, -0.4, 1.1])
    for channel in (None, from_epsilon(10, 3)):
        fit = regression([0, 9, 4, 7, 2, 5], channel, x)
        assert len(fit.estimate) == 18
        check_humble(fit)
        assert fit.boundary


def tiny_survey(rng: np.random.Generator) -> dict[str, object]:
    k, n, columns = (int(rng.integers(low, high)) for low, high in ((2, 5), (1, 16), (0, 3)))
    channel, predictor_channel = from_epsilon(k, float(rng.choice([0.1, 1, 8]))), from_epsilon(2, 2)
    mixed = ByGroup([channel, None, from_epsilon(k, 1)], rng.integers(3, size=n))
    open_ = (
        rng.integers(2, size=(n, columns)) if rng.random() < 0.5 else rng.normal(size=(n, columns))
    )
    randomized = (
        [Randomized("u", rng.integers(2, size=n), predictor_channel)] if rng.random() < 0.3 else []
    )
    return {
        "reports": rng.integers(k, size=n) if rng.random() < 0.8 else np.full(n, k - 1),
        "channel": [channel, None, mixed][rng.integers(3)],
        "predictors": open_ if columns else None,
        "randomized": randomized,
        "errors": ["observed", "sandwich", "outer-product"][rng.integers(3)],
        "weights": rng.uniform(0.1, 5, n) if rng.random() < 0.3 else None,
    }


def fitted_tiny_surveys(rounds: int, seed: int) -> int:
    """Fit many tiny surveys and check each; skip those rejected by name."""
    rng, fitted = np.random.default_rng(seed), 0
    for _ in range(rounds):
        survey = tiny_survey(rng)
        try:
            fit = regression(**survey)
        except CountsError:
            continue
        check_humble(fit)
        fitted += 1
    return fitted


@pytest.mark.web
def test_tiny_surveys_are_rejected_by_name_or_never_certain():
    assert fitted_tiny_surveys(60, 13) > 20


@pytest.mark.long
def test_many_tiny_surveys_are_rejected_by_name_or_never_certain():
    assert fitted_tiny_surveys(1000, 14) > 400


def test_an_unfinished_search_is_reported(monkeypatch):
    # A dotted name would resolve to the package's function of the same name.
    search = sys.modules[Regression.__module__]
    monkeypatch.setattr(search, "_searched", lambda start, objective: start)
    monkeypatch.setattr(search, "NEWTON_STEPS", 0)
    x, _, truth = people(300, 9)
    assert not regression(truth, None, x).converged


# Rejected arguments


@each_case(
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
        ({"reports": [0, 1, 2, 10**9], "channel": None}, CountsError, "4 people x 1,000,000,001"),
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
        ({"channel": BitVector(2, 1, 3, 1)}, ChannelError, "must be a SubsetSelection"),
        ({"randomized": [Randomized("u", [0, 1], DIE)]}, CountsError, "'u' has 2 reports for 4"),
        ({"randomized": [Randomized("u", [0, 1, 2, 0], DIE)]}, CountsError, "'u': report 2 is 2"),
        ({"errors": "wild"}, ValueError, "errors 'wild'"),
        ({"predictor_model": "tree"}, ValueError, "predictor_model 'tree'"),
        ({"level": 1}, ValueError, "level = 1"),
    ],
)
def test_invalid_regressions_are_rejected(keywords, error, reason):
    arguments = {"reports": [0, 1, 1, 0], "channel": DIE, **keywords}
    with pytest.raises(error, match=reason):
        regression(**arguments)


def test_more_predictors_than_people_are_rejected():
    with pytest.raises(CountsError, match="combination of the others"):
        regression([0, 1, 1], DIE, np.random.default_rng(1).normal(size=(3, 5)))


def test_too_many_combinations_are_rejected():
    big = from_epsilon(1000, 4)
    randomized = [Randomized(name, np.arange(100), big) for name in "ab"]
    with pytest.raises(CountsError, match="use fewer of them"):
        regression(np.arange(100) % 2, DIE, randomized=randomized)


def test_a_regression_is_a_table_of_coefficients():
    x, _, truth = people(400, 10)
    fit = regression(DIE.perturb(truth, np.random.default_rng(1)), DIE, x, names=["age"])
    assert isinstance(fit, Regression)
    row = fit.to_rows()[1]
    assert row["term"] == "age"
    assert row["n"] == 400
    assert "age" in repr(fit)
    assert "<table>" in fit._repr_html_()


def test_forced_response_of_several_answers_uses_its_own_matrix():
    die = forced_response("2/3", ["1/6", "1/3", "1/2"])
    truth = np.repeat([0, 1, 2], [3000, 2000, 1000])
    reports = die.perturb(truth, np.random.default_rng(11))
    fit = regression(reports, die)
    expected = np.log([2 / 3, 1 / 3])
    assert np.all(np.abs(fit.estimate - expected) < 4 * fit.std_error)


@pytest.mark.slow
def test_identical_rows_can_be_counted():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, 900), rng.integers(0, 3, 900)
    coin, die = grr(2, "3/4"), grr(3, "3/4")
    (rows, times) = np.unique(np.stack([a, b]), axis=1, return_counts=True)
    for errors in ("observed", "sandwich", "outer-product"):
        whole = regression(a, coin, randomized=[Randomized("b", b, die)], errors=errors)
        aggregated = regression(
            rows[0], coin, randomized=[Randomized("b", rows[1], die)], times=times, errors=errors
        )
        np.testing.assert_allclose(aggregated.estimate, whole.estimate, atol=1e-5)
        np.testing.assert_allclose(aggregated.std_error, whole.std_error, rtol=1e-4)
        assert (aggregated.n, aggregated.boundary) == (whole.n, whole.boundary)
    with pytest.raises(CountsError, match=r"times\[0\] = 0"):
        regression(rows[0], coin, times=[0, *times[1:]])


def test_a_baseline_inverts_the_odds():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, 900), rng.integers(0, 2, 900)
    channel = grr(2, "3/4")
    plain = regression(a, channel, randomized=[Randomized("b", b, channel)])
    inverted = regression(a, channel, randomized=[Randomized("b", b, channel, 1)], baseline=1)
    assert inverted.outcome.tolist() == [0, 0]
    assert inverted.term.tolist() == ["intercept", "b=0"]
    np.testing.assert_allclose(inverted.estimate[1], plain.estimate[1], atol=1e-5)
    np.testing.assert_allclose(inverted.estimate[0], -plain.estimate.sum(), atol=1e-5)
    with pytest.raises(ValueError, match="baseline 2"):
        regression(a, channel, baseline=2)
