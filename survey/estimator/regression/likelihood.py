"""The likelihood of a regression's reports, its derivatives, and its maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from survey.estimator.regression.design import Design
from survey.mechanism.arrays import Floats


class Parameters(NamedTuple):
    """beta_open (T-1, m), beta_hidden (T-1, r), gamma (U-1, g)."""

    open: Floats
    hidden: Floats
    prior: Floats


def size(design: Design) -> int:
    """How many parameters there are."""
    return sum(int(np.prod(shape)) for shape in _shapes(design))


def unpacked(theta: Floats, design: Design) -> Parameters:
    """The vector as named blocks, in the order outcome by outcome, then gamma."""
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
    """The gradient of log L_i of every person, shape (n, parameters)."""
    found = _slopes(theta, design)
    n = design.n
    # Outcome by outcome: open predictors, then the dummies of the combination.
    by_open = found.outcome.sum(axis=1)[:, :, None] * design.open[:, None, :]
    by_hidden = np.einsum("nut,ur->ntr", found.outcome, design.dummies)
    by_prior = found.prior[:, :, None] * design.prior[:, None, :]
    beta = np.concatenate([by_open, by_hidden], axis=2)
    return np.concatenate([beta.reshape(n, -1), by_prior.reshape(n, -1)], axis=1)


def mean_and_gradient(theta: Floats, design: Design) -> tuple[float, Floats]:
    """Minus the weighted mean of log L_i, and its gradient: what is minimized."""
    found = _slopes(theta, design)
    weights = design.weights / design.weights.sum()
    by_open = (weights[:, None] * found.outcome.sum(axis=1)).T @ design.open
    by_hidden = np.tensordot(weights, found.outcome, axes=1).T @ design.dummies
    by_prior = (weights[:, None] * found.prior).T @ design.prior
    beta = np.concatenate([by_open, by_hidden], axis=1)
    gradient = np.concatenate([beta.ravel(), by_prior.ravel()])
    return -float(weights @ found.total), np.asarray(-gradient)


class _Slopes(NamedTuple):
    """log L_i (n,), and its derivatives by eta (n, U, T-1) and by zeta (n, U-1)."""

    total: Floats
    outcome: Floats
    prior: Floats


def _slopes(theta: Floats, design: Design) -> _Slopes:
    """With r_iut the chance of (u, t) given all reports of person i, and r_iu its sum over t,
    d log L_i / d eta_iut = r_iut - r_iu P_iut, and d log L_i / d zeta_iu = r_iu - pi_iu.
    """
    found = _complete(theta, design)
    held = np.exp(found.each - found.total[:, None, None])
    combination = held.sum(axis=2)
    slope = held[:, :, 1:] - combination[:, :, None] * np.exp(found.outcome[:, :, 1:])
    return _Slopes(found.total, slope, (combination - np.exp(found.prior))[:, 1:])


def fitted(theta: Floats, design: Design) -> tuple[Floats, Floats]:
    """P_iut, shape (n, U, T), and pi_iu, shape (n, U)."""
    found = _complete(theta, design)
    return np.exp(found.outcome), np.exp(found.prior)


class _Complete(NamedTuple):
    """Logarithms: of everything jointly (n, U, T), its sum (n,), P (n, U, T) and pi (n, U)."""

    each: Floats
    total: Floats
    outcome: Floats
    prior: Floats


def _complete(theta: Floats, design: Design) -> _Complete:
    parts = unpacked(theta, design)
    eta = (design.open @ parts.open.T)[:, None, :] + (design.dummies @ parts.hidden.T)[None]
    outcome = _log_shares(eta)
    prior = _log_shares(design.prior @ parts.prior.T)
    each = outcome + (prior + design.log_hidden)[:, :, None] + design.log_outcome[:, None, :]
    total = _log_sum(each.reshape(design.n, -1))
    return _Complete(each, total[:, 0], outcome, prior)


def _log_shares(eta: Floats) -> Floats:
    """log of the multinomial logit's shares, the baseline's eta = 0 put first."""
    whole = np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1)
    return np.asarray(whole - _log_sum(whole))


def _log_sum(logs: Floats) -> Floats:
    """log sum exp along the last axis, which is kept; the largest is taken out first."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=-1, keepdims=True)))


Errors = Literal["observed", "sandwich", "outer-product"]

MORE_STARTS = 2
"""Starting points besides the first, for each of these two: the outcome and, where there are some,
the randomized predictors, which can give several local maxima."""

SPREAD = 0.7
"""Standard deviation of those about the first, for standardized predictors."""

SEED = 20261121
"""The same starts every time: a result must not depend on chance."""

SMALL_GRADIENT = 1e-6
"""Largest slope of the mean log likelihood at which the search has converged."""

NEWTON_STEPS = 10
STEP = 1e-5

FIRST_ROUNDS = 200
"""Rounds that find the shares of which the first start is made."""

FEW_INFORMATION = 0.01
"""A direction with less information has a standard error above 10 logits: it is not determined."""

PART = 1e-3
"""A coefficient is affected by such a direction if at least this part of it lies there."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Where the likelihood is largest, on the scale of standardized predictors.

    theta           (parameters,)
    covariance      (parameters, parameters), of the directions that are determined
    undetermined    (parameters, directions) of almost no information; none in a good fit
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
        """Whether it is a maximum as far as can be computed."""
        return self.gradient <= SMALL_GRADIENT


def fit(design: Design, errors: Errors) -> Fit:
    """Maximize by BFGS from several starts, then Newton's method; keep the largest likelihood."""
    theta = min(
        (_searched(start, design) for start in _starts(design)),
        key=lambda found: mean_and_gradient(found, design)[0],
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
    """Intercepts of the shares without predictors, slopes 0; and some points around it."""
    m, r, g = design.open.shape[1], design.dummies.shape[1], design.prior.shape[1]
    first = Parameters(
        np.pad(_log_odds(design.outcome, design.weights)[:, None], ((0, 0), (0, m - 1))),
        np.zeros((design.outcomes - 1, r)),
        np.pad(_log_odds(design.hidden, design.weights)[:, None], ((0, 0), (0, g - 1))),
    )
    beta = np.concatenate([first.open, first.hidden], axis=1)
    base = np.concatenate([beta.ravel(), first.prior.ravel()])
    rng = np.random.default_rng(SEED)
    more = MORE_STARTS if design.combinations == 1 else 2 * MORE_STARTS
    around = [base + SPREAD * rng.standard_normal(size(design)) for _ in range(more)]
    return [base, *around]


def _log_odds(chances: Floats, weights: Floats) -> Floats:
    """log(share_t/share_0) of shares found by some rounds of expectation maximization."""
    shares = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(FIRST_ROUNDS):
        held = chances * shares
        shares = weights @ (held / held.sum(axis=1, keepdims=True)) / weights.sum()
    shares = np.maximum(shares, 0.01)
    return np.asarray(np.log(shares[1:] / shares[0]))


def _searched(start: Floats, design: Design) -> Floats:
    from scipy.optimize import minimize

    found = minimize(
        mean_and_gradient, start, args=(design,), method="BFGS", jac=True, options={"gtol": 1e-8}
    )
    return np.asarray(found.x)


def _polished(theta: Floats, design: Design) -> Floats:
    """Newton's steps as long as the likelihood does not fall."""
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
    """Of minus the mean log likelihood: central differences of the analytic gradient."""
    columns = []
    for place in range(len(theta)):
        step = STEP * np.eye(1, len(theta), place)[0]
        ahead, behind = (mean_and_gradient(theta + side * step, design)[1] for side in (1, -1))
        columns.append((ahead - behind) / (2 * STEP))
    found = np.array(columns)
    return np.asarray((found + found.T) / 2)


def _directions(hessian: Floats, design: Design) -> tuple[Floats, Floats]:
    """H^-1 of what is determined, per person, and the directions that are not."""
    curvature, vectors = np.linalg.eigh(hessian)
    known = design.people * curvature > FEW_INFORMATION
    inverse = vectors[:, known] / curvature[known] @ vectors[:, known].T
    return np.asarray(inverse), np.asarray(vectors[:, ~known])


def _covariance(theta: Floats, design: Design, inverse: Floats, errors: Errors) -> Floats:
    """Of theta: H^-1/sum w, or with s_i the score of person i, H^-1 (sum w_i^2 s s') H^-1, or
    (sum w_i s s')^-1; the last two are Huber's 1967 and Berndt and others' 1974. A row of several
    people has their weight together, so theirs squared are w^2/times."""
    total = float(design.weights.sum())
    if errors == "observed":
        return np.asarray(inverse / total)
    slopes = scores(theta, design)
    if errors == "outer-product":
        spread = (slopes * design.weights[:, None]).T @ slopes
        return np.asarray(np.linalg.pinv(spread, rcond=1e-12, hermitian=True))
    weighted = slopes * (design.weights / np.sqrt(design.times))[:, None] / total
    return np.asarray(inverse @ (weighted.T @ weighted) @ inverse)
