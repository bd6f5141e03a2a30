"""Conditional shares: values, coverage and rejected arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from survey.errors import CountsError
from survey.estimator import conditional, crosstab
from survey.mechanism import SubsetSelection, WeightTable, from_epsilon, grr
from survey.mechanism.weight_table import Explicit
from tests.cases import each_case

WIDE = WeightTable(Explicit(((5, 1, 1, 3), (1, 5, 1, 3), (1, 1, 5, 3))))


def test_conditional_shares_are_ratios_of_the_table_and_add_up_to_one():
    table = crosstab([[3000, 900], [1000, 2000], [500, 2500]], [grr(3, "3/4"), grr(2, "3/4")])
    down, across = conditional(table, 1), conditional(table, 0)
    np.testing.assert_allclose(down.estimate, table.estimate / table.estimate.sum(axis=0))
    np.testing.assert_allclose(
        across.estimate, (table.estimate / table.estimate.sum(axis=1)[:, None]).T
    )
    np.testing.assert_allclose(down.estimate.sum(axis=0), 1)
    assert across.estimate.shape == (2, 3)
    column = conditional(table, 1, options=[1])
    np.testing.assert_allclose(column.estimate[:, 0], down.estimate[:, 1])
    assert column.options.tolist() == [1]


def test_the_most_likely_table_gives_the_same_conditional_shares():
    counts = [[3000, 900], [1000, 2000]]
    linear, em = (crosstab(counts, [grr(2, "3/4")] * 2, method=m) for m in ("linear", "em"))
    np.testing.assert_allclose(conditional(linear, 1).conf_low, conditional(em, 1).conf_low)


def test_questions_of_a_larger_table_are_named():
    channels = [grr(2, "3/4"), WIDE, grr(3, "3/4")]
    counts = np.random.default_rng(1).multinomial(20_000, np.full(24, 1 / 24)).reshape(2, 4, 3)
    table = crosstab(counts, channels)
    result = conditional(table, given=2, of=0)
    pair = crosstab(counts.sum(axis=1), [channels[0], channels[2]])
    np.testing.assert_allclose(result.estimate, conditional(pair, 1).estimate)
    with pytest.raises(ValueError, match="two different questions"):
        conditional(table, given=2)
    for condition, of in ((3, 0), (0, 0), (-1, 0)):
        with pytest.raises(ValueError, match="two different questions"):
            conditional(table, given=condition, of=of)


def test_shares_among_respondents_with_a_share_near_0_are_rejected():
    nobody = crosstab([[375, 125], [375, 125]], [grr(2, "3/4")] * 2)
    with pytest.raises(CountsError, match=r"P\(question 1 = \[1\]\) is not clearly above 0"):
        conditional(nobody, 1)
    assert conditional(nobody, 1, options=[0]).estimate.shape == (2, 1)
    with pytest.raises(CountsError, match="not clearly above 0"):
        conditional(crosstab([[1, 0], [0, 0]], [grr(2, "3/4")] * 2), 1)
    for options in ([], [2], [-1]):
        with pytest.raises(ValueError, match="options"):
            conditional(nobody, 1, options=options)
    with pytest.raises(ValueError, match="level"):
        conditional(nobody, 1, level=1.5)


def coverage(P: np.ndarray, channel: SubsetSelection, n: int, rounds: int) -> np.ndarray:
    """Return the coverage of row shares for each column that was estimated."""
    rng = np.random.default_rng(n)
    F = channel.matrix.T @ P @ channel.matrix
    hits, n_shown = np.zeros(P.shape), np.zeros(len(P))
    for counts in rng.multinomial(n, F.ravel() / F.sum(), size=rounds):
        table = crosstab(counts.reshape(P.shape), [channel, channel])
        for b in range(len(P)):
            try:
                result = conditional(table, 1, options=[b])
            except CountsError:
                continue
            truth = P[:, b] / P[:, b].sum()
            low, high = result.conf_low[:, 0], result.conf_high[:, 0]
            assert np.all(low < high)
            hits[:, b] += (low <= truth) & (truth <= high)
            n_shown[b] += 1
    often = n_shown > rounds / 2
    return hits[:, often] / n_shown[often]


FALLING = np.outer([0.7, 0.2, 0.1], [0.6, 0.3, 0.1])
TABLES = {
    "unrelated": np.full((3, 3), 1 / 9),
    "the same answer": np.eye(3) / 3,
    "falling": FALLING,
}


@pytest.mark.web
@pytest.mark.parametrize("P", TABLES.values(), ids=TABLES)
def test_conditional_shares_are_covered(P):
    minima = coverage(P, from_epsilon(3, 2), 1000, 150)
    assert minima.min() >= 0.945 - 4 * math.sqrt(0.05 / 150)


@pytest.mark.long
@each_case("P", TABLES.values())
@each_case(("epsilon", "n"), [("1", 2000), ("2", 200), ("2", 2000), ("4", 100)])
def test_conditional_shares_are_covered_on_a_grid(P, epsilon, n):
    rounds = 1500
    minima = coverage(P, from_epsilon(3, epsilon), n, rounds)
    assert minima.min() >= 0.93 - 3 * math.sqrt(0.05 / rounds)
