"""Sample sizes match manual calculations, the inverse of the formula and simulated surveys."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from survey.errors import DesignError
from survey.estimator import finite_shares, margin_of, proportions, required_epsilon, required_n
from survey.estimator.core.intervals import Chances
from survey.mechanism import from_epsilon, from_ratio, grr
from tests.cases import each_case


def test_the_worked_example_of_the_design():
    assert required_n(0.03, epsilon=1).n == 4997
    assert required_n(0.03, epsilon=1, population=5000).n == 4184
    # z^2 lambda(1-lambda)/(D^2 margin^2) by hand, lambda = 1/2, D = (e-1)/(e+1).
    D = (math.e - 1) / (math.e + 1)
    assert math.ceil(1.959963984540054**2 * 0.25 / (D * 0.03) ** 2) == 4997


def test_answers_without_randomization_have_cochrans_numbers():
    # Cochran 1977, section 4.4: n_0 = 1.96^2 .25/.05^2 = 385; with N = 4,000, n = 351.
    openly = Chances(1, 0)
    assert required_n(0.05, channel=openly).n == 385
    assert required_n(0.05, channel=openly, population=4000).n == 351


@pytest.mark.web
@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.floats(0.005, 0.4),
    st.floats(0.1, 8),
    st.integers(2, 12),
    st.floats(0, 1),
    st.sampled_from([None, 2000, 10**6]),
)
def test_n_is_the_fewest_reports_from_which_on_there_is_the_margin(
    margin, epsilon, k, share, population
):
    plan = required_n(margin, epsilon=epsilon, k=k, share=share, population=population)
    arguments = {"epsilon": epsilon, "k": k, "share": share, "population": population}
    if not plan.possible:
        assert plan.n == population
        assert plan.margin > margin
        return
    if plan.n > 1:
        assert margin_of(plan.n - 1, **arguments).margin > margin
    for n in range(plan.n, min(plan.n + 20, population or math.inf) + 1):
        assert margin_of(n, **arguments).margin <= margin


@pytest.mark.slow
@settings(max_examples=12)
@given(st.floats(0.02, 0.4), st.integers(50, 10**6), st.integers(2, 8), st.floats(0.05, 0.9))
@pytest.mark.web
def test_epsilon_is_the_smallest_with_the_margin(margin, n, k, share):
    plan = required_epsilon(n, margin, k=k, share=share)
    if not plan.possible:
        assert plan.epsilon == 12
        assert plan.margin > margin
        return
    assert plan.margin <= margin
    less = plan.epsilon * 0.98
    if less > 0.001:
        # An enumerated margin and z standard errors, between which plans change, differ by .8%.
        assert margin_of(n, epsilon=less, k=k, share=share).margin > margin * 0.992


def test_the_three_directions_agree():
    n = required_n(0.04, epsilon=1.3, k=5, share=0.2).n
    assert margin_of(n, epsilon=1.3, k=5, share=0.2).margin == pytest.approx(0.04, rel=1e-3)
    assert required_epsilon(n, 0.04, k=5, share=0.2).epsilon == pytest.approx(1.3, rel=1e-3)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(2, 20), st.floats(0, 1), st.sampled_from([None, 5000]))
def test_more_privacy_never_makes_the_margin_smaller(k, share, population):
    margins = np.array(
        [
            margin_of(1000, epsilon=e, k=k, share=share, population=population).margin
            for e in np.linspace(0.05, 12, 20)
        ]
    )
    # The share of reports moves from the normal formula to enumeration as epsilon grows.
    assert np.all(margins[1:] <= 1.008 * np.minimum.accumulate(margins)[:-1])


@pytest.mark.parametrize("channel", [grr(2, "3/4"), from_ratio(2, 1, 3), from_epsilon(6, 2)])
def test_the_planned_margin_matches_the_estimate(channel):
    n, share = 4000, 0.25
    reported = channel.q + (channel.p - channel.q) * share
    first = round(n * reported)
    remainder = (n - first) // (channel.k - 1)
    counts = [n - remainder * (channel.k - 1), *[remainder] * (channel.k - 1)]
    plan = margin_of(n, channel=channel, share=float(proportions(counts, channel).estimate[0]))
    z = 1.959963984540054
    error = proportions(counts, channel).std_error[0]
    assert plan.margin == pytest.approx(z * error, rel=1e-9)
    finite = finite_shares(counts, channel, 5000)
    small = margin_of(
        n, channel=channel, share=float(proportions(counts, channel).estimate[0]), population=5000
    )
    # Its interval has a continuity correction.
    width = finite.conf_high[0] - finite.conf_low[0]
    assert small.margin == pytest.approx(width / 2, rel=0.001)
    part = finite.sampling[0] / finite.std_error[0]
    assert small.sampling == pytest.approx(part * small.margin, rel=1e-9)


def test_the_estimates_of_planned_surveys_stay_within_the_margin():
    plan = required_n(0.03, epsilon=1, share=0.2, population=6000)
    rng = np.random.default_rng(4)
    with_answer = rng.hypergeometric(1200, 4800, plan.n, size=20_000)
    yes = rng.binomial(with_answer, plan.p) + rng.binomial(plan.n - with_answer, plan.q)
    estimates = (yes / plan.n - plan.q) / (plan.p - plan.q)
    assert np.mean(np.abs(estimates - 0.2) <= 0.03) == pytest.approx(0.95, abs=0.006)


def test_an_impossible_plan_states_the_smallest_possible_margin():
    plan = required_n(0.03, epsilon=1, population=2000)
    assert not plan.possible
    assert plan.n == 2000
    assert plan.note.startswith("not possible at this epsilon; the smallest possible margin is ")
    assert plan.sampling == 0
    just = required_n(plan.margin * 1.0001, epsilon=1, population=2000)
    assert just.possible
    # The note rounds the margin up, so the stated margin is also possible.
    assert required_n(float(plan.note.rsplit(" ", 1)[1]), epsilon=1, population=2000).possible
    never = required_epsilon(500, 0.03)
    assert not never.possible
    assert "at any epsilon" in never.note


@pytest.mark.parametrize("level", [1e-6, 1 - 1e-9])
def test_the_lowest_and_the_highest_level_have_plans(level):
    plan = required_n(0.1, epsilon=1, level=level)
    assert plan.n >= 1
    assert plan.margin <= 0.1


@pytest.mark.parametrize("n", [100, 10**6, 10**10])
def test_notes_show_margins_to_three_digits(n):
    plan = margin_of(n, epsilon=12)
    stated = float(plan.note.rsplit(" ", 1)[1])
    assert stated == pytest.approx(plan.margin, rel=5e-3)
    never = required_epsilon(n, plan.margin / 2)
    assert float(never.note.rsplit(" ", 1)[1]) == pytest.approx(plan.margin, rel=5e-3)


def test_a_plan_has_a_readable_repr():
    text = repr(required_n(0.03, epsilon=1))
    assert "n=4997" in text
    assert "possible=True" in text


@each_case(
    ("change", "words"),
    [
        ({"margin": 0}, "nearest allowed value is 0.001"),
        ({"margin": 3}, "3 points are 0.03"),
        ({"margin": math.nan}, "margin = nan is not a number"),
        ({"margin": 1e-9}, "would need"),
        ({"epsilon": 0}, "nearest allowed value is 0.001"),
        ({"epsilon": -1}, "nearest allowed value is 0.001"),
        ({"epsilon": 20}, "nearest allowed value is 12"),
        ({"epsilon": math.nan}, "epsilon = nan is not a number"),
        ({"epsilon": None}, "one of the two"),
        ({"channel": grr(2, "3/4")}, "one of the two"),
        ({"epsilon": None, "channel": Chances(0.5, 0.5)}, "two different chances"),
        ({"epsilon": None, "channel": Chances(1.5, 0.5)}, "two different chances"),
        ({"k": 1}, "options = 1 must be a whole number from 2"),
        ({"k": 2.5}, "k = 2.5 must be a whole number"),
        ({"k": True}, "whole number"),
        ({"share": 1.1}, "nearest allowed value is 1"),
        ({"share": -0.1}, "nearest allowed value is 0"),
        ({"share": math.nan}, "share = nan is not a number"),
        ({"level": 1}, "level = 1 must be between 0 and 1"),
        ({"level": 0}, "level = 0 must be between 0 and 1"),
        ({"level": 1e-300}, "level = 1e-300 must be between 0 and 1"),
        ({"level": 1 - 1e-16}, "level = 0.9999999999999999 must be between 0 and 1"),
        ({"level": math.nan}, "level = nan is not a number"),
        ({"population": 0}, "population = 0 must be .* nearest allowed value is 1$"),
        ({"population": math.nan}, "population = nan must be a whole number"),
        ({"population": math.inf}, "whole number"),
    ],
)
def test_impossible_values_are_rejected_with_the_nearest_allowed_one(change, words):
    arguments = {"margin": 0.03, "epsilon": 1, **change}
    with pytest.raises(DesignError, match=words):
        required_n(**arguments)


@pytest.mark.parametrize("n", [0, -5, 10.5, math.nan])
def test_impossible_numbers_of_reports_are_rejected(n):
    with pytest.raises(DesignError, match="n = "):
        margin_of(n, epsilon=1)
    with pytest.raises(DesignError, match="n = "):
        required_epsilon(n, 0.1)


def test_more_reports_than_people_are_rejected():
    with pytest.raises(DesignError, match="nearest allowed value is 100"):
        margin_of(101, epsilon=1, population=100)
    with pytest.raises(DesignError, match="nearest allowed value is 100"):
        required_epsilon(101, 0.1, population=100)


@pytest.mark.parametrize("population", [1, 2])
def test_the_smallest_populations_have_plans(population):
    plan = margin_of(population, epsilon=1, population=population)
    assert plan.sampling == 0
    assert math.isfinite(plan.margin)
