"""The posterior mean matches numeric integration and has its documented bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

from survey.errors import ChannelError, CountsError
from survey.estimator import dirichlet_mean
from survey.mechanism import SubsetSelection, WeightTable, from_epsilon, grr
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case


@pytest.mark.web
@each_case("counts", [[700, 1300], [20, 80], [0, 30]])
@each_case("prior", [1.0, 0.5, [3.0, 1.0]])
def test_the_posterior_of_two_options_matches_numeric_integration(counts, prior):
    channel, weights = grr(2, "3/4"), np.broadcast_to(prior, 2)
    # Midpoints in the distribution function: densities of 1/2 are infinite at the ends.
    share = beta.ppf((np.arange(100_000) + 0.5) / 100_000, *weights)
    density = binom.pmf(counts[0], sum(counts), channel.q + (channel.p - channel.q) * share)
    mean = (share @ density) / density.sum()
    deviation = np.sqrt(((share - mean) ** 2 @ density) / density.sum())
    result = dirichlet_mean(counts, channel, prior=prior)
    assert abs(result.estimate[0] - mean) <= 5 * result.simulation_error[0] + 1e-4
    assert result.std_dev[0] == pytest.approx(deviation, rel=0.1)
    assert result.estimate.sum() == pytest.approx(1)
    assert result.prior == weights.sum()
    assert result.settled


@pytest.mark.slow
def test_barely_randomized_counts_have_the_posterior_of_answers_without_randomization():
    result = dirichlet_mean([10, 30, 60], from_epsilon(3, 12))
    np.testing.assert_allclose(result.estimate, np.array([11, 31, 61]) / 103, atol=2e-3)
    table = WeightTable(Explicit(((4, 1, 1), (1, 4, 1), (1, 1, 4))))
    counts = [300, 500, 200]
    by_table, by_response = (
        dirichlet_mean(counts, channel, draws=500) for channel in (table, grr(3, "2/3"))
    )
    np.testing.assert_array_equal(by_table.estimate, by_response.estimate)


@pytest.mark.slow
def test_a_flat_prior_pulls_towards_equal_shares_and_never_covers_0():
    channel = from_epsilon(10, 1)
    counts = np.round(1000 * channel.matrix[0]).astype(int)
    result = dirichlet_mean(counts, channel)
    assert 0.7 < result.estimate[0] < 0.8
    assert result.cred_low.min() > 0


def test_a_nearly_uninformative_channel_is_flagged_as_not_converged():
    result = dirichlet_mean([5000, 5000], from_epsilon(2, "0.02"), draws=200)
    assert not result.settled


def test_the_same_counts_give_the_same_numbers():
    first, second = (dirichlet_mean([40, 60], grr(2, "3/4"), draws=500) for _ in range(2))
    np.testing.assert_array_equal(first.estimate, second.estimate)


@pytest.mark.parametrize("prior", [0, -1, float("nan"), [1, 2, 3], [1, 0]])
def test_an_invalid_prior_is_rejected(prior):
    with pytest.raises(ValueError, match="prior"):
        dirichlet_mean([40, 60], grr(2, "3/4"), prior=prior)


def test_other_errors_of_a_posterior_are_named():
    with pytest.raises(CountsError, match="n = 0"):
        dirichlet_mean([0, 0], grr(2, "3/4"))
    with pytest.raises(ChannelError, match="d = 2"):
        dirichlet_mean([2, 2, 2], SubsetSelection(k=3, d=2, T=3, L=1))
    with pytest.raises(ValueError, match="level = 0"):
        dirichlet_mean([5, 5], grr(2, "3/4"), level=0)
    with pytest.raises(ValueError, match="draws = 3"):
        dirichlet_mean([5, 5], grr(2, "3/4"), draws=3)
