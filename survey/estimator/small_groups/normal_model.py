"""Shares of small groups by a normal hierarchical model of their debiased estimates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError, DesignError
from survey.estimator.core.arguments import LARGEST_NUMBER, checked_arguments, checked_level
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.shares.linear_estimator import linear_estimator, tally
from survey.mechanism import AnyChannel
from survey.mechanism.bit_vector import TickChannel
from survey.mechanism.channel import Booleans, Floats

MIN_SPARE_GROUPS = 3
"""Groups with reports needed in addition to the number of coefficients, to estimate a spread."""

LARGEST_SD = 0.5
"""Largest standard deviation of shares: half of them are 0 and half are 1."""

SMALLEST_SD = 1e-6
"""The smallest standard deviation between groups that is distinguished from 0."""

COARSE = 160
"""Standard deviations at which the likelihood is first computed."""

NEGLIGIBLE = 30.0
"""Standard deviations whose log density is lower than the highest by this much are left out."""

NODES = 64
"""Nodes of the integral over the standard deviation between groups."""

HALVINGS = 40
TAIL = 9.0
"""Ends of the search for quantiles, in standard errors."""

SMALL_RESIDUAL = 1.0
"""Larger residuals are computed without the group itself, which takes a fit for each; smaller ones
do not show an unusual group either way."""

RESIDUAL_SDS = np.append(0.0, np.geomspace(1e-4, LARGEST_SD, 40))
"""Standard deviations between groups among which residuals use the most likely one."""

COLLINEAR = 1e-9
"""A covariate is redundant if the others explain all but this fraction of its size."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupShares(Result):
    """Model-based shares of groups beside the direct ones; arrays have shape (groups, options).

    estimate      model-based share: the direct one, pulled towards the share that the model expects
    std_error     root mean squared error of `estimate`, the uncertain spread of groups included
    conf_low      ends of the interval, in [0, 1]
    conf_high
    direct        the group's own linear estimate, unbiased, nan without reports
    direct_error  its standard error at the pooled share, which is the model's D^(1/2)
    expected      the share that the model expects of such a group: the pooled share, or the one
                  predicted by the covariates
    shrinkage     weight of `expected` in `estimate`: 0 means direct, 1 pooled
    residual      standardized difference of `direct` from the share that the other groups predict,
                  nan without reports; beyond 3, `estimate` is pulled too far towards the others
    between_sd    standard deviation of the true shares around `expected`, shape (options,), 0 if
                  the groups differ by no more than chance explains
    between_low   ends of its interval, shape (options,); the lower one may be 0
    between_high
    q             test statistic for equal shares of all groups (or as expected), shape (options,)
    p_value       its one-sided p-value, shape (options,); can be below .05 where between_low is 0
    dof           degrees of freedom of the test: groups with reports minus coefficients
    n             reports of all groups
    level         nominal coverage, averaged over the groups
    """

    index_names = ("group", "option")

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    direct: Floats
    direct_error: Floats
    expected: Floats
    shrinkage: Floats
    residual: Floats
    between_sd: Floats
    between_low: Floats
    between_high: Floats
    q: Floats
    p_value: Floats
    dof: Floats
    n: int
    level: float

    @property
    def is_pooled(self) -> Booleans:
        """Whether all groups have the expected share, as they differ by no more than chance."""
        return np.asarray(self.between_sd == 0)


@checked_arguments
def group_shares(
    counts: ArrayLike,
    channel: AnyChannel,
    covariates: ArrayLike | None = None,
    *,
    n: ArrayLike | None = None,
    level: float = 0.95,
) -> GroupShares:
    """Estimate the shares of small groups by a model in which groups borrow strength from others.

    `counts` has shape (groups, counts): a row for each group, as returned by `channel.count`;
    groups are known without randomization. A row of zeros is a group without reports, which gets
    the expected share. `covariates`, shape (groups,) or (groups, columns), are known numbers of
    each group; an intercept is added. `n`, shape (groups,), is needed only if counts do not
    determine it.

    For each option, with y_g the linear estimate of group g and theta_g its true share,
        y_g ~ N(theta_g, D_g),  theta_g ~ N(x_g'beta, A)                (Fay and Herriot 1979)
    D_g = Var(report at the pooled share)/n_g is known: it depends on the channel and on all groups
    together, not on the group's own noisy estimate. A maximizes the restricted likelihood R(A),
    beta is its generalized least squares estimate, and the estimate is
        theta_g = x_g'beta + A/(A + D_g) (y_g - x_g'beta),
    which is the expected share for all groups if A = 0. The standard deviation A^(1/2) is `sd` in
    this module and `between_sd` in the result. Intervals do not treat A as known, which
    would cover as little as .78: their ends are quantiles of theta_g with A integrated out over
    R(A) at a uniform A in [0, 1/4] (Morris 1983), and std_error^2 is the mean of (theta_g -
    estimate)^2. The integral replaces expansions of this error in the number of groups (Prasad and
    Rao 1990) and likelihoods that keep A above 0 (Li and Lahiri 2010). The interval of A^(1/2)
    holds the A with 2 log R(A-hat)/R(A) <= z^2 (Hardy and Thompson 1996). `q` is sum (y -
    x'beta)^2/D at A = 0, compared with chi-square. If each person has one answer, the estimates of
    a group are moved to a sum of 1, those with large errors the furthest.

    Coverage is measured as the average over groups (`tests.benchmarks.small_groups`): a group
    that is unlike all others is covered less. Valid if group sizes do not depend on the answers and
    the true shares of the groups lie around the expected ones like a normal distribution.

    Raises DesignError for fewer than three groups with reports beyond the number of coefficients,
    or covariates that are missing, constant or a combination of each other; CountsError for counts
    that the channel cannot produce; ChannelError for a channel without an inverse.

    >>> from survey.mechanism import grr
    >>> counts = [[70, 80], [62, 88], [75, 75], [58, 92], [81, 69]]
    >>> shares = group_shares(counts, grr(2, "3/4"))
    >>> shares.direct[:, 0].round(3).tolist(), shares.estimate[:, 0].round(3).tolist()
    ([0.433, 0.327, 0.5, 0.273, 0.58], [0.429, 0.367, 0.467, 0.337, 0.513])
    """
    z = normal_quantile(checked_level(level))
    linear, tallies = linear_estimator(channel), tally(counts, channel, n)
    # Reports about each share, shape (groups, options).
    sums = (tallies.reports * linear.values).sum(axis=1)
    reports = np.broadcast_to(tallies.reports.sum(axis=1), sums.shape).astype(np.float64)
    X = standardized_design(covariates, len(sums))
    check_groups(reports, X.shape[1])
    total = reports.sum(axis=0)
    # Drawn towards 1/2 by z^2 reports, so that a pooled share of 0 or 1 has a variance.
    pooled = (np.clip(sums.sum(axis=0) / total, 0.0, 1.0) * total + z**2 / 2) / (total + z**2)
    has_reports = reports > 0
    divisor = np.where(has_reports, reports, 1.0)
    D = np.where(has_reports, linear.moments.variance(pooled) / divisor, np.inf)
    y = sums / divisor
    fits = [_fit(y[:, j], D[:, j], X, level) for j in range(linear.k)]
    columns = {name: np.stack([fit[name] for fit in fits], axis=-1) for name in fits[0]}
    if not isinstance(channel, TickChannel):
        # The missing part of a sum of 1 is divided like the squared errors.
        squared = columns["std_error"] ** 2
        missing = 1 - columns["estimate"].sum(axis=1, keepdims=True)
        shift = missing * squared / squared.sum(axis=1, keepdims=True)
        for name in ("estimate", "conf_low", "conf_high"):
            columns[name] = columns[name] + shift
    for name in ("conf_low", "conf_high"):
        columns[name] = np.clip(columns[name], 0.0, 1.0)
    return GroupShares(
        direct=np.where(has_reports, y, np.nan),
        direct_error=np.sqrt(D),
        n=int(tallies.n.sum()),
        level=level,
        **columns,
    )


def standardized_design(covariates: ArrayLike | None, groups: int) -> Floats:
    """Return the intercept and the standardized covariates, shape (groups, coefficients)."""
    if covariates is None:
        return np.ones((groups, 1))
    columns = np.asarray(covariates, dtype=np.float64)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or len(columns) != groups:
        raise DesignError(
            f"covariates of shape {columns.shape} must have a row for each of {groups} groups"
        )
    if not (np.abs(columns) <= LARGEST_NUMBER).all():
        raise DesignError("covariates must be finite numbers: no group may lack one")
    centred = columns - columns.mean(axis=0)
    size = np.sqrt((centred**2).mean(axis=0))
    if (size <= COLLINEAR * np.abs(columns).max(axis=0)).any():
        raise DesignError("a covariate has the same value in all groups: leave it out")
    X = np.column_stack([np.ones(groups), centred / size])
    if np.linalg.matrix_rank(X, tol=COLLINEAR * groups) < X.shape[1]:
        raise DesignError("a covariate is a combination of the others: leave it out")
    return X


def check_groups(reports: Floats, coefficients: int) -> None:
    """Raise an error unless enough groups have reports about each option (groups, options)."""
    fewest = int((reports > 0).sum(axis=0).min())
    needed = coefficients + MIN_SPARE_GROUPS
    if not reports.sum():
        raise CountsError("n = 0: an estimate needs reports")
    if fewest < needed:
        raise DesignError(
            f"{fewest} groups with reports are too few: this model needs {needed} to estimate how "
            "much groups differ"
        )


class _AtSd(NamedTuple):
    """The model at N standard deviations A^(1/2) between groups.

    log_likelihood  log R(A), shape (N,)
    expected        x'beta, shape (N, groups)
    kept            A/(A + D), the weight of the group's own estimate, shape (N, groups)
    mean, variance  of theta given A, shape (N, groups)
    q               sum (y - x'beta)^2/(A + D), shape (N,)
    leverage        x'(X'WX)^-1 x, the variance of x'beta, shape (N, groups)
    """

    log_likelihood: Floats
    expected: Floats
    kept: Floats
    mean: Floats
    variance: Floats
    q: Floats
    leverage: Floats


def _at(sd: Floats, y: Floats, D: Floats, X: Floats) -> _AtSd:
    """Return the model at the given standard deviations.

    W = 1/(A + D), beta = (X'WX)^-1 X'Wy, and, up to a constant,
    log R(A) = 1/2 sum log W - 1/2 log |X'WX| - 1/2 sum W (y - x'beta)^2.
    Given A, theta has the mean x'beta + A W (y - x'beta) and the variance A D W + (D W)^2
    x'(X'WX)^-1 x, where D W = 1 - A W.
    """
    A = sd[:, None] ** 2
    W = 1 / (A + D)
    XWX = np.einsum("ng,gp,gq->npq", W, X, X)
    inverse = np.linalg.inv(XWX)
    beta = np.einsum("npq,gq,ng,g->np", inverse, X, W, y)
    expected = beta @ X.T
    squares = W * (y - expected) ** 2
    has_reports = np.isfinite(D)
    log_w = np.log(np.where(has_reports, W, 1.0))
    leverage = np.einsum("gp,npq,gq->ng", X, inverse, X)
    kept = A * W
    return _AtSd(
        log_likelihood=(log_w.sum(axis=1) - np.linalg.slogdet(XWX)[1] - squares.sum(axis=1)) / 2,
        expected=expected,
        kept=kept,
        mean=expected + kept * (y - expected),
        variance=A * (1 - kept) + (1 - kept) ** 2 * leverage,
        q=squares.sum(axis=1),
        leverage=leverage,
    )


def _fit(y: Floats, D: Floats, X: Floats, level: float) -> dict[str, Floats]:
    """Return the fields of `GroupShares` that the model gives for one option."""
    from scipy.special import chdtrc

    grid = np.append(0.0, np.geomspace(SMALLEST_SD, 1.0, COARSE) * LARGEST_SD)
    coarse = _at(grid, y, D, X).log_likelihood
    sd = _most_likely(grid, coarse, y, D, X)
    best = _at(np.array([sd]), y, D, X)
    estimate = best.mean[0]
    nodes, weights = _posterior(grid, coarse, y, D, X)
    given = _at(nodes, y, D, X)
    squared_error = weights @ (given.variance + (given.mean - estimate) ** 2)
    low, high = (_quantile(p, given, weights) for p in ((1 - level) / 2, (1 + level) / 2))
    dof = int(np.isfinite(D).sum()) - X.shape[1]
    q = _at(np.zeros(1), y, D, X).q
    between = _sd_ends(sd, normal_quantile(level), y, D, X)
    return {
        "estimate": estimate,
        "std_error": np.sqrt(squared_error),
        "conf_low": np.minimum(low, estimate),
        "conf_high": np.maximum(high, estimate),
        "expected": best.expected[0],
        "shrinkage": 1 - best.kept[0],
        "residual": _residuals(sd, best, y, D, X),
        "between_sd": np.asarray(sd),
        "between_low": np.asarray(between[0]),
        "between_high": np.asarray(between[1]),
        "q": q[0],
        "p_value": np.asarray(chdtrc(dof, q[0])),
        "dof": np.asarray(float(dof)),
    }


def _residuals(sd: float, best: _AtSd, y: Floats, D: Floats, X: Floats) -> Floats:
    """Return (y - x'beta)/(A + D + x'(X'WX)^-1 x)^(1/2), with A and beta from the other groups.

    An unusual group widens A itself: of seven groups, none could be beyond 2.3. Where the residual
    with A and beta of all groups is small, it is returned.
    """
    spread = np.maximum(sd**2 + D - best.leverage[0], np.finfo(np.float64).tiny)
    residuals = np.where(np.isfinite(D), (y - best.expected[0]) / np.sqrt(spread), np.nan)
    for group in np.flatnonzero(np.abs(residuals) > SMALL_RESIDUAL).tolist():
        # Without reports, a group has no weight.
        others = D.copy()
        others[group] = np.inf
        at = _at(RESIDUAL_SDS, y, others, X)
        place = int(at.log_likelihood.argmax())
        variance = RESIDUAL_SDS[place] ** 2 + D[group] + at.leverage[place, group]
        residuals[group] = (y[group] - at.expected[place, group]) / np.sqrt(variance)
    return residuals


def _most_likely(grid: Floats, coarse: Floats, y: Floats, D: Floats, X: Floats) -> float:
    """Return the A^(1/2) at which R(A) is largest; 0 if no larger one is more likely."""
    from scipy.optimize import minimize_scalar

    place = int(coarse.argmax())
    if place == 0:
        return 0.0
    bounds = grid[place - 1], grid[min(place + 1, len(grid) - 1)]

    def loss(sd: float) -> float:
        return -float(_at(np.array([sd]), y, D, X).log_likelihood[0])

    refined = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return float(refined.x) if -refined.fun >= coarse[place] else float(grid[place])


def _posterior(
    grid: Floats, coarse: Floats, y: Floats, D: Floats, X: Floats
) -> tuple[Floats, Floats]:
    """Return the distribution of A given the estimates y: nodes A^(1/2), and weights R(A) dA.

    A is uniform on [0, 1/4] beforehand, and the weights add up to 1.

    dA = 2 A^(1/2) dA^(1/2); Gauss and Legendre's nodes cover the range that is not negligible.
    """
    density = coarse + np.log(np.maximum(2 * grid, np.finfo(np.float64).tiny))
    relevant = np.flatnonzero(density > density.max() - NEGLIGIBLE)
    low = grid[max(relevant[0] - 1, 0)]
    high = grid[min(relevant[-1] + 1, len(grid) - 1)]
    x, w = unit_nodes(NODES)
    nodes = low + x * (high - low)
    log_density = _at(nodes, y, D, X).log_likelihood + np.log(2 * nodes)
    weights = w * np.exp(log_density - log_density.max())
    return nodes, weights / weights.sum()


@cache
def unit_nodes(count: int) -> tuple[Floats, Floats]:
    """Return Gauss and Legendre's nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(count)
    return np.asarray((x + 1) / 2), np.asarray(w / 2)


def _quantile(probability: float, given: _AtSd, weights: Floats) -> Floats:
    """Return the quantile of theta, a mixture of normal distributions over A, shape (groups,)."""
    from scipy.special import ndtr

    error = np.sqrt(given.variance)
    low = (given.mean - TAIL * error).min(axis=0)
    high = (given.mean + TAIL * error).max(axis=0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below = weights @ ndtr((middle - given.mean) / error) < probability
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2)


def _sd_ends(sd: float, z: float, y: Floats, D: Floats, X: Floats) -> tuple[float, float]:
    """Return the A^(1/2) on both sides of the most likely one at which log R falls by z^2/2."""
    from scipy.optimize import brentq

    def log_likelihood(at: float) -> float:
        return float(_at(np.array([at]), y, D, X).log_likelihood[0])

    threshold = log_likelihood(sd) - z**2 / 2

    def end(limit: float) -> float:
        if log_likelihood(limit) >= threshold:
            return limit
        return float(brentq(lambda at: log_likelihood(at) - threshold, sd, limit))

    return end(0.0), end(LARGEST_SD)
