"""Regression through channels reproduces the output of R packages' examples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from survey.estimator import ByGroup, Randomized, proportions, regression
from survey.mechanism.randomized_response import from_probabilities, warner
from tests.cases import each_case
from tests.estimator.regression.surveys import DIE, minarets, nigeria, people, vignette

# rr, the R package of Blair, Imai and Zhou: contact with armed groups in Nigeria

RR_TERMS = ("asset index", "married", "age/10", "(age/10)^2", "education", "female")
RR_PRINTED = {
    "intercept": (-0.34017, 0.50856),
    "asset index": (0.07896, 0.04136),
    "married": (-0.26743, 0.25451),
    "age/10": (-0.35283, 0.26423),
    "(age/10)^2": (0.04099, 0.02603),
    "education": (-0.00691, 0.04558),
    "female": (-0.55439, 0.16244),
}
"""Output of `summary` for the model of table 3 of Blair, Imai, Zhou 2015, from the example of
`rrreg` in the package's reference: "Replicates Table 3"."""
RR_LOG_LIKELIHOOD = -1540.117850
"""Log likelihood from rr's algorithm (EM), run in R until it rises by less than 1e-13.
rr stops at 1e-8, so its last printed digit may differ by one."""


def test_contact_with_armed_groups_in_nigeria():
    # Counted in the data of rr: 497 of 1,312 men and 334 of 1,123 women reported yes.
    men, women = [815, 497], [789, 334]
    overall = proportions(np.add(men, women), DIE)
    assert overall.estimate[1] == pytest.approx(0.2619, abs=5e-5)
    assert overall.std_error[1] == pytest.approx(0.0144, abs=5e-5)
    female = np.repeat([0, 0, 1, 1], [*men, *women])
    fit = regression(np.repeat([0, 1, 0, 1], [*men, *women]), DIE, female, names=["female"])
    assert expit(fit.estimate[0]) == pytest.approx(0.3182, abs=5e-5)
    assert expit(fit.estimate.sum()) == pytest.approx(0.1961, abs=5e-5)
    for sex, share in ((men, 0.3182), (women, 0.1961)):
        assert proportions(sex, DIE).estimate[1] == pytest.approx(share, abs=5e-5)


@pytest.mark.reference
def test_the_nigerian_model_has_the_digits_that_rr_prints():
    reports, predictors, _ = nigeria()
    fit = regression(reports, DIE, predictors, names=RR_TERMS, errors="outer-product")
    assert fit.n == 2423
    assert fit.converged
    assert not fit.boundary
    printed = np.array([RR_PRINTED[term] for term in fit.term])
    np.testing.assert_allclose(fit.estimate, printed[:, 0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(fit.std_error, printed[:, 1], rtol=0, atol=1e-5)
    assert fit.log_likelihood == pytest.approx(RR_LOG_LIKELIHOOD, abs=1e-6)


@pytest.mark.slow
@pytest.mark.reference
def test_the_randomized_item_predicts_civic_engagement_in_nigeria():
    reports, predictors, civic = nigeria()
    contact = [Randomized("contact", reports, DIE)]
    fit = regression(civic, None, predictors, names=RR_TERMS, randomized=contact)
    assert fit.converged
    assert not fit.boundary
    assert fit.term[-1] == "contact=1"
    np.testing.assert_allclose(fit.fit.predictor_shares.sum(), 1)
    assert 0.2 < fit.fit.predictor_shares[1] < 0.32


def rr_by_em(reports: np.ndarray, X: np.ndarray, p: float, q: float) -> np.ndarray:
    """Return coefficients by expectation maximization with weighted logits, as in rr."""
    D, beta = p - q, np.zeros(X.shape[1])
    for _ in range(3000):
        share = expit(X @ beta)
        chances = np.where(reports == 1, D * share + q, 1 - D * share - q)
        weight = np.where(reports == 1, D * share, D * (1 - share)) / chances
        model = sm.GLM(reports, X, family=sm.families.Binomial(), var_weights=weight)
        following = model.fit(start_params=beta).params
        if np.abs(following - beta).max() < 1e-9:
            break
        beta = following
    return np.asarray(following)


def test_em_with_weighted_logits_gives_the_same_coefficients():
    x, u, truth = people(1500, 7)
    reports = DIE.perturb(truth, np.random.default_rng(7))
    X = np.column_stack([np.ones(1500), x, u])
    fit = regression(reports, DIE, X[:, 1:])
    np.testing.assert_allclose(fit.estimate, rr_by_em(reports, X, 5 / 6, 1 / 6), atol=1e-5)


# RRreg, the R package of Heck and Moshagen: the examples of its vignette, version 0.7.5

LAST_DIGIT = 6e-6
"""Half of the last printed digit, plus an allowance for the optimizer's tolerance."""


def test_the_data_of_the_vignette_of_rrreg_are_reproduced():
    survey = vignette()
    assert np.corrcoef(survey.truth, survey.cov)[0, 1] == pytest.approx(0.4491291, abs=5e-8)
    X = np.column_stack([np.ones(1000), survey.truth, survey.pred])
    squares = np.linalg.lstsq(X, survey.cov, rcond=None)[0]
    np.testing.assert_allclose(squares, [-0.02671, 1.07878, -0.03004], rtol=0, atol=LAST_DIGIT)


def test_warners_cards_have_the_digits_that_rrlog_prints():
    survey = vignette()
    fit = regression(survey.reports, warner("1/6"), survey.cov)
    np.testing.assert_allclose(fit.estimate, [-1.35386, 1.01691], rtol=0, atol=LAST_DIGIT)
    np.testing.assert_allclose(fit.std_error, [0.16999, 0.14569], rtol=0, atol=LAST_DIGIT)
    np.testing.assert_allclose(fit.z**2, [63.43126, 48.72026], rtol=1e-4)
    assert fit.log_likelihood == pytest.approx(-617.2771, abs=5e-5)
    # The likelihood ratio of the slope is printed as deltaG2.
    without = regression(survey.reports, warner("1/6"))
    ratio = 2 * (fit.log_likelihood - without.log_likelihood)
    assert ratio == pytest.approx(80.125, abs=6e-4)


def test_cards_beside_direct_answers_have_the_digits_that_rrlog_prints():
    survey = vignette()
    channels = ByGroup([None, warner("1/6")], survey.design == 1)
    X = np.column_stack([survey.design, survey.age, survey.design * survey.age])
    fit = regression(survey.mixed, channels, X)
    estimate, errors = [-0.40811, 0.26118, 0.19927, 0.33441], [0.08519, 0.08519, 0.09474, 0.09474]
    np.testing.assert_allclose(fit.estimate, estimate, rtol=0, atol=LAST_DIGIT)
    np.testing.assert_allclose(fit.std_error, errors, rtol=0, atol=LAST_DIGIT)
    assert fit.log_likelihood == pytest.approx(-659.0337, abs=5e-5)
    shares = expit(fit.estimate[0] + np.array([1, -1]) * fit.estimate[1])
    np.testing.assert_allclose(shares, [0.4633332, 0.3386545], rtol=0, atol=2e-6)
    fewer = regression(survey.mixed, channels, survey.design)
    assert fewer.log_likelihood == pytest.approx(-666.61, abs=5e-3)
    assert 2 * (fit.log_likelihood - fewer.log_likelihood) == pytest.approx(15.147, abs=6e-4)


def test_a_share_from_warners_cards_has_the_digits_that_rruni_prints():
    # The vignette of version 0.6: n = 1000, p = .2, printed 0.315000 (0.025695): 611 said yes.
    result = proportions([389, 611], warner("1/5"))
    assert result.estimate[1] == pytest.approx(0.315, abs=5e-7)
    logit_found = regression(np.repeat([0, 1], [389, 611]), warner("1/5"))
    share = expit(logit_found.estimate[0])
    assert share == pytest.approx(0.315, abs=5e-7)
    assert logit_found.std_error[0] * share * (1 - share) == pytest.approx(0.025695, abs=5e-7)


STOCHASTIC_LIE_DETECTOR = {
    "0.8": (
        (0.21860306, 0.41997224, 0.50912505, 0.03908228),
        (0.09295155, 0.05649871, 0.09295155, 0.05649871),
        -1079.69228,
    ),
    "0.652997": ((0.76516092, 0.47765584, 1.05568400, 0.09676585), None, -1051.46645),
}
"""Coefficients, errors and log likelihood of the minaret survey by the share of carriers who admit
it, from R's `optim` on the likelihood of RRreg's `RRlog` for the stochastic lie detector. The share
.8 was stated; .652997 maximizes the likelihood. Its errors differ because it is known here."""


@pytest.mark.reference
@each_case("honest", STOCHASTIC_LIE_DETECTOR)
def test_three_channels_in_the_minaret_survey_agree_with_the_likelihood_of_rrlog(honest):
    reports, group, predictors = minarets()
    t = Fraction(honest)
    # Carriers admit it with probability t; other respondents say yes with probability 1 - p.
    cards = [from_probabilities([[p, 1 - p], [1 - t, t]]) for p in (Fraction(1, 6), Fraction(5, 6))]
    fit = regression(reports, ByGroup([None, *cards], group), predictors)
    estimate, errors, log_likelihood = STOCHASTIC_LIE_DETECTOR[honest]
    np.testing.assert_allclose(fit.estimate, estimate, atol=2e-5)
    assert fit.log_likelihood == pytest.approx(log_likelihood, abs=1e-5)
    if errors is not None:
        np.testing.assert_allclose(fit.std_error, errors, atol=2e-6)
