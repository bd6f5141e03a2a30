"""Shares whose counts are binomial, one per option, and the result that all shares have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from survey.estimator.core.arguments import checked_level
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    FIXED_POPULATION,
    SIMULTANEOUS_DEFAULT,
    Chances,
    confidence_interval,
)
from survey.estimator.core.moments import (
    SecondMoments,
    binary_error,
    binary_moments,
    effective_answers,
)
from survey.estimator.core.result import Result
from survey.mechanism.arrays import Floats, Integers

LIKELIHOOD, PROJECTION, EACH_OPTION = "maximum likelihood", "projection", "each option alone"
"""How the shares to display were found; see `Proportions.mle_method`."""


@dataclass(frozen=True, eq=False, repr=False)
class Proportions(Result):
    """Estimated shares of the k true answers; arrays have shape (k,) and cannot be written.

    estimate     linear in the counts: unbiased, may lie outside [0, 1]
    mle          the most likely shares, in [0, 1], for display only; `mle_method` says how exactly
    std_error    of `estimate`, for the population the respondents are a sample of; for these
                 respondents alone with the interval "fixed-population". Never 0: where all
                 reports are alike it is that of the randomization (`seen_variance`)
    conf_low     ends of the interval, in [0, 1]; `estimate` may lie outside them
    conf_high
    n            reports
    n_effective  answers given openly that would tell as much of the population:
                 pi(1-pi)/std_error^2
    level        asked coverage: of each interval, or of all together when simultaneous
    method       the interval that was used
    reports      reports that bear on each option: n, or fewer where each person is asked some
    moments      how far a single report's pseudo-values scatter
    mle_method   "maximum likelihood": of all shares together; "projection": the possible shares
                 nearest to `estimate` (`norm_sub`), where counts do not tell the likelihood or its
                 maximum was not found in time; "each option alone": of options of which several
                 may be true, the most likely share of each

    An option that nobody was asked about has nan, the interval [0, 1] and no effective answers.
    """

    estimate: Floats
    mle: Floats
    std_error: Floats
    conf_low: Floats
    conf_high: Floats
    n: int
    n_effective: Floats
    level: float
    method: str
    reports: Integers
    moments: SecondMoments
    mle_method: str = EACH_OPTION

    @property
    def target(self) -> str:
        """Whose shares: those of the population, or of these respondents."""
        return "respondents" if self.method.startswith(FIXED_POPULATION) else "population"


POPULATION, RESPONDENTS = TARGETS = ("population", "respondents")
"""Whose shares are estimated: of the population that the respondents are a sample of, or theirs."""


class Asked(NamedTuple):
    """What an interval is asked to be: its name, its coverage, and of one option or of all."""

    interval: str = DEFAULT_INTERVAL
    level: float = 0.95
    simultaneous: bool = False

    @classmethod
    def of(cls, target: str, interval: str, level: float, simultaneous: bool) -> Asked:
        """With the interval that belongs to the target; DesignError for a level that is none."""
        if target not in TARGETS:
            raise ValueError(f"unknown target {target!r}; it is population or respondents")
        if target == RESPONDENTS:
            if interval not in (DEFAULT_INTERVAL, FIXED_POPULATION):
                raise ValueError(
                    f"interval {interval!r} is one for the population; "
                    f"for these respondents there is {FIXED_POPULATION!r}"
                )
            interval = FIXED_POPULATION
        return cls(interval, checked_level(level), simultaneous)

    @property
    def target(self) -> str:
        """Whose shares the interval is made for."""
        return RESPONDENTS if self.interval == FIXED_POPULATION else POPULATION

    def each(self, k: int) -> float:
        """The level of each of k intervals."""
        if not self.simultaneous:
            return self.level
        # Bonferroni: P(any of k misses) <= k (1-level)/k.
        return 1 - (1 - self.level) / k

    @property
    def name(self) -> str:
        """The interval to compute."""
        if self.simultaneous and self.interval == DEFAULT_INTERVAL:
            return SIMULTANEOUS_DEFAULT
        return self.interval

    def method(self, name: str) -> str:
        """The name to report."""
        return f"{name}, simultaneous" if self.simultaneous else name


def binomial_shares(
    counts: Integers,
    reports: Integers,
    p: Floats,
    q: Floats,
    asked: Asked,
    *,
    n: int,
    mle: Floats | None = None,
) -> Proportions:
    """Option j was supported by counts[j] of reports[j], with chance q_j + (p_j - q_j) pi_j.

    Everything of shape (k,). Without `mle`, the binomial one of each option alone: the linear
    estimate clipped to [0, 1].
    """
    moments = binary_moments(p, q)
    # 0 reports: nan, without a warning.
    f = np.divide(counts, reports, out=np.full(counts.shape, np.nan), where=reports > 0)
    estimate = (f - q) / (p - q)
    low, high = _ends(counts, reports, p, q, asked)
    return Proportions(
        estimate=estimate,
        mle=np.clip(estimate, 0.0, 1.0) if mle is None else mle,
        std_error=_errors(f, reports, p, q, asked),
        conf_low=low,
        conf_high=high,
        n=n,
        n_effective=effective_answers(estimate, reports, moments),
        level=asked.level,
        method=asked.method(asked.name),
        reports=reports,
        moments=moments,
    )


def _errors(f: Floats, reports: Integers, p: Floats, q: Floats, asked: Asked) -> Floats:
    """Standard errors of the linear estimate, by the target."""
    n, D = np.maximum(reports, 1), p - q
    if asked.target == POPULATION:
        return binary_error(f, n, p, q)
    # [pi p(1-p) + (1-pi) q(1-q)] / (n D^2): randomization alone.
    pi = np.clip((f - q) / D, 0.0, 1.0)
    return np.asarray(np.sqrt(binary_moments(p, q).randomization(pi) / n))


def _ends(
    counts: Integers, reports: Integers, p: Floats, q: Floats, asked: Asked
) -> tuple[Floats, Floats]:
    """Intervals of all options, those of the same n, p and q at once; [0, 1] without reports."""
    low, high = np.zeros(counts.shape), np.ones(counts.shape)
    level = asked.each(counts.size)
    alike: dict[tuple[int, float, float], list[int]] = {}
    for j, key in enumerate(zip(reports.tolist(), p.tolist(), q.tolist(), strict=True)):
        alike.setdefault(key, []).append(j)
    for (n, own, other), options in alike.items():
        if n:
            low[options], high[options] = confidence_interval(
                counts[options], n, Chances(own, other), level, asked.name
            )
    return low, high
