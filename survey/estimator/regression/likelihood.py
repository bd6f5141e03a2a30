"""The likelihood of the reports of a (multinomial) logit, its gradient, and Firth's penalty."""

from __future__ import annotations

import math
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


class Penalized:
    """The likelihood with Firth's penalty, half the log determinant of the expected information.

    log L + log det I(theta)/2, I = sum_i sum_y P(y | x_i) s_iy s_iy', over all reports y that
    person i could send, with s_iy their scores. The penalty is the log of Jeffreys' prior for the
    reports (Firth 1993). All coefficients are finite: towards an infinite one, the information
    vanishes, while the likelihood is bounded.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.possible = possible_reports(design)

    def information(self, theta: Floats) -> Floats:
        """Return the expected information in all reports, shape (parameters, parameters)."""
        return self._expected(theta)[2]

    def mean_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return minus the penalized log likelihood over the number of people, and its gradient.

        With p_r = P(y | x_i) of report r, s_r its score and H_r the Hessian of log p_r, the slope
        of the penalty is

            sum_r p_r (s_r (s_r' I^-1 s_r)/2 + H_r I^-1 s_r).

        Where the information is singular, the value is infinite.
        """
        value, gradient = mean_and_gradient(theta, self.design)
        by_report, chances, information = self._expected(theta)
        sign, log = np.linalg.slogdet(information)
        if not (sign > 0 and np.isfinite(log)):
            return np.inf, np.zeros(len(theta))
        directions = np.asarray(np.linalg.solve(information, by_report.T).T)
        squares = np.einsum("rp,rp->r", by_report, directions)
        changes = _score_changes(theta, directions, self.possible)
        slope = chances @ (by_report * squares[:, None] / 2 + changes)
        people = float(self.design.weights.sum())
        return value - float(log) / 2 / people, gradient - slope / people

    def _expected(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the scores of all possible reports, their expected numbers, the information."""
        slopes = _slopes(theta, self.possible)
        by_report = _scores_of(slopes, self.possible)
        chances = self.possible.times * np.exp(slopes.total)
        return by_report, chances, np.asarray((by_report * chances[:, None]).T @ by_report)


def _score_changes(theta: Floats, directions: Floats, design: Design) -> Floats:
    """Return H_i v_i of every row: how its score changes in its direction v_i, shape (n, p).

    d log P_iut = d eta_iut - sum_t P_iut d eta_iut, d log pi_iu likewise; with d log j_iut their
    sum, d r_iut = r_iut (d log j_iut - sum_ut r_iut d log j_iut).
    """
    logs = _log_probabilities(theta, design)
    outcome, prior = np.exp(logs.outcome), np.exp(logs.prior)
    posterior = np.exp(logs.joint - logs.total[:, None, None])
    combination = posterior.sum(axis=2)
    n, ((answers, terms), shape) = len(directions), _shapes(design)
    m, cut = design.open.shape[1], answers * terms
    beta = directions[:, :cut].reshape(n, answers, terms)
    eta = np.einsum("ntm,nm->nt", beta[:, :, :m], design.open)[:, None, :] + np.einsum(
        "ntr,ur->nut", beta[:, :, m:], design.dummies
    )
    zeta = np.einsum("nug,ng->nu", directions[:, cut:].reshape(n, *shape), design.prior)
    log_outcome = _centred(np.pad(eta, ((0, 0), (0, 0), (1, 0))), outcome)
    log_prior = _centred(np.pad(zeta, ((0, 0), (1, 0))), prior)
    log_joint = log_outcome + log_prior[:, :, None]
    mean = np.einsum("nut,nut->n", posterior, log_joint)
    change = posterior * (log_joint - mean[:, None, None])
    sums = change.sum(axis=2)
    slope = change - outcome * (sums[:, :, None] + combination[:, :, None] * log_outcome)
    changes = _Slopes(logs.total, slope[:, :, 1:], (sums - prior * log_prior)[:, 1:])
    return _scores_of(changes, design)


def _centred(change: Floats, shares: Floats) -> Floats:
    """Return changes minus their mean, weighted by the shares, along the last axis."""
    return np.asarray(change - (shares * change).sum(axis=-1, keepdims=True))


LONGEST_REACH = 2.0**5
"""Multiple of a standard error at which an end is taken to be infinite."""


class _Line(NamedTuple):
    """The parameters with given values of a row'theta, near the maximum.

    path   (parameters,): from the maximum to the profile, per unit of row'theta
    free   (parameters, parameters - 1): directions that leave row'theta as it is, curvature 1
    error  of row'theta
    """

    path: Floats
    free: Floats
    error: float


class Profile:
    """The profile of a likelihood: its maximum among parameters with a given row'theta.

    `theta` is the maximum, or a point near it. `covariance` is that of all parameters, with about
    one logit in undetermined directions. The log likelihood is minus `people` times the objective.
    """

    def __init__(
        self, objective: Objective, theta: Floats, covariance: Floats, people: float
    ) -> None:
        self.objective = objective
        self.theta = theta
        self.covariance = covariance
        self.people = people
        self.top = objective(theta)[0]

    def interval(self, row: Floats, quantile: float) -> tuple[float, float, float]:
        """Return the values of row'theta below and above the maximum with this root, and that of 0.

        The root of a value is sqrt(2 (l* - l*(row'theta))). An end is infinite if all roots on its
        side are smaller.
        """
        line, estimate = self._line(row), float(row @ self.theta)
        low = estimate - self._reach(line, -1, quantile)
        high = estimate + self._reach(line, 1, quantile)
        root = self._root(line, -estimate, line.path)[0] if estimate else 0.0
        return low, high, root

    def _line(self, row: Floats) -> _Line:
        """Return the profile's direction and the free ones.

        With C the covariance, the path is Cr/r'Cr, and D = C - Crr'C/r'Cr is the part of C that
        leaves r'theta unchanged: coordinates of D^1/2 have curvature 1.
        """
        along = self.covariance @ row
        variance = float(row @ along)
        variances, vectors = np.linalg.eigh(self.covariance - np.outer(along, along) / variance)
        # The smallest variance is 0, that of row'theta.
        free = vectors[:, 1:] * np.sqrt(np.maximum(variances[1:], 0.0))
        # Rounding must not move row'theta.
        free -= np.outer(row, row @ free) / (row @ row)
        return _Line(along / variance, free, math.sqrt(variance))

    def _reach(self, line: _Line, side: int, quantile: float) -> float:
        """Return how far row'theta can move to this side until the root has this size."""
        from scipy.optimize import brentq

        path = line.path
        known = {0.0: -quantile}

        def excess(distance: float) -> float:
            nonlocal path
            if distance not in known:
                root, path = self._root(line, side * distance, path)
                known[distance] = root - quantile
            return known[distance]

        near, far = 0.0, quantile * line.error
        while excess(far) < 0:
            # The root is nearly proportional to the distance, unless the likelihood is flat.
            growth = 1.1 * quantile / max(excess(far) + quantile, 1e-9)
            near, far = far, min(growth, 2.0) * far
            if far > LONGEST_REACH * line.error:
                return np.inf
        return float(brentq(excess, near, far, xtol=1e-6 * line.error, rtol=1e-9))

    def _root(self, line: _Line, distance: float, path: Floats) -> tuple[float, Floats]:
        """Return the root at this distance of row'theta, and the direction to its maximum.

        One search starts on the path to the last maximum, another on the straight path: where the
        likelihood is flat, a single one can stop early.
        """
        if path is line.path or not line.free.size:
            return self._root_from(line, distance, path)
        return min(
            (self._root_from(line, distance, start) for start in (path, line.path)),
            key=lambda found: found[0],
        )

    def _root_from(self, line: _Line, distance: float, path: Floats) -> tuple[float, Floats]:
        """Return the root and the direction found by a search that starts on this path."""
        from scipy.optimize import minimize

        start = self.theta + distance * path

        def objective(u: Floats) -> tuple[float, Floats]:
            value, gradient = self.objective(start + line.free @ u)
            return self.people * (value - self.top), self.people * (gradient @ line.free)

        if not line.free.size:
            lost, end = objective(np.zeros(0))[0], start
        else:
            found = minimize(
                objective,
                np.zeros(line.free.shape[1]),
                method="BFGS",
                jac=True,
                options={"gtol": 3e-3},
            )
            # With curvature 1, a point with the gradient g is g'g/2 above the minimum.
            lost = float(found.fun - found.jac @ found.jac / 2)
            end = start + line.free @ found.x
        return math.sqrt(max(2 * lost, 0.0)), np.asarray((end - self.theta) / distance)
