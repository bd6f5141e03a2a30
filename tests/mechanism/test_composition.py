"""Composition: exact sums and the bounds displayed with them."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.mechanism import grr
from survey.mechanism.composition import (
    advanced_epsilon,
    group_ratio,
    log_rounded_up,
    parallel_ratio,
    posterior_bound,
    posterior_interval,
    shuffled_epsilon,
    total_epsilon,
    total_ratio,
    waves_ratio,
)
from tests.cases import each_case

RATIOS = st.fractions(min_value="1.001", max_value=1000, max_denominator=10_000)


@pytest.mark.slow
@given(st.lists(RATIOS, min_size=1, max_size=30))
def test_the_total_is_the_exact_product_and_its_logarithm_is_rounded_up(ratios):
    exact = math.prod(ratios)
    assert total_ratio(ratios) == exact
    claimed = total_epsilon(ratios)
    assert claimed >= math.fsum(math.log(ratio) for ratio in ratios) - 1e-12
    assert claimed <= math.fsum(math.log(ratio) for ratio in ratios) + 1e-9


@pytest.mark.slow
@given(RATIOS)
def test_a_rounded_logarithm_is_the_smallest_float_that_is_not_below(ratio):
    claimed = log_rounded_up(ratio)
    with decimal.localcontext(prec=90):
        exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        assert Decimal(math.nextafter(claimed, 0)) < exact <= Decimal(claimed)


def test_ten_yes_no_questions_at_85_percent_have_a_total_epsilon_of_17_3():
    assert round(total_epsilon([grr(2, "0.85").ratio] * 10), 1) == 17.3


def test_advanced_composition_is_worse_than_the_sum_at_the_size_of_a_survey():
    epsilon = math.log(3)
    assert round(total_epsilon([Fraction(3)] * 10), 2) == 10.99
    assert round(advanced_epsilon([epsilon] * 10, 1e-6), 1) == 40.2
    for m in range(1, 41):
        assert advanced_epsilon([epsilon] * m, 1e-6) > m * epsilon


def test_disjoint_groups_have_the_largest_epsilon_while_dependent_groups_and_waves_add_up():
    assert parallel_ratio([Fraction(3), Fraction(9, 2)]) == Fraction(9, 2)
    assert parallel_ratio([]) == 1
    assert group_ratio(Fraction(3), 3) == 27
    assert waves_ratio(Fraction(3, 2), 2) == Fraction(9, 4)


@pytest.mark.slow
@given(RATIOS, st.fractions(min_value="0.001", max_value="0.999"))
def test_the_posterior_changes_the_odds_by_exactly_e_to_the_epsilon(ratio, prior):
    posterior = posterior_bound(prior, ratio)
    assert posterior / (1 - posterior) == ratio * prior / (1 - prior)


@pytest.mark.slow
@given(RATIOS)
def test_the_interval_of_one_half_is_symmetric(ratio):
    low, high = posterior_interval(ratio)
    assert low + high == 1
    assert high == posterior_bound(Fraction(1, 2), ratio)


@each_case(("n", "bound"), [(1000, 0.62), (5000, 0.325), (100_000, 0.082)])
def test_the_shuffle_bound_at_ln_3_equals_the_papers(n, bound):
    assert shuffled_epsilon(Fraction(3), n, 1e-6) == pytest.approx(bound, abs=0.005)


def test_there_is_no_shuffle_bound_without_a_proof():
    assert shuffled_epsilon(Fraction(12), 1000, 1e-6) is None
    assert shuffled_epsilon(Fraction(12), 5000, 1e-6) == pytest.approx(0.84, abs=0.01)
    assert shuffled_epsilon(Fraction(3), 0, 1e-6) is None


@each_case("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_delta_outside_0_to_1_is_rejected(delta):
    with pytest.raises(ValueError, match="delta"):
        shuffled_epsilon(Fraction(3), 1000, delta)
    with pytest.raises(ValueError, match="delta"):
        advanced_epsilon([1.0], delta)
