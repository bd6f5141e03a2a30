"""Regression through channels: what a true answer depends on, though only reports are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.estimator.core.arguments import checked_arguments, checked_level
from survey.estimator.core.intervals import normal_quantile
from survey.estimator.core.result import Result
from survey.estimator.regression.design import ByGroup, Design, Randomized, Through, make_design
from survey.estimator.regression.likelihood import MIN_PART, Errors, Fit, fit
from survey.mechanism.arrays import Floats

__all__ = ["ByGroup", "Randomized", "Regression", "regression"]
from survey.mechanism.arrays import Integers


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Result):
    """Coefficients of a (multinomial) logit; arrays have one entry per outcome and term.

    term         "intercept", names of predictors without randomization, "name=truth" of randomized
                 ones
    outcome      the answer whose odds against the baseline are explained
    estimate     log odds, per unit of the predictor in the input
    std_error    inf if the reports do not determine the coefficient (see `boundary`)
    z            estimate/std_error
    p_value      two-sided, by the normal approximation
    conf_low     estimate -+ z std_error
    conf_high
    log_likelihood  of the reports, weighted
    n            people
    level        nominal coverage
    errors       "observed", "sandwich" or "outer-product"
    converged    whether a maximum was found
    boundary     whether the likelihood rises towards an infinite coefficient: a share whose linear
                 estimate is outside [0, 1], or a predictor that separates the reports. The affected
                 coefficients have no finite error, and their value shows only their sign
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
    converged: bool
    boundary: bool
    fit: Fit

    @property
    def index_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Coefficients are numbered."""
        return ("coefficient",)


@checked_arguments
def regression(
    reports: ArrayLike,
    channel: Through | ByGroup | None,
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
) -> Regression:
    """Fit a logit (two answers) or multinomial logit (more) of the TRUE answer from its reports.

    `reports` has shape (n,): the outcome's codes. `baseline` is the answer with which the others
    are compared. `channel` is the channel of the devices: None for answers without randomization,
    `ByGroup` if groups of people had different channels (or some had none). `predictors` has shape
    (n, columns), without randomization; an intercept is added. `randomized` are predictors that
    were themselves randomized, each with its own channel. The likelihood sums over their truths,
    log L = sum_i w_i log sum_u P(u | x_i) P(their reports | u) sum_t P(t | x_i, u) M[t, report_i].
    `predictor_model` is the relation of u to the predictors without randomization: "logit"
    (multinomial logit) or "shares" (independent: fewer parameters, biased if they are dependent).

    `weights` (n,) are sampling weights. The default of `errors` is "sandwich" (Huber 1967, without
    a finite-sample factor) with weights, and "observed" (inverse observed information) without.
    "outer-product" (of scores, Berndt, Hall, Hall, Hausman 1974) is printed by the R package rr.
    `times` (n,) is the number of people that a row represents: people with equal reports and
    predictors may share one row.

    Valid if devices randomized each question independently of the predictors, people answered
    truthfully and independently, and the logit is correct; errors and p-values are those of large
    samples. Sources: Scheers and Dayton 1988; van den Hout, van der Heijden and Gilchrist 2007;
    Blair, Imai and Zhou 2015; groups: Heck and Moshagen 2018. Agrees with the digits that the R
    packages rr and RRreg print for their examples.

    Raises CountsError for impossible reports, groups of different size, missing values, weights
    that are not above 0, a predictor that is constant or a combination of the others; ChannelError
    for channels through which different shares give the same reports, of sets, or of different
    numbers of truths; ValueError for other arguments. Problems that appear only in the fit are
    flagged: see `Regression.converged` and `.boundary`.

    >>> from survey.mechanism import grr
    >>> rng = np.random.default_rng(1)
    >>> age = rng.normal(size=4000)
    >>> truth = (rng.random(4000) < 1 / (1 + np.exp(1 - age))).astype(int)
    >>> reports = grr(2, "3/4").perturb(truth, rng)
    >>> regression(reports, grr(2, "3/4"), age, names=["age"]).estimate.round(1).tolist()
    [-1.0, 1.0]
    """
    checked_level(level)
    error_method = _checked_errors(errors, weights is not None)
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
    )
    return _result(fit(design, error_method), design, level, error_method)


def _checked_errors(errors: Errors | None, weighted: bool) -> Errors:
    if errors is None:
        return "sandwich" if weighted else "observed"
    if errors not in ("observed", "sandwich", "outer-product"):
        raise ValueError(f"errors {errors!r} must be 'observed', 'sandwich' or 'outer-product'")
    return errors


def _result(fit_result: Fit, design: Design, level: float, errors: Errors) -> Regression:
    from scipy.special import erfc

    back = _to_input_scale(design)
    estimate = back @ fit_result.theta
    # A coefficient with a part in an undetermined direction has no finite error.
    lengths = np.linalg.norm(back, axis=1)
    endless = np.abs(back @ fit_result.undetermined).max(axis=1, initial=0.0) > MIN_PART * lengths
    variance = np.maximum(np.einsum("ij,jk,ik->i", back, fit_result.covariance, back), 0.0)
    error = np.where(endless, np.inf, np.sqrt(variance))
    z = estimate / error
    reach = normal_quantile(level) * error
    terms = len(design.names)
    return Regression(
        term=np.tile(np.array(design.names), design.outcomes - 1),
        outcome=np.repeat(np.array(design.answers, dtype=np.int64), terms),
        estimate=estimate,
        std_error=error,
        z=z,
        p_value=np.asarray(erfc(np.abs(z) / np.sqrt(2))),
        conf_low=estimate - reach,
        conf_high=estimate + reach,
        log_likelihood=fit_result.log_likelihood,
        n=design.people,
        level=level,
        errors=errors,
        converged=fit_result.converged,
        boundary=fit_result.undetermined.shape[1] > 0,
        fit=fit_result,
    )


def _to_input_scale(design: Design) -> Floats:
    """Return the linear map from all parameters to the coefficients of predictors in the input.

    b_j = beta_j/s_j, and the intercept is beta_0 - sum_j beta_j c_j/s_j.
    """
    m, terms = len(design.scale), len(design.names)
    unscale = np.eye(terms)
    unscale[:m, :m] = np.diag(1 / design.scale)
    unscale[0, 1:m] = -design.centre[1:] / design.scale[1:]
    outcomes = design.outcomes - 1
    gammas = (design.combinations - 1) * design.prior.shape[1]
    return np.asarray(np.pad(np.kron(np.eye(outcomes), unscale), ((0, 0), (0, gammas))))
