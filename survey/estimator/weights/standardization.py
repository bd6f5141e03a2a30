"""Sums of conditional shares sum_b w_b P(a | b): two answers compared, and known distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, DesignError, NoBaseError
from survey.estimator.core.arguments import checked_arguments, checked_level
from survey.estimator.shares.tally import reading
from survey.estimator.tables.axes import along, axis
from survey.estimator.tables.conditional import clearly_there, conditional
from survey.estimator.tables.crosstab import Crosstab
from survey.estimator.tables.difference import Difference
from survey.estimator.weights.weighting import WeightedShares
from survey.mechanism.arrays import Floats


@checked_arguments
def conditional_difference(
    result: Crosstab, options: Sequence[int], *, level: float | None = None
) -> Difference:
    """P(a | b) - P(a | b') for the two `options` b, b' of the second question of a cross-tab.

    This is how groups by a reported answer are compared: among the reports that say b are many
    whose answer is another, so counting them alone would be biased.

    The intervals are MOVER's of Fieller's (`conditional`), with the estimated correlation rho of
    the two shares, which the same reports bear on:
        low = d - sqrt((x-l)^2 + (u'-x')^2 - 2 rho (x-l)(u'-x')), high likewise.
    The test's error is the one there is if both shares are the same,
        SE_0^2 = E[(g_a - r)^2 (h_b/B_b - h_b'/B_b')^2]/n,  r = (A + A')/(B + B').
    Coverage at .95, simulated (tests/estimator/weights/test_standardization.py): at least .92.
    `n_a` and `n_b` are all reports: which of them are whose nobody knows.

    Raises NoBaseError where one of the groups is not clearly there, ChannelError for reports of
    sets, ValueError for options that are not two different ones.
    Sources: Fieller 1954; Zou and Donner 2008 (MOVER with correlation).

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> table = crosstab([[3000, 2000], [2000, 3000]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> conditional_difference(table, [0, 1]).estimate.round(2).tolist()
    [0.8, -0.8]
    """
    from scipy.special import erfc

    level = result.level if level is None else level
    if len(options) != 2 or options[0] == options[1]:
        raise ValueError(f"options {list(options)}: two different ones are compared")
    shares = conditional(result, 1, options=list(options), level=level)
    sums = _Sums.of(result, list(options))
    C = sums.covariance(shares.estimate)
    spread = np.sqrt(C[:, 0, 0] * C[:, 1, 1])
    rho = np.divide(C[:, 0, 1], spread, out=np.zeros_like(spread), where=spread > 0)
    error = _combined(shares.std_error[:, 0], shares.std_error[:, 1], rho)
    inside = np.clip(shares.estimate, 0.0, 1.0)
    below, above = (inside - shares.conf_low).T, (shares.conf_high - inside).T
    middle = inside[:, 0] - inside[:, 1]
    common = np.clip(sums.joint.sum(axis=1) / sums.there.sum(), 0.0, 1.0)
    C0 = sums.covariance(np.stack([common, common], axis=1))
    error0 = np.sqrt(np.maximum(C0[:, 0, 0] + C0[:, 1, 1] - 2 * C0[:, 0, 1], 0.0) / result.n)
    d = shares.estimate[:, 0] - shares.estimate[:, 1]
    z = np.divide(d, error0, out=np.zeros_like(d), where=error0 > 0)
    return Difference(
        estimate=d,
        std_error=error,
        conf_low=np.clip(middle - _combined(below[0], above[1], rho), -1.0, 1.0),
        conf_high=np.clip(middle + _combined(above[0], below[1], rho), -1.0, 1.0),
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
    """Shares of the first question's answers where the second's have a known distribution.

    `population` has shape (options of the second question,): people or shares; 0 leaves out
    those who gave that answer. With w_b its shares,
        x_a = sum_b w_b P(a | b),  psi = sum_b w_b (g_a - P(a | b)) h_b/P(b),  SE^2 = E[psi^2]/n:
    post-stratification on an answer that was itself randomized (direct standardization by joint
    inversion; with an answer given openly it is exactly `poststratified`). It removes what who
    took part did to the second question's answers, which the constrained least squares of
    `reconciled` do only as far as randomization lets them see it.
    The interval is that of weighted shares at the n_eff with which equal weights have this SE.
    Coverage at .95, simulated (tests/estimator/weights/test_standardization.py): at least .92.

    Valid when, among those of one answer b, taking part does not depend on a.

    Raises DesignError for a population that is none, NoBaseError where an answer of positive
    weight is not clearly there, ChannelError for reports of sets.

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> table = crosstab([[3000, 2000], [2000, 3000]], [grr(2, "3/4"), grr(2, "3/4")])
    >>> standardized_shares(table, [20, 80]).estimate.round(2).tolist()
    [0.26, 0.74]
    """
    level = result.level if level is None else level
    checked_level(level)
    w = _checked_population(population, len(result.estimate.T))
    asked = np.flatnonzero(w).tolist()
    sums = _Sums.of(result, asked)
    if not clearly_there(sums.there, sums.square, result.n, level).all():
        raise NoBaseError(
            f"answers {asked} are not all clearly there with n = {result.n}: none of them can "
            "stand for its part of the population"
        )
    shares, weights = sums.joint / sums.there, w[asked]
    estimate = shares @ weights
    C = sums.covariance(shares)
    squared = np.einsum("b,abc,c->a", weights, C, weights) / max(result.n - 1, 1)
    read = reading(result.made_from.channels[0])
    n_effective = read.moments.variance(np.clip(estimate, 0.0, 1.0)) / squared
    low, high = read.interval(estimate, n_effective, level)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(squared),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=result.n,
        level=level,
        method=f"standardization, {'wilson-hull' if read.chances else 'score'}",
    )


class _Sums(NamedTuple):
    """Means over the reports of a table of two questions, for some answers b of the second.

    joint   of g_a h_b, shape (a, b)
    there   of h_b, shape (b,)
    square  of h_b^2, shape (b,)
    pairs   of g_a^m h_b h_c for m = 0, 1, 2; each of shape (a or 1, b, c)
    """

    joint: Floats
    there: Floats
    square: Floats
    pairs: tuple[Floats, Floats, Floats]

    @classmethod
    def of(cls, result: Crosstab, options: list[int]) -> _Sums:
        """Of these options; ChannelError where a report names several."""
        counts, channels = result.made_from
        rows, columns = (axis(channel) for channel in channels)
        if rows.each > 1 or columns.each > 1:
            raise ChannelError("reports of sets tell no correlation of two shares: d must be 1")
        f, G, H = counts / result.n, rows.means, columns.means[options]
        both = H[:, None, :] * H[None, :, :]
        powers = (np.ones((1, G.shape[1])), G, G**2)
        zero, one, two = (np.einsum("ah,bch->abc", power @ f, both) for power in powers)
        margin = f.sum(axis=0)
        return cls(along(f, [G, H]), H @ margin, H**2 @ margin, (zero, one, two))

    def covariance(self, shares: Floats) -> Floats:
        """E[(g_a - x_ab) h_b (g_a - x_ac) h_c]/(B_b B_c), shape (a, b, c); x has shape (a, b)."""
        zero, one, two = self.pairs
        x, y = shares[:, :, None], shares[:, None, :]
        return np.asarray((two - (x + y) * one + x * y * zero) / np.outer(self.there, self.there))


def _combined(one: Floats, other: Floats, rho: Floats) -> Floats:
    """sqrt(s^2 + t^2 - 2 rho s t)."""
    return np.sqrt(np.maximum(one**2 + other**2 - 2 * rho * one * other, 0.0))


def _checked_population(population: ArrayLike, options: int) -> Floats:
    w = np.asarray(population, dtype=np.float64)
    if w.shape != (options,):
        raise DesignError(f"a population of shape {w.shape} for {options} answers: one for each")
    if not np.isfinite(w).all() or (w < 0).any() or not w.sum() > 0:
        raise DesignError("a population must be of numbers from 0, not all of them 0")
    return np.asarray(w / w.sum())
