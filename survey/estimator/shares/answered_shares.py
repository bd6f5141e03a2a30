"""Shares among the people who answered (valid percent): estimates, variances, intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, NoBaseError
from survey.estimator.core.arguments import checked_arguments, checked_whole, whole_counts
from survey.estimator.core.debiasing import EFFECTIVE_RANGE, left_inverse
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    FIXED_POPULATION,
    continuity,
    last_accepted,
    lattice_shift,
    normal_quantile,
)
from survey.estimator.core.maximum_likelihood import norm_sub
from survey.estimator.core.result import Result
from survey.estimator.shares.multiple_choice import membership, subset_shares
from survey.estimator.shares.proportions import (
    EACH_OPTION,
    POPULATION,
    RESPONDENTS,
    SCORE,
    IntervalOptions,
    Proportions,
    proportions,
)
from survey.mechanism import AnyChannel, SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats, Integers

STEPS = 128
"""Grid steps that bracket the ends of an interval; halving then finds them."""

HALVINGS = 24


RATIOS = np.linspace(0, 1, 33)
"""Ratios at which the shift of an end is computed; it is linear between them."""

BETWEEN_RATIOS = np.array([np.interp(np.linspace(0, 1, STEPS + 1), RATIOS, e) for e in np.eye(33)])
"""The linear map from values at `RATIOS` to values at the steps of the grid, shape (33, 129)."""


def ratio_ends(
    top: Floats, bottom: Floats, scatter: Scatter, shift: Floats, z: float
) -> tuple[Floats, Floats]:
    """Return the hull of all r in [0, 1] with (top - r bottom)^2 <= z^2 V(r).

    `top` has shape (k,), `bottom` (k,) or (1,) and is above 0. V(r) is the variance of top - r
    bottom if the ratio is r and the share of those who answered is `bottom`. For each end, top
    moves outwards by `shift`, of shape (k, 33) at each of `RATIOS`, and is clipped to [0, bottom].
    """
    below, top = bottom[:, None], np.nan_to_num(top)[:, None]
    low, high = (_end(top, below, scatter, shift, z, side) for side in (-1, 1))
    return low, high


def _end(
    top: Floats, bottom: Floats, scatter: Scatter, shift: Floats, z: float, side: int
) -> Floats:
    """Return the last accepted ratio on one side of top/bottom: on a grid, then by halving."""
    answered, start = np.minimum(bottom, 1.0), np.clip(top, 0.0, bottom) / bottom

    def accepted(ratio: Floats, shift: Floats) -> Booleans:
        moved = np.clip(top + side * shift, 0.0, bottom)
        # All ratios up to the moved top are accepted.
        beyond = np.maximum(side * (ratio * bottom - moved), 0.0)
        return np.asarray(beyond**2 <= z**2 * scatter.variance(ratio, answered))

    grid = np.linspace(0, 1, STEPS + 1)[None, :]
    # The estimate itself is accepted even if no point of the grid is.
    on_grid = shift @ BETWEEN_RATIOS
    ratios = side * np.where(accepted(grid, on_grid), grid, start)
    inside = side * ratios.max(axis=1, keepdims=True)
    place = inside * STEPS
    next_point = np.ceil(place - 1) if side < 0 else np.floor(place + 1)
    next_point = np.clip(next_point, 0, STEPS)
    outside = next_point / STEPS
    # The shift is linear between neighboring points of the grid.
    near = np.clip(next_point.astype(np.int64) - side, 0, STEPS)
    at_outside, at_near = (
        np.take_along_axis(np.broadcast_to(on_grid, (len(inside), STEPS + 1)), points, axis=1)
        for points in (next_point.astype(np.int64), near)
    )
    slope = (at_near - at_outside) * -side * STEPS

    def accepted_between(ratio: Floats) -> Booleans:
        return accepted(ratio, at_outside + slope * (ratio - outside))

    return last_accepted(inside, outside, accepted_between, HALVINGS)[:, 0]


FIELLER = "fieller"


class AnsweredDesign(NamedTuple):
    """The channel of a question, its options that are no answer, and its patterns, if any."""

    channel: AnyChannel
    no_answers: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...] | None


@dataclass(frozen=True, eq=False, repr=False)
class AnsweredShares(Result):
    """Estimated shares among those who answered, one number per option that is an answer.

    option       its index among all options
    estimate     the ratio of two linear estimates; may be outside [0, 1]
    mle          most likely shares, in [0, 1], for display only
    std_error    by the delta method, at the estimate clipped to [0, 1]: never 0
    conf_low     ends of the interval, in [0, 1]
    conf_high
    n            reports, including those that are no answer
    answered     estimated share of people who answered; linear, may be above 1
    n_effective  number of answers without randomization that would be as informative
    level        nominal coverage, of each interval or simultaneous
    method       "fieller"; "fixed-population-fieller" for these respondents
    reports      reports about each option
    mle_method   as in `Proportions`
    design       the channel, the options that are no answer, and the patterns

    An option without reports has the estimate nan, the interval [0, 1] and n_effective 0.
    """

    index_names = ("answer",)

    option: Integers
    estimate: Floats
    mle: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    n: int
    answered: float
    n_effective: Floats
    level: float
    method: str
    reports: Integers
    mle_method: str
    design: AnsweredDesign

    @property
    def target(self) -> str:
        """Return whose shares these are: "population" or "respondents"."""
        return RESPONDENTS if self.method.startswith(FIXED_POPULATION) else POPULATION


@checked_arguments
def answered_shares(
    counts: ArrayLike,
    channel: AnyChannel,
    no_answers: Sequence[int],
    *,
    n: int | None = None,
    patterns: Sequence[Sequence[int]] | None = None,
    level: float = 0.95,
    simultaneous: bool = False,
    target: str = POPULATION,
) -> AnsweredShares:
    """Estimate the share of each answer among the people who answered ("valid percent").

    `counts`, `channel`, `n` are those of `proportions`; `no_answers` are the indices of the options
    that are no answer ("prefer not to say", "does not apply"). With `patterns`, the counts are
    those of `subset_shares`. With bits and patterns, the no-answer options must exclude all others;
    shares among those who answered need not add up to one.

    With the linear estimates pi_j and A = sum of pi over answers (1 - the no-answer shares), the
    estimate is R = pi_j/A, unbiased up to terms of 1/n, and std_error = sqrt(V(R))/A. The interval
    is the hull of all r in [0, 1] with (pi_j - r A)^2 <= z^2 V(r). V(r) is the variance of pi_j - r
    A if the ratio is r, not the observed one, so the width is never zero. For the interval, pi_j
    moves outwards by up to C of a report (`lattice_shift`) and is clipped to [0, A], which only
    widens it. Sources: Fieller 1954; Wilson 1927.

    `target` is "population" or "respondents", as in `proportions`. For the respondents, V(r) is the
    variance of the randomization alone, without A r (1-r)/n, and pi_j moves by C of a report. If
    options are sampled, pi_j and A are shares of the people who were asked about each option.

    Coverage at .95 by enumeration of every outcome (generalized randomized response, three and four
    options, n 20 to 200, epsilon .5 to 8, shares 0 to 1, no answers 0 to .8): at least .950 given
    that the estimate is not refused, wherever at most half of all surveys are. Where most surveys
    are refused, coverage falls to .8. For the respondents (three options, epsilon 1 to 6, 20 to 40
    people): at least .949.

    Raises NoBaseError unless A is above 0 by more than z standard errors (computed as if nobody
    answered), because the ratio is then unknown. This looks at the estimated A: the estimates of
    surveys that are not refused are a selection, those with a larger A. Other errors are those of
    `proportions`.

    >>> from survey.mechanism import grr
    >>> answered_shares([400, 1000, 600], grr(3, "3/4"), [2])
    AnsweredShares(n=2000, answered=0.7200, level=0.9500, method='fieller', \
mle_method='maximum likelihood')
    answer  option  estimate     mle  std_error  conf_low  conf_high  n_effective  reports
         0       0    0.1667  0.1667     0.0190    0.1303     0.2046     385.7143     2000
         1       1    0.8333  0.8333     0.0190    0.7954     0.8697     385.7143     2000
    """
    interval_options = IntervalOptions.of(target, DEFAULT_INTERVAL, level, simultaneous)
    shares = _all_shares(counts, channel, n, patterns, level)
    answers, silent = _answers_and_silent(shares.estimate.size, no_answers, channel, patterns)
    level_of_each = interval_options.level_of_each(len(answers))
    z = normal_quantile(level_of_each)
    scatter = answered_scatter(channel, shares, answers, silent, patterns)
    fixed = scatter._replace(sampled=interval_options.target == POPULATION)
    # Each person who did not answer has exactly one of these options.
    bottom = 1 - float(shares.estimate[silent].sum())
    # bottom > z sqrt(Var(bottom if nobody answered))
    minimum = z * math.sqrt(scatter.bottom_if_nobody())
    if not bottom > minimum:
        raise NoBaseError(
            f"the estimated share of those who answered, {bottom:.3f}, is not clearly above 0 "
            f"(it must be above {minimum:.3f}): shares among them cannot be estimated"
        )
    top, reports = shares.estimate[answers], shares.reports[answers]
    ratio = top / bottom
    shift = np.tile(continuity(level_of_each) * scatter.one_report()[:, None], RATIOS.size)
    if fixed.sampled:
        shift = _shift(counts, channel, shares, (answers, silent), patterns, level_of_each)
    low, high = ratio_ends(top, np.array([bottom]), fixed, shift, z)
    # R(1-R)/SE^2 with R clipped; 0 where R is nan.
    inside = np.clip(np.nan_to_num(ratio), *EFFECTIVE_RANGE)
    n_effective = inside * (1 - inside) / _error(inside, bottom, scatter) ** 2
    return AnsweredShares(
        option=answers,
        estimate=ratio,
        mle=_most_likely(shares, answers, ratio),
        std_error=_error(ratio, bottom, fixed),
        conf_low=np.where(reports > 0, low, 0.0),
        conf_high=np.where(reports > 0, high, 1.0),
        n=shares.n,
        answered=bottom,
        n_effective=np.where(np.isnan(ratio), 0.0, n_effective),
        level=level,
        method=interval_options.method(
            FIELLER if fixed.sampled else f"{FIXED_POPULATION}-{FIELLER}"
        ),
        reports=reports,
        mle_method=shares.mle_method,
        design=AnsweredDesign(
            channel,
            tuple(silent.tolist()),
            None if patterns is None else tuple(map(tuple, patterns)),
        ),
    )


def _shift(
    counts: ArrayLike,
    channel: AnyChannel,
    shares: Proportions,
    options: tuple[Integers, Integers],
    patterns: Sequence[Sequence[int]] | None,
    level: float,
) -> Floats:
    """Return the `lattice_shift` of each top - r bottom at each of `RATIOS`, shape (k, 33)."""
    if isinstance(channel, WeightTable):
        G = left_inverse(channel)[options[0]]
        f = whole_counts(counts, channel.reports, "one per report") / shares.n
        return table_shift(G, G.sum(axis=0), f, shares.n, level)
    p, q, k = channel.p, channel.q, shares.estimate.size
    if_not = q if patterns is None else q * membership(patterns, channel.truths, k).sum(axis=1)
    f = np.clip(np.nan_to_num(if_not + (p - q) * shares.estimate), 0.0, 1.0)
    n = np.maximum(shares.reports, 1).astype(np.float64)
    answers, silent = (np.stack([f, n], axis=1)[places] for places in options)
    is_single = isinstance(channel, SubsetSelection) and channel.d == 1
    return support_shift(
        answers, np.tile(silent, (len(answers), 1, 1)), p - q, level, is_single=is_single
    )


def table_shift(a: Floats, b: Floats, f: Floats, n: int, level: float) -> Floats:
    """Return the `lattice_shift` of a - r b at each of `RATIOS`, shape (k, 33), for reports f.

    `a` has shape (k, reports), `b` and `f` have this shape or (reports,).
    """
    values = (a[:, None] - RATIOS[:, None] * np.atleast_2d(b)[:, None]) / n
    f = np.atleast_2d(f)[:, None, None]
    return lattice_shift(values[..., None, :], f, np.array([float(n)]), level)


def support_shift(
    answer: Floats, silent: Floats, D: float, level: float, *, is_single: bool
) -> Floats:
    """Return the `lattice_shift` of top - r bottom, shape (k, 33), from supports of single options.

    `answer`, shape (k, 2), has the share of reports that support each answer, and the number of
    reports about it; `silent`, shape (k, S, 2), has both for the S no-answer options. A report
    supports a single one of them, or each independently: nearly so for sets, whose joint supports
    are not counted.
    """
    f, n = np.moveaxis(np.concatenate([answer[:, None], silent], axis=1), 2, 0)[:, :, None]
    factor = np.ones((1, RATIOS.size, f.shape[-1]))
    factor[..., 1:] = RATIOS[:, None]
    step = factor / (abs(D) * n)
    if is_single:
        remainder = np.maximum(1 - f.sum(axis=-1, keepdims=True), 0.0)
        values = np.concatenate([step, np.zeros_like(step[..., :1])], axis=-1)
        shares = np.concatenate([f, remainder], axis=-1)
        return lattice_shift(values[..., None, :], shares[..., None, :], n[..., :1], level)
    values, shares = np.stack([step, 0 * step], axis=-1), np.stack([f, 1 - f], axis=-1)
    return lattice_shift(values, shares, n, level)


def _all_shares(
    counts: ArrayLike,
    channel: AnyChannel,
    n: int | None,
    patterns: Sequence[Sequence[int]] | None,
    level: float,
) -> Proportions:
    """Return the shares of all options among all people, with the fastest interval."""
    if patterns is not None:
        if not isinstance(channel, SubsetSelection):
            raise ChannelError("patterns are reported by generalized randomized response")
        options = 1 + max((option for pattern in patterns for option in pattern), default=0)
        return subset_shares(counts, channel, patterns, options, level=level, interval="wilson")
    binary = not isinstance(channel, WeightTable) or channel.truths == channel.reports == 2
    return proportions(counts, channel, n=n, level=level, interval="wilson" if binary else SCORE)


def _answers_and_silent(
    k: int, no_answers: Sequence[int], channel: AnyChannel, patterns: Sequence[Sequence[int]] | None
) -> tuple[Integers, Integers]:
    """Return the indices of the options that are answers, and of those that are not."""
    whole = [checked_whole(option, "an option of no_answers", ValueError) for option in no_answers]
    fewest = 1 if isinstance(channel, TickChannel) or patterns is not None else 2
    if not 1 <= len(set(whole)) <= k - fewest or not 0 <= min(whole) <= max(whole) < k:
        raise ValueError(
            f"no_answers = {list(no_answers)} must be indices below {k} of at least one option, "
            f"and leave {fewest} or more that are answers"
        )
    silent = np.unique(np.array(whole, dtype=np.int64))
    if isinstance(channel, TickChannel) and silent[0] < k - channel.alone:
        raise ValueError(
            f"option {silent[0]} must be one of the last {channel.alone}, which exclude all others"
        )
    for pattern in patterns or ():
        if len(pattern) > 1 and not set(silent.tolist()).isdisjoint(pattern):
            raise ValueError(f"pattern {tuple(pattern)} contains an option that is no answer")
    return np.setdiff1d(np.arange(k), silent), silent


def _error(ratio: Floats, bottom: float, scatter: Scatter) -> Floats:
    """Return sqrt(V(R))/A at R clipped to [0, 1]; nan where R is nan."""
    inside, answered = np.clip(ratio, 0.0, 1.0)[:, None], np.array([[min(bottom, 1.0)]])
    return np.asarray(np.sqrt(scatter.variance(inside, answered))[:, 0] / bottom)


def _most_likely(shares: Proportions, answers: Integers, ratio: Floats) -> Floats:
    """Return each answer's part of the most likely shares, if shares add up to one."""
    if shares.mle_method == EACH_OPTION:
        return np.clip(ratio, 0.0, 1.0)
    mle = shares.mle[answers]
    total = mle.sum()
    return mle / total if total > 0 else norm_sub(ratio)


class Squares(NamedTuple):
    """E[a^2], E[a b], E[b^2] of one group of people, each of shape (options, 1)."""

    aa: Floats
    ab: Floats
    bb: Floats

    def at(self, ratio: Floats) -> Floats:
        """Return E[(a - r b)^2]."""
        return np.asarray(self.aa - 2 * ratio * self.ab + ratio**2 * self.bb)


class GroupMoments(NamedTuple):
    """Second moments of n reports, each about every option, for the three groups of people.

    at_truth, elsewhere, silent   people with the option, with another answer, without an answer
    reach                         largest minus smallest pseudo-value a, shape (options,)
    sampled                       whether people are a sample; if not, only randomization varies
    """

    at_truth: Squares
    elsewhere: Squares
    silent: Squares
    reach: Floats
    n: int
    sampled: bool = True

    def variance(self, ratio: Floats, answered: Floats) -> Floats:
        """Return (A [r w_truth(r) + (1-r) w_elsewhere(r)] + (1-A) w_silent(r)) / n.

        For these respondents alone, subtract E[E[a - r b | truth]^2] = A [r (1-r)^2 + (1-r) r^2]
        = A r (1-r).
        """
        answering = ratio * self.at_truth.at(ratio) + (1 - ratio) * self.elsewhere.at(ratio)
        square = answered * answering + (1 - answered) * self.silent.at(ratio)
        if not self.sampled:
            square = square - answered * ratio * (1 - ratio)
        return np.asarray(square / self.n)

    def bottom_if_nobody(self) -> float:
        """Return E[b^2] of people without an answer, per report."""
        return float(self.silent.bb.max()) / self.n

    def one_report(self) -> Floats:
        """Return reach / n."""
        return self.reach / self.n


class Support(NamedTuple):
    """Probabilities that a report supports option j and how many of S no-answer options.

    if_chosen       P(supports j | j was chosen), shape (k,)
    if_not          P(supports j | j was not chosen), shape (k,)
    with_one        P(supports two given options | one of them is the truth)
    with_none       P(supports two given options | neither is the truth)
    p, q            if_chosen and if_not of one no-answer option
    """

    if_chosen: Floats
    if_not: Floats
    with_one: float
    with_none: float
    p: float
    q: float
    S: int

    def moments(self, n: int) -> GroupMoments:
        """Return the moments of a = (s_j - if_not_j)/(p-q) and b = 1 - (N - S q)/(p-q).

        s_j is 1 where the report supports j, and N is the number of no-answer options that it
        supports. One or none of the S no-answer options is the truth.
        """
        p, q, S, with_one, with_none = self.p, self.q, self.S, self.with_one, self.with_none
        answered_N, silent_N = S * q, p + (S - 1) * q
        answered_NN = answered_N + S * (S - 1) * with_none
        silent_NN = silent_N + 2 * (S - 1) * with_one + (S - 1) * (S - 2) * with_none
        silent_joint = with_one + (S - 1) * with_none
        return GroupMoments(
            self._squares(self.if_chosen, S * with_one, answered_N, answered_NN),
            self._squares(self.if_not, S * with_none, answered_N, answered_NN),
            self._squares(self.if_not, silent_joint, silent_N, silent_NN),
            np.full(self.if_chosen.shape, 1 / abs(p - q)),
            n,
        )

    def _squares(self, s: Floats, joint: float, N: float, NN: float) -> Squares:
        """Return the moments from E[s_j] = s, E[s_j N] = joint, E[N] = N, E[N^2] = NN."""
        if_not, D, base = self.if_not, self.p - self.q, self.S * self.q
        aa = (s * (1 - 2 * if_not) + if_not**2) / D**2
        # E[(s - if_not)(N - base)] / D^2
        together = (joint - base * s - if_not * N + if_not * base) / D**2
        bb = 1 - 2 * (N - base) / D + (NN - 2 * base * N + base**2) / D**2
        return Squares(*(x[:, None] for x in (aa, (s - if_not) / D - together, 0 * aa + bb)))


def support(
    channel: SubsetSelection | TickChannel, answers: int, S: int, n_patterns: Integers | None = None
) -> Support:
    """Return the supports of ticks, of one reported pattern, or of a set of d options.

    N_j = `n_patterns` contain option j, none of them a no-answer pattern. For sets,
    P(two given options | one is the truth) = p (d-1)/(k-1). If neither is the truth, it is
    (d-1)(d-2)/((k-1)(k-2)) given the truth in the set, and d(d-1)/((k-1)(k-2)) otherwise.
    """
    p, q = channel.p, channel.q
    if n_patterns is not None:
        N = np.asarray(n_patterns, dtype=np.float64)
        return Support(p + (N - 1) * q, N * q, 0.0, 0.0, p, q, S)
    if_chosen, if_not = np.full(answers, p), np.full(answers, q)
    if isinstance(channel, TickChannel):
        unchanged, flipped = map(float, channel.pair_agreements)
        # One of the two bits is 1 and unchanged, the other 0 and flipped; or both are 0.
        return Support(if_chosen, if_not, p - unchanged, flipped, p, q, S)
    k, d = channel.k, channel.d
    with_none = (p * (d - 1) * (d - 2) + (1 - p) * d * (d - 1)) / ((k - 1) * max(k - 2, 1))
    with_one = p * (d - 1) / (k - 1)
    return Support(if_chosen, if_not, with_one, with_none, p, q, S)


class SampledBits(NamedTuple):
    """Options with separate reports, some of them common to two options.

    at_truth        p(1-p)/(p-q)^2, the variance of randomization for people with the option
    elsewhere       q(1-q)/(p-q)^2, the variance of randomization for other people
    reach           1/|p-q|, the difference of the two pseudo-values
    reports         reports about option j, shape (k,)
    silent_reports  reports about each no-answer option, shape (S,)
    silent_parts    division of the people who did not answer, shape (S,), sum 1
    common          expected reports about two given options: n r (r-1)/(m (m-1))
    sampled         whether people are a sample; otherwise the variance is that of randomization
    """

    at_truth: float
    elsewhere: float
    reach: float
    reports: Floats
    silent_reports: Floats
    silent_parts: Floats
    common: float
    sampled: bool = True

    def variance(self, ratio: Floats, answered: Floats) -> Floats:
        """Return Var(pi_j) + r^2 Var(sum_s pi_s) - 2 r sum_s pi_j pi_s common/(n_j n_s).

        An estimated share x has the variance (noise + x(1-x))/n_j. For these respondents alone it
        is noise/n_j, and estimates are uncorrelated, because each bit is kept or flipped
        independently.
        """
        x, n = ratio * answered, self.reports[:, None]
        across = np.zeros(np.shape(x))
        for part, reports in self._pairs() if self.sampled else ():
            across = across + x * (1 - answered) * part / (n * reports)
        return np.asarray(
            self._share_variance(x, n)
            + ratio**2 * self._silent_variance(answered)
            - 2 * ratio * self.common * across
        )

    def bottom_if_nobody(self) -> float:
        """Return Var(sum_s pi_s) if these shares add up to one."""
        return float(self._silent_variance(np.zeros(1))[0])

    def one_report(self) -> Floats:
        """Return reach / n_j."""
        return self.reach / self.reports

    def _silent_variance(self, answered: Floats) -> Floats:
        """Return Var(sum_s pi_s) = sum_s Var(pi_s) - 2 sum_s<t pi_s pi_t common/(n_s n_t)."""
        total, pairs = np.zeros(np.shape(answered)), self._pairs()
        for i, (part, reports) in enumerate(pairs):
            y = (1 - answered) * part
            total = total + self._share_variance(y, np.asarray(reports))
            for next_part, next_reports in pairs[i + 1 :] if self.sampled else ():
                product = y * (1 - answered) * next_part
                total = total - 2 * product * self.common / (reports * next_reports)
        return total

    def _pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.silent_parts.tolist(), self.silent_reports.tolist(), strict=True))

    def _share_variance(self, share: Floats, reports: Floats) -> Floats:
        noise = share * self.at_truth + (1 - share) * self.elsewhere
        sampling = share * (1 - share) if self.sampled else 0.0
        return np.asarray((noise + sampling) / reports)


def answered_scatter(
    channel: AnyChannel,
    shares: Proportions,
    answers: Integers,
    silent: Integers,
    patterns: Sequence[Sequence[int]] | None,
) -> Scatter:
    """Return the variance of the estimated shares of answers relative to their sum."""
    if isinstance(channel, WeightTable):
        return _table_moments(channel, shares, answers, silent)
    if isinstance(channel, TickChannel) and channel.is_sampled:
        return _sampled_moments(channel, shares, answers, silent)
    k, S, n_patterns = len(answers), len(silent), None
    if patterns is not None:
        n_patterns = membership(patterns, channel.truths, k + S).sum(axis=1)[answers]
    return support(channel, k, S, n_patterns).moments(shares.n)


def _table_moments(
    channel: WeightTable, shares: Proportions, answers: Integers, silent: Integers
) -> GroupMoments:
    """Return the moments of a = G_j and b = sum of G over answers, averaged over the estimates."""
    G = left_inverse(channel)
    a, b = G[answers], G[answers].sum(axis=0)
    # Second moments by truth, shape (answers, truths).
    P = channel.matrix
    moments = [product @ P.T for product in (a**2, a * b, np.tile(b**2, (len(answers), 1)))]
    weights = np.tile(norm_sub(shares.estimate), (len(answers), 1))
    truths = np.arange(channel.truths)
    is_option, is_silent = answers[:, None] == truths, np.isin(truths, silent)[None, :]
    at_truth, elsewhere, without_answer = (
        Squares(*(weighted_means(moment, weights, among) for moment in moments))
        for among in (is_option, ~is_option & ~is_silent, is_silent)
    )
    return GroupMoments(at_truth, elsewhere, without_answer, np.ptp(a, axis=1), shares.n)


def weighted_means(values: Floats, weights: Floats, among: Booleans) -> Floats:
    """Return weighted means over some truths, the last axis; unweighted ones if all are 0."""
    inside = np.where(among, weights, 0.0)
    inside = np.where(inside.sum(axis=-1, keepdims=True) > 0, inside, among)
    return np.asarray(
        (values * inside).sum(axis=-1, keepdims=True) / inside.sum(axis=-1, keepdims=True)
    )


def _sampled_moments(
    channel: TickChannel, shares: Proportions, answers: Integers, silent: Integers
) -> SampledBits:
    if not shares.reports[silent].all():
        raise NoBaseError("a no-answer option has no reports, because nobody was asked about it")
    m, r, p, q = channel.m, channel.sampled, channel.p, channel.q
    return SampledBits(
        at_truth=p * (1 - p) / (p - q) ** 2,
        elsewhere=q * (1 - q) / (p - q) ** 2,
        reach=1 / abs(p - q),
        reports=np.maximum(shares.reports[answers], 1).astype(np.float64),
        silent_reports=shares.reports[silent].astype(np.float64),
        silent_parts=norm_sub(shares.estimate[silent]),
        common=shares.n * r * (r - 1) / (m * (m - 1)),
    )


Scatter = GroupMoments | SampledBits
"""Variance of an estimated top - r bottom, given the ratio and the share of people who answered.

`variance(ratio, answered)` has options along the first of two axes. `bottom_if_nobody()` is the
variance of the estimated bottom if nobody answered, and `one_report()` the largest effect of one
report on each top.
"""
