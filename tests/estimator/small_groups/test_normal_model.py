"""Model-based shares of groups: the likelihood, the interval, peers, limits and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator import group_shares, proportions
from survey.mechanism import BitVector, from_epsilon, grr
from tests.benchmarks.small_groups import FOUR, UNEQUAL, Setting, measured

CHANNEL = grr(2, "3/4")
COUNTS = np.array([[70, 80], [62, 88], [30, 30], [58, 92], [181, 119], [9, 16]])
SIZES = [0.2, 1.0, 2.5, 0.7, 1.1, 3.0]
"""A number known of each group."""

LEFT_OUT = np.array([[0, 0], *COUNTS.tolist()])
"""The first group has no reports."""


DIFFUSE = 1e3
"""Variance of coefficients about which hardly anything is known in advance."""


def joint_normal(A, shares, covariates):
    """Return log p(y | A), and mean and variance of theta given y and A, for each A in an array.

    By the joint normal distribution of coefficients, true shares and estimates, without the
    formulas of least squares.
    """
    X = np.column_stack([np.ones(6), *([] if covariates is None else [covariates])])
    y, D = shares.direct[:, 0], shares.direct_error[:, 0] ** 2
    S = A[:, None, None] * np.eye(6) + DIFFUSE * X @ X.T
    gain = S @ np.linalg.inv(S + np.diag(D))
    squares = y @ np.linalg.inv(S + np.diag(D)) @ y
    log_density = -(np.linalg.slogdet(S + np.diag(D))[1] + squares) / 2
    return log_density, gain @ y, np.diagonal(S - gain @ S, axis1=1, axis2=2)


@pytest.mark.parametrize("covariates", [None, SIZES])
def test_the_spread_of_groups_maximizes_the_likelihood_at_diffuse_coefficients(covariates):
    shares = group_shares(COUNTS, CHANNEL, covariates)
    sd = np.linspace(0, 0.3, 3_001)
    log_density, mean, _ = joint_normal(sd**2, shares, covariates)
    assert shares.between_sd[0] == pytest.approx(sd[log_density.argmax()], abs=2e-4)
    assert shares.between_sd[0] > 0.01
    assert np.allclose(shares.estimate[:, 0], mean[log_density.argmax()], atol=1e-3)


@pytest.mark.parametrize("covariates", [None, SIZES])
def test_interval_and_error_are_those_of_a_uniform_variance_between_groups(covariates):
    shares = group_shares(COUNTS, CHANNEL, covariates)
    A = (np.arange(5_000) + 0.5) / 5_000 / 4
    log_density, mean, variance = joint_normal(A, shares, covariates)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    for end, probability in ((shares.conf_low, 0.025), (shares.conf_high, 0.975)):
        below = weights @ stats.norm.cdf(end[:, 0], mean, np.sqrt(variance))
        inside = (end[:, 0] > 0) & (end[:, 0] < 1)
        assert np.abs(below - probability)[inside].max() < 2e-4
        assert inside.sum() >= 4
    squares = weights @ (variance + (mean - shares.estimate[:, 0]) ** 2)
    assert np.allclose(shares.std_error[:, 0], np.sqrt(squares), rtol=1e-3)


def test_the_test_of_equal_groups_agrees_with_statsmodels():
    from statsmodels.stats.meta_analysis import combine_effects

    shares = group_shares(COUNTS, CHANNEL)
    peer = combine_effects(shares.direct[:, 0], shares.direct_error[:, 0] ** 2)
    assert shares.q[0] == pytest.approx(peer.q)
    assert shares.dof[0] == peer.df
    assert shares.p_value[0] == pytest.approx(stats.chi2.sf(peer.q, peer.df))


def test_the_interval_of_the_spread_holds_every_spread_that_is_likely_enough():
    shares = group_shares(np.concatenate([COUNTS] * 3), CHANNEL)
    y, D = shares.direct[:, 0], shares.direct_error[:, 0] ** 2

    def log_likelihood(sd):
        # The restricted likelihood with the pooled share integrated out.
        W = 1 / (sd**2 + D)
        squares = (W * (y - (W * y).sum() / W.sum()) ** 2).sum()
        return (np.log(W).sum() - np.log(W.sum()) - squares) / 2

    best = log_likelihood(shares.between_sd[0])
    for end in (shares.between_low[0], shares.between_high[0]):
        assert 2 * (best - log_likelihood(end)) == pytest.approx(stats.chi2.ppf(0.95, 1))
    assert 0 < shares.between_low[0] < shares.between_sd[0] < shares.between_high[0]


def test_groups_that_differ_less_than_chance_are_pooled_and_keep_an_interval():
    shares = group_shares([[70, 80], [72, 78], [71, 79], [69, 81]], CHANNEL)
    everybody = proportions([282, 318], CHANNEL)
    assert shares.is_pooled.all()
    assert np.allclose(shares.estimate, everybody.estimate)
    assert (shares.shrinkage == 1).all()
    # The groups may differ by as much as their own reports leave open.
    pooled_width = everybody.conf_high - everybody.conf_low
    assert (shares.conf_high - shares.conf_low > 1.1 * pooled_width).all()
    assert (shares.between_low == 0).all()
    assert (shares.between_high > 0).all()


def test_large_groups_keep_their_own_estimates():
    counts = np.array([[300_000, 700_000], [400_000, 600_000], [500_000, 500_000], [3, 1]])
    counts[3] *= 175_000
    shares = group_shares(counts, CHANNEL)
    assert np.abs(shares.estimate - shares.direct).max() < 1e-3
    assert shares.shrinkage.max() < 1e-3


def test_a_group_without_reports_gets_the_expected_share_and_the_widest_interval():
    shares = group_shares(LEFT_OUT, CHANNEL, [2.0, *SIZES])
    assert np.isnan(shares.direct[0]).all()
    assert np.allclose(shares.estimate[0], shares.expected[0])
    widths = shares.conf_high - shares.conf_low
    assert (widths[0] > widths[1:]).all()
    # The covariates are standardized over all groups, which changes no prediction.
    others = group_shares(COUNTS, CHANNEL, SIZES)
    assert np.allclose(shares.estimate[1:], others.estimate)
    assert np.allclose(shares.conf_low[1:], others.conf_low)


def test_covariates_predict_shares_where_reports_are_few():
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 40)
    truth = 0.2 + 0.5 * x
    counts = rng.binomial(60, CHANNEL.q + (CHANNEL.p - CHANNEL.q) * truth)
    table = np.column_stack([counts, 60 - counts])
    errors = [
        np.abs(group_shares(table, CHANNEL, covariates).estimate[:, 0] - truth).mean()
        for covariates in (None, x)
    ]
    assert errors[1] < 0.5 * errors[0]


def test_an_unusual_group_has_a_large_residual_that_does_not_count_itself():
    counts = [[70, 80], [72, 78], [71, 79], [69, 81], [120, 30], [73, 77], [68, 82], [0, 0]]
    shares = group_shares(counts, CHANNEL)
    residual = np.abs(shares.residual[:, 0])
    others = proportions([423, 477], CHANNEL)
    # The others are alike: their pooled share has a variance of a sixth of one group's.
    error = shares.direct_error[4, 0] * np.sqrt(7 / 6)
    assert residual[4] == pytest.approx(
        (shares.direct[4, 0] - others.estimate[0]) / error, rel=0.01
    )
    assert residual[4] > 3
    assert np.nanmax(np.delete(residual, 4)) < 1
    assert np.isnan(residual[7])


def test_shares_of_a_group_add_up_to_one_in_any_order_of_options():
    channel = from_epsilon(4, 1.0)
    counts = np.random.default_rng(3).multinomial(90, [0.3, 0.3, 0.2, 0.2], 8)
    shares, reversed_shares = (group_shares(c, channel) for c in (counts, counts[:, ::-1]))
    assert np.allclose(shares.estimate.sum(axis=1), 1)
    assert (shares.estimate != shares.direct).all()
    for name in ("estimate", "conf_low", "conf_high", "std_error", "between_sd"):
        assert np.allclose(getattr(shares, name), getattr(reversed_shares, name)[..., ::-1])
    assert (shares.conf_low < shares.estimate).all()
    assert (shares.estimate < shares.conf_high).all()


def test_ticked_options_are_estimated_independently():
    channel = BitVector(m=2, s=2, T=3, L=1)
    ones = [[30, 60], [45, 61], [31, 70], [50, 65], [38, 60]]
    shares = group_shares(ones, channel, n=[90, 100, 95, 110, 92])
    single = group_shares(
        np.column_stack([np.array(ones)[:, 0], [60, 55, 64, 60, 54]]), grr(2, "3/4")
    )
    assert np.allclose(shares.estimate[:, 0], single.estimate[:, 0])
    assert not np.allclose(shares.estimate.sum(axis=1), 1)


@pytest.mark.web
def test_simulated_intervals_cover_and_errors_shrink():
    for setting, max_ratio in (
        (Setting(12, 0.8, (140,), 0.05), 0.62),
        (Setting(12, 4.0, UNEQUAL, 0.1), 0.92),
        (Setting(8, 1.0, (200,), 0.05, mean=FOUR), 0.75),
    ):
        figures = measured(setting, 60)
        assert figures.coverage >= 0.93, setting
        assert figures.model <= max_ratio * figures.direct, setting


def test_impossible_groups_are_rejected_with_the_reason():
    for counts, covariates, error, words in (
        (COUNTS[:3], None, DesignError, "3 groups with reports are too few: this model needs 4"),
        (COUNTS[:4], SIZES[:4], DesignError, "needs 5"),
        (COUNTS, SIZES[:4], DesignError, "a row for each of 6 groups"),
        (COUNTS, [1.0] * 6, DesignError, "same value in all groups"),
        (COUNTS, np.column_stack([SIZES, SIZES]), DesignError, "combination of the others"),
        (COUNTS, [np.nan, *SIZES[1:]], DesignError, "finite numbers"),
        (0 * COUNTS, None, CountsError, "n = 0"),
        (-COUNTS, None, CountsError, "negative"),
        (COUNTS[:, :1], None, CountsError, "2 columns"),
    ):
        with pytest.raises(error, match=words):
            group_shares(counts, CHANNEL, covariates)
    with pytest.raises(ChannelError, match="must be"):
        group_shares(COUNTS, "3/4")
    with pytest.raises(DesignError, match="level"):
        group_shares(COUNTS, CHANNEL, level=2)
