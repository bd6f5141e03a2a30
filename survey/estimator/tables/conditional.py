"""Conditional shares P(a | b) from a cross-tab, their differences, and standardized shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, DesignError, NoBaseError
from survey.estimator.core.arguments import (
    CodeChannel,
    checked_arguments,
    checked_level,
    checked_whole,
)
from survey.estimator.core.debiasing import along, axis, observed_variance, report_classes
from survey.estimator.core.fieller import RATIOS, Moments, estimated_ratio
from survey.estimator.core.intervals import (
    lattice_shift,
    level_of_student,
    normal_quantile,
    z_of_interval,
)
from survey.estimator.core.maximum_likelihood import norm_sub
from survey.estimator.core.result import Result
from survey.estimator.shares.answered_shares import (
    GroupMoments,
    Squares,
    ratio_ends,
    table_shift,
    weighted_means,
)
from survey.estimator.shares.linear_estimator import linear_estimator
from survey.estimator.tables.crosstab import Crosstab, PairDesign
from survey.estimator.tables.difference import Difference
from survey.estimator.weights.weighting_and_raking import WeightedDesign, WeightedShares
from survey.mechanism import SubsetSelection
from survey.mechanism.channel import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class Conditional(Result):
    """Estimated shares of one question's answers among those who gave another's; shape (a, b).

    estimate     P(a | b), a ratio of two linear estimates; may be outside [0, 1]
    std_error    by the delta method, at least the error of randomization alone
    conf_low     ends of Fieller's interval, in [0, 1], never of zero width
    conf_high
    options      the answers b, shape (b,)
    n            reports, of all answers
    level        nominal coverage of each interval
    method       "fieller"
    design       the channels of the two questions, or of both together
    """

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    options: Integers
    n: int
    level: float
    method: str
    design: PairDesign

    # The answer, and the place in `options` of the answer it is conditional on.
    index_names = ("share_of", "given")


@checked_arguments
def conditional(
    result: Crosstab,
    given: int,
    *,
    of: int | None = None,
    options: list[int] | None = None,
    level: float | None = None,
) -> Conditional:
    """Estimate P(answer a to question `of` | answer b to question `given`).

    `result` is a cross-tab; `given` and `of` are places of its questions (`of` is optional in a
    table of two). `options` are the answers b, by default all.

    Fieller's interval inverts a test of E[(g_a - r) h_b] = 0, so it is correct even if the ratio's
    distribution is skewed. Its variance is the one under r, with other answers divided as
    estimated, and its ends move outwards because counts are whole numbers, as in `answered_shares`.

    Raises NoBaseError where P(b) is not clearly above 0, that is less than half the width of its
    interval: then the reports contain no information about these people alone, and only [0, 1]
    covers. The estimates of surveys that are not refused are a selection, those with a larger P(b).
    Raises ValueError for questions or options that do not exist. Sources: Fieller 1954;
    Newcombe 1998.

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> table = crosstab([[3000, 2000], [2000, 3000]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> conditional(table, given=1).estimate.round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    level = result.level if level is None else level
    checked_level(level)
    channels, moments = _moments(result, given, of)
    given_options = _checked_options(options, len(moments.single))
    shares, squares = moments.single[given_options], moments.square[given_options]
    clear = is_clearly_positive(shares, squares, result.n, level)
    if not clear.all():
        missing = [b for b, is_clear in zip(given_options, clear, strict=True) if not is_clear]
        raise NoBaseError(
            f"P(question {given} = {missing}) is not clearly above 0 with n = {result.n}: shares "
            "among these people cannot be estimated; choose other options"
        )
    columns_of = [moments.shares_within(b, result.n, level) for b in given_options]
    estimate, error, low, high = np.stack(columns_of, axis=-1)
    return Conditional(
        estimate=estimate,
        std_error=error,
        conf_low=low,
        conf_high=high,
        options=np.array(given_options, dtype=np.int64),
        n=result.n,
        level=level,
        method="fieller",
        design=PairDesign(tuple(channels), (moments.truths, len(moments.single))),
    )


@checked_arguments
def options_with_base(result: Crosstab, given: int) -> list[int]:
    """Return the answers b to question `given` whose P(b) is clearly above 0 (`conditional`).

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> table = crosstab([[750, 250], [250, 83]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> options_with_base(table, given=1)
    [0]
    """
    _, moments = _moments(result, given, None)
    clear = is_clearly_positive(moments.single, moments.square, result.n, result.level)
    return np.flatnonzero(clear).tolist()


def _moments(
    result: Crosstab, given: int, of: int | None
) -> tuple[list[CodeChannel], _Means | _JointMeans]:
    """Return the channels of the questions `of` and `given`, and the means of their reports."""
    of = _other_question(result.estimate.ndim, given, of)
    channels, counts = result.marginal_counts((of, given))
    f = counts / result.n
    if len(channels) == 1:
        return channels, _JointMeans(_joint_channel(channels), f)
    return channels, _Means(channels, f)


def _joint_channel(channels: Sequence[CodeChannel]) -> SubsetSelection:
    """Return the only channel of two questions, which a table of counts has checked."""
    (channel,) = channels
    if not isinstance(channel, SubsetSelection):
        raise ChannelError("a table is no joint response")
    return channel


class _Ratios(ABC):
    """Shares among people with an answer b: ratios of means of c_ab to means of h_b.

    c_ab is a report's pseudo-value of the cell, h_b that of the answer b; c_ab = g_a h_b if the two
    questions were randomized separately.

    truths        number of answers a
    joint         E[c_ab], shape (a, b)
    single        E[h_b], shape (b,)
    joint_square  E[c_ab^2]
    half_square   E[c_ab h_b]
    square        E[h_b^2]
    """

    truths: int
    joint: Floats
    single: Floats
    joint_square: Floats
    half_square: Floats
    square: Floats

    def shares_within(self, b: int, n: int, level: float) -> Floats:
        """Return estimates, standard errors and ends of P(a | b) for all a, shape (4, a)."""
        # Errors are those of the ratio of 2 c_ab - h_b to h_b, in [-1, 1].
        estimate, error = np.array(
            [
                estimated_ratio(self._moments(a, b, n), self._floor(a, b), n)[:2]
                for a in range(self.truths)
            ],
            dtype=np.float64,
        ).T
        c, h, f = self._classes(b)
        low, high = ratio_ends(
            self.joint[:, b],
            self.single[[b]],
            self._scatter(b, n),
            table_shift(c, h, f, n, level),
            normal_quantile(level_of_student(level, n)),
        )
        return np.stack([(estimate + 1) / 2, error / 2, low, high])

    def _moments(self, a: int, b: int, n: int) -> Moments:
        A, B = 2 * self.joint[a, b] - self.single[b], self.single[b]
        aa = 4 * self.joint_square[a, b] - 4 * self.half_square[a, b] + self.square[b]
        ab = 2 * self.half_square[a, b] - self.square[b]
        unbiased = n / max(n - 1, 1)
        return Moments(
            A,
            B,
            unbiased * (aa - A**2),
            unbiased * (ab - A * B),
            unbiased * (self.square[b] - B**2),
        )

    @abstractmethod
    def _floor(self, a: int, b: int) -> Floats:
        """Return the variance of randomization alone at each ratio of `RATIOS`."""

    @abstractmethod
    def _scatter(self, b: int, n: int) -> GroupMoments:
        """Return the moments of c_ab and h_b of people with a and b, with b, and without b."""

    @abstractmethod
    def _classes(self, b: int) -> tuple[Floats, Floats, Floats]:
        """Return c_ab and h_b of classes of reports, and their shares, each (a, classes)."""


class _JointMeans(_Ratios):
    """The means of a joint response over the table of f, shape (a, b).

    With D = p - q: c_ab = ([report is ab] - q)/D, and h_b = sum_a c_ab = ([b reported] - q_b)/D,
    where q_b is q times the number of answers a.
    """

    def __init__(self, channel: SubsetSelection, f: Floats) -> None:
        p, q = channel.p, channel.q
        self.truths = len(f)
        D, q_b = p - q, q * self.truths
        f_b = f.sum(axis=0)
        self.joint, self.single = (f - q) / D, (f_b - q_b) / D
        self.joint_square = (f * (1 - 2 * q) + q**2) / D**2
        self.half_square = (f * (1 - q_b) - q * f_b + q * q_b) / D**2
        self.square = (f_b * (1 - 2 * q_b) + q_b**2) / D**2
        self._p, self._q, self._q_b, self._D, self._f = p, q, q_b, D, f

    def _floor(self, _a: int, b: int) -> Floats:
        """Return the minimum E[(2 c_ab - (1+r) h_b)^2] among people with P(b) as estimated.

        It is s (x w_ab + (1-x) w_ib) + (1-s) w_ij over the truths ab, ib and ij with i not a, j not
        b; s = P(b), x = (1+r)/2 = P(a | b). A report is ab, another one with b, or one without b.
        """
        p, q, q_b, D = self._p, self._q, self._q_b, self._D
        t = 1 + RATIOS
        values = np.stack([2 * (1 - q) - t * (1 - q_b), -2 * q - t * (1 - q_b), -2 * q + t * q_b])
        squares = (values / D) ** 2
        at_ab, at_ib, at_ij = (
            np.array([of_ab, with_b, 1 - of_ab - with_b]) @ squares
            for of_ab, with_b in ((p, q_b - q), (q, p - q + q_b - q), (q, q_b - q))
        )
        s, x = min(max(float(self.single[b]), 0.0), 1.0), t / 2
        return np.asarray(s * (x * at_ab + (1 - x) * at_ib) + (1 - s) * at_ij)

    def _values(self) -> tuple[Floats, Floats]:
        """Return c_ab and h_b of a report of ab, of another one with b, and of one without b."""
        q, q_b, D = self._q, self._q_b, self._D
        return np.array([1 - q, -q, -q]) / D, np.array([1 - q_b, 1 - q_b, -q_b]) / D

    def _scatter(self, _b: int, n: int) -> GroupMoments:
        p, q, q_b = self._p, self._q, self._q_b
        c, h = self._values()
        at_ab, at_ib, at_ij = (
            Squares(*(np.full((self.truths, 1), P @ product) for product in (c * c, c * h, h * h)))
            for P in (
                np.array([of_ab, with_b, 1 - of_ab - with_b])
                for of_ab, with_b in ((p, q_b - q), (q, p + q_b - 2 * q), (q, q_b - q))
            )
        )
        return GroupMoments(at_ab, at_ib, at_ij, np.full(self.truths, np.ptp(c)), n)

    def _classes(self, b: int) -> tuple[Floats, Floats, Floats]:
        f_ab, f_b = self._f[:, b], self._f[:, b].sum()
        c, h = self._values()
        f = np.stack([f_ab, f_b - f_ab, np.full(self.truths, 1 - f_b)], axis=1)
        return np.tile(c, (self.truths, 1)), h, f


class _Means(_Ratios):
    """The means of two questions randomized separately: c_ab = g_a h_b."""

    def __init__(self, channels: Sequence[CodeChannel], f: Floats) -> None:
        rows, columns = (axis(channel) for channel in channels)
        margin = f.sum(axis=0) / rows.per_report
        self.truths = len(rows.means)
        self.joint = along(f, [rows.means, columns.means])
        self.single = columns.means @ margin
        # E[g^2 h^2], E[g h^2] and E[h^2].
        self.joint_square = along(f, [rows.squares, columns.squares])
        self.half_square = along(f, [rows.means, columns.squares])
        self.square = columns.squares @ margin
        self.rows, self.columns = rows, columns
        self._reports, of_rows = report_classes(channels[0], f)
        self._reports, of_columns = report_classes(channels[1], self._reports)
        self._values = of_rows, of_columns

    def _floor(self, a: int, b: int) -> Floats:
        """Return the minimum E[(2 g_a - 1 - r)^2 h_b^2] among people with P(b) as estimated.

        It is s (x w_aa + (1-x) min w_ia) + (1-s) min w_ij, s = P(b), x = (1+r)/2 = P(a | b), with
        w_ij = E[(2 g_a - 1 - r)^2 | i] E[h_b^2 | j].
        """
        t = 1 + RATIOS[:, None]
        # E[g_a | i] = [i = a].
        mean = np.eye(self.truths)[a]
        w = 4 * self.rows.by_truth[a] - 4 * t * mean + t**2
        at_a, elsewhere = w[:, a], np.delete(w, a, axis=1).min(axis=1)
        at_b = self.columns.by_truth[b, b]
        not_at_b = np.delete(self.columns.by_truth[b], b).min()
        s, x = min(max(float(self.single[b]), 0.0), 1.0), (1 + RATIOS) / 2
        floor = s * at_b * (x * at_a + (1 - x) * elsewhere)
        return np.asarray(floor + (1 - s) * not_at_b * np.minimum(at_a, elsewhere))

    def _scatter(self, b: int, n: int) -> GroupMoments:
        """Other answers are divided as estimated; E[c_ab h_b | ij] = [i = a] E[h_b^2 | j]."""
        A, B = self.rows.by_truth, self.columns.by_truth[b]
        P = norm_sub(self.joint.ravel()).reshape(self.joint.shape)
        is_a = np.eye(self.truths, dtype=bool)
        at_b = np.full((self.truths, 1), B[b])
        within = np.tile(P[:, b], (self.truths, 1))
        # All truths ij of the table, with j not b: values (a, i, j) as rows.
        weights = np.tile(P.ravel(), (self.truths, 1))
        without_b = np.tile(np.arange(len(B)) != b, (self.truths, self.truths))
        silent = Squares(
            *(
                weighted_means(
                    np.multiply.outer(values, B).reshape(self.truths, -1), weights, without_b
                )
                for values in (A, is_a.astype(np.float64), np.ones(A.shape))
            )
        )
        return GroupMoments(
            Squares(np.diagonal(A)[:, None] * at_b, at_b, at_b),
            Squares(weighted_means(A, within, ~is_a) * at_b, 0 * at_b, at_b),
            silent,
            np.zeros(self.truths),
            n,
        )

    def _classes(self, b: int) -> tuple[Floats, Floats, Floats]:
        g, h = self._values[0], self._values[1][b]
        f = self._reports[:, :, min(b, self._reports.shape[2] - 1)]
        c = np.multiply.outer(g, h)
        return (
            c.reshape(len(g), -1),
            np.broadcast_to(h, c.shape).reshape(len(g), -1),
            f.reshape(len(f), -1),
        )


def is_clearly_positive(share: Floats, square: Floats, n: int, level: float) -> Booleans:
    """Return whether P(b) is above 0 by more than half the width of its interval (Fieller).

    `share` is the mean of h_b over the reports and `square` that of h_b^2.
    """
    from scipy.special import stdtrit

    if n < 2:
        return np.zeros(share.shape, dtype=np.bool_)
    variance = np.maximum(square - share**2, 0.0) / (n - 1)
    # Fieller's interval is bounded if B > t SE(B).
    t = float(stdtrit(n - 1, (1 + level) / 2))
    return np.asarray(t * np.sqrt(variance) < share)


def _other_question(questions: int, given: int, of: int | None) -> int:
    places = range(questions)
    given = checked_whole(given, "given", ValueError)
    of = None if of is None else checked_whole(of, "of", ValueError)
    if of is None and questions == 2 and given in places:
        return 1 - given
    if given not in places or of is None or of not in places or of == given:
        raise ValueError(
            f"given = {given}, of = {of} must be two different questions from 0 to {places[-1]}"
        )
    return of


def _checked_options(options: list[int] | None, truths: int) -> list[int]:
    if options is None:
        return list(range(truths))
    indices = [checked_whole(option, "an option", ValueError) for option in options]
    if not indices or not all(0 <= option < truths for option in indices):
        raise ValueError(f"options {options} must be one or more from 0 to {truths - 1}")
    return indices


@checked_arguments
def conditional_difference(
    result: Crosstab, options: Sequence[int], *, level: float | None = None
) -> Difference:
    """Return P(a | b) - P(a | b') for two `options` b, b' of a cross-tab's second question.

    The intervals are MOVER's of Fieller's (`conditional`), with the estimated correlation rho of
    the two shares, which come from the same reports:
        low = d - sqrt((x-l)^2 + (u'-x')^2 - 2 rho (x-l)(u'-x')), high likewise.
    An end of a share that is 0 or 1 was cut off there: its distance from x is at least t SE(x).
    The p-value follows from the distance to the end on the side of 0 (`z_of_interval`): it is below
    1 - `level` where the interval excludes 0.
    Coverage at .95 given an estimate, simulated (five tables of 2 x 2 with shares of 0 and 1;
    epsilon 1, 2, 4, 8): at least .945 at the smallest n that is shown; below that, .917 where more
    than half of all surveys are refused, and .85 where five of six are.

    Raises NoBaseError if the share of one of the groups is not clearly above 0, ChannelError for
    reports of sets, ValueError unless the options are two different ones. Sources: Fieller 1954;
    Zou and Donner 2008 (MOVER with correlation); Altman and Bland 2011 (p from an interval).

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> table = crosstab([[3000, 2000], [2000, 3000]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> conditional_difference(table, [0, 1]).estimate.round(2).tolist()
    [0.8, -0.8]
    """
    from scipy.special import erfc

    level = result.level if level is None else level
    if len(options) != 2 or options[0] == options[1]:
        raise ValueError(f"options {list(options)} must be two different options")
    shares = conditional(result, 1, options=list(options), level=level)
    sums = _PairSums.of(result, list(options))
    C = sums.covariance(shares.estimate)
    # Rounding can make the variance of a certain share negative.
    spread = np.sqrt(np.maximum(C[:, 0, 0] * C[:, 1, 1], 0.0))
    rho = np.divide(C[:, 0, 1], spread, out=np.zeros_like(spread), where=spread > 0)
    error = _combined(shares.std_error[:, 0], shares.std_error[:, 1], rho)
    inside = np.clip(shares.estimate, 0.0, 1.0)
    reach = normal_quantile(level_of_student(level, result.n)) * shares.std_error
    below, above = inside - shares.conf_low, shares.conf_high - inside
    # The distance to an end that was cut off would be too short for the error of the estimate.
    below = np.where(shares.conf_low > 0, below, np.maximum(below, reach)).T
    above = np.where(shares.conf_high < 1, above, np.maximum(above, reach)).T
    middle = inside[:, 0] - inside[:, 1]
    to_low, to_high = _combined(below[0], above[1], rho), _combined(above[0], below[1], rho)
    z = z_of_interval(middle, np.where(middle > 0, to_low, to_high), level)
    return Difference(
        estimate=shares.estimate[:, 0] - shares.estimate[:, 1],
        std_error=error,
        conf_low=np.clip(middle - to_low, -1.0, 1.0),
        conf_high=np.clip(middle + to_high, -1.0, 1.0),
        z=z,
        p_value=np.asarray(erfc(np.abs(z) / np.sqrt(2))),
        share_a=shares.estimate[:, 0],
        share_b=shares.estimate[:, 1],
        n_a=result.n,
        n_b=result.n,
        level=level,
        method="mover-fieller",
    )


@checked_arguments
def standardized_shares(
    result: Crosstab, population: ArrayLike, *, level: float | None = None
) -> WeightedShares:
    """Return shares of the first question's answers if the second's had a known distribution.

    `population` has shape (options of the second question,): people or shares; 0 excludes people
    with that answer. With w_b its shares,
        x_a = sum_b w_b P(a | b), psi = sum_b w_b (g_a - P(a | b)) h_b/P(b), SE^2 = E[psi^2]/n:
    post-stratification on an answer that was itself randomized (direct standardization by joint
    inversion; for an answer without randomization it equals `poststratified`). The interval is that
    of weighted shares at the n_eff with which equal weights have this SE, if the shares P(a | b)
    and x_a were drawn towards 1/2, as in `poststratified`. Coverage at .95, simulated (tables of
    2 x 2 to 3 x 3, epsilon .7 to 8, n from 51): at least .945.

    Valid if, among people with one answer b, participation does not depend on a.

    Raises DesignError for an impossible population, NoBaseError if the share of an answer with
    positive weight is not clearly above 0, ChannelError for reports of sets.

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> table = crosstab([[3000, 2000], [2000, 3000]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> standardized_shares(table, [20, 80]).estimate.round(2).tolist()
    [0.26, 0.74]
    """
    level = result.level if level is None else level
    checked_level(level)
    w = _checked_population(population, len(result.estimate.T))
    included = np.flatnonzero(w).tolist()
    sums = _PairSums.of(result, included)
    if not is_clearly_positive(sums.single, sums.square, result.n, level).all():
        raise NoBaseError(
            f"the shares of answers {included} are not all clearly above 0 with n = {result.n}: "
            "they cannot represent their parts of the population"
        )
    shares, weights = sums.joint / sums.single, w[included]
    estimate, factor = shares @ weights, weights / sums.single
    psi = _influence(result, included, shares, factor)
    f, n = result.made_from.counts.ravel() / result.n, float(result.n)
    (channel,), _ = result.marginal_counts((0,))
    linear, x = linear_estimator(channel), np.clip(estimate, 0.0, 1.0)
    # E[(sum_b w_b h_b/P(b))^2]; if all reports to the first question are equal, psi is 0 for all.
    square = float(factor @ sums.pairs[0][0] @ factor)
    minimum = square * linear.moments.randomization(x)
    scatter = observed_variance(psi**2 @ f, square * linear.moments.at_truth, minimum)
    z2 = normal_quantile(level) ** 2
    kish = n / square
    x = np.clip((kish * estimate + z2 / 2) / (kish + z2), 0.0, 1.0)
    smoothed = np.clip((n * sums.joint + z2 / 2) / (n * sums.single + z2), 0.0, 1.0)
    scatter_at = _expected_scatter(result, included, smoothed, factor)
    n_effective = n * linear.moments.variance(x) / scatter_at
    shift = lattice_shift(psi[:, None, :] / n, f[None, None], np.array([n]), level)
    low, high = linear.interval(estimate, n_effective, level, shift)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(scatter / max(result.n - 1, 1)),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=result.n,
        level=level,
        method=f"standardization, {'wilson-hull' if linear.chances else 'score'}",
        design=WeightedDesign(
            linear.moments,
            result.n,
            PairDesign(result.made_from.channels, (len(estimate), len(w))),
            tuple(w.tolist()),
        ),
    )


def _influence(result: Crosstab, options: list[int], shares: Floats, factor: Floats) -> Floats:
    """Return sum_b factor_b (c_ab - x_ab h_b) of every combination of reports, (a, reports)."""
    counts, channels = result.made_from
    if len(channels) == 1:
        channel = _joint_channel(channels)
        report_is = np.eye(counts.size).reshape(*counts.shape, -1)
        c = (report_is - channel.q) / (channel.p - channel.q)
        return np.asarray(
            np.einsum("b,abr->ar", factor, c[:, options])
            - (shares * factor) @ c.sum(axis=0)[options]
        )
    rows, columns = (axis(channel) for channel in channels)
    of_b = factor[:, None] * columns.means[options]
    psi = rows.means[:, :, None] * of_b.sum(axis=0) - (shares @ of_b)[:, None, :]
    return np.asarray(psi.reshape(len(psi), -1))


def _expected_scatter(
    result: Crosstab, options: list[int], shares: Floats, factor: Floats
) -> Floats:
    """Return E[psi_a^2], shape (a,), if these are the shares x_ab among people with answers b.

    sum_b P(b) (x_ab E[psi_a^2 | a and b] + (1 - x_ab) E[psi_a^2 | another a and b]); other answers
    a are divided as estimated.
    """
    counts, channels = result.made_from
    squares = _influence(result, options, shares, factor).reshape(-1, *counts.shape) ** 2
    P = norm_sub(result.estimate.ravel()).reshape(result.estimate.shape)
    if len(channels) == 1:
        by_truth = squares.reshape(len(squares), -1) @ channels[0].matrix.T
        by_truth = by_truth.reshape(-1, *P.shape).swapaxes(1, 2)
    else:
        rows, columns = (channel.matrix for channel in channels)
        by_truth = np.einsum("ars,ir,js->aji", squares, rows, columns, optimize=True)
    is_other = ~np.eye(len(squares), dtype=bool)[:, None]
    elsewhere = weighted_means(by_truth, P.T[None], is_other)[..., 0]
    of_a, of_b = P.copy(), P.sum(axis=0)
    of_a[:, options] = shares * of_b[options]
    return np.asarray(
        (of_a * np.einsum("aba->ab", by_truth) + (of_b - of_a) * elsewhere).sum(axis=1)
    )


class _PairSums(NamedTuple):
    """Means over the reports of a table of two questions, for some answers b of the second.

    joint   of c_ab, the cell's pseudo-value, shape (a, b)
    single  of h_b, shape (b,)
    square  of h_b^2, shape (b,)
    pairs   of h_b h_c, c_ab h_c and c_ab c_ac; each of shape (a or 1, b, c)
    """

    joint: Floats
    single: Floats
    square: Floats
    pairs: tuple[Floats, Floats, Floats]

    @classmethod
    def of(cls, result: Crosstab, options: list[int]) -> _PairSums:
        """Return the means for these options; ChannelError if a report contains several options."""
        counts, channels = result.made_from
        if len(channels) == 1:
            return cls._of_joint(counts / result.n, options, _joint_channel(channels))
        rows, columns = (axis(channel) for channel in channels)
        if rows.per_report > 1 or columns.per_report > 1:
            raise ChannelError(
                "reports of sets do not determine the correlation of two shares: d must be 1"
            )
        f, G, H = counts / result.n, rows.means, columns.means[options]
        products = H[:, None, :] * H[None, :, :]
        powers = (np.ones((1, G.shape[1])), G, G**2)
        m0, m1, m2 = (np.einsum("ah,bch->abc", power @ f, products) for power in powers)
        margin = f.sum(axis=0)
        return cls(along(f, [G, H]), H @ margin, H**2 @ margin, (m0, m1, m2))

    @classmethod
    def _of_joint(cls, f: Floats, options: list[int], channel: SubsetSelection) -> _PairSums:
        """Return the means of a joint response: no report is in two cells or names two answers."""
        means = _JointMeans(channel, f)
        q, D = channel.q, channel.p - channel.q
        q_b = q * len(f)
        c, f_b = f[:, options], f.sum(axis=0)[options]
        # Products of indicators, off the diagonal b = c; on it, E[c_ab h_b] and so on from above.
        m0 = (q_b**2 - q_b * (f_b[:, None] + f_b[None, :]))[None] / D**2
        m1 = (q * q_b - q_b * c[:, :, None] - q * f_b[None, None, :]) / D**2
        m2 = (q**2 - q * (c[:, :, None] + c[:, None, :])) / D**2
        same = np.arange(len(options))
        m0[:, same, same] = means.square[options]
        m1[:, same, same] = means.half_square[:, options]
        m2[:, same, same] = means.joint_square[:, options]
        return cls(
            means.joint[:, options], means.single[options], means.square[options], (m0, m1, m2)
        )

    def covariance(self, shares: Floats) -> Floats:
        """Return E[(c_ab - x_ab h_b) (c_ac - x_ac h_c)]/(B_b B_c), shape (a, b, c)."""
        m0, m1, m2 = self.pairs
        x, y = shares[:, :, None], shares[:, None, :]
        products = m2 - y * m1 - x * np.swapaxes(m1, 1, 2) + x * y * m0
        return np.asarray(products / np.outer(self.single, self.single))


def _combined(s: Floats, t: Floats, rho: Floats) -> Floats:
    """Return sqrt(s^2 + t^2 - 2 rho s t)."""
    return np.sqrt(np.maximum(s**2 + t**2 - 2 * rho * s * t, 0.0))


def _checked_population(population: ArrayLike, options: int) -> Floats:
    w = np.asarray(population, dtype=np.float64)
    if w.shape != (options,):
        raise DesignError(
            f"population of shape {w.shape} must have shape ({options},), one number per answer"
        )
    if not np.isfinite(w).all() or (w < 0).any() or not w.sum() > 0:
        raise DesignError("population must be numbers of at least 0, not all of them 0")
    return np.asarray(w / w.sum())
