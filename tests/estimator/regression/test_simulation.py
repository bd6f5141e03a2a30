"""Bias, standard errors and coverage of regressions in simulated surveys."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.estimator import ByGroup, Randomized, regression
from survey.mechanism import from_epsilon, grr
from tests.estimator.regression.surveys import DIE, TRUE, people


def simulated(outcomes: int, is_randomized: bool, n: int, rounds: int, model: str = "logit"):
    """Return coefficients and standard errors of simulated surveys, and the true coefficients."""
    rng = np.random.default_rng(outcomes + n)
    channel, predictor_channel = from_epsilon(outcomes, 3), grr(2, "9/10")
    estimates, errors = [], []
    for _ in range(rounds):
        x, u, truth = people(n, int(rng.integers(2**31)), outcomes)
        reports = channel.perturb(truth, rng)
        randomized = (
            [Randomized("u", predictor_channel.perturb(u, rng), predictor_channel)]
            if is_randomized
            else []
        )
        open_ = x if is_randomized else np.column_stack([x, u])
        fit = regression(reports, channel, open_, randomized=randomized, predictor_model=model)
        assert fit.converged
        assert not fit.boundary
        estimates.append(fit.estimate)
        errors.append(fit.std_error)
    return np.array(estimates), np.array(errors), TRUE[: outcomes - 1].ravel()


def simulated_in_groups(outcomes: int, n: int, rounds: int):
    """Simulate surveys in three equal groups: weak channel, strong channel, none. The sign of `x`
    changes the chance of the weak channel, as if one stratum had more protection."""
    rng = np.random.default_rng(100 + outcomes)
    weak, strong = from_epsilon(outcomes, 1), from_epsilon(outcomes, 3)
    estimates, errors = [], []
    for _ in range(rounds):
        x, u, truth = people(n, int(rng.integers(2**31)), outcomes)
        group = np.where(rng.random(n) < np.where(x > 0, 0.6, 0.2), 0, rng.integers(1, 3, size=n))
        reports = np.choose(group, [weak.perturb(truth, rng), strong.perturb(truth, rng), truth])
        channels = ByGroup([weak, strong, None], group)
        fit = regression(reports, channels, np.column_stack([x, u]))
        assert fit.converged
        assert not fit.boundary
        estimates.append(fit.estimate)
        errors.append(fit.std_error)
    return np.array(estimates), np.array(errors), TRUE[: outcomes - 1].ravel()


def check_calibrated(estimates: np.ndarray, errors: np.ndarray, truth: np.ndarray) -> None:
    rounds = len(estimates)
    spread = estimates.std(axis=0, ddof=1)
    # Logits have a bias of order 1/n; here it is below a tenth of an error.
    bias = np.abs(estimates.mean(axis=0) - truth)
    assert np.all(bias < 4 * spread / math.sqrt(rounds) + 0.1 * spread)
    # The relative error of a simulated standard deviation is 1/sqrt(2 rounds).
    ratio = np.median(errors, axis=0) / spread
    assert np.all(np.abs(ratio - 1) < 4 / math.sqrt(2 * rounds))
    covered = np.mean(np.abs(estimates - truth) < 1.96 * errors, axis=0)
    assert np.all(covered > 0.95 - 4 * math.sqrt(0.05 * 0.95 / rounds))


@pytest.mark.web
@pytest.mark.parametrize("is_randomized", [False, True])
def test_coefficients_are_unbiased_and_their_errors_calibrated(is_randomized):
    check_calibrated(*simulated(2, is_randomized, 1000, 30))


@pytest.mark.web
def test_coefficients_from_groups_with_different_channels_are_calibrated():
    check_calibrated(*simulated_in_groups(2, 1000, 40))


@pytest.mark.long
@pytest.mark.parametrize("outcomes", [2, 3])
def test_coefficients_from_groups_with_different_channels_are_calibrated_in_many_surveys(outcomes):
    check_calibrated(*simulated_in_groups(outcomes, 3000, 300))


@pytest.mark.long
@pytest.mark.parametrize("outcomes", [2, 3])
@pytest.mark.parametrize("is_randomized", [False, True])
def test_coefficients_are_unbiased_and_their_errors_calibrated_in_many_surveys(
    outcomes, is_randomized
):
    check_calibrated(*simulated(outcomes, is_randomized, 3000, 200))


@pytest.mark.long
def test_a_randomized_predictor_that_depends_on_others_needs_a_model():
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
        fit = regression(reports, DIE, np.column_stack([x, u]), weights=weights)
        estimates.append(fit.estimate)
        errors.append(fit.std_error)
    check_calibrated(np.array(estimates), np.array(errors), TRUE[0])
