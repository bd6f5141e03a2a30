"""Regressions over groups of respondents with different channels."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError
from survey.estimator import ByGroup, Randomized, proportions, regression
from survey.mechanism import SubsetSelection, from_epsilon, grr
from survey.mechanism.randomized_response import from_probabilities, warner
from tests.cases import each_case
from tests.estimator.regression.surveys import DIE, people

CHANNELS = (DIE, warner("1/4"), None)


def asked_in_groups(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return reports, groups and a predictor; each of `CHANNELS` applies to a third."""
    x, _, truth = people(n, seed)
    rng = np.random.default_rng(seed)
    reports_by_channel = [truth if c is None else c.perturb(truth, rng) for c in CHANNELS]
    group = rng.permutation(np.arange(n) % 3)
    return np.choose(group, reports_by_channel), group, x


def test_the_same_channel_in_every_group_is_that_channel():
    x, _, truth = people(500, 1)
    reports, group = DIE.perturb(truth, np.random.default_rng(1)), np.arange(500) % 2
    grouped = regression(reports, ByGroup([DIE, DIE], group), x)
    plain = regression(reports, DIE, x)
    np.testing.assert_array_equal(grouped.estimate, plain.estimate)
    np.testing.assert_array_equal(grouped.std_error, plain.std_error)


def test_the_order_of_the_groups_does_not_matter():
    reports, group, x = asked_in_groups(600, 2)
    fit = regression(reports, ByGroup(CHANNELS, group), x)
    reordered = regression(reports, ByGroup(CHANNELS[::-1], 2 - group), x)
    np.testing.assert_array_equal(fit.estimate, reordered.estimate)


def test_groups_with_separate_coefficients_are_separate_regressions():
    reports, group, x = asked_in_groups(3000, 3)
    second, third = group == 1, group == 2
    interactions = np.column_stack([x, second, third, second * x, third * x])
    joint = regression(reports, ByGroup(CHANNELS, group), interactions)
    b = joint.estimate
    for g, (intercept, slope) in enumerate([(0, 0), (b[2], b[4]), (b[3], b[5])]):
        alone = regression(reports[group == g], CHANNELS[g], x[group == g])
        np.testing.assert_allclose([b[0] + intercept, b[1] + slope], alone.estimate, atol=1e-4)
    np.testing.assert_allclose(
        joint.std_error[:2],
        regression(reports[group == 0], DIE, x[group == 0]).std_error,
        rtol=1e-3,
    )


def test_all_groups_together_are_more_precise_than_the_best_alone():
    reports, group, x = asked_in_groups(1500, 4)
    together = regression(reports, ByGroup(CHANNELS, group), x)
    openly = regression(reports[group == 2], None, x[group == 2])
    assert np.all(together.std_error < openly.std_error)


def test_a_randomized_predictor_can_have_a_channel_per_group():
    _, u, truth = people(4000, 5)
    rng = np.random.default_rng(5)
    group = np.arange(4000) % 2
    reported = np.where(group == 1, DIE.perturb(u, rng), u)
    fit = regression(
        truth, None, randomized=[Randomized("u", reported, ByGroup([None, DIE], group))]
    )
    exact = regression(truth, None, u)
    assert np.all(np.abs(fit.estimate - exact.estimate) < 3 * fit.std_error)
    assert np.all(fit.std_error > exact.std_error)


def test_one_group_determines_shares_that_another_groups_channel_cannot():
    low, high = Fraction(1, 4), Fraction(3, 4)
    first = from_probabilities([[low, high], [high, low], [high, low]])
    second = from_probabilities([[low, high], [low, high], [high, low]])
    shares, n = np.array([0.5, 0.3, 0.2]), 4000
    yes = [shares @ table.matrix[:, 1] for table in (first, second)]
    reports = np.concatenate([np.arange(n) < round(n * share) for share in yes]).astype(int)
    fit = regression(reports, ByGroup([first, second], np.repeat([0, 1], n)))
    fitted = np.exp([0, *fit.estimate])
    np.testing.assert_allclose(fitted / fitted.sum(), shares, atol=1e-3)
    with pytest.raises(ChannelError, match="different shares give the same reports"):
        regression(reports, ByGroup([first, second], np.zeros(2 * n, dtype=int)))


def test_a_group_without_people_changes_nothing():
    reports, group, x = asked_in_groups(300, 6)
    unused = ByGroup([*CHANNELS, grr(2, "9/10")], group)
    np.testing.assert_array_equal(
        regression(reports, unused, x).estimate,
        regression(reports, ByGroup(CHANNELS, group), x).estimate,
    )


def test_an_intercept_of_one_group_is_its_linear_estimate():
    reports, group, _ = asked_in_groups(3000, 7)
    fit = regression(reports, ByGroup(CHANNELS, group), np.eye(3)[group][:, 1:])
    logits = fit.estimate[0] + np.array([0, *fit.estimate[1:]])
    for g in (0, 1):
        linear = proportions(np.bincount(reports[group == g]), CHANNELS[g]).estimate[1]
        assert 1 / (1 + np.exp(-logits[g])) == pytest.approx(linear, abs=1e-6)


@each_case(
    ("channels", "group", "error", "reason"),
    [
        ([DIE, None], [0, 1, 0], CountsError, "3 groups for 4 reports"),
        ([DIE, None], [0, 1, 2, 0], CountsError, "group 2 is 2, but there are 2 channels"),
        ([DIE, None], [0, 1, -1, 0], CountsError, "group 2 is -1"),
        ([DIE, None], [0, 1, 0.5, 0], CountsError, "group 2 is 0.5"),
        ([DIE, None], ["a", "b", "a", "b"], CountsError, "groups must be whole numbers"),
        ([DIE, None], [[0, 1, 0, 1]], CountsError, r"groups must have shape \(n,\)"),
        ([DIE, grr(3, "3/5")], [0, 1, 0, 1], ChannelError, r"have \[2, 3\] truths"),
        ([None, None], [0, 1, 0, 1], ChannelError, "at least one must randomize"),
        ([], [0, 0, 0, 0], CountsError, "there are 0 channels"),
        ([DIE, SubsetSelection(4, 2, 3, 1)], [0, 1, 0, 1], ChannelError, "d = 2"),
        ([DIE, "coin"], [0, 1, 0, 1], ChannelError, "a coin does not report a single option"),
        ([from_epsilon(3, 1), None], [0, 1, 0, 1], CountsError, "report 3 is 3, above 2"),
    ],
)
def test_invalid_groupings_are_rejected(channels, group, error, reason):
    reports = [0, 1, 1, 3] if "report 3" in reason else [0, 1, 1, 0]
    with pytest.raises(error, match=reason):
        regression(reports, ByGroup(channels, group))
    predictor = Randomized("u", reports, ByGroup(channels, group))
    with pytest.raises(error, match=reason):
        regression([0, 1, 1, 0], DIE, randomized=[predictor])
