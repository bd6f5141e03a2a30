"""Confidence intervals of a share, from the exact distribution of its count or by the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from survey.estimator.core.finite_population import exact_ends, has_table
from survey.mechanism.channel import Booleans, Floats, Integers

EDGE = 1e-12
"""At shares nearer to 1 than this, the moment of the other truths cannot be estimated."""

MOST_SKEW = 2.0
"""Maximum that skewness adds to a quantile: beyond it, the expansion is invalid."""


class MomentRange(NamedTuple):
    """E[g^2] at one truth, and its minimum and maximum at the other truths; of equal shapes."""

    at_truth: Floats
    minimum: Floats
    maximum: Floats

    def of_others(self, estimate: Floats, mean_square: Floats) -> Floats:
        """Return E[g^2] at the other truths, (mean of g^2 - x at_truth)/(1-x), within its range.

        Minimum and maximum are equal where the other truths do not differ, as for one question with
        generalized randomized response.
        """
        x = np.clip(estimate, 0.0, 1.0)
        remainder = np.maximum(1 - x, EDGE)
        return np.asarray(
            np.clip((mean_square - x * self.at_truth) / remainder, self.minimum, self.maximum)
        )


def score_ends(
    estimate: Floats,
    n: Floats | int,
    at_truth: Floats,
    elsewhere: Floats,
    level: float,
    skewness: Floats | None = None,
    *,
    sampled: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return the x with n (est - x)^2 <= z^2 (x at_truth + (1-x) elsewhere - x^2).

    A pseudo-value g of a report has E[g | truth] = 1 for one truth and 0 for all others. Its mean x
    is the share of that truth, and Var g = x at_truth + (1-x) elsewhere - x^2. `at_truth` is E[g^2
    | that truth], and `elsewhere` the mean of E[g^2 | another truth]. All arrays have one shape.

    `skewness` of one pseudo-value moves the end on its side outwards (`skewed_quantiles`).
    `sampled` is the fraction of the sampling variance x (1-x) that remains: 0 for the share among
    these n respondents, (N-n)/(N-1) for n of N people. For a binomial share of reports,
    at_truth = (p (1-q)^2 + (1-p) q^2)/D^2 and elsewhere = q(1-q)/D^2 give Wilson's interval of f
    mapped by (f-q)/D. The ends are not clipped; the width is never zero. Source: Wilson 1927.

    >>> low, high = score_ends(np.array([.3]), 10, np.array([1.]), np.array([0.]), .95)
    >>> low.round(4), high.round(4)
    (array([0.1078]), array([0.6032]))
    """
    below, above = skewed_quantiles(level, 0.0 if skewness is None else skewness, n)
    # Var = elsewhere + slope x - curve x^2, with (1 - sampled) x(1-x) left out
    slope, curve = at_truth - elsewhere - (1 - sampled), sampled
    low, _ = _solve_score(estimate, n, slope, curve, elsewhere, below**2)
    _, high = _solve_score(estimate, n, slope, curve, elsewhere, above**2)
    return low, high


def skewed_quantiles(
    level: float, skewness: Floats | float, n: Floats | int
) -> tuple[Floats, Floats]:
    """Return the quantiles of the lower and of the upper end for means of n skewed values.

    The end on the side of the skewness has the quantile z + |skew| (z^2 - 1)/(6 sqrt n) of
    Edgeworth's expansion, at most z + `MOST_SKEW` (Hall 1992); the other end has z.
    """
    z = normal_quantile(level)
    shift = np.asarray(skewness * (z**2 - 1) / (6 * np.sqrt(n)))
    return z + np.clip(shift, 0.0, MOST_SKEW), z + np.clip(-shift, 0.0, MOST_SKEW)


def skewness_of(mean: Floats, square: Floats, cube: Floats, possible: Floats) -> Floats:
    """Return the observed E(g - x)^3/sd^3 from the means of g, g^2 and g^3.

    The sd is at least the root of the variance `possible`, so that identical reports have none.
    """
    third = cube - 3 * mean * square + 2 * mean**3
    variance = np.maximum(np.maximum(possible, square - mean**2), EDGE)
    return np.asarray(third / variance**1.5)


def _solve_score(
    estimate: Floats, n: Floats | int, slope: Floats, curve: float, elsewhere: Floats, z2: Floats
) -> tuple[Floats, Floats]:
    # a x^2 - 2 b x + n est^2 - z^2 elsewhere = 0, b = n est + z^2 slope/2
    a, b = n + curve * z2, n * estimate + z2 * slope / 2
    # b^2 - a (n est^2 - z^2 elsewhere), without subtracting two numbers of size n^2
    variance = np.maximum(elsewhere + slope * estimate - curve * estimate**2, 0.0)
    root = np.sqrt(z2 * (n * variance + z2 * (slope**2 / 4 + curve * elsewhere)))
    return np.asarray((b - root) / a), np.asarray((b + root) / a)


ROOT_TOLERANCE = 1e-5
"""Maximum error of a root, in standard errors; it always lies on the outer side."""

ROUNDING = 1e-6
"""Ends move outwards by this many standard errors, more than rounding errors up to n = 10^10."""

FIRST_STEP = 20
"""The search over m begins in steps of 1/20 standard deviation; this affects speed only."""

CACHED_QUESTIONS = 256
"""Number of questions whose ends are cached, with 24 bytes for each distinct count."""


def feldman_cousins(
    counts: Integers, n: int, floor: float, ceiling: float, level: float
) -> tuple[Floats, Floats]:
    """Return both ends for lambda in [floor, ceiling], 0 < floor < ceiling < 1.

    The ends have the shape of `counts`. The interval is exact at every n: its hull covers every
    lambda in the range with probability at least `level`. At low levels (below about .62) an
    outcome outside the range may be accepted nowhere inside it; then its inner end is nan. Source:
    Feldman and Cousins 1998, doi 10.1103/PhysRevD.57.3873.

    >>> low, high = feldman_cousins(np.array([3, 7]), 10, 0.25, 0.75, 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.25, 0.387], [0.613, 0.75])
    """
    distinct, position = np.unique(counts, return_inverse=True)
    low, high = _ends(distinct.astype(np.int64).tobytes(), n, floor, ceiling, level)
    return low[position], high[position]


@lru_cache(maxsize=CACHED_QUESTIONS)
def _ends(
    counts: bytes, n: int, floor: float, ceiling: float, level: float
) -> tuple[Floats, Floats]:
    """Return the ends for distinct counts, given as bytes of int64; one pass for both sides."""
    c = np.frombuffer(counts, dtype=np.int64)
    a = np.repeat([floor, 1 - ceiling], c.size)
    b = np.repeat([ceiling, 1 - floor], c.size)
    low, mirrored = np.split(_lower_end(np.concatenate([c, n - c]), n, a, b, level), 2)
    # 1 - (1 - ceiling) may differ from ceiling by rounding; the range must be exact.
    return low, np.where(mirrored == 1 - ceiling, ceiling, 1 - mirrored)


def _lower_end(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Floats:
    """Return the smallest lambda in [a, b] at which c is accepted, in the shape of c.

    It is theta_m, or the root on the segment that ends there. Where c <= n a it is a, because no
    outcome ranks above c there.
    """
    end, inside = a.copy(), np.flatnonzero(c > n * a)
    if not inside.size:
        return end
    c, a, b = c[inside], a[inside], b[inside]
    m = _first_accepted(c, n, a, b, level)
    # For m >= n b the slope is logit(b), and c is rejected everywhere below b.
    upper = np.where(m < n * b, np.clip(_overtaking(m, c, n, a, b), a, b), np.nan)
    lower = np.where(m > 0, np.clip(_overtaking(m - 1, c, n, a, b), a, b), a)
    crossing = np.flatnonzero(_between(m, c, n, upper) < level)
    if crossing.size:
        upper[crossing] = _level_crossing(
            m[crossing], c[crossing], n, lower[crossing], upper[crossing], level
        )
    # At theta_m one outcome replaces another: rounding must not leave a gap between the ends.
    end[inside] = np.clip(upper - ROUNDING * np.sqrt(upper * (1 - upper) / n), a, b)
    return end


def _level_crossing(
    m: Integers, c: Integers, n: int, lower: Floats, upper: Floats, level: float
) -> Floats:
    """Return where P(m <= X < c) falls below level in [lower, upper].

    Bisect, and return the rejected end of the last bracket.
    """
    tolerance = ROOT_TOLERANCE * np.sqrt(upper * (1 - lower) / n)
    while np.any(wide := upper - lower > tolerance):
        middle = (lower + upper) / 2
        rejected = _between(m, c, n, middle) >= level
        lower, upper = (
            np.where(wide & rejected, middle, lower),
            np.where(wide & ~rejected, middle, upper),
        )
    return lower


def _first_accepted(c: Integers, n: int, a: Floats, b: Floats, level: float) -> Integers:
    """Return the first m in [0, c) with P(m < X < c; theta_m) < level, by bisection over m.

    The probability falls as m grows (the tests check this by enumeration). For normal counts, m is
    2z standard deviations below c; the search begins there, in growing steps.
    """
    first, last = np.zeros_like(c), c - 1
    x = np.clip(c / n, a, b)
    deviation = np.sqrt(n * x * (1 - x))
    step = 1 + (deviation / FIRST_STEP).astype(np.int64)
    m = np.maximum(c - np.ceil(2 * normal_quantile(level) * deviation).astype(np.int64), 0)
    m = np.minimum(m, last)
    while np.any(first < last):
        accepted = _between(m + 1, c, n, _overtaking(m, c, n, a, b)) < level
        last = np.where(accepted, m, last)
        first = np.where(accepted, first, np.minimum(m + 1, last))
        halfway = (first + last) // 2
        m = np.where(accepted, np.maximum(m - step, halfway), np.minimum(m + step, halfway))
        step = np.minimum(4 * step, n)
    return first


def _overtaking(m: Integers, c: Integers, n: int, a: Floats, b: Floats) -> Floats:
    """Return the lambda at which m < c ranks as high as c.

    logit(lambda) = (l(c) - l(m)) / (c - m).
    """
    from scipy.special import expit

    slope = (_best_log_likelihood(c, n, a, b) - _best_log_likelihood(m, n, a, b)) / (c - m)
    return np.asarray(expit(slope))


def _best_log_likelihood(c: Integers, n: int, a: Floats, b: Floats) -> Floats:
    """Return l(c) = c log x + (n - c) log(1 - x) at x = clip(c/n, a, b)."""
    x = np.minimum(np.maximum(c / n, a), b)
    return np.asarray(c * np.log(x) + (n - c) * np.log1p(-x))


def _between(m: Integers, c: Integers, n: int, share: Floats) -> Floats:
    """Return P(m <= X < c) for X ~ Binomial(n, share), 0 <= m <= c, 1 <= c <= n.

    P(X < x) = 1 - I_share(x, n - x + 1), the regularized incomplete beta function.
    """
    from scipy.special import betaincc

    below_m = np.where(m > 0, betaincc(np.maximum(m, 1), n - m + 1, share), 0.0)
    return np.asarray(betaincc(c, n - c + 1, share) - below_m)


Ends = tuple[Floats, Floats]

FIXED_POPULATION = "fixed-population"
"""Name of the interval for the shares among these respondents."""

DEFAULT_INTERVAL = "feldman-cousins"
NEWTON_STEPS = 50
NEWTON_TOLERANCE = 1e-12


@runtime_checkable
class ReportChances(Protocol):
    """A channel with p, the chance that a report supports the truth, and q for other options."""

    @property
    def p(self) -> float: ...
    @property
    def q(self) -> float: ...


class Chances(NamedTuple):
    """The probabilities p and q alone."""

    p: float
    q: float


def confidence_interval(
    counts: Integers, n: int, channel: ReportChances, level: float, interval: str
) -> Ends:
    """Return the ends of the named interval for every option's share, clipped to [0, 1].

    `counts` has shape (k,) with values from 0 to `n`. Returns (low, high), each of shape (k,).
    Each interval covers one share with probability `level`; coverage is not simultaneous.
    Raises ValueError for an unknown name.

    >>> from survey.mechanism import grr
    >>> low, high = confidence_interval(np.array([60, 40]), 100, grr(2, "3/4"), 0.95, "wilson")
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.504, 0.119], [0.881, 0.496])
    """
    if interval not in INTERVALS:
        raise ValueError(f"unknown interval {interval!r}; the names are {', '.join(INTERVALS)}")
    floor, ceiling = sorted((channel.p, channel.q))
    return mapped_to_shares(INTERVALS[interval](counts, n, floor, ceiling, level), channel)


def mapped_to_shares(ends: Ends, channel: ReportChances) -> Ends:
    """Return pi = (lambda - q)/(p - q), clipped to [0, 1]; it falls in lambda when p < q."""
    mapped = (np.stack(ends) - channel.q) / (channel.p - channel.q)
    low, high = np.clip(np.sort(mapped, axis=0), 0.0, 1.0)
    return low, high


def feldman_cousins_interval(
    counts: Integers, n: int, floor: float, ceiling: float, level: float
) -> Ends:
    """Return `feldman_cousins`, with the likelihood-ratio end where the width would be zero.

    This happens only at low levels, for outcomes outside the range, and never lowers coverage.
    """
    low, high = feldman_cousins(counts, n, floor, ceiling, level)
    flat = ~(np.minimum(high, ceiling) > np.maximum(low, floor))
    if flat.any():
        reach = likelihood_ratio_ends(counts, n, floor, ceiling, level)
        low = np.where(flat, np.fmin(low, reach[0]), low)
        high = np.where(flat, np.fmax(high, reach[1]), high)
    return low, high


def wilson(counts: Integers, n: int | Integers, level: float) -> Ends:
    """Return the score interval for the share of reports (Wilson 1927).

    (f + z^2/2n -+ z sqrt(f(1-f)/n + z^2/4n^2)) / (1 + z^2/n), f = c/n. Coverage falls to .931 at
    .95.
    """
    return _wilson_ends(counts / n, n, normal_quantile(level))


def _wilson_ends(f: Floats, n: int | Integers, z: float) -> Ends:
    centre = f + z**2 / (2 * n)
    half = z * np.sqrt(f * (1 - f) / n + z**2 / (4 * n**2))
    return (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)


def wilson_hull(
    counts: Integers, n: int | Integers, floor: float, ceiling: float, level: float
) -> Ends:
    """Return Wilson's interval, widened inwards for outcomes at or outside the range.

    Where f <= floor or f >= ceiling, the inner end moves to the likelihood-ratio end if that
    reaches further, so the width is never zero. Approximate: for n min(floor, 1-ceiling) >= 200,
    coverage at .95 stays above .944; below, it can fall to .87.
    """
    return _hull(wilson(counts, n, level), counts, n, floor, ceiling, level)


def _hull(
    ends: Ends, counts: Integers, n: int | Integers, floor: float, ceiling: float, level: float
) -> Ends:
    """Move the ends inwards to the likelihood-ratio end where that reaches further."""
    low, high = ends
    inner_low, inner_high = likelihood_ratio_ends(counts, n, floor, ceiling, level)
    return np.fmin(low, inner_low), np.fmax(high, inner_high)


def clopper_pearson(counts: Integers, n: int, level: float) -> Ends:
    """Return the exact equal-tailed interval for the share of reports.

    Quantiles of Beta(c, n-c+1) at alpha/2 and of Beta(c+1, n-c) at 1 - alpha/2 (Clopper and Pearson
    1934). Coverage is at least `level`.
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)
    fails = n - counts
    high = np.where(fails > 0, 1 - betaincinv(np.maximum(fails, 1), counts + 1, tail), 1.0)
    return low, high


def clopper_pearson_interval(
    counts: Integers, n: int, floor: float, ceiling: float, level: float
) -> Ends:
    """Return `clopper_pearson`, widened inwards like the hull for outcomes at or outside the range.

    The width is never zero, the ends rise with the count, and coverage is never lower.
    """
    return _hull(clopper_pearson(counts, n, level), counts, n, floor, ceiling, level)


def continuity(level: float) -> float:
    """Return by how many reports, at least 1/2, an end moves out because counts are whole numbers.

    If wrong reports are rare, their number is nearly Poisson with a rate r, and none occurs with
    probability e^-r. Below r = -log(level) that is enough. Above it, the interval must also cover
    one wrong report: C + z sqrt(r) >= 1.

    >>> [round(continuity(level), 3) for level in (.9, .95, .99)]
    [0.5, 0.556, 0.742]
    """
    return max(0.5, 1 - normal_quantile(level) * math.sqrt(-math.log(level)))


CANDIDATE_JUMPS = 8
"""Maximum number of different jumps to compare for each estimate."""

LARGEST_BATCH = 2**18
"""Maximum number of values in a batch, which takes 16 MB for each of some arrays."""

SMALLEST_JUMP = 1e-9
"""Values that differ by less than this fraction of the largest are equal."""


def lattice_shift(values: Floats, shares: Floats, n: Floats, level: float) -> Floats:
    """Return by how much an end of a score interval moves out because counts are whole numbers.

    The estimate is a sum of one value per report. Group s has n[..., s] reports, and a fraction
    shares[..., s, c] of them has the value values[..., s, c]. The result has the shape of the
    leading axes. Where all values are multiples of a jump h away from a
    common one, the end moves by C h (`continuity`), as for a binomial count. Other values smooth
    the distribution of the sum: its sawtooth of period h has the amplitude |phi(2 pi/h)|, where phi
    is the characteristic function of the sum (Esseen 1945). The shift is the largest
    C h |phi(2 pi/h)| over the jumps h between a group's most frequent value and its other ones.

    >>> bits, half = np.array([[1.0, 0.0]]) / 50, np.full((1, 2), 0.5)
    >>> round(50 * float(lattice_shift(bits, half, np.array([50.0]), 0.95)), 3)  # reports
    0.556
    """
    values, shares = np.broadcast_arrays(values, shares)
    n = np.broadcast_to(n, values.shape[:-1])
    if values.size > LARGEST_BATCH and values.ndim > 2 and len(values) > 1:
        halves = (slice(len(values) // 2), slice(len(values) // 2, None))
        return np.concatenate(
            [lattice_shift(values[half], shares[half], n[half], level) for half in halves]
        )
    mode = np.take_along_axis(values, shares.argmax(axis=-1)[..., None], axis=-1)
    jumps = np.abs(values - mode)
    jumps = np.sort(jumps.reshape(*jumps.shape[:-2], -1), axis=-1)
    if jumps.shape[-1] > CANDIDATE_JUMPS:
        chosen = np.linspace(0, jumps.shape[-1] - 1, CANDIDATE_JUMPS).round().astype(np.int64)
        jumps = jumps[..., chosen]
    is_jump = jumps > SMALLEST_JUMP * jumps[..., -1:]
    u = 2 * np.pi / np.where(is_jump, jumps, 1.0)
    phase = u[..., None, None] * values[..., None, :, :]
    # |phi| = prod_s |sum_c f_sc e^(i u values_sc)|^n_s
    length = np.hypot(
        *(np.einsum("...jsc,...sc->...js", wave, shares) for wave in (np.cos(phase), np.sin(phase)))
    )
    damping = np.prod(np.minimum(length, 1.0) ** n[..., None, :], axis=-1)
    return np.asarray(continuity(level) * np.where(is_jump, jumps * damping, 0.0).max(axis=-1))


def fixed_population(counts: Integers, n: int, floor: float, ceiling: float, level: float) -> Ends:
    """Return the interval for the share among these n respondents, who are not a sample.

    It is that of `finite_population` for a population of n. It does not cover the population's
    share, because it leaves out the sampling error.
    """
    return finite_population(counts, n, floor, ceiling, level, n)


def finite_population(
    counts: Integers, n: int, floor: float, ceiling: float, level: float, population: int
) -> Ends:
    """Return the interval for the share of N people, of whom n, drawn at random, reported.

    For populations with a table of outcomes it is exact (`exact_ends`). Otherwise it is the score
    interval |f - lambda| <= C/n + z sqrt(V(lambda)/n), with C from `continuity` and
    V = pi p(1-p) + (1-pi) q(1-q) + (N-n)/(N-1) D^2 pi(1-pi); f is clipped to [floor, ceiling], so
    the width is never zero. By enumeration of every outcome of every population (k 2 to 10, epsilon
    .2 to 8, n from 25 to 1,000), that covers at least .950 at .95.
    """
    D = ceiling - floor
    if has_table(n, population):
        low, high = (end[counts] for end in exact_ends(n, population, floor, ceiling, level))
    else:
        at_truth, elsewhere = 1 + ceiling * (1 - ceiling) / D**2, floor * (1 - floor) / D**2
        shift = continuity(level) / (n * D)
        low, high = (
            score_ends(
                np.clip((counts / n - floor) / D + side * shift, 0.0, 1.0),
                n,
                np.asarray(at_truth),
                np.asarray(elsewhere),
                level,
                sampled=(population - n) / max(population - 1, 1),
            )[end]
            for end, side in enumerate((-1, 1))
        )
    low, high = np.clip(floor + D * np.stack([low, high]), floor, ceiling)
    return low, high


Interval = Callable[[Integers, int, float, float, float], Ends]
INTERVALS: Mapping[str, Interval] = MappingProxyType(
    {
        DEFAULT_INTERVAL: feldman_cousins_interval,
        "wilson-hull": wilson_hull,
        "wilson": lambda counts, n, _floor, _ceiling, level: wilson(counts, n, level),
        "clopper-pearson": clopper_pearson_interval,
        FIXED_POPULATION: fixed_population,
    }
)
"""All intervals by name: from (counts, n, floor, ceiling, level) to ends on the scale of lambda."""


def likelihood_ratio_ends(
    counts: Integers, n: int | Integers, floor: float, ceiling: float, level: float
) -> Ends:
    """Return inner ends of the constrained likelihood-ratio interval where f is outside the range.

    For f <= floor the upper end, for f >= ceiling the lower end, and nan for every other end.
    """
    low, high = np.full(counts.shape, np.nan), np.full(counts.shape, np.nan)
    n = np.broadcast_to(np.asarray(n), counts.shape)
    under, over = counts <= n * floor, counts >= n * ceiling
    high[under] = np.fmin(_likelihood_reach(counts[under], n[under], floor, level), ceiling)
    fails = n[over] - counts[over]
    low[over] = np.fmax(1 - _likelihood_reach(fails, n[over], 1 - ceiling, level), floor)
    return low, high


def _likelihood_reach(c: Integers, n: Integers, a: float, level: float) -> Floats:
    """Return the lambda > a with log L(a; c) - log L(lambda; c) = z^2/2, for c <= n a.

    Newton's method in theta = logit(lambda), where the log likelihood c theta - n log(1+e^theta)
    is concave: from the far side of the root it converges monotonically.
    """
    from scipy.special import expit, logit

    z, start = normal_quantile(level), float(logit(a))
    # Wilson's upper end of the share a.
    theta = logit(_wilson_ends(np.full(c.shape, a), n, z)[1])
    for _ in range(NEWTON_STEPS):
        rise = np.logaddexp(0, theta) - np.logaddexp(0, start)
        excess = c * (theta - start) - n * rise + z**2 / 2
        step = excess / (n * expit(theta) - c)
        theta = theta + step
        if np.all(np.abs(step) < NEWTON_TOLERANCE):
            break
    return np.asarray(expit(theta))


def last_accepted(
    start: Floats, end: Floats, accepted: Callable[[Floats], Booleans], halvings: int
) -> Floats:
    """Return where acceptance ends between accepted starts and ends, or the end if accepted."""
    outside, inside = end, np.where(accepted(end), end, start)
    for _ in range(halvings):
        middle = (inside + outside) / 2
        is_accepted = accepted(middle)
        inside = np.where(is_accepted, middle, inside)
        outside = np.where(is_accepted, outside, middle)
    return outside


LARGEST_QUANTILE = 8.0
"""Larger quantiles of Student's t (two reports) have no level below 1 in double precision."""


def level_of_student(level: float, n: int) -> float:
    """Return the level of the normal quantile that equals Student's of `level` and n - 1 degrees.

    >>> round(normal_quantile(level_of_student(0.95, 50)), 3)
    2.01
    """
    from scipy.special import ndtr, stdtrit

    t = min(float(stdtrit(max(n - 1, 1), (1 + level) / 2)), LARGEST_QUANTILE)
    return float(2 * ndtr(t) - 1)


def normal_quantile(level: float) -> float:
    """Return z with P(|N(0, 1)| <= z) = level."""
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


def z_of_interval(estimate: Floats, reach: Floats, level: float) -> Floats:
    """Return z = z_level estimate/reach, whose p-value is below 1 - `level` where 0 is excluded.

    `reach` is the distance from the estimate to the end of its interval on the side of 0. For the
    interval estimate -+ z_level SE, z is estimate/SE. Source: Altman and Bland 2011.

    >>> z_of_interval(np.array([0.3]), np.array([0.2]), 0.95).round(2)
    array([2.94])
    """
    # An estimate of 0 is in its interval even if the reach is 0.
    ratio = np.divide(
        estimate, reach, out=np.sign(estimate) * LARGEST_QUANTILE, where=np.asarray(reach) > 0
    )
    return np.asarray(normal_quantile(level) * ratio)
