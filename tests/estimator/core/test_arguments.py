"""Invalid levels, fractional counts and excessive numbers are rejected by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator import (
    answered_shares,
    bit_pairs,
    cdf,
    channel_fit,
    conditional,
    consistent,
    consistent_shares,
    count_bit_pairs,
    crosstab,
    debias,
    difference,
    dirichlet_mean,
    disclosure,
    finite_shares,
    fitted,
    histogram,
    joint_counts,
    lie_detector,
    margin_of,
    mean,
    median,
    option_pairs,
    poisoning,
    poststratified,
    power,
    proportions,
    raked,
    regression,
    reports_needed,
    required_epsilon,
    required_n,
    set_shares,
    simulated_grid,
    subset_shares,
    tradeoff,
    weighted_reports,
    weighted_shares,
)
from survey.estimator.core.arguments import LEVELS, checked_level, whole_counts
from survey.estimator.core.intervals import Chances
from survey.mechanism import BitVector, SubsetSelection, grr
from tests.cases import each_case

COIN, THREE = grr(2, "3/4"), grr(3, "3/4")
BITS = BitVector(2, 2, 3, 1)
TABLE = [[3000, 2000], [2000, 3000]]
SETS = SubsetSelection(k=4, d=2, T=3, L=1)
PATTERNS = [[0], [1], [0, 1]]

ESTIMATORS = {
    "answered_shares": lambda level: answered_shares([400, 1000, 600], THREE, [2], level=level),
    "bit_pairs": lambda level: bit_pairs([[300, 200, 200, 300]], BITS, [(0, 1)], level=level),
    "cdf": lambda level: cdf([4, 3, 3], THREE, [1, 2, 3], level=level),
    "channel_fit": lambda level: channel_fit([70, 130], COIN, level=level),
    "conditional": lambda level: conditional(crosstab(TABLE, [COIN] * 2), given=1, level=level),
    "crosstab": lambda level: crosstab(TABLE, [COIN] * 2, level=level),
    "difference": lambda level: difference([70, 130], [60, 40], COIN, level=level),
    "mover": lambda level: difference(
        [70, 130], [60, 40], COIN, level=level, interval="mover-wilson"
    ),
    "dirichlet_mean": lambda level: dirichlet_mean([70, 130], COIN, draws=20, level=level),
    "finite_shares": lambda level: finite_shares([70, 130], COIN, 400, level=level),
    "histogram": lambda level: histogram([4, 3, 3], THREE, [1, 2, 3], 2, level=level),
    "lie_detector": lambda level: lie_detector([448, 336], [1000] * 2, [0.4, 0.6], level=level),
    "mean": lambda level: mean([70, 130], COIN, [0, 1], level=level),
    "median": lambda level: median([70, 130], COIN, [0, 1], level=level),
    "option_pairs": lambda level: option_pairs([60, 20, 20], THREE, PATTERNS, 2, level=level),
    "poststratified": lambda level: poststratified(TABLE, [1, 1], COIN, level=level),
    "proportions": lambda level: proportions([70, 130], COIN, level=level),
    "raked": lambda level: raked([TABLE, TABLE], [[1, 1], [1, 1]], COIN, level=level),
    "regression": lambda level: regression([0, 1] * 50, COIN, level=level),
    "set_shares": lambda level: set_shares([[1, 1, 0, 0], [0, 1, 1, 0]], SETS, level=level),
    "subset_shares": lambda level: subset_shares([60, 20, 20], THREE, PATTERNS, 2, level=level),
    "weighted_reports": lambda level: weighted_reports([0, 1, 1], [1, 1, 2], COIN, level=level),
    "weighted_shares": lambda level: weighted_shares(TABLE, [1, 2], COIN, level=level),
}


@each_case("name", ESTIMATORS)
@each_case("level", [0, 1, 1 - 1e-12, 1e-9, math.nan, "0.95", True])
def test_every_estimator_rejects_an_invalid_level(name, level):
    with pytest.raises(DesignError, match=r"^level = .* must be between 0 and 1"):
        ESTIMATORS[name](level)


@each_case("name", sorted(ESTIMATORS.keys() - {"conditional"}))
def test_only_results_of_a_table_may_omit_the_level(name):
    with pytest.raises(DesignError, match=r"^level = None must be"):
        ESTIMATORS[name](None)
    assert ESTIMATORS["conditional"](None).level == 0.95


@each_case("name", ESTIMATORS)
def test_every_estimator_takes_the_lowest_and_the_highest_level(name):
    for level in LEVELS:
        assert ESTIMATORS[name](level).level == level


def test_levels_of_any_numeric_type_become_floats():
    assert checked_level(np.float32(0.5)) == 0.5
    assert type(checked_level(np.float32(0.5))) is float


NOT_WHOLE = [50.5, 50.0, "50", True, math.nan, [50]]


@each_case("wrong", NOT_WHOLE)
@each_case(
    "estimate",
    [
        lambda n: proportions([10, 10], BITS, n=n),
        lambda n: proportions([20, 30], COIN, n=n),
        lambda n: channel_fit([10, 10], BITS, n=n),
        lambda n: difference([20, 30], [20, 30], COIN, None, n_b=n),
        lambda n: difference([20, 30], [20, 30], BITS, n_a=n, n_b=50),
        lambda n: joint_counts([[0, 1]], [n]),
        lambda n: finite_shares([20, 30], COIN, n),
    ],
)
def test_fractional_numbers_of_people_are_rejected(estimate, wrong):
    with pytest.raises((CountsError, DesignError), match="must be a whole number"):
        estimate(wrong)


@each_case("wrong", [1.5, 1.0, "1", True])
@each_case(
    "estimate",
    [
        lambda option: answered_shares([400, 1000, 600], THREE, [option]),
        lambda option: subset_shares([60, 20, 20], THREE, [[0], [option], [0, 1]], 2),
        lambda option: conditional(crosstab(TABLE, [COIN] * 2), given=option),
        lambda option: conditional(crosstab(TABLE, [COIN] * 2), given=0, of=option),
        lambda option: conditional(crosstab(TABLE, [COIN] * 2), given=0, options=[option]),
        lambda option: crosstab(TABLE, [COIN] * 2).margin(option),
        lambda option: bit_pairs([[300, 200, 200, 300]], BITS, [(0, option)]),
    ],
)
def test_options_that_are_not_whole_numbers_are_rejected(estimate, wrong):
    with pytest.raises(ValueError, match="must be a whole number"):
        estimate(wrong)


def test_counts_of_half_precision_are_accepted():
    counts = np.array([70, 130], dtype=np.float16)
    assert whole_counts(counts, 2, "two").tolist() == [70, 130]


@each_case(
    "estimate",
    [
        lambda x: mean([4, 3, 3], THREE, [-x, x, 3]),
        lambda x: histogram([4, 3, 3], THREE, [-x, x, 3], 2),
        lambda x: histogram([4, 3, 3], THREE, [1, 2, 3], [-x, 2, x]),
        lambda x: cdf([4, 3, 3], THREE, [1, 2, 3], at=[-x, x]),
        lambda x: poststratified(TABLE, [x, x], COIN),
        lambda x: fitted([[x, x], [1, 1]], [[1, 1], [1, 1]]),
        lambda x: regression([0, 1] * 50, COIN, np.append(np.zeros(99), x)),
        lambda x: regression([0, 1] * 50, COIN, weights=np.full(100, x)),
        lambda x: dirichlet_mean([70, 130], COIN, prior=x),
        lambda x: consistent([x, 70, 40], [10, 5, 5], [-1, 0, 0]),
        lambda x: consistent([100, 70, 40], [10, x, 5], [-1, 0, 0]),
        lambda x: consistent_shares([0.5, 0.4, 0.3], [0.1, 0.02, x], [-1, 0, 0], [100, 60, 40]),
    ],
)
@each_case("large", [1e200, 1e308, math.inf])
def test_numbers_too_large_to_square_are_rejected_by_name(estimate, large):
    with pytest.raises(ValueError, match=r"finite|above 0|one number|at most|or neither"):
        estimate(large)


def test_a_grid_requires_a_random_generator():
    with pytest.raises(DesignError, match=r"rng = 1 must be a Generator"):
        simulated_grid(1)


def test_counts_instead_of_shares_are_rejected():
    with pytest.raises(ValueError, match=r"found = \[70, 130\] must be a Proportions"):
        poisoning([70, 130], COIN)


@pytest.mark.parametrize("decide", [disclosure, reports_needed])
def test_a_decision_without_results_is_rejected(decide):
    with pytest.raises(ValueError, match="no results"):
        decide()


ROOMS = BitVector(2, 2, 3, 1, sampled=1)
NOBODY_ASKED = [0, 5, 0, 2]
"""Reports on two sampled options in which only the second was ever asked about."""


def test_an_option_without_asked_respondents_has_no_error_and_no_bound():
    result = finite_shares(NOBODY_ASKED, ROOMS, 20)
    for field in (result.estimate, result.std_error, result.sampling, result.randomization):
        assert np.isnan(field[0])
        assert field[1] > 0
    bounds = poisoning(proportions(NOBODY_ASKED, ROOMS), ROOMS)
    assert np.isnan(bounds.estimate[0])
    assert (bounds.low_1[0], bounds.high_1[0], bounds.fakes_per_margin[0]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("shares", "channel", "words"),
    [
        ([math.nan, 0.5], COIN, "finite"),
        ([None], COIN, "finite|numbers"),
        (["a"], COIN, "numbers"),
        (1e308, COIN, "finite"),
        ([0.5], Chances(0.5, 0.5), "contain no information"),
    ],
)
def test_invalid_shares_of_reports_are_not_debiased(shares, channel, words):
    with pytest.raises(ValueError, match=words):
        debias(shares, channel)


@pytest.mark.parametrize("pair", [(0, 5), (-1, 0), (1, 1)])
def test_only_existing_pairs_of_options_are_counted(pair):
    with pytest.raises(ValueError, match="must be two options"):
        count_bit_pairs([[1, 1], [0, 0]], BITS, [pair])
    with pytest.raises(ChannelError, match="BitVector"):
        count_bit_pairs([[1, 1], [0, 0]], COIN, [(0, 1)])


@each_case(
    "plan",
    [
        lambda: margin_of("100", epsilon=1),
        lambda: margin_of(None, epsilon=1),
        lambda: margin_of(100, epsilon="1"),
        lambda: required_n("0.03", epsilon=1),
        lambda: required_n(0.03, epsilon=1, share="half"),
        lambda: required_n(1e-320, epsilon=1),
        lambda: required_epsilon(100, None),
        lambda: power(None, 5, 0.4, 0.5, epsilon=1),
    ],
)
def test_plans_without_numbers_are_rejected_by_name(plan):
    with pytest.raises(DesignError, match=r"must be a number|whole number|would need"):
        plan()


def test_trade_offs_take_arrays():
    trade_off = tradeoff(np.linspace(0.5, 4, 5), np.array([100, 1000]))
    assert trade_off.margin.shape == (2, 5)


def test_outcomes_too_large_for_a_code_are_rejected_by_name():
    with pytest.raises(CountsError, match="not a whole number from 0"):
        regression([1e300, 1, 0, 1], COIN, [[0.5], [1], [0.2], [0.3]])


def test_other_wrong_arguments_are_named():
    with pytest.raises(CountsError, match="whole numbers, as many in each row"):
        proportions([[1], [1, 2]], COIN)
    with pytest.raises(DesignError, match="above 10,000,000,000 people"):
        finite_shares([70, 130], COIN, 10**30)
