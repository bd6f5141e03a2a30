"""Weighted shares agree with R's survey package, closed forms and simulated surveys."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from survey.errors import CountsError, DesignError
from survey.estimator import proportions, weighted_reports, weighted_shares
from survey.estimator.core.intervals import confidence_interval, continuity
from survey.estimator.shares.linear_estimator import linear_estimator
from survey.mechanism import BitVector, WeightTable, best, from_epsilon, from_ratio, grr
from survey.mechanism.numeric import geometric
from tests.benchmarks.weights import Cell
from tests.cases import each_case

CLASSES = np.array([[43, 39], [40, 41], [49, 38]])
"""Reports 0 and 1 of three strata."""


def test_weighted_shares_match_r_survey():
    # R 4.2, survey 4.1.1: svymean(~y, svydesign(ids = ~1, weights = ~w)) of 0/1 reports y of
    # these counts with weights 1, 2.5, .7 gives 0.486682107701, SE 0.0364407950674; the linear
    # estimate with p = 3/4 is (y - 1/4)/(1/2).
    result = weighted_shares(CLASSES, [1, 2.5, 0.7], grr(2, "3/4"))
    assert result.estimate[1] * 0.5 + 0.25 == pytest.approx(0.486682107701, abs=1e-11)
    assert result.std_error[1] * 0.5 == pytest.approx(0.0364407950674, abs=1e-12)


def test_weighted_shares_match_r_survey_for_its_stratified_schools():
    # R survey 4.1.1, data(api): svymean(~sch.wide, svydesign(ids = ~1, weights = ~pw, apistrat))
    # prints No 0.17205, SE 0.02607 (design without its strata); schools by type E, H, M.
    counts, weights = [[9, 91], [24, 26], [15, 35]], [44.2099990845, 15.1000003815, 20.3600006104]
    result = weighted_shares(counts, weights, from_ratio(2, 9, 1))
    assert result.estimate[0] * 0.8 + 0.1 == pytest.approx(0.172051988584, abs=1e-10)
    assert result.std_error[0] * 0.8 == pytest.approx(0.0260686796654, abs=1e-10)


EXTREMES = (np.minimum, np.maximum)


def test_equal_weights_agree_with_proportions():
    for channel in (grr(3, "0.6"), from_ratio(2, 1, 3)):
        counts = np.array([310, 420, 270])[: channel.k]
        plain = proportions(counts, channel)
        result = weighted_shares([counts], [7], channel)
        n = plain.n
        np.testing.assert_allclose(result.estimate, plain.estimate, atol=1e-12)
        np.testing.assert_allclose(
            result.std_error, plain.std_error * math.sqrt(n / (n - 1)), rtol=1e-12
        )
        np.testing.assert_allclose(result.n_effective, n, rtol=2 / n)
        # Counts are whole numbers: each end is that of a count moved by C.
        hulls = [
            confidence_interval(counts + side * continuity(0.95), n, channel, 0.95, "wilson-hull")
            for side in (-1, 1)
        ]
        low, high = (extreme.reduce(hulls)[end] for end, extreme in enumerate(EXTREMES))
        np.testing.assert_allclose([result.conf_low, result.conf_high], [low, high], atol=2e-4)


def test_classes_and_single_reports_give_equal_results():
    rng = np.random.default_rng(1)
    channel = grr(3, "0.6")
    codes = rng.integers(0, 3, 200)
    weights = rng.choice([0.5, 1.0, 3.0], 200)
    single = weighted_reports(codes, weights, channel)
    rows = weighted_shares(np.eye(3, dtype=int)[codes], weights, channel)
    classes = [np.bincount(codes[weights == w], minlength=3) for w in (0.5, 1.0, 3.0)]
    grouped = weighted_shares(classes, [0.5, 1.0, 3.0], channel)
    for field in ("estimate", "std_error", "conf_low", "conf_high", "n_effective"):
        np.testing.assert_allclose(getattr(rows, field), getattr(single, field), atol=1e-12)
        np.testing.assert_allclose(getattr(grouped, field), getattr(single, field), atol=1e-12)


def test_the_unit_of_weights_does_not_matter():
    plain = weighted_shares(CLASSES, [1, 2.5, 0.7], grr(2, "3/4"))
    for unit in (1e-200, 1e200):
        scaled = weighted_shares(CLASSES, np.array([1, 2.5, 0.7]) * unit, grr(2, "3/4"))
        np.testing.assert_allclose(scaled.conf_high, plain.conf_high, rtol=1e-12)


@pytest.mark.parametrize(
    "channel",
    [
        grr(4, "0.7"),
        best(9, 1),
        BitVector(m=4, s=2, alone=1, sampled=4, T=3, L=1),
        BitVector(m=4, s=2, alone=1, sampled=2, T=3, L=1),
        geometric(4, 2, no_answers=1),
    ],
    ids=lambda channel: f"{channel.kind}-{channel.counted}",
)
def test_every_channel_is_estimated_without_bias(channel):
    rng = np.random.default_rng(3)
    truths = 4000
    answers = rng.integers(0, 3, truths)
    if isinstance(channel, BitVector):
        ticks = np.zeros((truths, 4), dtype=int)
        ticks[np.arange(truths), answers] = 1
        reports = channel.perturb(ticks, rng)
    else:
        reports = channel.perturb(answers, rng)
    weights = np.where(answers == 0, 1.0, 2.0)
    rows = np.eye(channel.counted, dtype=int)[reports] if reports.ndim == 1 else reports
    stated = (
        np.ones(truths, dtype=int)
        if isinstance(channel, BitVector) and channel.sampled == channel.m
        else None
    )
    result = weighted_shares(rows, weights, channel, n=stated)
    truth = weights[answers == 0].sum() / weights.sum()
    assert abs(result.estimate[0] - truth) < 4 * result.std_error[0]
    assert np.all(result.conf_high > result.conf_low)
    if isinstance(channel, WeightTable):
        assert result.method == "weights, score"


WEIGHTED = ([0.3] * 3, [0.05] * 3, [0.0] * 3, [0.02, 0.05, 0.4], [0.0, 0.0, 0.3])


def coverage(channel, shares, weights, mix, n, rounds, rng):
    """Return the coverage of the weighted share of option 0, and that of Kish's interval."""
    w, s, mix = (np.array(values, dtype=float) for values in (weights, shares, mix))
    truth = (w * mix * s).sum() / (w * mix).sum()
    remainder = np.outer(1 - s, np.full(channel.k - 1, 1 / (channel.k - 1)))
    reported = np.column_stack([s, remainder]) @ channel.matrix
    hits = alone = 0
    for _ in range(rounds):
        people = rng.multinomial(n, mix)
        counts = np.array([rng.multinomial(m, p) for m, p in zip(people, reported, strict=True)])
        result = weighted_shares(counts, w, channel)
        hits += result.conf_low[0] <= truth <= result.conf_high[0]
        kish = (w * people).sum() ** 2 / (w**2 * people).sum()
        low, high = linear_estimator(channel).interval(
            result.estimate, np.full(channel.k, kish), 0.95, np.zeros(channel.k)
        )
        alone += low[0] <= truth <= high[0]
    return hits, alone


@pytest.mark.web
def test_weights_related_to_the_answer_are_covered_where_kishs_number_fails():
    rounds = 1500
    hits, alone = coverage(
        from_epsilon(2, 4),
        [0.02, 0.05, 0.4],
        [1, 2, 5],
        [0.5, 0.3, 0.2],
        500,
        rounds,
        np.random.default_rng(7),
    )
    assert hits >= binom.ppf(0.001, rounds, 0.94)
    assert alone <= binom.ppf(0.999, rounds, 0.93)


def test_a_few_heavy_reports_that_alone_have_the_answer_are_covered():
    # Without shrinkage towards 1/2 in each class, the coverage is .933.
    shares, mix = np.array([0.0, 0.0, 0.3]), np.array([0.6, 0.3, 0.1])
    cell = Cell("heavy", 4, 100, np.array([1.0, 2.0, 5.0]), mix, shares)
    covered, _ = cell.simulate(10_000, np.random.default_rng(8))
    assert covered * 10_000 >= binom.ppf(0.001, 10_000, 0.955)


def test_four_heavy_reports_of_two_weights_that_alone_have_the_answer_are_covered():
    # With observed shares in the damping of the whole counts, the coverage is .935: one report of
    # each weight seemed to smooth the sum.
    weights = np.repeat([1.0, 13.7, 37.2], [60, 2, 2])
    cell = Cell("two weights", 6, 64, weights, np.empty(0), np.where(weights > 1, 0.1229, 0.0))
    covered, _ = cell.simulate(20_000, np.random.default_rng(8))
    assert covered >= 0.945


def test_weights_unrelated_to_the_answer_cost_little_more_than_kishs_number():
    # Drawn towards 1/2 as strongly as Wilson's centre, small classes cost 1.67.
    mix, shares = np.array([0.5, 0.3, 0.2]), np.full(3, 0.01)
    cell = Cell("equal", 8, 100, np.array([1.0, 2.0, 5.0]), mix, shares)
    _, width = cell.simulate(10_000, np.random.default_rng(8))
    assert width < 1.3


def test_nearly_equal_weights_give_kishs_effective_number():
    result = weighted_shares([[300, 700], [15, 35]], [1, 1.5], grr(2, "3/4"))
    np.testing.assert_allclose(result.n_effective, 1075**2 / (1000 + 50 * 2.25), rtol=2e-3)


@pytest.mark.long
@each_case("k", [2, 4])
@each_case("epsilon", ["0.5", "1", "2", "4"])
@each_case("shares", WEIGHTED)
def test_the_weighted_interval_covers_on_a_grid(k, epsilon, shares):
    rounds, rng = 4000, np.random.default_rng(11)
    for n in (100, 500):
        hits, _ = coverage(
            from_epsilon(k, epsilon), shares, [1, 2, 5], [0.5, 0.3, 0.2], n, rounds, rng
        )
        assert hits >= binom.ppf(0.001, rounds, 0.936)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf])
def test_invalid_weights_are_rejected_by_name(wrong):
    with pytest.raises(DesignError, match=r"weights\[1\]"):
        weighted_shares(CLASSES, [1, wrong, 1], grr(2, "3/4"))
    with pytest.raises(DesignError, match=r"weights\[0\]"):
        weighted_reports([0, 1, 1], [wrong, 1, 1], grr(2, "3/4"))


@each_case(
    ("counts", "weights", "error", "words"),
    [
        (CLASSES, [1, 2], DesignError, "one for each"),
        (CLASSES, ["a", "b", "c"], DesignError, "numbers"),
        ([[1, 0]], [1], CountsError, "at least 2"),
        ([[0, 0]], [1], CountsError, "n = 0"),
        ([[-1, 4]], [1], CountsError, "negative"),
        ([[1.5, 4]], [1], CountsError, "whole"),
        ([[1, 2, 3]], [1], CountsError, "2 columns"),
        ([1, 2], [1], CountsError, "a row for each"),
        (np.zeros((0, 2)), [], CountsError, "2 columns"),
    ],
)
def test_wrong_counts_and_weights_are_rejected_by_name(counts, weights, error, words):
    with pytest.raises(error, match=words):
        weighted_shares(counts, weights, grr(2, "3/4"))


@pytest.mark.parametrize(
    ("reports", "words"),
    [([0, 2], "from 0 to 1"), ([0.5, 1], "whole"), ([[0], [1]], "shape"), ([], "whole|least 2")],
)
def test_wrong_single_reports_are_rejected_by_name(reports, words):
    with pytest.raises(CountsError, match=words):
        weighted_reports(reports, np.ones(len(reports)), grr(2, "3/4"))


def test_impossible_sets_and_levels_are_rejected():
    with pytest.raises(CountsError, match="memberships"):
        weighted_reports([0, 1], [1, 1], best(9, 1))
    for level in (0, 1, 1.5):
        with pytest.raises(ValueError, match="level"):
            weighted_shares(CLASSES, [1, 1, 1], grr(2, "3/4"), level=level)
