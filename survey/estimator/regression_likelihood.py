"""The likelihood of reports given predictors, its gradient, and one score per person.

For person i: L_i = sum_u pi_iu C_iu sum_t P_iut M_it, with
pi_iu = P(combination u of randomized truths | open predictors), multinomial logit in gamma,
C_iu = P(the reports of the randomized predictors | u),
P_iut = P(outcome t | open predictors, u), multinomial logit in beta with outcome 0 as baseline,
M_it = P(the report of the outcome | t).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.estimator.regression_design import Design

Floats = NDArray[np.float64]


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
