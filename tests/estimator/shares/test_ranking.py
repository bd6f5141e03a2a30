"""Rankings: exact unbiasedness and variance of first places and mean ranks, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.errors import ChannelError, CountsError
from survey.estimator import mean_ranks, ranking
from survey.estimator.core.debiasing import left_inverse
from survey.estimator.numbers.mean import mean_ratios
from survey.estimator.shares.ranking import mean_rank_level
from survey.mechanism import grr
from survey.mechanism.channel import Floats
from survey.mechanism.numeric import one_bit
from survey.mechanism.ranking import (
    first_choice_channel,
    first_choice_counts,
    first_choice_variance,
    first_or_order,
    order_variance,
    rank_values,
)
from survey.mechanism.weight_table import FirstOrOrder, WeightTable, rankings

DESIGNS = [(3, "0.5", 1), (3, 2, 2), (4, 3, 0), (5, 1, 2), (6, 3, 1)]
"""Options, epsilon and opt-outs of designs with orders of two, three and all options."""


def place(m: int, option: int) -> Floats:
    """Return an option's place, 1 to m, in every ranking, computed without the code under test."""
    return np.array([order.index(option) + 1.0 for order in rankings(m).tolist()])


def rank_pseudo_values(channel: WeightTable, option: int) -> tuple[Floats, Floats]:
    """Return the pseudo-values of an option's rank on [-1, 1], and of having answered."""
    ratios = mean_ratios(channel, rank_values(channel, option), 1_000)
    assert not ratios.bias.any()
    return ratios.a[0], ratios.b


def test_mean_ranks_are_exactly_unbiased_for_every_ranking_and_opt_out() -> None:
    for m, epsilon, silent in DESIGNS:
        channel = first_or_order(m, epsilon, silent)
        for option in range(m):
            a, b = rank_pseudo_values(channel, option)
            answered = [1.0] * math.factorial(m) + [0.0] * silent
            scaled = [*((2 * place(m, option) - m - 1) / (m - 1)), *[0.0] * silent]
            message = f"{m} options, epsilon {epsilon}, {silent} opt-outs"
            assert np.allclose(channel.matrix @ a, scaled, atol=1e-9), message
            assert np.allclose(channel.matrix @ b, answered, atol=1e-9), message


def test_merged_counts_of_first_places_match_the_marginal_channel() -> None:
    for m, epsilon, silent in DESIGNS:
        channel = first_or_order(m, epsilon, silent)
        marginal = first_choice_channel(channel)
        firsts = [*rankings(m)[:, 0].tolist(), *range(m, m + silent)]
        merged = first_choice_counts(channel.weights, channel)
        assert (merged == marginal.weights[firsts]).all(), f"{m} options, epsilon {epsilon}"
        assert marginal.ratio <= channel.ratio


def test_variances_at_equally_frequent_rankings_are_those_that_choose_the_design() -> None:
    for m, epsilon in ((3, 2), (4, 1), (5, 3), (6, 1)):
        channel = first_or_order(m, epsilon)
        shape, uniform = channel.shape, channel.matrix.mean(axis=0)
        share = float(uniform[:m].sum()) if shape.a else 0.0
        ratio = shape.T / shape.L
        a, _ = rank_pseudo_values(channel, 0)
        # The rank has the range m - 1, which a maps to [-1, 1]; E a = 0.
        variance = float(uniform @ a**2) * ((m - 1) / 2) ** 2 / ((m * m - 1) / 12)
        orders = order_variance(m, shape.size, ratio)
        assert variance == pytest.approx(orders / (1 - share))
        G = left_inverse(first_choice_channel(channel))
        f = first_choice_channel(channel).matrix.mean(axis=0)
        exact = float(f @ (G[0] - 1 / m) ** 2) / ((1 / m) * (1 - 1 / m))
        first = first_choice_variance(m, ratio) / share if share else orders
        assert exact == pytest.approx(first), f"{m} options, epsilon {epsilon}"


def test_the_split_and_the_size_of_orders_have_the_smallest_sum_of_variances() -> None:
    for m in (3, 4, 5, 6):
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            shape = first_or_order(m, epsilon).shape
            rows = shape.rows()[0]
            ratio = math.exp(epsilon)
            first = first_choice_variance(m, ratio)
            grid = np.linspace(0.01, 0.99, 99)
            best = min(
                float((first / grid + order_variance(m, size, ratio) / (1 - grid)).min())
                for size in (2, 3)
                if size < m
            )
            # Generalized randomized response over all rankings estimates both from every report.
            best = min(best, 2 * ((ratio + math.factorial(m) - 1) / (ratio - 1)) ** 2)
            own = 2 * order_variance(m, m, ratio)
            if shape.a:
                share = rows[:m].sum() / rows.sum()
                own = first / share + order_variance(m, shape.size, ratio) / (1 - share)
            assert own <= 1.01 * best, f"{m} options, epsilon {epsilon}: {own:.2f} > {best:.2f}"


def test_epsilon_is_that_of_the_weights_and_opt_outs_do_not_increase_it() -> None:
    for m, epsilon, silent in DESIGNS:
        channel = first_or_order(m, epsilon, silent)
        assert channel.ratio.numerator * channel.shape.L == (
            channel.ratio.denominator * channel.shape.T
        )
        assert channel.epsilon <= float(epsilon)
        assert (channel.weights.sum(axis=1) == channel.total).all()


def test_impossible_designs_and_counts_are_refused_with_the_reason() -> None:
    for m in (2, 7):
        with pytest.raises(ChannelError, match=f"m = {m} options to rank must be from 3 to 6"):
            first_or_order(m, 1)
    with pytest.raises(ChannelError, match="a ranking needs a channel from `first_or_order`"):
        mean_ranks([1, 2, 3], one_bit(3, 1))
    for size, a in ((4, 1), (2, 0), (5, 1)):
        with pytest.raises(ChannelError, match=r"size = 4 must be one of 2, 3, 5|at least 1 each"):
            FirstOrOrder(5, size, a, 1, 3, 1)
    with pytest.raises(CountsError, match="must have shape"):
        ranking([1, 2, 3], first_or_order(3, 1))
    with pytest.raises(ChannelError, match="must be a WeightTable"):
        ranking([1, 2, 3], grr(3, "0.5"))  # type: ignore[arg-type]


@pytest.mark.web
@pytest.mark.parametrize("silent", [0, 1])
def test_intervals_cover_mean_ranks_and_first_places(silent: int) -> None:
    m, n, rounds, level = 4, 800, 1_000, 0.95
    rng = np.random.default_rng(22)
    channel = first_or_order(m, 2, silent)
    # Plackett and Luce with unequal strengths, so that mean ranks are near both ends.
    strength = np.array([8.0, 4.0, 2.0, 0.2])
    shares = np.ones(math.factorial(m))
    for i, order in enumerate(rankings(m)):
        left = strength[order]
        shares[i] = np.prod([left[j] / left[j:].sum() for j in range(m)])
    truths = np.append(shares * (1 - 0.15 * silent), [0.15] * silent)
    means = np.array([place(m, option) @ shares for option in range(m)])
    counts = rng.multinomial(n, truths @ channel.matrix, size=rounds)
    ratios = [mean_ratios(channel, rank_values(channel, i), n) for i in range(m)]
    scaled = (2 * means - m - 1) / (m - 1)
    for option in range(m):
        found = ratios[option].intervals(counts, level)
        covered = (found.low[0] <= scaled[option]) & (scaled[option] <= found.high[0])
        assert covered.mean() >= 0.938, f"mean rank of option {option}: {covered.mean():.3f}"
    firsts = np.array([shares[rankings(m)[:, 0] == option].sum() for option in range(m)])
    covered = np.zeros((150, m))
    for i in range(150):
        found = ranking(counts[i], channel, level=level)
        estimate = found.answered if silent else found.first
        assert estimate is not None
        covered[i] = (estimate.conf_low[:m] <= firsts) & (firsts <= estimate.conf_high[:m])
    # 600 intervals: .95 less three standard errors.
    assert covered.mean() >= 0.923, covered.mean(axis=0)
    assert mean_rank_level(m, level, simultaneous=True) == pytest.approx(0.9875)
