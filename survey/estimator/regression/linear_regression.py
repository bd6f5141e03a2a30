"""Linear regression of a numeric outcome on randomized predictors, without assuming normality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.errors import ChannelError, CountsError
from survey.estimator.core.arguments import (
    LARGEST_NUMBER,
    CodeChannel,
    checked_arguments,
    checked_level,
    checked_values,
    within_reach,
)
from survey.estimator.core.debiasing import axis
from survey.estimator.core.result import Result
from survey.estimator.regression.design_matrix import (
    Randomized,
    baseline_first,
    open_columns,
    whole_codes,
)
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.channel import Floats

SINGULAR = 1e-9
"""Smallest ratio of singular values of the normal equations that still determines coefficients."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearRegression(Result):
    """Coefficients of a linear model; arrays have one entry per term.

    term       "intercept", names of predictors without randomization, "name=truth" of randomized
               ones
    estimate   in units of the outcome, per unit of the predictor
    std_error  for large samples
    p_value    of a coefficient of 0, by Student's t; 1 if no level bounds the coefficient
    conf_low   ends of Fieller's interval; -inf and inf if the reports do not bound the coefficient
    conf_high
    n          people
    level      nominal coverage
    """

    term: NDArray[np.str_]
    estimate: Floats
    std_error: Floats
    p_value: Floats
    conf_low: Floats
    conf_high: Floats
    n: int
    level: float

    index_names = ("coefficient",)


@checked_arguments
def linear_regression(
    outcome: ArrayLike,
    predictors: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    randomized: Sequence[Randomized] = (),
    channel: CodeChannel | None = None,
    values: Sequence[float | None] | ArrayLike | None = None,
    level: float = 0.95,
) -> LinearRegression:
    """Regress a numeric outcome on predictors of which some were randomized.

    `outcome` has shape (n,): numbers without randomization; or, with `channel` and `values`, the
    codes of a randomized answer whose truth i is the number `values[i]`. `predictors` have shape
    (n, columns), without randomization; an intercept is added. `randomized` are predictors with
    their reports and channels; each truth except the baseline has a coefficient.

    Ordinary least squares solve sum z z' b = sum z y over people, z their predictors. A report
    gives an unbiased value g_t of [the truth is t]: E[g_t | truth u] = [t = u]. With g_t for
    indicators, and in z z' the products of different questions, diag(g) within one, both sums keep
    their expectations, and so does y by sum_t values_t g_t:

        b = A^-1 c,  A = mean of z z',  c = mean of z y.

    The coefficient j has residuals r_i = w'(c_i - A_i b) with w the part of row j that the others
    do not explain. They are linear in b_j if the other coefficients are adapted, so that b_j is a
    ratio, with Fieller's interval. No distribution is assumed, neither of errors nor of predictors;
    where errors are normal, the likelihood of the R package RRreg (RRlin) is more precise.

    If a predictor is randomized, the intervals are wider where few people have an answer: their
    variance allows for leverage, and Student's degrees of freedom for the kurtosis of residuals.
    With only predictors without randomization, there are n - terms degrees. An interval is
    unbounded if the reports do not show that the answer exists.

    Valid if devices randomized each question independently, people answered truthfully and
    independently, and the model is linear. Simulated at .95 for one randomized predictor with two
    truths beside one without randomization: n of 50 to 500, epsilon 1 to 8, shares of .03 to .5,
    normal, exponential and lognormal errors, unbounded intervals counted as covering. Coverage of
    the answer's slope is at least .944, and of the other slope .947. If few surveys have a bounded
    interval, those that do are a selection and cover less: .69 with 100 people, epsilon 1 and a
    share of .03, where 6% have one. Sources: van den Hout and Kooiman 2006; Fieller 1954; MacKinnon
    and White 1985; Satterthwaite 1946.

    Raises CountsError for impossible reports, missing values, groups of different size, an outcome
    that is the same for everybody, or predictors that do not vary enough to determine the
    coefficients; ChannelError for channels of groups, of sets, or through which different shares
    give the same reports; ValueError for other arguments.

    >>> from survey.mechanism import grr
    >>> channel, rng = grr(2, "3/4"), np.random.default_rng(1)
    >>> smokes = (rng.random(4000) < 0.3).astype(int)
    >>> days = 5 + 2 * smokes + rng.normal(size=4000)
    >>> report = channel.perturb(smokes, rng)
    >>> fit = linear_regression(days, randomized=[Randomized("smokes", report, channel)])
    >>> fit.term.tolist(), fit.estimate.round(1).tolist()
    (['intercept', 'smokes=1'], [5.0, 2.0])
    """
    checked_level(level)
    y = _outcome(outcome, channel, values)
    n = len(y)
    columns, labels = open_columns(predictors, names, n)
    blocks = [columns]
    for predictor in randomized:
        indicators = _unbiased(predictor.reports, predictor.channel, predictor.name)
        if len(indicators) != n:
            raise CountsError(
                f"predictor {predictor.name!r} has {len(indicators)} reports for {n} people"
            )
        order = baseline_first(indicators.shape[1], predictor.baseline, predictor.name)
        blocks.append(indicators[:, order[1:]])
        labels += [f"{predictor.name}={t}" for t in order[1:]]
    z = np.concatenate(blocks, axis=1)
    products = z[:, :, None] * z[:, None, :]
    start = columns.shape[1]
    for block in blocks[1:]:
        # Indicators of one question exclude each other: the product of two is 0, the square is g.
        places = slice(start, start + block.shape[1])
        products[:, places, places] = block[:, :, None] * np.eye(block.shape[1])
        start = places.stop
    return _solved(products, z * y[:, None], labels, level, few=len(randomized) > 0)


def _outcome(
    outcome: ArrayLike,
    channel: CodeChannel | None,
    values: Sequence[float | None] | ArrayLike | None,
) -> Floats:
    """Return the outcome of each person, or an unbiased value of it from a report."""
    if (channel is None) != (values is None):
        raise ValueError("a randomized outcome needs both `channel` and `values`")
    if channel is not None and values is not None:
        numbers = checked_values(values, channel.truths)
        if np.isnan(numbers).any():
            raise ValueError("each truth of the outcome must stand for a number")
        return _unbiased(outcome, channel, "the outcome") @ numbers
    y = np.asarray(outcome, dtype=np.float64)
    if y.ndim != 1 or not y.size:
        raise CountsError(f"outcome of shape {y.shape} must have shape (n,), n > 0")
    if not within_reach(y).all():
        place = int(np.argmin(within_reach(y)))
        raise CountsError(
            f"outcome[{place}] = {y[place]}: must be a finite number of at most "
            f"{LARGEST_NUMBER:g}; leave out people with missing values"
        )
    if y.size > 1 and np.ptp(y) == 0:
        raise CountsError(f"the outcome is {y[0]:g} for everybody: there is nothing to regress")
    return y


def _unbiased(reports: ArrayLike, channel: object, name: str) -> Floats:
    """Return g with E[g_t | truth u] = [t = u] of each report, shape (n, truths)."""
    if not isinstance(channel, SubsetSelection | WeightTable) or getattr(channel, "d", 1) > 1:
        raise ChannelError(f"{name}: a linear regression needs one channel, with d = 1")
    codes = whole_codes(reports, name)
    means = axis(channel).means
    if codes.max() >= means.shape[1]:
        place = int(np.argmax(codes >= means.shape[1]))
        raise CountsError(f"{name}: report {place} is {codes[place]}, above {means.shape[1] - 1}")
    return np.asarray(means.T[codes])


def _solved(
    products: Floats, moments: Floats, labels: list[str], level: float, *, few: bool
) -> LinearRegression:
    """Return the solution of mean(products) b = mean(moments), with intervals by Fieller.

    `few`: allow for few people who have an answer.
    """
    n, size = moments.shape
    A, c = products.mean(axis=0), moments.mean(axis=0)
    scale = np.sqrt(np.maximum(np.abs(np.diagonal(A)), 1e-300))
    singular = np.linalg.svd(A / np.outer(scale, scale), compute_uv=False)
    if n <= size or singular[-1] <= SINGULAR * singular[0]:
        raise CountsError("the predictors do not vary enough to determine their coefficients")
    estimate = np.linalg.solve(A, c)
    residuals = moments - products @ estimate
    # Cov(b) = A^-1 Cov(residuals) A^-1'/n
    influence = residuals @ np.linalg.inv(A).T
    error = np.sqrt((influence**2).mean(axis=0) / (n - size))
    intervals = [
        _coefficient_interval(*_linear_residuals(products, moments, A, c, j), n - size, level, few)
        for j in range(size)
    ]
    low, high, p_value = np.array(intervals).T
    return LinearRegression(np.array(labels), estimate, error, p_value, low, high, n=n, level=level)


def _linear_residuals(
    products: Floats, moments: Floats, A: Floats, c: Floats, j: int
) -> tuple[Floats, Floats]:
    """Return p and q: with b_j = v and the others adapted, person i has residual p_i - q_i v."""
    others = np.delete(np.arange(len(c)), j)
    weights = np.zeros(len(c))
    weights[j] = 1.0
    fixed, slope = np.zeros(len(c)), np.zeros(len(c))
    slope[j] = 1.0
    if others.size:
        inner = A[np.ix_(others, others)]
        weights[others] = -np.linalg.lstsq(inner.T, A[j, others], rcond=None)[0]
        fixed[others] = np.linalg.lstsq(inner, c[others], rcond=None)[0]
        slope[others] = -np.linalg.lstsq(inner, A[others, j], rcond=None)[0]
    return (moments - products @ fixed) @ weights, (products @ slope) @ weights


def _coefficient_interval(
    p: Floats, q: Floats, freedom: int, level: float, few: bool
) -> tuple[float, float, float]:
    """Return the ends of the interval of mean p/mean q, and the p-value of a ratio of 0.

    (mean p - v mean q)^2 <= t^2 f Var(p - v q)/freedom
    """
    from scipy.special import stdtr, stdtrit

    P, Q = p.mean(), q.mean()
    if Q <= 0:
        # The true mean is what the other predictors leave of a variance, which is positive.
        return -np.inf, np.inf, 1.0
    factor, degrees = _few_people(p - q * P / Q, q / q.sum()) if few else (1.0, np.inf)
    if not np.isfinite(factor):
        # One person alone determines the coefficient.
        return -np.inf, np.inf, 1.0
    degrees = min(degrees, freedom)
    covariance = factor * np.cov(p, q, bias=True) / freedom
    low, high = _fieller(P, Q, stdtrit(degrees, (1 + level) / 2) ** 2 * covariance)
    # The interval excludes 0 at levels at which it is bounded and the ratio 0 is rejected.
    t = float(np.min(np.abs([P, Q]) / np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))))
    return low, high, float(2 * stdtr(degrees, -t))


def _few_people(residuals: Floats, leverage: Floats) -> tuple[float, float]:
    """Return the factor f of the variance, at least 1, and Student's degrees of freedom.

    If few people have an answer, most of the variance is theirs: it is estimated from few residuals
    r, which are too small by their leverage h, a share of sum q (MacKinnon and White's HC3). The
    degrees are those of a variance from residuals of this kurtosis (Satterthwaite):

    f = sum (r_i/(1 - h_i))^2/sum r_i^2,  degrees = 2 n/(kurtosis of r - 1).
    """
    if not residuals.any():
        return 1.0, np.inf
    square = residuals**2 / np.max(residuals**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = (square / (1 - leverage) ** 2).sum() / square.sum()
    scatter = (square**2).mean() / square.mean() ** 2 - 1
    return float(np.maximum(factor, 1.0)), 2 * len(residuals) / max(float(scatter), 1e-300)


def _fieller(P: float, Q: float, k: Floats) -> tuple[float, float]:
    """Return the v with (P - v Q)^2 <= k_pp - 2 v k_pq + v^2 k_qq; all numbers if unbounded.

    (Q^2 - k_qq) v^2 - 2 (P Q - k_pq) v + P^2 - k_pp <= 0
    """
    a = Q**2 - k[1, 1]
    b = P * Q - k[0, 1]
    if not a > 0:
        return -np.inf, np.inf
    # The estimate P/Q is accepted, so that only rounding makes this negative, in a perfect fit.
    root = max(b**2 - a * (P**2 - k[0, 0]), 0.0)
    return float((b - np.sqrt(root)) / a), float((b + np.sqrt(root)) / a)
