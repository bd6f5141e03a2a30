"""Composition: exact sums and the bounds displayed with them."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from survey.mechanism import grr
from survey.mechanism.channel import Floats
from survey.mechanism.composition import (
    composed_epsilon,
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


def delta_of_bits(epsilons: Sequence[float], epsilon: float) -> float:
    """delta(epsilon) of randomized bits, summed over all their values."""
    delta = 0.0
    for signs in itertools.product((-1, 1), repeat=len(epsilons)):
        losses = [sign * each for sign, each in zip(signs, epsilons, strict=True)]
        chance = math.prod(1 / (1 + math.exp(-loss)) for loss in losses)
        delta += chance * max(0.0, -math.expm1(epsilon - math.fsum(losses)))
    return delta


@each_case("epsilons", [[1.1] * 10, [0.3, 0.7, 0.7, 1.9, 2.4], [0.01, 5.0]])
def test_the_composition_is_the_smallest_epsilon_of_all_values_of_the_bits(epsilons):
    for delta in (1e-6, 1e-2):
        composed = composed_epsilon(epsilons, delta)
        assert delta_of_bits(epsilons, composed) <= delta
        assert delta_of_bits(epsilons, composed - 1e-3) > delta or composed < 1e-3


def test_composition_hardly_gains_at_the_size_of_a_survey_and_never_exceeds_the_sum():
    epsilon = math.log(3)
    for m in (1, 10, 40):
        assert m * epsilon - 0.2 < composed_epsilon([epsilon] * m, 1e-6) <= m * epsilon
    assert composed_epsilon([0.01] * 1000, 1e-6) < 2
    assert composed_epsilon([], 1e-6) == composed_epsilon([0.0], 1e-6) == 0


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


def epsilon_of_counts(channel: Floats, n: int, delta: float) -> float:
    """Return epsilon of n shuffled reports by enumeration: the worst over the others' answers."""
    k = len(channel)
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        rows = [channel[truth] for truth in others]
        first, second = (counts_of([*rows, channel[truth]]) for truth in (0, 1))
        low, high = 0.0, 10.0
        for _ in range(40):
            middle = (low + high) / 2
            excess = np.maximum(first - math.exp(middle) * second, 0.0).sum()
            low, high = (low, middle) if excess <= delta else (middle, high)
        worst = max(worst, high)
    return worst


def counts_of(rows: Sequence[Floats]) -> Floats:
    """Return the probabilities of the counts of reports; an axis for each report but the last."""
    size, reports = len(rows) + 1, len(rows[0])
    table = np.zeros((size,) * (reports - 1))
    table.flat[0] = 1
    for row in rows:
        shifted = [np.roll(table, 1, axis) * row[axis] for axis in range(reports - 1)]
        table = table * row[-1] + sum(shifted)
    return table


@pytest.mark.slow
@each_case(("ratio", "k", "sizes"), [(3, 2, (2, 12, 40)), (9, 2, (20, 60)), (3, 3, (5, 8))])
def test_no_shuffled_reports_reveal_more_than_the_bound(ratio, k, sizes):
    weights = np.ones((k, k)) + (ratio - 1) * np.eye(k)
    channel = weights / weights.sum(axis=1, keepdims=True)
    for n in sizes:
        for delta in (1e-3, 0.03):
            exact = epsilon_of_counts(channel, n, delta)
            bound = shuffled_epsilon(Fraction(ratio), n, delta)
            assert exact <= bound + 1e-9 < 3 * exact, (n, delta)


def test_shuffling_gains_nothing_among_25_reports_and_less_than_the_closed_form_says_among_1000():
    local = log_rounded_up(Fraction(3))
    assert local - 1e-3 < shuffled_epsilon(Fraction(3), 25, 1e-6) <= local
    assert shuffled_epsilon(Fraction(3), 1, 1e-6) == local
    assert shuffled_epsilon(Fraction(1), 10, 1e-6) == 0
    # The closed form of the same paper gives .62, .325 and .082.
    for n, epsilon in ((1_000, 0.2094), (5_000, 0.0883), (100_000, 0.0176)):
        assert shuffled_epsilon(Fraction(3), n, 1e-6) == pytest.approx(epsilon, abs=1e-4)
    assert shuffled_epsilon(Fraction(3) ** 300, 100_000, 1e-6) == log_rounded_up(Fraction(3) ** 300)


def test_coarse_steps_over_the_number_of_others_only_round_up():
    # delta(epsilon) of 20,000 reports, with every number of others.
    n, r, delta = 20_000, 3.0, 1e-6
    epsilon = shuffled_epsilon(Fraction(3), n, delta)
    c = np.arange(n, dtype=np.float64)[:, None]
    likely = abs(c[:, 0] - (n - 1) / r) < 600
    a = np.floor(c[likely] / 2) + np.arange(-500, 501)
    b, before = (np.exp(_log_binomial(c[likely], at, 0.5)) for at in (a, a - 1))
    above = np.maximum(r * before + b - math.exp(epsilon) * (before + r * b), 0).sum(axis=1)
    weights = np.exp(_log_binomial(np.float64(n - 1), c[likely, 0], 1 / r))
    exact = float(weights @ above) / (r + 1)
    assert 0.97 * delta < exact <= delta


def _log_binomial(n: Floats, k: Floats, p: float) -> Floats:
    log = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return log + k * math.log(p) + (n - k) * math.log1p(-p)


@each_case("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_delta_outside_0_to_1_is_rejected(delta):
    with pytest.raises(ValueError, match="delta"):
        shuffled_epsilon(Fraction(3), 1000, delta)
    with pytest.raises(ValueError, match="delta"):
        composed_epsilon([1.0], delta)
