"""(Multinomial) logistic regression of a true answer on predictors, fitted to its reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.estimator.core.arguments import CodeChannel, checked_arguments, checked_level
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.regression.design_matrix import (
    ByGroup,
    Design,
    JointlyRandomized,
    Randomized,
    make_design,
)
from survey.estimator.regression.likelihood import (
    Objective,
    Parameters,
    Penalized,
    Profile,
    fitted,
    mean_and_gradient,
    scores,
    size,
)
from survey.mechanism.channel import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class PredictorModel(Result):
    """Coefficients of the logit of randomized predictors on those without randomization.

    combination  the truths whose odds are explained, against the baseline of every predictor, such
                 as "x=1, y=2"
    term         "intercept", names of predictors without randomization
    The other fields are as in `Regression`; each interval is Wald's.
    """

    combination: NDArray[np.str_]
    term: NDArray[np.str_]
    estimate: Floats
    std_error: Floats
    z: Floats
    p_value: Floats
    conf_low: Floats
    conf_high: Floats
    n: int
    level: float

    index_names = ("coefficient",)


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Result):
    """Coefficients of a (multinomial) logit; arrays have one entry per outcome and term.

    term         "intercept", names of predictors without randomization, "name=truth" of randomized
                 ones
    outcome      the answer whose odds against the baseline are explained
    estimate     log odds, per unit of the predictor in the input; nan if the reports do not
                 determine the coefficient (see `boundary`)
    std_error    inf without an estimate
    z            estimate/std_error, nan without an estimate
    p_value      two-sided; the larger p-value of the two tests that belong to the two intervals;
                 nan without an estimate
    conf_low     lower and upper end of an interval that joins two: Wald's, estimate -+ z std_error
    conf_high    (with a penalty, the profile of the penalized likelihood), and that of the profile
                 likelihood. Without an estimate, only the second; an open end is -inf or inf.
                 Without randomization, or with other errors than "observed", only the first
    log_likelihood  of the reports, weighted, and without the penalty
    n            people
    level        nominal coverage
    errors       "observed", "sandwich" or "outer-product"; "expected" with a penalty
    penalty      "none" or "firth"
    converged    whether a maximum was found
    boundary     whether the likelihood rises towards an infinite coefficient, because the linear
                 estimate of a share is outside [0, 1] or a predictor separates the reports. These
                 coefficients have no estimate; `penalty="firth"` gives one
    second_stage  model of the randomized predictors' truths, None without any
    fit          the fit itself, on the scale of standardized predictors
    """

    term: NDArray[np.str_]
    outcome: Integers
    estimate: Floats
    std_error: Floats
    z: Floats
    p_value: Floats
    conf_low: Floats
    conf_high: Floats
    log_likelihood: float
    n: int
    level: float
    errors: str
    penalty: str
    converged: bool
    boundary: bool
    second_stage: PredictorModel | None
    fit: Fit

    index_names = ("coefficient",)


@checked_arguments
def regression(
    reports: ArrayLike,
    channel: CodeChannel | ByGroup | None,
    predictors: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    randomized: Sequence[Randomized] = (),
    weights: ArrayLike | None = None,
    times: ArrayLike | None = None,
    baseline: int = 0,
    level: float = 0.95,
    errors: Errors | None = None,
    predictor_model: Literal["logit", "shares"] = "logit",
    joint: Sequence[JointlyRandomized] = (),
    penalty: Literal["firth"] | None = None,
) -> Regression:
    """Fit a logit (two answers) or multinomial logit (more) of the TRUE answer from its reports.

    `reports` has shape (n,): the outcome's codes. `baseline` is the answer with which the others
    are compared. `channel` is the channel of the devices: None for answers without randomization,
    `ByGroup` if groups of people had different channels, or some had none. `predictors` are the
    predictors without randomization, shape (n, columns); an intercept is added. `randomized` are
    the randomized predictors, each with its own channel. The likelihood sums over their truths,
    log L = sum_i w_i log sum_u P(u | x_i) P(their reports | u) sum_t P(t | x_i, u) M[t, report_i].
    `predictor_model` is the relation of u to the predictors without randomization: "logit"
    (multinomial logit) or "shares" (independent: fewer parameters, biased if they are dependent);
    `second_stage` lists the coefficients.
    `joint` names questions that were randomized jointly: then P(reports | u, t) is not a
    product, but q + (p-q) where all reports are the truths and q elsewhere.

    `weights` (n,) are sampling weights. The default of `errors` is "sandwich" (Huber 1967, without
    a finite-sample factor) with weights, and "observed" (inverse observed information) without.
    "outer-product" (of scores; Berndt, Hall, Hall and Hausman 1974) is what the R package rr
    prints. `times` (n,) is the number of people in each row: people with equal reports and
    predictors may share one row.

    Where a predictor separates the answers, or a share would be below 0, the likelihood has no
    finite maximum, and the coefficients have no estimate. `penalty="firth"` adds half the log
    determinant of the expected information of the reports (Firth 1993). Every coefficient is then
    finite and drawn towards equal shares, and standard errors come from the expected information.
    Intervals and p-values use the penalized likelihood ratio (Heinze and Schemper 2002) and, if
    answers were randomized, the unpenalized one too. The penalty excludes `weights` and `errors`.
    It agrees with the digits of the R package logistf for its examples.

    A coefficient without an estimate has an interval too. Each interval is the smallest that
    contains two others: Wald's, which is too short where a share is near its limit, and that of the
    profile likelihood, which is then open on one side. Without randomization, with other errors
    than "observed", and for `second_stage`, it is Wald's interval.

    Valid if devices randomized each question independently of the predictors, people answered
    truthfully and independently, and the logit is correct; errors and p-values are those of large
    samples. Coverage at .95 by enumeration of every outcome of two groups, without and with the
    penalty: at least .967 and .960 at p = 3/4, 150 people each and shares of .31 and .65. Without
    it: .948 at .12 and .27; .966 in groups of 190 at epsilon .7 and shares of .05 and .13, where
    34% of the surveys have no estimate of the intercept.

    Sources: Scheers and Dayton 1988; van den Hout, van der Heijden and Gilchrist 2007; Blair, Imai
    and Zhou 2015; groups: Heck and Moshagen 2018. Agrees with the digits that the R packages rr and
    RRreg print for their examples.

    Raises CountsError for impossible reports, groups of different size, missing values, weights
    that are not above 0, a predictor that is constant or a combination of the others; ChannelError
    for channels through which different shares give the same reports, of sets, or of different
    numbers of truths; ValueError for other arguments.

    >>> from survey.mechanism import grr
    >>> rng = np.random.default_rng(1)
    >>> age = rng.normal(size=4000)
    >>> truth = (rng.random(4000) < 1 / (1 + np.exp(1 - age))).astype(int)
    >>> reports = grr(2, "3/4").perturb(truth, rng)
    >>> regression(reports, grr(2, "3/4"), age, names=["age"]).estimate.round(1).tolist()
    [-1.0, 1.0]
    >>> separated = regression([0] * 9 + [1] * 9, None, [0] * 9 + [1] * 9)
    >>> separated.estimate.tolist(), separated.boundary
    ([nan, nan], True)
    >>> regression([0] * 9 + [1] * 9, None, [0] * 9 + [1] * 9, penalty="firth").estimate.round(2)
    array([-2.94,  5.89])
    """
    checked_level(level)
    if penalty not in (None, "firth"):
        raise ValueError(f"penalty {penalty!r} must be 'firth' or None")
    if penalty and (weights is not None or errors is not None):
        raise ValueError(
            "penalty='firth' depends on the number of people: use `times` instead of `weights`, "
            "and leave out `errors`"
        )
    error_method = errors or ("observed" if weights is None else "sandwich")
    if error_method not in ("observed", "sandwich", "outer-product"):
        raise ValueError(f"errors {errors!r} must be 'observed', 'sandwich' or 'outer-product'")
    if predictor_model not in ("logit", "shares"):
        raise ValueError(f"predictor_model {predictor_model!r} must be 'logit' or 'shares'")
    design = make_design(
        reports,
        channel,
        predictors,
        names,
        randomized,
        weights,
        prior_on_open=predictor_model == "logit",
        times=times,
        baseline=baseline,
        joint=joint,
    )
    if penalty:
        return _penalized_result(design, level)
    return _result(fit(design, error_method), design, level, error_method)


def _result(fit_result: Fit, design: Design, level: float, errors: Errors) -> Regression:
    from scipy.special import erfc

    def columns(back: Floats) -> dict[str, Floats]:
        # A coefficient with a part in an undetermined direction has no finite error.
        lengths = np.linalg.norm(back, axis=1)
        parts = np.abs(back @ fit_result.undetermined).max(axis=1, initial=0.0)
        endless = parts > MIN_PART * lengths
        variance = np.maximum(np.einsum("ij,jk,ik->i", back, fit_result.covariance, back), 0.0)
        # The search stops at an arbitrary value of a coefficient that grows without limit.
        estimate = np.where(endless, np.nan, back @ fit_result.theta)
        error = np.where(endless, np.inf, np.sqrt(variance))
        z = estimate / error
        reach = normal_quantile(level) * error
        return {
            "estimate": estimate,
            "std_error": error,
            "z": z,
            "p_value": np.asarray(erfc(np.abs(z) / np.sqrt(2))),
            "conf_low": np.where(endless, -np.inf, estimate - reach),
            "conf_high": np.where(endless, np.inf, estimate + reach),
        }

    def coefficients(back: Floats) -> dict[str, Floats]:
        numbers = columns(back)
        if errors != "observed" or not design.is_randomized:
            return numbers
        return _widened(numbers, *_likelihood_intervals(fit_result, design, back, level))

    return _with_columns(
        coefficients, columns, fit_result, design, level, errors=errors, penalty="none"
    )


def _likelihood_intervals(
    found: Fit, design: Design, back: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the ends and p-values of linear maps of the parameters by the likelihood ratio.

    The ends have shape (2, rows). They exist even without an estimate: if a share is at its limit,
    the likelihood still bounds one side.
    """
    # One logit is the scale of the search in directions without information.
    covariance = found.covariance + found.undetermined @ found.undetermined.T
    objective, people = partial(mean_and_gradient, design=design), float(design.weights.sum())
    start = _near_maximum(found, objective, people)
    return _profile_intervals(Profile(objective, start, covariance, people), back, level)


def _near_maximum(found: Fit, objective: Objective, people: float) -> Floats:
    """Return the point nearest to 0 among those whose likelihood is nearly that of the fit.

    The search for an infinite maximum stops at an arbitrary value, up to hundreds of logits beyond
    all values that the reports exclude. The search for the ends of an interval must start nearer.
    """
    if not found.undetermined.size:
        return found.theta

    def with_ridge(theta: Floats) -> tuple[float, Floats]:
        value, gradient = objective(theta)
        ridge = RIDGE / people * theta
        return value + float(theta @ ridge) / 2, gradient + ridge

    return _searched(found.theta, with_ridge)


def _profile_intervals(profile: Profile, back: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends, shape (2, rows), and the p-values of a profile."""
    from scipy.special import erfc

    quantile = normal_quantile(level)
    *ends, roots = np.array([profile.interval(row, quantile) for row in back]).T
    # 2 (l* - l*(b = 0)) is chi-square with one degree of freedom if b = 0
    return np.array(ends), np.asarray(erfc(roots / np.sqrt(2)))


def _widened(numbers: dict[str, Floats], ends: Floats, p_values: Floats) -> dict[str, Floats]:
    """Return columns with the smallest interval that contains two, and the larger p-values.

    Without an estimate, the ends are `ends`.
    """
    missing = np.isnan(numbers["estimate"])
    return {
        **numbers,
        "p_value": np.maximum(numbers["p_value"], p_values),
        "conf_low": np.where(missing, ends[0], np.minimum(numbers["conf_low"], ends[0])),
        "conf_high": np.where(missing, ends[1], np.maximum(numbers["conf_high"], ends[1])),
    }


def _penalized_result(design: Design, level: float) -> Regression:
    likelihood = Penalized(design)
    found = fit_penalized(likelihood)
    people = float(design.weights.sum())
    profile = Profile(likelihood.mean_and_gradient, found.theta, found.covariance, people)

    def columns(back: Floats) -> dict[str, Floats]:
        estimate = back @ found.theta
        error = np.sqrt(np.einsum("ij,jk,ik->i", back, found.covariance, back))
        ends, p_value = _profile_intervals(profile, back, level)
        return {
            "estimate": estimate,
            "std_error": error,
            "z": estimate / error,
            "p_value": p_value,
            "conf_low": ends[0],
            "conf_high": ends[1],
        }

    def coefficients(back: Floats) -> dict[str, Floats]:
        numbers = columns(back)
        if not design.is_randomized:
            return numbers
        unpenalized = fit(design, "observed")
        return _widened(numbers, *_likelihood_intervals(unpenalized, design, back, level))

    return _with_columns(
        coefficients, columns, found, design, level, errors="expected", penalty="firth"
    )


def _with_columns(
    columns: Callable[[Floats], dict[str, Floats]],
    second_columns: Callable[[Floats], dict[str, Floats]],
    found: Fit,
    design: Design,
    level: float,
    *,
    errors: str,
    penalty: str,
) -> Regression:
    """Return a result from the columns of linear maps of all parameters.

    `columns` are those of the outcome's coefficients, `second_columns` of the second stage's.
    """
    first, second = _to_input_scale(design)
    terms = len(design.names)
    second_stage = None
    if len(second):
        labels = [", ".join(np.array(design.names[-row.size :])[row > 0]) for row in design.dummies]
        open_names = design.names[: design.prior.shape[1]]
        second_stage = PredictorModel(
            combination=np.repeat(np.array(labels[1:]), len(open_names)),
            term=np.tile(np.array(open_names), len(labels) - 1),
            **second_columns(second),
            n=design.people,
            level=level,
        )
    return Regression(
        term=np.tile(np.array(design.names), design.outcomes - 1),
        outcome=np.repeat(np.array(design.answers, dtype=np.int64), terms),
        **columns(first),
        log_likelihood=found.log_likelihood,
        n=design.people,
        level=level,
        errors=errors,
        penalty=penalty,
        converged=found.converged,
        boundary=found.undetermined.shape[1] > 0,
        second_stage=second_stage,
        fit=found,
    )


def _to_input_scale(design: Design) -> tuple[Floats, Floats]:
    """Return the maps from all parameters to the coefficients of predictors in the input.

    b_j = beta_j/s_j, and the intercept is beta_0 - sum_j beta_j c_j/s_j; first those of the
    outcome, then those of the randomized predictors.
    """
    m, terms = len(design.scale), len(design.names)
    unscale = np.eye(terms)
    unscale[:m, :m] = np.diag(1 / design.scale)
    unscale[0, 1:m] = -design.centre[1:] / design.scale[1:]
    first = np.kron(np.eye(design.outcomes - 1), unscale)
    g = design.prior.shape[1]
    second = np.kron(np.eye(design.combinations - 1), unscale[:g, :g])
    return np.pad(first, ((0, 0), (0, len(second)))), np.pad(second, ((0, 0), (len(first), 0)))


Errors = Literal["observed", "sandwich", "outer-product"]

EXTRA_STARTS = 2
"""Number of additional starting points for the outcome, and again for randomized predictors, which
can cause several local maxima."""

SPREAD = 0.7
"""Standard deviation of additional starting points, for standardized predictors."""

SEED = 20261121
"""Seed of the starting points, so that equal data give equal results."""

SMALL_GRADIENT = 1e-6
"""Maximum slope of the mean log likelihood at convergence."""

NEWTON_STEPS = 10
STEP = 1e-5

FIRST_ROUNDS = 200
"""Number of rounds of expectation maximization for the first starting point."""

MIN_INFORMATION = 0.01
"""A direction with less information, a standard error above 10 logits, is undetermined."""

RIDGE = 1e-5
"""Log likelihood per squared logit that a point nearer to 0 is worth: ends do not move visibly."""

LONG_STEP = 0.1
"""Step of Newton's method, in logits, that a finite maximum does not need at the end."""

MIN_PART = 1e-3
"""Minimum fraction of a coefficient in an undetermined direction that affects it."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The maximum of the likelihood, on the scale of standardized predictors.

    theta           (parameters,)
    covariance      (parameters, parameters), of the determined directions
    undetermined    (parameters, directions) with almost no information; none in a good fit
    log_likelihood  weighted sum
    gradient        largest slope of the mean log likelihood
    predictor_shares  (U,): mean estimated shares of the randomized predictors' combinations
    """

    theta: Floats
    covariance: Floats
    undetermined: Floats
    log_likelihood: float
    gradient: float
    predictor_shares: Floats

    @property
    def converged(self) -> bool:
        """Return whether the fit is a maximum, within numerical precision."""
        return self.gradient <= SMALL_GRADIENT


def fit(design: Design, errors: Errors) -> Fit:
    """Maximize by BFGS from several starts, then by Newton's method; return the best fit."""
    objective = partial(mean_and_gradient, design=design)
    theta = _maximum(objective, design)
    value, gradient = objective(theta)
    determined, undetermined = _directions(_hessian(theta, objective), gradient, design)
    _, prior = fitted(theta, design)
    return Fit(
        theta=theta,
        covariance=_covariance(theta, design, determined, errors),
        undetermined=undetermined,
        log_likelihood=-value * float(design.weights.sum()),
        gradient=float(np.abs(gradient).max()),
        predictor_shares=np.asarray(design.weights @ prior / design.weights.sum()),
    )


def fit_penalized(likelihood: Penalized) -> Fit:
    """Maximize the penalized likelihood as `fit` does; all directions are determined."""
    design = likelihood.design
    theta = _maximum(likelihood.mean_and_gradient, design)
    gradient = likelihood.mean_and_gradient(theta)[1]
    value, _ = mean_and_gradient(theta, design)
    _, prior = fitted(theta, design)
    return Fit(
        theta=theta,
        covariance=np.asarray(np.linalg.pinv(likelihood.information(theta), hermitian=True)),
        undetermined=np.empty((len(theta), 0)),
        log_likelihood=-value * float(design.weights.sum()),
        gradient=float(np.abs(gradient).max()),
        predictor_shares=np.asarray(design.weights @ prior / design.weights.sum()),
    )


def _maximum(objective: Objective, design: Design) -> Floats:
    ends = (_searched(start, objective) for start in _starts(design))
    return _polished(min(ends, key=lambda end: objective(end)[0]), objective)


def _starts(design: Design) -> list[Floats]:
    """Return the fit without predictors (all slopes 0), and some points around it."""
    m, r, g = design.open.shape[1], design.dummies.shape[1], design.prior.shape[1]
    first = Parameters(
        np.pad(_log_odds(design.outcome, design.weights)[:, None], ((0, 0), (0, m - 1))),
        np.zeros((design.outcomes - 1, r)),
        np.pad(_log_odds(design.randomized, design.weights)[:, None], ((0, 0), (0, g - 1))),
    )
    beta = np.concatenate([first.open, first.randomized], axis=1)
    base = np.concatenate([beta.ravel(), first.prior.ravel()])
    rng = np.random.default_rng(SEED)
    n_extra = EXTRA_STARTS if design.combinations == 1 else 2 * EXTRA_STARTS
    around = [base + SPREAD * rng.standard_normal(size(design)) for _ in range(n_extra)]
    return [base, *around]


def _log_odds(chances: Floats, weights: Floats) -> Floats:
    """Return log(share_t/share_0) of shares after some rounds of expectation maximization."""
    shares = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(FIRST_ROUNDS):
        posterior = chances * shares
        shares = weights @ (posterior / posterior.sum(axis=1, keepdims=True)) / weights.sum()
    shares = np.maximum(shares, 0.01)
    return np.asarray(np.log(shares[1:] / shares[0]))


def _searched(start: Floats, objective: Objective) -> Floats:
    from scipy.optimize import minimize

    result = minimize(objective, start, method="BFGS", jac=True, options={"gtol": 1e-8})
    return np.asarray(result.x)


def _polished(theta: Floats, objective: Objective) -> Floats:
    """Return theta after Newton steps, as long as the likelihood does not fall."""
    value, gradient = objective(theta)
    for _ in range(NEWTON_STEPS):
        curvature, vectors = np.linalg.eigh(_hessian(theta, objective))
        if np.abs(gradient).max() <= SMALL_GRADIENT / 100 or curvature[0] <= 0:
            break
        following = theta - vectors @ (vectors.T @ gradient / curvature)
        reached, slope = objective(following)
        if not reached <= value:
            break
        theta, value, gradient = following, reached, slope
    return theta


def _hessian(theta: Floats, objective: Objective) -> Floats:
    """Return the Hessian of minus the mean log likelihood, by differences of the gradient."""
    columns = []
    for index in range(len(theta)):
        step = STEP * np.eye(1, len(theta), index)[0]
        ahead, behind = (objective(theta + side * step)[1] for side in (1, -1))
        columns.append((ahead - behind) / (2 * STEP))
    differences = np.array(columns)
    return np.asarray((differences + differences.T) / 2)


def _directions(hessian: Floats, gradient: Floats, design: Design) -> tuple[Floats, Floats]:
    """Return H^-1 of the determined directions, per person, and the undetermined directions.

    A direction is undetermined if it has almost no information, or if Newton's method still takes
    long steps: on the way to an infinite coefficient, slope and curvature vanish together.
    """
    curvature, vectors = np.linalg.eigh(hessian)
    is_determined = (design.people * curvature > MIN_INFORMATION) & (
        np.abs(vectors.T @ gradient) < LONG_STEP * curvature
    )
    inverse = vectors[:, is_determined] / curvature[is_determined] @ vectors[:, is_determined].T
    return np.asarray(inverse), np.asarray(vectors[:, ~is_determined])


def _covariance(theta: Floats, design: Design, inverse: Floats, errors: Errors) -> Floats:
    """Return the covariance of theta.

    It is H^-1/sum w; or, with s_i the score of person i, H^-1 (sum w_i^2 s s') H^-1 (Huber 1967) or
    (sum w_i s s')^-1 (Berndt and others 1974). The weight w of a row of several people is that of
    all of them, so the sum of their squared weights is w^2/times.
    """
    total = float(design.weights.sum())
    if errors == "observed":
        return np.asarray(inverse / total)
    slopes = scores(theta, design)
    if errors == "outer-product":
        spread = (slopes * design.weights[:, None]).T @ slopes
        return np.asarray(np.linalg.pinv(spread, rcond=1e-12, hermitian=True))
    weighted = slopes * (design.weights / np.sqrt(design.times))[:, None] / total
    return np.asarray(inverse @ (weighted.T @ weighted) @ inverse)
