"""(Multinomial) logistic regression of a true answer on predictors, fitted to its reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.estimator.core.arguments import CodeChannel, checked_arguments, checked_level
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.regression.design_matrix import (
    ByGroup,
    Design,
    JointlyRandomized,
    Randomized,
    make_design,
)
from survey.mechanism.channel import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Result):
    """Coefficients of a (multinomial) logit; arrays have one entry per outcome and term.

    term         "intercept", names of predictors without randomization, "name=truth" of randomized
                 ones
    outcome      the answer whose odds against the baseline are explained
    estimate     log odds, per unit of the predictor in the input
    std_error    inf if the reports do not determine the coefficient (see `boundary`)
    z            estimate/std_error
    p_value      two-sided, by the normal approximation
    conf_low     estimate -+ z std_error
    conf_high
    log_likelihood  of the reports, weighted
    n            people
    level        nominal coverage
    errors       "observed", "sandwich" or "outer-product"
    converged    whether a maximum was found
    boundary     whether the likelihood rises towards an infinite coefficient: a share whose linear
                 estimate is outside [0, 1], or a predictor that separates the reports. The affected
                 coefficients have no finite error, and their value shows only their sign
    fit          the fit itself, on the scale of standardized predictors
    """

    term: NDArray[np.str_]
    outcome: Integers
    estimate: Floats
    std_error: Floats
    z: Floats
    p_value: Floats
    conf_low: Floats
    conf_high: Floats
    log_likelihood: float
    n: int
    level: float
    errors: str
    converged: bool
    boundary: bool
    fit: Fit

    index_names = ("coefficient",)


@checked_arguments
def regression(
    reports: ArrayLike,
    channel: CodeChannel | ByGroup | None,
    predictors: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    randomized: Sequence[Randomized] = (),
    weights: ArrayLike | None = None,
    times: ArrayLike | None = None,
    baseline: int = 0,
    level: float = 0.95,
    errors: Errors | None = None,
    predictor_model: Literal["logit", "shares"] = "logit",
    joint: Sequence[JointlyRandomized] = (),
) -> Regression:
    """Fit a logit (two answers) or multinomial logit (more) of the TRUE answer from its reports.

    `reports` has shape (n,): the outcome's codes. `baseline` is the answer with which the others
    are compared. `channel` is the channel of the devices: None for answers without randomization,
    `ByGroup` if groups of people had different channels (or some had none). `predictors` has shape
    (n, columns), without randomization; an intercept is added. `randomized` are predictors that
    were themselves randomized, each with a separate channel. The likelihood sums over their truths,
    log L = sum_i w_i log sum_u P(u | x_i) P(their reports | u) sum_t P(t | x_i, u) M[t, report_i].
    `predictor_model` is the relation of u to the predictors without randomization: "logit"
    (multinomial logit) or "shares" (independent: fewer parameters, biased if they are dependent).
    `joint` names questions that were randomized as one answer: then P(reports | u, t) is not a
    product, but q + (p-q) where all reports are the truths and q elsewhere.

    `weights` (n,) are sampling weights. The default of `errors` is "sandwich" (Huber 1967, without
    a finite-sample factor) with weights, and "observed" (inverse observed information) without.
    "outer-product" (of scores, Berndt, Hall, Hall, Hausman 1974) is printed by the R package rr.
    `times` (n,) is the number of people that a row represents: people with equal reports and
    predictors may share one row.

    Valid if devices randomized each question independently of the predictors, people answered
    truthfully and independently, and the logit is correct; errors and p-values are those of large
    samples. Sources: Scheers and Dayton 1988; van den Hout, van der Heijden and Gilchrist 2007;
    Blair, Imai and Zhou 2015; groups: Heck and Moshagen 2018. Agrees with the digits that the R
    packages rr and RRreg print for their examples.

    Raises CountsError for impossible reports, groups of different size, missing values, weights
    that are not above 0, a predictor that is constant or a combination of the others; ChannelError
    for channels through which different shares give the same reports, of sets, or of different
    numbers of truths; ValueError for other arguments.

    >>> from survey.mechanism import grr
    >>> rng = np.random.default_rng(1)
    >>> age = rng.normal(size=4000)
    >>> truth = (rng.random(4000) < 1 / (1 + np.exp(1 - age))).astype(int)
    >>> reports = grr(2, "3/4").perturb(truth, rng)
    >>> regression(reports, grr(2, "3/4"), age, names=["age"]).estimate.round(1).tolist()
    [-1.0, 1.0]
    """
    checked_level(level)
    error_method = errors or ("observed" if weights is None else "sandwich")
    if error_method not in ("observed", "sandwich", "outer-product"):
        raise ValueError(f"errors {errors!r} must be 'observed', 'sandwich' or 'outer-product'")
    if predictor_model not in ("logit", "shares"):
        raise ValueError(f"predictor_model {predictor_model!r} must be 'logit' or 'shares'")
    design = make_design(
        reports,
        channel,
        predictors,
        names,
        randomized,
        weights,
        prior_on_open=predictor_model == "logit",
        times=times,
        baseline=baseline,
        joint=joint,
    )
    return _result(fit(design, error_method), design, level, error_method)


def _result(fit_result: Fit, design: Design, level: float, errors: Errors) -> Regression:
    from scipy.special import erfc

    back = _to_input_scale(design)
    estimate = back @ fit_result.theta
    # A coefficient with a part in an undetermined direction has no finite error.
    lengths = np.linalg.norm(back, axis=1)
    endless = np.abs(back @ fit_result.undetermined).max(axis=1, initial=0.0) > MIN_PART * lengths
    variance = np.maximum(np.einsum("ij,jk,ik->i", back, fit_result.covariance, back), 0.0)
    error = np.where(endless, np.inf, np.sqrt(variance))
    z = estimate / error
    reach = normal_quantile(level) * error
    terms = len(design.names)
    return Regression(
        term=np.tile(np.array(design.names), design.outcomes - 1),
        outcome=np.repeat(np.array(design.answers, dtype=np.int64), terms),
        estimate=estimate,
        std_error=error,
        z=z,
        p_value=np.asarray(erfc(np.abs(z) / np.sqrt(2))),
        conf_low=estimate - reach,
        conf_high=estimate + reach,
        log_likelihood=fit_result.log_likelihood,
        n=design.people,
        level=level,
        errors=errors,
        converged=fit_result.converged,
        boundary=fit_result.undetermined.shape[1] > 0,
        fit=fit_result,
    )


def _to_input_scale(design: Design) -> Floats:
    """Return the linear map from all parameters to the coefficients of predictors in the input.

    b_j = beta_j/s_j, and the intercept is beta_0 - sum_j beta_j c_j/s_j.
    """
    m, terms = len(design.scale), len(design.names)
    unscale = np.eye(terms)
    unscale[:m, :m] = np.diag(1 / design.scale)
    unscale[0, 1:m] = -design.centre[1:] / design.scale[1:]
    outcomes = design.outcomes - 1
    gammas = (design.combinations - 1) * design.prior.shape[1]
    return np.asarray(np.pad(np.kron(np.eye(outcomes), unscale), ((0, 0), (0, gammas))))


class Parameters(NamedTuple):
    """beta_open (T-1, m), beta_randomized (T-1, r), gamma (U-1, g)."""

    open: Floats
    randomized: Floats
    prior: Floats


def size(design: Design) -> int:
    """Return the number of parameters."""
    return sum(int(np.prod(shape)) for shape in _shapes(design))


def unpacked(theta: Floats, design: Design) -> Parameters:
    """Return the vector as named blocks, in the order outcome by outcome, then gamma."""
    outcome, prior = _shapes(design)
    cut = outcome[0] * outcome[1]
    beta = theta[:cut].reshape(outcome)
    m = design.open.shape[1]
    return Parameters(beta[:, :m], beta[:, m:], theta[cut:].reshape(prior))


def _shapes(design: Design) -> tuple[tuple[int, int], tuple[int, int]]:
    return (
        (design.outcomes - 1, design.open.shape[1] + design.dummies.shape[1]),
        (design.combinations - 1, design.prior.shape[1]),
    )


def scores(theta: Floats, design: Design) -> Floats:
    """Return the gradient of log L_i of every person, shape (n, parameters)."""
    slopes = _slopes(theta, design)
    n = design.n
    # Outcome by outcome: predictors without randomization, then dummies of the combination.
    by_open = slopes.outcome.sum(axis=1)[:, :, None] * design.open[:, None, :]
    by_randomized = np.einsum("nut,ur->ntr", slopes.outcome, design.dummies)
    by_prior = slopes.prior[:, :, None] * design.prior[:, None, :]
    beta = np.concatenate([by_open, by_randomized], axis=2)
    return np.concatenate([beta.reshape(n, -1), by_prior.reshape(n, -1)], axis=1)


def mean_and_gradient(theta: Floats, design: Design) -> tuple[float, Floats]:
    """Return minus the weighted mean of log L_i, which is minimized, and its gradient."""
    slopes = _slopes(theta, design)
    weights = design.weights / design.weights.sum()
    by_open = (weights[:, None] * slopes.outcome.sum(axis=1)).T @ design.open
    by_randomized = np.tensordot(weights, slopes.outcome, axes=1).T @ design.dummies
    by_prior = (weights[:, None] * slopes.prior).T @ design.prior
    beta = np.concatenate([by_open, by_randomized], axis=1)
    gradient = np.concatenate([beta.ravel(), by_prior.ravel()])
    return -float(weights @ slopes.total), np.asarray(-gradient)


class _Slopes(NamedTuple):
    """log L_i (n,), and its derivatives by eta (n, U, T-1) and by zeta (n, U-1)."""

    total: Floats
    outcome: Floats
    prior: Floats


def _slopes(theta: Floats, design: Design) -> _Slopes:
    """Return the derivatives of log L_i.

    With r_iut the probability of (u, t) given all reports of person i, and r_iu its sum over t,
    d log L_i / d eta_iut = r_iut - r_iu P_iut, and d log L_i / d zeta_iu = r_iu - pi_iu.
    """
    logs = _log_probabilities(theta, design)
    posterior = np.exp(logs.joint - logs.total[:, None, None])
    combination = posterior.sum(axis=2)
    slope = posterior[:, :, 1:] - combination[:, :, None] * np.exp(logs.outcome[:, :, 1:])
    return _Slopes(logs.total, slope, (combination - np.exp(logs.prior))[:, 1:])


def fitted(theta: Floats, design: Design) -> tuple[Floats, Floats]:
    """Return P_iut, shape (n, U, T), and pi_iu, shape (n, U)."""
    logs = _log_probabilities(theta, design)
    return np.exp(logs.outcome), np.exp(logs.prior)


class _LogProbabilities(NamedTuple):
    """Logs of the joint probabilities (n, U, T), their sum (n,), P (n, U, T) and pi (n, U)."""

    joint: Floats
    total: Floats
    outcome: Floats
    prior: Floats


def _log_probabilities(theta: Floats, design: Design) -> _LogProbabilities:
    """Return the logs of the joint probabilities of all truths and outcomes, and of their parts."""
    parameters = unpacked(theta, design)
    eta = (design.open @ parameters.open.T)[:, None, :] + (
        design.dummies @ parameters.randomized.T
    )[None]
    outcome = _log_shares(eta)
    prior = _log_shares(design.prior @ parameters.prior.T)
    joint = outcome + prior[:, :, None] + design.log_chances
    total = _log_sum(joint.reshape(design.n, -1))
    return _LogProbabilities(joint, total[:, 0], outcome, prior)


def _log_shares(eta: Floats) -> Floats:
    """Return the log of the multinomial logit's shares, with the baseline's eta = 0 first."""
    with_baseline = np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1)
    return np.asarray(with_baseline - _log_sum(with_baseline))


def _log_sum(logs: Floats) -> Floats:
    """Return log sum exp along the last axis, keeping the axis; subtract the largest first."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=-1, keepdims=True)))


Errors = Literal["observed", "sandwich", "outer-product"]

EXTRA_STARTS = 2
"""Number of additional starting points for the outcome, and again for randomized predictors, which
can cause several local maxima."""

SPREAD = 0.7
"""Standard deviation of additional starting points, for standardized predictors."""

SEED = 20261121
"""Seed of the starting points, so that equal data give equal results."""

SMALL_GRADIENT = 1e-6
"""Maximum slope of the mean log likelihood at convergence."""

NEWTON_STEPS = 10
STEP = 1e-5

FIRST_ROUNDS = 200
"""Number of rounds of expectation maximization for the first starting point."""

MIN_INFORMATION = 0.01
"""A direction with less information, a standard error above 10 logits, is undetermined."""

MIN_PART = 1e-3
"""Minimum fraction of a coefficient in an undetermined direction that affects it."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The maximum of the likelihood, on the scale of standardized predictors.

    theta           (parameters,)
    covariance      (parameters, parameters), of the determined directions
    undetermined    (parameters, directions) with almost no information; none in a good fit
    log_likelihood  weighted sum
    gradient        largest slope of the mean log likelihood
    predictor_shares  (U,): mean estimated shares of the randomized predictors' combinations
    """

    theta: Floats
    covariance: Floats
    undetermined: Floats
    log_likelihood: float
    gradient: float
    predictor_shares: Floats

    @property
    def converged(self) -> bool:
        """Return whether the fit is a maximum, within numerical precision."""
        return self.gradient <= SMALL_GRADIENT


def fit(design: Design, errors: Errors) -> Fit:
    """Maximize by BFGS from several starts, then by Newton's method; return the best fit."""
    theta = min(
        (_searched(start, design) for start in _starts(design)),
        key=lambda end: mean_and_gradient(end, design)[0],
    )
    theta = _polished(theta, design)
    value, gradient = mean_and_gradient(theta, design)
    determined, undetermined = _directions(_hessian(theta, design), design)
    _, prior = fitted(theta, design)
    return Fit(
        theta=theta,
        covariance=_covariance(theta, design, determined, errors),
        undetermined=undetermined,
        log_likelihood=-value * float(design.weights.sum()),
        gradient=float(np.abs(gradient).max()),
        predictor_shares=np.asarray(design.weights @ prior / design.weights.sum()),
    )


def _starts(design: Design) -> list[Floats]:
    """Return the fit without predictors (all slopes 0), and some points around it."""
    m, r, g = design.open.shape[1], design.dummies.shape[1], design.prior.shape[1]
    first = Parameters(
        np.pad(_log_odds(design.outcome, design.weights)[:, None], ((0, 0), (0, m - 1))),
        np.zeros((design.outcomes - 1, r)),
        np.pad(_log_odds(design.randomized, design.weights)[:, None], ((0, 0), (0, g - 1))),
    )
    beta = np.concatenate([first.open, first.randomized], axis=1)
    base = np.concatenate([beta.ravel(), first.prior.ravel()])
    rng = np.random.default_rng(SEED)
    n_extra = EXTRA_STARTS if design.combinations == 1 else 2 * EXTRA_STARTS
    around = [base + SPREAD * rng.standard_normal(size(design)) for _ in range(n_extra)]
    return [base, *around]


def _log_odds(chances: Floats, weights: Floats) -> Floats:
    """Return log(share_t/share_0) of shares after some rounds of expectation maximization."""
    shares = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(FIRST_ROUNDS):
        posterior = chances * shares
        shares = weights @ (posterior / posterior.sum(axis=1, keepdims=True)) / weights.sum()
    shares = np.maximum(shares, 0.01)
    return np.asarray(np.log(shares[1:] / shares[0]))


def _searched(start: Floats, design: Design) -> Floats:
    from scipy.optimize import minimize

    result = minimize(
        mean_and_gradient, start, args=(design,), method="BFGS", jac=True, options={"gtol": 1e-8}
    )
    return np.asarray(result.x)


def _polished(theta: Floats, design: Design) -> Floats:
    """Return theta after Newton steps, as long as the likelihood does not fall."""
    value, gradient = mean_and_gradient(theta, design)
    for _ in range(NEWTON_STEPS):
        curvature, vectors = np.linalg.eigh(_hessian(theta, design))
        if np.abs(gradient).max() <= SMALL_GRADIENT / 100 or curvature[0] <= 0:
            break
        following = theta - vectors @ (vectors.T @ gradient / curvature)
        reached, slope = mean_and_gradient(following, design)
        if not reached <= value:
            break
        theta, value, gradient = following, reached, slope
    return theta


def _hessian(theta: Floats, design: Design) -> Floats:
    """Return the Hessian of minus the mean log likelihood, by differences of the gradient."""
    columns = []
    for index in range(len(theta)):
        step = STEP * np.eye(1, len(theta), index)[0]
        ahead, behind = (mean_and_gradient(theta + side * step, design)[1] for side in (1, -1))
        columns.append((ahead - behind) / (2 * STEP))
    differences = np.array(columns)
    return np.asarray((differences + differences.T) / 2)


def _directions(hessian: Floats, design: Design) -> tuple[Floats, Floats]:
    """Return H^-1 of the determined directions, per person, and the undetermined directions."""
    curvature, vectors = np.linalg.eigh(hessian)
    is_determined = design.people * curvature > MIN_INFORMATION
    inverse = vectors[:, is_determined] / curvature[is_determined] @ vectors[:, is_determined].T
    return np.asarray(inverse), np.asarray(vectors[:, ~is_determined])


def _covariance(theta: Floats, design: Design, inverse: Floats, errors: Errors) -> Floats:
    """Return the covariance of theta.

    It is H^-1/sum w; or, with s_i the score of person i, H^-1 (sum w_i^2 s s') H^-1 (Huber 1967) or
    (sum w_i s s')^-1 (Berndt and others 1974). The weight w of a row of several people is that of
    all of them, so the sum of their squared weights is w^2/times.
    """
    total = float(design.weights.sum())
    if errors == "observed":
        return np.asarray(inverse / total)
    slopes = scores(theta, design)
    if errors == "outer-product":
        spread = (slopes * design.weights[:, None]).T @ slopes
        return np.asarray(np.linalg.pinv(spread, rcond=1e-12, hermitian=True))
    weighted = slopes * (design.weights / np.sqrt(design.times))[:, None] / total
    return np.asarray(inverse @ (weighted.T @ weighted) @ inverse)
