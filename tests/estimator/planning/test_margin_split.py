"""The margin of a mean is split correctly into sampling and randomization."""

from __future__ import annotations

import numpy as np
import pytest

from survey.errors import NoBaseError
from survey.estimator import margin_split_of_mean, mean
from survey.estimator.core.debiasing import pseudo_values
from survey.mechanism import from_epsilon
from survey.mechanism.numeric import geometric, one_bit, piecewise, square_wave

X = np.arange(11.0)
SHARES = np.array([3, 5, 8, 12, 15, 18, 14, 10, 8, 5, 2]) / 100
N = 1_000_000

TELLING = {
    "generalized randomized response": from_epsilon(11, 2),
    "square wave": square_wave(11, 2),
    "geometric": geometric(11, 2),
}


def counts(channel, shares, n=N):
    """Return the expected reports of n respondents with these shares."""
    return np.round(n * shares @ channel.matrix).astype(int)


@pytest.mark.parametrize("channel", TELLING.values(), ids=TELLING)
def test_the_sampling_part_is_the_margin_without_randomization(channel):
    reports = counts(channel, SHARES)
    split = margin_split_of_mean(reports, channel, X)
    variance = SHARES @ X**2 - (SHARES @ X) ** 2
    share = variance / N / mean(reports, channel, X).std_error ** 2
    assert split.randomized[0] == pytest.approx(1 - share, abs=2e-3)
    assert not split.at_most
    np.testing.assert_allclose(split.sampling**2 + split.randomization**2, split.margin**2)


def test_the_randomization_adds_the_variance_of_its_pseudo_values():
    channel = from_epsilon(11, 2)
    h = pseudo_values(channel, X, N).values
    inside = SHARES @ (channel.matrix @ h**2 - (channel.matrix @ h) ** 2)
    split = margin_split_of_mean(counts(channel, SHARES), channel, X)
    result = mean(counts(channel, SHARES), channel, X)
    assert split.randomized[0] * result.std_error**2 * N == pytest.approx(inside, rel=2e-3)


def test_no_answers_reduce_the_sample():
    channel = from_epsilon(12, 3)
    shares = np.append(0.7 * SHARES, 0.3)
    reports = counts(channel, shares)
    split = margin_split_of_mean(reports, channel, [*X, None])
    variance = SHARES @ X**2 - (SHARES @ X) ** 2
    without_randomization = variance / (0.7 * N)
    result = mean(reports, channel, [*X, None])
    assert 1 - split.randomized[0] == pytest.approx(
        without_randomization / result.std_error**2, rel=5e-3
    )


@pytest.mark.parametrize(
    "channel", [one_bit(11, 2), piecewise(11, 2)], ids=["one bit", "piecewise"]
)
def test_sampling_is_an_upper_bound_if_the_variance_is_unknown(channel):
    reports = counts(channel, SHARES)
    split = margin_split_of_mean(reports, channel, X)
    truth = (SHARES @ X**2 - (SHARES @ X) ** 2) / N
    bound = (1 - split.randomized[0]) * mean(reports, channel, X).std_error ** 2
    assert bound >= 0.99 * truth
    if channel.reports == 2:
        assert split.at_most


def test_the_parts_of_a_margin_of_few_reports_are_never_negative():
    channel = square_wave(11, "0.2")
    rng = np.random.default_rng(3)
    for _ in range(50):
        reports = np.bincount(rng.integers(0, channel.reports, 40), minlength=channel.reports)
        split = margin_split_of_mean(reports, channel, X)
        assert 0 <= split.randomized[0] <= 1
        assert 0 <= split.sampling[0] <= split.margin[0]


def test_a_rejected_mean_has_no_margin_to_split():
    with pytest.raises(NoBaseError):
        margin_split_of_mean([10, 10, 980], from_epsilon(3, 1), [1, 2, None])
