"""Planned margins are the mean half widths of the intervals that will be read."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from survey.errors import DesignError
from survey.estimator import (
    answered_shares,
    finite_shares,
    histogram,
    margin_of,
    mean,
    proportions,
    required_n,
    subset_shares,
)
from survey.estimator.core.intervals import Chances, confidence_interval
from survey.estimator.planning.expected_margin import (
    PLANNED_NO_ANSWER,
    answered_margin,
    binomial_margin,
    cell_margin,
    expected_reports,
    finite_margin,
    mean_margin,
    table_margin,
)
from survey.estimator.planning.sample_size import grr_chances
from survey.mechanism import BitVector, best, from_epsilon
from survey.mechanism.numeric import geometric, hybrid, square_wave
from survey.mechanism.simulation import population
from tests.cases import each_case


def enumerated(n, chances, share, level=0.95, interval="feldman-cousins"):
    """Return the mean half width over every outcome, without any approximation."""
    counts = np.arange(n + 1)
    low, high = confidence_interval(counts, n, chances, level, interval)
    lam = chances.q + (chances.p - chances.q) * share
    return float(binom.pmf(counts, n, lam) @ (high - low)) / 2


@pytest.mark.slow
@each_case(
    ("n", "k", "epsilon", "share"),
    [
        *[(5, 2, 12, 0.001), (44, 2, 8, 0.01), (300, 2, 8, 0.0), (60, 4, 6, 1.0), (90, 2, 3, 0.5)],
        *[(400, 2, 1, 0.5), (400, 5, 1, 0.1), (500, 10, 0.3, 0.2), (250, 3, 0.1, 0.5)],
        *[(1200, 4, 2, 0.3), (1900, 2, 4, 0.5), (2300, 2, 2, 0.6), (2300, 2, 0.5, 0.1)],
    ],
)
def test_a_margin_is_the_mean_half_width_over_every_outcome(n, k, epsilon, share):
    chances = grr_chances(k, epsilon)
    exact = enumerated(n, chances, share)
    assert binomial_margin(n, chances, share, 0.95) == pytest.approx(exact, rel=0.008)
    assert margin_of(n, epsilon=epsilon, k=k, share=share).margin == pytest.approx(exact, rel=0.008)


@each_case("level", [0.8, 0.99])
@each_case("interval", ["feldman-cousins", "wilson", "clopper-pearson", "wilson-hull"])
def test_a_margin_is_that_of_the_level_and_the_interval(level, interval):
    chances = grr_chances(3, 2)
    planned = margin_of(150, epsilon=2, k=3, share=0.2, level=level, interval=interval).margin
    exact = enumerated(150, chances, 0.2, level, interval)
    assert planned == pytest.approx(exact, rel=0.004)


@each_case(("epsilon", "share"), [(0.02, 0.5), (0.03, 0.1), (1, 0.5), (2, 0.01)])
def test_large_surveys_are_enumerated_on_a_smaller_scale(epsilon, share):
    n, chances = 100_000, grr_chances(2, epsilon)
    exact = enumerated(n, chances, share, interval="wilson")
    planned = binomial_margin(n, chances, share, 0.95, "wilson")
    assert planned == pytest.approx(exact, rel=0.008)


def test_rare_wrong_reports_need_more_reports_than_standard_errors_say():
    # z standard errors: 5 and 44 reports, whose intervals are ±.250 and ±.043.
    for epsilon, share, n in ((12, 0.001, 52), (8, 0.01, 69)):
        plan, chances = required_n(0.03, epsilon=epsilon, share=share), grr_chances(2, epsilon)
        assert plan.n == n
        assert enumerated(n, chances, share) <= 0.03 < enumerated(n - 1, chances, share)


@pytest.mark.slow
@each_case(
    ("n", "N", "k", "epsilon", "share"),
    [(200, 300, 2, 1, 0.4), (100, 400, 2, 8, 0.02), (120, 120, 3, 2, 0.3), (150, 600, 4, 1, 0.1)],
)
def test_a_margin_in_a_population_is_that_of_its_interval(n, N, k, epsilon, share):
    channel, rng, widths = from_epsilon(k, epsilon), np.random.default_rng(3), []
    for with_answer in rng.hypergeometric(round(N * share), N - round(N * share), n, 120):
        supporting = rng.binomial(with_answer, channel.p) + rng.binomial(n - with_answer, channel.q)
        rest = np.diff(np.linspace(0, n - supporting, k).round().astype(int))
        found = finite_shares([supporting, *rest], channel, N)
        widths.append(found.conf_high[0] - found.conf_low[0])
    planned = finite_margin(n, Chances(channel.p, channel.q), share, 0.95, N)
    assert planned == pytest.approx(np.mean(widths) / 2, rel=0.03)


A = 1 - PLANNED_NO_ANSWER


def answered_half_widths(channel, n, share, no_answers, answers=None, patterns=None, rounds=40):
    """Return half widths of the first option's share among simulated people who answered."""
    silent, rng = len(no_answers), np.random.default_rng(5)
    if answers is None:
        k = channel.truths
        shares = [A * share] + [A * (1 - share) / (k - silent - 1)] * (k - silent - 1)
    else:
        shares = [A * share, A * (1 - share)]
    shares += [(1 - A) / silent] * silent
    for _ in range(rounds):
        counts = population(channel, shares, n, rng, answers)
        size = None if patterns else n
        found = answered_shares(counts, channel, no_answers, n=size, patterns=patterns)
        yield (found.conf_high[0] - found.conf_low[0]) / 2


PATTERNS = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (3,), (4,)]
TICKED = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1]])

ANSWERED = {
    "randomized response": (from_epsilon(5, 1), 1000, 0.3, [4], {"answers": 4}),
    "few wrong reports": (from_epsilon(3, 7), 60, 0.05, [2], {"answers": 2}),
    "two opt-outs": (from_epsilon(6, 3), 400, 0.1, [4, 5], {"answers": 4}),
    "sets": (best(12, 1), 2000, 0.3, [11], {"answers": 11}),
    "bits": (BitVector(5, 3, 4, 1, alone=2), 1000, 0.2, [4], {"answers": 4}),
    "sampled bits": (BitVector(5, 3, 6, 1, 2, 2), 1500, 0.3, [4], {"answers": 4}),
    "patterns": (from_epsilon(8, 3), 800, 0.2, [4], {"answers": 4, "in_patterns": 3}),
}


@pytest.mark.web
@each_case("name", ANSWERED)
def test_a_margin_among_those_who_answered_is_that_of_simulated_surveys(name):
    channel, n, share, no_answers, sizes = ANSWERED[name]
    truths = {"answers": TICKED} if isinstance(channel, BitVector) else {}
    if "in_patterns" in sizes:
        truths = {"answers": np.array([0, 1, 7]), "patterns": PATTERNS}
    widths = list(answered_half_widths(channel, n, share, no_answers, **truths))
    planned = answered_margin(channel, n, share, 0.95, no_answers=len(no_answers), **sizes)
    error = np.std(widths) / np.sqrt(len(widths))
    assert planned == pytest.approx(np.mean(widths), rel=0.02, abs=3 * error)


@pytest.mark.slow
@each_case(("epsilon", "silent"), [(3, 0), (3, 1), (5, 1)])
def test_the_margin_of_a_table_is_that_of_its_widest_option(epsilon, silent):
    channel, rng, n = geometric(5, epsilon, silent), np.random.default_rng(7), 2000
    base = A if silent else 1.0
    widths = np.zeros(5)
    for option in range(5):
        shares = np.append(np.full(5, base * 0.7 / 4), np.full(silent, 1 - base))
        shares[option] = base * 0.3
        for _ in range(12):
            counts = population(channel, shares.tolist(), n, rng)
            found = (
                answered_shares(counts, channel, [5]) if silent else proportions(counts, channel)
            )
            widths[option] += (found.conf_high[option] - found.conf_low[option]) / 24
    planned = table_margin(channel, n, 0.3, 0.95, [5] if silent else [])
    assert planned == pytest.approx(widths.max(), rel=0.03)


NUMBERS = {
    "hybrid": (hybrid(11, 1), 0),
    "hybrid with an opt-out": (hybrid(11, 2, 1), 1),
    "square wave with an opt-out": (square_wave(11, 2, 1), 1),
    "randomized response": (from_epsilon(11, 3), 0),
}


@pytest.mark.web
@each_case("name", NUMBERS)
@each_case("n", [60, 400])
def test_the_margins_of_a_mean_and_of_cells_are_those_of_simulated_surveys(name, n):
    channel, silent = NUMBERS[name]
    rng, values = np.random.default_rng(11), [*range(11), *[None] * silent]
    truths = np.append(np.full(11, A if silent else 1.0) / 11, np.full(silent, 1 - A))
    means, cells = [], []
    for _ in range(30):
        counts = population(channel, truths.tolist(), n, rng)
        found = mean(counts, channel, values)
        means.append((found.conf_high - found.conf_low) / 2)
        if n > 60 and "hybrid" not in name:
            split = histogram(counts, channel, values, [0, 3, 8, 11])
            cells.append((split.conf_high - split.conf_low)[1] / 2)
    planned = 10 * mean_margin(channel, silent, n, 0.95)
    assert planned == pytest.approx(np.mean(means), rel=0.03)
    if cells:
        masks = tuple(
            tuple(low <= i < high for i in range(11)) for low, high in ((0, 3), (3, 8), (8, 11))
        )
        planned = cell_margin(channel, masks, silent, n, 0.95)
        assert planned == pytest.approx(np.mean(cells), rel=0.05)


def test_expected_reports_are_those_of_the_channel():
    truths = np.array([0.2, 0.5, 0.3])
    for channel in (from_epsilon(3, 1), geometric(3, 1)):
        np.testing.assert_allclose(expected_reports(channel, truths), truths @ channel.matrix)


def test_the_margin_of_patterns_is_that_of_their_own_chances():
    channel, n = from_epsilon(4, 2), 300
    patterns, rng = [(0,), (1,), (0, 1), ()], np.random.default_rng(1)
    found = [
        subset_shares(population(channel, [0.3, 0.7, 0, 0], n, rng), channel, patterns, 2)
        for _ in range(40)
    ]
    width = np.mean([shares.conf_high[0] - shares.conf_low[0] for shares in found]) / 2
    chances = Chances(channel.p + channel.q, 2 * channel.q)
    assert binomial_margin(n, chances, 0.3, 0.95) == pytest.approx(width, rel=0.02)


def test_an_interval_that_no_survey_has_is_rejected_by_name():
    with pytest.raises(DesignError, match="must be one of feldman-cousins, wilson-hull"):
        margin_of(100, epsilon=1, interval="wald")
    with pytest.raises(DesignError, match="for an unlimited population"):
        required_n(0.1, epsilon=1, interval="wilson", population=1000)
