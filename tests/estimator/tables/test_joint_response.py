"""Tables of questions that were randomized jointly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError
from survey.estimator import (
    JointlyRandomized,
    Randomized,
    conditional,
    conditional_difference,
    crosstab,
    independence,
    proportions,
    regression,
    standardized_shares,
)
from survey.estimator.core.fieller import RATIOS
from survey.estimator.tables.conditional import _JointMeans, _PairSums
from survey.mechanism import grr
from survey.mechanism.joint_response import joint_response, marginal_response
from tests.cases import each_case

P = np.array([[0.24, 0.06], [0.16, 0.54]])
"""True joint shares of two dependent answers."""

PAIR = joint_response([2, 2], Fraction(9))


def expected_shares(truth, channel):
    """Return the probability of every combination of reports: row by row of the channel."""
    return (channel.matrix.T @ truth.ravel()).reshape(truth.shape)


def reports(truth, channel, n, seed=1):
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, expected_shares(truth, channel).ravel()).reshape(truth.shape)


def test_cells_are_the_options_of_one_question():
    counts = reports(P, PAIR, 900)
    cells = proportions(counts.ravel(), PAIR)
    table = crosstab(counts, [PAIR])
    for name in ("estimate", "std_error", "conf_low", "conf_high"):
        np.testing.assert_array_equal(getattr(table, name).ravel(), getattr(cells, name))
    likely = crosstab(counts, [PAIR], method="em")
    np.testing.assert_allclose(likely.estimate.ravel(), cells.mle, atol=1e-3)
    assert likely.converged
    assert table.index_names == ("question_0", "question_1")


def test_the_margins_of_a_joint_table_are_those_of_the_parts():
    shape = (2, 3, 2)
    truth = np.random.default_rng(3).dirichlet(np.ones(12)).reshape(shape)
    channel = joint_response(shape, Fraction(27))
    exact = expected_shares(truth, channel)
    for place, k in enumerate(shape):
        others = tuple(axis for axis in range(3) if axis != place)
        part = marginal_response(channel, k)
        np.testing.assert_allclose(
            exact.sum(axis=others), part.matrix.T @ truth.sum(axis=others), atol=1e-12
        )
    table = crosstab(reports(truth, channel, 5_000), [channel])
    for places in ((0,), (2, 0), (1, 2)):
        others = tuple(axis for axis in range(3) if axis not in places)
        summed = table.estimate.sum(axis=others)
        expected = summed.T if places == (2, 0) else summed
        np.testing.assert_allclose(table.margin(*places).estimate, expected, atol=1e-12)


def test_a_joint_response_can_be_crossed_with_a_question_randomized_separately():
    truth = np.random.default_rng(5).dirichlet(np.ones(12)).reshape(2, 2, 3)
    apart = grr(3, "3/5")
    exact = np.einsum("ijk,ijgh,kl->ghl", truth, PAIR.matrix.reshape(2, 2, 2, 2), apart.matrix)
    counts = np.rint(exact * 10**9).astype(np.int64)
    table = crosstab(counts, [PAIR, apart])
    np.testing.assert_allclose(table.estimate, truth, atol=1e-6)
    pair = table.margin(0, 2)
    np.testing.assert_allclose(pair.estimate, truth.sum(axis=1), atol=1e-6)
    with pytest.raises(ChannelError, match="must be next to each other"):
        table.margin(0, 2, 1)


def test_a_channel_of_several_questions_must_fit_the_table():
    with pytest.raises(CountsError, match=r"must have shape \(4, 2\)"):
        crosstab(np.ones((2, 2), dtype=int), [grr(4, "1/2"), grr(2, "3/4")])
    with pytest.raises(CountsError, match="several whose sizes multiply"):
        crosstab(np.ones((2, 3), dtype=int), [grr(4, "1/2")])
    with pytest.raises(ChannelError, match="d = 1"):
        crosstab(np.ones((2, 2), dtype=int) * 2, [type(PAIR)(4, 2, 3, 1)])


def test_the_moments_of_conditional_shares_are_those_of_the_pseudo_values():
    channel = joint_response([3, 2], Fraction(9))
    q, D = channel.q, channel.p - channel.q
    f = np.random.default_rng(7).dirichlet(np.ones(6)).reshape(3, 2)
    # c[a, b, g, h] of the report (g, h), written out.
    c = (np.eye(6).reshape(3, 2, 3, 2) - q) / D
    h = c.sum(axis=0)

    def mean(values):
        return np.einsum("...gh,gh->...", values, f)

    means = _JointMeans(channel, f)
    for name, values in {
        "joint": c, "single": h, "joint_square": c**2, "half_square": c * h, "square": h**2
    }.items():  # fmt: skip
        np.testing.assert_allclose(getattr(means, name), mean(values), err_msg=name)
    shares = np.random.default_rng(8).random((3, 2))
    rest = c - shares[:, :, None, None] * h
    expected = mean(rest[:, :, None] * rest[:, None]) / np.outer(means.single, means.single)
    sums = _PairSums._of_joint(f, [0, 1], channel)
    np.testing.assert_allclose(sums.covariance(shares), expected)
    chances = channel.matrix.reshape(3, 2, 3, 2)
    s, x = float(np.clip(means.single[0], 0, 1)), (1 + RATIOS) / 2
    at_ab, at_ib, at_ij = (
        np.array([np.sum(chances[truth] * (2 * c[1, 0] - t * h[0]) ** 2) for t in 1 + RATIOS])
        for truth in ((1, 0), (2, 0), (0, 1))
    )
    floor = s * (x * at_ab + (1 - x) * at_ib) + (1 - s) * at_ij
    np.testing.assert_allclose(means._floor(1, 0), floor)


@pytest.mark.web
def test_conditional_and_standardized_shares_cover_the_truth():
    given = P / P.sum(axis=0)
    runs, covered = 150, np.zeros(3)
    for seed in range(runs):
        table = crosstab(reports(P, PAIR, 1_500, seed), [PAIR])
        shares = conditional(table, 1)
        covered[0] += np.mean((shares.conf_low <= given) & (given <= shares.conf_high))
        difference = conditional_difference(table, [0, 1])
        truth = given[0, 0] - given[0, 1]
        covered[1] += difference.conf_low[0] <= truth <= difference.conf_high[0]
        standard = standardized_shares(table, [0.5, 0.5])
        truth = given[0].mean()
        covered[2] += standard.conf_low[0] <= truth <= standard.conf_high[0]
    # .95 less four standard deviations of 150 runs.
    assert (covered / runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)).all(), covered / runs


@each_case(("rows", "columns"), [([0.1, 0.9], [0.2, 0.8]), ([0.05, 0.1, 0.85], [0.1, 0.9])])
def test_the_test_of_independence_keeps_its_level_and_finds_dependence(rows, columns):
    channel = joint_response([len(rows), len(columns)], Fraction(9))
    truth = np.outer(rows, columns)
    runs = 100
    tests = [independence(reports(truth, channel, 1_000, seed), channel) for seed in range(runs)]
    rejected = np.mean([test.p_value < 0.05 for test in tests])
    assert abs(rejected - 0.05) < 4 * np.sqrt(0.05 * 0.95 / runs)
    assert {test.df for test in tests} == {(len(rows) - 1) * (len(columns) - 1)}
    assert independence(reports(P, PAIR, 1_000), PAIR).p_value < 1e-4
    # Pearson's own test takes the common draw for dependence of the truths.
    assert np.mean([independence(test.counts).p_value < 0.05 for test in tests]) > 0.5


def test_the_expected_reports_are_the_most_likely_independent_ones():
    channel = joint_response([3, 2, 2], Fraction(12))
    counts = reports(np.random.default_rng(2).dirichlet(np.ones(12)).reshape(3, 2, 2), channel, 800)
    test = independence(counts, channel)
    product = (test.expected / 800 - channel.q) / (channel.p - channel.q)
    np.testing.assert_allclose(test.expected.sum(), 800)
    margins = [product.sum(axis=others) for others in ((1, 2), (0, 2), (0, 1))]
    np.testing.assert_allclose(product, np.einsum("i,j,k", *margins), atol=1e-9)

    def likelihood(shares):
        chances = channel.q + (channel.p - channel.q) * np.einsum("i,j,k", *shares)
        return np.sum(counts * np.log(chances))

    best = likelihood(margins)
    for place, step in ((0, [1, -1, 0]), (0, [0, 1, -1]), (1, [1, -1]), (2, [1, -1])):
        for side in (-1e-3, 1e-3):
            moved = list(margins)
            moved[place] = margins[place] + side * np.array(step)
            assert likelihood(moved) < best
    with pytest.raises(CountsError, match=r"must have shape \(4,\)"):
        independence(np.ones((2, 2, 2), dtype=int), PAIR)


def test_a_regression_of_jointly_randomized_answers_recovers_the_odds_ratio():
    part = marginal_response(PAIR, 2)
    counts = np.rint(expected_shares(P, PAIR) * 10**6)
    outcome, predictor = np.indices((2, 2)).reshape(2, -1)
    found = regression(
        outcome,
        part,
        randomized=[Randomized("b", predictor, part, baseline=1)],
        times=counts.ravel(),
        baseline=1,
        joint=[JointlyRandomized(PAIR, (0, 1))],
    )
    log_odds = np.log(P[0, 0] / P[1, 0]) - np.log(P[0, 1] / P[1, 1])
    np.testing.assert_allclose(found.estimate[1], log_odds, atol=1e-3)
    # The delta method on the four exact cells has the same error.
    C = np.diag(expected_shares(P, PAIR).ravel()) - np.outer(
        expected_shares(P, PAIR), expected_shares(P, PAIR)
    )
    slopes = np.array([1, -1, -1, 1]) / P.ravel() / (PAIR.p - PAIR.q)
    np.testing.assert_allclose(found.std_error[1], np.sqrt(slopes @ C @ slopes / 10**6), rtol=1e-3)


def test_a_regression_with_two_joint_predictors_and_a_separate_outcome_recovers_the_truth():
    rng = np.random.default_rng(4)
    shares, apart = rng.dirichlet(np.ones(4)).reshape(2, 2), grr(2, "3/4")
    logit = np.array([-0.5, 1.0, -0.8])
    a, b = np.indices((2, 2))
    yes = 1 / (1 + np.exp(-(logit[0] + logit[1] * a + logit[2] * b)))
    truth = np.stack([shares * (1 - yes), shares * yes], axis=-1)
    exact = np.einsum("abt,abgh,tr->ghr", truth, PAIR.matrix.reshape(2, 2, 2, 2), apart.matrix)
    first, second, outcome = np.indices((2, 2, 2)).reshape(3, -1)
    part = marginal_response(PAIR, 2)
    found = regression(
        outcome,
        apart,
        randomized=[Randomized("a", first, part), Randomized("b", second, part)],
        times=np.rint(exact.ravel() * 10**6),
        joint=[JointlyRandomized(PAIR, (1, 2))],
    )
    np.testing.assert_allclose(found.estimate, logit, atol=5e-3)


def test_a_wrong_joint_channel_of_a_regression_is_refused():
    part, other = marginal_response(PAIR, 2), grr(2, "3/4")
    codes = np.array([0, 1, 0, 1])

    def fit(channel, joint):
        return regression(codes, channel, randomized=[Randomized("b", codes, part)], joint=joint)

    for channel, joint, reason in (
        (other, [JointlyRandomized(PAIR, (0, 1))], "is no part of the joint channel"),
        (part, [JointlyRandomized(grr(6, "1/2"), (0, 1))], "does not belong to questions"),
        (part, [JointlyRandomized(PAIR, (0, 2))], "must be different numbers from 0 to 1"),
    ):
        with pytest.raises(ChannelError, match=reason):
            fit(channel, joint)
