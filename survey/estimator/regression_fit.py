"""The largest likelihood of a regression through channels, and how well it is determined there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from survey.estimator.regression_design import Design
from survey.estimator.regression_likelihood import (
    Parameters,
    fitted,
    mean_and_gradient,
    scores,
    size,
)

Floats = NDArray[np.float64]
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
