"""Histograms, cumulative shares and medians: accuracy, flags and suppression."""

from __future__ import annotations

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError, NoBaseError
from survey.estimator import Result, cdf, histogram, mean, median, proportions, quantiles
from survey.estimator.core.maximum_likelihood import smooth, smoothed_shares
from survey.estimator.numbers.distribution import NOT_CONVERGED, UNRESOLVED, Share, grid_shares
from survey.estimator.numbers.quantiles import NOT_BOUNDED, Curve
from survey.mechanism import SubsetSelection, from_epsilon, from_ratio, grr
from survey.mechanism.numeric import (
    gaussian,
    geometric,
    hybrid,
    laplace,
    one_bit,
    piecewise,
    square_wave,
)
from survey.mechanism.randomized_response import exponential
from tests.benchmarks.distribution import shapes
from tests.cases import each_case

NEARNESS = [[-abs(i - j) for j in range(7)] for i in range(7)]

CHANNELS = {
    "square wave": square_wave(21, 2),
    "square wave with a no answer": square_wave(11, 2, 1),
    "piecewise": piecewise(21, 3),
    "hybrid with two no answers": hybrid(11, 3, 2),
    "geometric": geometric(7, 4),
    "Laplace": laplace(7, 5),
    "Gaussian": gaussian(7, 2),
    "exponential": exponential(NEARNESS, 3),
    "generalized randomized response": from_epsilon(7, 1),
    "inverted Warner": from_ratio(2, 1, 3),
}
channels = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)


def grid(channel) -> list[float | None]:
    """Return 10, 12, 14, ... and None for truths without an answer."""
    silent = getattr(channel, "no_answers", 0)
    truths = channel.k if isinstance(channel, SubsetSelection) else channel.truths
    return [*(10.0 + 2 * i for i in range(truths - silent)), *[None] * silent]


def expected_counts(channel, shares, n: int = 10**7):
    silent = getattr(channel, "no_answers", 0)
    truth = np.append(np.array(shares) * (0.75 if silent else 1), [0.25 / max(silent, 1)] * silent)
    exact = n * truth @ channel.matrix
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact)[: n - counts.sum()]] += 1
    return counts


def bell(channel):
    points = sum(v is not None for v in grid(channel))
    return shapes(points)["bell"]


@channels
def test_the_linear_shares_of_cells_are_the_true_ones_when_the_counts_are_as_expected(channel):
    shares, values = bell(channel), grid(channel)
    result = histogram(expected_counts(channel, shares), channel, values, 2)
    middle = (values[0] + values[len(shares) - 1]) / 2
    below = sum(s for s, v in zip(shares, values, strict=False) if v < middle)
    # Noise without a usable inverse is estimated with a bias, which the interval includes.
    slack = 1e-4 if result.std_error[0] < 0.02 else 0.05
    assert result.linear[0] == pytest.approx(below, abs=slack)
    assert result.linear.sum() == pytest.approx(1, abs=2 * slack)
    assert result.conf_low[0] <= below <= result.conf_high[0]


@pytest.mark.slow
@channels
@each_case("method", ["em", "smoothed"])
def test_shown_shares_are_shares_and_lie_in_their_intervals(channel, method):
    rng, values = np.random.default_rng(4), grid(channel)
    counts = rng.multinomial(1500, expected_counts(channel, bell(channel)) / 10**7)
    cells = min(3, sum(v is not None for v in values))
    estimate = histogram(counts, channel, values, cells, method=method)
    assert estimate.estimate.sum() == pytest.approx(1)
    for result in (estimate, cdf(counts, channel, values, method=method)):
        assert np.all(result.estimate >= 0)
        assert np.all(result.conf_low <= result.estimate)
        assert np.all(result.estimate <= result.conf_high)
    assert np.all(estimate.conf_low < estimate.conf_high)


@channels
def test_cumulative_shares_rise_to_exactly_1(channel):
    counts = expected_counts(channel, bell(channel), 5000)
    result = cdf(counts, channel, grid(channel))
    assert np.all(np.diff(result.estimate) >= -1e-12)
    last = (result.estimate[-1], result.conf_low[-1], result.conf_high[-1], result.std_error[-1])
    assert last == pytest.approx((1, 1, 1, 0))


@channels
@each_case("n", [300, 30_000])
def test_the_share_of_a_set_is_the_mean_of_its_indicator(channel, n):
    values = grid(channel)
    counts = np.random.default_rng(n).multinomial(
        n, expected_counts(channel, bell(channel)) / 10**7
    )
    result = grid_shares(counts, channel, values, "smoothed", 0.95)
    inside = result.values < (values[0] + result.values[-1]) / 2
    members = set(result.values[inside].tolist())
    indicator = mean(counts, channel, [None if v is None else float(v in members) for v in values])
    (ours,) = result.shares_of([inside])
    expected = (indicator.estimate, indicator.std_error, indicator.conf_low, indicator.conf_high)
    np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_cumulative_shares_below_all_values_are_exactly_0():
    result = cdf([400, 300, 300], grr(3, "0.6"), [1, 2, 3], at=[0, 1.5, 9])
    assert result.estimate[[0, 2]].tolist() == [0, 1]
    assert result.conf_high[0] == result.std_error[0] == 0
    assert result.estimate[1] == pytest.approx(0.5)


def test_a_cell_is_the_difference_of_cumulative_shares():
    channel, values = square_wave(11, 2), list(range(11))
    counts = expected_counts(channel, bell(channel), 3000)
    cells = histogram(counts, channel, values, [0, 3, 6, 10])
    curve = cdf(counts, channel, values, at=[2, 5, 10])
    np.testing.assert_allclose(np.cumsum(cells.estimate), curve.estimate)
    np.testing.assert_allclose(np.cumsum(cells.linear), curve.linear, atol=1e-9)


def test_a_histogram_of_every_value_of_a_question_is_its_shares():
    counts, channel = [500, 250, 250], grr(3, "0.6")
    cells = histogram(counts, channel, [1, 2, 3], [0.5, 1.5, 2.5, 3.5])
    shares = proportions(counts, channel)
    np.testing.assert_allclose(cells.linear, shares.estimate)
    np.testing.assert_allclose(cells.estimate, shares.mle)
    np.testing.assert_allclose(cells.std_error, shares.std_error, rtol=1e-3)
    np.testing.assert_allclose(cells.conf_low, shares.conf_low, atol=0.01)


def test_answers_are_counted_among_those_who_answered():
    channel = square_wave(5, 4, 1)
    counts = expected_counts(channel, [0.2] * 5)
    result = histogram(counts, channel, [1, 2, 3, 4, 5, None], 5)
    np.testing.assert_allclose(result.linear, 0.2, atol=1e-4)
    np.testing.assert_allclose(result.estimate, 0.2, atol=1e-2)
    again = histogram(counts, channel, [1, 2, 3, 4, 5, float("nan")], 5)
    np.testing.assert_array_equal(result.estimate, again.estimate)


def test_no_answers_may_be_anywhere_and_values_in_any_order():
    counts, channel = [100, 400, 200, 300], grr(4, "0.7")
    shuffled = cdf(np.array(counts)[[2, 0, 3, 1]], channel, [3, 1, None, 2])
    ordered = cdf(counts, channel, [1, 2, 3, None])
    np.testing.assert_allclose(shuffled.estimate, ordered.estimate)
    np.testing.assert_allclose(shuffled.conf_low, ordered.conf_low)


def test_a_median_is_the_value_where_half_is_reached():
    channel = square_wave(21, 4)
    shares = np.zeros(21)
    shares[[3, 9, 15]] = 0.3, 0.3, 0.4
    result = quantiles(expected_counts(channel, shares), channel, range(21), [0.2, 0.5, 0.8])
    for true, low, high in zip([3, 9, 15], result.conf_low, result.conf_high, strict=True):
        assert low <= true <= high
    assert np.all(result.conf_high - result.conf_low <= 3)
    middle = median(expected_counts(channel, shares), channel, range(21))
    assert middle.estimate.tolist() == [result.estimate[1]]
    assert middle.bounded.tolist() == [True]


def test_quantiles_of_few_reports_are_flagged_as_not_bounded():
    result = median([5, 6, 5, 4, 6], from_epsilon(5, "0.5"), range(5))
    assert result.flag == NOT_BOUNDED
    assert (result.conf_low[0], result.conf_high[0]) == (0, 4)


def test_indistinguishable_cells_are_flagged():
    channel = square_wave(51, 1)
    counts = expected_counts(channel, bell(channel), 2000)
    fine, coarse = (histogram(counts, channel, range(51), bins) for bins in (12, 2))
    assert fine.flag == UNRESOLVED
    assert not fine.resolved.any()
    assert coarse.flag == ""
    assert coarse.resolved.all()


def test_many_reports_resolve_cells_that_few_reports_do_not():
    channel = square_wave(51, 2)
    resolved = [
        histogram(expected_counts(channel, bell(channel), n), channel, range(51), 5).resolved.sum()
        for n in (300, 300_000)
    ]
    assert resolved[0] < resolved[1] == 5


def test_em_that_does_not_converge_is_flagged_and_smoothed(monkeypatch):
    monkeypatch.setattr("survey.estimator.core.maximum_likelihood.MAX_ROUNDS", 1)
    channel = square_wave(11, 1)
    counts = expected_counts(channel, bell(channel), 500)
    result = histogram(counts, channel, range(11), 2, method="em")
    assert result.flag == NOT_CONVERGED
    assert result.method == "smoothed, em did not converge"
    smoothed = histogram(counts, channel, range(11), 2, method="smoothed")
    np.testing.assert_array_equal(result.estimate, smoothed.estimate)
    assert smoothed.flag == ""


def test_smoothing_that_does_not_converge_is_flagged(monkeypatch):
    monkeypatch.setattr("survey.estimator.core.maximum_likelihood.MAX_SMOOTHING_ROUNDS", 1)
    channel = square_wave(11, 1)
    counts = expected_counts(channel, bell(channel), 500)
    result = histogram(counts, channel, range(11), 2, method="smoothed")
    assert NOT_CONVERGED in result.flag
    assert np.isfinite(result.estimate).all()


def test_large_grids_are_smoothed_and_small_ones_are_not_unless_named():
    for points, method in ((99, "em"), (100, "smoothed")):
        channel = square_wave(points, 3)
        counts = expected_counts(channel, bell(channel), 500)
        assert grid_shares(counts, channel, range(points), None, 0.95).method == method


def test_smoothing_keeps_the_sum_and_leaves_no_answers_alone():
    assert smooth(np.array([0.5, 0.1, 0.4])).sum() == pytest.approx(1)
    channel = square_wave(11, 3, 1)
    truth = np.append(np.zeros(11), 1.0)
    shares, settled = smoothed_shares(
        (truth @ channel.matrix * 10**6).astype(np.int64), channel.matrix, np.arange(11)
    )
    assert settled
    assert shares[-1] > 0.95


def test_smoothed_shares_are_nearer_a_smooth_truth_on_a_large_grid():
    channel, rng = square_wave(120, 1), np.random.default_rng(8)
    shares = shapes(120)["bell"]
    off = {"em": 0.0, "smoothed": 0.0}
    for counts in rng.multinomial(3000, shares @ channel.matrix, size=3):
        for method in off:
            estimate = grid_shares(counts, channel, range(120), method, 0.95).shares
            off[method] += np.abs(estimate - shares).sum()
    assert off["smoothed"] < off["em"] / 2


@pytest.mark.parametrize("channel", [one_bit(11, 1), one_bit(11, 1, 2), hybrid(11, "0.5")])
def test_one_bit_is_rejected_because_it_determines_only_a_mean(channel):
    counts = expected_counts(channel, np.full(11, 1 / 11), 300)
    for ask in (histogram, cdf, median):
        with pytest.raises(ChannelError, match=r"one_bit .* determine the mean .* square wave"):
            ask(counts, channel, grid(channel))


def test_one_bit_of_two_values_determines_the_distribution():
    table = exponential([[1, 0], [0, 1]], 2)
    assert histogram([600, 400], table, [0, 1], 2).estimate.sum() == pytest.approx(1)


def test_too_few_answers_are_a_named_error():
    channel = grr(3, "0.8")
    with pytest.raises(NoBaseError, match="hardly anybody seems to have answered"):
        cdf([5, 5, 990], channel, [1, 2, None])


@each_case(
    ("counts", "error"),
    [
        ([0, 0, 0], "n = 0"),
        ([1, 2], "one per report"),
        ([1, -2, 3], "must not be negative"),
        ([1, 2.5, 3], "must be a whole number"),
        ([1, float("nan"), 3], "must be a whole number"),
    ],
)
@each_case("ask", [histogram, cdf, median, quantiles])
def test_invalid_counts_are_rejected(ask, counts, error):
    with pytest.raises(CountsError, match=error):
        ask(counts, grr(3, "0.6"), [1, 2, 3])


@each_case(
    ("arguments", "error"),
    [
        ({"values": [1, 2]}, "2 entries for 3 true answers"),
        ({"values": [1, 1, None]}, "at least two of them different"),
        ({"values": [1, 2, float("inf")]}, "finite"),
        ({"bins": 1}, "bins = 1 must be from 2 to the 3"),
        ({"bins": 4}, "bins = 4 must be from 2 to the 3"),
        ({"bins": [1, 3]}, "three or more rising edges"),
        ({"bins": [3, 2, 1]}, "three or more rising edges"),
        ({"bins": [1, 2, 2.5]}, "exclude some of the values"),
        ({"bins": [0, 0.5, 3]}, "cell 0, from 0 to 0.5, contains none"),
        ({"level": 1}, "level = 1"),
        ({"method": "bayes"}, "unknown method 'bayes'; the names are em, smoothed"),
    ],
)
def test_invalid_arguments_are_rejected_by_name(arguments, error):
    with pytest.raises(ValueError, match=error):
        histogram([3, 4, 5], grr(3, "0.6"), **{"values": [1, 2, 3], "bins": 2, **arguments})


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda c: cdf([3, 4, 5], c, [1, 2, 3], at=[]), "one or more finite numbers"),
        (lambda c: cdf([3, 4, 5], c, [1, 2, 3], at=[2, 1]), "at must rise"),
        (lambda c: quantiles([3, 4, 5], c, [1, 2, 3], [0.5, 1]), "between 0 and 1"),
        (lambda c: quantiles([3, 4, 5], c, [1, 2, 3], []), "between 0 and 1"),
    ],
)
def test_invalid_places_and_shares_are_rejected(ask, error):
    with pytest.raises(ValueError, match=error):
        ask(grr(3, "0.6"))


def test_sets_of_several_options_have_no_distribution():
    with pytest.raises(ChannelError, match="one count per report"):
        histogram([2, 2, 2], SubsetSelection(3, 2, 3, 1), [1, 2, 3])


def test_results_have_rows_and_tables():
    for result in (
        histogram([400, 300, 300], grr(3, "0.6"), [1, 2, 3], 3),
        cdf([400, 300, 300], grr(3, "0.6"), [1, 2, 3]),
        median([400, 300, 300], grr(3, "0.6"), [1, 2, 3]),
    ):
        assert isinstance(result, Result)
        assert "conf_low" in repr(result)
        assert "<table>" in result._repr_html_()
        assert len(result.to_rows()) == result.estimate.size
        with pytest.raises(ValueError, match="read-only"):
            result.estimate[0] = 2


@pytest.mark.parametrize(
    ("value_low", "has_one_sided", "ends"),
    [(0.1, True, (1, 1)), (0.0, True, (0, 2)), (0.1, False, (0, 2))],
)
def test_an_end_of_a_quantile_has_the_whole_error_only_where_the_value_is_surely_given(
    value_low, has_one_sided, ends
):
    # The narrower intervals of F exclude one half, the wider ones do not.
    wide = [Share(0.45, 0.04, 0.4, 0.51), Share(0.55, 0.04, 0.49, 0.6)]
    narrow = [Share(0.45, 0.04, 0.41, 0.49), Share(0.55, 0.04, 0.51, 0.59)]
    curve = Curve(
        2,
        lambda places: [wide[place] for place in places],
        lambda place: Share(0.3, 0.05, value_low, 0.5),
        narrow.__getitem__ if has_one_sided else None,
    )
    assert curve.quantile_ends(0.5) == ends
