"""Public estimators accept any replacement of an argument or reject it by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator

import numpy as np
import pytest

import survey.estimator as estimator
from survey.errors import SurveyError
from survey.mechanism import BitVector, SubsetSelection, grr
from survey.mechanism.numeric import geometric, one_bit
from survey.mechanism.ranking import first_or_order
from tests.cases import each_case

COIN, THREE = grr(2, "3/4"), grr(3, "3/4")
BITS = BitVector(2, 2, 3, 1)
SETS = SubsetSelection(k=4, d=2, T=3, L=1)
RANKS = {"counts": [300, 150, 150, 200, 100, 200, 100, 150, 150], "channel": first_or_order(3, 1)}
NOISE, ONE_BIT = geometric(4, 2, no_answers=0), one_bit(11, 1, no_answers=1)
TABLE, PATTERNS = [[3000, 2000], [2000, 3000]], [[0], [1], [0, 1]]
SHARES = estimator.proportions([700, 1300], COIN)
CROSSED = estimator.crosstab(TABLE, [COIN, COIN])
JOINT, COVARIANCE = estimator.joint_shares([[40, 20], [15, 25]], [COIN, COIN])
STATES = {"parents": [-1, 0, 0], "populations": [1000, 600, 400]}
MARGINS = [[0.6, 0.4], [0.5, 0.5]]
PLAN = {"k": 2, "share": 0.5, "population": 10_000}
PAIRED = {"counts": [60, 20, 20], "channel": THREE, "patterns": PATTERNS, "options": 2}
NUMBERS = {"counts": [4, 3, 3], "channel": THREE, "values": [1, 2, 5], "method": None}
POWER = {"share_a": 0.4, "share_b": 0.5, "epsilon": 1.0, "channel": None, "k": 2}

AGAINST = {
    "share": 0.4,
    "known": 0.5,
    "epsilon": 1.0,
    "channel": None,
    "k": 2,
    "significance": 0.05,
    "interval": "wilson",
}

RIGHT = {
    "answered_shares": {
        "counts": [400, 1000, 600],
        "channel": THREE,
        "no_answers": [2],
        "n": 2000,
        "simultaneous": False,
        "target": "population",
    },
    "bit_pairs": {
        "supports": [[300, 200, 250, 250]],
        "channel": BITS,
        "pairs": [(0, 1)],
        "n": 1000,
    },
    "cdf": {**NUMBERS, "at": [1, 2]},
    "channel_fit": {"counts": [70, 130], "channel": COIN, "n": 200},
    "conditional": {"result": CROSSED, "given": 1, "of": 0, "options": [0]},
    "conditional_difference": {"result": CROSSED, "options": [0, 1]},
    "consistent": {
        "estimates": [100, 70, 40],
        "std_errors": [10, 5, 5],
        "parents": [-1, 0, 0],
        "populations": [200, 120, 80],
    },
    "consistent_proportions": {
        "counts": [[100, 100], [40, 60], [45, 15]],
        "channel": COIN,
        **STATES,
        "n": None,
    },
    "consistent_shares": {
        "estimates": [0.5, 0.4, 0.3],
        "std_errors": [0.1, 0.02, 0.04],
        **STATES,
        "n": None,
    },
    "count_bit_pairs": {"reports": [[1, 1], [0, 0]], "channel": BITS, "pairs": [(0, 1)]},
    "crosstab": {"joint_counts": TABLE, "channels": [COIN, COIN], "method": "linear"},
    "debias": {"report_shares": [0.3, 0.7], "channel": COIN},
    "difference": {
        "a": [70, 130],
        "b": [60, 40],
        "channel": COIN,
        "channel_b": "same",
        "n_a": 200,
        "n_b": 100,
        "interval": "score",
    },
    "dirichlet_mean": {
        "counts": [70, 130],
        "channel": COIN,
        "draws": 20,
        "prior": [1.0, 2.0],
        "rng": None,
    },
    "disclosure": {"results": SHARES},
    "finite_shares": {"counts": [70, 130], "channel": COIN, "population": 400, "n": 200},
    "fitted": {"seed": [[1, 1], [1, 3]], "margins": [[40, 60], [50, 50]]},
    "group_shares": {
        "counts": [[60, 40], [40, 60], [45, 15], [50, 50], [35, 65]],
        "channel": COIN,
        "covariates": [1, 2, 4, 8, 3],
        "n": None,
    },
    "histogram": {**NUMBERS, "bins": 2},
    "independence": {"joint_counts": [[3000, 2000], [1000, 4000]]},
    "joint_counts": {"columns": [[0, 1, 1], [1, 0, 2]], "sizes": [2, 3]},
    "joint_precision": {"channels": [COIN, THREE], "n": 100},
    "joint_shares": {"joint_counts": TABLE, "channels": [COIN, COIN]},
    "lie_detector": {"yes": [448, 336], "n": [1000, 900], "p": [0.4, 0.6]},
    "linear_regression": {
        "outcome": np.arange(60.0) ** 1.5 % 11,
        "predictors": np.arange(60.0)[:, None] % 7,
        "names": ["age"],
        "randomized": (),
        "channel": None,
        "values": None,
    },
    "margin_of": {"n": 100, "epsilon": 1.0, "channel": None, **PLAN, "interval": "feldman-cousins"},
    "margin_split": {"result": SHARES},
    "margin_split_of_mean": {"counts": [70, 130], "channel": COIN, "values": [0, 1]},
    "mean": {"counts": [70, 130], "channel": COIN, "values": [0, 1]},
    "mean_difference": {
        name: estimator.mean(counts, COIN, [0, 1])
        for name, counts in (("a", [70, 130]), ("b", [100, 100]))
    },
    "mean_ranks": {**RANKS, "simultaneous": False},
    "median": NUMBERS,
    "multilevel_shares": {
        "counts": [[60, 40], [40, 60], [45, 15], [50, 50]],
        "channel": COIN,
        "population": [1, 2, 3, 4],
        "covariates": None,
    },
    "no_answer_shares": {"counts": [500, 480, 300], "channel": ONE_BIT},
    "norm_sub": {"estimate": [0.5, 0.7, -0.2]},
    "option_pairs": {**PAIRED, "interval": "wilson", "simultaneous": False},
    "phi": {"result": CROSSED, "options": [0, 1]},
    "poisoning": {"found": SHARES, "channel": COIN},
    "poisoning_of_answered": {
        "counts": [400, 1000, 600],
        "channel": THREE,
        "no_answers": [2],
        "n": 2000,
    },
    "poisoning_of_mean": {"counts": [70, 130], "channel": COIN, "values": [0, 1]},
    "poisoning_of_no_answers": {
        "found": estimator.no_answer_shares([500, 480, 300], ONE_BIT),
        "channel": ONE_BIT,
    },
    "poisoning_of_pairs": {
        "found": estimator.option_pairs(*PAIRED.values()),
        "channel": THREE,
        "patterns": PATTERNS,
    },
    "poststratified": {"counts": TABLE, "population": [2, 1], "channel": COIN, "n": None},
    "power": {"n_a": 500, "n_b": 500, **POWER, "significance": 0.05},
    "power_against": {"n": 500, **AGAINST},
    "proportions": {
        "counts": [70, 130],
        "channel": COIN,
        "n": 200,
        "interval": "wilson",
        "simultaneous": False,
        "target": "population",
    },
    "quantiles": {**NUMBERS, "shares": [0.25, 0.5]},
    "raked": {
        "counts": [TABLE, [[900, 300], [200, 100]]],
        "margins": [[3, 2], [1, 4]],
        "channel": COIN,
        "n": None,
    },
    "raking_weights": {"reports": [[10, 20], [40, 10]], "margins": [[3, 2], [1, 4]]},
    "ranking": {**RANKS, "simultaneous": False},
    "reconciled": {"estimate": JOINT, "covariance": COVARIANCE, "margins": MARGINS},
    "reconciled_crosstab": {
        "joint_counts": [[40, 20], [15, 25]],
        "channels": [COIN, COIN],
        "margins": MARGINS,
    },
    "regression": {
        "reports": [0, 1, 1, 0, 1] * 20,
        "channel": COIN,
        "predictors": np.arange(100.0)[:, None] % 7,
        "names": ["age"],
        "randomized": (),
        "weights": 1 + np.arange(100.0) % 3,
        "times": 1 + np.arange(100.0) % 2,
        "baseline": 0,
        "errors": None,
        "predictor_model": "logit",
        "penalty": None,
    },
    "reports_needed": {"results": SHARES},
    "required_epsilon": {"n": 1000, "margin": 0.05, **PLAN},
    "required_n": {"margin": 0.05, "epsilon": 1.0, "channel": None, **PLAN},
    "required_n_against": {**AGAINST, "target": 0.8},
    "required_n_difference": {**POWER, "target": 0.8, "significance": 0.05, "ratio": 1.0},
    "rounded_up": {"n": 123},
    "set_shares": {"reports": [[1, 1, 0, 0], [0, 1, 1, 0]], "channel": SETS, "interval": "wilson"},
    "simulated_grid": {
        "rng": np.random.default_rng(1),
        "epsilons": [1.0],
        "sizes": [100],
        "k": 2,
        "share": 0.5,
    },
    "standardized_shares": {"result": CROSSED, "population": [20, 80]},
    "subset_shares": PAIRED,
    "tradeoff": {"epsilons": [1.0, 2.0], "sizes": [100, 200], **PLAN},
    "weighted_reports": {"reports": [0, 1, 1], "weights": [1, 1, 2], "channel": COIN},
    "weighted_shares": {"counts": TABLE, "weights": [1, 2], "channel": COIN, "n": None},
}

WRONG: list[object] = [
    *(None, "text", b"bytes", math.nan, math.inf, -1, 0, 0.5, 1.5, True, 10**25, 10**400),
    *(1e200, 1e-320, [], {}, {"a"}, range(3), object(), [[1], [1, 2]], [math.nan, 1.0]),
    *([None, None], ["a", "b"], [10**25, 1], [-1, 2], [(0, 9)], [(0,)], [()], [1, 2, 3, 4]),
    *(np.array([]), np.array([1 + 2j, 3]), np.zeros((2, 2, 2)), np.array(["2020-01-01"], "M8[D]")),
    *({0: [1, 1]}, {"a": [1, 1]}, {(0, 1): [1, 1]}, SHARES, CROSSED),
    *(COIN, THREE, BITS, SETS, NOISE, [COIN], [COIN, BITS], [COIN, None], [COIN, NOISE]),
]

ELEMENTS: list[object] = [None, "a", math.nan, -1, 1.5, 10**25, [], True, COIN]

MAY_BE_NAN = ("population", "n_effective")
"""Fields that are nan if the caller states no value."""


def nested(right: object) -> Iterator[object]:
    """Yield copies of the argument with one element replaced, at any depth."""
    if not isinstance(right, list | tuple):
        return
    for place, element in enumerate(right):
        for replacement in [*ELEMENTS, *nested(element)]:
            yield [*right[:place], replacement, *right[place + 1 :]]


def answered(name: str, arguments: dict[str, object]) -> object:
    results = [arguments["results"]] if "results" in arguments else []
    keywords = {key: value for key, value in arguments.items() if key != "results"}
    return getattr(estimator, name)(*results, **keywords)


def test_every_public_estimator_has_arguments_here():
    public = {name for name in estimator.__all__ if inspect.isfunction(getattr(estimator, name))}
    assert public == RIGHT.keys()


@each_case("name", RIGHT)
def test_valid_arguments_give_numbers(name):
    answered(name, RIGHT[name])


def outcome(name: str, arguments: dict[str, object]) -> object:
    """Return the result or the rejection; any other exception fails the test."""
    try:
        return answered(name, arguments)
    except ValueError as error:
        return error


def is_named(error: ValueError) -> bool:
    """Tell whether the error is one of the project's or carries a message of the project."""
    frame = inspect.getinnerframes(error.__traceback__)[-1]
    is_raised_here = "raise" in "".join(frame.code_context or ())
    return len(str(error)) > 8 and (isinstance(error, SurveyError) or is_raised_here)


def numbers(result: object) -> Iterator[np.ndarray]:
    """Yield the numbers of a result, except those of coefficients that have no estimate."""
    if isinstance(result, estimator.Regression):
        has_estimate = np.isfinite(result.std_error)
        yield from (
            column[has_estimate]
            for column in vars(result).values()
            if isinstance(column, np.ndarray) and column.dtype.kind == "f"
        )
        return
    for field, value in vars(result).items() if hasattr(result, "__dict__") else ():
        if isinstance(value, float | np.ndarray) and field not in MAY_BE_NAN:
            array = np.asarray(value)
            yield array if array.dtype.kind == "f" else np.zeros(0)


@pytest.mark.web
@pytest.mark.filterwarnings("error")
@each_case("name", RIGHT)
def test_a_wrong_argument_is_rejected_by_name_or_gives_numbers(name):
    for argument, right in RIGHT[name].items():
        for wrong in [*WRONG, *nested(right)]:
            result = outcome(name, {**RIGHT[name], argument: wrong})
            if isinstance(result, ValueError):
                assert is_named(result), (argument, wrong)
            else:
                assert not any(np.isnan(value).any() for value in numbers(result)), (
                    argument,
                    wrong,
                )
