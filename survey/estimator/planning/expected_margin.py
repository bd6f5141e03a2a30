"""The margin that an interval has on average: computed from the interval that will be used.

The margin of a plan is E[(high - low)/2], the expected half width over all surveys of n reports.
Where counts are large and the share is far from 0 and 1, z standard errors are nearly the same and
need no enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from survey.errors import DesignError
from survey.estimator.core.arguments import CodeChannel
from survey.estimator.core.debiasing import SecondMoments, left_inverse
from survey.estimator.core.fieller import PseudoRatios
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    FIXED_POPULATION,
    INTERVALS,
    Chances,
    continuity,
    lattice_shift,
    normal_quantile,
    score_ends,
)
from survey.estimator.shares.answered_shares import (
    RATIOS,
    GroupMoments,
    SampledBits,
    Squares,
    ratio_ends,
    support,
    support_shift,
    table_shift,
)
from survey.estimator.shares.proportions import score_interval, second_moments
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats, Integers

PLANNED_NO_ANSWER = 0.1
"""Planned share of people who choose "prefer not to say" or "does not apply", where offered.

It is fixed, because a share that is estimated would make a plan, or a decision about what to show,
depend on the outcome.
"""

NORMAL_COUNT = 600
"""Minimum of n lambda(1-lambda) at which z standard errors replace the enumeration."""

NORMAL_DISTANCE = 3.0
"""Minimum distance of the share from 0 and 1, in standard errors beyond z, for the same."""

MAX_VARIANCE = 2_500.0
"""Counts of a larger variance are enumerated on the scale of this one."""

MAX_OUTCOMES = 64
"""Maximum number of outcomes whose intervals are computed; of more, every second, third, ..."""

REACH = 5.0
"""Outcomes within this number of standard deviations are enumerated, and a few beyond."""

BEYOND = 8

TINY = 1e-12
"""Distance of lambda from 0 and 1 that stands for certainty, which the intervals exclude."""

FEW_STEPS = 30.0
"""Below this expected number of steps, outcomes are Poisson instead of normal."""

NODES = np.linspace(-4.0, 4.0, 33)
NODE_WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
"""Values of a standard normal variable and their probabilities."""

CACHED_MARGINS = 16_384
"""Number of cached margins: a draft is planned again after every change."""


@lru_cache(maxsize=CACHED_MARGINS)
def binomial_margin(
    n: int,
    chances: Chances,
    share: float,
    level: float,
    interval: str = DEFAULT_INTERVAL,
) -> float:
    """Return the expected half width of the interval of a share from n reports.

    The number c of reports that support the option is Binomial(n, lambda), lambda = q + (p-q) pi,
    so the margin is sum_c P(c) (high(c) - low(c))/2. It is z sqrt(lambda(1-lambda)/n)/|p-q| where
    n lambda(1-lambda) >= 600 and the share is z + 3 standard errors away from 0 and 1; there the
    two differ by at most .6% (Feldman-Cousins; levels .9, .95, .99; k 2 to 10; epsilon .3 to 8;
    shares .01 to .95).

    >>> round(binomial_margin(44, Chances(.9997, .0003), .01, .95), 3)
    0.043
    """
    p, q = chances
    floor, ceiling = sorted((p, q))
    lam = q + (p - q) * share
    variance = n * lam * (1 - lam)
    normal = normal_quantile(level) * math.sqrt(variance) / (n * (ceiling - floor))
    if interval == DEFAULT_INTERVAL and is_normal(variance, normal, share, level):
        return normal
    # A survey of fewer reports from a wider range [floor, ceiling] has the same geometry.
    size = n if variance <= MAX_VARIANCE else math.ceil(n * MAX_VARIANCE / variance)
    scale = math.sqrt(n / size)
    low = max(lam - scale * (lam - floor), TINY)
    high = min(lam + scale * (ceiling - lam), 1 - TINY)
    counts, weights = binomial_outcomes(size, lam)
    ends = np.clip(INTERVALS[interval](counts, size, low, high, level), low, high)
    return float(weights @ (ends[1] - ends[0])) / (2 * scale * (ceiling - floor))


def is_normal(variance: float, margin: float, share: float, level: float) -> bool:
    """Return whether a margin of z standard errors is nearly that of the interval.

    `variance` is that of the count, n lambda(1-lambda).
    """
    z = normal_quantile(level)
    distance = min(share, 1 - share) * z
    return variance >= NORMAL_COUNT and distance >= (z + NORMAL_DISTANCE) * margin


def binomial_outcomes(n: int, chance: float) -> tuple[Integers, Floats]:
    """Return evenly spaced outcomes of Binomial(n, chance) and their probabilities, sum 1.

    >>> [x.round(3).tolist() for x in binomial_outcomes(2, .5)]
    [[0, 1, 2], [0.25, 0.5, 0.25]]
    """
    from scipy.special import gammaln, xlog1py, xlogy

    middle, reach = n * chance, REACH * math.sqrt(n * chance * (1 - chance)) + BEYOND
    first, last = max(math.floor(middle - reach), 0), min(math.ceil(middle + reach), n)
    counts = np.arange(first, last + 1, -(-(last - first + 1) // MAX_OUTCOMES))
    logarithms = (
        xlogy(counts, chance)
        + xlog1py(n - counts, -chance)
        - gammaln(counts + 1)
        - gammaln(n - counts + 1)
    )
    weights = np.exp(logarithms - logarithms.max())
    return counts, weights / weights.sum()


def checked_interval(interval: str, population: int | None) -> str:
    """Return the name of an interval to plan with, or raise DesignError."""
    names = [name for name in INTERVALS if name != FIXED_POPULATION]
    if interval not in names:
        raise DesignError(f"interval = {interval!r} must be one of {', '.join(names)}")
    if population is not None and interval != DEFAULT_INTERVAL:
        raise DesignError(f"interval = {interval!r} is for an unlimited population")
    return interval


@lru_cache(maxsize=CACHED_MARGINS)
def finite_margin(n: int, chances: Chances, share: float, level: float, population: int) -> float:
    """Return the expected half width of the interval of `finite_shares`, n of N people reporting.

    Where `is_normal` holds it is z standard errors; the continuity correction adds at most 1.2%.
    """
    p, q = chances
    D = abs(p - q)
    remaining = (population - n) / max(population - 1, 1)
    at_truth, elsewhere = p * (1 - p) / D**2, q * (1 - q) / D**2
    randomization = share * at_truth + (1 - share) * elsewhere
    variance = remaining * share * (1 - share) + randomization
    lam = q + (p - q) * share
    margin = normal_quantile(level) * math.sqrt(variance / n)
    if is_normal(n * lam * (1 - lam), margin, share, level):
        return margin
    estimates, weights = outcomes(share, variance, (1 - 2 * lam) / (p - q), n)
    step = continuity(level) / (n * D)
    # n (x - r)^2 <= z^2 [phi r(1-r) + r A + (1-r) B], divided by phi
    phi, fixed = (remaining, False) if remaining > 0 else (1.0, True)
    ends = [
        score_ends(
            np.clip(estimates + side * step, 0.0, 1.0),
            np.asarray(n / phi),
            np.asarray(1 + at_truth / phi),
            np.asarray(elsewhere / phi),
            level,
            fixed=fixed,
        )[end]
        for end, side in enumerate((-1, 1))
    ]
    low, high = np.clip(ends, 0.0, 1.0)
    return float(weights @ (high - low)) / 2


def outcomes(mean: float, variance: float, step: float, n: int) -> tuple[Floats, Floats]:
    """Return values of a mean over n reports and their probabilities, shape (outcomes,).

    `variance` is that of one report's value, and `step` its third central moment divided by the
    variance. The mean is normal; if it takes few steps, it is a multiple of a Poisson variable with
    the same three moments, because rare reports then decide.
    """
    from scipy.special import gammaln, xlogy

    if variance <= 0:
        return np.array([mean]), np.ones(1)
    rate = n * variance / step**2 if step else math.inf
    if rate >= FEW_STEPS:
        return mean + NODES * math.sqrt(variance / n), NODE_WEIGHTS
    j = np.arange(math.ceil(rate + REACH * math.sqrt(rate) + BEYOND) + 1)
    weights = np.exp(xlogy(j, rate) - rate - gammaln(j + 1))
    return mean + (j - rate) * step / n, weights / weights.sum()


def answered_margin(
    channel: SubsetSelection | TickChannel,
    n: int,
    share: float,
    level: float,
    *,
    answers: int,
    no_answers: int,
    in_patterns: int | None = None,
) -> float:
    """Return the expected half width of the interval of `answered_shares` for one of the answers.

    `share` is that among those who answer, 1 - PLANNED_NO_ANSWER of all people. `in_patterns` is
    the number of patterns with the option, if whole patterns are reported.
    """
    S, A = no_answers, 1 - PLANNED_NO_ANSWER
    p, q = channel.p, channel.q
    scatter: GroupMoments | SampledBits
    if isinstance(channel, TickChannel) and channel.is_sampled:
        m, r = channel.m, channel.sampled
        reports = n * r / m
        scatter = SampledBits(
            at_truth=p * (1 - p) / (p - q) ** 2,
            elsewhere=q * (1 - q) / (p - q) ** 2,
            reach=1 / abs(p - q),
            reports=np.array([reports]),
            silent_reports=np.full(S, reports),
            silent_parts=np.full(S, 1 / S),
            common=n * r * (r - 1) / (m * (m - 1)),
        )
    else:
        reports = n
        patterns = None if in_patterns is None else np.array([in_patterns])
        n_options = answers if in_patterns is None else 1
        scatter = support(channel, n_options, S, patterns).moments(n)
        if n_options > 1:
            scatter = _of_option(scatter, 0)
    number = 1 if in_patterns is None else in_patterns
    lam = number * q + (p - q) * share * A
    silent = np.tile([q + (p - q) * PLANNED_NO_ANSWER / S, reports], (1, S, 1))
    is_single = isinstance(channel, SubsetSelection) and channel.d == 1
    shift = support_shift(np.array([[lam, reports]]), silent, p - q, level, is_single=is_single)
    return _fieller_margin(scatter, share, (1 - 2 * lam) / (p - q), reports, lam, level, shift)


def _of_option(moments: GroupMoments, j: int) -> GroupMoments:
    """Return the moments of one option, shape (1, 1)."""
    at_truth, elsewhere, silent = (
        Squares(*(part[j : j + 1] for part in group)) for group in moments[:3]
    )
    return GroupMoments(at_truth, elsewhere, silent, moments.reach[j : j + 1], moments.n)


def _fieller_margin(
    scatter: GroupMoments | SampledBits,
    share: float,
    step: float,
    reports: float,
    lam: float,
    level: float,
    shift: Floats,
) -> float:
    """Return the expected half width of Fieller's interval of a share among those who answered."""
    A, z = 1 - PLANNED_NO_ANSWER, normal_quantile(level)
    # Var(top - r bottom), of the mean of all reports
    variance = float(scatter.variance(np.array([[share]]), np.array([[A]]))[0, 0])
    margin = z * math.sqrt(variance) / A
    if is_normal(reports * lam * (1 - lam), margin, share, level):
        return margin + float(np.interp(share, RATIOS, shift[0])) / A
    ratios, weights = outcomes(share, variance * reports / A**2, step / A, math.ceil(reports))
    low, high = ratio_ends(
        np.maximum(ratios, 0.0) * A,
        np.array([A]),
        scatter,
        np.broadcast_to(shift, (len(ratios), RATIOS.size)),
        z,
    )
    return float(weights @ (high - low)) / 2


def table_margin(
    channel: WeightTable, n: int, share: float, level: float, no_answers: Sequence[int] = ()
) -> float:
    """Return the expected half width of the widest interval of a weight table's shares.

    All other answers are equally frequent. With `no_answers` the shares are those among the people
    who answered. Raises ChannelError if the table does not identify its shares.
    """
    if channel.truths == channel.reports == 2 and not no_answers:
        P = channel.matrix
        return max(
            binomial_margin(n, Chances(float(P[j, j]), float(P[1 - j, j])), share, level)
            for j in range(2)
        )
    G = left_inverse(channel)
    silent = np.isin(np.arange(channel.truths), no_answers)
    if silent.any():
        return _answered_table_margin(channel, G, n, share, level, silent)
    moments = second_moments(channel, G, range(channel.truths))
    j = int(np.argmax(moments.variance(np.full(channel.truths, share))))
    f = planned_truths(silent, j, share) @ channel.matrix
    variance, step = _moments(G[j] - share, f)
    estimates, weights = outcomes(share, variance, step, n)
    widest = SecondMoments(moments.at_truth[j : j + 1], moments.elsewhere[j : j + 1])
    shift = lattice_shift(G[j : j + 1] / n, f[None, :], np.array([float(n)]), level)
    low, high = score_interval(estimates, n, widest, level, shift)
    return float(weights @ (high - low)) / 2


def _answered_table_margin(
    channel: WeightTable, G: Floats, n: int, share: float, level: float, silent: Booleans
) -> float:
    answers = np.flatnonzero(~silent)
    a, b = G[answers], G[answers].sum(axis=0)
    is_option = answers[:, None] == np.arange(channel.truths)

    def squares(among: Booleans) -> Squares:
        """Return E[a^2], E[a b] and E[b^2] of people with equally frequent truths."""
        weights = among / among.sum(axis=1, keepdims=True)
        means = weights @ channel.matrix
        return Squares(*((means * x).sum(axis=1, keepdims=True) for x in (a * a, a * b, b * b)))

    moments = GroupMoments(
        squares(is_option),
        squares(~is_option & ~silent),
        squares(np.broadcast_to(silent, is_option.shape)),
        np.ptp(a, axis=1),
        n,
    )
    ratio, answered = np.array([[share]]), np.array([[1 - PLANNED_NO_ANSWER]])
    j = int(np.argmax(moments.variance(ratio, answered)))
    truths = planned_truths(silent, answers[j], share)
    f = truths @ channel.matrix
    _, step = _moments(a[j] - share * b, f)
    shift = table_shift(a[j : j + 1], b, f, n, level)
    # Without a binomial count, n alone must be large.
    return _fieller_margin(_of_option(moments, j), share, step, n, 0.5, level, shift)


def planned_truths(silent: Booleans, option: int, share: float) -> Floats:
    """Return the shares of all truths: `share` of those who answer, the others equally frequent."""
    n_silent = int(silent.sum())
    A = 1 - PLANNED_NO_ANSWER if n_silent else 1.0
    others = silent.size - n_silent - 1
    shares = np.where(silent, (1 - A) / max(n_silent, 1), A * (1 - share) / others)
    shares[option] = A * share
    return np.asarray(shares)


def _moments(values: Floats, reports: Floats) -> tuple[float, float]:
    """Return the variance of values of mean 0 and their third moment divided by it."""
    variance = float(reports @ values**2)
    return variance, float(reports @ values**3) / variance if variance > 0 else 0.0


def ratio_margin(ratios: PseudoRatios, reports: Floats, n: int, level: float, j: int = 0) -> float:
    """Return the expected half width of a ratio's interval in [-1, 1], `ratios` as in `mean`.

    `reports` are the probabilities of the reports, shape (reports,).
    """
    a, b = ratios.a[j], ratios.b
    A = float(reports @ b)
    mean = float(reports @ a) / A
    e = a - mean * b
    error = math.sqrt(float(reports @ e**2) / n) / A
    z = normal_quantile(level)
    margin = z * error + float(ratios.bias[j]) / A
    if n >= NORMAL_COUNT and (1 - abs(mean)) * z >= (z + NORMAL_DISTANCE) * margin:
        return margin
    nodes, weights = NODES[::2], NODE_WEIGHTS[::2] / NODE_WEIGHTS[::2].sum()
    # The expected reports of surveys whose ratio is t standard errors away from its mean.
    surveys = np.maximum(reports * (1 + nodes[:, None] * e / (A * error * n)), 0.0)
    surveys *= n / surveys.sum(axis=1, keepdims=True)
    found = ratios.intervals(surveys, level)
    return float(weights @ (found.high[j] - found.low[j])) / 2


def expected_reports(channel: CodeChannel, answered: Sequence[bool]) -> Floats:
    """Return the probabilities of the reports if all answers are equally frequent.

    PLANNED_NO_ANSWER of all people choose one of the truths that are no answer, if there are any.
    """
    is_answer = np.array(answered, dtype=bool)
    A = 1.0 if is_answer.all() else 1 - PLANNED_NO_ANSWER
    truths = np.where(is_answer, A / is_answer.sum(), (1 - A) / max(int((~is_answer).sum()), 1))
    if isinstance(channel, SubsetSelection):
        return np.asarray(channel.q + (channel.p - channel.q) * truths)
    return np.asarray(truths @ channel.matrix)
