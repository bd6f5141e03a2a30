"""The correlation (phi) of two randomized answers, with an interval from the profile likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import checked_arguments, checked_level, checked_whole
from survey.estimator.core.intervals import level_of_student
from survey.estimator.core.result import Result
from survey.estimator.tables.crosstab import Crosstab, axis_adds
from survey.mechanism import SubsetSelection
from survey.mechanism.channel import Floats

GRID = 25
"""Points per margin at which the likelihood is computed, in each of `REFINEMENTS` rounds."""

REFINEMENTS = 3

PHIS = 41
"""Values of phi at which the profile is computed first."""

BISECTIONS = 20

REACH = 7.0
"""Standard errors of a margin around its estimate within which the likelihood is searched."""


@dataclass(frozen=True, eq=False, repr=False)
class Phi(Result):
    """The correlation of two answers, given (1) or not given (0) by each person.

    estimate   the most likely value, from -1 to 1
    conf_low   ends of the interval of the profile likelihood
    conf_high
    n          reports
    level      nominal coverage
    options    the two answers, by the positions of their options
    """

    estimate: float
    conf_low: float
    conf_high: float
    n: int
    level: float
    options: tuple[int, int]


@checked_arguments
def phi(result: Crosstab, options: Sequence[int] = (0, 0), *, level: float | None = None) -> Phi:
    """Estimate the correlation of two answers, an option of each question of a cross-tab.

    phi = (P_ab - P_a P_b)/sqrt(P_a (1 - P_a) P_b (1 - P_b)), P_ab the share of people with both
    answers. For two yes/no questions it is the correlation of the questions. Reports are counted by
    whether they support each of the answers, which has a likelihood of three parameters, phi and
    both shares. The interval contains the values of phi for which 2 (log L* - log L*(phi)) <= c,
    with the shares that make the reports most likely. At phi = 1 or -1, two cells are 0, and the
    statistic is a mixture: P(> c) = P(chi2_1 > c)/2 + P(chi2_2 > c)/4, which c is chosen for; it is
    larger than for other phi (Self and Liang 1987). 1 - level is that of Student's t for n reports.
    Both randomizations make the interval wide: with shares near 0 or 1 it is -1 to 1. Coverage at
    .95, simulated for n of 50 to 1,000, epsilon 1 to 8, shares from .05, phi from -.43 to 1: .947
    to .983 (`tests.benchmarks.phi`).

    Valid for channels given by p and q and for joint responses, if people answered truthfully.
    Sources: Yule 1912 (phi); Fox and Tracy 1984 (randomized answers); Wilks 1938.

    Raises ChannelError for other channels, CountsError for a table of more than two questions,
    ValueError for an option that does not exist.

    >>> from survey.estimator import crosstab
    >>> from survey.mechanism import grr
    >>> phi(crosstab([[300, 200], [200, 300]], [grr(2, "3/4"), grr(2, "3/4")]))
    Phi(estimate=0.8000, conf_low=0.5428, conf_high=1.0000, n=1000, level=0.9500)
    """
    level = checked_level(result.level if level is None else level)
    counts, channels = result.made_from
    if counts.ndim != 2:
        raise CountsError(f"phi needs a table of two questions, not {counts.ndim}: use `margin`")
    if len(options) != 2:
        raise ValueError(f"options = {list(options)} must be an option of each question")
    a, b = (checked_whole(option, "an option", ValueError) for option in options)
    if not (0 <= a < counts.shape[0] and 0 <= b < counts.shape[1]):
        raise ValueError(f"options {(a, b)} must be options of both questions")
    per_report = [axis_adds(channel) for channel in channels] if len(channels) == 2 else [1, 1]
    both = int(counts[a, b])
    first = int(counts[a].sum()) // per_report[1]
    second = int(counts[:, b].sum()) // per_report[0]
    reports = np.array(
        [both, first - both, second - both, result.n - first - second + both], dtype=np.float64
    )
    likelihood = _Likelihood(reports, _transition(channels, counts.shape))
    limit = _largest_loss(level_of_student(level, result.n))
    estimate, low, high = _interval(likelihood, limit)
    return Phi(estimate, low, high, result.n, level, (a, b))


def _transition(channels: Sequence[object], shape: tuple[int, ...]) -> Floats:
    """Return P(reports support both, the first, the second, none | truth likewise), (4, 4)."""
    for channel in channels:
        is_binary = getattr(channel, "truths", 0) == getattr(channel, "reports", 0) == 2
        if not isinstance(channel, SubsetSelection) and not is_binary:
            raise ChannelError("phi needs channels given by p and q: ask for its options instead")
    channel = channels[0]
    if len(channels) == 1 and isinstance(channel, SubsetSelection):
        members = np.outer(*[np.array([1.0, size - 1]) for size in shape]).ravel()
        # A joint response has the probability q + (p-q) [it is the truth].
        return np.asarray(channel.q * members + (channel.p - channel.q) * np.eye(4))
    matrices = [
        np.array([[c.p, 1 - c.p], [c.q, 1 - c.q]]) if isinstance(c, SubsetSelection) else c.matrix  # type: ignore[attr-defined]
        for c in channels
    ]
    return np.asarray(np.kron(*matrices))


class _Likelihood:
    """The likelihood of reports of four kinds, by phi and the shares of both answers."""

    def __init__(self, reports: Floats, transition: Floats) -> None:
        self.reports = reports
        self.transition = transition
        n = reports.sum()
        inverse = np.linalg.inv(transition)
        members = np.array([[1.0, 1, 0, 0], [1, 0, 1, 0]])
        values = members @ inverse.T
        means = values @ reports / n
        errors = np.sqrt(np.maximum((values**2) @ reports / n - means**2, 1 / n) / n)
        self.ranges = np.clip(
            np.stack([means - REACH * errors, means + REACH * errors], axis=1), 1e-9, 1 - 1e-9
        )

    def profile(self, phi: float) -> float:
        """Return the largest log likelihood at this phi, by ever finer grids of both shares."""
        (low, high), second = np.arcsin(np.sqrt(self.ranges))
        best, span = -np.inf, (0.0, 1.0)
        low_v, high_v = second
        place = (low + high) / 2
        for _ in range(REFINEMENTS):
            theta = np.linspace(low, high, GRID)
            u = np.sin(theta) ** 2
            floor, ceiling = _range_of_second(u, phi)
            floor = np.maximum(np.arcsin(np.sqrt(floor)), low_v)
            ceiling = np.minimum(np.arcsin(np.sqrt(ceiling)), high_v)
            part = np.linspace(*span, GRID)
            v = np.sin(floor[:, None] + (ceiling - floor)[:, None] * part) ** 2
            logs = np.where(
                (floor <= ceiling)[:, None], self._log_likelihood(u[:, None], v, phi), -np.inf
            )
            i, j = np.unravel_index(int(np.argmax(logs)), logs.shape)
            best = max(best, float(logs[i, j]))
            place, step = theta[i], (high - low) / (GRID - 1)
            low, high = max(place - step, low), min(place + step, high)
            width = (span[1] - span[0]) / (GRID - 1)
            span = (max(part[j] - width, 0.0), min(part[j] + width, 1.0))
        return best

    def _log_likelihood(self, u: Floats, v: Floats, phi: float) -> Floats:
        both = u * v + phi * np.sqrt(u * (1 - u) * v * (1 - v))
        cells = np.stack([both, u - both, v - both, 1 - u - v + both], axis=-1)
        chances = np.maximum(cells, 0.0) @ self.transition
        return np.asarray(np.log(np.maximum(chances, 1e-300)) @ self.reports)


def _range_of_second(u: Floats, phi: float) -> tuple[Floats, Floats]:
    """Return the shares v of the second answer that are possible with u and phi.

    With x = logit u and y = logit v, |phi| <= e^(-|x - y|/2) for phi > 0, and e^(-|x + y|/2) for
    phi < 0.
    """
    if phi == 0:
        return np.zeros_like(u), np.ones_like(u)
    x = np.log(u / (1 - u)) * np.sign(phi)
    reach = -2 * np.log(abs(phi))
    return 1 / (1 + np.exp(reach - x)), 1 / (1 + np.exp(-reach - x))


def _largest_loss(level: float) -> float:
    """Return c/2 with P(chi2_1 > c)/2 + P(chi2_2 > c)/4 = 1 - level."""
    from scipy.optimize import brentq
    from scipy.special import chdtrc

    def excess(c: float) -> float:
        return float(chdtrc(1, c) / 2 + chdtrc(2, c) / 4) - (1 - level)

    return float(brentq(excess, 0.0, 100.0)) / 2 if level > 0.25 else 0.0


def _interval(likelihood: _Likelihood, largest_loss: float) -> tuple[float, float, float]:
    """Return the most likely phi, and the smallest and largest one that is not rejected."""
    values = np.linspace(-1, 1, PHIS)
    logs = np.array([likelihood.profile(float(value)) for value in values])
    estimate, top = _maximum(likelihood, values, logs)
    limit = top - largest_loss
    accepted = np.append(values[logs >= limit], estimate)
    ends = []
    for inside, outside in (
        (accepted.min(), values[values < accepted.min()][-1:]),
        (accepted.max(), values[values > accepted.max()][:1]),
    ):
        end = float(inside)
        if outside.size:
            rejected = float(outside[0])
            for _ in range(BISECTIONS):
                middle = (end + rejected) / 2
                if likelihood.profile(middle) >= limit:
                    end = middle
                else:
                    rejected = middle
            end = rejected
        ends.append(end)
    return estimate, ends[0], ends[1]


def _maximum(likelihood: _Likelihood, values: Floats, logs: Floats) -> tuple[float, float]:
    """Return the phi with the largest profile, and its log likelihood, by golden sections."""
    from scipy.optimize import minimize_scalar

    place = int(np.argmax(logs))
    step = values[1] - values[0]
    ends = max(values[place] - step, -1.0), min(values[place] + step, 1.0)
    found = minimize_scalar(
        lambda value: -likelihood.profile(value),
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-5},
    )
    if -found.fun > logs[place]:
        return float(found.x), -float(found.fun)
    return float(values[place]), float(logs[place])
