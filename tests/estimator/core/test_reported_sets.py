"""The most likely shares of reported sets agree with a general optimizer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from survey.errors import CountsError
from survey.estimator import norm_sub, proportions, set_shares
from survey.estimator.core.maximum_likelihood import (
    most_likely_mixture,
    most_likely_of_sets,
    most_likely_of_supports,
)
from survey.mechanism import BitVector, SubsetSelection, WeightTable, best, grr
from survey.mechanism.numeric import square_wave
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case

SETS = [
    SubsetSelection(4, 2, 3, 1),
    SubsetSelection(6, 2, 20, 1),
    SubsetSelection(5, 3, 2, 1),
    best(10, 1),
]
sets = pytest.mark.parametrize("channel", SETS, ids=str)
truths = pytest.mark.parametrize("sparse", [True, False])


def reported(channel: SubsetSelection, sparse: bool, n: int = 400) -> np.ndarray:
    rng = np.random.default_rng(channel.k)
    pi = np.eye(channel.k)[0] if sparse else rng.dirichlet(np.ones(channel.k))
    return channel.perturb(rng.choice(channel.k, n, p=pi), rng).astype(bool)


def by_slsqp(loss, k: int) -> float:
    """Return the minimum of a function of shares, by a general optimizer from several starts."""
    starts = [np.full(k, 1 / k), *np.random.default_rng(2).dirichlet(np.ones(k), size=2)]
    fits = [
        minimize(
            loss,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda pi: pi.sum() - 1},
            options={"maxiter": 400, "ftol": 1e-13},
        )
        for start in starts
    ]
    return min(fit.fun for fit in fits)


@sets
@truths
def test_sets_in_rows_reach_the_maximum_likelihood(channel, sparse):
    members = reported(channel, sparse)

    def loss_of_sets(pi):
        likelihoods = members @ pi
        return -np.mean(np.log(channel.L + (channel.T - channel.L) * likelihoods))

    solution = most_likely_of_sets(members, channel)
    assert solution.min() >= 0
    assert solution.sum() == pytest.approx(1)
    assert loss_of_sets(solution) <= by_slsqp(loss_of_sets, channel.k) + 1e-6


@pytest.mark.parametrize("supports", [(80, 70, 50), (95, 60, 45), (100, 100, 0), (67, 67, 66)])
def test_supports_of_all_options_but_one_determine_the_likelihood(supports):
    channel, missing = SubsetSelection(3, 2, 3, 1), 100 - np.array(supports)
    # P(j is missing | truth): L where the truth is j, T elsewhere.
    matrix = np.where(np.eye(3, dtype=bool), channel.L, channel.T) / 7
    by_rounds = most_likely_mixture(missing, matrix)
    solution = most_likely_of_supports(np.array(supports), 100, channel)
    np.testing.assert_allclose(solution @ matrix, by_rounds @ matrix, atol=1e-3)
    assert missing @ np.log(solution @ matrix) >= missing @ np.log(by_rounds @ matrix) - 1e-9
    rows = np.repeat(~np.eye(3, dtype=bool), missing, axis=0)
    whole = set_shares(rows, channel)
    np.testing.assert_allclose(whole.mle @ matrix, solution @ matrix, atol=1e-3)
    assert proportions(supports, channel).mle_method == "maximum likelihood"


def test_sets_of_one_option_are_generalized_randomized_response():
    channel, counts = grr(4, "0.6"), np.array([50, 30, 15, 5])
    members = np.repeat(np.eye(4, dtype=bool), counts, axis=0)
    np.testing.assert_allclose(
        most_likely_of_sets(members, channel), proportions(counts, channel).mle, atol=1e-3
    )


@sets
@truths
def test_supports_give_the_possible_shares_nearest_to_the_estimate(channel, sparse):
    members = reported(channel, sparse)
    result = proportions(members.sum(axis=0), channel)
    rows = set_shares(members, channel)
    assert (result.mle_method, rows.mle_method) == ("projection", "maximum likelihood")
    for name in ("estimate", "std_error", "conf_low", "conf_high"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(result, name))

    def distance(pi):
        return np.sum((pi - result.estimate) ** 2)

    assert distance(result.mle) <= by_slsqp(distance, channel.k) + 1e-9
    assert result.mle.min() >= 0
    assert result.mle.sum() == pytest.approx(1)


@pytest.mark.slow
def test_the_projection_is_nearly_as_near_to_the_truth_as_the_likelihood():
    channel, pi, rng = (
        best(8, 1),
        np.array([0.6, 0.3, 0.1, 0, 0, 0, 0, 0]),
        np.random.default_rng(3),
    )
    errors = []
    for _ in range(150):
        members = channel.perturb(rng.choice(8, 400, p=pi), rng)
        estimates = (
            set_shares(members, channel).mle,
            proportions(members.sum(axis=0), channel).mle,
        )
        errors.append([np.mean((estimate - pi) ** 2) for estimate in estimates])
    by_likelihood, by_projection = np.sqrt(np.mean(errors, axis=0))
    assert by_likelihood <= by_projection <= 1.1 * by_likelihood


@each_case(
    ("channel", "n"),
    [
        (grr(3, "0.6"), None),
        (SubsetSelection(4, 2, 3, 1), None),
        (SubsetSelection(4, 3, 3, 1), None),
        (BitVector(4, 2, 3, 1, alone=1), 10),
        (WeightTable(Explicit(((3, 1), (1, 3)))), None),
        (WeightTable(Explicit(((5, 1, 1, 3), (1, 5, 1, 3), (1, 1, 5, 3)))), None),
        (square_wave(5, 2, 1), None),
    ],
)
def test_every_channel_gives_complete_results_by_default(channel, n):
    for place in range(channel.counted):
        # Reports as similar as the channel permits.
        minimum = channel.d - 1 if isinstance(channel, SubsetSelection) else 0
        alike = np.roll(np.arange(channel.counted) <= minimum, place) * 10
        result = proportions(alike, channel, n=n)
        for row in result.to_rows():
            assert np.isfinite([x for x in row.values() if isinstance(x, int | float)]).all()
        assert result.mle_method != ""


@pytest.mark.parametrize(
    ("reports", "sentence"),
    [
        ([[1, 1, 0]], r"shape \(1, 3\) must have shape \(n, 4\)"),
        (np.empty((0, 4)), "must have shape"),
        ([[1, 2, 0, 0]], "0 or 1"),
        ([[1, np.nan, 0, 0]], "0 or 1"),
        ([[1, 1, 0, 0], [1, 0, 0, 0]], "report 1 contains 1 options, not d = 2"),
    ],
)
def test_rows_that_are_not_sets_of_the_channel_are_rejected(reports, sentence):
    with pytest.raises(CountsError, match=sentence):
        set_shares(reports, SubsetSelection(4, 2, 3, 1))


def test_a_likelihood_not_maximized_in_time_is_replaced_with_a_note(monkeypatch):
    monkeypatch.setattr("survey.estimator.core.maximum_likelihood.MAX_ROUNDS", 1)
    channel = SubsetSelection(4, 2, 3, 1)
    result = set_shares(reported(channel, True), channel)
    assert result.mle_method == "projection"
    np.testing.assert_array_equal(result.mle, norm_sub(result.estimate))
