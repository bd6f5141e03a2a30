"""What can be learned from reports: counts and a channel in, estimates out; pure."""

from survey.estimator.core.maximum_likelihood import norm_sub
from survey.estimator.core.result import Result
from survey.estimator.numbers.distribution import Cumulative, Histogram, cdf, histogram
from survey.estimator.numbers.mean import Mean, MeanDifference, mean, mean_difference
from survey.estimator.numbers.quantiles import Quantiles, median, quantiles
from survey.estimator.planning.power import (
    OneGroupPower,
    Power,
    power,
    power_against,
    required_n_against,
    required_n_difference,
)
from survey.estimator.planning.privacy_cost import (
    JointPrecision,
    MarginSplit,
    SimulatedGrid,
    TradeOff,
    joint_precision,
    margin_split,
    margin_split_of_mean,
    simulated_grid,
    tradeoff,
)
from survey.estimator.planning.sample_size import (
    Plan,
    margin_of,
    required_epsilon,
    required_n,
)
from survey.estimator.regression.design_matrix import ByGroup, JointlyRandomized, Randomized
from survey.estimator.regression.linear_regression import LinearRegression, linear_regression
from survey.estimator.regression.logistic_regression import PredictorModel, Regression, regression
from survey.estimator.shares.answered_shares import AnsweredShares, answered_shares
from survey.estimator.shares.dirichlet_posterior import Posterior, dirichlet_mean
from survey.estimator.shares.finite_population import FiniteShares, finite_shares
from survey.estimator.shares.multiple_choice import (
    OptionPairs,
    bit_pairs,
    count_bit_pairs,
    option_pairs,
    subset_shares,
)
from survey.estimator.shares.proportions import (
    Proportions,
    debias,
    no_answer_shares,
    proportions,
    set_shares,
)
from survey.estimator.shares.ranking import Ranking, mean_ranks, ranking
from survey.estimator.small_groups.multilevel import MultilevelShares, multilevel_shares
from survey.estimator.small_groups.normal_model import GroupShares, group_shares
from survey.estimator.tables.association import Phi, phi
from survey.estimator.tables.conditional import (
    Conditional,
    conditional,
    conditional_difference,
    standardized_shares,
)
from survey.estimator.tables.crosstab import (
    Crosstab,
    Independence,
    crosstab,
    independence,
    joint_counts,
)
from survey.estimator.tables.difference import Difference, difference
from survey.estimator.tables.hierarchical_consistency import (
    Consistent,
    consistent,
    consistent_proportions,
    consistent_shares,
)
from survey.estimator.tables.known_margins import (
    Reconciled,
    joint_shares,
    reconciled,
    reconciled_crosstab,
)
from survey.estimator.tables.proportional_fitting import fitted
from survey.estimator.trust.goodness_of_fit import ChannelFit, channel_fit
from survey.estimator.trust.lie_detector import LieDetector, lie_detector
from survey.estimator.trust.poisoning import (
    Poisoning,
    poisoning,
    poisoning_of_answered,
    poisoning_of_mean,
    poisoning_of_no_answers,
    poisoning_of_pairs,
)
from survey.estimator.trust.suppression import Disclosure, disclosure, reports_needed, rounded_up
from survey.estimator.weights.weighting_and_raking import (
    WeightedShares,
    poststratified,
    raked,
    raking_weights,
    weighted_reports,
    weighted_shares,
)

__all__ = [
    "AnsweredShares",
    "ByGroup",
    "ChannelFit",
    "Conditional",
    "Consistent",
    "Crosstab",
    "Cumulative",
    "Difference",
    "Disclosure",
    "FiniteShares",
    "GroupShares",
    "Histogram",
    "Independence",
    "JointPrecision",
    "JointlyRandomized",
    "LieDetector",
    "LinearRegression",
    "MarginSplit",
    "Mean",
    "MeanDifference",
    "MultilevelShares",
    "OneGroupPower",
    "OptionPairs",
    "Phi",
    "Plan",
    "Poisoning",
    "Posterior",
    "Power",
    "PredictorModel",
    "Proportions",
    "Quantiles",
    "Randomized",
    "Ranking",
    "Reconciled",
    "Regression",
    "Result",
    "SimulatedGrid",
    "TradeOff",
    "WeightedShares",
    "answered_shares",
    "bit_pairs",
    "cdf",
    "channel_fit",
    "conditional",
    "conditional_difference",
    "consistent",
    "consistent_proportions",
    "consistent_shares",
    "count_bit_pairs",
    "crosstab",
    "debias",
    "difference",
    "dirichlet_mean",
    "disclosure",
    "finite_shares",
    "fitted",
    "group_shares",
    "histogram",
    "independence",
    "joint_counts",
    "joint_precision",
    "joint_shares",
    "lie_detector",
    "linear_regression",
    "margin_of",
    "margin_split",
    "margin_split_of_mean",
    "mean",
    "mean_difference",
    "mean_ranks",
    "median",
    "multilevel_shares",
    "no_answer_shares",
    "norm_sub",
    "option_pairs",
    "phi",
    "poisoning",
    "poisoning_of_answered",
    "poisoning_of_mean",
    "poisoning_of_no_answers",
    "poisoning_of_pairs",
    "poststratified",
    "power",
    "power_against",
    "proportions",
    "quantiles",
    "raked",
    "raking_weights",
    "ranking",
    "reconciled",
    "reconciled_crosstab",
    "regression",
    "reports_needed",
    "required_epsilon",
    "required_n",
    "required_n_against",
    "required_n_difference",
    "rounded_up",
    "set_shares",
    "simulated_grid",
    "standardized_shares",
    "subset_shares",
    "tradeoff",
    "weighted_reports",
    "weighted_shares",
]
