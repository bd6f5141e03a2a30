"""Every result shows estimates and standard errors as rows, as text and in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

import numpy as np
import pytest

from survey import estimator
from survey.estimator import Result
from survey.mechanism import BitVector, grr
from tests.cases import each_case

YES_NO, THREE = grr(2, "3/4"), grr(3, "3/4")
TABLE = [[300, 200], [150, 350]]


def crosstab() -> estimator.Crosstab:
    return estimator.crosstab(TABLE, [YES_NO, YES_NO])


def reconciled() -> estimator.Reconciled:
    estimate, covariance = estimator.joint_shares(TABLE, [YES_NO, YES_NO])
    return estimator.reconciled(estimate, covariance, [[0.5, 0.5], [0.4, 0.6]])


def predictor_model() -> Result:
    predictor = estimator.Randomized("other", [0, 1, 1] * 100, YES_NO)
    result = estimator.regression([0, 1, 0, 1] * 75, YES_NO, randomized=[predictor])
    assert result.second_stage is not None
    return result.second_stage


EXAMPLES: dict[str, Callable[[], Result]] = {
    "AnsweredShares": lambda: estimator.answered_shares([400, 1000, 600], THREE, [2]),
    "ChannelFit": lambda: estimator.channel_fit([400, 1000, 600], THREE),
    "Conditional": lambda: estimator.conditional(crosstab(), given=1),
    "Consistent": lambda: estimator.consistent([100, 70, 40], [10, 5, 5], [-1, 0, 0]),
    "Crosstab": crosstab,
    "Cumulative": lambda: estimator.cdf([400, 1000, 600], THREE, [1, 2, 3]),
    "Difference": lambda: estimator.difference([400, 600], [500, 500], YES_NO, YES_NO),
    "FiniteShares": lambda: estimator.finite_shares([400, 600], YES_NO, 5000),
    "GroupShares": lambda: estimator.group_shares(np.array(TABLE * 2), YES_NO),
    "Histogram": lambda: estimator.histogram([400, 1000, 600], THREE, [1, 2, 3], 2),
    "Independence": lambda: estimator.independence(TABLE),
    "LinearRegression": lambda: estimator.linear_regression(
        np.arange(60.0) ** 1.5 % 11, np.arange(60.0)[:, None] % 7
    ),
    "LieDetector": lambda: estimator.lie_detector([400, 450], [1000, 1000], [0.3, 0.7]),
    "MarginSplit": lambda: estimator.margin_split(estimator.proportions([400, 600], YES_NO)),
    "Mean": lambda: estimator.mean([400, 1000, 600], THREE, [1, 2, 3]),
    "MeanDifference": lambda: estimator.mean_difference(
        *(estimator.mean(c, THREE, [1, 2, 3]) for c in ([400, 1000, 600], [600, 800, 600]))
    ),
    "MultilevelShares": lambda: estimator.multilevel_shares(np.array(TABLE * 2), YES_NO),
    "OptionPairs": lambda: estimator.bit_pairs(
        [[300, 200, 200, 300], [250, 250, 300, 200]], BitVector(3, 2, 3, 1), [(0, 1), (0, 2)]
    ),
    "OneGroupPower": lambda: estimator.power_against(500, 0.3, 0.2, epsilon=1),
    "Phi": lambda: estimator.phi(crosstab()),
    "Plan": lambda: estimator.required_n(0.03, epsilon=1),
    "Poisoning": lambda: estimator.poisoning(estimator.proportions([400, 600], YES_NO), YES_NO),
    "Posterior": lambda: estimator.dirichlet_mean([400, 600], YES_NO),
    "Power": lambda: estimator.power(500, 500, 0.2, 0.4, epsilon=1),
    "PredictorModel": predictor_model,
    "Proportions": lambda: estimator.proportions([400, 600], YES_NO),
    "Quantiles": lambda: estimator.median([400, 1000, 600], THREE, [1, 2, 3]),
    "Reconciled": reconciled,
    "Regression": lambda: estimator.regression([0, 1, 1] * 100, YES_NO, np.arange(300.0) % 7),
    "SimulatedGrid": lambda: estimator.simulated_grid(np.random.default_rng(1), [1], [100]),
    "TradeOff": lambda: estimator.tradeoff([0.5, 1], [100]),
    "WeightedShares": lambda: estimator.weighted_shares([[60, 40], [3, 7]], [1, 2], YES_NO),
}
FIRST = {
    "ChannelFit": "share_of_reports",
    "Independence": "residual",
    "MarginSplit": "margin",
    "OneGroupPower": "power",
    "Plan": "margin",
    "Power": "power",
    "TradeOff": "margin",
}
"""The main field of each result that has no `estimate`."""


def classes(of: type[Result] = Result) -> Iterator[type[Result]]:
    for subclass in of.__subclasses__():
        yield from (subclass, *classes(subclass))


def test_every_result_class_has_an_example():
    assert set(EXAMPLES) == {
        subclass.__name__ for subclass in classes() if "survey" in subclass.__module__
    }


@pytest.mark.slow
@each_case("name", EXAMPLES)
def test_every_result_shows_its_estimates_and_their_errors(name):
    result = EXAMPLES[name]()
    assert type(result).__name__ == name
    names = [field.name for field in fields(result)]
    required = [FIRST.get(name, "estimate"), *(["std_error"] if "std_error" in names else [])]
    rows = result.to_rows()
    for column in required:
        expected = np.atleast_1d(getattr(result, column)).ravel().tolist()
        assert [row[column] for row in rows] == expected
        assert column in repr(result) or name == "Mean"
        assert f'<th scope="col">{column}</th>' in result._repr_html_()
    assert not any(place.startswith("index_") for place in rows[0])


def test_a_table_with_a_covariance_shows_the_table():
    result = reconciled()
    rows = result.to_rows()
    assert [(row["question_0"], row["question_1"]) for row in rows] == [
        (0, 0), (0, 1), (1, 0), (1, 1)
    ]  # fmt: skip
    assert "covariance" not in rows[0]
    assert "covariance" not in repr(result)
    assert result.covariance.shape == (4, 4)


def test_strata_are_named_with_and_without_options():
    single = estimator.consistent([100, 70, 40], [10, 5, 5], [-1, 0, 0])
    assert [row["stratum"] for row in single.to_rows()] == [0, 1, 2]
    assert "option" not in single.to_rows()[0]
    two = estimator.consistent([[60, 40], [30, 40], [30, 10]], np.full((3, 2), 5), [-1, 0, 0])
    places = [(row["stratum"], row["option"]) for row in two.to_rows()]
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
