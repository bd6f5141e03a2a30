"""Suppression of questions, and the number of reports they still need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from survey.errors import NoBaseError
from survey.estimator import (
    Histogram,
    Proportions,
    Quantiles,
    answered_shares,
    disclosure,
    histogram,
    median,
    proportions,
    reports_needed,
)
from survey.mechanism import BitVector, SubsetSelection, from_epsilon, grr
from tests.cases import each_case

WARNER = grr(2, "3/4")


def result_with(width: float, n_effective: float) -> Proportions:
    """Return a result whose second option decides about suppression."""
    return replace(
        proportions([500, 500], WARNER),
        conf_low=np.array([0.5, 0.4]),
        conf_high=np.array([0.5, 0.4 + width]),
        n_effective=np.array([1000.0, n_effective]),
    )


@each_case(
    ("width", "n_effective", "decision"),
    [
        (0.04, 30, "show"),
        (0.06, 30, "caution"),
        (0.29, 1000, "caution"),
        (0.31, 1000, "hide"),
        (0.10, 29.9, "hide"),
        (0.04, 29.9, "hide"),
    ],
)
def test_the_widest_interval_and_the_fewest_effective_answers_decide(
    width: float, n_effective: float, decision: str
) -> None:
    assert disclosure(result_with(width, n_effective)) == decision


def test_a_question_is_suppressed_then_shown_with_caution_then_shown() -> None:
    decisions = [disclosure(proportions([n // 2, n // 2], WARNER)) for n in 10 ** np.arange(1, 7)]
    order = {"hide": 0, "caution": 1, "show": 2}
    ranks = [order[decision] for decision in decisions]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}


@pytest.mark.web
@each_case("share", [0.02, 0.1, 0.3, 0.5])
@each_case("channel", [WARNER, grr(4, "0.6"), from_epsilon(2, 4)])
def test_the_stated_number_of_reports_is_about_right(
    channel: SubsetSelection, share: float
) -> None:
    def result(n: int) -> Proportions:
        truth = np.array([share, 1 - share] + [0.0] * (channel.k - 2))
        first = np.round(n * (channel.q + (channel.p - channel.q) * truth)[1:])
        return proportions([n - first.sum(), *first], channel)

    smallest = next(n for n in range(10, 10_000, 5) if disclosure(result(n)) != "hide")
    just_before = result(round(smallest * 0.9))
    assert disclosure(just_before) == "hide"
    assert just_before.n < reports_needed(just_before) < 1.6 * smallest


@each_case("counts", [[0, 1], [1, 1], [3, 17], [60, 60]])
@each_case("simultaneous", [False, True])
def test_a_suppressed_question_needs_more_reports_than_it_has(
    counts: list[int], simultaneous: bool
) -> None:
    result = proportions(counts, WARNER, simultaneous=simultaneous)
    assert disclosure(result) == "hide"
    assert reports_needed(result) > result.n


@pytest.mark.parametrize("n", [1, 9, 47, 130])
def test_reports_needed_have_two_significant_digits(n: int) -> None:
    n_needed = reports_needed(proportions([n, 0], WARNER))
    assert len(str(n_needed).rstrip("0")) <= 2


VALUES = list(range(11))
LITTLE = from_epsilon(11, 1)


def middling(n: int) -> list[int]:
    """Return counts of n reports on eleven points through `LITTLE`, most of them in the middle."""
    truth = np.exp(-((np.arange(11) - 5) ** 2) / 8)
    counts = np.floor(n * (truth / truth.sum()) @ LITTLE.matrix).astype(int)
    counts[5] += n - counts.sum()
    return [int(count) for count in counts]


@pytest.mark.parametrize("of", [histogram, median], ids=["histogram", "median"])
def test_histograms_and_medians_are_suppressed_like_other_results(of) -> None:
    def result_of(n: int) -> Histogram | Quantiles:
        return of(middling(n), LITTLE, VALUES)

    # Histograms of 11 cells need 25 times the reports that their median does.
    decisions = [disclosure(result_of(n)) for n in (30, 30_000, 3_000_000)]
    assert decisions[0] == "hide"
    assert decisions[1] != "hide"
    assert decisions[2] == "show"
    n_needed = reports_needed(result_of(300))
    assert disclosure(result_of(n_needed // 4)) == "hide"
    assert disclosure(result_of(4 * n_needed)) != "hide"


def test_the_interval_of_a_median_between_neighbours_is_at_most_one_point_wide() -> None:
    result = median(middling(3_000_000), LITTLE, VALUES)
    assert result.conf_high[0] - result.conf_low[0] <= 1
    assert result.reach.tolist() == [0.0]
    wide = median(middling(300), LITTLE, VALUES)
    assert wide.reach[0] == pytest.approx((wide.conf_high[0] - wide.conf_low[0] - 1) / 10)


def test_an_option_without_reports_suppresses_its_question_without_a_number_needed():
    channel = BitVector(5, 2, 3, 1, alone=1, sampled=1)
    counts = [10, 15, 0, 5, 5, 4, 7, 0, 2, 1]
    shares, answered = proportions(counts, channel), answered_shares(counts, channel, [4])
    for name, result in (("proportions", shares), ("answered_shares", answered)):
        assert result.n_effective[2] == 0, name
        assert np.isnan(result.estimate[2]), name
        assert np.isnan(result.std_error[2]), name
        assert (result.conf_low[2], result.conf_high[2]) == (0, 1), name
        assert disclosure(result) == "hide", name
    with pytest.raises(NoBaseError, match="option 2 has no reports"):
        reports_needed(answered)
