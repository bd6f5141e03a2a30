"""What can be learned from reports: counts and a channel in, estimates out; pure."""

from survey.estimator.answered import AnsweredShares, answered_shares
from survey.estimator.diagnostics import Disclosure, disclosure, reports_needed, rounded_up
from survey.estimator.dirichlet import Posterior, dirichlet_mean
from survey.estimator.margin import MarginSplit, margin_split
from survey.estimator.means import Mean, mean
from survey.estimator.option_pairs import OptionPairs, bit_pairs, count_bit_pairs, option_pairs
from survey.estimator.proportions import debias, proportions, subset_shares
from survey.estimator.result import Result
from survey.estimator.shares import Proportions
from survey.estimator.simplex import norm_sub
from survey.estimator.table_shares import no_answer_shares

__all__ = [
    "AnsweredShares",
    "Disclosure",
    "MarginSplit",
    "Mean",
    "OptionPairs",
    "Posterior",
    "Proportions",
    "Result",
    "answered_shares",
    "bit_pairs",
    "count_bit_pairs",
    "debias",
    "dirichlet_mean",
    "disclosure",
    "margin_split",
    "mean",
    "no_answer_shares",
    "norm_sub",
    "option_pairs",
    "proportions",
    "reports_needed",
    "rounded_up",
    "subset_shares",
]
