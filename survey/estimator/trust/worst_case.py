"""Worst cases: the expected margin of error for the least favorable answers, with n reports.

Everything here depends on the channel, the question and n, never on the answers, so that decisions
about suppression reveal nothing and select nothing. Margins are half the width of a 95% interval,
as a fraction of the possible range: of 0 to 1 for shares, of the smallest to the largest value for
means and medians.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from survey.estimator.core.arguments import CodeChannel
from survey.estimator.core.debiasing import (
    Axis,
    PseudoValues,
    SecondMoments,
    axis,
    binary_moments,
    exact_values,
    expected,
    left_inverse,
    product_moment,
    pseudo_values,
    set_values,
)
from survey.estimator.core.fieller import RATIOS, lower_hulls
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.numbers.distribution import (
    cell_members,
    require_more_than_a_mean,
    set_targets,
)
from survey.estimator.numbers.mean import mean_target
from survey.estimator.planning.expected_margin import PLANNED_NO_ANSWER
from survey.estimator.shares.answered_shares import SampledBits, Squares, support
from survey.estimator.shares.linear_estimator import linear_estimator
from survey.estimator.shares.multiple_choice import membership
from survey.estimator.shares.proportions import second_moments
from survey.estimator.tables.crosstab import PairDesign
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats

LEVEL = 0.95
"""The level of the interval whose width decides, whatever level the reader selects."""

REFUSAL_RATE = PLANNED_NO_ANSWER
"""Share of people assumed not to answer a question that allows it, as in plans. The true rate is
not used, because it is estimated from the same reports."""

DENSITY = 4 / 3
"""Assumed density of answers near a quantile, relative to equally frequent values. It is between
1 and that of a bell curve that fills the range, about 2."""

SHARES = np.linspace(0, 1, 65)
"""Shares among which the least favorable one is sought, if it has no formula."""

PLACES = 5
"""Places of a grid, from its first to its last value, among which a quantile may be."""

TWO_VALUES = 2
"""Number of different values of the indicator of a set."""

MANY_REPORTS = 2**50
"""The search for a required number of reports ends here."""

CACHED_CASES, CACHED_ERRORS = 256, 2_048
"""Worst cases, and errors of numbers at different n, that are kept in memory."""


class WorstCase(Protocol):
    """The margin of error of an estimate for the least favorable answers."""

    def margin(self, n: float) -> float:
        """Return the expected margin with n reports."""

    def required_n(self, margin: float) -> int:
        """Return the smallest n whose expected margin is at most `margin`."""


@dataclass(frozen=True)
class ConstantVariance:
    """The worst case of an estimate whose variance is inversely proportional to n.

    variance   n times the variance of the estimate, on a scale from 0 to 1
    reserved   reports that are subtracted from n: one for each parameter of a regression
    """

    variance: float
    reserved: int = 0

    def margin(self, n: float) -> float:
        """Return z sqrt(variance/n), the expected margin with n reports; infinite without any."""
        useful = n - self.reserved
        if useful <= 0:
            return math.inf
        return normal_quantile(LEVEL) * math.sqrt(self.variance / useful)

    def required_n(self, margin: float) -> int:
        """Return the smallest n whose expected margin is at most `margin`.

        >>> ConstantVariance(0.25).required_n(0.15)
        43
        """
        # n = variance (z/margin)^2
        n = self.variance * (normal_quantile(LEVEL) / margin) ** 2
        return self.reserved + max(math.ceil(n), 1)


@dataclass(frozen=True)
class NumberWorstCase:
    """The worst case of a mean, or of shares of sets of numbers, whose variance may depend on n.

    Pseudo-values of a table with little information are a compromise of variance and bias, and the
    best compromise depends on n (`set_values`).

    channel   the channel, of which each report is one code
    truths    the number of each truth, None for no answer
    sets      masks over the different numbers in ascending order; none for the mean
    at        the share that all sets have, None for the least favorable one
    density   factor by which an error of such a share is larger than that of its quantile
    """

    channel: CodeChannel
    truths: tuple[float | None, ...]
    sets: tuple[tuple[bool, ...], ...] = ()
    at: float | None = None
    density: float = 1.0

    def margin(self, n: float) -> float:
        """Return the largest (z sqrt(variance/n) + bias)/density of all sets."""
        if n < 1:
            return math.inf
        variance, bias = _number_error(self, int(n))
        half = normal_quantile(LEVEL) * np.sqrt(variance / n) + bias
        return float(half.max()) / self.density

    def required_n(self, margin: float) -> int:
        """Return the smallest n whose expected margin is at most `margin`.

        The pseudo-values are those for the smallest power of 4 of reports that have this margin.
        """
        bound = 1
        while self.margin(bound) > margin:
            bound *= 4
            if bound > MANY_REPORTS:
                return bound
        variance, bias = _number_error(self, bound)
        # n = variance (z/(margin - bias))^2
        root = normal_quantile(LEVEL) / (margin * self.density - bias)
        return max(math.ceil(float((variance * root**2).max())), 1)


def largest_variance(moments: SecondMoments) -> float:
    """Return the largest x at_truth + (1-x) elsewhere - x^2 over all shares x and options.

    Its derivative is 0 at x = (at_truth - elsewhere)/2.
    """
    x = np.clip((moments.at_truth - moments.elsewhere) / 2, 0.0, 1.0)
    return float(np.max(moments.variance(x)))


def shares_worst_case(moments: SecondMoments, asked: float = 1.0) -> ConstantVariance:
    """Return the worst case of shares; `asked` is the part of the reports about each option.

    >>> shares_worst_case(binary_moments(np.array([0.75]), np.array([0.25]))).variance
    1.0
    """
    return ConstantVariance(largest_variance(moments) / asked)


@lru_cache(maxsize=CACHED_CASES)
def channel_worst_case(
    channel: AnyChannel, patterns: tuple[tuple[int, ...], ...] | None = None
) -> WorstCase:
    """Return the worst case of the shares of a channel's options, or of options in patterns.

    Raises ChannelError if shares cannot be estimated from this channel.
    """
    if patterns is not None and isinstance(channel, SubsetSelection):
        options = 1 + max(option for pattern in patterns for option in pattern)
        number = membership(patterns, channel.k, options).sum(axis=1)
        moments = binary_moments(channel.p + (number - 1) * channel.q, number * channel.q)
        return shares_worst_case(moments)
    asked = channel.sampled / channel.m if isinstance(channel, TickChannel) else 1.0
    return shares_worst_case(linear_estimator(channel).moments, asked)


@lru_cache(maxsize=CACHED_CASES)
def no_answers_worst_case(channel: WeightTable) -> WorstCase:
    """Return the worst case of the shares of truths that are no answer (`no_answer_shares`)."""
    truths = range(channel.truths - channel.no_answers, channel.truths)
    G = np.stack(
        [
            pseudo_values(channel, np.eye(1, channel.truths, t)[0], MANY_REPORTS).values
            for t in truths
        ]
    )
    return shares_worst_case(second_moments(channel, G, truths))


@lru_cache(maxsize=CACHED_CASES)
def answered_worst_case(
    channel: AnyChannel,
    no_answers: tuple[int, ...],
    patterns: tuple[tuple[int, ...], ...] | None = None,
) -> WorstCase:
    """Return the worst case of shares among those who answered, if `REFUSAL_RATE` did not.

    The variance of a share r is V(r)/A^2, with V(r) the variance of pi_j - r A of one report (see
    `answered_shares`) and A = 1 - `REFUSAL_RATE`.
    """
    A, r = 1 - REFUSAL_RATE, SHARES[None, :]
    if isinstance(channel, WeightTable):
        V = _table_variance(channel, no_answers, r, A)
    elif isinstance(channel, TickChannel) and channel.is_sampled:
        V = _sampled_variance(channel, no_answers, r, A)
    else:
        k = channel.m if isinstance(channel, TickChannel) else channel.k
        n_patterns = None
        if patterns is not None:
            k = 1 + max(option for pattern in patterns for option in pattern)
            n_patterns = membership(patterns, channel.truths, k).sum(axis=1)
            n_patterns = np.delete(n_patterns, no_answers)
        S = len(no_answers)
        V = support(channel, k - S, S, n_patterns).moments(1).variance(r, np.array([[A]]))
    return ConstantVariance(float(V.max()) / A**2)


def _table_variance(
    channel: WeightTable, no_answers: tuple[int, ...], r: Floats, A: float
) -> Floats:
    """Return A [r w_j + (1-r) max w_i] + (1-A) max w_s, w_i = E[(g_j - r b)^2 | i], of a table.

    i is any other answer, s any truth that is no answer; shape (answers, shares).
    """
    G, P = left_inverse(channel), channel.matrix
    silent = np.isin(np.arange(channel.truths), no_answers)
    answers = np.flatnonzero(~silent)
    a, b = G[answers], G[answers].sum(axis=0)
    aa, ab, bb = (product @ P.T for product in (a**2, a * b, b**2))
    worst = np.zeros((len(answers), r.size))
    for row, j in enumerate(answers):
        w = Squares(aa[row][:, None], ab[row][:, None], bb[:, None]).at(r)
        others = ~silent
        others[j] = False
        answering = r[0] * w[j] + (1 - r[0]) * w[others].max(axis=0)
        worst[row] = A * answering + (1 - A) * w[silent].max(axis=0)
    return worst


def _sampled_variance(
    channel: TickChannel, no_answers: tuple[int, ...], r: Floats, A: float
) -> Floats:
    """Return the variance with one report of which each option has its expected part."""
    m, sampled, p, q, S = channel.m, channel.sampled, channel.p, channel.q, len(no_answers)
    part = sampled / m
    bits = SampledBits(
        at_truth=p * (1 - p) / (p - q) ** 2,
        elsewhere=q * (1 - q) / (p - q) ** 2,
        reach=1 / abs(p - q),
        reports=np.full(m - S, part),
        silent_reports=np.full(S, part),
        silent_parts=np.full(S, 1 / S),
        common=sampled * (sampled - 1) / (m * (m - 1)),
    )
    return bits.variance(r, np.array([[A]]))


def _number_error(case: NumberWorstCase, n: int) -> tuple[Floats, Floats]:
    """Return n times the variance, and the bias, of each set or the mean, scaled to [0, 1]."""
    return _error_at(case, 1 if _is_same_for_all_n(case) else n)


@lru_cache(maxsize=CACHED_ERRORS)
def _is_same_for_all_n(case: NumberWorstCase) -> bool:
    """Return whether exact pseudo-values exist, so that the variance of one report is constant."""
    truths = np.array(case.truths, dtype=np.float64)
    targets = (mean_target(truths), (~np.isnan(truths)).astype(np.float64))
    return not case.sets and all(exact_values(case.channel, x) is not None for x in targets)


@lru_cache(maxsize=CACHED_ERRORS)
def _error_at(case: NumberWorstCase, n: int) -> tuple[Floats, Floats]:
    truths, channel = np.array(case.truths, dtype=np.float64), case.channel
    answered = ~np.isnan(truths)
    if case.sets:
        targets = set_targets(truths, [np.array(mask) for mask in case.sets])
        values, bias = set_values(channel, targets, n)
    else:
        targets = mean_target(truths)[None]
        mean = pseudo_values(channel, targets[0], n)
        values, bias = mean.values[None], np.array([mean.bias])
    A, b = 1.0, PseudoValues(np.ones(values.shape[1]), 0.0)
    if not answered.all():
        A, b = 1 - REFUSAL_RATE, pseudo_values(channel, answered.astype(np.float64), n)
    V = np.array(
        [
            _largest_scatter(channel, target, answered, a, b.values, A)
            for target, a in zip(targets, values, strict=True)
        ]
    )
    # The pseudo-values estimate ratios on a scale from -1 to 1.
    V, bias = V / (2 * A) ** 2, (bias + b.bias) / (2 * A)
    if case.at is None:
        return V.max(axis=1), bias
    return np.array([np.interp(2 * case.at - 1, RATIOS, row) for row in V]), bias


def _largest_scatter(
    channel: CodeChannel, target: Floats, answered: Booleans, a: Floats, b: Floats, A: float
) -> Floats:
    """Return the largest Var(a - r b) at each of `RATIOS` if a share A of people answered.

    Those who answered have the mean r. They contribute A times a point above r of the convex hull
    of the points (x_i, w_i), w_i = E[(a - r b)^2 | i]. For a mean it is the highest point. For a
    set it is that of people who are evenly spread inside, and evenly outside: the highest point
    would be that of people who all have one value at the edge. The others contribute at most 1 - A
    times the largest w_i.
    """
    aa, ab, bb = (expected(channel, g) for g in (a**2, a * b, b**2))
    r = RATIOS[:, None]
    w = aa - 2 * r * ab + r**2 * bb
    order = np.flatnonzero(answered)[np.argsort(target[answered], kind="stable")]
    x, first, number = np.unique(target[order], return_index=True, return_counts=True)
    if x.size == TWO_VALUES:
        y = np.add.reduceat(w[:, order], first, axis=1) / number
    else:
        y = np.maximum.reduceat(w[:, order], first, axis=1)
    answering = -lower_hulls(x, -y)
    if answered.all():
        return answering
    return np.asarray(A * answering + (1 - A) * w[:, ~answered].max(axis=1))


def mean_worst_case(channel: CodeChannel, truths: tuple[float | None, ...]) -> WorstCase:
    """Return the worst case of a mean, as a fraction of the range of its values.

    >>> from survey.mechanism.numeric import one_bit
    >>> round(mean_worst_case(one_bit(11, 1), tuple(range(11))).margin(100), 3)  # z B/2 / sqrt(n)
    0.212
    """
    return NumberWorstCase(channel, truths)


def histogram_worst_case(
    channel: CodeChannel, truths: tuple[float | None, ...], edges: Sequence[float] | Floats
) -> WorstCase:
    """Return the worst case of the shares of the cells between `edges`.

    Raises ChannelError if reports determine a mean only.
    """
    require_more_than_a_mean(channel, np.array([x is not None for x in truths]))
    numbers = np.unique([x for x in truths if x is not None])
    sets = tuple(
        tuple(mask.tolist()) for mask in cell_members(np.asarray(edges, dtype=np.float64), numbers)
    )
    return NumberWorstCase(channel, truths, sets)


def quantile_worst_case(
    channel: CodeChannel, truths: tuple[float | None, ...], share: float = 0.5
) -> WorstCase:
    """Return the worst case of a quantile, as a fraction of the range of the values.

    Raises ChannelError if reports determine a mean only.

    The quantile may be at any of `PLACES` places of the grid. Where F rises by `DENSITY` over the
    whole range, an error of F moves the quantile by the error/`DENSITY`.
    """
    require_more_than_a_mean(channel, np.array([x is not None for x in truths]))
    numbers = np.unique([x for x in truths if x is not None])
    places = np.unique(np.linspace(0, numbers.size - 2, PLACES).round().astype(np.int64))
    sets = tuple(tuple((numbers <= numbers[at]).tolist()) for at in places)
    return NumberWorstCase(channel, truths, sets, share, DENSITY)


def crosstab_worst_case(channels: Sequence[CodeChannel]) -> ConstantVariance:
    """Return the worst case of the cells of a cross-tab.

    >>> from survey.mechanism import grr
    >>> round(crosstab_worst_case([grr(2, "3/4"), grr(2, "3/4")]).variance, 3)
    2.078
    """
    moments = product_moment([_axis(channel) for channel in channels])
    return ConstantVariance(largest_variance(SecondMoments(moments.at_truth, moments.maximum)))


@lru_cache(maxsize=CACHED_CASES)
def _axis(channel: CodeChannel) -> Axis:
    return axis(channel)


class PairMoments(NamedTuple):
    """Largest second moments of c_ab - r u, which estimates P(a and b) - r E[u], by kind of truth.

    All are at each r of `SHARES`. With u = h_b, the pseudo-value of the answer b, c_ab - r h_b has
    the mean 0 if r is the share of a among people with b.

    own     E[(c_ab - r u)^2 | a and b]
    other   its maximum over truths with another a and the same b
    beyond  its maximum over truths with another b
    """

    own: Floats
    other: Floats
    beyond: Floats

    def within(self) -> Floats:
        """Return the largest mean over people with the answer b, a share r of whom has a."""
        return np.asarray(SHARES * self.own + (1 - SHARES) * self.other)


def conditional_worst_case(design: PairDesign) -> WorstCase:
    """Return the worst case of P(a | b), if all k answers b are equally common.

    The variance of a share r is E[(c_ab - r h_b)^2]/B^2 with B = 1/k, where people with b
    contribute at most B times `within`, and others 1 - B times `beyond`.
    """
    B = 1 / design.sizes[1]
    variances = [
        float(((B * pair.within() + (1 - B) * pair.beyond) / B**2).max())
        for pair in (
            _pair_moments(design, a, b)
            for a in _different(design.channels[0], design.sizes[0])
            for b in _different(design.channels[-1], design.sizes[1])
        )
    ]
    return ConstantVariance(max(variances))


def _different(channel: CodeChannel, size: int) -> range:
    """Return answers that have different moments; by symmetry, a single one unless in a table."""
    return range(1 if isinstance(channel, SubsetSelection) else size)


def _pair_moments(design: PairDesign, a: int, b: int) -> PairMoments:
    """Return the moments of c_ab - r h_b."""
    cells = np.arange(math.prod(design.sizes)).reshape(design.sizes)
    if len(design.channels) == 1:
        joint = design.channels[0]
        G = _axis(joint).means
        values = G[cells[a, b]] - SHARES[:, None] * G[cells[:, b]].sum(axis=0)
        w = np.array([expected(joint, row**2) for row in values])
        w = w.reshape(-1, *design.sizes)
    else:
        rows, columns = (_axis(channel) for channel in design.channels)
        # E[(g_a - r)^2 | i] E[h_b^2 | j], where E[g_a | i] is 1 for a and 0 otherwise
        r = SHARES[:, None]
        first = rows.by_truth[a] - 2 * r * np.eye(len(rows.means))[a] + r**2
        w = first[:, :, None] * columns.by_truth[b]
    return PairMoments(
        own=w[:, a, b],
        other=np.delete(w[:, :, b], a, axis=1).max(axis=1),
        beyond=np.delete(w, b, axis=2).max(axis=(1, 2)),
    )


def standardized_worst_case(design: PairDesign, population: Floats) -> WorstCase:
    """Return the worst case of shares standardized to shares w_b of the second question's answers.

    If its k answers are equally common among the respondents, and unrelated to the first question,
    u = sum_b k w_b h_b weights each report, v = sum_b k w_b c_ab - r u, and n Var is at most
    sum_b (r E[v^2 | a and b] + (1-r) max_i E[v^2 | i and b])/k.
    """
    k, weights = design.sizes[1], len(population) * np.asarray(population)
    variances = []
    for a in _different(design.channels[0], design.sizes[0]):
        w = _standardized_moments(design, a, weights)
        other = np.delete(w, a, axis=1).max(axis=1)
        within = SHARES[:, None] * w[:, a] + (1 - SHARES[:, None]) * other
        variances.append(float(within.sum(axis=1).max()) / k)
    return ConstantVariance(max(variances))


def _standardized_moments(design: PairDesign, a: int, weights: Floats) -> Floats:
    """Return E[(sum_b weights_b (c_ab - r h_b))^2 | truths], shape (shares, a, b)."""
    r = SHARES[:, None]
    if len(design.channels) == 1:
        joint = design.channels[0]
        G = _axis(joint).means.reshape(*design.sizes, -1)
        values = weights @ G[a] - r * (weights @ G.sum(axis=0))
        w = np.array([expected(joint, row**2) for row in values])
        return w.reshape(-1, *design.sizes)
    rows, columns = design.channels
    first = _axis(rows).by_truth[a] - 2 * r * np.eye(design.sizes[0])[a] + r**2
    u = weights @ _axis(columns).means
    return np.asarray(first[:, :, None] * expected(columns, u**2))


def regression_worst_case(
    outcome: CodeChannel, predictor: CodeChannel | None, parameters: int
) -> WorstCase:
    """Return the worst case of a coefficient, as a difference between the shares that it compares.

    It is the error of log[P(a, x) P(b, y) / (P(b, x) P(a, y))] if all answers are equally common
    and unrelated: with k and K answers,
        n SE^2 = (k K)^2 E[(g_a - g_b)^2] E[(h_x - h_y)^2].
    Near 1/2 a difference of two shares is a quarter of that of their log odds, and it ranges from
    -1 to 1: as a fraction of that range it has n Var = n SE^2/64. Without `predictor` the groups
    are known without randomization: two of n/2 reports each have (h_x - h_y)^2 = 1. Each parameter
    costs a report.
    """
    contrast = 4.0 if predictor is None else _contrast(predictor)
    return ConstantVariance(_contrast(outcome) * contrast / 64, reserved=parameters)


def joint_regression_worst_case(design: PairDesign, parameters: int) -> WorstCase:
    """Return the worst case of a coefficient of two questions that were randomized jointly.

    It is `regression_worst_case` with n SE^2 = (k K)^2 E[(c_ax - c_bx - c_ay + c_by)^2].
    """
    (joint,) = design.channels
    G = _axis(joint).means.reshape(*design.sizes, -1)
    f = _uniform_reports(joint)
    largest = 0.0
    for a, b in combinations(range(design.sizes[0]), 2):
        between = G[a] - G[b]
        for x, y in combinations(range(design.sizes[1]), 2):
            largest = max(largest, float(f @ (between[x] - between[y]) ** 2))
    return ConstantVariance(math.prod(design.sizes) ** 2 * largest / 64, reserved=parameters)


def _contrast(channel: CodeChannel) -> float:
    """Return k^2 times the largest E[(g_a - g_b)^2] over pairs of answers, all equally common."""
    G = _axis(channel).means
    S = (G * _uniform_reports(channel)) @ G.T
    squares = np.diagonal(S)[:, None] + np.diagonal(S)[None, :] - 2 * S
    return float(len(G) ** 2 * squares.max())


def _uniform_reports(channel: CodeChannel) -> Floats:
    """Return the share of each report if all truths are equally common; d must be 1."""
    if isinstance(channel, SubsetSelection):
        return np.full(channel.k, 1 / channel.k)
    return np.asarray(channel.matrix.mean(axis=0))
