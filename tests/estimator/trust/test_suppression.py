"""Suppression is decided by n, channel and question, never by the answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from survey.estimator import (
    answered_shares,
    conditional,
    crosstab,
    disclosure,
    histogram,
    mean,
    median,
    poststratified,
    proportions,
    regression,
    reports_needed,
    standardized_shares,
    subset_shares,
    weighted_shares,
)
from survey.estimator.core.debiasing import axis, left_inverse, pseudo_values
from survey.estimator.regression.logistic_regression import Randomized
from survey.estimator.tables.crosstab import PairDesign
from survey.estimator.trust.suppression import HIDDEN_MARGIN, SHOWN_MARGIN
from survey.estimator.trust.worst_case import (
    REFUSAL_RATE,
    answered_worst_case,
    conditional_worst_case,
    crosstab_worst_case,
    histogram_worst_case,
    joint_regression_worst_case,
    mean_worst_case,
    quantile_worst_case,
    regression_worst_case,
    standardized_worst_case,
)
from survey.mechanism import BitVector, SubsetSelection, from_epsilon, grr
from survey.mechanism.numeric import one_bit, square_wave
from tests.cases import each_case

WARNER = grr(2, "3/4")
FOUR = from_epsilon(4, 1)
WAVE = square_wave(7, 2)
VALUES = tuple(range(7))
BITS = BitVector(4, 3, 3, 1, alone=1)
SAMPLED = BitVector(4, 3, 3, 1, alone=1, sampled=2)
PATTERNS = [[0], [1], [0, 1], [2]]
Z = 1.959964


def table(counts: list[int]) -> np.ndarray:
    """Return counts of the sixteen pairs of reports to two questions of four options."""
    return np.reshape(counts, (4, 4))


RESULTS: dict[str, tuple[int, Callable]] = {
    "shares": (4, lambda c: proportions(c, FOUR)),
    "sets": (2, lambda c: proportions([c[0], c[1], *c], SubsetSelection(4, 2, 3, 1))),
    "bits": (2, lambda c: proportions([*c, *c], BITS, n=int(c.sum()))),
    "patterns": (4, lambda c: subset_shares(c, FOUR, PATTERNS, 3)),
    "table": (WAVE.reports, lambda c: proportions(c, WAVE)),
    "mean": (WAVE.reports, lambda c: mean(c, WAVE, VALUES)),
    "median": (WAVE.reports, lambda c: median(c, WAVE, VALUES)),
    "histogram": (WAVE.reports, lambda c: histogram(c, WAVE, VALUES, 3)),
    "crosstab": (16, lambda c: crosstab(table(c), [FOUR, FOUR])),
    "likely crosstab": (16, lambda c: crosstab(table(c), [FOUR, FOUR], method="em")),
    "weights": (4, lambda c: weighted_shares([c, c], [1, 5], FOUR)),
    "strata": (4, lambda c: poststratified([c, c], [1, 5], FOUR)),
}
"""Results of counts whose sum decides everything, by the number of counts."""


@pytest.mark.slow
@each_case("name", list(RESULTS))
def test_the_decision_and_the_number_needed_are_the_same_for_all_counts(name: str) -> None:
    size, result_of = RESULTS[name]
    rng = np.random.default_rng(1)
    counts = [
        np.eye(size, dtype=np.int64)[0] * 900,
        *rng.multinomial(900, rng.dirichlet(np.full(size, 0.3)), size=5),
    ]
    results = [result_of(c) for c in counts]
    assert len({(disclosure(result), reports_needed(result)) for result in results}) == 1


def test_ratios_are_decided_like_other_results() -> None:
    """Ratios of some counts do not exist; all others get the same decision."""
    rng = np.random.default_rng(2)
    decisions = []
    for shares in rng.dirichlet(np.full(4, 4.0), size=5):
        counts = np.round(5_000 * shares @ FOUR.matrix).astype(int)
        joint = np.round(np.outer(shares @ FOUR.matrix, [0.3, 0.7]) * 5_000).astype(int)
        joint[0, 0] += 5_000 - joint.sum()
        counts[0] += 5_000 - counts.sum()
        crossed = crosstab(joint, [FOUR, grr(2, "4/5")])
        results = [
            answered_shares(counts, FOUR, [3]),
            mean(counts, FOUR, [1, 2, 3, None]),
            conditional(crossed, 1),
            standardized_shares(crossed, [1, 3]),
        ]
        decisions.append(tuple((disclosure(r), reports_needed(r)) for r in results))
    assert len(set(decisions)) == 1
    assert {decision for decision, _ in decisions[0]} <= {"show", "caution"}


@each_case("channel", [WARNER, FOUR, from_epsilon(10, 3), SubsetSelection(6, 2, 5, 1)])
def test_the_thresholds_are_margins_at_the_least_favourable_share(
    channel: SubsetSelection,
) -> None:
    def result_of(n: int) -> object:
        return proportions([n] * channel.d + [0] * (channel.k - channel.d), channel)

    f = np.linspace(channel.q, channel.p, 100_001)
    V = (f * (1 - f)).max() / (channel.p - channel.q) ** 2
    for margin, before, after in (
        (HIDDEN_MARGIN, "hide", "caution"),
        (SHOWN_MARGIN, "caution", "show"),
    ):
        n = math.ceil(V * (Z / margin) ** 2)
        assert [disclosure(result_of(n - 1)), disclosure(result_of(n))] == [before, after]
    assert reports_needed(result_of(30)) == math.ceil(V * (Z / HIDDEN_MARGIN) ** 2)


def test_useful_figures_are_shown() -> None:
    """An earlier rule suppressed the first of these in 56% of surveys, at a margin of 2 points."""
    assert disclosure(proportions([60, 440], from_epsilon(2, 2))) == "caution"
    assert disclosure(proportions([30, 470], from_epsilon(2, "0.7"))) == "caution"
    assert disclosure(proportions([250, 250], from_epsilon(2, "0.5"))) == "hide"


def test_several_results_get_the_strictest_decision() -> None:
    results = [proportions([n, n], WARNER) for n in (5_000, 500, 50)]
    assert [disclosure(*results[:end]) for end in (1, 2, 3)] == ["show", "caution", "hide"]
    assert reports_needed(*results) == reports_needed(results[0])


def test_sampled_options_need_as_many_times_more_reports() -> None:
    everything = reports_needed(proportions([50, 50, 50, 50], BITS, n=200))
    sampled = reports_needed(proportions([80, 110, 120, 90, 50, 50, 50, 50], SAMPLED))
    assert sampled in (2 * everything - 1, 2 * everything)


def test_unequal_weights_need_more_reports() -> None:
    equal = weighted_shares([[300, 200], [300, 200]], [1, 1], WARNER)
    unequal = weighted_shares([[300, 200], [300, 200]], [1, 9], WARNER)
    # (sum w)^2 / (n sum w^2) = 10^2 / (2 (1 + 81))
    assert reports_needed(equal) == 171
    assert reports_needed(unequal) == math.ceil(171 * 164 / 100)


# Second derivations: the variance of single reports, at answers drawn at random and at corners.
def distributions(truths: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return shares of all truths: random ones, all pairs of truths, and single truths."""
    eye = np.eye(truths)
    pairs = [
        x * eye[i] + (1 - x) * eye[j]
        for i in range(truths)
        for j in range(i)
        for x in np.linspace(0, 1, 41)
    ]
    return [*pairs, *rng.dirichlet(np.full(truths, 0.3), size=200)]


def variance(matrix: np.ndarray, shares: np.ndarray, values: np.ndarray) -> float:
    f = shares @ matrix
    return float(f @ values**2 - (f @ values) ** 2)


def check_worst(case: object, variances: list[float]) -> None:
    """The case bounds all variances, and the largest of them is within 2% of it."""
    worst = case.margin(1_000) ** 2 * 1_000 / Z**2
    assert max(variances) <= worst * (1 + 1e-6)
    assert max(variances) >= worst * 0.98


@each_case("channel", [FOUR, square_wave(5, 2), one_bit(5, 1)])
def test_the_worst_case_of_a_mean_is_its_largest_variance(channel: object) -> None:
    values = np.arange(channel.truths) / (channel.truths - 1)
    a = pseudo_values(channel, 2 * values - 1, 10**9).values / 2
    rng = np.random.default_rng(3)
    check_worst(
        mean_worst_case(channel, tuple(values.tolist())),
        [variance(channel.matrix, shares, a) for shares in distributions(channel.truths, rng)],
    )


def test_the_worst_case_of_a_histogram_is_its_largest_variance() -> None:
    G = left_inverse(WAVE)
    # With so many reports the pseudo-values are exact.
    n = 10**8
    worst = histogram_worst_case(WAVE, VALUES, [0, 3, 5, 7]).margin(n) ** 2 * n / Z**2
    largest = 0.0
    for inside in ([0, 1, 2], [3, 4], [5, 6]):
        mask = np.isin(np.arange(7), inside)
        for share in np.linspace(0, 1, 201):
            shares = np.where(mask, share / mask.sum(), (1 - share) / (~mask).sum())
            largest = max(largest, variance(WAVE.matrix, shares, G[mask].sum(axis=0)))
    assert worst == pytest.approx(largest, rel=1e-3)


def test_the_worst_case_of_a_median_has_half_of_the_answers_below_it() -> None:
    G = left_inverse(WAVE)
    n = 10**8
    worst = quantile_worst_case(WAVE, VALUES).margin(n) ** 2 * n / Z**2
    largest = 0.0
    for place in range(6):
        mask = np.arange(7) <= place
        shares = np.where(mask, 0.5 / mask.sum(), 0.5 / (~mask).sum())
        largest = max(largest, variance(WAVE.matrix, shares, G[mask].sum(axis=0)))
    assert worst == pytest.approx(largest / (4 / 3) ** 2, rel=0.02)


def ratio_variances(channel: object, answers: list[int], rng: np.random.Generator) -> list[float]:
    """Return n Var of each answer's share, by the delta method, if `REFUSAL_RATE` refuse."""
    G = left_inverse(channel) if hasattr(channel, "shape") else np.linalg.inv(channel.matrix).T
    A = 1 - REFUSAL_RATE
    silent = [i for i in range(channel.truths) if i not in answers]
    variances = []
    for inside in distributions(len(answers), rng):
        shares = np.zeros(channel.truths)
        shares[answers], shares[silent] = A * inside, REFUSAL_RATE / len(silent)
        b = G[answers].sum(axis=0)
        for place, answer in enumerate(answers):
            values = (G[answer] - inside[place] * b) / A
            variances.append(variance(channel.matrix, shares, values))
    return variances


@each_case("channel", [FOUR, square_wave(4, 2, no_answers=1)])
def test_the_worst_case_among_those_who_answered_has_the_planned_refusal_rate(
    channel: object,
) -> None:
    silent = channel.truths - 1
    variances = ratio_variances(channel, list(range(silent)), np.random.default_rng(5))
    check_worst(answered_worst_case(channel, (silent,)), variances)


@pytest.mark.slow
def test_the_worst_case_of_cells_and_conditional_shares_bounds_their_variance() -> None:
    rows, columns = grr(3, "0.6"), grr(2, "0.8")
    g, h = axis(rows).means, axis(columns).means
    matrix = np.kron(rows.matrix, columns.matrix)
    rng = np.random.default_rng(6)
    cells = [
        variance(matrix, shares, np.kron(g[a], h[b]))
        for shares in distributions(6, rng)
        for a in range(3)
        for b in range(2)
    ]
    check_worst(crosstab_worst_case([rows, columns]), cells)

    conditionals, standardized = [], []
    for first in distributions(3, rng):
        for second in (first, first[::-1], *np.eye(3)):
            # Half of the people are in each column; their answers are `first` and `second`.
            shares = np.stack([first, second], axis=1).ravel() / 2
            for a in range(3):
                value = np.kron(g[a] - first[a], h[0]) / 0.5
                conditionals.append(variance(matrix, shares, value))
                if second is first:
                    weights = (0.3 * h[0] + 0.7 * h[1]) / 0.5
                    value = np.kron(g[a] - first[a], weights)
                    standardized.append(variance(matrix, shares, value))
    design = PairDesign((rows, columns), (3, 2))
    check_worst(conditional_worst_case(design), conditionals)
    case = standardized_worst_case(design, np.array([0.3, 0.7]))
    check_worst(case, standardized)


@pytest.mark.slow
def test_the_worst_cases_of_a_joint_response_bound_the_variance_of_its_cells() -> None:
    joint = grr(6, "0.5")
    design = PairDesign((joint,), (3, 2))
    G = axis(joint).means.reshape(3, 2, 6)
    rng = np.random.default_rng(6)
    conditionals, standardized = [], []
    for first in distributions(3, rng):
        for second in (first, *np.eye(3)):
            shares = np.stack([first, second], axis=1).ravel() / 2
            for a in range(3):
                value = (G[a] - first[a] * G.sum(axis=0)) / 0.5
                conditionals.append(variance(joint.matrix, shares, value[0]))
                if second is first:
                    weighted = 0.3 * value[0] + 0.7 * value[1]
                    standardized.append(variance(joint.matrix, shares, weighted))
    check_worst(conditional_worst_case(design), conditionals)
    check_worst(standardized_worst_case(design, np.array([0.3, 0.7])), standardized)
    cells = [variance(joint.matrix, shares, G[0, 0]) for shares in distributions(6, rng)]
    check_worst(crosstab_worst_case([joint]), cells)


def test_the_worst_case_of_a_regression_is_its_standard_error_without_effects() -> None:
    outcome, predictor = grr(2, "0.85"), grr(3, "0.8")
    y, x = np.divmod(np.arange(6), 3)
    # All reports are equally frequent if all answers are equally common and unrelated.
    fit = regression(
        y, outcome, randomized=[Randomized("x", x, predictor)], times=np.full(6, 10_000)
    )
    # A difference of shares is a quarter of that of log odds, and ranges from -1 to 1.
    case = regression_worst_case(outcome, predictor, parameters=3)
    assert case.margin(60_000) == pytest.approx(Z * fit.std_error[..., 1:].max() / 8, rel=0.01)
    group, n = (x[:, None] > 0).astype(float)[[0, 1, 3, 4]], 40_000
    known = regression(y[[0, 1, 3, 4]], outcome, group, times=np.full(4, n // 4))
    case = regression_worst_case(outcome, None, parameters=2)
    assert case.margin(n) == pytest.approx(Z * known.std_error[..., 1].max() / 8, rel=0.01)
    assert case.margin(2) == math.inf


def test_the_worst_case_of_a_joint_regression_is_that_of_its_table() -> None:
    joint = grr(6, "0.5")
    case = joint_regression_worst_case(PairDesign((joint,), (2, 3)), parameters=3)
    # The log odds ratio of four cells of share 1/6, each with the pseudo-value 6 c.
    gradient = 6 * np.array([[1, -1, 0], [-1, 1, 0]]).ravel()
    values = gradient @ axis(joint).means
    expected = Z * math.sqrt(values**2 @ np.full(6, 1 / 6) / 9_997) / 8
    assert case.margin(10_000) == pytest.approx(expected, rel=1e-6)


def test_an_option_without_reports_does_not_change_the_decision() -> None:
    channel = BitVector(5, 2, 3, 1, alone=1, sampled=1)
    counts = [10, 15, 0, 5, 5, 4, 7, 0, 2, 1]
    shares, answered = proportions(counts, channel), answered_shares(counts, channel, [4])
    for name, result in (("proportions", shares), ("answered_shares", answered)):
        assert result.n_effective[2] == 0, name
        assert np.isnan(result.estimate[2]), name
        assert np.isnan(result.std_error[2]), name
        assert (result.conf_low[2], result.conf_high[2]) == (0, 1), name
        assert disclosure(result) == "hide", name
        assert reports_needed(result) > 35, name


def test_a_table_without_an_inverse_has_cells_that_are_never_shown() -> None:
    channel = one_bit(3, 1)
    result = crosstab([[10**6, 10**6], [10**6, 10**6]], [channel, channel], method="em")
    assert disclosure(result) == "hide"


LITTLE = from_epsilon(11, 1)


def test_the_interval_of_a_median_between_neighbours_is_at_most_one_point_wide() -> None:
    truth = np.exp(-((np.arange(11) - 5) ** 2) / 8)
    shares = (truth / truth.sum()) @ LITTLE.matrix
    precise, wide = (
        median(np.floor(n * shares).astype(int), LITTLE, range(11)) for n in (3_000_000, 300)
    )
    assert precise.conf_high[0] - precise.conf_low[0] <= 1
    assert precise.reach.tolist() == [0.0]
    assert wide.reach[0] == pytest.approx((wide.conf_high[0] - wide.conf_low[0] - 1) / 10)
