"""Shares of options that a report supports or not: one binomial count each, with its own n."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.estimator.counts import checked_level
from survey.estimator.intervals import (
    DEFAULT_INTERVAL,
    SIMULTANEOUS_DEFAULT,
    Chances,
    confidence_interval,
)
from survey.estimator.shares import (
    FIXED_POPULATION,
    Proportions,
    binary_error,
    binary_moments,
    effective_answers,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
