"""Shares of the true answers from counts of reports, for every kind of channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import (
    bit_counts,
    check_at_most,
    checked_arguments,
    checked_level,
    reports_from,
    whole_counts,
    within_reach,
)
from survey.estimator.core.debiasing import (
    SecondMoments,
    binary_error,
    binary_moments,
    effective_answers,
    left_inverse,
    observed_variance,
    pseudo_values,
)
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    FIXED_POPULATION,
    Chances,
    ReportChances,
    confidence_interval,
    lattice_shift,
    score_ends,
)
from survey.estimator.core.maximum_likelihood import (
    checked_sets,
    most_likely_mixture,
    most_likely_of_sets,
    most_likely_of_supports,
    norm_sub,
    require_two_options,
)
from survey.estimator.core.result import Result
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Floats, Integers

LIKELIHOOD, PROJECTION, EACH_OPTION = "maximum likelihood", "projection", "each option alone"
"""Methods for the shares to display; see `Proportions.mle_method`."""


@dataclass(frozen=True, eq=False, repr=False)
class Proportions(Result):
    """Estimated shares of the k true answers; arrays have shape (k,) and are read-only.

    estimate     linear in the counts: unbiased, may be outside [0, 1]
    mle          most likely shares, in [0, 1], for display only; see `mle_method`
    std_error    of `estimate`, for the population that the respondents represent; with the interval
                 "fixed-population", for these respondents. Never 0: if all reports are identical,
                 it is the error of the randomization (`observed_variance`)
    conf_low     ends of the interval, in [0, 1]; `estimate` may be outside them
    conf_high
    n            number of reports
    n_effective  number of answers without randomization that would be as informative about the
                 population: pi(1-pi)/std_error^2
    level        nominal coverage, of each interval or simultaneous
    method       name of the interval
    reports      reports about each option: n, or fewer if each person is asked about some options
    moments      second moments of a single report's pseudo-values
    mle_method   "maximum likelihood": of all shares together; "projection": the possible shares
                 nearest to `estimate` (`norm_sub`), if counts do not determine the likelihood or
                 its maximum was not found in time; "each option alone": if several options may be
                 true, the most likely share of each

    An option without reports has the estimate nan, the interval [0, 1] and n_effective 0.
    """

    estimate: Floats
    mle: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    n: int
    n_effective: Floats
    level: float
    method: str
    reports: Integers
    moments: SecondMoments
    mle_method: str = EACH_OPTION

    @property
    def target(self) -> str:
        """Return whose shares these are: "population" or "respondents"."""
        return "respondents" if self.method.startswith(FIXED_POPULATION) else "population"


POPULATION, RESPONDENTS = TARGETS = ("population", "respondents")
"""Whose shares are estimated: those of the population, or of these respondents."""


class IntervalOptions(NamedTuple):
    """Options of an interval: its name, its level, and whether the coverage is simultaneous.

    `complementary` shares are two that add up to one: their intervals mirror each other.
    """

    interval: str = DEFAULT_INTERVAL
    level: float = 0.95
    simultaneous: bool = False
    complementary: bool = False

    @classmethod
    def of(cls, target: str, interval: str, level: float, simultaneous: bool) -> IntervalOptions:
        """Return the options, with the interval of the target; check the level."""
        if target not in TARGETS:
            raise ValueError(
                f"unknown target {target!r}; the targets are population and respondents"
            )
        if target == RESPONDENTS:
            if interval not in (DEFAULT_INTERVAL, FIXED_POPULATION):
                raise ValueError(
                    f"interval {interval!r} is for the population; "
                    f"for the respondents use {FIXED_POPULATION!r}"
                )
            interval = FIXED_POPULATION
        return cls(interval, checked_level(level), simultaneous)

    @property
    def target(self) -> str:
        """Return the target of the interval: respondents or population."""
        return RESPONDENTS if self.interval == FIXED_POPULATION else POPULATION

    def level_of_each(self, k: int) -> float:
        """Return the level of each of k intervals."""
        if not self.simultaneous or self.complementary:
            return self.level
        # Bonferroni: P(any of k misses) <= k (1-level)/k.
        return 1 - (1 - self.level) / k

    def method(self, name: str) -> str:
        """Return the method to report for an interval of this name."""
        return f"{name}, simultaneous" if self.simultaneous else name


def binomial_shares(
    counts: Integers,
    reports: Integers,
    p: Floats,
    q: Floats,
    interval_options: IntervalOptions,
    *,
    n: int,
) -> Proportions:
    """Estimate shares from counts[j] of reports[j] reports that support option j.

    Each supports it with probability q_j + (p_j - q_j) pi_j. All arrays have shape (k,). The mle
    of each option is the linear estimate clipped to [0, 1].
    """
    moments = binary_moments(p, q)
    # Options without reports become nan, without a warning.
    f = np.divide(counts, reports, out=np.full(counts.shape, np.nan), where=reports > 0)
    estimate = (f - q) / (p - q)
    low, high = _ends(counts, reports, p, q, interval_options)
    if interval_options.target == POPULATION:
        std_error = binary_error(f, np.maximum(reports, 1), p, q)
    else:
        # [pi p(1-p) + (1-pi) q(1-q)] / (n D^2): randomization alone.
        pi = np.clip(estimate, 0.0, 1.0)
        std_error = np.sqrt(moments.randomization(pi) / np.maximum(reports, 1))
    return Proportions(
        estimate=estimate,
        mle=np.clip(estimate, 0.0, 1.0),
        std_error=std_error,
        conf_low=low,
        conf_high=high,
        n=n,
        n_effective=effective_answers(estimate, reports, moments),
        level=interval_options.level,
        method=interval_options.method(interval_options.interval),
        reports=reports,
        moments=moments,
    )


def _ends(
    counts: Integers, reports: Integers, p: Floats, q: Floats, interval_options: IntervalOptions
) -> tuple[Floats, Floats]:
    """Return the intervals of all options, equal ones together; [0, 1] without reports."""
    low, high = np.zeros(counts.shape), np.ones(counts.shape)
    level = interval_options.level_of_each(counts.size)
    groups: dict[tuple[int, float, float], list[int]] = {}
    for j, key in enumerate(zip(reports.tolist(), p.tolist(), q.tolist(), strict=True)):
        groups.setdefault(key, []).append(j)
    for (n, option_p, option_q), options in groups.items():
        if n:
            low[options], high[options] = confidence_interval(
                counts[options], n, Chances(option_p, option_q), level, interval_options.interval
            )
    return low, high


@checked_arguments
def proportions(
    counts: ArrayLike,
    channel: AnyChannel,
    *,
    n: int | None = None,
    level: float = 0.95,
    interval: str = DEFAULT_INTERVAL,
    simultaneous: bool = False,
    target: str = "population",
    labels: Sequence[str] | None = None,
) -> Proportions:
    """Estimate the share of each true answer from counts of reports.

    `counts` are the result of `channel.count`; `channel` is the one that every device used:
    SubsetSelection   supports per option, with the sum n d. For 1 < d < k-1 they do not determine
                      the likelihood of the reported sets, and mle is the projection of the
                      estimate; `set_shares` uses the sets themselves
    BitVector         ones per option, and `n`; with sampled options, first how often each was asked
    HalfSpace         ones per option, and `n`
    WeightTable       one count per report; the shares include those of "no answer" truths
    `n`, the number of reports, is needed only if the counts do not determine it. Labelled counts,
    such as `value_counts()` of pandas, must be labelled by code; they are put in this order.
    `labels` are the names of the true answers in the order of the codes: then a Series may be
    labelled by them, and they are the index of the result.

    `level` is the coverage of each interval, or of all k together if `simultaneous`
    (Bonferroni: each at 1 - (1-level)/k; for the two options of a question both at `level`, because
    both intervals miss together).
    `interval` is one of feldman-cousins, wilson-hull, wilson, clopper-pearson, fixed-population.
    Tables of more than two options have "score" (see `table_shares`) and fixed-population.
    `target` is "population", from which the respondents are a sample, or "respondents": the shares
    among these n people, which only the randomization makes uncertain. Then std_error and the
    interval ("fixed-population") are those of the respondents. For options about which only some
    were asked, they describe those people. An option without reports has the estimate and std_error
    nan, the interval [0, 1] and n_effective 0; the others are estimated as usual.

    Valid if respondents answer truthfully and independently and their devices used `channel`. The
    data cannot show whether they did. Feldman-Cousins and Clopper-Pearson cover with at least
    `level` at every n and every true share; the others do so only approximately. For the reasons
    against Bayes and norm-sub as defaults see `dirichlet_mean` and `norm_sub`.
    Sources: Warner 1965; Kairouz, Oh, Viswanath 2016; Feldman and Cousins 1998; Wilson 1927.

    Raises CountsError for counts that this channel cannot produce, ChannelError for a channel from
    which shares cannot be estimated, ValueError for an unknown interval or target or a level
    outside (0, 1).

    >>> from survey.mechanism import grr
    >>> proportions([700, 1300], grr(2, "3/4"))
    Proportions(n=2000, level=0.9500, method='feldman-cousins', mle_method='maximum likelihood')
    option  estimate     mle  std_error  conf_low  conf_high  n_effective  reports
         0    0.2000  0.2000     0.0213    0.1583     0.2423     351.6484     2000
         1    0.8000  0.8000     0.0213    0.7577     0.8417     351.6484     2000
    """
    interval_options = IntervalOptions.of(target, interval, level, simultaneous)
    shares = _shares(counts, channel, n, interval_options)
    return shares if labels is None else shares.with_labels(labels)


def _shares(
    counts: ArrayLike, channel: AnyChannel, n: int | None, interval_options: IntervalOptions
) -> Proportions:
    if isinstance(channel, TickChannel):
        ones, reports, n = bit_counts(counts, channel, n)
        p, q = np.full(channel.m, channel.p), np.full(channel.m, channel.q)
        return binomial_shares(ones, reports, p, q, interval_options, n=n)
    if isinstance(channel, SubsetSelection):
        return _set_shares(counts, channel, n, interval_options)
    c = whole_counts(counts, channel.reports, "one per report")
    shares = table_shares(c, reports_from(int(c.sum()), 1, n), channel, interval_options)
    return with_mle(shares, shares.mle)


def with_mle(shares: Proportions, most_likely: Floats) -> Proportions:
    """Return the shares with the given mle, or the nearest possible shares where it is nan."""
    if np.isnan(most_likely).any():
        return replace(shares, mle=norm_sub(shares.estimate), mle_method=PROJECTION)
    return replace(shares, mle=most_likely, mle_method=LIKELIHOOD)


@checked_arguments
def set_shares(
    reports: ArrayLike,
    channel: SubsetSelection,
    *,
    level: float = 0.95,
    interval: str = DEFAULT_INTERVAL,
    simultaneous: bool = False,
    target: str = "population",
) -> Proportions:
    """Estimate the share of each true answer from the reported sets, one per row.

    `reports` has shape (n, k), with 1 (or True) where the report contains the option, as returned
    by `channel.perturb` for d > 1. The result is that of `proportions` of their supports except for
    mle, which is the maximum likelihood for every d (`most_likely_of_sets`).

    >>> pair = SubsetSelection(k=4, d=2, T=3, L=1)
    >>> members = pair.perturb(np.zeros(2000, dtype=np.int64), np.random.default_rng(1))
    >>> found = set_shares(members, pair)
    >>> found.mle.round(2).tolist(), found.mle_method
    ([0.92, 0.06, 0.0, 0.02], 'maximum likelihood')
    """
    members = checked_sets(reports, channel)
    interval_options = IntervalOptions.of(target, interval, level, simultaneous)
    shares = _set_shares(
        members.sum(axis=0, dtype=np.int64), channel, len(members), interval_options
    )
    return with_mle(shares, most_likely_of_sets(members, channel))


@checked_arguments
def debias(report_shares: ArrayLike, channel: ReportChances) -> Floats:
    """Return the linear estimate pi = (f - q)/(p - q) from shares f of reports, elementwise.

    It is unbiased, reaches the Cramér-Rao bound for d = 1, and is not clipped, so that sums,
    averages and differences are correct. Raises CountsError unless all values are finite numbers,
    ChannelError for p = q.

    >>> from survey.mechanism import grr
    >>> debias([0.75, 0.25], grr(2, "3/4")).tolist()
    [1.0, 0.0]
    """
    if channel.p == channel.q:
        raise ChannelError(
            f"p = q = {channel.p}: the reports contain no information about the answers"
        )
    f = np.asarray(report_shares, dtype=np.float64)
    if not within_reach(f).all():
        raise CountsError("shares of reports must be finite numbers")
    return np.asarray((f - channel.q) / (channel.p - channel.q))


def _set_shares(
    counts: ArrayLike, channel: SubsetSelection, n: int | None, interval_options: IntervalOptions
) -> Proportions:
    require_two_options(channel)
    c = whole_counts(counts, channel.k, "one per option")
    n = reports_from(int(c.sum()), channel.d, n)
    reports = np.full(channel.k, n)
    check_at_most(c, reports, "reports support it")
    p, q = np.full(channel.k, channel.p), np.full(channel.k, channel.q)
    interval_options = interval_options._replace(complementary=channel.k == 2)
    shares = binomial_shares(c, reports, p, q, interval_options, n=n)
    return with_mle(shares, most_likely_of_supports(c, n, channel))


SCORE = "score"

CACHED_QUESTIONS = 64
"""Number of questions whose most likely shares are cached, with 8 bytes per truth and report."""


def table_shares(
    counts: Integers, n: int, channel: WeightTable, interval_options: IntervalOptions
) -> Proportions:
    """Estimate the shares of a weight table: counts[j] of the n reports are report j.

    Tables of two truths and two reports are binomial. All others use the linear estimate of least
    variance at uniform truth, its error from the counts, the score interval, and the most likely
    shares.
    """
    if channel.truths == channel.reports == 2:
        P = channel.matrix
        p, q = np.diag(P).copy(), np.diag(P[::-1]).copy()
        interval_options = interval_options._replace(complementary=True)
        return binomial_shares(counts, np.full(2, n), p, q, interval_options, n=n)
    G = left_inverse(channel)
    moments = second_moments(channel, G, range(channel.truths))
    mle = _most_likely(counts.tobytes(), channel).copy()
    return _score_shares(counts, n, channel, G, moments, np.zeros(len(G)), mle, interval_options)


@lru_cache(maxsize=CACHED_QUESTIONS)
def _most_likely(counts: bytes, channel: WeightTable) -> Floats:
    """Return the most likely shares; `answered_shares` asks for the same ones again."""
    return most_likely_mixture(np.frombuffer(counts, dtype=np.int64), channel.matrix)


@checked_arguments
def no_answer_shares(
    counts: ArrayLike,
    channel: WeightTable,
    *,
    level: float = 0.95,
    simultaneous: bool = False,
    target: str = POPULATION,
) -> Proportions:
    """Estimate the shares of the truths that are no answer ("prefer not to say") among all people.

    This works even for tables whose other shares cannot be estimated, such as one bit. `counts` are
    one per report. Arrays have one number per such truth; the mle is the estimate clipped to [0,
    1], each alone. `level`, `simultaneous` (over these truths) and `target` are those of
    `proportions`.

    >>> from survey.mechanism.numeric import one_bit
    >>> no_answer_shares([500, 480, 300], one_bit(11, 1, no_answers=1)).estimate.round(2).tolist()
    [0.06]
    """
    if channel.no_answers == 0:
        raise ChannelError("this table has no truth that stands for no answer")
    c = whole_counts(counts, channel.reports, "one per report")
    n = reports_from(int(c.sum()), 1, None)
    truths = range(channel.truths - channel.no_answers, channel.truths)
    solutions = [pseudo_values(channel, np.eye(1, channel.truths, t)[0], n) for t in truths]
    G = np.stack([solution.values for solution in solutions])
    bias = np.array([solution.bias for solution in solutions])
    mle = np.clip(G @ (c / c.sum()), 0.0, 1.0)
    interval_options = IntervalOptions.of(target, DEFAULT_INTERVAL, level, simultaneous)
    moments = second_moments(channel, G, truths)
    return _score_shares(c, n, channel, G, moments, bias, mle, interval_options)


def second_moments(channel: WeightTable, G: Floats, truths: range) -> SecondMoments:
    """Return m_i = E[g_j^2 | i] of row j of G: at truth j, and the largest at the others."""
    squares = (channel.matrix @ (G**2).T).T
    rows = np.arange(len(G))
    at_truth = squares[rows, list(truths)]
    squares[rows, list(truths)] = 0.0
    return SecondMoments(at_truth, squares.max(axis=1))


def _score_shares(
    counts: Integers,
    n: int,
    channel: WeightTable,
    G: Floats,
    moments: SecondMoments,
    bias: Floats,
    mle: Floats,
    interval_options: IntervalOptions,
) -> Proportions:
    names = {DEFAULT_INTERVAL: SCORE, SCORE: SCORE, FIXED_POPULATION: FIXED_POPULATION}
    if interval_options.interval not in names:
        raise ValueError(
            f"unknown interval {interval_options.interval!r} of a table; the names are {SCORE} "
            f"and {FIXED_POPULATION}"
        )
    fixed = interval_options.target == RESPONDENTS
    f = counts / n
    estimate = G @ f
    level = interval_options.level_of_each(len(G))
    low, high = table_ends(f, n, channel, G, moments, level, bias, sampled=0.0 if fixed else 1.0)
    # E g^2 - E[g]^2 is the variance of sampling and randomization;
    # E g^2 - E[E[g | truth]^2] = E g^2 - pi is that of randomization alone.
    explained = np.clip(estimate, 0.0, 1.0) if fixed else estimate**2
    square = G**2 @ f
    minimum = moments.randomization(np.clip(estimate, 0.0, 1.0))
    variance = observed_variance(square - explained, square, minimum)
    return Proportions(
        estimate=estimate,
        mle=mle,
        std_error=np.sqrt(variance / n),
        conf_low=low,
        conf_high=high,
        n=n,
        n_effective=effective_answers(estimate, np.full(len(G), n), moments),
        level=interval_options.level,
        method=interval_options.method(names[interval_options.interval]),
        reports=np.full(len(G), n),
        moments=moments,
    )


def table_ends(
    f: Floats,
    n: int,
    channel: WeightTable,
    G: Floats,
    moments: SecondMoments,
    level: float,
    bias: Floats,
    *,
    sampled: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return the score interval of the shares G f of n reports, for f of shape (..., reports).

    `sampled` is the fraction of the sampling variance that remains (`score_ends`). Among these
    respondents it is 0, and only randomization smooths the distribution of an estimate: the
    `lattice_shift` is the largest one for respondents who all have the same truth. In a finite
    population, where sampling smooths it too, this shift errs on the wide side.
    """
    values, reports = G[:, None, :] / n, np.array([float(n)])
    if sampled < 1:
        shift = lattice_shift(values[:, None], channel.matrix[:, None, :], reports, level).max(
            axis=1
        )
    else:
        shift = lattice_shift(values, f[..., None, None, :], reports, level)
    return score_interval(f @ G.T, n, moments, level, bias + shift, sampled=sampled)


def score_interval(
    estimate: Floats,
    n: int,
    moments: SecondMoments,
    level: float,
    shift: Floats | float = 0.0,
    skewness: Floats | None = None,
    *,
    sampled: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return the ends of the score interval in [0, 1], around the estimate clipped to [0, 1].

    The lower end is that of `estimate - shift`, the upper end that of `estimate + shift`. Other
    options cause the variance `moments.elsewhere`. Clipping only widens the interval: it always has
    a width.
    """
    low, high = (
        score_ends(
            np.clip(estimate + side * shift, 0.0, 1.0),
            n,
            moments.at_truth,
            moments.elsewhere,
            level,
            skewness,
            sampled=sampled,
        )[end]
        for end, side in enumerate((-1, 1))
    )
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
