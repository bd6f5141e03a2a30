"""Arrays with pandas labels or masks are put in order or rejected, by every public function."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest

from survey.errors import ChannelError, CountsError, SurveyError
from survey.estimator import (
    ByGroup,
    Randomized,
    consistent,
    crosstab,
    debias,
    difference,
    histogram,
    independence,
    joint_counts,
    joint_shares,
    mean,
    poststratified,
    proportions,
    raking_weights,
    reconciled,
    regression,
    subset_shares,
    weighted_reports,
)
from survey.mechanism import BitVector, grr
from survey.mechanism.numeric import geometric
from tests.cases import each_case
from tests.estimator.core.test_argument_kinds import RIGHT, answered, numbers

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


ORDER_FREE = ("at", "bins", "epsilons", "names", "no_answers", "options", "pairs", "shares")
"""Arguments whose order is that of the result, or does not matter."""


def arrays(name: str, kind: Callable[[object], Iterator[object]]) -> Iterator[dict[str, object]]:
    """Yield the arguments of a function with one array, at any depth, replaced by another kind."""
    for argument, right in RIGHT[name].items():
        for replacement in parts(right, kind):
            yield {**RIGHT[name], argument: replacement}


def parts(right: object, kind: Callable[[object], Iterator[object]]) -> Iterator[object]:
    if not isinstance(right, list | np.ndarray):
        return
    try:
        is_numeric = np.asarray(right).dtype.kind in "iuf" and len(right) > 0
    except ValueError:
        is_numeric = False
    if is_numeric:
        yield from kind(right)
    if isinstance(right, list):
        for place, element in enumerate(right):
            for replacement in parts(element, kind):
                yield [*right[:place], replacement, *right[place + 1 :]]


def masked(right: object) -> Iterator[object]:
    values = np.asarray(right)
    mask = np.zeros(values.shape, dtype=bool)
    mask.flat[0] = True
    yield np.ma.array(values, mask=mask)


def reversed_labels(right: object) -> Iterator[object]:
    """Yield the array in reverse order along each axis, with labels that say so."""
    values = np.asarray(right)
    if values.ndim == 1:
        yield pd.Series(values).iloc[::-1]
    elif values.ndim == 2:
        yield pd.DataFrame(values).iloc[::-1]
        yield pd.DataFrame(values).iloc[:, ::-1]


def computed(name: str, arguments: dict[str, object]) -> list[list[float]]:
    result = answered(name, arguments)
    found = [result] if isinstance(result, np.ndarray | float | int) else numbers(result)
    return [np.asarray(array).round(9).tolist() for array in found]


@each_case("name", RIGHT)
def test_every_public_function_rejects_masked_arrays(name):
    for arguments in arrays(name, masked):
        with pytest.raises(SurveyError, match="is a masked array"):
            answered(name, arguments)


@pytest.mark.slow
@each_case("name", [name for name in RIGHT if name not in ("simulated_grid", "tradeoff")])
def test_every_public_function_reads_reversed_labels_in_order_or_rejects_them(name):
    expected = computed(name, RIGHT[name])
    for argument, right in RIGHT[name].items():
        if argument in ORDER_FREE:
            continue
        for replacement in parts(right, reversed_labels):
            try:
                result = computed(name, {**RIGHT[name], argument: replacement})
            except SurveyError:
                continue
            assert result == expected, (argument, replacement)


def test_paired_arrays_must_have_equal_labels_in_the_same_order():
    frame = pd.DataFrame({"report": [0, 1, 2, 1, 0, 2] * 9, "age": range(54)}, range(100, 154))
    reports, ages, other = frame["report"], frame["age"], frame["age"][::-1] + 1
    by_group = ByGroup([CHANNEL, None], (other > 20).astype(int))
    for name, call in (
        ("predictors", lambda: regression(reports, CHANNEL, other)),
        ("weights", lambda: regression(reports, CHANNEL, ages, weights=other)),
        ("times", lambda: regression(reports, CHANNEL, ages, times=other)),
        ("channel.group", lambda: regression(reports, by_group, ages)),
        (
            "reports",
            lambda: regression(
                reports, CHANNEL, randomized=[Randomized("x", frame["report"][::-1], CHANNEL)]
            ),
        ),
        ("columns", lambda: joint_counts([reports, frame["report"][::-1]], [3, 3])),
        ("weights", lambda: weighted_reports(reports, other, CHANNEL)),
    ):
        with pytest.raises(CountsError, match=rf"{name}\S* is labelled 153, .* same labels"):
            call()
    shuffled = frame.sample(frac=1, random_state=1)
    assert regression(shuffled["report"], CHANNEL, shuffled[["age"]]).estimate == pytest.approx(
        regression(reports, CHANNEL, ages).estimate, abs=1e-6
    )
    with pytest.raises(CountsError, match="but reports has no labels"):
        weighted_reports([0, 1, 2], pd.Series([1, 2, 3], index=[2, 0, 1]), CHANNEL)


def test_counts_in_lists_are_aligned_one_by_one():
    rows = [pd.Series(row).sample(frac=1, random_state=2) for row in TABLE.tolist()]
    expected = poststratified(TABLE, [0.2, 0.3, 0.5], CHANNEL).estimate.tolist()
    assert poststratified(rows, [0.2, 0.3, 0.5], CHANNEL).estimate.tolist() == expected


def test_mechanisms_reject_masked_truths_and_codes():
    hidden = np.ma.array([0, 1], mask=[True, False])
    ticks = BitVector(2, 2, 3, 1)
    rng = np.random.default_rng(1)
    for call in (
        lambda: CHANNEL.perturb(hidden, rng),
        lambda: geometric(4, 2).perturb(hidden, rng),
        lambda: ticks.perturb(np.ma.array([[0, 1]], mask=[[True, False]]), rng),
        lambda: CHANNEL.count(np.ma.array([[0], [1]], mask=[[1], [0]], dtype=np.uint8)),
    ):
        with pytest.raises(ChannelError, match="is a masked array"):
            call()
    frame = pd.DataFrame([[0, 1]] * 4000)[[1, 0]]
    assert ticks.perturb(frame, rng).mean(axis=0) == pytest.approx([0.25, 0.75], abs=0.05)


def test_labels_of_patterns_sizes_strata_and_covariances_are_read():
    patterns = pd.Series([[0], [1], [0, 1]])
    shares = subset_shares([60, 30, 10], CHANNEL, patterns.tolist(), 2)
    reversed_shares = subset_shares([60, 30, 10], CHANNEL, patterns[::-1], 2)
    assert reversed_shares.estimate.tolist() == shares.estimate.tolist()
    assert joint_counts([[0, 1], [0, 1]], pd.Series([3, 2])[::-1]).shape == (3, 2)
    table, covariance = joint_shares(TABLE, [CHANNEL, CHANNEL])
    margins = [[0.3, 0.4, 0.3], [0.3, 0.4, 0.3]]
    shuffled = pd.DataFrame(covariance).sample(frac=1, random_state=3)
    expected = reconciled(table, covariance, margins).estimate
    assert reconciled(table, shuffled, margins).estimate == pytest.approx(expected)
    estimates = pd.Series([100.0, 70, 40], index=["all", "north", "south"])
    by_region = estimates.index[[0, 2, 1]]
    for strata in (
        {"parents": pd.Series([-1, 0, 0], by_region)},
        {"parents": [-1, 0, 0], "populations": pd.Series([200, 80, 120], by_region)},
    ):
        with pytest.raises(CountsError, match="'all', 'south', 'north', but estimates"):
            consistent(estimates, [10, 5, 5], **strata)
