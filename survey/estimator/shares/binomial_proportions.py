"""Binomial proportions: one share per option, with the options of its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from survey.estimator.core.arguments import checked_level
from survey.estimator.core.debiasing import (
    SecondMoments,
    binary_error,
    binary_moments,
    effective_answers,
)
from survey.estimator.core.intervals import (
    DEFAULT_INTERVAL,
    FIXED_POPULATION,
    SIMULTANEOUS_DEFAULT,
    Chances,
    confidence_interval,
)
from survey.estimator.core.result import Result
from survey.mechanism.channel import Floats, Integers

LIKELIHOOD, PROJECTION, EACH_OPTION = "maximum likelihood", "projection", "each option alone"
"""Methods for the shares to display; see `Proportions.mle_method`."""


@dataclass(frozen=True, eq=False, repr=False)
class Proportions(Result):
    """Estimated shares of the k true answers; arrays have shape (k,) and are read-only.

    estimate     linear in the counts: unbiased, may be outside [0, 1]
    mle          most likely shares, in [0, 1], for display only; see `mle_method`
    std_error    of `estimate`, for the population that the respondents represent; with the interval
                 "fixed-population", for these respondents. Never 0: if all reports are identical,
                 it is the error of the randomization (`observed_variance`)
    conf_low     ends of the interval, in [0, 1]; `estimate` may be outside them
    conf_high
    n            number of reports
    n_effective  number of answers without randomization that would be as informative about the
                 population: pi(1-pi)/std_error^2
    level        nominal coverage, of each interval or simultaneous
    method       name of the interval
    reports      reports about each option: n, or fewer if each person is asked about some options
    moments      second moments of a single report's pseudo-values
    mle_method   "maximum likelihood": of all shares together; "projection": the possible shares
                 nearest to `estimate` (`norm_sub`), if counts do not determine the likelihood or
                 its maximum was not found in time; "each option alone": if several options may be
                 true, the most likely share of each

    An option without reports has the estimate nan, the interval [0, 1] and n_effective 0.
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
        """Return whose shares these are: "population" or "respondents"."""
        return "respondents" if self.method.startswith(FIXED_POPULATION) else "population"


POPULATION, RESPONDENTS = TARGETS = ("population", "respondents")
"""Whose shares are estimated: those of the population, or of these respondents."""


class IntervalOptions(NamedTuple):
    """Options of an interval: its name, its level, and whether the coverage is simultaneous."""

    interval: str = DEFAULT_INTERVAL
    level: float = 0.95
    simultaneous: bool = False

    @classmethod
    def of(cls, target: str, interval: str, level: float, simultaneous: bool) -> IntervalOptions:
        """Return the options, with the interval of the target; check the level."""
        if target not in TARGETS:
            raise ValueError(
                f"unknown target {target!r}; the targets are population and respondents"
            )
        if target == RESPONDENTS:
            if interval not in (DEFAULT_INTERVAL, FIXED_POPULATION):
                raise ValueError(
                    f"interval {interval!r} is for the population; "
                    f"for the respondents use {FIXED_POPULATION!r}"
                )
            interval = FIXED_POPULATION
        return cls(interval, checked_level(level), simultaneous)

    @property
    def target(self) -> str:
        """Return the target of the interval: respondents or population."""
        return RESPONDENTS if self.interval == FIXED_POPULATION else POPULATION

    def level_of_each(self, k: int) -> float:
        """Return the level of each of k intervals."""
        if not self.simultaneous:
            return self.level
        # Bonferroni: P(any of k misses) <= k (1-level)/k.
        return 1 - (1 - self.level) / k

    @property
    def name(self) -> str:
        """Return the name of the interval to compute."""
        if self.simultaneous and self.interval == DEFAULT_INTERVAL:
            return SIMULTANEOUS_DEFAULT
        return self.interval

    def method(self, name: str) -> str:
        """Return the method to report for an interval of this name."""
        return f"{name}, simultaneous" if self.simultaneous else name


def binomial_shares(
    counts: Integers,
    reports: Integers,
    p: Floats,
    q: Floats,
    interval_options: IntervalOptions,
    *,
    n: int,
    mle: Floats | None = None,
) -> Proportions:
    """Estimate shares from counts[j] of reports[j] reports that support option j.

    Each supports it with probability q_j + (p_j - q_j) pi_j. All arrays have shape (k,). Without
    `mle`, each option has the binomial one: the linear estimate clipped to [0, 1].
    """
    moments = binary_moments(p, q)
    # Options without reports become nan, without a warning.
    f = np.divide(counts, reports, out=np.full(counts.shape, np.nan), where=reports > 0)
    estimate = (f - q) / (p - q)
    low, high = _ends(counts, reports, p, q, interval_options)
    return Proportions(
        estimate=estimate,
        mle=np.clip(estimate, 0.0, 1.0) if mle is None else mle,
        std_error=_errors(f, reports, p, q, interval_options),
        conf_low=low,
        conf_high=high,
        n=n,
        n_effective=effective_answers(estimate, reports, moments),
        level=interval_options.level,
        method=interval_options.method(interval_options.name),
        reports=reports,
        moments=moments,
    )


def _errors(
    f: Floats, reports: Integers, p: Floats, q: Floats, interval_options: IntervalOptions
) -> Floats:
    """Return the standard errors of the linear estimate for the target."""
    n, D = np.maximum(reports, 1), p - q
    if interval_options.target == POPULATION:
        return binary_error(f, n, p, q)
    # [pi p(1-p) + (1-pi) q(1-q)] / (n D^2): randomization alone.
    pi = np.clip((f - q) / D, 0.0, 1.0)
    return np.asarray(np.sqrt(binary_moments(p, q).randomization(pi) / n))


def _ends(
    counts: Integers, reports: Integers, p: Floats, q: Floats, interval_options: IntervalOptions
) -> tuple[Floats, Floats]:
    """Return the intervals of all options; [0, 1] without reports.

    Options with the same n, p and q are computed together.
    """
    low, high = np.zeros(counts.shape), np.ones(counts.shape)
    level = interval_options.level_of_each(counts.size)
    groups: dict[tuple[int, float, float], list[int]] = {}
    for j, key in enumerate(zip(reports.tolist(), p.tolist(), q.tolist(), strict=True)):
        groups.setdefault(key, []).append(j)
    for (n, option_p, option_q), options in groups.items():
        if n:
            low[options], high[options] = confidence_interval(
                counts[options], n, Chances(option_p, option_q), level, interval_options.name
            )
    return low, high
