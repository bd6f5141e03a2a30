"""Where a margin comes from: from asking a sample, and from the randomization on the devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from survey.estimator.arguments import checked_arguments
from survey.estimator.result import Result
from survey.estimator.shares import Proportions

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class MarginSplit(Result):
    """Half the width of each interval and its two parts, whose squares add up to its square.

    margin          (conf_high - conf_low)/2
    sampling        what would be left if everybody had answered openly; 0 for these respondents
    randomization   what would be left if all people had been asked
    randomized      the part of the variance that is randomization, from 0 to 1
    n, level        reports, and the level of the intervals
    """

    margin: Floats
    sampling: Floats
    randomization: Floats
    randomized: Floats
    n: int
    level: float


@checked_arguments
def margin_split(result: Proportions) -> MarginSplit:
    """Split the margin of each share, shape (k,), into sampling and randomization.

    The variance of one report's pseudo-value is x(1-x), of the answer itself, plus what the
    randomization adds, for generalized randomized response [x p(1-p) + (1-x) q(1-q)]/D^2; x is
    the estimate clipped to [0, 1]. The square of the margin is divided as the variance is, as
    variances add and margins do not; exact for intervals that are normal, near enough for others.
    Tables use the largest randomization that the other answers could bring.

    >>> from survey.estimator import proportions
    >>> from survey.mechanism import grr
    >>> margin_split(proportions([700, 1300], grr(2, "3/4")))
    MarginSplit(n=2000, level=0.9500)
    option  margin  sampling  randomization  randomized
         0  0.0420    0.0176         0.0382      0.8242
         1  0.0420    0.0176         0.0382      0.8242
    """
    x = np.clip(np.nan_to_num(result.estimate), 0.0, 1.0)
    sampling = result.moments.sampling(x)
    if result.target == "respondents":
        sampling = np.zeros_like(sampling)
    randomization = np.maximum(result.moments.randomization(x), 0.0)
    randomized = randomization / (sampling + randomization)
    margin = (result.conf_high - result.conf_low) / 2
    return MarginSplit(
        margin=margin,
        sampling=margin * np.sqrt(1 - randomized),
        randomization=margin * np.sqrt(randomized),
        randomized=randomized,
        n=result.n,
        level=result.level,
    )
