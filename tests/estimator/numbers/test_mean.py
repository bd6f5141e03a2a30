"""Means: bias, coverage, published variances and rejected arguments."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pytest
from scipy.stats import binom

from survey.errors import ChannelError, CountsError, NoBaseError
from survey.estimator import Mean, disclosure, mean, mean_difference, reports_needed
from survey.estimator.core.debiasing import pseudo_values
from survey.mechanism import SubsetSelection, WeightTable, from_epsilon, grr
from survey.mechanism.numeric import (
    gaussian,
    geometric,
    hybrid,
    laplace,
    one_bit,
    optimal_piecewise,
    piecewise,
    square_wave,
)
from survey.mechanism.randomized_response import exponential
from tests.benchmarks.distribution import MIN_COVERAGE
from tests.benchmarks.means import CHANNELS, coverage
from tests.cases import each_case
from tests.conftest import long_unless

K = 11
X = np.linspace(-1, 1, K)

DESIGNS = {
    "one bit": lambda no_answers: one_bit(K, 2, no_answers),
    "one bit, weak": lambda no_answers: one_bit(K, "0.5", no_answers),
    "one bit, strong": lambda no_answers: one_bit(K, 4, no_answers),
    "piecewise": lambda no_answers: piecewise(K, 2, no_answers),
    "hybrid": lambda no_answers: hybrid(K, 2, no_answers),
    "square wave": lambda no_answers: square_wave(K, 2, no_answers),
    "geometric": lambda no_answers: geometric(K, 2, no_answers),
    "laplace": lambda no_answers: laplace(K, 2, no_answers),
    "gaussian": lambda no_answers: gaussian(K, 6, no_answers),
    "generalized randomized response": lambda no_answers: from_epsilon(K + no_answers, 3),
    "optimal piecewise": lambda no_answers: optimal_piecewise(K, 3, no_answers),
}
designs = pytest.mark.parametrize(
    "design",
    [
        pytest.param(make, id=name, marks=() if i % 4 == 1 else pytest.mark.long)
        for i, (name, make) in enumerate(DESIGNS.items())
    ],
)
ANSWERED = ("one bit", "square wave")
"""Designs whose means among respondents with an answer are simulated in every run."""


def shares(kind: str) -> np.ndarray:
    """Return the true shares of the grid points."""
    falling = np.exp(-np.arange(K) / 2)
    by_name = {
        "all at one end": np.eye(K)[0],
        "all at the other end": np.eye(K)[-1],
        "equal": np.full(K, 1 / K),
        "falling": falling / falling.sum(),
        "half at each end": (np.eye(K)[0] + np.eye(K)[-1]) / 2,
    }
    return by_name[kind]


QUICK = ("all at one end", "falling", "half at each end")
PEOPLE = [(100, 1, 0.2), (2000, 2, 0.4), (2000, 1, 0)]
"""Numbers of reports and no-answer options, with the share of respondents without an answer."""
TRUTHS = ("all at one end", "all at the other end", "equal", "falling", "half at each end")


def simulated(
    channel: SubsetSelection | WeightTable, answers: np.ndarray, silent: float, n: int, rounds: int
) -> tuple[list[Mean], float]:
    """Return means of simulated surveys without rejected ones, and the true mean of answers."""
    no_answers = len(channel.matrix) - K
    truth = np.concatenate(
        [answers * (1 - silent), np.full(no_answers, silent / (no_answers or 1))]
    )
    draws = np.random.default_rng(n).multinomial(n, truth @ channel.matrix, size=rounds)
    values = [*X.tolist(), *[None] * no_answers]
    means = []
    for counts in draws:
        with suppress(NoBaseError):
            means.append(mean(counts, channel, values))
    return means, float(answers @ X)


@pytest.mark.web
@designs
@pytest.mark.parametrize("n", long_unless([2000], [100, 2000]))
def test_means_are_unbiased_and_covered(design, n):
    rounds = 200
    channel = design(0)
    for kind in QUICK:
        results, true = simulated(channel, shares(kind), 0.0, n, rounds)
        assert len(results) == rounds
        estimates = np.array([result.estimate for result in results])
        bias = pseudo_values(channel, X, n).bias
        allowed = 4 * estimates.std() / math.sqrt(rounds) + bias
        assert abs(estimates.mean() - true) < allowed, kind
        # At a true coverage of .95, a value below .88 has a probability of 1 in 100,000.
        assert (
            np.mean([r.conf_low <= true + 1e-12 and true - 1e-12 <= r.conf_high for r in results])
            >= 0.88
        ), kind
        assert all(-1 <= r.conf_low < r.conf_high <= 1 for r in results)
        # The spread of 200 rounds has a standard error of 5%: four of them.
        assert np.mean([r.std_error for r in results]) >= 0.8 * estimates.std(), kind


@pytest.mark.web
@pytest.mark.parametrize(
    "design",
    [
        pytest.param(make, id=name, marks=() if name in ANSWERED else pytest.mark.long)
        for name, make in DESIGNS.items()
    ],
)
@pytest.mark.parametrize("people", long_unless([(2000, 2, 0.4)], PEOPLE), ids=str)
def test_means_of_those_who_answered_are_covered_and_nearly_unbiased(design, people):
    n, no_answers, silent = people
    rounds = 200
    channel = design(no_answers)
    for kind in QUICK:
        results, true = simulated(channel, shares(kind), silent, n, rounds)
        assert len(results) == rounds
        covered = [r.conf_low <= true + 1e-12 and true - 1e-12 <= r.conf_high for r in results]
        assert np.mean(covered) >= 0.88, kind
        assert all(-1 <= r.conf_low < r.conf_high <= 1 for r in results)
        assert results[0].method.startswith("fieller")
        if n == 2000:
            estimates = np.array([result.estimate for result in results])
            error = estimates.std()
            # The bias of a ratio of unbiased means is below its squared error; biased means add
            # at most their largest bias.
            bias = sum(
                pseudo_values(channel, np.pad(target, (0, no_answers)), n).bias
                for target in (X, np.ones(K))
            )
            allowed = 4 * error / math.sqrt(rounds) + 4 * error**2 + 2 * bias
            assert abs(estimates.mean() - true) < allowed, kind


@pytest.mark.long
@pytest.mark.parametrize("silent", [0.0, 0.3])
@designs
def test_means_have_nominal_coverage(design, silent):
    channel = design(1 if silent else 0)
    for n in (100, 2000):
        for kind in TRUTHS:
            results, true = simulated(channel, shares(kind), silent, n, 4000)
            # Some surveys of a hundred noisy reports contain no information about the answers.
            assert len(results) >= 0.99 * 4000, (n, kind)
            covered = [r.conf_low <= true + 1e-12 and true - 1e-12 <= r.conf_high for r in results]
            assert np.mean(covered) >= 0.93, (n, kind)


@pytest.mark.web
@each_case("no_answers", [0, 1])
@each_case("make", CHANNELS.values())
def test_means_cover_with_little_noise_and_a_few_people_at_the_other_end(make, no_answers):
    # Skewed reports: without a correction, randomized response over 5 points covers .89.
    truth = 0.9 * shares("all at one end") + 0.1 * shares("all at the other end")
    assert coverage(make(7, no_answers), truth, 50, 8000, seed=3) >= MIN_COVERAGE


@pytest.mark.web
@pytest.mark.parametrize("epsilon", ["0.5", "2", "4"])
@pytest.mark.parametrize("n", long_unless([50, 100], [50, 100, 400]))
def test_one_bit_covers_at_every_mean_by_enumeration_of_every_outcome(epsilon, n):
    channel = one_bit(K, epsilon)
    results = [mean([n - ones, ones], channel, X.tolist()) for ones in range(n + 1)]
    low = np.array([result.conf_low for result in results])
    high = np.array([result.conf_high for result in results])
    for true in np.linspace(-1, 1, 201):
        share = np.interp(true, [-1, 1], channel.matrix[[0, -1], 1])
        covers = (low <= true + 1e-12) & (true - 1e-12 <= high)
        assert binom.pmf(np.arange(n + 1), n, share) @ covers >= 0.94


def test_generalized_randomized_response_has_the_linear_form_of_its_shares():
    channel, counts = grr(5, "0.6"), np.array([50, 40, 30, 20, 60])
    result = mean(counts, channel, [1, 2, 3, 4, 5])
    pi = (counts / 200 - channel.q) / (channel.p - channel.q)
    assert result.estimate == pytest.approx(pi @ [1, 2, 3, 4, 5])
    f, x = counts / 200, np.arange(1, 6) / (channel.p - channel.q)
    spread = math.sqrt((f @ x**2 - (f @ x) ** 2) / 199)
    assert result.std_error == pytest.approx(spread)


def test_the_mean_moves_and_scales_with_its_values():
    channel, counts = hybrid(K, 1, 1), None
    counts = np.random.default_rng(1).multinomial(900, channel.matrix[3])
    plain = mean(counts, channel, [*X.tolist(), None])
    shifted = mean(counts, channel, [*(500 + 20 * X).tolist(), math.nan])
    for field in ("estimate", "conf_low", "conf_high", "low", "high"):
        assert getattr(shifted, field) == pytest.approx(500 + 20 * getattr(plain, field))
    assert shifted.std_error == pytest.approx(20 * plain.std_error)
    assert shifted.n_effective == pytest.approx(plain.n_effective)


def test_values_that_a_design_estimates_with_bias_widen_the_interval():
    channel, n = one_bit(K, 4), 10**6
    squares = X**2
    counts = np.random.default_rng(2).multinomial(n, channel.matrix[5])
    result = mean(counts, channel, squares.tolist())
    assert result.method == "t, with bias"
    assert result.conf_low <= 0 <= result.conf_high
    assert result.conf_high - result.conf_low > 0.5


def test_a_table_of_utilities_has_a_mean():
    k = np.arange(5)
    channel = exponential((-np.abs(k[:, None] - k)).tolist(), 3)
    counts = np.random.default_rng(2).multinomial(5000, channel.matrix[4])
    result = mean(counts, channel, [1, 2, 3, 4, 5])
    assert result.conf_low <= 5 <= result.conf_high


@pytest.mark.parametrize("counts", [[500, 0], [0, 500]])
def test_identical_reports_have_the_variance_of_the_randomization(counts):
    channel = one_bit(K, 4)
    result = mean(counts, channel, X.tolist())
    B = (float(channel.ratio) + 1) / (float(channel.ratio) - 1)
    assert abs(result.estimate) == pytest.approx(B)
    assert result.std_error == pytest.approx(math.sqrt((B**2 - 1) / 500), rel=1e-6)
    assert -1 <= result.conf_low < result.conf_high <= 1


def test_a_mean_of_too_few_answers_is_rejected():
    channel = one_bit(K, 2, 1)
    counts = (1000 * channel.matrix[-1]).round().astype(int)
    counts[-1] += 200
    with pytest.raises(NoBaseError, match="hardly anybody"):
        mean(counts, channel, [*range(K), None])


def test_one_report_is_rejected_if_the_channel_has_no_answer_options():
    for counts in ([1, 0, 0], [0, 0, 1]):
        with pytest.raises(NoBaseError, match="hardly anybody"):
            mean(counts, grr(3, "3/4"), [0, 1, None])


def test_one_report_gives_the_whole_range_of_a_mean():
    result = mean([1, 0], one_bit(K, 2), range(K))
    assert (result.conf_low, result.conf_high) == (0, 10)
    # The estimate is linear, B t on [-1, 1], and its error is not 0.
    assert result.estimate == pytest.approx(5 - 5 * (math.exp(2) + 1) / (math.exp(2) - 1), rel=1e-4)
    assert 5 < result.std_error < math.inf
    assert 0 < result.n_effective < 1
    assert disclosure(result) == "hide"
    assert reports_needed(result) > 1


def test_reports_needed_for_a_mean_are_those_that_show_it():
    channel = one_bit(K, 1)

    def result(n: int) -> Mean:
        return mean([n - round(0.45 * n), round(0.45 * n)], channel, X.tolist())

    n = reports_needed(result(10))
    assert [disclosure(result(n - 1)), disclosure(result(n))] == ["hide", "caution"]


@each_case(
    ("values", "sentence"),
    [
        ([1, 2, 3], "3 entries for 11 true answers"),
        ([1.0] * K, "at least two of them different"),
        ([None] * K, "at least two of them different"),
        ([math.inf, *range(K - 1)], "finite"),
        ([1e200, *range(K - 1)], "finite numbers of at most 1e.150"),
        (["a", *range(K - 1)], r"values\[0\] = .a. must be a number"),
    ],
)
def test_impossible_values_are_rejected(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        mean([5, 5], one_bit(K, 1), values)


def test_other_errors_of_a_mean_are_named():
    with pytest.raises(ChannelError, match="d = 2"):
        mean([2, 2, 2], SubsetSelection(k=3, d=2, T=3, L=1), [1, 2, 3])
    with pytest.raises(CountsError, match="n = 0"):
        mean([0, 0], one_bit(K, 1), range(K))
    with pytest.raises(ValueError, match="level = 0"):
        mean([5, 5], one_bit(K, 1), range(K), level=0)


def test_a_mean_is_frozen_and_has_a_repr():
    result = mean([400, 600], one_bit(K, 2), range(K))
    with pytest.raises(AttributeError):
        result.n = 5  # type: ignore[misc]
    assert repr(result).startswith("Mean(6.313, std_error=0.204, 95% from 5.9")


def test_a_mean_is_one_row_and_a_table_for_notebooks():
    result = mean([400, 600], one_bit(K, 2), range(K))
    (row,) = result.to_rows()
    assert (row["estimate"], row["n"], row["method"]) == (result.estimate, 1000, "t")
    assert result._repr_html_().count("<tr>") == 2


def test_the_difference_of_means_at_opposite_ends_is_covered():
    """There each estimate errs in one direction only; MOVER alone covers in 72% of surveys."""
    channel, n = grr(2, "3/4"), 100
    counts = np.arange(8, 43)
    chances = binom.pmf(counts, n, 0.25)
    at_low = [mean([n - c, c], channel, [0, 1]) for c in counts.tolist()]
    at_high = [mean([c, n - c], channel, [0, 1]) for c in counts.tolist()]
    covered = 0.0
    for a, chance_a in zip(at_low, chances, strict=True):
        for b, chance_b in zip(at_high, chances, strict=True):
            difference = mean_difference(a, b)
            assert -1 <= difference.conf_low <= difference.conf_high <= 1
            covered += chance_a * chance_b * (difference.conf_low <= -1 + 1e-12)
    assert covered >= 0.945


@pytest.mark.web
@each_case("level", [0.9, 0.95, 0.99])
def test_the_difference_of_means_is_significant_if_and_only_if_its_interval_excludes_0(level):
    rng = np.random.default_rng(20261125)
    for channel in (grr(2, "3/4"), from_epsilon(2, 3), hybrid(5, 2)):
        for _ in range(60):
            a, b = (
                mean(
                    rng.multinomial(n, rng.dirichlet(np.full(channel.counted, alpha))),
                    channel,
                    range(channel.truths),
                    level=level,
                )
                for n, alpha in ((200, 1), (300, 4))
            )
            result = mean_difference(a, b)
            contains = result.conf_low <= 0 <= result.conf_high
            assert contains == (result.p_value >= 1 - level), (a, b, result)
