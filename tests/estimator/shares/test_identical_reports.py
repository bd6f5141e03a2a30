"""Estimates from identical reports never claim to be certain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from survey.errors import DesignError
from survey.estimator import (
    bit_pairs,
    crosstab,
    difference,
    lie_detector,
    poststratified,
    proportions,
    raked,
    weighted_reports,
    weighted_shares,
)
from survey.estimator.core.intervals import Chances, confidence_interval
from survey.mechanism import BitVector, from_epsilon, grr
from survey.mechanism.numeric import geometric
from tests.cases import each_case

SURE = from_epsilon(2, "6")
OF_RANDOMIZATION = math.sqrt(SURE.q * (1 - SURE.q) / 200) / (SURE.p - SURE.q)
"""sqrt(q(1-q)/n)/D, the standard error of a true share of 0 among 200 respondents."""


@each_case(
    "error",
    [
        proportions([0, 200], SURE).std_error,
        difference([0, 200], [0, 200], SURE).std_error / math.sqrt(2),
        difference([0, 200], [0, 200], SURE, None).std_error,
        weighted_shares([[0, 100], [0, 100]], [2, 2], SURE).std_error * math.sqrt(199 / 200),
        weighted_reports([1] * 200, [1] * 200, SURE).std_error * math.sqrt(199 / 200),
        poststratified([[0, 100], [0, 100]], [1, 1], SURE).std_error,
        raked([[[0, 50], [0, 50]]] * 2, [[1, 1], [1, 1]], SURE).std_error,
    ],
)
def test_identical_reports_have_the_standard_error_of_the_randomization(error):
    np.testing.assert_allclose(error, OF_RANDOMIZATION, rtol=1e-9)


def test_cells_pairs_and_tables_of_identical_reports_have_a_standard_error():
    assert np.all(crosstab([[0, 0], [0, 100]], [SURE, SURE]).std_error > 0)
    assert np.all(bit_pairs([[0, 0, 0, 50]], BitVector(2, 2, 3, 1), [(0, 1)]).std_error > 0)
    table = geometric(4, 3)
    assert np.all(proportions([100, 0, 0, 0], table).std_error > 0)
    assert np.all(proportions([100, 0, 0, 0], table, target="respondents").std_error > 0)
    assert np.all(difference([100, 0, 0, 0], [100, 0, 0, 0], table).std_error > 0)


def test_the_standard_error_is_unchanged_if_any_two_reports_differ():
    p, q = SURE.p, SURE.q
    for c in (1, 2, 100, 199):
        f = np.array([c, 200 - c]) / 200
        result = proportions([c, 200 - c], SURE)
        np.testing.assert_allclose(result.std_error, np.sqrt(f * (1 - f) / 200) / (p - q))
    extreme = proportions([1, 10**10 - 1], grr(2, "0.505"))
    assert extreme.std_error[0] == pytest.approx(1e-10 / 0.01)


def test_two_unanimous_groups_without_randomization_have_no_error():
    assert difference([0, 50], [0, 50], None, None).std_error.tolist() == [0, 0]


def test_an_option_without_asked_respondents_has_no_error():
    channel = BitVector(m=3, s=1, alone=1, sampled=1, T=3, L=1)
    result = proportions([40, 0, 60, 0, 0, 30], channel)
    assert result.std_error[0] > 0
    assert math.isnan(result.std_error[1])


def test_a_stratum_of_one_report_is_rejected_and_named():
    with pytest.raises(DesignError, match="stratum 1 has one report"):
        poststratified([[30, 20], [0, 1]], [1, 1], SURE)


def test_identical_answers_randomized_by_hand_are_flagged():
    result = lie_detector([0, 0], [100, 100], [0.4, 0.6])
    assert result.flag == "all said the same"
    assert np.all(result.conf_low < result.conf_high)
    outside = lie_detector([0, 100], [100, 100], [0.0, 1.0])
    assert outside.flag == "all said the same, outside 0 to 1"


@each_case(("p", "q"), [(0.75, 0.25), (0.25, 0.75), (0.2, 0.1), (0.9975, 0.0025)])
@each_case("level", [0.5, 0.95, 0.995])
def test_clopper_pearson_never_has_zero_width_and_covers(p, q, level):
    for n in (1, 20, 200):
        counts = np.arange(n + 1)
        low, high = confidence_interval(counts, n, Chances(p, q), level, "clopper-pearson")
        assert np.all(high > low)
        for share in (0.0, 0.02, 0.5, 1.0):
            chances = binom.pmf(counts, n, q + (p - q) * share)
            assert chances[(low <= share) & (share <= high)].sum() >= level - 1e-12


def test_simultaneous_intervals_of_impossible_counts_have_a_width():
    result = proportions([30, 170], grr(2, "3/4"), simultaneous=True)
    assert result.method == "feldman-cousins, simultaneous"
    assert np.all(result.conf_high > result.conf_low)
    assert result.conf_low[0] == 0
