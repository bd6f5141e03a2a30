"""Intervals of cells, cumulative shares and quantiles have their nominal coverage."""

from __future__ import annotations

import numpy as np
import pytest

from survey.estimator import median
from survey.estimator.numbers.distribution import set_ratios
from survey.mechanism import from_epsilon
from survey.mechanism.numeric import hybrid, laplace, square_wave
from tests.benchmarks.distribution import (
    CHANNELS,
    MIN_COVERAGE,
    below,
    draws,
    fresh_coverage,
    hits,
    measure,
    shapes,
    simulated_intervals,
    sizes,
    truths,
    worst_intervals,
)
from tests.cases import each_case

ROUNDS = 1000
NOISE = 0.025
"""Tolerance of 3.6 standard errors for the number of rounds."""

SMALL = {
    "square wave": square_wave(11, 3),
    "hybrid with a no answer": hybrid(7, 3, 1),
    "generalized randomized response": from_epsilon(5, 2),
}


@pytest.mark.web
@each_case("channel", SMALL.values())
@each_case("shape", ["bell", "one value", "both ends"])
def test_intervals_cover(channel, shape):
    points = sizes(channel)[0]
    for kind, rows in measure(channel, shapes(points)[shape], 300, ROUNDS).items():
        assert rows[..., 0].mean(axis=1).min() >= 0.95 - NOISE, kind


def covered_at_the_last_place(channel, shape: str, n: int, rounds: int) -> float:
    points = sizes(channel)[0]
    shares, sets = shapes(points)[shape], [below(points)[-1]]
    ratios = set_ratios(channel, truths(channel), sets, n)
    intervals = simulated_intervals(ratios, np.array(list(draws(channel, shares, n, rounds, 7))))
    return float(hits(intervals, 2 * np.array(sets) @ shares - 1)[..., 0].mean())


def test_intervals_allow_for_rare_reports_that_did_not_occur():
    # A rare report (1 in 100) has seventy times the usual weight. An eighth of the surveys of 200
    # do not contain it and underestimate the variance, so Student's interval covers only .89.
    assert covered_at_the_last_place(laplace(21, 4), "bell", 200, 4000) >= MIN_COVERAGE


def test_one_call_computes_many_surveys():
    channel = hybrid(7, 3, 1)
    counts = np.array(list(draws(channel, shapes(7)["edge"], 400, 3, 1)))
    reading = set_ratios(channel, truths(channel), [below(7)[2]], 400)
    together = reading.intervals(counts, 0.95)
    for place, row in enumerate(counts):
        for all_of, alone in zip(together, reading.intervals(row[None], 0.95), strict=True):
            assert all_of[0, place] == pytest.approx(alone[0, 0], abs=1e-7)


def test_surveys_with_too_few_answers_are_rejected():
    channel = from_epsilon(4, 1)
    reading = set_ratios(channel, np.array([0, 1, 2, np.nan]), [below(3)[0]], 1000)
    result = reading.intervals(np.array([[5, 5, 5, 985]]), 0.95)
    assert np.isnan(result.estimate).all()
    assert (result.low[0, 0], result.high[0, 0]) == (-1, 1)


def test_a_wider_level_gives_wider_intervals_of_a_median():
    channel, rng = square_wave(21, 2), np.random.default_rng(3)
    counts = rng.multinomial(800, shapes(21)["bell"] @ channel.matrix)
    widths = [
        float(np.ptp([result.conf_low, result.conf_high]))
        for result in (median(counts, channel, range(21), level=level) for level in (0.5, 0.95))
    ]
    assert widths[0] < widths[1]


@pytest.mark.long
@each_case("channel", CHANNELS.values())
def test_the_worst_interval_of_every_channel_covers(channel):
    worst, _ = worst_intervals(channel, 150)
    for kind, intervals in worst.items():
        for interval in intervals:
            # The slack is less than two standard errors of 4,000 rounds.
            coverage = fresh_coverage(channel, kind, interval, 4000)
            assert coverage >= MIN_COVERAGE - 0.006, (kind, interval)
