"""Intervals that exist where an estimate does not: ends, openness and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erfc, expit, logit, xlogy
from scipy.stats import binom

from survey.estimator import Randomized, regression
from survey.mechanism import from_epsilon, grr
from tests.cases import each_case

COIN, SQUARE = grr(2, "3/4"), 1.959963985**2


def losses(yes, n, channel, eta):
    """Return 2 (l* - l(eta)) of a number of yes reports; l* may lie at the limit of a share."""
    p, q = channel.p, channel.q

    def log_likelihood(share):
        reported = q + (p - q) * share
        return xlogy(yes, reported) + xlogy(n - yes, 1 - reported)

    best = np.clip((yes / n - q) / (p - q), 0, 1)
    return 2 * (log_likelihood(best) - log_likelihood(expit(eta)))


@each_case(("yes", "is_open"), [(36, (True, False)), (80, (False, False)), (112, (False, True))])
def test_the_ends_are_those_of_the_likelihood_and_open_where_a_share_reaches_its_limit(
    yes, is_open
):
    fit = regression([0, 1], COIN, times=[150 - yes, yes])
    ends = np.array([fit.conf_low[0], fit.conf_high[0]])
    assert tuple(np.isinf(ends)) == is_open
    for end, is_infinite in zip(ends, is_open, strict=True):
        if not is_infinite:
            loss = float(losses(yes, 150, COIN, end))
            wald = abs(end - fit.estimate[0]) / fit.std_error[0]
            # The outer one of both ends.
            is_profile = loss == pytest.approx(SQUARE, abs=1e-3)
            assert is_profile or (wald**2 == pytest.approx(SQUARE) and loss > SQUARE)


def test_a_slope_has_an_end_although_one_share_has_no_estimate_and_none_if_both_have_none():
    fit = regression([0, 1, 0, 1], COIN, [0, 0, 1, 1], times=[115, 35, 75, 75])
    assert np.isnan(fit.estimate).all()
    low, high = fit.conf_low[1], fit.conf_high[1]
    assert (fit.conf_low[0], high) == (-math.inf, math.inf)
    # max over the intercept of both groups' likelihoods at the end
    intercepts = np.linspace(-12, 6, 9001)
    loss = losses(35, 150, COIN, intercepts) + losses(75, 150, COIN, intercepts + low)
    assert loss.min() == pytest.approx(SQUARE, abs=1e-3)
    empty = regression([0, 1, 0, 1], COIN, [0, 0, 1, 1], times=[120, 30, 118, 32])
    assert (empty.conf_low[1], empty.conf_high[1]) == (-math.inf, math.inf)


def test_the_end_of_a_slope_is_that_of_the_profile_although_the_likelihood_is_flat():
    # At these counts, a search from a single start stopped where the loss was 0.0 to 3.4.
    channel, intercepts = from_epsilon(2, 0.7), np.linspace(-40, 40, 8001)
    for first, second in ((62, 76), (63, 76), (56, 76), (76, 63)):
        times = [190 - first, first, 190 - second, second]
        fit = regression([0, 1, 0, 1], channel, [0, 0, 1, 1], times=times)
        end = fit.conf_low[1] if np.isfinite(fit.conf_low[1]) else fit.conf_high[1]
        loss = losses(first, 190, channel, intercepts)
        loss = loss + losses(second, 190, channel, intercepts + end)
        assert loss.min() == pytest.approx(SQUARE, abs=1e-2), (first, second)


def test_an_end_does_not_depend_on_where_the_search_for_an_infinite_maximum_stops():
    # The search stops at -61, -66 and -225 for the three answers that nobody reports.
    channel = from_epsilon(4, "1")
    fit = regression([0, 0], channel, [0, 1], times=[50, 50])
    assert np.isnan(fit.estimate).all()
    assert np.isneginf(fit.conf_low).all()
    at_0, slopes = fit.conf_high[::2], fit.conf_high[1::2]
    assert np.isposinf(slopes).all()
    # If a share x of the first 50 people gives another answer: 50 log(p/(p - (p-q) x)).
    loss = -50 * np.log1p(-(1 - channel.q / channel.p) * expit(at_0))
    assert 2 * loss == pytest.approx(np.full(3, SQUARE), abs=1e-3)
    # A predictor that is its own outcome has the odds ratio infinity.
    answers = np.arange(200) % 2
    fit = regression(answers, COIN, randomized=[Randomized("x", answers, COIN)])
    assert 0 < fit.conf_low[1] < fit.conf_high[1] == math.inf


@each_case("yes", [36, 56, 80, 112])
def test_with_firths_penalty_the_ends_are_the_outer_ones_of_two_likelihoods(yes):
    fit = regression([0, 1], COIN, times=[150 - yes, yes], penalty="firth")
    eta = np.linspace(-9, 9, 36_001)
    share = expit(eta)
    reported = COIN.q + (COIN.p - COIN.q) * share
    # log of the root of Fisher's information, ((p-q) share (1-share))^2 / (reported (1-reported))
    penalty = np.log(share * (1 - share)) - np.log(reported * (1 - reported)) / 2
    plain = losses(yes, 150, COIN, eta)
    penalized = plain - 2 * penalty
    penalized -= penalized.min()
    likelihoods = (plain, penalized)
    for end, side in ((fit.conf_low[0], 0), (fit.conf_high[0], -1)):
        # An end is open where the likelihood stays below its threshold up to the edge of the grid.
        ends = [eta[loss <= SQUARE][side] for loss in likelihoods]
        outer = min(ends) if side == 0 else max(ends)
        assert end == (
            pytest.approx(outer, abs=1e-3) if abs(outer) < 9 else math.copysign(math.inf, outer)
        )
    at_0 = np.array([np.interp(0, eta, loss) for loss in likelihoods])
    assert fit.p_value[0] == pytest.approx(erfc(np.sqrt(at_0 / 2)).max(), rel=1e-3)


COMPARED = {
    "Wald's and the penalized test reject, the likelihood ratio does not": (426, 174, 36, 24),
    "the likelihood ratio rejects, the other tests do not": (29, 31, 40, 20),
    "all reject": (90, 60, 57, 93),
}
"""Which tests of equal shares reject at 5%, and reports 0 and 1 of two groups."""


@pytest.mark.slow
@each_case("penalty", [None, "firth"])
@each_case("times", COMPARED.values())
def test_an_interval_contains_0_if_and_only_if_the_p_value_is_above_its_level(times, penalty):
    for reports in ([0, 1, 0, 1], [1, 0, 1, 0]):
        fit = regression(reports, COIN, [0, 0, 1, 1], times=times, penalty=penalty)
        assert np.isfinite(fit.estimate).all()
        contains = (fit.conf_low < 0) & (fit.conf_high > 0)
        assert contains[1] == (times != COMPARED["all reject"])
        assert ((fit.p_value > 0.05) == contains).all()


@pytest.mark.web
@each_case("penalty", [None, "firth"])
def test_a_rare_answer_is_covered_in_all_surveys_with_or_without_an_estimate(penalty):
    # Every number of yes reports in 190 at epsilon .7, of which 5% would say yes.
    channel, truth = from_epsilon(2, 0.7), logit(0.05)
    chances = binom.pmf(np.arange(191), 190, channel.q + (channel.p - channel.q) * 0.05)
    covered = 0.0
    for yes in np.flatnonzero(chances > 1e-4).tolist():
        fit = regression([0, 1], channel, times=[190 - yes, yes], penalty=penalty)
        covered += chances[yes] * (fit.conf_low[0] <= truth <= fit.conf_high[0])
    assert covered >= 0.945
