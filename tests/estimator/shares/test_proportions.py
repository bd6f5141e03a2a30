"""Estimates of shares: bias, maximum likelihood and rejected arguments."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import multinomial

from survey.errors import ChannelError, CountsError
from survey.estimator import Proportions, debias, margin_split, norm_sub, proportions
from survey.mechanism import BitVector, SubsetSelection, from_epsilon, from_ratio, grr
from survey.mechanism.multiple_choice import sampled_options
from survey.mechanism.randomized_response import warner
from tests.cases import each_case

FIELDS = ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective")


def expected_counts(people: list[int], channel: SubsetSelection) -> list[int]:
    """Return counts in which each respondent draws every weight of the channel exactly once."""
    n = sum(people)
    return [channel.T * holders + channel.L * (n - holders) for holders in people]


@pytest.mark.slow
@given(
    people=st.lists(st.integers(0, 20), min_size=2, max_size=12).filter(any),
    weights=st.tuples(st.integers(1, 50), st.integers(1, 50)).filter(lambda w: w[0] > w[1]),
)
def test_debiasing_the_expected_counts_returns_the_truth(
    people: list[int], weights: tuple[int, int]
) -> None:
    channel = from_ratio(len(people), *weights)
    truth = np.array(people) / sum(people)
    result = proportions(expected_counts(people, channel), channel, interval="wilson")
    np.testing.assert_allclose(result.estimate, truth, atol=1e-9)
    np.testing.assert_allclose(result.mle, truth, atol=1e-9)


@pytest.mark.slow
@given(
    counts=st.lists(st.integers(0, 1000), min_size=2, max_size=30).filter(any),
    ratio=st.integers(2, 100),
)
def test_estimates_add_to_one_and_the_mle_lies_on_the_simplex(
    counts: list[int], ratio: int
) -> None:
    result = proportions(counts, from_ratio(len(counts), ratio, 1), interval="wilson")
    assert result.estimate.sum() == pytest.approx(1)
    assert result.mle.sum() == pytest.approx(1)
    assert result.mle.min() >= 0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_estimate_is_unbiased_and_its_std_error_is_its_spread(n: int) -> None:
    channel, truth = grr(3, "0.7"), np.array([0.6, 0.3, 0.1])
    shares = truth @ channel.matrix
    outcomes = [c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n]
    weights = multinomial.pmf(outcomes, n, shares)
    estimates = debias(np.array(outcomes) / n, channel)
    mean = weights @ estimates
    np.testing.assert_allclose(mean, truth, atol=1e-12)
    spread = np.sqrt(weights @ (estimates - mean) ** 2)
    np.testing.assert_allclose(
        spread, np.sqrt(shares * (1 - shares) / n) / (channel.p - channel.q), atol=1e-12
    )


def most_likely_mixture(
    counts: NDArray[np.int64], channel: SubsetSelection, steps: int
) -> NDArray[np.float64]:
    """pi_t <- sum_y f_y pi_t M[t, y] / (pi M)_y, from uniform."""
    pi = np.full(channel.k, 1 / channel.k)
    for _ in range(steps):
        pi = pi * (channel.matrix @ (counts / counts.sum() / (pi @ channel.matrix)))
    return pi


@pytest.mark.web
@each_case(
    ("counts", "channel"),
    [
        ([60, 40], grr(2, "3/4")),
        ([95, 5], grr(2, "3/4")),
        ([5, 95], from_ratio(2, 1, 3)),
        ([80, 15, 5], grr(3, "3/4")),
        ([0, 0, 10], grr(3, "0.6")),
        ([500, 130, 60, 0, 310], grr(5, "0.6")),
        ([9, 11, 8, 10, 30, 12, 2, 5, 7, 6], grr(10, "0.5")),
    ],
)
def test_the_mle_agrees_with_most_likely_mixture(
    counts: list[int], channel: SubsetSelection
) -> None:
    fixpoint = most_likely_mixture(np.array(counts), channel, steps=20_000)
    np.testing.assert_allclose(proportions(counts, channel).mle, fixpoint, atol=1e-6)


def test_the_mle_equals_the_linear_estimate_where_that_is_possible() -> None:
    result = proportions([300, 400, 300], grr(3, "0.6"))
    np.testing.assert_allclose(result.mle, result.estimate, atol=1e-12)


def test_a_forced_response_question_gives_the_published_figures() -> None:
    """831 of 2,435: .262 with standard error .014 at P(yes | yes) = 5/6 (Blair et al. 2015)."""
    result = proportions([831, 1604], grr(2, "5/6"))
    assert result.estimate[0] == pytest.approx(0.2619, abs=1e-4)
    assert result.std_error[0] == pytest.approx(0.0144, abs=1e-4)


def test_effective_answers_without_randomization_have_the_same_error() -> None:
    result = proportions([700, 1300], grr(2, "3/4"))
    np.testing.assert_allclose(
        result.n_effective, result.estimate * (1 - result.estimate) / result.std_error**2
    )
    assert np.all(result.n_effective < result.n)


def test_effective_answers_stay_finite_when_an_option_was_never_reported() -> None:
    result = proportions([0, 50], grr(2, "3/4"))
    assert 0 < result.n_effective[0] < 50


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        np.array,
        lambda c: np.array(c, dtype=float),
        lambda c: np.array(c, dtype=np.uint8),
    ],
)
def test_counts_can_have_any_type_of_whole_numbers(kind: Any) -> None:
    assert proportions(kind([30, 70]), grr(2, "3/4")).n == 100


@each_case(
    ("counts", "sentence"),
    [
        ([0, 0], "n = 0"),
        ([-1, 5], r"counts\[0\] = -1 must not be negative"),
        ([5, 2.5], r"counts\[1\] = 2.5 must be a whole number"),
        ([5, math.nan], r"counts\[1\] = nan must be a whole number"),
        ([math.inf, 5], r"counts\[0\] = inf must be a whole number"),
        ([1, 2, 3], r"shape \(3,\) must have shape \(2,\)"),
        ([[1, 2]], r"shape \(1, 2\) must have shape \(2,\)"),
        (7, r"shape \(\) must have shape \(2,\)"),
        (["1", "2"], "whole numbers"),
        ([True, False], "whole numbers"),
        ([10**30, 1], "whole numbers"),
        ([10**11, 1], "10,000,000,000"),
    ],
)
def test_impossible_counts_are_rejected_with_the_reason(counts: Any, sentence: str) -> None:
    with pytest.raises(CountsError, match=sentence):
        proportions(counts, grr(2, "3/4"))


@pytest.mark.parametrize(
    ("channel", "sentence"),
    [
        (SubsetSelection(k=3, d=1, T=1, L=3), "two options only"),
    ],
)
def test_channels_whose_counts_are_insufficient_are_rejected(
    channel: SubsetSelection, sentence: str
) -> None:
    with pytest.raises(ChannelError, match=sentence):
        proportions([10] * channel.k, channel)


@each_case("level", [0, 1, -0.5, 95, math.nan])
@each_case("simultaneous", [False, True])
def test_a_level_outside_0_and_1_is_rejected(level: float, simultaneous: bool) -> None:
    with pytest.raises(ValueError, match="level = "):
        proportions([3, 7], grr(2, "3/4"), level=level, simultaneous=simultaneous)


def test_an_unknown_interval_is_rejected_with_the_valid_names() -> None:
    with pytest.raises(ValueError, match=r"'wald'.*feldman-cousins, wilson-hull, wilson, clopper"):
        proportions([3, 7], grr(2, "3/4"), interval="wald")


def test_simultaneous_intervals_are_exact_ones_at_the_shared_level() -> None:
    channel = grr(4, "0.7")
    together = proportions([40, 30, 20, 10], channel, simultaneous=True)
    per_estimate = proportions([40, 30, 20, 10], channel, level=1 - 0.05 / 4)
    np.testing.assert_array_equal(together.conf_low, per_estimate.conf_low)
    np.testing.assert_array_equal(together.conf_high, per_estimate.conf_high)
    assert together.method == "feldman-cousins, simultaneous"
    assert together.level == 0.95
    wilson = proportions([40, 30, 20, 10], channel, simultaneous=True, interval="wilson")
    assert wilson.method == "wilson, simultaneous"


def test_the_intervals_of_two_options_miss_together_and_need_no_wider_level() -> None:
    for channel in (grr(2, "0.7"), warner("0.7")):
        together = proportions([40, 60], channel, simultaneous=True)
        per_estimate = proportions([40, 60], channel)
        np.testing.assert_array_equal(together.conf_low, per_estimate.conf_low)
        np.testing.assert_array_equal(together.conf_high, per_estimate.conf_high)
    ticks = BitVector(2, 2, 7, 3)
    together = proportions([40, 60], ticks, n=100, simultaneous=True)
    assert np.all(together.conf_low < proportions([40, 60], ticks, n=100).conf_low)


@pytest.mark.web
@pytest.mark.parametrize(
    ("truth", "n"),
    [((0.25, 0.25, 0.25, 0.25), 60), ((1.0, 0.0, 0.0, 0.0), 200), ((0.7, 0.2, 0.1, 0.0), 500)],
)
def test_simultaneous_intervals_cover_all_shares_together(truth: tuple[float, ...], n: int) -> None:
    channel, rng = grr(4, "0.6"), np.random.default_rng(20_240_601)
    draws = rng.multinomial(n, np.array(truth) @ channel.matrix, size=2000)
    covered = 0
    for counts in draws:
        result = proportions(counts, channel, simultaneous=True)
        covered += bool(np.all((result.conf_low <= truth) & (truth <= result.conf_high)))
    assert covered / len(draws) >= 0.95


@pytest.mark.web
@each_case("k", [2, 3, 100, 10_000])
@each_case("epsilon", ["0.01", "1", "12"])
def test_every_allowed_channel_and_zero_counts_give_finite_figures(k: int, epsilon: str) -> None:
    channel = from_epsilon(k, epsilon)
    for n in (1, 1000, 10**7):
        spread = np.random.default_rng(n).multinomial(n, np.full(k, 1 / k))
        for counts in (spread, np.eye(k, dtype=np.int64)[0] * n):
            result = proportions(counts, channel)
            for field in FIELDS:
                assert np.all(np.isfinite(getattr(result, field)))
            assert np.all(result.conf_low < result.conf_high)


def test_a_result_is_frozen_and_has_a_repr() -> None:
    result = proportions([40, 60], grr(2, "3/4"))
    with pytest.raises(AttributeError):
        result.n = 5  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        result.estimate[0] = 1
    assert "n=100, level=0.9500, method='feldman-cousins'" in repr(result)
    assert isinstance(result, Proportions)


@pytest.mark.web
def test_estimates_for_these_respondents_have_only_the_error_of_the_randomization() -> None:
    """The standard deviation over devices' draws if 600 of 1,500 respondents hold the option."""
    channel, truth = grr(2, "0.8"), np.repeat([0, 1], [600, 900])
    rng = np.random.default_rng(8)
    results = [
        proportions(np.bincount(channel.perturb(truth, rng)), channel, target="respondents")
        for _ in range(2000)
    ]
    spread = np.std([result.estimate[0] for result in results])
    assert results[0].std_error[0] == pytest.approx(spread, rel=0.06)
    assert results[0].std_error[0] < proportions([700, 800], channel).std_error[0]
    covered = np.mean([r.conf_low[0] <= 0.4 <= r.conf_high[0] for r in results])
    # Allow four standard errors of the simulation below .95.
    assert 0.93 <= covered <= 0.975
    assert (results[0].method, results[0].target) == ("fixed-population", "respondents")


def test_the_interval_of_these_respondents_is_the_one_of_that_name() -> None:
    channel = grr(4, "0.7")
    target = proportions([40, 30, 20, 10], channel, target="respondents")
    by_name = proportions([40, 30, 20, 10], channel, interval="fixed-population")
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(target, field), getattr(by_name, field))
    with pytest.raises(ValueError, match="is for the population"):
        proportions([40, 60], grr(2, "3/4"), interval="wilson", target="respondents")
    with pytest.raises(ValueError, match="unknown target 'sample'"):
        proportions([40, 60], grr(2, "3/4"), target="sample")


def test_the_parts_of_a_margin_have_squares_that_add_up() -> None:
    channel = grr(2, "3/4")
    result = proportions([700, 1300], channel)
    split = margin_split(result)
    np.testing.assert_allclose(split.margin, (result.conf_high - result.conf_low) / 2)
    np.testing.assert_allclose(split.sampling**2 + split.randomization**2, split.margin**2)
    x = result.estimate
    sampling = x * (1 - x) / 2000
    np.testing.assert_allclose(1 - split.randomized, sampling / result.std_error**2)
    alone = margin_split(proportions([700, 1300], channel, target="respondents"))
    assert alone.sampling.tolist() == [0, 0]
    np.testing.assert_allclose(alone.randomization, alone.margin)


def test_selecting_options_at_random_is_part_of_the_randomization() -> None:
    channel = sampled_options(6, 6, 0, 2)
    n, share = 15_000, 0.5
    asked, selected = np.full(6, n // 6), np.full(6, n // 12)
    result = proportions([*asked, *selected], channel)
    assert result.n == n
    # Without randomization: z sqrt(share (1 - share)/n).
    np.testing.assert_allclose(
        margin_split(result).sampling, 1.96 * math.sqrt(share * (1 - share) / n), rtol=0.01
    )


def test_answers_without_randomization_have_a_margin_of_sampling_only() -> None:
    plain, randomized = (
        margin_split(proportions([500, 500], from_epsilon(2, epsilon))) for epsilon in (12, "0.1")
    )
    assert plain.randomized.max() < 0.001
    assert randomized.randomized.min() > 0.99


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=20))
def test_norm_sub_is_the_nearest_point_of_the_simplex(estimate: list[float]) -> None:
    shares = norm_sub(estimate)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    # Karush-Kuhn-Tucker: positive shares have equal reductions, and none exceeds them.
    reduction = np.array(estimate) - shares
    np.testing.assert_allclose(reduction[shares > 1e-9], reduction.max(), atol=1e-9)


@pytest.mark.parametrize("estimate", [[], [[0.5, 0.5]], [math.nan, 1.0], [math.inf, 0.0]])
def test_norm_sub_rejects_invalid_estimates(estimate: Any) -> None:
    with pytest.raises(ValueError, match="finite numbers"):
        norm_sub(estimate)


def test_a_result_is_rows_and_a_table_for_notebooks() -> None:
    result = proportions([40, 60], grr(2, "3/4"))
    rows = result.to_rows()
    assert [row["option"] for row in rows] == [0, 1]
    assert rows[0]["estimate"] == result.estimate[0]
    assert {row["method"] for row in rows} == {"feldman-cousins"}
    assert result._repr_html_().count("<tr>") == 3


def test_a_long_result_shows_its_beginning() -> None:
    text = repr(proportions(np.ones(100, dtype=int), grr(100, "0.5")))
    assert len(text.splitlines()) == 15
    assert text.endswith("... and 88 more")


def test_changing_one_result_cannot_change_the_next() -> None:
    channel = grr(2, Fraction(3, 4))
    first = proportions([41, 59], channel)
    assert proportions([41, 59], channel).conf_low is not first.conf_low


@pytest.mark.slow
@pytest.mark.web
def test_errors_and_estimates_are_the_same_under_python_minus_o() -> None:
    script = (
        "from survey.estimator import proportions\n"
        "from survey.mechanism import grr\n"
        "print(proportions([700, 1300], grr(2, '3/4')).conf_low.round(4).tolist())\n"
        "try: proportions([0, 0], grr(2, '3/4'))\n"
        "except ValueError as refusal: print(refusal)\n"
    )
    run = [sys.executable, "-O", "-W", "error", "-c", script]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == str(proportions([700, 1300], grr(2, "3/4")).conf_low.round(4).tolist())
    assert lines[1].startswith("n = 0")
