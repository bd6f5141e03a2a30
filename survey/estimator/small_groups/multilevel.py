"""Multilevel regression through the channel, and post-stratification of its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import ChannelError, CountsError, DesignError
from survey.estimator.core.arguments import (
    CodeChannel,
    checked_arguments,
    checked_level,
    whole_counts,
    within_reach,
)
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.shares.linear_estimator import LinearEstimator, Tally, linear_estimator, tally
from survey.estimator.small_groups.normal_model import (
    check_groups,
    standardized_design,
    unit_nodes,
)
from survey.mechanism import SubsetSelection
from survey.mechanism.channel import Floats, Integers

SMALLEST_SD, LARGEST_SD = 1e-3, 3.0
"""Range of the standard deviation of log odds between groups; the smallest one stands for 0."""

COARSE = 24
"""Standard deviations at which the likelihood is first computed."""

NODES = 24
"""Standard deviations over which the likelihood is integrated."""

NEGLIGIBLE = 12.0
"""Standard deviations whose log density is lower than the highest by this much are left out."""

INTERCEPT_SD, SLOPE_SD = 5.0, 2.5
"""Prior standard deviations of the log odds of any two answers: without predictors, and of their
change by one standard deviation of a covariate or from the first stratum to another. They keep the
log odds finite where an answer has no support."""

DRAWS = 2_000
SEED = 20261124
"""Seed of the draws, so that equal data give equal results."""

CORRECTIONS = 8
"""Metropolis steps of each draw."""

STEP_LENGTH = 1.7
"""Length of a local Metropolis step in standard errors, for one log odds."""

MAX_SIZE = 20_000
"""Groups x strata x codes of a report; the draws of a larger table would take minutes."""

MIN_START = 0.01
"""Smallest pooled share with which the search starts and groups vary."""

MAX_STEPS = 300
MAX_HALVINGS = 30
SMALL_DECREMENT = 1e-4
"""The search ends when a step promises less than this for the log likelihood: its end is then
within .01 standard errors of the maximum."""

MIN_WEIGHT = 1e-4
"""Standard deviations of smaller weight need no exact maximum."""

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False, repr=False)
class MultilevelShares(Result):
    """Post-stratified shares of groups beside direct ones; arrays have shape (groups, options).

    estimate      model-based share of the group's population
    std_error     root mean squared error of `estimate`, the uncertain spread of groups included
    conf_low      ends of the interval, in [0, 1]
    conf_high
    direct        linear estimate of the group's strata, weighted by their population; nan if a
                  stratum has people but no reports
    direct_error  its standard error at the pooled share
    shrinkage     weight of the model's prediction in the estimate, shape (groups,): 0 means direct
    total         model-based share of the whole population, shape (options,)
    total_error, total_low, total_high   its error and interval, shape (options,)
    between_sd    standard deviation between groups of the log odds of two answers, the root mean
                  square over all pairs; 0 if the groups differ no more than chance and the
                  predictors explain
    between_low   ends of its interval
    between_high
    likelihood_ratio  twice the log likelihood ratio against a standard deviation of 0
    p_value       of this test, half of that of chi-square with one degree of freedom
    converged     whether all maxima were found
    n             reports
    level         nominal coverage, averaged over the groups
    """

    index_names = ("group", "option")

    estimate: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    direct: Floats
    direct_error: Floats
    shrinkage: Floats
    total: Floats
    total_error: Floats
    total_low: Floats
    total_high: Floats
    between_sd: float
    between_low: float
    between_high: float
    likelihood_ratio: float
    p_value: float
    converged: bool
    n: int
    level: float


@checked_arguments
def multilevel_shares(
    counts: ArrayLike,
    channel: CodeChannel,
    population: ArrayLike | None = None,
    covariates: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> MultilevelShares:
    """Estimate shares of groups by multilevel regression and post-stratification.

    `counts` has shape (groups, counts), or (groups, strata, counts) if groups consist of strata
    that are the same in all of them, such as ages; each row is as returned by `channel.count`.
    Groups and strata are known without randomization; each report is one code. `population` has
    shape (groups,) or (groups, strata): the known people or shares of each; without it, the reports
    of a group represent its strata as they are. `covariates`, shape (groups,) or (groups, columns),
    are known numbers of each group.

    1. Model. With t the true answer of a person in group g and stratum s, and c the counts of
       reports y,
           log P(t)/P(0) = eta_t = x_gs'beta_t + u_gt,  u_g ~ N(0, c (diag(1/pi_t) + 1/pi_0)),
           log L = sum_gsy c_gsy log sum_t P(t) M[t, y].
       x contains 1, an indicator of each stratum but the first, and the covariates. Groups vary
       like samples of people with the pooled shares pi, so that the log odds of rare answers vary
       more. `sd` is the root mean square over pairs of answers; it does not depend on which
       answer is the baseline, 0.
    2. Approximation. For each sd, beta and u have a normal distribution around their most likely
       values, with Fisher's information through the channel. sd has the likelihood with both
       integrated out (Laplace's method), and is uniform in sd^2 up to 9 beforehand.
    3. Draws. beta and u are drawn at each sd; the draws of u are corrected by Metropolis steps,
       because they are skewed where a share is near 0.
    4. Post-stratification. Each draw gives the shares of all strata; their mean with weights
       N_gs/N_g is the share of the group (Gelman and Little 1997; Park, Gelman and Bafumi 2004).
    5. Results. `estimate` is the mean at the most likely sd; error and interval are those of all
       draws. Interval ends that are less than one response of a group of mean size away from 0 or
       1 are set to it, because log odds never reach it.

    Coverage is measured as the average over groups (`tests.benchmarks.small_groups`). Valid
    if, within a stratum of a group, participation does not depend on the answer, and the log odds
    of groups lie around the predicted ones like a normal distribution.

    Raises DesignError for fewer than three groups with reports beyond the number of coefficients of
    a group, for impossible covariates or populations; CountsError for counts that the channel
    cannot produce or tables that are too large; ChannelError for a channel without an inverse or
    with reports of sets.

    >>> from survey.mechanism import grr
    >>> counts = [[[70, 80], [20, 30]], [[62, 88], [15, 45]], [[75, 75], [25, 25]],
    ...           [[58, 92], [11, 29]], [[81, 69], [21, 29]]]
    >>> shares = multilevel_shares(counts, grr(2, "3/4"), [[2, 1]] * 5)
    >>> shares.direct[:, 0].round(2).tolist(), shares.estimate[:, 0].round(2).tolist()
    ([0.39, 0.22, 0.5, 0.2, 0.5], [0.38, 0.27, 0.45, 0.26, 0.47])
    """
    checked_level(level)
    table = _table(counts, channel)
    groups, strata, codes = table.shape
    linear = linear_estimator(channel)
    tallies = tally(table.reshape(-1, codes), channel)
    n = tallies.n.reshape(groups, strata)
    people = _population(population, n)
    design = standardized_design(covariates, groups)
    check_groups(n.sum(axis=1, keepdims=True).astype(np.float64), design.shape[1])
    reports, matrix = table.astype(np.float64), np.asarray(channel.matrix)
    data = _Data(
        reports=reports,
        x=_predictors(design, strata),
        matrix=matrix,
        pooled=_pooled_shares(reports.sum(axis=(0, 1)), matrix),
        beta_precision=_prior(design.shape[1] + strata - 1, channel.truths - 1),
    )
    profile = _profile(data)
    rng = np.random.default_rng(SEED)
    weights = people / people.sum(axis=1, keepdims=True)
    draws = np.concatenate(
        [
            _group_draws(mode, size, weights, rng, data)
            for mode, size in zip(profile.nodes, _sizes(profile.weights), strict=True)
            if size
        ]
    )
    estimate = _group_draws(profile.best, DRAWS, weights, rng, data).mean(axis=0)
    of_groups = people.sum(axis=1) / people.sum()
    group = _summary(estimate, draws, level)
    # Log odds do not reach shares of 0, to which a share of less than one response is nearly equal.
    one = groups / n.sum()
    total = _summary(of_groups @ estimate, np.einsum("g,ngj->nj", of_groups, draws), level)
    direct, direct_error = _direct(linear, tallies, weights)
    return MultilevelShares(
        estimate=estimate,
        std_error=group.error,
        conf_low=np.where(group.low < one, 0.0, group.low),
        conf_high=np.where(group.high > 1 - one, 1.0, group.high),
        direct=direct,
        direct_error=direct_error,
        shrinkage=_shrinkage(profile.best, data),
        total=of_groups @ estimate,
        total_error=total.error,
        total_low=total.low,
        total_high=total.high,
        **_spread(profile, level),
        n=int(tallies.n.sum()),
        level=level,
    )


def _table(counts: ArrayLike, channel: CodeChannel) -> Integers:
    """Return counts of shape (groups, strata, codes), or raise an error with the reason."""
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        raise ChannelError(f"d = {channel.d}; this model needs reports of one option")
    table = np.asarray(counts)
    if table.ndim == 2:
        table = table[:, None, :]
    if table.ndim != 3 or not table.size or table.shape[2] != channel.counted:
        raise CountsError(
            f"counts of shape {np.shape(counts)} must be (groups, {channel.counted}) or (groups, "
            f"strata, {channel.counted})"
        )
    if table.size > MAX_SIZE:
        raise CountsError(
            f"{table.size:,} counts are more than {MAX_SIZE:,}: use fewer groups or strata"
        )
    flat = whole_counts(table.ravel(), table.size, "one row per group and stratum")
    return flat.reshape(table.shape)


def _population(population: ArrayLike | None, n: Integers) -> Floats:
    """Return the people of each stratum, shape (groups, strata), or raise DesignError."""
    if population is None:
        if not n.sum(axis=1).all():
            raise DesignError("a group without reports needs a population")
        return n.astype(np.float64)
    people = np.asarray(population, dtype=np.float64)
    if people.ndim == 1 and n.shape[1] == 1:
        people = people[:, None]
    if people.shape != n.shape:
        raise DesignError(
            f"population of shape {np.shape(population)} must have a number for each of "
            f"{n.shape[0]} groups and {n.shape[1]} strata"
        )
    if not (within_reach(people) & (people >= 0)).all() or not people.sum(axis=1).all():
        raise DesignError("populations must be at least 0, and above 0 in each group")
    return people


def _predictors(design: Floats, strata: int) -> Floats:
    """Return x, shape (groups, strata, p): the group's columns, then indicators of strata."""
    indicators = np.eye(strata)[:, 1:]
    return np.concatenate(
        [
            np.broadcast_to(design[:, None, :], (len(design), strata, design.shape[1])),
            np.broadcast_to(indicators, (len(design), *indicators.shape)),
        ],
        axis=2,
    )


def _prior(p: int, odds: int) -> Floats:
    """Return the inverse covariance of beta, in the order of (odds, p)."""
    sds = np.array([INTERCEPT_SD, *[SLOPE_SD] * (p - 1)])
    equal = np.full(odds + 1, 1 / (odds + 1))
    return np.asarray(np.kron(log_odds_precision(1.0, equal), np.diag(1 / sds**2)))


def _direct(linear: LinearEstimator, tallies: Tally, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted linear estimates of the groups and their errors at the pooled share."""
    n = tallies.n.reshape(weights.shape)
    sums = (tallies.reports * linear.values).sum(axis=1)
    pooled = np.clip(sums.sum(axis=0) / tallies.n.sum(), 0.0, 1.0)
    means = sums.reshape(*weights.shape, -1) / np.maximum(n, 1)[:, :, None]
    missing = ((n == 0) & (weights > 0)).any(axis=1, keepdims=True)
    per_report = (weights**2 / np.maximum(n, 1)).sum(axis=1, keepdims=True)
    error = np.sqrt(per_report * linear.moments.variance(pooled))
    return (
        np.where(missing, np.nan, (weights[:, :, None] * means).sum(axis=1)),
        np.where(missing, np.inf, error),
    )


class _Data(NamedTuple):
    """Reports c (groups, strata, codes), predictors x (groups, strata, p), M[truth, code].

    `pooled` are the shares of all groups together, shape (answers,).
    """

    reports: Floats
    x: Floats
    matrix: Floats
    pooled: Floats
    beta_precision: Floats

    @property
    def odds(self) -> int:
        """Return the number of log odds, one less than that of answers."""
        return len(self.matrix) - 1


class _Mode(NamedTuple):
    """The most likely coefficients and effects at one standard deviation between groups.

    sd           of the log odds of two answers, root mean square over pairs
    beta         (odds, p)
    u            (groups, odds)
    effects      H_uu, curvature of each group's effects, shape (groups, odds, odds)
    cross        H_u beta, shape (groups, odds, odds p)
    schur        curvature of beta with the effects integrated out, shape (odds p, odds p)
    marginal     log of the likelihood with beta and u integrated out, up to a constant
    converged    whether the search ended at a maximum
    """

    sd: float
    beta: Floats
    u: Floats
    effects: Floats
    cross: Floats
    schur: Floats
    marginal: float
    converged: bool


def shares_of(eta: Floats, axis: int = -1) -> Floats:
    """Return shares from the log odds of all answers but the first against the first.

    >>> shares_of(np.log([[2.0, 1.0]])).tolist()
    [[0.25, 0.5, 0.25]]
    """
    first = np.zeros_like(np.take(eta, [0], axis=axis))
    full = np.concatenate([first, eta], axis=axis)
    full = np.exp(full - full.max(axis=axis, keepdims=True))
    return np.asarray(full / full.sum(axis=axis, keepdims=True))


def log_odds_precision(sd: float, shares: Floats) -> Floats:
    """Return the inverse covariance of effects on the log odds against the first answer.

    Shares pi that vary like those of a sample have log odds of covariance diag(1/pi_t) + 1/pi_0,
    whose inverse is diag(pi) - pi pi', whichever answer comes first. It is scaled so that `sd` is
    the root mean square of the deviation over all pairs of the K answers:
        sd^2 = mean of c (1/pi_s + 1/pi_t) = c 2/K sum_t 1/pi_t.

    >>> log_odds_precision(2.0, np.array([0.1, 0.9])).round(3).tolist()
    [[0.25]]
    """
    scale = 2 / len(shares) * (1 / shares).sum() / sd**2
    others = shares[1:]
    return np.asarray(scale * (np.diag(others) - np.outer(others, others)))


def _eta(beta: Floats, u: Floats, data: _Data) -> Floats:
    return np.asarray(data.x @ beta.T + u[:, None, :])


def _log_posterior(beta: Floats, u: Floats, precision: Floats, data: _Data) -> float:
    """Return sum c log(pi M) - u'P u/2 - beta'Q beta/2."""
    codes = shares_of(_eta(beta, u, data)) @ data.matrix
    log_likelihood = (data.reports * np.log(np.maximum(codes, TINY))).sum()
    flat = beta.ravel()
    penalty = np.einsum("gi,ij,gj->", u, precision, u) + flat @ data.beta_precision @ flat
    return float(log_likelihood - penalty / 2)


class _Step(NamedTuple):
    beta: Floats
    u: Floats
    decrement: float
    effects: Floats
    cross: Floats
    schur: Floats


def _step(beta: Floats, u: Floats, precision: Floats, data: _Data) -> _Step:
    """Return the step of Fisher's scoring, solved group by group.

    With J = d pi/d eta, the slope of a cell is J'M (c/(pi M)), its information
    n J'M diag(1/(pi M)) M'J.
    """
    pi = shares_of(_eta(beta, u, data))
    codes = np.maximum(pi @ data.matrix, TINY)
    J = pi[..., :, None] * (np.eye(data.odds + 1) - pi[..., None, :])
    moved = np.swapaxes(J[..., 1:], -1, -2) @ data.matrix
    slope = np.einsum("gsir,gsr->gsi", moved, data.reports / codes)
    n = data.reports.sum(axis=-1)
    information = np.einsum("gs,gsir,gsjr->gsij", n, moved / codes[..., None, :], moved)
    groups, p = len(u), data.x.shape[2]
    effects = information.sum(axis=1) + precision
    cross = np.einsum("gsij,gsp->gijp", information, data.x).reshape(groups, data.odds, -1)
    both = np.einsum("gsij,gsp,gsq->ipjq", information, data.x, data.x)
    u_slope = slope.sum(axis=1) - u @ precision
    flat = beta.ravel()
    beta_slope = np.einsum("gsi,gsp->ip", slope, data.x).ravel() - data.beta_precision @ flat
    solved = np.linalg.solve(effects, np.concatenate([cross, u_slope[:, :, None]], axis=2))
    size = data.odds * p
    schur = (
        both.reshape(size, size)
        + data.beta_precision
        - np.einsum("gia,gib->ab", cross, solved[..., :-1])
    )
    beta_step = np.linalg.solve(schur, beta_slope - np.einsum("gia,gi->a", cross, solved[..., -1]))
    u_step = solved[..., -1] - solved[..., :-1] @ beta_step
    decrement = float((u_step * u_slope).sum() + beta_step @ beta_slope)
    return _Step(beta_step.reshape(beta.shape), u_step, decrement, effects, cross, schur)


def _mode(sd: float, start: tuple[Floats, Floats], data: _Data) -> _Mode:
    """Return the mode of beta and u at a standard deviation, and Laplace's marginal likelihood.

    log L(sd) = log posterior at the mode + 1/2 log |P| for each group - 1/2 log |H|.
    """
    precision = log_odds_precision(sd, data.pooled)
    beta, u = start
    value = _log_posterior(beta, u, precision, data)
    step = _step(beta, u, precision, data)
    for _ in range(MAX_STEPS):
        if step.decrement < SMALL_DECREMENT:
            break
        for halving in range(MAX_HALVINGS):
            scale = 0.5**halving
            following = beta + scale * step.beta, u + scale * step.u
            reached = _log_posterior(*following, precision, data)
            if reached >= value:
                break
        else:
            break
        (beta, u), value = following, reached
        step = _step(beta, u, precision, data)
    curvature = np.linalg.slogdet(step.effects)[1].sum() + np.linalg.slogdet(step.schur)[1]
    freedom = len(u) * np.linalg.slogdet(precision)[1]
    marginal = value + (freedom - curvature) / 2
    converged = step.decrement < SMALL_DECREMENT
    return _Mode(sd, beta, u, step.effects, step.cross, step.schur, float(marginal), converged)


def _pooled_shares(reports: Floats, matrix: Floats) -> Floats:
    """Return the shares of all groups together, from `MIN_START`, by expectation maximization."""
    shares = np.full(len(matrix), 1 / len(matrix))
    for _ in range(MAX_STEPS):
        shares = shares * (matrix @ (reports / (shares @ matrix))) / reports.sum()
    shares = np.maximum(shares, MIN_START)
    return np.asarray(shares / shares.sum())


def _start(data: _Data) -> tuple[Floats, Floats]:
    """Return the log odds of the pooled shares, without groups and predictors."""
    beta = np.zeros((data.odds, data.x.shape[2]))
    beta[:, 0] = np.log(data.pooled[1:] / data.pooled[0])
    return beta, np.zeros((len(data.reports), data.odds))


def _modes(sds: Floats, data: _Data, start: tuple[Floats, Floats]) -> list[_Mode]:
    """Return the modes at rising standard deviations, each search from the end of the last one."""
    modes: list[_Mode] = []
    for sd in sds.tolist():
        modes.append(_mode(sd, start, data))
        start = modes[-1].beta, modes[-1].u
    return modes


class _Profile(NamedTuple):
    """The most likely mode, and modes at rising sd whose weights, (nodes,), add up to 1."""

    best: _Mode
    coarse: list[_Mode]
    nodes: list[_Mode]
    weights: Floats


def _profile(data: _Data) -> _Profile:
    """Return the likelihood of sd, and the integral of it at a uniform sd^2, d sd^2 = 2 sd d sd."""
    from scipy.optimize import minimize_scalar

    grid = np.geomspace(SMALLEST_SD, LARGEST_SD, COARSE)
    coarse = _modes(grid, data, _start(data))
    marginal = np.array([mode.marginal for mode in coarse])
    place = int(marginal.argmax())
    best = coarse[place]
    if place:
        refined = minimize_scalar(
            lambda sd: -_mode(float(sd), (best.beta, best.u), data).marginal,
            bounds=(grid[place - 1], grid[min(place + 1, COARSE - 1)]),
            method="bounded",
            options={"xatol": 1e-3 * grid[place]},
        )
        candidate = _mode(float(refined.x), (best.beta, best.u), data)
        best = max(best, candidate, key=lambda mode: mode.marginal)
    density = marginal + np.log(grid)
    relevant = np.flatnonzero(density > density.max() - NEGLIGIBLE)
    first, last = max(relevant[0] - 1, 0), min(relevant[-1] + 1, COARSE - 1)
    x, w = unit_nodes(NODES)
    sds = grid[first] + x * (grid[last] - grid[first])
    nodes = _modes(sds, data, (coarse[first].beta, coarse[first].u))
    logs = np.array([mode.marginal for mode in nodes]) + np.log(sds)
    weights = w * np.exp(logs - logs.max())
    return _Profile(best, coarse, nodes, weights / weights.sum())


def _spread(profile: _Profile, level: float) -> dict[str, Any]:
    """Return the fields of `MultilevelShares` about the differences of groups.

    The interval of sd holds those whose log likelihood is lower than the highest by z^2/2 at most,
    interpolated. The test compares the best sd with 0, an end of its range, where the statistic is
    0 in half of all surveys (Self and Liang 1987).
    """
    from scipy.special import erfc

    best = profile.best
    modes = sorted([*profile.coarse, *profile.nodes, best], key=lambda mode: mode.sd)
    sds, marginal = (np.array([getattr(m, name) for m in modes]) for name in ("sd", "marginal"))
    threshold = best.marginal - normal_quantile(level) ** 2 / 2
    place = int(np.searchsorted(sds, best.sd))
    below, above = slice(0, place + 1), slice(place, None)
    low, high = SMALLEST_SD, LARGEST_SD
    if marginal[0] < threshold:
        low = float(np.interp(threshold, np.maximum.accumulate(marginal[below]), sds[below]))
    if marginal[-1] < threshold:
        falling = np.minimum.accumulate(marginal[above])
        high = float(np.interp(-threshold, -falling, sds[above]))
    ratio = max(2 * (best.marginal - profile.coarse[0].marginal), 0.0)
    is_exact = [
        mode.converged
        for mode, weight in zip(profile.nodes, profile.weights, strict=True)
        if weight > MIN_WEIGHT
    ]
    return {
        "between_sd": 0.0 if best.sd <= SMALLEST_SD else best.sd,
        "between_low": 0.0 if low <= SMALLEST_SD else low,
        "between_high": high,
        "likelihood_ratio": ratio,
        "p_value": float(erfc(np.sqrt(ratio / 2))) / 2 if ratio else 1.0,
        "converged": best.converged and all(is_exact),
    }


def _shrinkage(mode: _Mode, data: _Data) -> Floats:
    """Return the mean over the log odds of H_uu^-1 P, the part that the model contributes."""
    inverse = np.linalg.inv(mode.effects)
    precision = log_odds_precision(mode.sd, data.pooled)
    return np.asarray(np.einsum("gij,ji->g", inverse, precision) / data.odds)


def _sizes(weights: Floats) -> list[int]:
    """Return how many draws each node gets, `DRAWS` in total.

    >>> sum(_sizes(np.array([0.5, 0.3, 0.2])))
    2000
    """
    ends = np.round(DRAWS * np.append(0.0, np.cumsum(weights)))
    return [int(size) for size in np.diff(ends)]


def _group_draws(
    mode: _Mode, size: int, weights: Floats, rng: np.random.Generator, data: _Data
) -> Floats:
    """Return draws of the shares of groups, shape (size, groups, options)."""
    groups, odds = mode.u.shape
    root = np.linalg.cholesky(np.linalg.inv(mode.schur))
    beta = rng.standard_normal((size, len(root))) @ root.T
    roots = np.linalg.cholesky(np.linalg.inv(mode.effects))
    # The log odds come first in all arrays of draws: sums over a short last axis are slow.
    u = np.einsum("gij,jng->ing", roots, rng.standard_normal((odds, size, groups)))
    # The mean of u given beta is u-hat - H_uu^-1 H_ub (beta - beta-hat).
    u -= np.einsum("gia,na->ing", np.linalg.solve(mode.effects, mode.cross), beta)
    u += mode.u.T[:, None, :]
    predicted = np.einsum("gsp,nip->ings", data.x, beta.reshape(size, odds, -1) + mode.beta)
    eta = predicted + _corrected(u, predicted, roots, mode.sd, rng, data)[..., None]
    return np.asarray(np.einsum("gs,jngs->ngj", weights, shares_of(eta, axis=0)))


def _corrected(
    u: Floats, predicted: Floats, roots: Floats, sd: float, rng: np.random.Generator, data: _Data
) -> Floats:
    """Return draws of u after Metropolis steps, which keep its distribution given beta and sd.

    `u` has shape (odds, draws, groups), `predicted` (odds, draws, groups, strata). Local steps,
    accepted by the posterior density, alternate with draws from N(0, P^-1), accepted by the
    likelihood alone, which reach the long tails where reports are few.
    """
    precision = log_odds_precision(sd, data.pooled)
    prior_root = np.linalg.cholesky(np.linalg.inv(precision))

    def log_likelihood(u: Floats) -> Floats:
        shares = shares_of(predicted + u[..., None], axis=0)
        codes = np.tensordot(data.matrix, shares, axes=(0, 0))
        return np.asarray(np.einsum("gsr,rngs->ng", data.reports, np.log(np.maximum(codes, TINY))))

    def log_prior(u: Floats) -> Floats:
        return np.asarray(-(u * np.tensordot(precision, u, axes=1)).sum(axis=0) / 2)

    current = log_likelihood(u)
    for step in range(CORRECTIONS):
        z = rng.standard_normal(u.shape)
        if step % 2:
            proposal = np.tensordot(prior_root, z, axes=1)
            gain = np.zeros(current.shape)
        else:
            local = np.einsum("gij,jng->ing", roots, z)
            proposal = u + STEP_LENGTH / np.sqrt(data.odds) * local
            gain = log_prior(proposal) - log_prior(u)
        reached = log_likelihood(proposal)
        is_accepted = np.log(rng.random(current.shape)) < reached - current + gain
        u = np.where(is_accepted, proposal, u)
        current = np.where(is_accepted, reached, current)
    return u


class _Summary(NamedTuple):
    error: Floats
    low: Floats
    high: Floats


def _summary(estimate: Floats, draws: Floats, level: float) -> _Summary:
    """Return the error and the interval of an estimate from draws along the first axis."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    error = np.sqrt(((draws - estimate) ** 2).mean(axis=0))
    return _Summary(error, np.minimum(low, estimate), np.maximum(high, estimate))
