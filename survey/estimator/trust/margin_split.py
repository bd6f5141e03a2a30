"""Where a margin comes from: from asking a sample, and from the randomization on the devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from survey.estimator.core.arguments import checked_arguments, checked_values, whole_counts
from survey.estimator.core.pseudo_values import EXACT, pseudo_values
from survey.estimator.core.result import Result
from survey.estimator.numbers.mean import Mean, mean
from survey.estimator.shares.binomial import Proportions
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.arrays import Floats


@dataclass(frozen=True, eq=False, repr=False)
class MarginSplit(Result):
    """Half the width of each interval and its two parts, whose squares add up to its square.

    margin          (conf_high - conf_low)/2
    sampling        what would be left if everybody had answered openly; 0 for these respondents
    randomization   what would be left if all people had been asked
    randomized      the part of the variance that is randomization, from 0 to 1
    n, level        reports, and the level of the intervals
    at_most         whether `sampling` and `randomized` are only known to be at most, at least so
    """

    margin: Floats
    sampling: Floats
    randomization: Floats
    randomized: Floats
    n: int
    level: float
    at_most: bool = False


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
    MarginSplit(n=2000, level=0.9500, at_most=False)
    option  margin  sampling  randomization  randomized
         0  0.0420    0.0176         0.0382      0.8242
         1  0.0420    0.0176         0.0382      0.8242
    """
    x = np.clip(np.nan_to_num(result.estimate), 0.0, 1.0)
    sampling = result.moments.sampling(x)
    if result.target == "respondents":
        sampling = np.zeros_like(sampling)
    randomization = np.maximum(result.moments.randomization(x), 0.0)
    return _split(result, randomization / (sampling + randomization))


@checked_arguments
def margin_split_of_mean(
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
    *,
    level: float = 0.95,
) -> MarginSplit:
    """Split the margin of a mean among those who answered; arguments as in `mean`, shape (1,).

    Open answers of as many people would leave SE^2 = v/(n B), v the variance of the numbers of
    those who answer, B their share; what of the estimate's own SE^2 is above it is randomization.
    v = E[x^2] - m^2 where the channel tells the mean of squares, kept within 0 and
    (high - m)(m - low), which no variance exceeds (Bhatia, Davis 2000). Where it does not (one bit
    tells the mean only) v is taken to be the latter: the result says `at_most`.

    Raises what `mean` raises.

    >>> from survey.mechanism.numeric import one_bit
    >>> margin_split_of_mean([400, 600], one_bit(11, 2), range(11))
    MarginSplit(n=1000, level=0.9500, at_most=True)
    option  margin  sampling  randomization  randomized
         0  0.4034    0.3024         0.2670      0.4380
    """
    found = mean(counts, channel, values, level=level)
    open_answers, at_most = _open_variance(found, counts, channel, values)
    randomized = max(1 - open_answers / found.std_error**2, 0.0)
    return _split(found, np.array([randomized]), at_most=at_most)


def _open_variance(
    found: Mean,
    counts: ArrayLike,
    channel: SubsetSelection | WeightTable,
    values: Sequence[float | None] | ArrayLike,
) -> tuple[float, bool]:
    """SE^2 of the mean of open answers, and whether it is only known to be at most that."""
    x = checked_values(values, channel.truths)
    answered = ~np.isnan(x)
    # On the scale from -1 to 1, as `mean` reads it.
    middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
    m = min(max((found.estimate - middle) / half, -1.0), 1.0)
    squares = pseudo_values(channel, np.where(answered, ((x - middle) / half) ** 2, 0.0), found.n)
    b = pseudo_values(channel, answered.astype(np.float64), found.n).values
    f = whole_counts(counts, b.size, "one per report") / found.n
    B = min(float(f @ b), 1.0)
    most = 1 - m * m
    at_most = squares.bias > EXACT
    v = most if at_most else min(max(float(f @ squares.values) / B - m * m, 0.0), most)
    return half**2 * v / (found.n * B), at_most


def _split(result: Proportions | Mean, randomized: Floats, *, at_most: bool = False) -> MarginSplit:
    """The margins divided as the variances are, of which `randomized` is randomization's part."""
    margin = np.atleast_1d((result.conf_high - result.conf_low) / 2)
    return MarginSplit(
        margin=margin,
        sampling=margin * np.sqrt(1 - randomized),
        randomization=margin * np.sqrt(randomized),
        randomized=randomized,
        n=result.n,
        level=result.level,
        at_most=at_most,
    )
