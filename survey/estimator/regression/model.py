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
from survey.estimator.regression.likelihood import PART, Errors, Fit, fit
from survey.mechanism.arrays import Floats

__all__ = ["ByGroup", "Randomized", "Regression", "regression"]
from survey.mechanism.arrays import Integers


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Result):
    """Coefficients of a (multinomial) logit; arrays have one entry per outcome and term.

    term         "intercept", the names of the open predictors, "name=truth" of randomized ones
    outcome      the answer whose odds against the baseline are explained
    estimate     log odds, per unit of the predictor as it was given
    std_error    inf where the reports do not determine the coefficient (see `boundary`)
    z            estimate/std_error
    p_value      two-sided, by the normal approximation
    conf_low     estimate -+ z std_error
    conf_high
    log_likelihood  of the reports, weighted
    n            people
    level        asked coverage
    errors       "observed", "sandwich" or "outer-product"
    converged    whether a maximum was found
    boundary     whether the likelihood rises towards an infinite coefficient: a share whose
                 linear estimate is outside [0, 1], or a predictor that separates the reports.
                 Coefficients that this affects have no finite error; where they stopped says
                 only their sign
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
    """Fit a logit (two answers) or multinomial logit (more) of the TRUE answer by its reports.

    `reports` has shape (n,): the outcome's codes; `baseline` is the answer that the others are
    held against; `channel` is what the devices ran, None if it was answered openly, `ByGroup` if
    groups of people ran different ones (or some of them none: a question asked both ways in one
    survey). `predictors` has shape (n, columns), openly known; an intercept is added. `randomized`
    are predictors that were randomized themselves, each with its own channel; their truths are
    summed over,
    log L = sum_i w_i log sum_u P(u | x_i) P(their reports | u) sum_t P(t | x_i, u) M[t, report_i].
    `predictor_model` says how u depends on the open predictors: "logit" (multinomial logit) or
    "shares" (not at all: fewer parameters, biased where it does).

    `weights` (n,) are sampling weights; with them `errors` are "sandwich" (Huber 1967, without a
    finite-sample factor) unless asked otherwise, without them "observed" (inverse observed
    information). "outer-product" (of scores, Berndt, Hall, Hall, Hausman 1974) is what the R
    package rr prints. `times` (n,) says how many people a row stands for: those whose reports
    and predictors are all alike may be given once.

    Valid when devices randomized each question on its own whatever the predictors are, people
    answered truthfully and independently, and the logit is right; errors and p-values are
    those of large samples. Sources: Scheers and Dayton 1988; van den Hout, van der Heijden and
    Gilchrist 2007; Blair, Imai and Zhou 2015; groups: Heck and Moshagen 2018. Agrees with the
    digits that the R packages rr and RRreg print for their examples.

    Raises CountsError for reports that are none, groups of different size, missing values,
    weights that are not above 0, a predictor that is constant or a combination of the others;
    ChannelError for channels through which different shares look alike, of sets, or of different
    numbers of truths; ValueError for a plain argument.
    What cannot be refused beforehand is flagged: see `Regression.converged` and `.boundary`.

    >>> from survey.mechanism import grr
    >>> rng = np.random.default_rng(1)
    >>> age = rng.normal(size=4000)
    >>> truth = (rng.random(4000) < 1 / (1 + np.exp(1 - age))).astype(int)
    >>> reports = grr(2, "3/4").perturb(truth, rng)
    >>> regression(reports, grr(2, "3/4"), age, names=["age"]).estimate.round(1).tolist()
    [-1.0, 1.0]
    """
    checked_level(level)
    chosen = _checked_errors(errors, weights is not None)
    if predictor_model not in ("logit", "shares"):
        raise ValueError(f"predictor_model {predictor_model!r} is neither 'logit' nor 'shares'")
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
    return _result(fit(design, chosen), design, level, chosen)


def _checked_errors(errors: Errors | None, weighted: bool) -> Errors:
    if errors is None:
        return "sandwich" if weighted else "observed"
    if errors not in ("observed", "sandwich", "outer-product"):
        raise ValueError(f"errors {errors!r}: 'observed', 'sandwich' or 'outer-product'")
    return errors


def _result(found: Fit, design: Design, level: float, errors: Errors) -> Regression:
    from scipy.special import erfc

    back = _back(design)
    estimate = back @ found.theta
    # A coefficient with a part in a direction without information has no finite error.
    lengths = np.linalg.norm(back, axis=1)
    endless = np.abs(back @ found.undetermined).max(axis=1, initial=0.0) > PART * lengths
    variance = np.maximum(np.einsum("ij,jk,ik->i", back, found.covariance, back), 0.0)
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
        log_likelihood=found.log_likelihood,
        n=design.people,
        level=level,
        errors=errors,
        converged=found.converged,
        boundary=found.undetermined.shape[1] > 0,
        fit=found,
    )


def _back(design: Design) -> Floats:
    """The linear map from all parameters to the coefficients of predictors as they were given.

    b_j = beta_j/s_j, and the intercept is beta_0 - sum_j beta_j c_j/s_j.
    """
    m, terms = len(design.scale), len(design.names)
    one = np.eye(terms)
    one[:m, :m] = np.diag(1 / design.scale)
    one[0, 1:m] = -design.centre[1:] / design.scale[1:]
    outcomes = design.outcomes - 1
    gammas = (design.combinations - 1) * design.prior.shape[1]
    return np.asarray(np.pad(np.kron(np.eye(outcomes), one), ((0, 0), (0, gammas))))
