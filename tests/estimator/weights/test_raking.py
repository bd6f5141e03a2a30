"""Post-stratification and raking agree with R's survey package and simulated surveys."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from survey.errors import CountsError, DesignError
from survey.estimator import poststratified, raked, raking_weights, weighted_shares
from survey.estimator.core.intervals import confidence_interval, continuity
from survey.mechanism import BitVector, from_epsilon, grr
from survey.mechanism.numeric import geometric
from tests.cases import each_case

NO = np.array([[31, 22, 9], [12, 18, 40]])
YES = np.array([[14, 30, 21], [25, 11, 17]])
CELLS = np.stack([NO, YES], axis=-1)
"""Reports by two known variables of 2 and 3 categories."""

HALVES = grr(2, "3/4")
"""A channel with estimate (f - 1/4)/(1/2), which maps R's results for 0/1 reports to ours."""


def r_numbers(result):
    return result.estimate[1] * 0.5 + 0.25, result.std_error[1] * 0.5


def test_poststratification_matches_r_survey():
    # R survey 4.1.1: svymean(~y, postStratify(svydesign(ids = ~1, weights = ~1), ~b, ...)).
    result = poststratified(CELLS.sum(axis=0), [500, 300, 200], HALVES)
    assert r_numbers(result) == pytest.approx((0.47701305174, 0.0339977249254), abs=1e-11)


def test_raking_matches_r_survey():
    # R survey 4.1.1: svymean(~y, rake(design, list(~a, ~b), ..., epsilon = 1e-12)).
    result = raked(CELLS, [[550, 450], [500, 300, 200]], HALVES)
    assert r_numbers(result) == pytest.approx((0.476233448314, 0.0344552935079), abs=1e-10)


def test_raking_matches_r_survey_for_its_schools_with_empty_cells():
    # R survey 4.1.1, data(api): apisrs raked to types (4421, 755, 1018) and school-wide targets
    # (1072, 5122), the margins of ?rake; reports are both == "Yes".
    cells = [[[15, 0], [20, 107]], [[13, 0], [2, 10]], [[9, 0], [10, 14]]]
    result = raked(cells, [[4421, 755, 1018], [1072, 5122]], HALVES)
    assert r_numbers(result) == pytest.approx((0.664479651616, 0.0252542941387), abs=1e-9)


def test_raking_to_one_margin_is_poststratification():
    by_strata = poststratified(CELLS.reshape(6, 2), [1, 2, 3, 4, 5, 6], HALVES)
    by_raking = raked(CELLS, {(0, 1): [[1, 2, 3], [4, 5, 6]]}, HALVES)
    for field in ("estimate", "std_error", "conf_low", "conf_high"):
        np.testing.assert_allclose(getattr(by_strata, field), getattr(by_raking, field), atol=1e-12)


def test_the_estimate_of_strata_is_the_closed_form():
    population = np.array([500, 300, 200])
    counts = CELLS.sum(axis=0)
    result = poststratified(counts, population, grr(2, "0.9"))
    shares = (counts / counts.sum(axis=1, keepdims=True) - 0.1) / 0.8
    np.testing.assert_allclose(result.estimate, population @ shares / 1000, atol=1e-12)
    f = counts[:, 1] / counts.sum(axis=1)
    squared = (population / 1000) ** 2 @ (f * (1 - f) / counts.sum(axis=1)) / 0.8**2
    n = counts.sum()
    assert result.std_error[1] == pytest.approx(math.sqrt(squared * n / (n - 1)), rel=1e-12)


def test_raking_weights_give_the_margins():
    weights = raking_weights(CELLS.sum(axis=-1), [[550, 450], [500, 300, 200]])
    people = weights * CELLS.sum(axis=-1)
    np.testing.assert_allclose(people.sum(axis=1), [550, 450], rtol=1e-8)
    np.testing.assert_allclose(people.sum(axis=0), [500, 300, 200], rtol=1e-8)
    estimate = weighted_shares(CELLS.reshape(6, 2), weights.ravel(), HALVES).estimate
    result = raked(CELLS, [[550, 450], [500, 300, 200]], HALVES)
    np.testing.assert_allclose(result.estimate, estimate, atol=1e-12)


def test_known_strata_related_to_the_answer_reduce_the_error():
    counts = [[90, 10], [10, 90]]
    result = poststratified(counts, [1, 1], grr(2, "0.95"))
    assert result.std_error[0] < 0.7 * weighted_shares(counts, [1, 1], grr(2, "0.95")).std_error[0]
    assert result.n_effective[0] > 300


def test_a_small_stratum_of_identical_reports_is_not_certain():
    result = poststratified([[3, 0], [0, 3]], [1, 1], from_epsilon(2, 6))
    assert result.std_error[0] > 0
    assert result.conf_high[0] - result.conf_low[0] > 0.4


def test_one_stratum_of_identical_reports_agrees_with_a_sample():
    # Shrinking shares towards 1/2 must not reduce the effective number of reports below 500.
    alone = poststratified([[0, 500]], [1], from_epsilon(2, 8))
    moved = np.minimum(np.array([0, 500]) + continuity(0.95), 500)
    hull = confidence_interval(moved, 500, from_epsilon(2, 8), 0.95, "wilson-hull")
    np.testing.assert_allclose(alone.conf_high, hull[1], rtol=1e-9)
    strata = poststratified([[0, 400], [0, 50], [0, 50]], [4, 3, 3], from_epsilon(2, 8))
    assert strata.conf_high[0] < 0.1


@pytest.mark.parametrize(
    "channel",
    [BitVector(m=3, s=1, alone=1, sampled=2, T=3, L=1), geometric(3, 2, no_answers=0)],
    ids=["bits", "table"],
)
def test_other_channels_are_poststratified_without_bias(channel):
    rng = np.random.default_rng(2)
    shares, population, size = np.array([0.7, 0.2]), np.array([0.3, 0.7]), 6000
    rows = []
    for share in shares:
        answers = (rng.random(size) >= share).astype(int)
        truths = np.eye(3, dtype=int)[answers] if isinstance(channel, BitVector) else answers
        reports = channel.perturb(truths, rng)
        rows.append(np.bincount(reports, minlength=3) if reports.ndim == 1 else reports.sum(axis=0))
    result = poststratified(rows, population, channel)
    assert abs(result.estimate[0] - population @ shares) < 4 * result.std_error[0]
    assert result.conf_low[0] < result.estimate[0] < result.conf_high[0]


def strata_hits(channel, shares, n, rounds, rng):
    population, mix, s = np.array([0.2, 0.3, 0.5]), [0.5, 0.3, 0.2], np.array(shares)
    reported = channel.q + (channel.p - channel.q) * s
    hits = 0
    for _ in range(rounds):
        people = np.maximum(rng.multinomial(n, mix), 2)
        yes = rng.binomial(people, reported)
        result = poststratified(np.column_stack([yes, people - yes]), population, channel)
        hits += result.conf_low[0] <= population @ s <= result.conf_high[0]
    return hits


@pytest.mark.web
@pytest.mark.parametrize("shares", [[0.3, 0.3, 0.3], [0.02, 0.05, 0.4], [1.0, 0.0, 1.0]], ids=str)
def test_the_interval_of_strata_covers(shares):
    hits = strata_hits(from_epsilon(2, 2), shares, 60, 800, np.random.default_rng(4))
    assert hits >= binom.ppf(0.001, 800, 0.942)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
def test_the_interval_of_strata_covers_on_a_grid(epsilon):
    rng = np.random.default_rng(5)
    for n in (60, 500):
        for shares in ([0.3] * 3, [0.05] * 3, [0.0] * 3, [0.02, 0.05, 0.4], [1.0, 0.0, 1.0]):
            hits = strata_hits(from_epsilon(2, epsilon), shares, n, 3000, rng)
            assert hits >= binom.ppf(0.001, 3000, 0.942)


@pytest.mark.web
def test_raking_is_unbiased_and_its_interval_covers():
    rng, channel, rounds = np.random.default_rng(6), from_epsilon(2, 1), 500
    cells = np.array([[0.1, 0.2], [0.3, 0.4]])
    share = np.array([[0.2, 0.5], [0.3, 0.6]])  # additive: raking removes all of the bias
    sample_shares = np.array([[0.3, 0.3], [0.2, 0.2]])
    truth, hits, results = float((cells * share).sum()), 0, []
    for _ in range(rounds):
        people = rng.multinomial(800, sample_shares.ravel()).reshape(2, 2)
        yes = rng.binomial(people, channel.q + (channel.p - channel.q) * share)
        counts = np.stack([yes, people - yes], axis=-1)
        result = raked(counts, [cells.sum(axis=1), cells.sum(axis=0)], channel)
        hits += result.conf_low[0] <= truth <= result.conf_high[0]
        results.append((result.estimate[0], result.std_error[0]))
    estimates, errors = np.array(results).T
    # The cells are (.1, .2, .3, .4); raking (.3, .3, .2, .2) ends near them, not at them.
    assert abs(estimates.mean() - truth) < 4 * estimates.std() / math.sqrt(rounds) + 0.005
    assert errors.mean() == pytest.approx(estimates.std(), rel=0.1)
    assert hits >= binom.ppf(0.001, rounds, 0.94)


@each_case(
    ("population", "words"),
    [
        ([500, 300, -1], "negative"),
        ([500, 300, math.nan], "finite"),
        ([500, 300], "shape"),
        ([0, 0, 0], "0 throughout"),
        ([500, 500, 0], "has reports"),
        (["a", "b", "c"], "numbers"),
    ],
)
def test_wrong_populations_are_rejected_by_name(population, words):
    with pytest.raises(DesignError, match=words):
        poststratified(CELLS.sum(axis=0), population, HALVES)


def test_an_empty_stratum_with_people_is_rejected_and_named():
    with pytest.raises(DesignError, match="category 1, where there are no reports: merge"):
        poststratified([[5, 5], [0, 0], [4, 4]], [1, 1, 1], HALVES)
    without = poststratified([[5, 5], [0, 0], [4, 4]], [1, 0, 1], HALVES)
    assert without.n == 18


def test_margins_that_contradict_each_other_are_rejected_with_their_sums():
    with pytest.raises(DesignError, match="axis 0 adds up to 1000, the margin of axis 1 to 900"):
        raked(CELLS, [[550, 450], [400, 300, 200]], HALVES)


@pytest.mark.web
def test_raking_that_cannot_converge_is_an_error():
    counts = [[[5, 5], [0, 0]], [[0, 0], [5, 5]]]
    with pytest.raises(DesignError, match="did not converge"):
        raked(counts, [[60, 40], [50, 50]], HALVES)


def test_other_wrong_input_is_rejected():
    with pytest.raises(CountsError, match="n = 0"):
        poststratified([[0, 0]], [1], HALVES)
    with pytest.raises(CountsError, match="at least 2"):
        poststratified([[1, 0]], [1], HALVES)
    with pytest.raises(CountsError, match="axis per margin"):
        raked([1, 2], [[1]], HALVES)
    with pytest.raises(DesignError, match="at least one"):
        raked(CELLS, [], HALVES)
