"""What can be learned from reports: counts and a channel in, estimates out; pure."""

from survey.estimator.answered import AnsweredShares, answered_shares
from survey.estimator.calibration import poststratified, raked, raking_weights
from survey.estimator.compare import Difference, difference
from survey.estimator.conditional import Conditional, conditional
from survey.estimator.conditional_sums import conditional_difference, standardized_shares
from survey.estimator.crosstab import Crosstab, crosstab
from survey.estimator.diagnostics import Disclosure, disclosure, reports_needed, rounded_up
from survey.estimator.dirichlet import Posterior, dirichlet_mean
from survey.estimator.distribution import Cumulative, Histogram, cdf, histogram
from survey.estimator.finite import FiniteShares, finite_shares
from survey.estimator.fit import ChannelFit, channel_fit
from survey.estimator.hierarchy import Consistent, consistent, consistent_shares
from survey.estimator.hierarchy_reports import consistent_proportions
from survey.estimator.independence import Independence, independence
from survey.estimator.joint_counts import joint_counts
from survey.estimator.lie_detector import LieDetector, lie_detector
from survey.estimator.margin import MarginSplit, margin_split, margin_split_of_mean
from survey.estimator.mean_difference import MeanDifference, mean_difference
from survey.estimator.means import Mean, mean
from survey.estimator.option_pairs import OptionPairs, bit_pairs, count_bit_pairs, option_pairs
from survey.estimator.planning import Plan, margin_of, required_epsilon, required_n
from survey.estimator.poisoning import Poisoning, poisoning, poisoning_of_mean
from survey.estimator.poisoning_answered import poisoning_of_answered, poisoning_of_no_answers
from survey.estimator.poisoning_pairs import poisoning_of_pairs
from survey.estimator.power import Power, power, required_n_difference
from survey.estimator.proportional_fitting import fitted
from survey.estimator.proportions import debias, proportions, set_shares, subset_shares
from survey.estimator.quantiles import Quantiles, median, quantiles
from survey.estimator.reconcile import Reconciled, reconciled
from survey.estimator.reconcile_reports import joint_shares, reconciled_crosstab
from survey.estimator.regression import Regression, regression
from survey.estimator.regression_chances import ByGroup
from survey.estimator.regression_design import Randomized
from survey.estimator.result import Result
from survey.estimator.shares import Proportions
from survey.estimator.simplex import norm_sub
from survey.estimator.table_shares import no_answer_shares
from survey.estimator.tradeoff import SimulatedGrid, TradeOff, simulated_grid, tradeoff
from survey.estimator.weighting import WeightedShares, weighted_reports, weighted_shares

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
    "Histogram",
    "Independence",
    "LieDetector",
    "MarginSplit",
    "Mean",
    "MeanDifference",
    "OptionPairs",
    "Plan",
    "Poisoning",
    "Posterior",
    "Power",
    "Proportions",
    "Quantiles",
    "Randomized",
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
    "histogram",
    "independence",
    "joint_counts",
    "joint_shares",
    "lie_detector",
    "margin_of",
    "margin_split",
    "margin_split_of_mean",
    "mean",
    "mean_difference",
    "median",
    "no_answer_shares",
    "norm_sub",
    "option_pairs",
    "poisoning",
    "poisoning_of_answered",
    "poisoning_of_mean",
    "poisoning_of_no_answers",
    "poisoning_of_pairs",
    "poststratified",
    "power",
    "proportions",
    "quantiles",
    "raked",
    "raking_weights",
    "reconciled",
    "reconciled_crosstab",
    "regression",
    "reports_needed",
    "required_epsilon",
    "required_n",
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
