"""The difference of two groups' means: MOVER's interval of their own, and a test."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import erfc

from survey.errors import CountsError
from survey.estimator.arguments import checked_arguments
from survey.estimator.means import Mean
from survey.estimator.result import Result


@dataclass(frozen=True, repr=False)
class MeanDifference(Result):
    """Mean of group a minus mean of group b, in the unit of the values.

    estimate     difference of the linear estimates
    std_error    for the populations
    conf_low     ends of the interval
    conf_high
    z, p_value   of the test that the means are equal, two-sided, of large samples
    mean_a       the two estimates
    mean_b
    level        asked coverage
    method       "mover"
    """

    estimate: float
    std_error: float
    conf_low: float
    conf_high: float
    z: float
    p_value: float
    mean_a: float
    mean_b: float
    level: float
    method: str


@checked_arguments
def mean_difference(a: Mean, b: Mean) -> MeanDifference:
    """How much larger the mean of group a is; the groups must be different people.

    With the ends l, u of each mean, from d - sqrt((a-l)^2 + (u'-b)^2) to
    d + sqrt((u-a)^2 + (b-l')^2), each mean taken at its possible value next to the estimate; both
    must have been asked for at one level. z = d/SE. Source: Zou and Donner 2008.

    >>> from survey.estimator.means import mean
    >>> from survey.mechanism import grr
    >>> a, b = (mean(counts, grr(2, "3/4"), [0, 1]) for counts in ([300, 700], [500, 500]))
    >>> found = mean_difference(a, b)
    >>> round(found.estimate, 3), round(found.std_error, 3)
    (0.4, 0.043)
    """
    if a.level != b.level or (a.low, a.high) != (b.low, b.high):
        raise CountsError("two means are compared at one level, of values with the same ends")
    x, y = (min(max(one.estimate, one.low), one.high) for one in (a, b))
    d, error = a.estimate - b.estimate, math.hypot(a.std_error, b.std_error)
    z = d / error if error > 0 else 0.0
    return MeanDifference(
        estimate=d,
        std_error=error,
        conf_low=x - y - math.hypot(x - a.conf_low, b.conf_high - y),
        conf_high=x - y + math.hypot(a.conf_high - x, y - b.conf_low),
        z=z,
        p_value=float(erfc(abs(z) / math.sqrt(2))),
        mean_a=a.estimate,
        mean_b=b.estimate,
        level=a.level,
        method="mover",
    )
