"""The margin that an interval has on average: computed from the interval that will be used.

The margin of a plan is E[(high - low)/2], the expected half width over all surveys of n reports.
Where counts are large and the share is far from 0 and 1, z standard errors are nearly the same and
need no enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from survey.errors import DesignError
from survey.estimator.core.arguments import CodeChannel
from survey.estimator.core.debiasing import (
    SecondMoments,
    left_inverse,
    pseudo_values,
    set_values,
)
from survey.estimator.core.fieller import RATIOS as SCATTER_RATIOS
from survey.estimator.core.fieller import minimum_scatter
from survey.estimator.core.finite_population import expected_half_width, has_table
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
from survey.estimator.numbers.mean import mean_target
from survey.estimator.shares.answered_shares import RATIOS as ANSWERED_RATIOS
from survey.estimator.shares.answered_shares import (
    GroupMoments,
    SampledBits,
    Squares,
    support,
    support_shift,
    table_shift,
)
from survey.estimator.shares.proportions import score_interval, second_moments
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats, Integers
from survey.mechanism.ranking import rank_values
from survey.mechanism.weight_table import FirstOrOrder, Mixture, OneBit, Window

PLANNED_NO_ANSWER = 0.1
"""Planned share of people who choose "prefer not to say" or "does not apply", where offered.

It is fixed, because a share that is estimated would make a plan, or a decision about what to show,
depend on the outcome.
"""

NORMAL_COUNTS = (250.0, 500.0)
"""Where n lambda(1-lambda) rises between these, z standard errors replace the enumeration."""

TEXTBOOK_COUNTS = (5.0, 9.0)
"""The same without randomization, where textbooks use the normal formula."""

NORMAL_DISTANCES = (2.0, 3.0)
"""The same for the distance of the share from 0 and 1, in standard errors beyond z."""

MAX_VARIANCE = 2_500.0
"""Counts of a larger variance are enumerated on the scale of this one."""

MAX_OUTCOMES = 40
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
    so the margin is sum_c P(c) (high(c) - low(c))/2. For the default interval, it becomes
    z sqrt(lambda(1-lambda)/n)/|p-q| where n lambda(1-lambda) is 500 and the share z + 3 standard
    errors away from 0 and 1. The result is wrong by at most .8%, by enumeration of all outcomes
    (4,147 cells: k 2 to 10, epsilon .1 to 8, shares 0 to 1, n up to 50,000; levels .9 to .99).

    >>> round(binomial_margin(44, Chances(.9997, .0003), .01, .95), 3)
    0.043
    """
    p, q = chances
    floor, ceiling = min(p, q), max(p, q)
    lam = q + (p - q) * share
    variance = n * lam * (1 - lam)
    normal = normal_quantile(level) * math.sqrt(variance) / (n * (ceiling - floor))

    def exact() -> float:
        # Fewer reports from a wider range [floor, ceiling] have the same geometry.
        size = n if variance <= MAX_VARIANCE else math.ceil(n * MAX_VARIANCE / variance)
        scale = math.sqrt(n / size)
        low = max(lam - scale * (lam - floor), TINY)
        high = min(lam + scale * (ceiling - lam), 1 - TINY)
        counts, weights = binomial_outcomes(size, lam)
        ends = np.clip(INTERVALS[interval](counts, size, low, high, level), low, high)
        return float(weights @ (ends[1] - ends[0])) / (2 * scale * (ceiling - floor))

    if interval != DEFAULT_INTERVAL:
        return exact()
    counts = TEXTBOOK_COUNTS if (floor, ceiling) == (0, 1) else NORMAL_COUNTS
    weight = normal_weight(variance, normal, min(share, 1 - share), level, counts)
    return _handed_over(weight, normal, exact)


def normal_weight(
    variance: float,
    margin: float,
    distance: float,
    level: float,
    counts: tuple[float, float] = NORMAL_COUNTS,
) -> float:
    """Return the weight of the normal formula, from 0 to 1; the remainder is enumerated.

    `variance` is that of the count, `margin` z standard errors, and `distance` that of the share
    from the nearer end of its range. The weight rises evenly, because a jump would make two numbers
    of reports, or none, the smallest with a margin.
    """
    if not margin:
        return 0.0
    z = normal_quantile(level)
    scores = (variance, counts), (distance / margin * z - z, NORMAL_DISTANCES)
    return min(min(max((x - first) / (last - first), 0.0), 1.0) for x, (first, last) in scores)


def _handed_over(weight: float, normal: float, exact: Callable[[], float]) -> float:
    return normal if weight == 1 else weight * normal + (1 - weight) * exact()


def binomial_outcomes(
    n: int, chance: float, maximum: int = MAX_OUTCOMES
) -> tuple[Integers, Floats]:
    """Return evenly spaced outcomes of Binomial(n, chance), at most `maximum`, and probabilities.

    >>> [x.round(3).tolist() for x in binomial_outcomes(2, .5)]
    [[0, 1, 2], [0.25, 0.5, 0.25]]
    """
    from scipy.special import gammaln, xlog1py, xlogy

    middle, reach = n * chance, REACH * math.sqrt(n * chance * (1 - chance)) + BEYOND
    first, last = max(math.floor(middle - reach), 0), min(math.ceil(middle + reach), n)
    counts = np.arange(first, last + 1, -(-(last - first + 1) // maximum))
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

    For many reports it becomes z standard errors as in `binomial_margin`, and the continuity
    correction of the interval, C/(n|D|) (`continuity`). Reports without randomization, D = 1, have
    the textbook formula, which leaves it out.
    """
    p, q = chances
    D = abs(p - q)
    remaining = (population - n) / max(population - 1, 1)
    at_truth, elsewhere = p * (1 - p) / D**2, q * (1 - q) / D**2
    randomization = share * at_truth + (1 - share) * elsewhere
    variance = remaining * share * (1 - share) + randomization
    lam = q + (p - q) * share
    normal = normal_quantile(level) * math.sqrt(variance / n)
    shift = continuity(level) / (n * D)

    def exact() -> float:
        if has_table(n, population):
            # If p < q, those without the option support it more often.
            of_ceiling = share if p > q else 1 - share
            return expected_half_width(n, population, min(p, q), max(p, q), of_ceiling, level)
        estimates, weights = outcomes(share, variance, (1 - 2 * lam) / (p - q), n)
        ends = [
            score_ends(
                np.clip(estimates + side * shift, 0.0, 1.0),
                n,
                np.asarray(1 + at_truth),
                np.asarray(elsewhere),
                level,
                sampled=remaining,
            )[end]
            for end, side in enumerate((-1, 1))
        ]
        low, high = np.clip(ends, 0.0, 1.0)
        return float(weights @ (high - low)) / 2

    counts = TEXTBOOK_COUNTS if D == 1 else NORMAL_COUNTS
    weight = normal_weight(n * lam * (1 - lam), normal, min(share, 1 - share), level, counts)
    return _handed_over(weight, normal if D == 1 else normal + shift, exact)


def outcomes(mean: float, variance: float, step: float, n: float) -> tuple[Floats, Floats]:
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
        return np.asarray(mean + NODES * math.sqrt(variance / n)), NODE_WEIGHTS
    j = np.arange(math.ceil(rate + REACH * math.sqrt(rate) + BEYOND) + 1)
    weights = np.exp(np.asarray(xlogy(j, rate)) - rate - gammaln(j + 1))
    return np.asarray(mean + (j - rate) * step / n), np.asarray(weights / weights.sum())


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

    # The shift because counts are whole numbers depends on the ratio, too.
    shifts = shift[0] / A

    def exact() -> float:
        ratios, weights = outcomes(share, variance * reports / A**2, step / A, reports)
        r = _ratio_grid(0.0, 1.0, share, margin)
        reach = z * np.sqrt(scatter.variance(r[None], np.array([[A]]))[0]) / A
        reach += np.interp(r, ANSWERED_RATIOS, shifts)
        return _half_width(ratios, weights, r, reach, reach)

    weight = normal_weight(reports * lam * (1 - lam), margin, min(share, 1 - share), level)
    return _handed_over(weight, margin + float(np.interp(share, ANSWERED_RATIOS, shifts)), exact)


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


def _ratio_grid(low: float, high: float, middle: float, margin: float) -> Floats:
    """Return ratios in ascending order, dense near both ends and within a few margins of one."""
    whole = (low + high) / 2 - (high - low) / 2 * np.cos(np.linspace(0, np.pi, 65))
    near = middle + margin * np.linspace(-4.0, 4.0, 65)
    return np.unique(np.clip(np.concatenate([whole, near]), low, high))


def _half_width(
    estimates: Floats,
    weights: Floats,
    r: Floats,
    below: Floats,
    above: Floats,
) -> float:
    """Return the expected half width of intervals that accept a ratio r within its own reach.

    The interval of an estimate x contains the r with -below(r) <= r - x <= above(r), so its ends
    solve r + below(r) = x and r - above(r) = x. The reaches are given on the grid `r`, whose ends
    limit estimates and intervals.
    """
    x = np.clip(estimates, r[0], r[-1])
    low = np.interp(x, np.maximum.accumulate(r + below), r)
    high = np.interp(x, np.minimum.accumulate((r - above)[::-1])[::-1], r)
    return float(weights @ (high - low)) / 2


@lru_cache(maxsize=CACHED_MARGINS)
def mean_margin(channel: CodeChannel, no_answers: int, n: int, level: float) -> float:
    """Return the expected half width of the interval of `mean`, as a fraction of the range.

    The answers are evenly spaced and equally frequent; the last `no_answers` truths are no answer.
    For a channel of rankings, it is the interval of `mean_ranks`, which has the same width for all
    options.

    >>> from survey.mechanism.numeric import one_bit
    >>> round(mean_margin(one_bit(11, 1), 0, 2000, .95), 4)  # 1.96 (e+1)/(e-1) / sqrt(2000) / 2
    0.0474
    """
    # Exact pseudo-values of a mean do not depend on n.
    size = n if _has_ridge(channel) else 1
    return _moments_of_mean(channel, no_answers, _nearby(size)).margin(n, level) / 2


@lru_cache(maxsize=CACHED_MARGINS)
def cell_margin(
    channel: CodeChannel,
    cells: tuple[tuple[bool, ...], ...],
    no_answers: int,
    n: int,
    level: float,
) -> float:
    """Return the expected half width of the widest interval of the cells of `histogram`.

    `cells` are masks over the answers, which are equally frequent.
    """
    return _moments_of_cell(channel, cells, no_answers, _nearby(n)).margin(n, level) / 2


def _has_ridge(channel: CodeChannel) -> bool:
    """Return whether `pseudo_values` of a mean may be biased, less so the larger n is."""
    return isinstance(channel, WeightTable) and not isinstance(
        channel.shape, FirstOrOrder | Mixture | OneBit | Window
    )


def _nearby(n: int) -> int:
    """Return one of a few sizes near n: biased pseudo-values depend on n, and are cached.

    >>> _nearby(1000), _nearby(1100)
    (1024, 1024)
    """
    return round(2 ** (round(2 * math.log2(n)) / 2))


RATIOS = -np.cos(np.linspace(0, np.pi, 17))
"""Ratios at which the extremes of a - r b are computed; linear between them."""

NO_FLOOR = np.zeros(SCATTER_RATIOS.size)


@dataclass(frozen=True, eq=False)
class PseudoMoments:
    """What the interval of a ratio depends on, if the answers are equally frequent.

    answered           share of people who answer, the mean of the pseudo-value b
    ratio              mean of a divided by that of b
    second, third      central moments: aa, ab, bb and aaa, aab, abb, bbb
    minimum, maximum   of a - r b minus its mean, over all reports, at each of `RATIOS`
    bias               largest bias of a - r b
    floor              smallest variance of a - r b that the randomization causes if the ratio is r,
                       at each of the ratios of `minimum_scatter`; left out for a mean, where it
                       hardly ever matters and takes long
    """

    answered: float
    ratio: float
    second: tuple[float, ...]
    third: tuple[float, ...]
    minimum: Floats
    maximum: Floats
    bias: float
    floor: Floats

    @classmethod
    def of(
        cls, a: Floats, b: Floats, bias: float, reports: Floats, floor: Floats = NO_FLOOR
    ) -> PseudoMoments:
        """Return the moments of pseudo-values of shape (reports,), given the reports' chances."""
        answered, mean_a = float(reports @ b), float(reports @ a)
        a, b = a - mean_a, b - answered
        e = a - RATIOS[:, None] * b
        return cls(
            answered,
            mean_a / answered,
            tuple(float(reports @ x) for x in (a * a, a * b, b * b)),
            tuple(float(reports @ x) for x in (a**3, a * a * b, a * b * b, b**3)),
            e.min(axis=1),
            e.max(axis=1),
            bias,
            floor,
        )

    def variance(self, r: Floats) -> Floats:
        """Return the variance of a - r b."""
        aa, ab, bb = self.second
        return np.asarray(np.maximum(aa - 2 * r * ab + r**2 * bb, 0.0))

    def margin(self, n: int, level: float) -> float:
        """Return the expected half width of the interval of `ratio_interval` in [-1, 1].

        Its variance and skewness, with one more report at the most extreme value, are those of the
        expected reports; widths of surveys differ only where -1 and 1 limit them.
        """
        error = math.sqrt(float(self.variance(np.array(self.ratio))) / n) / self.answered
        margin = normal_quantile(level) * error + self.bias / self.answered

        def exact() -> float:
            r = _ratio_grid(-1.0, 1.0, self.ratio, margin)
            estimates = np.clip(self.ratio + NODES * error, -1.0, 1.0)
            below, above = (self._reach(r, side, n, level) for side in (-1, 1))
            return _half_width(estimates, NODE_WEIGHTS, r, below, above)

        return _handed_over(normal_weight(n, margin, 1 - abs(self.ratio), level), margin, exact)

    def _reach(self, r: Floats, side: int, n: int, level: float) -> Floats:
        """Return how far an estimate may be from an accepted ratio r at the end of one side."""
        from scipy.special import stdtrit

        aaa, aab, abb, bbb = self.third
        third = side * (aaa - 3 * r * aab + 3 * r**2 * abb - r**3 * bbb)
        variance = self.variance(r)
        extreme = np.interp(r, RATIOS, self.maximum if side > 0 else -self.minimum)
        d = extreme / (n + 1)
        larger = variance + extreme * d
        floor = np.interp(r, SCATTER_RATIOS, self.floor)
        skewed = n * (third - 3 * d * variance - d**3) + (extreme - d) ** 3
        skewness = np.maximum(skewed / (n + 1) / np.maximum(larger, TINY) ** 1.5, 0.0)
        t = float(stdtrit(max(n - 1, 1), (1 + level) / 2))
        quantile = t + skewness * (2 * t**2 + 1) / (6 * math.sqrt(n))
        spread = np.sqrt(np.maximum(larger, floor) / n)
        return np.asarray((self.bias + quantile * spread) / self.answered)


@lru_cache(maxsize=CACHED_MARGINS)
def _moments_of_mean(channel: CodeChannel, no_answers: int, n: int) -> PseudoMoments:
    targets = np.pad(np.linspace(-1, 1, channel.truths - no_answers), (0, no_answers))
    if isinstance(channel, WeightTable) and isinstance(channel.shape, FirstOrOrder):
        targets = mean_target(np.array(rank_values(channel, 0), dtype=np.float64))
    a = pseudo_values(channel, targets, n)
    b, bias = _answering(channel, no_answers, n)
    return PseudoMoments.of(a.values, b, a.bias + bias, _expected_reports(channel, no_answers))


@lru_cache(maxsize=CACHED_MARGINS)
def _moments_of_cell(
    channel: CodeChannel, cells: tuple[tuple[bool, ...], ...], no_answers: int, n: int
) -> PseudoMoments:
    """Return the moments of the cell with the widest interval."""
    targets = np.pad(2.0 * np.array(cells) - 1, ((0, 0), (0, no_answers)))
    values, biases = set_values(channel, targets, n)
    b, bias = _answering(channel, no_answers, n)
    reports = _expected_reports(channel, no_answers)
    e = values - np.outer(values @ reports / (b @ reports), b)
    j = int(np.argmax(normal_quantile(0.95) * np.sqrt(e**2 @ reports / n) + biases))
    answered = np.arange(channel.truths) < channel.truths - no_answers
    scatter = minimum_scatter(channel, targets[j], answered, values[j], b)
    floor = scatter.among(np.array([float(reports @ b)]))[0]
    return PseudoMoments.of(values[j], b, float(biases[j]) + bias, reports, floor)


def _answering(channel: CodeChannel, no_answers: int, n: int) -> tuple[Floats, float]:
    """Return the pseudo-values of having answered and their bias; 1 if everybody answers."""
    if not no_answers:
        return np.ones(channel.counted), 0.0
    answered = np.arange(channel.truths) < channel.truths - no_answers
    b = pseudo_values(channel, answered.astype(np.float64), n)
    return b.values, b.bias


def _expected_reports(channel: CodeChannel, no_answers: int) -> Floats:
    """Return the probabilities of the reports if all answers are equally frequent."""
    answers, A = channel.truths - no_answers, 1 - PLANNED_NO_ANSWER if no_answers else 1.0
    truths = np.full(channel.truths, A / answers)
    truths[answers:] = (1 - A) / max(no_answers, 1)
    return expected_reports(channel, truths)


def expected_reports(channel: CodeChannel, truths: Floats) -> Floats:
    """Return the probabilities of the reports, shape (reports,), from the shares of the truths."""
    if isinstance(channel, SubsetSelection):
        return np.asarray(channel.q + (channel.p - channel.q) * truths)
    return np.asarray(truths @ channel.matrix)
