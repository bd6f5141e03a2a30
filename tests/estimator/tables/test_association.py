"""Phi of two randomized answers: most likely values, limits, intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from survey.errors import ChannelError, CountsError
from survey.estimator import crosstab, phi
from survey.mechanism import SubsetSelection, from_epsilon, grr
from survey.mechanism.joint_response import joint_response
from survey.mechanism.numeric import geometric
from tests.cases import each_case

COIN = grr(2, "3/4")
REPORTS = np.array([[300, 230], [220, 250]])


def of_shares(table: np.ndarray) -> float:
    u, v = table[0].sum(), table[:, 0].sum()
    return (table[0, 0] - u * v) / np.sqrt(u * (1 - u) * v * (1 - v))


def test_the_most_likely_phi_is_that_of_the_debiased_table():
    table = crosstab(REPORTS, [COIN, COIN])
    assert phi(table).estimate == pytest.approx(of_shares(table.estimate), abs=1e-4)


def test_the_ends_are_where_a_constrained_search_loses_as_much_likelihood():
    found = phi(crosstab(REPORTS, [COIN, COIN]))
    transition = np.kron(COIN.matrix, COIN.matrix)

    def negative(cells):
        return -float(REPORTS.ravel() @ np.log(cells @ transition))

    def constrained(value):
        conditions = [
            {"type": "eq", "fun": lambda cells: cells.sum() - 1},
            {"type": "eq", "fun": lambda cells: of_shares(cells.reshape(2, 2)) - value},
        ]
        start = crosstab(REPORTS, [COIN, COIN]).estimate.ravel()
        return minimize(
            negative, start, method="SLSQP", bounds=[(1e-9, 1)] * 4, constraints=conditions
        ).fun

    top = negative(crosstab(REPORTS, [COIN, COIN]).estimate.ravel())
    # P(chi2_1 > c)/2 + P(chi2_2 > c)/4 = .05 for c = 4.2306, slightly more with Student's t.
    for end in (found.conf_low, found.conf_high):
        assert 2 * (constrained(end) - top) == pytest.approx(4.2306, rel=0.02)


@each_case("options", [(0, 0), (1, 2), (2, 1)])
def test_answers_of_several_options_and_of_joint_responses_are_collapsed_exactly(options):
    shares = np.array([[0.2, 0.1, 0.1], [0.05, 0.25, 0.05], [0.1, 0.05, 0.1]])
    a, b = options
    pair = np.array([shares[a, b], shares[a].sum(), shares[:, b].sum()])
    cells = np.array(
        [[pair[0], pair[1] - pair[0]], [pair[2] - pair[0], 1 - pair[1] - pair[2] + pair[0]]]
    )
    three, joint = from_epsilon(3, 2), joint_response([3, 3], grr(9, "3/4").ratio)
    n = 10**9
    for channels, reports in (
        ([three, three], three.matrix.T @ shares @ three.matrix),
        ([joint], joint.q + (joint.p - joint.q) * shares),
    ):
        counts = np.round(n * reports).astype(np.int64)
        found = phi(crosstab(counts, channels), options)
        assert found.estimate == pytest.approx(of_shares(cells), abs=1e-3)
        assert found.conf_low < of_shares(cells) < found.conf_high


def test_reports_of_sets_count_once_in_each_pair():
    sets = SubsetSelection(k=4, d=2, T=5, L=1)
    rng = np.random.default_rng(3)
    truths = rng.integers(4, size=20_000)
    a, b = sets.perturb(truths, rng).astype(np.int64), COIN.perturb((truths == 1).astype(int), rng)
    counts = a.T @ np.eye(2, dtype=np.int64)[b]
    found = phi(crosstab(counts, [sets, COIN]), (1, 1))
    assert found.n == 20_000
    assert found.conf_low < 1 <= found.conf_high == 1


def test_few_reports_leave_phi_open_and_other_tables_are_rejected():
    wide = phi(crosstab([[3, 4], [5, 2]], [from_epsilon(2, 0.5)] * 2))
    assert (wide.conf_low, wide.conf_high) == (-1, 1)
    noise = crosstab(np.full((4, 4), 50), [geometric(4, 2)] * 2)
    with pytest.raises(ChannelError, match="given by p and q"):
        phi(noise)
    with pytest.raises(CountsError, match="two questions, not 3"):
        phi(crosstab(np.full((2, 2, 2), 50), [COIN] * 3))
    with pytest.raises(ValueError, match=r"options \(0, 2\) must be options of both"):
        phi(crosstab(REPORTS, [COIN, COIN]), (0, 2))


@pytest.mark.web
@each_case(
    ("n", "epsilon", "u", "v", "true_phi"),
    [(50, 1, 0.3, 0.3, 1.0), (50, 8, 0.1, 0.2, 0.3), (200, 4, 0.05, 0.05, 0.0)],
)
def test_intervals_contain_phi(n, epsilon, u, v, true_phi):
    channel, rng = from_epsilon(2, epsilon), np.random.default_rng(n)
    both = u * v + true_phi * np.sqrt(u * (1 - u) * v * (1 - v))
    cells = np.array([[both, u - both], [v - both, 1 - u - v + both]])
    reports = (channel.matrix.T @ cells @ channel.matrix).ravel()
    covered = 0
    for _ in range(150):
        found = phi(crosstab(rng.multinomial(n, reports).reshape(2, 2), [channel, channel]))
        covered += found.conf_low - 1e-9 <= true_phi <= found.conf_high + 1e-9
    assert covered >= 0.9 * 150
