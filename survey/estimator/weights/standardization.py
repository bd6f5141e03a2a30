"""Direct standardization, and differences of conditional shares: sums of w_b P(a | b)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, DesignError, NoBaseError
from survey.estimator.core.arguments import checked_arguments, checked_level
from survey.estimator.shares.linear_estimator import linear_estimator
from survey.estimator.tables.conditional import conditional, is_clearly_positive
from survey.estimator.tables.crosstab import Crosstab
from survey.estimator.tables.difference import Difference
from survey.estimator.tables.joint_distribution import along, axis
from survey.estimator.weights.weighted_shares import WeightedShares
from survey.mechanism.channel import Floats


@checked_arguments
def conditional_difference(
    result: Crosstab, options: Sequence[int], *, level: float | None = None
) -> Difference:
    """Return P(a | b) - P(a | b') for two `options` b, b' of a cross-tab's second question.

    Use it to compare groups by a reported answer: many of the reports of b come from people with
    another answer, so counting these reports alone would be biased.

    The intervals are MOVER's of Fieller's (`conditional`), with the estimated correlation rho of
    the two shares, which come from the same reports:
        low = d - sqrt((x-l)^2 + (u'-x')^2 - 2 rho (x-l)(u'-x')), high likewise.
    The error of the test is the one under equal shares,
        SE_0^2 = E[(g_a - r)^2 (h_b/B_b - h_b'/B_b')^2]/n,  r = (A + A')/(B + B').
    Coverage at .95, simulated (tests/estimator/weights/test_standardization.py): at least .92.
    `n_a` and `n_b` are the number of all reports, because nobody knows which group a report is
    from.

    Raises NoBaseError if the share of one of the groups is not clearly above 0, ChannelError for
    reports of sets, ValueError unless the options are two different ones.
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
        raise ValueError(f"options {list(options)} must be two different options")
    shares = conditional(result, 1, options=list(options), level=level)
    sums = _Sums.of(result, list(options))
    C = sums.covariance(shares.estimate)
    spread = np.sqrt(C[:, 0, 0] * C[:, 1, 1])
    rho = np.divide(C[:, 0, 1], spread, out=np.zeros_like(spread), where=spread > 0)
    error = _combined(shares.std_error[:, 0], shares.std_error[:, 1], rho)
    inside = np.clip(shares.estimate, 0.0, 1.0)
    below, above = (inside - shares.conf_low).T, (shares.conf_high - inside).T
    middle = inside[:, 0] - inside[:, 1]
    common = np.clip(sums.joint.sum(axis=1) / sums.single.sum(), 0.0, 1.0)
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
    """Return shares of the first question's answers if the second's had a known distribution.

    `population` has shape (options of the second question,): people or shares; 0 excludes people
    with that answer. With w_b its shares,
        x_a = sum_b w_b P(a | b),  psi = sum_b w_b (g_a - P(a | b)) h_b/P(b),  SE^2 = E[psi^2]/n:
    post-stratification on an answer that was itself randomized (direct standardization by joint
    inversion; for an answer without randomization it equals `poststratified`). It removes the
    effect of participation on the second question's answers, which the constrained least squares of
    `reconciled` remove only partly, because of the randomization. The interval is that of weighted
    shares at the n_eff with which equal weights have this SE. Coverage at .95, simulated
    (tests/estimator/weights/test_standardization.py): at least .92.

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
    sums = _Sums.of(result, included)
    if not is_clearly_positive(sums.single, sums.square, result.n, level).all():
        raise NoBaseError(
            f"the shares of answers {included} are not all clearly above 0 with n = {result.n}: "
            "they cannot represent their parts of the population"
        )
    shares, weights = sums.joint / sums.single, w[included]
    estimate = shares @ weights
    C = sums.covariance(shares)
    squared = np.einsum("b,abc,c->a", weights, C, weights) / max(result.n - 1, 1)
    linear = linear_estimator(result.made_from.channels[0])
    n_effective = linear.moments.variance(np.clip(estimate, 0.0, 1.0)) / squared
    low, high = linear.interval(estimate, n_effective, level)
    return WeightedShares(
        estimate=estimate,
        std_error=np.sqrt(squared),
        conf_low=low,
        conf_high=high,
        n_effective=n_effective,
        n=result.n,
        level=level,
        method=f"standardization, {'wilson-hull' if linear.chances else 'score'}",
    )


class _Sums(NamedTuple):
    """Means over the reports of a table of two questions, for some answers b of the second.

    joint   of g_a h_b, shape (a, b)
    single  of h_b, shape (b,)
    square  of h_b^2, shape (b,)
    pairs   of g_a^m h_b h_c for m = 0, 1, 2; each of shape (a or 1, b, c)
    """

    joint: Floats
    single: Floats
    square: Floats
    pairs: tuple[Floats, Floats, Floats]

    @classmethod
    def of(cls, result: Crosstab, options: list[int]) -> _Sums:
        """Return the means for these options; ChannelError if a report contains several options."""
        counts, channels = result.made_from
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

    def covariance(self, shares: Floats) -> Floats:
        """Return E[(g_a - x_ab) h_b (g_a - x_ac) h_c]/(B_b B_c), shape (a, b, c)."""
        m0, m1, m2 = self.pairs
        x, y = shares[:, :, None], shares[:, None, :]
        return np.asarray((m2 - (x + y) * m1 + x * y * m0) / np.outer(self.single, self.single))


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
