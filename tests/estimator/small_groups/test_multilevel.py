"""Multilevel shares: exact integration, a peer, post-stratification, limits and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator import multilevel_shares
from survey.estimator.small_groups.multilevel import INTERCEPT_SD, LARGEST_SD
from survey.mechanism import SubsetSelection, from_epsilon, grr
from tests.benchmarks.small_groups import FOUR, Setting, StratifiedSetting, measured_multilevel

CHANNEL = grr(2, "3/4")
COUNTS = np.array([[70, 80], [62, 88], [30, 30], [58, 92], [181, 119], [9, 16]])
STRATA = np.array(
    [[[70, 80], [20, 30]], [[62, 88], [15, 45]], [[75, 75], [25, 25]], [[58, 92], [11, 29]],
     [[81, 69], [21, 29]]]
)  # fmt: skip


def exact_posterior(counts, channel):
    """Integrate over the intercept, the log odds of each group, and sd, uniform in its square.

    Return a grid of shares, the posterior cumulative distribution of each group's share, and the
    most likely sd.
    """
    eta = np.linspace(-14, 14, 561)
    share = 1 / (1 + np.exp(-eta))  # of the second option
    report = channel.q + (channel.p - channel.q) * share
    log_l = counts[:, [1]] * np.log(report) + counts[:, [0]] * np.log(1 - report)
    likelihood = np.exp(log_l - log_l.max(axis=1, keepdims=True))
    posterior = np.zeros((len(counts), eta.size))
    sds = np.sqrt((np.arange(60) + 0.5) / 60) * LARGEST_SD
    marginal = np.zeros(sds.size)
    for place, sd in enumerate(sds):
        for beta in np.linspace(-2, 3, 51):
            prior = np.exp(-((eta - beta) ** 2) / (2 * sd**2))
            product = likelihood * (prior / prior.sum())
            of_groups = product.sum(axis=1)
            weight = of_groups.prod() * np.exp(-(beta**2) / (2 * INTERCEPT_SD**2))
            posterior += weight * product / of_groups[:, None]
            marginal[place] += weight
    return (
        share,
        posterior.cumsum(axis=1) / posterior.sum(axis=1, keepdims=True),
        sds[marginal.argmax()],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "counts",
    [
        # Groups that differ much, one with a share near 0; groups that may not differ at all.
        [[88, 12], [88, 62], [30, 30], [92, 58], [119, 181], [16, 9], [110, 40]],
        [[88, 62], [30, 30], [92, 58], [69, 81], [40, 20]],
    ],
)
def test_intervals_agree_with_exact_integration(counts, monkeypatch):
    monkeypatch.setattr("survey.estimator.small_groups.multilevel.DRAWS", 20_000)
    counts = np.array(counts)
    shares = multilevel_shares(counts, CHANNEL)
    grid, cumulative, most_likely = exact_posterior(counts, CHANNEL)
    for group, distribution in enumerate(cumulative):
        low, high = np.interp([0.025, 0.975], distribution, grid)
        assert shares.conf_low[group, 1] == pytest.approx(low, abs=0.015), group
        assert shares.conf_high[group, 1] == pytest.approx(high, abs=0.015), group
    assert shares.between_sd == pytest.approx(most_likely, rel=0.1)


def test_ends_within_one_response_of_0_and_1_are_0_and_1():
    counts = np.array([[99, 1], [97, 3], [98, 2], [99, 1], [88, 12]])
    shares = multilevel_shares(counts, from_epsilon(2, 8.0))
    assert shares.conf_low[:4, 1].tolist() == [0, 0, 0, 0]
    assert shares.conf_high[:4, 0].tolist() == [1, 1, 1, 1]
    assert 0.01 < shares.conf_low[4, 1] < 0.12 < shares.conf_high[4, 1] < 1


@pytest.mark.slow
def test_almost_without_randomization_shares_are_those_of_statsmodels():
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    channel = from_epsilon(2, 12.0)
    rng = np.random.default_rng(4)
    truth = 1 / (1 + np.exp(-0.4 - 0.6 * rng.standard_normal(20)))
    yes = rng.binomial(40, truth)
    counts = np.column_stack([40 - yes, yes])
    shares = multilevel_shares(counts, channel)
    answers = np.concatenate([np.repeat([0, 1], row) for row in counts])
    groups = np.repeat(np.eye(20), 40, axis=0)
    peer = BinomialBayesMixedGLM(
        answers, np.ones((answers.size, 1)), groups, np.zeros(20, dtype=int), fe_p=INTERCEPT_SD
    ).fit_vb()
    of_peer = 1 / (1 + np.exp(-peer.fe_mean[0] - peer.vc_mean))
    assert np.abs(shares.estimate[:, 1] - of_peer).max() < 0.02
    # Unlike the direct shares, which both draw together.
    assert np.abs(shares.direct[:, 1] - of_peer).max() > 0.04


def test_the_order_of_options_does_not_matter():
    channel = from_epsilon(3, 2.0)
    counts = np.random.default_rng(3).multinomial(90, [0.5, 0.3, 0.2], 8)
    counts[0] = [20, 20, 50]
    shares = multilevel_shares(counts, channel)
    other = multilevel_shares(counts[:, ::-1], channel)
    assert other.between_sd == pytest.approx(shares.between_sd, rel=0.02)
    assert np.abs(other.estimate[:, ::-1] - shares.estimate).max() < 0.01
    assert np.abs(other.conf_high[:, ::-1] - shares.conf_high).max() < 0.03
    assert np.allclose(shares.estimate.sum(axis=1), 1)


@pytest.mark.slow
def test_shares_are_weighted_to_the_known_strata():
    first, second, both = (
        multilevel_shares(STRATA, CHANNEL, [people] * 5) for people in ([1, 0], [0, 1], [3, 1])
    )
    assert (first.estimate[:, 0] > second.estimate[:, 0]).all()
    mixed = 0.75 * first.estimate + 0.25 * second.estimate
    assert np.abs(both.estimate - mixed).max() < 0.01
    assert np.allclose(both.direct, 0.75 * first.direct + 0.25 * second.direct)
    # Group 0 has as many people as the other four together.
    large = multilevel_shares(STRATA, CHANNEL, [[12, 4], *[[3, 1]] * 4])
    assert np.allclose(large.total, large.estimate[0] / 2 + large.estimate[1:].mean(axis=0) / 2)
    assert (large.total_low < large.total).all()
    assert (large.total < large.total_high).all()
    assert (large.total_error < large.std_error.min(axis=0)).all()


def test_without_populations_the_reports_represent_their_group():
    shares = multilevel_shares(STRATA, CHANNEL)
    stated = multilevel_shares(STRATA, CHANNEL, STRATA.sum(axis=2))
    assert shares.estimate.tolist() == stated.estimate.tolist()
    assert shares.direct[0, 0] == pytest.approx((90 / 200 - 0.25) / 0.5)


def test_groups_that_differ_less_than_chance_are_pooled():
    shares = multilevel_shares([[70, 80], [72, 78], [71, 79], [69, 81]], CHANNEL)
    assert shares.between_sd == 0 == shares.between_low
    assert shares.between_high > 0.1
    assert shares.p_value == 1
    assert np.allclose(shares.shrinkage, 1, atol=1e-3)
    assert np.ptp(shares.estimate[:, 0]) < 1e-3
    assert shares.converged


def test_different_groups_are_recognized_and_keep_their_shares():
    counts = np.array([[200, 800], [400, 600], [600, 400], [800, 200], [300, 700]])
    shares = multilevel_shares(counts, from_epsilon(2, 3.0))
    assert shares.p_value < 1e-6
    assert 0 < shares.between_low < shares.between_sd < shares.between_high
    assert np.abs(shares.estimate - shares.direct).max() < 0.01
    assert shares.shrinkage.max() < 0.02


def test_a_group_without_reports_gets_the_prediction_of_its_covariate():
    x = np.linspace(-1, 1, 9)
    truth = 1 / (1 + np.exp(-1.5 * x))
    yes = np.round(400 * (CHANNEL.q + (CHANNEL.p - CHANNEL.q) * truth)).astype(int)
    counts = np.column_stack([400 - yes, yes])
    counts[8] = 0
    shares = multilevel_shares(counts, CHANNEL, np.ones(9), x)
    assert np.isnan(shares.direct[8]).all()
    assert shares.estimate[8, 1] == pytest.approx(truth[8], abs=0.05)
    widths = shares.conf_high - shares.conf_low
    assert (widths[8] > widths[:8]).all()


@pytest.mark.slow
def test_equal_data_give_equal_results():
    first, second = (multilevel_shares(COUNTS, CHANNEL) for _ in range(2))
    assert first.conf_low.tolist() == second.conf_low.tolist()
    wide = multilevel_shares(COUNTS, CHANNEL, level=0.99)
    assert (wide.conf_low < first.conf_low).all()
    assert (first.conf_high < wide.conf_high).all()


@pytest.mark.web
def test_simulated_intervals_cover_and_errors_shrink():
    for setting, max_ratio in (
        (StratifiedSetting(12, 0.8, 240, 0.3), 0.65),
        (StratifiedSetting(12, 1.0, 240, 0.3, base=(0.3, 0.6, 0.9)), 0.7),
        # Shrinkage with the known mean and variance of the groups would reach .81.
        (Setting(12, 2.0, (200,), 0.05, mean=FOUR), 0.86),
    ):
        figures = measured_multilevel(setting, 30)
        assert figures.coverage >= 0.93, setting
        assert figures.model <= max_ratio * figures.direct, setting


def test_impossible_groups_are_rejected_with_the_reason():
    for counts, population, error, words in (
        (COUNTS[:3], None, DesignError, "3 groups with reports are too few: this model needs 4"),
        (COUNTS, np.ones(5), DesignError, "a number for each of 6 groups and 1 strata"),
        (COUNTS, [-1, 1, 1, 1, 1, 1], DesignError, "at least 0"),
        (COUNTS, [0, 1, 1, 1, 1, 1], DesignError, "above 0 in each group"),
        (COUNTS, [np.nan, 1, 1, 1, 1, 1], DesignError, "at least 0"),
        ([[0, 0], *COUNTS.tolist()], None, DesignError, "without reports needs a population"),
        (COUNTS[0], None, CountsError, r"must be \(groups, 2\)"),
        (COUNTS[:, :1], None, CountsError, r"must be \(groups, 2\)"),
        (-COUNTS, None, CountsError, "negative"),
        (np.ones((10_001, 2), int), None, CountsError, "20,002 counts are more than 20,000"),
    ):
        with pytest.raises(error, match=words):
            multilevel_shares(counts, CHANNEL, population)
    with pytest.raises(ChannelError, match="reports of one option"):
        multilevel_shares(np.ones((5, 4), int), SubsetSelection(k=4, d=2, T=3, L=1))
    with pytest.raises(DesignError, match="level"):
        multilevel_shares(COUNTS, CHANNEL, level=2)
