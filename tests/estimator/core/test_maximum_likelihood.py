"""The maximum of the likelihood is found for every table and any number of reports."""

from __future__ import annotations

import numpy as np
import pytest

from survey.estimator.core.maximum_likelihood import GOAL, MAX_TRUTHS, most_likely_mixture
from survey.mechanism.numeric import geometric, hybrid, laplace, one_bit, piecewise, square_wave
from tests.cases import each_case

KINDS = (geometric, laplace, square_wave, hybrid, piecewise, one_bit)


def gap(pi, counts, P) -> float:
    """Return the upper bound max D - 1 (duality) on the missing log likelihood per report."""
    f = counts / counts.sum()
    return float((P @ (f / (pi @ P))).max()) - 1


@pytest.mark.slow
@each_case("kind", KINDS)
@each_case("epsilon", ["0.1", "1", "4", "12"])
@each_case("k", [3, 30])
def test_the_maximum_is_found_for_every_table(kind, epsilon, k):
    P, rng = kind(k, epsilon).matrix, np.random.default_rng(k)
    for n in (1, 5, 300, 10**5, 10**9):
        for pi in (np.full(len(P), 1 / len(P)), np.eye(len(P))[0], np.eye(len(P))[len(P) // 2]):
            counts = rng.multinomial(n, pi @ P)
            solution = most_likely_mixture(counts, P)
            assert solution.min() >= 0
            assert solution.sum() == pytest.approx(1)
            assert gap(solution, counts, P) <= 2 * GOAL


def test_identical_reports_have_a_maximum():
    P = laplace(20, 4).matrix
    for report in (0, P.shape[1] // 2, P.shape[1] - 1):
        counts = 10**6 * np.eye(P.shape[1], dtype=int)[report]
        assert gap(most_likely_mixture(counts, P), counts, P) <= 2 * GOAL


def test_accelerated_and_plain_steps_converge_to_the_same_shares():
    P = geometric(5, 2).matrix
    counts = np.random.default_rng(1).multinomial(2000, np.array([0.6, 0, 0.3, 0.1, 0]) @ P)
    pi, f = np.full(5, 0.2), counts / 2000
    for _ in range(20_000):
        pi = pi * (P @ (f / (pi @ P)))
    np.testing.assert_allclose(most_likely_mixture(counts, P), pi, atol=1e-4)


def test_too_many_truths_give_no_shares():
    size = MAX_TRUTHS + 1
    P = np.broadcast_to([0.5, 0.5], (size, 2))
    assert np.isnan(most_likely_mixture(np.array([1, 1]), P)).all()
