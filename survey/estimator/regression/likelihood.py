"""The likelihood of the reports of a (multinomial) logit, its gradient, and Firth's penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from survey.estimator.regression.design_matrix import Design, possible_reports
from survey.mechanism.channel import Floats

Objective = Callable[[Floats], tuple[float, Floats]]
"""Minus the mean log likelihood of parameters, with or without a penalty, and its gradient."""


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
    return _scores_of(_slopes(theta, design), design)


def _scores_of(slopes: _Slopes, design: Design) -> Floats:
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


PENALTY_STEP = 1e-5
"""Step of the differences that give the gradient of the penalty."""


class Penalized:
    """The likelihood with Firth's penalty, half the log determinant of the expected information.

    log L + log det I(theta)/2, I = sum_i sum_y P(y | x_i) s_iy s_iy', over all reports y that
    person i could send, with s_iy their scores. It is Jeffreys' prior for the reports (Firth 1993).
    All coefficients are finite: where a predictor separates the answers, or a share would be 0, the
    information vanishes, while the likelihood is bounded.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.possible = possible_reports(design)

    def information(self, theta: Floats) -> Floats:
        """Return the expected information of all people, shape (parameters, parameters)."""
        slopes = _slopes(theta, self.possible)
        by_person = _scores_of(slopes, self.possible)
        weights = self.possible.times * np.exp(slopes.total)
        return np.asarray((by_person * weights[:, None]).T @ by_person)

    def penalty(self, theta: Floats) -> float:
        """Return log det I(theta)/2; -inf where the information is singular."""
        sign, log = np.linalg.slogdet(self.information(theta))
        return float(log) / 2 if sign > 0 else -np.inf

    def mean_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return minus the penalized log likelihood over the number of people, and its gradient."""
        value, gradient = mean_and_gradient(theta, self.design)
        penalty = self.penalty(theta)
        if not np.isfinite(penalty):
            return np.inf, np.zeros(len(theta))
        people = float(self.design.weights.sum())
        steps = PENALTY_STEP * np.eye(len(theta))
        differences = [self.penalty(theta + step) - self.penalty(theta - step) for step in steps]
        slope = np.array(differences) / (2 * PENALTY_STEP * people)
        return value - penalty / people, gradient - np.nan_to_num(slope, posinf=0.0, neginf=0.0)


SCORING_STEPS = 100
HALVINGS = 30
DOUBLINGS = 60
SMALL_STEP = 1e-9
"""Gain of the log likelihood at which a constrained search ends."""


class Profile:
    """The profile of a penalized likelihood: its maximum among parameters with a given a'theta."""

    def __init__(self, likelihood: Penalized, theta: Floats) -> None:
        self.likelihood = likelihood
        self.theta = theta
        self.people = float(likelihood.design.weights.sum())
        self.top = likelihood.mean_and_gradient(theta)[0]

    def ends(self, row: Floats, error: float, quantile: float) -> tuple[float, float]:
        """Return both values of row'theta at which the signed root has this size."""
        from scipy.optimize import brentq

        estimate = float(row @ self.theta)
        ends = []
        for side in (-1, 1):

            def excess(distance: float, side: int = side) -> float:
                return abs(self.root(row, estimate + side * distance)) - quantile

            near, far = 0.0, quantile * error
            for _ in range(DOUBLINGS):
                if excess(far) > 0:
                    break
                near, far = far, 2 * far
            ends.append(estimate + side * float(brentq(excess, near, far, xtol=1e-6 * error)))
        return ends[0], ends[1]

    def root(self, row: Floats, value: float) -> float:
        """Return sqrt(2 (l* - l*(row'theta = value))), negative below the maximum."""
        distance = value - float(row @ self.theta)
        lost = 2 * self.people * (self._constrained(row, distance) - self.top)
        return float(np.copysign(np.sqrt(max(lost, 0.0)), distance))

    def _constrained(self, row: Floats, distance: float) -> float:
        """Return the smallest objective at this distance of row'theta, by Fisher's scoring.

        Steps are N (N'IN)^-1 N' (gradient), where N spans the directions that leave row'theta
        unchanged, halved until the objective falls.
        """
        free = np.linalg.svd(row[None, :])[2][1:].T
        theta = self.theta + distance * row / (row @ row)
        value, gradient = self.likelihood.mean_and_gradient(theta)
        for _ in range(SCORING_STEPS):
            information = free.T @ self.likelihood.information(theta) @ free
            step = free @ np.linalg.lstsq(information, self.people * (free.T @ gradient))[0]
            for halving in range(HALVINGS):
                following = theta - step / 2**halving
                reached, slope = self.likelihood.mean_and_gradient(following)
                if reached <= value:
                    break
            else:
                break
            gain = value - reached
            theta, value, gradient = following, reached, slope
            if self.people * gain < SMALL_STEP:
                break
        return value
