"""Counts with pandas labels are aligned by label or rejected."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from survey.errors import CountsError
from survey.estimator import (
    crosstab,
    debias,
    difference,
    histogram,
    independence,
    joint_shares,
    mean,
    poststratified,
    proportions,
    raking_weights,
)
from survey.mechanism import BitVector, grr

CHANNEL = grr(3, "3/4")
REPORTS = pd.Series([2] * 50 + [0] * 30 + [1] * 20)
COUNTS = [30, 20, 50]
TABLE = np.array([[30, 20, 10], [20, 40, 15], [5, 15, 45]])


def test_value_counts_give_the_estimates_of_the_counts_in_the_order_of_the_options():
    by_frequency = REPORTS.value_counts()
    assert by_frequency.index.tolist() == [2, 0, 1]
    for name, estimate in (
        ("proportions", lambda counts: proportions(counts, CHANNEL).estimate),
        ("histogram", lambda counts: histogram(counts, CHANNEL, [1, 2, 3], bins=3).estimate),
        ("mean", lambda counts: mean(counts, CHANNEL, [1, 2, 3]).estimate),
        ("difference", lambda counts: difference(counts, [10, 10, 10], CHANNEL).estimate),
        ("known answers", lambda counts: difference([9, 9, 9], counts, CHANNEL, None).estimate),
    ):
        expected = estimate(COUNTS)
        assert np.array_equal(estimate(by_frequency), expected), name
        assert np.array_equal(estimate(by_frequency.sort_index()), expected), name
    shares = debias(REPORTS.value_counts(normalize=True), CHANNEL)
    assert shares.tolist() == debias([0.3, 0.2, 0.5], CHANNEL).tolist()


def test_tables_are_aligned_along_rows_and_columns():
    shuffled = pd.DataFrame(TABLE).loc[[2, 0, 1], [1, 2, 0]]
    channels = [CHANNEL, CHANNEL]
    for name, estimate in (
        ("crosstab", lambda table: crosstab(table, channels).estimate),
        ("joint_shares", lambda table: joint_shares(table, channels)[0]),
        ("independence", lambda table: independence(table).p_value),
        ("raking_weights", lambda table: raking_weights(table, [[1, 1, 1], [1, 1, 1]])),
    ):
        assert np.array_equal(estimate(shuffled), estimate(TABLE)), name


def test_strata_keep_their_order_and_may_have_names():
    labelled = pd.DataFrame(TABLE, index=["north", "west", "south"])[[2, 0, 1]]
    expected = poststratified(TABLE, [0.2, 0.3, 0.5], CHANNEL).estimate
    assert poststratified(labelled, [0.2, 0.3, 0.5], CHANNEL).estimate.tolist() == expected.tolist()


def test_other_labels_are_rejected_with_the_labels_that_would_be_right():
    for labels in (["a", "b", "c"], [1, 2, 3], [0, 0, 1], [0, 1, 3], ["a", 1, (2, 3)]):
        with pytest.raises(CountsError, match="labels must be the codes 0 to 2, each once"):
            proportions(pd.Series(COUNTS, index=labels), CHANNEL)
    with pytest.raises(CountsError, match="labelled 'x', 'y', 'z'"):
        crosstab(pd.DataFrame(TABLE, columns=["x", "y", "z"]), [CHANNEL, CHANNEL])


def test_counts_of_sampled_bits_are_aligned_over_both_halves():
    channel = BitVector(2, 2, 3, 1, sampled=1)
    counts = pd.Series([12, 8, 5, 3])
    expected = proportions(counts.to_numpy(), channel).estimate
    assert proportions(counts[[3, 1, 0, 2]], channel).estimate.tolist() == expected.tolist()
