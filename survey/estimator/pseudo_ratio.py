"""Pseudo-values a and b of every report, and the ratio of their means with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survey.errors import NoBaseError
from survey.estimator.ratio import Moments, Ratio, Tails, ratio_interval
from survey.estimator.scatter import RATIOS, LeastScatter, least_scatter
from survey.mechanism import SubsetSelection, WeightTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PseudoRatios:
    """How reports are read for the means of targets in [-1, 1] among those who answered.

    a            pseudo-values of each target, shape (targets, reports)
    b            pseudo-values of having answered, shape (reports,)
    bias         the largest |E a - r E b| at the true ratio r, shape (targets,)
    some_silent  whether some truths are no answer; else b is 1 for every report
    scatter      the least that a - r b scatters, shape (targets, 65)
    least, most  of a - r b over the reports, at each of `RATIOS`, shape (targets, 65)
    """

    a: Floats
    b: Floats
    bias: Floats
    some_silent: bool
    scatter: LeastScatter
    least: Floats
    most: Floats

    def intervals(self, counts: Integers, level: float) -> Ratio:
        """The ratios, shape (targets, surveys); counts (surveys, reports), all of the same n."""
        n = int(counts[0].sum())
        moments, tails = self._moments(counts / n, n)
        share = moments.mean_b if self.some_silent else np.ones_like(moments.mean_b)
        floor = self.scatter.among(share)
        return ratio_interval(moments, floor, self.bias[:, None], n, level, tails)

    def of_survey(self, counts: Integers, level: float) -> Ratio:
        """The ratios of one survey, shape (targets, 1); counts (reports,).

        NoBaseError where hardly anybody seems to have answered, and of one report where some
        truths are no answer: it tells nothing of those who answered.
        """
        found = self.intervals(counts[None], level)
        if np.isnan(found.estimate).any() or (self.some_silent and counts.sum() == 1):
            raise nobody()
        return found

    def _moments(self, f: Floats, n: int) -> tuple[Moments, Tails]:
        """Of a and b over the reports; both are centred first, which keeps digits of the rest."""
        mean_a, mean_b = self.a @ f.T, f @ self.b
        centre_a, centre_b = mean_a.mean(axis=1, keepdims=True), mean_b.mean()
        a, b = self.a - centre_a, self.b - centre_b
        u, v = mean_a - centre_a, mean_b - centre_b
        aa, ab, bb = a**2 @ f.T, (a * b) @ f.T, f @ b**2
        more = n / max(n - 1, 1)
        moments = Moments(
            mean_a, mean_b, more * (aa - u * u), more * (ab - u * v), more * (bb - v * v)
        )
        return moments, Tails(
            a**3 @ f.T - 3 * u * aa + 2 * u**3,
            (a * a * b) @ f.T - 2 * u * ab - v * aa + 2 * u * u * v,
            (a * b * b) @ f.T - 2 * v * ab - u * bb + 2 * u * v * v,
            f @ b**3 - 3 * v * bb + 2 * v**3,
            self.least[:, None, :],
            self.most[:, None, :],
        )


def nobody() -> NoBaseError:
    """The refusal to tell anything of those who answered."""
    return NoBaseError("hardly anybody seems to have answered: nothing is known of those who did")


def pseudo_ratios(
    channel: SubsetSelection | WeightTable,
    targets: Floats,
    answered: Booleans,
    a: Floats,
    b: Floats,
    bias: Floats,
) -> PseudoRatios:
    """Read reports of a channel by given pseudo-values; targets are 0 where nothing is answered."""
    scatter = [
        least_scatter(channel, target, answered, one, b)
        for target, one in zip(targets, a, strict=True)
    ]
    differences = (one - RATIOS[:, None] * b for one in a)
    extremes = np.array([(each.min(axis=1), each.max(axis=1)) for each in differences])
    return PseudoRatios(
        a=a,
        b=b,
        bias=bias,
        some_silent=not bool(answered.all()),
        scatter=LeastScatter(
            np.array([one.answering for one in scatter]), np.array([one.silent for one in scatter])
        ),
        least=extremes[:, 0],
        most=extremes[:, 1],
    )
