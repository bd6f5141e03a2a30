"""No fabricated report exceeds the bounds on a share, and the worst one reaches them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError, DesignError, NoBaseError
from survey.estimator import Poisoning, mean, poisoning, poisoning_of_mean, proportions
from survey.mechanism import BitVector, SubsetSelection, WeightTable, from_epsilon, from_ratio, grr
from survey.mechanism.numeric import geometric, hybrid, one_bit, square_wave
from survey.mechanism.randomized_response import forced_response, two_coins
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case

SINGLE = {
    "two options": grr(2, "3/4"),
    "five options": grr(5, "3/4"),
    "inverted Warner": from_ratio(2, 1, 3),
    "forced response": forced_response("1/2", ["1/2", "3/10", "1/5"]),
    "two coins": two_coins("1/2", "1/3"),
    "square wave with a no answer": square_wave(5, 3, 1),
    "geometric": geometric(4, 4),
    "wide": WeightTable(Explicit(((5, 1, 1, 3), (1, 5, 1, 3), (1, 1, 5, 3)))),
}
singles = pytest.mark.parametrize("channel", SINGLE.values(), ids=SINGLE)
SILENT = [1, 2, 3, 4, 5, None]
BANDS = {0.01: "1", 0.05: "5", 0.10: "10"}


def bounds(counts, channel, **options) -> Poisoning:
    return poisoning(proportions(counts, channel, **options), channel)


def honest_counts(channel, n: int, seed: int = 1):
    P = channel.matrix
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, rng.dirichlet(np.ones(len(P)) * 2) @ P)


@pytest.mark.parametrize(
    ("k", "p", "n", "fakes"),
    # threats.md, P3; the last is .7 % of the reports, rounded
    [(2, "3/4", 1000, 62), (5, "3/4", 10_000, 98), (10, "1/2", 10_000, 66)],
)
def test_fakes_per_margin_match_the_published_table(k, p, n, fakes):
    result = bounds([n // k] * k, grr(k, p), interval="wilson-hull")
    assert result.fakes_per_margin.tolist() == [fakes] * k


def test_one_fake_moves_a_share_by_the_formula():
    channel, counts = grr(4, "0.7"), np.array([400, 300, 200, 100])
    result = bounds(counts, channel)
    # (1 - lambda)/((p-q) n); downwards it is lambda/((p-q) n), less where lambda < 1/2
    np.testing.assert_allclose(
        result.largest_shift, (1 - counts / 1000) / ((channel.p - channel.q) * 1000)
    )


@singles
def test_no_replacement_of_an_average_report_moves_a_share_further(channel):
    n = 2000
    counts = honest_counts(channel, n)
    result = bounds(counts, channel)
    f = counts / n
    shifts = []
    for j in range(counts.size):
        faked = (1 - 1 / n) * f + np.eye(counts.size)[j] / n
        shifts.append(np.abs(linear(channel, faked) - result.estimate))
    np.testing.assert_allclose(np.max(shifts, axis=0), result.largest_shift, rtol=1e-9)


def linear(channel, shares_of_reports):
    """Return the linear estimate from fractional counts."""
    P = channel.matrix
    if P.shape[0] == P.shape[1]:
        return np.linalg.solve(P.T, shares_of_reports)
    D = np.diag(1 / P.mean(axis=0))
    return np.linalg.solve(P @ D @ P.T, P @ D @ shares_of_reports)


@pytest.mark.security
@singles
@each_case("part", BANDS)
def test_honest_about_poisoning_no_attack_by_1_5_or_10_percent_exceeds_the_stated_bounds(
    channel, part
):
    n = 2000
    fakes = round(part * n)
    honest = honest_counts(channel, n - fakes)
    truth = np.clip(linear(channel, honest / honest.sum()), 0, 1)
    reached = np.zeros((2, len(truth)), dtype=bool)
    for j in range(honest.size):
        result = bounds(honest + fakes * np.eye(honest.size, dtype=int)[j], channel)
        low, high = (getattr(result, f"{end}_{BANDS[part]}") for end in ("low", "high"))
        assert np.all(low <= truth + 1e-9)
        assert np.all(truth <= high + 1e-9)
        reached |= np.abs(np.array([low, high]) - truth) < 1e-9
    assert reached.all()


def test_the_bands_grow_with_the_fakes():
    result = bounds([400, 300, 200, 100], grr(4, "0.7"))
    assert np.all(result.low_10 <= result.low_5)
    assert np.all(result.low_5 <= result.low_1)
    assert np.all(result.high_1 <= result.high_5)
    assert np.all(result.high_5 <= result.high_10)
    assert np.all(result.low_1 < result.high_1)


def test_sets_of_options_and_bits_are_bounded_option_by_option():
    sets = SubsetSelection(5, 2, 3, 1)
    result = bounds([500, 400, 400, 400, 300], sets)
    lam = np.array([0.5, 0.4, 0.4, 0.4, 0.3])
    D = sets.p - sets.q
    np.testing.assert_allclose(result.largest_shift, np.maximum(1 - lam, lam) / (D * 1000))
    bits = BitVector(3, 1, 3, 1)
    alone = bounds([500, 400, 300], bits, n=1000)
    warner = bounds([500, 500], grr(2, "3/4"))
    assert alone.low_5[0] == pytest.approx(warner.low_5[0])
    assert alone.fakes_per_margin[0] == warner.fakes_per_margin[0]


def test_fabricated_reports_may_all_be_about_one_sampled_option():
    whole = BitVector(4, 1, 3, 1)
    sampled = BitVector(4, 1, 3, 1, sampled=1)
    from_whole = bounds([500, 500, 500, 500], whole, n=1000)
    from_sampled = bounds([250, 250, 250, 250, 125, 125, 125, 125], sampled, n=1000)
    np.testing.assert_allclose(from_sampled.largest_shift, 4 * from_whole.largest_shift)
    # 1 % of 1,000 reports are 4 % of the 250 about an option.
    assert from_sampled.low_1[0] == pytest.approx((0.5 - 0.04 * 1.5) / 0.96)
    rare = bounds([950, 40, 10, 0, 475, 20, 5, 0], sampled, n=1000)
    assert (rare.low_5[1], rare.high_5[1]) == (0, 1)
    assert (rare.low_1[3], rare.high_1[3]) == (0, 1)
    assert np.isfinite(rare.largest_shift).all()


@pytest.mark.slow
@each_case("channel", [one_bit(11, 1), hybrid(6, 2), square_wave(6, 2), grr(6, "0.5")])
@each_case("part", BANDS)
def test_a_mean_stays_in_its_band_for_any_fabricated_reports(channel, part):
    n, points = 2000, 11 if channel == one_bit(11, 1) else 6
    values, fakes = 3 + 2 * np.arange(points), round(part * n)
    honest = honest_counts(channel, n - fakes)
    truth = np.clip(mean(honest, channel, values).estimate, values[0], values[-1])
    ends = []
    # Pseudo-values of numbers have their extremes at the ends of a table's parts.
    for j in {
        0,
        1,
        min(2, honest.size - 1),
        *np.linspace(0, honest.size - 1, 12).astype(int).tolist(),
    }:
        result = poisoning_of_mean(
            honest + fakes * np.eye(honest.size, dtype=int)[j], channel, values
        )
        low, high = (getattr(result, f"{end}_{BANDS[part]}")[0] for end in ("low", "high"))
        assert low - 1e-6 <= truth <= high + 1e-6
        ends += [abs(low - truth), abs(high - truth)]
    assert min(ends) < 1e-6


def test_a_mean_among_those_who_answered_is_bounded_too():
    channel, n, fakes = square_wave(5, 3, 1), 4000, 200
    values = SILENT
    honest = honest_counts(channel, n - fakes)
    truth = mean(honest, channel, values).estimate
    for j in range(honest.size):
        result = poisoning_of_mean(
            honest + fakes * np.eye(honest.size, dtype=int)[j], channel, values
        )
        assert result.low_5[0] - 1e-6 <= truth <= result.high_5[0] + 1e-6
    assert result.largest_shift[0] > 0


def test_a_mean_of_few_answers_has_unlimited_bounds():
    result = poisoning_of_mean([120, 110, 770], grr(3, "0.8"), [1, 2, None])
    assert (result.low_10[0], result.high_10[0]) == (1, 2)
    assert np.isfinite(result.largest_shift).all()


def test_a_rejected_mean_has_no_bounds():
    for estimate in (mean, poisoning_of_mean):
        with pytest.raises(NoBaseError, match="hardly anybody"):
            estimate([5, 5, 990], grr(3, "0.8"), [1, 2, None])


def test_bounds_and_mean_agree_for_a_single_report():
    for counts in ([1, 0], [0, 1]):
        estimate = mean(counts, grr(2, "3/4"), [0, 1])
        result = poisoning_of_mean(counts, grr(2, "3/4"), [0, 1])
        assert result.estimate.tolist() == [estimate.estimate]
        assert result.fakes_per_margin.tolist() == [1]


WAYS = [
    {},
    {"level": 0.99},
    {"simultaneous": True},
    {"target": "respondents"},
    {"interval": "clopper-pearson", "level": 0.9},
]


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_the_margin_is_half_the_width_of_every_kind_of_interval(options):
    channel, counts = from_epsilon(3, 6), [210, 90, 0]
    shares = proportions(counts, channel, **options)
    result = poisoning(shares, channel)
    np.testing.assert_array_equal(result.margin, (shares.conf_high - shares.conf_low) / 2)
    assert (result.level, result.method) == (shares.level, shares.method)
    expected = np.ceil(result.margin / result.largest_shift)
    assert result.fakes_per_margin.tolist() == np.clip(expected, 1, 300).tolist()
    assert result.margin.min() > 0


def test_moving_an_unreported_option_by_a_margin_takes_as_many_fakes_as_the_formula():
    # (1 - lambda)/((p-q) n) with lambda = 0; a margin of 0 would always give 1.
    channel = from_epsilon(3, 6)
    shares = proportions([2100, 900, 0], channel, level=0.99)
    half = (shares.conf_high[2] - shares.conf_low[2]) / 2
    expected = math.ceil(half * (channel.p - channel.q) * 3000)
    assert poisoning(shares, channel).fakes_per_margin[2] == expected > 1


def test_fakes_for_a_distance_are_at_least_one_and_at_most_all():
    result = bounds([500, 500], grr(2, "3/4"))
    # One fabricated report shifts a share by .5/(.5 * 1000).
    assert result.fakes_for([0.0, 0.01]).tolist() == [1, 10]
    assert result.fakes_for(5).tolist() == [1000, 1000]


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_the_bounds_of_a_mean_use_the_displayed_mean(level):
    for channel, counts, values in [
        (one_bit(11, 1), [400, 600], range(11)),
        (square_wave(5, 3, 1), np.arange(100, 0, -1)[: square_wave(5, 3, 1).reports], SILENT),
    ]:
        estimate = mean(counts, channel, values, level=level)
        result = poisoning_of_mean(counts, channel, values, level=level)
        assert result.estimate.tolist() == [estimate.estimate]
        assert result.margin.tolist() == [(estimate.conf_high - estimate.conf_low) / 2]


def test_the_result_is_a_table_of_plain_numbers():
    result = bounds([0, 1000], grr(2, "3/4"))
    assert isinstance(result, Poisoning)
    assert result.fakes_per_margin.min() >= 1
    assert "fakes_per_margin" in repr(result)
    rows = [{**row, "method": 0} for row in result.to_rows()]
    assert all(np.isfinite(list(row.values())).all() for row in rows)


def test_estimates_that_are_impossible_have_no_bounds():
    with pytest.raises(ChannelError, match="2 shares, but the channel has 3 options"):
        poisoning(proportions([50, 50], grr(2, "3/4")), grr(3, "3/4"))
    with pytest.raises(ChannelError, match="patterns are reported by"):
        poisoning(proportions([5, 5], grr(2, "3/4")), BitVector(2, 1, 3, 1), patterns=[[0], [1]])
    with pytest.raises(DesignError, match="level = 2"):
        poisoning_of_mean([5, 5], grr(2, "3/4"), [0, 1], level=2)
    with pytest.raises(CountsError, match="one per report"):
        poisoning_of_mean([5, 5], square_wave(5, 1), range(5))
